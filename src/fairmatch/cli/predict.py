"""The command ``fairmatch predict``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.command import Command
from fairmatch.exceptions import InputError
from fairmatch.storage.atomic import check_outputs

if TYPE_CHECKING:
    import pandas as pd


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
    import numpy as np
    import pandas as pd

    from fairmatch.learning.saving import load
    from fairmatch.tables.files import check_column, class_written

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


def _add_arguments(parser: argparse.ArgumentParser) -> None:
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


def _run(arguments: argparse.Namespace) -> int:
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


COMMAND = Command(
    name="predict",
    help="Score a table with a saved model.",
    example="fairmatch predict model people.csv --out scores.csv",
    add_arguments=_add_arguments,
    run=_run,
)
