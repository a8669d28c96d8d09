import pytest

from formats.conftest import read, tmx, tu
from kster.formats import Pair, read_pairs, write_pairs


@pytest.mark.parametrize(
    ("segment", "stripped", "kept"),
    [
        ("a <bpt i='1'>&lt;b></bpt>bold<ept i='1'>&lt;/b></ept> word", "a bold word", "a <b>bold</b> word"),
        ("Hello <ph>{0}</ph> world", "Hello world", "Hello {0} world"),
        (
            "<ph x='1'/> starts and ends <ph x='2'/>",
            "starts and ends",
            '<ph id="1"/> starts and ends <ph id="2"/>',
        ),
        ("half <it pos='begin'>&lt;i></it>open", "half open", "half <i>open"),
        ("old <ut>{\\b}</ut>style", "old style", "old {\\b}style"),
        ("a <hi>marked <hi>word</hi></hi> here", "a marked word here", "a marked word here"),
        ("note<ph>&lt;fn><sub>a footnote</sub>&lt;/fn></ph>.", "note.", "note<fn>a footnote</fn>."),
        ("two  spaces <!-- and a comment -->stay", "two  spaces stay", "two  spaces stay"),
    ],
)
def test_inline_codes_are_stripped_or_kept(put, segment: str, stripped: str, kept: str) -> None:
    path = put("a.tmx", tmx(tu(segment, "x")))
    assert read(path)[0][0].source == stripped
    assert read(path, tags="keep")[0][0].source == kept


def test_the_unit_id_is_kept(put) -> None:
    assert read(put("a.tmx", tmx(tu("a", "b", id="unit 1"))))[0] == [Pair("a", "b", "unit 1")]


def test_the_lang_attribute_of_early_versions_is_read(put) -> None:
    path = put("a.tmx", tmx(tu("a", "b").replace("xml:lang", "lang")))
    assert read(path)[0] == [Pair("a", "b")]


def test_a_default_namespace_makes_no_difference(put) -> None:
    content = tmx(tu("a", "b")).replace(
        '<tmx version="1.4">', '<tmx version="1.4" xmlns="http://www.lisa.org/tmx14">'
    )
    assert read(put("a.tmx", content))[0] == [Pair("a", "b")]


def test_empty_sides_and_missing_segments_are_rejected_with_line_and_unit(put) -> None:
    broken = '<tu tuid="no seg"><tuv xml:lang="en"/><tuv xml:lang="de"><seg>x</seg></tuv></tu>'
    path = put("a.tmx", tmx(tu("a", "b"), tu("c", " ", id="2"), tu("", "d", id="3"), broken, "<tu/>"))
    pairs, rejections = read(path)
    assert pairs == [Pair("a", "b")]
    assert [(r.file, r.line, r.unit) for r in rejections] == [
        (str(path), 5, "2"),
        (str(path), 6, "3"),
        (str(path), 7, "no seg"),
        (str(path), 8, None),
    ]
    reasons = [r.reason for r in rejections]
    assert reasons[:3] == ["untranslated", "empty source", "empty source"]
    assert "has no language" in reasons[3]


def test_line_numbers_are_right_far_into_a_file(put) -> None:
    path = put("a.tmx", tmx(*[tu("a", "b")] * 70_000, tu("\x01", "b")))
    assert read(path)[1][0].line == 70_004


def test_a_file_without_units_gives_nothing(put) -> None:
    assert read(put("a.tmx", tmx())) == ([], [])


def test_what_is_written_declares_version_and_languages(tmp_path) -> None:
    assert write_pairs(tmp_path / "a.tmx", [Pair("a", "b")], "en-GB", "de") == 1
    text = (tmp_path / "a.tmx").read_text(encoding="utf-8")
    assert '<tmx version="1.4">' in text
    assert 'srclang="en-GB"' in text


def test_the_codes_of_nllb_are_written_as_bcp_47_and_read_back(tmp_path):
    file = tmp_path / "a.tmx"
    write_pairs(file, [Pair("a", "b")], "eng_Latn", "deu_Latn")
    assert 'xml:lang="en"' in file.read_text(encoding="utf-8")
    assert [pair.source for pair in read_pairs(file, "eng_Latn", "deu_Latn")] == ["a"]


def test_properties_say_status_context_and_author(put) -> None:
    def unit(id: str, properties: str, attributes: str = "") -> str:
        segments = (
            '<tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"' + attributes + "><seg>b</seg></tuv>"
        )
        return f'<tu tuid="{id}">{properties}{segments}</tu>'

    def prop(type: str, text: str) -> str:
        return f'<prop type="{type}">{text}</prop>'

    path = put(
        "a.tmx",
        tmx(
            unit("1", prop("x-context", "menu"), ' changeid="anna"'),
            unit("2", prop("x-ConfirmationLevel", "Draft")),
            unit("3", prop("x-ConfirmationLevel", "RejectedTranslation")),
            unit("4", prop("x-Origin", "Machine Translation")),
            unit("5", "", ' creationid="MT!"'),
            unit("6", prop("x-ConfirmationLevel", "ApprovedSignOff") + prop("x-origin", "MT")),
        ),
    )
    pairs = [item for item in read_pairs(path, "en", "de", drafts=True) if isinstance(item, Pair)]
    assert [pair.status for pair in pairs] == [
        *("approved", "draft", "rejected", "draft", "draft", "approved"),
    ]
    assert (pairs[0].context, pairs[0].author) == ("menu", "anna")
    assert [pair.id for pair in read(path)[0]] == ["1", "6"]  # drafts are rejections, unless asked for
    assert [rejection.reason for rejection in read(path)[1]][2] == "machine translation"
