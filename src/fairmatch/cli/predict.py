"""The command ``fairmatch predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.labelled import open_model, together
from fairmatch.cli.options import command
from fairmatch.cli.printing import print_roles
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairmatch.people.roles import RoleTable

# A column that more than this share of the people lack is no identifier.
_MOST_MISSING = 0.05


@command("fairmatch predict model people.csv --out scores.csv")
def predict(asked: Any) -> None:
    """Score a table with a saved model.

    DIR is the folder of the model, and TABLE a .csv or .parquet file with its training columns.
    """
    import numpy as np
    import pandas as pd

    from fairmatch.people.files import check_outputs, check_table_name, find_value, write_table
    from fairmatch.people.outcome import largest_class
    from fairmatch.people.roles import Roles

    table, out, ids, positive = asked.table, asked.out, asked.ids, asked.positive
    if (Path(table) / "model.json").is_file():
        raise InputError(
            f"{table} is the folder of a model, and a table was expected. The model comes first: "
            f"fairmatch predict {table} {asked.model} --out {out}"
        )
    check_outputs([table], out=out)
    check_table_name(out)
    fitted, frame, inside, given = open_model(asked, ids)
    sees_groups = fitted.reader_.at_prediction if hasattr(fitted, "reader_") else True
    if not inside and sees_groups and not given:
        raise InputError(
            "This model needs the group to predict, and does not know its column. Name the column "
            "with --sensitive."
        )
    known = list(frame.columns)
    names = list(getattr(fitted, "feature_names_in_", [n for n in known if n not in (*given, ids)]))
    wanted = [n for n in names if n in known or sees_groups or n not in inside]
    groups = given if sees_groups and not inside else [n for n in wanted if n in inside]
    features = [n for n in wanted if n not in inside]
    roles = Roles(sensitive=groups, id=ids, features=features).read(frame, name=table)
    asks = {"sensitive_features": together(frame, groups)} if groups and not inside else {}
    people = [ids] if ids is not None else _identifiers(frame, roles)
    classes = np.asarray(getattr(fitted, "classes_", ())).tolist()
    if positive is not None and len(classes) != 2:
        why = "predicts numbers. Leave it out."
        if classes:
            why = f"has {len(classes)} classes. Leave it out: every class gets a column of its own."
        raise InputError(
            f"--positive was given, but the model {why}", parameter="positive" if classes else None
        )
    scores: dict[str, Any] = {}
    if not classes:
        chosen = fitted.predict(frame[wanted], **asks)
        told = f"in {out}, each with the predicted number"
    else:
        probabilities = fitted.predict_proba(frame[wanted], **asks)
        told = f"scored in {out}: the probability of "
        if len(classes) > 2:
            scores = {f"score_{own}": probabilities[:, at] for at, own in enumerate(classes)}
            chosen = fitted.classes_[largest_class(probabilities)]
            told += "each class"
        else:
            label = classes[1]
            if positive is not None:
                label = find_value(classes, positive, "positive", "the classes of the model")
            scores = {"score": probabilities[:, classes.index(label)]}
            chosen = fitted.classes_[(probabilities[:, 1] >= 0.5).astype(np.intp)]
            told += repr(label)
    scored = {**scores, "prediction": chosen}
    kept = {n: frame[n].to_numpy() for n in people if n not in scored}
    print_roles(roles)
    write_table(pd.DataFrame({**kept, **scored}), out)
    print(f"{len(frame):,} rows {told}")


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
