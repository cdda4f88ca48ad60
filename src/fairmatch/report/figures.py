"""The figures of the report: each is one table of facts, its chart, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.exceptions import InputError
from fairmatch.facts import Audit, Comparison, Estimate
from fairmatch.report.charts import (
    GROUP_COLOURS,
    SERIES_COLOURS,
    Row,
    calibration_chart,
    contribution_chart,
    cumulative_chart,
    finished,
    interval_chart,
    step_chart,
    tradeoff_chart,
)
from fairmatch.report.wording import GAPS, MATCHINGS, certain, gap_name, shown_name

# A chart shows so many bars; the table below it shows all.
_MOST_BARS = 12
# Names in charts are cut here, in tables not at all.
_LONGEST = 60


@dataclass(frozen=True)
class Figure:
    """One table of facts, its chart, and how to read both.

    Attributes
    ----------
    title : str
        What it shows.
    reading : tuple of str
        How to read it, with the caveats.
    columns : dict
        Field of the rows to the heading of its column.
    rows : list of mappings
        The facts.
    chart : dict or None
        A Vega-Lite specification; None where there is nothing to draw.
    wide : bool
        Whether it takes the whole width of the page.
    """

    title: str
    reading: tuple[str, ...]
    columns: dict[str, str]
    rows: list[Row]
    chart: dict[str, Any] | None
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page: what it is about, and its figures.

    Attributes
    ----------
    key, title : str
        Unique in the page; shown.
    lead : str
        What the section is about.
    figures : list of Figure
        In order.
    """

    key: str
    title: str
    lead: str
    figures: list[Figure] = field(default_factory=list)


def sections(
    audits: Sequence[Audit], comparison: Comparison | None, curve: pd.DataFrame | None
) -> list[Section]:
    """Make every part of the report for which there are facts.

    Parameters
    ----------
    audits : sequence of Audit
        Of the same two groups, with different model names.
    comparison : Comparison or None
        Of these audits.
    curve : DataFrame or None
        As made by `FairnessPath.curve`.

    Returns
    -------
    list of Section

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> [section.key for section in sections([found], None, None)]
    ['selection', 'gaps', 'scores', 'matching']
    """
    parts = [
        Section(
            "selection",
            "Who is accepted",
            "The share of each group that the model accepts at its threshold.",
            [_selection(audits)],
        ),
        Section(
            "gaps",
            "Gaps between the groups",
            "Different definitions of equal treatment, side by side. They can disagree, and in "
            "general not all of them can be small at once; which one matters is a question of law "
            "and purpose, not of statistics.",
            [_gaps(audits)],
        ),
        Section(
            "scores",
            "Scores",
            "How the scores of the two groups are spread, whatever the threshold.",
            [make(audit) for audit in audits for make in (_scores, _cumulative)],
        ),
        Section(
            "matching",
            "Who is treated like whom",
            "Behind every model stands a matching: people at the same rank of their groups are "
            "treated alike. If they are very different people, equal averages were reached by "
            "treating unlike people alike.",
            _matching(audits),
        ),
        Section(
            "subsets",
            "Where it is unfair",
            "A model can treat the groups alike on the whole and differently in a part. Subsets "
            "were chosen on one half of the rows and measured on other rows, so that a gap found "
            "by luck does not count as a finding.",
            _each(audits, lambda audit: audit.subsets, _subsets, _half_spaces),
        ),
        Section(
            "labels",
            "How well it does in each group",
            "Compared with the recorded labels. Labels are records of past decisions and outcomes "
            "and can be unfair themselves; agreeing with them is not the same as being right.",
            _each(audits, lambda audit: audit.groups[0].calibration, _accuracy, _calibration),
        ),
        Section(
            "comparison",
            "The models compared",
            "The same people under each model. Less of one gap says nothing by itself on how it "
            "was reached; the distances and the changed decisions do.",
            [*_side_by_side(audits), *(_changes(comparison) if comparison else [])],
        ),
        Section(
            "curve",
            "What fairness costs here",
            "One point per strength of the fairness constraint.",
            [] if curve is None else [_curve(curve)],
        ),
    ]
    return [part for part in parts if part.figures]


def _each(
    audits: Sequence[Audit], has: Callable[[Audit], Any], *makers: Callable[[Audit], Figure | None]
) -> list[Figure]:
    made = (make(audit) for audit in audits if has(audit) for make in makers)
    return [figure for figure in made if figure is not None]


def _label(name: str) -> str:
    return shown_name(name, _LONGEST)


def _limits(fact: Estimate) -> dict[str, Any]:
    return {"value": fact.value, "low": fact.low, "high": fact.high, "note": fact.refused or ""}


def _level(audits: Sequence[Audit]) -> str:
    return f"{audits[0].confidence:.0%}"


_LIMITS = {"value": "estimate", "low": "from", "high": "to"}
_NOTE = {"note": "note"}


def _columns(rows: Iterable[Mapping[str, Any]], columns: dict[str, str]) -> dict[str, str]:
    """Leave the column of notes out where there are none."""
    noted = any(row.get("note") for row in rows)
    return {key: words for key, words in columns.items() if noted or key != "note"}


def _selection(audits: Sequence[Audit]) -> Figure:
    rows = [
        {
            "label": _label(audit.model_name),
            "series": _label(group.label),
            "people": group.n_rows,
            **_limits(group.selection_rate),
        }
        for audit in audits
        for group in audit.groups
    ]
    ratios = []
    for audit in audits:
        ratio = audit.selection_ratio
        if ratio.value is not None and ratio.low is not None and ratio.high is not None:
            ratios.append(
                f"{shown_name(audit.model_name)}: the smaller rate is {ratio.value:.2f} of the "
                f"larger ({ratio.low:.2f} to {ratio.high:.2f})."
            )
    return Figure(
        "Selection rates",
        (
            "A dot is the share of accepted people, the bar around it the interval in which the "
            f"share would lie with {_level(audits)} confidence if such people were drawn anew.",
            *ratios,
            "The four-fifths rule of thumb of United States employment law takes a ratio below "
            "0.80 as a reason to look closer. It is not a test of discrimination, and a ratio "
            "above it is not a clearance.",
        ),
        _columns(rows, {"label": "model", "series": "group", "people": "people", **_LIMITS, **_NOTE}),
        rows,
        _intervals(rows, title="share accepted", colours=GROUP_COLOURS, domain=(0.0, 1.0)),
        wide=True,
    )


def _intervals(rows: list[Row], **options: Any) -> dict[str, Any] | None:
    if all(row["value"] is None for row in rows):
        return None
    return finished(interval_chart(rows, **options))


def _gaps(audits: Sequence[Audit]) -> Figure:
    names = list(dict.fromkeys(gap.name for audit in audits for gap in audit.gaps))
    found = [
        (audit, gap)
        for name in names
        for audit in audits
        for gap in audit.gaps
        if gap.name == name
    ]
    rows = [
        {
            "label": gap_name(gap.name),
            "symbol": gap.symbol,
            "series": _label(audit.model_name),
            "value": gap.value,
            "low": gap.low,
            "high": gap.high,
            "higher": ""
            if not gap.signed
            else _label(audit.groups[1 if gap.signed > 0 else 0].label),
            "meaning": GAPS[gap.name][1] if gap.name in GAPS else "",
            "method": gap.method,
            "note": gap.refused or "",
        }
        for audit, gap in found
    ]
    columns = {
        "label": "gap",
        "symbol": "symbol",
        "series": "model",
        **_LIMITS,
        "higher": "higher in group",
        "meaning": "what it is",
        "method": "interval",
        **_NOTE,
    }
    return Figure(
        "Gaps with their intervals",
        (
            "Each gap is 0 where the groups are treated alike in that sense. A bar that reaches 0 "
            "means that these people do not show a difference, not that there is none.",
            f"Each interval holds by itself with {_level(audits)} confidence. Among {len(names)} "
            "gaps one or another may miss by chance.",
            "A gap is a fact about these people and this threshold. It does not say why it is "
            "there, nor whether it is justified.",
        ),
        _columns(rows, columns),
        rows,
        _intervals(rows, title="gap (0 = alike)"),
        wide=True,
    )


def _score_rows(audit: Audit) -> list[Row]:
    rows: list[Row] = []
    for group in audit.groups:
        shares = [count / max(group.n_rows, 1) for count in group.score_counts]
        rows += [
            {
                "series": _label(group.label),
                "low": low,
                "high": high,
                "people": count,
                "share": share,
                "cumulative": min(total, 1.0),
            }
            for low, high, count, share, total in zip(
                audit.score_edges,
                audit.score_edges[1:],
                group.score_counts,
                shares,
                accumulate(shares),
                strict=False,
            )
        ]
    return rows


_SCORE_COLUMNS = {"series": "group", "low": "score from", "high": "to"}


def _scores(audit: Audit) -> Figure:
    rows = _score_rows(audit)
    return Figure(
        f"Scores of both groups: {shown_name(audit.model_name)}",
        (
            "The share of each group's people in every interval of scores.",
            f"The dashed line is the threshold, {audit.threshold:g}: people at or above it are "
            "accepted. Where many people stand close to it, a small change of the model or of the "
            "threshold changes many decisions.",
        ),
        {**_SCORE_COLUMNS, "people": "people", "share": "share"},
        rows,
        finished(
            step_chart(
                rows,
                title="score",
                colours=GROUP_COLOURS,
                references={"threshold": audit.threshold},
            )
        ),
    )


def _cumulative(audit: Audit) -> Figure:
    rows = _score_rows(audit)
    return Figure(
        f"Share at or below each score: {shown_name(audit.model_name)}",
        (
            "The group whose curve lies lower has the higher scores.",
            "The largest vertical distance of the two curves and the area between them are two of "
            "the gaps above, up to the width of the intervals.",
        ),
        {**_SCORE_COLUMNS, "cumulative": "share at or below"},
        rows,
        finished(cumulative_chart(rows, title="score")),
    )


def _matching(audits: Sequence[Audit]) -> list[Figure]:
    figures = []
    if any(audit.matching.transport for audit in audits):
        figures.append(_transport(audits))
    figures += _each(audits, lambda audit: audit.matching.transport, _features)
    return figures + _each(audits, lambda audit: audit.matching.matched_gaps, _matched)


def _sampled(audit: Audit) -> str:
    first, second = audit.matching.n_sampled
    if audit.matching.is_sample:
        return f"A random sample of {first:,} and {second:,} people of the two groups was matched."
    return f"All {first:,} and {second:,} people of the two groups were matched."


def _transport(audits: Sequence[Audit]) -> Figure:
    rows = []
    for audit in audits:
        if (found := audit.matching.transport) is None:
            continue
        tied = found.relative_high != found.relative
        rows.append(
            {
                "label": _label(audit.model_name),
                "series": "relative distance",
                "value": found.relative,
                "low": found.relative if tied else None,
                "high": found.relative_high if tied else None,
                "cost": found.cost,
                "smallest": found.smallest,
                "random": found.random,
                "undetermined": found.undetermined,
            }
        )
    top = max([1.2, *(row["high"] or row["value"] or 0.0 for row in rows)]) * 1.04
    return Figure(
        "How far apart are people who are treated alike?",
        (
            "On this scale 0 means that people treated alike are as near to each other as any "
            "matching of the two groups can make them, 1 that they are no nearer than people "
            "paired at random, and more than 1 that they are farther apart than that.",
            "Distance is taken over all columns given, numbers scaled to [0, 1] and two different "
            "categories at squared distance 2. Another choice of columns or scales gives other "
            "numbers.",
            "A bar shows the range that tied scores leave open; it is not a confidence interval. "
            + _sampled(audits[0]),
        ),
        {
            "label": "model",
            "value": "relative distance",
            "low": "from (ties)",
            "high": "to (ties)",
            "cost": "mean squared distance",
            "smallest": "nearest possible",
            "random": "random",
            "undetermined": "share tied",
        },
        rows,
        _intervals(
            rows,
            title="0 = as near as possible, 1 = as random",
            references={"as near as possible": 0.0, "as random": 1.0},
            domain=(min([-0.04, *(row["value"] or 0.0 for row in rows)]), top),
        ),
        wide=True,
    )


def _features(audit: Audit) -> Figure | None:
    found = audit.matching.transport
    if found is None or not found.features:
        return None
    rows: list[Row] = [
        {
            "label": _label(part.name),
            "cost": part.cost,
            "smallest": part.smallest,
            "random": part.random,
            "share": part.share,
        }
        for part in found.features
    ]
    more = len(rows) - _MOST_BARS
    return Figure(
        f"What sets them apart: {shown_name(audit.model_name)}",
        (
            "How much each column adds to the squared distance of people who are treated alike: "
            "the attributes that the model forgives. The marks show the same for the nearest "
            "possible and for a random matching.",
            "A column with many categories or wide differences adds much under any matching; "
            "compare the bar with its marks, not with other bars."
            + (f" The {more} columns that add least are only in the table." if more > 0 else ""),
        ),
        {
            "label": "column",
            "cost": "treated alike",
            "smallest": "nearest possible",
            "random": "random",
            "share": "share of the total",
        },
        rows,
        finished(contribution_chart(rows[:_MOST_BARS], title="mean squared distance")),
    )


def _matched(audit: Audit) -> Figure | None:
    found = audit.matching.matched_gaps
    bins = [
        {
            "series": MATCHINGS.get(match.matching, match.matching),
            "low": k / len(match.histogram),
            "high": (k + 1) / len(match.histogram),
            "share": share,
        }
        for match in found
        for k, share in enumerate(match.histogram)
    ]
    first, second = (_label(group.label) for group in audit.groups)
    rows: list[Row] = [
        {
            "series": MATCHINGS.get(match.matching, match.matching),
            **_limits(match.gap),
            "median": match.quantiles.get("0.5"),
            "high95": match.quantiles.get("0.95"),
            "first_only": match.flips.first_only,
            "second_only": match.flips.second_only,
            "cost": match.transport_cost,
        }
        for match in found
    ]
    reading = [
        "The score gap between two matched people, over all pairs. The model's own matching pairs "
        "people at the same rank of their groups."
    ]
    if len(found) > 1:
        reading.append(
            "The nearest people are as alike as the table can tell; a large score gap between "
            "them is a question to ask of the model, not proof of unequal treatment, since what "
            "is not in the table may differ."
        )
    reading.append(
        "A flip is a pair of whom one is accepted and the other is not. Intervals take the pairs "
        "as given."
    )
    return Figure(
        f"Score gaps of matched people: {shown_name(audit.model_name)}",
        tuple(reading),
        {
            "series": "people matched",
            "value": "mean gap",
            "low": "from",
            "high": "to",
            "median": "median gap",
            "high95": "95% are below",
            "first_only": f"only {first} accepted",
            "second_only": f"only {second} accepted",
            **({"cost": "mean squared distance"} if audit.matching.transport else {}),
        },
        rows,
        finished(step_chart(_trimmed(bins), title="score gap of the two people")),
    )


def _trimmed(bins: list[Row]) -> list[Row]:
    """Leave out the empty end of a histogram."""
    end = max((row["high"] for row in bins if row["share"] > 0.0), default=1.0)
    return [row for row in bins if row["high"] <= end + 1e-9]


def _subsets(audit: Audit) -> Figure | None:
    scan = audit.subsets
    if scan is None:
        return None
    first, second = (_label(group.label) for group in audit.groups)
    rows: list[Row] = [
        {
            "label": shown_name(subset.description, 200),
            "series": "on fresh rows",
            **_limits(subset.confirmed),
            "certain": certain(subset),
            "all": subset.gap,
            "higher": second if subset.signed > 0 else first,
            "n_first": subset.n_rows[0],
            "n_second": subset.n_rows[1],
        }
        for subset in scan.subsets
    ]
    n_certain = sum(row["certain"] for row in rows)
    overall = audit.gap("mean_parity_gap").value
    columns = {
        "label": "subset",
        "value": "gap on fresh rows",
        "low": "from",
        "high": "to",
        "all": "gap on all rows",
        "higher": "higher in group",
        "n_first": f"people, {first}",
        "n_second": f"people, {second}",
        **_NOTE,
    }
    if not rows:
        said = "No subset is listed."
    elif n_certain:
        said = f"In {n_certain} of the {len(rows)} subsets listed the interval leaves 0 out."
    else:
        said = f"In none of the {len(rows)} subsets listed does the interval leave 0 out."
    return Figure(
        f"Subsets with the surest gaps: {shown_name(audit.model_name)}",
        (
            f"{scan.n_examined:,} subsets were looked at on {scan.n_search:,} rows; the gaps shown "
            f"are of {scan.n_confirm:,} other rows. {said}",
            "The intervals hold for all listed subsets at once, which corrects for having looked "
            "at many; they are wider for it. A subset that is not listed is not thereby fair.",
            *(
                [f"The dashed line is the gap over everybody, {overall:.3f}."]
                if overall is not None and rows
                else []
            ),
            *scan.refused,
        ),
        _columns(rows, columns),
        rows,
        _intervals(
            rows[:_MOST_BARS],
            title="gap between mean scores",
            references={} if overall is None else {"gap over everybody": overall},
        )
        if rows
        else None,
        wide=True,
    )


def _half_spaces(audit: Audit) -> Figure | None:
    if audit.subsets is None or not audit.subsets.half_spaces.gaps:
        return None
    found = audit.subsets.half_spaces
    drawn = {"this model": found.gaps, "groups shuffled": found.noise}
    edges = np.linspace(0.0, max(max(found.gaps), max(found.noise, default=0.0)) or 1.0, 21)
    bins = []
    for name, gaps in drawn.items():
        shares = np.histogram(gaps, bins=edges)[0] / max(len(gaps), 1)
        bins += [
            {"series": name, "low": low, "high": high, "share": share}
            for low, high, share in zip(
                edges.tolist(), edges[1:].tolist(), shares.tolist(), strict=False
            )
        ]
    rows: list[Row] = [
        {
            "series": name,
            "n": len(gaps),
            **{f"q{q}": float(np.quantile(gaps, q / 100)) for q in (50, 95, 100)},
        }
        for name, gaps in drawn.items()
        if gaps
    ]
    return Figure(
        f"Gaps in random subsets: {shown_name(audit.model_name)}",
        (
            "Each of many random cuts through the table keeps some people; this is the gap between "
            "the groups' mean scores among them.",
            "Small subsets have gaps by chance alone. The second outline shows how large, with the "
            "group labels shuffled among people: only what lies to its right speaks of the model."
            + (
                f" {found.n_empty:,} cuts kept nobody of one group and are left out."
                if found.n_empty
                else ""
            ),
        ),
        {"series": "groups", "n": "subsets", "q50": "median", "q95": "95% below", "q100": "largest"},
        rows,
        finished(step_chart(bins, title="gap between mean scores")),
        wide=True,
    )


_QUALITIES = {
    "base_rate": "Positive labels",
    "accuracy": "Accuracy",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "auc": "Ranking quality (AUC)",
}


def _accuracy(audit: Audit) -> Figure:
    rows: list[Row] = [
        {"label": words, "series": _label(group.label), **_limits(fact)}
        for name, words in _QUALITIES.items()
        for group in audit.groups
        if (fact := getattr(group, name)) is not None
    ]
    return Figure(
        f"Agreement with the labels: {shown_name(audit.model_name)}",
        (
            "Accuracy is the share of decisions that agree with the label; the true (false) "
            "positive rate is the share accepted among people with a positive (negative) label.",
            "An AUC of 0.5 is a random order of people, 1 a perfect one.",
            "If the model was trained on these rows, all of this flatters it.",
        ),
        _columns(rows, {"label": "what", "series": "group", **_LIMITS, **_NOTE}),
        rows,
        _intervals(rows, title="share, or AUC", colours=GROUP_COLOURS, domain=(0.0, 1.0)),
    )


def _calibration(audit: Audit) -> Figure:
    rows: list[Row] = [
        {
            "series": _label(group.label),
            "range": f"{part.low:.1f} to {part.high:.1f}",
            "n_rows": part.n_rows,
            "mean_score": part.mean_score,
            **_limits(part.positive_rate),
        }
        for group in audit.groups
        for part in group.calibration
        if part.n_rows
    ]
    errors = [
        f"{shown_name(group.label)} {group.calibration_error:.3f}"
        for group in audit.groups
        if group.calibration_error is not None
    ]
    return Figure(
        f"Do scores mean the same? {shown_name(audit.model_name)}",
        (
            "Where a dot lies on the diagonal, people with that score had positive labels that "
            "often. If the groups lie apart, the same score means different things for them.",
            f"Mean distance from the diagonal: {', '.join(errors)}." if errors else "",
            "Each bar holds for its own dot; dots of few people are unsure.",
        ),
        _columns(
            rows,
            {
                "series": "group",
                "range": "scores",
                "n_rows": "people",
                "mean_score": "mean score",
                "value": "share positive",
                "low": "from",
                "high": "to",
                **_NOTE,
            },
        ),
        rows,
        finished(calibration_chart(rows)) if any(r["value"] is not None for r in rows) else None,
    )


def _side_by_side(audits: Sequence[Audit]) -> list[Figure]:
    if len(audits) < 2:
        return []
    rows: list[Row] = []
    for audit in audits:
        found = audit.matching.transport
        gaps = {gap.name: gap.value for gap in audit.gaps}
        rows.append(
            {
                "label": _label(audit.model_name),
                "ratio": audit.selection_ratio.value,
                **{name: gaps.get(name) for name in GAPS},
                "relative": found.relative if found else None,
                "certain": sum(map(certain, audit.subsets.subsets)) if audit.subsets else None,
                "accuracy": _overall_accuracy(audit),
            }
        )
    columns = {
        "label": "model",
        "ratio": "ratio of selection rates",
        **{name: gap_name(name).lower() for name in GAPS},
        "relative": "relative distance of people treated alike",
        "certain": "listed subsets with a sure gap",
        "accuracy": "accuracy",
    }
    known = {k: v for k, v in columns.items() if any(row[k] is not None for row in rows)}
    # One column per model is easier to compare than one row per model.
    turned: list[Row] = [
        {"what": words, **{f"m{k}": row[key] for k, row in enumerate(rows)}}
        for key, words in known.items()
        if key != "label"
    ]
    headings = {"what": "measure", **{f"m{k}": row["label"] for k, row in enumerate(rows)}}
    same = len({(a.provenance.groups_sha256, a.provenance.features_sha256) for a in audits}) == 1
    return [
        Figure(
            "All numbers side by side",
            (
                "Estimates without their intervals, which stand in the figures above: a difference "
                "between two models that is smaller than their intervals is no finding.",
                ""
                if same
                else "The models were audited on different people, so that a difference may come "
                "from the people and not from the model.",
            ),
            headings,
            turned,
            None,
            wide=True,
        )
    ]


def _overall_accuracy(audit: Audit) -> float | None:
    parts = [(g.accuracy.value if g.accuracy else None, g.n_rows) for g in audit.groups]
    if any(value is None for value, _ in parts):
        return None
    return sum(value * n for value, n in parts if value is not None) / audit.n_rows


def _changes(comparison: Comparison) -> list[Figure]:
    rows: list[Row] = []
    bars: list[Row] = []
    for pair in comparison.pairs:
        for group, (_, lost, gained, _) in pair.decisions.items():
            total = max(sum(pair.decisions[group]), 1)
            label = f"{_label(pair.model)}: {_label(group)}"
            rows.append(
                {
                    "label": _label(pair.model),
                    "series": _label(group),
                    "lost": lost,
                    "gained": gained,
                    "agreement": pair.rank_agreement.get(group),
                    "undesirable": (pair.undesirable_flips or {}).get(group),
                }
            )
            bars += [
                {"label": label, "series": words, "value": n / total, "low": 0.0, "high": n / total}
                for words, n in (("no longer accepted", lost), ("newly accepted", gained))
            ]
    reference = shown_name(comparison.audits[0].model_name)
    columns = {
        "label": "model",
        "series": "group",
        "lost": "no longer accepted",
        "gained": "newly accepted",
        "agreement": "rank agreement",
    }
    reading = [
        f"Decisions that differ from those of {reference}, as shares of each group, and how far "
        "the order of people within a group is the same (1 = the same order).",
    ]
    if comparison.privileged is not None:
        columns["undesirable"] = "undesirable flips"
        reading.append(
            f"With {shown_name(comparison.privileged)} named as the favoured group, a flip is "
            "called undesirable if it takes from the other group or gives to the favoured one."
        )
    return [
        Figure(
            f"Decisions that change against {reference}",
            tuple(reading),
            columns,
            rows,
            _intervals(bars, title="share of the group", colours=SERIES_COLOURS[2:]),
            wide=True,
        )
    ]


def _curve(curve: pd.DataFrame) -> Figure:
    gap = "demographic_parity_gap"
    if missing := [c for c in ("fairness_weight", "accuracy", gap) if c not in curve]:
        raise InputError(
            f"curve has no column {missing[0]!r}; expected a table of FairnessPath.curve."
        )
    names = [name for name in GAPS if name in curve]
    columns = {"fairness_weight": "fairness weight", "accuracy": "accuracy"}
    plain = curve[[*columns, *names]].astype(float)
    return Figure(
        "Accuracy against unfairness",
        (
            "The farther left, the smaller the gap; the higher, the more decisions agree with the "
            "labels.",
            "The points are estimates without intervals, on the rows the curve was made of. To "
            "choose a point by looking at the rows that it is then judged on flatters it.",
        ),
        {**columns, **{name: gap_name(name).lower() for name in names}},
        plain.to_dict("records"),
        finished(tradeoff_chart(plain, gap=gap)),
        wide=True,
    )
