"""`kster translate`: one line out for every line in, by whichever method."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import get_args

import pytest

from cli.conftest import PAIRS, Call, write_lines
from kster.cli.options import Method
from kster.cli.translate_command import translate
from kster.translation import METHODS, Translator
from kster.translation.decoding import STRONGEST_LENGTH_PENALTY, WIDEST_BEAM
from tiny import ENGLISH, GERMAN


def test_methods_on_the_command_line_are_those_of_the_translator() -> None:
    assert get_args(Method) == METHODS


def test_options_have_the_names_that_python_has() -> None:
    in_python = inspect.signature(Translator.translate).parameters.keys()
    on_the_command_line = inspect.signature(translate).parameters.keys()
    assert in_python - on_the_command_line == {"self", "texts", "smoother", "progress", "split_sentences"}


def test_numbers_out_of_range_are_refused_before_anything_is_read(kster: Call, filled_memory: Path) -> None:
    wrong = [("--beam", 0), ("--beam", WIDEST_BEAM + 1), ("--length-penalty", "nan")]
    wrong += [("--length-penalty", sign * (STRONGEST_LENGTH_PENALTY + 1)) for sign in (-1, 1)]
    for option, value in wrong:
        assert kster("translate", "--memory", filled_memory, option, value).is_mistake(option)
    most = ("--beam", WIDEST_BEAM, "--length-penalty", STRONGEST_LENGTH_PENALTY)
    assert kster("translate", "--memory", filled_memory, *most).status == 0


def test_a_model_alone_translates_what_it_knows(kster: Call, taught_marian: Path) -> None:
    done = kster("translate", "--model", taught_marian, stdin="\n".join(ENGLISH[:3]))
    assert (done.status, done.err, done.lines) == (0, "", GERMAN[:3])


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_a_memory_alone_is_enough_and_teaches_its_examples(
    kster: Call, filled_memory: Path, method: str
) -> None:
    sources = "\n".join(source for source, _ in PAIRS)
    done = kster("translate", "--memory", filled_memory, "--method", method, stdin=sources)
    assert done.lines == [target for _, target in PAIRS]
    base = kster("translate", "--memory", filled_memory, "--method", "base", stdin=sources)
    assert base.lines != done.lines


@pytest.mark.parametrize("search", ["exact", "shortlist"])
def test_a_memory_teaches_its_examples_however_it_is_searched(
    kster: Call, filled_memory: Path, search: str
) -> None:
    sources = "\n".join(source for source, _ in PAIRS[:2])
    done = kster("translate", "--memory", filled_memory, "--search", search, stdin=sources)
    assert done.lines == [target for _, target in PAIRS[:2]]
    assert kster("translate", "--memory", filled_memory, "--search", "quick").is_mistake("shortlist")


def test_an_added_example_changes_the_next_translation_and_a_removed_one_no_longer_does(
    kster: Call, memory: Path
) -> None:
    source, target = "the old machine", "die alte Espressomaschine"
    before = kster("translate", "--memory", memory, stdin=source).out
    assert before != target + "\n"
    kster("memory", "add", memory, source, target)
    assert kster("translate", "--memory", memory, stdin=source).out == target + "\n"
    assert kster("translate", "--memory", memory, "--method", "knn", stdin=source).out == target + "\n"
    kster("memory", "remove", memory, 31)
    assert kster("translate", "--memory", memory, stdin=source).out == before


def test_empty_lines_blocks_and_order_are_kept(
    kster: Call, filled_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.cli.translate_command.BLOCK", 4)
    sources = ["", *(source for source, _ in PAIRS[:5]), "", "   ", PAIRS[7][0], ""]
    targets = ["", *(target for _, target in PAIRS[:5]), "", "   ", PAIRS[7][1], ""]
    done = kster("translate", "--memory", filled_memory, stdin="\n".join(sources) + "\n")
    assert done.out.split("\n") == [*targets, ""]


def test_any_unicode_goes_through(kster: Call, memory: Path) -> None:
    source, target = "☕ “Crème” 咖啡", "☕ »Crème« مقهى 🏚️ 咖啡"
    kster("memory", "add", memory, source, target)
    strange = "\x00\x0b\u2028 \U0001f600 \u200f\ufffd"
    done = kster("translate", "--memory", memory, stdin=f"{source}\n{strange}\n")
    assert done.status == 0
    assert done.out.split("\n")[0] == target
    assert done.out.count("\n") == 2


def test_files_instead_of_pipes(kster: Call, filled_memory: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.txt", [source for source, _ in PAIRS[:4]])
    done = kster("translate", "--memory", filled_memory, "--input", source, "--output", tmp_path / "out.txt")
    assert (done.out, done.err) == ("", "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines() == [t for _, t in PAIRS[:4]]
    same = kster("translate", "--memory", filled_memory, "--input", source, "--output", source)
    assert same.is_mistake("is also the input")
    assert len(source.read_text().splitlines()) == 4


def test_several_memories_are_searched_as_one(
    kster: Call, filled_memory: Path, taught_marian: Path, tmp_path: Path
) -> None:
    kster("memory", "create", tmp_path / "second", "--model", taught_marian)
    kster("memory", "add", tmp_path / "second", "the grey cat", "die graue Katze")
    both = ("--memory", filled_memory, "--memory", tmp_path / "second")
    done = kster("translate", *both, stdin=f"the grey cat\n{PAIRS[2][0]}\n")
    assert done.lines == ["die graue Katze", PAIRS[2][1]]


def test_n_best_lists_keep_one_line_for_each_line(kster: Call, filled_memory: Path) -> None:
    done = kster("translate", "--memory", filled_memory, "--n-best", 3, stdin=f"{PAIRS[0][0]}\n\n")
    first, second = done.out.split("\n")[:2]
    assert first.split("\t")[0] == PAIRS[0][1]
    assert len(set(first.split("\t"))) == 3
    assert second == ""


def test_json_has_one_object_a_line(kster: Call, filled_memory: Path) -> None:
    done = kster("translate", "--memory", filled_memory, "--json", "--n-best", 2, stdin=f"{PAIRS[0][0]}\n\n")
    first, second = map(json.loads, done.lines)
    assert (first["source"], first["text"], len(first["alternatives"])) == (*PAIRS[0], 1)
    assert second["text"] == ""


def test_fuzzy_matches_are_named_in_json_and_as_notes(kster: Call, filled_memory: Path) -> None:
    (source, target), *_ = PAIRS
    near = f"{source} now"
    done = kster(
        "translate", "--memory", filled_memory, "--json", "--matches", 1, stdin=f"{source}\n\n{near}"
    )
    first, empty, second = (json.loads(line)["matches"] for line in done.lines)
    assert [(match["percentage"], match["segment"]["target"]) for match in first] == [(100, target)]
    assert empty == []
    assert 50 <= second[0]["percentage"] < 100
    done = kster("translate", "--memory", filled_memory, "--matches", 1, stdin=near)
    assert len(done.lines) == 1
    assert f"% {source}[+ now+] → {target}" in done.err
    assert kster("translate", "--model", filled_memory, "--matches", 1).is_mistake("--matches")


def test_a_taught_text_comes_back_as_taught_unless_that_is_switched_off(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    pairs = [("Open the lid.", "Deckel auf."), ("The dog runs!", "Er läuft!")]
    line, whole = f"{pairs[0][0]} {pairs[1][0]}", "Der Hund öffnet."
    for pair in [*pairs, (line, whole)]:
        kster("memory", "add", memory, *pair)
    document, made = tmp_path / "in.html", tmp_path / "out.html"
    document.write_text(f"<p>{line}</p>")
    for options, expected in (((), whole), (("--no-exact-matches",), f"{pairs[0][1]} {pairs[1][1]}")):
        assert kster("translate", "--memory", memory, *options, stdin=line).lines == [expected]
        kster("translate", document, "--output", made, "--memory", memory, *options)
        assert made.read_text() == f"<p>{expected}</p>"


def test_sentences_of_a_line_are_translated_one_by_one_or_as_one(kster: Call, memory: Path) -> None:
    pairs = [("Open the lid.", "Deckel auf."), ("The dog runs!", "Er läuft!")]
    for pair in pairs:
        kster("memory", "add", memory, *pair)
    line = f"{pairs[0][0]} {pairs[1][0]}"
    done = kster("translate", "--memory", memory, stdin=line)
    assert done.lines == [f"{pairs[0][1]} {pairs[1][1]}"]
    (whole,) = kster("translate", "--memory", memory, "--whole-lines", "--explain", "json", stdin=line).lines
    tokens = [token["token"] for token in json.loads(whole)["tokens"]]
    assert tokens.count(tokens[-1]) == 1  # one end of sentence


def test_a_line_too_long_for_the_model_is_said_once(
    kster: Call, taught_marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.cli.translate_command.BLOCK", 1)
    long = " ".join([ENGLISH[0] + "."] * 60)
    done = kster("translate", "--model", taught_marian, "--beam", 1, stdin=f"{long}\n{long}\n")
    assert done.status == 0
    assert len(done.lines) == 2
    assert done.err.count("kster: warning: some sentences are longer") == 1


def test_mistakes_are_one_line(
    kster: Call, filled_memory: Path, taught_marian: Path, other_model: Path, tmp_path: Path
) -> None:
    with_memory = ("translate", "--memory", filled_memory)
    assert kster(*with_memory, "--model", other_model, stdin="x").is_mistake("Keys of one model mean nothing")
    assert kster("translate", stdin="x").is_mistake("give --memory DIR or --model MODEL")
    assert kster("translate", "--memory", tmp_path / "no", stdin="x").is_mistake("no such memory")
    assert kster("translate", "--model", tmp_path / "no", stdin="x").is_mistake("no such model directory")
    assert kster("translate", "--model", tmp_path, stdin="x").is_mistake("no config.json")
    assert kster("translate", "--model", taught_marian, "--method", "knn").is_mistake("needs a memory")
    assert kster(*with_memory, "--method", "best").is_mistake("--method")
    assert kster(*with_memory, "--n-best", 5).is_mistake("--beam is 4")
    assert kster(*with_memory, "--beam", 0).is_mistake("--beam")
    assert kster(*with_memory, "--input", tmp_path / "no.txt").is_mistake("no.txt: no such file")
    assert kster(*with_memory, "--output", tmp_path / "no" / "out.txt").is_mistake("no such directory")
    assert kster(*with_memory, "--json", "--explain", "html").is_mistake("cannot be combined")
    assert kster(*with_memory, stdin=b"\xff\xfe\xff").is_mistake("line 1: not valid UTF-8")
    assert kster(*with_memory, "--device", "toaster", stdin="x").is_mistake("accepted: auto")
    assert kster(*with_memory, "--nonsense").is_mistake("see `kster translate --help`")


def test_a_memory_named_twice_is_a_mistake(kster: Call, filled_memory: Path) -> None:
    twice = ("--memory", filled_memory, "--memory", filled_memory)
    assert kster("translate", *twice, stdin="open the lid\n").is_mistake("are the same memory")


def test_languages_may_be_repeated_but_not_contradict_the_memory(kster: Call, filled_memory: Path) -> None:
    with_memory = ("translate", "--memory", filled_memory)
    source, target = PAIRS[0]
    done = kster(*with_memory, "--source-lang", "en", "--target-lang", "de-DE", stdin=source)
    assert done.lines == [target]
    assert kster(*with_memory, "--target-lang", "fr", stdin=source).is_mistake("target language 'fr'")
    assert kster(*with_memory, "--source-lang", "de", stdin=source).is_mistake("are en → de")


def test_confidence_is_in_json_or_in_notes(kster: Call, filled_memory: Path) -> None:
    asked = ("translate", "--memory", filled_memory, "--confidence")
    done = kster(*asked, stdin=f"{PAIRS[0][0]}\n\nxeno pfft\n")
    assert done.lines[0] == PAIRS[0][1]
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["line 1", "line 3"]
    assert "look at" in done.err.splitlines()[1]
    (one,) = map(json.loads, kster(*asked, "--json", stdin=PAIRS[0][0]).lines)
    assert 0 < one["confidence"] < 1
    assert one["words"][0].keys() == {"text", "start", "end", "confidence"}
