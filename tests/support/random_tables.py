"""The random tables that the tests share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import ot
from hypothesis import strategies as st

from fairmatch import Coupling


@dataclass
class Table:
    """A small random table: scores, groups (0 and 1, both there), labels, features, weights."""

    scores: np.ndarray
    groups: np.ndarray
    labels: np.ndarray
    X: np.ndarray
    weights: np.ndarray | None

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: np.ndarray) -> "Table":
        weights = None if self.weights is None else self.weights[rows]
        columns = (column[rows] for column in (self.scores, self.groups, self.labels, self.X))
        return Table(*columns, weights)

    def of(self, group: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores and weights of one group, as the oracles take them."""
        rows = self.groups == group
        return self.scores[rows], None if self.weights is None else self.weights[rows]

    def shares(self, group: int) -> np.ndarray:
        """Mass of every member of a group."""
        scores, weights = self.of(group)
        weights = np.ones(len(scores)) if weights is None else weights
        return weights / weights.sum()

    @property
    def given(self) -> dict[str, Any]:
        """What every measure takes."""
        return {"sensitive_features": self.groups, "sample_weight": self.weights}


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    max_size: int = 8,
    weighted: bool | None = None,
    tied: bool | None = None,
    equal: bool = False,
    n_features: int = 2,
) -> Table:
    """Draw tables with tiny or unequal groups, tied or distinct scores, with or without weights."""
    sizes = [draw(st.integers(1, max_size)) for _ in range(2)]
    if equal:
        sizes[1] = sizes[0]
    n_rows = sum(sizes)
    if draw(st.booleans()) if tied is None else tied:
        value = st.integers(0, 4).map(lambda k: k / 4)
        scores = draw(st.lists(value, min_size=n_rows, max_size=n_rows))
    else:
        value = st.integers(0, 10**6).map(lambda k: k / 10**6)
        scores = draw(st.lists(value, min_size=n_rows, max_size=n_rows, unique=True))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        # Thirds and sevenths have no finite binary form, so that rounding is met as well.
        weight = st.integers(1, 20).map(lambda k: k / 21)
        weights = np.array(draw(st.lists(weight, min_size=n_rows, max_size=n_rows)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Table(
        np.array(scores),
        generator.permutation(np.repeat([0, 1], sizes)),
        generator.integers(0, 2, n_rows),
        generator.normal(size=(n_rows, n_features)),
        weights,
    )


def some_coupling(table: Table, generator: np.random.Generator) -> Coupling:
    """Make a random coupling with the right marginals: a corner of the polytope, or inside it."""
    a, b = table.shares(0), table.shares(1)
    corner = ot.emd(a, b, generator.uniform(size=(len(a), len(b))))
    share = generator.choice([0.0, 0.5, 1.0])
    plan = share * corner + (1.0 - share) * np.outer(a, b)
    return Coupling.from_plan(plan / plan.sum(), table.groups)


@st.composite
def many_groups(
    draw: st.DrawFn, *, max_groups: int = 6, max_size: int = 6, weighted: bool | None = None
) -> Table:
    """Draw tables of two to six groups, each with people of both classes."""
    n_groups = draw(st.integers(2, max_groups))
    sizes = [draw(st.integers(2, max_size)) for _ in range(n_groups)]
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    groups = np.repeat(np.arange(n_groups), sizes)
    n_rows = len(groups)
    labels = generator.integers(0, 2, n_rows)
    starts = np.cumsum([0, *sizes[:-1]])
    labels[starts], labels[starts + 1] = 0, 1  # both classes in every group
    tied = draw(st.booleans())
    scores = generator.integers(0, 4, n_rows) / 4 if tied else generator.uniform(size=n_rows)
    has_weights = draw(st.booleans()) if weighted is None else weighted
    weights = generator.integers(1, 5, n_rows).astype(float) if has_weights else None
    table = Table(scores, groups, labels, generator.normal(size=(n_rows, 2)), weights)
    return table.take(generator.permutation(n_rows))
