"""The model card: an audit as Markdown, with the gaps, their intervals and the limits of use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairmatch.measures.registry import MEASURES


def model_card(audit: Any, limits: Sequence[str]) -> str:
    """Return the model card of an `Audit`."""
    about, made = audit.about, audit.provenance
    level = f"{audit.confidence:.0%}"
    head = ["---", "tags:", "- fairness", "- fairmatch", "---", ""]
    lines = [*head, f"# {_safe(about.title or f'Fairness of {audit.model_name}')}", ""]
    given = [("Purpose", about.purpose), ("Author", about.author), ("Date", about.date)]
    lines += [f"- {name}: {_safe(text)}" for name, text in given if text]
    lines += [f"- Model: {_safe(audit.model_name)}", f"- People: {audit.n_rows:,}"]
    several = audit.classes
    if several is not None:
        good = " or ".join(several.favourable)
        lines.append(f"- {_safe(audit.outcome)}: the class with the largest probability is "
                     f"{_safe(good)}")  # fmt: skip
        order = ", from the lowest to the highest" if several.ordered else ""
        lines.append(f"- Classes{order}: {_safe(', '.join(several.names))}")
    elif audit.threshold is not None:
        side = "at or above" if audit.favourable == "high" else "below"
        lines.append(f"- {_safe(audit.outcome.capitalize())}: a score {side} {audit.threshold:g}")
    lines += ["", "## Groups", "", *_groups(audit, level)]
    title = "Gaps" if several is None else f"Gaps of people {_safe(audit.outcome)}"
    lines += ["", f"## {title}", "", *_gaps(
        [gap for gap in audit.gaps if several is None or MEASURES[gap.name].needs_decisions], level
    )]  # fmt: skip
    if several is not None:
        lines += _classes(several, level)
    lines += ["", "## Limits of use", "", *(f"- {_safe(one)}" for one in _limits(audit, limits))]
    lines += ["", "## How this was measured", "", f"- fairmatch {made.version}, seed {made.seed}"]
    if made.source is not None:
        lines.append(f"- File: {_safe(made.source)} (SHA-256 {made.source_sha256})")
    lines.append(f"- SHA-256 of the scores: {made.scores_sha256}")
    return "\n".join([*lines, ""])


def _gaps(gaps: Sequence[Any], level: str) -> list[str]:
    """Return the table of gaps."""
    rows = [
        (gap.name.replace("_", " "), _told(gap), " and ".join(gap.groups or ()), gap.favoured or "")
        for gap in gaps
    ]
    return _table(("gap", f"value ({level} interval)", "between", "ahead"), rows)


def _classes(facts: Any, level: str) -> list[str]:
    """Return the sections on every class: shares, confusion and gaps over all classes."""
    header = ["group", *(f"{name} ({level} interval)" for name in facts.names)]
    rows = [[one.label, *map(_told, one.shares.values())] for one in facts.groups]
    lines = ["", "## Classes that people get", "", *_table(header, rows)]
    confusion = [
        [one.label, true, f"{one.n_true[true]:,}", *map(_told, own.values())]
        for one in facts.groups
        for true, own in one.confusion.items()
    ]
    if confusion:
        header = ["group", "true class", "people", *header[1:]]
        lines += ["", "## Classes that people get, by true class", "", *_table(header, confusion)]
        right = [(one.label, _told(one.accuracy)) for one in facts.groups]
        lines += ["", *_table(("group", f"right decisions ({level} interval)"), right)]
    return [*lines, "", "## Gaps over all classes", "", *_gaps(facts.gaps, level)]


def _groups(audit: Any, level: str) -> list[str]:
    """Return the table of groups, without empty columns."""
    names = {
        "selection_rate": f"{audit.outcome} ({level} interval)",
        "mean_score": "mean score",
        "base_rate": "favourable label",
        "accuracy": "accuracy",
        "true_positive_rate": "true positive rate",
        "false_positive_rate": "false positive rate",
    }
    if audit.classes is not None:  # scores are then 1 and 0, for who gets a favourable class
        del names["mean_score"]
    facts = {name: [getattr(group, name) for group in audit.groups] for name in names}
    shown = [name for name, own in facts.items() if any(x and x.value is not None for x in own)]
    errors = [group.calibration_error for group in audit.groups]
    calibrated = audit.classes is None and any(error is not None for error in errors)
    header = ["group", "people", *(names[name] for name in shown)]
    rows = []
    for place, group in enumerate(audit.groups):
        row = [group.label, f"{group.n_rows:,}", *(_told(facts[name][place]) for name in shown)]
        if calibrated:
            row.append("" if errors[place] is None else f"{errors[place]:.3f}")
        rows.append(row)
    return _table([*header, *["calibration error"] * calibrated], rows)


def _limits(audit: Any, own: Sequence[str]) -> list[str]:
    """Return what a reader must not conclude from the card."""
    found = [
        *own,
        f"The numbers describe {audit.n_rows:,} people. They apply to other people only if these "
        "are a random sample of them.",
        "Each interval accounts for sampling error, for one figure at a time. An interval that "
        "begins at 0 does not prove that there is no gap.",
    ]
    if audit.classes is not None:
        found.append(
            "A decision is the class with the largest probability. Gaps over all classes are the "
            "largest over classes and pairs of groups; their intervals hold for all of them at "
            "once."
        )
    elif audit.threshold is not None:
        found.append(f"Gaps of decisions are measured at the threshold {audit.threshold:g}.")
    if all(group.base_rate is None for group in audit.groups):
        found.append("Without labels, error rates and calibration cannot be measured.")
    if not any(matching.transport is not None for matching in audit.matchings):
        found.append(
            "Without features, the card does not show whether similar people are treated alike."
        )
    found += [audit.undecided] if audit.undecided else []
    found += [*audit.refusals, *audit.notes]
    found.append(
        "The card states facts. Whether a gap is acceptable or lawful is for people to decide."
    )
    return found


def _told(fact: Any) -> str:
    if fact is None or fact.value is None:
        return "no statement"
    if fact.low is None or fact.high is None:
        return f"{fact.value:.3f}"
    return f"{fact.value:.3f} ({fact.low:.3f} to {fact.high:.3f})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(_safe(cell) for cell in line)} |" for line in lines]


def _safe(text: str) -> str:
    """Return text that Markdown shows as it is: no tag, no link, no new cell and no new line."""
    for sign in "\\`*_[]|<>#":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
