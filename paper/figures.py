"""The figures of the pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from fairmatch.measures import MEASURES
from paper.illustrations import AppendixB, Counterfactuals
from paper.questions import GAPS, SUBJECTS, Answers, reported
from paper.readings import interpolated, mean_curve, nearest_index
from paper.specs import PAPER_RIVALS, SERIES, Study
from paper.tables import LARGEST, read_frontier

_COLOURS = ("#2b6cb0", "#c05621")
_GREY = "#718096"
_GROUPS = ("S = 0", "S = 1")


def appendix_b_chart(facts: AppendixB, *, n_shown: int = 20) -> Any:
    """Draw both models, with a row of people for each group and lines between matched people.

    At least `n_shown` people of each group are drawn, evenly spaced; all if there are fewer.
    """
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
    """Draw both groups, and where some people of group 0 would be if they were in group 1."""
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


# Colour and dash of every line, the same in all figures. Colour-blind people can tell them apart.
# FTM on all rows is drawn solid, and the paper's mini-batch maps are dashed.
_STYLES: dict[str, tuple[str, tuple[int, ...]]] = {
    "reduction": ("#e69f00", ()),
    "reg": ("#56b4e9", ()),
    "adv": ("#8a8a8a", ()),
    "ftm-batch": ("#d55e00", (5, 3)),
    "ftm": ("#d55e00", ()),
    "ftm-batch-joint": ("#0072b2", (5, 3)),
    "ftm-joint": ("#0072b2", ()),
    "trees-reg": ("#009e73", (2, 2)),
    "trees-ftm": ("#009e73", ()),
    "trees-ftm-joint": ("#cc79a7", ()),
    "trees-eg": ("#8a8a8a", (2, 2)),
    "trees-predicted": ("#222222", ()),
    "trees-smoothing": ("#e69f00", ()),
    "trees-smoothing-marginal": ("#e69f00", (5, 3)),
    "trees-alignment": ("#56b4e9", ()),
    "trees-thresholds": ("#56b4e9", (2, 2)),
    "laftr": ("#009e73", ()),
    "sipm": ("#cc79a7", ()),
    "repair": ("#56b4e9", ()),
}
# Shapes of points; those of other lines are circles.
_SHAPES = {
    "trees-reg": "diamond",
    "trees-eg": "diamond",
    "trees-smoothing": "square",
    "trees-smoothing-marginal": "triangle-down",
    "trees-alignment": "cross",
    "trees-thresholds": "triangle-up",
}
# Styles of a researcher's own lines, taken in turn.
_OWN_STYLES: list[tuple[str, tuple[int, ...]]] = [
    *(("#333333", (1, 2)), ("#7a0177", (6, 2)), ("#8c510a", (3, 3))),
    *(("#1b7837", (6, 2, 1, 2)), ("#08306b", (1, 3)), ("#b2182b", (3, 1))),
]
_MATCHED = ("ftm-batch", "ftm")
_NETWORKS = (*PAPER_RIVALS, *_MATCHED)


def recorded_charts(answers: Answers) -> dict[str, Any]:
    """Return every chart that the records allow, by its name."""
    named: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("tradeoff-wdp", lambda: tradeoff(answers, "WDP", _NETWORKS)),
        ("tradeoff-dp", lambda: tradeoff(answers, "DP", _NETWORKS)),
        ("tradeoff-meandp", lambda: tradeoff(answers, "meanDP", _NETWORKS)),
        ("trees", lambda: tradeoff(answers, "WDP", ("ftm", "ftm-joint"), "trees")),
        ("joint", lambda: tradeoff(answers, "DP", _NETWORKS, "joint")),
        ("representation", lambda: tradeoff(answers, "meanDP", _MATCHED, "representation")),
        ("frontier", lambda: frontier(answers)),
        ("subsets", lambda: subset_boxes(answers)),
        ("label-weight", lambda: label_weights(answers)),
    )
    charts = {name: draw() for name, draw in named}
    return {name: chart for name, chart in charts.items() if chart is not None}


def tradeoff(answers: Answers, gap: str, keys: Sequence[str], subject: str = "") -> Any:
    """Draw mean curves of accuracy against a gap, one panel per table; None without records.

    With a subject, its lines are drawn too. Then the chart is None if none of these is recorded.
    """
    study = answers.study
    subjects = SUBJECTS.get(subject, ())
    own = [key for key in study.series if key not in SERIES]
    shown = [
        key
        for key in (*keys, *subjects, *own)
        if key in study.series and any(answers.records(key, name) for name in study.datasets)
    ]
    if subject and not set(shown) & set(subjects):
        return None
    starts = ("unfair", *(["trees-unfair"] if subject == "trees" else []))
    panels = []
    for dataset in study.datasets:
        curves = _curve_rows(answers, dataset, gap, shown)
        if curves.empty:
            continue
        points = _curve_rows(answers, dataset, gap, starts).groupby("method", sort=False).head(1)
        panels.append(_panel(study, dataset, curves, points, gap, shown))
    told = "Means over the splits, a point per fairness weight; crosses: unconstrained models"
    return _grid(panels, title=_caption(told))


def _curve_rows(answers: Answers, dataset: str, gap: str, keys: Sequence[str]) -> pd.DataFrame:
    """Return the mean curves of some lines as rows of a table."""
    rows = [
        (answers.study.series[key].label, *point)
        for key in keys
        if (records := answers.records(key, dataset))
        for point in mean_curve(records, GAPS[gap], "accuracy")
    ]
    return pd.DataFrame(rows, columns=["method", "weight", "gap", "accuracy"])


def _panel(
    study: Study,
    dataset: str,
    curves: pd.DataFrame,
    points: pd.DataFrame,
    gap: str,
    keys: Sequence[str],
) -> Any:
    others = iter(_OWN_STYLES * len(keys))
    styles = [_STYLES[key] if key in _STYLES else next(others) for key in keys]
    # The range leaves out its bottom, where a collapsed curve would squeeze the others. More ticks
    # would run into each other.
    low, high = float(curves["accuracy"].quantile(0.05)), float(curves["accuracy"].max())
    margin = 0.08 * (high - low)
    span = alt.Scale(zero=False, domain=[low - margin, high + margin])
    axis, symbol = alt.Axis(tickCount=6), MEASURES[GAPS[gap]].symbol
    x = alt.X("gap:Q", title=symbol, scale=alt.Scale(zero=True), axis=axis)
    y = alt.Y("accuracy:Q", title="accuracy", scale=span)
    given: dict[str, Any] = {
        "shorthand": "method:N",
        "legend": alt.Legend(
            title=None, orient="bottom", columns=3, symbolType="stroke", symbolStrokeWidth=2.5
        ),
    }
    labels = [study.series[key].label for key in keys]
    colours = alt.Scale(domain=labels, range=[colour for colour, _ in styles])
    dashes = alt.Scale(domain=labels, range=[list(dash) or [1, 0] for _, dash in styles])
    lines = alt.Chart(curves).mark_line(strokeWidth=2, clip=True, point=alt.OverlayMarkDef(size=14))
    ends = alt.Chart(points[["gap", "accuracy", "method"]]).mark_point(
        shape="cross", filled=True, color="#222222", size=70, clip=True
    )
    colour, dash = alt.Color(scale=colours, **given), alt.StrokeDash(scale=dashes, **given)
    layers = [lines.encode(x=x, y=y, color=colour, strokeDash=dash, order="weight:Q")]
    layers += [ends.encode(x=x, y=y)] if len(points) else []
    return alt.layer(*layers).properties(width=330, height=230, title=_titled(dataset))


def frontier(answers: Answers) -> Any:
    """Draw accuracy against consistency of trees at the paper's levels; None without records."""
    found = read_frontier(answers)
    keys = [key for key in SUBJECTS["trees"] if any(key in by_line for by_line in found.values())]
    labels = [answers.study.series[key].label.removeprefix("trees: ") for key in keys]
    colours = alt.Scale(domain=labels, range=[_STYLES[key][0] for key in keys])
    shapes = alt.Scale(domain=labels, range=[_SHAPES.get(key, "circle") for key in keys])
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=90, labelLimit=0)
    along: Any = {"scale": alt.Scale(zero=False, padding=14), "axis": alt.Axis(tickCount=5)}
    size = alt.Size(
        "largest:Q",
        title="largest gap of half-spaces",
        legend=alt.Legend(orient="bottom", tickCount=3),
        scale=alt.Scale(domain=[0.2, 1.0], range=[50, 420]),
    )
    panels = []
    for (dataset, level), by_line in found.items():
        rows = [
            {
                "method": label,
                "accuracy": by_line[key]["accuracy"].mean,
                "consistency": by_line[key]["consistency"].mean,
                "largest": by_line[key][LARGEST].mean,
            }
            for key, label in zip(keys, labels, strict=True)
            if key in by_line and all(reading.stated for reading in by_line[key].values())
        ]
        if not rows:
            continue
        points = (
            alt.Chart(pd.DataFrame(rows))
            .mark_point(filled=True, opacity=0.9)
            .encode(
                x=alt.X("consistency:Q", **along),
                y=alt.Y("accuracy:Q", **along),
                color=alt.Color("method:N", legend=legend, scale=colours),
                shape=alt.Shape("method:N", legend=legend, scale=shapes),
                size=size,
            )
        )
        title = f"{_titled(dataset)}, ΔDP = {level:g}"
        panels.append(points.properties(width=330, height=230, title=title))
    told = "Boosted trees at equal gap, means over the splits. Best: up, right and small"
    return _grid(panels, title=_caption(told))


def subset_boxes(answers: Answers) -> Any:
    """Draw the gaps in half-spaces as box plots, at the paper's levels; None without records."""
    study, panels = answers.study, []
    for dataset, level in reported()["random_subsets"]["at_meanDP"].items():
        boxes: list[dict[str, Any]] = []
        outliers: list[dict[str, Any]] = []
        for key in (*_NETWORKS, "ftm-joint", "trees-ftm", "trees-predicted"):
            shown = dataset in study.datasets and key in study.series
            records = answers.records(key, dataset) if shown else {}
            first = records[min(records)] if records else None
            index = None if first is None else nearest_index(first, GAPS["meanDP"], level)
            if first is None or index is None:
                continue
            label = f"{study.series[key].label}, at {first.curve[GAPS['meanDP']][index]:.3f}"
            box = first.curve["half-spaces: box"][index]
            names = ("low", "q1", "median", "q3", "high")
            boxes.append({"method": label, **dict(zip(names, box, strict=True))})
            found = first.curve["half-spaces: outliers"][index]
            outliers += [{"method": label, "gap": value} for value in found]
        if boxes:
            panels.append(_box_panel(f"{_titled(dataset)}, Δ‾DP near {level:g}", boxes, outliers))
    told = "Nearest weight on the first split; box plots of 1,000 half-spaces, points: outliers"
    return _grid(panels, title=_caption(told))


def _box_panel(heading: str, boxes: list[dict[str, Any]], outliers: list[dict[str, Any]]) -> Any:
    order = [box["method"] for box in boxes]
    y = alt.Y("method:N", sort=order, title=None)
    base = alt.Chart(pd.DataFrame(boxes)).encode(y=y)
    title = "Δ‾DP in a half-space"
    layers = [
        base.mark_rule(color="#555555").encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        base.mark_bar(size=14, color="#9ecae1", stroke="#555555").encode(x="q1:Q", x2="q3:Q"),
        base.mark_tick(size=14, color="#222222", thickness=2).encode(x="median:Q"),
    ]
    if outliers:
        dots = alt.Chart(pd.DataFrame(outliers)).mark_point(
            size=14, filled=True, color="#d55e00", opacity=0.5
        )
        layers.append(dots.encode(x="gap:Q", y=y))
    return alt.layer(*layers).properties(width=330, height=24 * len(boxes), title=heading)


def label_weights(answers: Answers) -> Any:
    """Draw transport cost against accuracy for every label weight; None without records."""
    if "adult" not in answers.study.datasets:
        return None
    panels = []
    for level in reported()["transport_cost_vs_accuracy_adult"]["at_DP"]:
        rows, errors = [], []
        for value, records in answers.by_label_weight("ftm").items():
            asked: Mapping[str, Any] = {"start": answers.records("unfair", "adult")}
            found = [
                interpolated(records, GAPS["DP"], level, quantity, **asked)
                for quantity in ("transport_cost", "accuracy")
            ]
            if all(reading.n for reading in found):
                cost, accuracy = (reading.mean for reading in found)
                rows.append({"α": f"{value:g}", "cost": cost, "accuracy": accuracy})
                errors.append([reading.error for reading in found])
        if rows:
            base = alt.Chart(pd.DataFrame(rows)).encode(
                x=alt.X("cost:Q", title="transport cost", scale=alt.Scale(zero=False)),
                y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False)),
            )
            dots = base.mark_point(filled=True, size=70, color="#0072b2")
            text = base.mark_text(dx=8, dy=-8, align="left").encode(text="α:N")
            # The points differ by less than their standard errors, which the axes do not show.
            cost, accuracy = np.mean(errors, axis=0)
            told = f"standard errors about ± {accuracy:.4f} (accuracy) and ± {cost:.3f} (cost)"
            if not np.isfinite([cost, accuracy]).all():
                told = "one split"
            title = _titles(f"Adult, ΔDP = {level:g} (points: α)", told)
            panels.append((dots + text).properties(width=330, height=230, title=title))
    return _grid(panels)


def _titled(dataset: str) -> str:
    """Return a name with its first letter capitalised and the rest unchanged."""
    return dataset[:1].upper() + dataset[1:]


def _titles(text: str, below: str) -> Any:
    return alt.TitleParams(text, subtitle=below, subtitleFontSize=11, subtitleColor="#555555")


def _caption(text: str) -> Any:
    return alt.TitleParams(text, fontSize=11, fontWeight="normal", color="#555555", offset=12)


def _grid(panels: Sequence[Any], **settings: Any) -> Any:
    """Return panels in two columns, in the style of all figures; None if there are none."""
    if not panels:
        return None
    return (
        alt.concat(*panels, columns=2, spacing=28, **settings)
        .configure(font="Helvetica Neue, Arial, sans-serif", background="white")
        .configure_view(stroke=None)
        .configure_axis(gridColor="#e5e5e5", domainColor="#888888", titleFontWeight="normal")
        .configure_title(anchor="start", fontSize=13)
    )
