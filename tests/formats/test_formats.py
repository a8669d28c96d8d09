"""What all formats promise: detection, errors before reading, files that appear whole or not at all."""

import subprocess
import sys

import pytest

from formats.conftest import read, tmx, tu
from kster.errors import KsterError
from kster.formats import FORMATS, Pair, detect_format, read_pairs, write_pairs


@pytest.mark.parametrize(("extension", "format"), FORMATS.items())
def test_the_extension_decides_compressed_or_not(extension: str, format: str) -> None:
    for name in (f"a{extension}", f"A.B{extension.upper()}", f"a{extension}.gz", f"a{extension}.xz"):
        assert detect_format(name) == format


def test_xml_of_another_name_is_recognised_by_its_text(put) -> None:
    assert detect_format(put("export.xml", tmx(tu("a", "b")).encode("utf-16"))) == "tmx"
    assert detect_format(put("job.dat", "<?xml version='1.0'?><xliff version='1.2'/>")) == "xliff"


def test_an_unknown_format_is_an_error_that_lists_the_known_ones(put) -> None:
    for name in ("a.txt", "nothing"):
        with pytest.raises(KsterError, match=r"cannot tell its format. Accepted: \.tmx, \.xlf"):
            detect_format(put(name, "hello"))
    with pytest.raises(KsterError, match="unknown format 'docx'; accepted: tmx, xliff"):
        read_pairs(put("a.txt", "x"), "en", "de", format="docx")
    with pytest.raises(KsterError, match="unknown format 'docx'; accepted: tmx, xliff"):
        write_pairs("a.txt", [], "en", "de", format="docx")


def test_mistakes_are_told_before_the_first_pair_is_asked_for(put, tmp_path) -> None:
    with pytest.raises(KsterError, match=r"none\.tmx: no such file"):
        read_pairs(tmp_path / "none.tmx", "en", "de")
    with pytest.raises(KsterError, match="is a directory"):
        read_pairs(tmp_path, "en", "de", format="tmx")
    with pytest.raises(KsterError, match="tags is 'maybe'; accepted: 'strip', 'keep'"):
        read_pairs(put("a.tmx", ""), "en", "de", tags="maybe")  # type: ignore[arg-type]


def failing_pairs():
    yield Pair("a", "b")
    raise RuntimeError("the disk of the world is full")


@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz", "a.csv.xz", "a.po", "a"])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, name: str) -> None:
    format = "moses" if name == "a" else None
    write_pairs(tmp_path / name, [Pair("old", "alt")], "en", "de", format=format)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RuntimeError):
        write_pairs(tmp_path / name, failing_pairs(), "en", "de", format=format)
    with pytest.raises(KsterError, match="pair 2 has an empty target; nothing was written"):
        write_pairs(tmp_path / name, [Pair("a", "b"), Pair("c", " ")], "en", "de", format=format)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_writing_where_nothing_can_be_written_is_an_error(tmp_path) -> None:
    with pytest.raises(KsterError, match="cannot be written"):
        write_pairs(tmp_path / "missing" / "a.tmx", [Pair("a", "b")], "en", "de")


def test_a_file_can_be_rewritten_from_itself(tmp_path) -> None:
    path = tmp_path / "a.tmx"
    write_pairs(path, [Pair("a", "b")] * 1_000, "en", "de")
    pairs = (pair for pair in read_pairs(path, "en", "de") if isinstance(pair, Pair))
    assert write_pairs(path, pairs, "en", "de") == 1_000
    assert len(read(path)[0]) == 1_000


def test_the_same_pairs_give_the_same_bytes(tmp_path) -> None:
    for name in ("a.tmx.gz", "b.tmx.gz"):
        write_pairs(tmp_path / name, [Pair("a", "b", "c")], "en", "de")
    assert (tmp_path / "a.tmx.gz").read_bytes() == (tmp_path / "b.tmx.gz").read_bytes()


def test_the_room_imports_neither_torch_nor_what_it_may_not_need() -> None:
    code = (
        "import sys, kster.formats; "
        "print([m for m in ('torch', 'lxml', 'polib', 'translate', 'kster.model') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
