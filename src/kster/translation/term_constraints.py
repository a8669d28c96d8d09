"""What a translation must have: the terms of its source, each in any of its forms.

The forms of a term are a trie of tokens. A form in two parts ("zieht … fest") leads from the end of the first
part to a trie of the second, with anything between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kster.terms import Term
from kster.translation.term_agreement import Agreement

MET = -1
ROOT, FIRST_ROOT = 0, 1  # where a form begins; and where it begins as the first word of a sentence


@dataclass(slots=True)
class Trie:
    """The forms of a term. Nodes are numbers: they lead from token to token."""

    children: list[dict[int, int]] = field(default_factory=lambda: [{}, {}])
    ends: dict[int, int] = field(default_factory=dict)
    """Where a form ends: MET; where a first part does: the root of the second."""

    def add(self, parts: Sequence[Sequence[int]], *, root: int = ROOT) -> None:
        """parts: the tokens of each part of a form."""
        node = self._path(root, parts[0])
        if len(parts) == 1:
            self.ends[node] = MET
        elif self.ends.get(node) != MET:
            if node not in self.ends:
                self.children.append({})
                self.ends[node] = len(self.children) - 1
            self.ends[self._path(self.ends[node], parts[1])] = MET

    def _path(self, node: int, tokens: Iterable[int]) -> int:
        for token in tokens:
            if token not in self.children[node]:
                self.children.append({})
                self.children[node][token] = len(self.children) - 1
            node = self.children[node][token]
        return node

    def longest(self, tokens: Sequence[int], at: int, root: int) -> tuple[int, int] | None:
        """How far the longest part goes that begins at a token, and the node where it ends."""
        node, found = root, None
        for i in range(at, len(tokens)):
            child = self.children[node].get(tokens[i])
            if child is None:
                break
            node = child
            if node in self.ends:
                found = i + 1, node
        return found


@dataclass(frozen=True, slots=True)
class Requirement:
    """A term that a translation must have, and how often.

    agreement: what may stand before it; None where nobody knows.
    """

    term: Term
    trie: Trie
    count: int = 1
    agreement: Agreement | None = None


Numbers = NDArray[np.float64]
Place = tuple[int, int]  # the number of a requirement, and a node of its trie


@dataclass(slots=True, eq=False)
class Progress:
    """How far a hypothesis has come.

    Of equal ones a `Course` has one object, so that they are found and compared without looking inside.
    """

    left: tuple[tuple[int, int], ...]
    """Of each requirement, how often it is still to be met, and the node from which it goes on.

    That is ROOT, or where the second part of a form begins.
    """
    within: tuple[Place, ...] = ()
    """Where in a form it is, if in one."""
    ended: Place | None = None
    """The end of a form that was reached by the last token: there the word must end, too."""
    grown: bool = False
    """Whether it is in a longer form that begins with one it has met: ending there, it would have neither."""
    begun: bool = False
    """Whether the last token was the first one of a form."""
    first: bool = False
    """Whether nothing was said yet."""
    unmet: int = field(init=False)
    """How many terms are still to be met: the sum of what is left."""
    ahead: Ahead | None = field(default=None, init=False)
    """What may follow, once it has been asked for."""

    def __post_init__(self) -> None:
        self.unmet = sum(count for count, _ in self.left)


class Outlook(NamedTuple):
    """What hypotheses come to by tokens, as numbers: one column each; of up to k requirements."""

    unmet: Numbers  # how many terms are missing then
    within: Numbers  # whether it is in a form
    goes_on: Numbers  # whether that went on, rather than having been begun
    left: Numbers  # (k, …) how often each requirement is still to be met
    inside: Numbers  # (k, …) whether it is in a form of one that is
    begun: Numbers  # (k, …) whether it has begun one

    @classmethod
    def of(cls, columns: Numbers) -> Outlook:
        """columns: (3 + 3k, …)"""
        return cls(*columns[:3], *columns[3:].reshape(3, -1, *columns.shape[1:]))


def _column(after: Progress, k: int) -> list[float]:
    places = {i for i, _ in after.within}
    begun = (places or ({after.ended[0]} if after.ended else ())) if after.begun else ()
    left = [count for count, _ in after.left] + [0] * (k - len(after.left))
    goes_on = bool(after.within or after.ended) and not after.begun
    inside = [i in places and left[i] > 0 for i in range(k)]
    return [after.unmet, bool(places), goes_on, *left, *inside, *(i in begun for i in range(k))]


@dataclass(slots=True, eq=False)
class Beginnings:
    """The tokens that begin a form of a missing term; all that miss the same terms have them in common."""

    forms: dict[int, Progress]  # the progress after each
    outside: Progress  # after any other token
    tokens: NDArray[np.int64] = field(init=False)
    _columns: dict[int, Numbers] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens = np.fromiter(self.forms, np.int64, len(self.forms))

    def columns(self, k: int) -> Numbers:
        """Those of `Outlook`, of what is outside and of the tokens."""
        known = self._columns.get(k)
        if known is None:
            kinds, places, columns = dict[object, int](), [0], [_column(self.outside, k)]
            for after in self.forms.values():  # many come to the same
                own = after.left, after.ended and after.ended[0], *(i for i, _ in after.within)
                places.append(kinds.setdefault(own, len(columns)))
                if places[-1] == len(columns):
                    columns.append(_column(after, k))
            known = self._columns[k] = np.array(columns, np.float64)[places].T
        return known


@dataclass(slots=True, eq=False)
class Ahead:
    """What may follow a hypothesis."""

    beginnings: Beginnings
    going_on: dict[int, Progress]  # the tokens that go on with a form that it is in or has just ended
    tokens: NDArray[np.int64] = field(init=False)  # of both
    _columns: dict[int, Numbers] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        own = np.fromiter(self.going_on, np.int64, len(self.going_on))
        self.tokens = np.concatenate((self.beginnings.tokens, own)) if len(own) else self.beginnings.tokens

    def columns(self, k: int) -> Numbers:
        """Those of `Outlook`, of what is outside and of the tokens."""
        known = self._columns.get(k)
        if known is None:
            known = self.beginnings.columns(k)
            if self.going_on:
                own = np.array([_column(after, k) for after in self.going_on.values()], np.float64)
                known = np.concatenate((known, own.T), axis=1)
                for i, token in enumerate(self.beginnings.forms, 1):
                    if token in self.going_on:  # and counts there: nobody can pay for it here
                        known[3 : 3 + k, i] = inf
            self._columns[k] = known
        return known

    def after(self, token: int) -> Progress:
        going_on = self.going_on.get(token)
        return going_on or self.beginnings.forms.get(token, self.beginnings.outside)

    def column_of(self, token: int) -> int:
        """Where a token that goes on with a form is among all tokens."""
        return len(self.beginnings.tokens) + list(self.going_on).index(token)


class Course:
    """How hypotheses may come by terms that are required together.

    What may follow a progress is worked out when it is first asked for; sentences and threads may share that.
    """

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self._tries = [one.trie for one in requirements]
        self._known: dict[tuple[object, ...], Progress] = {}
        self._beginnings = dict[object, Beginnings]()  # by what is left, and whether that is all
        self.start = self._one(tuple((one.count, ROOT) for one in requirements), first=True)

    def ahead(self, progress: Progress) -> Ahead:
        if progress.ahead is None:
            same = progress.left, progress.first
            beginnings = self._beginnings.get(same)
            if beginnings is None:
                begun, outside = self._begun(progress), self._one(progress.left)
                beginnings = self._beginnings[same] = Beginnings(begun, outside)
            progress.ahead = Ahead(beginnings, self._gone_on(progress))
        return progress.ahead

    def _one(
        self,
        left: tuple[tuple[int, int], ...],
        within: tuple[Place, ...] = (),
        ended: Place | None = None,
        grown: bool = False,
        begun: bool = False,
        first: bool = False,
    ) -> Progress:
        key = (left, within, ended, grown, begun, first)
        known = self._known.get(key)
        return known or self._known.setdefault(key, Progress(*key))

    def _roots(self, progress: Progress) -> list[Place]:
        """Where forms of the missing terms begin."""
        first = FIRST_ROOT if progress.first else ROOT
        return [
            (i, root)
            for i, (count, node) in enumerate(progress.left)
            if count
            for root in {ROOT, node, first}
        ]

    def _begun(self, progress: Progress) -> dict[int, Progress]:
        """The progress after each token that begins a form."""
        reached: dict[int, list[Place]] = {}
        for i, node in self._roots(progress):
            for token, child in self._tries[i].children[node].items():
                reached.setdefault(token, []).append((i, child))
        outside = self._one(progress.left)
        return {token: self._after(outside, nodes, begun=True) for token, nodes in reached.items()}

    def _gone_on(self, progress: Progress) -> dict[int, Progress]:
        """The progress after each token that goes on with a form."""
        inside = {token for i, node in progress.within for token in self._tries[i].children[node]}
        places = list(progress.within)
        if progress.ended is not None:
            places.append(progress.ended)  # a longer form may go on where a shorter one has ended
        after = {}
        for token in dict.fromkeys(token for i, node in places for token in self._tries[i].children[node]):
            each = (
                (i, self._tries[i].children[node].get(token)) for i, node in places + self._roots(progress)
            )
            nodes = [(i, child) for i, child in each if child is not None]
            after[token] = self._after(progress, nodes, begun=token not in inside)
        return after

    def _after(self, progress: Progress, nodes: list[Place], *, begun: bool) -> Progress:
        left = list(progress.left)
        within: list[Place] = []
        ended, grown = None, False
        met = list(progress.within) if progress.grown else []
        if progress.ended is not None:
            met = [*progress.within, progress.ended]
        for i, node in dict.fromkeys(nodes):
            trie = self._tries[i]
            grows = any(own == i and node in trie.children[at].values() for own, at in met)
            end = trie.ends.get(node)
            if end is None:
                within.append((i, node))
                grown |= grows
                continue
            ended = (i, node)
            count = left[i][0]
            if count and not grows:
                left[i] = (count - 1, ROOT) if end == MET else (count, end)
        return self._one(tuple(left), tuple(within), ended, grown, begun)


def written_terms(requirements: Sequence[Requirement], tokens: Sequence[int]) -> list[Term | None]:
    """Of every token of a translation, the term it was written for."""
    owners: list[Term | None] = [None] * len(tokens)
    for requirement in requirements:
        trie = requirement.trie
        for at in range(len(tokens)):
            found = trie.longest(tokens, at, ROOT) or (
                trie.longest(tokens, at, FIRST_ROOT) if at == 0 else None
            )
            if found is None or owners[at] is not None:
                continue
            end, node = found
            spans = [(at, end)]
            if trie.ends[node] != MET:
                second = _second_part(trie, tokens, end, trie.ends[node])
                spans = [*spans, second] if second else []
            for begin, end in spans:
                owners[begin:end] = [requirement.term] * (end - begin)
    return owners


def _second_part(trie: Trie, tokens: Sequence[int], start: int, root: int) -> tuple[int, int] | None:
    for at in range(start, len(tokens)):
        found = trie.longest(tokens, at, root)
        if found is not None:
            return at, found[0]
    return None
