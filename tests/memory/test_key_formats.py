"""Keys in 8 bits: half the disk, and everything that is promised of a memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from speller import Speller

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store.backup import back_up, restore
from kster.memory.store.key_formats import FORMATS

PAIRS = [Pair(f"source {i}", f"ziel {i}") for i in range(30)]


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_key_that_was_read_is_stored_as_it_was_read(name: str) -> None:
    """So checksums hold, compactions change nothing, and what is staged can be taken over."""
    random = np.random.default_rng(0)
    keys = (random.standard_normal((200, 64)) * 10 ** random.uniform(-3, 3, (200, 1))).astype(np.float16)
    keys[0] = 0
    one = FORMATS[name]
    rows = one.encoded(keys)
    again = one.decoded(rows)
    kind, width = one.row(64)
    assert (rows.dtype, rows.shape) == (kind, (200, width))
    assert np.array_equal(one.encoded(again), rows)
    largest = np.abs(keys).max(axis=1, keepdims=True).astype(np.float32)
    assert (np.abs(again.astype(np.float32) - keys) <= largest / 200).all()


def test_a_memory_of_int8_keys_keeps_what_a_memory_promises(tmp_path: Path) -> None:
    speller = Speller()
    with Memory.create(tmp_path / "m", speller, entries_per_shard=20, key_format="int8") as memory:
        segments = memory.add_many(PAIRS)
        assert memory.verify() == []
        for pair in PAIRS[:5]:
            found = memory.search(speller.query(pair.source), 1)
            assert memory.provenance(found.ids[0])[0].segment.source == pair.source
        memory.remove([segment.id for segment in segments[::3]])
        before = memory.search(speller.query(PAIRS[1].source), 4)
        memory.compact()
        after = memory.search(speller.query(PAIRS[1].source), 4)
        assert np.array_equal(before.keys.numpy(), after.keys.numpy())
        assert memory.verify() == []
        back_up(memory._store, tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "again")
    with Memory.open(tmp_path / "again", speller) as memory:
        assert memory.verify() == []
        assert [segment.source for segment in memory.segments()] == [
            p.source for i, p in enumerate(PAIRS) if i % 3
        ]


def test_what_a_writer_left_behind_is_not_read(tmp_path: Path) -> None:
    speller = Speller()
    with Memory.create(tmp_path / "m", speller, entries_per_shard=20, key_format="int8") as memory:
        memory.add_many(PAIRS[:3])
    newest = sorted((tmp_path / "m" / "entries" / "0").glob("keys-*.i8"))[-1]
    with newest.open("ab") as file:
        file.write(b"\xff" * 100)
    with Memory.open(tmp_path / "m", speller) as memory:
        memory.add_many(PAIRS)
        assert memory.verify() == []


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    speller = Speller()
    with pytest.raises(KsterError, match="no key format 'int4'; accepted: float16, int8"):
        Memory.create(tmp_path / "m", speller, key_format="int4")
    Memory.create(tmp_path / "m", speller).close()
    file = tmp_path / "m" / "memory.json"
    said = json.loads(file.read_text())
    del said["keys"]  # as older versions wrote it
    file.write_text(json.dumps(said))
    Memory.open(tmp_path / "m", speller).close()
    file.write_text(json.dumps(said | {"keys": "int4"}))
    with pytest.raises(KsterError, match="use a newer one"):
        Memory.open(tmp_path / "m", speller)
