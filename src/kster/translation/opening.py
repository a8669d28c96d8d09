"""Memories as callers name them: open ones, groups, or directories to be opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kster.errors import KsterError
from kster.formats.languages import match_rank
from kster.memory import Memory, MemoryGroup
from kster.model import BaseModel

OpenMemory = Memory | MemoryGroup
NamedMemory = Memory | MemoryGroup | str | Path


@contextmanager
def opened(memory: NamedMemory | None, model: BaseModel) -> Iterator[OpenMemory | None]:
    """A directory is opened for as long as the block takes; an open memory stays as it is."""
    if isinstance(memory, str | Path):
        with Memory.open(memory, model) as own:
            yield own
    else:
        yield memory


def members(memory: OpenMemory | None) -> Sequence[Memory]:
    if isinstance(memory, MemoryGroup):
        return memory.memories
    return [] if memory is None else [memory]


def model_of(
    directory: str | Path,
    model: str | Path | None = None,
    *,
    device: str = "auto",
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
        source_lang=known["source"] or source_lang,
        target_lang=known["target"] or target_lang,
    )
