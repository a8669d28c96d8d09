"""A fit looks at how much memory it needs before it begins."""

from __future__ import annotations

import pytest

from kster.errors import KsterError
from kster.smoothing.fitting.room import LOOKED_UP_BYTES, available_bytes, require_room, tokens_at_once


def test_many_neighbours_are_looked_up_for_fewer_tokens_at_once() -> None:
    assert tokens_at_once(4096, 48, 512) == 4096  # a fit with the usual k is as before
    assert 4 * 616 * 512 * tokens_at_once(4096, 616, 512) <= LOOKED_UP_BYTES  # k = 300
    assert tokens_at_once(4096, 10**9, 512) == 1


def test_a_fit_that_finds_no_room_is_refused_and_says_what_helps() -> None:
    require_room(0, 48, 512)
    too_many = available_bytes() // (2 * 48 * 17) + 1
    with pytest.raises(
        KsterError, match=r"needs about .* GB .* smaller k or max_tokens; nothing was changed"
    ):
        require_room(too_many, 48, 512)
