"""Files that appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from kster.errors import KsterError


@contextmanager
def atomic_text(path: Path) -> Iterator[TextIO]:
    """A UTF-8 text file to write to, put in place of `path` when the block ends without an error.

    A name in `.gz` or `.xz` is compressed. Line ends are written as given.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as raw:
            with _compressed(raw, path.suffix) as packed:
                text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
                yield text
                text.flush()
                text.detach()  # else dropping the wrapper would close what is still to be synced
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(part, path)
    except OSError as error:
        raise KsterError(
            f"{path}: cannot be written ({error.strerror or error}); nothing was changed"
        ) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _compressed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":  # no name and no time inside: the same pairs give the same bytes
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as packed:
            yield cast(IO[bytes], packed)
    else:
        yield raw
