"""The protected groups of the rows, and the criterion that says which of them are compared."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError
from fairmatch.people.bands import Bands
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_length,
    plain_value,
    read_column,
    sorted_values,
    spelt_alike,
)
from fairmatch.people.columns import named_columns
from fairmatch.people.memberships import GroupProbabilities

# The name of the group into which small groups are pooled.
OTHER = "other"

UNKNOWN = "unknown"
"""The group of people for whom an attribute is missing. It is shown, but compared with no other."""

UNKNOWN_WAYS = ("ignore", "error", "group")
"""What may happen to rows without a group: the values of the parameter ``unknown``."""

# A column of numbers with more different values than this is no column of groups.
_MOST_NUMBERS = 20

SMALL = 30
"""A group with fewer rows is small: its rate is known to about ±0.2 at best."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every row, as a code, and the label behind each code.

    Examples
    --------
    >>> from fairmatch.people.groups import read_groups
    >>> groups = read_groups(["b", "a", "c", "b"])
    >>> groups.labels, groups.codes.tolist(), groups.sizes().tolist()
    (('a', 'b', 'c'), [1, 0, 2, 1], [1.0, 2.0, 1.0])
    >>> groups.labels[groups.reference()]
    'b'
    """

    codes: NDArray[np.integer[Any]]  #: Position of each row's group in ``labels``.
    #: One label per group, in sorted order; bands are in the order of their number. The
    #: combinations of several attributes have labels such as ``"female, Black"``.
    labels: tuple[Any, ...]
    attributes: tuple[str, ...] = ()  #: Names of the attributes, if there are several.
    #: The groups of each attribute by itself, if there are several.
    crossed: tuple["Groups", ...] = ()
    #: Codes of the groups that are compared with nobody: people whose attribute is unknown, or
    #: groups that are too small.
    apart: tuple[int, ...] = ()
    #: Whether the groups are bands of a number, from the lowest to the highest.
    ordered: bool = False
    #: Probability of each group, where groups are estimated. The codes are then those of the most
    #: probable group.
    memberships: FloatArray | None = None
    #: The number of every row, where groups are bands of one; NaN where it is not known.
    numbers: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @property
    def compared(self) -> tuple[int, ...]:
        """Codes of the groups that are compared with each other."""
        return tuple(code for code in range(self.n_groups) if code not in self.apart)

    @property
    def references(self) -> tuple[int, ...]:
        """Codes of the compared groups that can be the reference by default.

                A group whose label
        reads like a missing value, such as "?", is among them only if all labels do.
        """
        named = tuple(
            code
            for code in self.compared
            if not any(
                part.strip().casefold() in (*_NOTHING, UNKNOWN)
                for part in str(self.labels[code]).split(",")
            )
        )
        return named or self.compared

    @property
    def n_unknown(self) -> int:
        """Number of rows in groups that are compared with nobody."""
        return int(np.isin(self.codes, self.apart).sum())

    def is_group(self, code: int) -> BoolArray:
        """Return a mask of the rows in the group with this code."""
        return np.asarray(self.codes == code, dtype=bool)

    def rows(self, code: int) -> NDArray[np.intp]:
        """Return the row positions of the group with this code."""
        return np.flatnonzero(self.codes == code)

    def sizes(self, weights: FloatArray | None = None) -> FloatArray:
        """Return the number of rows in every group, or the sum of their weights.

        These are expected numbers where groups are estimated.
        """
        if self.memberships is not None:
            ones = np.ones(len(self)) if weights is None else weights
            return np.asarray(ones @ self.memberships)
        sums = np.bincount(self.codes, weights, minlength=self.n_groups)
        return np.asarray(sums, dtype=np.float64)

    def take(self, rows: NDArray[np.intp]) -> "Groups":
        """Return the groups of some of the rows. A label may then have no rows."""
        crossed = tuple(own.take(rows) for own in self.crossed)
        memberships, numbers = (
            None if own is None else own[rows] for own in (self.memberships, self.numbers)
        )
        return replace(
            self,
            codes=self.codes[rows],
            crossed=crossed,
            memberships=memberships,
            numbers=numbers,
        )

    def names(self, rows: NDArray[np.intp] | slice = slice(None)) -> NDArray[Any]:
        """Return the labels of rows, one per row."""
        # In an object array, labels keep their type.
        labels = np.empty(self.n_groups, dtype=object)
        labels[:] = self.labels
        named: NDArray[Any] = labels[self.codes[rows]]
        return named

    def code_of(self, label: Any, what: str = "group") -> int:
        """Return the code of a label. Raise an error that lists the labels if there is none."""
        for code, known in enumerate(self.labels):
            if known == label:
                return code
        raise GroupError(
            f"{what}={label!r} is not one of the groups. The groups are {listed(self.labels)}. "
            "Name one of them."
        )

    def reference(self, named: Any = None, weights: FloatArray | None = None) -> int:
        """Return the code of the reference group: the named one, or the largest of `references`.

        If several groups are the largest, it is the first of them in sorted order.
        """
        if named is not None:
            return self.code_of(named, "reference")
        sizes, eligible = self.sizes(weights), self.references
        return eligible[int(np.argmax(sizes[list(eligible)]))] if eligible else 0

    def only_two(self, who: str) -> "Groups":
        """Return the groups. Raise if there are more than two, because ``who`` compares two."""
        if self.n_groups > 2:
            raise GroupError(
                f"{who} compares two groups, but sensitive_features holds {self.n_groups} "
                f"({listed(self.labels, 5)}). Keep two of them, or merge some into one."
            )
        return self

    def small(self, min_size: int) -> list[int]:
        """Return the codes of the compared groups with fewer rows than ``min_size``."""
        sizes = self.sizes()
        return [code for code in self.compared if sizes[code] < min_size]

    def pooled(self, min_size: int) -> "Groups":
        """Return the groups with all that have fewer rows than ``min_size`` joined into one."""
        small = self.small(min_size)
        if not small:
            return self
        kept = [known for code, known in enumerate(self.labels) if code not in small]
        if not kept:
            raise GroupError(
                f"Every group has fewer than {min_size} rows ({self.sized()}), so nothing is left "
                "after pooling. Choose a smaller min_group_size."
            )
        if OTHER in kept:
            raise GroupError(
                f"A group is called {OTHER!r} already, so small groups cannot be pooled under "
                "that name. Rename that group."
            )
        labels = sorted([*kept, OTHER], key=str)
        names = [OTHER if code in small else known for code, known in enumerate(self.labels)]
        codes = np.array([labels.index(name) for name in names])[self.codes]
        return replace(
            self,
            codes=codes.astype(self.codes.dtype),
            labels=tuple(labels),
            apart=tuple(sorted(labels.index(self.labels[code]) for code in self.apart)),
            ordered=False,
        )

    def sized(self, codes: Sequence[int] | None = None) -> str:
        """Return text that lists the groups with their sizes, for an error."""
        sizes = self.sizes().astype(int)
        chosen = range(self.n_groups) if codes is None else codes
        shown = [f"{self.labels[code]!r}: {sizes[code]:,}" for code in chosen]
        return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def value_name(value: Any) -> str:
    """Return an attribute's value as text for a combination of attributes.

    Whole numbers read alike whatever their type: a missing value turns a column into floats.

    Examples
    --------
    >>> value_name(2.0), value_name(2), value_name(2.5), value_name("2.0")
    ('2', '2', '2.5', '2.0')
    """
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def listed(labels: Sequence[Any], most: int = 20) -> str:
    """Return text that lists labels, for an error."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown + (", …" if len(labels) > most else "")


def read_groups(
    sensitive_features: Any,
    *,
    n_rows: int | None = None,
    unknown: str | None = None,
    name: str = "sensitive_features",
    estimated: bool = False,
) -> Groups:
    """Read the sensitive features as groups: one attribute, or the combinations of several.

    ``unknown`` is the label for missing values; a value that is this word in the table, in capitals
    or not, counts as missing. People whose attribute is missing are kept apart: they are compared
    with nobody. Without it, a missing value raises an error. So does a single group, or a constant
    attribute. Groups may be probabilities if ``estimated``. Labels are sorted; that of missing
    values comes last.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"], "race": ["Black", "Black", "White"]})
    >>> read_groups(table).labels
    ('f, Black', 'f, White', 'm, Black')
    """
    found = sensitive_features
    if estimated and isinstance(found, GroupProbabilities) and not found.is_certain:
        check_length(found.values, n_rows, name)
        return Groups(found.values.argmax(axis=1), found.labels, memberships=found.values)
    columns = attribute_columns(sensitive_features, name)
    read = [
        _read_attribute(values, n_rows, unknown, f"{name}[{own!r}]" if own is not None else name)
        for own, values in columns
    ]
    if len(read) > 1:
        return _combined(read, tuple(str(attribute) for attribute, _ in columns), name)
    if read[0].n_groups == 1:
        raise GroupError(
            f"{name} holds one group only ({read[0].labels[0]!r}), and a comparison needs at least "
            "two. Pass rows of another group too, or another column."
        )
    return read[0]


def read_known(
    sensitive_features: Any, way: str, *, n_rows: int | None = None, estimated: bool = False
) -> Groups:
    """Read the sensitive features as groups, some of which may not be known.

    ``way`` says what happens to rows without a group: they are compared with nobody ("ignore"),
    raise an error ("error"), or form a group of their own ("group"). Except with "error", the word
    "unknown" does not name a group.

    Examples
    --------
    >>> groups = read_known(["a", None, "b"], "ignore")
    >>> groups.labels, groups.apart, read_known(["a", None, "b"], "group").apart
    (('a', 'b', 'unknown'), (2,), ())
    """
    check_choice("unknown", way, UNKNOWN_WAYS)
    if way == "error":
        return read_groups(sensitive_features, n_rows=n_rows, estimated=estimated)
    groups = read_groups(sensitive_features, n_rows=n_rows, unknown=UNKNOWN, estimated=estimated)
    if way == "group":
        crossed = tuple(replace(own, apart=()) for own in groups.crossed)
        # People of an unknown number have no place in the order of the bands.
        return replace(
            groups, apart=(), crossed=crossed, ordered=groups.ordered and not groups.apart
        )
    check_known(groups)
    return groups


# What tables write where they do not know a person's group.
_NOTHING = {"", "?", "-", "--", ".", "n/a", "na", "nan", "none", "null", "missing", "not available",
            "not stated", "unspecified", "n.a."}  # fmt: skip


def odd_groups(groups: Groups) -> Iterable[str]:
    """Yield a note on labels that read like a missing value, or like each other.

    Examples
    --------
    >>> (note,) = odd_groups(read_groups(["Male", "male", "female"]))
    >>> note[:62]
    "The groups 'Male' and 'male' differ only in capitals or spaces"
    """
    for own in groups.crossed or (groups,):
        labels = [str(own.labels[code]) for code in own.compared]
        for label in labels:
            if label.strip().casefold() in _NOTHING:
                yield (
                    f"The group {label!r} reads like a missing value. It is treated as a group, "
                    "and is the reference only if you name it. If these people's group is not "
                    f"known, write {UNKNOWN!r} or leave the cell empty."
                )
        for alike in spelt_alike(labels):
            yield (
                f"The groups {' and '.join(map(repr, alike))} differ only in capitals or spaces, "
                "and are compared with each other. If they are one group, spell them the same "
                "way."
            )


def check_known(groups: Groups) -> None:
    """Raise unless at least two groups are known."""
    if len(groups.compared) < 2:
        known = [groups.labels[code] for code in groups.compared]
        raise GroupError(
            f"sensitive_features has {groups.n_unknown} missing or unknown values, and the others "
            f"hold {len(known)} group ({listed(known)}). At least two known groups are needed to "
            "compare; words such as NA and None count as missing. Pass rows of another group "
            "too, or another column.",
            parameter="sensitive_features",
        )


def attribute_columns(given: Any, name: str) -> list[tuple[Any, Any]]:
    """Return the attributes as pairs of name and values. The name of a single one is None."""
    if isinstance(given, Bands):
        return [(None, given)]
    if isinstance(given, GroupProbabilities):
        return [(None, np.asarray(given))]
    if isinstance(given, dict):
        raise InputError(
            f"{name} is a dictionary, and one column or a table is needed. Pass one column, a "
            "table of several attributes, or a two-dimensional array."
        )
    if columns := named_columns(given, name):
        return [(own if len(columns) > 1 else None, values) for own, values in columns.items()]
    array = np.asarray(given)
    if array.ndim == 2 and array.shape[1] > 1:
        if isinstance(given, list | tuple) and array.dtype.kind in "US":
            array = np.asarray(given, dtype=object)  # a number among text stays a number
        return [(f"attribute {k + 1}", array[:, k]) for k in range(array.shape[1])]
    return [(None, given)]


def _read_attribute(values: Any, n_rows: int | None, unknown: str | None, name: str) -> Groups:
    """Return the groups of one attribute: those that hold people, and then the unknown one."""
    is_bands = isinstance(values, Bands)
    check_length(values.values if is_bands else read_column(values, name), n_rows, name)
    codes, labels = (values.codes, values.labels) if is_bands else read_codes(values, name)
    n_missing = int((codes < 0).sum())
    _refuse_numbers(codes, labels, name)
    if n_missing and unknown is None:
        raise GroupError(
            f"{name} has {n_missing} missing values, and every row needs a group. Leave those rows "
            "out, or name a group for them."
        )
    present = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(labels)))
    kept = [code for code in present if unknown is None or not is_word(labels[code], unknown)]
    places = np.full(len(labels) + 1, len(kept), dtype=_smallest(len(kept) + 1))
    places[kept] = np.arange(len(kept))
    apart = (len(kept),) if n_missing or len(kept) < len(present) else ()
    return Groups(
        places[codes],  # the place -1 is that of unknown people
        (*(labels[code] for code in kept), *[unknown] * len(apart)),
        apart=apart,
        ordered=is_bands,
        numbers=values.values if is_bands else None,
    )


def _refuse_numbers(codes: NDArray[np.integer[Any]], labels: Sequence[Any], name: str) -> None:
    """Raise if a column is a number with many values, such as an age, rather than groups."""
    if len(labels) > _MOST_NUMBERS and all(
        isinstance(label, Real) and not isinstance(label, bool) for label in labels
    ):
        values = np.array(labels, dtype=np.float64)
        median = np.median(values[codes[codes >= 0]])
        raise GroupError(
            f"{name} holds {len(values)} different numbers, from {values[0]:g} to {values[-1]:g}, "
            "and each would be a group of its own. Cut the number into bands: "
            f"fairmatch.bands(values, n=5), or fairmatch.bands(values, [{median:g}]); "
            f"on the command line --bands COLUMN={median:g}. "
            "If the numbers are names of groups, pass them as text.",
            parameter="sensitive_features",
        )


def is_word(value: Any, word: str) -> bool:
    """Return whether a value is a word, in capitals or not."""
    return isinstance(value, str) and value.strip().casefold() == word


def with_spaces_shown(name: str) -> str:
    """Return a name with a sign for each space at its ends. Names may differ by these alone.

    Examples
    --------
    >>> with_spaces_shown("White ")
    'White␣'
    """
    inner = name.strip(" ")
    before, _, after = name.partition(inner) if inner else (name, "", "")
    return f"{'␣' * len(before)}{inner}{'␣' * len(after)}"


def _smallest(n_labels: int) -> type[np.integer[Any]]:
    """Return the smallest kind of number that holds the codes of so many labels."""
    return np.int8 if n_labels <= np.iinfo(np.int8).max else np.int32


def read_codes(values: Any, name: str) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    """Return the codes and the sorted labels of a column; the code of a missing value is -1."""
    found, different = pd.factorize(read_column(values, name))
    labels = [plain_value(label) for label in different.tolist()]
    ordered = sorted_values(labels)
    place = {label: code for code, label in enumerate(ordered)}
    codes: NDArray[np.intp] = np.array([*map(place.__getitem__, labels), -1])[found]
    return codes, tuple(ordered)


def _combined(read: list[Groups], attributes: tuple[str, ...], name: str) -> Groups:
    """Return the combinations of several attributes that occur."""
    for attribute, own in zip(attributes, read, strict=True):
        if own.n_groups == 1:
            raise GroupError(
                f"The attribute {attribute!r} of {name} is constant ({own.labels[0]!r}), so it "
                "separates nobody. Leave it out."
            )
    if len({len(own) for own in read}) > 1:
        raise InputError(
            f"The attributes of {name} have different numbers of rows, but each needs one entry "
            "per row. Pass the same rows in all of them."
        )
    sizes = tuple(own.n_groups for own in read)
    places = np.ravel_multi_index(tuple(own.codes for own in read), sizes)
    present, codes = np.unique(places, return_inverse=True)
    combinations, apart = [], []
    for code, parts in enumerate(zip(*np.unravel_index(present, sizes), strict=True)):
        pairs = list(zip(read, parts, strict=True))
        combinations.append(", ".join(value_name(own.labels[at]) for own, at in pairs))
        if any(at in own.apart for own, at in pairs):
            apart.append(code)
    if len(set(combinations)) < len(combinations):
        twice = next(label for label in combinations if combinations.count(label) > 1)
        raise GroupError(
            f"Two combinations of attributes read alike, {twice!r}, because a value contains a "
            "comma. Rename that value."
        )
    return Groups(
        codes.astype(_smallest(len(combinations))),
        tuple(combinations),
        attributes,
        crossed=tuple(read),
        apart=tuple(apart),
    )


@dataclass(frozen=True)
class Criterion:
    """A criterion of fairness: the classes within which groups are compared.

    Examples
    --------
    >>> from fairmatch.people.groups import read_criterion
    >>> read_criterion("equal_opportunity").labels
    (True,)
    """

    name: str  #: The name that callers pass.
    #: The classes that are compared: True is Y = 1, False is Y = 0, and None is everybody.
    labels: tuple[bool | None, ...]
    #: Name of the measure in `fairmatch.measures` that is zero if and only if the decisions satisfy
    #: the criterion.
    gap_measure: str

    @property
    def needs_labels(self) -> bool:
        """Whether the criterion needs the true labels to choose the rows."""
        return self.labels != (None,)


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Criterion("demographic_parity", (None,), "demographic_parity_gap"),
        Criterion("equal_opportunity", (True,), "true_positive_gap"),
        Criterion("equalized_odds", (True, False), "equalized_odds_gap"),
    )
}


def read_criterion(value: Any) -> Criterion:
    """Return the criterion with this name. A criterion is returned unchanged."""
    if isinstance(value, Criterion):
        return value
    check_choice("criterion", value, CRITERIA)
    return CRITERIA[value]
