"""The reductions algorithm of Agarwal et al.: fairlearn's version with fairmatch's interface."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from fairlearn.reductions import (
    DemographicParity,
    EqualizedOdds,
    ExponentiatedGradient,
    TruePositiveRateParity,
)
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression

from fairmatch.exceptions import InputError
from fairmatch.learning.estimator import FairClassifier
from fairmatch.learning.reading import Columns, Reader, SmallGroups, encoded, labels_of
from fairmatch.matching.coupling import Coupling
from fairmatch.people.checks import FloatArray, check_count
from fairmatch.people.encoding import Points, Table, TableEncoder
from fairmatch.people.groups import read_criterion
from fairmatch.people.people import People
from paper.rivals import REDUCTION_BOUNDS

_MOMENTS = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": TruePositiveRateParity,
    "equalized_odds": EqualizedOdds,
}


class FrameReader(Reader):
    """A reader whose learner sees a pandas frame, in which categorical columns are marked."""

    def inputs(self, table: Table, codes: NDArray[Any] | None, points: Points | None = None) -> Any:
        """Return the columns of the table, and the group if the learner uses it."""
        frame = pd.DataFrame(super().inputs(table, codes, points))
        frame.columns = [f"column_{index}" for index in frame.columns]
        for name in frame.columns[self.categorical]:
            frame[name] = frame[name].astype("category")
        return frame


@dataclass(frozen=True, eq=False)
class MixtureScorer:
    """A weighted mean of the decisions of several classifiers."""

    predictors: list[Any]  #: The classifiers.
    weights: FloatArray  #: Their weights, which sum to 1.
    n_iter: int  #: Number of rounds.

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
    encoder : "table", "columns", None or a transformer, default="table"
        What turns X into numbers. "table" is `fairmatch.people.encoding.TableEncoder`, None leaves
        X as it is, and any transformer of your own will do. With "columns" the estimator sees
        categories as pandas categories and missing values as NaN. It must take both, as LightGBM's
        ``LGBMClassifier`` does.
    criterion, random_state
        As for `fairmatch.FTMClassifier`.

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

    A path of this estimator goes over values of ``eps``.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ExponentiatedGradientClassifier(eps=0.02)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    _weight_name: ClassVar[str | None] = "eps"
    _weight_range: ClassVar[str] = "(0, inf]"
    _curve_weights: ClassVar[tuple[float, ...]] = REDUCTION_BOUNDS
    _zero_is_plain: ClassVar[bool] = False
    _save_instead: ClassVar[str | None] = (
        "Save each of model.predictors_ with its own library, and save model.predictor_weights_."
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        eps: float | Sequence[float] = 0.01,
        max_iter: int = 50,
        criterion: str = "demographic_parity",
        encoder: Any = "table",
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.eps = eps
        self.max_iter = max_iter
        self.criterion = criterion
        self.encoder = encoder
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn from a table. Weights are an error, because the algorithm sets them itself."""
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

    def _reader(self) -> Reader:
        reader = replace(super()._reader(), words=("table", "columns"))
        if not self._takes_columns():
            return reader
        return FrameReader(**{**vars(reader), "sees": "codes"})

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        check_count("max_iter", self.max_iter)
        chosen = self.estimator
        if chosen is not None and (isinstance(chosen, type) or not hasattr(chosen, "fit")):
            raise InputError(
                f"estimator must be a classifier or None, got {chosen!r}. Pass an instance, such "
                "as LogisticRegression()."
            )

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[MixtureScorer]:
        """Run the algorithm once for every bound."""
        # Raises where a group has no rows that the criterion compares.
        replace(people, weight=None).comparisons(read_criterion(self.criterion))
        return [self._mixture(people, float(bound)) for bound in weights]

    def _mixture(self, people: People, bound: float) -> MixtureScorer:
        codes, apart = people.groups.codes, people.groups.apart
        strata = {}
        if apart:
            # Groups are compared within a stratum, so one that is apart is compared with nobody.
            strata["control_features"] = np.where(np.isin(codes, apart), codes, -1)
        algorithm = ExponentiatedGradient(
            LogisticRegression() if self.estimator is None else self.estimator,
            _MOMENTS[self.criterion](difference_bound=bound),
            eps=bound,
            max_iter=self.max_iter,
        )
        labels = labels_of(people).values.astype(np.intp)
        with warnings.catch_warnings():
            # fairlearn still uses deprecated parts of pandas, which the caller cannot change.
            warnings.simplefilter("ignore", DeprecationWarning)
            algorithm.fit(encoded(people).inputs, labels, sensitive_features=codes, **strata)
        weights = algorithm.weights_.sort_index().to_numpy()
        used = np.flatnonzero(weights > 0.0)
        return MixtureScorer(
            [algorithm.predictors_[index] for index in used],
            weights[used] / weights[used].sum(),
            int(algorithm.last_iter_) + 1,
        )
