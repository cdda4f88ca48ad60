"""The parts of a distance between matched people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureCost:
    """The part of a transport cost that comes from one column of the table.

    Attributes
    ----------
    name : str
        The column, as it was before encoding.
    cost, smallest, random : float
        Its part under the model's fair matching, the nearest matching and a random one.
    share : float
        Its share of the model's cost.
    """

    name: str
    cost: float
    smallest: float
    random: float
    share: float
