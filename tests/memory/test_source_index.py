"""The index of sources: what was added is found by the next query, what was removed never again."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory, MemoryGroup, SearchableMemory
from kster.memory.sources import index, postings
from kster.memory.sources.matching import best_matches
from kster.memory.sources.postings import Postings
from kster.memory.sources.scoring import rare_words
from kster.memory.sources.words import terms_of


@pytest.fixture
def saved_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WORTH_SAVING", 20)


def sources_like(memory: SearchableMemory, text: str, m: int = 10) -> list[str]:
    return [memory.segment(i).source for i in memory.similar(text, m).segment_ids.tolist()]


def fill(memory: Memory, count: int) -> None:
    memory.import_pairs(Pair(f"open valve {i} of tank {i % 7}", f"t {i}") for i in range(count))


def test_scores_are_bm25_as_computed_by_hand(memory: Memory) -> None:
    for source in ("red house", "red car here", "blue sea"):
        memory.add(source, "t")
    found = memory.similar("Red house!", 5)
    assert found.segment_ids.tolist() == [1, 2]
    red, house = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)  # of 3 sources 2 have "red", 1 "house"
    average = (2 + 3 + 2) / 3
    factor = {n: 2.2 / (1 + 1.2 * (0.25 + 0.75 * n / average)) for n in (2, 3)}
    assert found.scores.tolist() == pytest.approx([(red + house) * factor[2], red * factor[3]])
    assert found.relative.tolist() == pytest.approx([1, red * factor[3] / ((red + house) * factor[2])])


@pytest.mark.parametrize("walked", [1 << 15, 300])
def test_the_best_are_the_best_of_all_scores(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    monkeypatch.setattr("kster.memory.sources.scoring.WALKED", walked)
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(60)]
    weights = 1 / np.arange(1, 61)
    texts = [" ".join(random.choice(words, 8, p=weights / weights.sum())) for _ in range(900)]
    memory.import_pairs(Pair(text, f"t {i}") for i, text in enumerate(texts))
    memory.remove(range(1, 900, 9))
    sources = memory.sources()
    for text in texts[:40]:
        found = sources.similar(text, 10)
        everything = sources.relative_scores(text)
        assert np.allclose(everything[found.segment_ids - 1], found.relative, atol=1e-6)
        if walked > 300:  # else what shares only common words with the text is not looked for
            assert np.allclose(found.relative, np.sort(everything)[::-1][:10], atol=1e-6)


def test_equally_good_sources_come_newest_first(memory: Memory) -> None:
    memory.add_many([Pair("press the button", f"target {i}") for i in range(6)])
    assert memory.similar("press the button", 4).segment_ids.tolist() == [6, 5, 4, 3]


def test_added_is_found_by_the_next_query_and_removed_never_again(memory: Memory, saved_early: None) -> None:
    fill(memory, 50)
    assert "open valve 7 of tank 0" in sources_like(memory, "valve 7")
    segment = memory.add("a dosing funnel", "ein Dosiertrichter")
    assert sources_like(memory, "dosing funnel") == ["a dosing funnel"]
    memory.remove(segment.id)
    assert sources_like(memory, "dosing funnel") == []
    memory.compact()
    assert sources_like(memory, "dosing funnel") == []
    with Memory.open(memory.directory) as again:
        assert sources_like(again, "dosing funnel") == []
        assert sources_like(again, "valve 49", 1) == ["open valve 49 of tank 0"]


def test_an_earlier_snapshot_is_searched_as_it_was_whatever_was_indexed_since(memory: Memory) -> None:
    fill(memory, 3)
    earlier = memory.view().snapshot
    memory.import_pairs([Pair("a dosing funnel", "ein Dosiertrichter"), Pair("a valve", "ein Ventil")])
    assert sources_like(memory, "dosing funnel") == ["a dosing funnel"]
    then = memory.sources(earlier)
    assert then.relative_scores("open valve 1").shape == (3,)
    assert len(then.similar("dosing funnel", 5)) == 0
    assert set(then.similar("valve", 5).segment_ids.tolist()) == {1, 2, 3}
    assert sources_like(memory, "dosing funnel") == ["a dosing funnel"]


def test_another_process_finds_what_was_added_and_not_what_was_removed(
    memory: Memory, saved_early: None
) -> None:
    fill(memory, 30)
    removed = memory.add("gone for good", "weg").id
    memory.similar("valve", 3)
    memory.remove(removed)
    memory.add("the newest words", "die neuesten")
    script = (
        "import sys; from kster.memory import Memory\n"
        "m = Memory.open(sys.argv[1])\n"
        "for text in ('gone good', 'newest words', 'valve 3'):\n"
        "    print(','.join(map(str, m.similar(text, 1).segment_ids.tolist())))\n"
    )
    run = [sys.executable, "-c", script, str(memory.directory)]
    printed = subprocess.run(run, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    assert printed.splitlines() == ["", "32", "4"]


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "foreign", "older"])
def test_whatever_happens_to_the_file_every_segment_is_found(
    memory: Memory, speller: Speller, tmp_path: Path, saved_early: None, damage: str
) -> None:
    fill(memory, 40)
    memory.similar("valve", 1)
    file = memory.directory / "index" / "sources.npz"
    old = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(old[: len(old) // 2])
    elif damage == "flipped":
        file.write_bytes(old[: len(old) // 2] + bytes([old[len(old) // 2] ^ 1]) + old[len(old) // 2 + 1 :])
    elif damage == "foreign":
        with Memory.create(tmp_path / "other", speller) as other:
            other.import_pairs(Pair(f"other words {i}", "x") for i in range(40))
            other.similar("words", 1)
            file.write_bytes((other.directory / "index" / "sources.npz").read_bytes())
    else:
        fill(memory, 90)
    memory.add("last of all", "zuletzt")
    with Memory.open(memory.directory) as again:
        for i in (0, 17, 39):
            assert f"open valve {i} of tank {i % 7}" in sources_like(again, f"valve {i} of tank", 3)
        assert sources_like(again, "last all", 1) == ["last of all"]
        assert again.verify() == []


def test_a_directory_that_cannot_be_written_costs_only_the_file(
    memory: Memory, saved_early: None, caplog: pytest.LogCaptureFixture
) -> None:
    fill(memory, 30)
    (memory.directory / "index").write_text("in the way")
    assert sources_like(memory, "valve 3", 1) == ["open valve 3 of tank 3"]
    assert "could not be saved" in caplog.text


def test_many_small_additions_are_found_like_one_import(
    memory: Memory, speller: Speller, tmp_path: Path
) -> None:
    texts = [f"word{i % 5} number{i % 3} item{i}" for i in range(40)]
    for text in texts:
        memory.add(text, "t")
        memory.similar(text, 1)
    with Memory.create(tmp_path / "at once", speller) as other:
        other.import_pairs(Pair(text, "t") for text in texts)
        for text in texts[::7]:
            one, two = memory.similar(text, 8), other.similar(text, 8)
            assert one.segment_ids.tolist() == two.segment_ids.tolist()
            assert one.scores.tolist() == pytest.approx(two.scores.tolist())


def test_an_index_is_the_same_however_it_was_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [(3 * i, -i, f"word{i % 5} number{i % 3} item{i}") for i in range(40)]
    whole = Postings.of(sources)
    monkeypatch.setattr(postings, "BLOCK", 7)
    assert arrays(Postings.of(sources)) == arrays(whole)
    assert len(Postings.of([])) == 0

    stays = np.arange(40) % 4 > 0
    halves = Postings.of(sources[:15]), Postings.of(sources[15:])
    fewer = Postings.merged(halves, [stays[:15], stays[15:]])
    anew = Postings.of(one for one, stay in zip(sources, stays, strict=True) if stay)
    assert fewer.segment_ids.tolist() == anew.segment_ids.tolist()
    for place, term in enumerate(fewer.terms):
        expected = [anew.having(own).tolist() for own in np.flatnonzero(anew.terms == term)]
        assert fewer.having(place).tolist() == (expected[0] if expected else [])


def arrays(index: Postings) -> list[list[int]]:
    return [getattr(index, field.name).tolist() for field in fields(index)]


def test_an_empty_memory_resembles_nothing(memory: Memory) -> None:
    assert len(memory.similar("anything", 5)) == 0
    assert memory.matches("anything") == []


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Öffnen Sie den Tank!", ["öffnen", "sie", "den", "tank"]),
        ("don't stop_here", ["don", "t", "stop", "here"]),
        ("日本語の文", ["日本", "本語", "語の", "の文"]),
        ("水", ["水"]),
        ("Windows用の印刷", ["windows", "用の", "の印", "印刷"]),
        ("ไทย", ["ไท", "ทย"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("cafe\u0301", ["café"]),
        ("!?", ["!?"]),
    ],
)
def test_terms_are_words_or_pairs_of_characters(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


def test_sources_without_spaces_are_found_by_their_characters(memory: Memory) -> None:
    memory.add("印刷ジョブを開始します", "a")
    memory.add("เปิดเครื่อง", "b")
    memory.add("设置打印机", "c")
    assert sources_like(memory, "印刷を開始", 1) == ["印刷ジョブを開始します"]
    assert sources_like(memory, "ปิดเครื่อง", 1) == ["เปิดเครื่อง"]
    assert sources_like(memory, "打印机", 1) == ["设置打印机"]


def test_match_percentages_are_those_of_word_edits(memory: Memory) -> None:
    memory.add("Press the  red button.", "a")
    memory.add("Press the green button.", "b")
    memory.add("Press the button now, please.", "c")
    memory.add("Quite another sentence", "d")
    found = memory.matches("press the red BUTTON.", 3)
    assert [(match.segment.target, match.percentage) for match in found] == [("a", 100), ("b", 80), ("c", 42)]
    assert [match.percentage for match in memory.matches("press the red BUTTON.", least=80)] == [100, 80]
    assert memory.matches("Press the red button!")[0].percentage == 80


@pytest.mark.parametrize("walked", [1 << 15, 300])
def test_fewer_are_the_first_of_more_whichever_are_asked_for_first(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    monkeypatch.setattr("kster.memory.sources.scoring.WALKED", walked)
    random = np.random.default_rng(1)
    texts = [" ".join(f"w{i}" for i in random.integers(0, 30, 6)) for _ in range(400)]
    memory.import_pairs(Pair(text, f"t {i}") for i, text in enumerate(texts))
    for text in texts[:20]:
        fresh = [Memory.open(memory.directory, Speller()) for _ in range(2)]
        rising = [fresh[0].similar(text, m) for m in (3, 10, 50)]
        falling = [fresh[1].similar(text, m) for m in (50, 10, 3)]
        for one, other in zip(rising, reversed(falling), strict=True):
            assert one.segment_ids.tolist() == other.segment_ids.tolist()
            assert one.relative.tolist() == other.relative.tolist()
        for one in fresh:
            one.close()


def test_fewer_matches_are_the_first_of_more(memory: Memory) -> None:
    random = np.random.default_rng(2)
    texts = [" ".join(f"w{i}" for i in random.integers(0, 9, random.integers(1, 9))) for _ in range(200)]
    memory.import_pairs(Pair(text, f"t {i}") for i, text in enumerate(texts))
    segments = list(memory.segments_of(range(1, 201)))
    for text in [*texts[:20], "w0 w0 w0 w1", "nothing of it"]:
        all_of_them = best_matches(text, segments, 200, 0)
        assert len(all_of_them) == 200
        assert best_matches(text, segments, 5, 0) == all_of_them[:5]
        some = [one for one in all_of_them if one.percentage >= 40]
        assert best_matches(text, segments, 7, 40) == some[:7]


def test_a_match_that_is_not_equal_is_never_a_hundred(memory: Memory) -> None:
    words = " ".join(f"w{i}" for i in range(20))
    memory.add(f"{words} end", "a")
    assert memory.matches(f"{words} end.")[0].percentage < 100


def test_a_group_finds_in_all_memories(memory: Memory, speller: Speller, tmp_path: Path) -> None:
    memory.add("open the tank", "a")
    with Memory.create(tmp_path / "b", speller) as other:
        other.add("open the tank", "b")
        other.add("close the tank", "c")
        group = MemoryGroup([memory, other])
        assert sources_like(group, "open the tank") == ["open the tank", "open the tank", "close the tank"]
        found = group.matches("open the tank", 2)
        assert [(match.segment.target, match.memory) for match in found] == [
            ("b", str(other.directory)),
            ("a", str(memory.directory)),
        ]


def test_parts_of_a_collection_score_with_its_frequencies_as_it_does(
    memory: Memory, speller: Speller, tmp_path: Path
) -> None:
    texts = [f"open valve {i % 5} of tank {i}" for i in range(30)] + ["close the lid"]
    memory.import_pairs(Pair(text, "t") for text in texts)
    halves = [Memory.create(tmp_path / name, speller) for name in ("first", "second")]
    for i, text in enumerate(texts):
        halves[i % 2].add(text, "t")
    for wanted in ("open valve 3 of tank 7", "the lid"):
        whole = memory.similar(wanted, 40)
        expected = dict(zip(whole.segment_ids.tolist(), whole.relative.tolist(), strict=True))
        known = halves[0].sources().frequencies(wanted) + halves[1].sources().frequencies(wanted)
        for place, half in enumerate(halves):
            found = half.sources().similar(wanted, 40, known)
            for id, relative in zip(found.segment_ids.tolist(), found.relative.tolist(), strict=True):
                assert relative == expected.pop(2 * id - 1 + place)  # every other segment is of this half
        assert not expected
    for half in halves:
        half.close()


@pytest.mark.parametrize("walked", [1 << 15, 30])
def test_parts_of_a_collection_find_what_it_finds(
    memory: Memory, speller: Speller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    """However many of a text's terms are too common to be walked through."""
    monkeypatch.setattr("kster.memory.sources.scoring.WALKED", walked)
    texts = [f"open valve {i % 5} of tank {i} " + "and close " * (i % 3) + f"lid{i % 7}" for i in range(60)]
    memory.import_pairs(Pair(text, "t") for text in texts)
    with (
        Memory.create(tmp_path / "first", speller) as first,
        Memory.create(tmp_path / "second", speller) as second,
    ):
        first.import_pairs(Pair(text, "t") for text in texts[:50])
        second.import_pairs(Pair(text, "t") for text in texts[50:])
        for wanted in ("open valve 3 of tank 7", "close lid2", "open and close lid5 of tank 55"):
            known = first.sources().frequencies(wanted) + second.sources().frequencies(wanted)
            one, two = (part.sources().similar(wanted, 10, known) for part in (first, second))
            both = np.concatenate([one.segment_ids, two.segment_ids + 50])
            scores = np.concatenate([one.scores, two.scores])
            whole = memory.similar(wanted, 10)
            assert both[np.lexsort((-both, -scores))][:10].tolist() == whole.segment_ids.tolist()


def test_what_was_removed_does_not_count_in_scores(memory: Memory, speller: Speller, tmp_path: Path) -> None:
    """A memory scores as one that never had it, whether its index still lists the removed segment or not."""
    texts = [f"open valve {i % 5} of tank {i}" for i in range(30)]
    memory.add_many(Pair(text, "t") for text in texts)
    memory.similar("tank", 1)  # all are indexed
    memory.remove([1, 7, 8, 30])
    with Memory.create(tmp_path / "other", speller) as other:
        other.add_many(Pair(text, "t") for i, text in enumerate(texts, 1) if i not in (1, 7, 8, 30))
        for wanted in ("open valve 1 of tank 6", "tank 29", "valve 0"):
            one, two = memory.similar(wanted, 40), other.similar(wanted, 40)
            assert len(one) == len(two)
            assert one.scores.tolist() == pytest.approx(two.scores.tolist(), rel=1e-6)
            assert one.relative.tolist() == pytest.approx(two.relative.tolist(), rel=1e-6)


def test_a_source_says_which_words_of_a_sentence_it_has(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller) as memory:
        for text in ("Close the gate.", "the gate-keeper", "大きい 門"):
            memory.add(text, "x")
        words = ["The", "gate,", "gate-keeper", "–", "大きい"]
        sources = memory.sources()
        having = sources.having_words(words, np.array([1, 2, 3]))
        bits = [[int(mask) >> i & 1 for i in range(5)] for mask in having]
        # A dash is no word, and what a script does not separate cannot be told apart: nobody lacks them.
        assert bits == [[1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]


def test_forms_of_a_word_are_that_word(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller) as memory:
        memory.add("The valves opened.", "x")
        sources = memory.sources()
        (mask,) = sources.having_words(["valve", "opening", "ovals", "the"], np.array([1]))
        assert [int(mask) >> i & 1 for i in range(4)] == [1, 1, 0, 1]


def test_a_word_of_few_sources_is_rare(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller) as memory:
        memory.import_pairs(Pair(f"the tank {i}", "x") for i in range(9))
        memory.add("the funnel", "x")
        words = ["the", "funnel", "unknown", "tanks", "–"]
        having = memory.sources().having_words(words, np.arange(1, 11))
        assert rare_words(having) == 0b00010


def test_an_older_segment_with_the_same_source_is_known_as_such(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller) as memory:
        for source in ("The gate.", "the door", "the gate", "The gate!"):
            memory.add(source, f"t {source}")
        sources = memory.sources()
        having = sources.having_words(["gate"], np.array([1, 2, 3, 4]))
        assert [int(mask) >= 0 for mask in having] == [True, False, True, False]
