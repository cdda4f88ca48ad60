r"""How many people an audit needs: the smallest difference that groups of given sizes can show."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from fairmatch.exceptions import InputError
from fairmatch.people.checks import check_number


def _quantiles(
    sizes: Sequence[float], confidence: float, power: float, n_comparisons: int
) -> tuple[float, float]:
    """Check the arguments; return the normal quantiles of the level and of the power."""
    if len(sizes) != 2 or not all(size > 0.0 for size in sizes):
        raise InputError(
            f"sizes must be two positive numbers of people, got {tuple(sizes)}.", parameter="sizes"
        )
    check_number("confidence", confidence, "(0, 1)")
    check_number("power", power, "(0, 1)")
    error = (1.0 - confidence) / max(n_comparisons, 1)
    return -float(ndtri(error / 2.0)), float(ndtri(power))


def detectable_difference(
    sizes: tuple[float, float],
    *,
    rate: float = 0.5,
    confidence: float = 0.95,
    power: float = 0.8,
    n_comparisons: int = 1,
) -> float:
    r"""Return the smallest difference of two rates that these numbers of people can show.

    Parameters
    ----------
    sizes : tuple of two numbers
        People of the compared group and of the reference group; effective numbers with survey
        weights.
    rate : float, default=0.5
        Rate of the reference group. With 0.5 the detectable difference is largest.
    confidence : float, default=0.95
        Level of the interval that has to exclude 0.
    power : float, default=0.8
        Probability that it does so if the difference is as large as the result.
    n_comparisons : int, default=1
        Number of comparisons that share the error probability, such as the pairs of several groups
        (Bonferroni).

    Returns
    -------
    float
        The difference, in the direction in which it must be larger. NaN if even rates of 0 and 1
        are not far enough from the reference group's rate.

    Notes
    -----
    The smallest :math:`d` with

    .. math:: d \ge z_{1-\alpha/2} \sqrt{\bar p (1 - \bar p) (1/n_1 + 1/n_2)}
              + z_{\mathrm{power}} \sqrt{p_1 (1 - p_1)/n_1 + p_2 (1 - p_2)/n_2},

    where :math:`p_1 = p_2 \pm d` and :math:`\bar p` is the pooled rate.

    Examples
    --------
    >>> round(detectable_difference((400, 1500)), 3), round(detectable_difference((60, 1500)), 3)
    (0.079, 0.181)
    """
    at_level, at_power = _quantiles(sizes, confidence, power, n_comparisons)
    check_number("rate", rate, "[0, 1]")
    first, second = sizes

    def excess(difference: float, sign: float) -> float:
        own = rate + sign * difference
        pooled = (own * first + rate * second) / (first + second)
        null = np.sqrt(pooled * (1.0 - pooled) * (1.0 / first + 1.0 / second))
        error = np.sqrt(own * (1.0 - own) / first + rate * (1.0 - rate) / second)
        return float(difference - at_level * null - at_power * error)

    found = []
    for sign, most in ((-1.0, rate), (1.0, 1.0 - rate)):
        if most > 0.0 and excess(most, sign) >= 0.0:
            found.append(float(brentq(excess, 0.0, most, args=(sign,), xtol=1e-9)))
    return max(found, default=float("nan"))


def detectable_mean_difference(
    sizes: tuple[float, float],
    deviations: tuple[float, float],
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    n_comparisons: int = 1,
) -> float:
    r"""Return the smallest difference of two means that these numbers of people can show.

    Parameters
    ----------
    sizes : tuple of two numbers
        People of both groups.
    deviations : tuple of two numbers
        Standard deviations of the scores in both groups.
    confidence, power, n_comparisons
        As in `detectable_difference`.

    Notes
    -----
    :math:`(z_{1-\alpha/2} + z_{\mathrm{power}}) \sqrt{s_1^2/n_1 + s_2^2/n_2}`.

    Examples
    --------
    >>> round(detectable_mean_difference((400, 1500), (0.2, 0.2)), 4)
    0.0315
    """
    at_level, at_power = _quantiles(sizes, confidence, power, n_comparisons)
    variance = sum(own**2 / size for own, size in zip(deviations, sizes, strict=True))
    return float((at_level + at_power) * np.sqrt(variance))


def chance_maximum(sizes: Sequence[float], *, rate: float = 0.5, random_state: int = 0) -> float:
    """Return the average of the largest difference over pairs if all rates are equal.

    It is the mean of 4,000 simulated tables of groups of these sizes, which all have this rate.
    """
    people = np.maximum(np.rint(np.asarray(sizes, dtype=np.float64)), 1.0)
    generator = np.random.default_rng(random_state)
    rates = generator.binomial(people.astype(np.int64), rate, (4000, len(people))) / people
    return float((rates.max(axis=1) - rates.min(axis=1)).mean())
