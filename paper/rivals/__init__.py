"""Methods that exist to be compared with."""

from importlib import import_module
from typing import Any

_HOMES = {
    "AdversarialClassifier": "fairmatch.learning.networks",
    "ExponentiatedGradientClassifier": "paper.rivals.reductions",
    "GapRegularizedBoostingClassifier": "fairmatch.learning.trees",
    "GapRegularizedClassifier": "fairmatch.learning.networks",
    "LAFTRTransformer": "paper.rivals.representations",
    "ReductionClassifier": "fairmatch.learning.networks",
    "RepresentationClassifier": "paper.rivals.representations",
    "SIPMTransformer": "paper.rivals.representations",
    "TransportRepairTransformer": "paper.rivals.representations",
    "UnconstrainedClassifier": "fairmatch.learning.networks",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paper.rivals' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
