"""Who should be treated alike: people matched at the least total distance."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError
from fairmatch.matching.blocks import BLOCK_SIZE, BlockProgress, lower_bound, match_blocks
from fairmatch.matching.coupling import (
    Certificate,
    Coupling,
    IndexArray,
    check_coupling,
    couple,
    join_parts,
)
from fairmatch.matching.network import unit_count, whole_units
from fairmatch.matching.solver import EXACT, OnUnproven, Transport, check_columns
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_count,
    check_number,
    refuse_other_order,
)
from fairmatch.people.encoding import Points, as_table, read_points
from fairmatch.people.groups import Criterion, Groups, read_criterion
from fairmatch.people.people import Comparison, People, read_people
from fairmatch.people.similarity import read_similarity

#: With ``block_size="auto"``, a part with more pairs of people than this is matched in blocks.
WHOLE_PAIRS = 4_000_000_000


class Matcher(Protocol):
    """An object that matches the people of two groups.

    With more groups, or within classes, `match_people` runs it once for each comparison.
    """

    def match(
        self,
        X: Any,
        sensitive_features: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Coupling:
        """Return the coupling of the rows of a table."""


@dataclass(frozen=True)
class OptimalTransportMatcher:
    r"""Match people of every group with people of the reference group at the least distance.

    Parameters
    ----------
    label_weight : float, default=0.0
        The paper's alpha: the cost of matching people with different labels. With 0 the matching
        is the paper's marginal map. With a positive weight it is the joint map.
    batch_size : int, optional
        None matches all rows at once. A number matches random batches of up to this many people of
        each group. Without sample weights, every row of the larger group is used. With them, rows
        are drawn in proportion to their weight. The marginals are approximate, and the coupling's
        ``marginal_error`` measures the error.
    tolerance : float, default=1e-9
        Relative duality gap that must be proven. A gap of 1e-9 counts as exact. A larger tolerance
        saves a little time on large tables. A matching in blocks has no tolerance, and its
        certificate states the gap.
    random_state : int, default=0
        Seed of the batches, the blocks and the solver's samples. If several plans are optimal, the
        seed decides which one is found. The order of the rows does not, and whole-number weights
        give the same plan as repeated rows. There are two exceptions: people who agree in all
        columns are matched in the order of the rows, and a matching in blocks depends on it too.
    criterion : str, default="demographic_parity"
        Whom to match: everybody ("demographic_parity"), people with a positive label
        ("equal_opportunity"), or each class by itself ("equalized_odds").
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    block_size : int, "auto" or None, default="auto"
        Pass a number for tables that are too large to be matched at once. The plan is then cut into
        blocks of up to this many pairs, each block is solved, and the plan is cut again until
        little is gained. Marginals are exact. The cost is slightly above the least one (0.7% on
        Adult), and the certificate has a proven lower bound. None matches everybody at once. "auto"
        uses blocks of up to 2,048 pairs if a part has more than four billion pairs of people.
    on_unproven : {"raise", "return"}, default="raise"
        What to do if the tolerance cannot be proven, as for groups that are nearly the same or have
        far outliers: raise an error, or return the best plan with its true bound. A matching in
        blocks never raises this error.

    Notes
    -----
    The matching minimises, over all couplings of two groups (equations 5 and 6, and Appendix C),

    .. math:: \mathbb{E} \|x_0 - x_1\|^2 + \alpha |y_0 - y_1|.

    With two classes :math:`|y_0 - y_1| = (y_0 - y_1)^2`. So the joint cost is a squared distance
    too, in which labels are one more column, :math:`\sqrt\alpha\, y`.

    Examples
    --------
    >>> X, groups, y = [[0.0], [1.0], [0.1], [0.9]], [0, 0, 1, 1], [0, 1, 1, 0]
    >>> nearest = OptimalTransportMatcher().match(X, groups)
    >>> sorted(zip(nearest.source_index.tolist(), nearest.target_index.tolist()))
    [(2, 0), (3, 1)]
    >>> joint = OptimalTransportMatcher(label_weight=100.0).match(X, groups, y)
    >>> sorted(zip(joint.source_index.tolist(), joint.target_index.tolist()))
    [(2, 1), (3, 0)]
    """

    label_weight: float = 0.0
    batch_size: int | None = None
    tolerance: float = EXACT
    random_state: int = 0
    criterion: str = "demographic_parity"
    reference: Any = None
    block_size: int | str | None = "auto"
    on_unproven: OnUnproven = "raise"

    def __post_init__(self) -> None:
        if self.block_size != "auto":
            check_count("block_size", self.block_size, 2, optional=True)
        check_number("label_weight", self.label_weight, "[0, inf)")
        check_count("batch_size", self.batch_size, optional=True)
        if self.batch_size is not None and isinstance(self.block_size, int):
            raise InputError(
                f"batch_size={self.batch_size} matches random batches and "
                f"block_size={self.block_size} matches everybody in blocks; both were given. "
                "Leave one of the two out."
            )
        check_number("tolerance", self.tolerance, "(0, 1)")
        check_choice("on_unproven", self.on_unproven, ("raise", "return"))
        check_count("random_state", self.random_state, 0)
        if read_criterion(self.criterion).needs_labels and self.label_weight > 0.0:
            raise InputError(
                f"label_weight={self.label_weight:g} was given, but criterion={self.criterion!r} "
                "matches only people of the same class, so a label weight has no effect. Pass "
                "label_weight=0, the marginal map."
            )

    def match(
        self,
        X: Any,
        sensitive_features: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        given: Any = None,
        similarity: Any = None,
        categorical: Collection[str] = (),
        n_jobs: int | None = None,
        keep: str | Path | None = None,
        progress: BlockProgress | None = None,
    ) -> Coupling:
        """Return the coupling of the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), table or Points
            The features, which decide who is near to whom. Arrays, tables of only numbers, and
            `Points` are used as they are. A table with categories is encoded by `TableEncoder`:
            numbers are scaled to [0, 1], and two different levels are at squared distance 2.
            Memory grows with the columns of the table, not with the levels of its categories.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row.
        y : array-like of shape (n_rows,), optional
            Labels of two classes, of which the greater is positive. They are needed if
            ``label_weight`` is positive, or if the criterion compares people of the same class.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        given : names of columns of X, array-like of shape (n_rows,), or table, optional
            Factors within whose levels people are matched. Each stratum with people of two groups
            is a part of the coupling; people of other strata are matched with nobody.
        similarity : None, list of columns, mapping, "relevance" or array, optional
            What makes two people alike. None counts every column of X. A list counts only these
            columns, and a mapping gives columns weights; both scale numbers by their range.
            "relevance" weighs columns by how much they matter to ``y``. An array has one row per
            person, such as an embedding of texts.
        categorical : collection of str, default=()
            Columns of X whose numbers are codes of categories, such as occupations.
        n_jobs : int, optional
            Number of joblib jobs that solve blocks. Under ``joblib.parallel_config("dask")``,
            blocks are solved on a Dask cluster.
        keep : str or Path, optional
            A folder in which solved blocks are kept. After an interrupt, the same call continues
            from them. The folder is not deleted at the end.
        progress : callable, optional
            Called as ``progress(round, blocks done, blocks, cost)`` after blocks are solved.

        Returns
        -------
        Coupling
            A coupling from every other group to the reference group. It has the solver's
            certificate, unless batches were matched.
        """
        refuse_other_order(
            X=X, sensitive_features=sensitive_features, y=y, sample_weight=sample_weight
        )
        relevant = isinstance(similarity, str)
        needs_y = self.label_weight > 0.0 or read_criterion(self.criterion).needs_labels or relevant
        X = X if isinstance(X, Points) else as_table(X, categorical)
        points = read_points(X) if similarity is None else None
        people = read_people(
            sensitive_features,
            n_rows=len(as_table(X)) if points is None else len(points),
            y=y if needs_y else None,
            pos_label=None,
            sample_weight=sample_weight,
            name="y",
            X=None if isinstance(X, Points) else X,
            given=given,
        )
        if points is None:
            alike = read_similarity(similarity, X, people.labels, people.weights)
            points = alike.points(X)
        return self.match_people(people, points, n_jobs=n_jobs, keep=keep, progress=progress)

    def match_people(
        self,
        people: People,
        points: Points,
        *,
        n_jobs: int | None = None,
        keep: str | Path | None = None,
        progress: BlockProgress | None = None,
    ) -> Coupling:
        """Return the coupling of people who are described by points, as `match` does."""
        points = self.points(points, people.positive)
        check_columns(points, type(self).__name__)
        parts = people.comparisons(read_criterion(self.criterion), self.reference)
        found = []
        for number, part in enumerate(parts):
            if self.batch_size is not None:
                found.append(self._couple_batches(people, part, points, self.batch_size))
            elif self._wants_blocks(part):
                folder = None if keep is None else Path(keep) / f"part-{number}"
                more: dict[str, Any] = {"n_jobs": n_jobs, "keep": folder, "progress": progress}
                found.append(self._couple_blocks(people, part, points, **more))
            else:
                found.append(self._couple(people, part, points))
        return join_parts(found)

    def points(self, points: Points, positive: BoolArray | None) -> Points:
        """Return points whose squared distance is the matching cost.

        A positive ``label_weight`` needs to know which rows have the positive label.
        """
        if self.label_weight == 0.0:
            return points
        if positive is None:
            raise InputError(
                f"label_weight={self.label_weight:g} was given without y, and the joint map needs "
                "the labels. Pass y, or use label_weight=0 for the marginal map."
            )
        # Which of the two classes counts as positive makes no difference to a distance.
        return points.with_number(np.sqrt(self.label_weight) * (positive == positive[0]))

    def _wants_blocks(self, part: Comparison) -> bool:
        if self.block_size == "auto":
            return len(part.source_rows) * len(part.target_rows) > WHOLE_PAIRS
        return self.block_size is not None

    @property
    def _proof(self) -> dict[str, Any]:
        return {"tolerance": self.tolerance, "on_unproven": self.on_unproven}

    def _couple(self, people: People, part: Comparison, points: Points) -> Coupling:
        first, second = part.in_order
        sides, seed = (points[first], points[second]), self.random_state
        plan = Transport(*sides, *part.masses(people), random_state=seed).solve(**self._proof)
        pairs = first[plan.source], second[plan.target], plan.mass
        return couple(people, part, *pairs, certificate=plan.certificate)

    def _couple_blocks(
        self, people: People, part: Comparison, points: Points, *, n_jobs: int | None, **more: Any
    ) -> Coupling:
        first, second = part.in_order
        masses = [people.mass[rows] for rows in part.in_order]
        shares = [mass / mass.sum() for mass in masses]
        total = unit_count(*shares)
        units = whole_units(shares[0], total), whole_units(shares[1], total)
        sides = points[first], points[second]
        size = BLOCK_SIZE if isinstance(self.block_size, str | None) else self.block_size
        given: dict[str, Any] = {"random_state": self.random_state, "n_jobs": n_jobs}
        plan = match_blocks(sides, units, block_size=size, **given, **more)
        bound = lower_bound(sides, units, **given)
        words = f"blocks of up to {size:,} pairs, {plan.rounds} rounds"
        proof = Certificate(plan.cost, min(bound, plan.cost), words)
        pairs = first[plan.source], second[plan.target], plan.flow / plan.flow.sum()
        return couple(people, part, *pairs, certificate=proof)

    def _couple_batches(
        self, people: People, part: Comparison, points: Points, batch_size: int
    ) -> Coupling:
        rows = part.in_order
        size = min(batch_size, len(rows[0]), len(rows[1]))
        n_batches = -(-max(len(rows[0]), len(rows[1])) // size)
        generator = np.random.default_rng(self.random_state)
        drawn = [_draw(r, size, n_batches, people.weights, generator) for r in rows]
        pairs = []
        for source, target in zip(*drawn, strict=True):
            plan = Transport(points[source], points[target]).solve(**self._proof)
            pairs.append((source[plan.source], target[plan.target], plan.mass / n_batches))
        first, second, mass = (np.concatenate(side) for side in zip(*pairs, strict=True))
        # There is no certificate: a batch's bound does not hold for the best plan of all rows.
        errors = []
        for at, own in zip((first, second), rows, strict=True):
            found, wanted = np.bincount(at, mass, len(points))[own], people.mass[own]
            errors.append(float(np.abs(found - wanted / wanted.sum()).sum() / 2.0))
        return couple(people, part, first, second, mass, marginal_error=max(errors))

    def pair(self, source_points: Points, target_points: Points) -> IndexArray:
        """Return the partner of every source point, for two groups of equal size."""
        plan = Transport(source_points, target_points).solve(**self._proof)
        partner = np.empty(len(source_points), dtype=np.intp)
        partner[plan.source] = plan.target
        return partner


def _draw(
    rows: IndexArray,
    size: int,
    n_batches: int,
    weights: FloatArray | None,
    generator: np.random.Generator,
) -> NDArray[np.intp]:
    """Return batches of rows, from shuffled rows or, with weights, in proportion to weight."""
    if weights is not None:
        shares = weights[rows] / weights[rows].sum()
        return generator.choice(rows, size=(n_batches, size), p=shares)
    decks = -(-n_batches * size // len(rows))
    drawn = np.concatenate([generator.permutation(rows) for _ in range(decks)])
    return drawn[: n_batches * size].reshape(n_batches, size)


# The larger group of a sample has at least this share of its rows. docs/evidence/large-tables.md
# shows the measurements behind the value.
_LEAST_SHARE = 0.2


def sample_part(
    part: Comparison,
    most_rows: int | None,
    positive: BoolArray | None,
    generator: np.random.Generator,
) -> Comparison:
    """Return a comparison with at most ``most_rows`` rows, drawn at random.

    A group with fewer than half of them is kept whole. The other group then keeps as many, or a
    fifth of ``most_rows`` if that is more. Each class keeps its share of a group.

    Notes
    -----
    Groups of equal size are matched in less than half of the time of groups that share the same
    number of rows unequally. More rows of the larger group say nothing more about the smaller one.
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


def match_people(
    matcher: Matcher,
    people: People,
    X: Any,
    *,
    criterion: Criterion,
    reference: Any = None,
    most_rows: int | None = None,
    random_state: Any = 0,
) -> Coupling:
    """Return the coupling of all comparisons. A matcher of two groups is run once for each.

    A comparison of more than ``most_rows`` rows is matched on a random sample of this many.
    """
    generator = np.random.default_rng(random_state)
    positive, found = people.positive, []
    for part in people.comparisons(criterion, reference):
        part = sample_part(part, most_rows, positive, generator)
        rows = np.sort(np.concatenate([part.source_rows, part.target_rows]))
        groups = people.groups.take(rows)
        if isinstance(matcher, OptimalTransportMatcher):
            # Read again from their names, bands would lose the order of their number.
            codes = sorted((part.source, part.target))
            labels = tuple(groups.labels[code] for code in codes)
            two = Groups(np.searchsorted(codes, groups.codes), labels)
            known = replace(people, table=None, strata=None).take(rows)
            own = matcher.match_people(replace(known, groups=two), read_points(X[rows]))
        else:
            own = matcher.match(
                X[rows],
                groups.names(),
                None if positive is None else positive[rows].astype(np.int64),
                sample_weight=None if people.weights is None else people.weights[rows],
            )
        check_coupling(own, optional=False)
        own.check_groups(groups)
        found.append(
            replace(
                own.renumbered(rows, len(people)),
                label=part.label,
                weight=part.weight,
                stratum=people.stratum(part),
            )
        )
    return join_parts(found)
