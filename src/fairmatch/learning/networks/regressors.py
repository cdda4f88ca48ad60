"""Fairness Through Matching for real targets, with networks."""

from typing import ClassVar

from fairmatch.learning.comparison import Comparison, GroupComparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.networks.learner import NETWORKS, NetworkScorer
from fairmatch.learning.networks.settings import NetworkSettings
from fairmatch.learning.reader import EncoderSettings, GroupSettings
from fairmatch.learning.realchoice import RealGapChoice
from fairmatch.learning.regressor import FairRegressor
from fairmatch.learning.settings import estimator
from fairmatch.matching.matchers import Matcher


@estimator(
    *(GroupComparison, Sampling, RealGapChoice, NetworkSettings),
    *(GroupSettings, EncoderSettings, GroupSizes),
)
class FTMRegressor(FairRegressor):
    r"""Fairness Through Matching for a real target: matched people get similar predictions.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar predictions.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on. "marginal" uses their features. "joint" adds the target; a
        difference by one standard deviation costs 25. A matcher is any object with a ``match``
        method like that of `OptimalTransportMatcher`. An `OptimalTransportMatcher` with a
        ``batch_size`` matches people anew in every step. Otherwise people are matched once, before
        training.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda. The network learns the target in standard
        deviations, so a weight means the same in every unit.

    Attributes
    ----------
    network_ : NetworkStack
        The network; it predicts in standard deviations from the mean.

    Notes
    -----
    The network minimises :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for
    the coupling T, where Y and f are in standard deviations of Y. With more than two groups T has
    several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMRegressor
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMRegressor(fairness_weight=5.0, epochs=5, random_state=0)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    transport: str | Matcher = "marginal"
    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        return Transport(
            self.transport,
            Comparison.of(self),
            fresh=True,
            real=True,
            sampling=Sampling.of(self),
        )
