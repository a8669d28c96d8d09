"""The batcher: joins what may be joined, starves nobody, and one bad text spoils only itself."""

from __future__ import annotations

import threading

import pytest

from kster.server.work.batching import SENTENCE, Batcher


class Slow:
    """Upper-cases texts; the first batch waits for a signal, so that others gather behind it."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[str]]] = []
        self.go = threading.Event()

    def __call__(self, work: str, texts: list[str]) -> list[str]:
        self.batches.append((work, texts))
        if len(self.batches) == 1:
            self.go.wait(10)
        if "bad" in texts:
            raise ValueError("bad")
        return [text.upper() for text in texts]


@pytest.fixture
def slow() -> Slow:
    return Slow()


def started(slow: Slow, largest: int = 8) -> Batcher[str, str]:
    batcher: Batcher[str, str] = Batcher(slow, window=0.0, largest=largest)
    batcher.submit("a", ["first"])
    while not slow.batches:
        threading.Event().wait(0.001)
    return batcher


def test_requests_that_gather_are_translated_together_and_answered_apart(slow: Slow) -> None:
    batcher = started(slow)
    one, two = batcher.submit("a", ["x", "y"]), batcher.submit("a", ["z"])
    slow.go.set()
    assert [future.result(10) for future in (*one, *two)] == ["X", "Y", "Z"]
    assert [(work, sorted(texts)) for work, texts in slow.batches[1:]] == [("a", ["x", "y", "z"])]
    batcher.close()


def test_different_work_is_never_mixed_and_the_oldest_goes_first(slow: Slow) -> None:
    batcher = started(slow)
    futures = [batcher.submit(work, [text])[0] for work, text in [("b", "1"), ("a", "2"), ("b", "3")]]
    slow.go.set()
    assert [future.result(10) for future in futures] == ["1", "2", "3"]
    assert slow.batches[1:] == [("b", ["1", "3"]), ("a", ["2"])]
    batcher.close()


def test_a_batch_takes_the_oldest_text_and_those_nearest_to_its_length(slow: Slow) -> None:
    batcher = started(slow, largest=2)
    futures = batcher.submit("a", ["xx", "y" * 50, "zz", "w" * 49])
    slow.go.set()
    for future in futures:
        future.result(10)
    assert [texts for _, texts in slow.batches[1:]] == [["xx", "zz"], ["y" * 50, "w" * 49]]
    batcher.close()


def test_a_long_request_lets_short_ones_pass(slow: Slow) -> None:
    batcher = started(slow, largest=2)
    long = batcher.submit("a", ["long" * 100, *("sentence" * 10 for _ in range(5))])
    short = batcher.submit("a", ["short"])[0]
    other = batcher.submit("b", ["other"])[0]
    slow.go.set()
    assert (short.result(10), other.result(10)) == ("SHORT", "OTHER")
    for future in long:
        future.result(10)
    done = [text[:5] for _, texts in slow.batches[1:] for text in texts]
    assert done.index("short") < 3, "after one batch of the long one"
    assert done.index("other") < 4
    assert ("a", ["short"]) in slow.batches, "and none of the long one's slow it down"
    batcher.close()


def test_long_texts_fill_a_batch_sooner(slow: Slow) -> None:
    batcher = started(slow, largest=4)
    longest = 4 * SENTENCE
    futures = batcher.submit("a", ["x" * (longest // 2) for _ in range(5)])
    alone = batcher.submit("b", ["y" * 2 * longest, "y" * 2 * longest])
    slow.go.set()
    for future in (*futures, *alone):
        future.result(10)
    sizes = [(work, len(texts)) for work, texts in slow.batches[1:]]
    assert sorted(sizes) == [("a", 1), ("a", 2), ("a", 2), ("b", 1), ("b", 1)]
    batcher.close()


def test_a_text_that_fails_spoils_no_other(slow: Slow) -> None:
    batcher = started(slow)
    good, bad, other = batcher.submit("a", ["good", "bad", "other"])
    slow.go.set()
    assert (good.result(10), other.result(10)) == ("GOOD", "OTHER")
    with pytest.raises(ValueError, match="bad"):
        bad.result(10)
    batcher.close()


def test_a_cancelled_text_is_not_translated(slow: Slow) -> None:
    batcher = started(slow)
    kept, given_up = batcher.submit("a", ["kept", "given up"])
    assert given_up.cancel()
    slow.go.set()
    assert kept.result(10) == "KEPT"
    assert slow.batches[1:] == [("a", ["kept"])]
    batcher.close()


def test_waiting_texts_and_their_requests_are_counted(slow: Slow) -> None:
    batcher = started(slow)
    batcher.submit("a", ["one", "two"])
    batcher.submit("b", ["three"])
    assert (batcher.waiting, batcher.waiting_requests) == (3, 2)
    slow.go.set()
    batcher.close()
    assert (batcher.waiting, batcher.waiting_requests) == (0, 0)


def test_closing_finishes_what_was_submitted(slow: Slow) -> None:
    batcher = started(slow)
    waiting = batcher.submit("a", ["waiting"])[0]
    threading.Timer(0.05, slow.go.set).start()
    batcher.close()
    assert waiting.result(0) == "WAITING"
    with pytest.raises(RuntimeError, match="closed"):
        batcher.submit("a", ["late"])
