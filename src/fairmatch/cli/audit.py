"""The command ``fairmatch audit``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fairmatch.cli.command import Command
from fairmatch.cli.output import follow_steps, print_table
from fairmatch.exceptions import GroupError, InputError, MissingExtraError
from fairmatch.storage.atomic import check_outputs, write_whole

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison, Gap

# Steps that the audit of one model reports, for the length of the bar.
_STEPS = 4


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add("tables", nargs="+", metavar="TABLE", help="CSV or Parquet; several hold the same people")
    add("--score", action="append", default=[], metavar="COL", help="scores in [0, 1] or decisions")
    add("--sensitive", required=True, metavar="COL", help="the group of each person; two groups")
    add("--label", metavar="COL", help="the outcome, for error rates and calibration")
    add("--positive", default="1", metavar="VALUE", help="the label that is positive (default: 1)")
    add("--id", metavar="COL", help="who each person is; not a feature")
    add("--features", nargs="+", metavar="COL", help="what describes people (default: the rest)")
    add("--model", action="append", default=[], metavar="DIR", help="a saved model to score TABLE")
    add("--privileged", metavar="GROUP", help="the favoured group, to tell undesirable flips")
    add("--threshold", type=float, default=0.5, help="accepted at or above it (default: 0.5)")
    add("--confidence", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    add("--resamples", type=int, default=1000, help="of the bootstrap (default: 1000)")
    add("--sample", type=int, default=4096, help="people of each group to match (default: 4096)")
    add("--min-group-size", type=int, default=30, help="state nothing of fewer (default: 30)")
    add("--seed", type=int, default=0, help="same seed, same audit (default: 0)")
    add("--out", metavar="FILE.html", help="write a report that opens in any browser")
    add("--json", metavar="FILE.json", help="write the facts for a program to read")
    add(
        "--fail-above",
        action="append",
        default=[],
        metavar="GAP=BOUND",
        help="exit with 1 if this gap of a model is above the bound; of models compared, all but "
        "the first are held to it",
    )
    add(
        "--gate",
        choices=("estimate", "upper"),
        default="estimate",
        help="what is held against the bound: the estimate, or its upper confidence limit",
    )
    add("--no-individuals", action="store_true", help="write no person's row")
    add("--hide", action="append", default=[], metavar="COL", help="leave a column out of the rows")


def _run(arguments: argparse.Namespace) -> int:
    """Audit, print and write what was asked for; 1 if a gap is above its bound."""
    from fairmatch.auditing.facts import Comparison
    from fairmatch.auditing.files import Roles, audit_files

    bounds = [_read_bound(given) for given in arguments.fail_above]
    check_outputs(arguments.tables, {"--json": arguments.json, "--out": arguments.out})
    write_report = _report_writer() if arguments.out else None
    hidden = list(dict.fromkeys(arguments.hide))
    roles = Roles(
        scores=arguments.score,
        sensitive=arguments.sensitive,
        label=arguments.label,
        id=arguments.id,
        features=arguments.features,
        models=arguments.model,
    )
    n_models = len(arguments.tables) * len(arguments.score) + len(arguments.model)
    with follow_steps(_STEPS * n_models + 1) as progress:
        found: Audit | Comparison = audit_files(
            arguments.tables,
            roles,
            pos_label=arguments.positive,
            privileged=arguments.privileged,
            threshold=arguments.threshold,
            confidence=arguments.confidence,
            n_resamples=arguments.resamples,
            n_sample=arguments.sample,
            min_group_size=arguments.min_group_size,
            random_state=arguments.seed,
            progress=progress,
        )
    if arguments.no_individuals:
        found = found.without_individuals()
    elif hidden:
        found = found.hiding(*hidden)
    audits = found.audits if isinstance(found, Comparison) else (found,)
    _print_audits(audits)
    if arguments.json:
        write_whole(arguments.json, found.to_json(indent=2))
        print(f"Facts: {arguments.json}")
    if write_report is not None:
        write_report(found, arguments.out)
        print(f"Report: {arguments.out}")
    held = audits if len(audits) == 1 else audits[1:]
    return _hold_to(bounds, held, arguments.gate)


def _read_bound(given: str) -> tuple[str, float]:
    from fairmatch.measures import MEASURES

    name, _, bound = given.partition("=")
    if name not in MEASURES:
        near = get_close_matches(name, list(MEASURES), n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"There is no gap {name!r}. {hint}There are: {', '.join(MEASURES)}.")
    try:
        limit = float(bound)
    except ValueError:
        limit = float("nan")
    if not 0.0 <= limit <= 1.0:  # nothing is above NaN: such a gate would always be open
        raise InputError(f"--fail-above takes GAP=BOUND, such as {name}=0.05; got {given!r}.")
    return name, limit


def _report_writer() -> Callable[[Audit | Comparison, str], object]:
    """Find what writes the report, before an audit is made for nothing."""
    try:
        from fairmatch.report import require_report, write_report

        require_report()
    except ImportError as error:
        raise MissingExtraError(
            f"The report cannot be made ({error}). Install it with: pip install "
            "'fairmatch[report]', or write the facts with --json."
        ) from error
    return write_report


def _hold_to(bounds: list[tuple[str, float]], audits: Sequence[Audit], gate: str) -> int:
    """Tell which gaps are above their bounds; a gap that is not stated cannot pass."""
    failed = False
    for name, bound in bounds:
        for audit in audits:
            gap = audit.gap(name)
            value = gap.value if gate == "estimate" else gap.high
            if value is None:
                raise GroupError(f"{name} of {audit.model_name} is not stated. {gap.refused}")
            if value > bound:
                failed = True
                what = name if gate == "estimate" else f"the upper limit of {name}"
                print(f"Above the bound: {what} of {audit.model_name}, {value:.4f} > {bound:g}")
    return int(failed)


def _print_audits(audits: Sequence[Audit]) -> None:
    level = f"{audits[0].confidence:.0%}"
    names = [gap.name for gap in audits[0].gaps]
    print_table(
        [f"gap [{level} interval]", *(audit.model_name for audit in audits)],
        [[name, *(_shown(audit.gap(name)) for audit in audits)] for name in names],
    )
    for audit in audits:
        sizes = " and ".join(f"{group.label} ({group.n_rows:,})" for group in audit.groups)
        print(f"\n{audit.model_name}: {sizes}")
        if described := audit.provenance.settings["described_by"]:
            print(f"  Described by: {described}.")
        transport = audit.matching.transport
        if transport is not None and transport.relative is not None:
            print(
                f"  People treated alike are {transport.shown} of the way from the nearest "
                "matching (0) to a random one (1)."
            )
        if audit.subsets is not None and audit.subsets.subsets:
            worst = audit.subsets.subsets[0]
            limits = worst.confirmed
            shown = f"{worst.gap:.3f}"
            if limits.value is not None and limits.low is not None:
                shown = f"{limits.value:.3f} [{limits.low:.3f}, {limits.high:.3f}] on fresh rows"
            print(f"  Surest gap in a subset: {shown}, where {worst.description}.")
        for reason in audit.refusals:
            print(f"  {reason}")


def _shown(gap: Gap) -> str:
    if gap.value is None:
        return "not stated"
    return f"{gap.value:.4f} [{gap.low:.4f}, {gap.high:.4f}]"


COMMAND = Command(
    name="audit",
    help="State how the scores in a table treat two groups, and who is treated like whom.",
    example="fairmatch audit people.csv --score score --sensitive sex --out report.html",
    add_arguments=_add_arguments,
    run=_run,
)
