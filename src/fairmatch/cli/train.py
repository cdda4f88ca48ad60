"""The command ``fairmatch train``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fairmatch.cli.labelled import LabelledTable, open_labelled, tell_answers
from fairmatch.cli.options import command, read_cut
from fairmatch.cli.printing import print_table
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

# The estimator of a learner, for classes and for numbers.
_ESTIMATORS = {
    ("network", False): "FTMClassifier",
    ("network", True): "FTMRegressor",
    ("boosting", False): "FTMBoostingClassifier",
    ("boosting", True): "FTMBoostingRegressor",
}
# Options that are parameters of the estimator as they are typed.
_SETTINGS = ("reference", "confidence", "scoring", "strict", "unknown", "random_state")
# A target of numbers with more different values than this is predicted as a number.
_MOST_LEVELS = 20
_TEST_SIZE = 0.2


@command(
    "fairmatch train people.csv --target hired --positive yes --sensitive sex --max-gap 0.1 "
    "--out model"
)
def train(asked: Any) -> None:
    """Train a model that treats matched people alike.

    TABLE is a .csv or .parquet file, or the name of a dataset. A target of numbers with more than
    20 different values is predicted as a number.
    """
    from fairmatch.learning.saving import check_folder
    from fairmatch.measures.registry import bounded
    from fairmatch.people.checks import check_names
    from fairmatch.people.files import check_place
    from fairmatch.people.groups import read_criterion
    from fairmatch.people.outcome import NUMBER, PROBABILITY
    from fairmatch.people.roles import split_names
    from fairmatch.people.similarity import written_similarity
    from fairmatch.report.charts import load_altair

    max_gap, criterion, picture = asked.max_gap, asked.criterion, not asked.no_picture
    if max_gap is not None and asked.fairness_weight is not None:
        raise InputError("--max-gap chooses the fairness weight. Leave --fairness-weight out.")
    learner = asked.learner or ("boosting" if asked.epochs is None else "network")
    other, instead = ("rounds", "boosting") if learner == "network" else ("epochs", "network")
    if getattr(asked, other) is not None:
        raise InputError(
            f"--{other} was given, but the learner is {learner}. Leave --{other} out, or choose "
            f"--learner {instead}."
        )
    gap = asked.gap_measure or read_criterion(criterion).gap_measure
    _check_gap(gap, PROBABILITY if gap not in bounded(NUMBER) else NUMBER)
    check_folder(asked.out)
    check_place(asked.out)
    if picture:
        load_altair()  # before the training, not after it
    cuts = dict(map(read_cut, asked.bands))
    estimated = bool(asked.group_probabilities)
    if estimated and (asked.sensitive_features or asked.bands):
        raise click.UsageError(
            "--group-probabilities takes the place of --sensitive and --bands. Leave them out."
        )
    asked.sensitive_features = asked.group_probabilities or asked.sensitive_features
    table = open_labelled(
        asked, sees_groups=not asked.without_sensitive, unknown=asked.unknown, estimated=estimated
    )
    number = _is_number(table)
    if number:
        if criterion != "demographic_parity":
            raise InputError(
                f"--criterion {criterion} compares people of the same class, and "
                f"{table.target!r} holds numbers. Leave it out."
            )
        gap, picture = asked.gap_measure or "mean_parity_gap", False
        print(f"{table.target} holds numbers, so a regressor is trained.")
    _check_gap(gap, NUMBER if number else PROBABILITY)
    names = list(table.frame.columns)
    for column in split_names(asked.categorical, names, "categorical"):
        check_names([column], names, table=asked.table)
        written = table.frame[column].astype("string").astype(object)
        table.frame[column] = written.astype("category")
    alike: Any = written_similarity(split_names(asked.similarity, names, "similarity")) or None
    trained = train_model(
        table,
        learner,
        cuts=cuts,
        n_steps=asked.epochs if learner == "network" else asked.rounds,
        max_gap=max_gap,
        fairness_weight=1.0 if asked.fairness_weight is None else asked.fairness_weight,
        gap_measure=gap,
        small_groups=asked.small_groups or "warn",
        given=split_names(asked.given, names, "given") or None,
        similarity="relevance" if alike == ["relevance"] else alike,
        sensitive_at_prediction=not (asked.without_sensitive or estimated),
        **{name: getattr(asked, name) for name in _SETTINGS},
        **({} if number else {"criterion": criterion}),
        **({} if asked.transport is None else {"transport": asked.transport}),
    )
    _print_curve(trained, chosen=max_gap is not None)
    folder = _save(trained, asked.out, gap=gap, picture=picture)
    print(f"Saved to {folder}: the model, curve.json{', curve.svg' if picture else ''}.")
    if number:
        print(f"It predicts {table.target} in its own unit.")
        return
    classes = trained.model.classes_.tolist()
    if len(classes) > 2:
        shown = ", ".join(map(repr, classes))
        print(f"It gives {table.target} the probability of {shown}, and predicts the likeliest.")
    else:
        print(f"Its scores are the probability of {table.target} = {classes[1]!r}.")
    truth = table.frame[table.target].iloc[trained.test_index]
    plain = trained.curve.loc[trained.curve["fairness_weight"] == 0.0, "accuracy"]
    tell_answers(table, max(plain, default=0.0), truth.value_counts(normalize=True).max())


class TrainedModel(NamedTuple):
    """A model, and the trade-off on test rows from which it was chosen."""

    model: Any
    curve: pd.DataFrame
    fairness_weight: float
    test_index: Any


def train_model(
    table: LabelledTable,
    learner: str,
    *,
    cuts: Mapping[str, Mapping[str, Any]],
    n_steps: int | None,
    **settings: Any,
) -> TrainedModel:
    """Train FTM on a table, and measure the whole path on test rows.

    The learner is a network of so many epochs, or so many rounds of boosting. Columns of groups
    that hold numbers are cut into bands. The settings are parameters of the estimator.
    """
    import numpy as np

    import fairmatch
    from fairmatch.learning.estimator import PAPER_WEIGHTS
    from fairmatch.learning.path import fairness_path
    from fairmatch.learning.reading import settle_small_groups, split_columns, stratified_split
    from fairmatch.people.encoding import TableEncoder
    from fairmatch.people.files import find_value
    from fairmatch.people.groups import read_known
    from fairmatch.people.memberships import group_probabilities

    # The error names the extra to install.
    number = _is_number(table)
    kind = getattr(fairmatch, _ESTIMATORS[learner, number])
    columns: Any = None
    soft: Any = None
    y = table.frame[table.target]
    X = table.frame.drop(columns=[table.target, *table.left_out])
    if table.estimated:
        X, soft = X.drop(columns=table.attributes), group_probabilities(X[table.attributes])
        given = read_known(soft, settings["unknown"], estimated=True)
    else:
        columns = _columns(table, cuts)
        given = read_known(split_columns(X, columns)[1], settings["unknown"])
    groups = settle_small_groups(given, settings["small_groups"])
    train, test = stratified_split(y.to_numpy(), groups, _TEST_SIZE, settings["random_state"])
    verbose = int(sys.stderr.isatty())
    if learner == "network":  # trees take missing values as they are
        settings["encoder"] = TableEncoder(missing="encode")
        settings["estimator"] = fairmatch.NeuralNetwork(epochs=n_steps, verbose=verbose)
    else:
        from lightgbm import LGBMClassifier, LGBMRegressor

        trees = LGBMRegressor if number else LGBMClassifier
        settings["estimator"] = trees(n_estimators=n_steps or 200, n_jobs=1, verbose=verbose)
    if settings["reference"] is not None:
        settings["reference"] = find_value(
            groups.labels, settings["reference"], "reference", "the groups"
        )

    def groups_of(rows: Any) -> Any:
        return None if soft is None else soft[rows]

    estimator = kind(sensitive_column=columns, **settings)
    rows = X.iloc[train], y.iloc[train]
    if settings["max_gap"] is not None:
        model = estimator.fit(*rows, sensitive_features=groups_of(train))
        path, weight = model.path_, model.fairness_weight_
    else:
        weight = float(settings["fairness_weight"])
        others = estimator.default_weights if number else PAPER_WEIGHTS
        weights = sorted({0.0, weight, *map(float, others)})
        path = fairness_path(
            *rows,
            sensitive_features=groups_of(train),
            fairness_weights=weights,
            estimator=estimator,
        )
        model = path.models[weights.index(weight)]
    curve = path.curve(X.iloc[test], y.iloc[test], sensitive_features=groups_of(test))
    if table.classes is not None:
        model = copy(model)  # models of the path keep the labels that they were trained on
        model.classes_ = np.array(table.classes)
        model.reader_ = replace(model.reader_, classes_=model.classes_)
    return TrainedModel(model, curve, weight, test)


def _columns(table: LabelledTable, cuts: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the columns of the groups, with the edges of those that are cut into bands."""
    from fairmatch.people.bands import bands

    attributes = table.attributes
    for column in cuts:
        if column not in attributes:
            raise InputError(
                f"{column!r} is cut into bands, and is no column with groups. Name it with "
                "--sensitive too.",
                parameter="bands",
            )
    if not cuts:
        return attributes[0] if len(attributes) == 1 else attributes
    edges = {column: bands(table.frame[column], **how).edges for column, how in cuts.items()}
    return {column: list(edges[column]) if column in edges else None for column in attributes}


def _check_gap(gap: str, outcome: Any) -> None:
    """Raise unless a gap of such an outcome can be bounded."""
    from fairmatch.measures.registry import bounded

    if gap not in bounded(outcome):
        known = ", ".join(bounded(outcome))
        raise InputError(
            f"gap_measure={gap!r} is not a measure; choose one of {known}.", parameter="gap_measure"
        )


def _is_number(table: LabelledTable) -> bool:
    """Return whether the target is a number with many values, and not a class."""
    target = table.frame[table.target]
    return target.dtype.kind in "iuf" and target.nunique() > _MOST_LEVELS


def _save(trained: TrainedModel, folder: str, *, gap: str, picture: bool) -> Path:
    """Write the model and its trade-off, as JSON and as a picture, whole or not at all."""
    import json

    from fairmatch import __version__
    from fairmatch.learning.saving import save_model
    from fairmatch.people.files import write_whole
    from fairmatch.report.charts import (
        gap_axis,
        save_chart,
        standalone,
        tradeoff_chart,
        tradeoff_rows,
    )

    numbers = {
        "fairmatch": __version__,
        "fairness_weight": trained.fairness_weight,
        "n_test_rows": len(trained.test_index),
        "curve": trained.curve.to_dict(orient="records"),
    }

    def write_curve(home: Path) -> None:
        write_whole(home / "curve.json", json.dumps(numbers, indent=1) + "\n")
        if picture:
            rows = tradeoff_rows(trained.curve, gap)
            chart = tradeoff_chart(rows, title=gap_axis(gap), chosen=trained.fairness_weight)
            save_chart(standalone(chart), home / "curve.svg")

    return save_model(trained.model, folder, beside=write_curve)


def _print_curve(trained: TrainedModel, *, chosen: bool) -> None:
    """Print the trade-off from which a model was chosen."""
    from fairmatch.measures.registry import BOUNDED

    curve, kept = trained.curve, trained.fairness_weight
    asked = trained.model.gap_measure
    known = [name for name, own in BOUNDED.items() if own.audited or name == asked]
    shown = [name for name in known if name in curve.columns]
    good = "accuracy" if "accuracy" in curve.columns else "rmse"
    print(f"The trade-off on {len(trained.test_index):,} test rows (* marks the model kept):")
    print_table(
        ["", "weight", good, *(BOUNDED[name].symbol for name in shown)],
        [
            ["*" if weight == kept else "", f"{weight:g}", *(f"{value:.4f}" for value in values)]
            for weight, *values in curve[["fairness_weight", good, *shown]].to_numpy()
        ],
    )
    if chosen:
        print(
            "It was chosen on other rows, which were held out of the training, so another model "
            "may look better here."
        )
