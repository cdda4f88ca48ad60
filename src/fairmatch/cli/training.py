"""A model that is trained on a table of a file, with the trade-off that it was chosen from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch import __version__
from fairmatch.exceptions import InputError
from fairmatch.storage.atomic import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.learning.path import FairnessPath
    from fairmatch.tables.files import LabelledTable
    from fairmatch.tables.groups import Groups

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
    from fairmatch.learning.groupsizes import GroupSizes
    from fairmatch.learning.path import fairness_path
    from fairmatch.learning.rows import stratified_split
    from fairmatch.learning.weights import PAPER_WEIGHTS
    from fairmatch.tables.encoder import TableEncoder
    from fairmatch.tables.groups import read_groups
    from fairmatch.tables.names import check_names

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
    least = settings.get("min_group_size", GroupSizes().min_group_size)
    ways = {"min_group_size": least, "small_groups": settings.get("small_groups", "error")}
    groups, _ = GroupSizes(**ways).apply(read_groups(sensitive, name="--sensitive"))
    # A group that is learned from but not compared may lie on one side of the split.
    split = stratified_split(
        y.to_numpy(), groups.pooled(least), test_size, settings.get("random_state")
    )
    train, test = split
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
    return TrainedModel(model, path, curve, weight, test)


def _group(groups: Groups, written: str) -> Any:
    """Return the label of the group that is written this way, or raise and list the groups."""
    from fairmatch.tables.files import find_value

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
