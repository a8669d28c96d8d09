"""Recipes: the YAML file of a training run, read and checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from kster.errors import SettingsError
from kster.training.settings import TrainSettings
from kster.typed_settings import read_dataclass


class _Loader(yaml.SafeLoader):
    """YAML in which a key stands once: PyYAML would let the last one win without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ConstructorError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # a SafeLoader
    except FileNotFoundError:
        raise SettingsError(f"there is no configuration file {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None


def load_settings(path: str | Path, overrides: Mapping[str, Any] | None = None) -> TrainSettings:
    """Read and check a configuration file.

    `overrides` maps dotted keys ("training.steps", "corpora.0.weight") to values and wins over the file.
    """
    path = Path(path)
    content = _read_recipe(path)
    for key, value in (overrides or {}).items():
        _override(content, key, value)
    settings = read_dataclass(TrainSettings, content, file=str(path))
    for key, problem in _contradictions(settings).items():
        if problem:
            raise SettingsError(f"{path}: {key}: {problem}")
    return settings


def _read_recipe(path: Path, readers: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The keys of a file, on top of those of the one beside it that `like` names."""
    if path in readers:
        raise SettingsError(f"{path}: like: the recipe is built on itself")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected keys and values, found {type(content).__name__}")
    like = content.pop("like", None)
    if like is None:
        return content
    return _merged(_read_recipe(path.parent / str(like), (*readers, path)), content)


def _merged(below: Any, above: Any) -> Any:
    """Mappings key by key; anything else above takes the place of what is below."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: _merged(below.get(key), value) for key, value in above.items()}


def _override(content: dict[str, Any], key: str, value: Any) -> None:
    node: Any = content
    *parents, last = key.split(".")
    try:
        for part in parents:
            if isinstance(node, list):
                node = node[int(part)]
            else:
                if node.get(part) is None:
                    node[part] = {}
                node = node[part]
        if isinstance(node, list):
            node[int(last)] = value
        else:
            node[last] = value
    except (ValueError, IndexError, AttributeError, TypeError):
        raise SettingsError(f"--set {key}: there is no such place in the configuration") from None


def _contradictions(settings: TrainSettings) -> dict[str, str | bool]:
    """Keys whose values do not go together, found before any work is done → what is wrong with them."""
    training, network, cleaning = settings.training, settings.network, settings.cleaning
    problems: dict[str, str | bool] = {
        "corpora": (not settings.corpora and "at least one corpus is needed")
        or (not any(corpus.weight for corpus in settings.corpora) and "at least one weight must not be 0"),
        "source_lang": settings.source_lang == settings.target_lang and "must differ from target_lang",
        "vocabulary.reuse": settings.init is not None
        and settings.vocabulary.reuse is not None
        and not settings.vocabulary.transplant
        and "`init` brings its own vocabulary; leave this key out, or set vocabulary.transplant to true",
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
