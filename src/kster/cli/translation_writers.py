"""What `kster translate` writes: lines, JSON or a page, and notes on stderr."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from kster.cli.options import Method
from kster.cli.output import ReaderGone, as_json, note, one_line

if TYPE_CHECKING:
    from kster.cli.explain_html import Page
    from kster.memory import Match
    from kster.translation import Translation, Translator

    FindMatches = Callable[[str], list[Match]]


Explain = Literal["json", "html"]


def note_repairs(translations: list[Translation], before: int) -> None:
    """Name the lines whose placeholders had to be put back. before: lines written before these."""
    lines = [str(before + i) for i, own in enumerate(translations, 1) if own.repaired]
    if lines:
        shown = ", ".join(lines[:10]) + (" …" if len(lines) > 10 else "")
        note(f"kster: placeholders or tags were put back where they seemed to belong; look at line {shown}")


def note_matches(translations: list[Translation], before: int, find: FindMatches) -> None:
    """Name the lines' fuzzy matches, with what differs in brackets. before: lines written before these."""
    for number, own in enumerate(translations, before + 1):
        for match in find(own.source) if own.source.strip() else []:
            brackets = {"same": "{}", "removed": "[-{}-]", "added": "[+{}+]"}
            source = "".join(brackets[kind].format(part) for kind, part in match.changes(own.source))
            note(f"line {number}: {match.percentage} % {one_line(source)} → {one_line(match.segment.target)}")


def note_confidence(translations: list[Translation], before: int) -> None:
    """Say how likely the lines are right, and name doubtful words. before: lines written before these."""
    from kster.translation.confidence import DOUBTFUL

    for number, own in enumerate(translations, before + 1):
        if own.confidence is not None and own.source.strip():
            doubtful = [word.text for word in own.words or () if word.confidence < DOUBTFUL]
            look = f"; look at {', '.join(doubtful)}" if doubtful else ""
            note(f"line {number}: confidence {own.confidence:.2f}{look}")


class Lines:
    """Text, one line for each; the other hypotheses behind tabs."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def begin(self) -> None:
        pass

    def write(self, translations: list[Translation]) -> None:
        self._emit("".join(self.render(translation) + "\n" for translation in translations))

    def end(self) -> None:
        pass

    def render(self, translation: Translation) -> str:
        if not translation.alternatives:
            return translation.text.replace("\n", " ")
        hypotheses = (translation.text, *translation.alternatives)
        return "\t".join(text.replace("\n", " ").replace("\t", " ") for text in hypotheses)

    def _emit(self, text: str) -> None:
        try:
            self.out.write(text)
            self.out.flush()
        except BrokenPipeError as error:
            raise ReaderGone from error


class Json(Lines):
    """One JSON object a line. find: finds the fuzzy matches of a source; None if they are not wanted."""

    def __init__(self, out: TextIO, find: FindMatches | None) -> None:
        super().__init__(out)
        self.find = find

    def render(self, translation: Translation) -> str:
        data = translation.to_json()
        if self.find is not None:
            data["matches"] = self.find(translation.source) if translation.source.strip() else []
        return as_json(data)


class Html(Lines):
    """One page."""

    def __init__(self, out: TextIO, page: Page) -> None:
        super().__init__(out)
        self.page = page

    def begin(self) -> None:
        self._emit(self.page.begin())

    def render(self, translation: Translation) -> str:
        return self.page.sentence(translation)

    def end(self) -> None:
        self._emit(self.page.end())


def choose_writer(
    out: TextIO,
    translator: Translator,
    method: Method | None,
    explain: Explain | None,
    json: bool,
    find: FindMatches | None,
) -> Lines:
    if explain == "html":
        return Html(out, _page(translator, method))
    return Json(out, find) if json or explain else Lines(out)


def _page(translator: Translator, method: Method | None) -> Page:
    from kster.cli.explain_html import Page
    from kster.text.recognition import recognise

    def pieces(text: str) -> list[str]:
        """None for a text with codes: in the memory's tokens, marks stand for these."""
        tokens = [] if recognise(text).codes else model.tokenise_target([text])[0]
        return [model.token_text(token) for token in tokens]

    model, memory = translator.model, translator.memory
    directories = [] if memory is None else [member.directory for member in memory.memories]
    used = method or ("base" if memory is None else "kster")
    return Page(
        facts={
            "method": used,
            "model": Path(model.name).name or model.name,
            "memory": ", ".join(directory.name for directory in directories) or "none",
        },
        end_token=model.token_text(model.eos_id),
        pieces=pieces,
    )
