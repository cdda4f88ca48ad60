"""What the report says in words, and how it writes numbers and names."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from fairmatch.auditing.facts import Audit, Estimate, Gap, SubsetGap

# A gap's name for people, and what it is.
GAPS = {
    "demographic_parity_gap": ("Selection rates", "difference of the shares of accepted people"),
    "mean_parity_gap": ("Mean scores", "difference of the mean scores"),
    "wasserstein_parity_gap": (
        "Score distributions, mean distance",
        "mean score difference of people at the same rank of their groups",
    ),
    "total_variation_parity_gap": (
        "Score distributions, overlap",
        "share of people who would have to get another score, in intervals of scores",
    ),
    "ks_parity_gap": (
        "Score distributions, largest distance",
        "difference of selection rates at the threshold where it is largest",
    ),
    "matched_parity_gap": (
        "Nearest people of the other group",
        "mean score difference of people who are most alike in their features",
    ),
    "true_positive_gap": (
        "True positive rates",
        "difference of the shares accepted among people with a positive label",
    ),
    "false_positive_gap": (
        "False positive rates",
        "difference of the shares accepted among people with a negative label",
    ),
    "equalized_odds_gap": ("Both error rates", "mean of the two gaps of error rates"),
}

MATCHINGS = {
    "fair": "treated alike by the model",
    "marginal": "nearest people",
    "joint": "nearest people with the same label",
}

_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def shown_name(name: str, longest: int = 80) -> str:
    r"""Give a name from the data as it can stand in a sentence.

    Long names are cut in the middle. Names that are written from right to left, or that carry
    signs which turn the direction of the text, are isolated so that the sentence keeps its own.

    Examples
    --------
    >>> shown_name("age")
    'age'
    >>> len(shown_name("x" * 500))
    80
    >>> shown_name("a\u202eb") == "\u2068ab\u2069"
    True
    """
    text = re.sub(r"\s+", " ", "".join(c for c in name if c not in _BIDI_CONTROLS)).strip()
    turned = text != name or any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}…{text[len(text) - half :]}"
    return f"\u2068{text}\u2069" if turned else text


def shown_number(value: Any) -> str:
    """Write a number for a table; what is not there is said so.

    Examples
    --------
    >>> shown_number(0.12345), shown_number(12345), shown_number(None), shown_number("a")
    ('0.123', '12,345', 'no statement', 'a')
    """
    if value is None:
        return "no statement"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def shown_interval(fact: Estimate | Gap) -> str:
    """Write a number with its interval.

    Examples
    --------
    >>> shown_interval(Estimate(0.25, 0.2, 0.3))
    '0.250 (0.200 to 0.300)'
    """
    if fact.value is None or fact.low is None or fact.high is None:
        return shown_number(fact.value)
    return f"{fact.value:.3f} ({fact.low:.3f} to {fact.high:.3f})"


def gap_name(name: str) -> str:
    """Give a gap's name for people."""
    return GAPS[name][0] if name in GAPS else name.replace("_", " ").capitalize()


def sentences(audit: Audit) -> list[str]:
    """Say in three sentences what an audit found: on selection, on matched people, on subsets.

    Parameters
    ----------
    audit : Audit
        As made by `fairmatch.audit`.

    Returns
    -------
    list of three str
        Plain text, not escaped.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> print(sentences(found)[0])
    Of 80 people, the model accepts 50.0% of the 40 in group a and 100.0% of the 40 in group b, a
    difference of 50.0 percentage points (95% interval ...).
    """
    return [_on_selection(audit), _on_matching(audit), _on_subsets(audit)]


def _on_selection(audit: Audit) -> str:
    rates = []
    for group in audit.groups:
        rate = group.selection_rate.value
        share = "an unstated share" if rate is None else f"{rate:.1%}"
        rates.append(f"{share} of the {group.n_rows:,} in group {shown_name(group.label)}")
    name = audit.model_name
    who = "the model" if name == "model" else f"“{shown_name(name)}”"
    start = f"Of {audit.n_rows:,} people, {who} accepts {rates[0]} and {rates[1]}"
    gap = audit.gap("demographic_parity_gap")
    if gap.value is None:
        return f"{start}; no gap is stated, because: {(gap.refused or 'not given').rstrip('.')}."
    end = f", a difference of {100 * gap.value:.1f} percentage points"
    if gap.low is not None and gap.high is not None:
        end += f" ({audit.confidence:.0%} interval {100 * gap.low:.1f} to {100 * gap.high:.1f}"
        end += "; no difference at all cannot be ruled out)" if gap.low == 0.0 else ")"
    return f"{start}{end}."


def _on_matching(audit: Audit) -> str:
    matching = audit.matching
    if matching.refused:
        return f"Nobody was matched, because: {matching.refused.rstrip('.')}."
    transport = matching.transport
    if transport is None:
        gap = next(m.gap for m in matching.matched_gaps if m.matching == "fair")
        return (
            "People at the same rank of their groups get scores that differ by "
            f"{shown_number(gap.value)} on average; without their features nothing is said of "
            "how alike these people are."
        )
    if transport.relative is None:
        return (
            "The nearest and a random matching of the groups cost the same here, so nothing is "
            "said of how near the people are whom the model treats alike."
        )
    place = f"{transport.relative:.2f}"
    if (high := transport.relative_high) is not None and f"{high:.2f}" != place:
        place += f" to {high:.2f} (tied scores leave it open)"
    largest = max(transport.features, key=lambda part: part.cost - part.smallest)
    return (
        f"The people whom it treats alike lie at {place} between the nearest possible matching of "
        f"the two groups (0) and a random one (1); {shown_name(largest.name)} adds most to what "
        "sets them farther apart than the nearest."
    )


def _on_subsets(audit: Audit) -> str:
    scan = audit.subsets
    if scan is None:
        return "Without features no subsets were searched, so a fair average may hide unfair parts."
    if not scan.subsets:
        return (
            f"No subset had the {scan.min_rows} people of each group that a statement needs, so "
            "none is listed."
        )
    worst = scan.subsets[0]
    where = subset_name(worst)
    searched = f"Of {scan.n_examined:,} subsets looked at"
    if certain(worst):
        return (
            f"{searched}, the gap between mean scores is surest where {where}: "
            f"{shown_interval(worst.confirmed)}, an interval on fresh rows that allows for the "
            f"{len(scan.subsets)} subsets listed."
        )
    return (
        f"{searched}, none has a gap between mean scores that is certain to differ from 0 on "
        f"fresh rows; the first in the list is where {where}, with "
        f"{shown_interval(worst.confirmed)}."
    )


_OPERATORS = {"=": "is", "!=": "is not", "<=": "is at most", ">": "is above"}


def subset_name(subset: SubsetGap) -> str:
    """Describe a subset in words.

    Examples
    --------
    >>> from fairmatch.auditing.facts import Condition
    >>> old = Condition("age", ">", 60.0), Condition("status", "!=", "married")
    >>> subset_name(SubsetGap("", old, (40, 40), 0.1, 0.1, Estimate(0.1), "pair"))
    'age is above 60 and status is not married'
    """
    said = []
    for condition in subset.conditions:
        value = condition.value
        words = f"{value:g}" if isinstance(value, float) else value
        if value is None:
            words = "missing"
        operator = _OPERATORS.get(condition.operator, condition.operator)
        said.append(f"{shown_name(condition.column, 60)} {operator} {shown_name(str(words), 60)}")
    return " and ".join(said) or shown_name(subset.description, 200)


def certain(subset: SubsetGap) -> bool:
    """Say whether the interval of a subset's gap leaves 0 out."""
    return bool(subset.confirmed.low)
