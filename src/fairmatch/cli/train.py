"""The command ``fairmatch train``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch import __version__
from fairmatch.cli.command import Command
from fairmatch.cli.output import print_table
from fairmatch.exceptions import InputError
from fairmatch.storage.atomic import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.learning.path import FairnessPath
    from fairmatch.tables.files import LabelledTable

LEARNERS = {"network": "FTMClassifier", "boosting": "FTMBoostingClassifier"}


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, and the trade-off it was picked from.

    Attributes
    ----------
    model : estimator
        The model.
    path : FairnessPath
        The models it was picked from.
    curve : DataFrame
        All of them, measured on the test rows.
    fairness_weight : float
        Weight of the model.
    test_index : array of int
        Rows that no model has seen.
    """

    model: Any
    path: FairnessPath
    curve: pd.DataFrame
    fairness_weight: float
    test_index: Any


def train_model(
    table: LabelledTable,
    *,
    max_gap: float | None = None,
    fairness_weight: float = 1.0,
    learner: str = "network",
    test_size: float = 0.2,
    drop: Sequence[str] = (),
    **settings: Any,
) -> TrainedModel:
    """Train FTM on a table and measure the whole path on rows that were put aside.

    Parameters
    ----------
    table : LabelledTable
        The table.
    max_gap : float, optional
        Choose the fairness weight so that the gap on validation rows is at most this.
    fairness_weight : float, default=1.0
        The weight, where ``max_gap`` is not given.
    learner : {"network", "boosting"}, default="network"
        What learns.
    test_size : float, default=0.2
        Share of the rows that are put aside.
    drop : sequence of str
        Columns that are neither features nor label nor group, such as identifiers.
    **settings
        Further parameters of `FTMClassifier` or `FTMBoostingClassifier`.
    """
    import fairmatch
    from fairmatch.auditing.people import identifies
    from fairmatch.learning.path import fairness_path
    from fairmatch.learning.rows import stratified_split
    from fairmatch.learning.weights import PAPER_WEIGHTS
    from fairmatch.tables.encoder import TableEncoder
    from fairmatch.tables.files import check_column

    for name in drop:
        check_column(table.frame, name)
    if {table.target, table.sensitive} & {*drop}:
        raise InputError("The columns of the labels and of the groups cannot be dropped.")
    features = table.frame.drop(columns=[table.target, *drop])
    for name in features.select_dtypes(exclude=["number", "bool"]).columns:
        if identifies(features[name].nunique(), len(features)):
            raise InputError(
                f"Column {name!r} has {features[name].nunique()} different values in "
                f"{len(features)} rows: it looks like a name or a number that identifies people. "
                f"Leave it out: --drop {name}."
            )
    y, groups = table.frame[table.target], table.frame[table.sensitive]
    seed = settings.get("random_state")
    train, test = stratified_split(y.to_numpy(), groups, test_size, seed)
    if learner == "network":  # trees take missing values as they are
        settings = {"encoder": TableEncoder(missing="encode"), **settings}
    estimator = getattr(fairmatch, LEARNERS[learner])(
        fairness_weight=fairness_weight,
        max_gap=max_gap,
        sensitive_column=table.sensitive,
        **settings,
    )
    X_train, y_train = features.iloc[train], y.iloc[train]
    path: FairnessPath
    if max_gap is not None:
        model = estimator.fit(X_train, y_train)
        path, weight = model.path_, model.fairness_weight_
    else:
        weight = float(fairness_weight)
        weights = sorted({0.0, weight, *map(float, PAPER_WEIGHTS)})
        path = fairness_path(X_train, y_train, fairness_weights=weights, estimator=estimator)
        model = path.models[weights.index(weight)]
    curve = path.curve(features.iloc[test], y.iloc[test])
    return TrainedModel(model, path, curve, weight, test)


def save_trained(trained: TrainedModel, folder: str | Path, *, gap: str, picture: bool) -> Path:
    """Write the model, the numbers of the trade-off as JSON, and its picture."""
    from fairmatch.report.charts import save_chart, tradeoff_chart

    home: Path = trained.model.save(folder)
    numbers = {
        "fairmatch": __version__,
        "fairness_weight": trained.fairness_weight,
        "n_test_rows": len(trained.test_index),
        "curve": trained.curve.to_dict(orient="records"),
    }
    write_whole(home / "curve.json", json.dumps(numbers, indent=1) + "\n")
    if not picture:
        (home / "curve.svg").unlink(missing_ok=True)  # it would show another model's curve
    else:
        chart = tradeoff_chart(trained.curve, gap=gap, chosen=trained.fairness_weight)
        save_chart(chart, home / "curve.svg")
    return home


def _add_arguments(parser: argparse.ArgumentParser) -> None:
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
    length.add_argument("--epochs", type=int, help="of a network (default: 40)")
    length.add_argument("--rounds", type=int, help="of boosting (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--no-picture", action="store_true", help="do not draw the trade-off")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the model")


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.datasets.labelled import read_labelled
    from fairmatch.report.charts import require_charts

    if arguments.learner is None:
        arguments.learner = "boosting" if arguments.epochs is None else "network"
    length = _training_length(arguments)
    if Path(arguments.out).exists() and not Path(arguments.out).is_dir():
        raise InputError(f"--out must be a folder, and {arguments.out} is a file.")
    if not arguments.no_picture:
        require_charts()  # before the training, not after it
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
    return {} if value is None else {name: value}


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


COMMAND = Command(
    name="train",
    help="Train a classifier that treats matched people alike.",
    example="fairmatch train people.csv --target hired --sensitive sex --max-gap 0.05 --out model",
    add_arguments=_add_arguments,
    run=_run,
)
