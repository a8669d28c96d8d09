"""Which model made these keys: a hash of everything that decides what a key looks like."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from kster.model.loading import weight_files

# Bumped when the same files would give other keys (another tap, another start of decoding).
TAP = "decoder.layers[-1].fc1.input/1"

_TOKENIZER_SUFFIXES = (".spm", ".model")
_TOKENIZER_NAMES = ("vocab.json", "tokenizer.json", "merges.txt")
# What config.json says about the computation; the rest (dtype, versions, generation) does not change a key.
_CONFIG_FIELDS = (
    "model_type",
    "d_model",
    "activation_function",
    "scale_embedding",
    "decoder_start_token_id",
    "pad_token_id",
    "eos_token_id",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
_CHUNK = 1 << 22


def fingerprint_of(directory: Path, languages: tuple[str | None, str | None]) -> str:
    """Hash the weights, the tap, the tokenizer files, the computation and the language pair of a checkpoint.

    The files are hashed as they lie on disk, so the fingerprint does not depend on the device or the
    precision the model is loaded with.
    """
    digest = hashlib.blake2b(digest_size=16)
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    digest.update(repr((TAP, languages, [config.get(name) for name in _CONFIG_FIELDS])).encode())
    weights = weight_files(directory)
    for path in sorted(directory.iterdir()):
        is_weights = path in weights
        is_tokenizer = path.suffix in _TOKENIZER_SUFFIXES or path.name in _TOKENIZER_NAMES
        if is_weights or is_tokenizer:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
