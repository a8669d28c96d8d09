"""Segments: adding, importing, editing, removing, listing, and the errors people get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair, Rejection
from kster.memory import Memory, SinceFit

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
    assert seen == [8, 11]  # those without keys first
    assert [s.target for s in memory.find_text(source="tree")] == ["Gehölz"]  # the newer one decides


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.tsv", "source\ttarget\n\nbird\tVogel\nlong\t{long}\n", 4),
        ("a.csv", 'source,target\n"a\nbird",Vogel\nlong,{long}\n', 4),
        (
            "a.tmx",
            "<tmx><header/><body>\n<tu><tuv lang='en'><seg>long</seg></tuv>"
            "\n<tuv lang='de'><seg>{long}</seg></tuv></tu></body></tmx>",
            2,
        ),
        (
            "a.xlf",
            "<xliff version='1.2'><file source-language='en' target-language='de'><body>\n\n"
            "<trans-unit id='u1'><source>long</source><target>{long}</target></trans-unit>"
            "</body></file></xliff>",
            3,
        ),
        ("a.po", '\n\nmsgid "long"\nmsgstr "{long}"\n', 3),
    ],
)
def test_what_is_too_long_for_the_model_is_named_by_its_line_in_the_file(
    memory: Memory, tmp_path: Path, name: str, text: str, line: int
) -> None:
    file = tmp_path / name
    file.write_text(text.format(long="x" * 100), encoding="utf-8")
    rejection = memory.import_file(file, source_lang="en", target_lang="de").rejected[-1]
    assert (rejection.file, rejection.line) == (str(file), line)
    assert rejection.unit in (None, "u1")
    assert rejection.reason.startswith("the target is too long")


def test_what_is_too_long_for_the_model_is_named_by_its_line_in_two_files(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "a.en").write_text("bird\n\nlong\n")
    (tmp_path / "a.de").write_text(f"Vogel\n\n{'x' * 100}\n")
    report = memory.import_file(source=tmp_path / "a.en", target=tmp_path / "a.de")
    assert [rejection.line for rejection in report.rejected] == [2, 3]


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
    memory.import_pairs(Pair(f"s{i}", f"t{i}") for i in range(10))
    memory.remove([1, 2])
    memory.search(speller.query("s5"), 1)
    info = memory.info()
    assert (info.segments, info.removed, info.entries) == (8, 2, 24)
    assert (info.model, info.fingerprint, info.dimension) == ("speller", "speller-1", 16)
    assert info.bytes_on_disk > 30 * (16 * 2 + 4)
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


def test_a_source_is_found_by_an_index(tmp_path: Path) -> None:
    with Memory.create(tmp_path / "memory", Speller()) as memory:
        long = "the same beginning of a long source text, "
        memory.add_many([Pair(long + end, f"target {end}") for end in ("one", "two", "three")])
    with Memory.open(tmp_path / "memory", Speller()) as memory:
        assert [s.target for s in memory.find_text(source=long + "two")] == ["target two"]
        assert memory.find_text(source=long) == []
        memory.remove_pair(long + "two", "target two")
        assert memory.find_text(source=long + "two") == []
        assert [s.source for s in memory.find_text(target="target one")] == [long + "one"]
        plans: list[str] = []
        with memory._store.reading_apart() as database:
            database.connection.set_trace_callback(plans.append)
            database.by_text(long + "one", None)
            (plan,) = database.execute(f"EXPLAIN QUERY PLAN {plans[0]}").fetchall()
    assert "USING INDEX live_by_source" in plan[-1]
