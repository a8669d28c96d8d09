"""From the names on a command line to a loaded model and open memories."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Memory, MemoryGroup, SearchSettings
    from kster.memory.search.settings import Search
    from kster.model import BaseModel
    from kster.translation import Translator


log = logging.getLogger("kster.cli")


def load_model(
    name: str,
    device: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    precision: str = "auto",
) -> BaseModel:
    from kster.model import BaseModel

    log.info("loading the model %s", name)
    return BaseModel.load(
        name, device=device, precision=precision, source_lang=source_lang, target_lang=target_lang
    )


def open_memory(directory: Path) -> Memory:
    """A memory to look into; its model is not loaded."""
    from kster.memory import Memory

    return Memory.open(directory)


def open_with_model(
    directory: Path,
    model: str | None = None,
    device: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    precision: str = "auto",
    search: SearchSettings | None = None,
) -> Memory:
    """A memory and the model that made it, found where the memory says or where `model` says."""
    from kster.memory import Memory
    from kster.translation.open_memories import model_of

    log.info("opening the memory %s and its model", directory)
    loaded = model_of(
        directory,
        model,
        device=device,
        precision=precision,
        source_lang=source_lang,
        target_lang=target_lang,
    )
    return Memory.open(directory, loaded, search=search)


def open_translator(
    memories: Sequence[Path],
    model: str | None,
    device: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    precision: str = "auto",
    terms: Path | None = None,
    search: Search = "auto",
) -> Translator:
    """A translator with all of these memories, or with a model alone."""
    from kster.memory import Memory, MemoryGroup, SearchSettings
    from kster.translation import Translator

    if not memories:
        if model is None:
            raise KsterError("nothing to translate with: give --memory DIR or --model MODEL")
        loaded = load_model(model, device, source_lang, target_lang, precision)
        return Translator(loaded, terms=terms)
    settings = SearchSettings(mode=search)
    first = open_with_model(memories[0], model, device, source_lang, target_lang, precision, settings)
    others = (Memory.open(directory, first.model, search=settings) for directory in memories[1:])
    opened = [first, *others]
    memory: Memory | MemoryGroup = first if len(opened) == 1 else MemoryGroup(opened)
    return Translator(first.model, memory, terms=terms)
