import gzip
import lzma

import pytest

from formats.conftest import read
from kster.errors import KsterError
from kster.formats import Pair, Rejection, detect_format, read_moses, write_moses


def test_lines_are_paired_and_empty_ones_rejected(put) -> None:
    source, target = put("a.en", "one\n\nthree\u2028x\nfour\n"), put("a.de", "eins\nzwei\ndrei\n \n")
    assert list(read_moses(source, target)) == [
        Pair("one", "eins"),
        Rejection(str(source), 2, None, "empty source"),
        Pair("three\u2028x", "drei"),
        Rejection(str(source), 4, None, "untranslated"),
    ]


def test_a_missing_final_line_end_makes_no_difference(put) -> None:
    assert len(list(read_moses(put("a.en", "a\nb"), put("a.de", "c\nd\n")))) == 2


@pytest.mark.parametrize(("longer", "shorter"), [("en", "de"), ("de", "en")])
def test_different_numbers_of_lines_are_an_error_with_both_counts(put, longer: str, shorter: str) -> None:
    put(f"a.{longer}", "a\n" * 1_200)
    path = put(f"a.{shorter}", "b\n" * 3)
    with pytest.raises(KsterError, match="lines but") as error:
        list(read_moses(path.with_suffix(".en"), path.with_suffix(".de")))
    assert f"a.{longer} has 1,200" in str(error.value)
    assert f"a.{shorter} has 3" in str(error.value)


def test_a_line_far_too_long_is_rejected(put) -> None:
    items = list(read_moses(put("a.en", "a\n" + "x" * 2_000_000 + "\nc\n"), put("a.de", "d\ne\nf\n")))
    assert [isinstance(item, Pair) for item in items] == [True, False, True]


def test_a_common_beginning_stands_for_both_files(put, tmp_path) -> None:
    put("corpus.v1.en", "a\n")
    put("corpus.v1.de", "b\n")
    assert detect_format(tmp_path / "corpus.v1") == "moses"
    assert read(tmp_path / "corpus.v1")[0] == [Pair("a", "b")]


def test_either_file_may_be_compressed(put, tmp_path) -> None:
    put("corpus.en.xz", lzma.compress(b"a\n"))
    put("corpus.de.gz", gzip.compress(b"b\n"))
    assert read(tmp_path / "corpus")[0] == [Pair("a", "b")]


def test_writing_keeps_one_line_per_pair(tmp_path) -> None:
    pairs = [Pair("a\r\nb", "c\td"), Pair("e", "f")]
    assert write_moses(tmp_path / "x.en", tmp_path / "x.de", pairs) == 2
    assert list(read_moses(tmp_path / "x.en", tmp_path / "x.de")) == [Pair("a b", "c d"), Pair("e", "f")]
