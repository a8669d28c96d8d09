"""Written files: whole or not at all, and what cannot be replaced is written to."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kster.errors import KsterError
from kster.files import atomic_text, locked, new_directory
from kster.formats import Pair, write_pairs

PAIRS = [Pair("a house", "ein Haus")]
TSV = "en\tde\tid\na house\tein Haus\t\n"


def fail_after(path: Path, text: str, keep: Callable[[Path], bool] | None = None) -> None:
    def write() -> None:
        with atomic_text(path, keep=keep) as out:
            out.write(text)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()


def test_an_error_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("precious")
    fail_after(path, "new")
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_what_was_written_before_an_error_is_kept_on_demand(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    fail_after(path, "lost\n", keep=lambda part: False)
    assert list(tmp_path.iterdir()) == []
    kept: list[Path] = []
    fail_after(path, "some\n", keep=lambda part: not kept.append(part))  # type: ignore[func-returns-value]
    assert list(tmp_path.iterdir()) == kept
    data = kept[0].read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == b"some\n"


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    place = tmp_path / "there" / "pairs.tsv"
    place.write_text("old")
    (tmp_path / "link.tsv").symlink_to("there/pairs.tsv")
    (tmp_path / "new.tsv").symlink_to("there/new.tsv")  # leads to what is not there yet
    for name, written in (("link.tsv", place), ("new.tsv", tmp_path / "there" / "new.tsv")):
        write_pairs(tmp_path / name, PAIRS, "en", "de")
        assert (tmp_path / name).is_symlink()
        assert written.read_text() == TSV
    assert len(list(tmp_path.rglob("*"))) == 5


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.tsv").symlink_to("loop.tsv")
    with pytest.raises(KsterError, match=r"loop\.tsv: cannot be written \(.*links.*nothing was changed"):
        write_pairs(tmp_path / "loop.tsv", PAIRS, "en", "de")
    assert (tmp_path / "loop.tsv").is_symlink()


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_pairs(pipe, PAIRS, "en", "de")
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert os.read(reading, 1000).decode() == TSV
    finally:
        os.close(reading)


def test_an_open_file_named_by_its_number_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb", buffering=0) as out:
        out.write(b"before\n")
        write_pairs(f"/dev/fd/{out.fileno()}", PAIRS, "en", "de", format="tsv")
    assert path.read_text() == f"before\n{TSV}"


def test_a_replaced_file_is_no_more_public_than_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.touch(mode=0o600)
    write_pairs(path, PAIRS, "en", "de")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("precious")
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)  # root may write everything
    with pytest.raises(KsterError, match="Permission denied"):
        write_pairs(path, PAIRS, "en", "de")
    assert path.read_text() == "precious"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"Is a directory\); nothing was changed"):
        write_pairs(tmp_path, PAIRS, "en", "de", format="tsv")


def test_a_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with new_directory(place) as part:
        (part / "file").write_text("first")
        assert not place.exists()
    with pytest.raises(FileNotFoundError), new_directory(place, replace=True) as part:
        (part / "file").rename(part / "another")  # which is not there
    assert (place / "file").read_text() == "first"
    with pytest.raises(OSError, match="not empty"), new_directory(place):
        pass
    with new_directory(place, replace=True) as part:
        (part / "file").write_text("third")
    assert (place / "file").read_text() == "third"
    assert list(tmp_path.iterdir()) == [place]


def test_what_a_killed_process_left_is_removed_and_what_another_is_making_is_not(tmp_path: Path) -> None:
    place, left = tmp_path / "place", tmp_path / ".place.0000.part"
    left.mkdir()
    left.with_suffix(".lock").touch()
    with new_directory(place) as first, new_directory(tmp_path / "place") as second:
        assert not left.exists()
        assert first.is_dir()
        with locked(second):  # what fills it may be careful, too
            pass
    assert place.is_dir()
    assert list(tmp_path.iterdir()) == [place]
