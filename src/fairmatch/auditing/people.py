"""What is known of the people to audit. It is read once for all models."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.auditing.facts import Individuals, LeakFacts, NearPeople, Pairs
from fairmatch.auditing.leaking import leaks_of, take
from fairmatch.auditing.order import content_order
from fairmatch.auditing.sample import Sample, draw_rows
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.weighting import RowWeights, read_row_weights
from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.matching.coupling import IndexArray
from fairmatch.measures.real import read_predictions
from fairmatch.tables.arrays import (
    BoolArray,
    FloatArray,
    check_length,
    read_column,
    read_labels,
)
from fairmatch.tables.columns import Column, read_columns, split_column
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.groups import Groups, attribute_columns, listed, read_groups
from fairmatch.tables.suspicions import ColumnFacts, suspect

# A column in which nearly everybody has a value of their own identifies people. It is not a
# property that people share.
_MOST_LEVELS = 1000
_FEW_LEVELS = 30


# The group of people for whom an attribute is missing. It is shown, but compared with no other.
UNKNOWN = "unknown"


def identifies(n_levels: int, n_rows: int) -> bool:
    """Return whether a column with this many levels identifies people rather than describes them.

    Parameters
    ----------
    n_levels : int
        Number of different values in the column.
    n_rows : int
        Number of rows.
    """
    return n_levels > _MOST_LEVELS or (n_levels > _FEW_LEVELS and n_levels > n_rows / 2)


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """What is known of the people.

    Attributes
    ----------
    X : table, array or None
        The table as given. It is None if no table was given.
    columns : list of Column
        The columns of ``features``.
    features : table, array or None
        The table without the sensitive column, if the table holds that column.
    groups : Groups
        Group of every row.
    unknown : tuple of int
        Codes of the groups of people for whom an attribute is missing.
    attributes : dict
        Name of each attribute to its groups, if several attributes were given. Otherwise empty.
    sensitive_features
        The groups as they were given.
    positive : array of bool or None
        Whether each label is positive. It is None without labels.
    pos_label
        The positive label.
    ids : list of str
        Identifier of every row. It is empty if none were given.
    weights : RowWeights
        Weight of every row.
    positions : array of int or None
        Positions of the rows in the given table. It is None if no row was left out.
    n_given : int
        Number of rows in the given table.
    leaks : tuple of LeakFacts
        Columns that give the group away.
    samples : dict
        Samples that were already drawn.
    target : array of float or None
        The number to predict for every row, if scores are predictions and it was given.
    order : array of int
        The rows, sorted by what is known of the people. People are drawn in this order, so the
        order of the table does not matter.
    """

    X: Any
    columns: list[Column]
    features: Any
    groups: Groups
    unknown: tuple[int, ...]
    attributes: dict[str, Groups]
    sensitive_features: Any
    positive: Any
    pos_label: Any
    ids: list[str]
    weights: RowWeights
    positions: IndexArray | None
    n_given: int
    leaks: tuple[LeakFacts, ...]
    samples: dict[tuple[int, int], Sample]
    target: FloatArray | None = None
    order: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def ordered(self, scores: Sequence[FloatArray]) -> PeopleTable:
        """Return the same people with an order that does not depend on the order of the rows.

        Parameters
        ----------
        scores : sequence of arrays
            Their scores under every model.
        """
        given = self.groups.codes, self.positive, self.target
        known = [values for values in given if values is not None]
        order = content_order(self.columns, known, scores, self.weights.values)
        return replace(self, order=order)

    def draw(self, n_people: int, generator: np.random.Generator) -> tuple[IndexArray, RowWeights]:
        """Draw people of each group, as `draw_rows` does, by their order."""
        groups, weights = self.groups.take(self.order), self.weights.take(self.order)
        rows, drawn = draw_rows(groups, weights, n_people, generator)
        return self.order[rows], drawn

    def sample(self, n_sample: int, seed: int) -> Sample:
        """Draw the sample once for all models. The nearest matching is then also found once."""
        key = n_sample, seed
        if key not in self.samples:
            generator = np.random.default_rng([seed, 2])
            rows, weights = self.draw(n_sample, generator)
            self.samples[key] = Sample(
                rows=rows,
                groups=self.groups.take(rows),
                features=self.encode(rows) if self.columns else None,
                feature_groups=self.encoder.feature_groups_ if self.columns else {},
                positive=None if self.positive is None else self.positive[rows],
                weights=weights,
            )
        return self.samples[key]

    @cached_property
    def encoder(self) -> TableEncoder:
        """The encoder of the features, fitted on all rows."""
        return TableEncoder(missing="encode").fit(self.features)

    def encode(self, rows: IndexArray) -> FloatArray:
        """Encode only some rows, because not all rows of a large table may be needed."""
        encoded: FloatArray = self.encoder.transform(take(self.features, rows))
        return encoded

    @property
    def sha256(self) -> str | None:
        """Hash of the columns. It does not depend on the table library. None without columns."""
        return sha256(*map(_bytes, self.columns)) if self.columns else None

    @property
    def n_encoded(self) -> int:
        """How many numbers describe a person after encoding."""
        return len(self.encoder.get_feature_names_out())


def read_people(
    sensitive_features: ArrayLike,
    X: Any,
    y_true: ArrayLike | None,
    ids: ArrayLike | None,
    pos_label: Any,
    sensitive_column: Any,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "survey",
    keep: Collection[str] = (),
    scale: str = "probability",
) -> PeopleTable:
    """Read the people to audit. Rows of weight 0 stand for nobody and are left out.

    Parameters
    ----------
    sensitive_column : str, int or None
        The column of X in which a model finds the groups, or None.
    sensitive_features, X, y_true, ids, pos_label, sample_weight, weight_kind, keep, scale
        The arguments of `fairmatch.audit`, as the caller passed them.
    """
    positions = None
    if sample_weight is not None:
        weights = read_row_weights(sample_weight, weight_kind, _n_rows(sensitive_features))
        n_given = weights.n_rows
        assert weights.values is not None
        if (is_there := weights.values > 0.0).sum() < weights.n_rows:
            positions = np.flatnonzero(is_there)
            sensitive_features = take(sensitive_features, positions)
            X, y_true, ids = (
                None if given is None else _taken(given, positions, n_given, name)
                for name, given in {"X": X, "y_true": y_true, "ids": ids}.items()
            )
            weights = weights.take(positions)
    groups = read_groups(sensitive_features, unknown=UNKNOWN)
    n_rows = len(groups)
    if sample_weight is None:
        weights, n_given = RowWeights(n_rows), n_rows
    attributes, missing = _read_attributes(sensitive_features, groups)
    unknown = tuple(np.unique(groups.codes[missing]).tolist())
    if groups.n_groups - len(unknown) < 2:
        known = [label for code, label in enumerate(groups.labels) if code not in unknown]
        raise GroupError(
            f"sensitive_features has {int(missing.sum())} missing or unknown values, and the "
            f"others hold {len(known)} group ({listed(known)}). At least two known groups are "
            "needed to compare. Pass rows of another group too, or another column."
        )
    features = X if X is None else _without(X, sensitive_column)
    columns = [] if X is None else read_columns(features)
    refused: list[InputError] = []
    for column in columns:
        if len(column.values) != n_rows:
            raise InputError(
                f"X has {len(column.values)} rows where sensitive_features has {n_rows}. Pass both "
                "for the same people."
            )
        if column.name in keep or column.levels is None:
            continue
        if identifies(len(column.levels), n_rows):
            refused.append(_no_feature(column, n_rows))
    leaks: list[LeakFacts] = []
    try:
        leaks = leaks_of(features, sensitive_features, n_rows, keep) if columns else []
    except ColumnError as error:
        refused.append(error)
    if refused:  # all at once, so that nobody repairs a table one column at a time
        raise refused[0] if len(refused) == 1 else ColumnError("\n".join(map(str, refused)))
    names = [] if ids is None else [str(value) for value in read_column(ids, "ids").tolist()]
    if names and len(names) != n_rows:
        raise InputError(
            f"ids has {len(names)} rows where {n_rows} were expected. Pass one identifier per row."
        )
    return PeopleTable(
        X=X,
        columns=columns,
        features=features,
        groups=groups,
        unknown=unknown,
        attributes=attributes,
        sensitive_features=sensitive_features,
        positive=None
        if y_true is None or scale == "real"
        else read_labels(y_true, n_rows=n_rows, pos_label=pos_label),
        pos_label=pos_label,
        ids=names,
        weights=weights,
        positions=positions,
        n_given=n_given,
        leaks=tuple(leaks),
        samples={},
        target=None if y_true is None or scale != "real" else _read_target(y_true, n_rows),
    )


def _no_feature(column: Column, n_rows: int) -> InputError:
    """Return the error about a text column in which most values differ: numbers, or names."""
    levels = np.asarray(column.levels, dtype=object)
    found = suspect(ColumnFacts(column.name, "text", levels, 0))
    if found is not None and found.asks:
        words = found.words.partition(";")[0]
        return InputError(
            f"Column {column.name!r} {words}. Turn it into numbers, or leave it out of X (--drop "
            f"{shlex.quote(column.name)})."
        )
    return InputError(
        f"Column {column.name!r} has {len(levels)} different values in {n_rows} rows: it looks "
        "like a name or a number that identifies people. Leave it out of X, and pass it as ids "
        "(--id) if the audit should show it."
    )


def _read_target(y_true: ArrayLike, n_rows: int) -> FloatArray:
    target = read_predictions(y_true, "y_true")
    check_length(target, n_rows, "y_true")
    return target


def _read_attributes(given: Any, groups: Groups) -> tuple[dict[str, Groups], BoolArray]:
    """Return the groups of each attribute if there are several, and a mask of rows that lack one.

    With a single attribute the first part is empty.
    """
    columns = attribute_columns(given, "sensitive_features")
    if len(columns) == 1:
        return {}, _lack(groups)
    attributes = {
        str(name): read_groups(values, unknown=UNKNOWN, name=f"sensitive_features[{name!r}]")
        for name, values in columns
    }
    return attributes, np.logical_or.reduce([*map(_lack, attributes.values())])


def _lack(groups: Groups) -> BoolArray:
    """Return which rows lack the attribute."""
    code = groups.labels.index(UNKNOWN) if UNKNOWN in groups.labels else -1
    return np.asarray(groups.codes == code)


def _without(X: Any, column: Any) -> Any:
    """Return X without the sensitive column, if X holds it."""
    try:
        return X if column is None else split_column(X, column)[0]
    except ColumnError:  # X may lack the column if the model needs no group to predict
        return X


def _taken(given: Any, rows: IndexArray, n_rows: int, name: str) -> Any:
    """Return some rows of what was given. Raise unless it has the expected number of rows."""
    check_length(given, n_rows, name)
    return take(given, rows)


def _n_rows(given: Any) -> int:
    return len(attribute_columns(given, "sensitive_features")[0][1])


def list_people(
    data: Scored,
    sample: Sample,
    table: PeopleTable,
    pairs: dict[str, Pairs],
    near: tuple[NearPeople, ...],
    across: dict[str, Pairs],
) -> Individuals:
    """Return the people of the sample, one by one."""
    ids, columns = table.ids, table.columns
    positive = () if sample.positive is None else sample.positive.astype(int).tolist()
    weights = () if sample.weights.values is None else sample.weights.values.tolist()
    rows = sample.rows if table.positions is None else table.positions[sample.rows]
    return Individuals(
        ids=tuple(ids[row] for row in sample.rows) if ids else tuple(map(str, rows)),
        rows=tuple(rows.tolist()),
        group=tuple(sample.groups.codes.tolist()),
        scores=tuple(data.scores[sample.rows].tolist()),
        labels=tuple(positive),
        columns={column.name: _values(column, sample.rows) for column in columns},
        hidden=(),
        pairs=pairs,
        selected=()
        if data.settings.is_real
        else tuple(data.selected[sample.rows].astype(int).tolist()),
        weights=tuple(weights),
        near=near,
        across=across,
    )


def _values(column: Column, rows: IndexArray) -> tuple[str | float | None, ...]:
    values, missing = column.values[rows].tolist(), column.missing[rows].tolist()
    if column.levels is None:
        return tuple(None if m else float(v) for v, m in zip(values, missing, strict=True))
    levels = [str(level) for level in column.levels]
    return tuple(None if m else levels[v] for v, m in zip(values, missing, strict=True))


def sha256(*parts: bytes) -> str:
    """Return the SHA-256 hash of some bytes, taken part after part."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _bytes(column: Column) -> bytes:
    """Return the name, the kind and the values of a column as bytes."""
    head = f"{column.name}\0{column.kind}\0".encode()
    if column.levels is None:
        values = np.where(column.missing, 0.0, column.values.astype(np.float64))
        return head + column.missing.tobytes() + values.tobytes()
    # Levels are sorted by their text, because their order depends on the table library.
    levels, codes = np.unique([str(level) for level in column.levels], return_inverse=True)
    text = np.append(codes, -1).astype(np.int32)[column.values]
    return head + "\0".join(levels.tolist()).encode() + text.tobytes()
