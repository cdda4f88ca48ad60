"""Fair representations that are learned against a critic: LAFTR and sIPM-LFR."""

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
    """Return the family of a critic; rows become so many numbers unless told otherwise."""

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
    r"""A representation that an adversary cannot read the group from (LAFTR; Madras et al., 2018).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success.
    n_components : int, optional
        How many numbers represent a row; by default 8.

    Attributes
    ----------
    groups_ : tuple
        The two groups.
    network_, decoder_ : StackedMLP
        What represents a row, and what rebuilds it.

    Notes
    -----
    Encoder f, head k and decoder g descend, and the adversary h climbs,

    .. math:: a\, E\, l(Y, k(Z)) + b\, \frac{E \|X - g(Z, S)\|^2}{E \|X - E X\|^2}
              + \lambda \Bigl(1 - \sum_s E\bigl[|h(Z) - s| \mid S = s\bigr]\Bigr),
              \qquad Z = f(X, S),

    with the group-normalised L1 objective for demographic parity. Each number of the
    representation has mean 0 and spread 1 on the training rows.

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
    r"""A representation whose groups no sigmoid unit tells apart (sIPM-LFR; Kim et al., 2022).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the integral probability metric.
    n_components : int, optional
        How many numbers represent a row; by default 3. With more of them the groups differ in
        ways that no single sigmoid unit sees, and a network on them does.

    Attributes
    ----------
    groups_ : tuple
        The two groups.
    network_, decoder_ : StackedMLP
        What represents a row, and what rebuilds it.

    Notes
    -----
    With the terms of `LAFTRTransformer` for task and reconstruction, the fairness weight
    multiplies the distance between the groups' representations

    .. math:: d_\sigma = \sup_{\theta, \mu} \bigl| E[\sigma(\theta^\top Z + \mu) \mid S = 0]
              - E[\sigma(\theta^\top Z + \mu) \mid S = 1] \bigr|,

    which is 0 only where the two distributions are the same. Several discriminators climb side
    by side, and the best counts.

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
