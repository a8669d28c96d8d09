"""Values of a configuration that do not go together, found before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kster.errors import SettingsError

if TYPE_CHECKING:
    from kster.training.settings import TrainSettings


def require_sense(settings: TrainSettings, file: str) -> None:
    """Raise `KsterError` for the first value that makes no sense: which file, which key, what is accepted."""
    for key, problem in _contradictions(settings).items():
        if problem:
            raise SettingsError(f"{file}: {key}: {problem}")


def _contradictions(settings: TrainSettings) -> dict[str, str | bool]:
    training, network, cleaning = settings.training, settings.network, settings.cleaning
    problems: dict[str, str | bool] = {
        "corpora": (not settings.corpora and "at least one corpus is needed")
        or (not any(corpus.weight for corpus in settings.corpora) and "at least one weight must not be 0"),
        "source_lang": settings.source_lang == settings.target_lang and "must differ from target_lang",
        "vocabulary.reuse": settings.init is not None
        and settings.vocabulary.reuse is not None
        and "`init` brings its own vocabulary; leave this key out",
        "smoother.general": bool(settings.smoother.domains)
        and not settings.smoother.general
        and "needed beside smoother.domains: text that memories should leave alone",
        "vocabulary.transplant": settings.vocabulary.transplant
        and settings.init is None
        and "needs `init`, a model whose embeddings are carried over",
        "training.batch_tokens": training.batch_tokens < cleaning.max_tokens
        and f"must hold the longest sentence (cleaning.max_tokens = {cleaning.max_tokens})",
        "training.betas": len(training.betas) != 2 and "expects two numbers",
    }
    if settings.init is None:
        problems |= {
            "network.heads": network.dimension % network.heads != 0 and "must divide network.dimension",
            "network.dimension": network.dimension % 2 != 0 and "must be even",
            "network.positions": network.positions < cleaning.max_tokens
            and f"must be at least cleaning.max_tokens = {cleaning.max_tokens}",
        }
    for name in ("source_lang", "target_lang", "prepared", "output"):
        if not getattr(settings, name).strip():
            problems[name] = "must not be empty"
    return problems
