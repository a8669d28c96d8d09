"""How many of a query's nearest entries do short codes miss, of those in its sentence's shortlist?

    python benchmarks/short_codes.py law.memory --source test.en --reference test.de --lines 200

Queries are the decoder's states along the reference translations. For each, the exact distances of all
entries in the shortlist say which are the nearest; the table shows what share of the nearest 1, 4, 16 and 32
a search for 32 does not return, with codes of several lengths.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import torch

from kster import BaseModel, Memory
from kster.formats.encoding import text_lines
from kster.memory.search import codes
from kster.memory.search.retriever import Batch
from kster.memory.search.shortlist_retriever import ShortlistRetriever
from kster.translation.open_memories import model_of
from machine import describe

K = 32
NEAREST = (1, 4, 16, 32)


def missed(memory: Memory, model: BaseModel, pairs: list[tuple[str, str]]) -> torch.Tensor:
    """(queries, K) bool: whether the i-th nearest entry is not found."""
    rows = []
    for (source, _), forced in zip(pairs, model.force_decode(pairs), strict=True):
        retriever = memory.retriever(Batch([source], torch.device("cpu")))
        assert isinstance(retriever, ShortlistRetriever), "this memory is not searched by shortlist"
        ids = retriever.entries[:-1, 2]
        if len(ids) < K:
            continue
        queries = forced.keys.float()
        found = retriever.search(queries, K).ids  # (n, K)
        distances = torch.cdist(
            queries, memory.keys_of(ids).float(), compute_mode="donot_use_mm_for_euclid_dist"
        )
        nearest = ids[distances.topk(K, largest=False).indices]  # (n, K)
        rows.append(~(nearest[:, :, None] == found[:, None]).any(-1))
    return torch.cat(rows)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", type=Path)
    parser.add_argument("--source", required=True, type=Path, help="sentences, one a line; perhaps .xz")
    parser.add_argument("--reference", required=True, type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--directions", nargs="+", type=int, default=[32, 64, 96, 128])
    options = parser.parse_args()
    model = model_of(options.memory, None, device="cpu")
    sides = [islice(text_lines(path), options.lines) for path in (options.source, options.reference)]
    pairs = [(one, other) for one, other in zip(*sides, strict=True) if one and other]
    print(describe(memory=options.memory.name, source=options.source.name, lines=len(pairs)), "\n")
    print("| coordinates | queries |", *(f"nearest {n} |" for n in NEAREST))
    print("|---:|---:|" + "---:|" * len(NEAREST))
    for count in options.directions:
        codes.DIRECTIONS = count
        with Memory.open(options.memory, model) as memory:
            lost = missed(memory, model, pairs).float()  # (queries, K)
        shares = (f"{100 * float(lost[:, :n].mean()):.2f} % |" for n in NEAREST)
        print(f"| {count} | {len(lost):,} |", *shares, flush=True)


if __name__ == "__main__":
    main()
