"""Keys of segments whose text is in the memory already: made in the background, or when a translation asks.

Several processes may make keys of the same segments; the one that comes second discards its keys.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from kster.memory.adding import keys_or_reasons
from kster.memory.key_maker import ForcedKeys, KeyMaker
from kster.memory.store.store import Store

AT_ONCE = 256  # segments a change: a few seconds of two CPU cores
CHANGES = 8  # made before it is asked again which keys are wanted most
AHEAD = 2  # changes whose keys are made before they are needed
REMEMBERED = 100_000  # segments whose keys translations asked for


Texts = dict[int, tuple[str, str]]  # source and target by segment
Outcomes = dict[int, ForcedKeys | str]  # its keys, or why there can be none


def make_keys(store: Store, model: KeyMaker, ids: Sequence[int], at_once: int = AT_ONCE) -> Iterator[int]:
    """Make the keys that these segments lack; yields how many each change gave theirs.

    at_once: how many are written by one change. While they are written, the next ones' are made.
    """
    with store.reading() as database:
        texts = list(database.texts_without_keys(ids).items())
    parts = [dict(texts[first : first + at_once]) for first in range(0, len(texts), at_once)]
    if len(parts) < 2:
        yield from (_keep(store, _outcomes(model, part)) for part in parts)
        return
    with ThreadPoolExecutor(1, "kster-keys") as maker:
        coming = deque(maker.submit(_outcomes, model, part) for part in parts[:AHEAD])
        try:
            for number in range(len(parts)):
                made = coming.popleft().result()
                if number + AHEAD < len(parts):
                    coming.append(maker.submit(_outcomes, model, parts[number + AHEAD]))
                yield _keep(store, made)
        finally:
            for one in coming:
                one.cancel()


def _outcomes(model: KeyMaker, texts: Texts) -> Outcomes:
    return dict(zip(texts, keys_or_reasons(model, list(texts.values())), strict=True))


def _keep(store: Store, outcomes: Outcomes) -> int:
    with store.writing() as change:
        still = change.database.texts_without_keys(list(outcomes))  # some may be made or removed by now
        made = []
        for id in still:
            outcome = outcomes[id]
            if isinstance(outcome, str):
                change.refuse_keys(id, outcome)
            else:
                made.append((id, outcome.keys.numpy(), outcome.tokens.numpy()))
        change.give_keys(made)
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
