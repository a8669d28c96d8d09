"""Translating HTML: text is translated, markup stays as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kster.errors import KsterError
from kster.text.inline import (
    InlineText,
    Token,
    again,
    first_round,
    is_prose,
    put_all,
    storable,
    tokens_of,
    write_back,
)
from kster.text.languages import match_rank

if TYPE_CHECKING:
    from lxml.html import HtmlElement

UNTOUCHED = {"script", "style", "code", "pre", "textarea", "svg", "math", "template", "kbd", "samp", "var"}
INLINE = {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "img", "ins"}
INLINE |= {"label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u"}
INLINE |= {"code", "svg", "math", "kbd", "samp", "var"}
ATTRIBUTES = ("alt", "title", "placeholder", "aria-label")
_DOCUMENT = re.compile(
    r"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
    r"(?:(?P<doctype><!doctype[^>]*>)|<(?:html|head|body)[\s>])",
    re.I | re.S,
)
_SPACE = re.compile(r"[ \t\r\n\f]+")  # what a browser shows as one space


class HtmlText:
    """The translatable pieces of an HTML text, in the order they are read.

    A piece is a text up to the next tag that ends a paragraph; what may stand in a sentence (`inline_text`)
    stays in it. `translate` attributes and elements whose content is no prose are respected.
    """

    def __init__(self, html: str) -> None:
        import lxml.etree
        import lxml.html

        document = _DOCUMENT.match(html)
        self._whole = document is not None
        self._doctype = storable(document["doctype"] or "") or None if document is not None else None
        try:
            if self._whole:
                self._root = lxml.html.document_fromstring(html.encode("utf-8"), parser=_parser())
            else:
                self._root = lxml.html.fragment_fromstring(html, create_parent="div", parser=_parser())
        except (lxml.etree.LxmlError, ValueError) as error:
            raise KsterError(f"the HTML cannot be read: {error}") from None
        self._look(self._root)

    @property
    def pieces(self) -> list[str]:
        attributes = [_SPACE.sub(" ", element.get(name).strip()) for element, name in self._attributes]
        return [*attributes, *(piece for text in self._texts for piece in first_round(text))]

    def again(self, translations: list[str]) -> list[str]:
        """What else has to be translated, now that `pieces` are."""
        return again(self._texts, translations[len(self._attributes) :])

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
        self._look(self._root)

    def with_translations(self, translations: list[str], more: Sequence[str] = ()) -> str:
        """The HTML with its pieces replaced; more: the translations of `again`."""
        import lxml.html

        for (element, name), translation in zip(self._attributes, translations, strict=False):
            element.set(name, storable(translation))
        put_all(self._texts, translations[len(self._attributes) :], more)
        if self._whole:
            return lxml.html.tostring(
                self._root, encoding="unicode", doctype=self._doctype, include_meta_content_type=True
            )
        inner = [_escaped(self._root.text or "")]
        inner += [lxml.html.tostring(child, encoding="unicode") for child in self._root]
        return "".join(inner)

    def _look(self, root: HtmlElement) -> None:
        """Note every text worth translating."""
        self._attributes: list[tuple[Any, str]] = []
        self._texts: list[InlineText] = []
        stack: list[Any] = [root]  # instead of recursion: pages nest deeper than Python does
        while stack:
            node = stack.pop()
            if not isinstance(node.tag, str) or node.tag in UNTOUCHED or _is_marked_untouched(node):
                continue
            for inner in (node, *(each for child in node if _is_inline(child) for each in child.iter("*"))):
                if not _is_kept(inner, node):
                    self._attributes += [(inner, name) for name in ATTRIBUTES if is_prose(inner.get(name))]
            before, run = None, []
            for child in node:
                if _is_inline(child):
                    run.append(child)
                else:
                    self._note(node, before, run)
                    before, run = child, []
            self._note(node, before, run)
            stack += [child for child in reversed(node) if not _is_inline(child)]

    def _note(self, parent: Any, before: Any, run: list[Any]) -> None:
        tokens: list[Token] = [(parent.text if before is None else before.tail) or ""]
        for element in run:
            tokens += [*tokens_of(element, _is_whole), element.tail or ""]
        tokens = [storable(token) if isinstance(token, str) else token for token in tokens]
        if any(isinstance(token, str) and is_prose(token) for token in tokens):
            self._texts.append(InlineText(tokens, partial(write_back, parent, before, run)))


def _is_kept(node: Any, within: Any) -> bool:
    """Whether an element, or one around it, is not to be touched."""
    around = (node, *node.iterancestors())
    inner = around[: around.index(within)] if node is not within else ()
    return any(each.tag in UNTOUCHED or _is_marked_untouched(each) for each in inner)


def _parser() -> Any:
    import lxml.html

    return lxml.html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)


def _is_marked_untouched(node: HtmlElement) -> bool:
    return node.get("translate", "yes").lower() == "no" or "notranslate" in node.get("class", "").split()


def _is_whole(node: Any) -> bool:
    return node.tag in UNTOUCHED or node.tag == "img" or _is_marked_untouched(node)


def _is_inline(node: Any) -> bool:
    """Whether a sentence goes on through this element."""
    if not isinstance(node.tag, str) or node.tag not in INLINE:
        return False
    return _is_whole(node) or all(
        isinstance(inner.tag, str) and inner.tag in INLINE for inner in node.iterdescendants()
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
