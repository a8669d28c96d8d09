"""Which pairs of a corpus are fit for training; every rule counts what it leaves out."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kster.text.currencies import currencies
from kster.text.recognition import are_kept
from kster.training.settings import CleaningSettings

# What a reader does not see: control characters, zero-width signs, the byte order mark.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"
)
# White space but for the two that printers set on purpose: 10 km, « oui ».
_SPACES = re.compile("[^\\S\u00a0\u202f]+")
_RATIO_SLACK = 15  # characters added to both sides, so that short pairs may differ more
_HELD_OUT_WORDS = 5  # shorter sentences ("Thank you.") occur everywhere and give no test away
RULES = (
    "too_short",
    "too_long",
    "ratio",
    "copied",
    "numbers",
    "currencies",
    "placeholders",
    "language",
    "held_out",
    "duplicate",
    "too_many_tokens",
)
_MARGIN = 4.0  # nats by which a line must look like the other language to be left out


def normalise(text: str) -> str:
    """NFC, without invisible characters, white space collapsed; non-breaking spaces stay."""
    text = unicodedata.normalize("NFC", text)
    return _SPACES.sub(" ", _INVISIBLE.sub("", text.replace("\t", " "))).strip()


def _with_plain_spaces(text: str) -> str:
    """A normalised text with every space alike: a test is given away by its words."""
    return " ".join(text.split())


def _digits(text: str) -> str:
    """The digits of a text, sorted: 3.5 and 3,5 have the same ones, and so have 1 May and May 1."""
    return "".join(sorted(filter(str.isdecimal, text)))


class LanguageProfile:
    """Tells the two languages of a corpus apart by their words, learned from the corpus itself.

    Each word votes with log p(word | source language) − log p(word | target language). It cannot
    recognise a third language; it finds swapped, untranslated and mixed-up pairs.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for pair in pairs:
            for side, text in enumerate(pair):
                counts[side].update(text.lower().split())
        totals = [sum(count.values()) + 1 for count in counts]
        self._votes: dict[str, float] = {}
        for word in counts[0].keys() | counts[1].keys():
            ours, theirs = counts[0][word], counts[1][word]
            if ours + theirs >= 10:
                vote = math.log((ours + 0.5) / totals[0]) - math.log((theirs + 0.5) / totals[1])
                self._votes[word] = max(-4.0, min(4.0, vote))

    def vote(self, text: str) -> float:
        """Positive: looks like the source language; negative: like the target language."""
        votes = self._votes
        return sum(votes.get(word, 0.0) for word in text.lower().split())

    def is_mixed_up(self, source: str, target: str) -> bool:
        return self.vote(source) < -_MARGIN or self.vote(target) > _MARGIN


@dataclass
class CleaningReport:
    """Pairs read, kept, and left out by rule, of one corpus."""

    read: int = 0
    kept: int = 0
    augmented: int = 0  # pairs made of others; they count as kept
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))

    def as_text(self) -> str:
        reasons = ", ".join(f"{rule} {count:,}" for rule, count in self.dropped.items() if count)
        made = f", {self.augmented:,} of them made of others" if self.augmented else ""
        return f"{self.read:,} pairs read, {self.kept:,} kept{made}" + (
            f" (left out: {reasons})" if reasons else ""
        )


class Cleaner:
    """Applies the rules to one corpus after another; duplicates are found across all of them."""

    def __init__(
        self, settings: CleaningSettings, profile: LanguageProfile | None, held_out: Iterable[str] = ()
    ) -> None:
        self.settings = settings
        self.profile = profile
        plain = (_with_plain_spaces(normalise(text)) for text in held_out)
        self.held_out = {text for text in plain if len(text.split()) >= _HELD_OUT_WORDS}
        self._seen: set[int] = set()  # 64-bit hashes of pairs: a corpus of any size fits

    def clean(self, pairs: Iterable[tuple[str, str]], report: CleaningReport) -> Iterator[tuple[str, str]]:
        """The pairs that are kept, normalised, in order; `report` is filled while they are read."""
        for raw_source, raw_target in pairs:
            report.read += 1
            source, target = normalise(raw_source), normalise(raw_target)
            rule = self._broken_rule(source, target)
            if rule is None:
                report.kept += 1
                yield source, target
            else:
                report.dropped[rule] += 1

    def _broken_rule(self, source: str, target: str) -> str | None:
        limits = self.settings
        shorter, longer = sorted((len(source), len(target)))
        if shorter < max(1, limits.min_characters):
            return "too_short"
        if longer > limits.max_characters:
            return "too_long"
        if longer + _RATIO_SLACK > limits.max_length_ratio * (shorter + _RATIO_SLACK):
            return "ratio"
        if source.casefold() == target.casefold() and len(source.split()) > limits.max_copied_words:
            return "copied"
        if limits.same_numbers and _digits(source) != _digits(target):
            return "numbers"
        if limits.same_numbers and currencies(source) != currencies(target):
            return "currencies"
        if limits.same_placeholders and not are_kept(source, target):
            return "placeholders"
        if self.profile is not None and self.profile.is_mixed_up(source, target):
            return "language"
        if not self.held_out.isdisjoint(map(_with_plain_spaces, (source, target))):
            return "held_out"
        if limits.duplicates:
            key = hash((source, target))
            if key in self._seen:
                return "duplicate"
            self._seen.add(key)
        return None
