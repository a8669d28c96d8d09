"""/v1/translate: translations with provenance, and beside them what the base model alone would say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace
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
from kster.server.api.provenance import SegmentTable, mark_changes, plain_words, words_alone, words_of
from kster.server.api.texts import MAX_ALTERNATIVES, MAX_MATCHES, Means, Wish, matches_json
from kster.server.auth.access import Principal
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.translation import Method, Translation
from kster.translation.known_texts import KnownTexts
from kster.translation.parts import parts_of

router = APIRouter(prefix="/v1", tags=["translate"])

MOST_IN_DETAIL = 5_000  # characters explained by tokens, which takes up to 300 bytes a character
STREAMED_AT_ONCE = 1_000  # characters: a second or two on two cores


class TranslateRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str | list[str]
    source: str = Field(description="Language code, or `auto`.")
    target: str
    memories: list[int] | None = Field(
        None, description="Ids; by default the automatic ones; []: the base model alone."
    )
    method: Literal["base", "knn", "kster"] | None = None
    compare: bool = Field(False, description="Also the base model's translation, with changes marked.")
    explain: bool | Literal["tokens"] = Field(
        False,
        description="For every word, how much the memory decided and which segments taught it; with `tokens` "
        "also its tokens, with the examples that were looked at.",
    )
    confidence: bool = Field(False, description="How likely it and its words are right, from 0 to 1.")
    alternatives: int = Field(0, ge=0, le=MAX_ALTERNATIVES)
    terms: list[GivenTerm] = Field(default_factory=list, description="Kept in the translation, in any form.")
    term_bases: list[int] | None = Field(None, description="Ids; by default the automatic ones; []: none.")
    matches: int = Field(0, ge=0, le=MAX_MATCHES, description="How many fuzzy matches to name, best first.")
    context: str | None = Field(
        None,
        max_length=1_000,
        description="Where the text stands: of several translations it was taught with, the one from there "
        "is taken, whose match counts 101 %.",
    )
    exact_matches: bool = Field(
        True,
        description="Whether a text that a memory holds as a whole comes back as taught; without, it is "
        "translated like any other, with the memory's help.",
    )
    stream: bool = Field(False, description="Answer part by part, one JSON object a line.")
    partial: bool = Field(
        False,
        description="Go on without shards that do not answer; `partial` then says whether any did not.",
    )

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


@router.post("/translate", response_model=None)
async def translate(
    wanted: TranslateRequest, request: Request, engine: TheEngine, principal: Reader
) -> dict[str, Any] | StreamingResponse:
    """The translations of all texts at once, or with `stream` as they are made.

    With `explain`, `segments` names each segment that spoke for a word once, as `{number, memory, segment,
    source, target}`. Words refer to it by `number`: in `taught`, in `segments`, and in the `examples` of
    their tokens. Tokens are explained for texts of at most 5,000 characters.

    With `stream`, the first line is the answer without `translations`. Each further line is the translation
    of a few sentences with the number of their text (`index`), the white space `before` them and, with
    `explain`, the `segments` that no earlier line has named. `{index, after}` ends a text. `error` is the
    last line of a stream that could not be finished; what came before it is good.
    """
    engine.require_size(wanted.texts)
    if wanted.explain == "tokens" and (size := sum(map(len, wanted.texts))) > MOST_IN_DETAIL:
        raise KsterError(
            f"{size:,} characters are too many to explain token by token; at most {MOST_IN_DETAIL:,} are "
            "accepted, and `explain`: true explains the words of any text"
        )
    if wanted.partial and wanted.stream:
        raise KsterError("`partial` and `stream` cannot be combined; choose one")
    asked = await Asked.of(wanted, request, engine, principal)
    head = await asked.head()
    if wanted.stream:
        lines = (_line(part) async for part in asked.stream(head))
        return StreamingResponse(lines, media_type="application/x-ndjson")
    table = SegmentTable(asked.homes)
    answer = head | {"translations": await asked.translations(wanted.texts, table)}
    if wanted.explain:
        answer["segments"] = table.take_new()
    return answer | {"partial": any(one.lost for one in asked.means.memories)} if wanted.partial else answer


@dataclass(frozen=True)
class Asked:
    """A request, and what it takes to answer it."""

    wanted: TranslateRequest
    engine: Engine
    served: ServedModel
    means: Means
    detected: dict[str, Any] | None

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
        terms = [given.term() for given in wanted.terms]
        wish = Wish(
            memories=ids,
            terms=terms,
            term_bases=wanted.term_bases,
            exact_matches=wanted.exact_matches,
        )
        means = await Means.of(engine, principal, served, wish)
        if not means.used and wanted.method in ("knn", "kster") and ids:
            raise KsterError(f"none of these memories has examples for {served.pair}")
        if wanted.partial:
            means = replace(means, memories=[part.allowing_loss() for part in means.memories])
        return cls(wanted, engine, served, means, detected)

    @property
    def method(self) -> Method:
        return (self.wanted.method or "kster") if self.means.used else "base"

    @property
    def homes(self) -> dict[str, dict[str, Any]]:
        """What clients call the memory in a directory."""
        return {
            str(part.directory): {"id": memory.id, "name": memory.name, "pair": self.served.pair}
            for memory, part in self.means.used
        }

    async def head(self) -> dict[str, Any]:
        """What is the same for all texts."""
        served, means = self.served, self.means
        return {
            "source": served.source,
            "target": served.target,
            "pair": served.pair,
            "detected": self.detected,
            "method": self.method,
            "smoother": await asyncio.to_thread(_smoother, served, self.method, means.memories),
            "memories": list(self.homes.values()),
            "term_bases": [{"id": base.id, "name": base.name} for base in means.bases],
            "warnings": means.warnings,
        }

    async def translations(self, texts: list[str], table: SegmentTable) -> list[dict[str, Any]]:
        """table: gets the segments that explain the translations."""
        wanted, served, means = self.wanted, self.served, self.means
        adapted = self.engine.translate(
            served,
            texts,
            means.memories,
            method=self.method,
            n_best=1 + wanted.alternatives,
            explain=bool(wanted.explain),
            confidence=wanted.confidence,
            context=wanted.context,
            exact_matches=means.exact_matches,
            terms=means.terms,
            key=means.key,
        )
        if wanted.compare and self.method != "base":
            alone = self.engine.translate(
                served, texts, [], method="base", explain=bool(wanted.explain), key=means.key
            )
            results, base = await asyncio.gather(adapted, alone)
        else:
            results = await adapted
            base = results if wanted.compare else []
        matches = await matches_json(texts, means.memories, wanted.matches, wanted.context, self.homes.get)
        end = served.model.token_text(served.model.eos_id) if wanted.explain else None

        def rendered() -> list[dict[str, Any]]:
            with_tokens = wanted.explain == "tokens"
            return [
                _translation_json(result, base[i] if base else None, table, end, with_tokens=with_tokens)
                | {"matches": matches[i]}
                for i, result in enumerate(results)
            ]

        return await asyncio.to_thread(rendered)

    async def stream(self, head: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The lines that `translate` describes."""
        yield head
        table = SegmentTable(self.homes)
        known = KnownTexts(self.means.memories if self.means.exact_matches else [])
        try:
            for index, text in enumerate(self.wanted.texts):
                parts, after = await asyncio.to_thread(parts_of, text, lambda text: bool(known(text)))
                for some in portions(parts, STREAMED_AT_ONCE):
                    done = await self.translations([part.text for part in some], table)
                    for part, translation in zip(some, done, strict=True):
                        line = {"index": index, "before": part.before, **translation}
                        yield line | {"segments": table.take_new()} if self.wanted.explain else line
                yield {"index": index, "after": after}
        except KsterError as error:
            yield {"error": self.engine.catalogue.forget_paths(str(error))}


def _line(part: dict[str, Any]) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":")) + "\n"


def _translation_json(
    result: Translation,
    base: Translation | None,
    table: SegmentTable,
    end: str | None,
    *,
    with_tokens: bool,
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
        answer["words"] = words_of(result, table, end, with_tokens=with_tokens)
    if base is not None:
        words = words_alone(base, end) if end is not None else plain_words(base.text)
        answer.setdefault("words", plain_words(result.text))
        mark_changes(words, answer["words"])
        answer["base"] = {"text": base.text, "score": base.score, "words": words}
    return answer


def _smoother(served: ServedModel, method: Method, parts: Sequence[Memory]) -> str | None:
    """Where the smoother comes from: "memory" (fitted), "model", or "default"."""
    resolved = served.translator.resolve(method, parts)
    return resolved.origin if resolved is not None else None
