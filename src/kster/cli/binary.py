"""Files that are not text, recognised by how they begin."""

from __future__ import annotations

from pathlib import Path

from kster.errors import KsterError

HEAD = 4096  # bytes
KINDS = {
    b"PK\x03\x04": "a zip archive, as Word documents and spreadsheets are",
    b"\xd0\xcf\x11\xe0": "a document of an old office program",
    b"%PDF-": "a PDF",
}


def binary_kind(path: Path) -> str | None:
    """What a file is that is not text; None when it may be one, perhaps with a few wrong bytes in it."""
    from kster.formats.encoding import detect_encoding, open_bytes

    with open_bytes(path) as stream:
        head = stream.read(HEAD)
    for magic, kind in KINDS.items():
        if head.startswith(magic):
            return kind
    try:
        head.decode(detect_encoding(head), "surrogatepass")
    except UnicodeDecodeError as error:
        cut_off = error.end == len(head)  # within a character
        return "a binary file" if 0 in head and not cut_off else None
    return None


def require_text(path: Path) -> None:
    """Raises KsterError for a file that is no text at all, such as a Word document."""
    if kind := binary_kind(path):
        raise KsterError(f"{path}: {kind}, which is not accepted here; plain text is, one text a line")
