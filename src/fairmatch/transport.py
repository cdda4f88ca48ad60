"""Interim dense solver, until the one for all sizes is in."""

from dataclasses import dataclass

import numpy as np

from fairmatch.coupling import IndexArray
from fairmatch.inputs import FloatArray

EXACT = 1e-9


@dataclass(frozen=True)
class TransportPlan:
    """A plan."""

    source: IndexArray
    target: IndexArray
    mass: FloatArray
    cost: float
    bound: float
    solver: str


def solve_transport(
    source_points: FloatArray,
    target_points: FloatArray,
    source_mass: FloatArray | None = None,
    target_mass: FloatArray | None = None,
    *,
    tolerance: float = EXACT,
    random_state: int = 0,
) -> TransportPlan:
    """Solve densely."""
    import ot

    cost = ot.dist(source_points, target_points)
    n0, n1 = cost.shape
    a = np.ones(n0) / n0 if source_mass is None else source_mass
    b = np.ones(n1) / n1 if target_mass is None else target_mass
    plan, log = ot.emd(a, b, cost, numItermax=10**9, log=True)
    i, j = np.nonzero(plan)
    m = plan[i, j] / plan.sum()
    primal = float((cost[i, j] * m).sum())
    return TransportPlan(i, j, m, primal, float(log["u"] @ a + log["v"] @ b), "dense")
