import json
from pathlib import Path

import pytest

from kster.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["terms", *map(str, arguments)])
    written = capsys.readouterr()
    return status, written.out, written.err


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "house.terms"
    run(capsys, "create", path, "--source-lang", "en", "--target-lang", "de")
    return path


def test_terms_are_added_listed_and_removed(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    added = run(capsys, "add", base, "knock box", "Abschlagbehälter", "Klopfkasten", "--pos", "noun")
    assert added[:2] == (0, "term 1: knock box → Abschlagbehälter, Klopfkasten\n")
    run(capsys, "add", base, "QuickPort", "--do-not-translate", "--case", "exact")
    assert (
        run(capsys, "list", base)[1]
        == "1\tknock box\tAbschlagbehälter, Klopfkasten\n2\tQuickPort\tQuickPort\n"
    )
    assert run(capsys, "remove", base, 2)[1] == "removed 1 term\n"
    assert run(capsys, "remove", base, "--source", "nothing")[0] == 2
    (one,) = json.loads(run(capsys, "list", base, "--json")[1])
    assert (one["source"], one["part_of_speech"]) == ("knock box", "noun")


def test_an_import_reports_what_it_could_not_use(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text("hose\tSchlauch\nbroken\n")
    status, out, err = run(capsys, "import", base, tmp_path / "a.tsv")
    assert status == 0
    assert out.endswith("a.tsv: 1 added, 0 replaced, 0 there already, 1 rejected\n")
    assert "line 2: 1 columns where 2 were expected" in err


def test_an_import_without_a_usable_term_has_failed(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("hose,Schlauch\rcup,Tasse\r", newline="")
    status, _, err = run(capsys, "import", base, tmp_path / "a.csv")
    assert status == 2
    assert err.endswith("a.csv: every term was rejected; nothing of it was imported\n")


def test_an_export_to_standard_output_is_tsv(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", base, "hose", "Schlauch")
    assert run(capsys, "export", base)[1].splitlines()[1].startswith("hose\tSchlauch\t")


def test_check_says_where_a_term_was_not_kept(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "add", base, "hose", "Schlauch")
    (tmp_path / "a.tsv").write_text("two hoses\tzwei Schläuche\na hose\tein Rohr\n", encoding="utf-8")
    status, out, _ = run(capsys, "check", base, tmp_path / "a.tsv")
    assert status == 1
    assert out.endswith("a.tsv, line 2: hose → Schlauch is not in: ein Rohr\n")


def test_check_finds_terms_that_contradict_each_other(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", base, "hose", "Schlauch", "--pos", "noun")
    assert run(capsys, "check", base)[0] == 0
    run(capsys, "add", base, "Hose", "Strumpf")
    assert run(capsys, "check", base)[:2] == (1, "terms 1 and 2: Hose → Schlauch, Strumpf\n")


def test_translate_keeps_the_terms_of_a_base(
    base: Path, taught_marian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "add", base, "machine", "Apparat", "--pos", "noun")
    (tmp_path / "in.txt").write_text("press the button to start the machine\n")
    options = ["--model", taught_marian, "--device", "cpu", "--terms", base, "--input", tmp_path / "in.txt"]
    assert main(["translate", *map(str, options)]) == 0
    assert "Apparat" in capsys.readouterr().out
