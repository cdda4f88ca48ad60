"""The findings of an audit on the terminal: rates and their ratio, gaps and their direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairmatch.cli.output import print_table

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Estimate, Gap


def print_audits(audits: Sequence[Audit]) -> None:
    """Print audits of the same people: rates, gaps, and the sentences about them.

    Parameters
    ----------
    audits : sequence of Audit
        One per model.
    """
    for audit in audits:
        (_print_rates if audit.scale == "probability" else _print_means)(audit)
    level = f"{audits[0].confidence:.0%}"
    names = [gap.name for gap in audits[0].gaps]
    print_table(
        [f"gap [{level} interval]", *(audit.model_name for audit in audits)],
        [[name, *(_shown_gap(audit.gap(name)) for audit in audits)] for name in names],
    )
    for audit in audits:
        _print_rest(audit)


def _print_means(audit: Audit) -> None:
    """Print the mean prediction of each group."""
    print(f"{audit.model_name}: {audit.n_rows:,} people; predictions in units of the target")
    rows = [
        [
            group.label,
            f"{group.n_rows:,}",
            _shown(group.mean_score),
            "not compared" if group.label in audit.unknown else "",
        ]
        for group in audit.groups
    ]
    print_table(["group", "people", f"mean prediction [{audit.confidence:.0%} interval]", ""], rows)
    if audit.spread is not None:
        print(f"Standard deviation of the {audit.spread.of}: {audit.spread.value:.4f}")
    print()


def _print_rates(audit: Audit) -> None:
    from fairmatch.report.wording import selected_from

    print(
        f"{audit.model_name}: {audit.n_rows:,} people; {audit.outcome} means a "
        f"{selected_from(audit)}"
    )
    rates = {g.label: g.selection_rate.value for g in audit.groups}
    compared = [
        rate for label, rate in rates.items() if rate is not None and label not in audit.unknown
    ]
    most = max(compared, default=0.0)
    rows = []
    for group in audit.groups:
        rate = rates[group.label]
        ratio = "" if rate is None or most == 0.0 else f"{rate / most:.3f}"
        if group.label in audit.unknown:
            ratio = "not compared"
        rows.append([group.label, f"{group.n_rows:,}", _shown(group.selection_rate), ratio])
    print_table(
        ["group", "people", f"{audit.outcome} [{audit.confidence:.0%} interval]", "ratio"], rows
    )
    if audit.selection_ratio.value is not None:
        print(f"Smallest rate over the largest: {_shown(audit.selection_ratio)}")
    if audit.undecided:
        print(audit.undecided)
    print()


def _print_rest(audit: Audit) -> None:
    from fairmatch.report.summary import reach_sentences, sentences

    print(f"\n{audit.model_name}")
    if described := audit.provenance.settings["described_by"]:
        print(f"  Described by: {described}.")
    _, *said = sentences(audit)
    if len(audit.matchings) == 1:  # with more pairs of groups, only the report shows each
        said[1:1] = reach_sentences(audit.matchings[0])
    said += [f"Look at it: {leak.words}." for leak in audit.leaks]
    for sentence in dict.fromkeys((*said, *audit.notes, *audit.refusals)):
        print(f"  {sentence}")


def _shown(fact: Estimate | Gap) -> str:
    if fact.value is None:
        return "not stated"
    if fact.low is None or fact.high is None:
        return f"{fact.value:z.4f}"
    return f"{fact.value:z.4f} [{fact.low:z.4f}, {fact.high:z.4f}]"


def _shown_gap(gap: Gap) -> str:
    shown = _shown(gap)
    if gap.favoured is None or gap.groups is None:
        return shown
    other = next(label for label in gap.groups if label != gap.favoured)
    return f"{shown} {gap.favoured} ahead of {other}"
