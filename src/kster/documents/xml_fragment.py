"""A piece of XML, as clients send it in place of a text: words are translated, markup stays as it was.

No names of elements are known here. What stands beside words is a part of their sentence; an element whose
neighbours are elements only is a paragraph of its own.
"""

from __future__ import annotations

import html
from collections.abc import Collection

from kster.documents.html import HtmlText, Tag


class XmlFragment(HtmlText):
    """The texts of some XML that are to be translated, with their line breaks."""

    def __init__(
        self,
        text: str,
        *,
        ignored: Collection[str] = (),
        inline: Collection[str] = (),
        paragraphs: Collection[str] = (),
        by_neighbours: bool = True,
    ) -> None:
        """ignored, inline, paragraphs: names of elements that are left as they are, that stand in sentences,
        and that end them. by_neighbours: whether others are judged by what is beside them; else all are
        inline.
        """
        self._named_inline = {name.lower() for name in inline}
        self._named_paragraphs = {name.lower() for name in paragraphs}
        self._by_neighbours = by_neighbours
        super().__init__(text, ignored=ignored)

    def _inline(self, tags: list[Tag], ends: dict[int, int]) -> set[int]:
        with_words = self._elements_with_words(tags, ends)
        starts = {end: start for start, end in ends.items()}
        inline: set[int] = set()
        around: list[int] = [-1]  # the elements that are open; -1 is the fragment
        for at, tag in enumerate(tags):
            if at in starts:
                if starts[at] in inline:
                    inline.add(at)
                if around[-1] == starts[at]:
                    around.pop()
            elif tag.name:
                beside_words = around[-1] in with_words or around[-1] in inline
                if tag.name in self._named_inline or (
                    tag.name not in self._named_paragraphs and (beside_words or not self._by_neighbours)
                ):
                    inline.add(at)
                if at in ends:
                    around.append(at)
        return inline

    def _elements_with_words(self, tags: list[Tag], ends: dict[int, int]) -> set[int]:
        """Those, by their start tags, that have words of their own; -1 is the fragment."""
        with_words: set[int] = set()
        around: list[int] = [-1]
        for at, tag in enumerate(tags):
            if tag.is_text and self._text[tag.start : tag.end].strip():
                with_words.add(around[-1])
            elif at in ends:
                around.append(at)
            elif ends.get(around[-1]) == at:
                around.pop()
        return with_words

    def _is_alone(self, tag: Tag) -> bool:
        return tag.is_empty

    def _is_untouched(self, tag: Tag) -> bool:
        return False

    def _shown(self, piece: str) -> str:
        return html.unescape(piece)

    def _note_attributes(self, tag: Tag) -> None:
        """Attributes are for programs, and stay."""
