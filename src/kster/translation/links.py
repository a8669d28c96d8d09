"""Which characters of a source became which of its translation."""

from __future__ import annotations

import re

from torch import Tensor

from kster.model import BaseModel
from kster.model.alignment import align
from kster.text.projection import Link, Span
from kster.translation.words import token_spans

_LANGUAGE = re.compile(r"▁?(?:__\w{2,3}__|>>\w+<<|[a-z]{3}_[A-Z][a-z]{3})")  # a token that names one


def links_of(
    model: BaseModel,
    texts: list[str],
    sources: list[list[int]],
    translations: list[str],
    targets: list[list[int]],
) -> list[tuple[Link, ...]]:
    """For every text and its translation, given with their tokens (ends of sentences included)."""
    aligned = align(model, sources, targets)
    return [
        tuple(_links(attention, _places(model, source, text), _places(model, target, translation)))
        for attention, text, source, translation, target in zip(
            aligned, texts, sources, translations, targets, strict=True
        )
    ]


def _links(attention: Tensor, source: list[Span | None], target: list[Span | None]) -> list[Link]:
    """Every target token with the source token it attends to most; and every source token that is left with
    the target token that attends to it most. attention: (t, s)."""
    real_source = [i for i, span in enumerate(source) if span is not None]
    real_target = [i for i, span in enumerate(target) if span is not None]
    if not real_source or not real_target:
        return []
    strength = attention[real_target][:, real_source]  # (t', s') without what is no text
    found = {(s, t) for t, s in enumerate(strength.argmax(1).tolist())}
    linked = {s for s, _ in found}
    found |= {(s, t) for s, t in enumerate(strength.argmax(0).tolist()) if s not in linked}
    spans = ((source[real_source[s]], target[real_target[t]]) for s, t in sorted(found))
    return [(one, other) for one, other in spans if one is not None and other is not None]


def _places(model: BaseModel, tokens: list[int], text: str) -> list[Span | None]:
    """Where each token stands in the text; None for languages, ends of sentences and the like."""
    special = model.tokenizer.special_ids
    shown = ["" if token in special else _LANGUAGE.sub("", model.token_text(token)) for token in tokens]
    spans = token_spans(shown, text)
    return [span if span is not None and text[slice(*span)].strip() else None for span in spans]
