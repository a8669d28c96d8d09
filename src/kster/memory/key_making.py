"""Keys of segments whose text is in the memory already: made in the background, or when a translation asks.

Several processes may make keys of the same segments; the one that comes second discards its keys.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from kster.memory.adding import keys_or_reasons
from kster.memory.key_maker import KeyMaker
from kster.memory.store.store import Store

AT_ONCE = 256  # segments a change: a few seconds of two CPU cores
REMEMBERED = 100_000  # segments whose keys translations asked for


def make_keys(store: Store, model: KeyMaker, ids: Sequence[int]) -> int:
    """Make the keys that these segments lack; returns how many segments that were."""
    with store.reading() as database:
        texts = database.texts_without_keys(ids)
    if not texts:
        return 0
    outcomes = dict(zip(texts, keys_or_reasons(model, list(texts.values())), strict=True))
    with store.writing() as change:
        still = change.database.texts_without_keys(list(texts))  # some may be made or removed by now
        for id in still:
            made = outcomes[id]
            if isinstance(made, str):
                change.refuse_keys(id, made)
            else:
                change.give_keys(id, made.keys.numpy(), made.tokens.numpy())
    return len(still)


class Demand:
    """Which keys are made next: those that translations asked for last, then those of the newest segments."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[int, None] = {}  # ids, the most urgent last

    def add(self, ids: Iterable[int]) -> None:
        """ids: the most urgent first."""
        with self._lock:
            for id in reversed(list(ids)):
                self._wanted.pop(id, None)
                self._wanted[id] = None
            while len(self._wanted) > REMEMBERED:
                del self._wanted[next(iter(self._wanted))]

    def next(self, store: Store, count: int) -> list[int]:
        """Segments that lack keys; fewer than `count` when there are no more."""
        with self._lock:
            asked = [self._wanted.popitem()[0] for _ in range(min(count, len(self._wanted)))]
        with store.reading() as database:
            found = list(database.texts_without_keys(asked))
            if len(found) < count:
                found += [id for id in database.without_keys(count) if id not in set(found)][
                    : count - len(found)
                ]
        return found
