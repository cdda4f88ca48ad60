"""Names, numbers and conditions as the report writes them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairmatch.auditing.facts import Audit, Estimate, Gap, GroupFacts, SubsetGap
from fairmatch.measures import MEASURES

# How people are matched, in the order of the explorer.
MATCHINGS = {
    "nearest_fair": "nearest fair matching",
    "near": "nearest person",
    "marginal": "nearest matching",
    "joint": "nearest matching within labels",
    "fair": "same rank of score",
}

_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# A sign that joins two words of a column's name, at least one of which begins or ends in a letter.
_JOINT = re.compile(r"(?<=[^\W\d_])[_.\-]+(?=[^\W_])|(?<=[^\W_])[_.\-]+(?=[^\W\d_])")


def shown_name(name: str, longest: int = 80) -> str:
    r"""Return a name from the data as it can stand in a sentence.

    Long names are cut in the middle. A name that is written from right to left, or that holds
    signs which turn the direction of the text, is isolated. The sentence keeps its own direction.

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


def column_words(name: str, longest: int = 80) -> str:
    """Return the name of a column as people write it.

    Examples
    --------
    >>> column_words("hours_per_week"), column_words("education-num"), column_words("1.5")
    ('hours per week', 'education num', '1.5')
    """
    return shown_name(name if re.search(r"\s", name) else _JOINT.sub(" ", name), longest)


def told_apart(
    names: Iterable[str], write: Callable[[str, int], str] = shown_name, longest: int = 60
) -> dict[str, str]:
    """Return how each of some names is written, with no two written alike.

    Examples
    --------
    >>> told_apart(["pay_grade", "pay grade", "age"], column_words)
    {'pay_grade': 'pay_grade', 'pay grade': 'pay grade', 'age': 'age'}
    """
    written = {name: write(name, longest) for name in names}
    alike = Counter(written.values())
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name, words in written.items():
        text = words if alike[words] == 1 else shown_name(name, longest)
        number = 2
        while text in taken:
            text, number = f"{shown_name(name, longest)} ({number})", number + 1
        taken.add(text)
        found[name] = text
    return found


def shown_number(value: Any) -> str:
    """Return a value as it stands in a table, or "no statement" for None.

    Examples
    --------
    >>> shown_number(0.12345), shown_number(12345), shown_number(None), shown_number("a")
    ('0.123', '12,345', 'no statement', 'a')
    >>> shown_number(-1e-17)
    '0.000'
    """
    if value is None:
        return "no statement"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:z.3f}"
    return str(value)


def shown_interval(fact: Estimate | Gap) -> str:
    """Return a number with its interval.

    Examples
    --------
    >>> shown_interval(Estimate(0.25, 0.2, 0.3))
    '0.250 (0.200 to 0.300)'
    """
    if fact.value is None or fact.low is None or fact.high is None:
        return shown_number(fact.value)
    return f"{fact.value:z.3f} ({fact.low:z.3f} to {fact.high:z.3f})"


def n_people(number: int) -> str:
    """Return a number of people in words.

    Examples
    --------
    >>> n_people(1), n_people(4096)
    ('1 person', '4,096 people')
    """
    return "1 person" if number == 1 else f"{number:,} people"


def listed(words: Sequence[str]) -> str:
    """Return some words as a list in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def by_size(groups: tuple[GroupFacts, ...]) -> list[GroupFacts]:
    """Return groups in the order of their size, the largest first.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.1, 0.9] * 40, sensitive_features=["a", "b", "b", "b"] * 20)
    >>> [group.label for group in by_size(found.groups)]
    ['b', 'a']
    """
    return sorted(groups, key=lambda group: -group.n_rows)


def group_words(label: str) -> str:
    """Return how a sentence names a group, in quotes if the name itself has several words.

    Examples
    --------
    >>> group_words("female"), group_words("female, Black")
    ('female', '“female, Black”')
    """
    name = shown_name(label)
    return f"“{name}”" if re.search(r"[\s,;:–]", name) else name


def compared_groups(audit: Audit) -> str:
    """Return which groups are compared: each, or each that is large enough for a statement."""
    known = [group for group in audit.groups if group.label not in audit.unknown]
    small = any(group.mean_score.value is None for group in known)
    return "each group with enough people for a statement" if small else "each group"


def is_drawn(audit: Audit) -> bool:
    """Return whether people were drawn to be matched, so that others may be nearer."""
    return any(matching.is_sample for matching in audit.matchings)


def model_words(audit: Audit) -> str:
    """Return how a sentence names the model."""
    name = audit.model_name
    return "the model" if name == "model" else f"“{shown_name(name)}”"


def outcome_words(audit: Audit) -> str:
    """Return what happens to people on the favourable side of the threshold."""
    return shown_name(audit.outcome)


def other_words(audit: Audit) -> str:
    """Return what happens to the others."""
    words = outcome_words(audit)
    return words.removeprefix("not ") if words.startswith("not ") else f"not {words}"


def selected_from(audit: Audit) -> str:
    """Return which scores are on the favourable side of the threshold, or which decision is."""
    yes = audit.provenance.settings.get("accepted")
    if yes is not None and audit.threshold:  # at a threshold of 0 every decision counts
        of = "other than" if audit.favourable == "low" else "of"
        return f"decision {of} “{shown_name(str(yes))}”"
    side = "below" if audit.favourable == "low" else "at or above"
    return f"score {side} {audit.threshold:g}"


def label_words(audit: Audit, favourable: bool) -> str:
    """Return how a sentence names the favourable label, or the other one."""
    return "positive" if favourable == (audit.favourable == "high") else "negative"


RELATIVE = "relative_"
"""Prefix in the name of a gap that is measured in standard deviations."""

# Titles and words of gaps between predictions, which no threshold cuts.
_PREDICTED = {
    "mean_parity_gap": ("Mean predictions", "difference of the mean predictions"),
    "wasserstein_parity_gap": (
        "Distributions of predictions",
        "mean difference of the predictions for people at the same rank of their groups",
    ),
    "ks_parity_gap": (
        "Distributions of predictions, largest distance",
        "largest difference of the shares of people predicted at most some number",
    ),
    "matched_parity_gap": (
        "Matched people",
        "mean difference of the predictions for people who are matched with each other",
    ),
}


def gap_title(name: str, audit: Audit | None = None) -> str:
    """Return the title of a gap.

    Where low scores are good, the true positives are people with a negative label, so the title
    names the label instead.
    """
    if name.startswith(RELATIVE):
        return f"{gap_title(name.removeprefix(RELATIVE), audit)}, relative"
    if audit is not None and audit.scale == "real" and name in _PREDICTED:
        return _PREDICTED[name][0]
    if name not in MEASURES:
        return name.replace("_", " ").capitalize()
    if audit is not None and (label := _turned_label(name, audit)) is not None:
        return f"Selection rates with a {label} label"
    return MEASURES[name].title


def gap_words(name: str, audit: Audit | None = None) -> str:
    """Return what the value of a gap measures; an empty text for an unknown gap."""
    if audit is not None and name.startswith(RELATIVE) and audit.spread is not None:
        plain = gap_words(name.removeprefix(RELATIVE), audit)
        return f"{plain}, in standard deviations of the {audit.spread.of}"
    if audit is not None and audit.scale == "real" and name in _PREDICTED:
        return _PREDICTED[name][1]
    if name not in MEASURES:
        return ""
    if audit is not None and (label := _turned_label(name, audit)) is not None:
        return f"difference of the shares selected among people with a {label} label"
    return MEASURES[name].words


def _turned_label(name: str, audit: Audit) -> str | None:
    """Return the label of the people whom a gap compares, if its name says another one."""
    labels = MEASURES[name].labels
    if audit.favourable == "high" or labels not in ((True,), (False,)):
        return None
    return label_words(audit, favourable=bool(labels[0]))


_OPERATORS = {"=": "is", "!=": "is not", "<=": "is at most", ">": "is above"}


def subset_name(subset: SubsetGap) -> str:
    """Return the conditions of a subset in words.

    Examples
    --------
    >>> from fairmatch.auditing.facts import Condition
    >>> old = Condition("age", ">", 60.0), Condition("marital_status", "!=", "married")
    >>> subset_name(SubsetGap("", old, (40, 40), 0.1, 0.1, Estimate(0.1), "pair"))
    'age is above 60 and marital status is not married'
    """
    said = []
    for condition in subset.conditions:
        value = condition.value
        words = f"{value:.10g}" if isinstance(value, float) else value
        if value is None:
            words = "missing"
        operator = _OPERATORS.get(condition.operator, condition.operator)
        said.append(f"{column_words(condition.column, 60)} {operator} {shown_name(str(words), 60)}")
    return " and ".join(said) or shown_name(subset.description, 200)
