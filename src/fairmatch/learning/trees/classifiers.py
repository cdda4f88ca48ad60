"""Fairness Through Matching and its rival for gradient-boosted trees, grown by LightGBM."""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from fairmatch.learning.choice import GapChoice
from fairmatch.learning.classifier import FairClassifier
from fairmatch.learning.comparison import Comparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.penalties import (
    SquaredMeanGap,
    TreePenalty,
)
from fairmatch.learning.reader import GroupSettings
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import estimator
from fairmatch.learning.trees.learner import (
    TREES,
    TreeScorer,
    TreeSettings,
    refuse_coupling_and_stopping,
)
from fairmatch.learning.weights import BOOSTING_CHOICES, REG_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.tables.arrays import FloatArray


@estimator(Comparison, GapChoice, TreeSettings, GroupSettings, GroupSizes)
class GapRegularizedBoostingClassifier(FairClassifier):
    r"""Boosted trees whose penalty is the squared gap of mean scores: the rival of FTM.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty; 0 is plain LightGBM.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2`, the
    objective of `GapRegularizedClassifier`. With more than two groups, or a criterion that compares
    people of the same label, the squared gap is the weighted mean over the parts.

    Examples
    --------
    >>> from fairmatch import GapRegularizedBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedBoostingClassifier(10.0, n_rounds=5).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> TreePenalty:
        return SquaredMeanGap(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, Sampling, GapChoice, TreeSettings, GroupSettings, GroupSizes)
class FTMBoostingClassifier(FairClassifier):
    r"""Fairness Through Matching for gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar scores.
    The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a score of every row, by
        plain trees that were grown on other rows. It keeps the most accuracy at a given gap.
        "marginal" uses the features alone, as in the paper. It keeps people nearest to those they
        are matched with, and a small gap then costs more accuracy. "joint" uses features and
        labels. Scores and labels have a weight of 100. A matcher is any object with a ``match``
        method like that of `OptimalTransportMatcher`.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM.
    warmup : float, default=0.5
        Share of the trees that see the loss without the penalty; they come first. The penalty then
        pulls together scores that the trees have already learned. Without a warm-up, a large
        weight may keep the trees from learning them.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3
    of the paper) for the coupling T. The size :math:`|d|` of a difference is smoothed as
    :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups, or a criterion that compares
    people of the same label, T has several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMBoostingClassifier(fairness_weight=2.0, n_rounds=5)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    transport: str | Matcher = "predicted"
    fairness_weight: float = 1.0
    warmup: float = field(default=0.5, kw_only=True)

    _family: ClassVar[Family] = TREES
    _state_file: ClassVar[str] = TreeScorer.FILE
    _choice_weights: ClassVar[tuple[float, ...] | None] = BOOSTING_CHOICES
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        names = ("predicted", "marginal", "joint")
        return Transport(
            self.transport,
            Comparison.of(self),
            names,
            self._unseen_scores,
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
