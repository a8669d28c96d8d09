"""Reading a checkpoint's files: what is missing, damaged or does not fit together is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open

from kster.errors import KsterError

NO_LIMIT = 10**9

_TOKENIZER_FILES = {  # the least that a tokenizer is read from
    "marian": ("vocab.json", "source.spm", "target.spm"),
    "m2m_100": ("vocab.json", "sentencepiece.bpe.model"),
}
_VOCABULARIES = ("vocab.json", "target_vocab.json")
_OBJECTS = ("tokenizer_config.json", "tokenizer.json", "special_tokens_map.json", "added_tokens.json")


def model_type_of(directory: Path) -> str:
    """The architecture a checkpoint names, read before anything is built from it."""
    path = directory / "config.json"
    model_type = _object(path).get("model_type")
    if not isinstance(model_type, str):
        raise KsterError(f"{path}: names no model_type; is this a Hugging Face model?")
    return model_type


def read_config(directory: Path) -> Any:
    """The configuration, with special tokens that are in the vocabulary."""
    path = directory / "config.json"
    model_type_of(directory)
    with _refusing(f"{path} cannot be read as a model's configuration"):
        config = transformers.AutoConfig.from_pretrained(directory)
    size = _vocabulary_size(config)
    for name in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        token = getattr(config, name, None)
        if not isinstance(token, int) or not 0 <= token < size:
            raise KsterError(f"{path}: {name} is {token!r}; accepted: the number of a token, 0 to {size - 1}")
    return config


def weight_files(directory: Path) -> list[Path]:
    """What a checkpoint's weights are read from: safetensors, and only where there are none, pickled ones."""
    return sorted(directory.glob("*.safetensors")) or sorted(directory.glob("pytorch_model*.bin"))


def require_weights(directory: Path) -> None:
    """Refuse weights that are not there, of an unsafe kind, or not all there."""
    files = weight_files(directory)
    if not files:
        raise KsterError(f"{directory} has no weights; accepted: .safetensors or pytorch_model.bin")
    for file in files:
        if file.suffix == ".bin":
            _require_plain_tensors(file)
            continue
        try:
            with safe_open(file, "pt"):  # reads what is in it, and whether all of that is there
                pass
        except (SafetensorError, OSError) as error:
            raise KsterError(
                f"{file} is damaged or cut short ({_words(error)}); accepted: whole safetensors"
            ) from error


def _require_plain_tensors(file: Path) -> None:
    """Refuse a pickle that holds anything but tensors by name; nothing in it is ever executed."""
    with _refusing(f"{file} is damaged, or holds more than tensors and is not safe to load; nothing was run"):
        weights = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise KsterError(f"{file}: accepted: the weights of a network, tensors by name")


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The network on the CPU, every weight of it read from the checkpoint."""
    require_weights(directory)
    with _refusing(f"the weights in {directory} cannot be loaded as config.json describes them"):
        network, found = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            directory,
            dtype=dtype,
            use_safetensors=weight_files(directory)[0].suffix == ".safetensors",
            weights_only=True,
            attn_implementation="sdpa",
            ignore_mismatched_sizes=True,  # they are refused below, by name
            output_loading_info=True,
        )
    if missing := sorted(found["missing_keys"]):  # transformers would make them up
        raise KsterError(f"the weights in {directory} lack {_some(missing)}")
    if misshapen := sorted(found["mismatched_keys"]):  # and these
        name, shape, wanted = misshapen[0]
        raise KsterError(
            f"the weights in {directory} cannot be loaded: {name} is {_shape(shape)}, "
            f"config.json asks for {_shape(wanted)}"
        )
    if unread := sorted(name for name in found["unexpected_keys"] if ".layers." in name):
        raise KsterError(f"the weights in {directory} have layers that config.json lacks: {_some(unread)}")
    return network


def load_tokenizer(directory: Path, config: Any) -> Any:
    """The tokenizer, able to make tokens the network knows."""
    try:
        # Length is checked by `BaseModel.max_length`: the tokenizer's own limit would only print warnings.
        # A "</s>" in somebody's text is text, not the end of a sentence.
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            directory, model_max_length=NO_LIMIT, split_special_tokens=True
        )
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize("a"))
    except Exception as error:  # a broken file ends in whatever its library happens to raise
        if _is_lack_of_memory(error):
            raise
        _name_the_damage(directory, config.model_type)
        raise KsterError(f"{directory}: its tokenizer cannot be loaded ({_words(error)})") from error
    for path in (directory / name for name in _VOCABULARIES):
        if path.is_file():
            _require_numbers(path, _vocabulary_size(config))
    return tokenizer


def _name_the_damage(directory: Path, model_type: str) -> None:
    """Raise for the file that keeps a tokenizer from being loaded, if one can be found."""
    import sentencepiece

    for name in (*_VOCABULARIES, *_OBJECTS):
        if (directory / name).is_file():
            _object(directory / name)
    for path in (*directory.glob("*.spm"), *directory.glob("*.model")):
        with _refusing(f"{path} is damaged; accepted: a SentencePiece model"):
            sentencepiece.SentencePieceProcessor(model_file=str(path))
    needed = _TOKENIZER_FILES[model_type]
    if missing := [name for name in needed if not (directory / name).is_file()]:
        raise KsterError(
            f"{directory}: no {' and no '.join(missing)}; the tokenizer is read from {', '.join(needed)}"
        )


def _require_numbers(path: Path, size: int) -> None:
    """Refuse a vocabulary with tokens that the network has no embedding for."""
    for token, number in _object(path).items():
        if not isinstance(number, int) or not 0 <= number < size:
            raise KsterError(
                f"{path}: {token!r} is {number!r}; accepted: tokens with their numbers, 0 to {size - 1}"
            )


def _vocabulary_size(config: Any) -> int:
    return max(config.vocab_size, getattr(config, "decoder_vocab_size", None) or 0)


def _object(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise KsterError(f"{path} cannot be read as JSON ({_words(error)})") from error
    if not isinstance(data, dict):
        raise KsterError(f"{path}: holds a JSON {type(data).__name__}; accepted: an object")
    return data


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Libraries raise whatever they happen to trip over; people are told which file it was."""
    try:
        yield
    except Exception as error:
        if _is_lack_of_memory(error):
            raise
        raise KsterError(f"{what} ({_words(error)})") from error


def _is_lack_of_memory(error: Exception) -> bool:
    words = str(error)
    return isinstance(error, MemoryError) or "allocate memory" in words or "out of memory" in words


def _words(error: Exception) -> str:
    """On one line, and not all of a long report."""
    said = " ".join(str(error).split())
    if isinstance(error, KeyError):
        said = f"unknown: {said}"
    return (said if len(said) <= 200 else said[:199] + "…") or type(error).__name__


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _shape(shape: Any) -> str:
    return " × ".join(map(str, shape))
