"""Texts that a memory holds word for word: they come back as they were taught, and are not cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kster.memory import Memory, Segment
from kster.text.marks import marked_pair


@dataclass(frozen=True, slots=True)
class Taught:
    """How memories translate a text that they hold; false if none does.

    marked: whether the keys of the newest example were made with marks for codes; then the text is translated
    with marks, too. They were not in older versions, nor are they where source and target differ in codes.
    here: the newest translation from where the text stands, if it has others elsewhere.
    """

    targets: tuple[str, ...] = ()
    marked: bool = False
    here: str | None = None

    def __bool__(self) -> bool:
        return bool(self.targets)


NOT_TAUGHT = Taught()


class KnownTexts:
    """How some memories translate a text that they hold as a source; for as long as one call takes.

    expected: texts that will be asked for, which are looked up at once. context: where they stand.
    """

    def __init__(
        self, memories: Sequence[Memory], expected: Sequence[str] = (), context: str | None = None
    ) -> None:
        self._memories, self._context = memories, context
        self._known: dict[str, list[tuple[Memory, Segment]]] = {}
        self._look_up(expected)

    def __call__(self, text: str, context: str | None = None) -> Taught:
        """context: where this one stands, if it is known."""
        if text not in self._known:
            self._look_up([text])
        found = self._known[text]
        if not found:
            return NOT_TAUGHT
        context = self._context if context is None else context
        targets = tuple(dict.fromkeys(segment.target for _, segment in found))
        here = [segment.target for _, segment in found if segment.context == context]
        return Taught(
            targets,
            _is_marked(*found[-1]),
            here[-1] if here and context is not None and len(targets) > 1 else None,
        )

    def _look_up(self, texts: Sequence[str]) -> None:
        if not texts:
            return
        of_each = [memory.find_sources(texts) for memory in self._memories]
        for text in texts:
            self._known[text] = [
                (memory, segment)
                for memory, own in zip(self._memories, of_each, strict=True)
                for segment in own[text]
            ]


def _is_marked(memory: Memory, segment: Segment) -> bool:
    pair = marked_pair(segment.source, segment.target)
    if pair == (segment.source, segment.target):
        return False
    (tokens,) = memory.model.tokenise_target([pair[1]])
    made = memory.tokens_of(segment.id)
    return not made or made == list(tokens)  # keys that are still to be made will have marks
