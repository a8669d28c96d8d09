import pytest

from formats.conftest import read
from kster.errors import KsterError
from kster.formats import Pair


def test_rows_without_header_are_source_and_target(put) -> None:
    assert read(put("a.tsv", 'He said "no"\tEr sagte „nein“\r\nb\tc')) == (
        [Pair('He said "no"', "Er sagte „nein“"), Pair("b", "c")],
        [],
    )


def test_a_wrong_number_of_columns_rejects_the_line(put) -> None:
    pairs, rejections = read(put("a.tsv", "a\tb\nalone\n\nc\td\te\nf\t\nx\ty\n"))
    assert [p.source for p in pairs] == ["a", "x"]
    assert [(r.line, r.reason) for r in rejections] == [
        (2, "1 columns where 2 were expected"),
        (3, "empty line"),
        (4, "3 columns where 2 were expected"),
        (5, "untranslated"),
    ]


@pytest.mark.parametrize(
    "header", ["source\ttarget", "en\tde", "EN_us\tGerman\tde-DE", "Source\tdeu", "src\ttgt\tid"]
)
def test_a_header_is_skipped(put, header: str) -> None:
    row = "\t".join(
        {"German": "ignored", "id": "7"}.get(name, name[:1].lower()) for name in header.split("\t")
    )
    pairs, rejections = read(put("a.tsv", f"{header}\n{row}\n"))
    assert rejections == []
    assert len(pairs) == 1
    assert pairs[0].id == ("7" if header.endswith("id") else None)


def test_a_header_decides_which_column_is_which(put) -> None:
    path = put("a.tsv", "id\tde\tnote\ten\n1\tHaus\t\thouse\n2\tMaus\n")
    pairs, rejections = read(path)
    assert pairs == [Pair("house", "Haus", "1")]
    assert rejections[0].reason == "2 columns where 4 were expected"
    assert read(path, "de", "en")[0] == [Pair("Haus", "house", "1")]


def test_a_header_is_understood_when_no_languages_are_wanted(put) -> None:
    path = put("a.tsv", "de\ten\tid\nHaus\thouse\t1\n")
    assert read(path, None, None)[0] == [Pair("Haus", "house", "1")]
    assert read(path, "en", None)[0] == [Pair("house", "Haus", "1")]


def test_id_may_be_indonesian(put) -> None:
    assert read(put("a.tsv", "en\tid\nhouse\trumah\n"), "en", "id")[0] == [Pair("house", "rumah")]
    assert read(put("a.tsv", "en\tid\tid\nhouse\trumah\t1\n"), "en", "id")[0] == [Pair("house", "rumah", "1")]


@pytest.mark.parametrize("row", ["a\tb", "source\tde source", "no\tnein", "en\tfr"])
def test_a_first_row_that_names_no_columns_is_data(put, row: str) -> None:
    assert len(read(put("a.tsv", row + "\n"))[0]) == 1


def test_a_header_of_other_languages_is_an_error_that_lists_them(put) -> None:
    with pytest.raises(KsterError, match=r"line 1: the header has no columns for en and de\..*found: en, fr"):
        read(put("a.tsv", "en\tfr\tid\na\tb\t1\n"))


def test_quoted_csv_fields_hold_commas_quotes_and_line_breaks(put) -> None:
    path = put("a.csv", 'source,target\r\n"a, ""b""\nc","d\r\ne"\r\nf,g\r\n"h","i"\r\n,x\r\n')
    pairs, rejections = read(path)
    assert pairs == [Pair('a, "b"\nc', "d\r\ne"), Pair("f", "g"), Pair("h", "i")]
    assert [(r.line, r.reason) for r in rejections] == [(7, "empty source")]


def test_semicolons_are_recognised(put) -> None:
    assert read(put("a.csv", "en;de\na, b;c\n"))[0] == [Pair("a, b", "c")]


@pytest.mark.parametrize(
    "row", ['"Hello, world";"Hallo, Welt"', "Hello, world;Hallo, Welt", '"Hello, world";Hallo']
)
def test_semicolons_are_told_from_commas_in_the_text_without_a_header(put, row: str) -> None:
    pairs, rejections = read(put("a.csv", f"{row}\n" * 3))
    assert [pair.source for pair in pairs] == ["Hello, world"] * 3
    assert rejections == []


@pytest.mark.parametrize("row", ['"Stop; go","Halt; los"', "Stop; go,Halt; los", "Stop; now; go,Halt;"])
def test_commas_are_told_from_semicolons_in_the_text_without_a_header(put, row: str) -> None:
    pairs, rejections = read(put("a.csv", f"{row}\n" * 3))
    assert [pair.target for pair in pairs] == [row.split(",")[1].strip('"')] * 3
    assert rejections == []


def test_a_line_break_in_quotes_does_not_hide_the_semicolons(put) -> None:
    path = put("a.csv", '"one, two\nthree";"eins, zwei\ndrei"\n"a";"b, c"\n')
    assert read(path)[0] == [Pair("one, two\nthree", "eins, zwei\ndrei"), Pair("a", "b, c")]


def test_semicolons_in_quoted_lines_do_not_make_rows(put) -> None:
    text = 'en,de,id\r\n;,"0\n",";\n"\r\n'
    assert read(put("a.csv", text))[0] == [Pair(";", "0\n", ";\n")]
    assert read(put("a.csv", 'a;b,"x\ny;z\nw;v"\n'))[0] == [Pair("a;b", "x\ny;z\nw;v")]
    assert read(put("a.csv", 'a, b;"x\ny, z"\n'))[0] == [Pair("a, b", "x\ny, z")]


def test_a_fault_in_one_csv_line_rejects_that_line(put) -> None:
    pairs, rejections = read(put("a.csv", 'a,b\n"c"x,d\n\ne,f,g\nh,i\n'))
    assert pairs == [Pair("a", "b"), Pair("h", "i")]
    assert [r.line for r in rejections] == [2, 3, 4]
    assert "not valid CSV" in rejections[0].reason


def test_a_csv_quote_that_is_never_closed_is_an_error_with_its_line(put) -> None:
    for rest in ("", "\nf,g" * 10, "\nf,g" * 100_000):
        with pytest.raises(KsterError, match=r"a\.csv, line 2: a quoted field is never closed"):
            read(put("a.csv", 'a,b\n"c,d' + rest))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_ten_megabyte_line_rejects_itself_only(put, name: str) -> None:
    comma = "\t" if name == "a.tsv" else ","
    for size in (20_000, 500_000, 11_000_000):
        rows = f"a{comma}b\n{'x' * size}{comma}y\nc{comma}d\n"
        pairs, rejections = read(put(name, rows))
        assert pairs == [Pair("a", "b"), Pair("c", "d")]
        assert [r.line for r in rejections] == [2]


def test_control_characters_reject_the_line(put) -> None:
    pairs, rejections = read(put("a.csv", "a,b\nx\0,y\nc,d\x1b\ne,f\n"))
    assert [p.source for p in pairs] == ["a", "e"]
    assert [(r.line, r.reason) for r in rejections] == [
        (2, "source contains the character U+0000"),
        (3, "target contains the character U+001B"),
    ]
