from pathlib import Path

import pytest
from translate.storage.tbx import tbxfile

from kster.errors import KsterError
from kster.formats import Rejection
from kster.terms import Term, TermBase, term
from kster.terms.files import read_terms, write_terms

TERMS = [
    term("knock box", ["Abschlagbehälter", "Klopfkasten"], part_of_speech="noun", note="of <rubber> & steel"),
    term("tighten", ["festziehen"], part_of_speech="verb"),
    term("Home", ["Startseite"], part_of_speech="proper noun", case="exact"),
    term("QuickPort", translate=False, case="exact"),
    term("tank", ["Behälter"], inside_words=True),
    term("ferry", ["Anhängsel", "Xyz"], part_of_speech="noun", gender="neuter"),
]

CORE = """<?xml version="1.0"?>
<tbx type="TBX-Core" style="dca" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2">
<tbxHeader><fileDesc><sourceDesc><p>x</p></sourceDesc></fileDesc></tbxHeader><text><body>
<conceptEntry id="c1"><langSec xml:lang="en-GB"><termSec><term>knock box</term></termSec>
<termSec><term>dump box</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Ausklopfer</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec>
<termSec><term>Klopfkasten</term></termSec>
<termSec><term>Abschlagbehälter</term><termNote type="administrativeStatus">preferredTerm-admn-sts</termNote>
</termSec></langSec></conceptEntry>
<conceptEntry id="c2"><langSec xml:lang="en"><termSec><term>hose</term></termSec></langSec></conceptEntry>
<conceptEntry id="c3"><langSec xml:lang="en"><termSec><term>a&#x1;</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>b</term></termSec></langSec></conceptEntry>
<conceptEntry id="c4"><langSec xml:lang="en"><termSec><term>descale</term><min:partOfSpeech
 xmlns:min="http://www.tbxinfo.net/ns/min">verb</min:partOfSpeech></termSec></langSec>
<langSec xml:lang="de"><termSec><term>entkalken</term></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def read(path: Path, languages: tuple[str, str] = ("en", "de")) -> tuple[list[Term], list[Rejection]]:
    items = list(read_terms(path, *languages))
    terms = [item for item in items if isinstance(item, Term)]
    return terms, [item for item in items if isinstance(item, Rejection)]


@pytest.mark.parametrize("name", ["a.tbx", "a.tsv", "a.csv", "a.tsv.gz"])
def test_what_is_exported_is_imported_as_it_was(tmp_path: Path, name: str) -> None:
    assert write_terms(tmp_path / name, TERMS, "en", "de") == len(TERMS)
    with TermBase.create(tmp_path / "b.terms", "en", "de") as base:
        report = base.import_file(tmp_path / name)
        assert (report.added, report.rejected) == (len(TERMS), ())
        assert base.terms() == TERMS
        assert base.import_file(tmp_path / name).unchanged == len(TERMS)


def test_two_columns_are_enough(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("knock box,Abschlagbehälter\nhose,Schlauch\n", encoding="utf-8")
    assert read(tmp_path / "a.csv") == (
        [term("knock box", ["Abschlagbehälter"]), term("hose", ["Schlauch"])],
        [],
    )


def test_a_table_may_name_genders_by_letters_and_articles(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("source\ttarget\tgender\na\tX\tm\nb\tY\tdie\nc\tZ\t\nd\tW\tneutral\n")
    terms, (rejected,) = read(tmp_path / "a.tsv")
    assert [one.gender for one in terms] == ["masculine", "feminine", None]
    assert rejected.reason == "gender 'neutral' is unknown; accepted: masculine, feminine, neuter, m, f, n"


def test_a_broken_line_costs_that_line_only(tmp_path: Path) -> None:
    rows = (
        "source\ttarget\tpos\ttranslate\na\tb\tnoun\t\n\nc\td\n\tx\t\t\ne\t\t\t\nf\t\t\tno\ng\th\t\tperhaps\n"
    )
    (tmp_path / "a.tsv").write_text(rows)
    terms, rejections = read(tmp_path / "a.tsv")
    assert terms == [term("a", ["b"], part_of_speech="noun"), term("f", translate=False)]
    assert [(r.line, r.reason.split(";")[0]) for r in rejections] == [
        (3, "empty line"),
        (4, "2 columns where 4 were expected"),
        (5, "source is empty"),
        (6, "the term 'e' has no target"),
        (8, "translate is 'perhaps'"),
    ]


def test_a_cell_may_have_several_targets(tmp_path: Path) -> None:
    path = tmp_path / "house.csv"
    path.write_text('source,target\ngroup head,"Brühgruppe; Brühkopf;"\n', encoding="utf-8")
    with TermBase.create(tmp_path / "base", "en", "de") as base:
        base.import_file(path)
        assert [one.targets for one in base.terms()] == [("Brühgruppe", "Brühkopf")]


def test_rows_of_one_source_are_its_accepted_targets(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\nshortcut\tKürzel\nhose\tSchlauch\nshortcut\tKombination\n")
    with TermBase.create(tmp_path / "b.terms", "en", "de") as base:
        assert base.import_file(tmp_path / "a.tsv").added == 2
        assert base.terms()[0].targets == ("Kürzel", "Kombination")


def test_the_columns_go_by_the_header_and_serve_the_other_direction(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("de\tremark\ten-GB\nSchlauch\told\those\n")
    assert read(tmp_path / "a.tsv")[0] == [term("hose", ["Schlauch"])]
    assert read(tmp_path / "a.tsv", ("de", "en"))[0] == [term("Schlauch", ["hose"])]


def test_tbx_core_gives_every_synonym_the_targets_that_are_in_use(tmp_path: Path) -> None:
    (tmp_path / "a.tbx").write_text(CORE, encoding="utf-8")
    terms, rejections = read(tmp_path / "a.tbx")
    targets = ["Abschlagbehälter", "Klopfkasten"]
    assert terms == [
        term("knock box", targets),
        term("dump box", targets),
        term("descale", ["entkalken"], part_of_speech="verb"),
    ]
    assert [(r.unit, r.reason[:20]) for r in rejections] == [
        ("c2", "not in both en and d"),
        ("c3", "source contains a ch"),
    ]


def test_another_program_reads_the_tbx(tmp_path: Path) -> None:
    write_terms(tmp_path / "a.tbx", TERMS, "en", "de")
    units = tbxfile.parsefile(str(tmp_path / "a.tbx")).units
    assert [(unit.source, unit.target) for unit in units] == [(one.source, one.targets[0]) for one in TERMS]


def test_a_file_that_breaks_off_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tbx").write_text(CORE[:900], encoding="utf-8")
    with TermBase.create(tmp_path / "b.terms", "en", "de") as base:
        with pytest.raises(KsterError, match="not well-formed"):
            base.import_file(tmp_path / "a.tbx")
        assert base.terms() == []


@pytest.mark.parametrize("name", ["a.docx", "nothing.tsv"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    if name == "a.docx":
        (tmp_path / name).write_text("hello")
    with pytest.raises(KsterError, match=r"cannot tell its format|no such file"):
        read(tmp_path / name)
