"""Fairness Through Matching (FTM) and its rivals, with networks."""

from typing import ClassVar

from fairmatch.learning.choice import GapChoice
from fairmatch.learning.classifier import FairClassifier
from fairmatch.learning.comparison import Comparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.networks.learner import NETWORKS, NetworkScorer
from fairmatch.learning.networks.settings import NetworkSettings
from fairmatch.learning.penalties import (
    Adversary,
    ConstraintViolation,
    GroupPenalty,
    SquaredMeanGap,
)
from fairmatch.learning.reader import EncoderSettings, GroupSettings
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import estimator
from fairmatch.learning.weights import (
    ADV_WEIGHTS,
    REDUCTION_WEIGHTS,
    REG_WEIGHTS,
)
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher


@estimator(NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class UnconstrainedClassifier(FairClassifier):
    """A network trained for accuracy alone: the paper's "Unfair" baseline.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = UnconstrainedClassifier(epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:2], sensitive_features=german.sensitive_features[:2]).shape
    (2,)
    """

    _weight_name: ClassVar[str | None] = None
    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class GapRegularizedClassifier(FairClassifier):
    r"""Cross-entropy plus the squared gap of mean scores: the paper's "Reg".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.

    Notes
    -----
    The network minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2` (Donini
    et al., 2018; Chuang and Mroueh, 2021, call it GapReg). With more than two groups, or a
    criterion that compares people of the same label, the squared gap is the weighted mean over the
    parts.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return SquaredMeanGap(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class ReductionClassifier(FairClassifier):
    r"""Cross-entropy plus squared constraint violations: the paper's "Reduction".

    The paper's Reduction is FairTorch's penalty, which builds on the constraints of Agarwal et al.
    (2018). It is not their algorithm; `ExponentiatedGradientClassifier` is.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.

    Notes
    -----
    With :math:`\mu_s` the mean score of group s and :math:`\mu` that of all rows, the penalty is
    :math:`\sum_s (\mu_s - \mu)^2`, within each class that is compared. For two groups with shares
    :math:`\pi_0` and :math:`\pi_1` it equals
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`. So with two groups this class is
    `GapRegularizedClassifier` with another weight.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ReductionClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REDUCTION_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return ConstraintViolation(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class AdversarialClassifier(FairClassifier):
    r"""A network against an adversary that guesses the group from its output: the paper's "Adv".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success in the network's objective.

    Notes
    -----
    The method follows Zhang, Lemoine and Mitchell (2018) in the paper's version: the network
    minimises :math:`E\, l(Y, f) - \lambda\, E\, l(S, h(f))`, its loss minus the weighted loss of
    the adversary h. With more than two groups the adversary guesses among all of them.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = AdversarialClassifier(1.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = ADV_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return Adversary(Comparison.of(self).parts(rows), rows)


@estimator(
    *(Comparison, Sampling, GapChoice, NetworkSettings),
    *(GroupSettings, EncoderSettings, GroupSizes),
)
class FTMClassifier(FairClassifier):
    r"""Fairness Through Matching: treat matched people of different groups alike.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar scores.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on. "marginal" uses their features. "joint" adds their labels, with
        a label weight of 100. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`. An `OptimalTransportMatcher` with a ``batch_size`` matches
        people anew in every step, as in the paper. Otherwise people are matched once, before
        training.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda.

    Notes
    -----
    The network minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section
    4.3 of the paper) for the coupling T. The loss sees everybody, even people whom T leaves
    without a match. With more than two groups, or a criterion that compares people of the same
    label, T has several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(fairness_weight=5.0, epochs=5, random_state=0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    transport: str | Matcher = "marginal"
    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        sampling = Sampling.of(self)
        return Transport(self.transport, Comparison.of(self), fresh=True, sampling=sampling)
