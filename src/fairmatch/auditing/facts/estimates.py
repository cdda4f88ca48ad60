"""A number and its interval: what most facts are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval.

    Attributes
    ----------
    value, low, high : float or None
        The estimate and the limits of its interval. All are None where no statement is made, and
        the limits alone are None where there is no interval.
    refused : str or None
        Why no statement is made, or None.

    Examples
    --------
    >>> Estimate(0.25, 0.2, 0.3)
    Estimate(value=0.25, low=0.2, high=0.3, refused=None)
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    refused: str | None = None
