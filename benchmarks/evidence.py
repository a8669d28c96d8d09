"""What else could the kernel know about a neighbour? The loss of held-out text, for each further evidence.

    python benchmarks/evidence.py --data DIR --model models/en-de --domain koran --domain docs_adobe

The kernel of the smoother that the model carries gets a learned term, log Kⱼ = −dⱼ/σ + g(evidenceⱼ), g linear
and 0 at first; both are fitted on a memory of the domain. Prints nats a token on development text of the
domain, and on news, which a memory should leave alone. What is asked of a neighbour:

    expected      log p_m of its token here, and how much less that is than log p_m of the model's favourite
    similar       how much its source sentence resembles this one (which distances know already)
    own context   log p_m of its token where it comes from: what the base model knew there, too
    continues     whether its entry follows one that was found a step before
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor, nn

from corpora import pairs_of
from kster import BaseModel, Memory
from kster.formats import Pair
from kster.smoothing import FitSettings, Smoother
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.evidence import LOG_PROB_FLOOR
from kster.smoothing.fitting.cache import Examples, FitCache
from kster.smoothing.fitting.dropout import drop
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.general import general_text
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs, cache_segments
from kster.smoothing.fitting.loss import gold_log_probs, token_losses
from kster.smoothing.fitting.optimisation import choose_examples, neighbours_without_own, smooth_examples
from kster.smoothing.kernels import log_kernel
from machine import describe

MEMORIES = {"koran": "koran/train", "it": "it/train", "docs_adobe": "docs_adobe/train"}
KINDS = {"expected": 2, "similar": 1, "own context": 1, "continues": 1}  # how many numbers each has
VARIANTS: tuple[tuple[str, ...], ...] = ((), *((kind,) for kind in KINDS), tuple(KINDS))
FOUND_BEFORE = 16  # neighbours of the token before that an entry may continue
NO_ENTRY = -5  # continued by none


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens that were looked up, one sentence's after the other's."""

    cache: FitCache
    before: Tensor  # (n, FOUND_BEFORE) int64: the ids found for the token before, NO_ENTRY for none

    @classmethod
    def of(cls, cache: FitCache, end: int) -> Text:
        """end: the token that ends a sentence."""
        ids = cache.ids.long().masked_fill(~neighbours_without_own(cache), NO_ENTRY)[:, :FOUND_BEFORE]
        before = torch.full_like(ids, NO_ENTRY)
        before[1:] = ids[:-1].masked_fill((cache.gold[:-1] == end).unsqueeze(-1), NO_ENTRY)
        return cls(cache, before)


@dataclass(frozen=True, slots=True)
class Domain:
    """A memory of one domain, what is learned from and what judges."""

    table: KeyTable
    log_probs: Tensor  # (N,) of an entry's token where it comes from, by the entry's id
    own: Text
    general: Text
    judged: dict[str, Text]

    def evidence(self, kinds: Sequence[str], examples: Examples, part: FitCache, before: Tensor) -> Tensor:
        """(n, k, numbers), each about as large as 1. before: (n, FOUND_BEFORE)."""
        here = examples.base.log_probs_at_values.clamp_min(LOG_PROB_FLOOR)  # (n, k)
        favourite = part.max_log_prob.clamp_min(LOG_PROB_FLOOR).unsqueeze(-1)  # (n, 1)
        ids = examples.ids
        known: dict[str, Callable[[], list[Tensor]]] = {
            "expected": lambda: [here / 4, (here - favourite) / 4],
            "similar": lambda: [2 * examples.similarity.float()],
            "own context": lambda: [self.log_probs[ids].clamp_min(LOG_PROB_FLOOR) / 4],
            "continues": lambda: [(ids.unsqueeze(-1) == before.unsqueeze(1) + 1).any(-1).float()],
        }
        return torch.stack([number for kind in kinds for number in known[kind]()], dim=-1)


class Run:
    """A fit of the carried smoother together with g."""

    def __init__(self, domain: Domain, carried: Smoother, kinds: Sequence[str], steps: int) -> None:
        self.domain, self.kinds, self.steps = domain, kinds, steps
        self.smoother = copy.deepcopy(carried)
        self.g = nn.Linear(sum(KINDS[kind] for kind in kinds), 1, bias=False) if kinds else None
        if self.g is not None:
            nn.init.zeros_(self.g.weight)

    def losses(self, text: Text, rows: Tensor, seen: Callable[[FitCache], Tensor], *, train: bool) -> Tensor:
        """(n,) of these tokens. seen: which neighbours may be used, (n, K)."""
        part = text.cache.take(rows, torch.device("cpu"))
        examples = choose_examples(self.smoother, part, seen(part), self.domain.table)
        term = torch.zeros(())
        if self.g is not None:
            numbers = self.domain.evidence(self.kinds, examples, part, text.before[rows])
            term = self.g(numbers).squeeze(-1)  # (n, k)
        with added_to_kernels(term):
            smoothing = smooth_examples(self.smoother, examples, self.domain.table)
        if train:
            return token_losses(examples.base, examples.values, examples.found, smoothing)
        return -gold_log_probs(examples.base, examples.values, smoothing)

    def fit(self, settings: FitSettings) -> None:
        generator = torch.Generator().manual_seed(settings.seed)
        groups = [{"params": list(self.smoother.parameters()), "lr": settings.learning_rate}]
        if self.g is not None:
            groups.append({"params": list(self.g.parameters()), "lr": 30 * settings.learning_rate})
        adam = torch.optim.Adam(groups)
        decay = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, total_iters=self.steps)

        def own_seen(part: FitCache) -> Tensor:
            kept = torch.rand(len(part), generator=generator) < settings.keep_rate
            return drop(part.ids >= 0, part.related, kept, settings.dropout)

        shares = (
            (self.domain.own, own_seen, 1.0 - settings.general_share),
            (self.domain.general, neighbours_without_own, settings.general_share),
        )
        self.smoother.train()
        for _ in range(self.steps):
            losses = []
            for text, seen, share in shares:
                count = min(len(text.cache), round(settings.batch_tokens * share))
                rows = torch.randperm(len(text.cache), generator=generator)[:count]
                losses.append(self.losses(text, rows, seen, train=True))
            adam.zero_grad(set_to_none=True)
            torch.cat(losses).mean().backward()
            adam.step()
            decay.step()
        self.smoother.eval()

    @torch.no_grad()
    def judge(self, text: Text) -> float:
        """Nats a token."""
        parts = torch.arange(len(text.cache)).split(4096)
        found = [self.losses(text, rows, neighbours_without_own, train=False) for rows in parts]
        return float(torch.cat(found).double().mean())


@contextmanager
def added_to_kernels(term: Tensor) -> Iterator[None]:
    """term: (n, k), or a number."""
    with patch("kster.smoothing.smoother.log_kernel", lambda *known: log_kernel(*known) + term):
        yield


def look_up(model: BaseModel, name: str, options: argparse.Namespace, settings: FitSettings) -> Domain:
    """A memory of segments from all over the corpus, and its development text."""
    languages = (str(model.source_lang), str(model.target_lang))
    pairs = pairs_of(options.data, MEMORIES[name], languages)
    held = pairs[:: max(1, len(pairs) // options.segments)][: options.segments]
    judged = {
        name: pairs_of(options.data, f"{name}/dev", languages, options.lines),
        "news": pairs_of(options.data, "newstest/newstest2013", languages, options.lines // 2),
    }
    (end,) = model.tokenise_target([""])[0][-1:]
    neighbours = over_fetch(settings)
    with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "m", model) as memory:
        memory.import_pairs(held, keys="now")
        entries, segments = memory.entries(), list(memory.segments())
        lookup = Lookup(model, memory, entries)
        learned = [segment.id for segment in segments if segment.id % 5]
        general = general_text(*languages)[: options.lines]
        return Domain(
            table=KeyTable(entries, model.device),
            log_probs=_log_probs(model, entries.ids, [(s.source, s.target) for s in segments]),
            own=Text.of(cache_segments(lookup, learned, neighbours), int(end)),
            general=Text.of(cache_pairs(lookup, general, neighbours), int(end)),
            judged={
                text: Text.of(cache_pairs(lookup, _plain(own), neighbours), int(end))
                for text, own in judged.items()
            },
        )


def _log_probs(model: BaseModel, ids: Tensor, pairs: list[tuple[str, str]]) -> Tensor:
    """log p_m of every entry's token, by the entry's id; entries are in the order of their segments."""
    forced = torch.cat([sentence.log_probs.float() for sentence in model.force_decode(pairs)])
    if len(forced) != len(ids):
        raise SystemExit(f"{len(ids)} entries, but {len(forced)} tokens were read again")
    found = torch.zeros(int(ids.max()) + 1)
    found[ids.long()] = forced
    return found


def _plain(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="<corpus>/<split>.<language>.xz")
    parser.add_argument("--model", required=True)
    parser.add_argument("--domain", action="append", choices=MEMORIES, required=True)
    parser.add_argument("--segments", type=int, default=1500, help="of a memory (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=160, help="of text that judges (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=150, help="of a fit (default: %(default)s)")
    options = parser.parse_args()
    print(describe(segments=options.segments, lines=options.lines, steps=options.steps))
    model, settings = BaseModel.load(options.model), FitSettings(batch_tokens=2048)
    carried = Smoother.load(model.directory / SMOOTHER_DIRECTORY)
    for name in options.domain:
        domain = look_up(model, name, options, settings)
        base = " ".join(f"{text} {own.cache.base_nll:.4f}" for text, own in domain.judged.items())
        print(f"\n{'base model':40} {base}", flush=True)
        for kinds in VARIANTS:
            run = Run(domain, carried, kinds, options.steps)
            run.fit(settings)
            losses = " ".join(f"{text} {run.judge(own):.4f}" for text, own in domain.judged.items())
            weights = "" if run.g is None else [round(w, 2) for w in run.g.weight[0].tolist()]
            print(f"{', '.join(kinds) or 'as it is':40} {losses} {weights}", flush=True)


if __name__ == "__main__":
    main()
