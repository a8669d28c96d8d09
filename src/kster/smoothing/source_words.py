"""What the words of a neighbour's source say about it (not in the paper). Three rules:

The decoder's attention says which words of the source the next token translates (`model/focus.py`), and the
index of sources which of them a neighbour's sentence has.

1. A neighbour that lacks the word does not decide it. Let m be how much attention goes to words that its
source lacks. If it is like the sentence, it keeps a share

    keep(m)  =  s((M − m) / W) / s(M / W)          s: the logistic function

of its kernel weight, and the rest of its say goes to the base model, which has read the words:

    p(y)  =  (1 − λ κ) p_m(y) + λ Σⱼ wⱼ keepⱼ [vⱼ = y]          κ = Σⱼ wⱼ keepⱼ

So a taught "… when the badge is invalid" gives "… when the badge is lost" all its words but one. Neighbours
from sentences that are not alike keep all of it: distances tell them well enough.

2. A word that few sources of the memory have was taught by them. Where attention is on it, and on nothing
that the neighbours lack, the log odds of λ grow, by TAUGHT at most.

3. Of segments with the same source the newest speaks: the others' kernels are e³ times smaller. That is
little enough for twenty of the others to outweigh it.

The numbers were chosen on the development sets of `benchmarks/facts.py` and the example memory
(docs/results/facts.md).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from kster.smoothing.mixing_weight import LogShares

HALF, WIDTH = 0.28, 0.05  # M and W: at M half of its say is left
KEPT_OF_NOTHING_MISSING = float(torch.tensor(HALF / WIDTH).sigmoid())
UNLIKE, ALIKE = 0.3, 0.5  # similarities of sources: up to the first, rule 1 is off; from the second, fully on
TAUGHT = 4.0  # most that the log odds of λ grow by …
SURE = 0.5  # … for attention above this
OLDER = 3.0  # what the log kernel of an older segment with the same source loses
TINY = 1e-30  # of which a logarithm can be taken; beside any probability it is nothing


@dataclass(slots=True)
class WordEvidence:
    """Of n tokens and their k neighbours."""

    missing: Tensor  # (n, k) attention to words that a neighbour's source lacks
    taught: Tensor  # (n, k) attention to words that it has, and few others in the memory
    older: Tensor  # (n, k) bool: a later segment has the same source

    @classmethod
    def of(cls, focus: Tensor, words: Tensor, rare: Tensor) -> WordEvidence:
        """focus: (n, w); words: (n, k) int64, which a neighbour's source has; rare: (n,) int64."""
        lacks = bits_of(~words, focus.shape[1])  # (n, k, w)
        to_rare = attention_to_rare(focus, rare)  # (n, w)
        lacking = lacks @ torch.stack([focus.float(), to_rare], dim=-1)  # (n, k, 2)
        return cls(lacking[..., 0], to_rare.sum(-1, keepdim=True) - lacking[..., 1], words >= 0)

    def gather(self, order: Tensor) -> WordEvidence:
        """Of the neighbours at these places, (n, c)."""
        return WordEvidence(*(getattr(self, field.name).gather(-1, order) for field in fields(self)))


def bits_of(words: Tensor, count: int) -> Tensor:
    """(…, count) float32: 1 for each word that is among these; words: (…) int64, bit i stands for word i."""
    if words.device.type == "cpu":  # numpy has instructions for it
        octets = words.contiguous().unsqueeze(-1).view(torch.uint8).numpy()  # (…, 8)
        bits = np.unpackbits(octets, axis=-1, count=count, bitorder="little")
        return torch.from_numpy(bits).float()
    return (words.unsqueeze(-1) >> torch.arange(count, device=words.device) & 1).float()


def attention_to_rare(focus: Tensor, rare: Tensor) -> Tensor:
    """(n, w) float32: the attention to rare words, 0 for others. focus: (n, w); rare: (n,) int64."""
    return focus.float() * bits_of(rare, focus.shape[1])


def may_tell(focus: Tensor, rare: Tensor, similarity: Tensor | None) -> bool:
    """Whether the first two rules can change anything: whether a source is like the sentence, or attention is
    on a rare word.

    focus: (n, w); rare: (n,) int64; similarity: (n, k), None where it is not known. Only a CPU is asked.
    """
    if similarity is None:
        return False
    if focus.is_cuda or torch.is_grad_enabled() or float(similarity.amax()) > UNLIKE:
        return True
    return float(attention_to_rare(focus, rare).sum(-1).amax()) > SURE


def may_be_any(holds: Tensor) -> bool:
    """Whether something holds anywhere; looked at on a CPU only, as on a GPU it would mean waiting."""
    return holds.is_cuda or torch.is_grad_enabled() or bool(holds.any())


def kept(missing: Tensor) -> Tensor:
    """keep(m), between 0 and 1, exactly 1 where nothing is missing. missing: (n, k)."""
    return (((HALF - missing.float()) / WIDTH).sigmoid() / KEPT_OF_NOTHING_MISSING).clamp_max(1.0)


def raise_taught(log_weights: Tensor, shares: LogShares, taught: Tensor, missing: Tensor) -> LogShares:
    """The second rule: λ raised where neighbours know a rare word that is being translated.

    log_weights, taught, missing: (n, k); shares: (n,).
    """
    sure = (taught - missing).float() - SURE  # (n, k)
    if not may_be_any(sure > 0):
        return shares
    known = sure.clamp_min(0.0) / (1.0 - SURE)
    known = (log_weights.exp() * known).sum(-1)  # (n,)
    odds = shares.examples - shares.base + TAUGHT * known
    raised = LogShares(F.logsigmoid(odds), F.logsigmoid(-odds))
    certain = (shares.base == -torch.inf) | (shares.examples == -torch.inf)
    return LogShares(*(torch.where(certain, old, new) for old, new in zip(shares, raised, strict=True)))


def hold_off(
    log_weights: Tensor, shares: LogShares, missing: Tensor, similarity: Tensor
) -> tuple[Tensor, LogShares]:
    """The first rule: the weights of what neighbours keep of their say, normalised, and λ less the rest.

    log_weights, missing, similarity: (n, k); shares: (n,).
    """
    if not may_be_any(similarity > UNLIKE):
        return log_weights, shares
    alike = ((similarity.float() - UNLIKE) / (ALIKE - UNLIKE)).clamp(0.0, 1.0)  # (n, k)
    keep = 1.0 - alike * (1.0 - kept(missing))  # (n, k)
    weights = log_weights.exp()
    log_all = (weights * keep).sum(-1).clamp_min(TINY).log()  # (n,) log κ
    given_up = (weights * (1.0 - keep)).sum(-1).clamp_min(TINY).log()  # (n,) log(1 − κ)
    return log_weights + keep.clamp_min(TINY).log() - log_all.unsqueeze(-1), LogShares(
        examples=shares.examples + log_all, base=torch.logaddexp(shares.base, shares.examples + given_up)
    )
