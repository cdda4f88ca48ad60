"""Group-fair classifiers that can say how they are fair."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Names are resolved on first use, so that `import fairmatch`
# is quick and loads neither torch nor a solver nor a plotting library.
_HOMES = {
    "Coupling": "coupling",
    "OptimalTransportMatcher": "matching",
    "audit": "auditing",
    "compare_models": "auditing",
    "fair_matching": "matching",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairmatch' has no attribute {name!r}")
    value = getattr(import_module(f"fairmatch.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
