"""Keys and queries are one vector on a GPU, too, in single and in half precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from by_transformers import hooked
from kster.model import BaseModel
from kster.model.step import StepDecoder
from kster.smoothing import SAFE_KNN
from tiny import ENGLISH, GERMAN

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "models" / "en-de"


def relative(ours: Tensor, theirs: Tensor) -> Tensor:
    """(n,) ‖a − b‖² / ‖b‖²: the unit of `exact_tolerance`. ours, theirs: (n, d)."""
    ours, theirs = ours.double().cpu(), theirs.double().cpu()
    return (ours - theirs).square().sum(-1) / theirs.square().sum(-1)


def step_queries(model: BaseModel, sources: list[str], targets: list[str], beam: int) -> list[Tensor]:
    """Per sentence (t, d): the queries our step asks along given targets, of changing beams."""
    decoder = StepDecoder(model)
    given = model.tokenise_target(targets)
    longest = max(map(len, given))
    state = decoder.start(model.tokenise_source(sources), beam, longest)
    tokens = decoder.first_tokens(len(sources) * beam)
    seen: list[list[Tensor]] = [[] for _ in sources]
    for step in range(longest):
        queries, _ = decoder.step(state, tokens)
        for i, row in enumerate(given):
            if step < len(row):
                seen[i].append(queries[i * beam + step % beam])
        row_tokens = [row[min(step, len(row) - 1)] for row in given for _ in range(beam)]
        tokens = torch.tensor(row_tokens, device=model.device)
    return [torch.stack(rows) for rows in seen]


def test_forced_keys_step_queries_and_a_hook_see_the_same_vector(model: BaseModel) -> None:
    half = model.dtype == torch.float16
    forced = list(model.force_decode(zip(ENGLISH, GERMAN, strict=True)))
    queries = step_queries(model, ENGLISH, GERMAN, beam=4)
    for source, target, keys, asked in zip(ENGLISH, GERMAN, forced, queries, strict=True):
        tap, log_probs = hooked(model, source, target)
        assert keys.tokens.tolist() == model.tokenise_target([target])[0]
        # Keys are stored as float16, whatever the model computes in: 2⁻¹¹ each, 6·10⁻⁸ squared.
        assert relative(keys.keys, tap).max() < (1e-4 if half else 1e-7)
        assert relative(asked, tap).max() < (1e-4 if half else 1e-9)
        gold = keys.tokens.long()[:, None].to(log_probs.device)
        torch.testing.assert_close(
            keys.log_probs,
            log_probs.gather(1, gold)[:, 0].cpu(),
            atol=5e-2 if half else 1e-4,
            rtol=1e-2 if half else 1e-4,
        )


def forced_keys(model: BaseModel, sources: list[str], targets: list[str], *, alone: bool) -> list[Tensor]:
    """Per sentence (t, d); alone: each added by itself, as a person does, else imported together."""
    pairs = list(zip(sources, targets, strict=True))
    if alone:
        return [next(iter(model.force_decode([pair]))).keys for pair in pairs]
    return [forced.keys for forced in model.force_decode(pairs)]


@pytest.mark.skipif(not (SHIPPED / "config.json").is_file(), reason="no shipped model here")
def test_what_counts_as_exact_covers_the_rounding_of_half_precision(
    device: torch.device, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints d² / ‖q‖² between a stored key and the query asked later in the same context."""
    sources, targets = (
        (ROOT / "examples" / f"heldout.{lang}").read_text(encoding="utf-8").splitlines()
        for lang in ("en", "de")
    )
    half = BaseModel.load(SHIPPED, device=device, precision="auto")
    single = BaseModel.load(SHIPPED, device="cpu", precision="float32")
    queries = torch.cat(step_queries(half, sources, targets, beam=4))  # (n, d)
    tolerance = SAFE_KNN.exact_tolerance
    keys = {
        "imported, float16": forced_keys(half, sources, targets, alone=False),
        "added alone, float16": forced_keys(half, sources, targets, alone=True),
        "made on a CPU, float32": forced_keys(single, sources, targets, alone=False),
    }
    lines = [f"d² / ‖q‖² of the same context ({len(queries)} tokens on {device}, tolerance {tolerance:.0e}):"]
    worst = 0.0
    for name, made in keys.items():
        error = relative(torch.cat(made), queries)
        worst = max(worst, float(error.max()))
        share = f"99 % {error.quantile(0.99):.1e}"
        lines.append(f"  {name:24} mean {error.mean():.1e}, {share}, max {error.max():.1e}")
    other = nearest_other_context(torch.cat(keys["imported, float16"]), queries)
    lines.append(
        f"  nearest other context    min {other.min():.1e}, 1 % {other.quantile(0.01):.1e}, "
        f"median {other.median():.1e}; below the tolerance: {int((other < tolerance).sum())}"
    )
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert worst < tolerance / 4  # exactness above exp(−1/4) at the worst token of all


def nearest_other_context(keys: Tensor, queries: Tensor) -> Tensor:
    """(n,) d² / ‖q‖² to the nearest key of another context; row i of both is the same context."""
    keys, queries = keys.double().cpu(), queries.double().cpu()
    distances = torch.cdist(queries, keys).square()  # (n, n)
    distances.fill_diagonal_(torch.inf)
    return distances.amin(1) / queries.square().sum(-1)
