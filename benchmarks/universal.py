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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polib
import sacrebleu
import torch

from corpora import pairs_of
from kster import BaseModel, Memory, Translator
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
    fit=FitSettings(steps=300, learning_rate=0.01, evaluate_every=25, patience=4),
)
LEARNED_FROM = 1_600  # pairs of a domain that the smoother is fitted on, and of general text
MEMORY, LINES, GENERAL = 1_500, 150, 60  # of a test: segments, lines of its domain, general lines


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

    return Text(
        {name: run(LEARNED_FROM, name) for name in ("git", "wordpress")},
        run(LEARNED_FROM, "wesnoth-httt", "wesnoth-nr"),
        {name: run(MEMORY + LINES, name) for name in ("blender", "darktable", "gnucash")},
        run(GENERAL, "wesnoth-did", "wesnoth-sof"),
    )


def fit_all(models: dict[str, Path], texts: dict[str, Text], work: Path) -> None:
    """A smoother without each model, one without each pair of languages, and one of all models."""
    for name, directory in models.items():
        if not (kept := work / f"{name}.pt").exists():
            model, text = BaseModel.load(directory), texts[name]
            training = Training(model, text.domains, text.general)
            shutil.rmtree(work / name, ignore_errors=True)
            torch.save(look_up(training, SETTINGS, work / name, print), kept)
    without = {f"without {name}": {name} for name in models} | {"all": set()}
    without |= {f"without {_both(name)}": {name, _turned(name)} for name in models}
    for label, left_out in without.items():
        if not (work / label).exists():
            used = [torch.load(work / f"{n}.pt", weights_only=False) for n in models if n not in left_out]
            print(f"fitting {label}", flush=True)
            fit_universal(used, SETTINGS).save(work / label)


def _turned(name: str) -> str:
    return "-".join(reversed(name.split("-")))


def _both(name: str) -> str:
    return " or ".join(sorted((name, _turned(name))))


class Test:
    """A model, a memory of one domain, and text to translate with it."""

    def __init__(self, name: str, directory: Path, domain: str, text: Text, work: Path) -> None:
        pairs = text.tests[domain]
        pairs = random.Random(1).sample(pairs, len(pairs))
        self.texts = {"domain": pairs[:LINES], "general": text.test_general}
        self.name, self.directory, self.domain, self.work = name, directory, domain, work
        self.segments = [Pair(*pair) for pair in pairs[LINES:]]

    def run(self, fits: bool) -> dict[str, list[float]]:
        """Nats a token, BLEU and chrF, by system and text."""
        model = BaseModel.load(self.directory)
        place = self.work / f"{self.name} {self.domain}"
        shutil.rmtree(place, ignore_errors=True)
        with Memory.create(place, model) as memory:
            memory.import_pairs(self.segments, keys="now")
            smoothers: dict[str, Smoother | None] = {"base": None, "fixed": Smoother(SAFE_KNN).eval()}
            for label in (f"without {self.name}", f"without {_both(self.name)}"):
                smoothers[label] = Smoother.load(self.work / label)
            if fits:
                smoothers |= self._fitted(memory)
            return self._measure(model, memory, smoothers)

    def _fitted(self, memory: Memory) -> Iterator[tuple[str, Smoother]]:
        """Fits of the memory that begin at tuned kNN-MT, and at the universal smoother."""
        other = self.work / "model"  # which carries the smoother that has not seen it
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        for file in self.directory.iterdir():
            if file.name != SMOOTHER_DIRECTORY:
                (other / file.name).symlink_to(file.resolve())
        shutil.copytree(self.work / f"without {self.name}", other / SMOOTHER_DIRECTORY)
        for start in ("tuned", "carried"):
            fit(BaseModel.load(other), memory, FitSettings(start=start), directory=other / start)  # type: ignore[arg-type]
            yield f"fit, {start}", Smoother.load(other / start)

    def _measure(
        self, model: BaseModel, memory: Memory, smoothers: dict[str, Smoother | None]
    ) -> dict[str, list[float]]:
        entries = memory.entries()
        lookup, table, translator = (
            Lookup(model, memory, entries),
            KeyTable(entries, model.device),
            Translator(model, split_sentences=False),
        )
        results: dict[str, list[float]] = {}
        for kind, pairs in self.texts.items():
            cache = cache_pairs(lookup, pairs, over_fetch(SETTINGS.fit))
            sources, references = [s for s, _ in pairs], [t for _, t in pairs]
            for system, smoother in smoothers.items():
                if smoother is None:
                    nats, found = cache.base_nll, translator.translate(sources, method="base")
                else:
                    nats = evaluate(smoother, Source(cache, table), model.device).nll
                    found = []
                    if " or " not in system:
                        found = translator.translate(sources, memory=memory, smoother=smoother)
                row = [nats]
                if found:
                    texts = [translation.text for translation in found]
                    row += [m.corpus_score(texts, [references]).score for m in METRICS]
                results[f"{kind}, {system}"] = row
        return results


METRICS = (sacrebleu.BLEU(), sacrebleu.CHRF())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--data", "--catalogues", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--model", type=Path, action="append", required=True)
    parser.add_argument("--fits", action="store_true", help="fit the memories of French, too")
    options = parser.parse_args()
    print(describe(memory=MEMORY, lines=LINES, general=GENERAL))
    models = {directory.name: directory for directory in options.model}
    texts = {"en-de": german(options.data), "en-fr": french(options.catalogues)}
    texts |= {_turned(name): text.turned_round() for name, text in texts.items()}
    options.work.mkdir(parents=True, exist_ok=True)
    fit_all(models, texts, options.work)
    for name, directory in models.items():
        for domain in texts[name].tests:
            if not (kept := options.work / f"{name} {domain}.json").exists():
                test = Test(name, directory, domain, texts[name], options.work)
                kept.write_text(json.dumps(test.run(options.fits and "fr" in name)))
            for system, numbers in json.loads(kept.read_text()).items():
                print(f"{name}, {domain}: {system:32}", *(f"{number:8.3f}" for number in numbers), flush=True)
    print(*(metric.get_signature() for metric in METRICS), sep="\n")


if __name__ == "__main__":
    main()
