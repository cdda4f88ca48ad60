"""Methods that exist to be compared with."""

from importlib import import_module
from typing import Any

_HOMES = {
    "AdversarialClassifier": "paper.rivals.networks",
    "ExponentiatedGradientClassifier": "paper.rivals.reductions",
    "GapRegularizedBoostingClassifier": "paper.rivals.trees",
    "GapRegularizedClassifier": "paper.rivals.networks",
    "LAFTRTransformer": "paper.rivals.representations",
    "RecordedTrees": "paper.rivals.trees",
    "ReductionClassifier": "paper.rivals.networks",
    "RepresentationClassifier": "paper.rivals.representations",
    "SIPMTransformer": "paper.rivals.representations",
    "TransportRepairTransformer": "paper.rivals.representations",
    "UnconstrainedClassifier": "paper.rivals.networks",
}

__all__ = sorted(_HOMES)

# The weights of the paper's Appendix D.2.
REDUCTION_WEIGHTS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500),
)
REG_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 1.8, 2, 3, 5, 10, 20, 50, 100),
)
ADV_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 15, 20),
    *(30, 50, 100),
)
# These weights reach the paper's levels on its four tables.
LAFTR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SIPM_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 4.0)
# A classifier undoes a partial repair as long as it can tell the groups apart. So most of the
# change happens near amount 1, and most amounts lie there.
REPAIR_AMOUNTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0)
# Bounds of exponentiated gradient, the loosest first.
REDUCTION_BOUNDS = (0.08, 0.05, 0.03, 0.02, 0.01)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paper.rivals' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
