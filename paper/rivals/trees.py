"""Boosted trees of the records: FTM's, and those that penalise the gap of mean scores."""

from collections.abc import Sequence
from typing import Any, ClassVar

import lightgbm as lgb

from fairmatch.learning.estimator import FairClassifier
from fairmatch.learning.reading import Columns, SmallGroups
from fairmatch.learning.trees import BoostedTrees, FTMBoostingClassifier
from fairmatch.matching.coupling import Coupling
from fairmatch.people.groups import read_criterion
from fairmatch.people.people import People
from paper.rivals import REG_WEIGHTS
from paper.rivals.penalties import SquaredMeanGap


class RecordedTrees(FTMBoostingClassifier):
    """FTM's trees as they were recorded: people are matched on scores of five folds."""

    _score_folds: ClassVar[int] = 5
    _score_rounds: ClassVar[float] = 1.0


class GapRegularizedBoostingClassifier(BoostedTrees, FairClassifier):
    r"""Boosted trees whose penalty is the squared gap of mean scores: the rival of FTM.

    The parameters are those of `fairmatch.FTMBoostingClassifier`, without those of the matching and
    of the choice by ``max_gap``.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2`, the
    objective of `GapRegularizedClassifier`. With more than two groups, or a criterion that compares
    people of the same label, the squared gap is the weighted mean over the parts.
    """

    _lightgbm: ClassVar[type[Any]] = lgb.LGBMClassifier
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS

    def __init__(
        self,
        estimator: Any = None,
        *,
        fairness_weight: float | Sequence[float] = 1.0,
        warmup: float = 0.0,
        criterion: str = "demographic_parity",
        reference: Any = None,
        early_stopping_rounds: int | None = None,
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_weight = fairness_weight
        self.warmup = warmup
        self.criterion = criterion
        self.reference = reference
        self.early_stopping_rounds = early_stopping_rounds
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state

    def _penalty(self, people: People, coupling: Coupling | None) -> SquaredMeanGap:
        parts = people.comparisons(read_criterion(self.criterion), self.reference)
        return SquaredMeanGap(parts, people)
