"""The reductions algorithm of Agarwal et al.: fairlearn's version with fairmatch's interface."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from fairlearn.reductions import (
    DemographicParity,
    EqualizedOdds,
    ExponentiatedGradient,
    TruePositiveRateParity,
)
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression

from fairmatch.exceptions import InputError
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.estimator import FairClassifier, Family
from fairmatch.learning.reading import GroupSettings, GroupSizes, TableReader, TrainingRows
from fairmatch.learning.settings import REDUCTION_BOUNDS, Settings, estimator
from fairmatch.matching.coupling import Coupling, plan_parts
from fairmatch.people.checks import FloatArray, check_count, check_number
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import read_criterion
from fairmatch.people.outcome import Loss

_MOMENTS = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": TruePositiveRateParity,
    "equalized_odds": EqualizedOdds,
}


@dataclass(frozen=True)
class ReductionSettings(Settings):
    """The settings of the algorithm; the estimator itself declares and describes them."""

    estimator: Any = None
    max_iter: int = 50
    criterion: str = "demographic_parity"

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        check_count("max_iter", self.max_iter)
        read_criterion(self.criterion)
        chosen = self.estimator
        if chosen is not None and (isinstance(chosen, type) or not hasattr(chosen, "fit")):
            raise InputError(
                f"estimator must be a classifier or None, got {chosen!r}. Pass an instance, such "
                "as LogisticRegression()."
            )


@dataclass(frozen=True, eq=False)
class MixtureScorer:
    """A weighted mean of the decisions of several classifiers.

    Attributes
    ----------
    predictors : list
        The classifiers.
    weights : array of shape (n_predictors,)
        Their weights, which sum to 1.
    n_iter : int
        Number of rounds.
    """

    predictors: list[Any]
    weights: FloatArray
    n_iter: int

    FILE: ClassVar[str] = ""

    def scores(self, inputs: Any) -> FloatArray:
        """Return the total weight of the classifiers that accept each row."""
        decisions = np.stack([predictor.predict(inputs) for predictor in self.predictors])
        # Rounding must not lift a score above 1 where all classifiers accept.
        scores: FloatArray = np.clip(self.weights @ decisions, 0.0, 1.0)
        return scores

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {
            "scorer_": self,
            "predictors_": self.predictors,
            "predictor_weights_": self.weights,
            "n_iter_": self.n_iter,
        }


class ReductionLearner:
    """A learner that runs the algorithm once for every bound.

    Parameters
    ----------
    settings : ReductionSettings
        The classifier to train, the number of rounds and the criterion.
    """

    def __init__(self, settings: ReductionSettings) -> None:
        self.settings = settings

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[MixtureScorer]:
        """Return one scorer per bound; nobody is matched."""
        # Raises where a group has no rows that the criterion compares.
        plan_parts(
            rows.groups,
            criterion=self.settings.criterion,
            positive=rows.positive,
            ignored=rows.ignored,
        )
        return [self._fit(rows, float(bound)) for bound in weights]

    def _fit(self, rows: TrainingRows, bound: float) -> MixtureScorer:
        chosen, codes = self.settings.estimator, rows.groups.codes
        moment = _MOMENTS[read_criterion(self.settings.criterion).name]
        strata = {}
        if rows.ignored:
            # Groups are compared within a stratum, so an ignored one is compared with nobody.
            strata["control_features"] = np.where(np.isin(codes, rows.ignored), codes, -1)
        algorithm = ExponentiatedGradient(
            LogisticRegression() if chosen is None else chosen,
            moment(difference_bound=bound),
            eps=bound,
            max_iter=self.settings.max_iter,
        )
        with warnings.catch_warnings():
            # fairlearn still uses deprecated parts of pandas, which the caller cannot change.
            warnings.simplefilter("ignore", DeprecationWarning)
            algorithm.fit(
                rows.inputs,
                rows.labels.astype(np.intp),
                sensitive_features=codes,
                **strata,
            )
        weights = algorithm.weights_.sort_index().to_numpy()
        used = np.flatnonzero(weights > 0.0)
        return MixtureScorer(
            [algorithm.predictors_[index] for index in used],
            weights[used] / weights[used].sum(),
            int(algorithm.last_iter_) + 1,
        )


def _reduction_learner(settings: ReductionSettings, reader: TableReader) -> ReductionLearner:
    return ReductionLearner(settings)


@estimator(GapChoice, GroupSettings, GroupSizes)
class ExponentiatedGradientClassifier(FairClassifier):
    r"""The reductions approach of Agarwal et al. (2018), made deterministic.

    This is a thin wrapper of fairlearn's ``ExponentiatedGradient`` around any scikit-learn
    classifier. The algorithm returns several classifiers with weights, and draws one of them at
    random for every prediction. Here their decisions are averaged instead: ``predict_proba``
    returns the probability that the drawn classifier accepts, and ``predict`` compares it with
    one half.

    Parameters
    ----------
    estimator : classifier, optional
        The classifier that is trained in every round; its ``fit`` must take ``sample_weight``. By
        default it is scikit-learn's ``LogisticRegression``.
    eps : float, default=0.01
        Allowed violation: the largest difference between a group's acceptance rate and that of all
        rows that the criterion compares it with.
    max_iter : int, default=50
        Greatest number of rounds.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose acceptance rates are bounded. By default these are everybody's. With
        "equal_opportunity" they are those of people with a positive label, and with
        "equalized_odds" those of people with the same label, for each class.
    encoder : "table", "columns", None or a transformer, default="table"
        What turns X into numbers. "table" is `fairmatch.people.encoding.TableEncoder`, None leaves
        X as it is, and any transformer of your own will do. With "columns" the estimator sees
        categories as pandas categories and missing values as NaN. It must take both, as LightGBM's
        ``LGBMClassifier`` does.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    predictors_ : list
        The classifiers with positive weight.
    predictor_weights_ : array of shape (n_predictors,)
        Their weights, which sum to 1.
    n_iter_ : int
        Number of rounds.
    fairness_weight_ : float
        The ``eps`` that the model was trained with.

    Notes
    -----
    The average gives up the guarantee for decisions. The algorithm bounds the acceptance rates
    of the random classifier on the training rows, so it bounds gaps of the mean scores. Decisions
    compare these scores with one half, and their gap may exceed the bound by any amount.

    There is no fairness weight, so `fairness_path` refuses this estimator. Fit one model per
    ``eps`` and put the models into a ``FairnessPath`` (docs/evidence/boosting.md). With
    ``max_gap`` the ``fairness_weights`` are values of ``eps``.

    Examples
    --------
    >>> from fairmatch import ExponentiatedGradientClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ExponentiatedGradientClassifier(eps=0.02)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    estimator: Any = None
    _: KW_ONLY
    eps: float = 0.01
    max_iter: int = 50
    criterion: str = "demographic_parity"
    encoder: Any = "table"
    random_state: Any = None

    _weight_name: ClassVar[str | None] = "eps"
    _curve_weights: ClassVar[tuple[float, ...]] = REDUCTION_BOUNDS
    _zero_is_plain: ClassVar[bool] = False
    _save_instead: ClassVar[str | None] = (
        "Save each of model.predictors_ with its own library, and save model.predictor_weights_."
    )
    _family: ClassVar[Family] = Family(
        "numbers", ReductionSettings, _reduction_learner, MixtureScorer
    )

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
            Labels of two classes; the greater one is positive.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless ``sensitive_column`` names a column of X.
        sample_weight : None
            Must be None, because the algorithm sets the weights of rows itself.
        coupling : None
            Must be None, because the algorithm matches nobody.

        Returns
        -------
        self
            The fitted estimator.
        """
        if sample_weight is not None:
            raise InputError(
                "ExponentiatedGradientClassifier cannot use sample_weight: the algorithm sets the "
                "weights of rows itself. Leave sample_weight out."
            )
        return super().fit(X, y, sensitive_features=sensitive_features, coupling=coupling)

    def _takes_columns(self) -> bool:
        return isinstance(self.encoder, str) and self.encoder == "columns"

    def _encoder(self) -> Any:
        return TableEncoder(missing="encode") if self._takes_columns() else self.encoder

    def _reader(self) -> TableReader:
        reader = replace(super()._reader(), words=("table", "columns"))
        return replace(reader, sees="frame") if self._takes_columns() else reader

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        for eps in fairness_weights:
            check_number("eps", eps, "(0, inf]")
        self._family.settings.of(self)
        self._refuse_coupling(coupling)
