"""The lines of the tables and figures: which method, with which settings, under which name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Series:
    """A line of a table or figure: a method with its settings.

    Attributes
    ----------
    key, label : str
        The name that programs use, and the name that people read.
    method : str
        Name of the method.
    settings : mapping
        Settings that differ from the method's own.
    paper : str or None
        Name of the line in the paper's tables; None if the paper does not have it.
    """

    key: str
    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None


SERIES: dict[str, Series] = {
    series.key: series
    for series in (
        Series("unfair", "Unfair", "unfair", paper="Unfair"),
        Series("reduction", "Reduction", "reduction", paper="Reduction"),
        Series("reg", "Reg", "reg", paper="Reg"),
        Series("adv", "Adv", "adv", paper="Adv"),
        Series("ftm-batch", "FTM, mini-batch maps", "ftm-batch", paper="FTM"),
        Series("ftm", "FTM, all rows (ours)", "ftm"),
        Series(
            "ftm-batch-joint",
            "FTM joint, mini-batch maps",
            "ftm-batch",
            {"label_weight": 100},
            paper="FTM joint",
        ),
        Series("ftm-joint", "FTM joint, all rows (ours)", "ftm", {"label_weight": 100}),
        Series("laftr", "LAFTR", "laftr", paper="LAFTR"),
        Series("sipm", "sIPM-LFR", "sipm", paper="sIPM-LFR"),
        Series("repair", "Transport repair", "repair", paper="Gordaliza"),
        Series("trees-unfair", "trees: unconstrained", "trees-unfair"),
        Series("trees-reg", "trees: Reg", "trees-reg"),
        Series("trees-eg", "trees: exponentiated gradient", "trees-eg"),
        Series("trees-ftm", "trees: FTM (ours)", "trees-ftm"),
        Series("trees-ftm-joint", "trees: FTM joint (ours)", "trees-ftm", {"label_weight": 100}),
        Series("trees-predicted", "trees: FTM, predicted map (ours)", "trees-predicted"),
        Series("trees-smoothing", "trees: match smoothing (ours)", "trees-smoothing"),
        Series(
            "trees-smoothing-marginal",
            "trees: match smoothing, features alone (ours)",
            "trees-smoothing",
            {"score_weight": 0},
        ),
        Series("trees-alignment", "trees: quantile alignment", "trees-alignment"),
        Series("trees-thresholds", "trees: thresholds by group", "trees-thresholds"),
    )
}
"""All lines, in the order of the tables."""

PAPER_RIVALS = ("reduction", "reg", "adv")
