"""`kster translate`: lines in, translated lines out; or a document in, the same in another language out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from kster.cli.lines import file_lines, line_blocks, require_file, require_text
from kster.cli.loading import Loading, open_translator
from kster.cli.options import (
    BatchSentences,
    Beam,
    Device,
    LengthPenalty,
    Memories,
    Method,
    Model,
    Precision,
    Search,
    SourceLang,
    TargetLang,
    Terms,
)
from kster.cli.output import count, if_interrupted, note
from kster.cli.progress import is_watched, progress_bar, progress_bars
from kster.cli.translation_writers import Explain, choose_writer, note_confidence, note_matches, note_repairs
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.text.codes import CodedText
    from kster.translation.result import Translation
    from kster.translation.translator import TranslateOptions, Translator

BLOCK = 2_048  # lines translated together: enough to batch by length, little enough to hold
LEAST_MATCH = 50  # per cent
MOST_NAMED = 10  # places of a document to look at
EXPLAINED_BLOCK = 128  # explanations are a thousand times larger than their sentences


def translate(
    document: Annotated[
        Path | None,
        typer.Argument(
            metavar="DOCUMENT",
            help="A document to translate (.docx, .html, .md, .po, …); --output names the result.",
        ),
    ] = None,
    memory: Memories = None,
    terms: Terms = None,
    model: Model = None,
    method: Annotated[
        Method | None,
        typer.Option(
            metavar="METHOD",
            help="base (the model alone), knn (kNN-MT: examples with fixed weights) or kster (learned ones).",
            show_default="kster with a memory, else base",
        ),
    ] = None,
    beam: Beam = 4,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="How many translations of each line, separated by tabs.")
    ] = 1,
    explain: Annotated[
        Explain | None,
        typer.Option(
            metavar="FORMAT",
            help="Show what decided each word and which examples it comes from: "
            "json (one object per line) or html (one page).",
        ),
    ] = None,
    matches: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Show this many fuzzy matches for each line, in --json or as notes."
        ),
    ] = 0,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Show how likely each line and word is right, from 0 to 1, in --json or as notes.",
        ),
    ] = False,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Where the lines stand: of several translations a line was taught with, take the one from "
            "there.",
            show_default=False,
        ),
    ] = None,
    exact_matches: Annotated[
        bool,
        typer.Option(
            "--exact-matches/--no-exact-matches",
            help="Whether a text that the memory holds as a whole comes back as it was taught.",
        ),
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object per line.")] = False,
    whole_lines: Annotated[
        bool,
        typer.Option("--whole-lines", help="Translate each line as a whole instead of sentence by sentence."),
    ] = False,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", show_default="standard input")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", show_default="standard output")
    ] = None,
    batch_sentences: BatchSentences = None,
    device: Device = "auto",
    precision: Precision = "auto",
    search: Search = "auto",
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
) -> None:
    """Translate plain text line by line, or a document. Empty lines stay empty and the order stays as it is.

    Placeholders, tags and addresses (%s, {name}, <b>, https://…) come back as they were. In a document
    (kster translate manual.docx -o handbuch.docx) only the text is replaced; every other byte stays.

    A memory knows its model: `--memory DIR` alone is enough. The terms of `--terms BASE` (kster terms) are
    kept, in whatever form the sentence needs.
    """
    _require_sense(method, bool(memory), beam, n_best, html=explain == "html", json=json)
    if matches and not memory:
        raise KsterError("--matches needs a memory; give one with --memory DIR")
    options: TranslateOptions = {
        "method": method,
        "beam": beam,
        "length_penalty": length_penalty,
        "n_best": n_best,
        "explain": explain is not None,
        "confidence": confidence,
        "context": context,
        "exact_matches": exact_matches,
        "split_sentences": not whole_lines,
        "batch_sentences": batch_sentences,
    }
    if document is None and input is not None and _is_document(input):
        document, input = input, None
    if document is not None:
        if input is not None or explain or json or n_best > 1 or matches or confidence:
            raise KsterError(
                f"{document} is a document; --input, --explain, --json, --n-best, --matches and "
                "--confidence are for lines of text"
            )
        output = _require_document(document, output)
    else:
        _require_files(input, output)
    how: Loading = {
        "device": device,
        "precision": precision,
        "source_lang": source_lang,
        "target_lang": target_lang,
    }
    translator = open_translator(memory, model, terms, search, **how)
    if document is not None and output is not None:
        _translate_document(translator, document, output, options)
        return
    done = 0
    with _writer(output, lambda: done) as out:
        find = None
        if matches:
            find = partial(translator.memory.matches, n=matches, least=LEAST_MATCH, context=context)  # type: ignore[union-attr]
        writer = choose_writer(out, translator, method, explain, json, find)
        writer.begin()
        # Not beside the translations themselves: a bar would run into them.
        visible = output is not None or not sys.stdout.isatty()
        total = sum(1 for _ in file_lines(input)) if input is not None and visible and is_watched() else None
        with progress_bar("translating", "lines", total, visible=visible) as show:
            for block in line_blocks(input, EXPLAINED_BLOCK if explain else BLOCK):
                translations = translator.translate(block, **options)
                writer.write(translations)
                note_repairs(translations, done)
                if find is not None and not json:
                    note_matches(translations, done, find)
                if confidence and not json:
                    note_confidence(translations, done)
                done += len(block)
                show(done)
        writer.end()


def _require_sense(
    method: Method | None, with_memory: bool, beam: int, n_best: int, *, html: bool, json: bool
) -> None:
    """Refuse options that contradict each other, before a model is loaded or a file opened."""
    if method not in (None, "base") and not with_memory:
        raise KsterError(f"--method {method} needs a memory; give one with --memory DIR")
    if n_best > beam:
        raise KsterError(f"--n-best {n_best} needs a beam at least as wide; --beam is {beam}")
    if html and json:
        raise KsterError("--json and --explain html cannot be combined; --explain json gives both")


def _require_files(input: Path | None, output: Path | None) -> None:
    """That there is an input of plain text, and that the output would not overwrite it."""
    if input is not None:
        require_file(input)
        if _is_document(input.with_suffix("")) and input.suffix in (".gz", ".xz"):
            raise KsterError(f"{input} is a document; unpack it first")
        require_text(input)
        if output is not None and output.exists() and input.samefile(output):
            raise KsterError(f"{output}: is also the input; nothing was written")
    if output is not None and output.is_dir():
        raise KsterError(f"{output}: is a directory, not a file to write to")
    if output is not None and not output.parent.is_dir():
        raise KsterError(f"{output.parent}: no such directory to write {output.name} to")


@contextmanager
def _writer(output: Path | None, done: Callable[[], int]) -> Iterator[TextIO]:
    """done: how many lines were written. If it ends early, these are kept, beside an earlier output."""
    if output is None:
        yield sys.stdout
        return
    from kster.files import atomic_text

    kept: list[Path] = []

    def keep(part: Path) -> bool:
        kept.extend([part] if done() else [])
        return bool(done())

    try:
        with atomic_text(output, keep=keep) as file:
            yield file
    except KsterError as error:
        raise KsterError(f"{error}; {_outcome(output, kept, done())}") from error
    except BaseException:  # Ctrl-C, too
        if kept:
            note(f"kster: {_outcome(output, kept, done())}")
        raise


def _outcome(output: Path, kept: list[Path], done: int) -> str:
    """After an error: where what was translated is, and what became of an earlier output."""
    state = "is as it was" if output.exists() else "was not made"
    if not kept:
        return f"{output} {state}"
    return f"what was translated before ({count(done, 'line')}) is in {kept[0]}, {output} {state}"


# Documents -------------------------------------------------------------------------------------------


def _is_document(path: Path) -> bool:
    """Whether a file's name says so. `.txt` does not: it may just as well hold lines."""
    from kster.documents.kinds import SUFFIXES

    return path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".txt"


def _require_document(document: Path, output: Path | None) -> Path:
    """Where to write, checked before a model is loaded."""
    from kster.documents.kinds import SUFFIXES

    require_file(document)
    if document.suffix.lower() not in SUFFIXES:
        raise KsterError(
            f"{document}: not a known kind of document ({' '.join(SUFFIXES)}); lines of plain text are read "
            "from standard input, or with --input FILE"
        )
    if output is None:
        example = document.with_stem(f"{document.stem}.translated").name
        raise KsterError(f"{document}: name the file to write, such as --output {example}")
    return output


def _translate_document(
    translator: Translator, document: Path, output: Path, options: TranslateOptions
) -> None:
    from kster.translation.files import translate_file

    def translate(texts: Sequence[CodedText]) -> Sequence[Translation]:
        return translator.translate(texts, **options)

    with if_interrupted(f"{output} was not written"), progress_bars({"translating": "texts"}) as show:
        done = translate_file(document, output, translator.model, translate, partial(show, "translating"))
    if done.repaired:
        shown = ", ".join(done.repaired[:MOST_NAMED]) + (" …" if len(done.repaired) > MOST_NAMED else "")
        note(f"kster: placeholders or tags were put back where they seemed to belong; look at {shown}")
