"""Translates texts for the borrowed APIs: plain or marked up, in one language or several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from kster.documents.document import at_most
from kster.documents.html import HtmlText
from kster.errors import KsterError
from kster.memory import Match, Memory, MemoryGroup
from kster.server.auth.access import Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.server.work.term_catalogue import ServerTermBase
from kster.server.work.term_guides import glossary_terms
from kster.terms import Term
from kster.text.codes import CodedText
from kster.text.languages import match_rank
from kster.text.voice import Voice, voice_of
from kster.translation import Translation

P = ParamSpec("P")
T = TypeVar("T")

MAX_ALTERNATIVES = 8
MAX_MATCHES = 20
LEAST_MATCH = 50  # per cent; lower ones help nobody
LONGEST_MATCHED = 1_000  # characters of a text that is compared with segments
LOOKED_AT = 4  # hypotheses, to find one in the voice that is wanted


@dataclass(frozen=True, slots=True)
class Wish:
    """How texts are to be translated.

    markup: the reader of marked-up texts; None for plain ones. split_sentences: None for the server's
    setting. memories: ids; None for the automatic ones. matches: how many to list; context: where the texts
    stand. exact_matches: whether those that memories hold as a whole come back as taught.
    terms: must be kept, as must those of term_bases (ids; None for the automatic ones) and of glossaries:
    given a model, the memories whose segments are terms as well as examples. voice: how readers are
    addressed, if memories have such segments; voice_needed: whether it is an error if they have none.
    """

    markup: Callable[[str], HtmlText] | None = None
    alternatives: int = 0
    matches: int = 0
    confidence: bool = False
    split_sentences: bool | None = None
    memories: Sequence[int] | None = None
    terms: Sequence[Term] = ()
    term_bases: Sequence[int] | None = None
    glossaries: Callable[[ServedModel], Sequence[Memory]] | None = None
    voice: Voice | None = None
    voice_needed: bool = False
    context: str | None = None
    exact_matches: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation for clients. repaired, confidence: see `Translation`; matches: see `matches_json`.
    warnings are about memories that should have helped and could not."""

    text: str
    alternatives: list[str] = field(default_factory=list)
    repaired: bool = False
    matches: list[dict[str, Any]] = field(default_factory=list)
    warnings: Sequence[str] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a translation is made with, and warnings about what is missing."""

    used: Sequence[tuple[ServerMemory, Memory]]  # those named, or the automatic ones
    bases: Sequence[ServerTermBase]
    memories: Sequence[Memory]  # of those used, and of glossaries
    terms: Sequence[Term]
    warnings: Sequence[str]
    voice: Voice | None = None  # the one wanted, if the memories have it
    key: str | None = None  # the name of the client's key
    exact_matches: bool = True

    @classmethod
    async def of(cls, engine: Engine, principal: Principal, served: ServedModel, wish: Wish) -> Means:
        return await asyncio.to_thread(cls._find, engine, principal, served, wish)

    @classmethod
    def _find(cls, engine: Engine, principal: Principal, served: ServedModel, wish: Wish) -> Means:
        catalogue = engine.catalogue
        used = catalogue.chosen(principal, served, wish.memories)
        memories = [part for _, part in used]
        glossaries = wish.glossaries(served) if wish.glossaries is not None else []
        memories += [part for part in glossaries if part not in memories]
        bases = engine.terms.chosen(principal, served, wish.term_bases)
        terms = engine.terms.joined([*wish.terms, *glossary_terms(glossaries)], bases)
        warnings, voice = catalogue.warnings(principal, served, wish.memories), wish.voice
        if voice is not None:
            spoken = engine.voices.chosen(memories, served.target, voice)
            if spoken is None and wish.voice_needed:
                raise KsterError("'formality' is not supported for given 'target_lang'.")
            memories, voice = (memories, None) if spoken is None else (spoken, voice)
        return cls(used, bases, memories, terms, warnings, voice, principal.name, wish.exact_matches)


async def in_good_time(engine: Engine, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Read or write a document in a thread. It gives up by itself when the time of a request is over, since
    threads cannot be interrupted."""
    with at_most(engine.settings.timeout_seconds):
        return await asyncio.to_thread(work, *given, **named)


async def translate_from_each(
    engine: Engine, principal: Principal, texts: list[str], sources: list[str], target: str, wish: Wish
) -> list[Answer]:
    """Translate each text from its own language; one in the target language stays as it is."""
    answers = [Answer(text) for text in texts]
    for source in dict.fromkeys(sources):
        if is_target_already(engine, source, target):
            continue
        served = engine.model_for(source, target)
        mine = [i for i, own in enumerate(sources) if own == source]
        done = await translate_texts(engine, principal, served, [texts[i] for i in mine], wish)
        for i, answer in zip(mine, done, strict=True):
            answers[i] = answer
    return answers


def is_target_already(engine: Engine, source: str, target: str) -> bool:
    """Whether both are one language, or two variants of it for which there is no model."""
    return bool(match_rank(source, target)) and not any(
        match_rank(source, m.source) and match_rank(target, m.target) for m in engine.models
    )


async def translate_texts(
    engine: Engine, principal: Principal, served: ServedModel, texts: list[str], wish: Wish
) -> list[Answer]:
    means = await Means.of(engine, principal, served, wish)
    read = wish.markup
    documents = await in_good_time(engine, lambda: [read(text) for text in texts]) if read else []
    units = [CodedText.of(unit.text) for document in documents for unit in document.units]
    results = await engine.translate(
        served,
        units if read else texts,
        means.memories,
        n_best=1 if read else max(1 + wish.alternatives, LOOKED_AT if means.voice else 1),
        split_sentences=wish.split_sentences,
        context=wish.context,
        exact_matches=means.exact_matches,
        terms=means.terms,
        confidence=wish.confidence,
        key=means.key,
    )
    id_of = engine.catalogue.id_of
    named = await matches_json(texts, means.memories, wish.matches, wish.context, id_of)
    if read is None:
        return [
            Answer(text, others[: wish.alternatives], done.repaired, matches, means.warnings, done.confidence)
            for done, matches in zip(results, named, strict=True)
            for text, *others in [in_voice([done.text, *done.alternatives], served.target, means.voice)]
        ]
    answers, waiting = [], iter(results)
    for document, matches in zip(documents, named, strict=True):
        own = [next(waiting) for _ in document.units]
        text = await in_good_time(engine, document.written, [list(result.content) for result in own])
        repaired = any(result.repaired for result in own)
        sure = mean_confidence(own) if wish.confidence else None
        answers.append(Answer(text, [], repaired, matches, means.warnings, sure))
    return answers


def in_voice(texts: list[str], language: str, voice: Voice | None) -> list[str]:
    """Hypotheses, best first, but those in the other voice last."""
    if voice is None:
        return texts
    return sorted(texts, key=lambda text: voice_of(text, language) not in (None, voice))


def mean_confidence(translations: Sequence[Translation]) -> float:
    """Of the texts of one document, weighted by length; 1 if there are none."""
    lengths = [len(one.source) for one in translations]
    sure = sum(length * (one.confidence or 0.0) for length, one in zip(lengths, translations, strict=True))
    return sure / sum(lengths) if any(lengths) else 1.0


async def matches_json(
    texts: Sequence[str],
    memories: Sequence[Memory],
    n: int,
    context: str | None,
    name_of: Callable[[str], Any],
) -> list[list[dict[str, Any]]]:
    """For each text its n best fuzzy matches: the segment, and how its source becomes the text. A text that
    is too long to be a segment has none.

    name_of: what clients call the memory in a directory.
    """
    if n == 0 or not memories:
        return [[] for _ in texts]
    group = MemoryGroup(memories)

    def shown(text: str, match: Match) -> dict[str, Any]:
        return {
            "percentage": match.percentage,
            "memory": name_of(match.memory),
            "segment": match.segment.id,
            "source": match.segment.source,
            "target": match.segment.target,
            "changes": [{"kind": kind, "text": part} for kind, part in match.changes(text)],
        }

    def found(text: str) -> list[dict[str, Any]]:
        if not 0 < len(text) <= LONGEST_MATCHED:
            return []
        return [shown(text, one) for one in group.matches(text, n, least=LEAST_MATCH, context=context)]

    return await asyncio.to_thread(lambda: [found(text) for text in texts])
