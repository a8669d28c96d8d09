"""One memory of general and domain text for all: `mdmt`, `unseen` and `tradeoff`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from experiments import figures
from experiments.budget import Budget
from experiments.data import Slice
from experiments.domains import MIXED, mixed_memory, mixed_setting
from experiments.experiment import (
    SPECIFIC_AVERAGE,
    Block,
    Experiment,
    Paper,
    Table,
    columns,
    mixed,
    paper_rows,
)
from experiments.results import Section
from experiments.systems import (
    ADAPTIVE_KNN,
    BASE,
    JOINT_FROM_SCRATCH,
    JOINT_TRAINING,
    KNN,
    ROBUST_KNN,
    SK_MT,
    Knn,
    System,
    kster,
    kster_as_published,
)
from kster.smoothing import SmootherSettings

_PAPER_COLUMNS = "general, law, medical, koran, it, subtitles, average specific"


class OneMemory(Experiment):
    """Also with a large general memory, searched in place of the other when everything has been learned."""

    name = "mdmt"
    summary = "One memory of general and domain text for all."
    paper: ClassVar[Paper] = {
        "en-de": paper_rows(
            _PAPER_COLUMNS,
            {
                "Base": (27.20, 33.36, 30.54, 10.16, 22.99, 20.65, 23.54),
                "Joint-training": (27.25, 45.02, 44.52, 15.43, 34.48, 25.16, 32.92),
                "kNN-MT": (24.72, 51.24, 46.54, 16.29, 29.55, 21.80, 33.08),
                "KSTER": (27.69, 53.04, 49.23, 15.94, 31.82, 22.63, 34.53),
            },
        ),
        "de-en": paper_rows(
            _PAPER_COLUMNS,
            {
                "Base": (31.49, 36.80, 33.36, 11.24, 29.21, 23.13, 26.75),
                "Joint-training": (31.62, 50.95, 47.48, 18.13, 39.57, 27.73, 36.77),
                "kNN-MT": (25.87, 57.38, 50.83, 14.57, 37.56, 22.86, 36.64),
                "KSTER": (31.94, 58.64, 52.79, 15.24, 36.90, 25.15, 37.74),
            },
        ),
    }

    def table(self, budget: Budget) -> Table:
        systems = (
            BASE,
            JOINT_TRAINING,
            JOINT_FROM_SCRATCH,
            KNN,
            ADAPTIVE_KNN,
            ROBUST_KNN,
            SK_MT,
            kster(budget),
            kster(budget, "started from tuned kNN-MT", start="tuned"),
            kster_as_published(budget),
        )
        table = mixed(systems, budget)
        large = mixed_memory(budget, budget.large_general_memory, keys_on_demand=True)
        variant = f"{budget.large_general_memory:,} general pairs"
        searched = Block(
            replace(mixed_setting(budget), searched=large),
            tuple(system.at(variant=variant) for system in (KNN, kster(budget))),
            table.blocks[0].columns,
        )
        return replace(table, blocks=(*table.blocks, searched))

    def also_reads(self, budget: Budget) -> list[Slice]:
        return list(mixed_memory(budget, budget.scratch_general).slices)


class Unseen(Experiment):
    name = "unseen"
    summary = "Domains that neither the model nor the memory has seen."
    paper: ClassVar[Paper] = {
        "en-de": paper_rows(
            "bible, qed, average",
            {
                "Base": (12.51, 25.21, 18.86),
                "Joint-training": (12.69, 25.90, 19.30),
                "kNN-MT": (12.35, 23.56, 17.96),
                "KSTER": (13.32, 26.16, 19.74),
            },
        ),
    }

    def table(self, budget: Budget) -> Table:
        systems = (BASE, JOINT_TRAINING, KNN, kster(budget))
        tests = columns(*budget.unseen, budget=budget, memory=MIXED)
        averages = {"average": budget.unseen} if len(budget.unseen) > 1 else {}
        return Table((Block(mixed_setting(budget), systems, tests),), averages, baseline="Base")


class Tradeoff(Experiment):
    """kNN-MT over a grid; bandwidths are relative to ‖q‖², so that they mean the same for every model."""

    name = "tradeoff"
    summary = "General against domain quality over kNN-MT's settings, KSTER's point among them."
    paper: ClassVar[Paper] = {  # among the settings of a figure it quotes these, which its tables have, too
        "de-en": {
            "Base": {"general": 31.49, "average specific": 26.75},
            "kNN-MT": {"general": 25.87, "average specific": 36.64},
            "KSTER": {"general": 31.94, "average specific": 37.61},
        }
    }

    def table(self, budget: Budget) -> Table:
        grid = [
            fixed_knn(bandwidth, weight)
            for bandwidth in budget.tradeoff_bandwidths
            for weight in budget.tradeoff_weights
        ]
        ours = kster(budget, kernel="gaussian", start="tuned")
        return mixed((BASE, KNN, *grid, ours), budget.for_grid)

    def draw(self, section: Section) -> None:
        """A path for each σ of the grid, along its λ, and the other systems as points."""
        paths: dict[str, list[tuple[float, float, str]]] = {}
        for row, at in section.scored.rows.items():
            general = section.scored.bleu(row, "general")
            specific = section.scored.bleu(row, SPECIFIC_AVERAGE)
            if general is None or specific is None:
                continue
            on_grid = "bandwidth" in at
            name = f"σ = {at['bandwidth']} ‖q‖²" if on_grid else "kNN-MT, tuned" if row == "kNN-MT" else row
            label = f"λ {at['mixing_weight']}" if on_grid else ""
            paths.setdefault(name, []).append((general, specific, label))
        title = f"General and domain quality of kNN-MT with fixed σ and λ, {section.direction}"
        figure = figures.paths(title, paths, "general BLEU", "average domain BLEU")
        section.figures["tradeoff"] = figure


def fixed_knn(bandwidth: float, weight: float) -> System:
    """kNN-MT with nothing left to choose; its bandwidth is relative to ‖q‖²."""
    settings = SmootherSettings(
        kernel="gaussian",
        k=16,
        learn_bandwidth=False,
        learn_weight=False,
        bandwidth=bandwidth,
        mixing_weight=weight,
        relative=True,
    )
    at = {"system": "kNN-MT", "bandwidth": bandwidth, "mixing_weight": weight}
    return Knn(coordinates=at, fixed=settings)
