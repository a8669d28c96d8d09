"""How a memory should be fitted (`recipes`): what the defaults of `kster fit` were chosen by."""

from __future__ import annotations

from dataclasses import replace

from experiments import figures
from experiments.budget import Budget
from experiments.domains import NEWS_DEV, dev_slice, domain_setting
from experiments.experiment import GENERAL_AVERAGE, SPECIFIC_AVERAGE, Block, Column, Experiment, Table
from experiments.results import Section
from experiments.systems import BASE, KNN, kster, kster_as_published

FITTED = ("koran", "law")


class Recipes(Experiment):
    """Each row differs from the default in one thing; the paper's recipe follows with its own variants."""

    name = "recipes"
    summary = "How a memory should be fitted, on development text: the choice of defaults."

    def table(self, budget: Budget) -> Table:
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
            kster_as_published(budget, "paper"),
            kster_as_published(budget, "paper, seed 2", seed=2),
            kster_as_published(budget, "paper, label smoothing 0.1", label_smoothing=0.1),
            kster_as_published(budget, "paper, provenance-aware dropout", dropout="provenance"),
            kster_as_published(budget, "paper, no dropout", dropout="none"),
        )
        # These learn from development text: not from what they are judged by.
        learners = (
            kster(budget, "default, stopped by other text"),
            kster(budget, "20 % development text in the fit", dev_share=0.2),
            kster(budget, "40 % development text in the fit", dev_share=0.4),
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
            rest = replace(dev, first=dev.first + budget.dev_decoded)
            blocks += [
                Block(setting, systems, tests),
                Block(replace(setting, dev=(rest,)), learners, tests),
            ]
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
