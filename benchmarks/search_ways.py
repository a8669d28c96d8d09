"""Which way of searching a memory gives better translations, and at what cost?

    python benchmarks/search_ways.py koran.memory --source koran/dev.en.xz --reference koran/dev.de.xz

Translates held-out lines with the same memory, searched in several ways: all entries exactly, and shortlists
of several lengths, named SEGMENTS/ENTRIES. Base goes first. Prints BLEU, chrF and the length as a share of
the reference's, processor seconds for all lines in batches, and milliseconds for one of a few lines alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import sacrebleu

from kster import Memory, Translator
from kster.formats import Pair, read_moses
from kster.memory import SearchSettings
from machine import describe

WAYS = ("exact", "256/1024", "256/2048", "256/4096", "256/8192", "256/16384", "64/4096", "1024/16384")


def settings_of(way: str) -> SearchSettings:
    if way == "exact":
        return SearchSettings(mode="exact")
    segments, entries = map(int, way.split("/"))
    return SearchSettings(mode="shortlist", shortlist=segments, shortlist_entries=entries)


def lines_of(source: Path, reference: Path, count: int) -> tuple[list[str], list[str]]:
    """So many lines from all over the files."""
    pairs = [pair for pair in read_moses(source, reference) if isinstance(pair, Pair)]
    chosen = pairs[:: max(1, len(pairs) // count)][:count]
    return [pair.source for pair in chosen], [pair.target for pair in chosen]


def systems(options: argparse.Namespace) -> Iterator[tuple[str, Translator]]:
    with Memory.open(options.memory) as memory:
        model = memory.model
        print(f"{memory.segment_count():,} segments, {memory.entry_count:,} entries", flush=True)
    yield "base", Translator(model, split_sentences=False)
    for way in options.ways:
        with Memory.open(options.memory, model, search=settings_of(way)) as memory:
            yield way, Translator(model, memory=memory, split_sentences=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=200, help="to translate (default: %(default)s)")
    parser.add_argument("--alone", type=int, default=8, help="… one by one (default: %(default)s)")
    parser.add_argument("--ways", nargs="+", default=WAYS, help="(default: all)")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    options = parser.parse_args()
    shown = ("memory", "source", "lines", "alone", "beam", "length_penalty")
    print(describe(**{name: getattr(options, name) for name in shown}))
    sources, references = lines_of(options.source, options.reference, options.lines)
    few = sources[:: max(1, len(sources) // options.alone)][: options.alone]
    how = {"beam": options.beam, "length_penalty": options.length_penalty}
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    print("\n| way | BLEU | chrF | length | batches, CPU s | alone, CPU ms |\n|---|---:|---:|---:|---:|---:|")
    for way, translator in systems(options):
        translator.translate(few[:2], **how)  # warms up
        began = time.process_time()
        output = [translation.text for translation in translator.translate(sources, **how)]
        middle = time.process_time()
        for line in few:
            translator.translate(line, **how)
        alone = (time.process_time() - middle) / len(few)
        score = bleu.corpus_score(output, [references])
        print(
            f"| {way} | {score.score:.1f} | {chrf.corpus_score(output, [references]).score:.1f} "
            f"| {score.sys_len / score.ref_len:.2f} | {middle - began:.1f} | {1000 * alone:.0f} |",
            flush=True,
        )
    print(f"\n{bleu.get_signature()}\n{chrf.get_signature()}")


if __name__ == "__main__":
    main()
