"""Accuracy against a gap, along a path."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fairmatch.measures import MEASURES
from fairmatch.report.charts.frame import (
    load_altair,
)


def tradeoff_chart(
    curve: pd.DataFrame,
    *,
    gap: str = "demographic_parity_gap",
    chosen: float | None = None,
    colours: Sequence[str] = ("#2b6cb0", "#c05621"),
) -> Any:
    """Draw accuracy against a gap, one point per fairness weight.

    Parameters
    ----------
    curve : DataFrame
        As made by `FairnessPath.curve`.
    gap : str, default="demographic_parity_gap"
        The gap on the horizontal axis.
    chosen : float, optional
        Fairness weight to mark.
    colours : sequence of two str
        Of the curve, and of the marked point.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> curve = pd.DataFrame({"fairness_weight": [0.0, 1.0], "accuracy": [0.8, 0.7],
    ...                       "demographic_parity_gap": [0.2, 0.0]})
    >>> type(tradeoff_chart(curve, chosen=1.0)).__name__
    'LayerChart'
    """
    alt = load_altair()
    data = curve.assign(chosen=curve["fairness_weight"] == chosen)
    title = f"{MEASURES[gap].symbol} ({gap.replace('_', ' ')})"
    base = alt.Chart(data).encode(
        x=alt.X(gap, type="quantitative", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy", type="quantitative", scale=alt.Scale(zero=False)),
    )
    line = base.mark_line(color=colours[0], strokeWidth=1.5).encode(order="fairness_weight:Q")
    points = base.mark_point(filled=True, opacity=1.0).encode(
        color=alt.condition("datum.chosen", alt.value(colours[1]), alt.value(colours[0])),
        size=alt.condition("datum.chosen", alt.value(160), alt.value(45)),
        tooltip=["fairness_weight:Q", "accuracy:Q", f"{gap}:Q"],
    )
    return (line + points).properties(width=460, height=300, title="Accuracy against unfairness")
