"""Charts, as Vega-Lite specifications made with Altair."""

from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.measures import MEASURES


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (renders the pictures)
    except ImportError as error:
        raise MissingExtraError(
            "Pictures need the report extra: pip install 'fairmatch[report]'."
        ) from error
    return altair


def require_charts() -> None:
    """Raise unless pictures can be drawn; to be asked before a long computation, not after."""
    _altair()


def tradeoff_chart(
    curve: pd.DataFrame, *, gap: str = "demographic_parity_gap", chosen: float | None = None
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
    alt = _altair()
    data = curve.assign(chosen=curve["fairness_weight"] == chosen)
    title = f"{MEASURES[gap].symbol} ({gap.replace('_', ' ')})"
    base = alt.Chart(data).encode(
        x=alt.X(gap, type="quantitative", title=title, scale=alt.Scale(zero=True)),
        y=alt.Y("accuracy", type="quantitative", scale=alt.Scale(zero=False)),
    )
    line = base.mark_line(color="#2b6cb0", strokeWidth=1.5).encode(order="fairness_weight:Q")
    points = base.mark_point(filled=True, opacity=1.0).encode(
        color=alt.condition("datum.chosen", alt.value("#c05621"), alt.value("#2b6cb0")),
        size=alt.condition("datum.chosen", alt.value(160), alt.value(45)),
        tooltip=["fairness_weight:Q", "accuracy:Q", f"{gap}:Q"],
    )
    return (line + points).properties(width=460, height=300, title="Accuracy against unfairness")


def save_chart(chart: Any, path: str | Path) -> Path:
    """Write a chart as .svg, .png or .html."""
    file = Path(path)
    if file.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{file} must end in .svg, .png or .html.")
    chart.save(str(file))
    return file
