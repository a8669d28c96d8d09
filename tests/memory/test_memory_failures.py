"""A full disk, a missing file, a mistaken call: one clear error, and the memory as it was."""

from __future__ import annotations

import json
import re
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.errors import DamagedMemory
from kster.files import sync_directory
from kster.formats import Pair
from kster.memory import Memory, MemoryGroup
from kster.memory.store.database import Database

# A full disk -----------------------------------------------------------------------------------------


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Writes beyond fail, as they do on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[Memory]:
    """Keys of 512 bytes: files of keys are longer than the database by far."""
    with Memory.create(tmp_path / "wide", Speller(256), entries_per_shard=10_000) as memory:
        memory.import_pairs(Pair(f"s{i}", "abc") for i in range(500))  # 1 MB of keys
        yield memory


def sizes(memory: Memory) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (memory.directory / "entries").rglob("*.*")}


def test_an_import_into_a_full_disk_changes_nothing_and_says_so(wide: Memory) -> None:
    before = sizes(wide)
    with no_file_longer_than(1_100_000), pytest.raises(KsterError, match="nothing was changed"):
        wide.import_pairs(Pair(f"more{i}", "abc") for i in range(100))
    assert sizes(wide) == before
    assert wide.verify() == []
    wide.import_pairs(Pair(f"more{i}", "abc") for i in range(100))
    assert wide.segment_count() == 600
    assert wide.verify() == []


def test_a_memory_that_does_not_fit_on_the_disk_is_not_created(tmp_path: Path, speller: Speller) -> None:
    with no_file_longer_than(1_000), pytest.raises(KsterError, match="cannot be created"):
        Memory.create(tmp_path / "new", speller)
    assert list(tmp_path.iterdir()) == []


def test_a_compaction_on_a_full_disk_changes_nothing_and_says_so(wide: Memory) -> None:
    wide.remove(1)
    with no_file_longer_than(900_000), pytest.raises(KsterError, match="nothing was changed"):
        wide.compact()
    assert wide.verify() == []
    assert wide.compact().segments_dropped == 1


def test_a_compaction_without_room_to_tidy_up_is_done_all_the_same(
    wide: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execute = Database.execute

    def without_room(database: Database, statement: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        if statement == "VACUUM":
            raise sqlite3.OperationalError("database or disk is full")
        return execute(database, statement, parameters)

    wide.remove(range(1, 300))  # more than a quarter
    monkeypatch.setattr(Database, "execute", without_room)
    assert wide.compact().segments_dropped == 299
    assert "does not get smaller before the next compaction" in caplog.text
    assert b"s299" not in (wide.directory / "memory.sqlite").read_bytes()  # its texts are gone, for all that
    assert wide.verify() == []


# Damage and trouble ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_verify_finds_a_flipped_bit_in_a_text(memory: Memory, side: str) -> None:
    memory.import_pairs([Pair("red house", "rote Tür"), Pair("tree", "Baum")])
    altered = {"source": "rEd house", "target": "vote Tür"}[side]
    with closing(sqlite3.connect(memory.directory / "memory.sqlite")) as database, database:
        database.execute(f"UPDATE segments SET {side} = ? WHERE id = 1", (altered,))
    assert memory.verify() == ["segment 1: its text is not what was written"]


def test_a_damaged_memory_is_told_from_other_mistakes(memory: Memory, tmp_path: Path) -> None:
    memory.add("tree", "Baum")
    (memory.directory / "memory.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(DamagedMemory):
        Memory.open(memory.directory)
    (memory.directory / "memory.json").write_text("{}")
    with pytest.raises(DamagedMemory):
        Memory.open(memory.directory)
    with pytest.raises(KsterError, match="no such memory") as missing:
        Memory.open(tmp_path / "nowhere")
    assert not isinstance(missing.value, DamagedMemory)


def test_missing_entry_files_are_named_by_readers_and_writers(memory: Memory, speller: Speller) -> None:
    memory.import_pairs([Pair("tree", "Baum")])
    shutil.rmtree(memory.directory / "entries")
    for act in (
        lambda: Memory.open(memory.directory, speller).search(speller.query("tree"), 1),
        lambda: memory.add("bird", "Vogel"),
        lambda: memory.remove(1),
        lambda: memory.compact(),
    ):
        with pytest.raises(KsterError, match=r"(entries|values-00000\.i32): .* missing; restore it from a"):
            act()
    assert memory.verify() == ["values-00000.i32 is missing", "keys-00000.f16 is missing"]
    assert [s.source for s in memory.segments()] == ["tree"]  # the text is safe


def test_a_damaged_database_is_an_error_for_people_wherever_it_is_met(
    memory: Memory, speller: Speller
) -> None:
    memory.import_pairs(Pair(f"source {i}", f"target {i}") for i in range(500))
    memory.close()
    path = memory.directory / "memory.sqlite"
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = b"\xa5" * (len(content) - 4096 * 3)  # the state is in one of the first pages
    path.write_bytes(content)
    acts: list[Callable[[Memory], object]] = [
        lambda opened: opened.search(speller.query("tree"), 1),
        lambda opened: opened.segments(),
        lambda opened: opened.segment(77),
        lambda opened: opened.find_text("source 5"),
        lambda opened: list(opened.export()),
        lambda opened: opened.add("new", "neu"),
        lambda opened: opened.compact(),
    ]
    for act in acts:
        with pytest.raises(KsterError, match=r"malformed: restore it from a backup"):
            act(Memory.open(memory.directory, speller))


def test_a_database_another_program_holds_is_an_error_for_people(memory: Memory) -> None:
    memory.add("tree", "Baum")
    memory.close()
    other = sqlite3.connect(memory.directory / "memory.sqlite", isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    address = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:  # a minute is long
        patch.setattr(sqlite3, "connect", lambda *args, **named: address(*args, **{**named, "timeout": 0.05}))
        with pytest.raises(KsterError, match=r"locked: another program holds it; try again"):
            Memory.open(memory.directory)
    other.close()


# Texts no file can hold ------------------------------------------------------------------------------

UNUSABLE = [
    (Pair("tree", "Ba\x0bum"), r"target contains the character U\+000B"),
    (Pair("\udcff", "Baum"), r"source contains the character U\+DCFF"),
    (Pair("t" * 10_001, "Baum"), "source has 10,001 characters, more than the limit of 10,000"),
    (Pair("tree", "Baum", "\x00"), r"id contains the character U\+0000"),
]


@pytest.mark.parametrize(("pair", "reason"), UNUSABLE)
def test_what_an_import_rejects_cannot_be_added_either(memory: Memory, pair: Pair, reason: str) -> None:
    with pytest.raises(KsterError, match=f"{reason}; nothing was added"):
        memory.add(pair.source, pair.target, unit=pair.id)
    with pytest.raises(KsterError, match=f"{reason}; nothing was added"):
        memory.add_many([Pair("bird", "Vogel"), pair])
    with pytest.raises(KsterError, match=f"{reason}; nothing was added"):
        memory.replace(pair.id or "7", pair.source, pair.target)
    (rejection,) = memory.import_pairs([pair]).rejected
    assert re.fullmatch(reason, rejection.reason)
    assert memory.segments() == []


def test_a_file_name_that_is_no_unicode_is_kept_as_far_as_it_goes(memory: Memory) -> None:
    memory.import_pairs([Pair("tree", "Baum")], origin="B\udce4ume.tmx")
    assert memory.segment(1).origin == "B\ufffdume.tmx"


# Files that are missing or were changed --------------------------------------------------------------


def test_a_memory_without_its_database_is_not_opened_and_no_empty_one_is_made(
    memory: Memory, speller: Speller
) -> None:
    memory.close()
    (memory.directory / "memory.sqlite").unlink()
    with pytest.raises(KsterError, match=r"memory\.sqlite is missing"):
        Memory.open(memory.directory, speller)
    assert not (memory.directory / "memory.sqlite").exists()


def test_a_memory_may_have_any_name(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "50% of it? #1 ä", speller) as memory:
        memory.add("tree", "Baum")
    with Memory.open(memory.directory, speller) as memory:
        assert memory.segment_count() == 1


def test_a_new_memory_is_durable_in_its_parent(
    tmp_path: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, bool]] = []

    def noted(path: Path) -> None:
        synced.append((path, (tmp_path / "new").exists()))
        sync_directory(path)

    monkeypatch.setattr("kster.files.sync_directory", noted)
    Memory.create(tmp_path / "new", speller).close()
    assert synced[-1] == (tmp_path, True)  # after it has got its name


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dimension", "16"),
        ("entries_per_shard", 0),
        ("vocabulary_size", True),
        ("model", None),
        ("created", 5),
    ],
)
def test_a_description_with_a_wrong_field_names_file_and_field(
    memory: Memory, field: str, value: object
) -> None:
    path = memory.directory / "memory.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(KsterError, match=rf"memory\.json: damaged \({field} is .*, not "):
        Memory.open(memory.directory)


# Numbers and texts no memory can have ----------------------------------------------------------------


def test_numbers_beyond_64_bits_name_nothing(memory: Memory) -> None:
    memory.add("tree", "Baum")
    with pytest.raises(KsterError, match="no segment 100000000000000000000000; nothing was removed"):
        memory.remove([1, 10**23])
    for beyond in (10**20, -(10**20)):
        with pytest.raises(KsterError, match="no segment"):
            memory.segment(beyond)
        with pytest.raises(KsterError, match="no entry"):
            memory.provenance([beyond])
        with pytest.raises(KsterError, match="no entry"):
            MemoryGroup([memory]).provenance([beyond])
    assert memory.segments(offset=10**20) == []
    assert len(memory.segments(limit=10**20)) == 1


def test_text_with_lone_surrogates_is_not_found(memory: Memory) -> None:
    memory.add("tree", "Baum")
    assert memory.find_text("\udcff") == []
    assert memory.find_text(target="\udcff") == []
    assert memory.segments(query="\udcff") == []
    assert memory.segment_count("\udcff") == 0
    assert memory.remove_pair("\udcff", "Baum") == 0
