"""A lower bound on the cost of a plan of millions: proven, or at a level of confidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from fairmatch.matching.pricing import column_minima, row_minima
from fairmatch.matching.problem import Atoms, Floats, Problem
from fairmatch.matching.solver import Transport
from fairmatch.tables.points import Points

#: Rows of each group whose coupling provides the potentials.
SAMPLE = 8_192
#: The most pairs that are examined for a proof. Beyond that, a sample of targets is used.
PROOF_PAIRS = 40_000_000_000
#: Number of targets in that sample, and the confidence of its bound.
WITNESSES = 16_384
CONFIDENCE = 0.99
_CHUNK = 65_536

Minima = Callable[[Problem, Floats], Floats]


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on the cost of every plan.

    Attributes
    ----------
    value : float
        The bound.
    confidence : float or None
        None if the bound is proven. Otherwise, the probability that it holds, over the draw of
        the sample.
    """

    value: float
    confidence: float | None


def lower_bound(
    points: tuple[Points, Points],
    units: tuple[Floats, Floats],
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    sample: int = SAMPLE,
    proof_pairs: int = PROOF_PAIRS,
    witnesses: int = WITNESSES,
) -> LowerBound:
    r"""Compute a lower bound on the cost of every plan, from the coupling of a sample.

    Parameters
    ----------
    points : pair of Points
        Both groups.
    units : pair of arrays of float
        Masses of their rows.
    random_state : int, default=0
        Seed of the samples.
    n_jobs : int, optional
        Number of joblib jobs.
    sample : int
        The most rows of each group in the sample. It is matched to a relative gap of 1e-3.
    proof_pairs : int
        The bound is proven if there are at most this many pairs.
    witnesses : int
        Otherwise, this many targets are drawn. With no more targets than this, the bound is proven
        as well.

    Returns
    -------
    LowerBound
        The bound, which is proven or has a confidence.

    Notes
    -----
    The sample's dual gives :math:`v` at its targets. Then :math:`u_i = \min_j c_{ij} - v_j` over
    these targets, for every source. With :math:`v_j = \min_i c_{ij} - u_i` over all sources,
    :math:`(u, v)` is feasible, and :math:`\sum a_i u_i + \sum b_j v_j` is a bound.

    With too many pairs, :math:`v` is computed only at :math:`t` targets, drawn in proportion to
    their mass. Let :math:`w_j \ge v_j` be the minimum over the sampled sources alone, which is
    computed for every target, and let :math:`d = w - v \in [0, R]`. Let :math:`\bar d` and
    :math:`s^2` be the mean and the variance of :math:`d` at the drawn targets. By the empirical
    Bernstein inequality (Maurer and Pontil, 2009), with probability :math:`1 - \delta`,

    .. math:: \mathbb{E} d \le \bar d + \sqrt{\frac{2 s^2 \ln(2 / \delta)}{t}}
              + \frac{7 R \ln(2 / \delta)}{3 (t - 1)} .
    """
    generator = np.random.default_rng([random_state, 2])
    shift = points[1].numbers.mean(axis=0)
    first, second = (Points(p.numbers - shift, p.codes) for p in points)
    shares = [side / side.sum() for side in units]
    rows = [generator.permutation(np.flatnonzero(side > 0))[:sample] for side in units]
    few = first.take(rows[0]), second.take(rows[1])
    mass = [share[at] / share[at].sum() for share, at in zip(shares, rows, strict=True)]
    transport = Transport(*few, *mass)
    start = transport.row_potentials(transport.solve(tolerance=1e-3, on_unproven="return"))
    v = column_minima(_problem(*few), start)
    u = np.concatenate(_over_sources(first, few[1], row_minima, v, n_jobs))
    if len(first) * len(second) <= proof_pairs or len(second) <= witnesses:
        least = _column_minima(first, second, u, n_jobs)
        return LowerBound(float(shares[0] @ u + shares[1] @ least), None)
    drawn = generator.choice(len(second), size=witnesses, p=shares[1])
    near = column_minima(_problem(few[0], second), u[rows[0]])
    difference = near[drawn] - _column_minima(first, second.take(drawn), u, n_jobs)
    bound = shares[0] @ u + shares[1] @ near - _mean_at_most(difference, near.max() + u.max())
    return LowerBound(float(bound), CONFIDENCE)


def _mean_at_most(values: Floats, largest: float) -> float:
    """Return an upper bound on the mean, at the confidence, of values from 0 to ``largest``."""
    count, log = len(values), math.log(2.0 / (1.0 - CONFIDENCE))
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * log / count)
    return float(values.mean()) + spread + 7.0 * largest * log / (3.0 * (count - 1))


def _problem(first: Points, second: Points) -> Problem:
    source, target = (Atoms(p.numbers, p.codes, np.ones(len(p))) for p in (first, second))
    return Problem(source, target)


def _column_minima(first: Points, second: Points, u: Floats, n_jobs: int | None) -> Floats:
    found = _over_sources(first, second, column_minima, u, n_jobs)
    least: Floats = np.minimum.reduce(found)
    return least


def _over_sources(
    first: Points, second: Points, minima: Minima, potential: Floats, n_jobs: int | None
) -> list[Floats]:
    """Return minima of the reduced costs for each chunk of the sources."""
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(first), _CHUNK)]
    of_sources = minima is column_minima  # whose potentials belong to the sources
    found: list[Floats] = Parallel(n_jobs=n_jobs)(
        delayed(_minima)(
            first.take(part), second, minima, potential[part] if of_sources else potential
        )
        for part in chunks
    )
    return found


def _minima(first: Points, second: Points, minima: Minima, potential: Floats) -> Floats:
    return minima(_problem(first, second), potential)
