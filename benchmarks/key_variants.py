"""Would other keys find better examples? kNN-MT's likelihood of held-out text, with keys of several kinds.

    python benchmarks/key_variants.py --model models/en-de --memory train.en train.de --held-out dev.en dev.de

Keys are what KSTER uses (the tap: the input of the last decoder block's feed-forward network), the decoder's
final state, both, and the tap normalised, centred, standardised and whitened. Each gets the best of a grid of
neighbours, bandwidths (relative to the median distance of the 16th) and weights on the held-out tokens
themselves, so the figures are a little too good, for all of them alike. Search is exact.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import fields
from itertools import islice, product
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from kster import BaseModel
from kster.formats import Pair, read_moses
from kster.model import ForcedSentence
from machine import describe

KS = (16, 32)
BANDWIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
WEIGHTS = tuple(i / 20 for i in range(2, 19))
QUERIES_AT_ONCE = 512
WHITENED_BY = 50_000  # keys


def variants(memory: ForcedSentence, held_out: ForcedSentence) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Name, keys (n, d) and queries (m, d)."""
    keys, queries = memory.keys.float(), held_out.keys.float()
    final, final_queries = memory.hidden.float(), held_out.hidden.float()
    mean, deviation = keys.mean(0), keys.std(0)
    yield "tap", keys, queries
    yield "final state", final, final_queries
    yield "tap, normalised", normalize(keys), normalize(queries)
    yield "tap, centred and normalised", normalize(keys - mean), normalize(queries - mean)
    yield "tap, standardised", (keys - mean) / deviation, (queries - mean) / deviation
    values, vectors = torch.linalg.eigh((keys[:WHITENED_BY] - mean).T.cov())
    for name, power in (("half whitened", 0.25), ("whitened", 0.5)):
        turn = vectors * values.clamp_min(1e-6) ** -power
        turned, asked = (keys - mean) @ turn, (queries - mean) @ turn
        yield f"tap, {name}", turned, asked
        yield f"tap, {name} and normalised", normalize(turned), normalize(asked)
    yield (
        "tap and final state, normalised",
        torch.cat((normalize(keys), normalize(final)), 1),
        torch.cat((normalize(queries), normalize(final_queries)), 1),
    )


def nearest(keys: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Squared distances and places of the k nearest, (m, k) each."""
    norms = keys.square().sum(1)
    found = []
    for some in queries.split(QUERIES_AT_ONCE):
        distances = norms - 2 * some @ keys.T + some.square().sum(1, keepdim=True)
        found.append(distances.topk(k, largest=False))
    return torch.cat([f.values for f in found]).clamp_min(0), torch.cat([f.indices for f in found])


def best(distances: Tensor, right: Tensor, base: Tensor) -> tuple[float, int, float, float]:
    """The lowest mean −log p over the grid, with its k, bandwidth and weight."""
    unit = distances[:, min(KS) - 1].median()
    trials = []
    for k, bandwidth in product(KS, BANDWIDTHS):
        kernel = torch.softmax(-distances[:, :k] / (unit * bandwidth), 1)
        example = (kernel * right[:, :k]).sum(1)
        for weight in WEIGHTS:
            loss = -torch.log(weight * example + (1 - weight) * base.exp()).mean()
            trials.append((loss.item(), k, bandwidth, weight))
    return min(trials)


def forced(model: BaseModel, files: tuple[Path, Path], pairs: int) -> ForcedSentence:
    read = ((pair.source, pair.target) for pair in read_moses(*files) if isinstance(pair, Pair))
    return ForcedSentence.join(list(model.force_decode(islice(read, pairs))))


def sample(sentence: ForcedSentence, tokens: int, seed: int) -> ForcedSentence:
    names = [field.name for field in fields(ForcedSentence)]
    places = torch.tensor(random.Random(seed).sample(range(len(sentence.tokens)), tokens))
    return ForcedSentence(*(getattr(sentence, name)[places] for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--memory", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--held-out", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--pairs", type=int, default=5_000, help="of the memory (default: %(default)s)")
    parser.add_argument("--held-out-pairs", type=int, default=600, help="(default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=3_000, help="asked for (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = [str(path) for path in (*options.memory, *options.held_out)]
    print(describe(files=" ".join(files), seed=options.seed))
    model = BaseModel.load(options.model, device="cpu")
    memory = forced(model, tuple(options.memory), options.pairs)
    held_out = forced(model, tuple(options.held_out), options.held_out_pairs)
    held_out = sample(held_out, min(options.tokens, len(held_out.tokens)), options.seed)
    print(f"{len(memory.tokens):,} keys, {len(held_out.tokens):,} queries")
    print(f"{'base model':34} {-held_out.log_probs.mean().item():.3f} nats a token")
    for name, keys, queries in variants(memory, held_out):
        distances, places = nearest(keys, queries, max(KS))
        right = memory.tokens[places] == held_out.tokens[:, None]
        loss, k, bandwidth, weight = best(distances, right, held_out.log_probs)
        among = right[:, : min(KS)].any(1).float().mean().item()
        print(f"{name:34} {loss:.3f} (k {k}, σ {bandwidth}, λ {weight}); right token among 16: {among:.1%}")


if __name__ == "__main__":
    main()
