"""Evidence for the networks: the same in a fit, from half-precision states, and in decoding."""

from __future__ import annotations

import torch

from kster.smoothing.evidence import NAMES_OF_AGREEMENT, agreement_evidence

AGREE = NAMES_OF_AGREEMENT.index("examples and base model agree")


def agree(shift: float) -> float:
    """Whether they agree when log p_m of the examples' first choice is `shift` below the largest."""
    weights = torch.tensor([[0.9, 0.1]])
    base = torch.tensor([[-0.5 - shift, -3.0]])
    return agreement_evidence(weights.log(), weights, base, torch.tensor([-0.5]))[0, AGREE].item()


def test_half_precision_does_not_change_whether_examples_and_base_model_agree() -> None:
    assert agree(0.0) == agree(5e-3) == 1.0


def test_another_first_choice_is_no_agreement() -> None:
    assert agree(0.1) == 0.0
