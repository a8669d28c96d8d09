"""Files written on the spot, and reading them into pairs and rejections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kster.formats import Pair, Rejection, read_pairs

Put = Callable[[str, str | bytes], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a file of that name and content; return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return write


def read(path: Path, source: str | None = "en", target: str | None = "de", **options: object):
    """(pairs, rejections) of a file."""
    items = list(read_pairs(path, source, target, **options))  # type: ignore[arg-type]
    return [i for i in items if isinstance(i, Pair)], [i for i in items if isinstance(i, Rejection)]


def tmx(*units: str, doctype: str = "", srclang: str = "en") -> str:
    """A TMX document with these `<tu>` elements, the first of them on line 4 (5 with a doctype)."""
    head = '<?xml version="1.0" encoding="UTF-8"?>\n' + (doctype + "\n" if doctype else "")
    header = f'<tmx version="1.4">\n<header srclang="{srclang}"/><body>\n'
    return head + header + "\n".join(units) + "\n</body></tmx>\n"


def tu(source: str, target: str, id: str = "", source_lang: str = "en", target_lang: str = "de") -> str:
    """One unit on one line; the texts are XML."""
    attribute = f' tuid="{id}"' if id else ""
    return (
        f'<tu{attribute}><tuv xml:lang="{source_lang}"><seg>{source}</seg></tuv>'
        f'<tuv xml:lang="{target_lang}"><seg>{target}</seg></tuv></tu>'
    )
