"""Are terms kept, and what becomes of the rest of the sentence? On the project's test set of terms.

    python benchmarks/terms.py [SYSTEM …] [--set terms] [--model models/en-de] [--every 1] [--show FILE]

Prints for every system the share of terms kept, BLEU and chrF2 of the sentences and of what is left of them
without their terms, and the CPU time beside that of the first system: the median of `--turns` in which each
system translates once, after one turn to warm up.
`--set terms_fresh` is the set that was written when all of this was done. `--every N` takes every Nth
sentence, `--show FILE` writes the translations. `--matching` compares ways to find terms instead.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import sacrebleu

from kster import BaseModel, Memory, Translator
from kster.terms import Match, Term, TermBase, TermFinder, is_kept, term
from kster.translation.term_guide import Guided, TermGuide
from kster.translation.term_search import TermSearch
from machine import describe

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"


@dataclass(frozen=True, slots=True)
class Sentence:
    kind: str
    source: str
    reference: str
    terms: list[str]


class TargetsInSources(TermGuide):
    """The model reads the targets; the search is as ever."""

    def search(self, guided: Sequence[Guided], beam: int, n_best: int) -> TermSearch | None:
        return None


class SearchAlone(TermGuide):
    """The model reads the source as it is; the search brings the terms."""

    def with_targets(self, text: str, matches: Sequence[Match]) -> str:
        return text


@dataclass(frozen=True, slots=True)
class System:
    terms: type[TermGuide] | None = None
    memory: str | None = None  # "terms": the terms as examples; "contrary": examples that contradict some


SYSTEMS = {
    "without terms": System(),
    "terms as examples in a memory": System(memory="terms"),
    "targets in sources": System(TargetsInSources),
    "search alone": System(SearchAlone),
    "terms": System(TermGuide),
    "memory, without terms": System(memory="contrary"),
    "memory, terms": System(TermGuide, memory="contrary"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--model", default=str(ROOT / "models" / "en-de"))
    parser.add_argument("--set", default="terms", help="of tests/data: terms, or terms_fresh")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--show", type=Path)
    parser.add_argument("--matching", action="store_true")
    options = parser.parse_args()
    sentences, terms = read_sentences(options.set)[:: options.every], read_terms(options.set)
    if options.matching:
        compare_matching(sentences, terms)
        return
    model = BaseModel.load(options.model, device="cpu")
    settings = {"sentences": len(sentences), "terms": len(terms), "beam": 4, "length penalty": 0.6}
    print(describe(**settings))
    print("| system | kept | BLEU | chrF2 | BLEU of the rest | chrF2 of the rest | CPU time |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    shown: dict[str, list[str]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in options.systems}
    with TemporaryDirectory() as folder:
        for _ in range(1 + options.turns):
            for name in options.systems:
                shown[name], taken = translate(
                    model, SYSTEMS[name], sentences, terms, Path(folder), options.set
                )
                seconds[name].append(taken)
    first = seconds[options.systems[0]]
    for name, texts in shown.items():
        ratios = [own / other for own, other in zip(seconds[name][1:], first[1:], strict=True)]
        report(name, sentences, terms, texts, median(ratios))
    if options.show:
        lines = [
            f"{sentence.source}\n  {sentence.reference}\n" + "".join(f"  {t[i]}\n" for t in shown.values())
            for i, sentence in enumerate(sentences)
        ]
        options.show.write_text("".join(lines), encoding="utf-8")


def read_sentences(name: str) -> list[Sentence]:
    with (DATA / f"{name}_sentences.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [Sentence(kind, en, de, list(filter(None, names.split("|")))) for kind, en, de, names in rows]


def read_terms(name: str) -> list[Term]:
    with TemporaryDirectory() as folder, TermBase.create(Path(folder) / "set", "en", "de") as base:
        base.import_file(DATA / f"{name}.tsv")
        return base.terms()


def translate(
    model: BaseModel,
    system: System,
    sentences: Sequence[Sentence],
    terms: Sequence[Term],
    folder: Path,
    name: str,
) -> tuple[list[str], float]:
    """The translations, and the seconds of CPU time they took; memories are made before."""
    memory = make_memory(model, system.memory, terms, folder, name) if system.memory else None
    translator = Translator(model, memory, terms=system.terms(terms, model) if system.terms else None)
    begin = time.process_time()
    texts = [one.text for one in translator.translate([sentence.source for sentence in sentences])]
    seconds = time.process_time() - begin
    if memory is not None:
        memory.close()
    return texts, seconds


def make_memory(model: BaseModel, kind: str, terms: Sequence[Term], folder: Path, name: str) -> Memory:
    directory = folder / kind
    if directory.exists():
        return Memory.open(directory, model)
    memory = Memory.create(directory, model)
    if kind == "terms":
        for one in terms:
            memory.add(one.source, one.targets[0])
    else:
        contrary = DATA / f"{name}_memory.tsv"
        memory.import_file(contrary if contrary.exists() else ROOT / "examples" / "ombravella.tmx")
    return memory


def report(
    name: str, sentences: Sequence[Sentence], terms: Sequence[Term], texts: Sequence[str], ratio: float
) -> None:
    by_source = {one.source: one for one in terms}
    occurrences = [
        (by_source[source], text)
        for sentence, text in zip(sentences, texts, strict=True)
        for source in sentence.terms
    ]
    kept = sum(is_kept(one, text, "de") for one, text in occurrences)
    targets = [
        term(target, [one.source], part_of_speech=one.part_of_speech)
        for one in terms
        for target in one.targets
    ]
    finder = TermFinder(targets, "de")
    references = [sentence.reference for sentence in sentences]
    whole = scores(texts, references)
    rest = scores([without(finder, text) for text in texts], [without(finder, text) for text in references])
    numbers = " | ".join(f"{score:.1f}" for score in (*whole, *rest))
    share = f"{kept} of {len(occurrences)}, {kept / len(occurrences):.1%}"
    print(f"| {name} | {share} | {numbers} | {ratio:.2f} |", flush=True)


def scores(texts: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    return (
        sacrebleu.corpus_bleu(list(texts), [list(references)]).score,
        sacrebleu.corpus_chrf(list(texts), [list(references)]).score,
    )


def without(finder: TermFinder, text: str) -> str:
    """A text without its terms."""
    spans = [span for match in finder.find(text) for span in match.spans]
    for begin, end in sorted(spans, reverse=True):
        text = text[:begin] + text[end:]
    return " ".join(text.split())


# Ways to find terms ------------------------------------------------------------------------------------


def compare_matching(sentences: Sequence[Sentence], terms: Sequence[Term]) -> None:
    """How many terms are found in English sources, and in the German references, by forms and by lemmas."""
    print("| language | way | found | found wrongly |\n|---|---|---:|---:|")
    german = [term(one.targets[0], [one.source], part_of_speech=one.part_of_speech) for one in terms]
    for language, own in (("en", list(terms)), ("de", german)):
        texts = [s.source if language == "en" else s.reference for s in sentences]
        names = {one.source: (one.source if language == "en" else one.targets[0]) for one in own}
        finders: dict[str, Callable[[str], set[str]]] = {
            "as written": _finder(own, lambda word: word.lower()),
            "simplemma": _finder(own, _simplemma(language)),
            "HanTa": _finder(own, _hanta(language)),
            "forms": _forms(own, language),
        }
        for way, find in finders.items():
            found = [{names[source] for source in find(text)} for text in texts]
            gold = [set(sentence.terms) for sentence in sentences]
            right = sum(len(a & b) for a, b in zip(found, gold, strict=True))
            wrong = sum(len(a - b) for a, b in zip(found, gold, strict=True))
            print(f"| {language} | {way} | {right} of {sum(map(len, gold))} | {wrong} |")


def _forms(terms: Sequence[Term], language: str) -> Callable[[str], set[str]]:
    finder = TermFinder(terms, language)
    return lambda text: {match.term.source for match in finder.find(text)}


def _finder(terms: Sequence[Term], lemma: Callable[[str], str]) -> Callable[[str], set[str]]:
    """Terms of which each word's lemma stands in a text, one after the other; case counts where it must."""

    def words(text: str) -> list[str]:
        return "".join(c if c.isalnum() else " " for c in text).split()

    patterns = [(one, words(one.source), [lemma(word) for word in words(one.source)]) for one in terms]

    def find(text: str) -> set[str]:
        written = words(text)
        lemmas = [lemma(word) for word in written]
        return {
            one.source
            for one, exact, pattern in patterns
            for at in range(len(lemmas) - len(pattern) + 1)
            if lemmas[at : at + len(pattern)] == pattern
            and (one.case == "any" or written[at : at + len(exact)] == exact)
        }

    return find


def _simplemma(language: str) -> Callable[[str], str]:
    import simplemma

    return lambda word: simplemma.lemmatize(word, lang=language).lower()


def _hanta(language: str) -> Callable[[str], str]:
    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger({"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz"}[language])
    return lambda word: str(tagger.analyze(word)[0]).lower()


if __name__ == "__main__":
    main()
