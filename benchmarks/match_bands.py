"""What does a memory bring by how well it matches, beside tuned kNN-MT, terms and a large language model?

    python benchmarks/match_bands.py --data DIR [--domain docs_adobe] [--band 90] [--llm URL]

Test sentences are chosen by the percentage of their best fuzzy match, the same number of each band as far as
the text has them. The memory holds the most similar pairs of each in the training text, and some at random.
What was done is kept in `--work`, so that a run that was stopped goes on. Systems: the base model, kNN-MT
tuned on other sentences, KSTER with the smoother that the model carries, KSTER with terms. For each band:
BLEU and chrF2; for each system tags and terms kept, sentences a second of CPU time, and chrF2 of news.

`--llm` names a server with an OpenAI-compatible API (`http://127.0.0.1:8080/v1`, a local one will do): the
model is asked with the sentence alone, and with its five best fuzzy matches in the prompt. Its key, if it
needs one, is read from the variable LLM_API_KEY; its sentences a second are by the clock. Without it its rows
say "not run".
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

from corpora import near_segments, pairs_of, sample
from kster import BaseModel, Memory, Translator
from kster.files import new_directory
from kster.formats import Pair
from kster.terms import Term, TermFinder, is_kept, term
from kster.text.recognition import are_kept
from machine import describe

BANDS = ((0, 49), (50, 74), (75, 84), (85, 94), (95, 99))
SPLITS = {"docs_adobe": ("test", "train"), "it": ("test", "train"), "law": ("test", "dev")}
LARGEST = 230_000  # training pairs that are looked through
MOST_TERMS = 40
SHOTS = 5
NEWS = "newstest/newstest2014"
KEY_VARIABLE = "LLM_API_KEY"

DATA = Path(__file__).parents[1] / "tests" / "data"

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Result:
    texts: list[str]
    seconds: float
    news: list[str]


def main() -> None:
    options = arguments()
    model = BaseModel.load(options.model, device="cpu")
    languages = (str(model.source_lang), str(model.target_lang))
    print(describe(band=options.band, near=options.near, others=options.others, model=options.model))
    news = sample(pairs_of(options.data, NEWS, languages), options.news)
    corrections(model, options.taught)
    for domain in options.domain or SPLITS:
        test, train = SPLITS[domain]
        known = pairs_of(options.data, f"{domain}/{train}", languages, LARGEST)
        pool = pairs_of(options.data, f"{domain}/{test}", languages)
        directory = options.work / f"{domain}.memory"
        choice = options.work / f"{domain}.json"
        if not choice.exists():
            options.work.mkdir(parents=True, exist_ok=True)
            choice.write_text(json.dumps(chosen(known, pool, model, options)))
        tested, others = ([pool[i] for i in own] for own in json.loads(choice.read_text()))
        if not directory.exists():
            sources = [pair.source for pair in (*tested, *others)]
            with new_directory(directory) as part, Memory.create(part, model) as memory:
                memory.import_pairs(near_segments(known, sources, options.near, options.others), keys="now")
                memory.tune([(pair.source, pair.target) for pair in others])
        with Memory.open(directory, model) as memory:
            best = [best_match(memory, pair) for pair in tested]
            terms = steady_terms(known, tested, languages)
            results = {
                name: None if translate is None else run(name, translate, tested, news, options.work / domain)
                for name, translate in systems(options, model, memory, terms).items()
            }
            report(domain, tested, best, results, terms, news, languages, memory.segment_count())


def chosen(
    known: list[Pair], pool: list[Pair], model: BaseModel, options: argparse.Namespace
) -> tuple[list[int], list[int]]:
    """Test sentences, the same number of each band as far as there are so many, filled up with any; and some
    to tune on."""
    sources = [pair.source for pair in pool]
    with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "m", model) as memory:
        memory.import_pairs(near_segments(known, sources, options.near, 0), keys="later")
        best = [best_match(memory, pair) for pair in pool]
    mixed = random.Random(0).sample(range(len(pool)), len(pool))
    tested = {i for low, high in BANDS for i in [i for i in mixed if low <= best[i] <= high][: options.band]}
    more = [i for i in mixed if i not in tested]
    short = max(0, options.lines - len(tested))
    tested |= set(more[:short])
    others = more[short:][: options.tuned]
    return sorted(tested), others


def best_match(memory: Memory, pair: Pair) -> int:
    best = memory.matches(pair.source, 1, least=1)
    return best[0].percentage if best else 0


def corrections(model: BaseModel, most: int) -> None:
    """How many corrected sentences with a term a memory needs until another sentence has it. The sentences
    are those of the fresh test set of terms; the base model would mostly say something else."""
    if not most:
        return
    with (DATA / "terms_fresh_sentences.tsv").open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    by_term: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for _, source, target, name in rows:
        if name and "|" not in name:
            by_term[name].append((source, target))
    with (DATA / "terms_fresh.tsv").open(encoding="utf-8") as file:
        known = {line.split("\t")[0]: line.split("\t")[1] for line in file}
    needed: list[int | None] = []
    for name, pairs in [item for item in by_term.items() if len(item[1]) >= 4][:most]:
        wanted = term(name, [known[name]])
        (probe, _), *taught = pairs[::-1]
        with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "m", model) as memory:
            translator = Translator(model, memory)
            for count in range(len(taught) + 1):
                if is_kept(wanted, str(translator.translate(probe)), str(model.target_lang)):
                    needed.append(count)
                    break
                if count < len(taught):
                    memory.add(*taught[count])
            else:
                needed.append(None)
    stuck = Counter("never" if count is None else str(count) for count in needed)
    print(f"\nCorrections until a term sticks, KSTER, {len(needed)} terms: {dict(sorted(stuck.items()))}")
    print("With terms: 0 for all (benchmarks/terms.py).", flush=True)


def systems(
    options: argparse.Namespace,
    model: BaseModel,
    memory: Memory,
    terms: list[Term],
) -> dict[str, Translate | None]:
    """Each translates texts; None for one that cannot be run here."""
    translator = Translator(model, memory)

    def by(**choice: object) -> Translate:
        return lambda texts: [str(done) for done in translator.translate(texts, **choice)]  # type: ignore[call-overload]

    found: dict[str, Translate | None] = {
        "base": by(method="base"),
        "kNN-MT, tuned": by(method="knn"),
        "KSTER": by(),
        "KSTER with terms": by(terms=terms),
        "language model": None,
        "language model, 5 matches": None,
    }
    if options.llm:
        ask = LanguageModel(options.llm, options.llm_model, (str(model.source_lang), str(model.target_lang)))
        found["language model"] = lambda texts: [ask(text, []) for text in texts]
        found["language model, 5 matches"] = lambda texts: [
            ask(text, [(m.segment.source, m.segment.target) for m in memory.matches(text, SHOTS)])
            for text in texts
        ]
    return found


class LanguageModel:
    """An instruction-tuned model behind an OpenAI-compatible API."""

    def __init__(self, url: str, name: str, languages: tuple[str, str]) -> None:
        self._url, self._name = url.rstrip("/") + "/chat/completions", name
        self._languages = languages

    def __call__(self, text: str, shots: Sequence[tuple[str, str]]) -> str:
        source, target = self._languages
        asked = f"Translate from {source} to {target}. Keep tags. Answer with the translation alone."
        messages = [{"role": "system", "content": asked}]
        for example, translated in reversed(shots):  # the best one last, next to the sentence
            messages += [
                {"role": "user", "content": example},
                {"role": "assistant", "content": translated},
            ]
        messages.append({"role": "user", "content": text})
        body = {"model": self._name, "messages": messages, "temperature": 0}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY_VARIABLE):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=600) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
        return " ".join(str(said).split())


def steady_terms(known: list[Pair], tested: list[Pair], languages: tuple[str, str]) -> list[Term]:
    """Short segments of the training text that occur in test sentences, and whose references have them, too:
    what somebody who knows the text would have written into a term base."""
    targets: dict[str, Counter[str]] = defaultdict(Counter)
    texts = "\n".join(pair.source for pair in tested).casefold()
    for pair in known:
        source, target = pair.source.strip(" .:"), pair.target.strip(" .:")
        short = len(source) >= 4 and len(source.split()) <= 3 and len(target.split()) <= 2
        if short and (source + target).replace(" ", "").isalpha() and source.casefold() in texts:
            targets[source][target] += 1
    found = []
    for source, counted in targets.items():
        if len(counted) != 1:
            continue
        one = term(source, list(counted))
        finder = TermFinder([one], languages[0])
        using = [pair for pair in tested if finder.find(pair.source)]
        if using and all(is_kept(one, pair.target, languages[1]) for pair in using):
            found.append(one)
        if len(found) == MOST_TERMS:
            break
    return found


def run(name: str, translate: Translate, tested: list[Pair], news: list[Pair], work: Path) -> Result:
    file = work / f"{name}.json"
    if not file.exists():
        clock = time.perf_counter if name.startswith("language model") else time.process_time
        begin = clock()  # a language model works in another process
        texts = translate([pair.source for pair in tested])
        seconds = clock() - begin
        work.mkdir(parents=True, exist_ok=True)
        done = {"texts": texts, "seconds": seconds, "news": translate([pair.source for pair in news])}
        file.write_text(json.dumps(done, ensure_ascii=False), "utf-8")
    return Result(**json.loads(file.read_text("utf-8")))


def report(
    domain: str,
    tested: list[Pair],
    best: list[int],
    results: dict[str, Result | None],
    terms: list[Term],
    news: list[Pair],
    languages: tuple[str, str],
    segments: int,
) -> None:
    bands = {f"{low}–{high} %": [i for i, p in enumerate(best) if low <= p <= high] for low, high in BANDS}
    print(f"\n## {domain}\n\nMemory: {segments:,} segments; {len(tested)} sentences; {len(terms)} terms.\n")
    sizes = [f"{name} ({len(own)})" for name, own in bands.items() if own]
    print(f"| system | {' | '.join(sizes)} | all | tags kept | terms kept | sentences/s | news, chrF2 |")
    print("|---" * (len(sizes) + 6) + "|")
    finder = TermFinder(terms, languages[0])
    found = [[match.term for match in finder.find(pair.source)] for pair in tested]
    for name, result in results.items():
        if result is None:
            print(f"| {name} | " + " | ".join(["not run"] * (len(sizes) + 5)) + " |")
            continue
        cells = [scores(tested, result.texts, own) for own in bands.values() if own]
        cells.append(scores(tested, result.texts, range(len(tested))))
        coded = [are_kept(p.source, text) for p, text in zip(tested, result.texts, strict=True)]
        kept = [
            is_kept(one, text, languages[1])
            for own, text in zip(found, result.texts, strict=True)
            for one in own
        ]
        cells += [
            f"{sum(coded)} of {len(coded)}",
            f"{sum(kept)} of {len(kept)}",
            f"{len(tested) / result.seconds:.1f}" if result.seconds > 0.1 else "–",
            f"{sacrebleu.corpus_chrf(result.news, [[p.target for p in news]]).score:.1f}" if news else "–",
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def scores(tested: list[Pair], texts: list[str], chosen: Sequence[int]) -> str:
    """BLEU and chrF2."""
    own, references = [texts[i] for i in chosen], [[tested[i].target for i in chosen]]
    bleu, chrf = sacrebleu.corpus_bleu(own, references), sacrebleu.corpus_chrf(own, references)
    return f"{bleu.score:.1f} / {chrf.score:.1f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="<corpus>/<split>.<language>.xz")
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--domain", action="append", choices=SPLITS)
    parser.add_argument("--work", type=Path, default=Path("runs/match-bands"), help="where results are kept")
    parser.add_argument("--band", type=int, default=90, help="test sentences of a band")
    parser.add_argument("--lines", type=int, default=300, help="test sentences of a domain, at least")
    parser.add_argument("--tuned", type=int, default=60, help="other sentences that kNN-MT is tuned on")
    parser.add_argument("--news", type=int, default=60, help="sentences of news")
    parser.add_argument("--near", type=int, default=5, help="segments like each sentence, in the memory")
    parser.add_argument("--others", type=int, default=3000, help="segments at random, in the memory")
    parser.add_argument("--taught", type=int, default=15, help="terms that are taught by corrections")
    parser.add_argument("--llm", help="address of an OpenAI-compatible API")
    parser.add_argument("--llm-model", default="default", help="its name for the model")
    return parser.parse_args()


if __name__ == "__main__":
    main()
