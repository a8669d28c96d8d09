"""Label-smoothed cross-entropy of a tied output layer, without keeping logits for the backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Target tokens whose logits exist at the same time: as many as a GPU likes, or as a CPU's caches nearly hold.
_CHUNK_ROWS = {"cuda": 16_384, "cpu": 1024}


def smoothed_cross_entropy(
    states: Tensor,
    positions: Tensor,
    embeddings: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    smoothing: float,
    divisor: float,
) -> tuple[Tensor, Tensor]:
    """(training loss, negative log-likelihood), both summed over tokens and divided by `divisor`.

    states: (B, T, d), the decoder's final states; positions: (N,), which of the B · T are not padding;
    embeddings: (V, d); bias: (V,) or None; labels: (N,).
    """
    result: tuple[Tensor, Tensor] = _SmoothedCrossEntropy.apply(
        states, positions, embeddings, bias, labels, smoothing, divisor
    )
    return result


@torch.no_grad()
def token_losses(
    states: Tensor, positions: Tensor, embeddings: Tensor, bias: Tensor | None, labels: Tensor
) -> Tensor:
    """Negative log-likelihood of every target token, (N,) float32; arguments as above."""
    hidden = states.flatten(0, 1).index_select(0, positions)  # (N, d)
    losses = []
    for rows in _chunks(hidden):
        logits = hidden[rows] @ embeddings.T  # (r, V)
        if bias is not None:
            logits += bias
        losses.append(torch.nn.functional.cross_entropy(logits.float(), labels[rows], reduction="none"))
    return torch.cat(losses)


def _chunks(hidden: Tensor) -> list[slice]:
    """The rows of (N, d) states in pieces."""
    size = _CHUNK_ROWS["cpu" if hidden.is_cpu else "cuda"]
    return [slice(start, start + size) for start in range(0, len(hidden), size)]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """With p = softmax(h Eᵀ + b), the gradient by the logits is p − (1 − ε) onehot(label) − ε / V.

    It is known as soon as the logits are, so both products with it are taken right in the forward pass and
    the (rows, V) array is dropped.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        positions: Tensor,
        embeddings: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        divisor: float,
    ) -> tuple[Tensor, Tensor]:
        vocabulary = embeddings.shape[0]
        hidden = states.flatten(0, 1).index_select(0, positions)  # (N, d)
        by_hidden = torch.empty_like(hidden)
        by_embeddings = torch.zeros_like(embeddings, dtype=torch.float32)
        nll = torch.zeros((), dtype=torch.float32, device=hidden.device)
        smooth = torch.zeros_like(nll)
        mean_embedding = embeddings.mean(dim=0, dtype=torch.float32)  # (d,)
        mean_bias = 0.0 if bias is None else bias.mean(dtype=torch.float32)
        for rows in _chunks(hidden):
            gold = labels[rows, None]  # (r, 1)
            logits = hidden[rows] @ embeddings.T  # (r, V)
            if bias is not None:
                logits += bias
            gold_logit = logits.gather(1, gold).float()
            mean_logit = hidden[rows].float() @ mean_embedding + mean_bias  # (r,)
            gradient = logits.softmax(dim=1)  # (r, V): p, computed in float32 inside
            gold_nll = -gradient.gather(1, gold).float().clamp_min(1e-30).log_()  # (r, 1)
            nll += gold_nll.sum()
            smooth += (gold_nll + gold_logit).sum() - mean_logit.sum()  # Σ (log Z − mean logit)
            gradient -= smoothing / vocabulary
            gradient.scatter_add_(1, gold, gradient.new_full(gold.shape, smoothing - 1.0))
            by_hidden[rows] = gradient @ embeddings
            by_embeddings += gradient.T @ hidden[rows]
        by_states = torch.zeros_like(states)
        by_states.flatten(0, 1).index_copy_(0, positions, by_hidden.div_(divisor))
        ctx.save_for_backward(by_states, by_embeddings.div_(divisor).to(embeddings.dtype))
        nll, smooth = nll / divisor, smooth / divisor
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * smooth, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_states, by_embeddings = ctx.saved_tensors
        scale = gradients[0]
        return by_states * scale, None, by_embeddings * scale, None, None, None, None
