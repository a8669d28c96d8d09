"""The training loop: batches in, a trained flat vector of weights out."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from kster.errors import KsterError
from kster.training.batching import DeviceCorpus, plan_epoch
from kster.training.distributed import Workers
from kster.training.loss import smoothed_cross_entropy
from kster.training.network import Network
from kster.training.progress import Progress, clock
from kster.training.schedule import learning_rate
from kster.training.settings import TrainSettings
from kster.training.state import TrainingState, save_checkpoint

_STOP_CHECK = 10  # steps between questions to the other processes whether to stop


@dataclass
class Position:
    """Where in the data a run is: an epoch, and a batch of its plan."""

    epoch: int = 0
    batch: int = 0


@dataclass
class Tally:
    """Sums since the last progress line; the loss stays on the device until then."""

    device: torch.device
    steps: int = 0
    tokens: int = 0
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.nll = torch.zeros((), device=self.device)
        self.norm = torch.zeros((), device=self.device)


class Trainer:
    """One run. `evaluate` is called with the averaged weights in place; it returns dev figures by name."""

    def __init__(
        self,
        settings: TrainSettings,
        network: Network,
        state: TrainingState,
        bias: Tensor | None,
        train: DeviceCorpus,
        repeats: list[tuple[int, float]],
        used: np.ndarray | None,
        workers: Workers,
        progress: Progress,
        facts: dict[str, Any],
    ) -> None:
        self.settings, self.network, self.state, self.bias = settings, network, state, bias
        self.train, self.repeats, self.used = train, repeats, used
        self.workers, self.progress = workers, progress
        self.facts = facts
        self.position = Position()
        self.target_tokens = 0
        self.stopped_by: int | None = None  # a signal
        self.checkpoints = settings.output_directory / "checkpoints"

    def run(self, *, deadline: float | None, evaluate: Callable[[], dict[str, float]]) -> bool:
        """Train until the last step or until `deadline` (monotonic seconds); True when finished."""
        training, report = self.settings.training, self.settings.report
        tally, saved_at = Tally(self.workers.device), time.monotonic()
        batches = self._batches()
        with _interrupts() as interrupted:
            while self.state.step < training.steps:
                self._step(next(batches), tally)
                step = self.state.step
                if step % report.log_every == 0 or step == training.steps:
                    tally = self._report(tally)
                if step % report.dev_every == 0 or step == training.steps:
                    self._evaluate(evaluate)
                    tally = Tally(self.workers.device) if tally.steps == 0 else tally
                if self._must_stop(deadline, interrupted):
                    self._save()
                    if step < training.steps:
                        self.stopped_by = interrupted[0] if interrupted else None
                        return False
                    return True
                if step % report.checkpoint_every == 0 or step == training.steps or self._is_due(saved_at):
                    self._save()
                    saved_at = time.monotonic()
        return True

    def _batches(self) -> Iterator[np.ndarray]:
        """Pair numbers of batch after batch, without end, from the current position on."""
        training = self.settings.training
        while True:
            plan = plan_epoch(
                self.train.lengths,
                self.repeats,
                batch_tokens=training.batch_tokens,
                chunk_pairs=training.chunk_pairs,
                seed=self.settings.seed,
                epoch=self.position.epoch,
                used=self.used,
            )
            if not plan:
                raise KsterError("the corpora's weights leave no training pair")
            while self.position.batch < len(plan):
                self.position.batch += 1
                yield plan[self.position.batch - 1]
            self.position = Position(self.position.epoch + 1, 0)

    def _step(self, pairs: np.ndarray, tally: Tally) -> None:
        """One update from one global batch; each process computes its share of the rows."""
        training, state = self.settings.training, self.state
        tokens = self.train.target_tokens(pairs)
        share = pairs[self.workers.rank :: self.workers.count]
        # Dropout depends on the step alone, not on what was drawn before: a resumed run draws the same.
        torch.manual_seed(_seed(self.settings.seed, state.step, self.workers.rank))
        if len(share):
            with fast_attention(self.workers.device):
                batch = self.train.gather(share)
                loss, nll = smoothed_cross_entropy(
                    self.network.states(state.weights, batch, training=True),
                    batch.positions,
                    state.weights["shared"],
                    self.bias,
                    batch.labels,
                    smoothing=training.label_smoothing,
                    divisor=float(tokens),
                )
                loss.backward()
            tally.nll += nll
        self.workers.sum(state.gradient())
        tally.norm += state.update(learning_rate(training, state.step))
        tally.steps += 1
        tally.tokens += tokens
        self.target_tokens += tokens

    def _report(self, tally: Tally) -> Tally:
        self.workers.sum(tally.nll)
        loss = float(tally.nll) / tally.steps  # waits for the device
        norm = float(tally.norm) / tally.steps
        seconds = time.monotonic() - tally.started
        step, steps = self.state.step, self.settings.training.steps
        rate = learning_rate(self.settings.training, step - 1)
        left = (steps - step) * seconds / tally.steps
        speed = tally.tokens / seconds
        self.progress.say(
            f"step {step:,}/{steps:,}  epoch {self.position.epoch + 1}  lr {rate:.2e}  loss {loss:.4f}  "
            f"gradient {norm:.2f}  {speed:,.0f} target tokens/s  {clock(left)} left"
        )
        figures = {"loss": loss, "lr": rate, "gradient": norm, "tokens_per_second": speed}
        self.progress.scalars(step, {f"train/{name}": value for name, value in figures.items()})
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise KsterError(
                f"the loss is no longer a number at step {step}: a lower training.learning_rate or a longer "
                f"training.warmup_steps may help; checkpoints in {self.checkpoints} were left untouched"
            )
        return Tally(self.workers.device)

    def _evaluate(self, evaluate: Callable[[], dict[str, float]]) -> None:
        self.state.use_average()
        try:
            values = evaluate() if self.workers.is_first else {}
        finally:
            self.state.use_master()
        self.workers.wait()
        if values:
            figures = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
            self.progress.say(f"dev at step {self.state.step:,}: {figures}")
            self.progress.scalars(self.state.step, {f"dev/{name}": value for name, value in values.items()})
            self.facts["dev"] = values

    def _must_stop(self, deadline: float | None, interrupted: list[int]) -> bool:
        if self.workers.count > 1 and self.state.step % _STOP_CHECK:
            return False
        over = deadline is not None and time.monotonic() > deadline
        return self.workers.any(over or bool(interrupted))

    def _is_due(self, saved_at: float) -> bool:
        every = self.settings.report.checkpoint_seconds
        if not every or (self.workers.count > 1 and self.state.step % _STOP_CHECK):
            return False
        return self.workers.any(time.monotonic() - saved_at > every)

    def _save(self) -> None:
        if self.workers.is_first:
            facts = {
                **self.facts,
                "epoch": self.position.epoch,
                "batch": self.position.batch,
                "target_tokens": self.target_tokens,
            }
            save_checkpoint(self.state, self.checkpoints, facts, keep=self.settings.report.keep_checkpoints)
        self.workers.wait()


def dev_loss(
    network: Network,
    state: TrainingState,
    bias: Tensor | None,
    dev: DeviceCorpus,
    *,
    pairs: int,
    batch_tokens: int,
) -> float:
    """Negative log-likelihood per target token of the first `pairs` dev pairs, with the weights in place."""
    usable = readable(dev, pairs, network.config.max_position_embeddings)
    lengths = (dev.lengths[0][usable], dev.lengths[1][usable])
    plan = plan_epoch(
        lengths, [(len(usable), 1.0)], batch_tokens=batch_tokens, chunk_pairs=len(usable), seed=0, epoch=0
    )
    total = torch.zeros((), dtype=torch.float64, device=dev.device)
    with torch.no_grad(), fast_attention(dev.device):
        for chosen in plan:
            batch = dev.gather(usable[chosen])
            _, nll = smoothed_cross_entropy(
                network.states(state.weights, batch, training=False),
                batch.positions,
                state.weights["shared"],
                bias,
                batch.labels,
                smoothing=0.0,
                divisor=1.0,
            )
            total += nll
    return float(total) / max(1, dev.target_tokens(usable))


def readable(dev: DeviceCorpus, pairs: int, longest: int) -> np.ndarray:
    """Those of the first `pairs` dev pairs whose sides have at most `longest` tokens; there must be one."""
    fits = (dev.lengths[0] <= longest) & (dev.lengths[1] <= longest)
    found = np.flatnonzero(fits[:pairs])
    if not len(found):
        raise KsterError(
            f"dev: every pair is longer than the {longest} tokens that the network reads "
            f"(the first {min(pairs, len(dev)):,} were looked at)"
        )
    return found


@contextlib.contextmanager
def fast_attention(device: torch.device) -> Iterator[None]:
    """No cuDNN attention: it compiles a graph for every batch shape, and ours change all the time. On a CPU
    plain products: for sentences they train a quarter faster than the fused kernel's backward pass."""
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION] if device.type != "cpu" else []
    with sdpa_kernel([*fused, SDPBackend.MATH]):
        yield


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM, so that the loop can stop behind a finished step with a checkpoint."""
    received: list[int] = []
    try:
        previous = {
            number: signal.signal(number, lambda got, _frame: received.append(got))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
    except ValueError:  # not the main thread: the host program owns the signals
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(list(parts)).generate_state(1, np.uint64)[0] >> np.uint64(1))
