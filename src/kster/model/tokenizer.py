"""Text to tokens and back, by a checkpoint's own tokenizer.

Marian's is done here with SentencePiece alone: the same ids as `transformers.MarianTokenizer`, except for
apostrophes and the like that a model does not know, about five times as fast, and without the seconds that
importing `transformers` takes. The others are that library's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any, Protocol

from kster.errors import ModelError
from kster.model.configuration import Configuration
from kster.model.files import is_lack_of_memory, json_object, refusing, words

NO_LIMIT = 10**9
WORTH_THREADS = 64  # texts; for a list SentencePiece starts a thread on every core, which takes a millisecond

_SPACES = re.compile(" +")
_HARD_SPACES = {0xA0: " ", 0x202F: " "}
_NEEDED = {  # the least that a tokenizer is read from
    "marian": ("vocab.json", "source.spm", "target.spm"),
    "m2m_100": ("vocab.json", "sentencepiece.bpe.model"),
}
_VOCABULARIES = ("vocab.json", "target_vocab.json")
_OBJECTS = ("tokenizer_config.json", "tokenizer.json", "special_tokens_map.json", "added_tokens.json")


_PLAIN = {"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "…": "..."}
"""Replacements made in the text that OPUS-MT's models were trained on, which do not know what was
replaced."""


class Tokenizer(Protocol):
    """What is asked of a tokenizer; safe among threads."""

    @property
    def languages(self) -> tuple[str | None, str | None]: ...  # source and target, where it knows them
    @property
    def special_ids(self) -> Set[int]: ...  # of tokens that are no text
    def source_ids(self, texts: Sequence[str]) -> list[list[int]]: ...  # end of sentence included
    def target_ids(self, texts: Sequence[str]) -> list[list[int]]: ...  # the same, without a language token
    def text(self, ids: Sequence[int]) -> str: ...  # without special tokens
    def token(self, id: int) -> str: ...  # of a target, as it stands in the vocabulary
    def source_token(self, id: int) -> str: ...  # of a source


def load_tokenizer(directory: Path, config: Configuration) -> Tokenizer:
    """The tokenizer, able to make tokens the network knows."""
    tokenizer: Tokenizer
    try:
        tokenizer = (
            MarianTokens(directory) if config.model_type == "marian" else LibraryTokens(directory, config)
        )
        tokenizer.source_ids(["a"])
    except Exception as error:  # a broken file ends in whatever its library happens to raise
        if is_lack_of_memory(error):
            raise
        _name_the_damage(directory, config.model_type)
        raise ModelError(f"{directory}: its tokenizer cannot be loaded ({words(error)})") from error
    size = max(config.vocab_size, config.decoder_vocab_size)
    for path in (directory / name for name in _VOCABULARIES):
        if path.is_file():
            _require_numbers(path, size)
    return tokenizer


class MarianTokens:
    """One SentencePiece model and one vocabulary a side, or one vocabulary for both."""

    def __init__(self, directory: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        path = directory / "tokenizer_config.json"
        config = json_object(path) if path.is_file() else {}
        own_target = bool(config.get("separate_vocabs"))
        sides = ("source", "target")
        self._pieces = [SentencePieceProcessor(model_file=str(directory / f"{side}.spm")) for side in sides]
        source = json_object(directory / "vocab.json")
        target = json_object(directory / "target_vocab.json") if own_target else source
        self._vocabularies: list[dict[str, int]] = [source, target]
        special = {kind: _content(config.get(f"{kind}_token"), f"<{kind}>") for kind in ("unk", "pad")}
        special["eos"] = _content(config.get("eos_token"), "</s>")
        if special["unk"] not in source:
            raise KeyError(f"{special['unk']} token must be in the vocab")
        self.special_ids = frozenset(target[token] for token in special.values() if token in target)
        self._unknown = [vocabulary[special["unk"]] for vocabulary in self._vocabularies]
        self._end = [source[special["eos"]]]
        self._replaced = {
            ord(c): plain for c, plain in _PLAIN.items() if not self._knows(c) and self._knows(plain)
        }
        self._tokens = {number: token for token, number in target.items()}
        self._source_tokens = (
            {number: token for token, number in source.items()} if own_target else self._tokens
        )
        # Pieces are joined by the source's model where there is one vocabulary, as the library does.
        self._joiner = self._pieces[1 if own_target else 0]
        self.languages = config.get("source_lang"), config.get("target_lang")
        codes = [] if own_target else [token for token in source if token[:2] == ">>" and token[-2:] == "<<"]
        self.language_codes = [code.strip("<>") for code in codes]  # of a multilingual model's targets

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Spaces that forbid a line break are made plain: models have read few but those behind numbers."""
        return self._ids([text.translate(_HARD_SPACES) for text in texts], 0)

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Punctuation that the model does not know is made plain, or a memory would teach it to leave it
        out."""
        return self._ids([text.translate(self._replaced) for text in texts] if self._replaced else texts, 1)

    def _knows(self, target: str) -> bool:
        return self._unknown[1] not in self._ids([target], 1)[0]

    def text(self, ids: Sequence[int]) -> str:
        pieces = [self.token(number) for number in ids if number not in self.special_ids]
        return _SPACES.sub(" ", self._joiner.decode_pieces(pieces).replace("▁", " ")).strip()

    def token(self, id: int) -> str:
        return self._tokens[id] if id in self._tokens else self._joiner.id_to_piece(id)

    def source_token(self, id: int) -> str:
        return self._source_tokens.get(id, "")

    def _ids(self, texts: Sequence[str], side: int) -> list[list[int]]:
        pieces, find, unknown = self._pieces[side], self._vocabularies[side].get, self._unknown[side]
        split = [_language_code(text) for text in texts]
        rest = [text for _, text in split]
        if len(rest) < WORTH_THREADS:
            rows = [pieces.encode(text, out_type=str) for text in rest]
        else:
            rows = pieces.encode(rest, out_type=str)
        return [
            [find(piece, unknown) for piece in (*code, *row)] + self._end
            for (code, _), row in zip(split, rows, strict=True)
        ]


def _language_code(text: str) -> tuple[list[str], str]:
    """A code like >>fr<< that a text begins with is one token; and the rest."""
    if text.startswith(">>") and (end := text.find("<<")) != -1:
        return [text[: end + 2]], text[end + 2 :]
    return [], text


def _content(token: Any, default: str) -> str:
    """Special tokens are written as text, or as an object around it."""
    return str(token.get("content", default) if isinstance(token, dict) else token or default)


class LibraryTokens:
    """A tokenizer of `transformers`. It switches between languages, so one thread at a time."""

    def __init__(self, directory: Path, config: Configuration) -> None:
        import transformers

        # Length is checked by `BaseModel.max_length`: the tokenizer's own limit would only print warnings.
        # A "</s>" in somebody's text is text, not the end of a sentence.
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
            directory, model_max_length=NO_LIMIT, split_special_tokens=True
        )
        self.tokenizer.convert_tokens_to_ids(self.tokenizer.tokenize("a"))
        self._eos = config.eos_token_id
        self.special_ids = frozenset(self.tokenizer.all_special_ids)
        self._lock = threading.RLock()

    @property
    def languages(self) -> tuple[str | None, str | None]:
        return getattr(self.tokenizer, "src_lang", None), getattr(self.tokenizer, "tgt_lang", None)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        with self._lock:
            return self.tokenizer(list(texts), truncation=False)["input_ids"]

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        # Where the language token stands differs between tokenizers; here it is not wanted at all.
        with self._lock:
            rows = self.tokenizer(text_target=list(texts), truncation=False, add_special_tokens=False)
        return [[*row, self._eos] for row in rows["input_ids"]]

    def text(self, ids: Sequence[int]) -> str:
        with self._lock:
            return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def token(self, id: int) -> str:
        return self.tokenizer.convert_ids_to_tokens([id])[0]

    def source_token(self, id: int) -> str:
        return self.token(id)

    def language_tokens(self) -> dict[str, int]:
        """Language code → id of its token, for M2M100's and NLLB's tokenizers."""
        tokenizer = self.tokenizer
        if hasattr(tokenizer, "lang_code_to_id"):  # M2M100 and the slow NLLB tokenizer
            return dict(tokenizer.lang_code_to_id)
        if hasattr(tokenizer, "lang_code_to_token"):
            return {c: tokenizer.convert_tokens_to_ids(t) for c, t in tokenizer.lang_code_to_token.items()}
        # NLLB: the codes themselves (eng_Latn) are special tokens.
        codes = [t for t in tokenizer.all_special_tokens if len(t) == 8 and t[3] == "_"]
        return {code: tokenizer.convert_tokens_to_ids(code) for code in codes}

    def use(self, source_lang: str, target_lang: str) -> None:
        """Translate between these from now on."""
        self.tokenizer.src_lang, self.tokenizer.tgt_lang = source_lang, target_lang


def _name_the_damage(directory: Path, model_type: str) -> None:
    """Raise for the file that keeps a tokenizer from being loaded, if one can be found."""
    import sentencepiece

    for name in (*_VOCABULARIES, *_OBJECTS):
        if (directory / name).is_file():
            json_object(directory / name)
    for path in (*directory.glob("*.spm"), *directory.glob("*.model")):
        with refusing(f"{path} is damaged; accepted: a SentencePiece model"):
            sentencepiece.SentencePieceProcessor(model_file=str(path))
    needed = _NEEDED[model_type]
    if missing := [name for name in needed if not (directory / name).is_file()]:
        raise ModelError(
            f"{directory}: no {' and no '.join(missing)}; the tokenizer is read from {', '.join(needed)}"
        )


def _require_numbers(path: Path, size: int) -> None:
    """Refuse a vocabulary with tokens that the network has no embedding for."""
    for token, number in json_object(path).items():
        if not isinstance(number, int) or not 0 <= number < size:
            raise ModelError(
                f"{path}: {token!r} is {number!r}; accepted: tokens with their numbers, 0 to {size - 1}"
            )
