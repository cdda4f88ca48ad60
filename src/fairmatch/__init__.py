"""Group-fair classifiers that can say how they are fair."""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# Where each public name lives. Names are resolved on first use, so that `import fairmatch`
# is quick and loads neither torch nor a solver nor a plotting library.
_HOMES = {
    "Coupling": "matching.coupling",
    "FTMBoostingClassifier": "learning.trees",
    "FTMBoostingRegressor": "learning.trees",
    "FTMClassifier": "learning.networks",
    "FTMRegressor": "learning.networks",
    "GapMonitor": "auditing.monitor",
    "GroupBlindClassifier": "learning.blind",
    "MatchSmoothingClassifier": "learning.wrappers",
    "MatchSmoothingRegressor": "learning.wrappers",
    "NeuralNetwork": "learning.networks",
    "OptimalTransportMatcher": "matching.matchers",
    "QuantileAlignmentClassifier": "learning.wrappers",
    "QuantileAlignmentRegressor": "learning.wrappers",
    "ScoreAdjustment": "learning.adjust",
    "align_scores": "learning.adjust",
    "assert_gap": "auditing.gate",
    "audit": "auditing.audit",
    "bands": "people.bands",
    "compare_models": "auditing.audit",
    "explain": "auditing.explain",
    "fair_matching": "matching.fair",
    "find_alternatives": "auditing.alternatives",
    "group_probabilities": "people.memberships",
    "fairness_path": "learning.path",
    "fit_adjustment": "learning.adjust",
    "fit_calibration": "learning.calibration",
    "load": "learning.saving",
    "matching_curve": "matching.nearest",
    "nearest_fair_matching": "matching.nearest",
    "to_onnx": "learning.deploy",
}

# Optional libraries, and the extra that installs each.
_EXTRAS = {"torch": "train", "safetensors": "train", "lightgbm": "boost", "fairlearn": "all"}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairmatch' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"fairmatch.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        from fairmatch.exceptions import MissingExtraError

        extra = _EXTRAS[error.name]
        raise MissingExtraError(
            f"fairmatch.{name} needs {error.name}: pip install 'fairmatch[{extra}]'."
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("_")), *_HOMES})
