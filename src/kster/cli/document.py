"""`kster translate manual.docx -o handbuch.docx`: a document in, the same in another language out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kster.cli.output import if_interrupted, note
from kster.cli.progress import progress_bars
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.translation.translator import TranslateOptions, Translator

MOST_NAMED = 10  # places to look at


def is_document(path: Path) -> bool:
    """Whether a file is one by its name; `.txt` may be, or lines."""
    from kster.documents.kinds import SUFFIXES

    return path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".txt"


def require_document(document: Path, output: Path | None) -> Path:
    """Where to write; checked before a model is loaded in vain."""
    from kster.documents.kinds import SUFFIXES

    if not document.is_file():
        raise KsterError(
            f"{document}: {'is a directory, not a file' if document.is_dir() else 'no such file'}"
        )
    if document.suffix.lower() not in SUFFIXES:
        raise KsterError(
            f"{document}: not a kind of document that is known ({' '.join(SUFFIXES)}); lines of plain text "
            "are read from standard input, or with --input FILE"
        )
    if output is None:
        example = document.with_stem(f"{document.stem}.translated").name
        raise KsterError(f"{document}: name the file to write, such as --output {example}")
    return output


def translate_document(
    translator: Translator, document: Path, output: Path, options: TranslateOptions
) -> None:
    from kster.translation.files import translate_file

    with if_interrupted(f"{output} was not written"), progress_bars({"translating": "texts"}) as show:
        done = translate_file(translator, document, output, options, partial(show, "translating"))
    if done.repaired:
        shown = ", ".join(done.repaired[:MOST_NAMED]) + (" …" if len(done.repaired) > MOST_NAMED else "")
        note(f"kster: placeholders or tags were put back where they seemed to belong; look at {shown}")
