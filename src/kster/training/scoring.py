"""`python -m kster.training.scoring CONFIG --model DIR`: how likely a model finds every training pair.

Writes the scores into the prepared directory. A corpus with `keep: 0.9` in the recipe is then trained on
without the tenth of its pairs that the model finds least likely: wrong alignments, other languages, poor
translations.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kster.errors import KsterError
from kster.training.batching import DeviceCorpus, plan_epoch
from kster.training.checkpoint import load_init
from kster.training.distributed import Workers
from kster.training.loop import fast_attention
from kster.training.loss import token_losses
from kster.training.network import Layout, Network
from kster.training.prepared import PreparedData
from kster.training.recipe import load_settings
from kster.training.settings import TrainSettings
from kster.training.vocabulary import Vocabulary


def scores_file(settings: TrainSettings) -> Path:
    """The scores of one direction: a model of the other one finds other pairs likely."""
    return settings.prepared_directory / f"scores.{settings.direction}.npy"


def score(settings: TrainSettings, model: Path, *, batch_tokens: int = 40_000) -> np.ndarray:
    """Nats a target token of every training pair, (n,) float32; lower is better."""
    prepared = PreparedData.open(settings.prepared_directory)
    swap = settings.direction == "swap"
    if Vocabulary.load(model).ids != prepared.vocabulary().ids:
        raise KsterError(
            f"{model} has another vocabulary than {prepared.directory}; accepted: one trained from them"
        )
    config, state, bias = load_init(model, settings.training)
    device = Workers.start(settings.device).device
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    layout, network = Layout(config), Network(config, device=device)
    flat = torch.zeros(layout.size)
    layout.load(flat, state)
    weights = layout.views(flat.to(device, dtype))
    output_bias = bias.to(device, dtype)
    corpus = DeviceCorpus(
        prepared.split("train", swap=swap),
        pad_id=config.pad_token_id,
        start_id=config.decoder_start_token_id,
        device=device,
    )
    scores = torch.zeros(len(corpus), device=device)
    plan = plan_epoch(
        corpus.lengths,
        [(len(corpus), 1.0)],
        batch_tokens=batch_tokens,
        chunk_pairs=2_000_000,
        seed=0,
        epoch=0,
    )
    with torch.no_grad(), fast_attention(device):
        for pairs in plan:
            batch = corpus.gather(pairs)
            states = network.states(weights, batch, training=False)
            arguments = states, batch.positions, weights["shared"], output_bias, batch.labels
            losses = token_losses(*arguments)  # (N,)
            rows = torch.from_numpy(pairs).to(device)
            lengths = torch.from_numpy(corpus.lengths[1][pairs].astype(np.int64)).to(device)
            scores[rows] = _sums(losses, lengths) / lengths
    return scores.cpu().numpy()


def _sums(losses: Tensor, lengths: Tensor) -> Tensor:
    """Sums of consecutive runs: (N,), (B,) → (B,)."""
    row = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    return torch.zeros(len(lengths), device=losses.device).index_add_(0, row, losses.float())


def kept(settings: TrainSettings, sizes: list[int]) -> np.ndarray | None:
    """Which training pairs are used, (n,) bool; None: all of them. sizes: pairs of each corpus."""
    if all(corpus.keep == 1 for corpus in settings.corpora):
        return None
    file = scores_file(settings)
    if not file.is_file():
        raise KsterError(
            f"corpora: `keep` needs scores; there is no {file} (made by `python -m kster.training.scoring`)"
        )
    scores = np.load(file)
    if len(scores) != sum(sizes):
        raise KsterError(f"{file} has {len(scores):,} scores for {sum(sizes):,} pairs: score them again")
    used, first = np.ones(len(scores), bool), 0
    for corpus, size in zip(settings.corpora, sizes, strict=True):
        part = slice(first, first + size)
        if corpus.keep < 1 and size:
            used[part] = scores[part] <= np.quantile(scores[part], corpus.keep)
        first += size
    return used


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kster.training.scoring", description=__doc__)
    parser.add_argument("config", help="the recipe whose prepared data are scored")
    parser.add_argument(
        "--model", type=Path, required=True, help="a model trained from the same prepared data"
    )
    options = parser.parse_args(arguments)
    try:
        settings = load_settings(options.config)
        scores = score(settings, options.model)
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    np.save(scores_file(settings), scores)
    worst = ", ".join(f"{share:.0%}: {np.quantile(scores, share):.2f}" for share in (0.5, 0.8, 0.9, 0.95))
    print(f"{len(scores):,} pairs scored into {scores_file(settings)}; nats a token below which lie {worst}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
