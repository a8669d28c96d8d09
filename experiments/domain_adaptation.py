"""A memory for each domain: against the field (`damt`), as it grows (`sizes`), with other length penalties
(`lengths`)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from experiments import figures
from experiments.budget import Budget
from experiments.domains import GENERAL, domain_setting
from experiments.experiment import (
    Block,
    Column,
    Experiment,
    Paper,
    Table,
    by_domain,
    by_domain_and_mixed,
    columns,
    paper_rows,
)
from experiments.results import Curve, Section
from experiments.systems import (
    ADAPTIVE_KNN,
    BASE,
    FINE_TUNING,
    JOINT_TRAINING,
    KNN,
    ROBUST_KNN,
    SK_MT,
    System,
    kster,
    kster_as_published,
    kster_with_learned_distance,
)

_PAPER_COLUMNS = "law, medical, koran, it, subtitles, average specific, average general"


class DomainAdaptation(Experiment):
    name = "damt"
    summary = "A memory for each domain: in-domain quality, and what is left of general quality with it."
    # Its general test set is ours (newstest2014); its domains Law, Koran and IT have the same test sets but
    # larger memories of other origin for Law and IT.
    paper: ClassVar[Paper] = {
        "en-de": paper_rows(
            _PAPER_COLUMNS,
            {
                "Base": (33.36, 30.54, 10.16, 22.99, 20.65, 23.54, 27.20),
                "Finetuning": (49.07, 47.10, 25.98, 36.28, 26.00, 36.89, 14.17),
                "kNN-MT": (51.88, 47.02, 18.51, 29.12, 22.46, 33.80, 8.32),
                "KSTER": (53.63, 49.18, 19.10, 30.28, 22.54, 34.95, 25.63),
            },
        ),
        "de-en": paper_rows(
            _PAPER_COLUMNS,
            {
                "Base": (36.80, 33.36, 11.24, 29.21, 23.13, 26.75, 31.49),
                "Finetuning": (55.19, 51.35, 22.87, 41.88, 28.33, 39.92, 17.82),
                "kNN-MT": (57.40, 50.92, 15.74, 34.92, 25.38, 36.87, 13.18),
                "KSTER": (59.41, 53.40, 16.97, 35.74, 25.94, 38.29, 30.23),
            },
        ),
    }

    def table(self, budget: Budget) -> Table:
        systems = (
            BASE,
            FINE_TUNING,
            KNN,
            ADAPTIVE_KNN,
            ROBUST_KNN,
            SK_MT,
            kster(budget),
            kster_with_learned_distance(budget),
            kster(budget, "started from tuned kNN-MT", start="tuned"),
            kster(budget, "no general text in fit", general_share=0.0),
            kster_as_published(budget),
        )
        return by_domain(systems, budget)


class Sizes(Experiment):
    name = "sizes"
    summary = "A memory of IT that grows, against fine-tuning on the same text."

    def table(self, budget: Budget) -> Table:
        blocks = []
        for every in budget.it_parts:
            share = "all" if every == 1 else f"1/{every}"
            tests = tuple(
                Column(f"{one.name}, {share}", one.test, one.coordinates | {"share": 1 / every})
                for one in columns("it", GENERAL, budget=budget, memory="it")
            )
            setting = domain_setting("it", replace(budget, it_every=every))
            blocks.append(Block(setting, (BASE, FINE_TUNING, KNN, kster(budget)), tests))
        return Table(tuple(blocks), baseline="kNN-MT")

    def draw(self, section: Section) -> None:
        """In-domain and general quality, each over the share of the corpus."""
        scored = section.scored
        for test in dict.fromkeys(at["test"] for at in scored.columns.values()):
            curves: dict[str, Curve] = {}
            for row in scored.rows:
                xs, ys = curves.setdefault(row, ([], []))
                for column, at in scored.columns.items():
                    value = scored.bleu(row, column)
                    if at["test"] == test and value is not None:
                        xs.append(100 * at["share"])
                        ys.append(value)
            title = f"A growing memory of IT, {test} test, {section.direction}"
            figure = figures.lines(title, curves, "% of the corpus", "BLEU", log_x=True)
            section.figures[f"sizes-{test}"] = figure


class Lengths(Experiment):
    """Memories make translations shorter, some more than others."""

    name = "lengths"
    summary = "The length penalty of beam search, with which every system is tuned and translates anew."

    def table(self, budget: Budget) -> Table:
        penalties = budget.length_penalties

        def with_each(*systems: System) -> tuple[System, ...]:
            choices = {**{str(one): (one,) for one in penalties}, "by dev": penalties}
            return tuple(
                replace(system.at(length_penalty=some[0] if len(some) == 1 else name), length_penalties=some)
                for name, some in choices.items()
                for system in systems
            )

        ours = (KNN, kster(budget), kster_with_learned_distance(budget))
        rows, mixed_rows = with_each(BASE, FINE_TUNING, *ours), with_each(JOINT_TRAINING, *ours)
        return by_domain_and_mixed(rows, mixed_rows, budget, baseline="kNN-MT α=by dev")

    def draw(self, section: Section) -> None:
        """A memory for each domain, and one for all: domain quality over the length penalty.

        The base model, which has no memory, is far below everything else and would flatten it.
        """
        for column, name, kind in (
            ("average specific", "lengths", "a memory for each domain"),
            ("average mixed specific", "lengths-mixed", "a mixed memory"),
        ):
            curves = section.scored.over_rows("length_penalty", column)
            curves.pop("Base", None)
            title = f"Length penalty, {kind}, {section.direction}"
            figure = figures.lines(title, curves, "length penalty α", "average domain BLEU")
            section.figures[name] = figure
