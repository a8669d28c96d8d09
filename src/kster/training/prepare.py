"""Parallel text → cleaned, tokenised arrays on disk: the stage of training that needs no GPU.

The prepared directory can be moved to another machine, serves both translation directions and is used
again as long as the settings it was made with are the same.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kster.errors import KsterError
from kster.files import new_directory
from kster.training.augmentation import Augmenter
from kster.training.cleaning import Cleaner, CleaningReport, LanguageProfile, normalise
from kster.training.corpus import read_lines, read_parallel
from kster.training.prepared import FORMAT, MANIFEST, SIDES, PreparedData
from kster.training.settings import TrainSettings, vocabulary_identity
from kster.training.vocabulary import Vocabulary, learn

_PROFILE_PAIRS = 200_000  # per corpus, enough to know every common word
_BLOCK = 50_000  # lines tokenised at once

Log = Callable[[str], None]


def prepare(settings: TrainSettings, log: Log = print) -> PreparedData:
    """The prepared data of these settings, made now unless they exist.

    A directory made with other settings is refused, not overwritten. The directory appears only when it
    is complete.
    """
    require_files(settings)
    directory = settings.prepared_directory
    if (directory / MANIFEST).is_file():
        prepared = PreparedData.open(directory)
        _check_same(prepared, settings)
        log(f"prepared data in {directory} are used again")
        return prepared
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as scratch,
        new_directory(directory) as unfinished,
    ):
        _prepare_into(unfinished, Path(scratch), settings, log)
    log(f"prepared data written to {directory}")
    return PreparedData.open(directory)


def _prepare_into(directory: Path, scratch: Path, settings: TrainSettings, log: Log) -> None:
    reports = [CleaningReport() for _ in settings.corpora]
    texts = _clean_all(scratch, settings, reports, log)
    threads = os.cpu_count() or 1
    given = settings.vocabulary_directory
    if given is not None:
        vocabulary = Vocabulary.load(given)
        log(f"vocabulary: {vocabulary.size:,} entries from {given}")
    else:
        kept = [report.kept for report in reports]
        sample = _sample(texts, kept, settings.vocabulary.sample // 2)
        vocabulary = learn(sample, settings.vocabulary.size, threads=threads)
        log(f"vocabulary: {vocabulary.size:,} entries learned")
    vocabulary.save(directory / "tokenizer", (settings.source_lang, settings.target_lang))
    counts = _tokenise_train(directory, texts, vocabulary, settings.cleaning.max_tokens, reports, threads)
    dev_counts = _prepare_dev(directory, settings, vocabulary, threads)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "hash": settings.preparation_hash(),
        "settings": settings.preparation(),
        "corpora": [
            {"name": corpus.label, "pairs": report.kept, "cleaning": asdict(report)}
            for corpus, report in zip(settings.corpora, reports, strict=True)
        ],
        "files": {name: settings.corpus_path(name).stat().st_size for name in _corpus_files(settings)},
        "vocabulary": vocabulary.size,
        "train": counts,
        "dev": dev_counts,
    }
    for corpus, report in zip(settings.corpora, reports, strict=True):
        log(f"{corpus.label}: {report.as_text()}")
    log(
        f"train: {counts['pairs']:,} pairs, {counts['source_tokens']:,} {settings.source_lang} and "
        f"{counts['target_tokens']:,} {settings.target_lang} tokens; dev: {dev_counts['pairs']:,} pairs"
    )
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _clean_all(
    scratch: Path, settings: TrainSettings, reports: list[CleaningReport], log: Log
) -> list[tuple[Path, Path]]:
    """Cleaned text of each corpus as two plain files."""
    profile = None
    if settings.cleaning.language_identity:
        profile = LanguageProfile(pair for pairs in _raw(settings) for pair in islice(pairs, _PROFILE_PAIRS))
    held_out = (
        line
        for name in (*settings.dev.sides, *settings.cleaning.held_out)
        for line in read_lines(settings.corpus_path(name))
    )
    cleaner = Cleaner(settings.cleaning, profile, held_out)
    texts = []
    for number, (pairs, report) in enumerate(zip(_raw(settings), reports, strict=True)):
        paths = (scratch / f"{number}.source", scratch / f"{number}.target")
        with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
            for left, right in _augmented(cleaner.clean(pairs, report), report, settings, number):
                source.write(left + "\n")
                target.write(right + "\n")
        texts.append(paths)
        log(f"{settings.corpora[number].label}: {report.read:,} pairs read")
    _check_some_left(reports)
    return texts


def _augmented(
    pairs: Iterator[tuple[str, str]], report: CleaningReport, settings: TrainSettings, seed: int
) -> Iterator[tuple[str, str]]:
    """The pairs, and after some of them another one made of it."""
    augmenter = Augmenter((settings.source_lang, settings.target_lang), seed)
    for pair in pairs:
        yield pair
        if augmenter.dice.random() < settings.augmentation.share and (made := augmenter.changed(pair)):
            report.kept += 1
            report.augmented += 1
            yield made


def _raw(settings: TrainSettings) -> list[Iterator[tuple[str, str]]]:
    return [
        read_parallel(*(settings.corpus_path(name) for name in corpus.sides)) for corpus in settings.corpora
    ]


def _sample(texts: list[tuple[Path, Path]], kept: list[int], pairs: int) -> Iterator[str]:
    """Both sides of about `pairs` pairs; small corpora are taken whole, so that a large one does not
    crowd their words out of the vocabulary."""
    quotas = share_out(pairs, kept)
    for number, (paths, total, quota) in enumerate(zip(texts, kept, quotas, strict=True)):
        chooser = random.Random(number)  # the same for every run: another seed shares the prepared data
        chosen = set(chooser.sample(range(total), quota)) if quota < total else None
        for i, (left, right) in enumerate(read_parallel(*paths)):
            if chosen is None or i in chosen:
                yield left
                yield right


def share_out(amount: int, sizes: list[int]) -> list[int]:
    """Split `amount` over corpora as evenly as their sizes allow."""
    quotas = [0] * len(sizes)
    for done, i in enumerate(sorted(range(len(sizes)), key=lambda i: sizes[i])):
        quotas[i] = min(sizes[i], (amount - sum(quotas)) // (len(sizes) - done))
    return quotas


def _tokenise_train(
    directory: Path,
    texts: list[tuple[Path, Path]],
    vocabulary: Vocabulary,
    max_tokens: int,
    reports: list[CleaningReport],
    threads: int,
) -> dict[str, int]:
    """Write the training arrays; pairs that are too long in tokens are left out and counted."""
    tokens: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    lengths: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for paths, report in zip(texts, reports, strict=True):
        pairs = read_parallel(*paths)
        while block := list(islice(pairs, _BLOCK)):
            encoded = [vocabulary.encode([pair[side] for pair in block], side, threads) for side in (0, 1)]
            good = (encoded[0][1] <= max_tokens) & (encoded[1][1] <= max_tokens)
            dropped = int((~good).sum())
            report.kept -= dropped
            report.dropped["too_many_tokens"] += dropped
            for side, (flat, length) in enumerate(encoded):
                tokens[side].append(flat[np.repeat(good, length)])
                lengths[side].append(length[good])
    _check_some_left(reports)
    return _write_arrays(directory, "train", tokens, lengths)


def _prepare_dev(
    directory: Path, settings: TrainSettings, vocabulary: Vocabulary, threads: int
) -> dict[str, int]:
    """The dev set: normalised, nothing left out but empty lines; its text stays beside it for BLEU."""
    paths = [settings.corpus_path(name) for name in settings.dev.sides]
    pairs = [(normalise(left), normalise(right)) for left, right in read_parallel(*paths)]
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        raise KsterError(f"the dev set {paths[0]}, {paths[1]} is empty")
    tokens: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    lengths: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for side, name in enumerate(SIDES):
        text = [pair[side] for pair in pairs]
        (directory / f"dev.{name}.txt").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
        flat, length = vocabulary.encode(text, side, threads)
        tokens[side].append(flat)
        lengths[side].append(length)
    return _write_arrays(directory, "dev", tokens, lengths)


def _write_arrays(
    directory: Path,
    split: str,
    tokens: tuple[list[np.ndarray], list[np.ndarray]],
    lengths: tuple[list[np.ndarray], list[np.ndarray]],
) -> dict[str, int]:
    counts = {"pairs": int(sum(map(len, lengths[0])))}
    for side, name in enumerate(SIDES):
        offsets = np.concatenate([np.zeros(1, np.int64), *lengths[side]]).cumsum()
        small = offsets[-1] < 2**31
        np.save(directory / f"{split}.{name}.offsets.npy", offsets.astype(np.int32) if small else offsets)
        np.save(
            directory / f"{split}.{name}.tokens.npy", np.concatenate([np.zeros(0, np.uint16), *tokens[side]])
        )
        counts[f"{name}_tokens"] = int(offsets[-1])
    return counts


def _check_some_left(reports: list[CleaningReport]) -> None:
    if not any(report.kept for report in reports):
        counts = "; ".join(report.as_text() for report in reports)
        raise KsterError(f"cleaning left no training pair, nothing was prepared: {counts}")


def _corpus_files(settings: TrainSettings) -> list[str]:
    names = [name for corpus in (*settings.corpora, settings.dev) for name in corpus.sides]
    return sorted({*names, *settings.cleaning.held_out})


def require_files(settings: TrainSettings) -> None:
    """That there are prepared data, or else everything to make them of and a place to put them."""
    directory = settings.prepared_directory
    if (directory / MANIFEST).is_file():
        return
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise KsterError(f"prepared: {directory} exists but holds no prepared data; it was left untouched")
    if (given := settings.vocabulary_directory) is not None:
        vocabulary_identity(given)
        Vocabulary.load(given)
    for i, corpus in enumerate(settings.corpora):
        for name in corpus.sides:
            _check_file(settings.corpus_path(name), f"corpora.{i} ({corpus.label})")
    for name in settings.dev.sides:
        _check_file(settings.corpus_path(name), "dev")
    for name in settings.cleaning.held_out:
        _check_file(settings.corpus_path(name), "cleaning.held_out")


def _check_file(path: Path, key: str) -> None:
    if not path.is_file():
        raise KsterError(f"{key}: there is no file {path}; nothing was written")


def _check_same(prepared: PreparedData, settings: TrainSettings) -> None:
    made_with, wanted = prepared.manifest["settings"], settings.preparation()
    given = settings.vocabulary_directory  # that of a model trained from these data is theirs
    if given and vocabulary_identity(given) == vocabulary_identity(prepared.directory / "tokenizer"):
        wanted["vocabulary"] = made_with["vocabulary"]
    if differing := sorted(key for key in wanted if wanted[key] != made_with.get(key)):
        raise KsterError(
            f"{prepared.directory} was prepared with other settings ({', '.join(differing)} differ); it was "
            f"left untouched: delete it or let `prepared` name another directory"
        )
    for name, size in prepared.manifest["files"].items():
        try:
            path = settings.corpus_path(name)
        except KsterError:
            continue  # the corpora need not be on the machine that trains
        if path.is_file() and path.stat().st_size != size:
            raise KsterError(
                f"{path} has changed since {prepared.directory} was prepared from it; the prepared data were "
                f"left untouched: delete them or let `prepared` name another directory"
            )
