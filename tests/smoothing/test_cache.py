"""The cache says about each token what the model and the memory would say if asked again."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import torch

from by_transformers import network_of
from kster.errors import KsterError
from kster.memory import Memory, SearchSettings
from kster.model import BaseModel
from kster.smoothing import Smoother, SmootherSettings
from kster.smoothing.fitting.cache import EXTERNAL, Examples, FitCache
from kster.smoothing.fitting.dropout import first_k
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs, cache_segments
from kster.smoothing.fitting.optimisation import neighbours_without_own, smooth_examples
from smoothing.conftest import make_pairs


def test_base_probabilities_equal_the_networks_own(model: BaseModel, memory: Memory) -> None:
    """Dense check: the whole softmax of one sentence, from the transformers network itself."""
    source, target = make_pairs(1, seed=5)[0]
    cache = cache_pairs(Lookup(model, memory, memory.entries()), [(source, target)], neighbours=8)
    with torch.no_grad():
        tokens = torch.tensor(model.tokenise_target([target]))
        output = network_of(model)(input_ids=torch.tensor(model.tokenise_source([source])), labels=tokens)
        expected = torch.log_softmax(output.logits[0], -1)  # (n, V)
    assert torch.allclose(cache.log_probs, expected.gather(1, tokens.T)[:, 0], atol=2e-3)
    assert torch.allclose(cache.log_probs_at_values, expected.gather(1, cache.values.long()), atol=2e-2)
    assert torch.allclose(cache.mean_log_prob, expected.mean(-1), atol=2e-3)
    assert torch.allclose(cache.max_log_prob, expected.amax(-1), atol=2e-3)
    assert (cache.segment_ids == EXTERNAL).all()


def test_text_from_outside_that_is_in_the_memory_is_related_to_its_copies(
    model: BaseModel, memory: Memory
) -> None:
    entries, segment = memory.entries(), memory.segments()[3]
    pairs = [("another source", f"  {segment.target.upper()}"), (segment.source, "ein anderer Satz")]
    cache = cache_pairs(Lookup(model, memory, entries), pairs, neighbours=len(entries))
    (group,) = {
        int(g) for g, s in zip(entries.target_groups, entries.segment_ids, strict=True) if s == segment.id
    }
    copies = int((entries.target_groups == group).sum())
    related = cache.related.sum(-1)  # (n,)
    first = len(model.tokenise_target([pairs[0][1]])[0])
    assert related.tolist() == [copies] * first + [0] * (len(cache) - first)
    assert not (neighbours_without_own(cache) & cache.related).any()


def test_a_large_memory_is_looked_up_in_shortlists_as_translations_are(
    model: BaseModel, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = make_pairs(5, seed=7)
    whole = cache_pairs(Lookup(model, memory, memory.entries()), pairs, neighbours=8)
    monkeypatch.setattr("kster.smoothing.fitting.lookup.EXACT_LIMIT", 0)
    monkeypatch.setattr("kster.smoothing.fitting.lookup.SENTENCES_AT_ONCE", 2)
    monkeypatch.setattr("kster.memory.search.scores.has_instructions_for", lambda precision: False)

    def looked_up(settings: SearchSettings) -> FitCache:
        with Memory.open(memory.directory, model, search=settings) as own:
            return cache_pairs(Lookup(model, own, own.entries()), pairs, neighbours=8)

    assert torch.equal(looked_up(SearchSettings(shortlist_entries=1_000_000)).ids, whole.ids)
    near = looked_up(SearchSettings(shortlist=3, shortlist_entries=60))
    lengths = [len(tokens) for tokens in model.tokenise_target([target for _, target in pairs])]
    for (source, _), found in zip(pairs, near.ids.long().split(lengths), strict=True):
        segments = set(memory.segment_ids(found[found >= 0]).tolist())
        assert segments
        assert segments <= set(memory.similar(source, 3).segment_ids.tolist())


def test_own_tokens_find_themselves_first(model: BaseModel, memory: Memory) -> None:
    entries = memory.entries()
    segment = memory.segments()[3]
    cache = cache_segments(Lookup(model, memory, entries), [segment.id], neighbours=4)
    assert memory.segment_ids(cache.ids[:, 0].long()).tolist() == [segment.id] * len(cache)
    assert cache.related[:, 0].all()
    assert torch.equal(cache.values[:, 0].long(), cache.gold)
    length = cache.queries.float().norm(dim=-1)
    assert (cache.distances[:, 0] < 0.01 * length).all()


def test_a_fit_smooths_as_decoding_does(model: BaseModel, memory: Memory) -> None:
    """Pooling keys from the table gives what `forward` gives with the keys at hand."""
    entries = memory.entries()
    cache = cache_pairs(Lookup(model, memory, entries), make_pairs(5, seed=5), neighbours=6)
    torch.manual_seed(0)
    smoother = Smoother(SmootherSettings(dimension=model.dimension, features="confidence", exact_match=0.98))
    for parameter in smoother.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    examples = Examples.choose(cache, *first_k(cache.ids >= 0, 6))
    neighbours = memory.search(cache.queries, 6)
    with torch.no_grad():
        fitted = smooth_examples(smoother, examples, KeyTable(entries, torch.device("cpu")))
        decoded = smoother(cache.queries, neighbours, cache.log_probs_at_values, cache.max_log_prob)
    assert torch.allclose(fitted.log_weights, decoded.log_weights, atol=1e-4)
    assert torch.allclose(fitted.bandwidth, decoded.bandwidth, rtol=1e-4)
    assert torch.allclose(fitted.mixing_weight, decoded.mixing_weight, atol=1e-4)


def test_keys_that_stay_on_disk_are_pooled_the_same(
    model: BaseModel, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = memory.entries()
    ids = entries.ids[:12].reshape(3, 4)
    weights = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.einsum("nk,nkd->nd", weights, entries.keys_of(ids).float())
    for limits in ({"FLOAT32_LIMIT": 1 << 40}, {"FLOAT32_LIMIT": 0}, {"RESIDENT_LIMIT": {}}):
        for name, value in limits.items():
            monkeypatch.setattr(f"kster.smoothing.fitting.key_table.{name}", value)
        assert torch.allclose(KeyTable(entries, torch.device("cpu")).pool(ids, weights), expected, atol=1e-3)


def test_removed_entries_do_not_shift_the_keys(model: BaseModel, memory: Memory) -> None:
    memory.remove(memory.segments()[0].id)
    entries = memory.entries()
    ids = entries.ids[-4:].reshape(1, 4)
    weights = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    pooled = KeyTable(entries, torch.device("cpu")).pool(ids, weights)
    assert torch.equal(pooled[0], entries.keys_of(ids)[0, 1].float())


def test_a_saved_cache_is_read_back_and_refused_when_the_memory_has_changed(
    model: BaseModel, memory: Memory, tmp_path: Path
) -> None:
    entries = memory.entries()
    cache = cache_pairs(Lookup(model, memory, entries), make_pairs(3, seed=5), neighbours=4)
    cache.save(tmp_path / "cache", entries)
    again = FitCache.load(tmp_path / "cache", entries)
    for field in fields(FitCache):
        assert torch.equal(getattr(again, field.name), getattr(cache, field.name)), field.name
    memory.remove(memory.segments()[0].id)
    with pytest.raises(KsterError, match="has changed"):
        FitCache.load(tmp_path / "cache", memory.entries())
    with pytest.raises(KsterError, match="no cache"):
        FitCache.load(tmp_path / "elsewhere", entries)


def test_a_pair_too_long_for_the_model_is_named(model: BaseModel, memory: Memory) -> None:
    pairs = [*make_pairs(600, seed=5), ("the red house", "Haus " * 600)]
    with pytest.raises(KsterError, match="pair 601 of the text"):
        cache_pairs(Lookup(model, memory, memory.entries()), pairs, neighbours=4)
