"""BLEU of test sets, and of news: the base model, a memory that nobody has fitted, and a fitted one.

    python benchmarks/domains.py --data DIR --work DIR --model models/en-de --domain koran --domain law

--data: <corpus>/<split>.<language>.xz. --work: memories and translations are kept there, so that a run can be
stopped and repeated. Keys are made when they are needed. Pairs that stand word for word in the test set are
left out of the memories. The fit is that of `kster fit` with development text held out of the memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import sacrebleu

from corpora import pairs_of
from kster import BaseModel, Memory, Translator
from kster.files import new_directory
from kster.formats import Pair
from kster.smoothing import FitSettings, Smoother, fit
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from machine import describe

MEMORIES = {"koran": "koran/train", "law": "law/dev", "it": "it/train", "docs_adobe": "docs_adobe/train"}
EVERY = {"it": 5, "docs_adobe": 8}  # of so many pairs one is in the memory
AT_ONCE = 100  # lines translated between two looks at what is kept


class Domain:
    """A model and a memory of one domain."""

    def __init__(self, model: BaseModel, name: str, options: argparse.Namespace) -> None:
        languages = (str(model.source_lang), str(model.target_lang))
        data, self.model, self.name = options.data, model, name
        self.directory = options.work / f"{languages[0]}-{languages[1]}" / name
        self.directory.mkdir(parents=True, exist_ok=True)
        tests = {"test": pairs_of(data, f"{name}/test", languages)}
        tests["news"] = pairs_of(data, "newstest/newstest2014", languages, options.news)
        held_out = {(pair.source, pair.target) for pair in tests["test"]}
        tests["test"] = tests["test"][: options.lines]
        self.tests, self.tokens, self.steps = tests, options.tokens, options.steps
        train = pairs_of(data, MEMORIES[name], languages)[:: EVERY.get(name, 1)]
        self.pairs = [pair for pair in train if (pair.source, pair.target) not in held_out]

    def run(self, penalties: list[float]) -> Iterator[str]:
        """A line of the table for each system and text."""
        with self._memory() as memory:
            fitted = self.directory / "fit"
            if not (fitted / "fit.json").exists():
                settings = FitSettings(max_tokens=self.tokens, steps=self.steps)
                fit(self.model, memory, settings, caches=self.directory / "caches", directory=fitted)
            smoother = Smoother.load(fitted)
            beta = float(smoother.similarity.beta) if smoother.similarity is not None else 0.0
            yield f"{self.name}: β {beta:.2f}, length penalty {smoother.settings.length_penalty}"
            carried = Smoother.load(self.model.directory / SMOOTHER_DIRECTORY)
            systems = {"base": None, "unfitted": carried, "fitted": smoother}
            for text, pairs in self.tests.items():
                for system, own in systems.items():
                    if not (text == "news" and system == "unfitted"):
                        yield self._scored(text, pairs, system, own, memory, None)
                for penalty in penalties if text == "test" else ():
                    yield self._scored(text, pairs, f"fitted, {penalty}", smoother, memory, penalty)

    def _memory(self) -> Memory:
        place = self.directory / "memory"
        if not place.exists():
            with new_directory(place) as part, Memory.create(part, self.model) as memory:
                memory.import_pairs(self.pairs, keys="later")
        return Memory.open(place, self.model)

    def _scored(
        self,
        text: str,
        pairs: list[Pair],
        system: str,
        smoother: Smoother | None,
        memory: Memory,
        penalty: float | None,
    ) -> str:
        shared = text == "news" and smoother is None  # the same with every memory
        kept = (self.directory.parent if shared else self.directory) / f"{text}.{system}.txt"
        done = kept.read_text().split("\n")[:-1] if kept.exists() else []
        translator = Translator(self.model, split_sentences=False)
        for first in range(len(done), len(pairs), AT_ONCE):
            sources = [pair.source for pair in pairs[first : first + AT_ONCE]]
            if smoother is None:
                made = translator.translate(sources, method="base")
            else:
                made = translator.translate(sources, memory=memory, smoother=smoother, length_penalty=penalty)
            done += [translation.text.replace("\n", " ") for translation in made]
            kept.write_text("".join(line + "\n" for line in done))
        done, references = done[: len(pairs)], [[pair.target for pair in pairs]]
        bleu, chrf = BLEU.corpus_score(done, references), CHRF.corpus_score(done, references)
        name = f"{self.directory.parent.name}, {self.name}, {text} ({len(pairs)})"
        return f"{name:36} {system:14} {bleu.score:6.1f} {chrf.score:6.1f} {bleu.sys_len / bleu.ref_len:6.2f}"


BLEU, CHRF = sacrebleu.BLEU(), sacrebleu.CHRF()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--data", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--domain", action="append", choices=list(MEMORIES), required=True)
    parser.add_argument("--lines", type=int, default=2_000, help="of a test (default: %(default)s)")
    parser.add_argument("--news", type=int, default=1_000, help="lines of news (default: %(default)s)")
    parser.add_argument("--tokens", type=int, help="that a fit learns from (default: as `kster fit`)")
    parser.add_argument(
        "--steps", type=int, default=FitSettings().steps, help="of a fit (default: %(default)s)"
    )
    parser.add_argument("--penalty", type=float, action="append", default=[], help="tried with the fit, too")
    options = parser.parse_args()
    print(describe(lines=options.lines, news=options.news, tokens=options.tokens, steps=options.steps))
    for name in options.model:
        model = BaseModel.load(name)
        for domain in options.domain:
            for line in Domain(model, domain, options).run(options.penalty):
                print(line, flush=True)
    print(BLEU.get_signature(), CHRF.get_signature(), sep="\n")


if __name__ == "__main__":
    main()
