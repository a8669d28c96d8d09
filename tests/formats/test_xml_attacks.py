"""Files made to harm, and files harmed by accident."""

import pytest

from formats.conftest import read, tmx, tu
from kster.errors import KsterError
from kster.formats import Pair, encoding, xml

GOOD = tu("good", "gut")


def assert_only_unit_rejected(path, line: int, unit: str, reason: str) -> None:
    pairs, rejections = read(path)
    assert pairs == [Pair("good", "gut"), Pair("good", "gut")]
    assert [(r.line, r.unit) for r in rejections] == [(line, unit)]
    assert reason in rejections[0].reason


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a&#x1;b", "U+0001"),
        ("a&#0;b", "U+0000"),
        ("a&#xD800;b", "U+D800"),
        ("a&#x110000;b", "U+110000"),
        ("a&#99999999999;b", "U+"),
        ("a\x01b", "U+0001"),
        ("a\x00b", "U+0000"),
        ("a\x1fb", "U+001F"),
        ("a\uffffb", "U+FFFF"),
        ("a\ufdd0b", "U+FDD0"),
        ("<![CDATA[a\x02b]]>", "U+0002"),
    ],
)
def test_a_forbidden_character_rejects_its_unit_only(put, text: str, name: str) -> None:
    path = put("a.tmx", tmx(GOOD, tu(text, "x", id="bad"), GOOD))
    assert_only_unit_rejected(path, 5, "bad", f"source contains the character {name}")


def test_harmless_references_are_resolved(put) -> None:
    path = put("a.tmx", tmx(tu("&lt;b&gt; &amp; &quot;&apos; &#65;&#x1F600;&#10;", "x")))
    assert read(path)[0][0].source == "<b> & \"' A😀\n"


def test_ampersands_in_cdata_are_text(put) -> None:
    path = put("a.tmx", tmx(tu("<![CDATA[<p>a&nbsp;b &#x1; ]]>c&amp;d<![CDATA[]] &x;]]>", "x")))
    assert read(path)[0][0].source == "<p>a&nbsp;b &#x1; c&d]] &x;"


@pytest.mark.parametrize("doctype", ["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'])
def test_an_undeclared_entity_rejects_its_unit_only(put, doctype: str) -> None:
    path = put("a.tmx", tmx(GOOD, tu("a&nbsp;b", "x", id="bad"), GOOD, doctype=doctype))
    assert_only_unit_rejected(path, 6 if doctype else 5, "bad", "the entity reference &nbsp;")


def test_a_doctype_is_allowed_and_its_dtd_not_looked_for(put, tmp_path) -> None:
    (tmp_path / "tmx14.dtd").write_text("this is no DTD <<<")
    path = put("a.tmx", tmx(GOOD, doctype=f'<!DOCTYPE tmx SYSTEM "{(tmp_path / "tmx14.dtd").as_uri()}">'))
    assert read(path) == ([Pair("good", "gut")], [])


def test_an_external_entity_is_never_read(put, tmp_path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    uri = (tmp_path / "secret.txt").as_uri()
    doctype = f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "{uri}"><!ENTITY % p SYSTEM "{uri}"> %p;]>'
    path = put("a.tmx", tmx(GOOD, tu("see &x;", "x", id="bad"), GOOD, doctype=doctype))
    assert_only_unit_rejected(path, 6, "bad", "the entity reference &x;")


def test_an_entity_that_slips_past_the_filter_is_not_resolved_either(put, tmp_path) -> None:
    """A comment that looks like the start of CDATA makes the filter look away."""
    (tmp_path / "secret.txt").write_text("the secret")
    doctype = f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
    trick = "<!-- <![CDATA[ -->" + tu("see &x;", "x", id="bad") + "<!-- ]]> -->"
    path = put("a.tmx", tmx(GOOD, trick, GOOD, doctype=doctype))
    assert_only_unit_rejected(path, 6, "bad", "the entity reference &x;")


BOMB = "<!DOCTYPE tmx [<!ENTITY e0 'lollollollol'>" + "".join(
    f"<!ENTITY e{i + 1} '{f'&e{i};' * 10}'>" for i in range(12)
)


def test_an_entity_bomb_does_not_go_off(put) -> None:
    path = put("a.tmx", tmx(GOOD, tu("&e12;", "x", id="bad"), GOOD, doctype=BOMB + "]>"))
    assert_only_unit_rejected(path, 6, "bad", "the entity reference &e12;")


def test_an_entity_bomb_in_an_attribute_does_not_go_off(put) -> None:
    path = put("a.tmx", tmx(GOOD, '<tu tuid="&e12;">' + GOOD[4:], GOOD, doctype=BOMB + "]>"))
    pairs, rejections = read(path)
    assert len(pairs) == 2
    assert "id contains the entity reference &e12;" in rejections[0].reason


def test_an_entity_bomb_that_slips_past_the_filter_is_refused(put) -> None:
    parts = BOMB.replace("<!ENTITY e0", "<!-- <![CDATA[ --><!ENTITY e0")
    path = put("a.tmx", tmx('<tu tuid="&e12;">' + GOOD[4:], doctype=parts + "]>"))
    with pytest.raises(
        KsterError, match=r"a\.tmx, line \d+: not well-formed XML: .*(amplification|loop|limit)"
    ):
        read(path)


def test_a_ten_megabyte_segment_rejects_its_unit_only(put) -> None:
    path = put("a.tmx", tmx(GOOD, tu("x" * 11_000_000, "y", id="bad"), GOOD))
    assert_only_unit_rejected(path, 5, "bad", "far too long")


def test_lines_after_a_segment_that_was_cut_are_still_right(put) -> None:
    path = put("a.tmx", tmx(tu("x\n" * 1_500_000, "y"), tu("\x01", "y")))
    assert [r.line for r in read(path)[1]] == [4, 1_500_005]


def test_a_segment_over_the_character_limit_is_rejected(put) -> None:
    path = put("a.tmx", tmx(tu("x" * 10_000, "y"), tu("x" * 10_001, "y")))
    pairs, rejections = read(path)
    assert len(pairs) == 1
    assert rejections[0].reason == "source has 10,001 characters, more than the limit of 10,000"


def test_a_ten_megabyte_attribute_or_cdata_is_a_clear_error(put) -> None:
    for unit in (f'<tu tuid="{"x" * 11_000_000}"/>', tu(f"<![CDATA[{'x' * 11_000_000}]]>", "y")):
        with pytest.raises(KsterError, match=r"a\.tmx, line \d+: not well-formed XML: "):
            read(put("a.tmx", tmx(unit)))


def test_a_unit_without_end_is_an_error_before_it_fills_the_memory(put, monkeypatch) -> None:
    monkeypatch.setattr(xml, "MAX_UNIT", 200_000)
    with pytest.raises(KsterError, match="more than 200,000 characters without the end of a unit"):
        read(put("a.tmx", tmx("<tu>" + "<tuv/>" * 100_000 + "</tu>")))
    assert len(read(put("b.tmx", tmx(*[GOOD] * 20_000)))[0]) == 20_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tmx(GOOD, GOOD)[:-40], r"line 5: not well-formed XML: "),
        (tmx(GOOD, "<tu><tuv></tu>"), r"line 5: not well-formed XML: .*mismatch"),
        (tmx(GOOD, tu("AT&T", "x")), r"line 5: not well-formed XML: "),
        ("", r"line 1: not well-formed XML: "),
        ("<html><body/></html>", r"the outermost element is <html>, not <tmx>"),
        ("<html><tu/></html>", r"the outermost element is <html>, not <tmx>"),
    ],
)
def test_a_broken_file_is_an_error_with_line_and_reason(put, content: str, message: str) -> None:
    with pytest.raises(KsterError, match=r"a\.tmx" + "[,:] " + message):
        read(put("a.tmx", content))


@pytest.mark.parametrize("size", range(64, 200, 7))
def test_where_the_file_is_cut_into_chunks_makes_no_difference(put, monkeypatch, size: int) -> None:
    units = [
        tu("a &amp; &#x1F600; <![CDATA[&x; ]] ]]> z", "b"),
        tu("&nbsp;", "c"),
        tu("&#x1;", "d"),
        GOOD,
    ] * 8
    path = put("a.tmx", tmx(*units))
    whole = read(path)
    monkeypatch.setattr(encoding, "CHUNK", size)
    assert read(path) == whole
    assert (len(whole[0]), len(whole[1])) == (16, 16)


def test_the_deepest_nesting_is_an_error_not_a_crash(put) -> None:
    with pytest.raises(KsterError, match="not well-formed"):
        read(put("a.tmx", tmx(tu("<hi>" * 5_000 + "x" + "</hi>" * 5_000, "y"))))
