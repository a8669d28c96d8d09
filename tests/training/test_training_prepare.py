"""Prepared data hold the cleaned text, are used again, and are never overwritten."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kster.errors import KsterError
from kster.training import load_settings, train
from kster.training.corpus import read_parallel
from kster.training.prepare import prepare, share_out
from kster.training.prepared import PreparedData


def prepare_quietly(path: Path, **overrides: Any) -> PreparedData:
    return prepare(load_settings(path, overrides), lambda line: None)


def text_of(prepared: PreparedData, split: str, side: int) -> list[str]:
    vocabulary, data = prepared.vocabulary(), prepared.split(split)[side]
    return [
        vocabulary.decode(data.tokens[first:last].tolist(), side)
        for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]


def test_arrays_hold_the_text_of_both_languages(config: Any, corpus: Path) -> None:
    prepared = prepare_quietly(config())
    for side, language in enumerate(("en", "de")):
        for split in ("train", "dev"):
            assert text_of(prepared, split, side) == (corpus / f"{split}.{language}").read_text().splitlines()
        assert prepared.split("train")[side].tokens.dtype == np.uint16
        assert prepared.split("train")[side].offsets.dtype == np.int32
    assert prepared.corpus_sizes == [132]
    assert prepared.manifest["train"]["pairs"] == 132


def test_swap_reads_the_same_arrays_the_other_way_round(config: Any) -> None:
    prepared = prepare_quietly(config())
    there, back = prepared.split("train"), prepared.split("train", swap=True)
    assert np.array_equal(there[0].tokens, back[1].tokens)
    assert np.array_equal(there[1].tokens, back[0].tokens)
    assert prepared.dev_text() == prepared.dev_text(swap=True)[::-1]


def test_compressed_and_reversed_files_give_the_same_data(config: Any, corpus: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "train.en.xz").write_bytes(lzma.compress((corpus / "train.en").read_bytes()))
    (packed / "train.de.gz").write_bytes(gzip.compress((corpus / "train.de").read_bytes()))
    for name in ("dev.en", "dev.de"):
        shutil.copy(corpus / name, packed)
    plain = prepare_quietly(config())
    reverse = {"source": "train.de.gz", "target": "train.en.xz", "reverse": True}
    path = config("packed.yaml", data=str(packed), corpora=[reverse], prepared=str(tmp_path / "second"))
    other = prepare_quietly(path)
    for side in (0, 1):
        assert text_of(plain, "train", side) == text_of(other, "train", side)


def test_counts_are_reported_by_rule_and_corpus(config: Any, corpus: Path) -> None:
    corpora = [
        {"name": "first", "source": "train.en", "target": "train.de"},
        {"name": "again", "source": "train.en", "target": "train.de"},
        {"name": "dev", "source": "dev.en", "target": "dev.de"},
    ]
    lines: list[str] = []
    prepare(load_settings(config(corpora=corpora)), lines.append)
    assert "first: 132 pairs read, 132 kept" in lines
    assert "again: 132 pairs read, 0 kept (left out: duplicate 132)" in lines
    assert "dev: 12 pairs read, 0 kept (left out: held_out 12)" in lines


def test_pairs_too_long_in_tokens_are_left_out_and_counted(config: Any) -> None:
    prepared = prepare_quietly(config(), **{"cleaning.max_tokens": 45})
    lengths = [side.lengths for side in prepared.split("train")]
    assert max(length.max() for length in lengths) <= 45
    dropped = prepared.manifest["corpora"][0]["cleaning"]["dropped"]["too_many_tokens"]
    assert dropped > 0
    assert len(lengths[0]) == len(lengths[1]) == 132 - dropped == prepared.corpus_sizes[0]


def test_cleaning_that_leaves_nothing_is_an_error(config: Any, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"left no training pair.*too_many_tokens 132"):
        prepare_quietly(config(), **{"cleaning.max_tokens": 5})
    assert not (tmp_path / "prepared").exists()


def test_prepared_data_are_used_again_even_where_the_corpora_are_absent(config: Any, tmp_path: Path) -> None:
    report = train(config(), prepare_only=True)
    before = (report.prepared / "manifest.json").stat().st_mtime_ns
    moved = config(data=str(tmp_path / "not here"))
    assert prepare_quietly(moved).manifest["train"]["pairs"] == 132
    assert (report.prepared / "manifest.json").stat().st_mtime_ns == before


def test_data_prepared_with_other_settings_are_refused_not_overwritten(config: Any) -> None:
    prepared = prepare_quietly(config())
    before = (prepared.directory / "manifest.json").read_bytes()
    with pytest.raises(KsterError, match=r"other settings \(cleaning differ\); it was left untouched"):
        prepare_quietly(config(), **{"cleaning.max_tokens": 50})
    assert (prepared.directory / "manifest.json").read_bytes() == before


def test_a_corpus_that_changed_since_is_noticed(config: Any, corpus: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(corpus, data)
    prepare_quietly(config(data=str(data)))
    with (data / "train.en").open("a") as file:
        file.write("one more\n")
    with pytest.raises(KsterError, match="has changed since"):
        prepare_quietly(config(data=str(data)))


def test_a_missing_corpus_is_named_and_nothing_is_written(config: Any, tmp_path: Path) -> None:
    path = config(corpora=[{"name": "lost", "source": "lost.en", "target": "train.de"}])
    with pytest.raises(KsterError, match=r"corpora\.0 \(lost\): there is no file .*lost\.en"):
        prepare_quietly(path)
    with pytest.raises(KsterError, match="nothing was written"):
        train(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.yaml"]


def test_a_file_in_the_place_of_the_prepared_data_is_refused(config: Any, tmp_path: Path) -> None:
    (tmp_path / "prepared").write_text("mine")
    with pytest.raises(KsterError, match="prepared exists but holds no prepared data; it was left untouched"):
        train(config())
    assert (tmp_path / "prepared").read_text() == "mine"
    assert not (tmp_path / "run").exists()


def test_misaligned_files_are_named_and_leave_nothing_behind(
    config: Any, corpus: Path, tmp_path: Path
) -> None:
    path = config(corpora=[{"source": "train.en", "target": "dev.de"}])
    with pytest.raises(KsterError, match=r"not line-aligned: .*dev\.de ends after 12 lines"):
        prepare_quietly(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.yaml"]


def test_damaged_text_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"good\n\xff\xfe\n")
    (tmp_path / "ok").write_text("a\nb\n")
    with pytest.raises(KsterError, match="bad, line 2: not UTF-8"):
        list(read_parallel(tmp_path / "bad", tmp_path / "ok"))
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"many lines\n" * 50)[:-30])
    with pytest.raises(KsterError, match="damaged or cut short"):
        list(read_parallel(tmp_path / "cut.xz", tmp_path / "cut.xz"))


def test_a_given_vocabulary_is_used_as_it_is(config: Any, tiny_marian: Path) -> None:
    prepared = prepare_quietly(config(vocabulary={"reuse": str(tiny_marian)}))
    ours = json.loads((prepared.directory / "tokenizer" / "vocab.json").read_text())
    assert ours == json.loads((tiny_marian / "vocab.json").read_text())


def test_a_directory_without_a_vocabulary_is_refused(config: Any, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"not a Marian vocabulary: source\.spm"):
        prepare_quietly(config(vocabulary={"reuse": str(tmp_path)}))


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json"])
def test_a_damaged_vocabulary_is_refused_before_any_work(
    config: Any, tiny_marian: Path, tmp_path: Path, name: str
) -> None:
    copy = tmp_path / "vocabulary"
    shutil.copytree(tiny_marian, copy)
    (copy / name).write_bytes(b"{ no")
    with pytest.raises(KsterError, match="vocabulary"):
        prepare(load_settings(config(vocabulary={"reuse": str(copy)})), lambda line: pytest.fail(line))


@pytest.mark.parametrize("name", ["manifest.json", "train.source.tokens.npy", "dev.target.offsets.npy"])
def test_damaged_prepared_data_are_named(config: Any, name: str) -> None:
    directory = prepare(load_settings(config())).directory
    (directory / name).write_text("[]")
    with pytest.raises(KsterError, match=str(directory)):
        train(config())


@pytest.mark.parametrize("name", ["dev.source.txt", "tokenizer/source.spm", "tokenizer/vocab.json"])
def test_incomplete_prepared_data_are_refused_before_training(config: Any, tmp_path: Path, name: str) -> None:
    directory = prepare_quietly(config()).directory
    (directory / name).unlink()
    with pytest.raises(KsterError, match=rf"{name} is missing: delete .*prepared and prepare"):
        train(config(report={"bleu_every": 0}))
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_dev_text_that_was_cut_is_refused_before_training(config: Any, tmp_path: Path) -> None:
    directory = prepare_quietly(config()).directory
    (directory / "dev.target.txt").write_text("only one line\n")
    with pytest.raises(KsterError, match=r"dev\.target\.txt has 1 line.*12 pairs"):
        train(config(report={"bleu_every": 0}))
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_small_corpora_keep_their_share_of_the_vocabulary_sample() -> None:
    assert share_out(100, [1000, 10, 30]) == [60, 10, 30]
    assert share_out(100, [5, 5]) == [5, 5]
    assert sum(share_out(100, [1000, 2000, 3000])) == 100
