"""The joint subword vocabulary: learning it, using it, and writing it as a Marian tokenizer.

Token ids are the ids of `vocab.json`: end of sentence 0, unknown 1, then bytes and pieces, padding last.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece

from kster.errors import KsterError

FILES = ("source.spm", "target.spm", "vocab.json")
_PAD = "<pad>"
# Printers' signs that a text must not lose, however rare; the last two are non-breaking spaces.
TYPOGRAPHY = "„“”‚‘’»«›‹–—…•·×±°€£§©®™²³½¼¾→←↑↓✓\u00a0\u202f"


@dataclass
class Vocabulary:
    """Two SentencePiece models (the same one twice when joint) and the ids of their pieces."""

    spm: tuple[bytes, bytes]  # of source_lang, of target_lang
    ids: dict[str, int]

    def __post_init__(self) -> None:
        self._processors = tuple(
            sentencepiece.SentencePieceProcessor(model_proto=model) for model in self.spm
        )
        unknown = self.ids.get("<unk>", 1)
        # SentencePiece's own ids → ids of vocab.json
        self._tables = tuple(
            np.array(
                [self.ids.get(piece.id_to_piece(i), unknown) for i in range(piece.vocab_size())], np.uint16
            )
            for piece in self._processors
        )

    @property
    def size(self) -> int:
        return len(self.ids)

    @property
    def pad_id(self) -> int:
        return self.ids[_PAD]

    @property
    def eos_id(self) -> int:
        return self.ids["</s>"]

    def encode(self, texts: Sequence[str], side: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of all texts end to end, (total,) uint16, and their lengths, (n,) int64; with eos."""
        pieces = self._processors[side].encode(list(texts), out_type=int, num_threads=threads)
        lengths = np.fromiter((len(piece) + 1 for piece in pieces), np.int64, len(pieces))
        tokens = np.full(int(lengths.sum()), self.eos_id, np.uint16)
        inside = np.ones(len(tokens), bool)
        inside[np.cumsum(lengths) - 1] = False
        flat = np.fromiter((token for piece in pieces for token in piece), np.int64, int(inside.sum()))
        tokens[inside] = self._tables[side][flat]
        return tokens, lengths

    def spelling(self, piece: str) -> list[int]:
        """Ids that spell a piece of another vocabulary, as long ones as there are; bytes where none fit."""
        found: list[int] = []
        while piece:
            end = next((n for n in range(len(piece), 0, -1) if piece[:n] in self.ids), 0)
            if end:
                found.append(self.ids[piece[:end]])
            else:
                end = 1
                found += [self.ids.get(f"<0x{byte:02X}>", self.ids["<unk>"]) for byte in piece[0].encode()]
            piece = piece[end:]
        return found

    def decode(self, ids: Iterable[int], side: int) -> str:
        """Text of token ids; end of sentence and padding are left out."""
        pieces = getattr(self, "_pieces", None)
        if pieces is None:
            pieces = self._pieces = {number: piece for piece, number in self.ids.items()}
        special = {self.pad_id, self.eos_id}
        return str(self._processors[side].decode([pieces[int(i)] for i in ids if int(i) not in special]))

    def save(
        self, directory: Path, languages: tuple[str, str], *, swap: bool = False, longest: int = 512
    ) -> None:
        """Write the files of a `transformers.MarianTokenizer` that translates languages[0] → languages[1].

        longest: tokens of the longest sentence that the network reads.
        """
        directory.mkdir(parents=True, exist_ok=True)
        source, target = reversed(self.spm) if swap else self.spm
        (directory / "source.spm").write_bytes(source)
        (directory / "target.spm").write_bytes(target)
        (directory / "vocab.json").write_text(
            json.dumps(self.ids, ensure_ascii=False, indent=0), encoding="utf-8"
        )
        config = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": languages[0],
            "target_lang": languages[1],
            "model_max_length": longest,
            "separate_vocabs": False,
            "unk_token": "<unk>",
            "eos_token": "</s>",
            "pad_token": _PAD,
        }
        (directory / "tokenizer_config.json").write_text(
            json.dumps(config, indent=2) + "\n", encoding="utf-8"
        )

    @classmethod
    def load(cls, directory: Path) -> Vocabulary:
        """A vocabulary of our own or of any Marian checkpoint with one vocab.json for both sides."""
        source, target = ((directory / name).read_bytes() for name in FILES[:2])
        try:
            ids = json.loads((directory / FILES[2]).read_text(encoding="utf-8"))
        except ValueError as error:
            raise KsterError(f"{directory / FILES[2]} is not valid JSON: {error}") from None
        for needed in ("</s>", "<unk>", _PAD):
            if needed not in ids:
                raise KsterError(f"{directory / FILES[2]} has no entry {needed!r}; nothing was changed")
        if len(ids) > 65535:
            raise KsterError(f"{directory / FILES[2]} has {len(ids):,} entries; at most 65,535 are supported")
        try:
            return cls((source, target), ids)
        except RuntimeError:
            raise KsterError(
                f"{directory}: source.spm or target.spm is damaged, or not a SentencePiece model"
            ) from None


def learn(texts: Iterable[str], size: int, *, threads: int = 1) -> Vocabulary:
    """A joint byte-pair vocabulary with byte fallback, `size` entries with padding."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        rules.writelines(f"{line}\n" for line in normalisation_rules())
        rules.flush()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=chain([" ".join(TYPOGRAPHY)], texts),  # what is required must occur
                model_writer=model,
                model_type="bpe",
                vocab_size=size - 1,  # padding is appended
                byte_fallback=True,
                character_coverage=0.9998,  # rarer characters are spelled in bytes
                required_chars=TYPOGRAPHY,
                split_digits=True,  # numbers are copied digit by digit, not memorised
                normalization_rule_tsv=rules.name,
                eos_id=0,
                unk_id=1,
                bos_id=-1,
                pad_id=-1,
                num_threads=threads,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise KsterError(
                f"no vocabulary of {size} entries could be learned from this text; a smaller "
                f"vocabulary.size or more text may help ({error})"
            ) from None
    return from_joint_model(model.getvalue())


def from_joint_model(spm: bytes) -> Vocabulary:
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm)
    ids = {pieces.id_to_piece(i): i for i in range(pieces.vocab_size())}
    ids[_PAD] = len(ids)
    return Vocabulary((spm, spm), ids)


def normalisation_rules() -> list[str]:
    """SentencePiece rules that unify what looks the same, and nothing else.

    NFC, every kind of space but the non-breaking ones as a space, no invisible characters, ligatures and
    full-width letters as plain ones. Unlike NFKC it keeps ², ½, … and ™, which no text must lose.
    """
    rules: dict[str, str] = {}
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Co", "Cs"):
            continue
        if character in TYPOGRAPHY:
            continue
        if category in ("Zs", "Zl", "Zp") or character in "\t\n\r":
            rules[character] = " "
        elif category == "Cc" or character in "\u00ad\u200b\u200e\u200f\u2060\ufeff":
            rules[character] = ""
        elif 0xFB00 <= code <= 0xFB06 or 0xFF01 <= code <= 0xFF5E:
            rules[character] = unicodedata.normalize("NFKC", character)
        elif unicodedata.normalize("NFC", character) != character:
            rules[character] = unicodedata.normalize("NFC", character)
        elif not 0xAC00 <= code <= 0xD7A3 and unicodedata.normalize("NFD", character) != character:
            rules[unicodedata.normalize("NFD", character)] = character
    rules.pop(" ")
    return [f"{_hex(left)}\t{_hex(right)}" for left, right in sorted(rules.items()) if left != right]


def _hex(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
