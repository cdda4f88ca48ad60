"""Tables to learn from, with labels and groups, and tables for a model that is saved."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.printing import print_line, print_roles
from fairmatch.exceptions import ColumnError, InputError

if TYPE_CHECKING:
    import pandas as pd

# From this accuracy on, a model may have seen the answer.
_HARDLY_WRONG = 0.999


def together(frame: pd.DataFrame, names: Sequence[str]) -> Any:
    """Return a column of a table, or the table of several."""
    return frame[list(names)] if len(names) > 1 else frame[names[0]]


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table, and the names of its label and group columns.

    Labels of two words are 0 and 1 in the frame, and ``classes`` has the words. Columns of groups
    hold the probability of each group if they are ``estimated``.
    """

    frame: pd.DataFrame
    target: str
    attributes: list[str]
    left_out: Sequence[str] = ()
    classes: tuple[Any, Any] | None = None
    estimated: bool = False
    written: pd.Series[Any] | None = None  #: The labels as the file has them.

    @property
    def groups(self) -> Any:
        """The column of the groups, or a table of several."""
        return together(self.frame, self.attributes)

    @property
    def features(self) -> pd.DataFrame:
        """The columns to learn from."""
        return self.frame.drop(columns=[self.target, *self.attributes, *self.left_out])


def read_labelled(
    name: str,
    target: str | None,
    sensitive_features: Sequence[str] = (),
    positive: str | None = None,
    unknown: str = "error",
    **reading: Any,
) -> LabelledTable:
    """Read a file with its label and group columns, or a dataset, which knows its own.

    A file with the name of a dataset takes precedence. Labels become 1 where they equal the
    positive one, and 0 elsewhere. A missing group raises an error, or is left to the learner.

    Examples
    --------
    >>> from fairmatch.cli.labelled import read_labelled
    >>> german = read_labelled("german", None)
    >>> german.target, german.attributes, len(german.frame)
    ('good_credit', ['sex'], 1000)
    """
    from fairmatch.datasets import DATASET_NAMES
    from fairmatch.people.checks import check_names
    from fairmatch.people.files import MISSING_WORDS, find_value, read_table
    from fairmatch.people.roles import split_names

    if name in DATASET_NAMES and not Path(name).exists():
        return _from_dataset(name, target, sensitive_features)
    if target is None or not sensitive_features:
        near = get_close_matches(name, DATASET_NAMES, n=1)
        hint = f" (Did you mean the dataset {near[0]!r}?)" if near else ""
        raise InputError(
            f"{name} is a file, so --target and --sensitive must name its columns.{hint}"
        )
    frame = read_table(name, **reading).rename(columns=str)
    attributes = split_names(sensitive_features, list(frame.columns))
    check_names([target, *attributes], list(frame.columns), table=name)
    if target in attributes:
        raise ColumnError(
            f"--target and --sensitive are the same column, {target!r}. Name two columns."
        )
    needed = (target, *attributes) if unknown == "error" else (target,)
    missing = {c: int(frame[c].isna().sum()) for c in needed}
    if any(missing.values()):
        said = " and ".join(
            f"{column!r} is missing in {n:,} row{'s' * (n > 1)}"
            for column, n in missing.items()
            if n
        )
        raise InputError(
            f"{said}. A model learns only from people whose label and group are known. Take those "
            f"rows out of the file. {MISSING_WORDS}"
        )
    if positive is None:
        return LabelledTable(frame, target, attributes)
    value = find_value(frame[target], positive, "positive")
    written = frame[target]
    others = [other for other in written.unique().tolist() if other != value]
    frame[target] = (written == value).astype("int64")
    rest = others[0] if len(others) == 1 else f"not {value}"
    return LabelledTable(frame, target, attributes, classes=(rest, value), written=written)


def _from_dataset(name: str, target: str | None, sensitive: Sequence[str]) -> LabelledTable:
    import pandas as pd

    from fairmatch.datasets import load_dataset
    from fairmatch.people.roles import split_names

    chosen: Any = split_names(sensitive, ()) or None
    dataset = load_dataset(name, sensitive=chosen[0] if chosen and len(chosen) == 1 else chosen)
    label = str(dataset.y.name)
    if target not in (None, label):
        raise InputError(
            f"The labels of the dataset {name!r} are {label!r}, and not {target!r}. Leave --target "
            "out."
        )
    groups = pd.DataFrame(dataset.sensitive_features)
    frame = dataset.X.copy()
    frame[list(groups.columns)], frame[label] = groups, dataset.y
    return LabelledTable(frame, label, [str(column) for column in groups.columns])


def open_labelled(
    asked: Any, *, sees_groups: bool, unknown: str = "error", estimated: bool = False
) -> LabelledTable:
    """Read the table that the ``labelled`` options name, and print how it is read.

    Raise if the user must decide about a column. ``sees_groups`` is whether the model is meant to
    see the group.
    """
    from fairmatch.people.roles import Roles, ask, split_names

    text = [] if asked.ids is None else [asked.ids]
    table = read_labelled(
        asked.table, asked.target, asked.sensitive_features, asked.positive, unknown, text=text,
        **asked.reading,
    )  # fmt: skip
    labels = table.frame[table.target].unique().tolist()
    if asked.positive is None and len(labels) == 2 and not isinstance(labels[0], int | float):
        first, second = sorted(map(str, labels))
        raise InputError(
            f"{table.target!r} holds {first!r} and {second!r}, and of two words neither is "
            "positive by default. Name it with --positive."
        )
    known = list(table.frame.columns)
    shown = table.frame
    if table.written is not None:
        shown = shown.assign(**{table.target: table.written})
    kept = split_names(asked.keep, known)
    roles = Roles(
        sensitive=table.attributes,
        label=table.target,
        id=asked.ids,
        ignored=split_names(asked.drop, known),
        kept=kept,
        numbers=table.attributes if estimated else (),
    ).read(shown, name=asked.table)
    print_roles(roles)
    _print_positive(table, labels, is_file=Path(asked.table).exists())
    sees = None if estimated else sees_groups
    asked = ask(table.frame, roles, sees_groups=sees, kept=kept)
    if asked.notes:
        print(f"Look at these columns before you use the model:\n{_sentences(asked.notes)}\n")
    if asked.open:
        raise ColumnError(
            f"{_sentences(asked.open)}\nDecide about each column: leave it out with --drop, or "
            "learn from it with --keep. --missing WORD reads a word among numbers as missing."
        )
    left_out = [column.name for column in roles.columns if column.role in ("ignored", "id")]
    table = replace(table, left_out=left_out, estimated=estimated)
    if table.features.empty:
        raise InputError(
            "No column is left to learn from: all were dropped, or left out because they look "
            "like identifiers. Name the columns that describe people with --keep."
        )
    return table


def _print_positive(table: LabelledTable, labels: list[Any], *, is_file: bool) -> None:
    """Print which label is positive, where there are two."""
    if table.classes is not None:
        print(f"Positive label: {table.target} = {table.classes[1]!r}.\n")
    elif len(labels) == 2 and len(set(map(type, labels))) == 1:
        why = ", the last of the two in order. --positive names another" if is_file else ""
        print(f"Positive label: {table.target} = {max(labels)!r}{why}.\n")


def _sentences(lines: Sequence[str]) -> str:
    """Return lines as sentences, one on each line."""
    return "\n".join(f"{line[0].upper()}{line[1:]}{'.' * (line[-1] != '?')}" for line in lines)


def tell_answers(table: LabelledTable, accuracy: float, chance: float) -> None:
    """Warn of plain training that is hardly ever wrong: a column may hold the answer.

    Chance is the share of the more frequent label among the rows of the accuracy.
    """
    from fairmatch.people.leaks import find_leaks

    if not accuracy > max(_HARDLY_WRONG, chance):
        return
    found = find_leaks(table.features, table.frame[table.target].to_numpy())
    names = [leak.column for leak in found if leak.is_exact]
    told = ". Look for a column that is known only after the label, and leave it out with --drop."
    if names:
        verb = "determines" if len(names) == 1 else "each determine"
        told = f": {', '.join(map(repr, names))} {verb} the label {table.target!r}. Leave out with "
        told += f"--drop {shlex.quote(','.join(names))} what is known only after the label."
    print_line(
        f"fairmatch: warning: With a fairness weight of 0, {100 * accuracy:.4g}% of the test rows "
        f"are predicted correctly. Such a model has usually seen the answer in a column{told}"
    )


def open_model(asked: Any, ids: str | None) -> tuple[Any, pd.DataFrame, list[str], list[str]]:
    """Return a saved model, a table for it, and the columns of the groups.

    The first names are the columns that the model knows, and the second those that were typed.
    """
    from fairmatch.learning.saving import load
    from fairmatch.people.files import read_table
    from fairmatch.people.roles import split_names

    frame = read_table(asked.table, text=[] if ids is None else [ids], **asked.reading)
    frame, model = frame.rename(columns=str), load(asked.model)
    inside = getattr(model, "sensitive_column", None) or []
    inside = [inside] if isinstance(inside, str) else [str(column) for column in inside]
    return model, frame, inside, split_names(asked.sensitive_features, list(frame.columns))
