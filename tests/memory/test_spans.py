"""The table of segments: longer ones share storage with those that came before, which never change."""

from __future__ import annotations

import numpy as np

from kster.memory.store.spans import COLUMNS, Spans


def lines(*ids: int) -> Spans:
    return Spans.of([tuple(100 * column + id for column in range(len(COLUMNS))) for id in ids])


def ids_of(spans: Spans) -> list[int]:
    for number, column in enumerate(spans.columns):
        assert (column == spans.segment_ids + 100 * number).all()
    return spans.segment_ids.tolist()


def test_two_that_follow_the_same_table_do_not_see_each_other() -> None:
    first = lines(*range(16)).followed_by(lines(16))
    one, other = first.followed_by(lines(17)), first.followed_by(lines(18))
    assert np.shares_memory(one.segment_ids, first.segment_ids)
    assert ids_of(first) == [*range(17)]
    assert ids_of(one) == [*range(17), 17]
    assert ids_of(other) == [*range(17), 18]
    longer = one.followed_by(lines(*range(20, 60)))  # more than there is room for
    assert ids_of(longer) == [*range(18), *range(20, 60)]
    assert ids_of(one) == [*range(18)]


def test_what_is_changed_is_changed_in_a_copy() -> None:
    table = lines(1, 2, 3).followed_by(lines(4))
    made = lines(2)
    made.first_rows[:] = 7
    changed = table.with_keys(made).followed_by(lines(5))
    assert table.first_rows.tolist() == [201, 202, 203, 204]
    assert changed.first_rows.tolist() == [201, 7, 203, 204, 205]
    assert table.updated(lines(2, 9)).segment_ids.tolist() == [1, 2, 3, 4, 9]
