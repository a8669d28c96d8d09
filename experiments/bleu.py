"""Corpus BLEU where sacreBLEU is not installed: to choose settings by, and for `wsd`, which keeps no texts.

The same number as sacreBLEU's with its defaults (13a tokenisation, mixed case, exponential smoothing); a
test compares the two.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

ORDER = 4

# mteval-v13a's rules for languages written with spaces, in their order.
_RULES = [
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),  # symbols and brackets, but , - . '
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # a full stop or comma, unless after a digit
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),  # … unless before a digit
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),  # a dash after a digit
]
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def tokenise_13a(line: str) -> list[str]:
    """A line as mteval-v13a cuts it into words."""
    line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in line:
        for entity, character in _ENTITIES:
            line = line.replace(entity, character)
    line = f" {line} "
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line.split()


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU from 0 to 100 of translations against one reference each."""
    matches, totals = [0] * ORDER, [0] * ORDER
    length = reference_length = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        words, expected = tokenise_13a(hypothesis), tokenise_13a(reference)
        length += len(words)
        reference_length += len(expected)
        for n in range(ORDER):
            ours, theirs = _ngrams(words, n + 1), _ngrams(expected, n + 1)
            matches[n] += (ours & theirs).total()
            totals[n] += ours.total()
    return _score(matches, totals, length, reference_length)


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _score(matches: list[int], totals: list[int], length: int, reference_length: int) -> float:
    if not any(matches):
        return 0.0
    log_precision, penalty = 0.0, 1.0
    for matched, total in zip(matches, totals, strict=True):
        if total == 0:
            return 0.0
        if matched == 0:  # exponential smoothing: 1/2, 1/4, … of a match
            penalty *= 2
            log_precision += math.log(1 / (penalty * total))
        else:
            log_precision += math.log(matched / total)
    brevity = min(0.0, 1.0 - reference_length / length)
    return 100.0 * math.exp(brevity + log_precision / ORDER)
