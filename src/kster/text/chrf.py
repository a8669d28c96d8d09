"""chrF: how many character n-grams a translation shares with a reference."""

from __future__ import annotations

from collections import Counter

ORDER = 6  # the longest n-grams, in characters; spaces do not count
BETA = 2.0  # how much more recall counts than precision


def sentence_chrf(text: str, reference: str) -> float:
    """From 0 to 100, as sacreBLEU computes it for a sentence (`nc:6|nw:0|space:no`)."""
    written, wanted = "".join(text.split()), "".join(reference.split())
    orders = range(1, min(ORDER, len(written), len(wanted)) + 1)
    if not orders:
        return 0.0
    precision = recall = 0.0
    for n in orders:
        own, other = _ngrams(written, n), _ngrams(wanted, n)
        matches = (own & other).total()
        precision += matches / own.total() / len(orders)
        recall += matches / other.total() / len(orders)
    weighted = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


def _ngrams(text: str, n: int) -> Counter[str]:
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))
