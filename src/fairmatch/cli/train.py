"""The command ``fairmatch train``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairmatch import __version__
from fairmatch.cli.command import Command, add_labelled, print_table, read_labelled, tell_answers
from fairmatch.exceptions import InputError
from fairmatch.people.files import check_place, write_whole

if TYPE_CHECKING:
    from fairmatch.learning.path import FairnessPath
    from fairmatch.people.files import LabelledTable
    from fairmatch.people.groups import Groups


LEARNERS = {"network": "FTMClassifier", "boosting": "FTMBoostingClassifier"}


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, and the trade-off from which it was chosen.

    Attributes
    ----------
    model : estimator
        The model.
    path : FairnessPath
        The models from which it was chosen.
    curve : DataFrame
        Measurements of all these models on the test rows.
    fairness_weight : float
        Fairness weight of the model.
    test_index : array of int
        Positions of the test rows, which no model has seen.
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
    reference: str | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train FTM on a table, and measure the whole path on test rows.

    Parameters
    ----------
    table : LabelledTable
        The table.
    max_gap : float, optional
        Largest gap on held-out rows. It chooses the fairness weight.
    fairness_weight : float, default=1.0
        The fairness weight, if ``max_gap`` is not given.
    learner : {"network", "boosting"}, default="network"
        A neural network, or boosted trees.
    test_size : float, default=0.2
        Share of the rows that are kept for testing.
    drop : sequence of str
        Columns that are neither features nor label nor group, such as identifiers.
    reference : str, optional
        The group that all others are matched with, as it is written in the table. By default it
        is the largest.
    **settings
        Further parameters of `FTMClassifier` or `FTMBoostingClassifier`.

    Raises
    ------
    InputError
        If nothing is left to learn from, or a group is too small to be compared.
    """
    import numpy as np

    import fairmatch
    from fairmatch.learning.estimator import PAPER_WEIGHTS
    from fairmatch.learning.path import fairness_path
    from fairmatch.learning.reading import settle_small_groups, stratified_split
    from fairmatch.people.checks import check_names
    from fairmatch.people.encoding import TableEncoder
    from fairmatch.people.groups import read_groups

    frame, attributes = table.frame, table.attributes
    check_names(drop, list(frame.columns), table="The table")
    if {table.target, *attributes} & {*drop}:
        raise InputError(
            "The columns of the labels and of the groups cannot be dropped. Leave them "
            "out of --drop."
        )
    features = frame.drop(columns=[table.target, *drop])
    if len(features.columns) == len(attributes):
        raise InputError(
            "No column is left to learn from: all were dropped, or left out because they look "
            "like identifiers. Name the columns that describe people with --keep."
        )
    y = frame[table.target]
    sensitive = frame[attributes] if len(attributes) > 1 else frame[attributes[0]]
    small = settings.get("small_groups", "warn")
    groups = settle_small_groups(read_groups(sensitive, name="--sensitive"), small)
    # Groups that are learned from but not compared are split like one group.
    pooled = groups
    if groups.apart:
        least = int(groups.sizes()[list(groups.apart)].max()) + 1
        pooled = groups.pooled(least)
    train, test = stratified_split(y.to_numpy(), pooled, test_size, settings.get("random_state"))
    if learner == "network":  # trees take missing values as they are
        settings = {"encoder": TableEncoder(missing="encode"), **settings}
    estimator = getattr(fairmatch, LEARNERS[learner])(
        fairness_weight=fairness_weight,
        max_gap=max_gap,
        sensitive_column=table.sensitive,
        reference=None if reference is None else _group(groups, reference),
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
    if table.classes is not None:
        model = copy(model)  # models of the path keep the labels that they were trained on
        model.classes_ = np.array(table.classes)
        model.reader_ = replace(model.reader_, classes_=model.classes_)
    return TrainedModel(model, path, curve, weight, test)


def _group(groups: Groups, written: str) -> Any:
    """Return the label of the group that is written this way, or raise and list the groups."""
    from fairmatch.people.files import find_value

    try:
        return find_value(groups.labels, written)
    except LookupError:
        return groups.labels[groups.code_of(written, "reference")]


def save_trained(trained: TrainedModel, folder: str | Path, *, gap: str, picture: bool) -> Path:
    """Write the model and its trade-off, as JSON and as a picture, and return the folder.

    Either everything is written, or nothing.

    Parameters
    ----------
    trained : TrainedModel
        The model and its trade-off.
    folder : str or Path
        Folder of the model.
    gap : str
        The gap that the picture shows.
    picture : bool
        Whether to draw the picture.
    """
    from fairmatch.learning.saving import save_model
    from fairmatch.report.charts import save_chart, tradeoff_chart

    numbers = {
        "fairmatch": __version__,
        "fairness_weight": trained.fairness_weight,
        "n_test_rows": len(trained.test_index),
        "curve": trained.curve.to_dict(orient="records"),
    }

    def write_curve(home: Path) -> None:
        write_whole(home / "curve.json", json.dumps(numbers, indent=1) + "\n")
        if picture:
            chart = tradeoff_chart(trained.curve, gap=gap, chosen=trained.fairness_weight)
            save_chart(chart, home / "curve.svg")

    return save_model(trained.model, folder, beside=write_curve)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_labelled(parser)
    add(
        "--criterion",
        choices=("demographic_parity", "equal_opportunity", "equalized_odds"),
        default="demographic_parity",
        help="who is compared: everybody, people with the positive label, or each label by itself "
        "(default: demographic_parity)",
    )
    add(
        "--transport",
        choices=("predicted", "marginal", "joint"),
        help="match people on features and predicted scores (boosting only, and its default), on "
        "their features alone (the default of networks), or on features and labels",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--max-gap", type=float, help="keep the most accurate model within this gap")
    how.add_argument(
        "--fairness-weight", type=float, default=1.0, help="weight of fairness (default: 1)"
    )
    add(
        "--gap-measure",
        metavar="NAME",
        help="which gap --max-gap bounds and the picture shows (default: the criterion's)",
    )
    add(
        "--confidence",
        type=float,
        metavar="LEVEL",
        help="hold the upper confidence limit of the gap to --max-gap, at a level such as 0.95",
    )
    add(
        "--small-groups",
        choices=("error", "pool", "ignore"),
        default="error",
        help="groups below --min-group-size: refuse them, pool them as 'other', or learn from "
        "them without comparing them (default: error)",
    )
    add(
        "--min-group-size",
        type=int,
        default=2,
        metavar="N",
        help="fewest rows of a group that is not small (default: 2)",
    )
    add(
        "--reference",
        metavar="GROUP",
        help="the group that all others are matched with, such as 'male, White' (default: the "
        "largest)",
    )
    add(
        "--without-sensitive",
        action="store_true",
        help="train a model that does not need the group to predict",
    )
    add(
        "--learner",
        choices=("boosting", "network"),
        help="boosted trees by LightGBM, or a neural network (default: boosting; with --epochs, "
        "network)",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="epochs of a network (default: 40)")
    length.add_argument("--rounds", type=int, help="rounds of boosting (default: 200)")
    add("--seed", type=int, default=0, help="same seed, same model (default: 0)")
    add("--no-picture", action="store_true", help="do not draw the trade-off")
    add("--out", metavar="DIR", required=True, help="folder for the model")


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.learning.saving import check_folder
    from fairmatch.report.charts import require_charts

    if arguments.learner is None:
        arguments.learner = "boosting" if arguments.epochs is None else "network"
    estimator = _estimator(arguments)
    gap = _check_numbers(arguments)
    check_folder(arguments.out)
    check_place(arguments.out)
    if not arguments.no_picture:
        require_charts()  # before the training, not after it
    table, left_out = read_labelled(arguments)
    trained = train_model(
        table,
        max_gap=arguments.max_gap,
        fairness_weight=arguments.fairness_weight,
        learner=arguments.learner,
        drop=left_out,
        criterion=arguments.criterion,
        gap_measure=gap,
        confidence=arguments.confidence,
        small_groups=(arguments.small_groups, arguments.min_group_size),
        reference=arguments.reference,
        sensitive_at_prediction=not arguments.without_sensitive,
        **({} if arguments.transport is None else {"transport": arguments.transport}),
        estimator=estimator,
        random_state=arguments.seed,
    )
    print_curve(trained)
    picture = not arguments.no_picture
    folder = save_trained(trained, arguments.out, gap=gap, picture=picture)
    print(f"Saved to {folder}: the model, curve.json{', curve.svg' if picture else ''}.")
    label = trained.model.classes_.tolist()[1]
    print(f"Its scores are the probability of {table.target} = {label!r}.")
    truth = table.frame[table.target].iloc[trained.test_index]
    plain = trained.curve.loc[trained.curve["fairness_weight"] == 0.0, "accuracy"]
    tell_answers(table, left_out, max(plain, default=0.0), truth.value_counts(normalize=True).max())
    return 0


def _check_numbers(arguments: argparse.Namespace) -> str:
    """Return the name of the gap, or raise if an option is out of range, used or not."""
    from fairmatch.measures.registry import read_measure
    from fairmatch.people.checks import check_count, check_number
    from fairmatch.people.groups import read_criterion

    named = arguments.gap_measure
    if named is not None:
        read_measure(named, "--gap-measure")
    if arguments.max_gap is not None:
        check_number("--max-gap", arguments.max_gap, "[0, 1]")
    check_number("--fairness-weight", arguments.fairness_weight, "[0, inf)")
    check_count("--min-group-size", arguments.min_group_size)
    check_count("--seed", arguments.seed, 0)
    for option, value in (("--epochs", arguments.epochs), ("--rounds", arguments.rounds)):
        check_count(option, value, optional=True)
    if arguments.confidence is not None:
        check_number("--confidence", arguments.confidence, "(0.5, 1)")
        if arguments.max_gap is None:
            raise InputError(
                "--confidence is about the bound --max-gap, which is not set. Set both, or neither."
            )
    gap: str = named or read_criterion(arguments.criterion).gap_measure
    return gap


def _estimator(arguments: argparse.Namespace) -> Any:
    """Return the network or the trees to train, with the length of their training."""
    given = {"network": ("--epochs", arguments.epochs), "boosting": ("--rounds", arguments.rounds)}
    for learner, (option, value) in given.items():
        if value is not None and learner != arguments.learner:
            raise InputError(
                f"{option} is for --learner {learner}, and the learner is {arguments.learner}. "
                f"Leave {option} out, or choose --learner {learner}."
            )
    verbose = int(sys.stderr.isatty())
    if arguments.learner == "network":
        from fairmatch import NeuralNetwork

        return NeuralNetwork(epochs=arguments.epochs, verbose=verbose)
    from lightgbm import LGBMClassifier

    rounds = 200 if arguments.rounds is None else arguments.rounds
    return LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=verbose)


def print_curve(trained: TrainedModel) -> None:
    """Print the trade-off from which a model was chosen."""
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
    if getattr(trained.model, "max_gap", None) is not None:
        print(
            "It was chosen on other rows, which were held out of the training, so another model "
            "may look better here."
        )


COMMAND = Command(
    name="train",
    help="Train a classifier that treats matched people alike.",
    example="fairmatch train people.csv --target hired --sensitive sex --max-gap 0.05 --out model",
    add_arguments=_add_arguments,
    run=_run,
)
