"""Results of one text are not found by another: places know what their text was."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from experiments.blocks import NOISY
from experiments.command import Request, carry_out
from experiments.data import Corpora, Slice, write_lines
from experiments.same_text import FILE, checksums_of, differ, remember_text, require_same_text
from experiments.scale import Scale
from experiments.stages import read_json

from kster.errors import KsterError
from kster.training.corpus import read_lines

TEST = Slice("koran", "test")


@pytest.fixture
def own(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data, tmp_path / "data"))


def change(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    write_lines(path, edit(list(read_lines(path))))


def corrected(line: int) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:line], lines[line] + " corrected", *lines[line + 1 :]]


@pytest.mark.parametrize(
    ("read", "edit", "then", "refused"),
    [
        (TEST, corrected(7), TEST, True),
        (TEST, corrected(7), TEST.at_most(2), True),  # what else was read here is of the other text
        (TEST.at_most(2), corrected(1), TEST, True),
        (TEST.at_most(2), corrected(1), TEST.at_most(1), True),
        (TEST.at_most(2), corrected(7), TEST, False),
        (TEST, lambda lines: [*lines, "more"], TEST, True),
        (TEST.at_most(20), lambda lines: [*lines, "more"], TEST, True),
        (TEST, lambda lines: [*lines, "more"], TEST.at_most(8), False),
        (TEST, lambda lines: lines[:7], TEST, True),
        (TEST.at_most(4), lambda lines: lines[:3], TEST.at_most(20), True),
        (TEST, lambda lines: lines[:3], TEST.at_most(3), False),  # packed for who reads no more
        (TEST, corrected(0), Slice("law", "test"), False),
    ],
)
def test_text_that_differs_where_it_is_known_is_refused(
    read: Slice,
    edit: Callable[[list[str]], list[str]],
    then: Slice,
    refused: bool,
    own: Path,
    tmp_path: Path,
) -> None:
    corpora, out, cache = Corpora(own, ("de", "en")), tmp_path / "out", tmp_path / "cache"
    remember_text(corpora, [read], out, cache)
    change(own / "koran" / "test.de.xz", edit)
    before = (out / FILE).read_text()
    for places in ((out, tmp_path / "new cache"), (tmp_path / "new out", cache)):
        if refused:
            with pytest.raises(KsterError, match=r"koran/test\.de\.xz: not the text that .*(out|cache)"):
                remember_text(corpora, [then], *places)
        else:
            remember_text(corpora, [then], *places)
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


def test_each_place_keeps_what_it_knows_already(own: Path, tmp_path: Path) -> None:
    """Text that is not read again, or, as it was packed for fewer experiments, not as far."""
    corpora, out, cache = Corpora(own, ("en", "de")), tmp_path / "out", tmp_path / "cache"
    remember_text(corpora, [TEST, Slice("law", "test")], tmp_path / "another out", cache)
    remember_text(corpora, [TEST, Slice("it", "test")], out, tmp_path / "another cache")
    for side in corpora.direction:
        change(own / "koran" / f"test.{side}.xz", lambda lines: lines[:3])
    remember_text(corpora, [TEST.at_most(3)], out, cache)
    for place, other in ((out, "it"), (cache, "law")):
        files = read_json(place / FILE)
        assert files.keys() == {f"{name}/test.{side}" for name in ("koran", other) for side in ("en", "de")}
        assert files["koran/test.de"].keys() == {"3", "8", "all"}


def test_no_more_is_read_than_is_asked_for() -> None:
    read = iter("abcdef")
    assert checksums_of(read, {2}, {3}).keys() == {"2", "3"}
    assert next(read) == "d"
    assert not differ(checksums_of("abcdef", {None}, set()), checksums_of("ab", {2}, {6}))
    assert differ(checksums_of(["a", "bc"], {None}, set()), checksums_of(["ab", "c"], {None}, {2}))


def run(name: str, data: Path, model: Path, out: Path, stage: str = "run", workers: int = 1) -> bool:
    request = Request(name, data, [str(model)], out, stage=stage, quick=True, device="cpu", workers=workers)
    return carry_out(request)


def test_a_run_and_its_report_refuse_another_text(
    taught_marian: Path, own: Path, tmp_path: Path, scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.command.QUICK", scale)
    out = tmp_path / "out"
    assert run("unseen", own, taught_marian, out)
    for place in (out, out / "cache"):
        assert {"ted/test.en", "ted/test.de", "koran/train.en"} <= read_json(place / FILE).keys()
    (out / FILE).unlink()  # as an earlier version left it
    (out / "cache" / FILE).unlink()
    assert run("unseen", own, taught_marian, out, stage="both", workers=2)
    known = read_json(out / FILE)
    change(own / "ted" / "test.de.xz", corrected(0))
    translated = sorted((out / "translations").rglob("*"))
    for stage in ("run", "report"):
        with pytest.raises(KsterError, match=r"ted/test\.de\.xz: not the text that .*out was made with"):
            run("unseen", own, taught_marian, out, stage=stage, workers=2)
    shutil.rmtree(out / "cache")  # small results alone know it, too
    with pytest.raises(KsterError, match="not the text"):
        run("unseen", own, taught_marian, out)
    assert read_json(out / FILE) == known
    assert sorted((out / "translations").rglob("*")) == translated


def test_text_that_was_made_is_known_as_well(
    own: Path, tmp_path: Path, taught_marian: Path, scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.command.QUICK", scale)
    monkeypatch.setattr("experiments.command.run", lambda *given: None)  # what comes before it
    out = tmp_path / "out"
    assert run("robustness", own, taught_marian, out)
    assert run("robustness", own, taught_marian, out)
    change(next((out / "cache").rglob(f"law{NOISY}/dev.en.xz")), corrected(3))
    with pytest.raises(KsterError, match=rf"law{NOISY}/dev\.en\.xz: not the text"):
        run("robustness", own, taught_marian, out)
    change(own / "law" / "dev.en.xz", corrected(3))
    with pytest.raises(KsterError, match=r"law/dev\.en\.xz: not the text"):  # what noise would be made of
        run("robustness", own, taught_marian, out)


def test_what_word_senses_are_found_in_is_known_where_it_is_there(
    own: Path, tmp_path: Path, taught_marian: Path, scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.command.QUICK", scale)
    monkeypatch.setattr("experiments.command.run", lambda *given: None)
    out = tmp_path / "out"
    assert run("wsd", own, taught_marian, out)
    change(own / "europarl" / "dev.en.xz", corrected(0))
    with pytest.raises(KsterError, match=r"europarl/dev\.en\.xz: not the text"):
        run("wsd", own, taught_marian, out)
    (own / "europarl" / "dev.en.xz").unlink()  # as in a pack
    assert run("wsd", own, taught_marian, out)
