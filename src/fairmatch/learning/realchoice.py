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
from fairmatch.tables.groups import Groups

_LIMITED = ("mean_parity_gap", "relative_mean_parity_gap")
# Predictions that spread less than this share of the target are the same for everybody.
_CONSTANT = 1e-3


@dataclass(frozen=True)
class RealGapChoice(GapChoice):
    """Which regressor of a path is kept.

    Parameters
    ----------
    max_gap : float, optional
        Choose the fairness weight instead of giving it: train a path on part of the rows and keep
        the model of the least squared error whose gap on the held-out rows is at most this. It is
        in units of the target, or in standard deviations where the measure is a relative one.
    gap_measure : str, default="mean_parity_gap"
        Which gap ``max_gap`` bounds, a name of `fairmatch.measures.real.REAL_GAPS`.

    Attributes
    ----------
    validation_curve_ : DataFrame
        With ``max_gap``: their errors and gaps on the held-out rows.
    """

    _gaps: ClassVar[Collection[str]] = REAL_GAPS
    _limited: ClassVar[Collection[str]] = _LIMITED
    _bounds: ClassVar[str] = "[0, inf)"

    def best(self, curve: pd.DataFrame, measure: str) -> int:
        """Return the position of the model to keep: the least error among those within the gap."""
        counted = measure if self.confidence is None else f"{measure}_limit"
        gaps, errors = curve[counted].to_numpy(), curve["rmse"].to_numpy()
        within = gaps <= self.max_gap
        if not within.any():
            self._warn_of_the_smallest(curve, gaps, counted)
            return int(gaps.argmin())
        best = int(np.argmin(np.where(within, errors, np.inf)))
        # The target's own spread follows from the error and from what is explained of it.
        spread, explained = curve["spread"][best], curve["r2"][best]
        if spread**2 * max(1.0 - explained, 1e-9) < (_CONSTANT * errors[best]) ** 2:
            notify(
                f"The best model with {measure} <= {self.max_gap:g} predicts nearly the same for "
                "everybody: it is fair because it tells nobody apart. Allow a larger max_gap.",
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
        self, groups: Groups, ignored: Sequence[int], kept: pd.Series, measure: str
    ) -> None:
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
            f"is known to about ±{half:.2g}, more than max_gap={self.max_gap:g}. The model kept "
            f"has {measure} {kept[measure]:.3g} there, and on new rows it may be up to "
            f"{kept[measure] + half:.2g}. Ask for a confidence=, hold out more rows, or pool "
            "groups.",
            SmallGroupWarning,
        )
