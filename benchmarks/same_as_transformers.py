"""Does KSTER without a memory translate a test set as `transformers` does, line by line?

    python benchmarks/same_as_transformers.py models/en-de --source newstest2014.en

Both load the checkpoint by themselves and go from text to text with the same beam, length penalty and limits.
Where lines differ, both scores say why: rounding decides between hypotheses that are as good as each other (a
tie), or one search found something better. Exits with status 1 when the other search found something better.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

from kster import BaseModel, Translator
from kster.formats.encoding import text_lines
from kster.translation.translator import LONGEST_PIECE
from machine import describe

TIE = 1e-3  # of a length-normalised log-probability


class ByTransformers:
    """The checkpoint as `transformers` opens it."""

    def __init__(self, options: argparse.Namespace, device: torch.device) -> None:
        self.beam, self.length_penalty, self.batch = options.beam, options.length_penalty, options.batch
        languages = {"src_lang": options.source_lang, "tgt_lang": options.target_lang}
        given = {name: language for name, language in languages.items() if language}
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(options.model, **given)
        network = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            options.model, dtype=getattr(torch, options.dtype)
        )
        self.network = network.to(device).eval()

    def translate(self, lines: list[str], translator: Translator) -> list[tuple[str, float]]:
        """Text and score of each line. Lines of one length go together, so that each gets its own limit."""
        by_length: dict[int, list[int]] = defaultdict(list)
        ids = self.tokenizer(lines)["input_ids"]
        for i, row in enumerate(ids):
            by_length[len(row)].append(i)
        found: dict[int, tuple[str, float]] = {}
        for length, members in sorted(by_length.items()):
            limit = translator.longest_translation(length)
            for start in range(0, len(members), self.batch):
                chosen = members[start : start + self.batch]
                answers = self._generate([ids[i] for i in chosen], limit, translator.model)
                found |= dict(zip(chosen, answers, strict=True))
        return [found[i] for i in range(len(lines))]

    def _generate(self, ids: list[list[int]], limit: int, model: BaseModel) -> Iterator[tuple[str, float]]:
        prefix = model.layout.prefix
        with torch.inference_mode():
            output: Any = self.network.generate(
                input_ids=torch.tensor(ids, device=self.network.device),
                num_beams=self.beam,
                length_penalty=self.length_penalty,
                max_length=limit + len(prefix),
                early_stopping=False,
                do_sample=False,
                bad_words_ids=[[model.pad_id]],
                forced_bos_token_id=prefix[1] if len(prefix) > 1 else None,
                return_dict_in_generate=True,
                output_scores=True,
            )
        texts = self.tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        return zip(texts, output.sequences_scores.tolist(), strict=True)


def main() -> int:
    options = arguments()
    model = BaseModel.load(
        options.model,
        device=options.device,
        precision=options.dtype,
        source_lang=options.source_lang,
        target_lang=options.target_lang,
    )
    translator = Translator(model, split_sentences=False, keep_codes=False)  # as `generate`
    lines = [line for line in text_lines(options.source) if line is not None and line.strip()]
    lines = [line.strip() for line in lines][: options.limit]
    # A longer line is cut into sentences, which `generate` does not do.
    whole = [line for line in lines if len(model.tokenise_source([line])[0]) <= LONGEST_PIECE]
    print(
        describe(
            model=options.model,
            source=options.source.name,
            lines=len(lines),
            device=model.device,
            dtype=options.dtype,
            beam=options.beam,
            length_penalty=options.length_penalty,
        )
    )
    if left_out := len(lines) - len(whole):
        print(f"{left_out} lines of more than {LONGEST_PIECE} tokens are left out")
    began = time.perf_counter()
    ours = translator.translate(
        whole, beam=options.beam, length_penalty=options.length_penalty, batch_sentences=options.batch
    )
    middle = time.perf_counter()
    theirs = ByTransformers(options, model.device).translate(whole, translator)
    print(f"KSTER {middle - began:.1f} s, transformers {time.perf_counter() - middle:.1f} s")
    return report(whole, [(t.text, t.score) for t in ours], theirs)


def report(lines: list[str], ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> int:
    """Prints every difference and a summary; status 1 when `generate` translated a line better."""
    identical = ties = better = worse = 0
    largest = 0.0
    for number, ((text, score), (other, other_score)) in enumerate(zip(ours, theirs, strict=True), 1):
        largest = max(largest, abs(score - other_score)) if text == other else largest
        if text == other:
            identical += 1
            continue
        gain = score - other_score
        verdict = "a tie" if abs(gain) < TIE else ("ours is better" if gain > 0 else "theirs is better")
        ties, better, worse = ties + (abs(gain) < TIE), better + (gain >= TIE), worse + (gain <= -TIE)
        print(f"\nline {number}: {lines[number - 1]}\n  {score:.6f}  {text}\n  {other_score:.6f}  {other}")
        print(f"  {verdict}")
    print(
        f"\n{identical} of {len(lines)} lines identical (scores within {largest:.1e}); of the others "
        f"{ties} are ties, {better} ours are better, {worse} theirs are better"
    )
    return 1 if worse else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--source", required=True, type=Path, help="a text, one a line, perhaps .gz or .xz")
    parser.add_argument("--limit", type=int, help="only so many lines")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--source-lang")
    parser.add_argument("--target-lang")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
