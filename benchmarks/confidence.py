"""Can a translation's confidence be believed? Collects, fits and measures on domains that were not fitted on.

    python benchmarks/confidence.py collect --data DIR --model models/en-de --model models/de-en --out FILE
    python benchmarks/confidence.py fit FILE … [--save src/kster/translation/confidence.json]
    python benchmarks/confidence.py measure --data DIR [--test docs_adobe/dev --train docs_adobe/train]

The first two are to be run when a model has been trained anew.

`collect` translates sentences of many corpora, with a memory of the corpus and without, and writes down what
decoding knew beside what the reference says; so it does for some of the memory's own segments, translated as
if they were not in it. `fit` learns from all domains but those of TESTED, measures on these, and, leaving out
one domain at a time, on each of the others. `measure` fits a memory as `kster fit` does, which also shifts
its confidences, and measures these.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

import sacrebleu
import torch

from corpora import near_segments, pairs_of, sample
from kster import Memory, Translator
from kster.formats import Pair
from kster.memory import SearchableMemory
from kster.smoothing import fit as fit_memory
from kster.text.marks import marked_pair
from kster.translation import TokenExplanation
from kster.translation.calibration import shift_of
from kster.translation.confidence import (
    SENTENCE_FEATURES,
    WORD_FEATURES,
    ConfidenceModel,
    Regression,
    log_of,
    sentence_features,
    shipped_confidence,
    word_features,
)
from kster.translation.decoding import Decoding
from kster.translation.unseen import MemoryWithout, SmootherWithout
from kster.translation.words import words_of
from machine import describe

# Domain: the split that is translated, the split that memories are made of.
DOMAINS = {
    "europarl": ("dev", "train"),
    "newstest": ("newstest2013", "train_2008_2012"),
    "tatoeba": ("test", "train"),
    "multi30k": ("dev", "train"),
    "it": ("dev", "train"),
    "law": ("test", "dev"),
    "koran": ("dev", "train"),
    "ted": ("dev", "train"),
    "games_dialogue": ("train", "train"),
    "docs_adobe": ("test", "train"),
    "docs_ms": ("dev", "train"),
}
FOR = {
    "mean log p",
    "least log p",
    "log p",
    "mean log p of the base model",
    "least log p of the base model",
    "mean share of the memory",
    "share of the memory",
    "share of tokens with an example next to them",
    "best fuzzy match",
    "good part of the best fuzzy match",
    "mean of the least quarter of log p",
    "log p of the word before",
    "log p of the word behind",
    "confidence of the sentence",
}
AGAINST = {"share of doubtful tokens", "mean nearest distance", "nearest distance"}
LINES = dict.fromkeys(DOMAINS, 100) | {"docs_ms": 250, "docs_adobe": 300}
LARGEST = 120_000  # pairs of a corpus that are looked through for a memory


def collect(options: argparse.Namespace) -> None:
    print(describe(lines=options.lines or LINES, near=options.near, others=options.others))
    with options.out.open("a", encoding="utf-8") as out:
        for model in options.model:
            with Translator(model) as translator:
                collect_with(translator, options, out)


def collect_with(translator: Translator, options: argparse.Namespace, out: TextIO) -> None:
    languages = (str(translator.model.source_lang), str(translator.model.target_lang))
    for domain in options.domain or DOMAINS:
        test, train = DOMAINS[domain]
        pairs = sample(pairs_of(options.data, f"{domain}/{test}", languages), options.lines or LINES[domain])
        name, segments = ("-".join(languages), domain), list[Pair]()
        found = [observations(name, pairs, translated(translator, pairs, None), None)]
        if options.near or options.others:
            known = pairs_of(options.data, f"{domain}/{train}", languages, LARGEST)
            segments = near_segments(known, [p.source for p in pairs], options.near, options.others)
            found.append(with_memory(translator, name, pairs, segments, options.own))
        for one in chain(*found):
            out.write(json.dumps(one, ensure_ascii=False) + "\n")
        out.flush()
        print(f"{domain}: {len(pairs)} pairs, a memory of {len(segments)} segments", flush=True)


def with_memory(
    translator: Translator, name: tuple[str, str], pairs: list[Pair], segments: list[Pair], own: int
) -> Iterator[dict[str, object]]:
    """Observations of pairs with a memory of these segments, and of some of them as if they were unseen."""
    with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "m", translator.model) as memory:
        memory.import_pairs(segments)
        yield from observations(name, pairs, translated(translator, pairs, memory), memory)
        chosen = sample(segments, own)
        yield from observations(name, chosen, *as_if_unseen(translator, chosen, memory), own=True)


Made = tuple[str, float, tuple[TokenExplanation, ...]]  # a translation, its score, its tokens


def translated(translator: Translator, pairs: list[Pair], memory: Memory | None) -> list[Made]:
    sources = [pair.source for pair in pairs]
    done = translator.translate(sources, memory=memory, explain=True, split_sentences=False)
    return [(one.text, one.score, one.tokens or ()) for one in done]


def as_if_unseen(
    translator: Translator, pairs: list[Pair], memory: Memory
) -> tuple[list[Made], SearchableMemory]:
    """Segments of a memory, translated as a fit translates them, and the memory as it was for them."""
    texts = [(pair.source, pair.target) for pair in pairs]
    without = MemoryWithout(memory, texts)
    resolved = translator.resolve("kster", memory)
    assert resolved is not None
    smoother = SmootherWithout(resolved.smoother, without.entries_of(memory.entries()))
    sources = [marked_pair(*text)[0] for text in texts]
    made = translator.translate_pieces(sources, Decoding(explain=True), memory=without, smoother=smoother)
    return [(*one.hypotheses[0], one.tokens or ()) for one in made], without


def observations(
    name: tuple[str, str],
    pairs: list[Pair],
    made: list[Made],
    memory: SearchableMemory | None,
    own: bool = False,
) -> Iterator[dict[str, object]]:
    """What is known of each translation, and how near its reference it is.

    name: the languages and the domain. own: whether the pairs are segments of the memory.
    """
    for pair, (text, score, tokens) in zip(pairs, made, strict=True):
        source, reference = marked_pair(pair.source, pair.target) if own else (pair.source, pair.target)
        best = memory.matches(pair.source, 1) if memory is not None else []
        yield {
            "pair": name[0],
            "domain": name[1],
            "memory": memory is not None,
            "own": own,
            "source": source,
            "reference": reference,
            "text": text,
            "score": score,
            "match": best[0].percentage if best else 0,
            "chrf": sacrebleu.sentence_chrf(text, [reference]).score,
            "tokens": [{**token.to_json(), "examples": []} for token in tokens],
        }


@dataclass(frozen=True)
class Sentence:
    """An observation as the regressions see it."""

    domain: str
    memory: bool
    own: bool  # a segment of the memory, translated as if it were not there
    score: float  # the plain length-normalised log-probability
    chrf: float
    numbers: list[float]
    words: list[list[float]]  # with 0 for the confidence of the sentence
    right: list[bool]  # of each word


def read(paths: list[Path]) -> list[Sentence]:
    """Each observation once."""
    found: dict[tuple[object, ...], Sentence] = {}
    for line in (line for path in paths for line in path.open(encoding="utf-8")):
        one = json.loads(line)
        if one["tokens"]:
            key = (one["pair"], one["domain"], one["memory"], one["own"], one["source"])
            found[key] = sentence_of(one)
    return list(found.values())


def sentence_of(one: dict[str, Any]) -> Sentence:
    """An observation that has tokens."""
    tokens = [TokenExplanation(**{**token, "examples": ()}) for token in one["tokens"]]
    words = word_features(tokens, one["source"], 0.0, one["match"])
    texts = [word.text for word in words_of([token.token for token in tokens], tokens[-1].token)]
    return Sentence(
        one["domain"],
        one["memory"],
        one["own"],
        fmean(log_of(token.probability) for token in tokens),
        one["chrf"],
        sentence_features(tokens, one["source"], one["text"], one["match"]),
        [numbers for _, _, numbers in words],
        in_reference(texts, one["reference"]),
    )


def in_reference(words: list[str], reference: str) -> list[bool]:
    """Which words of a translation the reference has in the same order; the last is the end of sentence."""
    parts = re.findall(r"\w+|[^\w\s]", " ".join(words[:-1]))
    owners = [i for i, word in enumerate(words[:-1]) for _ in re.findall(r"\w+|[^\w\s]", word)]
    compared = SequenceMatcher(None, parts, re.findall(r"\w+|[^\w\s]", reference), autojunk=False)
    kept = {i for block in compared.get_matching_blocks() for i in range(block.a, block.a + block.size)}
    return [all(part in kept for part, owner in enumerate(owners) if owner == i) for i in range(len(words))]


def learn(
    numbers: list[list[float]], right: list[bool], names: tuple[str, ...], decay: float
) -> dict[str, Any]:
    """A `Regression`, by maximum likelihood with weight decay. What can only speak for a translation does not
    get a negative weight, and the other way round: few sentences have a good match, say."""
    x, y = torch.tensor(numbers, dtype=torch.float64), torch.tensor(right, dtype=torch.float64)
    mean, scale = x.mean(0), x.std(0).clamp_min(1e-3)
    x = (x - mean) / scale
    signs = torch.tensor([(name in FOR) - (name in AGAINST) for name in names], dtype=torch.float64)
    free = torch.full((len(names),), 0.3, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([free, bias], max_iter=300, line_search_fn="strong_wolfe")

    def signed(free: torch.Tensor) -> torch.Tensor:
        return torch.where(signs == 0, free, signs * free.square())

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        weights = signed(free)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights + bias, y)
        loss = loss + decay * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    values = {"mean": mean, "scale": scale, "weights": signed(free), "bias": bias}
    return {name: torch.round(value.detach(), decimals=5).tolist() for name, value in values.items()}


def fitted(sentences: list[Sentence], options: argparse.Namespace) -> dict[str, Any]:
    """The model as `ConfidenceModel.from_json` takes it."""
    good = [one.chrf >= options.chrf for one in sentences]
    sentence = learn([one.numbers for one in sentences], good, SENTENCE_FEATURES, options.decay)
    judge = Regression(**sentence)
    words = [numbers for one in sentences for numbers in with_sentence(one, judge)]
    right = [own for one in sentences for own in one.right]
    word = learn(words, right, WORD_FEATURES, options.decay)
    return {"chrf": options.chrf, "sentence": sentence, "word": word}


def with_sentence(sentence: Sentence, judge: Regression, shift: float = 0.0) -> list[list[float]]:
    """What is known of the words, with the confidence of their sentence."""
    place = WORD_FEATURES.index("confidence of the sentence")
    sure = judge(sentence.numbers, shift)
    return [[*own[:place], sure, *own[place + 1 :]] for own in sentence.words]


def calibration_error(sure: list[float], right: list[bool], bins: int = 10) -> float:
    """Mean of |confidence − share that is right| over bins with equally many sentences."""
    order = sorted(range(len(sure)), key=lambda i: sure[i])
    error = 0.0
    for b in range(bins):
        own = order[b * len(order) // bins : (b + 1) * len(order) // bins]
        if own:
            error += abs(fmean(sure[i] for i in own) - fmean(right[i] for i in own)) * len(own)
    return error / len(order)


def by_chance(sure: list[float]) -> float:
    """The calibration error that so few sentences would show if every confidence were exactly true."""
    draw = random.Random(0)
    return fmean(calibration_error(sure, [draw.random() < own for own in sure]) for _ in range(20))


def area(sure: list[float], right: list[bool]) -> float:
    """Under the curve: how often something right is surer than something that is not."""
    ranked = sorted(range(len(sure)), key=lambda i: sure[i])
    good = sum(right)
    ranks = {i: rank for rank, i in enumerate(ranked, 1)}
    total = sum(ranks[i] for i, own in enumerate(right) if own)
    bad = len(right) - good
    return (total - good * (good + 1) / 2) / (good * bad) if good and bad else float("nan")


def report(name: str, model: ConfidenceModel, sentences: list[Sentence], shift: float = 0.0) -> None:
    good = [one.chrf >= model.chrf for one in sentences]
    sure = [model.sentence(one.numbers, shift) for one in sentences]
    words = [model.word(own) for one in sentences for own in with_sentence(one, model.sentence, shift)]
    right = [own for one in sentences for own in one.right]
    plain = area([one.score for one in sentences], good)
    print(
        f"| {name} | {len(sentences)} | {fmean(good):.2f} | {fmean(sure):.2f} | "
        f"{calibration_error(sure, good):.3f} | {by_chance(sure):.3f} | "
        f"{area(sure, good):.3f} | {plain:.3f} | "
        f"{fmean(right):.2f} | {calibration_error(words, right):.3f} | {area(words, right):.3f} |",
        flush=True,
    )


def fit(options: argparse.Namespace) -> None:
    sentences = read(options.observations)
    print(describe(chrf=options.chrf, decay=options.decay, tested=options.tested))
    print(HEADER)
    others = [one for one in sentences if one.domain not in options.tested and not one.own]
    for domain in sorted({one.domain for one in others}):
        model = ConfidenceModel.from_json(fitted([one for one in others if one.domain != domain], options))
        report(f"{domain}, left out", model, [one for one in others if one.domain == domain])
    data = fitted(others, options)
    model = ConfidenceModel.from_json(data)
    report("fitted on", model, others)
    for domain in options.tested:
        of_domain = [one for one in sentences if one.domain == domain]
        new = [one for one in of_domain if not one.own]
        report(f"**{domain}**", model, [one for one in new if not one.memory])
        with_memory = [one for one in new if one.memory]
        report(f"**{domain}, with a memory**", model, with_memory)
        known = [one for one in of_domain if one.own]
        if known:
            believed = [model.sentence(one.numbers) for one in known]
            shift = shift_of(believed, [one.chrf >= model.chrf for one in known])
            name = f"**{domain}, with a memory, shifted by {shift:+.2f} for {len(known)} of its segments**"
            report(name, model, with_memory, shift)
    if options.save:
        options.save.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def measure(options: argparse.Namespace) -> None:
    """The confidences of a memory that was fitted, as `kster fit` does, with the regressions that ship."""
    print(describe(lines=options.lines, near=options.near, others=options.others))
    model = shipped_confidence()
    with Translator(options.model) as translator, tempfile.TemporaryDirectory() as place:
        languages = (str(translator.model.source_lang), str(translator.model.target_lang))
        pairs = sample(pairs_of(options.data, options.test, languages), options.lines)
        known = pairs_of(options.data, options.train, languages, LARGEST)
        segments = near_segments(known, [p.source for p in pairs], options.near, options.others)
        with Memory.create(Path(place) / "m", translator.model) as memory:
            memory.import_pairs(segments)
            found = fit_memory(translator.model, memory).calibration
            print(f"a memory of {len(segments)} segments; {found}")
            print(HEADER)
            for used in (None, memory):
                made = translated(translator, pairs, used)
                seen = list(observations(("-".join(languages), options.test), pairs, made, used))
                sentences = [sentence_of(one) for one in seen if one["tokens"]]
                report(options.test + (", the fitted memory, not shifted" if used else ""), model, sentences)
                if used and found:
                    report(f"{options.test}, the fitted memory", model, sentences, found.shift)


HEADER = """
| sentences | n | right | mean | error | by chance | AUC | AUC, log p | words right | error | AUC |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("--data", type=Path, required=True, help="<corpus>/<split>.<language>.xz")
    collecting.add_argument("--model", action="append", required=True)
    collecting.add_argument("--out", type=Path, required=True)
    collecting.add_argument("--domain", action="append", choices=DOMAINS)
    collecting.add_argument("--lines", type=int, help="of each domain; by default as LINES says")
    collecting.add_argument("--near", type=int, default=3, help="segments like each line, in a memory")
    collecting.add_argument(
        "--others", type=int, default=100, help="segments at random; without both, no memory"
    )
    collecting.add_argument("--own", type=int, default=100, help="of its segments, translated as if unseen")
    collecting.set_defaults(run=collect)
    fitting = commands.add_parser("fit")
    fitting.add_argument("observations", type=Path, nargs="+")
    fitting.add_argument(
        "--tested", nargs="+", default=["docs_adobe", "koran"], help="domains to measure on only"
    )
    fitting.add_argument("--chrf", type=float, default=50.0, help="from which on a translation is right")
    fitting.add_argument("--decay", type=float, default=3e-3)
    fitting.add_argument("--save", type=Path)
    fitting.set_defaults(run=fit)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--data", type=Path, required=True)
    measuring.add_argument("--model", default="models/en-de")
    measuring.add_argument("--test", default="docs_adobe/dev")
    measuring.add_argument("--train", default="docs_adobe/train")
    measuring.add_argument("--lines", type=int, default=1000)
    measuring.add_argument("--near", type=int, default=3)
    measuring.add_argument("--others", type=int, default=100)
    measuring.set_defaults(run=measure)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
