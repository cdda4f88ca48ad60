"""The command line: argument parsing and printing, nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairmatch import __version__
from fairmatch.cli.audit import add_audit_arguments, run_audit
from fairmatch.cli.output import print_table
from fairmatch.cli.paper import add_paper_arguments
from fairmatch.exceptions import FairmatchError, InputError
from fairmatch.storage.atomic import check_outputs

if TYPE_CHECKING:
    from fairmatch.cli.jobs import TrainedModel
    from fairmatch.datasets import DatasetSummary


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
    >>> from fairmatch.cli.main import main
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
    print_table(
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
    from fairmatch.cli.jobs import check_picture, save_trained, train_model
    from fairmatch.tables.files import read_labelled

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
    print_table(
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
    from fairmatch.cli.jobs import predict_table
    from fairmatch.tables.files import read_table, write_table

    check_outputs([arguments.table], {"--out": arguments.out})
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
        add_arguments=add_audit_arguments,
        run=run_audit,
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
