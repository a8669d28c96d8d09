"""The smoother: from a query and its neighbours to kernel weights and a mixing weight (section 3).

Smoother(SmootherSettings(dimension=512))                                   # KSTER, both learned
Smoother(SmootherSettings(learn_bandwidth=False, learn_weight=False, …))    # kNN-MT, both fixed
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional as F

from kster.errors import KsterError
from kster.files import locked, write_atomically
from kster.memory.search.device_shortlists import DeviceShortlists
from kster.memory.search.retriever import Searcher
from kster.memory.search.shortlist_retriever import ShortlistRetriever
from kster.model.layers import SMALLEST, has_instructions_for
from kster.smoothing.bandwidth import FixedBandwidth, LearnedBandwidth
from kster.smoothing.evidence import (
    BANDWIDTH_EVIDENCE_SIZE,
    WEIGHT_EVIDENCE_SIZE,
    agreement_evidence,
    distance_evidence,
)
from kster.smoothing.exact_match import exact_match_rule
from kster.smoothing.example_distribution import first_of_its_value, log_example_probs, same_value
from kster.smoothing.geometry import Geometry, gaps
from kster.smoothing.kernels import log_kernel, normalise
from kster.smoothing.metric import Metric
from kster.smoothing.mixing_weight import FixedMixingWeight, LearnedMixingWeight, LogShares
from kster.smoothing.settings import SmootherSettings
from kster.smoothing.source_similarity import EVIDENCE_SIZE, SourceSimilarity, similarity_evidence
from kster.smoothing.source_words import OLDER, WordEvidence, hold_off, may_tell, raise_taught

if TYPE_CHECKING:
    from kster.memory import Neighbours

SETTINGS_FILE = "smoother.json"
WEIGHTS_FILE = "smoother.safetensors"  # where `smoother.json` names no other
WEIGHTS_PATTERN = "smoother-*.safetensors"
WEIGHTS_KEY = "weights"  # in `smoother.json`, beside the settings: the name of the weights' file
CHECKSUM_KEY = "checksum"  # … and the checksum of all the rest
LOAD_ATTEMPTS = 3  # a save in another process may remove the weights between reading one file and the other


KeyPool = Callable[[Tensor], Tensor]
"""Weights (n, k) → Σⱼ weightsⱼ kⱼ, (n, d): lets a fit pool keys without gathering (n, k, d) of them."""


@dataclass(slots=True)
class Smoothing:
    """What the smoother decided for each of n queries."""

    log_weights: Tensor  # (n, k) float32: log wⱼ, the normalised kernel weights; −inf where nothing was found
    bandwidth: Tensor  # (n,) float32: σ
    log_mixing_weight: Tensor  # (n,) float32: log λ; −inf where no neighbour was found
    log_base_weight: Tensor  # (n,) float32: log(1 − λ), accurate where λ rounds to 1; exactly 0 where λ is 0
    log_example_probs: Tensor | None = None  # (n, k) log p_e of the neighbours' values, where it is known
    first_of_its_value: Tensor | None = None  # (n, k) bool of all neighbours, where it is known

    @property
    def mixing_weight(self) -> Tensor:
        """(n,) λ; exactly 0 where no neighbour was found."""
        return self.log_mixing_weight.exp()


def pool_of(keys: Tensor) -> KeyPool:
    """keys: (n, k, d)."""
    n, k, dimension = keys.shape
    on_cpu = keys.device.type == "cpu" and not torch.is_grad_enabled()
    if on_cpu and dimension >= SMALLEST and has_instructions_for("bfloat16"):
        # As they are stored: the mixing network rounds what it reads by more (`fastest`).
        flat, places = keys.flatten(0, 1), torch.arange(n * k).view(n, k)
        return lambda weights: F.embedding_bag(
            places, flat, mode="sum", per_sample_weights=weights.to(flat.dtype)
        ).float()
    whole = keys.float()
    return lambda weights: torch.bmm(weights.unsqueeze(1), whole).squeeze(1)


class Smoother(nn.Module):
    """Kernel, bandwidth and mixing weight, each part learned or fixed."""

    def __init__(self, settings: SmootherSettings) -> None:
        super().__init__()
        self.settings = settings
        confidence = settings.features != "paper"
        dimension = 0 if settings.scale_free else settings.dimension or 0  # checked by the settings
        self.bandwidth: LearnedBandwidth | FixedBandwidth
        self.mixing_weight: LearnedMixingWeight | FixedMixingWeight
        if settings.learn_bandwidth:
            extra = BANDWIDTH_EVIDENCE_SIZE if confidence else 0
            self.bandwidth = LearnedBandwidth(dimension, settings.initial_bandwidth, extra)
        else:
            power = 2 if settings.kernel == "gaussian" else 1
            self.bandwidth = FixedBandwidth(
                settings.initial_bandwidth, relative=settings.relative, power=power
            )
        if settings.learn_weight:
            extra = WEIGHT_EVIDENCE_SIZE if confidence else 0
            extra += EVIDENCE_SIZE if confidence and settings.similarity else 0
            self.mixing_weight = LearnedMixingWeight(dimension, settings.mixing_weight, extra)
        else:
            self.mixing_weight = FixedMixingWeight(settings.mixing_weight, settings.gate)
        self.metric = Metric(settings.dimension or 0, settings.metric) if settings.metric else None
        self.similarity = SourceSimilarity() if settings.similarity else None
        self.exact_match = exact_match_rule(settings.exact_match, settings.exact_tolerance)

    @property
    def k(self) -> int:
        """How many neighbours `forward` weighs."""
        return self.settings.k

    def neighbours(self, memory: Searcher, queries: Tensor) -> Neighbours:
        """The k nearest by the smoother's own measure.

        Args:
            memory: what is searched.
            queries: (n, d).

        Returns:
            What `forward` is given.
        """
        measures_at_once = self.similarity is not None and self.metric is None
        if measures_at_once and isinstance(memory, ShortlistRetriever | DeviceShortlists):
            return memory.search_measured(queries, self.settings.candidates, self.k, self.similarity)
        found = memory.search(queries, self.settings.candidates)
        if not self.measures:
            return found
        distances = self.measured(queries, found.keys, found.distances, found.similarity)
        return found.measured(distances.masked_fill(found.ids < 0, torch.inf), self.k)

    @property
    def measures(self) -> bool:
        """Whether its distances differ from those that an index searches by."""
        return self.metric is not None or self.similarity is not None

    def measured(
        self, queries: Tensor, keys: Tensor | None, distances: Tensor, similarity: Tensor | None
    ) -> Tensor:
        """The smoother's own distances.

        Args:
            queries: (n, d).
            keys: (n, c, d), where there is a metric.
            distances: (n, c) plain ones.
            similarity: (n, c) of the source sentences; None where it is not known.

        Returns:
            (n, c) distances.
        """
        if self.metric is not None:
            assert keys is not None
            distances = self.metric(queries, keys)
        if self.similarity is not None and similarity is not None:
            distances = self.similarity(distances, similarity)
        return distances

    @property
    def needs_base_log_probs(self) -> bool:
        """Whether `forward` must be given the base model's log-probabilities."""
        return self.settings.features != "paper" and self.settings.learn_weight

    def forward(
        self,
        queries: Tensor,
        neighbours: Neighbours,
        base_log_probs_at_values: Tensor | None = None,
        base_max_log_prob: Tensor | None = None,
        focus: Tensor | None = None,
    ) -> Smoothing:
        """Weigh the neighbours of each query and decide how much to believe them.

        Args:
            queries: (n, d), any floating type.
            neighbours: (n, k), as `self.neighbours` returns them.
            base_log_probs_at_values: (n, k) log p_m of the neighbours' values.
            base_max_log_prob: (n,) log p_m of the most probable token. Both of these are needed only if
                `needs_base_log_probs`.
            focus: (n, w) how much of the decoder's attention goes to each word of the source; None where it
                is not known.

        Returns:
            What each neighbour weighs, and how much all of them are believed.
        """
        words = older = None
        if focus is not None and neighbours.words is not None and neighbours.rare is not None:
            older = neighbours.words >= 0
            if may_tell(focus, neighbours.rare, neighbours.similarity):
                words = WordEvidence.of(focus, neighbours.words, neighbours.rare)

        return self.smooth(
            queries,
            neighbours.distances,
            neighbours.values,
            neighbours.ids,
            pool_of(neighbours.keys),
            base_log_probs_at_values,
            base_max_log_prob,
            plain=neighbours.plain,
            similarity=neighbours.similarity,
            words=words,
            older=older,
        )

    def smooth(
        self,
        queries: Tensor,
        distances: Tensor,
        values: Tensor,
        ids: Tensor,
        pool: KeyPool,
        base_log_probs_at_values: Tensor | None = None,
        base_max_log_prob: Tensor | None = None,
        *,
        plain: Tensor | None = None,
        similarity: Tensor | None = None,
        words: WordEvidence | None = None,
        older: Tensor | None = None,
    ) -> Smoothing:
        """As `forward`, with the neighbours in parts.

        Args:
            queries, base_log_probs_at_values, base_max_log_prob: as for `forward`.
            distances, values: (n, k) of the neighbours.
            ids: (n, k) entry ids, -1 where nothing was found.
            pool: what makes a mean of the neighbours' keys.
            plain: (n, k) ‖q − k‖, where distances are learned: what is exact is not learned.
            similarity: (n, k) of the source sentences.
            words: what is known of the words of these sentences.
            older: (n, k) bool, whether a later segment has the same source.

        Returns:
            As `forward`.

        Raises:
            ValueError: if the base model's log-probabilities are needed and missing.
        """
        queries, found = queries.float(), gaps(ids >= 0)
        geometry = Geometry.of(queries, distances, found)
        exact = self._exact(geometry, plain)
        closeness = same = distinct = None  # (n, evidence), (n, k, k), (n, k)
        if self.settings.features != "paper":
            same = same_value(values)
            distinct = first_of_its_value(values, found, same)
            closeness = distance_evidence(geometry, distinct)
        bandwidth = self._bandwidth(queries, geometry, pool, closeness)
        log_kernels = log_kernel(self.settings.kernel, geometry.distances, bandwidth)  # (n, k)
        if self.exact_match is not None and exact is not None:
            superseded = self.exact_match.superseded(exact, ids, values)  # (n, k)
            log_kernels = self.exact_match.sharpen(log_kernels, exact, superseded)
        if self.similarity is None or similarity is None:
            words = older = None
        if older is not None:
            log_kernels = torch.add(log_kernels, older, alpha=-OLDER)
        log_weights = normalise(log_kernels, found)  # (n, k)

        example = None
        if isinstance(self.mixing_weight, FixedMixingWeight):
            shares = self.mixing_weight(geometry.relative_nearest)
        else:
            evidence, weights = closeness, log_weights.exp()
            if closeness is not None:
                if base_log_probs_at_values is None or base_max_log_prob is None:
                    raise ValueError("a smoother with confidence features needs the base log-probabilities")
                example = log_example_probs(log_weights, values, same)  # (n, k)
                agreement = agreement_evidence(example, weights, base_log_probs_at_values, base_max_log_prob)
                parts = [closeness, agreement]
                if self.similarity is not None:
                    known = torch.zeros_like(distances) if similarity is None else similarity
                    parts.append(similarity_evidence(known, weights, found))
                evidence = torch.cat(parts, dim=-1)
            if self.settings.scale_free:
                shares = self.mixing_weight(None, None, evidence)
            else:
                shares = self.mixing_weight(queries, pool(weights), evidence)
        if words is not None:
            shares = raise_taught(log_weights, shares, words.taught, words.missing)
        if self.exact_match is not None and exact is not None:
            shares = self.exact_match.raise_weight(shares, exact)
        if words is not None and similarity is not None:
            log_weights, shares = hold_off(log_weights, shares, words.missing, similarity)
            example = None  # weights have changed
        if geometry.any_found is not None:  # λ and log(1 − λ) are exactly 0 where there is nothing to believe
            nothing = ~geometry.any_found
            base = shares.base.masked_fill(nothing, 0.0)
            shares = LogShares(shares.examples.masked_fill(nothing, -torch.inf), base)
        first = distinct if found is None else None
        return Smoothing(log_weights, bandwidth, shares.examples, shares.base, example, first)

    def _exact(self, geometry: Geometry, plain: Tensor | None) -> Geometry | None:
        """By the plain distances, (n, k), where a context may be exact; None where none is."""
        if self.exact_match is None:
            return None
        exact = geometry if plain is None else geometry.by(plain)
        nearest = exact.nearest
        if exact.any_found is not None:
            nearest = torch.where(exact.any_found, nearest, torch.inf)
        return exact if self.exact_match.may_matter(nearest, exact.query_length) else None

    def _bandwidth(
        self, queries: Tensor, geometry: Geometry, pool: KeyPool, closeness: Tensor | None
    ) -> Tensor:
        """σ, (n,)."""
        if isinstance(self.bandwidth, FixedBandwidth):
            return self.bandwidth(queries)
        if self.settings.scale_free:  # in units of ‖q‖, or ‖q‖² for the Gaussian kernel
            power = 2 if self.settings.kernel == "gaussian" else 1
            return self.bandwidth(None, None, closeness) * geometry.query_length.pow(power)
        found = geometry.found
        if found is None:
            shares = torch.full_like(geometry.distances, 1.0 / geometry.distances.shape[1])  # (n, k)
        else:
            shares = found.float() / found.sum(dim=-1, keepdim=True).clamp_min(1)
        return self.bandwidth(queries, pool(shares), closeness)  # of the query and the mean key

    def save(self, directory: Path | str) -> None:
        """Write `smoother.json` and the weights, under a name made of their content.

        `smoother.json` names its weights and is replaced when they are on the disk: at any moment, and after
        any interruption, the directory holds the earlier smoother or this one, complete.

        Args:
            directory: Where to.
        """
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        data = safetensors.torch.save(weights)
        name = _name_of(data)
        settings = self.settings.to_json() | {WEIGHTS_KEY: name}
        text = json.dumps(settings | {CHECKSUM_KEY: _checksum(settings)}, indent=2) + "\n"
        with locked(directory):  # another fit that ends now must not delete these weights
            write_atomically(directory / name, data)
            write_atomically(directory / SETTINGS_FILE, text.encode())
            for old in [*directory.glob(WEIGHTS_PATTERN), directory / WEIGHTS_FILE]:
                if old.name != name:
                    old.unlink(missing_ok=True)

    @classmethod
    def load(cls, directory: Path | str, *, dimension: int | None = None) -> Smoother:
        """Read what `save` wrote.

        Args:
            directory: Where it is.
            dimension: The length of keys it must be for.

        Returns:
            The smoother, on the CPU.

        Raises:
            KsterError: If it is missing, damaged, or for keys of another length.
        """
        settings_path = Path(directory) / SETTINGS_FILE
        for attempt in range(1, LOAD_ATTEMPTS + 1):
            settings, weights_path = _read_settings(settings_path)
            try:
                weights = weights_path.read_bytes()
                break
            except FileNotFoundError:
                if attempt == LOAD_ATTEMPTS:
                    raise KsterError(f"{weights_path}: the smoother's weights are missing.") from None
        if weights_path.name not in (WEIGHTS_FILE, _name_of(weights)):
            raise KsterError(f"{weights_path}: the smoother's weights are not what was written (checksum).")
        if dimension is not None and settings.dimension not in (None, dimension) and settings.learned:
            raise KsterError(
                f"{settings_path}: this smoother is for keys of length {settings.dimension}, "
                f"the model's have {dimension}. Fit it again with this model."
            )
        smoother = cls(settings)
        try:
            smoother.load_state_dict(safetensors.torch.load(weights))
        except (RuntimeError, SafetensorError) as error:
            raise KsterError(
                f"{weights_path}: not the weights that {SETTINGS_FILE} describes ({error})."
            ) from None
        return smoother.eval()


def _name_of(weights: bytes) -> str:
    """The name of the file that holds these weights: their checksum is in it."""
    return WEIGHTS_PATTERN.replace("*", hashlib.sha256(weights).hexdigest()[:16])


def _checksum(settings: dict[str, Any]) -> str:
    """Of everything in `smoother.json` but the checksum itself."""
    rest = {name: value for name, value in settings.items() if name != CHECKSUM_KEY}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:16]


def _read_settings(path: Path) -> tuple[SmootherSettings, Path]:
    """The settings of `smoother.json`, and where its weights lie."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KsterError(f"{path.parent}: no smoother here ({path.name} is missing).") from None
    except ValueError as error:
        raise KsterError(f"{path}: not valid JSON ({error}).") from None
    weights = WEIGHTS_FILE
    if isinstance(data, dict):
        if data.pop(CHECKSUM_KEY, known := _checksum(data)) != known:
            raise KsterError(f"{path}: the settings are not what was written (checksum).")
        weights = data.pop(WEIGHTS_KEY, WEIGHTS_FILE)
        if weights != WEIGHTS_FILE and not (isinstance(weights, str) and fnmatch(weights, WEIGHTS_PATTERN)):
            raise KsterError(
                f"{path}: {WEIGHTS_KEY} is {weights!r}; accepted: a name like {WEIGHTS_PATTERN}."
            )
    return SmootherSettings.from_json(data, str(path)), path.parent / Path(weights).name
