"""The central object: who is matched with whom, and with how much mass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fairmatch.exceptions import CouplingError
from fairmatch.people.checks import FloatArray, read_features, read_numbers
from fairmatch.people.encoding import read_points
from fairmatch.people.groups import Groups, listed, read_groups
from fairmatch.people.people import Comparison, People

IndexArray = NDArray[np.intp]

# Pairs are gathered in blocks of this many feature values, so even ten million pairs of wide rows
# need little memory.
_BLOCK_VALUES = 4_000_000


@dataclass(frozen=True)
class Certificate:
    """How good a transport plan is, and how that is known."""

    cost: float  #: Transport cost of the plan (primal value).
    bound: float  #: A proven lower bound on the cost of every plan (dual value).
    solver: str  #: The method that found the plan.

    def __post_init__(self) -> None:
        if not np.isfinite([self.cost, self.bound]).all():
            raise CouplingError(
                f"A cost of {self.cost} with a bound of {self.bound} proves nothing: both must be "
                "finite. Scale the columns, so that squared distances are finite."
            )

    @property
    def gap(self) -> float:
        """Primal value minus dual value. It is zero at the optimum, up to rounding."""
        return self.cost - self.bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the cost. A plan is exact if it is at most 1e-9."""
        return max(self.gap, 0.0) / self.cost if self.cost > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Coupling:
    r"""A matching of people across groups.

    A coupling is a sparse joint distribution. Pair ``k`` matches row ``source_index[k]`` with row
    ``target_index[k]`` and carries ``mass[k]``. Rows are positions in the table that was matched.

    A coupling of two groups is one part. With more groups, every other group is matched with a
    reference group. If the criterion compares people of the same class, each class is matched by
    itself, and so is each stratum. Each of these matchings is a part, and the coupling is their
    weighted sum.

    Parameters
    ----------
    source_index, target_index : array of int, shape (n_pairs,)
        Row positions of the source group and of the target group.
    mass : array of float, shape (n_pairs,)
        Mass of each pair. Masses are not negative and sum to 1.
    n_rows : int
        Number of rows of the table that was matched.
    groups : tuple
        Label of the source group and label of the target group. With several parts, these are the
        labels of all groups that are matched.
    certificate : Certificate, optional
        Proof of optimality, if the coupling came from a solver.
    undetermined : float, default=0
        Share of the mass that is matched by row order because scores are tied.
    marginal_error : float, default=0
        Total variation between the coupling's marginals and those of the groups. Only couplings
        made from mini-batches have such an error.
    label : bool, optional
        The class whose people are matched: True is Y = 1, False is Y = 0, None is everybody. With
        several classes it is the position of the class.
    weight : float, default=1
        Weight of this coupling in the coupling that it is a part of.
    stratum : str, optional
        The stratum within which people are matched.
    members : tuple of Coupling, default=()
        The parts, if there are several. `join_parts` makes such a coupling.

    Notes
    -----
    This is the paper's stochastic transport map :math:`\mathbb{Q}` (Section 3.1), with

    .. math:: \Delta\mathrm{MDP}(f, \mathbb{Q}) =
              \mathbb{E}_{(i, j) \sim \mathbb{Q}} |f(x_i, s) - f(x_j, s')|.

    Examples
    --------
    >>> from fairmatch import Coupling
    >>> pairs = Coupling([0, 1], [2, 3], [0.5, 0.5], n_rows=4, groups=("a", "b"))
    >>> pairs.gap([0.1, 0.9, 0.2, 0.6])
    0.2
    >>> pairs.transport_cost([[0.0], [1.0], [0.0], [3.0]])
    2.0
    >>> pairs.parts == (pairs,)
    True
    """

    source_index: IndexArray
    target_index: IndexArray
    mass: FloatArray
    n_rows: int
    groups: tuple[Any, ...]
    certificate: Certificate | None = None
    undetermined: float = 0.0
    marginal_error: float = 0.0
    label: int | None = None
    weight: float = 1.0
    members: tuple["Coupling", ...] = ()
    stratum: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n_rows, bool) or not isinstance(self.n_rows, int | np.integer):
            raise CouplingError(f"n_rows must be a whole number, got {self.n_rows!r}. Correct it.")
        if not isinstance(self.groups, tuple | list):
            raise CouplingError(f"groups must be a tuple of labels, got {self.groups!r}.")
        source, target = _positions(self.source_index), _positions(self.target_index)
        mass = read_numbers(self.mass, "mass")
        if not len(source) == len(target) == len(mass):
            raise CouplingError(
                "source_index, target_index and mass describe the same pairs and must be equally "
                f"long; got {len(source)}, {len(target)} and {len(mass)}. Pass one entry per pair."
            )
        for positions, side in ((source, "source_index"), (target, "target_index")):
            if positions.min() < 0 or positions.max() >= self.n_rows:
                raise CouplingError(
                    f"{side} must hold row positions from 0 to {self.n_rows - 1}, got "
                    f"{positions.min()} to {positions.max()}. Correct them, or n_rows."
                )
        if not mass.min() >= 0.0:
            raise CouplingError(
                f"mass must not be negative or NaN, got {mass.min():g}. Leave that pair out."
            )
        if not np.isclose(total := mass.sum(), 1.0, rtol=0.0, atol=1e-9):
            raise CouplingError(f"mass must sum to 1, got {total:.12g}. Divide it by its sum.")
        if not self.members and len(set(map(repr, self.groups))) != 2:
            raise CouplingError(
                f"groups must be two different labels, got {self.groups!r}. For more groups, join "
                "couplings with fairmatch.matching.coupling.join_parts."
            )
        for name, array in (("source_index", source), ("target_index", target), ("mass", mass)):
            # A copy, because no caller may hold a writeable array of a frozen object.
            array = array.copy() if array.flags.writeable else array
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.mass)

    def __repr__(self) -> str:
        size = f"{len(self)} pairs, {self.n_rows} rows"
        if self.members:
            return f"<Coupling of {len(self.groups)} groups in {len(self.members)} parts: {size}>"
        source, target = self.groups
        return f"<Coupling of {source!r} with {target!r}: {size}>"

    def _repr_html_(self) -> str:
        """Return the parts as a table, for a notebook."""
        rows = "".join(
            f"<tr><td>{escape(str(part.groups[0]))}</td><td>{escape(str(part.groups[1]))}</td>"
            f"<td>{'' if part.label is None else int(part.label)}</td>"
            f"<td>{escape(part.stratum or '')}</td>"
            f"<td>{len(part):,}</td><td>{part.weight:.3g}</td></tr>"
            for part in self.parts
        )
        heads = "".join(
            f"<th>{name}</th>" for name in ("from", "to", "label", "stratum", "pairs", "weight")
        )
        return (
            f"<div>{escape(repr(self))}<table><thead><tr>{heads}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    @property
    def parts(self) -> tuple["Coupling", ...]:
        """The parts whose weighted sum is this coupling. Each matches two groups."""
        return self.members or (self,)

    @property
    def inverse(self) -> "Coupling":
        """The same matching seen from the other side of every pair."""
        return replace(
            self,
            source_index=self.target_index,
            target_index=self.source_index,
            groups=self.groups if self.members else (self.groups[1], self.groups[0]),
            members=tuple(part.inverse for part in self.members),
        )

    def marginals(self) -> tuple[FloatArray, FloatArray]:
        """Return the mass of every row of the table as a source, and its mass as a target."""
        as_source, as_target = np.zeros(self.n_rows), np.zeros(self.n_rows)
        as_source += np.bincount(self.source_index, self.mass, minlength=self.n_rows)
        as_target += np.bincount(self.target_index, self.mass, minlength=self.n_rows)
        return as_source, as_target

    def expect(self, values: ArrayLike | Callable[[IndexArray, IndexArray], ArrayLike]) -> float:
        """Return the mean of a function of pairs, weighted by their mass.

        Parameters
        ----------
        values : array of shape (n_pairs,), or callable
            One value per pair, or a function of the two arrays of row positions.
        """
        if callable(values):
            values = values(self.source_index, self.target_index)
        array = read_numbers(values, "values")
        if len(array) != len(self):
            raise CouplingError(
                f"values has {len(array)} entries, but the coupling has {len(self)} pairs. Pass "
                "one value per pair."
            )
        return float(array @ self.mass)

    def gap(self, scores: ArrayLike) -> float:
        """Return the mean score gap between matched people: the paper's MDP (equation 2).

        ``scores`` holds one score per row of the table. With several parts, this is the weighted
        mean of their gaps, which training with a penalty reduces.
        """
        return float(self.gaps(scores) @ self.mass)

    def largest_gap(self, scores: ArrayLike) -> float:
        """Return the largest mean score gap of any part, given one score per row of the table."""
        return max(part.gap(scores) for part in self.parts)

    def gaps(self, scores: ArrayLike) -> FloatArray:
        """Return the score gap of every pair, given one score per row of the table.

        If a score is a vector of class probabilities, the gap is half the L1 distance.
        """
        vectors = np.ndim(scores) == 2 and np.shape(scores)[1] > 1
        array = read_features(scores, name="scores") if vectors else read_numbers(scores, "scores")
        self.check_rows(len(array))
        if not vectors:
            return np.abs(array[self.source_index] - array[self.target_index])
        gaps = [np.abs(own).sum(axis=1) / 2.0 for _, own in self._differences(array)]
        return np.concatenate(gaps)

    def transport_cost(self, X: Any) -> float:
        """Return the mean squared distance between matched people.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), table or Points
            The features, one row per row of the table. Numbers are used as they are, and a table
            with categories is encoded by `TableEncoder`.
        """
        return float(self.costs(X) @ self.mass)

    def costs(self, X: Any) -> FloatArray:
        """Return the squared distance of every pair, given features X like `transport_cost`."""
        points = read_points(X)
        self.check_rows(len(points))
        source, target, blocks = self.source_index, self.target_index, self._blocks(points.width)
        return np.concatenate([points.pair_costs(source[own], target[own]) for own in blocks])

    def costs_by_feature(self, X: ArrayLike) -> FloatArray:
        """Return the part of the transport cost that comes from each column of a numeric X."""
        features = read_features(X)
        self.check_rows(len(features))
        parts = np.zeros(features.shape[1])
        for block, difference in self._differences(features):
            parts += self.mass[block] @ difference**2
        return parts

    def counterparts(self, row: int) -> tuple[IndexArray, FloatArray]:
        """Return the partners of a row, the likeliest first, and their probabilities."""
        if not 0 <= row < self.n_rows:
            raise CouplingError(f"row must be from 0 to {self.n_rows - 1}, got {row}. Correct it.")
        as_source, as_target = self.source_index == row, self.target_index == row
        partners = np.concatenate([self.target_index[as_source], self.source_index[as_target]])
        mass = np.concatenate([self.mass[as_source], self.mass[as_target]])
        # Mini-batches can match the same two people more than once.
        partners, pair = np.unique(partners[mass > 0.0], return_inverse=True)
        mass = np.bincount(pair, mass[mass > 0.0], minlength=len(partners))
        order = np.argsort(-mass, kind="stable")
        return partners[order], mass[order] / mass.sum()

    def to_sparse(self) -> sparse.coo_array:
        """Return the plan as an (n_rows, n_rows) sparse matrix."""
        shape = (self.n_rows, self.n_rows)
        return sparse.coo_array((self.mass, (self.source_index, self.target_index)), shape=shape)

    def to_dense(self, sensitive_features: ArrayLike) -> FloatArray:
        """Return the plan as a matrix of source rows by target rows, given each row's group."""
        if self.members:
            raise CouplingError(
                f"This coupling has {len(self.members)} parts, but a matrix shows only one. "
                "Convert each of coupling.parts by itself."
            )
        groups = self.read_groups(sensitive_features)
        source, target = (groups.rows(groups.code_of(label)) for label in self.groups)
        plan = np.zeros((len(source), len(target)))
        at = np.searchsorted(source, self.source_index), np.searchsorted(target, self.target_index)
        np.add.at(plan, at, self.mass)
        return plan

    @classmethod
    def from_plan(cls, plan: Any, sensitive_features: ArrayLike, **facts: Any) -> "Coupling":
        """Return the coupling of a dense or SciPy-sparse plan.

        Parameters
        ----------
        plan : array or sparse matrix of shape (n_source, n_target)
            Entry (k, l) is the mass between the k-th row of the first group and the l-th row of
            the second. The groups are ordered by their sorted labels.
        sensitive_features : array-like of shape (n_rows,)
            Group of every row.
        **facts
            Further fields of the coupling, such as its certificate.
        """
        groups = read_groups(sensitive_features).only_two("Coupling.from_plan")
        rows = groups.rows(0), groups.rows(1)
        plan = plan if sparse.issparse(plan) else np.asarray(plan)
        if plan.shape != (len(rows[0]), len(rows[1])):
            raise CouplingError(
                f"The plan has shape {plan.shape}; the groups {groups.labels[0]!r} and "
                f"{groups.labels[1]!r} have {len(rows[0])} and {len(rows[1])} rows. Pass a plan of "
                "that shape."
            )
        entries = sparse.coo_array(plan)
        keep = entries.data != 0
        return cls(
            rows[0][entries.coords[0][keep]],
            rows[1][entries.coords[1][keep]],
            entries.data[keep],
            n_rows=len(groups),
            groups=groups.labels,
            **facts,
        )

    def check_rows(self, n_rows: int) -> None:
        """Raise unless ``n_rows`` is the number of rows of the table that was matched."""
        if n_rows != self.n_rows:
            raise CouplingError(
                f"This coupling was made for a table of {self.n_rows} rows, but is used on one of "
                f"{n_rows}. Match that table on its own."
            )

    def read_groups(self, sensitive_features: ArrayLike) -> Groups:
        """Return the groups of a table. Raise unless they are the groups that were matched."""
        groups = read_groups(sensitive_features)
        self.check_groups(groups)
        return groups

    def renumbered(self, rows: IndexArray, n_rows: int) -> "Coupling":
        """Return the same pairs as rows of another table: row k here is ``rows[k]`` there."""
        return replace(
            self,
            source_index=rows[self.source_index],
            target_index=rows[self.target_index],
            n_rows=n_rows,
            members=tuple(part.renumbered(rows, n_rows) for part in self.members),
        )

    def check_groups(self, groups: Groups) -> None:
        """Raise unless every part matches rows of its two groups in a table."""
        self.check_rows(len(groups))
        for part in self.parts:
            if not set(part.groups) <= set(groups.labels):
                raise CouplingError(
                    f"This coupling matches {part.groups[0]!r} with {part.groups[1]!r}; the "
                    f"groups given are {listed(groups.labels)}. Match these groups on their own."
                )
            for rows, label in zip(
                (part.source_index, part.target_index), part.groups, strict=True
            ):
                if (groups.codes[rows] != groups.code_of(label)).any():
                    raise CouplingError(
                        "This coupling points at rows of the wrong group: the table is not the "
                        "one that was matched, or its rows are in another order. Match it again."
                    )

    def _blocks(self, width: int) -> list[slice]:
        step = max(1, _BLOCK_VALUES // max(1, width))
        return [slice(start, start + step) for start in range(0, len(self), step)]

    def _differences(self, features: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of pairs, with the differences of their features."""
        for own in self._blocks(features.shape[1]):
            yield own, features[self.source_index[own]] - features[self.target_index[own]]


def check_coupling(coupling: Any, *, optional: bool = True) -> None:
    """Raise unless the argument is a Coupling, or is None and optional."""
    if not (isinstance(coupling, Coupling) or (optional and coupling is None)):
        raise CouplingError(
            f"coupling must be a Coupling, got {coupling!r}. Pass the result of a matcher, such as "
            "OptimalTransportMatcher().match."
        )


def _positions(values: ArrayLike) -> IndexArray:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise CouplingError(
            f"A coupling needs at least one pair, as one-dimensional arrays; got shape "
            f"{array.shape}. Pass one row position per pair."
        )
    if array.dtype.kind not in "iu":
        raise CouplingError(f"Row positions must be integers, got dtype {array.dtype}. Cast them.")
    return array.astype(np.intp, copy=False)


def couple(
    people: People,
    part: Comparison,
    first: IndexArray,
    second: IndexArray,
    mass: FloatArray,
    **facts: Any,
) -> Coupling:
    """Return the coupling of one comparison."""
    for array in (first, second, mass):
        array.flags.writeable = False  # no one else holds them, so the coupling need not copy
    labels = people.groups.labels
    return Coupling(
        *((first, second) if part.source < part.target else (second, first)),
        mass,
        n_rows=len(people),
        groups=(labels[part.source], labels[part.target]),
        label=part.label,
        weight=part.weight,
        stratum=people.stratum(part),
        **facts,
    )


def join_parts(parts: Sequence[Coupling]) -> Coupling:
    """Return the weighted sum of couplings of two groups each, all of the same table.

    Each counts in proportion to its ``weight``. A single part is returned with weight 1.

    Examples
    --------
    >>> a = Coupling([0], [2], [1.0], n_rows=3, groups=("a", "c"), weight=0.5)
    >>> b = Coupling([1], [2], [1.0], n_rows=3, groups=("b", "c"), weight=0.5)
    >>> joined = join_parts([a, b])
    >>> joined.mass.tolist(), joined.gap([0.0, 0.5, 1.0]), joined.largest_gap([0.0, 0.5, 1.0])
    ([0.5, 0.5], 0.75, 1.0)
    """
    if not parts:
        raise CouplingError("There is no part to join, and at least one is needed. Pass couplings.")
    if len(lengths := {part.n_rows for part in parts}) > 1:
        raise CouplingError(
            f"The parts were made for tables of different lengths ({min(lengths)} to "
            f"{max(lengths)} rows), and all must match one table. Match one table in parts."
        )
    total = sum(part.weight for part in parts)
    members = tuple(replace(part, weight=part.weight / total) for part in parts)
    if len(members) == 1:
        return members[0]
    certificates = [part.certificate for part in members]
    labels = dict.fromkeys(label for part in members for label in part.groups)
    mass = np.concatenate([part.weight * part.mass for part in members])
    return Coupling(
        np.concatenate([part.source_index for part in members]),
        np.concatenate([part.target_index for part in members]),
        mass / mass.sum(),
        n_rows=members[0].n_rows,
        groups=tuple(labels),
        certificate=_joined(members) if all(certificates) else None,
        undetermined=sum(part.weight * part.undetermined for part in members),
        marginal_error=max(part.marginal_error for part in members),
        members=members,
    )


def _joined(parts: Sequence[Coupling]) -> Certificate:
    """Return the certificate of a weighted sum, in which costs and bounds add up like the parts."""
    proofs = [(part.weight, part.certificate) for part in parts if part.certificate is not None]
    return Certificate(
        sum(weight * proof.cost for weight, proof in proofs),
        sum(weight * proof.bound for weight, proof in proofs),
        "; ".join(dict.fromkeys(proof.solver for _, proof in proofs)),
    )
