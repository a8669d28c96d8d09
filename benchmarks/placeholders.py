"""Do placeholders, tags and addresses come back exactly, and what does keeping them cost or gain?

    python benchmarks/placeholders.py DATA [--corpus it] [--split train] [--strings 1000] [--memory 0]

DATA is a directory of corpora, `<corpus>/<split>.<language>.xz`. Takes strings of a corpus that have codes,
spread over all of it, and whose references have the same ones. Prints for translation with and without
protection the share of strings with exactly the codes of their source, how many of those had to be repaired,
BLEU and chrF2.
--memory: also with a memory of so many other such pairs of the corpus.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import sacrebleu
from experiments.data import Corpora, Pairs, Slice

from kster import BaseModel, Memory, Pair, Translator
from kster.text.characters import printable
from kster.text.recognition import are_kept, recognise
from machine import describe

LONGEST = 300  # characters


def with_codes(pairs: Pairs, count: int) -> Pairs:
    """So many pairs with codes and words around them, each source once, evenly from all there are."""
    found: dict[str, str] = {}
    for source, target in pairs:
        text = recognise(source)
        usable = len(source) <= LONGEST and printable(source + target) == source + target
        if text.codes and text.is_prose and usable and are_kept(source, target):
            found.setdefault(source, target)
    chosen = list(found.items())
    return chosen[:: max(len(chosen) // count, 1)][:count]


def row(name: str, translator: Translator, pairs: Pairs, memory: Memory | None) -> str:
    started = time.perf_counter()
    done = translator.translate([source for source, _ in pairs], memory=memory)
    seconds = time.perf_counter() - started
    exact = sum(are_kept(source, own.text) for (source, _), own in zip(pairs, done, strict=True))
    for (source, _), own in zip(pairs, done, strict=True):
        if translator.keep_codes and not are_kept(source, own.text):
            print(f"not exact: {source!r} → {own.text!r}")
    repaired = sum(own.repaired for own in done)
    texts = [own.text for own in done]
    references = [[target for _, target in pairs]]
    bleu, chrf = sacrebleu.corpus_bleu(texts, references), sacrebleu.corpus_chrf(texts, references)
    shares = f"{exact / len(pairs):.1%} | {repaired / len(pairs):.1%}"
    return f"| {name} | {shares} | {bleu.score:.1f} | {chrf.score:.1f} | {seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpus", default="it")
    parser.add_argument("--split", default="train")
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--strings", type=int, default=1000)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--lines", type=int, default=100_000, help="of the corpus that are looked through")
    parser.add_argument("--protected", action="store_true", help="only with protection")
    parser.add_argument("--show", type=int, default=0, help="print so many repaired strings")
    wanted = parser.parse_args()
    model = BaseModel.load(wanted.model)
    pairs = Corpora(wanted.data, ("en", "de")).pairs(Slice(wanted.corpus, wanted.split, wanted.lines))
    chosen = with_codes(pairs, wanted.strings + wanted.memory)
    texts, examples = chosen[:: max(len(chosen) // wanted.strings, 1)][: wanted.strings], []
    if wanted.memory:
        own = dict(texts)
        examples = [pair for pair in chosen if pair[0] not in own][: wanted.memory]
    settings = {
        "corpus": wanted.corpus,
        "split": wanted.split,
        "strings": len(texts),
        "memory": len(examples),
    }
    print(describe(model=wanted.model, **settings), "\n")
    print("| | exact codes | repaired | BLEU | chrF2 | seconds |\n|---|---|---|---|---|---|")
    kept, bare = Translator(model), Translator(model, keep_codes=False)
    if not wanted.protected:
        print(row("as it is", bare, texts, None))
    print(row("protected", kept, texts, None), flush=True)
    if examples:
        with tempfile.TemporaryDirectory() as place, Memory.create(f"{place}/memory", model) as memory:
            memory.add_many([Pair(*pair) for pair in examples])
            if not wanted.protected:
                print(row("as it is, with a memory", bare, texts, memory))
            print(row("protected, with a memory", kept, texts, memory), flush=True)
    if wanted.show:
        done = kept.translate([source for source, _ in texts])
        for translation in [own for own in done if own.repaired][: wanted.show]:
            print(f"\n{translation.source}\n{translation.text}")


if __name__ == "__main__":
    main()
