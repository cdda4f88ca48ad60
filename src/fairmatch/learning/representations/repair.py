"""Both groups moved to their barycenter by optimal transport."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import InputError
from fairmatch.learning.grouped import TrainingRows
from fairmatch.learning.representations.base import GroupTransformer
from fairmatch.learning.weights import REPAIR_AMOUNTS
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray, read_column, read_weights
from fairmatch.tables.groups import read_groups
from fairmatch.tables.parameters import check_count, check_weights


class TransportRepairTransformer(GroupTransformer):
    r"""Move the people of both groups to where they meet (Gordaliza et al., 2019).

    People are matched by optimal transport on their features. Each is then moved towards the
    mean of those they are matched with: all the way to the groups' Wasserstein barycenter, or
    part of it.

    Parameters
    ----------
    amount : float, default=1.0
        How far: 0 leaves the rows as they are, 1 is full repair.
    tolerance : float, default=1e-3
        Relative duality gap of the matching, as in `OptimalTransportMatcher`.
    n_neighbors : int, default=1
        How many training rows of the same group a new row takes its shift from.
    sensitive_column : str or int, optional
        Column of X that holds the groups.
    encoder : "table", None or a transformer, default="table"
        As in `FTMClassifier`.

    Attributes
    ----------
    groups_ : tuple
        The two groups.
    points_ : tuple of two arrays of shape (n_points, n_features)
        The different training rows of each group, encoded.
    shifts_ : tuple of two arrays of shape (n_points, n_features)
        Where full repair moves each of them.

    Notes
    -----
    With the optimal coupling :math:`\mathbb{Q}` of the groups and their shares
    :math:`\pi_0, \pi_1`, the barycenter of a pair is :math:`\pi_0 x_0 + \pi_1 x_1`. A row takes the
    mean over its partners, the barycentric projection: with amount t

    .. math:: x \mapsto (1 - t)\, x + t\, \bigl(\pi_s x +
              \pi_{s'} E_{\mathbb{Q}}[X_{s'} \mid X_s = x]\bigr).

    Where the groups are equally large and no row occurs twice, partners are one to one, and after
    full repair they coincide. Otherwise mass is split, and means of partners differ from single
    people: the groups' means agree, but a forest still finds traces of the group.

    Out of sample a row moves by the shift of the nearest training row of its group, or by the mean
    shift of the ``n_neighbors`` nearest. Training rows are their own nearest; with more neighbours
    than one they too move by a mean, and what is said above holds nearly.

    The projection to the barycenter is that of Gordaliza et al.; moving part of the way is the
    geometric repair of Feldman et al. (2015), and gives every row the same amount.

    It keeps every different training row, encoded; so does the file that ``save`` writes.

    Examples
    --------
    >>> from fairmatch import TransportRepairTransformer
    >>> X, groups = [[0.0], [1.0], [4.0], [7.0]], [0, 0, 1, 1]
    >>> TransportRepairTransformer(encoder=None).fit_transform(
    ...     X, sensitive_features=groups).ravel().tolist()
    [2.0, 4.0, 2.0, 4.0]
    """

    default_weights: ClassVar[tuple[float, ...]] = REPAIR_AMOUNTS
    _weight_name: ClassVar[str] = "amount"
    sensitive_at_prediction = True
    _may_lack_groups = False

    def __init__(
        self,
        amount: float = 1.0,
        *,
        tolerance: float = 1e-3,
        n_neighbors: int = 1,
        sensitive_column: str | int | None = None,
        encoder: Any = "table",
    ) -> None:
        self.amount = amount
        self.tolerance = tolerance
        self.n_neighbors = n_neighbors
        self.sensitive_column = sensitive_column
        self.encoder = encoder

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns of the output: those of the encoder, which repair only moves."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            names: NDArray[np.object_] = self.encoder_.get_feature_names_out()
            return names
        n_columns = self.points_[0].shape[1]
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None:
            kept = np.array([name for name in seen if name != self.sensitive_column], dtype=object)
            if len(kept) == n_columns:
                return kept
        return np.array([f"x{index}" for index in range(n_columns)], dtype=object)

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike | None,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Repair by every amount; people are matched once."""
        template: Self = clone(self)
        template._check_parameters(fairness_weights)
        check_coupling(coupling)
        rows = template._read_rows(X, sensitive_features, sample_weight)
        if y is not None and (n_labels := len(read_column(y, "y"))) != len(rows.groups):
            raise InputError(f"y has {n_labels} samples, X has {len(rows.groups)}.")
        features = template._fit_encoder(rows)
        if coupling is None:
            matcher = OptimalTransportMatcher(tolerance=self.tolerance)
            coupling = matcher.match(features, rows.groups.codes, sample_weight=rows.weights)
        else:
            coupling.read_groups(np.array(rows.groups.labels, dtype=object)[rows.groups.codes])
            coupling = coupling if coupling.groups == rows.groups.labels else coupling.inverse
        template._remember_shifts(features, rows, coupling)
        return [self._fitted(amount, template) for amount in fairness_weights]

    def _read_rows(
        self, X: Any, sensitive_features: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        features, sensitive = self._features_and_groups(X, sensitive_features, "fit")
        self._remember_columns(X)
        groups = read_groups(sensitive)
        self.groups_ = groups.labels
        weights = read_weights(sample_weight, n_rows=len(groups))
        rows_with_mass(groups, weights)
        # Labels have no part in it.
        return TrainingRows(features, np.zeros(len(groups)), groups, weights)

    def _remember_shifts(
        self, features: FloatArray, rows: TrainingRows, coupling: Coupling
    ) -> None:
        pairs = np.flatnonzero(coupling.mass > 0.0)
        source, target = coupling.source_index[pairs], coupling.target_index[pairs]
        points, shifts = [], []
        for code, (own, partners) in enumerate(((source, target), (target, source))):
            # Rows that are alike move alike: a map is a function of the point.
            unique, point = np.unique(features[own], axis=0, return_inverse=True)
            mass = sparse.csr_array(
                (coupling.mass[pairs], (point.ravel(), partners)),
                shape=(len(unique), len(features)),
            )
            total = np.asarray(mass.sum(axis=1), dtype=np.float64)
            partner_sum = np.asarray(mass @ features, dtype=np.float64)
            points.append(unique)
            shifts.append(rows.shares[1 - code] * (partner_sum / total[:, None] - unique))
        self.points_, self.shifts_ = tuple(points), tuple(shifts)

    def _represent(self, features: FloatArray, codes: FloatArray | None) -> FloatArray:
        return features + self.amount * self._shift(features, codes)

    @staticmethod
    def _represent_path(
        path: Sequence[Any], features: FloatArray, codes: FloatArray | None
    ) -> FloatArray:
        """Look the neighbours up once for all amounts."""
        shift = path[0]._shift(features, codes)
        return np.stack([features + one.amount * shift for one in path])

    def _shift(self, features: FloatArray, codes: FloatArray | None) -> FloatArray:
        """Find where full repair moves rows, by those of the training rows that are nearest."""
        assert codes is not None
        shift = np.empty_like(features)
        for code, (points, shifts) in enumerate(zip(self.points_, self.shifts_, strict=True)):
            own = np.flatnonzero(codes == code)
            if len(own):
                n_neighbors = min(self.n_neighbors, len(points))
                # Distances are taken from squares: far from the origin they would be rounded off.
                centre = points.mean(axis=0)
                search = NearestNeighbors(n_neighbors=n_neighbors).fit(points - centre)
                nearest = search.kneighbors(features[own] - centre, return_distance=False)
                shift[own] = shifts[nearest].mean(axis=1)
        return shift

    def _check_parameters(self, amounts: Sequence[float]) -> None:
        check_weights("amount", amounts, "[0, 1]")
        check_count("n_neighbors", self.n_neighbors)
