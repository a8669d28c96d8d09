"""Errors can be caught by kind: a program may mend one of them and hand the others on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import kster
from kster import (
    DamagedMemory,
    DiskFull,
    FitSettings,
    FormatError,
    KsterError,
    Memory,
    MemoryBusy,
    MemoryStoreError,
    ModelError,
    SettingsError,
    Translator,
)
from kster.memory.store.failures import for_people


@pytest.fixture
def memory(tiny_marian: Path, tmp_path: Path) -> Memory:
    with Memory.create(tmp_path / "memory", tiny_marian) as memory:
        memory.add("open the lid", "den Deckel öffnen")
    return Memory.open(tmp_path / "memory")


def test_every_kind_is_a_kster_error() -> None:
    kinds = [getattr(kster, name) for name in kster.__all__]
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) == 8
    assert all(issubclass(kind, KsterError) for kind in kinds)


def test_models_memories_files_and_settings_fail_each_in_their_own_way(
    memory: Memory, tmp_path: Path
) -> None:
    with pytest.raises(ModelError):
        Translator(tmp_path / "nowhere")
    with pytest.raises(MemoryStoreError):
        Memory.open(tmp_path / "nowhere")
    with pytest.raises(SettingsError):
        FitSettings(steps=0)
    (tmp_path / "broken.tmx").write_text("<tmx><body>")
    with memory, pytest.raises(FormatError):
        memory.import_file(tmp_path / "broken.tmx")


def test_damage_is_told_from_a_memory_that_is_busy_or_has_no_room(memory: Memory, tmp_path: Path) -> None:
    other = Memory.open(tmp_path / "memory", lock_timeout=0.0)
    with other, memory, memory._store.writing(), pytest.raises(MemoryBusy):
        other.remove(1)
    with pytest.raises(DiskFull), for_people(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    (tmp_path / "memory" / "memory.json").write_text("{")
    with pytest.raises(DamagedMemory):
        Memory.open(tmp_path / "memory")
