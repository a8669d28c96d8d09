"""Translating HTML: text is translated, markup stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kster.errors import KsterError
from kster.formats.languages import match_rank

if TYPE_CHECKING:
    from lxml.html import HtmlElement

UNTOUCHED = {"script", "style", "code", "pre", "textarea", "svg", "math", "template", "kbd", "samp", "var"}
ATTRIBUTES = ("alt", "title", "placeholder", "aria-label")
_DOCUMENT = re.compile(
    r"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
    r"(?:(?P<doctype><!doctype[^>]*>)|<(?:html|head|body)[\s>])",
    re.I | re.S,
)
_SPACE = re.compile(r"[ \t\r\n\f]+")  # what a browser shows as one space


class HtmlText:
    """The translatable pieces of an HTML text, in the order they are read.

    A piece is the text between two tags, without the white space around it. `translate` attributes and
    elements whose content is no prose are respected.
    """

    def __init__(self, html: str) -> None:
        import lxml.etree
        import lxml.html

        document = _DOCUMENT.match(html)
        self._whole = document is not None
        self._doctype = document["doctype"] if document is not None else None
        try:
            if self._whole:
                self._root = lxml.html.document_fromstring(html.encode("utf-8"), parser=_parser())
            else:
                self._root = lxml.html.fragment_fromstring(html, create_parent="div", parser=_parser())
        except (lxml.etree.LxmlError, ValueError) as error:
            raise KsterError(f"the HTML cannot be read: {error}") from None
        self._places = list(_places(self._root))

    @property
    def pieces(self) -> list[str]:
        return [_SPACE.sub(" ", text.strip()) for text, _ in self._places]

    def declare(self, source: str, target: str) -> None:
        """Make a document say that it is UTF-8, and in the target language if it says it is in the source."""
        import lxml.etree

        if not self._whole:
            return
        if (own := self._root.get("lang")) and match_rank(source, own):
            self._root.set("lang", target)
        metas: list[Any] = list(self._root.iter("meta"))
        for meta in metas:
            if meta.get("charset") or (meta.get("http-equiv") or "").lower() == "content-type":
                meta.drop_tree()
        head = self._root.find("head")
        if head is None:
            head = lxml.etree.Element("head")
            self._root.insert(0, head)
        head.insert(0, lxml.etree.Element("meta", charset="utf-8"))

    def with_translations(self, translations: list[str]) -> str:
        """The HTML with its pieces replaced, in order."""
        import lxml.html

        for (text, put), translation in zip(self._places, translations, strict=True):
            before, after = _margins(text)
            put(before + translation + after)
        if self._whole:
            return lxml.html.tostring(
                self._root, encoding="unicode", doctype=self._doctype, include_meta_content_type=True
            )
        inner = [_escaped(self._root.text or "")]
        inner += [lxml.html.tostring(child, encoding="unicode") for child in self._root]
        return "".join(inner)


def _parser() -> Any:
    import lxml.html

    return lxml.html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)


def _places(element: HtmlElement, translated: bool = True) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Every text worth translating, and how to replace it."""
    stack: list[tuple[HtmlElement, bool]] = [(element, translated)]
    while stack:
        node, wanted = stack.pop()
        # A stack instead of recursion: pages nest deeper than Python does.
        if isinstance(node, _Tail):
            if _is_text(node.owner.tail):
                yield node.owner.tail, _setter(node.owner, "tail")
            continue
        own = wanted and isinstance(node.tag, str) and node.tag not in UNTOUCHED
        own = own and not _is_marked_untouched(node)
        if own:
            for name in ATTRIBUTES:
                if _is_text(node.get(name)):
                    yield node.get(name), _attribute_setter(node, name)
            if _is_text(node.text):
                yield node.text, _setter(node, "text")
        for child in reversed(node):
            if own:
                stack.append((_Tail(child), own))
            stack.append((child, own))


class _Tail:
    """The text behind an element, which belongs to its parent."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner


def _is_marked_untouched(node: HtmlElement) -> bool:
    return node.get("translate", "yes").lower() == "no" or "notranslate" in node.get("class", "").split()


def _is_text(text: str | None) -> bool:
    return text is not None and any(char.isalpha() for char in text)


def _margins(text: str) -> tuple[str, str]:
    bare = text.strip()
    start = text.index(bare)
    return text[:start], text[start + len(bare) :]


def _setter(node: Any, name: str) -> Callable[[str], None]:
    return lambda text: setattr(node, name, text)


def _attribute_setter(node: Any, name: str) -> Callable[[str], None]:
    return lambda text: node.set(name, text)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
