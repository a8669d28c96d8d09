"""Results of one text are not found by another: places know what their text was."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from experiments.command import Request, carry_out
from experiments.data import DISTURBED, Corpora, Slice, _lines, write_lines
from experiments.stages import read_json
from experiments.text_checksums import FILE, remember_text, require_same_text

from kster.errors import KsterError
from kster.training.corpus import read_lines

TEST = Slice("koran", "test")


@pytest.fixture
def own(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data, tmp_path / "data"))


def change(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    write_lines(path, edit(list(read_lines(path))))
    _lines.cache_clear()  # another run is another process


def corrected(line: int) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:line], lines[line] + " corrected", *lines[line + 1 :]]


@pytest.mark.parametrize(
    ("read", "edit", "then", "refused"),
    [
        (TEST, corrected(7), TEST, True),
        (TEST.at_most(2), corrected(1), TEST.at_most(2), True),
        (TEST.at_most(2), corrected(7), TEST.at_most(2), False),
        (TEST, lambda lines: [*lines, "more"], TEST, True),
        (TEST, lambda lines: lines[:7], TEST, True),
        (TEST, corrected(0), Slice("law", "test"), False),
    ],
)
def test_text_that_differs_from_what_was_read_is_refused(
    read: Slice,
    edit: Callable[[list[str]], list[str]],
    then: Slice,
    refused: bool,
    own: Path,
    tmp_path: Path,
) -> None:
    corpora, out, cache = Corpora(own, ("de", "en")), tmp_path / "out", tmp_path / "cache"
    remember_text(corpora, [read], out, cache)
    for language in ("de", "en"):
        change(own / "koran" / f"test.{language}.xz", edit)
    before = (out / FILE).read_text()
    for directories in ((out, tmp_path / "new cache"), (tmp_path / "new out", cache)):
        if refused:
            with pytest.raises(KsterError, match=r"koran/test\[:2?\]: not the text that .*(out|cache)"):
                remember_text(corpora, [then], *directories)
        else:
            remember_text(corpora, [then], *directories)
    assert ((out / FILE).read_text() == before) or not refused


def test_the_same_lines_are_the_same_text_however_they_are_stored(own: Path, tmp_path: Path) -> None:
    places = (tmp_path / "out", tmp_path / "cache")
    remember_text(Corpora(own, ("en", "de")), [TEST], *places)
    packed = own / "koran" / "test.en.xz"
    text = lzma.decompress(packed.read_bytes())
    packed.unlink()
    packed.with_suffix("").write_bytes(text.replace(b"\n", b"\r\n"))
    remember_text(Corpora(own, ("de", "en")), [TEST], *places)
    require_same_text(Corpora(own, ("de", "en")), [TEST], places[0])


def test_each_directory_keeps_what_it_knows_already(own: Path, tmp_path: Path) -> None:
    corpora, out, cache = Corpora(own, ("en", "de")), tmp_path / "out", tmp_path / "cache"
    remember_text(corpora, [TEST, Slice("law", "test")], tmp_path / "another out", cache)
    remember_text(corpora, [Slice("it", "test")], out, cache)
    assert read_json(out / FILE).keys() == {"it/test[:]"}
    assert read_json(cache / FILE).keys() == {"koran/test[:]", "law/test[:]", "it/test[:]"}


def run(name: str, data: Path, model: Path, out: Path, stage: str = "run", workers: int = 1) -> bool:
    request = Request(name, data, [str(model)], out, stage=stage, quick=True, device="cpu", workers=workers)
    return carry_out(request)


def test_a_run_and_its_report_refuse_another_text(taught_marian: Path, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("unseen", own, taught_marian, out)
    for place in (out, out / "cache"):
        assert {"ted/test[:3]", "koran/train[:30]"} <= read_json(place / FILE).keys()
    assert run("unseen", own, taught_marian, out, stage="both", workers=2)
    known = read_json(out / FILE)
    change(own / "ted" / "test.de.xz", corrected(0))
    translated = sorted((out / "translations").rglob("*"))
    for stage in ("run", "report"):
        with pytest.raises(KsterError, match=r"ted/test.*: not the text that .*out was made with"):
            run("unseen", own, taught_marian, out, stage=stage, workers=2)
    shutil.rmtree(out / "cache")  # small results alone know it, too
    with pytest.raises(KsterError, match="not the text"):
        run("unseen", own, taught_marian, out)
    assert read_json(out / FILE) == known
    assert sorted((out / "translations").rglob("*")) == translated


def test_text_that_was_made_is_known_as_well(
    own: Path, tmp_path: Path, taught_marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.experiment.Experiment.run", lambda *given: None)  # what comes before it
    out = tmp_path / "out"
    assert run("robustness", own, taught_marian, out)
    assert run("robustness", own, taught_marian, out)
    change(next((out / "cache").rglob(f"law{DISTURBED}/dev.en.xz")), corrected(3))
    with pytest.raises(KsterError, match=rf"law{DISTURBED}/dev.*: not the text"):
        run("robustness", own, taught_marian, out)
    change(own / "law" / "dev.en.xz", corrected(3))
    with pytest.raises(KsterError, match=r"law/dev.*: not the text"):  # what noise would be made of
        run("robustness", own, taught_marian, out)


def test_what_word_senses_are_found_in_is_known_where_it_is_there(
    own: Path, tmp_path: Path, taught_marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.experiment.Experiment.run", lambda *given: None)
    out = tmp_path / "out"
    assert run("wsd", own, taught_marian, out)
    change(own / "europarl" / "dev.en.xz", corrected(0))
    with pytest.raises(KsterError, match=r"europarl/dev.*: not the text"):
        run("wsd", own, taught_marian, out)
    (own / "europarl" / "dev.en.xz").unlink()  # as in a pack
    assert run("wsd", own, taught_marian, out)
