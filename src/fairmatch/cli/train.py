"""The command ``fairmatch train``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli import options
from fairmatch.cli.labelled import LabelledTable, open_labelled, tell_answers
from fairmatch.cli.options import COUNT, FILE, Command
from fairmatch.cli.printing import print_table
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

_LEARNERS = {"network": "FTMClassifier", "boosting": "FTMBoostingClassifier"}
_REGRESSORS = {"network": "FTMRegressor", "boosting": "FTMBoostingRegressor"}
# A target of numbers with more different values than this is predicted as a number.
_MOST_LEVELS = 20
_TEST_SIZE = 0.2


@click.command(
    cls=Command,
    example="fairmatch train people.csv --target hired --positive yes --sensitive sex "
    "--max-gap 0.1 --out model",
)
@options.labelled
@options.columns(
    "--group-probabilities",
    help="Columns with the probability of each group, instead of --sensitive. The model then does "
    "not use the group for predictions.",
)
@options.bands
@click.option(
    "--criterion",
    type=options.CRITERIA,
    default="demographic_parity",
    help="Which people are compared: all, those with the positive label, or those with the same "
    "label.",
)
@click.option(
    "--transport",
    type=click.Choice(("predicted", "marginal", "joint")),
    help="Match people on features and predicted scores (the default of boosting), on "
    "their features alone (the default of networks), or on features and labels.",
)
@click.option(
    "--max-gap",
    type=click.FloatRange(min=0),
    help="Keep an accurate model within this gap; for a numeric target, in its unit.",
)
@click.option(
    "--fairness-weight",
    type=click.FloatRange(min=0),
    help="Fairness weight, if --max-gap does not choose it. By default 1.",
)
@click.option(
    "--gap-measure",
    metavar="NAME",
    help="The gap that --max-gap bounds and the figure shows. By default that of the criterion.",
)
@click.option(
    "--confidence",
    type=options.UPPER_LEVEL,
    metavar="LEVEL",
    help="Require that the upper confidence limit of the gap is within --max-gap, at this level.",
)
@click.option(
    "--scoring",
    metavar="NAME",
    help="The score that --max-gap keeps high: a name of scikit-learn's scorers, such as roc_auc. "
    "By default accuracy; for a numeric target, the root mean squared error.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Save no model, and exit with 2, if none keeps --max-gap. By default the fairest is kept, "
    "with a warning.",
)
@options.small_groups("learns from them without comparing them")
@options.unknown("learns from them without comparing them")
@click.option(
    "--reference",
    metavar="GROUP",
    help="The group with which all others are matched, such as 'male, White'. By default the "
    "largest.",
)
@options.columns("--given", help="Compare people within the levels of these columns.")
@options.columns(
    "--similar",
    "similarity",
    help="Which columns make people similar: column names, also with weights (title=2,age=1), or "
    "'relevance' to the label. By default all.",
)
@options.columns("--categorical", help="Read these columns of codes as categories, not as numbers.")
@click.option(
    "--without-sensitive",
    is_flag=True,
    help="Train a model that does not use the group for predictions.",
)
@click.option(
    "--learner",
    type=click.Choice(("boosting", "network")),
    help="Boosted trees by LightGBM (the default), or a neural network (with --epochs).",
)
@click.option("--epochs", type=COUNT, help="Epochs of a network. By default 40.")
@click.option("--rounds", type=COUNT, help="Rounds of boosting. By default 200.")
@options.seed("model")
@click.option("--no-picture", is_flag=True, help="Do not draw the trade-off figure.")
@click.option("--out", required=True, type=FILE, metavar="DIR", help="Folder for the model.")
def train(
    group_probabilities: tuple[str, ...],
    bands: tuple[str, ...],
    criterion: str,
    max_gap: float | None,
    fairness_weight: float | None,
    gap_measure: str | None,
    confidence: float | None,
    scoring: str | None,
    strict: bool,
    without_sensitive: bool,
    learner: str | None,
    epochs: int | None,
    rounds: int | None,
    no_picture: bool,
    out: str,
    transport: str | None,
    small_groups: Any,
    unknown: str,
    reference: str | None,
    given: tuple[str, ...],
    similarity: tuple[str, ...],
    categorical: tuple[str, ...],
    random_state: int,
    **labelled: Any,
) -> None:
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
    from fairmatch.report.charts import require_charts

    if max_gap is not None and fairness_weight is not None:
        raise InputError("--max-gap chooses the fairness weight. Leave --fairness-weight out.")
    learner = learner or ("boosting" if epochs is None else "network")
    unit, other = ("epochs", "rounds") if learner == "network" else ("rounds", "epochs")
    length = {"epochs": epochs, "rounds": rounds}
    if length[other] is not None:
        raise InputError(
            f"--{other} was given, and the learner is {learner}. Leave --{other} out, or choose "
            f"--learner {'boosting' if learner == 'network' else 'network'}."
        )
    gap = gap_measure or read_criterion(criterion).gap_measure
    _check_gap(gap, PROBABILITY if gap not in bounded(NUMBER) else NUMBER)
    check_folder(out)
    check_place(out)
    if not no_picture:
        require_charts()  # before the training, not after it
    cuts = dict(map(options.read_cut, bands))
    estimated = bool(group_probabilities)
    if estimated and (labelled["sensitive_features"] or bands):
        raise click.UsageError(
            "--group-probabilities says all about the groups. Leave --sensitive and --bands out."
        )
    labelled["sensitive_features"] = group_probabilities or labelled["sensitive_features"]
    table = open_labelled(
        labelled, sees_groups=not without_sensitive, unknown=unknown, estimated=estimated
    )
    number = _is_number(table)
    if number:
        if criterion != "demographic_parity":
            raise InputError(
                f"--criterion {criterion} compares people of the same class, and "
                f"{table.target!r} holds numbers. Leave it out."
            )
        gap, no_picture = gap_measure or "mean_parity_gap", True
        print(f"{table.target} holds numbers, so a regressor is trained.")
    elif max_gap is not None and max_gap > 1.0:
        raise InputError(
            f"max_gap must be a number in [0, 1], got {max_gap:g}.", parameter="max_gap"
        )
    _check_gap(gap, NUMBER if number else PROBABILITY)
    names = list(table.frame.columns)
    for column in split_names(categorical, names, "categorical"):
        check_names([column], names, table=labelled["table"])
        written = table.frame[column].astype("string").astype(object)
        table.frame[column] = written.astype("category")
    alike: Any = written_similarity(split_names(similarity, names, "similarity")) or None
    trained = train_model(
        table,
        learner,
        cuts=cuts,
        max_gap=max_gap,
        fairness_weight=1.0 if fairness_weight is None else fairness_weight,
        n_steps=length[unit],
        reference=reference,
        transport=transport,
        criterion=criterion,
        gap_measure=gap,
        confidence=confidence,
        scoring=scoring,
        strict=strict,
        small_groups=small_groups or "warn",
        unknown=unknown,
        given=split_names(given, names, "given") or None,
        similarity="relevance" if alike == ["relevance"] else alike,
        sensitive_at_prediction=not (without_sensitive or estimated),
        random_state=random_state,
    )
    _print_curve(trained, chosen=max_gap is not None)
    folder = _save(trained, out, gap=gap, picture=not no_picture)
    print(f"Saved to {folder}: the model, curve.json{'' if no_picture else ', curve.svg'}.")
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


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, and the trade-off from which it was chosen."""

    model: Any  #: The model.
    curve: pd.DataFrame  #: Measurements of all models of the path on the test rows.
    fairness_weight: float  #: Fairness weight of the model.
    test_index: Any  #: Positions of the test rows, which no model has seen.


def train_model(
    table: LabelledTable,
    learner: str,
    *,
    cuts: Mapping[str, Mapping[str, Any]],
    max_gap: float | None,
    fairness_weight: float,
    n_steps: int | None,
    reference: str | None,
    transport: str | None,
    **settings: Any,
) -> TrainedModel:
    """Train FTM on a table, and measure the whole path on test rows.

    Parameters
    ----------
    table : LabelledTable
        The table.
    learner : {"network", "boosting"}
        A neural network, or boosted trees.
    cuts : mapping
        How `fairmatch.bands` cuts columns with groups that hold numbers.
    max_gap : float or None
        Largest gap on held-out rows. It chooses the fairness weight.
    fairness_weight : float
        The fairness weight, if ``max_gap`` is not given.
    n_steps : int or None
        Epochs of a network, or rounds of boosting.
    reference : str or None
        The group that all others are matched with, as it is written in the table.
    transport : str or None
        What people are matched on.
    **settings
        Further parameters of the estimator.
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
    number = _is_number(table)
    # The error names the extra to install.
    kind = getattr(fairmatch, (_REGRESSORS if number else _LEARNERS)[learner])
    if number:
        del settings["criterion"]
    if learner == "network":  # trees take missing values as they are
        settings["encoder"] = TableEncoder(missing="encode")
        settings["estimator"] = fairmatch.NeuralNetwork(epochs=n_steps, verbose=verbose)
    else:
        from lightgbm import LGBMClassifier, LGBMRegressor

        trees = LGBMRegressor if number else LGBMClassifier
        settings["estimator"] = trees(n_estimators=n_steps or 200, n_jobs=1, verbose=verbose)
    if transport is not None:
        settings["transport"] = transport
    if reference is not None:
        reference = find_value(groups.labels, reference, "reference", "the groups")

    def groups_of(rows: Any) -> Any:
        return None if soft is None else soft[rows]

    estimator = kind(
        fairness_weight=fairness_weight,
        max_gap=max_gap,
        sensitive_column=columns,
        reference=reference,
        **settings,
    )
    if max_gap is not None:
        model = estimator.fit(X.iloc[train], y.iloc[train], sensitive_features=groups_of(train))
        path, weight = model.path_, model.fairness_weight_
    else:
        weight = float(fairness_weight)
        others = estimator.default_weights if number else PAPER_WEIGHTS
        weights = sorted({0.0, weight, *map(float, others)})
        rows = X.iloc[train], y.iloc[train]
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
