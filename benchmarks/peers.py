"""How fast is KSTER beside others that run the same checkpoint, and is it as good?

    python benchmarks/peers.py --model models/en-de --source test.en --reference test.de \
        --pairs train.en train.de --sizes 2000 20000

`transformers.generate`, CTranslate2 in float32 and int8 (`pip install ctranslate2`, needed here only; int8
also with batches side by side, as KSTER translates them), our base in several precisions, kNN-MT and KSTER
with memories of several sizes: the same sentences and beam, the systems taking turns in one run. For each
the best of the rounds: sentences a second in batches, milliseconds for a sentence alone, and BLEU, so that
nobody is fast by being wrong. Only ratios count:
the machine may be busy with other things. On a very busy one `--clock cpu` counts what the process has used
of the processors, all threads together, instead of the time that went by.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import sacrebleu
import torch

from kster import BaseModel, Memory, Translator
from kster.formats import Pair, read_moses
from kster.formats.encoding import text_lines
from machine import describe

LENGTH_PENALTY = 0.6
THREADS = torch.get_num_threads()
Work = Callable[[list[str]], list[str]]


@dataclass
class System:
    name: str
    work: Work
    best: float = float("inf")  # seconds for all lines in batches
    alone: float = float("inf")  # seconds for the lines that are translated one by one
    output: list[str] = field(default_factory=list)


class ByTransformers:
    """`generate`, with lines of about the same length together."""

    def __init__(self, options: argparse.Namespace, model: BaseModel) -> None:
        import transformers

        transformers.logging.set_verbosity_error()
        self.network: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            options.model, dtype=model.dtype
        )
        self.network = self.network.to(model.device).eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(options.model)
        self.options, self.model = options, model

    def __call__(self, lines: list[str]) -> list[str]:
        rows = self.model.tokenise_source(lines)
        found = [""] * len(lines)
        for chosen in by_length(rows, self.options.batch):
            inputs = self.tokenizer([lines[i] for i in chosen], return_tensors="pt", padding=True)
            with torch.inference_mode():
                ids = self.network.generate(
                    **inputs.to(self.model.device),
                    num_beams=self.options.beam,
                    length_penalty=LENGTH_PENALTY,
                    max_new_tokens=2 * len(rows[chosen[0]]) + 20,
                    early_stopping=False,
                    bad_words_ids=[[self.model.pad_id]],
                )
            texts = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
            for i, text in zip(chosen, texts, strict=True):
                found[i] = text
        return found


class ByCTranslate2:
    """Batches one after the other, on all threads; or side by side, each on one."""

    def __init__(
        self,
        options: argparse.Namespace,
        model: BaseModel,
        directory: Path,
        compute: str,
        *,
        side_by_side: bool = False,
    ) -> None:
        import ctranslate2

        converted = directory / "ctranslate2"
        if not converted.exists():
            ctranslate2.converters.TransformersConverter(str(options.model)).convert(str(converted))
        self.threads = THREADS if side_by_side else 1
        self.translator = ctranslate2.Translator(
            str(converted),
            compute_type=compute,
            intra_threads=THREADS // self.threads,
            inter_threads=self.threads,
        )
        self.options, self.model = options, model

    def __call__(self, lines: list[str]) -> list[str]:
        model = self.model
        rows = model.tokenise_source(lines)
        found = [""] * len(lines)
        at_once = self.options.batch if self.threads == 1 else len(rows)
        for chosen in by_length(rows, at_once):
            results = self.translator.translate_batch(
                [[model.token_text(token) for token in rows[i]] for i in chosen],
                max_batch_size=self.options.batch,
                beam_size=self.options.beam,
                length_penalty=LENGTH_PENALTY,
                max_decoding_length=2 * len(rows[chosen[0]]) + 20,
            )
            for i, result in zip(chosen, results, strict=True):
                found[i] = "".join(result.hypotheses[0]).replace("▁", " ").strip()
        return found


def by_length(rows: list[list[int]], batch: int) -> Iterator[list[int]]:
    """The numbers of lines, longest first, in batches."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    for start in range(0, len(order), batch):
        yield order[start : start + batch]


def ours(options: argparse.Namespace, translator: Translator, **given: Any) -> Work:
    def work(lines: list[str]) -> list[str]:
        found = translator.translate(
            lines, beam=options.beam, length_penalty=LENGTH_PENALTY, batch_sentences=options.batch, **given
        )
        return [translation.text for translation in found]

    return work


def memories(options: argparse.Namespace, model: BaseModel, directory: Path) -> Iterator[Memory]:
    """Those that were named, then one of each size, filled with the pairs."""
    for path in options.memory:
        yield Memory.open(path, model)
    for size in sorted(options.sizes) if options.pairs else ():
        pairs = (item for item in read_moses(*options.pairs) if isinstance(item, Pair))
        memory = Memory.create(directory / f"memory-{size}", model)
        began = time.perf_counter()
        memory.import_pairs(islice(pairs, size), keys="now")
        taken = time.perf_counter() - began
        print(f"imported {size:,} segments, {memory.entry_count:,} keys in {taken:.0f} s", flush=True)
        yield memory


def systems(options: argparse.Namespace, directory: Path) -> Iterator[System]:
    models = {
        name: BaseModel.load(options.model, device="cpu", precision=name) for name in options.precisions
    }
    model = models[options.precisions[0]]
    if "transformers" in options.peers:
        yield System("transformers.generate, float32", ByTransformers(options, model))
    for compute in ("float32", "int8"):
        if "ctranslate2" in options.peers:
            yield System(f"CTranslate2, {compute}", ByCTranslate2(options, model, directory, compute))
    if "ctranslate2" in options.peers and THREADS > 1:
        work = ByCTranslate2(options, model, directory, "int8", side_by_side=True)
        yield System("CTranslate2, int8, batches side by side", work)
    for one in models.values():
        translator = Translator(one, split_sentences=False, keep_codes=False)
        yield System(f"base, {one.precision}", ours(options, translator))
    translator = Translator(model, split_sentences=False, keep_codes=False)
    for memory in memories(options, model, directory):
        size = f"{memory.info().segments:,} segments, {memory.entry_count:,} keys"
        for method in ("knn", "kster"):
            name = {"knn": "kNN-MT", "kster": "KSTER"}[method]
            yield System(
                f"{name}, {model.precision}, {size}", ours(options, translator, memory=memory, method=method)
            )


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def measure(
    found: list[System], lines: list[str], rounds: int, alone: int, clock: Callable[[], float]
) -> None:
    """A short turn that is not counted, then rounds in which all take turns."""
    few = lines[:: max(1, len(lines) // alone)][:alone]
    for system in found:
        system.work(few[:4])
    for _ in range(rounds):
        for system in found:
            torch.set_num_threads(THREADS)  # peers that share OpenMP with torch may have changed it
            began = clock()
            system.output = system.work(lines)
            middle = clock()
            for line in few:
                system.work([line])
            ended = clock()
            system.best = min(system.best, middle - began)
            system.alone = min(system.alone, (ended - middle) / len(few))
            print(
                f"{system.name}: {middle - began:.1f} s, {ended - middle:.1f} s", file=sys.stderr, flush=True
            )


def table(found: list[System], references: list[str] | None, lines: int) -> str:
    base = next(system for system in found if system.name.startswith("base"))
    rows = [
        "| system | sentences/s | × base | alone, ms | × base | BLEU |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for system in found:
        bleu = f"{sacrebleu.corpus_bleu(system.output, [references]).score:.1f}" if references else "–"
        rows.append(
            f"| {system.name} | {lines / system.best:.1f} | {base.best / system.best:.2f} "
            f"| {system.alone * 1000:.0f} | {base.alone / system.alone:.2f} | {bleu} |"
        )
    return "\n".join(rows)


def main() -> None:
    options = arguments()
    lines = [line.strip() for line in islice(text_lines(options.source), options.lines) if line]
    references = None
    if options.reference:
        references = [line or "" for line in islice(text_lines(options.reference), options.lines)]
    with tempfile.TemporaryDirectory() as directory:
        found = list(systems(options, Path(directory)))
        measure(found, lines, options.rounds, options.alone, CLOCKS[options.clock])
    peers = [f"{name} {version(name)}" for name in options.peers]
    facts = describe(
        model=options.model,
        source=options.source.name,
        lines=len(lines),
        batch=options.batch,
        beam=options.beam,
        rounds=options.rounds,
        clock=options.clock,
        peers=" ".join(peers) or "none",
    )
    print(f"{facts}\n\n{table(found, references, len(lines))}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, type=Path, help="sentences, one a line; perhaps .xz")
    parser.add_argument("--reference", type=Path, help="their translations, for BLEU")
    parser.add_argument("--memory", action="append", default=[], help="a memory to search; may be repeated")
    parser.add_argument("--pairs", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help="to fill memories")
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_000, 20_000], help="segments of them")
    parser.add_argument("--peers", nargs="*", default=["transformers", "ctranslate2"])
    parser.add_argument("--precisions", nargs="+", default=["auto", "int8", "float32"])
    parser.add_argument("--lines", type=int, default=96)
    parser.add_argument("--alone", type=int, default=8, help="lines that are also translated one by one")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu: processor time used")
    return parser.parse_args()


if __name__ == "__main__":
    main()
