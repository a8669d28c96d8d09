"""How a smoother is fitted: every choice in one place, with where its default comes from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kster.errors import SettingsError
from kster.smoothing.fitting.dropout import Dropout
from kster.smoothing.kernels import Kernel
from kster.smoothing.settings import Features, SmootherSettings
from kster.typed_settings import FRACTION, POSITIVE, Range, require_valid

Start = Literal["paper", "tuned", "carried"]

SEEDS = 1 << 32  # more than anybody needs, and every random generator takes them


@dataclass(frozen=True, slots=True)
class FitSettings:
    """The defaults suit a translator's memory; `FitSettings.paper()` is the recipe of the paper.

    kernel, k, learn_bandwidth, learn_weight, features, exact_match: see `SmootherSettings`.
    dropout: which neighbours training may not see (`dropout.py`).
    keep_rate: the share of tokens whose neighbours are all kept, so that the fit also sees exact matches.
    label_smoothing: 0 for plain likelihood; the authors' release uses 0.1.
    start: begin at σ and λ of "paper" (100 or 10, and 0.5), or of kNN-MT "tuned" on the training tokens, or
        at the smoother "carried" by the model; tuned if it carries none of this kind.
    bandwidth, mixing_weight: σ and λ to begin at, whatever `start` says; what is not learned stays there.
    steps, batch_tokens, learning_rate: Adam, the rate falling linearly to 0; twice as many for a metric.
    evaluate_every: steps between two looks at the development tokens; patience: how many looks without
        improvement before it stops.
    dev_fraction: the share of segments held out when no development pairs are given.
    max_tokens: at most this many tokens of the memory are trained on (all may be retrieved). None: 60,000
        on a CPU, where force-decoding and searching take most of the time of a fit, 1,000,000 on a GPU.
    general_share: the share of each batch taken from general-domain pairs, when there are any; 0 for none.
        It is more where the memory is too small to fill its own share.
    metric: how many rows the W of a learned distance has (`metric.py`), at most as many as a key is long. It
        is learned after all else and kept if it makes the development tokens more likely; 0 for none.
    similarity: whether neighbours from similar source sentences are nearer (`source_similarity.py`).
    length: whether a length penalty is chosen, too, by translating some of the development text.
    calibrate: whether confidences are shifted, too, to how much of the memory's text is translated well.
    """

    kernel: Kernel = "laplacian"
    k: int = 16
    learn_bandwidth: bool = True
    learn_weight: bool = True
    features: Features = "confidence"
    exact_match: float | None = 0.98
    dropout: Dropout = "provenance"
    keep_rate: Annotated[float, FRACTION] = 0.1
    label_smoothing: Annotated[float, FRACTION] = 0.0
    start: Start = "carried"
    bandwidth: float | None = None
    mixing_weight: float | None = None
    steps: Annotated[int, Range(1)] = 400
    batch_tokens: Annotated[int, Range(1)] = 4096
    learning_rate: Annotated[float, POSITIVE] = 1e-3
    evaluate_every: Annotated[int, Range(1)] = 20
    patience: Annotated[int, Range(1)] = 5
    dev_fraction: Annotated[float, Range(0, 1, ends="()")] = 0.08
    max_tokens: Annotated[int | None, Range(1)] = None
    general_share: Annotated[float, FRACTION] = 0.3
    metric: Annotated[int, Range(0)] = 0
    similarity: bool = True
    length: bool = True
    calibrate: bool = True
    seed: Annotated[int, Range(0, SEEDS - 1)] = 1

    @classmethod
    def paper(cls, **changes: Any) -> FitSettings:
        """The paper's method: its networks, dropout and start, and the schedule of the authors' release.

        30,000 steps of 32,000 tokens are for a GPU; give fewer `steps` elsewhere.

        Args:
            changes: Settings that differ from it.

        Returns:
            The settings.
        """
        recipe: dict[str, Any] = {
            "features": "paper",
            "exact_match": None,
            "dropout": "nearest",
            "keep_rate": 0.0,
            "label_smoothing": 0.1,
            "start": "paper",
            "steps": 30_000,
            "batch_tokens": 32_000,
            "learning_rate": 2e-4,
            "evaluate_every": 500,
            "patience": 60,  # the best of all steps: it does not stop early
            "general_share": 0.0,
            "similarity": False,
            "length": False,
            "calibrate": False,
        }
        return cls(**(recipe | changes))

    def __post_init__(self) -> None:
        require_valid(self, "fit settings")
        self.smoother(dimension=1)  # checks what the two have in common
        if not (self.learn_bandwidth or self.learn_weight):
            raise SettingsError("Nothing to fit: learn_bandwidth and learn_weight are both off. Use tune.")

    def smoother(
        self, dimension: int, bandwidth: float | None = None, mixing_weight: float = 0.5
    ) -> SmootherSettings:
        """The settings of the smoother that is fitted.

        Args:
            dimension: d, the length of keys.
            bandwidth: The σ to start from, unless these settings name one.
            mixing_weight: The λ to start from, unless these settings name one.

        Returns:
            The smoother's settings.
        """
        return SmootherSettings(
            kernel=self.kernel,
            k=self.k,
            dimension=dimension,
            learn_bandwidth=self.learn_bandwidth,
            learn_weight=self.learn_weight,
            bandwidth=bandwidth if self.bandwidth is None else self.bandwidth,
            mixing_weight=mixing_weight if self.mixing_weight is None else self.mixing_weight,
            features=self.features,
            exact_match=self.exact_match,
            similarity=self.similarity,
        )  # without a metric: that comes when all else is fitted

    def to_json(self) -> dict[str, Any]:
        """The settings as a report has them.

        Returns:
            All of them; σ and λ to begin at, and a metric, only where they are given.
        """
        unset = {"bandwidth": None, "mixing_weight": None, "metric": 0}
        settings = dataclasses.asdict(self)
        return {name: value for name, value in settings.items() if name not in unset or value != unset[name]}
