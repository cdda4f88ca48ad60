"""The base classes of every estimator."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairmatch.exceptions import CouplingError, InputError, LabelError, ModelFileError
from fairmatch.learning.choice import GapChoice, RealGapChoice, measured
from fairmatch.learning.penalties import Comparison, Transport
from fairmatch.learning.reading import (
    DecidedSizes,
    GroupSettings,
    GroupSizes,
    TableReader,
    TrainingRows,
    check_same_rows,
    classes_from,
    reader_facts,
    restore_reader,
    table_width,
    take_rows,
    weight_from,
)
from fairmatch.learning.saving import State, plain_label, save_model
from fairmatch.learning.settings import PAPER_WEIGHTS, REGRESSION_WEIGHTS, Settings
from fairmatch.matching.coupling import Coupling, rows_with_mass
from fairmatch.measures.distributions import Settings as MeasureSettings
from fairmatch.measures.gaps import read_scored
from fairmatch.measures.registry import gap_values
from fairmatch.people.checks import (
    FloatArray,
    check_weights,
    read_column,
    read_labels,
    read_numbers,
    read_weights,
)
from fairmatch.people.groups import read_criterion
from fairmatch.people.outcome import LOGISTIC, NUMBER, SQUARED, Loss


class Scorer(Protocol):
    """A learned model that scores rows."""

    FILE: ClassVar[str]

    def scores(self, inputs: Any) -> FloatArray:
        """Return the score of every row that a reader has read."""

    def attributes(self) -> dict[str, Any]:
        """Return the learned attributes that the estimator shows."""

    def state(self) -> State:
        """Return the state to save."""

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> Self:
        """Return the scorer of a saved state; raise an error if it is damaged."""


class Learner(Protocol):
    """A learner, which fits a path of scorers."""

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> Sequence[Scorer]:
        """Return one scorer per weight; ``compare`` returns the penalty on given rows."""


@dataclass(frozen=True)
class Family:
    """A family of learners.

    Attributes
    ----------
    sees : {"numbers", "codes", "table"}
        What the learner sees of a table: numbers, with categories as one-hot columns; one column
        of numbers or category codes per column of the table; or the table as it is.
    settings : type of Settings
        The parameters of the learner.
    learner : callable
        Returns the learner for settings and for a reader that has seen the training table.
    scorer : type of Scorer
        The class that restores a saved model.
    encoder : callable, optional
        Returns the encoder, for estimators without an ``encoder`` parameter.
    """

    sees: str
    settings: type[Settings]
    learner: Callable[[Any, TableReader], Any]
    scorer: type[Any]
    encoder: Callable[[], Any] | None = None


# The site as `make docs` builds it in a clone.
_BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"


def page_of(estimator: type) -> str:
    """Return the address of an estimator's page, or "" if there is no site.

    Parameters
    ----------
    estimator : class
        An estimator of fairmatch.

    Returns
    -------
    str
        The page on the site that the environment variable ``FAIRMATCH_DOCS`` names, which is an
        address or a folder. Without the variable, it is the page of the site that was built in
        this clone. If there is no such page, it is "".

    Examples
    --------
    >>> class Own: ...
    >>> page_of(Own)
    ''
    """
    if not estimator.__module__.startswith("fairmatch."):
        return ""
    name = f"reference/generated/fairmatch.{estimator.__name__}.html"
    given = os.environ.get("FAIRMATCH_DOCS", "")
    if "://" in given:
        return f"{given.rstrip('/')}/{name}"
    page = Path(given or _BUILT) / name
    return page.resolve().as_uri() if page.is_file() else ""


_VALIDATION = ("sklearn.model_selection._validation", "_fit_and_score")


def refuse_lost_groups(who: str) -> None:
    """Raise if cross-validation passes the groups to ``fit`` but not to ``predict``.

    Without metadata routing, scikit-learn passes ``params`` to ``fit`` only. Scoring then fails
    because the groups are missing, and scikit-learn reports scores of NaN.

    Parameters
    ----------
    who : str
        Name of the estimator's class.
    """
    if get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(1)
    # Code outside scikit-learn and fairmatch can pass the groups on itself, so the search stops.
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        if (frame.f_globals["__name__"], frame.f_code.co_name) == _VALIDATION:
            raise InputError(
                f"This cross-validation passes sensitive_features to {who}.fit but not to predict, "
                "so no score could be computed. Put the groups into X "
                "(sensitive_column=), or turn routing on "
                "(sklearn.set_config(enable_metadata_routing=True)), or fit a model that needs no "
                "groups to predict (sensitive_at_prediction=False)."
            )
        frame = frame.f_back


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("fairmatch", "sklearn")


Read = tuple[FloatArray, dict[str, Any]]

# Whole numbers of more different values than this are no classes.
_MOST_CLASSES = 10


class Target(Protocol):
    """What an estimator predicts."""

    @property
    def loss(self) -> Loss:
        """The loss, which compares predictions with the target."""

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return the numbers to learn, and the attributes that describe the target."""

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return the target of new rows on the scale that a fitted model has learned."""

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the facts about the target to save, as plain values."""

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that describe the target of a saved model; raise if damaged."""


@dataclass(frozen=True)
class TwoClasses:
    """Labels of two classes; the greater one is positive."""

    loss: Loss = LOGISTIC

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return 1 for the positive class and 0 for the other, and the classes."""
        classes, labels = read_classes(y)
        return labels, {"classes_": classes}

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return 1 for labels of the model's positive class, and 0 for others."""
        return np.asarray(read_column(y, "y") == model.classes_[1], dtype=np.float64)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the classes."""
        return {"classes": [plain_label(label) for label in model.classes_]}

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the classes; raise unless there are two."""
        return {"classes_": classes_from(facts["classes"])}


@dataclass(frozen=True)
class RealNumbers:
    """Real numbers, learned in standard deviations from their mean.

    The sizes of the loss and of the penalty then do not depend on the unit of the target. A
    fairness weight means the same for hours as for euros.
    """

    loss: Loss = SQUARED

    def read(self, y: ArrayLike, sample_weight: ArrayLike | None) -> Read:
        """Return the target in standard deviations, and its mean and standard deviation."""
        numbers = read_targets(y)
        weights = read_weights(sample_weight, n_rows=len(numbers))
        if weights is not None and weights.sum() <= 0.0:
            raise InputError(
                "sample_weight sums to zero, so there is nothing to learn from. Pass positive "
                "weights, or leave sample_weight out."
            )
        mean = np.average(numbers, weights=weights)
        scale = np.sqrt(np.average((numbers - mean) ** 2, weights=weights))
        if len(numbers) == 1:
            raise LabelError("y has one sample, and learning needs at least two. Pass more rows.")
        if not scale > 1e-12 * np.abs(numbers).max():
            raise LabelError(
                f"y is constant ({mean:g}), so there is nothing to learn. Choose a "
                "target that differs between people."
            )
        known = {"target_mean_": float(mean), "target_scale_": float(scale)}
        return (numbers - mean) / scale, known

    def labels(self, model: Any, y: ArrayLike) -> FloatArray:
        """Return targets in standard deviations from the mean, as a fitted model knows them."""
        return np.asarray((read_targets(y) - model.target_mean_) / model.target_scale_)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return the mean and the standard deviation."""
        return {"target": {"mean": model.target_mean_, "scale": model.target_scale_}}

    def known(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the mean and the standard deviation; raise unless they are usable numbers."""
        mean, scale = (facts["target"][name] for name in ("mean", "scale"))
        numbers = [v for v in (mean, scale) if type(v) in (int, float) and np.isfinite(v)]
        if len(numbers) < 2 or scale <= 0.0:
            raise ModelFileError("The file is damaged: target must have a mean and a scale.")
        return {"target_mean_": float(mean), "target_scale_": float(scale)}


def read_targets(y: ArrayLike) -> FloatArray:
    """Return the numbers to predict; raise unless all of them are finite."""
    if y is None:
        raise LabelError(
            "A regressor requires y to be passed, but the target y is None. Pass a number for "
            "every row of X."
        )
    try:
        column = column_or_1d(y, warn=True)
        if column.dtype.kind == "c":
            # The first words are those that scikit-learn asks for.
            raise InputError(
                f"Complex data not supported: y has dtype {column.dtype}. Pass real numbers."
            )
        if column.dtype.kind == "O":
            column = column.astype(np.float64)
        numbers = read_numbers(column, "y")
    except (TypeError, ValueError) as error:
        raise LabelError(
            f"y cannot be used as numbers ({error}). Pass one real number for every row."
        ) from error
    if not (bad := ~np.isfinite(numbers)).any():
        return numbers
    raise LabelError(
        f"y has {int(bad.sum())} entries that are NaN or infinite (the first in row "
        f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number. Leave those "
        "rows out."
    )


def read_classes(y: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Return the two classes, and for every row 1 if it has the greater one, else 0."""
    if y is None:
        # The first sentence has the words that scikit-learn asks for.
        raise LabelError(
            "A classifier requires y to be passed, but the target y is None. Pass a label for "
            "every row of X."
        )
    try:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        what = str(error).rstrip(". ")
        raise LabelError(
            f"y cannot be used as labels: {what}. y must hold one of two classes for every row. "
            "Leave out rows without a label, and use a regressor for numbers."
        ) from error
    classes = np.unique(labels)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5]))
        if len(classes) < 2:
            raise LabelError(
                f"y must hold two classes, but it holds only one class: {shown}. Pass rows of both "
                "classes."
            )
        advice = "Join classes until two are left, or train one model per class against the rest."
        if labels.dtype.kind in "iuf" and len(classes) > _MOST_CLASSES:
            advice = "Numbers are predicted by a regressor, such as FTMBoostingRegressor."
        # The first sentences are the words that scikit-learn asks for.
        raise LabelError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}. y must hold two classes, got {len(classes)}: {shown}. "
            f"{advice}"
        )
    positive = read_labels(labels, n_rows=len(labels), pos_label=classes[1], name="y")
    return classes, positive.astype(np.float64)


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


class FairClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]
    """A classifier of two classes.

    A subclass names what learns (`_family`) and what is added to the loss (`_compare`).

    Attributes
    ----------
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    groups_ : tuple
        Labels of the groups.
    fairness_weight_ : float
        The fairness weight that the model was trained with.
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    _target: ClassVar[Target] = TwoClasses()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict_proba(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows, 2)
            The probabilities, with columns in the order of ``classes_``.
        """
        positive = self._scores(self._inputs(X, sensitive_features))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the positive class where its probability is at least one half.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            One of ``classes_`` for every row.
        """
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        decided: NDArray[Any] = self.classes_[(positive >= 0.5).astype(np.intp)]
        return decided

    def _measured(
        self,
        scores: FloatArray,
        y: ArrayLike,
        *,
        groups: Any,
        sample_weight: ArrayLike | None,
        coupling: Coupling | None,
    ) -> dict[str, float]:
        """Return accuracy, acceptance rate and gaps of the scores of some rows."""
        return measured(
            self.classes_,
            scores,
            y,
            groups=groups,
            sample_weight=sample_weight,
            coupling=coupling,
        )

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            The weighted share of right decisions.
        """
        decided = self.predict(X, sensitive_features=sensitive_features)
        labels = read_column(y, "y")
        if len(labels) != len(decided):
            raise InputError(
                f"y has {len(labels)} rows, X has {len(decided)}. Pass one label for every row."
            )
        weights = read_weights(sample_weight, n_rows=len(labels))
        return float(np.average(decided == labels, weights=weights))


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]
    """A regressor of one real target.

    A subclass names what learns (`_family`) and what is added to the loss (`_compare`).

    Attributes
    ----------
    groups_ : tuple
        Labels of the groups.
    target_mean_, target_scale_ : float
        Mean and standard deviation of the target in the training rows.
    fairness_weight_ : float
        The fairness weight that the model was trained with.
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    _target: ClassVar[Target] = RealNumbers()
    _choice: ClassVar[type[GapChoice]] = RealGapChoice
    _curve_weights: ClassVar[tuple[float, ...]] = REGRESSION_WEIGHTS
    # A real target has no classes, so everybody is compared.
    criterion: ClassVar[str] = "demographic_parity"

    @property
    def _gap_measure(self) -> str:
        """The gap that ``max_gap`` bounds by default."""
        return "mean_parity_gap"

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Return the prediction of every row, in units of the target.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            The predictions.
        """
        return self._scores(self._inputs(X, sensitive_features))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        r"""Return the coefficient of determination, :math:`R^2`, on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            1 for perfect predictions; NaN if the targets are constant.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return _errors(predicted, y, sample_weight)["r2"]

    def _scores(self, inputs: Any) -> FloatArray:
        """Return the predictions of rows that `_inputs` has read, in units of the target."""
        return np.asarray(self.target_mean_ + self.target_scale_ * super()._scores(inputs))

    def _measured(
        self,
        scores: FloatArray,
        y: ArrayLike,
        *,
        groups: Any,
        sample_weight: ArrayLike | None,
        coupling: Coupling | None,
    ) -> dict[str, float]:
        """Return errors and gaps of the predictions of some rows."""
        settings = MeasureSettings(outcome=NUMBER, spread=self.target_scale_)
        scored = read_scored(scores, groups, sample_weight, settings=settings)
        gaps = gap_values(scored.people, scored.scores, settings, coupling=coupling)
        return {**_errors(scores, y, sample_weight), **gaps}


def _errors(
    predicted: FloatArray, y: ArrayLike, sample_weight: ArrayLike | None
) -> dict[str, float]:
    r"""Return root mean squared error, mean absolute error, :math:`R^2` and the spread."""
    wanted = read_targets(y)
    if len(wanted) != len(predicted):
        raise InputError(
            f"y has {len(wanted)} rows, X has {len(predicted)}. Pass one number for every row."
        )
    weights = read_weights(sample_weight, n_rows=len(wanted))
    errors = predicted - wanted
    squared = float(np.average(errors**2, weights=weights))
    mean = np.average(wanted, weights=weights)
    variance = float(np.average((wanted - mean) ** 2, weights=weights))
    centre = np.average(predicted, weights=weights)
    return {
        "rmse": squared**0.5,
        "mae": float(np.average(np.abs(errors), weights=weights)),
        "r2": 1.0 - squared / variance if variance > 0.0 else float("nan"),
        "spread": float(np.average((predicted - centre) ** 2, weights=weights)) ** 0.5,
    }
