"""Parts matched one by one, large ones on a sample of their rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.parts import PartRows, couple_parts, plan_parts
from fairmatch.tables.arrays import BoolArray, FloatArray
from fairmatch.tables.criterion import Criterion
from fairmatch.tables.groups import Groups

# The larger group of a sample has at least this share of its rows. docs/evidence/large-tables.md
# shows the measurements behind the value.
_LEAST_SHARE = 0.2


def sample_part(
    part: PartRows,
    most_rows: int | None,
    positive: BoolArray | None,
    generator: np.random.Generator,
) -> PartRows:
    """Return a part with at most ``most_rows`` rows, drawn at random.

    Parameters
    ----------
    part : PartRows
        The rows of two groups.
    most_rows : int or None
        The most rows to keep. Each group gets at most half of them. If a group has fewer rows, it
        is kept whole, and the other group gets as many, or a fifth of ``most_rows`` if that is
        more. None keeps all rows.
    positive : array of bool, shape (n_rows,), optional
        Which rows have Y = 1. Each class keeps its share of the group.
    generator : numpy.random.Generator
        Draws the rows.

    Notes
    -----
    Groups of equal size are matched in less than half of the time of groups that share the same
    number of rows unequally. More rows of the larger group say nothing more about the smaller one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.matching.parts import plan_parts
    >>> from fairmatch.tables.groups import read_groups
    >>> (part,) = plan_parts(read_groups(["a"] * 10 + ["b"] * 1000))
    >>> few = sample_part(part, 100, None, np.random.default_rng(0))
    >>> len(few.source_rows), len(few.target_rows)
    (10, 20)
    """
    sides = part.source_rows, part.target_rows
    sizes = len(sides[0]), len(sides[1])
    if most_rows is None or sum(sizes) <= most_rows:
        return part
    least = max(1, int(_LEAST_SHARE * most_rows))
    shared = max(least, min(*sizes, most_rows // 2))
    kept = [min(size, shared) for size in sizes]
    drawn = []
    for rows, size in zip(sides, kept, strict=True):
        order = generator.permutation(rows)
        if positive is not None:
            order = order[np.argsort(positive[order], kind="stable")]
        # Rows are sorted by class and taken at even spacing. So each class has its share, to
        # within one row.
        at = (np.arange(size) + generator.random()) * (len(rows) / size)
        drawn.append(np.sort(order[np.minimum(at.astype(np.intp), len(rows) - 1)]))
    return replace(part, source_rows=drawn[0], target_rows=drawn[1])


def match_parts(
    matcher: Any,
    X: Any,
    groups: Groups,
    *,
    positive: BoolArray | None = None,
    weights: FloatArray | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    part_weights: str = "equal",
    ignored: Sequence[int] = (),
    most_rows: int | None = None,
    random_state: Any = 0,
) -> Coupling:
    """Return the coupling of all parts. A matcher of two groups is run once per part.

    Parameters
    ----------
    matcher : object with a ``match`` method
        ``match(X, sensitive_features, y=None, *, sample_weight=None)`` returns a Coupling of the
        rows that it gets, which belong to two groups.
    X : array of shape (n_rows, n_features), or Points
        Encoded features.
    groups : Groups
        Group of every row.
    positive : array of bool, shape (n_rows,), optional
        Which rows have Y = 1. It is needed if the criterion compares people of the same class.
    weights : array of shape (n_rows,), optional
        Weight of every row. Rows of weight zero are not matched.
    criterion : str or Criterion, default="demographic_parity"
        The criterion, which decides which classes are compared.
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    part_weights : {"equal", "size"}, default="equal"
        Whether all parts weigh the same, or as much as their groups.
    ignored : sequence of int, default=()
        Codes of groups that are not matched.
    most_rows : int, optional
        A part with more rows is matched on a random sample of this many. None matches all rows.
    random_state : seed, default=0
        Seed of the samples.
    """
    generator = np.random.default_rng(random_state)
    parts = plan_parts(
        groups,
        criterion=criterion,
        positive=positive,
        weights=weights,
        reference=reference,
        part_weights=part_weights,
        ignored=ignored,
    )
    labels = None if positive is None else positive.astype(np.int64)

    def couple(part: PartRows) -> Coupling:
        part = sample_part(part, most_rows, positive, generator)
        rows = np.sort(np.concatenate([part.source_rows, part.target_rows]))
        found: Coupling = matcher.match(
            X[rows],
            groups.names(rows),
            None if labels is None else labels[rows],
            sample_weight=None if weights is None else weights[rows],
        )
        check_coupling(found, optional=False)
        found.check_groups(groups.take(rows))
        return replace(
            found,
            source_index=rows[found.source_index],
            target_index=rows[found.target_index],
            n_rows=len(groups),
            label=part.label,
            weight=part.weight,
        )

    return couple_parts(parts, couple)
