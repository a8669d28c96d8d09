"""Contrastive translation pairs: a reference, and the same with the wrong sense of one word.

ContraWSD's files are read as they are (`<data>/wsd/contrawsd.<direction>.json`). Without one, a set is built
from the corpora:

1. Words of the training text are linked by co-occurrence: a target word t belongs to a source word s when it
   stands in a good share of the pairs with s, s in a good share of those with t, and no other source word is
   closer to t by the Dice coefficient.
2. A source word is ambiguous when it has two such target words of different stems that hardly ever stand in
   the same pair, and that a thesaurus, where there is one, knows but not as synonyms.
3. Each test pair with the ambiguous word once, one of its translations once and the other not at all gives
   an example; the contrastive translation has the other in its place.

Of all examples, each domain takes those most like its own text by TF-IDF.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.budget import Budget
from experiments.data import Corpora, Pairs, Slice
from experiments.domains import GENERAL, LAW_MEMORY, NEWS_TRAIN, memory_slice, test_slice
from experiments.lexicon import Thesaurus, thesaurus_of
from experiments.stages import digest, read_json, write_json
from kster.errors import KsterError

TEXT = 20_000  # pairs of each corpus that senses are learned from; of IT's short lines twice as many
LEAST_SEEN = 15  # pairs with a source word
LEAST_TOGETHER = 8  # pairs with a source word and its translation
SHARE_OF_SOURCE = 0.08  # of the pairs with s must have t
SHARE_OF_TARGET = 0.4  # of the pairs with t must have s
TOGETHER = 0.1  # at most this share of the rarer sense's pairs has the other one, too
LEAST_LETTERS = 4
SAME_STEM = 4  # words that begin alike for so many letters are forms of one word
MOST_OF_A_SENSE = 10  # examples
DOMAIN_SENTENCES = 500  # that stand for a domain
BUCKETS = 4096  # of hashed words


@dataclass(frozen=True, slots=True)
class Contrast:
    """One example; word: the ambiguous source word, sense: its right translation."""

    source: str
    reference: str
    contrastive: tuple[str, ...]
    word: str = ""
    sense: str = ""


def read_contrawsd(path: Path) -> list[Contrast]:
    """A list of objects with source, reference and errors, each error with a contrastive translation."""
    contrasts: list[Contrast] = []
    try:
        for entry in json.loads(path.read_text(encoding="utf-8")):
            contrasts.append(_contrast(entry))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KsterError(
            f"{path}, after {len(contrasts)} entries: not in ContraWSD's format ({type(error).__name__}: "
            f"{error}); expected a JSON list of objects with source, reference and errors (at least one, "
            "each with contrastive)"
        ) from None
    if not contrasts:
        raise KsterError(f"{path}: there are no examples in it")
    return contrasts


def _contrast(entry: dict[str, Any]) -> Contrast:
    source, reference = entry["source"], entry["reference"]
    wrong = tuple(error["contrastive"] for error in entry["errors"])
    if not wrong:  # would count as right whatever a system says
        raise ValueError("no errors")
    if not all(isinstance(text, str) and text.strip() for text in (source, reference, *wrong)):
        raise TypeError("source, reference or contrastive is not text, or empty")
    sense = entry.get("sense", entry.get("original translation", ""))
    return Contrast(source, reference, wrong, entry.get("ambig word", ""), sense)


# Building a set ------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d_]+", text) if len(word) >= LEAST_LETTERS]


def find_senses(pairs: Iterable[tuple[str, str]], thesaurus: Thesaurus | None = None) -> dict[str, list[str]]:
    """Ambiguous source words (in lower case) and their translations, most frequent first."""
    bags = [(sorted(set(_words(s.lower()))), sorted(set(_words(t)))) for s, t in pairs]
    sources = Counter(word for source, _ in bags for word in source)
    targets = Counter(word for _, target in bags for word in target)
    linked: Counter[tuple[str, str]] = Counter()
    for source, target in bags:
        frequent = [s for s in source if sources[s] >= LEAST_SEEN]
        linked.update(product(frequent, (t for t in target if targets[t] >= LEAST_TOGETHER)))
    closest: dict[str, float] = defaultdict(float)  # t → how close its closest source word is (Dice)
    dice = {(s, t): 2 * count / (sources[s] + targets[t]) for (s, t), count in linked.items()}
    for (_, t), value in dice.items():
        closest[t] = max(closest[t], value)
    candidates: dict[str, list[str]] = defaultdict(list)
    for (s, t), count in linked.most_common():
        shares = count >= SHARE_OF_SOURCE * sources[s] and count >= SHARE_OF_TARGET * targets[t]
        known = thesaurus is None or thesaurus.knows(t)
        if count >= LEAST_TOGETHER and shares and known and dice[s, t] == closest[t] and s != t.lower():
            candidates[s].append(t)
    wanted = {s: ts for s, ts in candidates.items() if len(ts) > 1}
    together: Counter[tuple[str, str, str]] = Counter()
    for source, target in bags:
        present = set(target)
        for s in source:
            found = (t for t in wanted.get(s, ()) if t in present)
            together.update((s, *two) for two in combinations(found, 2))
    return _apart(wanted, linked, together, thesaurus)


def _apart(
    candidates: dict[str, list[str]],
    linked: Counter[tuple[str, str]],
    together: Counter[tuple[str, str, str]],
    thesaurus: Thesaurus | None,
) -> dict[str, list[str]]:
    """Keep translations that are not forms of one word and stand for one another."""
    senses = {}
    for s, ts in candidates.items():
        kept: list[str] = []
        for t in ts:
            rivals = all(
                t.lower()[:SAME_STEM] != other.lower()[:SAME_STEM]
                and t[0].isupper() == other[0].isupper()  # in German, a noun is no rival of a verb
                and together[s, other, t] <= TOGETHER * min(linked[s, t], linked[s, other])
                and (thesaurus is None or thesaurus.apart(t, other))
                for other in kept
            )
            if rivals:
                kept.append(t)
        if len(kept) > 1:
            senses[s] = kept
    return senses


def build_contrasts(pairs: Iterable[tuple[str, str]], senses: dict[str, list[str]]) -> list[Contrast]:
    contrasts = []
    taken: Counter[tuple[str, str]] = Counter()
    for source, reference in pairs:
        words, targets = Counter(_words(source.lower())), Counter(_words(reference))
        for word in sorted(set(words) & senses.keys()):
            present = [t for t in senses[word] if targets[t]]
            if words[word] != 1 or len(present) != 1 or targets[present[0]] != 1:
                continue
            right = present[0]
            if taken[word, right] < MOST_OF_A_SENSE:
                taken[word, right] += 1
                pattern = re.compile(rf"(?<!\w){re.escape(right)}(?!\w)")
                wrong = tuple(pattern.sub(other, reference) for other in senses[word] if other != right)
                contrasts.append(Contrast(source, reference, wrong, word, right))
    return contrasts


# Choosing what is like a domain --------------------------------------------------------------------------


def select(
    contrasts: Sequence[Contrast], domains: dict[str, Pairs], count: int, english: int
) -> dict[str, list[Contrast]]:
    """For each domain the examples most like its text. english: which side of a pair is English, 0 or 1."""
    texts = [(c.source, c.reference)[english] for c in contrasts]
    own = [pair[english] for pairs in domains.values() for pair in pairs]
    vectors = embed([*texts, *own])  # (n + m, d)
    chosen, first = {}, len(texts)
    for name, pairs in domains.items():
        centre = vectors[first : first + len(pairs)].mean(axis=0)  # (d,)
        first += len(pairs)
        likeness = vectors[: len(texts)] @ centre  # (n,)
        chosen[name] = [contrasts[i] for i in np.argsort(-likeness, kind="stable")[:count]]
    return chosen


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """(n, d) TF-IDF of hashed words, each of length 1, the mean of all taken away first: what texts have in
    common tells nothing."""
    counted = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    documents = Counter(word for words in counted for word in words)
    vectors = np.zeros((len(texts), BUCKETS), np.float32)
    for row, words in enumerate(counted):
        for word, count in words.items():
            rarity = math.log((1 + len(texts)) / (1 + documents[word]))
            vectors[row, zlib.crc32(word.encode()) % BUCKETS] += count * rarity
    vectors -= vectors.mean(axis=0, keepdims=True)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


# The chosen examples, on disk ----------------------------------------------------------------------------


def _contrawsd(corpora: Corpora) -> Path:
    return corpora.root / "wsd" / f"contrawsd.{'-'.join(corpora.direction)}.json"


def selected_file(corpora: Corpora, budget: Budget) -> Path:
    """Named by what they are chosen from and how many: with the data if it was packed, else what was made."""
    given = _contrawsd(corpora)
    origin = digest([budget.contrasts, digest(given.read_bytes().hex()) if given.is_file() else None])
    name = f"selected.{'-'.join(corpora.direction)}.{origin}.json"
    packed = corpora.root / "wsd" / name
    return packed if packed.is_file() else corpora.made / "wsd" / name


def prepare(corpora: Corpora, budget: Budget) -> list[Path]:
    """Make the file of chosen examples, unless it is there; returns it, and the ContraWSD it is made of."""
    path, given = selected_file(corpora, budget), _contrawsd(corpora)
    origins = [given] if given.is_file() else []
    if path.is_file():
        return [path, *origins]
    if origins:
        contrasts, origin = read_contrawsd(given), given.name
    else:
        thesaurus = thesaurus_of(corpora.direction[1])
        senses = find_senses(corpora.pairs(*text_slices(budget)), thesaurus)
        contrasts = build_contrasts(corpora.pairs(*searched_slices(budget)), senses)
        told = f"synonyms left out by {thesaurus.name}" if thesaurus else "synonyms among their translations"
        origin = f"{len(senses):,} ambiguous words of the corpora, {told}"
    if not contrasts:
        raise KsterError(
            f"{corpora.root}: no ambiguous words in the test sets; put ContraWSD's file at {given} instead"
        )
    text = {domain: memory_slice(domain, budget).at_most(DOMAIN_SENTENCES) for domain in budget.domains}
    own = {domain: corpora.pairs(slice) for domain, slice in text.items()}
    chosen = select(contrasts, own, budget.contrasts, corpora.direction.index("en"))
    domains = {domain: [asdict(contrast) for contrast in found] for domain, found in chosen.items()}
    write_json(path, {"origin": origin, "pool": len(contrasts), "domains": domains})
    return [path, *origins]


def read_selected(corpora: Corpora, budget: Budget) -> dict[str, Any]:
    """The chosen examples, those most like each domain."""
    data: dict[str, Any] = read_json(selected_file(corpora, budget))
    for domain, entries in data["domains"].items():
        data["domains"][domain] = [
            Contrast(**(entry | {"contrastive": tuple(entry["contrastive"])})) for entry in entries
        ]
    return data


def text_slices(budget: Budget) -> list[Slice]:
    """What senses are learned from."""
    most = TEXT if budget.memory is None else min(TEXT, 40 * budget.memory)
    whole = (NEWS_TRAIN, LAW_MEMORY, *(Slice(c, "train") for c in ("europarl", "koran", "docs_adobe")))
    return [*(slice.at_most(most) for slice in whole), Slice("it", "train").at_most(2 * most)]


def searched_slices(budget: Budget) -> list[Slice]:
    """What examples are taken from: nothing that is in a memory or that fits to a memory learn from.

    The smoother that a model carries, from which fits begin, has learned from Europarl's dev set, however
    (`smoother.domains` of its recipe).
    """
    tests = [test_slice(name, budget) for name in (GENERAL, *budget.domains)]
    more = [Slice(name, split) for name in ("ted", "europarl") for split in ("dev", "test")]
    most = None if budget.test is None else 40 * budget.test
    return [Slice(slice.corpus, slice.split, most) for slice in (*tests, *more)]
