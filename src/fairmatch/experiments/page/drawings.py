"""Charts of the paper's two small examples."""

from typing import Any

import numpy as np
import pandas as pd

from fairmatch.experiments.page.illustrations import AppendixB, Counterfactuals
from fairmatch.report.charts import require_charts

_COLOURS = ("#2b6cb0", "#c05621")
_GREY = "#718096"
_GROUPS = ("S = 0", "S = 1")


def appendix_b_chart(facts: AppendixB, *, n_shown: int = 20) -> Any:
    """Draw both models, with a row of people for each group and lines between matched people.

    Parameters
    ----------
    facts : AppendixB
        The result of `appendix_b`.
    n_shown : int, default=20
        At least this many people of each group are drawn, evenly spaced; all if there are fewer.

    Returns
    -------
    altair.VConcatChart

    Examples
    --------
    >>> from fairmatch.experiments.page.illustrations import appendix_b
    >>> type(appendix_b_chart(appendix_b(20))).__name__
    'VConcatChart'
    """
    require_charts()
    import altair as alt

    half = len(facts.x) // 2
    step = -(-half // n_shown)
    colour = alt.Color(
        "decision:N",
        title=None,
        scale=alt.Scale(domain=["accepted", "rejected"], range=[_COLOURS[0], "#cbd5e0"]),
        legend=alt.Legend(orient="top"),
    )
    place = alt.Y("group:N", title=None, sort=list(_GROUPS), axis=alt.Axis(labelFontSize=12))
    panels = []
    for model in facts.models:
        shown = np.isin(np.arange(len(facts.x)) % half, np.arange(step // 2, half, step))
        points = pd.DataFrame(
            {
                "x": facts.x[shown],
                "group": np.array(_GROUPS)[facts.groups[shown]],
                "decision": np.where(model.scores[shown] > 0.5, "accepted", "rejected"),
            }
        )
        source, target = model.coupling.source_index, model.coupling.target_index
        keep = shown[source]
        lines = pd.DataFrame(
            {
                "x": np.concatenate([facts.x[source[keep]], facts.x[target[keep]]]),
                "group": np.repeat(_GROUPS, keep.sum()),
                "pair": np.tile(np.arange(keep.sum()), 2),
            }
        )
        axis = alt.X("x:Q", title="x", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(grid=False))
        joined = alt.Chart(lines).mark_line(strokeWidth=1, opacity=0.7, color=_GREY)
        dots = alt.Chart(points).mark_point(
            filled=True, size=95, opacity=1, stroke="#4a5568", strokeWidth=0.7
        )
        middle = alt.Chart(pd.DataFrame({"x": [0.5]})).mark_rule(strokeDash=[3, 3], color=_GREY)
        words = (
            f"group gap {model.group_gap:.0f}, gap where x ≥ ½: {model.subset_gap:.0f}, "
            f"transport cost {model.transport_cost:.2f}"
        )
        title = alt.TitleParams(
            f"A model that {model.name}", subtitle=words, anchor="start", fontSize=14
        )
        panel = alt.layer(
            middle.encode(x=axis),
            joined.encode(x=axis, y=place, detail="pair:N"),
            dots.encode(x=axis, y=place, color=colour),
        )
        panels.append(panel.properties(width=460, height=120, title=title))
    return alt.vconcat(*panels, spacing=24)


def counterfactual_chart(facts: Counterfactuals, *, n_arrows: int = 14) -> Any:
    """Draw both groups, and where some people of group 0 would be if they were in group 1.

    Parameters
    ----------
    facts : Counterfactuals
        The result of `counterfactuals`.
    n_arrows : int, default=14
        Number of people of group 0 whose counterfactuals are drawn.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from fairmatch.experiments.page.illustrations import counterfactuals
    >>> type(counterfactual_chart(counterfactuals(20))).__name__
    'LayerChart'
    """
    require_charts()
    import altair as alt

    points = pd.DataFrame(np.concatenate([facts.people, facts.others]), columns=["x1", "x2"])
    points["group"] = np.repeat(_GROUPS, [len(facts.people), len(facts.others)])
    kinds = {
        "counterfactual": facts.counterfactual,
        "optimal map": facts.transported,
        "matched in the sample": facts.matched,
    }
    chosen = slice(None, min(n_arrows, len(facts.people)))
    arrows = pd.concat(
        pd.DataFrame(
            {
                "x1": facts.people[chosen, 0],
                "x2": facts.people[chosen, 1],
                "to1": ends[chosen, 0],
                "to2": ends[chosen, 1],
                "kind": kind,
            }
        )
        for kind, ends in kinds.items()
    )
    x, y = alt.X("x1:Q", title="first feature"), alt.Y("x2:Q", title="second feature")
    cloud = alt.Chart(points).mark_point(filled=True, size=22, opacity=0.28)
    cloud = cloud.encode(
        x=x,
        y=y,
        color=alt.Color(
            "group:N", title=None, scale=alt.Scale(domain=list(_GROUPS), range=list(_COLOURS))
        ),
    )
    lines = alt.Chart(arrows[arrows["kind"] == "counterfactual"])
    lines = lines.mark_rule(opacity=0.5, color="#2d3748").encode(x=x, y=y, x2="to1", y2="to2")
    shapes = alt.Scale(domain=list(kinds), range=["circle", "cross", "triangle-up"])
    ends = alt.Chart(arrows).mark_point(size=70, strokeWidth=1.4, opacity=0.95, color="#1a202c")
    ends = ends.encode(
        x=alt.X("to1:Q", title="first feature"),
        y=alt.Y("to2:Q", title="second feature"),
        shape=alt.Shape("kind:N", title="group 0 as group 1", scale=shapes),
    )
    words = (
        f"map and counterfactual differ by at most {facts.map_error:.2g}; the matching of the "
        f"sample by {facts.coupling_error:.2f} (root mean square)"
    )
    title = alt.TitleParams(
        "Who group 0 would have been in group 1", subtitle=words, anchor="start", fontSize=14
    )
    return alt.layer(cloud, lines, ends).properties(width=520, height=360, title=title)
