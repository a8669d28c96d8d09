"""Text that experiments make before they run, on any CPU: it is kept, and travels with `--pack`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from experiments.blocks import DOMAINS, NOISY, memory_slice
from experiments.contrastive import prepare, searched_slices, text_slices
from experiments.data import Corpora, Slice, write_lines
from experiments.noise import disturb_lines
from experiments.scale import Scale
from kster.errors import KsterError

Prepare = Callable[[Corpora, Scale], list[Path]]
"""Makes what is missing; returns the files that are no corpora and must be copied as they are."""


def original(slice: Slice) -> Slice:
    """The slice that a noisy one is made of; any other is its own."""
    return replace(slice, corpus=slice.corpus.removesuffix(NOISY))


def prepare_noise(corpora: Corpora, scale: Scale) -> list[Path]:
    """The domains' memories once more, their English side disturbed."""
    wanted = [memory_slice(domain + NOISY, scale) for domain in DOMAINS]
    missing = [slice for slice in wanted if not corpora.has(slice)]
    for slice in wanted:
        if slice not in missing:
            _require_lines(corpora, slice, len(corpora.pairs(memory_slice(original(slice).corpus, scale))))
    if missing:
        from experiments.wordnet import WordNet, find_wordnet

        wordnet = WordNet(find_wordnet())
        for slice in missing:
            pairs = corpora.pairs(memory_slice(original(slice).corpus, scale))
            for side, language in enumerate(corpora.direction):
                lines = (pair[side] for pair in pairs)
                text = disturb_lines(lines, wordnet.synonyms) if language == "en" else lines
                write_lines(corpora.made / slice.corpus / f"{slice.split}.{language}.xz", text)
    return []


def _require_lines(corpora: Corpora, slice: Slice, count: int) -> None:
    found = len(corpora.pairs(slice))
    if found != count:
        raise KsterError(
            f"{corpora.files(slice)[0].parent}: {found:,} pairs, but the memory it disturbs has {count:,}; "
            "it was made for another scale. Remove it, and it is made again"
        )


def prepare_contrasts(corpora: Corpora, scale: Scale) -> list[Path]:
    return [prepare(corpora, scale)]


def contrasts_read(scale: Scale) -> list[Slice]:
    return [*text_slices(scale), *searched_slices(scale)]


PREPARATIONS: dict[str, Prepare] = {
    "robustness": prepare_noise,
    "seeds": prepare_noise,
    "wsd": prepare_contrasts,
}
PREPARED_FROM: dict[str, Callable[[Scale], list[Slice]]] = {"wsd": contrasts_read}
"""Text that is read for a preparation alone: it need not be packed."""
