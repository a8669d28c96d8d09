import pytest

from formats.conftest import read
from kster.errors import KsterError
from kster.formats import Pair


def xliff12(*units: str, source: str = "en", target: str = 'target-language="de"') -> str:
    return (
        '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file source-language="{source}" {target}><body>\n' + "\n".join(units) + "\n</body></file></xliff>"
    )


def xliff2(*units: str, version: str = "2.0", namespace: str = "2.0") -> str:
    return (
        f'<?xml version="1.0"?>\n<xliff version="{version}" '
        f'xmlns="urn:oasis:names:tc:xliff:document:{namespace}" '
        'srcLang="en" trgLang="de">\n<file id="f">\n' + "\n".join(units) + "\n</file></xliff>"
    )


def unit(attributes: str = "", target: str = "<target>b</target>", source: str = "a") -> str:
    return f'<trans-unit id="u" {attributes}><source>{source}</source>{target}</trans-unit>'


@pytest.mark.parametrize("state", ["new", "needs-translation", "needs-l10n", "needs-review-translation"])
def test_unfinished_units_are_rejected_unless_approved(put, state: str) -> None:
    target = f'<target state="{state}">b</target>'
    pairs, rejections = read(put("a.xlf", xliff12(unit(target=target), unit('approved="yes"', target))))
    assert pairs == [Pair("a", "b", "u")]
    assert [(r.line, r.unit, r.reason) for r in rejections] == [(4, "u", f"not finished (state {state})")]


@pytest.mark.parametrize(
    "state", ["", 'state="translated"', 'state="final"', 'state="signed-off"', 'state="x-ok"']
)
@pytest.mark.parametrize("approved", ["", 'approved="no"', 'approved="yes"'])
def test_finished_units_are_taken_whether_or_not_approved(put, state: str, approved: str) -> None:
    path = put("a.xlf", xliff12(unit(approved, f"<target {state}>b</target>")))
    assert read(path) == ([Pair("a", "b", "u")], [])


def test_units_without_translation_are_rejected(put) -> None:
    path = put("a.xlf", xliff12(unit(target=""), unit(target="<target/>"), unit('translate="no"')))
    assert [r.reason for r in read(path)[1]] == [
        "untranslated",
        "untranslated",
        "marked as not to be translated",
    ]


def test_a_proposed_translation_is_not_the_translation(put) -> None:
    proposal = "<alt-trans><source>a</source><target>proposal</target></alt-trans>"
    path = put("a.xlf", xliff12(unit(target=proposal), unit(target=proposal + "<target>b</target>")))
    pairs, rejections = read(path)
    assert pairs == [Pair("a", "b", "u")]
    assert [r.reason for r in rejections] == ["untranslated"]


def test_groups_and_several_files_are_read(put) -> None:
    grouped = f'<group id="g">{unit()}<group id="h">{unit(source="c")}</group></group>'
    content = xliff12(grouped, unit(source="d"))
    french = '<file source-language="en" target-language="fr"><body>' + unit() + "</body></file>"
    path = put("a.xlf", content.replace("</xliff>", french + "</xliff>"))
    pairs, rejections = read(path)
    assert [p.source for p in pairs] == ["a", "c", "d"]
    assert [r.reason for r in rejections] == ["is en → fr, not en → de"]


def test_languages_that_do_not_match_are_an_error_that_lists_them(put) -> None:
    with pytest.raises(KsterError, match=r"a\.xlf: no unit is en → de. Languages found: en-US → fr"):
        read(put("a.xlf", xliff12(unit(), source="en-US", target='target-language="fr"')))


def test_an_undeclared_target_language_is_taken_to_be_right(put) -> None:
    assert read(put("a.xlf", xliff12(unit(), target="")), "en-GB", "de-AT")[0] == [Pair("a", "b", "u")]


def test_a_target_may_declare_its_own_language(put) -> None:
    own = '<target xml:lang="fr">b</target>'
    assert [r.reason for r in read(put("a.xlf", xliff12(unit(), unit(target=own))))[1]] == [
        "is en → fr, not en → de"
    ]


@pytest.mark.parametrize(
    ("segment", "stripped", "kept"),
    [
        ('a <g id="1">bold</g> word', "a bold word", 'a <g id="1">bold</g> word'),
        ('line<x id="2"/> break', "line break", 'line<x id="2"/> break'),
        ('<bx id="1"/>a<ex id="1"/>', "a", '<bx id="1"/>a<ex id="1"/>'),
        ('see <ph id="1">%s</ph> there', "see there", "see %s there"),
        ('<bpt id="1">&lt;b></bpt>a<ept id="1">&lt;/b></ept>', "a", "<b>a</b>"),
        ('a <mrk mtype="term">term</mrk>', "a term", "a term"),
    ],
)
def test_inline_elements_of_1_2_are_stripped_or_kept(put, segment: str, stripped: str, kept: str) -> None:
    path = put("a.xlf", xliff12(unit(source=segment)))
    assert read(path)[0][0].source == stripped
    assert read(path, tags="keep")[0][0].source == kept


@pytest.mark.parametrize(("version", "namespace"), [("2.0", "2.0"), ("2.1", "2.0"), ("2.2", "2.2")])
def test_each_segment_of_a_version_2_unit_is_a_pair(put, version: str, namespace: str) -> None:
    content = xliff2(
        '<unit id="1"><segment><source>a</source><target>b</target></segment></unit>',
        '<group id="g"><unit id="2"><segment id="s1"><source>c</source><target>d</target></segment>'
        "<ignorable><source> </source></ignorable>"
        '<segment id="s2" state="final"><source>e</source><target>f</target></segment></unit></group>',
        version=version,
        namespace=namespace,
    )
    assert read(put("a.xlf", content)) == (
        [Pair("a", "b", "1"), Pair("c", "d", "2/s1"), Pair("e", "f", "2/s2")],
        [],
    )


def test_version_2_states(put) -> None:
    segments = [
        f'<unit id="{s}"><segment state="{s}"><source>a</source><target>b</target></segment></unit>'
        for s in ("initial", "translated", "reviewed", "final")
    ]
    pairs, rejections = read(put("a.xlf", xliff2(*segments)))
    assert [p.id for p in pairs] == ["translated", "reviewed", "final"]
    assert [(r.unit, r.reason) for r in rejections] == [("initial", "not finished (state initial)")]


def test_inline_elements_of_version_2_are_stripped_or_kept(put) -> None:
    source = 'a <pc id="1">b</pc> <ph id="2"/><sc id="3"/>c<ec startRef="3"/> <mrk id="m" type="term">d</mrk>'
    content = xliff2(f'<unit id="1"><segment><source>{source}</source><target>x</target></segment></unit>')
    path = put("a.xlf", content)
    assert read(path)[0][0].source == "a b c d"
    kept = 'a <pc id="1">b</pc> <ph id="2"/><sc id="3"/>c<ec/> d'
    assert read(path, tags="keep")[0][0].source == kept


def test_a_code_point_element_rejects_its_unit(put) -> None:
    content = xliff2(
        '<unit id="1"><segment><source>a<cp hex="0001"/></source><target>x</target></segment></unit>'
    )
    assert [r.reason for r in read(put("a.xlf", content))[1]] == [
        "contains the character U+0001, written as <cp>"
    ]
