"""Names, numbers, conditions and findings as the report writes them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.auditing.facts import Audit, Gap, GroupFacts, ImpactTable, Matching, SubsetGap
from fairmatch.measures import MEASURES
from fairmatch.people.checks import FloatArray
from fairmatch.people.groups import with_spaces_shown
from fairmatch.people.leaks import Leak

# How people are matched, in the order of the explorer.
MATCHINGS = {
    "nearest_fair": "nearest fair matching",
    "near": "nearest person",
    "marginal": "nearest matching",
    "joint": "nearest matching within labels",
    "fair": "same rank of score",
}


def resource(name: str) -> str:
    """Return the text of one of the files beside the code."""
    return files("fairmatch.report").joinpath("assets", name).read_text("utf-8")


@cache
def template(name: str) -> Any:
    """Return a template of the page, which escapes what it is given, or of plain text."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(resource),
    )
    environment.filters |= {
        "shown": shown_number,
        "name": shown_name,
        "people": n_people,
        "listed": listed,
        "percent": "{:.0%}".format,
        "column": column_words,
        "group": group_words,
        "gap_title": gap_title,
    }
    return environment.get_template(name)


_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# A sign that joins two words of a column's name, at least one of which begins or ends in a letter.
_JOINT = re.compile(r"(?<=[^\W\d_])[_.\-]+(?=[^\W_])|(?<=[^\W_])[_.\-]+(?=[^\W\d_])")


def shown_name(name: str, longest: int = 80) -> str:
    """Return a name from the data as it can stand in a sentence.

    Long names are cut in the middle. A name that is written from right to left, or that holds
    signs which turn the direction of the text, is isolated. The sentence keeps its own direction.
    Spaces at the ends are shown as signs, because names may differ by them alone.
    """
    text = re.sub(r"[^\S ]+", " ", "".join(c for c in name if c not in _BIDI_CONTROLS))
    turned = text != name or any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
    text = re.sub(r"(?<=\S) +(?=\S)", " ", with_spaces_shown(text))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}…{text[len(text) - half :]}"
    return f"\u2068{text}\u2069" if turned else text


def column_words(name: str, longest: int = 80) -> str:
    """Return the name of a column as people write it."""
    return shown_name(name if re.search(r"\s", name) else _JOINT.sub(" ", name), longest)


def told_apart(
    names: Iterable[str], write: Callable[[str, int], str] = shown_name, longest: int = 60
) -> dict[str, str]:
    """Return how each of some names is written, with no two written alike."""
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
    """Return a value as it stands in a table, or "no statement" for None."""
    if value is None:
        return "no statement"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:z,.1f}" if abs(value) >= 1000.0 else f"{value:z.3f}"
    return str(value)


def n_people(number: int) -> str:
    """Return a number of people in words."""
    return "1 person" if number == 1 else f"{number:,} people"


def listed(words: Iterable[str]) -> str:
    """Return some words as a list in a sentence."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def by_size(groups: Sequence[GroupFacts]) -> list[GroupFacts]:
    """Return groups sorted by size, the largest first."""
    return sorted(groups, key=lambda group: -group.n_rows)


def group_words(label: str) -> str:
    """Return how a sentence names a group, in quotes if the name itself has several words."""
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
    return shown_name(audit.outcome).replace("|", "/")  # which parts the headings of a table


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
    if audit.classes is not None:
        return "class with the largest probability"
    side = "below" if audit.favourable == "low" else "at or above"
    return f"score {side} {audit.threshold:g}"


def rule_words(audit: Audit) -> str:
    """Return what happens to people, and for which scores."""
    return f"{outcome_words(audit)}: {selected_from(audit)}"


# Settings with the two labels: the words that a reader was given, or else those of the data.
_LABELS = (("negative_means", "positive_means"), ("neg_label", "pos_label"))


def with_label_words(audit: Audit, words: Sequence[str]) -> Audit:
    """Return the audit with words for the negative and the positive label, if there are any."""
    if not words:
        return audit
    settings = {**audit.provenance.settings, **dict(zip(_LABELS[0], words, strict=True))}
    return replace(audit, provenance=replace(audit.provenance, settings=settings))


def label_words(audit: Audit, favourable: bool) -> str:
    """Return how a sentence names the favourable label, or the other one."""
    settings = audit.provenance.settings
    positive = favourable == (audit.favourable == "high")
    for names in _LABELS:
        if all(name in settings for name in names):
            return f"the label “{shown_name(str(settings[names[positive]]))}”"
    if audit.classes is not None:
        good = " or ".join(map(shown_name, audit.classes.favourable))
        return f"the label {good}" if favourable else "another label"
    return f"a {'positive' if positive else 'negative'} label"


def leak_sentence(leak: Leak) -> str:
    """Return what a reader should know of a column that gives the group away."""
    what = "the group" if leak.attribute is None else column_words(leak.attribute)
    if leak.group is not None:
        what += f" {group_words(str(leak.group))}"
    verb = {"copy": "is the same as", "determines": "determines", "near": "nearly determines"}
    column = group_words(column_words(leak.column))
    share = f" (agreement beyond chance {leak.agreement:.1%})" if leak.kind == "near" else ""
    return (
        f"The column {column} {verb[leak.kind]} {what}{share}. If it counts in the distance "
        "between two people, people of different groups cannot be near."
    )


def main_impact(audit: Audit) -> ImpactTable | None:
    """Return the rates and impact ratios of the groups that are audited; None for predictions."""
    known = {group.label for group in audit.groups if group.label not in audit.unknown}
    tables = [t for t in audit.impact if {one.category for one in t.categories} == known]
    return tables[-1] if tables else None


def gap_title(name: str, audit: Audit | None = None) -> str:
    """Return the title of a gap.

    Where low scores are good, the true positives are people with a negative label, so the title
    names the label instead.
    """
    if (measure := MEASURES.get(name)) is None:
        return name.replace("_", " ").capitalize()
    if audit is None:
        return measure.title
    if audit.kind == "number":
        return measure.predicted[0] if measure.predicted else measure.title
    if audit.favourable == "high" or measure.labels not in ((True,), (False,)):
        return measure.title
    return f"Selection rates with {label_words(audit, bool(measure.labels[0]))}"


def gap_words(name: str, audit: Audit) -> str:
    """Return what the value of a gap measures; an empty text for an unknown gap."""
    if (measure := MEASURES.get(name)) is None:
        return ""
    if audit.kind == "number":
        words = measure.predicted[1] if measure.predicted else measure.words
        if measure.is_relative and audit.spread is not None:
            words += f", in standard deviations of the {audit.spread.of}"
        return words
    return re.sub(
        "a (positive|negative) label",
        lambda found: label_words(audit, found[1] == "positive"),
        measure.words,
    )


_OPERATORS = {"=": "is", "!=": "is not", "<=": "is at most", ">": "is above"}
_ENDS = _OPERATORS["<="], _OPERATORS[">"]


def subset_name(subset: SubsetGap) -> str:
    """Return the conditions of a subset in words."""
    said: dict[tuple[str, ...], list[str]] = {}
    for condition in subset.conditions:
        value = condition.value
        words = f"{value:.10g}" if isinstance(value, float) else value
        if value is None:
            words = "missing"
        operator = _OPERATORS.get(condition.operator, condition.operator)
        # The two ends of a range are named together, and the lower end first.
        own = (condition.column, *([] if operator in _ENDS else [operator, str(value)]))
        said.setdefault(own, []).append(f"{operator} {shown_name(str(words), 60)}")
    named = []
    for own, ends in said.items():
        first, *rest = sorted(ends)
        parts = [first, *(end.removeprefix("is ") for end in rest)]
        named.append(f"{column_words(own[0], 60)} {' and '.join(parts)}")
    return " and ".join(named) or shown_name(subset.description, 200)


def sentences(audit: Audit, *, label_words: Sequence[str] = ()) -> list[str]:
    """Return the findings of an audit on selection, on matched people and on subsets.

    Parameters
    ----------
    audit : Audit
        The result of `fairmatch.audit`.
    label_words : pair of str, optional
        What the negative and the positive label mean, such as ("did not reoffend", "reoffended").

    Returns
    -------
    list of three str
        Plain text, not escaped. The first is on mean predictions if the scores are numbers.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> print(sentences(found)[0])
    Of 80 people, 50.0% of the 40 in group a and 100.0% of the 40 in group b are selected by the
    model, a difference of 50.0 percentage points (95% interval ...). The rate of a (0.50) is
    below four fifths of the rate of b (impact ratio in brackets).
    """
    audit = with_label_words(audit, label_words)
    return [_on_groups(audit), _on_matching(audit), _on_subsets(audit)]


def _on_groups(audit: Audit) -> str:
    """Return a sentence on who is selected, or what is predicted, and how far groups differ."""
    known = [group for group in by_size(audit.groups) if group.label not in audit.unknown]
    gap = "mean_parity_gap" if audit.kind == "number" else "demographic_parity_gap"
    said = _levels(audit, known) + _on_gap(audit, audit.gap(gap))
    if audit.kind != "number":
        said += _below_four_fifths(audit)
    said += _on_given(audit)
    if audit.kind != "number":
        said += _on_label(audit, known)
    return f"{said}{_on_bounds(audit)}{_left_out(audit)}"


def _on_given(audit: Audit) -> str:
    """Return how far groups differ among people with the same given factors."""
    if not audit.conditional:
        return ""
    one = max(audit.conditional, key=lambda own: abs(own.adjusted.value or 0.0))
    names = str(audit.provenance.settings.get("given") or "factor 1").split(", ")
    unnamed = all(re.fullmatch(r"factor \d+", name) for name in names)
    same = "given factors" if unnamed else listed(map(column_words, names))
    real = audit.kind == "number"

    def written(value: float, signed: bool = False) -> str:
        size = value if signed else abs(value)
        text = shown_number(float(size)) if real else f"{100 * size:z.1f}"
        return text if signed or real else f"{text} percentage points"

    def compared(value: float) -> str:
        return f"{written(value)} {'lower' if value < 0.0 else 'higher'}"

    own, other = group_words(one.group), group_words(one.reference)
    what = "mean prediction" if real else "rate"
    said = f" Among people with the same {same}, "
    if len(audit.conditional) > 1:
        said += f"{own} differs most from {other}: its {what}"
    else:
        said += f"the {what} of {own}"
    low, high = (written(end or 0.0, signed=True) for end in (one.adjusted.low, one.adjusted.high))
    return (
        f"{said} is {compared(one.value)} on average than that of {other} ({audit.confidence:.0%} "
        f"interval {low} to {high}); among all people it is {compared(one.marginal)}."
    )


def _on_bounds(audit: Audit) -> str:
    """Return how far gaps of probable groups could be without the assumption behind them."""
    name = "mean_parity_gap" if audit.kind == "number" else "demographic_parity_gap"
    for gap in audit.estimated.gaps if audit.estimated else ():
        if gap.name == name:
            low, high = (
                shown_number(end) if audit.kind == "number" else f"{100 * end:.1f}"
                for end in (gap.low, gap.high)
            )
            return (
                " The groups are probabilities: this holds if scores and groups are independent "
                f"given them; without that, any difference from {low} to {high} agrees with the "
                "data."
            )
    return ""


def _below_four_fifths(audit: Audit) -> str:
    """Return which groups have less than four fifths of the highest rate."""
    table = main_impact(audit)
    stated = {group.label for group in audit.groups if group.selection_rate.value is not None}
    if table is None or table.most_selected not in stated:
        return ""
    low = [c for c in table.categories if c.below_four_fifths and c.category in stated]
    if not low:
        return ""
    low.sort(key=lambda one: one.impact_ratio.value or 0.0)
    named = [f"{group_words(one.category)} ({one.impact_ratio.value:.2f})" for one in low]
    ratio = "impact ratio" if len(named) == 1 else "impact ratios"
    most = group_words(table.most_selected or "")
    rates = "rate of" if len(named) == 1 else "rates of"
    verb = "is" if len(named) == 1 else "are"
    return (
        f" The {rates} {listed(named)} {verb} below four fifths of the rate of {most} ({ratio} in "
        "brackets)."
    )


def _on_label(audit: Audit, groups: list[GroupFacts]) -> str:
    """Return how often people with the favourable label are not selected."""
    missed = sorted(
        (1.0 - group.true_positive_rate.value, group_words(group.label))
        for group in groups
        if group.true_positive_rate is not None and group.true_positive_rate.value is not None
    )
    if len(missed) < 2:
        return ""
    (least, few), (most, many) = missed[0], missed[-1]
    return (
        f" Of the people with {label_words(audit, True)}, {most:.1%} in group {many} and "
        f"{least:.1%} in group {few} are {other_words(audit)}."
    )


def _on_gap(audit: Audit, gap: Gap) -> str:
    """Return the end of a sentence on a gap: how large it is, or why that is not stated."""
    if gap.value is None:
        why = (gap.refused or "not given").rstrip(".")
        if why.startswith(WITHHELD):
            return f"; the gap is not stated, because {why.removeprefix(WITHHELD)}."
        return f"; no gap is stated, because: {why}."
    real = audit.kind == "number"

    def written(value: float) -> str:
        return shown_number(value) if real else f"{100 * value:.1f}"

    said = f", a difference of {written(gap.value)}{'' if real else ' percentage points'}"
    if audit.spread is not None and audit.spread.value > 0.0:
        share = gap.value / audit.spread.value
        said += f", or {share:.2f} standard deviations of the {audit.spread.of}"
    if gap.low is None or gap.high is None:
        return f"{said}."
    # The limits of several pairs are those of the largest difference, perhaps of another pair.
    of = " of the largest difference between two groups:" if audit.pair_gaps else ""
    of = of or (" of the difference" if real else "")
    said += f" ({audit.confidence:.0%} interval{of} {written(gap.low)} to {written(gap.high)}"
    if gap.low == 0.0 and written(gap.value) != written(0.0):
        said += "; no difference at all cannot be ruled out"
    return f"{said})."


def _levels(audit: Audit, groups: list[GroupFacts]) -> str:
    """Return the rate or the mean of each of two groups, or the extremes of many, in words."""
    real = audit.kind == "number"
    name, by = "mean_score" if real else "selection_rate", model_words(audit)
    stated = [group for group in groups if getattr(group, name).value is not None]
    ends = _ends(audit, stated)
    if real:
        said = f"For {n_people(audit.n_rows)}, {by} predicts "
        shown = [f"{shown_number(g.mean_score.value)} for group {group_words(g.label)}"
                 for g in ends]  # fmt: skip
        if not stated:
            return f"{said}means that are not stated"
        if len(stated) > 2:
            return f"{said}means from {' to '.join(shown)}"
        return f"{said}{listed(shown)} on average"
    said, by = f"Of {n_people(audit.n_rows)}", f"{outcome_words(audit)} by {by}"
    if len(groups) == 2:
        of = "about" if audit.estimated else "the"
        shares = [f"{_rate(g)} of {of} {g.n_rows:,} in group {group_words(g.label)}"
                  for g in groups]  # fmt: skip
        return f"{said}, {listed(shares)} are {by}"
    said += f" in {len(groups)} groups, the share {by}"
    if not stated:
        return f"{said} is not stated"
    said += f" in {len(stated)} of them" if len(stated) < len(groups) else ""
    shown = [f"{_rate(g)} ({group_words(g.label)}, {n_people(g.n_rows)})" for g in ends]
    return f"{said} is {shown[0]}" if len(stated) == 1 else f"{said} runs from {' to '.join(shown)}"


def _rate(group: GroupFacts) -> str:
    rate = group.selection_rate.value
    return "an unstated share" if rate is None else f"{rate:.1%}"


WITHHELD = "Withheld: "
"""How the reason begins why something is not stated that would reveal a few people."""


def is_withheld(group: GroupFacts) -> bool:
    """Return whether a rate is not stated because it would reveal a few of the group's people."""
    return (group.selection_rate.refused or "").startswith(WITHHELD)


def _left_out(audit: Audit) -> str:
    """Return further sentences on people who are shown and not compared, by name."""
    said = ""
    small = [
        f"{group_words(group.label)} ({n_people(group.n_rows)})"
        for group in by_size(audit.groups)
        if group.label not in audit.unknown
        and group.mean_score.value is None
        and not is_withheld(group)
    ]
    hidden = [group_words(group.label) for group in by_size(audit.groups) if is_withheld(group)]
    if hidden:
        rates = "rates of" if len(hidden) > 1 else "rate of"
        said += f" The {rates} {listed(hidden)} would reveal a few people and cannot be stated."
    if small and len(audit.groups) > 2:
        said += f" Too few people for a statement: {listed(small)}."
    n_unknown = sum(group.n_rows for group in audit.groups if group.label in audit.unknown)
    if n_unknown:
        verb = "is" if n_unknown == 1 else "are"
        said += f" {n_people(n_unknown)} of unknown group {verb} counted and not compared."
    return said


def _on_matching(audit: Audit) -> str:
    """Return a sentence on who is treated like whom, in the groups of the finding."""
    if (matching := told_matching(audit)) is not None:
        return matching_sentence(audit, matching)
    reason = next((m.refused for m in audit.matchings if m.refused), None) or "not given"
    return f"Nobody was matched, because: {reason.rstrip('.')}."


def told_matching(audit: Audit) -> Matching | None:
    """Return the matching that the summary is about.

    Of many groups, it is that of the group with the lowest rate or mean, or else of the one with
    the highest. Where no group differs, it is that of the least similar pairs.
    """
    ends = [group.label for group in _ends(audit, audit.groups)]
    gap = audit.gap("mean_parity_gap" if audit.kind == "number" else "demographic_parity_gap")

    def order(matching: Matching) -> tuple[bool, bool, float]:
        found, names = matching.nearest_fair, matching.groups or ()
        low, high = (bool(gap.value != 0.0 and ends) and ends[k] in names for k in (0, -1))
        return low, high, -1.0 if found is None or found.position is None else found.position

    return max((m for m in audit.matchings if not m.refused), key=order, default=None)


def _ends(audit: Audit, groups: Sequence[GroupFacts]) -> list[GroupFacts]:
    """Return the groups with the lowest and the highest rate or mean that are compared."""
    name = "mean_score" if audit.kind == "number" else "selection_rate"
    stated = [
        group
        for group in by_size(groups)
        if group.label not in audit.unknown and getattr(group, name).value is not None
    ]
    return sorted(stated, key=lambda group: getattr(group, name).value)[:: max(len(stated) - 1, 1)]


# How similar matched people are, by the position of their matching: 0 for the most similar pairs
# possible, and 1 for random pairs.
ALIKE = 0.1
_ALIKE = (
    (0.005, "as similar as any pairing could make them"),
    (ALIKE, "almost as similar as the most similar pairs possible"),
    (0.5, "less similar than the most similar pairs possible, but closer to these than to people "
          "paired at random"),
    (0.95, "much less similar than the most similar pairs possible, and closer to people paired at "
           "random"),
    (1.05, "no more similar than people paired at random"),
    (np.inf, "even less similar than people paired at random"),
)  # fmt: skip


def matching_sentence(audit: Audit, matching: Matching, is_one_of_many: bool = False) -> str:
    """Return who is treated like whom, how similar they are, and in what they differ.

    One of many sentences leaves out what holds for all of them.
    """
    drawn = "drawn from " if matching.is_sample else "of "
    names = [f"group {group_words(name)}" for name in matched_groups(audit, matching)]
    what = "predictions" if audit.kind == "number" else "scores"
    found, same_rank = matching.nearest_fair, matching.transport
    if found is None and same_rank is None:
        gap = next(m.gap.value for m in matching.matched_gaps if m.matching == "fair")
        return (
            f"People of {listed(names)} at the same rank of their groups get {what} that differ by "
            f"{shown_number(gap)} on average; without features, their similarity is unknown."
        )
    if found is None:
        return (
            f"How similar people of {listed(names)} with similar {what} can be is unknown; the "
            "reasons are under “What is not said”."
        )
    near = f"{shown_number(found.score_gap)} apart on average"
    if is_one_of_many:
        said = f"G{names[0][1:]}, {what} {near}:"
    else:
        said = (
            f"People {drawn}{names[0]} are paired with people {drawn}{names[1]} so that the two "
            f"{what} of a pair are as close as possible ({near})."
        )
    if found.position is None:
        return f"{said} Any other pairs would be just as similar, so this carries no information."
    alike = next(words for end, words in _ALIKE if found.position < end)
    return f"{said} The people of a pair are {alike}.{_apart(audit, matching)}"


def matched_groups(audit: Audit, matching: Matching) -> list[str]:
    """Return the two groups of a matching. The reference group comes last."""
    return sorted(matching.groups or (), key=lambda name: name == audit.reference)


Places = NDArray[np.int64]
Way = tuple[Places, Places, FloatArray]


def partners(audit: Audit, matching: Matching, how: str = "nearest_fair") -> Way | None:
    """Return the pairs of a matching as positions of people, with their weights.

    None without people's rows.
    """
    people, groups = audit.individuals, matching.groups
    pairs = people and people.pairs.get(how)
    if people is None or not pairs or groups is None:
        return None
    labels = [group.label for group in audit.groups]
    codes = np.asarray(people.group)
    first, second = np.array(pairs.first), np.array(pairs.second)
    ours = [labels.index(name) for name in matched_groups(audit, matching)]
    kept = np.isin(codes[first], ours) & np.isin(codes[second], ours)
    first, second, mass = first[kept], second[kept], np.array(pairs.mass)[kept]
    turned = codes[first] != ours[0]
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    return (first, second, mass / mass.sum()) if mass.sum() > 0.0 else None


def _apart(audit: Audit, matching: Matching, most: int = 3) -> str:
    """Return a sentence on the columns in which matched people differ.

    Beside them are the most similar pairs possible and random pairs, where people's rows are known.
    """
    found, people = matching.nearest_fair, audit.individuals
    assert found is not None
    further = (found.position or 0.0) >= _ALIKE[0][0]
    costs = {part.name: part.cost - part.smallest * further for part in found.features}
    ways = [way for how in ("nearest_fair", "marginal") if (way := partners(audit, matching, how))]
    said: list[str] = []
    for column in sorted((name for name in costs if costs[name] > 1e-12), key=lambda n: -costs[n]):
        values = None if people is None else people.columns.get(column)
        words = column_words(column)
        if values is not None and len(ways) == 2:
            own, near, chance, real = _differences(values, ways)
            ours, nearest, at_random = (_difference(value, real) for value in (own, near, chance))
            if further and (not own > near or ours == nearest):
                continue  # only the squares of its numbers are farther apart
            if np.isfinite(own):
                words += f" ({ours}{' apart on average' if real else ' of the pairs'}"
                words += f" instead of {nearest}" * further
                words += f"; {at_random} if paired at random)"
        said.append(words)
        if len(said) == most:
            break
    if not said:
        return ""
    lead = "They differ more than necessary mainly" if further else "They mainly differ"
    return f" {lead} in {listed(said)}."


def _difference(value: float, real: bool) -> str:
    if not real:
        return f"{value:.0%}"
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def _differences(values: Sequence[Any], ways: list[Way]) -> tuple[float, float, float, bool]:
    """Return how far pairs differ in a column: those of two matchings, and random ones.

    The last entry is whether these are differences of numbers rather than shares of pairs.
    """
    real = not any(isinstance(value, str) for value in values)
    codes = {value: float(k) for k, value in enumerate(dict.fromkeys(values))}
    numbers = np.array(
        [np.nan if v is None else float(v) for v in values]
        if real
        else [codes[value] for value in values]
    )
    own, near = (_mean_difference(numbers, way, real) for way in ways)
    return own, near, _random_difference(numbers, ways[0], real), real


def base_words(audit: Audit) -> str:
    """Return which group's selection rate others are divided by, in words."""
    if audit.is_reference_named:
        return "the reference group"
    least = audit.provenance.settings.get("min_group_size")
    return f"the highest of all with at least 2% of the people and {least} people"


def _mean_difference(numbers: FloatArray, way: Way, real: bool) -> float:
    """Return the mean difference of partners, or the share who differ; unknown numbers aside."""
    first, second, mass = way
    gaps = numbers[first] - numbers[second]
    gaps = np.abs(gaps) if real else (gaps != 0.0).astype(float)
    known = np.isfinite(gaps)
    return float(np.average(gaps[known], weights=mass[known])) if mass[known].any() else np.nan


def _random_difference(numbers: FloatArray, way: Way, real: bool) -> float:
    """Return the same for partners drawn at random from both sides."""
    first, second, mass = way
    sides = []
    places, at = np.unique(numbers[np.isfinite(numbers)], return_inverse=True)
    codes = np.full(len(numbers), -1)
    codes[np.isfinite(numbers)] = at
    for side in (first, second):
        known = codes[side] >= 0
        share = np.bincount(codes[side][known], mass[known], minlength=len(places))
        sides.append(share / share.sum() if share.sum() > 0.0 else share * np.nan)
    if not real:
        return float(1.0 - sides[0] @ sides[1])
    below, other = (np.cumsum(side)[:-1] for side in sides)
    return float(np.diff(places) @ (below * (1.0 - other) + other * (1.0 - below)))


def reach_sentences(matching: Matching) -> list[str]:
    """Return a sentence per group on the share of people with a near person with a similar score.

    If people were drawn, the sentence adds that only those drawn were searched, because others may
    be nearer. A group without a statement has no sentence.
    """
    said = []
    for reach in matching.reach:
        share = reach.share
        if share.value is None:
            continue
        span = ""
        if share.low is not None and share.high is not None:
            span = f" ({100 * share.low:.0f}% to {100 * share.high:.0f}%)"
        drawn = "those drawn from " * matching.is_sample
        own, other = (f"{drawn}group {group_words(name)}" for name in (reach.group, reach.other))
        said.append(
            f"For {100 * share.value:.0f}%{span} of {own}, there is a similar person among "
            f"{other} with nearly the same score (squared distance at most "
            f"{reach.distance:.2g}, score at most {reach.score_gap:.3g} away)."
        )
    return said


def _on_subsets(audit: Audit) -> str:
    scan = audit.subsets
    if scan is None and audit.estimated is not None:
        return "The groups are probabilities, so no subsets were searched."
    if scan is None:
        return (
            "Without features no subsets were searched, so a fair average may hide subsets that "
            "are treated unfairly."
        )
    if scan.refused and not scan.subsets:
        return scan.refused[0]
    if not scan.subsets:
        return (
            f"No subset is listed: each has fewer than the {scan.min_rows} people of two groups "
            "that a statement needs, or holds nearly everybody."
        )
    alone = len(scan.subsets) == 1
    searched = f"Of {scan.n_examined:,} subsets looked at, {len(scan.subsets):,} "
    searched += "is listed" if alone else "are listed"
    first = scan.subsets[0]  # the list is in the order of the lower limit of the excess
    if not exceeds(first):
        n_certain = sum(map(certain, scan.subsets))
        if n_certain == 0:
            whose = (
                "its gap between mean scores is not"
                if alone
                else "none of these has a gap between mean scores that is"
            )
            return f"{searched}, and {whose} certain to differ from 0 on fresh rows."
        said = "its gap is not" if alone else "no gap is"
        there = "is" if alone else f"{n_certain:,} {'is' if n_certain == 1 else 'are'}"
        return (
            f"{searched}; {said} certain to exceed that of everybody on fresh rows, and {there} "
            "certain to differ from 0."
        )
    more = first.excess
    assert more is not None
    who = ""
    if first.groups is not None:  # the direction is that of fresh rows, as the excess is positive
        names = [group_words(name) for name in first.groups]
        higher, lower = names[::-1] if first.signed > 0 else names
        who = f" (higher scores in group {higher}"
        who += f" than in group {lower})" if len(audit.matchings) > 1 else ")"
    value, own, low, high = map(
        shown_number, (first.confirmed.value, more.value, more.low, more.high)
    )
    return (
        f"{searched}; the gap between mean scores is most surely larger than over everybody where "
        f"{subset_name(first)}: it is {value} there on fresh rows{who}, {own} more than among "
        f"all fresh rows ({audit.confidence:.0%} interval {low} to {high}"
        + (")." if alone else ", which allows for all that are listed).")
    )


def certain(subset: SubsetGap) -> bool:
    """Return whether the interval of a subset's gap excludes 0."""
    return bool(subset.confirmed.low)


def exceeds(subset: SubsetGap) -> bool:
    """Return whether a subset's gap is certain to exceed that of everybody."""
    return subset.excess is not None and (subset.excess.low or 0.0) > 0.0
