"""Texts as the borrowed APIs want them translated: plain or marked up, in one language or several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kster.documents.html import HtmlText
from kster.memory import Match, Memory
from kster.server.auth.access import Principal
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.server.work.term_guides import glossary_terms
from kster.terms import Term
from kster.text.codes import CodedText
from kster.text.languages import match_rank

MAX_ALTERNATIVES = 8
MAX_MATCHES = 20


@dataclass(frozen=True, slots=True)
class Wish:
    """How texts are to be translated.

    markup: what reads texts that are marked up; None for plain ones. split_sentences: None for the server's
    way. memories: which for a model; None for those that serve automatically. matches: how many to name.
    terms: to be kept, and glossaries: memories for a model whose segments are such terms.
    """

    markup: Callable[[str], HtmlText] | None = None
    alternatives: int = 0
    matches: int = 0
    split_sentences: bool | None = None
    memories: Callable[[ServedModel], Sequence[Memory]] | None = None
    terms: Sequence[Term] = ()
    glossaries: Callable[[ServedModel], Sequence[Memory]] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation for clients. repaired: see `Translation`; matches: as `match_json` says them."""

    text: str
    alternatives: list[str] = field(default_factory=list)
    repaired: bool = False
    matches: list[dict[str, Any]] = field(default_factory=list)


async def translate_from_each(
    engine: Engine, principal: Principal, texts: list[str], sources: list[str], target: str, wish: Wish
) -> list[Answer]:
    """For each text its translation from its own language; one in the target language stays as it is."""
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
    """Whether there is nothing to translate, as no model is there for two variants of one language."""
    return bool(match_rank(source, target)) and not any(
        match_rank(source, m.source) and match_rank(target, m.target) for m in engine.models
    )


async def translate_texts(
    engine: Engine, principal: Principal, served: ServedModel, texts: list[str], wish: Wish
) -> list[Answer]:
    memories: Sequence[Memory]
    if wish.memories is None:
        chosen = await asyncio.to_thread(engine.catalogue.automatic, principal, served)
        memories = [part for _, part in chosen]
    else:
        memories = await asyncio.to_thread(wish.memories, served)
    terms = list(wish.terms)
    if wish.glossaries is not None:
        terms += await asyncio.to_thread(glossary_terms, wish.glossaries(served))
    read = wish.markup
    documents = await asyncio.to_thread(lambda: [read(text) for text in texts]) if read else []
    units = [CodedText.of(unit.text) for document in documents for unit in document.units]
    results = await engine.translate(
        served,
        units if read else texts,
        memories,
        n_best=1 if read else 1 + wish.alternatives,
        split_sentences=wish.split_sentences,
        terms=terms,
    )
    found = await engine.matches(texts, memories, wish.matches)
    named = [
        [match_json(text, one, engine.catalogue.id_of(one.memory)) for one in own]
        for text, own in zip(texts, found, strict=True)
    ]
    if read is None:
        return [
            Answer(done.text, list(done.alternatives), done.repaired, matches)
            for done, matches in zip(results, named, strict=True)
        ]
    answers, waiting = [], iter(results)
    for document, matches in zip(documents, named, strict=True):
        own = [next(waiting) for _ in document.units]
        text = await asyncio.to_thread(document.written, [list(result.content) for result in own])
        answers.append(Answer(text, [], any(result.repaired for result in own), matches))
    return answers


def match_json(text: str, match: Match, memory: Any) -> dict[str, Any]:
    """A fuzzy match: the segment, and how its source becomes the text. memory: what clients call it."""
    return {
        "percentage": match.percentage,
        "memory": memory,
        "segment": match.segment.id,
        "source": match.segment.source,
        "target": match.segment.target,
        "changes": [{"kind": kind, "text": part} for kind, part in match.changes(text)],
    }
