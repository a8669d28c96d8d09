"""What the learning is worth (`ablation`, `k`, `dropout`, `kernels`), and how to fit (`recipes`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

import torch

from experiments import figures
from experiments.budget import Budget
from experiments.data import Slice
from experiments.domain_adaptation import DomainAdaptation
from experiments.domains import (
    GENERAL,
    MIXED,
    NEWS_DEV,
    dev_slice,
    domain_setting,
    mixed_setting,
)
from experiments.engine import Engine
from experiments.experiment import (
    GENERAL_AVERAGE,
    SPECIFIC_AVERAGE,
    Block,
    Column,
    Experiment,
    Paper,
    Table,
    by_domain_and_mixed,
    columns,
    mixed,
    paper_rows,
)
from experiments.one_memory import OneMemory
from experiments.pipeline import Pipeline
from experiments.results import Section
from experiments.systems import BASE, KNN, Knn, System, kster, kster_as_published
from experiments.word_classes import smoothed
from kster.smoothing.fitting.report import Distribution

FITTED = ("koran", "law")


class Ablation(Experiment):
    """All begin with the k, σ and λ of the first row, without the exact-match rule: only learning differs."""

    name = "ablation"
    summary = "What learning the kernel and the mixing weight each bring."
    paper: ClassVar[Paper] = {
        "en-de": paper_rows(
            "general, average specific",
            {
                "None": (24.72, 33.08),
                "Kernel": (26.06, 33.40),
                "Weight": (27.80, 34.02),
                "Both": (27.74, 34.38),
            },
        ),
        "de-en": paper_rows(
            "general, average specific",
            {
                "None": (25.87, 36.64),
                "Kernel": (27.89, 37.37),
                "Weight": (31.88, 37.19),
                "Both": (31.94, 37.61),
            },
        ),
    }

    def table(self, budget: Budget) -> Table:
        learned = {"Kernel": (True, False), "Weight": (False, True), "Both": (True, True)}
        systems = [KNN.at(system="None")]
        for name, (bandwidth, weight) in learned.items():
            system = kster(
                budget, from_knn=True, exact_match=None, learn_bandwidth=bandwidth, learn_weight=weight
            )
            systems.append(system.at(system=name))
        return mixed(tuple(systems), budget.for_figures, baseline="None")


class Neighbours(Experiment):
    name = "k"
    summary = "How many neighbours."

    def table(self, budget: Budget) -> Table:
        budget = budget.for_figures
        systems = tuple(
            system
            for k in budget.ks
            for system in (Knn(coordinates={"system": "kNN-MT", "k": k}, k=k), kster(budget, k=k).at(k=k))
        )
        blocks = [
            Block(domain_setting(domain, budget), systems, columns(domain, budget=budget, memory=domain))
            for domain in budget.domains
        ]
        tests = columns(GENERAL, *budget.domains, budget=budget, memory=MIXED, prefix="mixed ")
        blocks.append(Block(mixed_setting(budget), systems, tests))
        averages = {"average DAMT": budget.domains, "average MDMT": tuple(column.name for column in tests)}
        return Table(tuple(blocks), averages, baseline=f"kNN-MT k={budget.ks[-1]}")

    def draw(self, section: Section) -> None:
        curves = {
            f"{system}, {column.removeprefix('average ')}": curve
            for column in ("average DAMT", "average MDMT")
            for system, curve in section.scored.over_rows("k", column).items()
        }
        title = f"Number of neighbours, {section.direction}"
        section.figures["k"] = figures.lines(title, curves, "k", "average BLEU", log_x=True)


class Dropout(Experiment):
    name = "dropout"
    summary = "Which neighbours a fit may not see."
    paper: ClassVar[Paper] = {  # a figure about these, which its tables have, too
        direction: {
            ours: {
                column: OneMemory.paper[direction][theirs][column]
                for column in ("average specific", "general", "koran", "it", "law")
            }
            for ours, theirs in (("Base", "Base"), ("nearest dropped", "KSTER"))
        }
        for direction in ("en-de", "de-en")
    }

    def table(self, budget: Budget) -> Table:
        systems = (
            BASE,
            kster(budget, dropout="none").at(system="no dropout"),
            kster(budget, dropout="nearest", keep_rate=0.0).at(system="nearest dropped"),
            kster(budget, dropout="provenance").at(system="provenance-aware"),
        )
        return mixed(systems, budget.for_figures, baseline="nearest dropped")


class Kernels(Experiment):
    """Both from the same start: the smoother that the models carry is Laplacian."""

    name = "kernels"
    summary = "Gaussian and Laplacian; the distributions of σ and λ."
    # Its Gaussian kernel is in the ablation; the Laplacian one in the table of domain adaptation, which says
    # so, and in that of several domains, whose KSTER is not the ablation's.
    paper: ClassVar[Paper] = {
        direction: {
            "Gaussian": {
                "mixed general": Ablation.paper[direction]["Both"]["general"],
                "average mixed specific": Ablation.paper[direction]["Both"]["average specific"],
            },
            "Laplacian": {
                **{
                    column: DomainAdaptation.paper[direction]["KSTER"][column]
                    for column in ("average specific", "average general", "koran", "it", "law")
                },
                **{
                    f"mixed {column}": OneMemory.paper[direction]["KSTER"][column]
                    for column in ("general", "koran", "it", "law")
                },
                "average mixed specific": OneMemory.paper[direction]["KSTER"]["average specific"],
            },
        }
        for direction in ("en-de", "de-en")
    }

    def table(self, budget: Budget) -> Table:
        systems = tuple(
            kster(budget, kernel=kernel, start="tuned").at(system=kernel.capitalize())
            for kernel in ("gaussian", "laplacian")
        )
        return by_domain_and_mixed(systems, systems, budget.for_figures, baseline="Gaussian")

    def measure(self, pipeline: Pipeline, budget: Budget) -> dict[str, Any]:
        """σ and λ of each kernel's smoother for the mixed memory, on the reference translations."""
        block = self.table(budget).blocks[-1]
        found: dict[str, Any] = {}
        for system in block.systems:
            engine = system.engine(pipeline, block.setting, budget)
            for column in block.columns:
                identity = [pipeline.identity(engine), str(column.test)]
                measure = partial(_distributions, pipeline, engine, column.test)
                of_kernel = found.setdefault(system.name, {})
                of_kernel[column.coordinates["test"]] = pipeline.measured("distributions", identity, measure)
        return {"statistics": found}

    def measured_parts(self, budget: Budget) -> list[Callable[[Pipeline], object]]:
        return [partial(self.measure, budget=budget)]

    def draw(self, section: Section) -> None:
        """BLEU as bars, and the distributions of σ and λ of both kernels."""
        super().draw(section)
        section.data["distributions"] = section.statistics
        for kernel, tests in section.statistics.items():
            for what, sign in (("bandwidth", "σ"), ("mixing_weight", "λ")):
                drawn = {test: (found[what]["edges"], found[what]["counts"]) for test, found in tests.items()}
                title = f"{sign}, {kernel} kernel, mixed memory, {section.direction}"
                section.figures[f"{what}-{kernel.lower()}"] = figures.histograms(title, drawn, sign)


def _distributions(pipeline: Pipeline, engine: Engine, test: Slice) -> dict[str, Any]:
    bandwidths, weights = [], []
    for _, _, smoothing in smoothed(pipeline, engine, pipeline.corpora.fitting_pairs(test)):
        bandwidths.append(smoothing.bandwidth.cpu())
        weights.append(smoothing.mixing_weight.cpu())
    return {
        "bandwidth": asdict(Distribution.of(torch.cat(bandwidths))),
        "mixing_weight": asdict(Distribution.of(torch.cat(weights), 0.0, 1.0)),
    }


class Recipes(Experiment):
    """Each row differs from the default in one thing; the paper's recipe follows with its own variants."""

    name = "recipes"
    summary = "How a memory should be fitted, on development text: the choice of defaults."

    def table(self, budget: Budget) -> Table:
        def paper(variant: str, **changes: Any) -> System:
            """With the short schedule of the others."""
            short = {"learning_rate": 1e-3, "label_smoothing": 0.0, **budget.fit}
            return kster_as_published(budget, variant, **(short | changes))

        systems = (
            BASE,
            KNN,
            kster(budget, "default"),
            kster(budget, "default, seed 2", seed=2),
            kster(budget, "default, seed 3", seed=3),
            kster(budget, "nearest dropped", dropout="nearest", keep_rate=0.0),
            kster(budget, "no dropout", dropout="none"),
            kster(budget, "keep rate 0", keep_rate=0.0),
            kster(budget, "label smoothing 0.1", label_smoothing=0.1),
            kster(budget, "no general text", general_share=0.0),
            kster(budget, "start from tuned kNN-MT", start="tuned"),
            kster(budget, "start from tuned kNN-MT, Gaussian kernel", start="tuned", kernel="gaussian"),
            kster(budget, "paper's features", features="paper"),
            kster(budget, "k = 32", k=32),
            paper("paper"),
            paper("paper, seed 2", seed=2),
            paper("paper, label smoothing 0.1", label_smoothing=0.1),
            paper("paper, provenance-aware dropout", dropout="provenance"),
            paper("paper, no dropout", dropout="none"),
        )
        blocks = []
        for domain in FITTED:
            setting, dev = domain_setting(domain, budget), dev_slice(domain)
            tests = (
                Column(f"{domain} dev", dev.at_most(budget.dev_decoded), {"test": domain, "memory": domain}),
                Column(
                    f"general dev with {domain}",
                    NEWS_DEV.at_most(budget.dev_decoded),
                    {"test": "general", "memory": domain},
                ),
            )
            blocks.append(Block(setting, systems, tests))
        averages = {
            SPECIFIC_AVERAGE: tuple(f"{domain} dev" for domain in FITTED),
            GENERAL_AVERAGE: tuple(f"general dev with {domain}" for domain in FITTED),
        }
        return Table(tuple(blocks), averages, baseline="KSTER, default")

    def draw(self, section: Section) -> None:
        """What each recipe gives on average, in the domains and beyond them."""
        scored = section.scored
        averages = (SPECIFIC_AVERAGE, GENERAL_AVERAGE)
        series = {column: [scored.bleu(row, column) for row in scored.rows] for column in averages}
        title = f"Recipes, {section.direction}"
        figure = figures.ranked(title, list(scored.rows), series, "BLEU on development text")
        section.figures["recipes"] = figure
