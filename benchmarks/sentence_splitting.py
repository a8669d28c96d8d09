"""Are the sentences of a line better translated one by one, or as one? With and without a memory.

    python benchmarks/sentence_splitting.py DATA [CASE …] [--model models/en-de] [--lines 100]

DATA is a directory of corpora, `<corpus>/<split>.<language>.xz`, as the experiments read it. Prints BLEU
and chrF2 of whole and of split lines, and how probable such a difference is by chance (paired bootstrap). The
smoother is the one that the model carries; nothing is fitted.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from experiments.data import Corpora, Pairs, Slice

from kster import BaseModel, Memory, Pair, Translator
from kster.evaluation import evaluate
from kster.text.sentences import sentences
from kster.translation import Method
from machine import describe

METHODS: tuple[Method, ...] = ("base", "kster")
COLUMNS = (
    *("lines of several", "segments of several", "method"),
    *("BLEU whole", "split", "p", "chrF2 whole", "split", "p"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """What to translate and with which memory.

    join: so many neighbouring pairs become one. several: only those whose source has several sentences.
    """

    text: Slice
    memory: Slice | None = None
    join: int = 1
    several: bool = False
    join_memory: int = 1
    most_segments: int | None = None


LAW, LAW_MEMORY = Slice("law", "dev", 500, first=1500), Slice("law", "dev", 1500)
CASES = {
    "news": Case(Slice("newstest", "newstest2014"), join=2),
    "news, as it is": Case(Slice("newstest", "newstest2014")),
    "law": Case(LAW, LAW_MEMORY, join=2),
    "law, segments joined": Case(LAW, LAW_MEMORY, join=2, join_memory=2),
    "it": Case(Slice("it", "dev"), Slice("it", "train", 3000), several=True),
    "it, segments of several": Case(
        Slice("it", "dev"), Slice("it", "train"), several=True, most_segments=1500
    ),
    "koran": Case(Slice("koran", "dev"), Slice("koran", "train", 2000), several=True),
    "example, as it is": Case(Slice("example", "test"), Slice("example", "train")),
    "example": Case(Slice("example", "test"), Slice("example", "train"), join=2),
    "example, segments joined": Case(
        Slice("example", "test"), Slice("example", "train"), join=2, join_memory=2
    ),
}


def joined(pairs: Pairs, count: int) -> Pairs:
    """Each `count` pairs as one; what is left over at the end is left out."""
    groups = [pairs[i : i + count] for i in range(0, len(pairs) - count + 1, count)]
    return [(" ".join(s for s, _ in group), " ".join(t for _, t in group)) for group in groups]


def of_several(pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if len(sentences(pair[0])) > 1]


def text_of(case: Case, corpora: Corpora, lines: int) -> Pairs:
    pairs = joined(corpora.pairs(case.text), case.join)
    return (of_several(pairs) if case.several else pairs)[:lines]


def segments_of(case: Case, corpora: Corpora) -> Pairs:
    if case.memory is None:
        return []
    pairs = joined(corpora.pairs(case.memory), case.join_memory)
    return of_several(pairs)[: case.most_segments] if case.most_segments else pairs


def measure(name: str, case: Case, corpora: Corpora, translator: Translator, lines: int) -> None:
    text, segments = text_of(case, corpora, lines), segments_of(case, corpora)
    sources, references = [source for source, _ in text], [target for _, target in text]
    split_lines = len(of_several(text))
    segments_of_several = len(of_several(segments))
    with (
        tempfile.TemporaryDirectory() as scratch,
        Memory.create(Path(scratch) / "m", translator.model) as memory,
    ):
        memory.import_pairs(
            (Pair(source, target) for source, target in segments if source and target), keys="now"
        )
        for method in METHODS if segments else METHODS[:1]:
            found = {
                kind: [
                    translation.text
                    for translation in translator.translate(
                        sources, memory=memory, method=method, split_sentences=kind == "split"
                    )
                ]
                for kind in ("whole", "split")
            }
            report = evaluate(found, references, target_lang=translator.model.target_lang)
            cells = [
                name,
                f"{split_lines} of {len(text)}",
                f"{segments_of_several} of {len(segments)}",
                method,
            ]
            for metric in report.signatures:
                whole, split = (report[kind].metrics[metric] for kind in ("whole", "split"))
                cells += [f"{whole.score:.1f}", f"{split.score:.1f}", f"{split.p_value:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(map(repr, CASES))}")
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--lines", type=int, default=100, help="lines of a case at most")
    options = parser.parse_args()
    unknown = set(options.cases) - CASES.keys()
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there is {', '.join(map(repr, CASES))}")
    model = BaseModel.load(options.model)
    corpora = Corpora(options.data, (model.source_lang or "", model.target_lang or ""))
    translator = Translator(model)
    print(describe(model=options.model, lines=options.lines, beam=4, length_penalty=0.6))
    print(f"\n| text | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
    for name in options.cases or CASES:
        measure(name, CASES[name], corpora, translator, options.lines)


if __name__ == "__main__":
    main()
