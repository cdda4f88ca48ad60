"""The command line: argument parsing and printing, nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch import __version__
from fairmatch.exceptions import FairmatchError, GroupError, InputError, MissingExtraError
from fairmatch.papercommand import add_paper_arguments
from fairmatch.wholefiles import write_whole

if TYPE_CHECKING:
    from fairmatch.datasets import DatasetSummary
    from fairmatch.facts import Audit, Comparison, Gap
    from fairmatch.jobs import TrainedModel


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 if all went well, 1 if a gap is above a bound, 2 if the input was at fault.

    Examples
    --------
    >>> from fairmatch.cli import main
    >>> main(["datasets", "german"])
    name    rows   features  groups (size, share of Y=1)                  licence    where
    german  1,000  57        female (310, 0.648); male (690, 0.723)  CC BY 4.0  bundled
    0
    """
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except FairmatchError as error:
        if arguments.debug:
            raise
        print(f"fairmatch: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as shells have it
    except OSError as error:  # a file that cannot be written; 1 would mean a gap above its bound
        if arguments.debug:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"fairmatch: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if arguments.debug:
            raise
        print("fairmatch: interrupted", file=sys.stderr)
        return 130  # as shells have it


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairmatch",
        description="Group-fair classifiers that can say how they are fair.",
    )
    parser.add_argument("--version", action="version", version=f"fairmatch {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for command in _COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, description=command.help)
        if command.run is not None:
            sub.set_defaults(run=command.run)
        command.add_arguments(sub)
    return parser


@dataclass(frozen=True)
class _Command:
    """A sub-command. Its `run` imports what is heavy, so that ``--help`` stays quick.

    A command with actions of its own sets their `run` itself.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int] | None = None


def _add_datasets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="name", help="only these (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download those that are not here")


def _run_datasets(arguments: argparse.Namespace) -> int:
    from fairmatch.datasets import DATASET_NAMES, load_dataset, summarise

    names = arguments.names or DATASET_NAMES
    if arguments.fetch:
        for name in names:
            load_dataset(name)
    summaries = [summarise(name) for name in names]
    _print_table(
        ["name", "rows", "features", "groups (size, share of Y=1)", "licence", "where"],
        [_dataset_row(summary) for summary in summaries],
    )
    if absent := [summary.name for summary in summaries if summary.location is None]:
        print(
            f"\nTo get {' and '.join(absent)}: fairmatch datasets --fetch {' '.join(absent)}\n"
            "or set FAIRMATCH_DATA to the folder that holds the publisher's files."
        )
    return 0


def _dataset_row(summary: DatasetSummary) -> list[str]:
    if summary.location is None:
        return [summary.name, "-", "-", "-", summary.licence, "not here"]
    return [
        summary.name,
        f"{summary.n_rows:,}",
        f"{summary.n_features}",
        "; ".join(
            f"{group.name} ({group.size:,}, {group.base_rate:.3f})" for group in summary.groups
        ),
        summary.licence,
        str(summary.location),
    ]


def _add_audit_arguments(parser: argparse.ArgumentParser) -> None:
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


def _run_audit(arguments: argparse.Namespace) -> int:
    from fairmatch.auditfiles import Roles, audit_files
    from fairmatch.facts import Comparison

    bounds = [_read_bound(given) for given in arguments.fail_above]
    _check_outputs(arguments.tables, {"--json": arguments.json, "--out": arguments.out})
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
    with _progress(n_models) as progress:
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


def _check_outputs(inputs: Sequence[str], outputs: Mapping[str, str | None]) -> None:
    """Raise before the work where a result cannot be written, or would take something's place."""
    taken = {Path(name).resolve(): f"{name} is read" for name in inputs}
    for option, name in outputs.items():
        if name is None:
            continue
        file = Path(name)
        if file.is_dir():
            raise InputError(f"{option} must be a file, and {name} is a folder.")
        if file.resolve() in taken:
            raise InputError(
                f"{option} {name} would be written over: {taken[file.resolve()]}. Choose another."
            )
        if file.is_file() or not file.exists():  # /dev/stdout can be written to twice
            taken[file.resolve()] = f"{option} is written there"


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
        report = import_module("fairmatch.report")
        report.require_report()
        return report.write_report  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingExtraError(
            f"The report cannot be made ({error}). Install it with: pip install "
            "'fairmatch[report]', or write the facts with --json."
        ) from error


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
    _print_table(
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


@contextmanager
def _progress(n_models: int) -> Iterator[Callable[[str], None] | None]:
    """Draw a progress bar on a terminal; elsewhere stay silent."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=_STEPS * n_models + 1)
        yield lambda step: bar.update(task, advance=1, description=step, refresh=True)


# Steps that an audit reports, for the length of the bar.
_STEPS = 4


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table: drawn in a terminal, plain and unwrapped in a pipe."""
    if sys.stdout is None or not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in [header, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*header)
    for row in rows:
        table.add_row(*(cell.replace("; ", "\n") for cell in row))
    Console().print(table, markup=False)


def _add_train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", help="a .csv or .parquet file, or the name of a dataset")
    parser.add_argument("--target", metavar="COL", help="column with the labels (of a file)")
    parser.add_argument("--sensitive", metavar="COL", help="column with the groups (of a file)")
    parser.add_argument("--drop", metavar="COL", nargs="+", default=[], help="columns to leave out")
    parser.add_argument(
        "--transport",
        choices=("marginal", "joint", "predicted"),
        default="marginal",
        help="match people on their features, on features and labels, or (boosting only) on "
        "features and predicted scores (default: marginal)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--max-gap", type=float, help="keep the most accurate model within this gap")
    how.add_argument("--fairness-weight", type=float, default=1.0, help="the weight (default: 1)")
    parser.add_argument(
        "--gap-measure",
        metavar="NAME",
        default="demographic_parity_gap",
        help="which gap --max-gap bounds (default: demographic_parity_gap)",
    )
    parser.add_argument(
        "--without-sensitive",
        action="store_true",
        help="train a model that does not need the group to predict",
    )
    parser.add_argument(
        "--learner",
        choices=("boosting", "network"),
        help="boosted trees by LightGBM, or a neural network (default: boosting; with --epochs "
        "a network)",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="of a network (default: 200)")
    length.add_argument("--rounds", type=int, help="of boosting (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--no-picture", action="store_true", help="do not draw the trade-off")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the model")


def _run_train(arguments: argparse.Namespace) -> int:
    from fairmatch.jobs import check_picture, save_trained, train_model
    from fairmatch.tables import read_labelled

    if arguments.learner is None:
        arguments.learner = "boosting" if arguments.epochs is None else "network"
    length = _training_length(arguments)
    if Path(arguments.out).exists() and not Path(arguments.out).is_dir():
        raise InputError(f"--out must be a folder, and {arguments.out} is a file.")
    check_picture(not arguments.no_picture)
    table = read_labelled(arguments.table, arguments.target, arguments.sensitive)
    trained = train_model(
        table,
        max_gap=arguments.max_gap,
        fairness_weight=arguments.fairness_weight,
        learner=arguments.learner,
        drop=arguments.drop,
        transport=arguments.transport,
        gap_measure=arguments.gap_measure,
        sensitive_at_prediction=not arguments.without_sensitive,
        **length,
        random_state=arguments.seed,
        verbose=1,
    )
    print_curve(trained)
    picture = not arguments.no_picture
    folder = save_trained(trained, arguments.out, gap=arguments.gap_measure, picture=picture)
    print(f"Saved to {folder}: the model, curve.json{', curve.svg' if picture else ''}.")
    label = trained.model.classes_.tolist()[1]
    print(f"Its scores are the probability of {table.target} = {label!r}.")
    return 0


def _training_length(arguments: argparse.Namespace) -> dict[str, int]:
    """Read how long to train, in the learner's own unit."""
    given = {"network": ("epochs", arguments.epochs), "boosting": ("n_rounds", arguments.rounds)}
    for learner, (_, value) in given.items():
        if value is not None and learner != arguments.learner:
            unit = "--epochs" if learner == "network" else "--rounds"
            raise InputError(f"{unit} is for --learner {learner}; this is {arguments.learner}.")
    name, value = given[arguments.learner]
    return {name: 200 if value is None else value}


def print_curve(trained: TrainedModel) -> None:
    """Print the trade-off that a model was picked from."""
    from fairmatch.measures import MEASURES

    curve, kept = trained.curve, trained.fairness_weight
    shown = [name for name in MEASURES if name in curve.columns]
    print(f"The trade-off on {len(trained.test_index):,} test rows (* marks the model kept):")
    _print_table(
        ["", "weight", "accuracy", *(MEASURES[name].symbol for name in shown)],
        [
            ["*" if weight == kept else "", f"{weight:g}", *(f"{value:.4f}" for value in values)]
            for weight, *values in curve[["fairness_weight", "accuracy", *shown]].to_numpy()
        ],
    )


def _add_predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="DIR", help="folder of a saved model")
    parser.add_argument("table", help="a .csv or .parquet file with the training columns")
    parser.add_argument("--out", metavar="FILE", required=True, help="a .csv or .parquet file")
    parser.add_argument(
        "--positive",
        metavar="LABEL",
        help="the score is the probability of this label (default: the second in order)",
    )
    parser.add_argument(
        "--sensitive", metavar="COL", help="the group, for models saved from Python that need it"
    )


def _run_predict(arguments: argparse.Namespace) -> int:
    from fairmatch.jobs import predict_table
    from fairmatch.tables import read_table, write_table

    _check_outputs([arguments.table], {"--out": arguments.out})
    predictions, label = predict_table(
        arguments.model,
        read_table(arguments.table),
        positive=arguments.positive,
        sensitive=arguments.sensitive,
    )
    file = write_table(predictions, arguments.out)
    print(f"{len(predictions):,} rows scored in {file}: the probability of {label!r}")
    return 0


_COMMANDS = (
    _Command(
        name="datasets",
        help="List the benchmark tables, their groups, and where they are.",
        add_arguments=_add_datasets_arguments,
        run=_run_datasets,
    ),
    _Command(
        name="audit",
        help="State how the scores in a table treat two groups, and who is treated like whom.",
        add_arguments=_add_audit_arguments,
        run=_run_audit,
    ),
    _Command(
        name="train",
        help="Train a classifier that treats matched people alike.",
        add_arguments=_add_train_arguments,
        run=_run_train,
    ),
    _Command(
        name="predict",
        help="Score a table with a saved model.",
        add_arguments=_add_predict_arguments,
        run=_run_predict,
    ),
    _Command(
        name="paper",
        help="Run the paper's experiments; write its tables and figures beside ours.",
        add_arguments=add_paper_arguments,
    ),
)
