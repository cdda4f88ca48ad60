"""The command ``fairmatch predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli import options
from fairmatch.cli.options import FILE, Command
from fairmatch.cli.printing import print_roles
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.people.roles import RoleTable

# A column that more than this share of the people lack is no identifier.
_MOST_MISSING = 0.05


@click.command(cls=Command, example="fairmatch predict model people.csv --out scores.csv")
@click.argument("model", type=FILE, metavar="DIR")
@click.argument("table", type=FILE)
@click.option(
    "--out", required=True, type=FILE, metavar="FILE", help="Write a .csv or .parquet file."
)
@click.option(
    "--id",
    "ids",
    metavar="COL",
    help="Identifier column to include in the output. By default all identifier columns.",
)
@click.option(
    "--positive",
    metavar="LABEL",
    help="The score is the probability of this label. By default the second in order.",
)
@options.sensitive("The group of each person, for models saved from Python that need it")
@options.reading
def predict(
    model: str,
    table: str,
    out: str,
    ids: str | None,
    positive: str | None,
    sensitive_features: tuple[str, ...],
    reading: dict[str, Any],
) -> None:
    """Score a table with a saved model.

    DIR is the folder of the model, and TABLE a .csv or .parquet file with its training columns.
    """
    import numpy as np
    import pandas as pd

    from fairmatch.learning.saving import load
    from fairmatch.people.files import (
        check_outputs,
        check_table_name,
        find_value,
        read_table,
        write_table,
    )
    from fairmatch.people.outcome import largest_class
    from fairmatch.people.roles import Roles, split_names

    if (Path(table) / "model.json").is_file():
        raise InputError(
            f"{table} is the folder of a model, and a table was expected. The model comes first: "
            f"fairmatch predict {table} {model} --out {out}"
        )
    check_outputs([table], out=out)
    check_table_name(out)
    text = [] if ids is None else [ids]
    frame = read_table(table, text=text, **reading).rename(columns=str)
    fitted = load(model)
    known = list(frame.columns)
    inside = getattr(fitted, "sensitive_column", None) or []
    inside = [inside] if isinstance(inside, str) else [str(column) for column in inside]
    sees_groups = fitted.reader_.at_prediction if hasattr(fitted, "reader_") else True
    given = split_names(sensitive_features, known)
    if not inside and sees_groups and not given:
        raise InputError(
            "This model needs the group to predict, and does not know its column. Name the column "
            "with --sensitive."
        )
    names = list(getattr(fitted, "feature_names_in_", [n for n in known if n not in (*given, ids)]))
    wanted = [n for n in names if n in known or sees_groups or n not in inside]
    groups = given if sees_groups and not inside else [n for n in wanted if n in inside]
    features = [n for n in wanted if n not in inside]
    roles = Roles(sensitive=groups, id=ids, features=features).read(frame, name=table)
    asked = {}
    if groups and not inside:
        several = len(groups) > 1
        asked["sensitive_features"] = frame[groups] if several else frame[groups[0]].to_numpy()
    people = [ids] if ids is not None else _identifiers(frame, roles)
    if not hasattr(fitted, "classes_"):
        if positive is not None:
            raise InputError("--positive was given, and the model predicts numbers. Leave it out.")
        kept = {n: frame[n].to_numpy() for n in people if n != "prediction"}
        numbers = pd.DataFrame({**kept, "prediction": fitted.predict(frame[wanted], **asked)})
        print_roles(roles)
        write_table(numbers, out)
        print(f"{len(numbers):,} rows in {out}, each with the predicted number")
        return
    classes = np.asarray(fitted.classes_).tolist()
    label = classes[1]
    if positive is not None and len(classes) > 2:
        raise InputError(
            f"--positive was given, and the model has {len(classes)} classes. Leave it out: every "
            "class gets a column of its own.",
            parameter="positive",
        )
    if positive is not None:
        label = find_value(classes, positive, "positive", "the classes of the model")
    probabilities = fitted.predict_proba(frame[wanted], **asked)
    if len(classes) > 2:
        scores = {f"score_{own}": probabilities[:, at] for at, own in enumerate(classes)}
        chosen, told = largest_class(probabilities), "each class"
    else:
        scores = {"score": probabilities[:, classes.index(label)]}
        chosen, told = (probabilities[:, 1] >= 0.5).astype(np.intp), repr(label)
    scored = {**scores, "prediction": fitted.classes_[chosen]}
    kept = {n: frame[n].to_numpy() for n in people if n not in scored}
    found = pd.DataFrame({**kept, **scored})
    print_roles(roles)
    write_table(found, out)
    print(f"{len(found):,} rows scored in {out}: the probability of {told}")


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
