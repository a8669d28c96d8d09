"""From the names on a command line to a loaded model and open memories."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Memory
    from kster.memory.search.settings import Search
    from kster.model import BaseModel
    from kster.translation import Translator


log = logging.getLogger("kster.cli")


class Loading(TypedDict, total=False):
    """How a model is loaded."""

    device: str
    precision: str
    source_lang: str | None
    target_lang: str | None


def load_model(name: str, **how: Unpack[Loading]) -> BaseModel:
    from kster.model import BaseModel

    log.info("loading the model %s", name)
    return BaseModel.load(name, **how)


def open_memory(directory: Path) -> Memory:
    """A memory to look into; its model is not loaded."""
    from kster.memory import Memory

    return Memory.open(directory)


def load_model_of(directory: Path, model: str | None, **how: Unpack[Loading]) -> BaseModel:
    """The model that made a memory, found where the memory says or where `model` says."""
    from kster.translation.open_memories import model_of

    log.info("opening the memory %s and its model", directory)
    return model_of(directory, model, **how)


def open_with_model(directory: Path, model: str | None, device: str) -> Memory:
    """A memory and the model that made it."""
    from kster.memory import Memory

    return Memory.open(directory, load_model_of(directory, model, device=device))


def open_translator(
    memories: Sequence[Path] | None,
    model: str | None,
    terms: Path | None = None,
    search: Search = "auto",
    **how: Unpack[Loading],
) -> Translator:
    """A translator with all of these memories, or with a model alone."""
    from kster.memory import Memory, SearchSettings
    from kster.translation import Translator

    if memories:
        loaded = load_model_of(memories[0], model, **how)
        settings = SearchSettings(mode=search)
        opened = [Memory.open(directory, loaded, search=settings) for directory in memories]
        return Translator(loaded, opened, terms=terms)
    if model is None:
        raise KsterError("nothing to translate with: give --memory DIR or --model MODEL")
    return Translator(load_model(model, **how), terms=terms)
