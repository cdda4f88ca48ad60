"""The command ``fairmatch explain``."""

from __future__ import annotations

from typing import Any

from fairmatch.cli.labelled import open_model, together
from fairmatch.cli.options import check_page, command
from fairmatch.exceptions import InputError


@command("fairmatch explain model people.csv --id 17")
def explain(asked: Any) -> None:
    """Explain the decision of one person by comparing it with similar people.

    DIR is the folder of the model, and TABLE a .csv or .parquet file with its training columns.
    """
    import json

    from fairmatch.auditing.explain import Explainer
    from fairmatch.learning.saving import load
    from fairmatch.people.checks import check_names
    from fairmatch.people.files import check_outputs, find_value

    table, ids = asked.table, asked.id_column
    check_page(asked.letter)
    if asked.sender is not None and asked.letter is None:
        raise InputError("--sender signs a letter. Name its file with --letter.")
    check_outputs([table], letter=asked.letter)
    fitted, frame, inside, given = open_model(asked, ids)
    known = list(frame.columns)
    if not inside and not given:
        raise InputError("Name the column with the groups with --sensitive.")
    names = getattr(fitted, "feature_names_in_", [n for n in known if n not in given])
    check_names([*names, *([] if ids is None else [ids])], known, table=table)
    positive: Any = 1
    if asked.pos_label is not None:
        classes = getattr(fitted, "classes_", [])
        positive = find_value(classes, asked.pos_label, "pos_label", "the classes of the model")
    explainer = Explainer(
        fitted,
        frame[[str(name) for name in names]],
        sensitive_features=None if inside else together(frame, given),
        plain=None if asked.plain is None else load(asked.plain),
        ids=None if ids is None else frame[ids].to_numpy(),
        threshold=asked.threshold,
        favourable=asked.favourable,
        outcome=asked.outcome,
        pos_label=positive,
    )
    found = explainer.explain(explainer.row_of(asked.id), n_nearest=asked.n_nearest)
    print(json.dumps(found.to_dict()) if asked.as_json else found)
    if asked.letter is not None:
        found.letter(asked.letter, sender=asked.sender or "")
        print(f"Letter written to {asked.letter}")
