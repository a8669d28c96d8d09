"""How fast is decoding, against `transformers.generate` and with a memory?

    python benchmarks/decoding_speed.py --model models/en-de --source examples/heldout.en [--memory DIR]

Everything is timed in one run on the same sentences and batches: the best of a few rounds, rounds of the
systems taking turns. What counts are the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

from kster import BaseModel, Memory, Translator
from machine import describe


def generate(model: BaseModel, lines: list[str], beam: int, batch: int) -> list[str]:
    """The same beam search by `transformers`, batched by length as ours."""
    order = sorted(range(len(lines)), key=lambda i: -len(model.tokenise_source([lines[i]])[0]))
    found = [""] * len(lines)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        inputs = model.tokenizer([lines[i] for i in chosen], return_tensors="pt", padding=True)
        limit = 2 * inputs["input_ids"].shape[1] + 20
        with torch.inference_mode():
            ids = model.network.generate(
                **inputs.to(model.device),
                num_beams=beam,
                length_penalty=0.6,
                max_new_tokens=limit,
                early_stopping=False,
                bad_words_ids=[[model.pad_id]],
            )
        for i, row in zip(chosen, ids.tolist(), strict=True):
            found[i] = model.detokenise([row])[0]
    return found


def timed(work: Callable[[], list[str]]) -> tuple[float, list[str]]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began, result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, type=Path, help="sentences, one a line")
    parser.add_argument("--memory", help="also time kNN-MT and KSTER with this memory")
    parser.add_argument("--lines", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    model = BaseModel.load(options.model)
    lines = [x for x in options.source.read_text(encoding="utf-8").splitlines() if x][: options.lines]
    memory = Memory.open(options.memory, model) if options.memory else None
    translator = Translator(model, memory)

    def ours(method: str) -> Callable[[], list[str]]:
        def work() -> list[str]:
            found = translator.translate(
                lines,
                method=method,  # type: ignore[arg-type]
                beam=options.beam,
                batch_sentences=options.batch,
            )
            return [str(translation) for translation in found]

        return work

    systems = {"base": ours("base"), "generate": lambda: generate(model, lines, options.beam, options.batch)}
    if memory is not None:
        systems |= {"knn": ours("knn"), "kster": ours("kster")}
    print(describe(model=options.model, lines=len(lines), batch=options.batch, beam=options.beam))
    if memory is not None:
        print(f"memory: {memory.entry_count:,} keys")
    best: dict[str, float] = {}
    outputs: dict[str, list[str]] = {}
    for _ in range(options.rounds):
        for name, work in systems.items():
            seconds, outputs[name] = timed(work)
            best[name] = min(seconds, best.get(name, seconds))
    same = sum(a == b for a, b in zip(outputs["base"], outputs["generate"], strict=True))
    print(f"base and generate agree on {same} of {len(lines)} translations")
    for name, seconds in best.items():
        print(f"{name:10} {seconds:7.2f} s   {seconds / best['base']:5.2f} × base")


if __name__ == "__main__":
    main()
