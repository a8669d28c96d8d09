"""How fast is decoding, against `transformers.generate`, as CUDA graphs, and with memories of many sizes?

    python benchmarks/decoding_speed.py --model models/en-de --source examples/heldout.en
    python benchmarks/decoding_speed.py --model models/en-de --source test.en \
        --pairs train.en train.de --sizes 1000 10000 100000

Everything is timed in one run on the same sentences and batches: the best of a few rounds after one that is
not counted, the systems taking turns. What counts are the ratios, not the seconds. Memories can also be named
with --memory. KSTER's networks are as they begin: time does not depend on what they have learned.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

from kster import BaseModel, Memory, Translator
from kster.formats import Pair, read_moses
from kster.formats.encoding import text_lines
from kster.model.step import StepDecoder
from kster.smoothing import Smoother, SmootherSettings
from machine import describe
from peers import ByTransformers

Work = Callable[[], list[str]]

K = 16  # neighbours, for kNN-MT as for KSTER


class Bench:
    """The same lines through every system."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.model = BaseModel.load(options.model, device=options.device, precision=options.precision)
        lines = (line for line in text_lines(options.source) if line and line.strip())
        self.lines = list(islice(lines, options.lines))
        by_transformers = ByTransformers(options, self.model)
        self._generate = lambda: by_transformers(self.lines)
        self.translator = Translator(self.model, split_sentences=False, keep_codes=False)  # as `generate`
        self.launching = Translator(self.model, split_sentences=False, keep_codes=False)
        self.launching.decoder = StepDecoder(self.model, static=False)
        fixed = SmootherSettings(
            k=K, learn_bandwidth=False, learn_weight=False, relative=True, bandwidth=0.02, mixing_weight=0.3
        )
        learned = SmootherSettings(
            k=K, dimension=self.model.dimension, features="confidence", exact_match=0.98
        )
        self.smoothers = {
            name: Smoother(settings).eval().to(self.model.device)
            for name, settings in {
                "knn": fixed,
                "kster": learned,
                "kster, learned distance": replace(learned, metric=128),
            }.items()
        }

    @property
    def on_gpu(self) -> bool:
        return self.model.device.type == "cuda"

    def base_systems(self) -> dict[str, Work]:
        systems = {"base": self._ours(self.translator), "generate": self._generate}
        if self.on_gpu:
            systems["base, no CUDA graphs"] = self._ours(self.launching)
        return systems

    def memory_systems(self, memory: Memory) -> dict[str, Work]:
        return {
            name: self._ours(self.translator, memory, smoother) for name, smoother in self.smoothers.items()
        }

    def _ours(
        self, translator: Translator, memory: Memory | None = None, smoother: Smoother | None = None
    ) -> Work:
        def work() -> list[str]:
            found = translator.translate(
                self.lines,
                memory=memory,
                smoother=smoother,
                beam=self.options.beam,
                batch_sentences=self.options.batch,
            )
            return [str(translation) for translation in found]

        return work

    def measure(self, systems: dict[str, Work]) -> tuple[dict[str, float], dict[str, list[str]]]:
        """The shortest time of each, and what each answered."""
        best: dict[str, float] = {}
        outputs: dict[str, list[str]] = {}
        for turn in range(self.options.rounds + 1):
            for name, work in systems.items():
                self._wait()
                began = time.perf_counter()
                outputs[name] = work()
                self._wait()
                if turn > 0:
                    best[name] = min(time.perf_counter() - began, best.get(name, float("inf")))
        return best, outputs

    def step_times(self, sentences: int, steps: int = 64) -> dict[str, float]:
        """Milliseconds of one decoding step alone, with `sentences` × beam rows."""
        sources = (self.model.tokenise_source(self.lines) * sentences)[:sentences]
        times = {}
        decoders = {"step": self.translator.decoder, "step, no CUDA graphs": self.launching.decoder}
        for name, decoder in decoders.items() if self.on_gpu else [("step", self.translator.decoder)]:
            for _ in range(3):
                state = decoder.start(sources, self.options.beam, steps)
                tokens = decoder.first_tokens(sentences * self.options.beam)
                parents = torch.arange(len(tokens), device=self.model.device)
                self._wait()
                began = time.perf_counter()
                for _ in range(steps):
                    decoder.step(state, tokens, parents)
                self._wait()
                times[name] = (time.perf_counter() - began) / steps * 1000
                decoder.finish(state)
        return times

    def _wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()


def memories(options: argparse.Namespace, model: BaseModel, directory: Path) -> Iterator[Memory]:
    """Those that were named; or one that is filled with pairs, as it grows."""
    for path in options.memory:
        with Memory.open(path, model) as memory:
            yield memory
    if options.pairs:
        pairs = (item for item in read_moses(*options.pairs) if isinstance(item, Pair))
        with Memory.create(directory / "memory", model) as memory:
            for wanted in sorted(options.sizes):
                memory.import_pairs(islice(pairs, wanted - memory.info().segments), keys="now")
                yield memory


def show(best: dict[str, float], base: float, lines: int) -> None:
    for name, seconds in best.items():
        print(f"{name:24} {seconds:8.2f} s {lines / seconds:9.1f} sentences/s {seconds / base:7.2f} × base")


def main() -> None:
    options = arguments()
    bench = Bench(options)
    print(
        describe(
            model=options.model,
            source=options.source.name,
            lines=len(bench.lines),
            device=bench.model.device,
            precision=bench.model.precision,
            batch=options.batch,
            beam=options.beam,
            k=K,
            rounds=options.rounds,
        )
    )
    best, outputs = bench.measure(bench.base_systems())
    show(best, best["base"], len(bench.lines))
    for name in best:
        same = sum(a == b for a, b in zip(outputs["base"], outputs[name], strict=True))
        if name != "base":
            print(f"base and {name} agree on {same} of {len(bench.lines)} translations")
    for sentences in options.step_sentences:
        times = bench.step_times(sentences).items()
        shown = ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in times)
        print(f"{sentences} sentences × beam {options.beam}: {shown}")
    with tempfile.TemporaryDirectory() as directory:
        for memory in memories(options, bench.model, Path(directory)):
            info = memory.info()
            systems = {"base": bench.base_systems()["base"], **bench.memory_systems(memory)}
            best, _ = bench.measure(systems)
            print(f"\nmemory of {info.segments:,} segments, {memory.entry_count:,} keys")
            show(best, best["base"], len(bench.lines))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, type=Path, help="sentences, one a line")
    parser.add_argument("--memory", action="append", default=[], help="a memory to search; may be repeated")
    parser.add_argument("--pairs", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="to fill a memory")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000], help="segments of it")
    parser.add_argument("--lines", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--step-sentences", nargs="*", type=int, default=[1, 64])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    return parser.parse_args()


if __name__ == "__main__":
    main()
