"""Opening, importing, listing, verifying and locking: what people see, and the errors they get."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair, Rejection
from kster.memory import Memory, SinceFit
from kster.memory.importing import checked_drafts

# Opening ---------------------------------------------------------------------------------------------


def test_creating_refuses_a_directory_with_anything_in_it(tmp_path: Path, speller: Speller) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(KsterError, match="not empty"):
        Memory.create(tmp_path, speller)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "empty").mkdir()
    Memory.create(tmp_path / "empty", speller)
    Memory.create(tmp_path / "a" / "b", speller)


def test_creating_says_what_is_in_the_way(tmp_path: Path, speller: Speller) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(KsterError, match="is not a directory; a memory needs"):
        Memory.create(tmp_path / "letter.txt", speller)
    (tmp_path / "nowhere").symlink_to(tmp_path / "letter.txt" / "further")
    with pytest.raises(KsterError, match="cannot be created") as caught:
        Memory.create(tmp_path / "nowhere", speller)
    assert "backup" not in str(caught.value)  # nothing that was never there can be restored


def test_what_is_no_memory_is_not_opened(tmp_path: Path, memory: Memory) -> None:
    with pytest.raises(KsterError, match="no such memory"):
        Memory.open(tmp_path / "nowhere")
    with pytest.raises(KsterError, match=r"no memory\.json"):
        Memory.open(tmp_path)
    description = memory.directory / "memory.json"
    content = json.loads(description.read_text())
    for text, complaint in (
        ("{", "cannot be read"),
        ("[]", "not a memory's description"),
        (json.dumps({**content, "format": 99}), "newer version"),
        (json.dumps({"format": 1}), "damaged"),
    ):
        description.write_text(text)
        with pytest.raises(KsterError, match=complaint):
            Memory.open(memory.directory)
    description.write_text(json.dumps(content))
    memory.close()
    (memory.directory / "memory.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(KsterError, match="cannot be used"):
        Memory.open(memory.directory)


def test_a_memory_finds_its_model_when_both_are_moved_together(tmp_path: Path, tiny_marian: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(tiny_marian, home / "model")
    Memory.create(home / "memory", str(home / "model")).close()
    home.rename(tmp_path / "away")
    memory = Memory.open(tmp_path / "away" / "memory")
    assert memory.model.name == str(tmp_path / "away" / "model")
    (tmp_path / "away" / "model").rename(tmp_path / "lost")
    with pytest.raises(KsterError, match="its model is neither at"):
        _ = Memory.open(tmp_path / "away" / "memory").model


def test_the_memory_room_needs_no_faiss_nor_anything_for_people() -> None:
    code = "import sys, kster.memory; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unwanted = {"faiss", "lxml", "polib", "pydantic", "rich", "typer", "sacrebleu"}
    assert unwanted & set(done.stdout.split()) == set()


# Adding and importing --------------------------------------------------------------------------------


def test_an_import_reports_what_became_of_every_pair(memory: Memory) -> None:
    memory.add("tree", "Baum")
    passed_on = Rejection("a.tmx", 12, "u3", "no German side")
    seen: list[int] = []
    report = memory.import_pairs(
        [
            Pair("bird", "Vogel", "u1"),
            Pair("tree", "Baum"),  # known
            Pair("bird", "Vogel", "u2"),  # earlier in this import
            passed_on,
            Pair("", "leer", "u4"),
            Pair("blank", " \t\u2003"),
            Pair("long", "x" * 100),
            Pair("broken", "\ud800"),
            Pair("", "leer", "u4"),
            Pair("tree", "Gehölz"),  # another translation of a known source
            Pair("fits", "x" * 99),
        ],
        origin="a.tmx",
        progress=seen.append,
    )
    assert (report.added, report.duplicates) == (3, 2)
    assert report.rejected[0] == passed_on
    assert [(r.unit, r.reason) for r in report.rejected[1:]] == [
        ("u4", "empty source"),
        ("pair 6", "untranslated"),
        ("pair 8", "target contains the character U+D800"),
        ("u4", "empty source"),
        ("pair 7", "the target is too long: 101 tokens, the model reads at most 100"),
    ]
    assert {r.file for r in report.rejected} == {"a.tmx"}
    assert seen == [11]
    assert [s.target for s in memory.find_text(source="tree")] == ["Baum", "Gehölz"]


def test_a_repeated_source_keeps_all_its_translations(memory: Memory, speller: Speller) -> None:
    memory.import_pairs([Pair("tree", "Baum"), Pair("tree", "Gehölz")])
    found = memory.search(speller.query("tree"), 2)
    assert found.distances.tolist() == [[0, 0]]
    assert found.values.tolist() == [[ord("G"), ord("B")]]  # the newest first


def test_adding_a_known_pair_returns_the_known_segment(memory: Memory) -> None:
    first = memory.add("tree", "Baum", origin="here", unit="1")
    assert memory.add("tree", "Baum", origin="there") == first
    assert memory.entry_count == 5
    assert memory.add_many([Pair("tree", "Baum"), Pair("bird", "Vogel")]) == [first, memory.segment(2)]


def test_add_many_adds_all_or_none(memory: Memory) -> None:
    with pytest.raises(KsterError, match=r"the target is too long: 121 tokens.*nothing was added"):
        memory.add_many([Pair("tree", "Baum"), Pair("bird", "x" * 120)])
    accepted = "accepted: a text and its translation; nothing was added"
    with pytest.raises(KsterError, match=f"^the source is blank; {accepted}"):
        memory.add("  ", "Baum")
    with pytest.raises(KsterError, match=f"^the target is empty; {accepted}"):
        memory.add("tree", "")
    with pytest.raises(KsterError, match=f"^pair 2: the target is blank; {accepted}"):
        memory.add_many([Pair("tree", "Baum"), Pair("bird", "\t")])
    assert memory.segments() == []
    assert memory.verify() == []


def test_replacing_a_unit_leaves_one_segment_with_its_id(memory: Memory, speller: Speller) -> None:
    memory.import_pairs([Pair("tree", "Baun", "7"), Pair("bird", "Vogel", "8")])
    corrected = memory.replace("7", "tree", "Baum")
    assert [(s.unit, s.target) for s in memory.segments()] == [("8", "Vogel"), ("7", "Baum")]
    assert memory.replace("7", "tree", "Baum") == corrected
    found = memory.search(speller.query("tree", "Bau"), 1)
    assert found.values.tolist() == [[ord("m")]]


def test_an_edited_segment_is_found_by_its_new_text_only(memory: Memory, speller: Speller) -> None:
    memory.import_pairs([Pair("tree", "Baun", "7"), Pair("bird", "Vogel", "8")])
    edited = memory.edit(1, "tree", "Baum")
    assert (edited.id, edited.unit) == (3, "7")
    assert [s.target for s in memory.segments()] == ["Vogel", "Baum"]
    assert memory.edit(3, "tree", "Baum") == edited
    assert memory.search(speller.query("tree", "Bau"), 1).values.tolist() == [[ord("m")]]
    assert memory.entry_count == len("Vogel") + 1 + len("Baum") + 1


def test_an_edit_to_a_pair_that_is_there_already_leaves_that_one(memory: Memory) -> None:
    memory.import_pairs([Pair("tree", "Baum"), Pair("tree", "Baun")])
    assert memory.edit(2, "tree", "Baum") == memory.segment(1)
    assert [s.id for s in memory.segments()] == [1]


def test_an_edit_that_cannot_be_made_changes_nothing(memory: Memory) -> None:
    memory.add("tree", "Baum")
    for id, target, reason in [
        (9, "Baum", "no segment 9"),
        (1, "", "the target is empty"),
        (1, "x" * 120, "too long"),
    ]:
        with pytest.raises(KsterError, match=reason):
            memory.edit(id, "tree", target)
    assert [(s.id, s.target) for s in memory.segments()] == [(1, "Baum")]
    assert memory.verify() == []


def test_removing_an_unknown_segment_removes_nothing(memory: Memory) -> None:
    memory.import_pairs([Pair("tree", "Baum"), Pair("bird", "Vogel")])
    with pytest.raises(KsterError, match="no segment 5, 9; nothing was removed"):
        memory.remove([1, 9, 5])
    assert memory.segment_count() == 2
    assert memory.remove([1, 1]) == 1
    with pytest.raises(KsterError, match="no segment 1"):
        memory.remove(1)
    assert memory.remove_pair("no", "such") == 0


# Looking ---------------------------------------------------------------------------------------------


def test_segments_can_be_paged_and_searched_in_any_case(memory: Memory) -> None:
    memory.import_pairs(Pair(f"source {i}", f"ÄPFEL {i}") for i in range(10))
    memory.remove(4)
    assert [s.id for s in memory.segments(limit=3, offset=2)] == [3, 5, 6]
    assert memory.segment_count() == 9
    assert [s.id for s in memory.segments(query="äpfel 7")] == [8]
    assert memory.segment_count("100%") == 0
    assert [s.id for s in memory.find_text(target="ÄPFEL 2")] == [3]


def test_info_counts_what_there_is(memory: Memory, speller: Speller) -> None:
    assert memory.info().index == "empty"
    memory.import_pairs(Pair(f"s{i}", f"t{i}") for i in range(10))
    memory.remove([1, 2])
    memory.search(speller.query("s5"), 1)
    info = memory.info()
    assert (info.segments, info.removed, info.entries, info.index) == (8, 2, 24, "exact")
    assert (info.model, info.fingerprint, info.dimension) == ("speller", "speller-1", 16)
    assert info.bytes_on_disk > 30 * (16 * 2 + 4)
    assert info.bytes_in_ram > 24 * 16 * 4
    assert (info.fitted, info.tuned, info.fit) == (False, False, None)
    smoother = memory.directory / "smoother"
    smoother.mkdir()
    for name in ("smoother.json", "knn.json", "fit.json"):
        (smoother / name).write_text('{"segments": 8}')
    info = memory.info()
    assert (info.fitted, info.tuned, info.fit) == (True, True, {"segments": 8})
    assert info.since_fit is None  # it does not say when it was made


def test_info_says_what_has_changed_since_the_fit(memory: Memory) -> None:
    memory.import_pairs(Pair(f"s{i}", f"t{i}") for i in range(10))
    memory.remove([10])
    entries = memory.entries()
    assert (entries.segment_count, entries.newest_segment) == (9, 9)
    fit = {"finished": "2026-01-02T03:04:05+00:00", "memory_segments": 9, "newest_segment": 9}
    smoother = memory.directory / "smoother"
    smoother.mkdir()
    (smoother / "smoother.json").write_text("{}")
    (smoother / "fit.json").write_text(json.dumps(fit))
    assert memory.info().since_fit == SinceFit(fit["finished"], 9, added=0, removed=0)
    memory.remove([1, 2, 3])
    memory.add("late", "spät")
    memory.remove(memory.add("later", "später").id)
    for _ in range(2):
        assert memory.info().since_fit == SinceFit(fit["finished"], 9, added=1, removed=3)
        memory.compact()
    (smoother / "fit.json").write_text(json.dumps({**fit, "newest_segment": "9"}))
    assert memory.info().since_fit is None


# Verifying and compacting ----------------------------------------------------------------------------


def test_verify_names_the_damaged_segment(memory: Memory) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(10))  # 4 entries each, 20 a shard
    assert memory.verify() == []
    shard = memory.directory / "entries" / "0" / "keys-00001.f16"
    damaged = bytearray(shard.read_bytes())
    damaged[16 * 2 * 5] ^= 1  # a bit of shard 1's sixth key: segment 7
    shard.write_bytes(damaged)
    assert memory.verify() == ["segment 7: keys or values are not what was written (checksum)"]
    memory.remove(1)
    with pytest.raises(KsterError, match="segment 7 is damaged on disk; nothing was changed"):
        memory.compact()
    memory.remove(7)
    memory.compact()
    assert memory.verify() == []
    assert memory.segment_count() == 8


def test_verify_and_open_notice_files_that_are_too_short(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(10))
    values = memory.directory / "entries" / "0" / "values.i32"
    values.write_bytes(values.read_bytes()[:-1])
    assert memory.verify() == ["values.i32 has 159 bytes, 160 are recorded"]
    with pytest.raises(KsterError, match="damaged"):
        Memory.open(memory.directory, speller).search(speller.query("s1"), 1)
    with pytest.raises(KsterError, match="nothing was changed"):
        memory.add("more", "mehr")


def test_what_a_dead_writer_left_is_ignored_and_cut_off(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(3))
    files = memory.directory / "entries" / "0"
    (files / "keys-00000.f16").open("ab").write(b"\xff" * 333)
    (files / "keys-00001.f16").write_bytes(b"\xff" * 40)
    (files / "values.i32").open("ab").write(b"\xff" * 7)
    (memory.directory / "entries" / "1").mkdir()  # a compaction that died
    assert memory.verify() == []
    assert Memory.open(memory.directory, speller).entry_count == 12
    memory.import_pairs(Pair(f"more{i}", "abc") for i in range(5))
    assert memory.verify() == []
    assert memory.search(speller.query("more4"), 1).distances[0, 0] == 0
    assert [path.name for path in (memory.directory / "entries").iterdir()] == ["0"]


def test_compaction_gives_space_back_and_changes_nothing_else(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", f"t{i}") for i in range(100))
    memory.remove(range(1, 61))
    query = speller.query("s99", "t")
    before, listed = memory.search(query, 5), memory.segments()
    report = memory.compact()
    assert (report.segments_dropped, report.entries_dropped) == (60, 10 * 3 + 50 * 4)
    assert report.bytes_freed > 0
    assert memory.segments() == listed
    after = memory.search(query, 5)
    assert torch.equal(before.ids, after.ids)
    assert torch.equal(before.distances, after.distances)
    assert torch.equal(before.keys, after.keys)
    assert memory.verify() == []
    assert memory.compact().segments_dropped == 0
    assert b"s33" not in (memory.directory / "memory.sqlite").read_bytes()


# One writer at a time --------------------------------------------------------------------------------


def write_slowly(directory: str, said: Connection) -> None:
    speller = Speller()
    memory = Memory.open(directory, speller)
    drafts = checked_drafts(speller, [Pair("slow", "langsam")], None)
    with memory._store.writing() as change:
        change.add(drafts["slow", "langsam"])
        said.send("writing")
        said.recv()
    said.send("done")


def test_a_second_writer_waits_and_then_says_so(memory: Memory, speller: Speller) -> None:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    child = context.Process(target=write_slowly, args=(str(memory.directory), theirs))
    child.start()
    assert ours.recv() == "writing"
    hasty = Memory.open(memory.directory, speller, lock_timeout=0.1)
    with pytest.raises(KsterError, match=r"another writer has been busy for 0\.1 s; nothing was changed"):
        hasty.add("tree", "Baum")
    assert hasty.search(speller.query("slow"), 1).ids.tolist() == [[-1]]  # not there before it is committed
    threading.Timer(0.2, ours.send, ["go on"]).start()
    memory.add("tree", "Baum")  # waits
    assert ours.recv() == "done"
    child.join()
    assert [s.source for s in hasty.segments()] == ["slow", "tree"]
    assert hasty.search(speller.query("slow"), 1).distances[0, 0] == 0
