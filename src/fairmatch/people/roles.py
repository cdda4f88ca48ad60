"""What the columns of a table hold, their roles, and what a person should check."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.people.checks import check_names, is_missing, spelt_alike
from fairmatch.people.columns import NUMBER, looks_like_codes, name_words
from fairmatch.people.leaks import Leak, find_leaks

MANY_LEVELS = 100
"""A column of categories with more levels than this raises a doubt."""

# A text column identifies people if more than half of its values are different. In tables of a few
# rows this is true of ordinary categories too.
_FEW_VALUES = 30
_MOST_DIFFER = 0.5
_NEARLY_ALL = 0.9

_TEXT = "text", "categories"

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
# A column that fairmatch predict or adjust writes, and the pattern of those beside it.
_OUTPUTS = {"prediction": re.compile(r"prediction|score(_.*)?"),
            "adjusted_score": re.compile(r"adjusted_score"),
            "adjusted_decision": re.compile(r"adjusted_.*")}  # fmt: skip
_LABEL_WORDS = {"label", "target", "outcome", "class", "y", "truth", "actual", "recid",
                "recidivism", "default", "defaulted", "hired", "hire", "accepted", "approved",
                "churn", "churned"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """What a column holds: its type in words, and its values without the missing ones."""

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
        return name_words(self.name)


class Suspicion(NamedTuple):
    """Why a column may not be a property of people.

    ``certain`` leaves the column out unless it is named. ``asks`` means that a person must decide
    before a model learns from the column.
    """

    words: str
    certain: bool = False
    asks: bool = False


def describe_column(name: str, series: nw.Series[Any]) -> ColumnFacts:
    """Return what a column holds. Columns of every kind are accepted here.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from fairmatch.people.roles import describe_column
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

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.roles import ColumnFacts, suspect
    >>> found = suspect(ColumnFacts("customer_id", "whole numbers", np.array([17, 4, 9]), 0))
    >>> found.words, found.certain
    ('looks like an identifier: 3 different values in 3 rows', True)
    """
    return next(_suspicions(facts, label_is_known=label_is_known), None)


def _suspicions(facts: ColumnFacts, *, label_is_known: bool) -> Iterator[Suspicion]:
    """Yield why a column may not be a property of people; the first reason counts."""
    if facts.type == "nothing":
        yield Suspicion("holds no values", certain=True)
    if facts.type == "mixed values":
        yield Suspicion("holds mixed values, which cannot be used as they are", certain=True)
    if facts.type == "dates" or _written_like(_DATE, facts):
        words = "holds dates, which cannot be used as they are: give a number instead, such as the "
        yield Suspicion(f"{words}days since the first", certain=True)
    n_rows, n_values = len(facts.values), facts.n_distinct
    if n_values == 1:
        yield Suspicion("holds the same value in every row")
    is_many, is_text, is_whole = (
        n_values > _FEW_VALUES, facts.type in _TEXT, facts.type == "whole numbers"
    )  # fmt: skip
    no_numbers = pd.Series(dtype=int)
    if is_text:
        no_numbers = facts.counts[~_matching(NUMBER, facts)]
    # Numbers with a word among them have as many different values as identifiers, so they come
    # first.
    if len(no_numbers):
        if n_rows - no_numbers.sum() >= _NEARLY_ALL * n_rows:
            shown = ", ".join(f"{value!r} ({count:,})" for value, count in no_numbers[:3].items())
            more = ", …" if len(no_numbers) > 3 else ""
            words = f"is nearly all numbers, except {shown}{more}; so it is read as text"
            yield Suspicion(words, asks=True)
        has_signs = _written_like(_SIGNED, facts)
        if not has_signs and all(_DECIMAL_COMMA.fullmatch(str(own)) for own in no_numbers.index):
            words = "holds numbers with a decimal comma, which are read as text"
            yield Suspicion(f"{words}; name the decimal sign of the CSV file", asks=True)
        if is_many and (has_signs or _written_like(_SIGNED_COMMA, facts)):
            first = next(own for own in facts.values if own in no_numbers.index)
            words = f"holds numbers with signs, such as {first!r}, which are read as text"
            yield Suspicion(f"{words}; write plain numbers", asks=True)
    words = f"looks like an identifier: {n_values:,} different values in {n_rows:,} rows"
    if (is_text or is_whole) and n_values > _MOST_DIFFER * n_rows:
        if facts.words & _ID_WORDS or (is_text and is_many):
            yield Suspicion(words, certain=True)
        if is_whole and is_many and n_values == n_rows:
            if np.ptp(facts.values.astype(np.float64)) == n_rows - 1:
                yield Suspicion("looks like an identifier: it numbers the rows", certain=True)
            yield Suspicion(f"{words}; is it one?")
    # A few numbers as text are codes of a category. Many numbers as text are an accident.
    if facts.type == "text" and is_many and not len(no_numbers):
        yield Suspicion("holds numbers that are written as text", asks=True)
    if facts.type in ("numbers", "whole numbers") and facts.words & _SCORE_WORDS:
        yield Suspicion("has the name of a score: is it another model's output?", asks=True)
    if not label_is_known and n_values == 2 and facts.words & _LABEL_WORDS:
        yield Suspicion("has two values and the name of an outcome: is it the label?", asks=True)
    if is_whole and looks_like_codes(facts.name, facts.values):
        yield Suspicion("looks like codes: if so, name it as categorical")
    if is_text and n_values > MANY_LEVELS:
        yield Suspicion(f"has {n_values:,} levels: leave it out, or pool the rare ones")
    for alike in spelt_alike(sorted(map(str, facts.counts.index)) if is_text else ()):
        words = "has levels that differ in case or spaces alone, such as"
        yield Suspicion(f"{words} {alike[0]!r} and {alike[1]!r}")


def _matching(pattern: re.Pattern[str], facts: ColumnFacts) -> np.ndarray[Any, Any]:
    """Return which of the different values of a text column match a pattern."""
    return np.array([bool(pattern.fullmatch(str(v).strip())) for v in facts.counts.index])


def _written_like(pattern: re.Pattern[str], facts: ColumnFacts) -> bool:
    """Return whether nearly all values of a text column match a pattern."""
    # Check the most frequent value first: this settles most columns.
    if facts.type not in _TEXT or not pattern.fullmatch(str(facts.counts.index[0]).strip()):
        return False
    like = _matching(pattern, facts)
    return bool(facts.counts.to_numpy()[like].sum() >= _NEARLY_ALL * len(facts.values))


ROLES = ("score", "stage", "sensitive", "label", "id", "weight", "period", "feature", "ignored")
"""The roles that a column can have, in the order in which tables show them."""

# So many groups are compared in a table of any size.
_FEW_GROUPS = 30


@dataclass(frozen=True)
class ColumnRole:
    """How one column is read.

    ``role`` is one of `ROLES`, ``why`` says why the column has it, and ``doubt`` what a person
    should check. ``asks`` means that a person must decide before a model learns from the column.
    """

    name: str
    role: str
    type: str
    n_missing: int
    n_distinct: int
    why: str
    doubt: str = ""
    asks: bool = False


@dataclass(frozen=True)
class RoleTable:
    """How every column of a table is read.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.people.roles import Roles
    >>> people = pd.DataFrame({"id": [7, 9, 8], "age": [31, 54, 31], "sex": ["f", "m", "f"]})
    >>> table = Roles(sensitive="sex").read(people)
    >>> table.features, [column.name for column in table.doubtful]
    (['age'], ['id'])
    """

    columns: tuple[ColumnRole, ...]
    n_rows: int

    def named(self, role: str) -> list[str]:
        """Return the names of the columns with this role."""
        return [column.name for column in self.columns if column.role == role]

    @property
    def features(self) -> list[str]:
        """The columns that describe people."""
        return self.named("feature")

    @property
    def doubtful(self) -> tuple[ColumnRole, ...]:
        """The columns that a person should check."""
        return tuple(column for column in self.columns if column.doubt)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a text table, for a terminal or a page."""
        head = ["column", "role", "read as", "missing", "different", "why"]
        ordered = sorted(self.columns, key=lambda column: ROLES.index(column.role))
        rows = [
            [
                column.name,
                column.role,
                column.type,
                f"{column.n_missing:,}",
                f"{column.n_distinct:,}",
                "; ".join(part for part in (column.why, column.doubt) if part),
            ]
            for column in ordered
        ]
        return head, rows


def split_names(
    given: str | Sequence[str], known: Sequence[str], parameter: str | None = None
) -> list[str]:
    """Return the columns that were named: one, or several in a list or separated by commas.

    A column of the table may have a comma in its name.

    Examples
    --------
    >>> split_names("sex, race", ["sex", "race"]), split_names("age, years", ["age, years"])
    (['sex', 'race'], ['age, years'])
    """
    names = []
    for text in [given] if isinstance(given, str) else given:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ColumnError(f"Column {twice!r} is named twice. Name it once.", parameter=parameter)
    return names


@dataclass(frozen=True)
class Roles:
    """The columns of a table that were named for a role.

    Each column of ``scores`` stands for a model, and several ``sensitive`` columns are crossed.
    Without ``features``, all columns without another role describe people, except identifiers and
    columns that cannot be used; ``kept`` are used anyway.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.people.roles import Roles
    >>> people = pd.DataFrame({"pd": [0.1, 0.4], "sex": ["f", "m"], "age": [31, 54]})
    >>> for row in Roles(scores=["pd"], sensitive="sex").read(people).cells()[1]:
    ...     print(row[:3])
    ['pd', 'score', 'numbers']
    ['sex', 'sensitive', 'text']
    ['age', 'feature', 'whole numbers']
    """

    scores: Sequence[str] = ()
    sensitive: str | Sequence[str] = ()
    label: str | None = None
    id: str | None = None
    weight: str | None = None
    stages: Sequence[str] = ()
    period: str | None = None
    features: Sequence[str] | None = None
    ignored: Sequence[str] = ()
    kept: Sequence[str] = ()
    numbers: Sequence[str] = ()

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield every named column with its role."""
        attributes = [self.sensitive] if isinstance(self.sensitive, str) else self.sensitive
        for role, names in {
            "score": self.scores,
            "sensitive": attributes,
            "label": [self.label],
            "id": [self.id],
            "weight": [self.weight],
            "stage": self.stages,
            "period": [self.period],
            "feature": [*(self.features or ()), *self.kept],
            "ignored": self.ignored,
        }.items():
            for name in names:
                if name is not None:
                    yield name, role

    def among(self, known: Sequence[str]) -> Roles:
        """Return the roles with a name for each column, where commas separate several."""
        return replace(
            self,
            scores=split_names(self.scores, known, "y_score"),
            sensitive=split_names(self.sensitive, known, "sensitive_features"),
            features=None if self.features is None else split_names(self.features, known),
            ignored=split_names(self.ignored, known),
            kept=split_names(self.kept, known, "keep"),
            numbers=split_names(self.numbers, known),
        )

    def read(self, table: Any, *, name: object = "The table") -> RoleTable:
        """Find the role of every column of a table; errors call it by ``name``."""
        frame = nw.from_native(table, eager_only=True)
        columns = [str(column) for column in frame.columns]
        named = list(self.named())
        check_names([column for column, _ in named], columns, table=name)
        roles: dict[str, str] = {}
        clashes = []
        for column, role in named:
            if roles.setdefault(column, role) != role:
                clashes.append(f"{column!r} ({roles[column]} and {role})")
        if clashes:
            raise ColumnError(
                f"A column has one role; these are named for two: {'; '.join(clashes)}. Name each "
                "of them once."
            )
        if not len(frame):
            raise InputError(
                f"{name} has no rows, and at least one is needed. Pass a table with rows."
            )
        read = []
        for column, series in zip(columns, frame.iter_columns(), strict=True):
            facts = describe_column(column, series)
            if roles.get(column) == "sensitive" and column not in self.numbers:
                _refuse_no_groups(facts, len(frame))
            written = any(
                mark in columns and pattern.fullmatch(column) for mark, pattern in _OUTPUTS.items()
            )
            read.append(self._role(facts, roles.get(column), written=written))
        return RoleTable(tuple(read), len(frame))

    def _role(self, facts: ColumnFacts, role: str | None, *, written: bool) -> ColumnRole:
        found: Suspicion | None = None
        why = "named"
        if role is None and self.features is not None:
            role, why = "ignored", "not among the features that were named"
        elif role in (None, "feature"):
            found = suspect(facts, label_is_known=self.label is not None)
            if written:
                found = Suspicion("is a model's output, as fairmatch writes it", certain=True)
            if role is None:
                left_out = found is not None and found.certain
                role, why = ("ignored", "left out") if left_out else ("feature", "no other role")
        doubt = "" if found is None else found.words
        asks = found is not None and found.asks and role == "feature" and why != "named"
        counted = facts.n_missing, facts.n_distinct
        return ColumnRole(facts.name, role, facts.type, *counted, why, doubt, asks)


def _refuse_no_groups(facts: ColumnFacts, n_rows: int) -> None:
    """Raise if a column of groups has a value of its own for nearly everybody."""
    if facts.n_distinct > _FEW_GROUPS and facts.n_distinct > n_rows / 2:
        raise GroupError(
            f"Column {facts.name!r} has {facts.n_distinct:,} different values in {n_rows:,} rows, "
            "so it forms no groups that can be compared. Name another column, or cut numbers into "
            "ranges first."
        )


class Questions(NamedTuple):
    """Lines about columns that need a decision, and about those that are worth a look."""

    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ask(
    frame: pd.DataFrame,
    roles: RoleTable,
    *,
    sees_groups: bool | None,
    kept: Collection[str] = (),
) -> Questions:
    """Find what must be decided before a model learns from a table.

    The questions concern columns that look like scores or labels, numbers that were read as text,
    and features that hold the label, or the group that the model is not meant to see. With
    ``sees_groups=None`` groups are probabilities, and no feature holds them.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["f", "m"] * 40, "age": range(20, 100)})
    >>> people["title"] = people.sex.map({"f": "Ms", "m": "Mr"})
    >>> people["hired"] = [0, 0, 1, 1] * 20
    >>> roles = Roles(sensitive="sex", label="hired").read(people)
    >>> ask(people, roles, sees_groups=False).open
    ("column 'title' determines the group",)
    """
    looks = [f"column {column.name!r} {column.doubt}" for column in roles.columns if column.asks]
    asked = {column.name for column in roles.columns if column.asks}
    features = [name for name in roles.features if name not in kept and name not in asked]
    told: dict[str, str] = {}  # by column, whose first line counts
    notes: dict[str, str] = {}
    if features:
        table = frame[features]
        for label in roles.named("label"):
            for leak in find_leaks(table, frame[label].to_numpy()):
                # A column with as few values as the label is the label in other words. With more
                # values, a threshold on the column may determine the label legitimately.
                few = table[leak.column].nunique() <= frame[label].nunique()
                if leak.is_exact:
                    (told if few else notes).setdefault(leak.column, _words(leak, label))
        attributes = roles.named("sensitive")
        groups = frame[attributes] if len(attributes) > 1 else frame[attributes[0]].to_numpy()
        seen = ", which the model sees anyway" if sees_groups else ""
        for leak in () if sees_groups is None else find_leaks(table, groups):
            is_open = leak.is_exact and not sees_groups
            (told if is_open else notes).setdefault(leak.column, f"{leak.words}{seen}")
    return Questions((*looks, *told.values()), tuple(notes.values()))


def _words(leak: Leak, label: str) -> str:
    """Return what a column says of the label."""
    if leak.group is not None:
        return f"column {leak.column!r} shows where the label {label!r} is {leak.group!r}"
    verb = "is" if leak.kind == "copy" else "determines"
    return f"column {leak.column!r} {verb} the label {label!r}"
