"""A table with its label and group columns: a file, or a dataset that knows its own."""

from difflib import get_close_matches
from pathlib import Path

from fairmatch.datasets.catalogue import DATASET_NAMES, load_dataset
from fairmatch.exceptions import ColumnError, InputError
from fairmatch.tables.files import MISSING_WORDS, LabelledTable, check_column, read_table


def read_labelled(name: str, target: str | None, sensitive: str | None) -> LabelledTable:
    """Read a file with its label and group columns, or a dataset that knows its own.

    Parameters
    ----------
    name : str
        A file, or the name of a dataset. A file of the same name is preferred.
    target, sensitive : str or None
        Names of the columns with the labels and with the groups; None is for datasets.

    Returns
    -------
    LabelledTable
        All columns, and the names of the two.

    Raises
    ------
    InputError
        If a file is given without the names of its columns, or these have missing values.
    ColumnError
        If a column is not there, or both names are the same.

    Examples
    --------
    >>> from fairmatch.datasets.labelled import read_labelled
    >>> german = read_labelled("german", None, None)
    >>> german.target, german.sensitive, len(german.frame)
    ('good_credit', 'sex', 1000)
    """
    if name in DATASET_NAMES and not Path(name).exists():
        dataset = load_dataset(name)
        label, group = str(dataset.y.name), str(dataset.sensitive_features.name)
        frame = dataset.X.copy()
        frame[group], frame[label] = dataset.sensitive_features, dataset.y
        return LabelledTable(frame, label, group)
    if target is None or sensitive is None:
        near = get_close_matches(name, DATASET_NAMES, n=1)
        hint = f" (Did you mean the dataset {near[0]!r}?)" if near else ""
        raise InputError(
            f"{name} is a file, so --target and --sensitive must name its columns.{hint}"
        )
    frame = read_table(name)
    for column in (target, sensitive):
        check_column(frame, column)
    if target == sensitive:
        raise ColumnError(f"--target and --sensitive are the same column, {target!r}.")
    missing = {c: int(frame[c].isna().sum()) for c in (target, sensitive)}
    if any(missing.values()):
        said = " and ".join(f"{c!r} has {n}" for c, n in missing.items() if n)
        raise InputError(f"Missing values: {said}. Drop those rows first. {MISSING_WORDS}")
    return LabelledTable(frame, target, sensitive)
