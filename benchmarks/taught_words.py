"""What do taught words (`translation/taught_words.py`) change in ordinary text, and what do they cost?

    python benchmarks/taught_words.py DATA --model models/en-de --domain docs_adobe --domain law

Every domain: a memory of its training text (`dev` of Law, which has none) and its test lines; and news with
the example's memory. The smoother that the model carries, with and without taught words, in turns. DATA has
`<set>/<split>.{en,de}.xz`. Time is processor time: of sentences whose examples were never asked for, and
again.
"""

from __future__ import annotations

import argparse
import lzma
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time

import sacrebleu

from kster import Memory, Pair, Translation, Translator
from kster.formats import read_pairs
from kster.translation.taught_words import TaughtWords
from machine import describe

ROOT = Path(__file__).parents[1]


@contextmanager
def without_taught_words() -> Iterator[None]:
    asked = TaughtWords.missing
    TaughtWords.missing = lambda *_: {}  # type: ignore[method-assign]
    yield
    TaughtWords.missing = asked  # type: ignore[method-assign]


def lines(directory: Path, split: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    packed = [(directory / f"{split}.{side}.xz").read_bytes() for side in languages]
    sides = [lzma.decompress(side).decode().split("\n") for side in packed]
    return [(source.strip(), target.strip()) for source, target in zip(*sides, strict=True)]


def scores(made: list[Translation], references: list[str]) -> str:
    texts = [one.text for one in made]
    bleu, chrf = sacrebleu.corpus_bleu(texts, [references]), sacrebleu.corpus_chrf(texts, [references])
    return f"{bleu.score:5.1f} / {chrf.score:4.1f}"


def compare(translator: Translator, name: str, taught: list[Pair], asked: list[tuple[str, str]]) -> None:
    sources, references = [source for source, _ in asked], [target for _, target in asked]
    seconds, made = [], []
    with tempfile.TemporaryDirectory() as scratch, Memory.create(f"{scratch}/m", translator.model) as memory:
        memory.import_pairs(taught, keys="later")
        with without_taught_words():
            translator.translate(sources, memory=memory)  # which makes the keys
        for ways in (without_taught_words(), None, None):
            began = process_time()
            if ways is None:
                made.append(translator.translate(sources, memory=memory))
            else:
                with ways:
                    made.append(translator.translate(sources, memory=memory))
            seconds.append(process_time() - began)
    before, after = made[0], made[-1]
    changed = [i for i in range(len(asked)) if before[i].text != after[i].text]
    chrf = [
        [sacrebleu.sentence_chrf(way[i].text, [references[i]]).score for i in changed]
        for way in (before, after)
    ]
    better = sum(new > old for old, new in zip(*chrf, strict=True))
    print(
        f"{name}: {len(taught):,} segments, {len(asked)} lines; BLEU / chrF2 "
        f"without {scores(before, references)}, with {scores(after, references)}; "
        f"{len(changed)} changed, {better} of them for the better; "
        f"time {seconds[1] / seconds[0]:.2f}, again {seconds[2] / seconds[0]:.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--domain", action="append", default=[], dest="domains")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--segments", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(describe(model=options.model, lines=options.lines, segments=options.segments, seed=options.seed))
    translator = Translator(options.model)
    languages = translator.model.source_lang or "", translator.model.target_lang or ""
    for name in options.domains:
        taught = lines(options.data / name, "dev" if name == "law" else "train", languages)
        random.seed(options.seed)
        taught = random.sample(taught, min(options.segments, len(taught)))
        asked = lines(options.data / name, "test", languages)[: options.lines]
        compare(translator, name, [Pair(*pair) for pair in taught if all(pair)], asked)
    example = [
        one for one in read_pairs(ROOT / "examples/ombravella.tmx", *languages) if isinstance(one, Pair)
    ]
    news = lines(options.data / "newstest", "newstest2013", languages)[: options.lines]
    compare(translator, "news, example memory", example, news)


if __name__ == "__main__":
    main()
