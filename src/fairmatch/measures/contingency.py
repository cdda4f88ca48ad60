r"""Tests on tables of counts: the selections of two groups, alone or within strata.

A table of one stratum is ``[[a, b], [c, d]]``: the people of the compared group who are selected
and those who are not, and then those of the reference group.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri

from fairmatch.people.checks import FloatArray


@dataclass(frozen=True)
class OddsRatio:
    """An odds ratio with its interval. The ratio is NaN if no stratum has evidence about it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ChiSquare:
    """A test with a chi-square statistic."""

    statistic: float  #: The statistic; NaN if the tables hold no evidence.
    degrees: int  #: Degrees of freedom.
    p_value: float  #: 1 without evidence.


def standard_deviations(hits: tuple[float, float], sizes: tuple[float, float]) -> float:
    r"""Return by how many standard deviations the first group's rate differs from the second's.

    With the pooled rate :math:`p`,
    :math:`z = (p_1 - p_2) / \sqrt{p (1 - p) (1 / n_1 + 1 / n_2)}`, and 0 if everybody or nobody is
    selected. Courts and agencies of the United States call a difference of more than two or three
    of these significant (Hazelwood School District v. United States, 1977).
    """
    rate = sum(hits) / sum(sizes)
    if not 0.0 < rate < 1.0:
        return 0.0
    error = np.sqrt(rate * (1.0 - rate) * (1.0 / sizes[0] + 1.0 / sizes[1]))
    return float((hits[0] / sizes[0] - hits[1] / sizes[1]) / error)


def shortfall(hits: tuple[float, float], sizes: tuple[float, float]) -> float:
    """Return how many more selections would bring the first group to the second group's rate.

    It is negative if the compared group has the higher rate.
    """
    return float(sizes[0] * hits[1] / sizes[1] - hits[0])


def flips(hits: tuple[float, float], sizes: tuple[float, float], bound: float = 0.8) -> bool:
    """Return whether one selection more or less in the compared group changes the verdict.

    The verdict is whether the ratio of the rates is below the bound.
    """
    # Compared without a division, so that nothing is lost to rounding or to a rate of 0.
    near = [own for own in (hits[0], hits[0] - 1.0, hits[0] + 1.0) if 0.0 <= own <= sizes[0]]
    return len({own * sizes[1] < bound * hits[1] * sizes[0] for own in near}) > 1


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values adjusted for their number, by Holm's step-down method.

    If each test is rejected where its adjusted p-value is at most 5 %, the probability of any false
    rejection is at most 5 %.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def mantel_haenszel(tables: ArrayLike, confidence: float = 0.95) -> OddsRatio:
    r"""Return the odds ratio that strata have in common.

    Mantel and Haenszel's estimate is
    :math:`\sum_k (a_k d_k / n_k) \,/\, \sum_k (b_k c_k / n_k)`, with the interval of Robins,
    Breslow and Greenland (1986) on the scale of its logarithm.
    """
    cells = _cells(tables)
    total = cells.sum(axis=(1, 2))
    cells, total = cells[total > 0.0], total[total > 0.0]
    (a, b), (c, d) = cells.transpose(1, 2, 0)
    agree, differ = a * d / total, b * c / total
    if not (agree.sum() > 0.0 and differ.sum() > 0.0):
        value = np.nan if agree.sum() == differ.sum() else np.inf if agree.sum() else 0.0
        return OddsRatio(float(value), 0.0, np.inf)
    p, q = (a + d) / total, (b + c) / total
    variance = (
        (p * agree).sum() / (2.0 * agree.sum() ** 2)
        + (p * differ + q * agree).sum() / (2.0 * agree.sum() * differ.sum())
        + (q * differ).sum() / (2.0 * differ.sum() ** 2)
    )
    center = np.log(agree.sum() / differ.sum())
    half = -float(ndtri((1.0 - confidence) / 2.0)) * np.sqrt(variance)
    return OddsRatio(*(float(np.exp(center + side * half)) for side in (0.0, -1.0, 1.0)))


def _cells(tables: ArrayLike) -> FloatArray:
    """Return tables of counts in the shape (n_strata, 2, 2)."""
    return np.asarray(tables, dtype=np.float64).reshape(-1, 2, 2)


def cochran_mantel_haenszel(tables: ArrayLike) -> ChiSquare:
    r"""Test whether the groups differ within strata.

    The statistic is :math:`(\sum_k a_k - E a_k)^2 / \sum_k \mathrm{Var}\, a_k` with the moments of
    the hypergeometric distribution, without a continuity correction.
    """
    cells = _cells(tables)
    cells = cells[cells.sum(axis=(1, 2)) > 1.0]
    rows, columns, total = cells.sum(axis=2), cells.sum(axis=1), cells.sum(axis=(1, 2))
    expected = rows[:, 0] * columns[:, 0] / total
    variance = rows.prod(axis=1) * columns.prod(axis=1) / (total**2 * (total - 1.0))
    if not variance.sum() > 0.0:
        return ChiSquare(float("nan"), 1, 1.0)
    statistic = float((cells[:, 0, 0] - expected).sum() ** 2 / variance.sum())
    return ChiSquare(statistic, 1, float(chdtrc(1.0, statistic)))


def breslow_day(tables: ArrayLike, least: float = 0.0) -> ChiSquare:
    r"""Test whether the odds ratio is the same in every stratum, with Tarone's correction.

    Notes
    -----
    In every stratum the count :math:`a_k` is compared with the one :math:`\tilde a_k` that has the
    common odds ratio and the same margins: :math:`\sum_k (a_k - \tilde a_k)^2 / V_k - (\sum_k a_k -
    \tilde a_k)^2 / \sum_k V_k`. Strata with a margin of 0 carry no evidence and are left out, as
    are strata in which one of the four expected counts is below ``least``.

    The chi-square distribution needs large strata. In simulations with one common odds ratio, the
    test at 5 % rejected in 8 % to 48 % of the draws with strata of 4 to 20 people each, and always
    with strata of two. With ``least=5`` it rejected in at most 5 % of the draws in strata of 40
    people, and of very different sizes.
    """
    cells = _cells(tables)
    cells = cells[(cells.sum(axis=1) > 0.0).all(axis=1) & (cells.sum(axis=2) > 0.0).all(axis=1)]
    if least:
        cells = cells[_expected(cells).min(axis=0) >= least]
    expected, degrees = _expected(cells), len(cells) - 1
    if degrees < 1 or not expected.any():
        return ChiSquare(float("nan"), max(degrees, 0), 1.0)
    variance = 1.0 / (1.0 / expected).sum(axis=0)
    excess = cells[:, 0, 0] - expected[0]
    statistic = float((excess**2 / variance).sum() - excess.sum() ** 2 / variance.sum())
    return ChiSquare(statistic, degrees, float(chdtrc(float(degrees), max(statistic, 0.0))))


def _expected(cells: FloatArray) -> FloatArray:
    """Return the four counts of each stratum that have the common odds ratio and the same margins.

    They are 0 if there is no finite odds ratio.
    """
    ratio = mantel_haenszel(cells).value
    if not (np.isfinite(ratio) and ratio > 0.0):
        return np.zeros((4, len(cells)))
    own, hits, total = cells[:, 0].sum(axis=1), cells[:, :, 0].sum(axis=1), cells.sum(axis=(1, 2))
    # The fitted count solves x (n - r - c + x) = ratio (r - x)(c - x).
    square = 1.0 - ratio
    linear = total - own - hits + ratio * (own + hits)
    constant = -ratio * own * hits
    if abs(square) < 1e-12:
        fitted = -constant / linear
    else:
        root = np.sqrt(np.maximum(linear**2 - 4.0 * square * constant, 0.0))
        fitted = 2.0 * constant / (-linear - root)
    return np.stack([fitted, own - fitted, hits - fitted, total - own - hits + fitted])
