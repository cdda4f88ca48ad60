"""Tables in files. They are checked when read, and written whole or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.storage.atomic import whole_file
from fairmatch.tables.delimited import read_delimited, refuse_repeated
from fairmatch.tables.names import check_names

MISSING_WORDS = (
    "In a CSV file empty fields and words such as NA and None count as missing. If such a word is "
    "a real value, write it in another way."
)


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table, and the names of its label and group columns.

    Attributes
    ----------
    frame : DataFrame
        All columns.
    target : str
        Name of the column with the labels.
    sensitive : str or list of str
        Name of the column with the groups, or names of several columns, whose combinations are the
        groups.
    classes : pair of labels or None
        The words for the labels 0 and 1, where the file has other labels.
    """

    frame: pd.DataFrame
    target: str
    sensitive: str | list[str]
    classes: tuple[Any, Any] | None = None

    @property
    def attributes(self) -> list[str]:
        """Names of the columns with the groups, as a list."""
        return [self.sensitive] if isinstance(self.sensitive, str) else list(self.sensitive)


_DELIMITED = (".csv", ".tsv", ".txt")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def read_table(
    path: str | Path,
    *,
    text: Iterable[str] = (),
    missing: Iterable[str] = (),
    encoding: str | None = None,
    decimal: str = ".",
) -> pd.DataFrame:
    r"""Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file. Its ending decides how it is read: .csv, .tsv and .txt as text, .parquet as
        Parquet. In a text file, commas, semicolons, tabs or bars may separate the fields.
    text : iterable of str
        Columns of a CSV file that are read as text: 007 stays 007.
    missing : iterable of str
        Words of a CSV file that stand for a missing value, in addition to the usual ones.
    encoding : str, optional
        The encoding of a CSV file. By default it is detected.
    decimal : str, default="."
        The decimal sign of numbers in a CSV file.

    Raises
    ------
    InputError
        If the file does not exist, cannot be read, has no rows, or is of another kind.
    MissingExtraError
        If the file is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "people.csv"
    ...     _ = file.write_text("age,sex\n20,f\n")
    ...     read_table(file).columns.tolist()
    ['age', 'sex']
    """
    file = Path(path)
    ending = file.suffix.lower()
    if ending in _SHEETS:
        raise InputError(
            f"{file} is a spreadsheet. Save its sheet as CSV (in Excel: File, Save As, CSV UTF-8), "
            "and pass that file."
        )
    if ending not in (*_DELIMITED, ".parquet"):
        raise InputError(
            f"{file} is neither a .csv nor a .parquet file. Save the table as one of these."
        )
    try:
        if ending == ".parquet":
            table = pd.read_parquet(file)
        else:
            table = read_delimited(
                file, text=text, missing=missing, encoding=encoding, decimal=decimal
            )
    except FileNotFoundError:
        raise InputError(f"There is no file {file}. Check its name and folder.") from None
    except ImportError as error:
        raise MissingExtraError(
            "Reading Parquet needs pyarrow: pip install 'fairmatch[all]'."
        ) from error
    except InputError:
        raise
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parse errors are ValueErrors
        raise InputError(f"{file} cannot be read: {error}") from error
    refuse_repeated([str(name) for name in table.columns], file)
    if table.empty:
        raise InputError(f"{file} has no rows, and at least one is needed. Pass a table with rows.")
    return table


def find_value(values: Iterable[Any], written: str) -> Any:
    """Return the value that is written this way. The numbers 1 and 1.0 are both written "1".

    Parameters
    ----------
    values : iterable
        The values to choose from.
    written : str
        How the value is written.

    Raises
    ------
    LookupError
        If there is no such value.

    Examples
    --------
    >>> find_value([0.0, 1.0], "1"), find_value(["no", "yes"], "yes")
    (1.0, 'yes')
    """
    for value in values:
        same_number = isinstance(value, int | float) and _is_number(written, float(value))
        if str(value) == written or same_number:
            return value
    raise LookupError(written)


def class_written(model: Any, written: str) -> Any:
    """Return the class of a model that is written this way. Raise if there is no such class.

    Parameters
    ----------
    model : fitted estimator
        A classifier with ``classes_``.
    written : str
        How the class is written, for example on a command line.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> class_written(DummyClassifier().fit([[0], [0]], ["no", "yes"]), "yes")
    'yes'
    """
    classes = np.asarray(model.classes_).tolist()
    try:
        return find_value(classes, written)
    except LookupError:
        known = " and ".join(repr(label) for label in classes)
        raise InputError(
            f"The model knows the classes {known}, and not {written!r}. Name the positive one with "
            "--positive."
        ) from None


def _is_number(written: str, value: float) -> bool:
    try:
        return float(written) == value
    except ValueError:
        return False


def check_column(frame: pd.DataFrame, column: str, *, table: str | Path = "The table") -> None:
    """Raise unless a table has a column. The error suggests the nearest name."""
    check_names([column], [str(name) for name in frame.columns], table=table)


def check_table_name(path: str | Path) -> Path:
    """Return the path of a table to write. Raise unless it ends in .csv or .parquet."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{file} must end in .csv or .parquet. Choose another name.")
    return file


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a CSV or Parquet file, whole or not at all."""
    file = check_table_name(path)
    with whole_file(file) as partial:
        if file.suffix.lower() == ".csv":
            frame.to_csv(partial, index=False)
        else:
            frame.to_parquet(partial, index=False)
    return file
