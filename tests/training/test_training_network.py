"""Our forward pass and loss are those of transformers' Marian model, to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers

from kster.training.batching import Batch, DeviceCorpus
from kster.training.loss import _CHUNK_ROWS, smoothed_cross_entropy
from kster.training.network import Layout, Network, Weights, initialise, sinusoids
from kster.training.prepared import Side


@pytest.fixture
def theirs(tiny_marian: Path) -> transformers.MarianMTModel:
    model = transformers.MarianMTModel.from_pretrained(tiny_marian).eval()
    torch.manual_seed(0)
    model.final_logits_bias.normal_()
    return model


@pytest.fixture
def batch(theirs: transformers.MarianMTModel) -> Batch:
    random = np.random.default_rng(0)
    sides = []
    for _ in range(2):
        lengths = random.integers(2, 13, 6)
        tokens = random.integers(2, theirs.config.vocab_size - 1, lengths.sum()).astype(np.uint16)
        sides.append(Side(tokens, np.concatenate([[0], lengths.cumsum()]).astype(np.int32)))
    pad = theirs.config.pad_token_id
    corpus = DeviceCorpus((sides[0], sides[1]), pad_id=pad, start_id=pad, device=torch.device("cpu"))
    return corpus.gather(np.arange(6))


def our_weights(model: transformers.MarianMTModel) -> tuple[Layout, Weights]:
    layout = Layout(model.config)
    flat = torch.zeros(layout.size)
    layout.load(flat, model.state_dict())
    weights = layout.views(flat)
    for weight in weights.values():
        weight.requires_grad_()
    return layout, weights


def their_logits(model: transformers.MarianMTModel, batch: Batch) -> torch.Tensor:
    output = model(
        input_ids=batch.source, attention_mask=batch.source_mask, decoder_input_ids=batch.decoder_input
    )
    return output.logits.flatten(0, 1)[batch.positions]  # (N, V)


def test_logits_equal_those_of_transformers(theirs: transformers.MarianMTModel, batch: Batch) -> None:
    _, weights = our_weights(theirs)
    states = Network(theirs.config, device=torch.device("cpu")).states(weights, batch, training=False)
    ours = states.flatten(0, 1)[batch.positions] @ weights["shared"].T + theirs.final_logits_bias
    torch.testing.assert_close(ours, their_logits(theirs, batch), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rows", [7, 16_384])  # several chunks, one chunk
def test_loss_and_every_gradient_equal_those_of_transformers(
    theirs: transformers.MarianMTModel, batch: Batch, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_CHUNK_ROWS, "cpu", rows)
    layout, weights = our_weights(theirs)
    loss, nll = smoothed_cross_entropy(
        Network(theirs.config, device=torch.device("cpu")).states(weights, batch, training=False),
        batch.positions,
        weights["shared"],
        theirs.final_logits_bias[0],
        batch.labels,
        smoothing=0.1,
        divisor=10.0,
    )
    logits = their_logits(theirs, batch)
    expected = F.cross_entropy(logits, batch.labels, label_smoothing=0.1, reduction="sum") / 10
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits, batch.labels, reduction="sum").detach() / 10)
    (3 * loss).backward()
    (3 * expected).backward()
    parameters = dict(theirs.named_parameters())
    for weight in layout.weights:
        wanted = torch.cat([parameters[name].grad for name in weight.parts])
        torch.testing.assert_close(weights[weight.name].grad, wanted, atol=2e-4, rtol=2e-4)


def test_every_trainable_weight_has_its_place(theirs: transformers.MarianMTModel) -> None:
    named = [name for name, _ in Layout(theirs.config).theirs(torch.zeros(Layout(theirs.config).size))]
    learned = [name for name, _ in theirs.named_parameters() if not name.endswith("embed_positions.weight")]
    assert sorted(named) == sorted(learned)


def test_weights_survive_the_way_there_and_back(theirs: transformers.MarianMTModel) -> None:
    layout = Layout(theirs.config)
    flat = torch.zeros(layout.size)
    state = theirs.state_dict()
    layout.load(flat, state)
    for name, weight in layout.theirs(flat):
        assert torch.equal(weight, state[name])


def test_positions_are_marian_s(theirs: transformers.MarianMTModel) -> None:
    expected = theirs.model.encoder.embed_positions.weight
    torch.testing.assert_close(sinusoids(*expected.shape), expected, atol=2e-5, rtol=0)


def test_padding_changes_nothing(theirs: transformers.MarianMTModel, batch: Batch) -> None:
    _, weights = our_weights(theirs)
    network = Network(theirs.config, device=torch.device("cpu"))
    wider = Batch(
        F.pad(batch.source, (0, 8), value=theirs.config.pad_token_id),
        F.pad(batch.source_mask, (0, 8)),
        batch.decoder_input,
        batch.labels,
        batch.positions,
    )
    narrow, wide = (network.states(weights, each, training=False) for each in (batch, wider))
    torch.testing.assert_close(narrow, wide, atol=1e-5, rtol=1e-5)


def test_initial_network_is_calm_and_reproducible(theirs: transformers.MarianMTModel, batch: Batch) -> None:
    layout = Layout(theirs.config)
    flats = []
    for seed in (1, 1, 2):
        flat = torch.empty(layout.size)
        initialise(flat, layout, theirs.config, seed)
        flats.append(flat)
    assert torch.equal(flats[0], flats[1])
    assert not torch.equal(flats[0], flats[2])
    weights = layout.views(flats[0])
    states = Network(theirs.config, device=torch.device("cpu")).states(weights, batch, training=False)
    _, nll = smoothed_cross_entropy(
        states,
        batch.positions,
        weights["shared"],
        None,
        batch.labels,
        smoothing=0.0,
        divisor=len(batch.labels),
    )
    assert abs(float(nll) - np.log(theirs.config.vocab_size)) < 1.0  # close to a uniform guess
