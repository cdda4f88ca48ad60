"""The command ``fairmatch predict``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.command import Command, add_reading, add_sensitive, print_roles, reading
from fairmatch.exceptions import InputError
from fairmatch.people.files import check_outputs

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.people.roles import RoleTable


# A column that more than this share of the people lack is no identifier.
_MOST_MISSING = 0.05


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model for the rows of a table.

    Attributes
    ----------
    frame : DataFrame
        Columns that identify people, if any; then the score and the prediction.
    label : object
        The class whose probability is the score.
    roles : RoleTable
        How every column of the table was read.
    """

    frame: pd.DataFrame
    label: Any
    roles: RoleTable


def predict_table(
    model_folder: str | Path,
    frame: pd.DataFrame,
    *,
    positive: str | None = None,
    sensitive: str | Sequence[str] | None = None,
    ids: str | None = None,
    name: object = "The table",
) -> Predictions:
    """Return the predictions of a saved model for the rows of a table.

    Parameters
    ----------
    model_folder : str or Path
        Folder that ``fairmatch train`` or ``model.save`` wrote.
    frame : DataFrame
        Rows with the columns of the training table. Other columns are not used.
    positive : str, optional
        The class whose probability is the score, as text; by default the second in order.
    sensitive : str or sequence of str, optional
        Columns with the groups, for models that were trained without a name for them.
    ids : str, optional
        Column that is carried along. By default these are the columns that the model does not
        use and that surely identify people.
    name : object
        Name of the table in errors, such as its file.

    Raises
    ------
    InputError
        If the model needs the groups and their column is not known.
    """
    import numpy as np
    import pandas as pd

    from fairmatch.datasets.catalogue import split_names
    from fairmatch.learning.reading import as_list
    from fairmatch.learning.saving import load
    from fairmatch.people.files import class_written
    from fairmatch.people.roles import Roles

    model = load(model_folder)
    known = [str(column) for column in frame.columns]
    inside = [str(column) for column in as_list(getattr(model, "sensitive_column", None))]
    sees_groups = getattr(model, "sensitive_at_prediction", True)
    given = [] if sensitive is None else split_names(sensitive, known)
    if not inside and sees_groups and not given:
        raise InputError(
            "This model needs the group to predict, and does not know its column. Name the column "
            "with --sensitive."
        )
    names = list(getattr(model, "feature_names_in_", [n for n in known if n not in (*given, ids)]))
    wanted = [n for n in names if n in known or sees_groups or n not in inside]
    groups = given if sees_groups and not inside else [n for n in wanted if n in inside]
    features = [n for n in wanted if n not in inside]
    roles = Roles(sensitive=groups, id=ids, features=features).read(frame, name=name)
    people = [ids] if ids is not None else _identifiers(frame, roles)
    asked = {}
    if groups and not inside:
        several = len(groups) > 1
        asked["sensitive_features"] = frame[groups] if several else frame[groups[0]].to_numpy()
    classes = np.asarray(model.classes_).tolist()
    label = classes[1] if positive is None else class_written(model, positive)
    probabilities = model.predict_proba(frame[wanted], **asked)
    scores = probabilities[:, classes.index(label)]
    decided = model.classes_[(probabilities[:, 1] >= 0.5).astype(np.intp)]
    own = {n: frame[n].to_numpy() for n in people if n not in ("score", "prediction")}
    return Predictions(pd.DataFrame({**own, "score": scores, "prediction": decided}), label, roles)


def _identifiers(frame: pd.DataFrame, roles: RoleTable) -> list[str]:
    """Return the columns that surely identify people, among those that the model does not use."""
    from fairmatch.people.roles import Roles

    unused = frame[roles.named("ignored")]
    if not len(unused.columns):
        return []
    found = Roles().read(unused)
    return [
        column.name
        for column in found.columns
        # Remarks differ between people too, but many people have none.
        if column.doubt.startswith("looks like an identifier")
        and column.n_missing <= _MOST_MISSING * found.n_rows
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="DIR", help="folder of a saved model")
    add("table", help="a .csv or .parquet file with the training columns")
    add("--out", metavar="FILE", required=True, help="write a .csv or .parquet file")
    add("--id", metavar="COL", help="column to carry along (default: those that identify people)")
    add(
        "--positive",
        metavar="LABEL",
        help="the score is the probability of this label (default: the second in order)",
    )
    add_sensitive(parser, "the group of each person, for models saved from Python that need it")
    add_reading(parser)


def _run(arguments: argparse.Namespace) -> int:
    from fairmatch.people.files import check_table_name, read_table, write_table

    if (Path(arguments.table) / "model.json").is_file():
        raise InputError(
            f"{arguments.table} is the folder of a model, and a table was expected. The model "
            f"comes first: fairmatch predict {arguments.table} {arguments.model} --out "
            f"{arguments.out}"
        )
    check_outputs([arguments.table], {"--out": arguments.out})
    check_table_name(arguments.out)
    found = predict_table(
        arguments.model,
        read_table(arguments.table, **reading(arguments, ids=[arguments.id])).rename(columns=str),
        positive=arguments.positive,
        sensitive=arguments.sensitive,
        ids=arguments.id,
        name=arguments.table,
    )
    print_roles(found.roles)
    file = write_table(found.frame, arguments.out)
    print(f"{len(found.frame):,} rows scored in {file}: the probability of {found.label!r}")
    return 0


COMMAND = Command(
    name="predict",
    help="Score a table with a saved model.",
    example="fairmatch predict model people.csv --out scores.csv",
    add_arguments=_add_arguments,
    run=_run,
)
