"""LinearPost: fair decisions from probabilities, by a linear program.

The method is from Xian and Zhao (arXiv 2405.04025). The program is written anew here, for two
classes and groups that are known at prediction.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

#: Scores are counted in this many cells of equal width.
CELLS = 1_000

Rule = Callable[[Any, Any], Any]


def linear_post(scores: Any, codes: Any, bound: float, criterion: str, cells: int = CELLS) -> Rule:
    """Return the rule with the greatest expected accuracy whose expected gap is within a bound.

    The variables are the shares h of people that are accepted in every cell of group and score.
    With P(Y = 1) = r, the accuracy is the mean of h r + (1 - h)(1 - r). For every condition (all
    people; or Y = 1 and Y = 0), a common level t has t <= rate of a group <= t + bound. A vertex of
    the program is fractional in few cells; there the rule takes the more likely decision, so that
    it is deterministic.
    """
    shares, _ = solve(*cell_masses(scores, codes, cells), bound, criterion)
    accepted = shares >= 0.5
    return lambda new, groups: accepted[groups, cell_of(new, cells)].astype(np.float64)


def cell_of(scores: Any, cells: int) -> Any:
    return np.minimum((np.asarray(scores) * cells).astype(np.intp), cells - 1)


def cell_masses(scores: Any, codes: Any, cells: int) -> tuple[Any, Any]:
    """Return the shares of the people in every cell of group and score, and their mean scores."""
    place = np.asarray(codes) * cells + cell_of(scores, cells)
    shape = int(np.max(codes)) + 1, cells
    mass = np.bincount(place, minlength=shape[0] * cells) / len(place)
    total = np.bincount(place, scores, shape[0] * cells) / len(place)
    middle = np.tile((np.arange(cells) + 0.5) / cells, shape[0])
    means = np.divide(total, mass, out=middle, where=mass > 0.0)
    return mass.reshape(shape), means.reshape(shape)


def conditions(mass: Any, chances: Any, criterion: str) -> list[Any]:
    """Return, for every condition, the share of its group that every cell holds."""
    parts = [mass] if criterion == "demographic_parity" else [mass * chances, mass * (1 - chances)]
    return [part / part.sum(axis=1, keepdims=True) for part in parts]


def solve(mass: Any, chances: Any, bound: float, criterion: str) -> tuple[Any, float]:
    """Return the accepted share of every cell, and the expected accuracy."""
    n_groups, n_cells = mass.shape
    parts = conditions(mass, chances, criterion)
    blocks = []
    for number, part in enumerate(parts):
        place = np.arange(n_groups * n_cells)
        rates = csr_array((part.ravel(), (place // n_cells, place)))
        level = np.zeros((n_groups, len(parts)))
        level[:, number] = 1.0
        blocks += [hstack([rates, -level]), hstack([-rates, level])]
    upper = np.tile(np.repeat([bound, 0.0], n_groups), len(parts))
    gain = np.append((mass * (2.0 * chances - 1.0)).ravel(), np.zeros(len(parts)))
    found = linprog(-gain, vstack(blocks), upper, bounds=(0.0, 1.0), method="highs-ds")
    # Empty cells cost nothing: they follow the nearest cell that has people.
    shares = found.x[: -len(parts)].reshape(mass.shape)
    for own, held in zip(shares, mass > 0.0, strict=True):
        filled = np.flatnonzero(held)
        if len(filled):
            nearest = np.abs(np.arange(n_cells)[:, None] - filled).argmin(axis=1)
            own[:] = own[filled[nearest]]
    return shares, float((mass * (1.0 - chances)).sum() - found.fun)
