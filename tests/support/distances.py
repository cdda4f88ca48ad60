"""Squared distances of all pairs of points."""

import numpy as np


def distances(first, second):
    """Return the squared distance of every point to every other."""
    rows, others = np.indices((len(first), len(second))).reshape(2, -1)
    return first.pair_costs(rows, others, second).reshape(len(first), len(second))
