"""How beams are allotted among the ways in which a sentence with terms may go on."""

from math import inf

import numpy as np

from kster.translation.beams import IMPOSSIBLE
from kster.translation.term_ways import UNMET, Ways

EOS = 0


def _ways() -> Ways:
    """Of one sentence with two beams, each of which may go on with three tokens."""
    return Ways(
        tokens=np.array([[[1, 2, 3], [4, 5, EOS]]]),
        totals=np.array([[[-1.0, -2.0, -6.0], [-3.0, -4.0, -5.0]]]),
        promises=np.array([[[-2.5, -3.5, -6.0], [-4.5, -5.5, -inf]]]),
        before=np.array([[[-inf, -3.0, -inf], [-inf, -inf, -inf]]]),
        unmet=np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]]),
        ends=np.array([[-inf, -5.0]]),
    )


def _chosen(*, at_limit: bool) -> list[tuple[float, int, int]]:
    columns = _ways().allot(np.array([at_limit]), EOS)
    return list(zip(*(column[0].tolist() for column in columns), strict=True))


def test_one_beam_goes_to_what_misses_the_fewest_terms_and_one_to_a_form() -> None:
    end, *opened, filler = _chosen(at_limit=False)
    assert end == (-5.0, 1, EOS)
    assert sorted(opened) == [(-6.0, 0, 3), (-2.0, 0, 2)]  # though the first token promises most
    assert filler[0] < IMPOSSIBLE


def test_at_the_end_of_the_room_what_misses_a_term_comes_last() -> None:
    first, second, *fillers = _chosen(at_limit=True)
    assert (first, second) == ((-5.0, 1, EOS), (-6.0, 0, 3))
    assert all(score < -UNMET for score, *_ in fillers)
