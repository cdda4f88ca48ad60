"""FTM and its rivals for networks."""

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
    """The network trained for accuracy alone: the paper's "Unfair" baseline.

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
    Minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2` (Donini et al.,
    2018; Chuang and Mroueh, 2021, call it GapReg). With more groups, or a criterion that compares
    people of the same label, the squared gap is the weighted mean over the parts.

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
    r"""Cross-entropy plus squared constraint violations: what the paper calls "Reduction".

    The paper's Reduction is FairTorch's penalty, inspired by the constraints of Agarwal et al.
    (2018); it is not their algorithm, which is `ExponentiatedGradientClassifier`. With two groups
    the penalty equals :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`: it is
    `GapRegularizedClassifier` with another weight.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.

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
    """A network against an adversary that guesses the group from its output: the paper's "Adv".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success in the network's objective.

    Notes
    -----
    After Zhang, Lemoine and Mitchell (2018), as the paper states it: the network minimises its
    loss minus the weighted loss of the adversary. With more than two groups the adversary guesses
    among all of them.

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

    First people of different groups are matched by optimal transport; then a network learns to
    predict well while giving matched people similar scores.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        How people are matched: on their features; on features and labels (label weight 100);
        or by any object with a ``match`` method like `OptimalTransportMatcher`'s. With an
        `OptimalTransportMatcher` that has a ``batch_size`` people are matched afresh in every
        step, as in the paper; otherwise all rows are matched once.
    fairness_weight : float, default=1.0
        The paper's lambda.

    Notes
    -----
    Minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3 of the
    paper) for the coupling T. The loss sees everybody, also people whom T matches with nobody. With
    more than two groups, or a criterion that compares people of the same label, T has several
    parts, and the penalty is their weighted mean.

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
