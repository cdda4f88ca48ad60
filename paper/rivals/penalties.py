"""Penalties that compare whole groups and match nobody."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairmatch.people.checks import FloatArray
from fairmatch.people.outcome import Derivatives
from fairmatch.people.people import Comparison, People

if TYPE_CHECKING:
    from fairmatch.learning.networks import Comparing


class GroupPenalty:
    """A penalty that compares whole groups and matches nobody."""

    def __init__(self, parts: Sequence[Comparison], people: People) -> None:
        found: dict[tuple[Any, int], Any] = {}
        for part in parts:
            found[part.label, part.source] = part.source_rows
            found[part.label, part.target] = part.target_rows
        # Label and group of every set of rows whose scores are taken together.
        self.strata = sorted(found, key=lambda s: (not s[0], s[1]))
        self.parts, self.n_rows = list(parts), len(people)
        ends = [sorted((p.source, p.target)) for p in parts]
        # The two groups of every part among the strata, the one with the smaller code first.
        self.first, self.second = (
            [self.strata.index((p.label, end[k])) for p, end in zip(parts, ends, strict=True)]
            for k in (0, 1)
        )
        self.weights = np.array([part.weight for part in parts])
        mass = people.mass
        self._rows = [found[stratum] for stratum in self.strata]
        self._shares = [mass[at] / mass[at].sum() for at in self._rows]
        self._masses = np.array([mass[at].sum() for at in self._rows])


class MeanPenalty(GroupPenalty):
    r"""The weighted sum of squared contrasts of mean scores; subclasses define the contrasts.

    Notes
    -----
    A contrast is :math:`a^\top p` for the scores p of all rows. Because :math:`(a^\top x)^2 \le
    \|a\|_1 \sum_i |a_i| x_i^2`, a quadratic with the curvature :math:`2 \|a\|_1 |a_i|` in each row
    lies above the squared contrast.
    """

    @property
    def contrast_weights(self) -> FloatArray:
        """Weight of every contrast."""
        return self.weights

    def contrasts(self, means: Any) -> Any:
        """Return the contrasts of means, an array or a tensor whose first axis is the strata."""
        raise NotImplementedError

    def value(self, scores: FloatArray) -> float:
        """Return the weighted sum of squared contrasts."""
        return float(self.contrast_weights @ self._gaps(scores) ** 2)

    def derivatives(self, scores: FloatArray) -> Derivatives:
        """Return gradient and curvature, summed over the contrasts."""
        gaps, weights, matrix = self._gaps(scores), self.contrast_weights, self._matrix
        lengths = np.abs(matrix).sum(axis=1).round(12)  # a contrast of two means has length 2
        return (2.0 * weights * gaps) @ matrix, (2.0 * weights * lengths) @ np.abs(matrix)

    def comparing(self, people: People, weights: Any, **given: Any) -> "Comparing":
        """Return the batches and the torch module, for networks."""
        from paper.rivals.networks import compare_means

        return compare_means(self, people, weights, **given)

    def _gaps(self, scores: FloatArray) -> FloatArray:
        return np.array([row @ scores for row in self._matrix])

    @cached_property
    def _matrix(self) -> FloatArray:
        """Contribution of every row to every contrast; contrasts are linear in the means."""
        coefficients = self.contrasts(np.eye(len(self.strata)))
        matrix = np.zeros((len(coefficients), self.n_rows))
        for stratum, (at, shares) in enumerate(zip(self._rows, self._shares, strict=True)):
            matrix[:, at] += coefficients[:, stratum, None] * shares
        return matrix


class SquaredMeanGap(MeanPenalty):
    r"""The squared gap of mean scores of each part, :math:`\Delta\overline{\mathrm{DP}}^2`."""

    def contrasts(self, means: Any) -> Any:
        """Return the difference of the two means of every part."""
        return means[self.first] - means[self.second]


class ConstraintViolation(MeanPenalty):
    r"""Squared violations of the constraints of Agarwal et al. (2018), in FairTorch's form.

    Notes
    -----
    With :math:`\mu_s = E(f \mid S = s)` and :math:`\mu = E f`, the penalty is
    :math:`\sum_s [\mu_s - \mu]_+^2 + [\mu - \mu_s]_+^2`, within each class that is compared. For
    two groups with shares :math:`\pi_s` it is the squared mean gap with another weight,
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`.
    """

    @property
    def contrast_weights(self) -> FloatArray:
        """Weight of every group's violation, which is the weight of its class."""
        labels = [part.label for part in self.parts]
        by_label = {
            name: sum(w for w, own in zip(self.weights, labels, strict=True) if own is name)
            for name in labels
        }
        return np.array([by_label[label] for label, _ in self.strata])

    def contrasts(self, means: Any) -> Any:
        """Return each group's mean minus the mean of its class."""
        labels = [label for label, _ in self.strata]
        same = np.array([[a is b for b in labels] for a in labels])
        shares = same * self._masses
        shares = shares / shares.sum(axis=1, keepdims=True)
        if not isinstance(means, np.ndarray):
            shares = means.new_tensor(shares)
        return means - shares @ means
