r"""The gaps of real-valued predictions: in units of the target, and in its standard deviations.

A prediction of hours or of euros has no threshold, so it accepts nobody. The gaps that remain are
those of means, of whole distributions and of matched people.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoreDistributions
from fairmatch.tables.arrays import FloatArray, read_numbers, read_weights
from fairmatch.tables.groups import read_groups
from fairmatch.tables.parameters import check_number

IN_UNITS = ("mean_parity_gap", "wasserstein_parity_gap", "matched_parity_gap")
"""Gaps in units of the target, each of which has a relative version."""

REAL_GAPS = (
    *("mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap", "matched_parity_gap"),
    *(f"relative_{name}" for name in IN_UNITS),
)
"""Names of all gaps of real-valued predictions."""


def real_gaps(
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    scale: float | None = None,
) -> dict[str, float]:
    r"""Compute every gap of real-valued predictions.

    Parameters
    ----------
    y_pred : array-like of shape (n_rows,)
        Predictions. Any finite numbers are allowed.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    coupling : Coupling, optional
        A matching of these rows. With it, the matched gap is computed too.
    scale : float, optional
        Standard deviation of the target. With it, relative gaps are computed too.

    Returns
    -------
    dict
        Name of the gap to its value. The gaps are those of mean predictions, of distributions (by
        Wasserstein and by Kolmogorov-Smirnov) and of matched people. Gaps in units of the target
        have a relative version, whose name begins with ``relative_``. With more than two groups
        each value is the largest over all pairs of groups.

    Notes
    -----
    The gaps are those of `fairmatch.measures`, for predictions that may lie outside [0, 1]:
    :math:`|E_s f - E_{s'} f|`, :math:`\int |F_s - F_{s'}| \, dt`, :math:`\sup_t |F_s(t) -
    F_{s'}(t)|` and :math:`E_s |f(X, s) - f(T(X), s')|`. In every part
    :math:`\Delta\overline{\mathrm{DP}} \le \Delta\mathrm{WDP} \le \Delta\mathrm{MDP}`, because
    Theorem 3.7 does not need scores in [0, 1].

    Examples
    --------
    >>> gaps = real_gaps([30.0, 40.0, 42.0, 48.0], sensitive_features=["f", "f", "m", "m"],
    ...                  scale=10.0)
    >>> for name, value in gaps.items():
    ...     print(f"{name:31}{value:g}")
    mean_parity_gap                10
    wasserstein_parity_gap         10
    ks_parity_gap                  1
    relative_mean_parity_gap       1
    relative_wasserstein_parity_gap1
    """
    predicted = read_predictions(y_pred)
    weights = read_weights(sample_weight, n_rows=len(predicted))
    groups = read_groups(sensitive_features, n_rows=len(predicted))
    compared = ScoreDistributions(predicted, groups, weights)
    found = {
        "mean_parity_gap": compared.rate_gap(None),
        "wasserstein_parity_gap": compared.wasserstein,
        "ks_parity_gap": compared.kolmogorov_smirnov,
    }
    check_coupling(coupling)
    if coupling is not None:
        coupling.read_groups(sensitive_features)
        found["matched_parity_gap"] = coupling.largest_gap(predicted)
    if scale is not None:
        check_number("scale", scale, "(0, inf)")
        found |= {f"relative_{name}": found[name] / scale for name in IN_UNITS if name in found}
    return found


def read_predictions(y_pred: Any, name: str = "y_pred") -> FloatArray:
    """Return predictions as finite numbers. An error names the first entry that is not finite."""
    predicted = read_numbers(y_pred, name)
    bad = ~np.isfinite(predicted)
    if bad.any():
        raise InputError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite (the first in row "
            f"{int(np.argmax(bad))}, counted from 0). Every row needs a finite number: correct "
            "these rows, or leave them out."
        )
    return predicted
