"""Figures about people: who is treated like whom, and subsets of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmatch.auditing.facts import Audit
from fairmatch.report.charts import (
    Row,
    contribution_chart,
    finished,
    step_chart,
)
from fairmatch.report.figures.figure import NOTE, Figure, intervals, label, limits, noted
from fairmatch.report.wording import MATCHINGS, certain, shown_name, subset_name

# A chart shows so many bars; the table below it shows all.
_MOST_BARS = 12


def _sampled(audit: Audit) -> str:
    first, second = audit.matching.n_sampled
    if audit.matching.is_sample:
        return f"A random sample of {first:,} and {second:,} people of the two groups was matched."
    return f"All {first:,} and {second:,} people of the two groups were matched."


def transport_figure(audits: Sequence[Audit]) -> Figure:
    """Show how far apart people are who are treated alike."""
    rows: list[Row] = []
    for audit in audits:
        if (found := audit.matching.transport) is None:
            continue
        tied = found.relative_high != found.relative
        rows.append(
            {
                "label": label(audit.model_name),
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
        intervals(
            rows,
            title="0 = as near as possible, 1 = as random",
            references={"as random": 1.0},
            domain=(min([0.0, *(row["value"] or 0.0 for row in rows)]), top),
        ),
        wide=True,
    )


def feature_figure(audit: Audit) -> Figure | None:
    """Show which columns set people apart who are treated alike."""
    found = audit.matching.transport
    if found is None or not found.features:
        return None
    rows: list[Row] = [
        {
            "label": label(part.name),
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


def _trimmed(bins: list[Row]) -> list[Row]:
    """Leave out the empty end of a histogram."""
    end = max((row["high"] for row in bins if row["share"] > 0.0), default=1.0)
    return [row for row in bins if row["high"] <= end + 1e-9]


def matched_figure(audit: Audit) -> Figure | None:
    """Show the score gaps of matched people."""
    found = audit.matching.matched_gaps
    bins: list[Row] = [
        {
            "series": MATCHINGS.get(match.matching, match.matching),
            "low": k / len(match.histogram),
            "high": (k + 1) / len(match.histogram),
            "share": share,
        }
        for match in found
        for k, share in enumerate(match.histogram)
    ]
    first, second = (label(group.label) for group in audit.groups)
    rows: list[Row] = [
        {
            "series": MATCHINGS.get(match.matching, match.matching),
            **limits(match.gap),
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
        finished(step_chart(_trimmed(bins), title="score gap of the two people", of="pairs")),
    )


def subset_figure(audit: Audit) -> Figure | None:
    """Show the subsets whose gaps are surest."""
    scan = audit.subsets
    if scan is None:
        return None
    first, second = (label(group.label) for group in audit.groups)
    rows: list[Row] = [
        {
            "label": subset_name(subset),
            "series": "on fresh rows",
            **limits(subset.confirmed),
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
        **NOTE,
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
        noted(rows, columns),
        rows,
        intervals(
            rows[:_MOST_BARS],
            title="gap between mean scores",
            references={} if overall is None else {"gap over everybody": overall},
        )
        if rows
        else None,
        wide=True,
    )


def half_space_figure(audit: Audit) -> Figure | None:
    """Show the gaps in random subsets beside those of shuffled groups."""
    if audit.subsets is None or not audit.subsets.half_spaces.gaps:
        return None
    found = audit.subsets.half_spaces
    drawn = {"this model": found.gaps, "groups shuffled": found.noise}
    edges = np.linspace(0.0, max(max(found.gaps), max(found.noise, default=0.0)) or 1.0, 21)
    bins: list[Row] = []
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
        {
            "series": "groups",
            "n": "subsets",
            "q50": "median",
            "q95": "95% below",
            "q100": "largest",
        },
        rows,
        finished(step_chart(bins, title="gap between mean scores", of="subsets")),
        wide=True,
    )
