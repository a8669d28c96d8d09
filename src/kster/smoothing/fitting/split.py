"""Which segments of a memory are trained on, and which are held out to judge by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Entries

HELD_OUT_LIMIT = 10_000  # tokens; more would only cost time at every look


@dataclass(frozen=True, slots=True)
class Split:
    """Segment ids; no target text is on both sides."""

    train: list[int]
    held_out: list[int]


def split_segments(
    entries: Entries, held_out_fraction: float, max_tokens: int, seed: int, *, apart: Tensor | None = None
) -> Split:
    """Deal the segments out at random, all those with the same target text to the same side.

    held_out_fraction: of the memory's tokens, at most HELD_OUT_LIMIT of them; 0 holds nothing out.
    max_tokens: of the segments to train on; the rest of the memory is still there to be retrieved.
    apart: groups of target texts that are on neither side, since a fit is judged by them.
    """
    target_groups, segment_ids = entries.target_groups, entries.segment_ids
    if apart is not None:
        usable = ~torch.isin(target_groups, apart)
        target_groups, segment_ids = target_groups[usable], segment_ids[usable]
        if len(segment_ids) == 0:
            raise KsterError(
                "all of the memory is in the development text, so nothing is left to learn from; give text "
                "that is not in the memory, or none, and a part of the memory is held out"
            )
    groups, group_of_entry = target_groups.unique(return_inverse=True)
    if len(groups) < (2 if held_out_fraction > 0 else 1):
        raise KsterError(
            f"a memory with {len(groups)} different target texts ({len(segment_ids)} tokens) is too small to "
            "fit; add segments first, or use it as it is"
        )
    tokens = group_of_entry.bincount(minlength=len(groups))  # (g,)
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    before = tokens[order].cumsum(0) - tokens[order]  # tokens of the groups dealt out earlier
    wanted = min(held_out_fraction * len(segment_ids), HELD_OUT_LIMIT)
    held_out = before < wanted  # at least one group if anything is wanted
    held_out[-1] = False  # and never all of them
    start = tokens[order][held_out].sum()
    train = ~held_out & (before - start < max_tokens)
    side = torch.zeros(len(groups), dtype=torch.int64)  # 0: neither
    side[order[held_out]] = 1
    side[order[train]] = 2
    side_of_entry = side[group_of_entry]
    return Split(
        train=segment_ids[side_of_entry == 2].unique().tolist(),
        held_out=segment_ids[side_of_entry == 1].unique().tolist(),
    )
