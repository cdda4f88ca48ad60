"""The network simplex of POT (Python Optimal Transport), loaded without its array libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

#: POT imports each of these libraries if it is installed, unless its variable is set.
_BACKENDS = {
    "torch": "POT_BACKEND_DISABLE_PYTORCH",
    "jax": "POT_BACKEND_DISABLE_JAX",
    "cupy": "POT_BACKEND_DISABLE_CUPY",
    "tensorflow": "POT_BACKEND_DISABLE_TENSORFLOW",
}


def dense_simplex() -> Callable[..., Any]:
    """Return POT's ``emd_c``, which solves a problem with a full matrix of costs."""
    solve: Callable[..., Any] = _compiled().emd_c
    return solve


def sparse_simplex() -> Callable[..., Any]:
    """Return POT's ``emd_c_sparse``, which solves a problem with a list of arcs."""
    solve: Callable[..., Any] = _compiled().emd_c_sparse
    return solve


@cache
def _compiled() -> Any:
    """Return POT's compiled module.

    The simplex needs only NumPy arrays, and importing torch would cost every worker a second and
    200 MB. So POT is loaded without its backends and then removed from ``sys.modules``. A later
    import of POT by other code loads all of it.
    """
    loaded = "ot" in sys.modules
    unset = [
        variable
        for name, variable in _BACKENDS.items()
        if not loaded and name not in sys.modules and variable not in os.environ
    ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        from ot.lp import emd_wrap
    finally:
        for variable in unset:
            os.environ.pop(variable, None)
        if not loaded:
            for name in [name for name in sys.modules if name.partition(".")[0] == "ot"]:
                del sys.modules[name]
    return emd_wrap
