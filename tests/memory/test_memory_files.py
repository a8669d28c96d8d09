"""Files in and out, with the words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair, read_pairs
from kster.memory import Memory
from kster.model import BaseModel

PAIRS = [
    Pair("tree", "Baum", "u1"),
    Pair("the bird & the <b>", 'der "Vogel" und', "u2"),
    Pair("🌳", "ﷺ", "u3"),
]


@pytest.mark.parametrize("name", ["all.tmx", "all.xlf", "all.po", "all.tsv.gz", "all.csv"])
def test_what_is_exported_to_a_file_is_imported_from_it(
    memory: Memory, tmp_path: Path, speller: Speller, name: str
) -> None:
    memory.import_pairs(PAIRS)
    file = tmp_path / name
    assert memory.export_file(file) == 3
    with Memory.create(tmp_path / "copy", speller) as copy:
        report = copy.import_file(str(file))
        assert (report.added, report.duplicates, report.rejected) == (3, 0, [])
        texts = [(pair.source, pair.target) for pair in copy.export()]
        assert texts == [(pair.source, pair.target) for pair in PAIRS]
        assert {segment.origin for segment in copy.segments()} == {str(file)}
        assert copy.import_file(file).duplicates == 3


def test_two_files_of_lines_are_imported_together(memory: Memory, tmp_path: Path) -> None:
    memory.import_pairs([Pair("tree", "Baum"), Pair("bird", "Vogel")])
    assert memory.export_file(tmp_path / "all", format="moses") == 2
    memory.remove([1, 2])
    source, target = tmp_path / "all.en", tmp_path / "all.de"
    assert memory.import_file(source=source, target=target).added == 2
    assert memory.segment(3).origin == f"{source}, {target}"
    assert memory.import_file(tmp_path / "all", format="moses").duplicates == 2
    for mistaken in ({}, {"source": source}, {"path": source, "source": source, "target": target}):
        with pytest.raises(KsterError, match=r"a file, or source and target; nothing was imported"):
            memory.import_file(**mistaken)  # type: ignore[arg-type]


def test_languages_of_a_file_are_the_memorys_unless_given(memory: Memory, tmp_path: Path) -> None:
    memory.import_pairs([Pair("tree", "Baum")])
    file = tmp_path / "all.tmx"
    memory.export_file(file)
    assert list(read_pairs(file, "en", "de")) == [Pair("tree", "Baum")]
    assert memory.import_file(file, source_lang="de", target_lang="en").added == 1
    assert memory.segment(2).source == "Baum"
    with pytest.raises(KsterError, match="unknown format 'docx'"):
        memory.import_file(file, format="docx")


def test_a_broken_file_is_closed_and_leaves_nothing(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "broken.tmx"
    file.write_text('<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>a', encoding="utf-8")
    with pytest.raises(KsterError, match=r"broken\.tmx"):
        memory.import_file(file)
    assert memory.segment_count() == 0


def test_languages_are_given_when_a_memory_is_made_and_kept(tmp_path: Path, tiny_m2m100: Path) -> None:
    with Memory.create(tmp_path / "m", tiny_m2m100, source_lang="de", target_lang="en") as memory:
        memory.add("das rote Haus", "the red house")
    with Memory.open(tmp_path / "m") as memory:
        assert (memory.model.source_lang, memory.model.target_lang) == ("de", "en")
        assert (memory.info().source_lang, memory.info().target_lang) == ("de", "en")
        memory.add("der Baum", "the tree")


def test_languages_that_are_not_those_of_the_loaded_model_are_refused(
    tmp_path: Path, speller: Speller, tiny_marian: Path
) -> None:
    with pytest.raises(
        KsterError, match=r"speller was loaded for en → de, not for fr → \?; load it with these"
    ):
        Memory.create(tmp_path / "m", speller, source_lang="fr")
    with pytest.raises(KsterError, match=r"not for \? → fr"):
        Memory.create(tmp_path / "m", speller, target_lang="fr")
    assert not (tmp_path / "m").exists()
    Memory.create(tmp_path / "m", speller, source_lang="en", target_lang="de").close()
    model = BaseModel.load(tiny_marian, device="cpu")
    languages = {"source_lang": model.source_lang, "target_lang": model.target_lang}
    with Memory.create(tmp_path / "same", model, **languages) as memory:
        assert memory.description.target_lang == model.target_lang
