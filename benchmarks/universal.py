"""Does one smoother serve models that it has not seen? Fitted on all models but one, and tested on that one.

    python benchmarks/universal.py --data DIR --catalogues DIR --work DIR \\
        --model models/en-de --model models/de-en --model opus/en-fr --model opus/fr-en

--data: <corpus>/<split>.<language>.xz, English and German. --catalogues: French .mo files of free software,
as Debian's packages have them (docs/results/universal.md lists them). --work: where everything that was made
is kept, so that a run can be stopped and repeated; `all` in it is the smoother fitted on every model.

The text it is fitted on is of other domains than the text it is tested on. Every test is a memory of one
domain, lines of the same domain that it does not hold, and general ones, which it should leave alone.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import polib
import sacrebleu
import torch

from corpora import pairs_of
from kster import BaseModel, Memory, Translator
from kster.files import new_directory
from kster.formats import Pair
from kster.smoothing import SAFE_KNN, FitSettings, Smoother, fit
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.default_fit import DefaultFitSettings, Training, fit_universal, look_up
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs
from kster.smoothing.fitting.optimisation import Source, evaluate
from machine import describe

Pairs = list[tuple[str, str]]
SETTINGS = DefaultFitSettings(
    sizes=(10, 100, 500),
    queries=150,
    dev_queries=50,
    general_share=0.5,
    fit=FitSettings(steps=300, learning_rate=0.01, evaluate_every=75),
)
LEARNED_FROM = 1_600  # pairs of a domain that the smoother is fitted on, and of general text
MEMORY, LINES, GENERAL = 700, 120, 80  # of a test: segments, lines of its domain, general lines
TRANSLATED = {"domain": 50, "general": 25}  # of these lines; all of them are scored
FIT = FitSettings(steps=150, max_tokens=15_000, length=False, calibrate=False)  # of the memory of a test


@dataclass(slots=True)
class Text:
    """(source, target) pairs: what smoothers are fitted on, and what they are tested with."""

    domains: dict[str, Pairs]
    general: Pairs
    tests: dict[str, Pairs]
    test_general: Pairs

    def turned_round(self) -> Text:
        def turned(pairs: Pairs) -> Pairs:
            return [(target, source) for source, target in pairs]

        domains, tests = ({k: turned(v) for k, v in x.items()} for x in (self.domains, self.tests))
        return Text(domains, turned(self.general), tests, turned(self.test_general))


def sentences(pairs: Iterable[Pair], count: int, first: int = 0) -> Pairs:
    """Pairs of 3 to 40 words on one line, no source twice."""
    found: dict[str, str] = {}
    for pair in islice(pairs, first, None):
        source, target = pair.source.strip(), pair.target.strip()
        fits = 3 <= len(source.split()) <= 40 and "\n" not in source + target
        if fits and len(target.split()) <= 60 and len(found) < count:
            found.setdefault(source, target)
    return list(found.items())


def german(data: Path) -> Text:
    def run(name: str, count: int, first: int = 0) -> Pairs:
        return sentences(pairs_of(data, name, ("en", "de"), first + 4 * count), count, first)

    learned = {"software": "it/train", "statutes": "law/train_nonEU", "games": "games_dialogue/train"}
    tests = {"Koran": "koran/train", "law": "law/dev", "documentation": "docs_adobe/train"}
    return Text(
        {name: run(place, LEARNED_FROM) for name, place in learned.items()},
        run("newstest/train_2008_2012", LEARNED_FROM),
        {name: run(place, MEMORY + LINES) for name, place in tests.items()},
        run("newstest/newstest2013", GENERAL),
    )


def french(catalogues: Path) -> Text:
    def run(count: int, *names: str) -> Pairs:
        entries = (entry for name in names for entry in polib.mofile(str(catalogues / f"{name}.mo")))
        return sentences((Pair(e.msgid, e.msgstr) for e in entries if e.msgid and e.msgstr), count)

    def some(count: int, *names: str) -> Pairs:
        """From all over the catalogues, whose order is alphabetical."""
        pairs = run(100_000, *names)
        return random.Random(1).sample(pairs, min(count, len(pairs)))

    return Text(
        {name: run(LEARNED_FROM, name) for name in ("git", "wordpress")},
        run(LEARNED_FROM, "wesnoth-httt", "wesnoth-nr"),
        {name: some(MEMORY + LINES, name) for name in ("blender", "darktable", "gnucash")},
        some(GENERAL, "wesnoth-did", "wesnoth-sof"),
    )


def fit_all(models: dict[str, Path], texts: dict[str, Text], work: Path) -> None:
    """A smoother without each model, one without each pair of languages, and one of all models."""
    for name, directory in models.items():
        for domain, pairs in texts[name].domains.items():
            if not (kept := work / f"{name} {domain}.pt").exists():
                print(f"looking up {domain}, {name}", flush=True)
                training = Training(BaseModel.load(directory), {domain: pairs}, texts[name].general)
                shutil.rmtree(work / name, ignore_errors=True)
                torch.save(look_up(training, SETTINGS, work / name), kept)
    without = {f"without {name}": {name} for name in models} | {"all": set()}
    without |= {f"without {_both(name)}": {name, _turned(name)} for name in models}
    for label, left_out in without.items():
        if not (work / label).exists():
            used = [
                torch.load(work / f"{name} {domain}.pt", weights_only=False)
                for name in sorted(models.keys() - left_out)
                for domain in texts[name].domains
            ]
            print(f"fitting {label}", flush=True)
            fit_universal(used, SETTINGS).save(work / label)


def _turned(name: str) -> str:
    return "-".join(reversed(name.split("-")))


def _both(name: str) -> str:
    return " or ".join(sorted((name, _turned(name))))


class Test:
    """A model, a memory of one domain, and text to translate with it. What is measured is kept at once."""

    def __init__(self, name: str, directory: Path, domain: str, text: Text, work: Path) -> None:
        pairs = text.tests[domain]
        pairs = random.Random(1).sample(pairs, len(pairs))
        self.texts = {"domain": pairs[:LINES], "general": text.test_general}
        self.name, self.directory, self.domain, self.work = name, directory, domain, work
        self.segments = [Pair(*pair) for pair in pairs[LINES:]]
        self.kept = work / f"{name} {domain}.json"
        self.results: dict[str, list[float]] = json.loads(self.kept.read_text()) if self.kept.exists() else {}

    def run(self, fits: bool) -> None:
        """Nats a token, BLEU and chrF, by text and system."""
        model = BaseModel.load(self.directory)
        with self._memory(model) as memory:
            smoothers: dict[str, Smoother | None] = {"base": None, "fixed": Smoother(SAFE_KNN).eval()}
            for label in (f"without {self.name}", f"without {_both(self.name)}"):
                smoothers[label] = Smoother.load(self.work / label)
            if fits:
                smoothers |= {f"fit, {start}": self._fitted(memory, start) for start in ("tuned", "carried")}
            self._score(model, memory, smoothers)
            translator = Translator(model, split_sentences=False)
            for kind, pairs in self.texts.items():
                for system, smoother in smoothers.items():
                    row = self.results[f"{kind}, {system}"]
                    if len(row) == 1 and " or " not in system:
                        row += _translated(translator, pairs[: TRANSLATED[kind]], memory, smoother)
                        self._keep()

    def _keep(self) -> None:
        self.kept.write_text(json.dumps(self.results))

    def _memory(self, model: BaseModel) -> Memory:
        place = self.work / f"{self.name} {self.domain}"
        if not place.exists():
            with new_directory(place) as part, Memory.create(part, model) as memory:
                memory.import_pairs(self.segments, keys="now")
        return Memory.open(place, model)

    def _fitted(self, memory: Memory, start: Literal["tuned", "carried"]) -> Smoother:
        """A fit of the memory that begins at tuned kNN-MT, or at the universal smoother."""
        place = self.work / f"{self.name} {self.domain}, {start}"
        if not place.exists():
            other = self.work / "model"  # which carries the smoother that has not seen it
            shutil.rmtree(other, ignore_errors=True)
            other.mkdir()
            for file in self.directory.iterdir():
                if file.name != SMOOTHER_DIRECTORY:
                    (other / file.name).symlink_to(file.resolve())
            shutil.copytree(self.work / f"without {self.name}", other / SMOOTHER_DIRECTORY)
            caches = self.work / f"{self.name} {self.domain}, caches"
            fit(BaseModel.load(other), memory, replace(FIT, start=start), caches=caches, directory=place)
        return Smoother.load(place)

    def _score(self, model: BaseModel, memory: Memory, smoothers: dict[str, Smoother | None]) -> None:
        """Nats a token."""
        if all(f"general, {system}" in self.results for system in smoothers):
            return
        entries = memory.entries()
        lookup, table = Lookup(model, memory, entries), KeyTable(entries, model.device)
        for kind, pairs in self.texts.items():
            cache = cache_pairs(lookup, pairs, over_fetch(SETTINGS.fit))
            for system, smoother in smoothers.items():
                nats = cache.base_nll
                if smoother is not None:
                    nats = evaluate(smoother, Source(cache, table), model.device).nll
                self.results.setdefault(f"{kind}, {system}", [nats])
        self._keep()


def _translated(
    translator: Translator, pairs: Pairs, memory: Memory, smoother: Smoother | None
) -> list[float]:
    """BLEU and chrF. smoother: None for the base model."""
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    if smoother is None:
        found = translator.translate(sources, method="base")
    else:
        found = translator.translate(sources, memory=memory, smoother=smoother)
    texts = [translation.text for translation in found]
    return [metric.corpus_score(texts, [references]).score for metric in METRICS]


METRICS = (sacrebleu.BLEU(), sacrebleu.CHRF())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--data", "--catalogues", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--model", type=Path, action="append", required=True)
    parser.add_argument("--fits", metavar="MODEL", help="fit the memories of this model, too")
    options = parser.parse_args()
    print(describe(memory=MEMORY, lines=LINES, general=GENERAL, translated=TRANSLATED))
    models = {directory.name: directory for directory in options.model}
    texts = {"en-de": german(options.data), "en-fr": french(options.catalogues)}
    texts |= {_turned(name): text.turned_round() for name, text in texts.items()}
    options.work.mkdir(parents=True, exist_ok=True)
    fit_all(models, texts, options.work)
    for name, directory in models.items():
        for domain in texts[name].tests:
            test = Test(name, directory, domain, texts[name], options.work)
            test.run(options.fits == name)
            for system, numbers in test.results.items():
                print(f"{name}, {domain}: {system:32}", *(f"{number:8.3f}" for number in numbers), flush=True)
    print(*(metric.get_signature() for metric in METRICS), sep="\n")


if __name__ == "__main__":
    main()
