"""Fairness Through Matching for real targets: gradient-boosted trees, grown by LightGBM."""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from fairmatch.learning.comparison import Comparison, GroupComparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.reader import GroupSettings
from fairmatch.learning.realchoice import RealGapChoice
from fairmatch.learning.regressor import FairRegressor
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import estimator
from fairmatch.learning.trees.learner import (
    REGRESSION_TREES,
    GrowingSettings,
    TreeScorer,
    refuse_coupling_and_stopping,
)
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.tables.arrays import FloatArray


@estimator(GroupComparison, Sampling, RealGapChoice, GrowingSettings, GroupSettings, GroupSizes)
class FTMBoostingRegressor(FairRegressor):
    r"""Fairness Through Matching for a real target, by gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar
    predictions. The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a prediction for every row,
        by plain trees that were grown on other rows. "marginal" uses the features alone, as in the
        paper. "joint" uses features and the target. A difference of one standard deviation of the
        prediction or the target costs 25. A matcher is any object with a ``match`` method like
        that of `OptimalTransportMatcher`.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM. The trees learn the target
        in standard deviations, so a weight means the same in every unit.
    warmup : float, default=0.5
        Share of the trees that see the loss without the penalty; they come first. The penalty then
        pulls together predictions that the trees have already learned. Without a warm-up, a large
        weight may keep the trees from learning them.

    Attributes
    ----------
    trees_ : lightgbm.Booster
        The trees. Their sum plus ``base_margin_`` is the prediction in standard deviations from
        the mean.
    base_margin_ : float
        Where boosting starts: the mean of the rows that trees are grown on, which is about 0.

    Notes
    -----
    The trees minimise :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for the
    coupling T, where Y and f are in standard deviations of Y. The size :math:`|d|` of a difference
    is smoothed as :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups T has several
    parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMBoostingRegressor
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMBoostingRegressor(fairness_weight=2.0, n_rounds=5)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    transport: str | Matcher = "predicted"
    fairness_weight: float = 1.0
    warmup: float = field(default=0.5, kw_only=True)

    _family: ClassVar[Family] = REGRESSION_TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        names = ("predicted", "marginal", "joint")
        return Transport(
            self.transport,
            Comparison.of(self),
            names,
            self._unseen_scores,
            real=True,
            sampling=Sampling.of(self),
        )

    def _unseen_scores(self, rows: TrainingRows) -> FloatArray:
        scores: FloatArray = self._learner().unseen_scores(rows, self._target.loss)
        return scores

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        super()._check_parameters(fairness_weights, coupling)
        refuse_coupling_and_stopping(self, coupling)
