"""Whole files translated: what Python and the command line do with a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kster.documents.kinds import open_document
from kster.errors import KsterError
from kster.files import atomic_text
from kster.model import BaseModel
from kster.text.codes import CodedText
from kster.translation.result import Translation

TEXTS_AT_ONCE = 256  # enough to batch by length, few enough to show progress


class DocumentTexts:
    """A document's `texts`, each once even where the file repeats it, and the document with their
    translations.

    Raises KsterError for a file that cannot be translated.
    """

    def __init__(self, name: str, data: bytes, source: str, target: str) -> None:
        self._data = data
        self._document = open_document(name, data, source, target)
        self._of_units = [CodedText.of(unit.text, unit.context) for unit in self._document.units]
        self.texts = list(dict.fromkeys(self._of_units))

    def written(self, translations: Mapping[CodedText, Translation]) -> bytes:
        """The translated file; the file itself where there was nothing to translate."""
        if not self.texts:
            return self._data
        return self._document.written([translations[text].content for text in self._of_units])

    def repaired(self, translations: Mapping[CodedText, Translation]) -> list[str]:
        """Where codes had to be put back: places to check."""
        units = zip(self._document.units, self._of_units, strict=True)
        return [unit.where for unit, text in units if translations[text].repaired]


@dataclass(frozen=True, slots=True)
class TranslatedFile:
    """texts: how many were translated, each once. repaired: where codes were put back: places to check."""

    texts: int
    repaired: list[str]


def translate_file(
    input: Path,
    output: Path,
    model: BaseModel,
    translate: Callable[[Sequence[CodedText]], Sequence[Translation]],
    progress: Callable[[int, int], None] | None = None,
) -> TranslatedFile:
    """See `Translator.translate_file`. progress: called with the texts done and how many there are."""
    _require_files(input, output)
    source, target = model.source_lang, model.target_lang
    if source is None or target is None:
        raise KsterError(f"{model.name}: does not say its languages; name source and target")
    document = DocumentTexts(input.name, input.read_bytes(), source, target)
    done: dict[CodedText, Translation] = {}
    for start in range(0, len(document.texts), TEXTS_AT_ONCE):
        some = document.texts[start : start + TEXTS_AT_ONCE]
        done.update(zip(some, translate(some), strict=True))
        if progress is not None:
            progress(len(done), len(document.texts))
    written = document.written(done)
    with atomic_text(output) as out:
        out.buffer.write(written)
    return TranslatedFile(len(done), document.repaired(done))


def _require_files(input: Path, output: Path) -> None:
    if not input.is_file():
        raise KsterError(f"{input}: {'is a directory, not a file' if input.is_dir() else 'no such file'}")
    if output.exists() and input.samefile(output):
        raise KsterError(f"{output}: is also the input; nothing was written")
    if input.suffix.lower() != output.suffix.lower():
        raise KsterError(f"{output}: must end in {input.suffix}, as the input does; nothing was translated")
