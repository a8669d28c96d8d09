import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kster.errors import KsterError
from kster.terms import Term, TermBase, term

KNOCK_BOX = term("knock box", ["Abschlagbehälter", "Abklopfbehälter"], part_of_speech="noun", note="rubber")


@pytest.fixture
def base(tmp_path: Path):
    with TermBase.create(tmp_path / "house.terms", "en", "de") as made:
        yield made


def test_a_term_is_there_after_opening_again(base: TermBase) -> None:
    added = base.add(KNOCK_BOX)
    with TermBase.open(base.path) as again:
        assert (again.source_lang, again.target_lang) == ("en", "de")
        assert again.terms() == [KNOCK_BOX]
        assert again.terms()[0].id == added.id


def test_a_term_takes_the_place_of_one_with_the_same_source_and_part_of_speech(base: TermBase) -> None:
    first = base.add(KNOCK_BOX)
    again = base.add(term("knock box", ["Klopfkasten"], part_of_speech="noun"))
    assert again.id == first.id
    base.add(term("knock box", ["abklopfen"], part_of_speech="verb"))
    assert [one.targets for one in base.terms()] == [("Klopfkasten",), ("abklopfen",)]


def test_ids_are_never_used_twice(base: TermBase) -> None:
    first = base.add(KNOCK_BOX)
    assert base.remove([first.id or 0]) == 1
    assert base.add(KNOCK_BOX).id != first.id


def test_an_unknown_id_removes_nothing(base: TermBase) -> None:
    added = base.add(KNOCK_BOX)
    with pytest.raises(KsterError, match="there is no term 99; nothing was removed"):
        base.remove([added.id or 0, 99])
    assert base.terms() == [KNOCK_BOX]
    assert base.remove_source("knock box") == 1


def test_a_reader_notices_what_another_connection_has_changed(base: TermBase) -> None:
    with TermBase.open(base.path) as reader:
        before = reader.version()
        assert reader.version() == before
        base.add(KNOCK_BOX)
        assert reader.version() != before


@pytest.mark.parametrize("writable", [True, False])
def test_a_term_base_from_before_genders_is_read_and_where_possible_upgraded(
    base: TermBase, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    base.add(KNOCK_BOX)
    base.close()
    with sqlite3.connect(base.path) as old:
        old.execute("ALTER TABLE terms DROP COLUMN gender")
        old.execute("PRAGMA user_version = 1")
    if not writable:
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with TermBase.open(base.path) as opened:
        assert opened.terms() == [KNOCK_BOX]
        if writable:
            opened.add(term("ferry", ["Anhängsel"], gender="n"))
            assert opened.terms()[1].gender == "neuter"
        else:
            with pytest.raises(KsterError):
                opened.add(term("ferry", ["Anhängsel"]))
    with TermBase.open(base.path) as again:
        assert again.terms()[0] == KNOCK_BOX


def test_what_is_no_term_base_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n")
    with pytest.raises(KsterError, match=r"cannot be used|not a term base"):
        TermBase.open(tmp_path / "a.tsv")
    with pytest.raises(KsterError, match="no such term base"):
        TermBase.open(tmp_path / "b.terms")
    with pytest.raises(KsterError, match="exists already; nothing was changed"):
        TermBase.create(tmp_path / "a.tsv", "en", "de")


def test_a_killed_import_leaves_the_terms_as_they_were(base: TermBase, tmp_path: Path) -> None:
    base.add(KNOCK_BOX)
    rows = tmp_path / "many.tsv"
    rows.write_text("".join(f"word {i}\tWort {i}\n" for i in range(2000)))
    program = (
        "import os, signal, sys; from kster.terms import TermBase; from kster.terms import base\n"
        "put = base.TermBase._put\n"
        "def put_or_die(self, one):\n"
        "    if one.source == 'word 1500': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return put(self, one)\n"
        "base.TermBase._put = put_or_die\n"
        "TermBase.open(sys.argv[1]).import_file(sys.argv[2])"
    )
    done = subprocess.run([sys.executable, "-c", program, base.path, rows], check=False)
    assert done.returncode == -signal.SIGKILL
    with TermBase.open(base.path) as again:
        assert again.terms() == [KNOCK_BOX]
        assert again.import_file(rows).added == 2000


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("", ["x"]), "source is empty"),
        (("a", []), "has no target"),
        (("a", ["--"]), "has no letter"),
        (("a\x01", ["b"]), "no text may have"),
        (("a" * 201, ["b"]), "limit of 200"),
    ],
)
def test_what_cannot_be_a_term_is_refused_with_a_reason(arguments: tuple, reason: str) -> None:
    with pytest.raises(KsterError, match=reason):
        term(*arguments)


def test_a_term_that_is_not_translated_has_its_source_as_target() -> None:
    assert term("QuickPort", translate=False).targets == ("QuickPort",)


def test_spaces_and_repeated_targets_are_closed_up() -> None:
    assert term(" knock  box ", ["A", "A ", "B"], part_of_speech="N.") == Term(
        "knock box", ("A", "B"), "noun"
    )
