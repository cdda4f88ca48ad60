"""What the commands train and predict do, without the printing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fairmatch
from fairmatch.auditing.people import identifies
from fairmatch.exceptions import InputError
from fairmatch.learning.rows import stratified_split
from fairmatch.learning.path import FairnessPath, fairness_path
from fairmatch.learning.saving import load
from fairmatch.learning.weights import PAPER_WEIGHTS
from fairmatch.report.charts import require_charts, save_chart, tradeoff_chart
from fairmatch.storage.atomic import write_whole
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.files import LabelledTable, check_column, class_written

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
    home: Path = trained.model.save(folder)
    numbers = {
        "fairmatch": fairmatch.__version__,
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


def check_picture(wanted: bool) -> None:
    """Raise before the training, not after it, where a picture is wanted and cannot be drawn."""
    if wanted:
        require_charts()


def predict_table(
    model_folder: str | Path,
    frame: pd.DataFrame,
    *,
    positive: str | None = None,
    sensitive: str | None = None,
) -> tuple[pd.DataFrame, Any]:
    """Score the rows of a table with a saved model.

    Parameters
    ----------
    model_folder : str or Path
        Where ``fairmatch train`` or ``model.save`` put it.
    frame : DataFrame
        Rows with the columns of the training table; others are left alone.
    positive : str, optional
        The class whose probability is the score, as it is written; by default the second in order.
    sensitive : str, optional
        The column with the groups, for models that were not given a name for it in training.

    Returns
    -------
    DataFrame
        The score and the prediction of every row.
    object
        The class that the score is the probability of.
    """
    model = load(model_folder)
    names = getattr(model, "feature_names_in_", np.array(frame.columns, dtype=object))
    wanted = [
        name
        for name in names
        if name in frame.columns or model.sensitive_at_prediction or name != model.sensitive_column
    ]
    for name in wanted:
        check_column(frame, name)
    given = {}
    if model.sensitive_column is None and model.sensitive_at_prediction:
        if sensitive is None:
            raise InputError(
                "This model decides by the group too, and does not know which column that is: name "
                "it with --sensitive."
            )
        check_column(frame, sensitive)
        given["sensitive_features"] = frame[sensitive].to_numpy()
    classes = np.asarray(model.classes_).tolist()
    label = classes[1] if positive is None else class_written(model, positive)
    probabilities = model.predict_proba(frame[wanted], **given)
    scores = probabilities[:, classes.index(label)]
    decided = model.classes_[(probabilities[:, 1] >= 0.5).astype(np.intp)]
    return pd.DataFrame({"score": scores, "prediction": decided}), label
