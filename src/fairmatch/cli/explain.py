"""The command ``fairmatch explain``."""

from __future__ import annotations

from typing import Any

import click

from fairmatch.cli import options
from fairmatch.cli.options import FILE, Command, check_page
from fairmatch.exceptions import InputError


@click.command(cls=Command, example="fairmatch explain model people.csv --id 17")
@click.argument("model", type=FILE, metavar="DIR")
@click.argument("table", type=FILE)
@click.option("--id", "id", required=True, metavar="ID", help="The person to explain.")
@click.option(
    "--id-column",
    metavar="COL",
    help="Column with the identifiers. Without it ID is a row number, counted from 0.",
)
@options.sensitive("The group of each person, for models that do not find it in the table")
@click.option("--plain", type=FILE, metavar="DIR", help="The model without a fairness constraint.")
@click.option(
    "--nearest", "n_nearest", type=options.COUNT, default=3, help="Nearest people to show."
)
@click.option("--threshold", type=float, default=0.5, help="The score at which decisions change.")
@click.option(
    "--favourable",
    type=click.Choice(("high", "low")),
    default="high",
    help="Which scores are favourable; with low, people below the threshold are selected.",
)
@click.option(
    "--outcome",
    metavar="WORDS",
    help="Words for the favourable outcome, such as 'granted bail'. By default selected, or not "
    "flagged.",
)
@click.option(
    "--positive",
    "pos_label",
    metavar="LABEL",
    help="The label that a high score predicts; by default 1, or the last label of the model.",
)
@click.option(
    "--letter",
    type=FILE,
    metavar="FILE",
    help="Write a letter of one A4 page. It shows medians of 10 people and no individual.",
)
@click.option("--sender", metavar="TEXT", help="Who writes the letter.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
@options.reading
def explain(
    model: str,
    table: str,
    id: str,
    id_column: str | None,
    sensitive_features: tuple[str, ...],
    plain: str | None,
    n_nearest: int,
    threshold: float,
    favourable: str,
    outcome: str | None,
    pos_label: str | None,
    letter: str | None,
    sender: str | None,
    as_json: bool,
    reading: dict[str, Any],
) -> None:
    """Explain the decision of one person by comparing it with similar people.

    DIR is the folder of the model, and TABLE a .csv or .parquet file with its training columns.
    """
    import json

    from fairmatch.auditing.explain import Explainer
    from fairmatch.learning.saving import load
    from fairmatch.people.files import check_outputs, find_value, read_table
    from fairmatch.people.roles import split_names

    check_page(letter)
    if sender is not None and letter is None:
        raise InputError("--sender signs a letter. Name its file with --letter.")
    check_outputs([table], letter=letter)
    frame = read_table(table, text=[] if id_column is None else [id_column], **reading)
    frame = frame.rename(columns=str)
    known = list(frame.columns)
    if id_column is not None and id_column not in known:
        raise InputError(f"--id-column: {table} has no column {id_column!r}.")
    fitted = load(model)
    given = split_names(sensitive_features, known)
    inside = getattr(fitted, "sensitive_column", None) or []
    inside = [inside] if isinstance(inside, str) else [str(column) for column in inside]
    if not inside and not given:
        raise InputError("Name the column with the groups with --sensitive.")
    names = getattr(fitted, "feature_names_in_", [n for n in known if n not in given])
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(f"{table} lacks the column {missing[0]!r}, which the model needs.")
    groups = None
    if not inside:
        groups = frame[given] if len(given) > 1 else frame[given[0]].to_numpy()
    positive: Any = 1
    if pos_label is not None:
        classes = getattr(fitted, "classes_", [])
        positive = find_value(classes, pos_label, "pos_label", "the classes of the model")
    explainer = Explainer(
        fitted,
        frame[[str(name) for name in names]],
        sensitive_features=groups,
        plain=None if plain is None else load(plain),
        ids=None if id_column is None else frame[id_column].to_numpy(),
        threshold=threshold,
        favourable=favourable,
        outcome=outcome,
        pos_label=positive,
    )
    found = explainer.explain(explainer.row_of(id), n_nearest=n_nearest)
    print(json.dumps(found.to_dict()) if as_json else found)
    if letter is not None:
        found.letter(letter, sender=sender or "")
        print(f"Letter written to {letter}")
