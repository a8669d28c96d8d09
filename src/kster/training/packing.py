"""`python -m kster.training.packing pack|unpack`: a directory as a few files of limited size, and back.

For machines that take or give only small files: prepared data go there in pieces, finished weights come back
in pieces. Every piece is checked by its hash; what is missing or damaged is named, and nothing is unpacked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kster.errors import KsterError

MIB = 1 << 20
_LIST = "pieces.json"
# Arrays of 16-bit numbers: what a byte is depends on where in its pair it stands.
_TOKENS = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}


def pack(directory: Path, pieces: Path, *, mebibytes: float = 60, compress: bool = True) -> list[Path]:
    """Write `directory` into `pieces` as files of at most so many MiB; they appear together."""
    if not directory.is_dir():
        raise KsterError(f"{directory} is not a directory; nothing was written")
    if pieces.exists() and (not pieces.is_dir() or any(pieces.iterdir())):
        raise KsterError(f"{pieces} is not empty; it was left untouched")
    pieces.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=pieces.parent) as whole:
        with _compressor(whole, compress) as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
            for path in sorted(directory.rglob("*")):
                if path.is_file():
                    archive.add(path, path.relative_to(directory).as_posix(), filter=_anonymous)
        whole.seek(0)
        written = [
            _write(pieces / f"piece-{number:03}", content)
            for number, content in enumerate(iter(lambda: whole.read(int(mebibytes * MIB)), b""))
        ]
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in written}
    content = {"directory": directory.name, "compressed": compress, "pieces": hashes}
    (pieces / _LIST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return written


def unpack(pieces: Path, directory: Path) -> Path:
    """Make the directory again that was packed into `pieces`; it appears complete or not at all."""
    if directory.exists():
        raise KsterError(f"{directory} exists; it was left untouched")
    try:
        content = json.loads((pieces / _LIST).read_text(encoding="utf-8"))
        hashes: dict[str, str] = content["pieces"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KsterError(f"{pieces} holds no list of pieces ({error})") from None
    for name, hash in hashes.items():
        path = pieces / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != hash:
            raise KsterError(f"{path} is missing or damaged; nothing was unpacked")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as temporary:
        partial = Path(temporary) / "unpacked"
        with tempfile.TemporaryFile(dir=temporary) as whole:
            for name in sorted(hashes):
                with (pieces / name).open("rb") as file:
                    shutil.copyfileobj(file, whole)
            whole.seek(0)
            with tarfile.open(fileobj=whole, mode="r|xz" if content["compressed"] else "r|") as archive:
                archive.extractall(partial, filter="data")
        partial.rename(directory)
    return directory


@contextmanager
def _compressor(file: IO[bytes], compress: bool) -> Iterator[IO[bytes]]:
    if not compress:
        yield file
        return
    with lzma.open(file, "wb", filters=[_TOKENS]) as stream:
        yield stream


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whose file it was and when is nobody's business, and would make the same content other pieces."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kster.training.packing", description=__doc__)
    parser.add_argument("verb", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path, help="the directory to pack, or that of the pieces")
    parser.add_argument("target", type=Path, help="where the pieces go, or the directory to make")
    parser.add_argument("--mebibytes", type=float, default=60, help="of the largest piece")
    parser.add_argument("--plain", action="store_true", help="no compression: weights hardly shrink")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "pack":
            made = pack(
                options.source, options.target, mebibytes=options.mebibytes, compress=not options.plain
            )
            sizes = ", ".join(f"{path.stat().st_size / MIB:.1f}" for path in made)
            print(f"{options.source} packed into {len(made)} pieces of {sizes} MiB in {options.target}")
        else:
            print(f"unpacked to {unpack(options.source, options.target)}")
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
