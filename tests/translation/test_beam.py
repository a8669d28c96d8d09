"""Our beam search against `transformers.generate`: the same tokens, the same scores."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from by_transformers import generated, network_of, shuffled_sentences
from kster.model import BaseModel
from kster.model.step import StepDecoder
from kster.translation.beam import beam_search
from kster.translation.predictor import base_predictor, best_tokens
from tiny import ENGLISH

LIMIT = 24


@pytest.mark.parametrize(
    ("name", "beam", "penalty"),
    [
        ("taught_marian", 4, 0.6),
        ("taught_m2m100", 4, 0.6),
        ("tiny_m2m100", 4, 0.6),  # random weights never end a sentence: every hypothesis meets its limit
        ("taught_marian", 3, 0.9),
        ("taught_marian", 3, 1.0),  # from here on judged by what can still be reached
        ("taught_marian", 4, 1.4),
    ],
)
def test_base_translations_equal_generate(
    name: str, beam: int, penalty: float, request: pytest.FixtureRequest
) -> None:
    model = BaseModel.load(request.getfixturevalue(name))
    texts = shuffled_sentences(240)
    found = beam_search(
        StepDecoder(model),
        model.tokenise_source(texts),
        base_predictor,
        beam=beam,
        length_penalty=penalty,
        limits=[LIMIT] * len(texts),
        n_best=beam,
    )
    ours = [hypothesis for hypotheses in found for hypothesis in hypotheses]
    expected = generated(model, texts, beam=beam, length_penalty=penalty, limit=LIMIT)
    assert [list(hypothesis.tokens) for hypothesis in ours] == [tokens for tokens, _ in expected]
    assert [hypothesis.score for hypothesis in ours] == pytest.approx([s for _, s in expected], abs=1e-4)
    if name.startswith("taught"):  # and the comparison is about more than running into the limit
        assert sum(len(hypothesis.tokens) < LIMIT for hypothesis in ours) > len(ours) // 4


def test_a_beam_of_one_is_greedy_search(taught_marian: Path) -> None:
    model = BaseModel.load(taught_marian)
    texts = shuffled_sentences(20)
    ids = model.tokenise_source(texts)
    found = beam_search(
        StepDecoder(model), ids, base_predictor, beam=1, length_penalty=0.6, limits=[LIMIT] * len(texts)
    )
    for source, (hypothesis,) in zip(ids, found, strict=True):
        tokens: list[int] = []
        while len(tokens) < LIMIT:
            given = torch.tensor([[*model.layout.prefix, *tokens]])
            logits = network_of(model)(input_ids=torch.tensor([source]), decoder_input_ids=given).logits[
                0, -1
            ]
            logits[model.pad_id] = -torch.inf
            if (token := int(logits.argmax())) == model.eos_id:
                break
            tokens.append(token)
        assert list(hypothesis.tokens) == tokens


def test_limits_hold_per_sentence(taught_marian: Path) -> None:
    model = BaseModel.load(taught_marian)
    texts = ENGLISH[:5]
    found = beam_search(
        StepDecoder(model),
        model.tokenise_source(texts),
        base_predictor,
        beam=4,
        length_penalty=0.6,
        limits=[1, 2, 3, 40, 40],
    )
    lengths = [len(hypotheses[0].tokens) for hypotheses in found]
    assert lengths[0] <= 1
    assert lengths[1] <= 2
    assert lengths[2] <= 3
    assert model.detokenise([found[3][0].tokens]) == ["die Taste drücken um die Maschine zu starten"]


def test_a_sentence_is_translated_alike_alone_and_in_a_batch(taught_marian: Path) -> None:
    model = BaseModel.load(taught_marian)
    decoder = StepDecoder(model)
    texts = shuffled_sentences(30)
    ids = model.tokenise_source(texts)

    def search(rows: list[list[int]]) -> list[tuple[int, ...]]:
        found = beam_search(
            decoder, rows, base_predictor, beam=4, length_penalty=0.6, limits=[LIMIT] * len(rows)
        )
        return [hypotheses[0].tokens for hypotheses in found]

    assert search(ids) == [search([row])[0] for row in ids]


@pytest.mark.parametrize(("vocabulary", "count"), [(16_000, 9), (421, 9), (2_000, 9), (1_281, 9), (5, 9)])
def test_the_best_tokens_are_found_wherever_they_stand(vocabulary: int, count: int) -> None:
    log_probs = torch.randn(40, vocabulary, generator=torch.Generator().manual_seed(0))
    log_probs[:8, -3:] += 5.0  # among the last ones, …
    log_probs[8:16, vocabulary // 2 : vocabulary // 2 + 12] += 5.0  # … and all side by side
    found = best_tokens(log_probs, count)
    expected = log_probs.topk(min(count, vocabulary))
    assert torch.equal(found.log_probs, expected.values)
    assert torch.equal(found.tokens, expected.indices)
