"""The candidate that a user would pick from the tuning rows alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# A candidate that accepts a smaller or larger share of the tuning rows decides nothing.
FEWEST_ACCEPTED, MOST_ACCEPTED = 0.01, 0.99


def picked_index(curve: Mapping[str, Sequence[Any]], level: float) -> int | None:
    """Return the index of the most accurate candidate within a level, on the tuning rows.

    Parameters
    ----------
    curve : mapping
        Columns ``tune_gap``, ``tune_accepted`` and ``tune_accuracy``, with a value per candidate.
    level : float
        The largest gap allowed on the tuning rows.

    Returns
    -------
    int or None
        None if no candidate is within the level and accepts between 1% and 99% of the rows.

    Examples
    --------
    >>> curve = {"tune_gap": [0.0, 0.04, 0.2], "tune_accepted": [0.0, 0.3, 0.3],
    ...          "tune_accuracy": [0.9, 0.7, 0.8]}
    >>> picked_index(curve, 0.05), picked_index(curve, 0.01)
    (1, None)
    """
    gap, accepted, accuracy = (
        np.asarray(curve[f"tune_{name}"], dtype=np.float64)
        for name in ("gap", "accepted", "accuracy")
    )
    allowed = (gap <= level) & (accepted >= FEWEST_ACCEPTED) & (accepted <= MOST_ACCEPTED)
    return int(np.argmax(np.where(allowed, accuracy, -np.inf))) if allowed.any() else None
