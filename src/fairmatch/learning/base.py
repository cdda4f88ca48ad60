"""The base class of every estimator: its scikit-learn interface, and the parts that do the work."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.columns import table_width
from fairmatch.learning.comparison import Comparison, Transport
from fairmatch.learning.groupsizes import DecidedSizes, GroupSizes
from fairmatch.learning.reader import GroupSettings, TableReader
from fairmatch.learning.routing import refuse_lost_groups
from fairmatch.learning.rows import TrainingRows, check_same_rows, take_rows
from fairmatch.learning.saving import State, save_model
from fairmatch.learning.site import page_of
from fairmatch.learning.state import reader_facts, restore_reader, weight_from
from fairmatch.learning.targets import Target
from fairmatch.learning.weights import PAPER_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray, read_weights
from fairmatch.tables.criterion import read_criterion
from fairmatch.tables.parameters import check_weights


class FairEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that knows the groups of its rows.

    A constructor only stores its parameters. A few parts hold what `fit` learns, and the estimator
    shows their public facts as attributes: ``reader_`` reads tables as in training, and
    ``scorer_`` scores what the reader has read. A subclass names what is predicted (`_target`),
    what learns it (`_family`) and what is added to the loss (`_compare`).
    """

    # Requested by default: meta-estimators then pass the groups on where routing is enabled.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}

    # Name of the parameter that trades fairness for accuracy, if there is one.
    _weight_name: ClassVar[str | None] = "fairness_weight"
    # The advice if `save` cannot write the model. None if it can, into `_state_file`.
    _save_instead: ClassVar[str | None] = None
    _state_file: ClassVar[str]
    # Fairness weights of a whole curve.
    _curve_weights: ClassVar[tuple[float, ...]] = PAPER_WEIGHTS
    # Weights that ``max_gap`` chooses from, where they differ from those of the curve.
    _choice_weights: ClassVar[tuple[float, ...] | None] = None
    # Whether weight 0 stands for a model without a penalty.
    _zero_is_plain: ClassVar[bool] = True
    # What is predicted, how a model of a path is chosen, what learns, and whether people are
    # matched.
    _target: ClassVar[Target]
    _choice: ClassVar[type[GapChoice]] = GapChoice
    _family: ClassVar[Any]
    _matches: ClassVar[bool] = False

    reader_: TableReader

    if TYPE_CHECKING:  # the parameters come from the parts, which declare their types

        def __getattr__(self, name: str) -> Any: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        encoder = self._encoder()
        tags.input_tags.allow_nan = getattr(encoder, "missing", None) == "encode"
        return tags

    def _get_doc_link(self) -> str:
        """Return the address that scikit-learn's diagram of the estimator links to."""
        return page_of(type(self))

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder, without pickling; `fairmatch.load` reads it back.

        The models that ``max_gap`` did not choose are left out: a loaded model has no ``path_``
        and no ``validation_curve_``.

        Parameters
        ----------
        path : str or Path
            The folder. It must be new, empty, or hold a saved model, which is then replaced.

        Returns
        -------
        Path
            The folder.
        """
        return save_model(self, path)

    def _encoder(self) -> Any:
        """Return the encoder, which turns X into numbers."""
        made = self._family.encoder
        return self.encoder if made is None else made()

    def _reader(self) -> TableReader:
        """Return a reader that has seen no table yet."""
        groups = GroupSettings.of(self)
        return TableReader(
            type(self).__name__,
            groups.sensitive_column,
            groups.sensitive_at_prediction,
            self._encoder(),
            self._family.sees,
            keep=groups.keep,
        )

    def _fitted(self, weight: float, **known: Any) -> Self:
        """Return a copy with this weight and with these learned attributes."""
        model: Self = clone(self)
        model._set_weight(weight)
        model._adopt(known)
        return model

    def _set_weight(self, weight: float) -> None:
        # An equal weight keeps the type that it was given with, which may be int.
        if self._weight_name is not None and weight != getattr(self, self._weight_name):
            self.set_params(**{self._weight_name: float(weight)})

    def _adopt(self, known: dict[str, Any]) -> None:
        """Take over learned attributes, and delete those that were learned before."""
        for name in learned(self):
            delattr(self, name)
        self.__dict__.update(known)

    def _read_new(
        self, X: Any, sensitive_features: ArrayLike | None, where: str = "predict"
    ) -> tuple[Any, NDArray[Any] | None]:
        """Return the features and the group codes of new rows, read as in training."""
        check_is_fitted(self)
        # Compare the column names with those in fit, as scikit-learn does. Encoders do so too.
        if self.reader_.encoder_ is None and table_width(X) == self.reader_.n_features_in_:
            validate_data(self, X, skip_check_array=True, reset=False)
        return self.reader_.read_new(X, sensitive_features, where)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,)
            For classifiers, labels of two classes; the greater one is positive. For regressors,
            the numbers to predict.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row. Leave it out where ``sensitive_column`` names a column of X. The
            combinations of several attributes are the groups.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for methods that match. With ``max_gap`` it is an
            error, because part of the rows is held out.

        Returns
        -------
        self
            The fitted estimator.
        """
        if sensitive_features is not None and self._reader().at_prediction:
            refuse_lost_groups(type(self).__name__)
        given: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
        }
        choice = self._choice.of(self) if hasattr(self, "max_gap") else None
        if choice is None or choice.max_gap is None:
            (model,) = self._fit_path(X, y, [self._weight], coupling=coupling, **given)
            self._adopt(learned(model))
            return self
        if coupling is not None:
            raise CouplingError(
                "With max_gap, part of the rows is held out, so a ready coupling of all the rows "
                "does not fit. Leave one of the two out."
            )
        chosen, path, curve = choice.search(self, X, y, **given)
        self._adopt({**learned(chosen), "path_": path, "validation_curve_": curve})
        return self

    @property
    def default_weights(self) -> tuple[float, ...]:
        """Fairness weights of a whole curve."""
        return self._curve_weights

    @property
    def _weight(self) -> Any:
        """The fairness weight as the parameter holds it."""
        return 0.0 if self._weight_name is None else getattr(self, self._weight_name)

    @property
    def _gap_measure(self) -> str:
        """The gap of decisions that belongs to the criterion."""
        criterion = getattr(self, "criterion", "demographic_parity")
        return read_criterion(criterion).gap_measure

    def _sizes(self) -> GroupSizes | DecidedSizes:
        return GroupSizes.of(self) if hasattr(self, "min_group_size") else GroupSizes()

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
        sizes: GroupSizes | DecidedSizes | None = None,
    ) -> list[Self]:
        """Return one fitted estimator per weight. They share reading, encoding and matching."""
        template: Self = clone(self)
        template._check_parameters(fairness_weights, coupling)
        sizes = template._sizes() if sizes is None else sizes
        rows, known = template._read_training(
            X, y, sensitive_features, sample_weight, sizes, coupled=coupling is not None
        )
        template._adopt(known)
        scorers = template._learner().fit_path(
            rows,
            self._target.loss,
            lambda part: template._compare(part, coupling),
            fairness_weights,
        )
        return [
            self._fitted(weight, **known, **scorer.attributes(), fairness_weight_=float(weight))
            for weight, scorer in zip(fairness_weights, scorers, strict=True)
        ]

    def _learner(self) -> Any:
        """Return the learner."""
        return self._family.learner(self._family.settings.of(self), self.reader_)

    def _transport(self) -> Transport:
        """Return how people are matched, for methods that match."""
        raise NotImplementedError

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> Any:
        """Return the penalty on these rows, which knows whom it compares."""
        return self._transport().penalty(rows, coupling)

    def _match_held_out(self, rows: TrainingRows) -> Coupling:
        """Return a matching of held-out rows, for the matched gap."""
        if not self._matches:
            raise InputError(
                f"{type(self).__name__} matches nobody, so matched_parity_gap cannot be its "
                "gap_measure. Choose another gap_measure."
            )
        return self._transport().match(rows)

    def _read_training(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
        sizes: GroupSizes | DecidedSizes,
        *,
        coupled: bool = False,
    ) -> tuple[TrainingRows, dict[str, Any]]:
        """Return the rows to learn from, and the attributes that describe the table.

        Rows without weight are dropped, except with a ready coupling: it points at rows by
        position.
        """
        reader = self._reader()
        # The first error to raise is that no groups were given.
        _, sensitive = reader.split(X, sensitive_features)
        labels, learned_target = self._target.read(y, sample_weight)
        features, groups, ignored = reader.read_training(X, sensitive_features, sizes)
        check_same_rows(len(labels), len(groups))
        weights = read_weights(sample_weight, n_rows=len(labels))
        rows_with_mass(groups, weights)
        if weights is not None and not weights.all() and not coupled:
            # Rows without weight must not influence ranges, bins or folds.
            kept = np.flatnonzero(weights)
            features, sensitive = take_rows(features, kept), take_rows(sensitive, kept)
            labels, groups, weights = labels[kept], groups.take(kept), weights[kept]
        points = reader.fit_encoder(features, len(labels))
        reader.refuse_leaks(features, sensitive, points)
        codes = groups.codes if reader.at_prediction else None
        inputs = reader.inputs(features, codes, points)
        rows = TrainingRows(labels, groups, weights, points, inputs, ignored)
        return rows, {**reader.attributes(), **learned_target}

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        """Raise an error that names the first parameter of a wrong type or size."""
        name = self._weight_name
        if name is None and np.any(fairness_weights):
            raise InputError(
                f"{type(self).__name__} has no fairness weight, so it has no path. Pass another "
                "estimator to fairness_path."
            )
        check_weights(name or "fairness_weight", fairness_weights, "[0, inf)")
        self._family.settings.of(self)
        if hasattr(self, "criterion"):
            Comparison.of(self)
        if self._matches:
            self._transport().check(coupling)
        else:
            self._refuse_coupling(coupling)

    def _refuse_coupling(self, coupling: Coupling | None) -> None:
        if coupling is not None:
            raise CouplingError(
                f"A coupling was given, and {type(self).__name__} does not match people. Leave "
                "coupling out."
            )

    def _get_state(self) -> State:
        """Return the state to save: what was learned, as bytes and plain values."""
        state: State = self.scorer_.state()
        known = {
            **self._target.facts(self),
            "fairness_weight": float(self.fairness_weight_),
            **reader_facts(self.reader_),
        }
        return replace(state, facts={**known, **state.facts})

    def _set_state(self, content: bytes, facts: dict[str, Any]) -> None:
        """Restore what was saved; raise an error if it is damaged."""
        reader, weight = self._reader(), weight_from(facts["fairness_weight"])
        self._check_parameters([weight, self._weight] if self._weight_name else [0.0], None)
        restore_reader(reader, facts)
        target = self._target.known(facts)
        scorer = self._family.scorer.from_state(content, facts, reader, self)
        known = {**reader.attributes(), **target, "fairness_weight_": weight}
        self._adopt({**known, **scorer.attributes()})

    def _inputs(self, X: Any, sensitive_features: ArrayLike | None) -> Any:
        """Return what the learner sees of new rows; all models of one reader see the same."""
        read = self._read_new(X, sensitive_features)
        return self.reader_.inputs(*read)

    def _scores(self, inputs: Any) -> FloatArray:
        """Return the scores of rows that `_inputs` has read."""
        scores: FloatArray = self.scorer_.scores(inputs)
        return scores


def learned(model: FairEstimator) -> dict[str, Any]:
    """Return the learned attributes of an estimator: those that end with an underscore."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}
