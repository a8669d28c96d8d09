"""The ways in which sentences with terms may go on at a step of a search, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from kster.translation.beams import IMPOSSIBLE

UNMET = 1.0e4  # taken from the score of what ends without a term, because it has become too long
BY_SCORE = 1.0e-9  # of ways that promise the same, the likeliest is taken
BY_PROMISE = 1.0e-7  # and of forms that began as well, the one that promises most

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ways:
    """Of n sentences with b beams, of which each may go on with c tokens."""

    tokens: NDArray[np.int64]  # (n, b, c)
    totals: Floats  # (n, b, c) the scores of hypotheses with these tokens
    promises: Floats  # (n, b, c) less what the terms that they miss will cost; −∞ where there is no way
    before: Floats  # (n, b, c) what was promised before the form that it is in went on; −∞ outside of forms
    unmet: Floats  # (n, b, c) how many terms it misses
    ends: Floats  # (n, b) the score of what ends with all its terms; −∞ where that is not possible

    def allot(
        self, at_limit: NDArray[np.bool_], eos: int
    ) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """The columns of `Chosen`, (n, 2b): hypotheses that end, those that go on, and what fills it up.

        at_limit: (n,) where there is no more room: what misses something comes last then.
        """
        n, beam, count = self.tokens.shape
        rows = np.arange(n)[:, None]
        best = self._opened(rows)  # (n, b)
        opened, unmet = (one.reshape(n, -1)[rows, best] for one in (self.totals, self.unmet))
        opened[self.promises.reshape(n, -1)[rows, best] == -inf] = -inf
        opened -= np.where(at_limit[:, None], UNMET * unmet, 0.0)
        by_end = np.argsort(-self.ends)  # (n, b)
        scores = np.concatenate((self.ends[rows, by_end], opened), axis=1)  # (n, 2b)
        parents = np.concatenate((by_end, best // count), axis=1)
        tokens = np.concatenate((np.full_like(by_end, eos), self.tokens.reshape(n, -1)[rows, best]), axis=1)
        order = np.argsort(np.where(at_limit[:, None], -scores, scores == -inf), kind="stable")
        scores, parents, tokens = scores[rows, order], parents[rows, order], tokens[rows, order]
        unused = scores == -inf
        unused[at_limit, beam:] = True
        scores[unused], parents[unused], tokens[unused] = 4 * IMPOSSIBLE, 0, eos
        return scores, parents, tokens

    def _opened(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, b) places among the b · c ways: the best of those that miss the fewest terms, the best of those
        in the middle of a form, and the most promising of the others."""
        n, beam, _ = self.tokens.shape
        promises = (self.promises + BY_SCORE * self.totals).reshape(n, -1)
        before = (self.before + BY_PROMISE * self.promises + BY_SCORE * self.totals).reshape(n, -1)
        unmet = np.where(promises > -inf, self.unmet.reshape(n, -1), inf)
        few = (unmet == unmet.min(1, keepdims=True)) & (before == -inf)
        wanted = promises.copy()
        for best in (np.where(few, promises, -inf), before):
            place = best.argmax(1)[:, None]
            wanted[rows, place] = np.where(best[rows, place] > -inf, inf, wanted[rows, place])
        return np.argpartition(-wanted, beam - 1, axis=1)[:, :beam]
