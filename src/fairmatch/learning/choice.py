"""Choosing the fairness weight on held-out rows: the most accurate model within a gap."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import (
    ConstantModelWarning,
    CouplingError,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
)
from fairmatch.learning.base import GroupClassifier, seed_sequence
from fairmatch.learning.path import FairnessPath
from fairmatch.learning.weights import PAPER_WEIGHTS
from fairmatch.matching.coupling import Coupling, IndexArray
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher
from fairmatch.measures import MEASURES
from fairmatch.tables.arrays import FloatArray, read_column
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_number

# Relative duality gap of the coupling that FTM trains on. Training draws from the coupling at
# random, so a thousandth of its cost is lost in the noise; and where the groups are nearly
# identical, more could not be proven in float64 and would be an error.
_TRAINING_TOLERANCE = 1e-3
LABEL_WEIGHT = 100.0


class MatchingClassifier(GroupClassifier):
    """A classifier that matches people first, and may choose its fairness weight itself.

    Subclasses have the parameters ``transport``, ``max_gap``, ``gap_measure``,
    ``fairness_weights``, ``validation_size``, ``refit`` and ``random_state``.
    """

    # Label weights of the ways to match that have a name.
    _transports: ClassVar[dict[str, float]] = {"marginal": 0.0, "joint": LABEL_WEIGHT}

    transport: str | Matcher
    max_gap: float | None
    gap_measure: str
    fairness_weights: Sequence[float] | None
    validation_size: float
    refit: bool
    random_state: Any

    path_: FairnessPath
    validation_curve_: pd.DataFrame

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Match the people, then learn.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,)
            Labels of two classes; the greater one is the positive.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` says where it is in X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, instead of ``transport``. With ``max_gap`` it is an
            error, because part of the rows is held out.

        Returns
        -------
        self
        """
        if self.max_gap is None:
            return super().fit(
                X,
                y,
                sensitive_features=sensitive_features,
                sample_weight=sample_weight,
                coupling=coupling,
            )
        if coupling is not None:
            raise CouplingError(
                "With max_gap part of the rows is held out, so a ready coupling of all the rows "
                "does not fit. Leave one of the two out."
            )
        self._check_choice()
        path, curve = self._search(X, y, sensitive_features, sample_weight)
        chosen = path.models[self._best(curve)]
        if self.refit:
            chosen = clone(chosen).fit(
                X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
            )
        self._adopt(chosen, path_=path, validation_curve_=curve)
        return self

    def _search(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[FairnessPath, pd.DataFrame]:
        """Train a path on part of the rows, and measure it on the rest."""
        _, sensitive = self._features_and_groups(X, sensitive_features)
        split = stratified_split(
            read_column(y, "y"), sensitive, self.validation_size, self.random_state
        )
        given = X, y, sensitive_features, sample_weight
        train: list[Any]
        held_out: list[Any]
        train, held_out = (
            [None if v is None else _safe_indexing(_plain(v), rows) for v in given]
            for rows in split
        )
        weights = (0.0, *PAPER_WEIGHTS) if self.fairness_weights is None else self.fairness_weights
        models = (
            clone(self)
            .set_params(max_gap=None)
            ._fit_path(
                train[0], train[1], weights, sensitive_features=train[2], sample_weight=train[3]
            )
        )
        path = FairnessPath(np.asarray(weights, dtype=np.float64), models)
        curve = path.curve(
            held_out[0],
            held_out[1],
            sensitive_features=held_out[2],
            sample_weight=held_out[3],
            coupling=self._match_held_out(models[0], *held_out),
        )
        return path, curve

    def _best(self, curve: pd.DataFrame) -> int:
        """Position of the most accurate model within the gap, else of the smallest gap."""
        gaps = curve[self.gap_measure].to_numpy()
        if np.isnan(gaps).any():
            raise LabelError(
                f"{self.gap_measure} cannot be measured on the held-out rows: a group has no rows "
                "of one of the classes there. Choose another gap_measure or a larger "
                "validation_size."
            )
        within = gaps <= self.max_gap
        if within.any():
            best = int(np.argmax(np.where(within, curve["accuracy"].to_numpy(), -np.inf)))
            self._warn_if_constant(curve["acceptance_rate"][best])
            return best
        warnings.warn(
            f"No fairness weight reached {self.gap_measure} <= {self.max_gap:g} on the held-out "
            f"rows; the smallest gap reached is {gaps.min():.4g}, at weight "
            f"{curve['fairness_weight'][int(gaps.argmin())]:g}, and that model is kept. Try "
            "larger fairness_weights.",
            GapNotReachedWarning,
            stacklevel=3,
        )
        return int(gaps.argmin())

    def _warn_if_constant(self, acceptance_rate: float) -> None:
        if 0.0 < acceptance_rate < 1.0:
            return
        whom = "everybody" if acceptance_rate else "nobody"
        warnings.warn(
            f"The most accurate model with {self.gap_measure} <= {self.max_gap:g} accepts {whom} "
            "among the held-out rows: it is fair because it decides nothing. Allow a larger "
            "max_gap, or try FTMBoostingClassifier('predicted', warmup=0.5), which reaches small "
            "gaps with models that decide.",
            ConstantModelWarning,
            stacklevel=4,
        )

    def _match_held_out(
        self, model: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> Coupling | None:
        if self.gap_measure != "matched_parity_gap":
            return None
        features, sensitive = self._features_and_groups(X, sensitive_features)
        encoded = model._features(features)
        return self._matcher().match(encoded, sensitive, y, sample_weight=sample_weight)

    def _check_choice(self) -> None:
        if not (isinstance(self.gap_measure, str) and self.gap_measure in MEASURES):
            raise InputError(
                f"gap_measure={self.gap_measure!r} is not a measure; choose one of "
                f"{', '.join(MEASURES)}."
            )
        check_number("max_gap", self.max_gap, "[0, inf]")
        check_number("validation_size", self.validation_size, "(0, 1)")

    def _matcher(self) -> Matcher:
        if not isinstance(self.transport, str):
            if not hasattr(self.transport, "match"):
                raise InputError(
                    f"transport={self.transport!r} is no matcher: it has no match method."
                )
            return self.transport
        if self.transport not in self._transports:
            names = ", ".join(map(repr, self._transports))
            raise InputError(f"transport must be {names} or a matcher, got {self.transport!r}.")
        return OptimalTransportMatcher(
            self._transports[self.transport], tolerance=_TRAINING_TOLERANCE
        )

    def _couple(
        self,
        features: FloatArray,
        labels: FloatArray,
        groups: Groups,
        weights: FloatArray | None,
        coupling: Coupling | None,
    ) -> Coupling:
        """Match encoded training rows, or check the ready coupling."""
        sensitive = np.array(groups.labels, dtype=object)[groups.codes]
        if coupling is None:
            return self._matcher().match(features, sensitive, labels, sample_weight=weights)
        coupling.read_groups(sensitive)
        return coupling


def _plain(values: Any) -> Any:
    """Let lists be indexed like arrays."""
    return np.asarray(values) if isinstance(values, list | tuple) else values


def stratified_split(
    y: Any, sensitive: ArrayLike, held_out: float, random_state: Any
) -> tuple[IndexArray, IndexArray]:
    """Split rows at random, in equal shares within each label and group."""
    groups = read_groups(sensitive, n_rows=len(y))
    _, label = np.unique(y, return_inverse=True)
    generator = np.random.default_rng(seed_sequence(random_state))
    chosen = np.zeros(len(y), dtype=bool)
    for stratum in np.unique(strata := 2 * label + groups.codes):
        rows = generator.permutation(np.flatnonzero(strata == stratum))
        chosen[rows[: round(held_out * len(rows))]] = True
    for code, name in enumerate(groups.labels):
        if len(set(chosen[groups.rows(code)])) < 2:
            raise GroupError(
                f"validation_size={held_out:g} leaves no rows of group {name!r}, which has "
                f"{len(groups.rows(code))}, on one side of the split."
            )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
