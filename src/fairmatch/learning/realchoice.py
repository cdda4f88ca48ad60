"""Choosing the fairness weight of a regressor: the least error within a gap of real numbers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fairmatch.exceptions import ConstantModelWarning, SmallGroupWarning
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.curve import FairnessPath
from fairmatch.learning.limits import mean_gap_limit
from fairmatch.learning.notice import notify
from fairmatch.learning.rows import TrainingRows
from fairmatch.measures.real import REAL_GAPS

_LIMITED = ("mean_parity_gap", "relative_mean_parity_gap")
# Predictions whose spread is below this share of the target's count as constant.
_CONSTANT = 1e-3


@dataclass(frozen=True)
class RealGapChoice(GapChoice):
    """The choice of one regressor from a path.

    Parameters
    ----------
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the model with the least squared error whose gap on the held-out rows is
        at most this. The gap is in units of the target, or in standard deviations if the measure
        is relative.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `fairmatch.measures.real.REAL_GAPS`. By default
        it is "mean_parity_gap".

    Attributes
    ----------
    validation_curve_ : DataFrame
        With ``max_gap``: the errors and gaps of these models on the held-out rows.
    """

    _gaps: ClassVar[Collection[str]] = REAL_GAPS
    _limited: ClassVar[Collection[str]] = _LIMITED
    _bounds: ClassVar[str] = "[0, inf)"

    def best(self, curve: pd.DataFrame, measure: str, *, weight: str = "fairness_weight") -> int:
        """Return the position of the model to keep.

        Among the models within ``max_gap``, this is the one with the least error. If no model is
        within ``max_gap``, it is the one with the smallest gap, with a warning.
        """
        counted = measure if self.confidence is None else f"{measure}_limit"
        gaps, errors = curve[counted].to_numpy(), curve["rmse"].to_numpy()
        within = gaps <= self.max_gap
        if not within.any():
            self._warn_of_the_smallest(curve, gaps, int(gaps.argmin()), measure, weight)
            return int(gaps.argmin())
        best = int(np.argmin(np.where(within, errors, np.inf)))
        # The target's own spread follows from the error and from R squared.
        spread, explained = curve["spread"][best], curve["r2"][best]
        if spread**2 * max(1.0 - explained, 1e-9) < (_CONSTANT * errors[best]) ** 2:
            notify(
                f"The best model with {measure} <= {self.max_gap:g} predicts nearly the same for "
                "everybody. It is fair because it tells nobody apart. Allow a larger max_gap.",
                ConstantModelWarning,
            )
        return best

    def _limits(
        self, path: FairnessPath, measure: str, kept: list[Any], rows: TrainingRows
    ) -> list[float]:
        assert self.confidence is not None
        level = 1.0 - (1.0 - self.confidence) / len(path)
        scale = path.models[0].target_scale_ if measure.startswith("relative_") else 1.0
        return [
            mean_gap_limit(scores / scale, rows.groups, rows.weights, level)
            for scores in path.scores(kept[0], sensitive_features=kept[2])
        ]

    def _warn_of_few(
        self, rows: TrainingRows, ignored: Sequence[int], kept: pd.Series, measure: str
    ) -> None:
        groups = rows.groups
        if self.confidence is not None or measure not in _LIMITED:
            return
        sizes = np.sort(np.delete(groups.sizes(), list(ignored)))[:2]
        half = 1.96 * float(kept["spread"]) * float(np.sqrt((1.0 / sizes).sum()))
        if measure.startswith("relative_") and kept["wasserstein_parity_gap"] > 0.0:
            half *= kept["relative_wasserstein_parity_gap"] / kept["wasserstein_parity_gap"]
        if half <= float(self.max_gap or 0.0):
            return
        notify(
            f"The held-out groups are small ({groups.sized()} rows): a gap of mean predictions "
            f"is known to about ±{_short(half)}, more than max_gap={self.max_gap:g}. The model "
            f"that is kept has {measure} {_short(kept[measure])} on these rows; on new rows it may "
            f"be up to {_short(kept[measure] + half)}. Set confidence=, hold out more rows "
            "(validation_size=), or pool groups.",
            SmallGroupWarning,
        )


def _short(number: float) -> str:
    """Return a number of units with three digits, or whole where it has more before the point."""
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.3g}"
