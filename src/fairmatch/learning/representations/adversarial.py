"""Fair representations that are learned against a critic.

LAFTR stands for Learning Adversarially Fair and Transferable Representations. sIPM-LFR stands for
learning fair representations with the sigmoid integral probability metric.
"""

from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin

from fairmatch.learning.arrayfiles import FILE
from fairmatch.learning.reader import EncoderSettings, GroupSettings
from fairmatch.learning.representations.base import FairTransformer, RepresentationFamily
from fairmatch.learning.representations.critics import AdversaryCritic, Critic, SigmoidCritic
from fairmatch.learning.representations.learner import (
    CriticLearner,
    CriticRepresenter,
    CriticSettings,
)
from fairmatch.learning.settings import estimator
from fairmatch.learning.weights import LAFTR_WEIGHTS, SIPM_WEIGHTS
from fairmatch.tables.parameters import check_count


def _family(critic: type[Critic], n_components: int) -> RepresentationFamily:
    """Return the family of a critic, with the default number of components."""

    def learner(model: Any) -> CriticLearner:
        size = n_components if model.n_components is None else model.n_components
        return CriticLearner(CriticSettings.of(model), size, critic)

    def representer(
        model: Any, content: bytes, facts: dict[str, Any], n_encoded: int
    ) -> CriticRepresenter:
        seen = bool(model.sensitive_at_prediction)
        return CriticRepresenter.from_state(content, facts, n_encoded, seen)

    def check(model: Any) -> None:
        CriticSettings.of(model)
        check_count("n_components", model.n_components, optional=True)

    return RepresentationFamily(learner, representer, check, rebuilds=True)


@estimator(CriticSettings, GroupSettings, EncoderSettings)
class LAFTRTransformer(ClassNamePrefixFeaturesOutMixin, FairTransformer):  # type: ignore[misc]
    r"""A representation that hides the group from an adversary (LAFTR; Madras et al., 2018).

    LAFTR stands for Learning Adversarially Fair and Transferable Representations.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success.
    n_components : int, optional
        How many numbers represent a row; by default 8.

    Attributes
    ----------
    groups_ : tuple
        Labels of the two groups.
    network_, decoder_ : StackedMLP
        The encoder, which represents rows, and the decoder, which rebuilds them.

    Notes
    -----
    The encoder f, the head k and the decoder g minimise, and the adversary h maximises,

    .. math:: a\, E\, l(Y, k(Z)) + b\, \frac{E \|X - g(Z, S)\|^2}{E \|X - E X\|^2}
              + \lambda \Bigl(1 - \sum_s E\bigl[|h(Z) - s| \mid S = s\bigr]\Bigr),
              \qquad Z = f(X, S),

    where a is ``task_weight``, b is ``reconstruction_weight`` and :math:`\lambda` is
    ``fairness_weight``. The last term is the paper's group-normalised L1 objective for demographic
    parity. Every component has mean 0 and standard deviation 1 on the training rows.

    Examples
    --------
    >>> from fairmatch import LAFTRTransformer
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> LAFTRTransformer(n_components=3, epochs=2, random_state=0).fit_transform(
    ...     german.X, german.y, sensitive_features=german.sensitive_features).shape
    (1000, 3)
    """

    fairness_weight: float = 1.0
    n_components: int | None = None

    _curve_weights: ClassVar[tuple[float, ...]] = LAFTR_WEIGHTS
    _family: ClassVar[RepresentationFamily] = _family(AdversaryCritic, 8)
    _state_file: ClassVar[str] = FILE


@estimator(CriticSettings, GroupSettings, EncoderSettings)
class SIPMTransformer(ClassNamePrefixFeaturesOutMixin, FairTransformer):  # type: ignore[misc]
    r"""A representation in which no sigmoid unit tells the groups apart (Kim et al., 2022).

    The method is sIPM-LFR: learning fair representations (LFR) with the sigmoid integral
    probability metric (sIPM).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the integral probability metric.
    n_components : int, optional
        How many numbers represent a row; by default 3. With more numbers, the groups may differ in
        ways that a network finds and a single sigmoid unit does not.

    Attributes
    ----------
    groups_ : tuple
        Labels of the two groups.
    network_, decoder_ : StackedMLP
        The encoder, which represents rows, and the decoder, which rebuilds them.

    Notes
    -----
    The encoder f, the head k and the decoder g minimise

    .. math:: a\, E\, l(Y, k(Z)) + b\, \frac{E \|X - g(Z, S)\|^2}{E \|X - E X\|^2}
              + \lambda\, d_\sigma, \qquad Z = f(X, S),

    where a is ``task_weight``, b is ``reconstruction_weight`` and :math:`\lambda` is
    ``fairness_weight``. The distance between the groups' representations is

    .. math:: d_\sigma = \sup_{\theta, \mu} \bigl| E[\sigma(\theta^\top Z + \mu) \mid S = 0]
              - E[\sigma(\theta^\top Z + \mu) \mid S = 1] \bigr|.

    It is 0 only if the two distributions are the same. Several discriminators maximise it side by
    side, and the best one counts.

    Examples
    --------
    >>> from fairmatch import SIPMTransformer
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> SIPMTransformer(n_components=3, epochs=2, random_state=0).fit_transform(
    ...     german.X, german.y, sensitive_features=german.sensitive_features).shape
    (1000, 3)
    """

    fairness_weight: float = 1.0
    n_components: int | None = None

    _curve_weights: ClassVar[tuple[float, ...]] = SIPM_WEIGHTS
    _family: ClassVar[RepresentationFamily] = _family(SigmoidCritic, 3)
    _state_file: ClassVar[str] = FILE
