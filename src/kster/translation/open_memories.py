"""Memories as callers name them: open ones, groups, or directories to be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kster.errors import KsterError
from kster.memory import Memory, MemoryGroup, SearchableMemory
from kster.model import BaseModel
from kster.text.languages import match_rank

NamedMemory = SearchableMemory | str | Path | Sequence[Memory | str | Path]
"""One memory or group, open or by its directory, or a list of memories to be searched as one."""


@contextmanager
def opened(memory: NamedMemory | None, model: BaseModel) -> Iterator[SearchableMemory | None]:
    """Directories are opened for as long as the block takes; an open memory stays as it is."""
    with ExitStack() as stack:
        yield open_memory(memory, model, stack.enter_context)


def open_memory(
    memory: NamedMemory | None,
    model: BaseModel | None,
    keep: Callable[[Memory], Memory] = lambda memory: memory,
) -> SearchableMemory | None:
    """keep: called with each memory that is opened here."""
    if isinstance(memory, str | Path):
        return keep(Memory.open(memory, model))
    if not isinstance(memory, Sequence):
        return memory
    named = [keep(Memory.open(one, model)) if isinstance(one, str | Path) else one for one in memory]
    return named[0] if len(named) == 1 else MemoryGroup(named)


def first_directory(memory: NamedMemory | None) -> str | Path | None:
    """Of a memory that is not open: where to look for what model it was made with."""
    if isinstance(memory, str | Path):
        return memory
    named = memory if isinstance(memory, Sequence) else []
    return next((one for one in named if isinstance(one, str | Path)), None)


def model_of(
    directory: str | Path,
    model: str | Path | None = None,
    *,
    device: str = "auto",
    precision: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> BaseModel:
    """The model a memory was made with, loaded from where the memory says, or `model` says.

    Languages are the memory's; raises KsterError for one that contradicts them.
    """
    with Memory.open(directory) as memory:
        description = memory.description
    given = {"source": source_lang, "target": target_lang}
    known = {"source": description.source_lang, "target": description.target_lang}
    for side, language in given.items():
        own = known[side]
        if language is not None and own is not None and not match_rank(language, own):
            raise KsterError(
                f"{side} language {language!r}: the examples of {directory} are "
                f"{known['source'] or '?'} → {known['target'] or '?'}; a memory knows its languages"
            )
    return BaseModel.load(
        model or description.model_location(Path(directory)),
        device=device,
        precision=precision,
        source_lang=known["source"] or source_lang,
        target_lang=known["target"] or target_lang,
    )
