"""How a text becomes a translation: one way for Python, the command line and all doors of the server.

A text is read as words and codes, cut into sentences, and translated with marks for the codes, but without
tags, which are put where they belong afterwards. Where a model loses marks, the sentence is translated again
without, and all codes are put in so. A translation has exactly the codes of its source.

`translation_steps` does all of it but run the model: it yields what to translate and is sent the outputs, so
that a program can run it at once (`run`), and a server can join the sentences of many clients into batches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from operator import mul

from kster.text.codes import Code, CodedText, Fixed, Token, between_tabs, merged
from kster.text.made_up import without_made_up
from kster.text.messages import Message, numbers_as_codes, with_messages
from kster.text.recognition import with_codes
from kster.text.spacing import with_hard_spaces
from kster.text.symbols import other_scripts
from kster.translation.confidence import word_confidences
from kster.translation.decoding import Decoding
from kster.translation.explanation import TokenExplanation
from kster.translation.known_texts import Taught
from kster.translation.piece import CodedPiece
from kster.translation.result import Output, Translation, best_choices
from kster.translation.splitting import Piece, glue_for, split_text

Text = str | CodedText
"""A string, whose placeholders and tags are recognised; or a document's text with codes of its own."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a model is to translate. align: whether it is to say which characters became which."""

    texts: list[str]
    align: bool = False


Steps = Generator[Round, Sequence[Output], list[Translation]]


@dataclass(frozen=True, slots=True)
class Cutting:
    """How texts are cut into pieces.

    fits: whether a text is short enough for the model. taught: how a text was taught that a memory holds as
    it is, given where it stands if a document says so; then it comes back so, and is not cut. sentences:
    whether lines are cut into their sentences. codes: whether strings are looked through for placeholders,
    tags and the like, to keep them; also words in a script that the languages, those of source and target,
    are not written in.
    """

    fits: Callable[[str], bool]
    taught: Callable[[str, str | None], Taught]
    sentences: bool
    codes: bool = True
    languages: tuple[str, str] = ("", "")


def run(steps: Steps, translate: Callable[[Round], Sequence[Output]]) -> list[Translation]:
    """Take all the steps, one after the other."""
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(translate(wanted))
    except StopIteration as end:
        done: list[Translation] = end.value
        return done


def translation_steps(
    texts: Sequence[Text],
    decoding: Decoding,
    cutting: Cutting,
    *,
    on_cut: Callable[[], None] = lambda: None,
) -> Steps:
    """Yields at most three rounds; returns the translations, in order.

    on_cut: called if something had to be cut because it is too long for the model.
    """
    plans = [_Plan(text, cutting) for text in texts]
    if any(plan.is_torn for plan in plans):
        on_cut()
    pieces = [piece for plan in plans for piece in plan.all_pieces()]
    waiting = [piece for piece in pieces if piece.request is not None]
    if whole := [piece for piece in waiting if not piece.is_bare]:
        outputs = yield Round([str(piece.request) for piece in whole])
        for piece, output in zip(whole, outputs, strict=True):
            piece.read(output, decoding.n_best)
    while bare := [piece for piece in waiting if not piece.hypotheses]:
        outputs = yield Round([piece.bare for piece in bare], align=True)
        for piece, output in zip(bare, outputs, strict=True):
            piece.place_codes(output)
    return [plan.translation(decoding) for plan in plans]


class _Plan:
    """One text: its pieces, what is between them, and plans for the branches of messages in it."""

    def __init__(self, text: Text, cutting: Cutting, message: Message | None = None) -> None:
        """message: that this is a branch of, if any; where it counts, `#` stands for a number."""
        self._message = message
        self._keeps_codes = cutting.codes
        self._text = (
            read_text(text, message is not None and message.counts, other_scripts(*cutting.languages))
            if cutting.codes or isinstance(text, CodedText)
            else CodedText(text)
        )
        self._source = str(self._text)
        self._context = text.context if isinstance(text, CodedText) else None
        self._cut(cutting)
        self._branches: dict[int, list[_Plan]] = {
            id(code): [_Plan(branch, cutting, code.data) for branch in code.data.branches]
            for _, code in self._text.codes
            if isinstance(code.data, Message)
        }

    def _cut(self, cutting: Cutting) -> None:
        """Into pieces, and the coded texts before each of them and behind the last."""

        def taught(text: str) -> Taught:
            return cutting.taught(text, self._context)

        def is_known(begin: int, end: int) -> bool:
            return bool(taught(str(self._text.cut(begin, end)[1])))

        split, _ = split_text(
            self._text.plain, cutting.fits, split_sentences=cutting.sentences, is_whole=is_known
        )
        self._split: list[Piece] = split
        places: list[int] = []
        at = 0
        for piece in split:
            places += [at + len(piece.glue), at + len(piece.glue) + len(piece.text)]
            at = places[-1]
        parts = self._text.cut(*places)
        self._glue = parts[0::2]
        self._pieces = [CodedPiece(part, taught, cutting.languages[0]) for part in parts[1::2]]

    @property
    def is_torn(self) -> bool:
        return any(piece.torn for piece in self._split) or any(plan.is_torn for plan in self._inner())

    def _inner(self) -> Iterator[_Plan]:
        for plans in self._branches.values():
            yield from plans

    def all_pieces(self) -> Iterator[CodedPiece]:
        yield from self._pieces
        for plan in self._inner():
            yield from plan.all_pieces()

    def translation(self, decoding: Decoding) -> Translation:
        pieces = list(self.all_pieces())
        translated = [piece for piece in pieces if piece.request is not None]
        (_, best), *rest = best_choices([piece.hypotheses for piece in self._pieces], decoding.n_best)
        inner = {
            code: [plan.translation(decoding).text for plan in own] for code, own in self._branches.items()
        }
        written = _with_branches(self._joined(best), inner)
        mended = self._without_made_up(written)
        content = merged(with_hard_spaces(self._text.tokens, mended))
        tokens: list[TokenExplanation] = [token for piece in translated for token in piece.tokens]
        text = "".join(map(str, content))
        return Translation(
            source=self._source,
            text=text,
            score=sum(piece.hypotheses[0][1] for piece in translated) / len(translated)
            if translated
            else 0.0,
            alternatives=tuple(
                "".join(map(str, self._without_made_up(_with_branches(self._joined(other), inner))))
                for _, other in rest
            ),
            tokens=tuple(tokens) if decoding.explain else None,
            repaired=any(piece.repaired for piece in pieces) or mended != written,
            content=tuple(content),
            confidence=_confidence(translated) if decoding.confidence else None,
            words=tuple(word_confidences(tokens, text)) if decoding.confidence else None,
        )

    def _joined(self, chosen: Sequence[CodedText]) -> list[Token]:
        joined: list[Token] = []
        text = before = ""
        for split, glue, piece, own in zip(self._split, self._glue, self._pieces, chosen, strict=False):
            written = glue_for(split, before, text, own.plain)
            joined += glue.tokens if written == split.glue or glue.codes else [written]
            joined += map(self._as_branch, piece.written(own))
            text, before = own.plain, split.text
        return [*joined, *self._glue[-1].tokens]

    def _as_branch(self, token: Token) -> Token:
        return token if self._message is None else self._message.without_syntax(token, self._text.words)

    def _without_made_up(self, written: list[Token]) -> list[Token]:
        return without_made_up(written, self._text.words) if self._keeps_codes else written


def read_text(text: Text, numbers: bool = False, foreign: re.Pattern[str] | None = None) -> CodedText:
    """A text with its codes and messages.

    numbers: whether `#` stands for a number; foreign: matches words in another script, which are kept.
    """
    tokens: list[Token] = []
    for token in text.tokens if isinstance(text, CodedText) else between_tabs(text):
        if not isinstance(token, str):
            tokens.append(token)
            continue
        for part in with_messages(without_surrogates(token)):
            tokens += numbers_as_codes(part) if numbers and isinstance(part, str) else [part]
    return with_codes(tokens, foreign)


def _confidence(pieces: Sequence[CodedPiece]) -> float:
    """The mean, by the lengths of the sources; of nothing but codes, which stay as they are, 1."""
    weights = [len(piece.request or "") for piece in pieces]
    known = [piece.confidence or 0.0 for piece in pieces]
    return sum(map(mul, weights, known)) / sum(weights) if any(weights) else 1.0


def _with_branches(tokens: Sequence[Token], translated: dict[int, list[str]]) -> list[Token]:
    """With the messages as they are written with translated branches."""
    return [
        Fixed(token.data.written(translated[id(token)]))
        if isinstance(token, Code) and isinstance(token.data, Message)
        else token
        for token in tokens
    ]


def without_surrogates(text: str) -> str:
    """Lone surrogates (half a character), which no tokenizer takes, become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
