"""One piece of a text on its way through the model: a sentence with its codes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence

from kster.text.codes import Code, CodedText, Fixed, Token, is_nested
from kster.text.edges import with_edges_of
from kster.text.made_up import without_made_up
from kster.text.marks import MOST_MARKS, MarkedText
from kster.text.projection import BareText
from kster.text.recognition import are_kept, recognise
from kster.text.spacing import CLOSING
from kster.text.tagless import TaglessText
from kster.translation.explanation import TokenExplanation
from kster.translation.known_texts import Taught
from kster.translation.marked_tokens import without_marks
from kster.translation.result import Output


class CodedPiece:
    """request: what to translate first; None if there is nothing but codes, or another translation was
    taught where the text stands than elsewhere: that is the one then.

    A piece is translated with marks for its codes, but without its tags, since words between marks are
    translated worse; or as it is, if a memory knows it by keys without marks. Where marks are lost, it is
    translated without any codes. is_bare: codes are to be put in by which words translate which.
    hypotheses: translations with all the codes of the source and their scores, once there are any.
    """

    def __init__(self, source: CodedText, taught: Callable[[str], Taught], language: str = "") -> None:
        """taught: how a string was taught that a memory holds as it is. language: of the source."""
        self._source, self._language = source, language
        self._find_taught = taught
        self._taught = Taught()
        self._marked: MarkedText | None = None
        self._tagless: TaglessText | None = None  # until it has failed
        self.hypotheses: list[tuple[CodedText, float]] = []
        self.tokens: Sequence[TokenExplanation] = ()
        self.confidence: float | None = None
        self.repaired = self.is_bare = False
        self.request: str | None = str(source)
        self._taught = taught(str(source))
        if self._taught.here is not None and self._all_written():
            self.request = None
            self.hypotheses = [(recognise(self._taught.here), 0.0)]
            return
        if not source.codes:
            return
        if not any(map(str.isalnum, source.words)):
            self.request = None
            self.hypotheses = [(self._only_taught() or source, 0.0)]
            return
        if not self._taught or self._taught.marked:
            self._marked = MarkedText(source)
            if self._marked.has_tags and not self._taught:
                tagless = TaglessText(source)
                self._tagless = tagless if len(tagless.shown) <= MOST_MARKS else None
            self.is_bare = self._tagless is not None or self._marked.marks > MOST_MARKS
            self.request = self.bare if self.is_bare else self._marked.text

    @property
    def bare(self) -> str:
        """Without tags, and without any codes where these were lost."""
        return self._tagless.text if self._tagless is not None else BareText(self._source).text

    def _only_taught(self) -> CodedText | None:
        """Codes alone, such as a message, as they were taught; None if they were not, or in several ways."""
        if len(self._taught.targets) == 1 and self._all_written():
            return recognise(self._taught.targets[0])
        return None

    def _all_written(self) -> bool:
        return all(code.is_written for _, code in self._source.codes)

    def read(self, output: Output, n_best: int) -> None:
        """Take the translations of `request` that have kept all codes, if the first of them has."""
        for text, score in output.hypotheses[:n_best]:
            read = self._with_codes(text)
            if read is not None:
                self.hypotheses.append((self._with_edges(read), score))
            elif not self.hypotheses:
                return
        marked = self._marked
        self.tokens, self.confidence = output.tokens or (), output.confidence
        if marked is not None:
            self.tokens = without_marks(self.tokens, marked.shown)

    def place_codes(self, output: Output) -> None:
        """Put the codes into the translations of `bare`, if marks were kept where there were some.

        Where all codes were lost, the translations should be checked, unless there are only tags.
        """
        assert output.links is not None
        if self._tagless is not None:
            self._place_tags(self._tagless, output)
            self._tagless = None
            return
        for (text, score), links in zip(output.hypotheses, output.links, strict=True):
            if not re.search("[{}]", self.bare):  # pieces of marks
                text = re.sub("[{}]", " ", text)
            placed = BareText(self._source).project(text, links)
            if not are_kept(str(self._source), str(placed)):  # side by side, two may read as another one
                placed = CodedText.of(without_made_up(_told_apart(placed).tokens, self._source.words))
            self.hypotheses.append((self._with_edges(placed), score))
        self.tokens, self.confidence = output.tokens or (), output.confidence
        self.repaired = any(code.kind == "alone" for _, code in self._source.codes)

    def _place_tags(self, tagless: TaglessText, output: Output) -> None:
        for (text, score), links in zip(output.hypotheses, output.links or (), strict=True):
            placed = tagless.project(text, links)
            if placed is not None and are_kept(str(self._source), str(placed)):
                self.hypotheses.append((self._with_edges(placed), score))
            elif not self.hypotheses:
                return
        self.tokens = without_marks(output.tokens or (), tagless.shown)
        self.confidence = output.confidence

    def written(self, translation: CodedText) -> list[Token]:
        """What a hypothesis becomes in a text: as it is, if it was taught so."""
        if str(translation) in self._find_taught(str(self._source)).targets:
            return [Fixed(token) if isinstance(token, str) else token for token in translation.tokens]
        return translation.tokens

    def _with_edges(self, translation: CodedText) -> CodedText:
        if str(translation) in self._find_taught(str(self._source)).targets:
            return translation
        return with_edges_of(self._source, translation, self._language)

    def _with_codes(self, translation: str) -> CodedText | None:
        if not self._source.codes:
            return CodedText(_as_taught(translation, self._find_taught(str(self._source)).targets))
        if self._marked is not None:
            read = self._marked.read(translation)
            # A code may look like another one beside other characters.
            return read if read is not None and are_kept(str(self._source), str(read)) else None
        translation = _as_taught(translation, self._taught.targets)
        found = recognise(translation)
        if translation in self._taught.targets and self._all_written():
            return found  # other codes may have been taught on purpose
        return _same(self._source, found)


def _told_apart(text: CodedText) -> CodedText:
    """With a space between standalone codes and whatever touches them."""
    tokens: list[Token] = []
    for token in text.tokens:
        before = tokens[-1] if tokens else " "
        is_alone = any(isinstance(one, Code) and one.kind == "alone" for one in (before, token))
        touches = not (isinstance(before, str) and before[-1:].isspace())
        if is_alone and touches and not (isinstance(token, str) and token[:1] in CLOSING):
            tokens.append(" ")
        tokens.append(token)
    return CodedText.of(tokens)


def _as_taught(translation: str, taught: Collection[str]) -> str:
    """A translation as it was taught, if nothing is missing but what tokenizers do not write: line breaks,
    double spaces, characters without width."""
    if translation in taught:
        return translation
    written = _as_tokenised(translation)
    return next((text for text in taught if _as_tokenised(text) == written), translation)


def _as_tokenised(text: str) -> str:
    visible = (c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return " ".join("".join(visible).split())


def _same(source: CodedText, translation: CodedText) -> CodedText | None:
    """A translation in which the codes of the source were recognised again, with those of the source."""
    waiting: dict[str, list[Code]] = {}
    for _, code in source.codes:
        waiting.setdefault(str(code), []).append(code)
    tokens: list[Token] = []
    for token in translation.tokens:
        if isinstance(token, Code):
            if not waiting.get(str(token)):
                return None
            token = waiting[str(token)].pop(0)
        tokens.append(token)
    return CodedText.of(tokens) if not any(waiting.values()) and is_nested(tokens) else None
