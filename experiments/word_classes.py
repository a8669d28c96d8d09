"""Which words the memory decides, by part of speech (`pos`): the paper's section 5.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from experiments import figures
from experiments.budget import Budget
from experiments.data import LONGEST_TO_FIT, Pairs, Slice
from experiments.domains import domain_setting, test_slice
from experiments.engine import Engine
from experiments.experiment import Experiment
from experiments.pipeline import Pipeline
from experiments.results import Section, TextTable
from experiments.stages import read_json
from experiments.systems import kster
from kster.errors import KsterError
from kster.memory import Neighbours
from kster.model import ForcedSentence
from kster.smoothing import Smoother, Smoothing
from kster.smoothing.example_distribution import log_example_prob_of, log_example_probs
from kster.translation.explanation import smooth_forced

MODELS = {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz"}

# Beginnings of HanTa's tags (STTS for German, C5 for English) and the classes of the paper's figure;
# the first that fits decides.
_GERMAN = (
    *(("N", "noun"), ("V", "verb"), ("ADJ", "adjective")),
    *(("ADV", "adverb"), ("PROAV", "adverb"), ("PWAV", "adverb")),  # "damit" and "wozu" are no pronouns
    *(("ART", "determiner"), ("PIAT", "determiner"), ("PDAT", "determiner"), ("PPOSAT", "determiner")),
    *(("PTK", "particle"), ("P", "pronoun"), ("AP", "preposition"), ("KO", "conjunction")),
    *(("CARD", "number"), ("$", "punctuation")),
)
_ENGLISH = (
    *(("NN", "noun"), ("NP", "noun"), ("V", "verb"), ("AJ", "adjective"), ("AV", "adverb")),
    *(("AT", "determiner"), ("D", "determiner"), ("PN", "pronoun"), ("PR", "preposition")),
    *(("CJ", "conjunction"), ("CRD", "number"), ("ORD", "number"), ("PU", "punctuation")),
    *(("TO", "particle"), ("XX", "particle"), ("POS", "particle")),
)


class WordClasses(Experiment):
    name = "pos"
    summary = "Which parts of speech the memory decides."

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        """KSTER's translations as words, each with whether the memory decided it; the report tags them."""
        statistics = {}
        for domain in budget.domains:
            test = test_slice(domain, budget)
            engine = kster(budget).engine(pipeline, domain_setting(domain, budget), budget)
            lines = read_json(pipeline.translate(engine, test))["lines"]
            sources = [source for source, _ in pipeline.corpora.pairs(test)]
            pairs = [
                pair
                for pair in zip(sources, lines, strict=True)
                if all(0 < len(side.encode()) <= LONGEST_TO_FIT for side in pair)
            ]
            measure = partial(_words, pipeline, engine, pairs)
            statistics[domain] = pipeline.measured("words", [pipeline.identity(engine), str(test)], measure)
        return {"statistics": statistics}

    def measured_parts(self, budget: Budget) -> list[Callable[[Pipeline], object]]:
        return [partial(self.measure, budget=budget)]

    def also_reads(self, budget: Budget) -> list[Slice]:
        settings = [domain_setting(domain, budget) for domain in budget.domains]
        return [
            *(slice for setting in settings for slice in setting.memory.slices),
            *(slice.at_most(budget.dev) for setting in settings for slice in setting.dev),
            *(test_slice(domain, budget) for domain in budget.domains),
        ]

    def draw(self, section: Section) -> None:
        language = section.direction.split("-")[1]
        by_domain = {domain: shares(found, language) for domain, found in section.statistics.items()}
        tags = sorted({tag for found in by_domain.values() for tag in found})
        rows = [["part of speech", *by_domain]]
        for tag in tags:
            counts = [found.get(tag, (0, 0)) for found in by_domain.values()]
            rows.append(
                [tag, *(f"{100 * n / total:.1f} % of {total:,}" if total else "–" for n, total in counts)]
            )
        title = section.title("Words decided by the memory")
        note = "A word counts when one of its tokens is the memory's favourite but not the base model's."
        section.tables.append(TextTable(title, rows, (note, "Parts of speech: HanTa.")))
        section.data["pos"] = by_domain
        series = {
            domain: [100 * found[tag][0] / found[tag][1] if tag in found else None for tag in tags]
            for domain, found in by_domain.items()
        }
        section.figures["pos"] = figures.bars(title, tags, series, "% of words")


def smoothed(
    pipeline: Pipeline, engine: Engine, pairs: Pairs
) -> Iterator[tuple[ForcedSentence, Neighbours, Smoothing]]:
    """Force the decoder along each translation and look every state up."""
    assert engine.memory is not None
    smoother = pipeline.smoother(engine)
    assert isinstance(smoother, Smoother)
    memory = pipeline.memory(engine.memory)
    for forced in pipeline.base.force_decode(pairs):
        neighbours, smoothing, _ = smooth_forced(pipeline.base, forced, memory, smoother)
        yield forced, neighbours, smoothing


def _words(pipeline: Pipeline, engine: Engine, pairs: Pairs) -> list[list[list[Any]]]:
    """For each sentence its words and whether one of the word's tokens was decided by the memory."""
    sentences = []
    for forced, neighbours, smoothing in smoothed(pipeline, engine, pairs):
        tokens = [pipeline.base.token_text(token) for token in forced.tokens.tolist()[:-1]]
        decided = decided_tokens(forced, neighbours, smoothing)[:-1]  # without the end of sentence
        sentences.append(join_words(tokens, decided))
    return sentences


def join_words(tokens: list[str], decided: list[bool]) -> list[list[Any]]:
    """Tokens as words, [word, 0 or 1]; punctuation is a word of its own, however it is attached."""
    words: list[list[Any]] = []
    for token, by_memory in zip(tokens, decided, strict=True):
        piece = token.removeprefix("▁")
        inside = piece[:1].isalnum() and bool(words) and words[-1][0][-1:].isalnum()
        if token.startswith("▁") or not inside:
            words.append(["", 0])
        words[-1][0] += piece
        words[-1][1] = max(words[-1][1], int(by_memory))
    return [word for word in words if word[0]]


def decided_tokens(forced: ForcedSentence, neighbours: Neighbours, smoothing: Smoothing) -> list[bool]:
    """Whether each token is the memory's favourite but not the base model's (section 5.2)."""
    gold = forced.tokens.to(neighbours.values)
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values)  # (n,) log p_e
    favourite = log_example_probs(smoothing.log_weights, neighbours.values).amax(dim=-1)  # (n,)
    is_favourite = (example >= favourite - 1e-6) & example.isfinite()
    not_base = forced.log_probs < forced.max_log_prob - 1e-6
    return (is_favourite.cpu() & not_base).tolist()


def coarse(tag: str, language: str) -> str:
    """The class of a tag: noun, verb, … or other."""
    for beginning, name in _GERMAN if language == "de" else _ENGLISH:
        if tag.startswith(beginning):
            return name
    return "punctuation" if tag and not tag[0].isalpha() else "other"


def shares(sentences: Sequence[Sequence[Sequence[Any]]], language: str) -> dict[str, tuple[int, int]]:
    """Part of speech → (words decided by the memory, words). sentences: lists of (word, decided)."""
    tagger = _tagger(language)
    counts: dict[str, list[int]] = {}
    for sentence in sentences:
        if not sentence:
            continue
        tagged = tagger.tag_sent([word for word, _ in sentence])
        for (_, decided), (_, _, tag) in zip(sentence, tagged, strict=True):
            count = counts.setdefault(coarse(tag, language), [0, 0])
            count[0] += int(decided)
            count[1] += 1
    return {name: (decided, total) for name, (decided, total) in counts.items()}


@lru_cache(maxsize=2)
def _tagger(language: str) -> Any:
    if language not in MODELS:
        raise KsterError(f"no tagger for language {language!r}; accepted: {', '.join(MODELS)}")
    try:
        from HanTa import HanoverTagger
    except ImportError:
        raise KsterError(
            "HanTa is not installed: the report of `pos` tags words with it. Install it: `pip install HanTa`"
        ) from None
    return HanoverTagger.HanoverTagger(MODELS[language])
