"""Keys and queries are one vector: in force-decoding, in our step, and in a hook on `transformers`."""

from __future__ import annotations

import pytest
import torch

from by_transformers import hooked
from kster import KsterError
from kster.model import BaseModel
from kster.model.step import StepDecoder
from tiny import ENGLISH, GERMAN

FAMILIES = ["taught_marian", "taught_m2m100"]


@pytest.fixture(params=FAMILIES, scope="module")
def model(request: pytest.FixtureRequest) -> BaseModel:
    return BaseModel.load(request.getfixturevalue(request.param))


def test_forced_keys_are_the_input_of_the_last_feed_forward(model: BaseModel) -> None:
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    for (source, target), forced in zip(pairs, model.force_decode(pairs, batch_tokens=40), strict=True):
        tap, log_probs = hooked(model, source, target)
        tokens = torch.tensor(model.tokenise_target([target])[0])
        torch.testing.assert_close(forced.keys.float(), tap, atol=2e-3, rtol=2e-3)  # keys are float16
        assert forced.tokens.tolist() == tokens.tolist()
        torch.testing.assert_close(
            forced.log_probs, log_probs.gather(1, tokens[:, None])[:, 0], atol=1e-4, rtol=1e-4
        )
        torch.testing.assert_close(forced.max_log_prob, log_probs.amax(-1), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(forced.mean_log_prob, log_probs.mean(-1), atol=1e-4, rtol=1e-4)


def test_a_memorys_keys_are_those_of_force_decoding(model: BaseModel) -> None:
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    for made, forced in zip(model.make_keys(pairs), model.force_decode(pairs), strict=True):
        assert torch.equal(made.keys, forced.keys)
        assert torch.equal(made.tokens, forced.tokens)


def test_our_step_sees_the_same_query_and_distribution(model: BaseModel) -> None:
    decoder, beam = StepDecoder(model), 3
    sources, targets = model.tokenise_source(ENGLISH), model.tokenise_target(GERMAN)
    longest = max(map(len, targets))
    state = decoder.start(sources, beam, longest)
    tokens = decoder.first_tokens(len(sources) * beam)
    expected = [hooked(model, s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)]
    for step in range(longest):
        queries, logits = decoder.step(state, tokens)
        for i, (tap, log_probs) in enumerate(expected):
            if step < len(targets[i]):
                row = i * beam + step % beam
                torch.testing.assert_close(queries[row], tap[step], atol=2e-4, rtol=2e-4)
                torch.testing.assert_close(logits[row].log_softmax(-1), log_probs[step], atol=2e-4, rtol=2e-4)
        given = [row[min(step, len(row) - 1)] for row in targets for _ in range(beam)]
        tokens = torch.tensor(given)


def test_chosen_log_probs_come_from_the_cached_state(model: BaseModel) -> None:
    forced = next(model.force_decode([(ENGLISH[0], GERMAN[0])]))
    _, log_probs = hooked(model, ENGLISH[0], GERMAN[0])
    tokens = torch.tensor([[5, 9, 300]]).expand(len(forced.tokens), 3)
    ours = model.output_log_probs(forced.hidden, tokens, forced.log_normaliser)
    torch.testing.assert_close(ours, log_probs.gather(1, tokens), atol=2e-2, rtol=2e-2)  # states are float16


def test_force_decoding_keeps_the_order_and_reports_progress(model: BaseModel) -> None:
    pairs = list(zip(ENGLISH, GERMAN, strict=True)) * 3
    seen: list[int] = []
    forced = list(model.force_decode(iter(pairs), progress=seen.append))
    assert [f.tokens.tolist() for f in forced] == model.tokenise_target([t for _, t in pairs])
    assert seen == [len(pairs)]


def test_a_pair_too_long_for_the_model_is_an_error_that_says_which(model: BaseModel) -> None:
    with pytest.raises(KsterError, match=r"pair 2 has \d+ tokens on one side; .* reads at most"):
        list(model.force_decode([("a", "b"), ("word " * 600, "wort")]))
