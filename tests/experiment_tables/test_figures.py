"""Figures and tables that can be read: colours that mean the same, legends and labels with room."""

from __future__ import annotations

import pytest
from experiments import figures
from experiments.catalogue import EXPERIMENTS
from experiments.results import Score, ScoredTable, _add_averages
from experiments.word_senses import won_and_lost
from matplotlib.figure import Figure


def colours(figure: Figure) -> dict[str, object]:
    handles, names = figure.axes[0].get_legend_handles_labels()
    faces = [handle.patches[0].get_facecolor() for handle in handles]
    return dict(zip(names, faces, strict=True))


def test_a_system_has_the_same_colour_in_every_figure_and_its_variants_are_paler() -> None:
    one = colours(figures.bars("", ["law"], {"Base": [1.0], "kNN-MT": [2.0], "KSTER": [3.0]}, "BLEU"))
    noisy = {"KSTER": [3.0], "KSTER + 10% noise": [2.0], "Base": [1.0]}
    other = colours(figures.bars("", ["law"], noisy, "BLEU"))
    assert one["KSTER"] == other["KSTER"]
    assert one["Base"] == other["Base"]
    assert sum(other["KSTER + 10% noise"]) > sum(other["KSTER"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["KSTER", "kNN-MT + 10% noise after learning"])
def test_a_legend_stays_within_its_figure(name: str) -> None:
    series = {f"{name} {i}": [1.0] for i in range(7)}
    figure = figures.bars("", ["law"], series, "BLEU")
    figure.canvas.draw()  # type: ignore[no-untyped-call]
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_labels_too_close_to_the_next_are_left_out() -> None:
    sizes = [10.0, 1_000.0, 10_000.0, 17_982.0]
    figure = figures.lines("", {"in-domain": (sizes, sizes)}, "segments", "BLEU", log_x=True)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["10", "1,000", "17,982"]


def test_shares_below_ten_are_not_rounded_to_whole_numbers() -> None:
    shares = [100 / 45, 100 / 15, 20.0, 100.0]
    figure = figures.lines("", {"KSTER": (shares, shares)}, "% of the corpus", "BLEU", log_x=True)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["2.2", "6.7", "20", "100"]


def test_histograms_with_bins_of_other_widths_can_be_compared() -> None:
    """The same even distribution, in two bins and in four."""
    halves, quarters = ([0.0, 5.0, 10.0], [50, 50]), ([0.0, 2.5, 5.0, 7.5, 10.0], [25] * 4)
    figure = figures.histograms("", {"law": halves, "it": quarters}, "σ")
    heights = [height for patch in figure.axes[0].patches for height in patch.get_data().values]
    assert heights == pytest.approx([0.1] * 6)


def test_word_senses_are_compared_example_by_example() -> None:
    base, ours = [1] * 8 + [0] * 26 + [1] * 50, [0] * 8 + [1] * 26 + [1] * 50
    assert won_and_lost(base, ours) == "26, 8 (p = 0.0029)"
    assert won_and_lost([1, 0], [1, 0]) == "0, 0 (p = 1)"


def test_averages_come_first_and_the_paper_is_quoted_as_printed() -> None:
    scores = {"koran": Score(20.0), "law": Score(30.0, paper=12.35)}
    table = ScoredTable("", {"Base": {}}, {"koran": {}, "law": {}}, {"Base": scores})
    _add_averages(table, {"average": ["koran", "law"]})
    assert list(table.columns) == ["average", "koran", "law"]
    assert table.bleu("Base", "average") == 25.0
    assert scores["law"].text() == "30.0 (12.35)"
    assert EXPERIMENTS["tradeoff"].paper["de-en"]["KSTER"]["general"] == 31.94


def test_points_of_the_papers_figures_that_its_tables_have_are_quoted() -> None:
    assert EXPERIMENTS["kernels"].paper["en-de"]["Laplacian"]["average specific"] == 34.95
    assert EXPERIMENTS["kernels"].paper["en-de"]["Laplacian"]["average mixed specific"] == 34.53
    assert EXPERIMENTS["kernels"].paper["en-de"]["Gaussian"]["average mixed specific"] == 34.38
    assert EXPERIMENTS["dropout"].paper["de-en"]["nearest dropped"]["general"] == 31.94
    assert "no dropout" not in EXPERIMENTS["dropout"].paper["de-en"]


def test_curves_are_drawn_by_coordinates_whatever_the_rows_are_called() -> None:
    rows = {
        "one": {"system": "KSTER", "k": 4},
        "two": {"system": "KSTER", "k": 8},
        "three": {"system": "KSTER", "variant": "learned distance", "k": 8},
        "four": {"system": "KSTER", "k": "by dev"},
    }
    cells = {row: {"law": Score(float(i))} for i, row in enumerate(rows)}
    curves = ScoredTable("", rows, {"law": {}}, cells).over_rows("k", "law")
    assert curves == {"KSTER": ([4.0, 8.0], [0.0, 1.0]), "KSTER, learned distance": ([8.0], [2.0])}
