"""The parts of a distance between matched people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureCost:
    """The part of a transport cost that comes from one column of the table.

    Attributes
    ----------
    name : str
        The column, before encoding.
    cost, smallest, random : float
        Its part of the cost of the matching in question, of the nearest matching, and of a random
        one.
    share : float
        Its share of the cost of the matching in question.
    """

    name: str
    cost: float
    smallest: float
    random: float
    share: float
