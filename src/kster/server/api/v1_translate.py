"""/v1/translate: with provenance, and beside what the base model alone would have said; /v1/status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import StreamingResponse

from kster.errors import KsterError
from kster.memory import Memory
from kster.server.api.context import Reader, TheEngine
from kster.server.api.file_translation import portions
from kster.server.api.given_terms import GivenTerm
from kster.server.api.parameters import memories_of_address
from kster.server.api.provenance import mark_changes, plain_words, words_of
from kster.server.api.texts import MAX_ALTERNATIVES, MAX_MATCHES, match_json
from kster.server.auth.access import Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.server.work.term_catalogue import ServerTermBase
from kster.terms import Term
from kster.text.languages import language_name
from kster.translation import Method, Translation
from kster.translation.known_texts import KnownTexts
from kster.translation.parts import parts_of
from kster.version import __version__

router = APIRouter(prefix="/v1", tags=["translate"])

MOST_EXPLAINED = 5_000  # characters in one answer: up to five megabytes of examples
STREAMED_AT_ONCE = 1_000  # characters: a second or two on two cores


class TranslateRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str | list[str]
    source: str = Field(description="Language code, or `auto`.")
    target: str
    memories: list[int] | None = Field(
        None, description="Ids; left out: those that serve automatically; []: the base model alone."
    )
    method: Literal["base", "knn", "kster"] | None = None
    compare: bool = Field(False, description="Also the base model's translation, with changes marked.")
    explain: bool = Field(False, description="For every word who decided it and which examples spoke.")
    confidence: bool = Field(False, description="How likely it is right, and each of its words: 0 to 1.")
    alternatives: int = Field(0, ge=0, le=MAX_ALTERNATIVES)
    terms: list[GivenTerm] = Field(default_factory=list, description="Kept in the translation, in any form.")
    term_bases: list[int] | None = Field(
        None, description="Ids; left out: those that serve automatically; []: none."
    )
    matches: int = Field(0, ge=0, le=MAX_MATCHES, description="How many fuzzy matches to name, best first.")
    context: str | None = Field(
        None, max_length=1_000, description="Where the text stands; an equal segment of it counts 101 %."
    )
    stream: bool = Field(False, description="Answer part by part, one JSON object a line.")
    partial: bool = Field(
        False,
        description="Do without what lies on a shard that does not answer; `partial` says whether it was so.",
    )

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


@router.post("/translate", response_model=None)
async def translate(
    wanted: TranslateRequest, request: Request, engine: TheEngine, principal: Reader
) -> dict[str, Any] | StreamingResponse:
    """The translations of all texts at once; or, with `stream`, as they are made: see `Asked.stream`."""
    engine.require_size(wanted.texts)
    if wanted.explain and not wanted.stream and (size := sum(map(len, wanted.texts))) > MOST_EXPLAINED:
        raise KsterError(
            f"{size:,} characters are too many to explain in one answer; at most {MOST_EXPLAINED:,} are "
            "accepted, or any text with `stream`: true"
        )
    if wanted.partial and wanted.stream:
        raise KsterError("`partial` and `stream` cannot both be had; choose one")
    asked = await Asked.of(wanted, request, engine, principal)
    head = await asked.head(principal)
    if wanted.stream:
        lines = (json.dumps(line, ensure_ascii=False) + "\n" async for line in asked.stream(head))
        return StreamingResponse(lines, media_type="application/x-ndjson")
    answer = head | {"translations": await asked.translations(wanted.texts)}
    return answer | {"partial": any(one.lost for one in asked.memories)} if wanted.partial else answer


@dataclass(frozen=True)
class Asked:
    """A request, and what it is answered with."""

    wanted: TranslateRequest
    engine: Engine
    served: ServedModel
    ids: list[int] | None  # of the memories that were named
    used: list[tuple[ServerMemory, Memory]]
    bases: list[ServerTermBase]
    terms: list[Term]
    detected: dict[str, Any] | None
    key: str | None  # the name of the client's

    @classmethod
    async def of(
        cls, wanted: TranslateRequest, request: Request, engine: Engine, principal: Principal
    ) -> Asked:
        source, detected = wanted.source, None
        if source == "auto":
            source, confidence = await asyncio.to_thread(engine.detector.best, "\n".join(wanted.texts))
            detected = {"language": source, "confidence": confidence}
        served = engine.model_for(source, wanted.target)
        ids = memories_of_address(request) if wanted.memories is None else wanted.memories
        used = await asyncio.to_thread(engine.catalogue.chosen, principal, served, ids)
        if not used and wanted.method in ("knn", "kster") and ids:
            raise KsterError(f"none of these memories has examples for {served.pair}")
        if wanted.partial:
            used = [(memory, part.allowing_loss()) for memory, part in used]
        bases = await asyncio.to_thread(engine.terms.chosen, principal, served, wanted.term_bases)
        given = [given.term() for given in wanted.terms]
        terms = await asyncio.to_thread(engine.terms.terms_for, principal, served, wanted.term_bases, given)
        return cls(wanted, engine, served, ids, used, bases, terms, detected, principal.name)

    @property
    def method(self) -> Method:
        return (self.wanted.method or "kster") if self.used else "base"

    @property
    def memories(self) -> list[Memory]:
        return [part for _, part in self.used]

    @property
    def homes(self) -> dict[str, dict[str, Any]]:
        """For each memory's directory, how to name it to clients."""
        return {
            str(part.directory): {"id": memory.id, "name": memory.name, "pair": self.served.pair}
            for memory, part in self.used
        }

    async def head(self, principal: Principal) -> dict[str, Any]:
        """What is the same for all texts."""
        served, catalogue = self.served, self.engine.catalogue
        return {
            "source": served.source,
            "target": served.target,
            "pair": served.pair,
            "detected": self.detected,
            "method": self.method,
            "smoother": await asyncio.to_thread(_smoother, served, self.method, self.memories),
            "memories": list(self.homes.values()),
            "term_bases": [{"id": base.id, "name": base.name} for base in self.bases],
            "warnings": await asyncio.to_thread(catalogue.warnings, principal, served, self.ids),
        }

    async def translations(self, texts: list[str]) -> list[dict[str, Any]]:
        wanted, served = self.wanted, self.served
        adapted = self.engine.translate(
            served,
            texts,
            self.memories,
            method=self.method,
            n_best=1 + wanted.alternatives,
            explain=wanted.explain,
            confidence=wanted.confidence,
            terms=self.terms,
            key=self.key,
        )
        if wanted.compare and self.method != "base":
            alone = self.engine.translate(
                served, texts, [], method="base", explain=wanted.explain, key=self.key
            )
            results, base = await asyncio.gather(adapted, alone)
        else:
            results = await adapted
            base = results if wanted.compare else []
        found = await self.engine.matches(texts, self.memories, wanted.matches, wanted.context)
        end = served.model.token_text(served.model.eos_id) if wanted.explain else None
        homes = self.homes

        def rendered() -> list[dict[str, Any]]:
            return [
                _translation_json(result, base[i] if base else None, homes, end)
                | {"matches": [match_json(texts[i], match, homes.get(match.memory)) for match in found[i]]}
                for i, result in enumerate(results)
            ]

        return await asyncio.to_thread(rendered)

    async def stream(self, head: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """First the head; then for each part of each text its translation, with the number of the text
        (`index`) and the white space `before` it; for each text what is `after` all of it. `error` is the
        last line of a stream that could not be finished; what came before it is good."""
        yield head
        known = KnownTexts(self.memories)
        try:
            for index, text in enumerate(self.wanted.texts):
                parts, after = await asyncio.to_thread(parts_of, text, lambda text: bool(known(text)))
                for some in portions(parts, STREAMED_AT_ONCE):
                    done = await self.translations([part.text for part in some])
                    for part, translation in zip(some, done, strict=True):
                        yield {"index": index, "before": part.before, **translation}
                yield {"index": index, "after": after}
        except KsterError as error:
            yield {"error": self.engine.catalogue.forget_paths(str(error))}


def _translation_json(
    result: Translation, base: Translation | None, homes: dict[str, dict[str, Any]], end: str | None
) -> dict[str, Any]:
    """end: the end-of-sentence token, where the translations are explained."""
    answer: dict[str, Any] = {
        "source": result.source,
        "text": result.text,
        "score": result.score,
        "alternatives": list(result.alternatives),
        "repaired": result.repaired,
    }
    if result.confidence is not None:
        answer["confidence"] = result.confidence
        answer["words"] = [asdict(word) for word in result.words or ()]
    if end is not None:
        answer["words"] = words_of(result, homes, end)
    if base is not None:
        words = words_of(base, homes, end) if end is not None else plain_words(base.text)
        answer.setdefault("words", plain_words(result.text))
        mark_changes(words, answer["words"])
        answer["base"] = {"text": base.text, "score": base.score, "words": words}
    return answer


def _smoother(served: ServedModel, method: str, parts: list[Memory]) -> str | None:
    """Where the smoother comes from: "memory" (fitted), "model", or "default"."""
    from kster.memory import MemoryGroup

    if method == "base":
        return None
    memory = parts[0] if len(parts) == 1 else MemoryGroup(parts)
    resolved = served.translator.resolve("knn" if method == "knn" else "kster", memory)
    return resolved.origin if resolved is not None else None


@router.get("/status", tags=["server"])
def status(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """What there is to work with: language pairs, limits, and what this key may do."""
    settings = engine.settings
    return {
        "version": __version__,
        "scope": principal.scope,
        "keys_required": settings.keys_required,
        "pairs": [
            {
                "pair": model.pair,
                "source": model.source,
                "target": model.target,
                "source_name": language_name(model.source),
                "target_name": language_name(model.target),
                "model": model.name,
            }
            for model in engine.models
        ],
        "limits": {
            "characters": settings.max_characters,
            "texts": settings.max_texts,
            "upload_mb": settings.max_upload_mb,
            "requests_per_minute": settings.rate or None,
        },
    }


@router.get("/stats", tags=["server"])
def stats(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """Sizes of what this key may see, and how busy the server is."""
    visible = engine.catalogue.visible(principal)
    parts = [part for memory in visible for _, part in engine.catalogue.pairs(memory)]
    return {
        "memories": len(visible),
        "segments": sum(part.segment_count() for part in parts),
        "entries": sum(part.entry_count for part in parts),
        "waiting_texts": sum(model.batcher.waiting for model in engine.models),
    }
