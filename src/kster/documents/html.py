"""HTML: text is translated, markup stays as it was, byte for byte.

The page is read tag by tag rather than into a tree, since a tree would not be written as it was read.
A text goes from one tag that ends a paragraph to the next; tags that may stand in a sentence are codes in it.
Template syntax (`{{ }}`, `{% %}`, `<?php ?>`, `<% %>`) is markup, too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kster.documents.document import (
    Counter,
    Half,
    Places,
    Text,
    TextDocument,
    Unit,
    Write,
    coded,
    has_prose,
    is_prose,
    plain,
    require_size,
)
from kster.documents.encoded_text import HEAD, EncodedText
from kster.errors import KsterError
from kster.formats.encoding import detect_encoding
from kster.text.languages import match_rank

UNTOUCHED = {"script", "style", "code", "pre", "textarea", "svg", "math", "template", "kbd", "samp", "var"}
INLINE = {"a", "abbr", "b", "bdi", "bdo", "big", "br", "cite", "del", "dfn", "em", "font", "i", "img", "ins"}
INLINE |= {"label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u"}
INLINE |= {"code", "svg", "math", "kbd", "samp", "var", "wbr", "input", "button", "acronym", "data", "output"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
RAW = {"script", "style"}  # until their end tag, nothing is a tag
ATTRIBUTES = {"alt", "title", "placeholder", "aria-label", "aria-description", "summary"}
METAS = {"description", "og:title", "og:description", "og:site_name", "og:image:alt", "twitter:title"}
METAS |= {"twitter:description", "twitter:image:alt", "application-name", "apple-mobile-web-app-title"}

_MARKUP = re.compile(r"<!--|<!|<\?|<%|\{\{|\{%|\{#|</?[A-Za-z]")
_ENDS = {"<!--": "-->", "<!": ">", "<?": "?>", "<%": "%>", "{{": "}}", "{%": "%}", "{#": "#}"}
_TAG_END = re.compile(r"""(?:[^"'<>]|"[^"]*"|'[^']*'|<(?=[?%])[^>]*>)*+>""")
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
_ATTRIBUTE = re.compile(r"""\s([^\s=<>/"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+)))?""")
_SPACES = " \t\r\n\f"
_SPACE = re.compile(f"[{_SPACES}]+")  # what a browser shows as one space


@dataclass(frozen=True, slots=True)
class Tag:
    """Markup from start to end. name: of an element, else empty; is_empty: written as `<x/>`."""

    start: int
    end: int
    name: str = ""
    is_end: bool = False
    is_text: bool = False
    is_empty: bool = False


class HtmlText:
    """The texts of a page, or of a piece of one, that are to be translated.

    Left out are elements whose content is not prose, what the page marks so (`translate="no"`), and elements
    whose names are in `ignored`, which stay in their sentence as they are.
    """

    def __init__(
        self, text: str, source: str = "", target: str = "", *, ignored: Collection[str] = ()
    ) -> None:
        require_size(len(text))
        self._ignored = {name.lower() for name in ignored}
        self.places = Places(text)
        self._text = text
        self._languages = source, target
        self._line, self._counted = 1, 0  # the line of the last text, and up to where lines were counted
        self._look(list(_tags(text)))

    @property
    def units(self) -> Sequence[Unit]:
        return self.places.units

    def written(self, translations: Sequence[Text]) -> str:
        return self.places.written(translations)

    # -------------------------------------------------------------------------------------------------

    def _look(self, tags: list[Tag]) -> None:
        ends = ends_of_elements(tags)
        inline = self._inline(tags, ends)
        sentence: list[str | Half] = []
        begin = at = 0
        while at < len(tags):
            tag, last = tags[at], tags[at]
            is_inline = tag.is_text or not tag.name or tag.name in self._ignored or at in inline
            if at in ends and (tag.name in self._ignored or self._is_untouched(tag)):
                at = ends[at]
                last = tags[at]
            if tag.is_text:
                sentence.append(self._text[tag.start : tag.end])
            elif is_inline:
                sentence.append(self._half(tag, last))
            else:
                self._note_sentence(sentence, begin, tag.start)
                sentence, begin = [], last.end
            if last is tag:
                self._note_attributes(tag)
            at += 1
        self._note_sentence(sentence, begin, len(self._text))

    def _inline(self, tags: list[Tag], ends: dict[int, int]) -> set[int]:
        """Which tags, by their places in the list, may stand in a sentence."""
        return {at for at, tag in enumerate(tags) if tag.name in INLINE}

    def _half(self, tag: Tag, last: Tag) -> Half:
        """A tag as a code; a whole element where its last tag is another one."""
        span = tag.start, last.end
        if last is not tag or not tag.name or self._is_alone(tag):
            return Half(span, breaks=tag.name == "br")
        return Half(span, "close" if tag.is_end else "open", tag.name)

    def _is_alone(self, tag: Tag) -> bool:
        """Whether an element has no end tag."""
        return tag.name in EMPTY

    def _shown(self, piece: str) -> str:
        """A text as people read it."""
        return html.unescape(_SPACE.sub(" ", piece))

    def _is_untouched(self, tag: Tag) -> bool:
        if tag.name in UNTOUCHED:
            return True
        if "translate" not in self._text[tag.start : tag.end]:
            return False
        values = {name: value for name, value, _ in self._attributes(tag)}
        return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()

    def _note_sentence(self, pieces: list[str | Half], start: int, end: int) -> None:
        """Note the text between two tags that end paragraphs, without the white space around it."""
        decoded = [html.unescape(piece) if isinstance(piece, str) else piece for piece in pieces]
        if not has_prose(decoded):
            return
        pieces, start, end = _trimmed(pieces, start, end)
        texts = coded([self._shown(piece) if isinstance(piece, str) else piece for piece in pieces])

        def write(translations: Sequence[Text]) -> str:
            return "".join(self.places.markup(text, escape) for text in translations)

        hard_space = "&nbsp;" in self._text[start:end]

        def escape(text: str) -> str:
            text = html.escape(text, quote=False)
            return text.replace("\xa0", "&nbsp;") if hard_space else text

        self._line += self._text.count("\n", self._counted, start)
        self._counted = start
        self.places.add(start, end, texts, write, f"line {self._line}")

    def _note_attributes(self, tag: Tag) -> None:
        if tag.is_end or not tag.name:
            return
        found = list(self._attributes(tag))
        values = {name: value for name, value, _ in found}
        for name, value, (start, end) in found:
            if name == "lang" and tag.name == "html":
                source, target = self._languages
                if target and match_rank(source, value):
                    self.places.change(start, end, target)
            elif _is_text(tag.name, name, values) and is_prose(html.unescape(value)):
                text = _SPACE.sub(" ", html.unescape(value).strip())
                quote = self._text[start - 1]
                self.places.add(start, end, [[text]], _attribute_writer(quote), f"{tag.name} {name}")

    def _attributes(self, tag: Tag) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """Names, values as written and where they stand."""
        for found in _ATTRIBUTE.finditer(self._text, tag.start, tag.end):
            group = next((n for n in (2, 3, 4) if found[n] is not None), None)
            if group is not None:
                yield found[1].lower(), found[group], found.span(group)


def open_html(data: bytes, source: str, target: str) -> TextDocument:
    file = _decoded(data)
    page = HtmlText(file.text, source, target)
    return TextDocument(file, page.places, errors="xmlcharrefreplace")


def _decoded(data: bytes) -> EncodedText:
    """UTF-8 wherever it is; otherwise what the page declares."""
    try:
        return EncodedText(data)
    except KsterError:
        declared = re.search(rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)""", data[:4096], re.I)
        if declared is None:
            raise
        encoding = detect_encoding(data[:HEAD], declared[1].decode())
        return EncodedText(data, "cp1252" if encoding == "iso8859-1" else encoding)  # as browsers take it


def _tags(text: str) -> Iterator[Tag]:
    """Texts and pieces of markup, from the beginning to the end. What is never closed is text."""
    counter = Counter("tags")
    missing: set[str] = set()  # ends that do not come any more
    at = done = 0
    while found := _MARKUP.search(text, at):
        start, name = found.start(), ""
        ending = _ENDS.get(found[0])
        if ending is not None:
            end = text.find(ending, found.end()) if ending not in missing else -1
            if end < 0:
                missing.add(ending)
            end = end + len(ending) if end >= 0 else -1
        else:
            close = _TAG_END.match(text, found.end())
            end = close.end() if close else -1
            named = _NAME.match(text, start)
            name = named[1].lower() if named else ""
        if end < 0:
            at = found.end()
            continue
        counter.add()
        if start > done:
            yield Tag(done, start, is_text=True)
        yield Tag(
            start, end, name, is_end=found[0].startswith("</"), is_empty=text.endswith("/>", start, end)
        )
        at = done = end
        if name in RAW and not found[0].startswith("</"):
            raw_end = re.compile(rf"</{name}", re.I).search(text, at)
            at = raw_end.start() if raw_end else len(text)
    if done < len(text):
        yield Tag(done, len(text), is_text=True)


def ends_of_elements(tags: list[Tag]) -> dict[int, int]:
    """Which end tag belongs to which start tag."""
    ends: dict[int, int] = {}
    around: dict[str, list[int]] = {}
    for i, tag in enumerate(tags):
        if tag.is_end and around.get(tag.name):
            ends[around[tag.name].pop()] = i
        elif tag.name and not tag.is_end and not tag.is_empty:
            around.setdefault(tag.name, []).append(i)
    return ends


def _trimmed(pieces: list[str | Half], start: int, end: int) -> tuple[list[str | Half], int, int]:
    """Without the white space at both ends, which stays where it is."""
    inner = list(pieces)
    while isinstance(first := inner[0], str):
        bare = first.lstrip(_SPACES)
        start += len(first) - len(bare)
        inner[:1] = [bare] if bare else []
        if bare:
            break
    while isinstance(last := inner[-1], str):
        bare = last.rstrip(_SPACES)
        end -= len(last) - len(bare)
        inner[-1:] = [bare] if bare else []
        if bare:
            break
    return inner, start, end


def _is_text(element: str, name: str, values: dict[str, str]) -> bool:
    """Whether an attribute is read by people."""
    if values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split():
        return False
    if element == "meta":
        return name == "content" and (values.get("name") or values.get("property") or "").lower() in METAS
    if element == "input" and name == "value":
        return values.get("type", "").lower() in ("submit", "button", "reset")
    return name in ATTRIBUTES


def _attribute_writer(quote: str) -> Write:
    quotes = {'"': "&quot;", "'": "&#39;"}
    escaped = {quote: quotes[quote]} if quote in quotes else quotes | {" ": "&#32;"}

    def write(texts: Sequence[Text]) -> str:
        text = html.escape(plain(texts[0]), quote=False)
        return "".join(escaped.get(character, character) for character in text)

    return write
