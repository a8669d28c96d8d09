"""Which model made these keys: a hash of everything that decides what a key looks like."""

from __future__ import annotations

import hashlib
from pathlib import Path

# Bumped when the same files would give other keys (another tap, another start of decoding).
TAP = "decoder.layers[-1].fc1.input/1"

_TOKENIZER_SUFFIXES = (".spm", ".model")
_TOKENIZER_NAMES = ("vocab.json", "tokenizer.json", "merges.txt")
_CHUNK = 1 << 22


def fingerprint_of(directory: Path, languages: tuple[str | None, str | None]) -> str:
    """Hash the weights, the tap, the tokenizer files and the language pair of a checkpoint directory.

    The files are hashed as they lie on disk, so the fingerprint does not depend on the device or the
    precision the model is loaded with.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((TAP, languages)).encode())
    for path in sorted(directory.iterdir()):
        is_weights = path.suffix == ".safetensors"
        is_tokenizer = path.suffix in _TOKENIZER_SUFFIXES or path.name in _TOKENIZER_NAMES
        if is_weights or is_tokenizer:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
