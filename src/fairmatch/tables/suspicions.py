"""What a column holds, and whether it may not be a property of people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from fairmatch.tables.arrays import is_missing

MANY_LEVELS = 100
"""A column of categories with more levels than this raises a doubt."""

# A text column identifies people if more than half of its values are different. In tables of a few
# rows this is true of ordinary categories too.
_FEW_VALUES = 30
_MOST_DIFFER = 0.5
_NEARLY_ALL = 0.9

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_CURRENCY = r"(?:[$€£¥₹%]|USD|EUR|GBP|CHF|kr)"
_SIGNED = re.compile(
    rf"{_CURRENCY}?\s?[+-]?(?:[1-9]\d{{0,2}}(?:[,' ]\d{{3}})+|\d+)(?:\.\d+)?\s?{_CURRENCY}?"
)
# The same with a decimal comma: 2.645,05 € or 2 645,05 €.
_SIGNED_COMMA = re.compile(
    rf"{_CURRENCY}?\s?[+-]?(?:[1-9]\d{{0,2}}(?:[.'\s]\d{{3}})+|\d+)(?:,\d+)?\s?{_CURRENCY}?"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2})"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:[T ]\d{1,2}:\d{2}.*)?",
    re.IGNORECASE,
)
_ID_WORDS = {"id", "ids", "uuid", "guid", "ssn", "key", "index", "unnamed", "rownum", "nr"}
_SCORE_WORDS = {"score", "scores", "prob", "proba", "probability", "pred", "prediction",
                "predicted", "predictions", "yhat", "risk"}  # fmt: skip
_LABEL_WORDS = {"label", "target", "outcome", "class", "y", "truth", "actual", "recid",
                "recidivism", "default", "defaulted", "hired", "hire", "accepted", "approved",
                "churn", "churned"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """What a column holds.

    Attributes
    ----------
    name : str
        The column.
    type : str
        What the column holds, in words.
    values : ndarray
        Its values, without the missing ones.
    n_missing : int
        Number of missing values.
    """

    name: str
    type: str
    values: np.ndarray[Any, Any]
    n_missing: int

    @cached_property
    def counts(self) -> pd.Series[int]:
        """How often each value occurs, the most frequent first."""
        return pd.Series(self.values).value_counts()

    @cached_property
    def n_distinct(self) -> int:
        """How many different values there are."""
        if self.values.dtype.kind in "biuf":  # quicker than counting each value, in wide tables
            return len(pd.unique(self.values))
        return len(self.counts)

    @property
    def words(self) -> set[str]:
        """The words of the column's name, in lower case."""
        apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)
        return set(re.findall(r"[^\W\d_]+", apart.casefold()))


@dataclass(frozen=True)
class Suspicion:
    """Why a column may not be a property of people.

    Attributes
    ----------
    words : str
        What is suspicious, in words.
    certain : bool
        Whether it is certain enough to leave the column out, unless the column is named.
    asks : bool
        Whether a person must decide before a model learns from the column.
    """

    words: str
    certain: bool = False
    asks: bool = False


def describe_column(name: str, series: nw.Series[Any]) -> ColumnFacts:
    """Return what a column holds. Columns of every kind are accepted here.

    Parameters
    ----------
    name : str
        Name of the column.
    series : narwhals.Series
        Values of the column.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from fairmatch.tables.suspicions import describe_column
    >>> ages = nw.from_native(pd.Series([31.0, None, 54.0]), series_only=True)
    >>> facts = describe_column("age", ages)
    >>> facts.type, facts.n_missing, facts.n_distinct
    ('whole numbers', 1, 2)
    """
    dtype = series.dtype
    values = (series.cast(nw.String) if dtype in (nw.Categorical, nw.Enum) else series).to_numpy()
    missing = is_missing(values)
    present = values[~missing]
    return ColumnFacts(name, _type(dtype, present), present, int(missing.sum()))


def _type(dtype: Any, values: np.ndarray[Any, Any]) -> str:
    if not len(values):
        return "nothing"
    if dtype == nw.Boolean:
        return "yes or no"
    if dtype in (nw.Categorical, nw.Enum):
        return "categories"
    if dtype == nw.String:
        return "text"
    if dtype.is_numeric():
        numbers = values.astype(np.float64)
        return "whole numbers" if (numbers == np.floor(numbers)).all() else "numbers"
    if dtype.is_temporal():
        return "dates"
    kinds = {type(value) for value in values.tolist()}
    if kinds == {bool}:
        return "yes or no"
    return "text" if kinds == {str} else "mixed values"


def suspect(facts: ColumnFacts, *, label_is_known: bool = False) -> Suspicion | None:
    """Return why a column may not be a property of people, or None.

    Parameters
    ----------
    facts : ColumnFacts
        The column.
    label_is_known : bool
        Whether another column was named as the label.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.tables.suspicions import ColumnFacts, suspect
    >>> found = suspect(ColumnFacts("customer_id", "whole numbers", np.array([17, 4, 9]), 0))
    >>> found.words, found.certain
    ('looks like an identifier: 3 different values in 3 rows', True)
    """
    if facts.type == "nothing":
        return Suspicion("holds no values", certain=True)
    if facts.type == "mixed values":
        return Suspicion("holds mixed values, which cannot be used as they are", certain=True)
    if facts.type == "dates" or _written_like(_DATE, facts):
        words = "holds dates, which cannot be used as they are: give a number instead, such as the "
        return Suspicion(f"{words}days since the first", certain=True)
    if facts.n_distinct == 1:
        return Suspicion("holds the same value in every row")
    # Numbers with a word among them have as many different values as identifiers, so they come
    # first.
    for look in (_nearly_numbers, _numbers_with_signs, _identifier, _written_numbers, _score):
        if found := look(facts):
            return found
    if not label_is_known and facts.n_distinct == 2 and facts.words & _LABEL_WORDS:
        return Suspicion("has two values and the name of an outcome: is it the label?", asks=True)
    if facts.type in ("text", "categories") and facts.n_distinct > MANY_LEVELS:
        return Suspicion(f"has {facts.n_distinct:,} levels: leave it out, or pool the rare ones")
    return _careless_levels(facts)


def _identifier(facts: ColumnFacts) -> Suspicion | None:
    if facts.type not in ("text", "categories", "whole numbers"):
        return None
    n_rows, n_values = len(facts.values), facts.n_distinct
    mostly = n_values > _MOST_DIFFER * n_rows
    words = f"looks like an identifier: {n_values:,} different values in {n_rows:,} rows"
    if mostly and facts.words & _ID_WORDS:
        return Suspicion(words, certain=True)
    if n_values <= _FEW_VALUES:
        return None
    if facts.type != "whole numbers":
        return Suspicion(words, certain=True) if mostly else None
    if n_values < n_rows:
        return None
    numbers = facts.values.astype(np.float64)
    if numbers.max() - numbers.min() == n_rows - 1:
        return Suspicion("looks like an identifier: it numbers the rows", certain=True)
    return Suspicion(f"{words}; is it one?")


def _is_number(facts: ColumnFacts) -> np.ndarray[Any, Any]:
    """Return a mask of the different values of a text column that are written as numbers."""
    return np.array([bool(_NUMBER.fullmatch(str(v).strip())) for v in facts.counts.index])


def _written_like(pattern: re.Pattern[str], facts: ColumnFacts) -> bool:
    """Return whether nearly all values of a text column match a pattern."""
    if facts.type not in ("text", "categories"):
        return False
    # Check the most frequent value first: this settles most columns.
    if not pattern.fullmatch(str(facts.counts.index[0]).strip()):
        return False
    like = np.array([bool(pattern.fullmatch(str(v).strip())) for v in facts.counts.index])
    return bool(facts.counts.to_numpy()[like].sum() >= _NEARLY_ALL * len(facts.values))


def _numbers_with_signs(facts: ColumnFacts) -> Suspicion | None:
    if facts.n_distinct <= _FEW_VALUES:
        return None
    if not _written_like(_SIGNED, facts) and not _written_like(_SIGNED_COMMA, facts):
        return None
    signed = [value for value in facts.values if not _NUMBER.fullmatch(str(value).strip())]
    if not signed:
        return None
    words = f"holds numbers with signs, such as {signed[0]!r}, which are read as text"
    return Suspicion(f"{words}; write plain numbers", asks=True)


def _careless_levels(facts: ColumnFacts) -> Suspicion | None:
    if facts.type not in ("text", "categories"):
        return None
    seen: dict[str, str] = {}
    for level in sorted(map(str, facts.counts.index)):
        first = seen.setdefault(" ".join(level.casefold().split()), level)
        if first != level:
            words = "has levels that differ in case or spaces alone, such as"
            return Suspicion(f"{words} {first!r} and {level!r}")
    return None


def _nearly_numbers(facts: ColumnFacts) -> Suspicion | None:
    if facts.type not in ("text", "categories"):
        return None
    counts, numeric = facts.counts, _is_number(facts)
    if numeric.all():
        return None
    if counts.to_numpy()[numeric].sum() >= _NEARLY_ALL * len(facts.values):
        others = counts[~numeric]
        shown = ", ".join(f"{value!r} ({count:,})" for value, count in others[:3].items())
        more = ", …" if len(others) > 3 else ""
        words = f"is nearly all numbers, except {shown}{more}; so it is read as text"
        return Suspicion(words, asks=True)
    if all(_DECIMAL_COMMA.fullmatch(str(value)) for value in counts.index[~numeric]) and not (
        _written_like(_SIGNED, facts)
    ):
        words = "holds numbers with a decimal comma, which are read as text"
        return Suspicion(f"{words}; --decimal , reads those of a CSV file", asks=True)
    return None


def _written_numbers(facts: ColumnFacts) -> Suspicion | None:
    # A few numbers as text are codes of a category. Many numbers as text are an accident.
    if facts.type != "text" or facts.n_distinct <= _FEW_VALUES or not _is_number(facts).all():
        return None
    return Suspicion("holds numbers that are written as text", asks=True)


def _score(facts: ColumnFacts) -> Suspicion | None:
    if facts.type not in ("numbers", "whole numbers") or not facts.words & _SCORE_WORDS:
        return None
    return Suspicion("has the name of a score: is it another model's output?", asks=True)
