"""Memories of older formats, written by the programs of their time, are upgraded when they are opened."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.memory import Memory
from kster.memory.store import database as databases
from kster.memory.store.description import Description
from kster.memory.store.migrations import FORMAT

OLDER = sorted(Path(__file__).parent.glob("format-*.backup"))  # written by format_fixture.py
MIGRATIONS_AND_DESCRIPTION = 2  # places where an upgrade can be killed


@pytest.fixture(params=OLDER, ids=lambda path: path.stem)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A memory as an older program left it."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path / "memory", filter="data")
    return tmp_path / "memory"


def require_whole(directory: Path) -> None:
    """The segments that the older program was given, and every promise about them."""
    speller = Speller(dimension=4)
    with Memory.open(directory, speller) as memory:
        assert memory.verify() == []
        assert [(s.id, s.source, s.target, s.unit) for s in memory.segments()] == [
            (2, "house", "Haus", None),
            (3, "house", "Gebäude", "h-2"),
            (5, "tree", "der Baum", "t-1"),
        ]
        assert memory.entry_count == 23
        assert [s.id for s in memory.find_text(source="house")] == [2, 3]
        found = memory.search(speller.query("tree", "der "), 1)
        assert found.distances[0, 0] == 0
        assert found.values[0, 0] == ord("B")
        assert memory.search(speller.query("wrong"), 1).distances[0, 0] > 0  # removed by the older program
        assert memory.matches("the house")[0].segment.source == "house"


def formats_of(directory: Path) -> tuple[int, int]:
    """What memory.json and the database say."""
    with closing(databases.Database(directory)) as database:
        return json.loads((directory / "memory.json").read_text())["format"], database.format()


def test_there_is_a_memory_of_every_older_format() -> None:
    assert [path.stem for path in OLDER] == [f"format-{n}" for n in range(1, FORMAT)]


def test_opening_an_older_memory_upgrades_it(older: Path, caplog: pytest.LogCaptureFixture) -> None:
    require_whole(older)
    assert formats_of(older) == (FORMAT, FORMAT)
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"upgraded to format {FORMAT}" in said
    with Memory.open(older, Speller(dimension=4)) as memory:
        assert memory.description.format == FORMAT
        assert memory.add("bird", "Vogel").id == 6  # the next id, and none is used again
        memory.remove(6)
        memory.compact()
    require_whole(older)
    assert len(caplog.records) == 1


def test_an_upgraded_memory_has_the_tables_of_a_new_one(older: Path, tmp_path: Path) -> None:
    Memory.open(older, Speller(dimension=4)).close()
    Memory.create(tmp_path / "new", Speller(dimension=4)).close()
    tables = []
    for directory in (older, tmp_path / "new"):
        with closing(sqlite3.connect(directory / "memory.sqlite")) as connection:
            found = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
            tables.append([(name, (sql or "").split()) for name, sql in found])
    assert tables[0] == tables[1]


@pytest.mark.parametrize("older_backup", OLDER, ids=lambda path: path.stem)
def test_a_backup_of_an_older_memory_is_restored(older_backup: Path, tmp_path: Path) -> None:
    Memory.restore(older_backup, tmp_path / "restored")
    require_whole(tmp_path / "restored")


def upgrade_and_die(directory: str, step: int) -> None:
    """step: 0 dies when memory.json is written, 1 when the tables are changed and not yet committed."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    write, migrate = Description.write, databases.Database.migrate

    def write_and_die(self: Description, place: Path) -> None:
        write(self, place)
        die()

    def migrate_and_die(self: databases.Database) -> None:
        migrate(self)
        die()

    if step == 0:
        Description.write = write_and_die  # type: ignore[method-assign]
    else:
        databases.Database.migrate = migrate_and_die  # type: ignore[method-assign]
    Memory.open(directory, Speller(dimension=4))


@pytest.mark.parametrize("step", range(MIGRATIONS_AND_DESCRIPTION))
def test_an_upgrade_that_is_killed_is_finished_by_the_next_program(older: Path, step: int) -> None:
    before = formats_of(older)
    process = multiprocessing.get_context("forkserver").Process(
        target=upgrade_and_die, args=(str(older), step)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert formats_of(older) == (FORMAT, before[1])  # an older program refuses it from now on
    require_whole(older)
    assert formats_of(older) == (FORMAT, FORMAT)


@pytest.mark.parametrize("where", ["memory.json", "memory.sqlite"])
def test_a_newer_memory_is_refused_by_name_and_left_alone(tmp_path: Path, where: str) -> None:
    directory = tmp_path / "memory"
    Memory.create(directory, Speller()).close()
    if where == "memory.json":
        content = json.loads((directory / where).read_text())
        (directory / where).write_text(json.dumps({**content, "format": FORMAT + 1}))
    else:
        with closing(sqlite3.connect(directory / where)) as connection:
            connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = (directory / where).read_bytes()
    with pytest.raises(KsterError, match=rf"memory.*format {FORMAT + 1}; this one reads up to {FORMAT}"):
        Memory.open(directory)
    assert (directory / where).read_bytes() == before


def test_an_older_memory_that_may_not_be_written_says_what_to_do(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "memory.json")

    monkeypatch.setattr(Description, "write", refuse)
    with pytest.raises(KsterError, match=r"must be upgraded to format.*Permission denied: make it writable"):
        Memory.open(older)
    assert formats_of(older)[0] < FORMAT
