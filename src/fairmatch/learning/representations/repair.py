"""Repair: both groups are moved to their barycenter by optimal transport."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import ModelFileError
from fairmatch.learning.arrayfiles import FILE, read_arrays, write_arrays
from fairmatch.learning.columns import Columns, as_list
from fairmatch.learning.loss import Loss
from fairmatch.learning.reader import EncoderSettings, TableReader
from fairmatch.learning.representations.base import FairTransformer, RepresentationFamily
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.saving import State
from fairmatch.learning.settings import estimator
from fairmatch.learning.weights import REPAIR_AMOUNTS
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.samples import match_parts
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.parameters import check_count, check_number

Sides = tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class RepairRepresenter:
    """Training rows of each group, and the shifts that full repair gives them.

    Attributes
    ----------
    points, shifts : tuple of two arrays of shape (n_points, n_features)
        The distinct training rows of each group, and their shifts.
    amount : float
        Share of the shift that rows are moved by.
    n_neighbors : int
        How many training rows a new row takes its shift from.
    """

    points: Sides
    shifts: Sides
    amount: float
    n_neighbors: int

    @property
    def n_outputs(self) -> int:
        """How many numbers represent a row."""
        return int(self.points[0].shape[1])

    def represent(self, encoded: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the moved rows."""
        return encoded + self.amount * self.shift(encoded, codes)

    @staticmethod
    def represent_path(
        members: Sequence["RepairRepresenter"], encoded: FloatArray, codes: NDArray[Any] | None
    ) -> FloatArray:
        """Return the rows moved by every amount; the first axis is the members."""
        shift = members[0].shift(encoded, codes)
        return np.stack([encoded + one.amount * shift for one in members])

    def shift(self, features: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the shifts of rows under full repair, from the nearest training rows."""
        assert codes is not None
        shift = np.empty_like(features)
        for code, (points, shifts) in enumerate(zip(self.points, self.shifts, strict=True)):
            own = np.flatnonzero(codes == code)
            if len(own):
                n_neighbors = min(self.n_neighbors, len(points))
                # The search expands squared distances, which loses precision far from the origin.
                centre = points.mean(axis=0)
                search = NearestNeighbors(n_neighbors=n_neighbors).fit(points - centre)
                nearest = search.kneighbors(features[own] - centre, return_distance=False)
                shift[own] = shifts[nearest].mean(axis=1)
        return shift

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the transformer shows."""
        return {"representer_": self, "points_": self.points, "shifts_": self.shifts}

    def state(self) -> State:
        """Return the state to save: the points and their shifts."""
        parts = {"points": self.points, "shifts": self.shifts}
        arrays = {f"{name}.{code}": v[code] for name, v in parts.items() for code in (0, 1)}
        return State(FILE, write_arrays(arrays), {})


class RepairLearner:
    """A learner that matches people once and moves them by every amount.

    Parameters
    ----------
    tolerance : float
        Largest relative duality gap of the matching.
    n_neighbors : int
        How many training rows a new row takes its shift from.
    """

    def __init__(self, tolerance: float, n_neighbors: int) -> None:
        self.tolerance, self.n_neighbors = tolerance, n_neighbors

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Coupling | None],
        weights: Sequence[float],
    ) -> list[RepairRepresenter]:
        """Return one representer per amount."""
        coupling = compare(rows)
        if coupling is None:
            matcher = OptimalTransportMatcher(tolerance=self.tolerance)
            coupling = match_parts(matcher, rows.points, rows.groups, weights=rows.weights)
        else:
            check_coupling(coupling)
            coupling.check_groups(rows.groups)
        if rows.groups.code_of(coupling.groups[0]) > rows.groups.code_of(coupling.groups[1]):
            coupling = coupling.inverse
        points, shifts = _shifts(rows, coupling)
        full = RepairRepresenter(points, shifts, 1.0, self.n_neighbors)
        return [replace(full, amount=amount) for amount in weights]


def _shifts(rows: TrainingRows, coupling: Coupling) -> tuple[Sides, Sides]:
    """Return the distinct rows of each group, and the shifts that the coupling gives them."""
    features = rows.encoded
    sizes = rows.groups.sizes(rows.weights)
    shares = sizes / sizes.sum()
    pairs = np.flatnonzero(coupling.mass > 0.0)
    source, target = coupling.source_index[pairs], coupling.target_index[pairs]
    points, shifts = [], []
    for code, (own, partners) in enumerate(((source, target), (target, source))):
        # Identical rows must move alike, because a map is a function of the point.
        unique, point = np.unique(features[own], axis=0, return_inverse=True)
        mass = sparse.csr_array(
            (coupling.mass[pairs], (point.ravel(), partners)),
            shape=(len(unique), len(features)),
        )
        total = np.asarray(mass.sum(axis=1), dtype=np.float64)
        partner_sum = np.asarray(mass @ features, dtype=np.float64)
        points.append(unique)
        shifts.append(shares[1 - code] * (partner_sum / total[:, None] - unique))
    return tuple(points), tuple(shifts)


def _learner(model: Any) -> RepairLearner:
    return RepairLearner(model.tolerance, model.n_neighbors)


def _restored(
    model: Any, content: bytes, facts: dict[str, Any], n_encoded: int
) -> RepairRepresenter:
    arrays = read_arrays(content)
    sides = [[arrays[f"{name}.{code}"] for code in (0, 1)] for name in ("points", "shifts")]
    for points, shifts in zip(*sides, strict=True):
        if points.ndim != 2 or not len(points) or points.shape[1] != n_encoded:
            raise ModelFileError(
                "The file is damaged: the points must be rows of the encoded table, with "
                f"{n_encoded} columns."
            )
        if points.shape != shifts.shape:
            raise ModelFileError("The file is damaged: there must be one shift for every point.")
    return RepairRepresenter(
        tuple(sides[0]), tuple(sides[1]), float(model.amount), model.n_neighbors
    )


def _check(model: Any) -> None:
    check_count("n_neighbors", model.n_neighbors)
    check_number("tolerance", model.tolerance, "(0, 1)")


@estimator(EncoderSettings)
class TransportRepairTransformer(FairTransformer):
    r"""Both groups, moved to their common barycenter (Gordaliza et al., 2019).

    People are matched by optimal transport on their features. Every row then moves towards the
    mean of its matches, all or part of the way to the groups' Wasserstein barycenter.

    Parameters
    ----------
    amount : float, default=1.0
        Share of the way that rows move: 0 leaves them as they are, and 1 is full repair.
    tolerance : float, default=1e-3
        Largest relative duality gap of the matching. It must be proven.
    n_neighbors : int, default=1
        How many training rows of the same group a new row takes its shift from.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. The representation does not contain
        it.

    Attributes
    ----------
    groups_ : tuple
        Labels of the two groups.
    points_ : tuple of two arrays of shape (n_points, n_features)
        The distinct training rows of each group, encoded.
    shifts_ : tuple of two arrays of shape (n_points, n_features)
        The shift of each of these rows under full repair.

    Notes
    -----
    With the optimal coupling :math:`\mathbb{Q}` of the groups and their shares
    :math:`\pi_0, \pi_1`, the barycenter of a pair is :math:`\pi_0 x_0 + \pi_1 x_1`. A row moves to
    the mean of the barycenters with its partners, the barycentric projection. With amount t this is

    .. math:: x \mapsto (1 - t)\, x + t\, \bigl(\pi_s x +
              \pi_{s'} E_{\mathbb{Q}}[X_{s'} \mid X_s = x]\bigr).

    If the groups have the same size and no row occurs twice, partners are one to one, and full
    repair makes them coincide. Otherwise rows have several partners, whose mean differs from each
    single partner. The groups' means then agree, but a forest still finds traces of the group.

    A new row moves by the shift of the nearest training row of its group, or by the mean shift of
    the ``n_neighbors`` nearest. A training row is its own nearest neighbour. With more than one
    neighbour it also moves by a mean shift, and the statements above hold only approximately.

    The projection to the barycenter is that of Gordaliza et al. Moving part of the way is the
    geometric repair of Feldman et al. (2015), with the same amount for every row.

    The transformer keeps every distinct training row in its encoded form, and so does the file that
    ``save`` writes.

    Examples
    --------
    >>> from fairmatch import TransportRepairTransformer
    >>> X, groups = [[0.0], [1.0], [4.0], [7.0]], [0, 0, 1, 1]
    >>> TransportRepairTransformer(encoder=None).fit_transform(
    ...     X, sensitive_features=groups).ravel().tolist()
    [2.0, 4.0, 2.0, 4.0]
    """

    amount: float = 1.0
    _: KW_ONLY
    tolerance: float = 1e-3
    n_neighbors: int = 1
    sensitive_column: Columns = None

    _curve_weights: ClassVar[tuple[float, ...]] = REPAIR_AMOUNTS
    _weight_name: ClassVar[str] = "amount"
    _weight_range: ClassVar[str] = "[0, 1]"
    _needs_labels: ClassVar[bool] = False
    _matches: ClassVar[bool] = True
    _family: ClassVar[RepresentationFamily] = RepresentationFamily(_learner, _restored, _check)
    _state_file: ClassVar[str] = FILE

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the output columns, which are those of the encoder.

        Parameters
        ----------
        input_features : object, optional
            Not used; it exists for scikit-learn's interface.

        Returns
        -------
        array of str
            One name per column.
        """
        check_is_fitted(self)
        if self.encoder_ is not None:
            names: NDArray[np.object_] = self.encoder_.get_feature_names_out()
            return names
        n_columns = self.representer_.n_outputs
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None:
            kept = np.array(
                [name for name in seen if name not in as_list(self.sensitive_column)], dtype=object
            )
            if len(kept) == n_columns:
                return kept
        return np.array([f"x{index}" for index in range(n_columns)], dtype=object)

    def _reader(self) -> TableReader:
        # The shift of a row depends on its group, so new rows need their groups.
        return TableReader(
            type(self).__name__, self.sensitive_column, True, self.encoder, optional=False
        )
