"""`kster memory`: what goes in comes out, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.conftest import PAIRS, Call, write_lines


def test_created_memory_says_what_it_is(kster: Call, taught_marian: Path, tmp_path: Path) -> None:
    created = kster("memory", "create", tmp_path / "new", "--model", taught_marian, "--json")
    info = json.loads(kster("memory", "info", tmp_path / "new", "--json").out)
    assert json.loads(created.out)["fingerprint"] == info["fingerprint"]
    assert (info["segments"], info["entries"], info["source_lang"], info["target_lang"]) == (0, 0, "en", "de")
    assert info["fitted"] is False


def test_a_multilingual_model_needs_its_languages(kster: Call, tiny_m2m100: Path, tmp_path: Path) -> None:
    languages = ("--source-lang", "de", "--target-lang", "en")
    assert kster("memory", "create", tmp_path / "new", "--model", tiny_m2m100, *languages).status == 0
    info = json.loads(kster("memory", "info", tmp_path / "new", "--json").out)
    assert (info["source_lang"], info["target_lang"]) == ("de", "en")
    added = kster("memory", "add", tmp_path / "new", "das rote Haus", "the red house")
    assert added.out == "segment 1: das rote Haus → the red house\n"


def test_list_gives_every_segment_to_machines_and_people(kster: Call, filled_memory: Path) -> None:
    found = json.loads(kster("memory", "list", filled_memory, "--json").out)
    assert [(entry["source"], entry["target"]) for entry in found] == PAIRS
    assert [entry["id"] for entry in found] == list(range(1, 31))
    assert kster("memory", "list", filled_memory).lines[1] == "\t".join(["2", *PAIRS[1]])
    page = json.loads(kster("memory", "list", filled_memory, "--limit", 3, "--offset", 28, "--json").out)
    assert [entry["id"] for entry in page] == [29, 30]


def test_list_of_many_segments_is_read_in_pages(
    kster: Call, filled_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.cli.segment_commands.PAGE", 7)
    assert len(kster("memory", "list", filled_memory).lines) == 30
    assert len(kster("memory", "list", filled_memory, "--limit", 15).lines) == 15
    assert len(kster("memory", "list", filled_memory, "--limit", 14, "--offset", 20).lines) == 10


def test_search_finds_text_on_either_side_in_any_case(kster: Call, filled_memory: Path) -> None:
    found = json.loads(kster("memory", "search", filled_memory, "WASSERTANK", "--json").out)
    assert [entry["target"] for entry in found] == [target for _, target in PAIRS if "Wassertank" in target]
    assert len(kster("memory", "search", filled_memory, "rinse").lines) == 5
    assert kster("memory", "search", filled_memory, "nowhere", "--json").out == "[]\n"


def test_added_text_keeps_every_character(kster: Call, memory: Path) -> None:
    source, target = "tabs\tand “quotes” 🏚", "Zeilen\numbruch <b>古い家</b> \\"
    added = json.loads(kster("memory", "add", memory, source, target, "--json").out)
    assert (added["id"], added["source"], added["target"]) == (31, source, target)
    assert kster("memory", "search", memory, "古い").lines == [
        "31\ttabs\\tand “quotes” 🏚\tZeilen\\numbruch <b>古い家</b> \\\\"
    ]


def test_remove_by_id_and_by_text(kster: Call, memory: Path) -> None:
    assert kster("memory", "remove", memory, 3, 5).out == "removed 2 segments\n"
    source, target = PAIRS[9]
    removed = kster("memory", "remove", memory, "--source", source, "--target", target, "--json")
    assert json.loads(removed.out) == {"removed": 1}
    left = json.loads(kster("memory", "list", memory, "--json").out)
    assert {entry["id"] for entry in left} == set(range(1, 31)) - {3, 5, 10}
    assert kster("memory", "remove", memory, "--source", source, "--target", target).is_mistake(
        "nothing was removed"
    )
    assert kster("memory", "remove", memory, 3, 1).is_mistake("no segment 3; nothing was removed")
    assert kster("memory", "remove", memory).is_mistake("either ids, or --source with --target")
    assert kster("memory", "remove", memory, 1, "--source", "x", "--target", "y").is_mistake("either ids")
    assert kster("memory", "remove", memory, "--source", "x").is_mistake("either ids")


def test_compact_drops_what_was_removed(kster: Call, memory: Path) -> None:
    kster("memory", "remove", memory, *range(1, 11))
    assert "10 removed" in kster("memory", "info", memory).out
    report = json.loads(kster("memory", "compact", memory, "--json").out)
    assert report["segments_dropped"] == 10
    assert kster("memory", "compact", memory).out == "dropped 0 removed segments, freed 0 B\n"


@pytest.mark.parametrize(
    ("hours", "age"), [(0, "just now"), (0.5, "30 minutes ago"), (1, "1 hour ago"), (49, "2 days ago")]
)
def test_info_says_how_old_a_fit_is(kster: Call, memory: Path, hours: float, age: str) -> None:
    kster("memory", "remove", memory, 1, 2)
    kster("memory", "add", memory, "a new line", "eine neue Zeile")
    finished = (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="seconds")
    (memory / "smoother").mkdir()
    (memory / "smoother" / "smoother.json").write_text("{}")
    fit = {"finished": finished, "memory_segments": 30, "newest_segment": 30}
    (memory / "smoother" / "fit.json").write_text(json.dumps(fit))
    assert f"{age} on 30 segments; 1 added and 2 removed since" in kster("memory", "info", memory).out
    since = json.loads(kster("memory", "info", memory, "--json").out)["since_fit"]
    assert since == {"finished": finished, "segments": 30, "added": 1, "removed": 2}


def test_verify_finds_damage_and_says_so_by_its_status(kster: Call, memory: Path) -> None:
    whole = kster("memory", "verify", memory)
    assert (whole.status, whole.out) == (0, f"{memory}: 30 segments, all as written\n")
    keys = next(path for path in memory.rglob("*") if path.is_file() and "key" in path.name)
    damaged = bytearray(keys.read_bytes())
    damaged[40] ^= 0xFF
    keys.write_bytes(damaged)
    found = kster("memory", "verify", memory, "--json")
    assert found.status == 1
    assert json.loads(found.out)["ok"] is False
    assert len(json.loads(found.out)["problems"]) == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda smoother: (smoother / "smoother.json").write_text("{"), "smoother.json: not valid JSON"),
        (lambda smoother: weights_of(smoother).unlink(), "the smoother's weights are missing"),
        (lambda smoother: flip_a_bit(weights_of(smoother)), "are not what was written (checksum)"),
    ],
)
def test_a_damaged_smoother_is_found_and_a_new_fit_mends_it(
    kster: Call, memory: Path, damage: Callable[[Path], object], said: str
) -> None:
    fit = ("fit", memory, "--steps", 2)
    assert kster(*fit).status == 0
    assert kster("memory", "verify", memory).status == 0
    damage(memory / "smoother")
    advice = f"; `kster fit {memory}` makes a new one"
    found = kster("memory", "verify", memory)
    assert found.status == 1
    assert said in found.out
    assert found.out.endswith(f"{advice}\n")
    refused = kster("translate", "--memory", memory, stdin="open the lid\n")
    assert refused.is_mistake(said)
    assert advice in refused.err
    assert kster(*fit).status == 0
    assert kster("memory", "verify", memory).status == 0
    assert kster("translate", "--memory", memory, stdin="open the lid\n").status == 0


def test_damaged_knn_settings_are_found(kster: Call, memory: Path) -> None:
    (memory / "smoother").mkdir()
    (memory / "smoother" / "knn.json").write_text('{"k": 0}')
    found = kster("memory", "verify", memory)
    assert found.status == 1
    assert "knn.json: k: is 0; must be from 1 to 1,024" in found.out
    assert f"`kster tune {memory}` makes a new one" in found.out


def weights_of(smoother: Path) -> Path:
    (path,) = smoother.glob("*.safetensors")
    return path


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_exported_pairs_come_back_by_import(
    kster: Call, filled_memory: Path, taught_marian: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.tmx"
    assert kster("memory", "export", filled_memory, file).err == f"{file}: 30 pairs\n"
    kster("memory", "create", tmp_path / "copy", "--model", taught_marian)
    imported = json.loads(kster("memory", "import", tmp_path / "copy", file, "--json").out)
    assert [(report["added"], report["rejected"]) for report in imported] == [(30, [])]
    again = kster("memory", "import", tmp_path / "copy", file)
    assert again.out == f"{file}: 0 added, 30 there already, 0 rejected\n"


def test_export_to_standard_output(kster: Call, filled_memory: Path) -> None:
    assert kster("memory", "export", filled_memory).lines[1].split("\t")[:2] == list(PAIRS[0])
    assert kster("memory", "export", filled_memory, "--format", "tmx").out.count("<tu>") == 30
    assert kster("memory", "export", filled_memory, "--format", "moses").is_mistake("two files")
    assert kster("memory", "export", filled_memory, "--format", "docx").is_mistake("accepted: tmx")


def test_import_from_two_files_of_lines(kster: Call, memory: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "more.en", ["a new line", "", PAIRS[0][0]])
    target = write_lines(tmp_path / "more.de", ["eine neue Zeile", "leer", PAIRS[0][1]])
    done = kster("memory", "import", memory, "--source", source, "--target", target)
    assert done.out == f"{source}, {target}: 1 added, 1 there already, 1 rejected\n"
    assert f"{source}, line 2" in done.err


def test_keys_can_be_left_for_later_and_translations_use_the_pairs_all_the_same(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "more.tsv", [f"{PAIRS[0][0]} {n}\t{PAIRS[0][1]} {n}" for n in range(20)])
    done = kster("memory", "import", memory, file, "--keys", "later")
    assert done.out == f"{file}: 20 added, 0 there already, 0 rejected\n"
    assert "20 segments have no keys yet: translations make those they need" in done.err
    info = kster("memory", "info", memory).out
    assert ", of 30 segments; those of 20 are made when they are needed" in info
    assert kster("translate", "--memory", memory, stdin=f"{PAIRS[0][0]} 7\n").status == 0
    left = json.loads(kster("memory", "info", memory, "--json").out)["without_keys"]
    assert 0 < left < 20
    assert kster("memory", "keys", memory).out == f"made the keys of {left} segments\n"
    assert json.loads(kster("memory", "keys", memory, "--json").out) == {"made": 0}
    assert "when they are needed" not in kster("memory", "info", memory).out
    more = write_lines(tmp_path / "most.tsv", ["quite another one\tein ganz anderer"])
    assert kster("memory", "import", memory, more, "--keys", "now").status == 0
    assert json.loads(kster("memory", "info", memory, "--json").out)["without_keys"] == 0


def test_import_of_a_broken_file_keeps_nothing_of_it(kster: Call, memory: Path, tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.tsv", ["something new\tetwas Neues"])
    broken = tmp_path / "broken.tmx"
    broken.write_text('<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>a', encoding="utf-8")
    done = kster("memory", "import", memory, good, broken)
    assert done.status == 2
    assert done.out == f"{good}: 1 added, 0 there already, 0 rejected\n"
    assert "nothing of this file was imported" in done.err
    assert f"({good} went in before it)" in done.err
    assert len(kster("memory", "list", memory).lines) == 31
    for_machines = kster("memory", "import", memory, good, broken, "--json")
    assert for_machines.status == 2
    assert [report["file"] for report in json.loads(for_machines.out)] == [str(good)]


def test_import_of_a_file_named_twice_reports_twice(kster: Call, memory: Path, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "good.tsv", ["something new\tetwas Neues"])
    assert kster("memory", "import", memory, file, file).lines == [
        f"{file}: 1 added, 0 there already, 0 rejected",
        f"{file}: 0 added, 1 there already, 0 rejected",
    ]


def test_import_takes_a_file_name_as_it_is(kster: Call, memory: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "axb.tsv", ["something new\tetwas Neues"])
    for name in ("a**b", "a*b", "a[x]b"):
        assert kster("memory", "import", memory, tmp_path / name).is_mistake(f"{name}: no such file")


def test_import_checks_all_files_before_the_first_goes_in(kster: Call, memory: Path, tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.tsv", ["something new\tetwas Neues"])
    strange = write_lines(tmp_path / "strange.docx", ["?"])
    assert kster("memory", "import", memory, good, tmp_path / "gone.tmx").is_mistake("gone.tmx: no such file")
    assert kster("memory", "import", memory, good, strange).is_mistake("cannot tell its format")
    assert kster("memory", "import", memory, good, "--format", "docx").is_mistake("unknown format")
    assert kster("memory", "import", memory).is_mistake("no files to import")
    assert kster("memory", "import", memory, "--source", good).is_mistake("belong together")
    assert len(kster("memory", "list", memory).lines) == 30


def test_import_refuses_a_language_that_is_not_the_memorys(kster: Call, memory: Path, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "new.tsv", ["something new\tquelque chose"])
    lines = ("--source", write_lines(tmp_path / "a", ["x"]), "--target", write_lines(tmp_path / "b", ["y"]))
    refused = kster("memory", "import", memory, file, "--target-lang", "fr")
    assert refused.is_mistake(f"--target-lang fr: the examples of {memory} are en → de; nothing was imported")
    assert kster("memory", "import", memory, file, "--source-lang", "de").is_mistake("--source-lang de")
    assert kster("memory", "import", memory, *lines, "--target-lang", "fr-CA").is_mistake("--target-lang")
    assert len(kster("memory", "list", memory).lines) == 30


def test_import_takes_other_regions_and_spellings_of_the_memorys_languages(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "new.tsv", ["en-GB\tde-AT", "something new\tetwas Neues"])
    languages = ("--source-lang", "eng_Latn", "--target-lang", "de-AT")
    assert kster("memory", "import", memory, file, *languages).status == 0
    assert len(kster("memory", "list", memory).lines) == 31


def test_inline_tags_are_stripped_or_kept(kster: Call, memory: Path, tmp_path: Path) -> None:
    file = tmp_path / "tags.tmx"
    unit = '<tuv xml:lang="{}"><seg>{} <bpt i="1">&lt;b></bpt>{}<ept i="1">&lt;/b></ept></seg></tuv>'
    file.write_text(
        '<tmx version="1.4"><header srclang="en"/><body><tu>'
        + unit.format("en", "press", "start")
        + unit.format("de", "Start", "drücken")
        + "</tu></body></tmx>",
        encoding="utf-8",
    )
    assert kster("memory", "import", memory, file).status == 0
    assert kster("memory", "search", memory, "press start").lines == ["31\tpress start\tStart drücken"]
    assert kster("memory", "import", memory, file, "--tags", "keep").status == 0
    assert len(kster("memory", "search", memory, "<b>").lines) == 1


def test_matches_are_percentages_best_first(kster: Call, filled_memory: Path) -> None:
    source, target = PAIRS[0]
    done = kster("memory", "matches", filled_memory, f" {source.upper()}", "--limit", "1")
    assert done.lines == [f"100\t1\t{source}\t{target}"]
    nearly = json.loads(kster("memory", "matches", filled_memory, f"{source} more", "--json").out)
    assert nearly[0]["segment"]["source"] == source
    words = len(source.split())
    assert nearly[0]["percentage"] == 100 * words // (words + 1)
    assert kster("memory", "matches", filled_memory, "wholly different words").out == ""


def test_check_lists_what_is_probably_wrong_and_removes_it_when_told_to(kster: Call, memory: Path) -> None:
    kster("memory", "add", memory, "press it 12 times", "13 Mal drücken")
    kster("memory", "add", memory, "press %s", "drücken")
    listed = kster("memory", "check", memory)
    assert [line.split("\t")[:2] for line in listed.lines] == [["numbers", "31"], ["codes", "32"]]
    assert listed.err == "2 of 32 segments listed (numbers 1, codes 1)\n"
    found = json.loads(kster("memory", "check", memory, "--kind", "codes", "--json").out)
    assert (found["rejected"], found["removed"]) == (0, 0)
    assert found["findings"][0] | {"segment": 0} == {
        "kind": "codes",
        "segment": 0,
        "reason": "%s not in the target",
        "other": None,
        "source": "press %s",
        "target": "drücken",
    }
    removed = kster("memory", "check", memory, "--kind", "codes", "--remove")
    assert removed.err == "1 of 32 segments listed (codes 1); removed\n"
    assert len(kster("memory", "list", memory).lines) == 31
    assert kster("memory", "check", memory, "--kind", "typos").is_mistake("unknown kind 'typos'")


def test_rejected_segments_are_listed_and_brought_back_and_the_history_says_who(
    kster: Call, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    kster("memory", "add", memory, "press %s", "drücken")
    assert kster("memory", "check", memory, "--kind", "codes", "--reject").err.endswith("; rejected\n")
    assert kster("memory", "list", memory, "--state", "rejected").out == "31\tpress %s\tdrücken\n"
    assert "30 (1 rejected)" in kster("memory", "info", memory).out
    approved = kster("memory", "approve", memory, 31)
    assert approved.out == "segment 31: approved: press %s → drücken\n"
    kster("memory", "add", memory, "press %s", "%s drücken")
    rows = [line.split("\t")[1:4] for line in kster("memory", "history", memory, 31).lines]
    changes = [row for row in rows if row[2] != "added"]  # within a second, additions come first
    assert changes == [
        ["anna", "31", "rejected"],
        ["anna", "31", "approved"],
        ["anna", "31", "superseded by 32"],
    ]
    assert [row[:2] for row in rows if row[2] == "added"] == [["anna", "31"], ["anna", "32"]]
    assert kster("memory", "reject", memory, 32).status == 0
    assert json.loads(kster("memory", "history", memory, "--limit", 1, "--json").out)[0]["segment"] == 31
    assert kster("memory", "approve", memory, 99).is_mistake("no segment 99; nothing was changed")
    assert kster("memory", "check", memory, "--reject", "--remove").is_mistake("cannot be combined")
    assert kster("memory", "list", memory, "--state", "odd").is_mistake("state is 'odd'; accepted: live")


def test_fuzzy_translations_come_in_as_drafts_unless_they_are_trusted(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.po"
    file.write_text('#, fuzzy\nmsgctxt "door"\nmsgid "open it"\nmsgstr "öffnen"\n', encoding="utf-8")
    assert kster("memory", "import", memory, file).out.endswith(
        "1 added (1 as drafts), 0 there already, 0 rejected\n"
    )
    assert len(kster("memory", "list", memory).lines) == 30
    assert kster("memory", "export", memory, tmp_path / "all.tmx", "--drafts").status == 0
    text = (tmp_path / "all.tmx").read_text(encoding="utf-8")
    assert '<prop type="x-status">draft</prop>\n<prop type="x-context">door</prop>' in text
    assert kster("memory", "import", memory, file, "--approve-drafts").out.endswith(
        "0 added, 0 there already, 0 rejected, 1 approved\n"
    )
    assert len(kster("memory", "list", memory).lines) == 31
