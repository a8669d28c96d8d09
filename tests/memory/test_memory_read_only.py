"""A memory that may be read and not changed: a share, an image, another user's directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store import database

IN_A_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNT_AND_RUN = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'

LOOK_AND_TRY = """
import sys
sys.path.insert(0, sys.argv[2])
from speller import Speller
from kster import KsterError, Memory
from kster.formats import Pair

speller = Speller()
memory = Memory.open(sys.argv[1], speller, lock_timeout=1)
assert memory.segment_count() == 2 and len(memory.segments(query="BAUM")) == 1
assert memory.search(speller.query("tree"), 1).distances.tolist() == [[0.0]]
assert memory.verify() == [] and memory.info().segments == 2 and len(list(memory.export())) == 2
changes = [
    lambda: memory.add("new", "neu"),
    lambda: memory.add("tree", "Baum"),
    lambda: memory.import_pairs([Pair("new", "neu")]),
    lambda: memory.remove(1),
    lambda: memory.compact(),
    lambda: Memory.create(sys.argv[1] + "/inside", speller),
]
for change in changes:
    try:
        change()
    except KsterError as error:
        print(error)
memory.close()
"""


@pytest.fixture
def filled(memory: Memory) -> Path:
    memory.import_pairs([Pair("tree", "Baum"), Pair("bird", "Vogel")])
    memory.close()
    return memory.directory


@pytest.mark.parametrize("left_open", [False, True], ids=["closed", "in use elsewhere"])
def test_a_memory_on_a_read_only_file_system_is_read(filled: Path, left_open: bool) -> None:
    possible = (
        shutil.which("unshare") and subprocess.run([*IN_A_NAMESPACE, "true"], check=False).returncode == 0
    )
    if not possible:
        pytest.skip("this machine lets nobody mount anything")
    elsewhere = Memory.open(filled, Speller()) if left_open else None
    if elsewhere is not None:
        elsewhere.remove(elsewhere.add("other", "anderes").id)
    look = [sys.executable, "-c", LOOK_AND_TRY, str(filled), str(Path(__file__).parent)]
    done = subprocess.run(
        [*IN_A_NAMESPACE, "sh", "-c", MOUNT_AND_RUN, "sh", str(filled), *look],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    for line in lines:
        assert "Read-only file system: make it writable for this user, or work on a copy" in line
    for line in lines[:5]:
        assert "nothing was changed" in line
    if elsewhere is not None:
        elsewhere.close()


def test_what_others_write_into_a_memory_one_may_only_read_is_seen(
    filled: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database.os, "access", lambda path, mode: False)
        reader = Memory.open(filled, speller)
        assert reader._store._reader._frozen is not None
    query = speller.query("new")
    assert reader.search(query, 1).distances[0, 0] > 0
    with Memory.open(filled, speller) as owner:
        owner.add("new", "neu")
        with monkeypatch.context() as patch:
            patch.setattr(database.os, "access", lambda path, mode: False)
            assert reader.search(query, 1).distances[0, 0] == 0  # while its owner has it open
        owner.add("newer", "neuer")
    assert reader.search(speller.query("newer"), 1).distances[0, 0] == 0  # and afterwards
    assert reader.segment_count() == 4
    assert reader.verify() == []


def test_a_memory_whose_log_cannot_be_read_says_what_to_do(
    filled: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    (filled / "memory.sqlite-wal").mkdir()
    monkeypatch.setattr(database.os, "access", lambda path, mode: False)
    with pytest.raises(KsterError, match=r"cannot be used \(unable to open database file: .* work on a copy"):
        Memory.open(filled, speller)
