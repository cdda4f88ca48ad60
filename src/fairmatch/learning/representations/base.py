"""The base class of fair representations, with the interface of scikit-learn's transformers.

This module learns nothing itself and does not need torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import CouplingError, InputError, LabelError
from fairmatch.learning.base import FairEstimator
from fairmatch.learning.groupsizes import DecidedSizes, GroupSizes
from fairmatch.learning.reader import check_lengths
from fairmatch.learning.rows import TrainingRows, take_rows
from fairmatch.learning.saving import State
from fairmatch.learning.state import reader_facts, restore_reader
from fairmatch.learning.targets import Target, TwoClasses
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray, read_column, read_features, read_weights
from fairmatch.tables.parameters import check_weights


class Representer(Protocol):
    """A learned representation of rows."""

    n_outputs: int

    def represent(self, encoded: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the representation of encoded rows; codes are None if groups are not used."""

    def attributes(self) -> dict[str, Any]:
        """Return the learned attributes that the transformer shows."""

    def state(self) -> State:
        """Return the state to save."""


@dataclass(frozen=True)
class RepresentationFamily:
    """How a kind of representation is learned, checked and restored from a file.

    Attributes
    ----------
    learner : callable
        Returns the learner of a transformer. Its ``fit_path(rows, loss, compare, weights)`` returns
        representers, and ``compare`` returns the ready coupling of rows, or None.
    representer : callable
        Maps ``(transformer, content, facts, n_encoded)`` to a representer; raises an error if the
        file is damaged.
    check : callable
        Raises an error if a parameter of a transformer is wrong.
    rebuilds : bool
        Whether representers can rebuild rows.
    sees : str
        What the learner sees of a table, always "numbers": encoded features, and columns of 0 and
        1 for the group.
    encoder : None
        Always None: the transformers have an ``encoder`` parameter.
    """

    learner: Callable[[Any], Any]
    representer: Callable[[Any, bytes, dict[str, Any], int], Any]
    check: Callable[[Any], None]
    rebuilds: bool = False
    sees: str = "numbers"
    encoder: None = None


def _rebuilds(model: Any) -> bool:
    return bool(model._family.rebuilds)


class FairTransformer(TransformerMixin, FairEstimator):  # type: ignore[misc]
    """A representation of rows of two groups.

    A subclass names the parameter that is its weight (`_weight_name`) and what learns (`_family`).
    """

    __metadata_request__transform: ClassVar = {"sensitive_features": True}
    __metadata_request__inverse_transform: ClassVar = {"sensitive_features": True}
    # The parameter that is the weight, and the interval that it lies in.
    _weight_name: ClassVar[str] = "fairness_weight"
    _weight_range: ClassVar[str] = "[0, inf)"
    # Whether the representation is learned with labels.
    _needs_labels: ClassVar[bool] = True
    _target: ClassVar[Target] = TwoClasses()
    _family: ClassVar["RepresentationFamily"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_labels
        return tags

    @property
    def _n_features_out(self) -> int:
        n_outputs: int = self.representer_.n_outputs
        return n_outputs

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn a representation of a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,), optional
            Labels of two classes, for representations that are learned with labels.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` names a column of X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for representations that match.

        Returns
        -------
        self
            The fitted transformer.
        """
        return super().fit(
            X,
            y,  # type: ignore[arg-type]  # some representations need no labels
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )

    def _sizes(self) -> DecidedSizes:
        return DecidedSizes()

    def _learner(self) -> Any:
        return self._family.learner(self)

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> Coupling | None:
        return coupling

    def transform(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Return the representation of rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless it is a column of X or the representation does not need it.

        Returns
        -------
        array of shape (n_rows, n_out)
            The representation, without a column for the groups.
        """
        features, codes = self._read_new(X, sensitive_features, "transform")
        encoded = self.reader_.encode(features)
        check_lengths(encoded, codes)
        represented: FloatArray = self.representer_.represent(encoded, codes)
        return represented

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> FloatArray:
        """Learn a representation of a table, and return the representation of its rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,), optional
            Labels of two classes, for representations that are learned with labels.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` names a column of X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for representations that match.

        Returns
        -------
        array of shape (n_rows, n_out)
            The representation of the rows.
        """
        self.fit(
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )
        return self.transform(X, sensitive_features=sensitive_features)

    @available_if(_rebuilds)  # type: ignore[untyped-decorator]
    def inverse_transform(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> FloatArray:
        """Return encoded rows, rebuilt from their representation.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
            The representation that `transform` returned.
        sensitive_features : array-like of shape (n_rows,)
            Group of every row. It is needed because the representation hides it.

        Returns
        -------
        array of shape (n_rows, n_features)
            An approximation of the encoded features.
        """
        check_is_fitted(self)
        if sensitive_features is None:
            raise InputError(
                f"{type(self).__name__}.inverse_transform needs the group of every row, and got "
                "none. Pass sensitive_features=."
            )
        codes = self.reader_.codes(read_column(sensitive_features, "sensitive_features"))
        latents = read_features(X)
        if latents.shape[1] != self._n_features_out:
            raise InputError(
                f"X has {latents.shape[1]} columns; a representation has {self._n_features_out}. "
                "Pass what transform returned."
            )
        rebuilt: FloatArray = self.representer_.rebuild(latents, codes)
        return rebuilt

    def _read_training(
        self,
        X: Any,
        y: ArrayLike | None,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
        sizes: GroupSizes | DecidedSizes,
        *,
        coupled: bool = False,
    ) -> tuple[TrainingRows, dict[str, Any]]:
        who, reader = type(self).__name__, self._reader()
        known: dict[str, Any] = {}
        if self._needs_labels and y is None:
            raise LabelError(
                f"{who} requires y to be passed, but the target y is None. The representation is "
                "learned with labels, to predict them from it. Pass a label for every row of X."
            )
        # A missing group is the first error to raise about the groups.
        _, sensitive = reader.split(X, sensitive_features)
        labels = None
        if self._needs_labels and y is not None:
            labels, known = self._target.read(y, sample_weight)
        features, groups, _ = reader.read_training(X, sensitive_features, sizes)
        groups.only_two(who)
        n_labels = len(groups) if y is None else len(read_column(y, "y"))
        if n_labels != len(groups):
            raise InputError(
                f"y has {n_labels} samples, X has {len(groups)}. Pass one label for every row."
            )
        weights = read_weights(sample_weight, n_rows=len(groups))
        rows_with_mass(groups, weights)
        labels = np.zeros(len(groups)) if labels is None else labels
        if weights is not None and not weights.all() and not coupled:
            kept = np.flatnonzero(weights)
            features, sensitive = take_rows(features, kept), take_rows(sensitive, kept)
            labels, groups, weights = labels[kept], groups.take(kept), weights[kept]
        points = reader.fit_encoder(features, len(groups))
        reader.refuse_leaks(features, sensitive, points)
        codes = groups.codes if reader.at_prediction else None
        inputs = reader.inputs(features, codes, points)
        rows = TrainingRows(labels, groups, weights, points, inputs)
        return rows, {**reader.attributes(), **known}

    def _check_parameters(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        check_weights(self._weight_name, weights, self._weight_range)
        self._family.check(self)
        if coupling is not None and not self._matches:
            raise CouplingError(
                f"A coupling was given, and {type(self).__name__} does not match people. Leave "
                "coupling out."
            )

    def _get_state(self) -> State:
        state: State = self.representer_.state()
        known = {
            **(self._target.facts(self) if self._needs_labels else {"classes": None}),
            "fairness_weight": float(self.fairness_weight) if self._needs_labels else None,
            **reader_facts(self.reader_),
        }
        return replace(state, facts={**known, **state.facts})

    def _set_state(self, content: bytes, facts: dict[str, Any]) -> None:
        self._check_parameters([getattr(self, self._weight_name)], None)
        reader = self._reader()
        restore_reader(reader, facts)
        known = self._target.known(facts) if self._needs_labels else {}
        representer = self._family.representer(self, content, facts, reader.n_encoded)
        self._adopt({**reader.attributes(), **known, **representer.attributes()})
