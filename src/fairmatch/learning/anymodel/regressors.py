"""Regressors that make any given model fair: by its predictions, or by what it learns."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel import aligning, softening
from fairmatch.learning.anymodel.aligning import (
    AlignmentLearner,
    AlignmentScorer,
    RealAlignmentSettings,
)
from fairmatch.learning.anymodel.cloning import clone_wrapper, wrapped_tags
from fairmatch.learning.anymodel.outputs import RealOutput
from fairmatch.learning.anymodel.seen import WholeTableReader, whole_table_reader
from fairmatch.learning.anymodel.softening import (
    ModelScorer,
    RealSmoothingSettings,
    SmoothingLearner,
)
from fairmatch.learning.anymodel.spreading import Matched, match_compared, refuse_scores
from fairmatch.learning.comparison import Comparison, GroupComparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.reader import GroupSettings
from fairmatch.learning.realchoice import RealGapChoice
from fairmatch.learning.regressor import FairRegressor
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import estimator as with_parameters
from fairmatch.learning.weights import ALIGNMENT_STRENGTHS, SMOOTHING_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.parameters import check_weights


@with_parameters(RealGapChoice, GroupSettings, GroupSizes)
class QuantileAlignmentRegressor(FairRegressor):
    r"""Any regressor, with its predictions aligned by group.

    Every group's predictions are moved towards one common distribution. Within a group the order
    of people stays, and nothing is random.

    Parameters
    ----------
    estimator : regressor
        The model that predicts: any regressor with scikit-learn's interface, or a Pipeline that
        ends with one. If ``sensitive_column`` names a column of X, it sees the whole of X. If
        groups are given beside X, it sees X and, after its columns, one column of 0 and 1 for
        every group but the first.
    strength : float, default=1.0
        How far to go: 0 does not move the predictions, and 1 aligns them fully.
    prefit : bool, default=False
        Whether ``estimator`` is already fitted and is used without another fit. Then fit this
        regressor on rows that the estimator was not trained on. The estimator sees X without added
        columns.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. The adjustment is fitted on the prediction for every row by a
        model that was trained on the other folds.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : regressor
        The fitted model.
    adjustment_ : ScoreAdjustment
        The adjustment of its predictions, in units of the target; its ``save`` writes a JSON file.
    fairness_weight_ : float
        The strength that the model was fitted with.

    Notes
    -----
    A prediction f of group s becomes :math:`(1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))` with t
    the strength, :math:`F_s` and :math:`Q_s` the distribution and quantile functions of the
    group's predictions and :math:`p_s` its share. With t = 1 the result is the best prediction
    under squared loss that has the same distribution in all groups (Chzhen et al., 2020). New rows
    need their groups.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fairmatch import QuantileAlignmentRegressor
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> amount = 1000.0 * split.X_train[:, 0]
    >>> model = QuantileAlignmentRegressor(HistGradientBoostingRegressor(max_iter=5), cv=2)
    >>> model = model.fit(
    ...     split.X_train[:, 1:], amount, sensitive_features=split.sensitive_features_train)
    >>> model.predict(
    ...     split.X_test[:, 1:], sensitive_features=split.sensitive_features_test).shape
    (200,)
    """

    estimator: Any
    _: KW_ONLY
    strength: float = 1.0
    prefit: bool = False
    cv: Any = 5
    random_state: Any = None

    _weight_name: ClassVar[str | None] = "strength"
    _curve_weights: ClassVar[tuple[float, ...]] = ALIGNMENT_STRENGTHS
    _save_instead: ClassVar[str | None] = aligning.SAVE_INSTEAD
    _family: ClassVar[Family] = Family(
        "table", RealAlignmentSettings, AlignmentLearner, AlignmentScorer, lambda: None
    )
    decisions: ClassVar[str] = "align"

    def __sklearn_clone__(self) -> Any:
        return clone_wrapper(self)

    def __sklearn_tags__(self) -> Any:
        return wrapped_tags(super().__sklearn_tags__(), self.estimator)

    def _reader(self) -> WholeTableReader:
        return whole_table_reader(self, matches=False, adds_groups=not self.prefit)

    def _learner(self) -> AlignmentLearner:
        output = RealOutput(self.target_mean_, self.target_scale_)
        return AlignmentLearner(RealAlignmentSettings.of(self), output, self.reader_.pooled_)

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        check_weights("strength", fairness_weights, "[0, 1]")
        RealAlignmentSettings.of(self)
        if not self.sensitive_at_prediction:
            raise InputError(
                "sensitive_at_prediction=False was given, but predictions are adjusted by group, "
                "so new rows need their groups. Leave it out, or use MatchSmoothingRegressor, "
                "which can predict without groups."
            )
        self._refuse_coupling(coupling)


@with_parameters(GroupComparison, Sampling, RealGapChoice, GroupSettings, GroupSizes)
class MatchSmoothingRegressor(FairRegressor):
    r"""Fairness Through Matching around any regressor.

    First, every row gets a prediction from a regressor that was not trained on it. Then people of
    different groups are matched, and the predictions of matched people are drawn together. Finally
    the regressor is trained on these smoothed predictions.

    Parameters
    ----------
    estimator : regressor
        The learner: any regressor with scikit-learn's interface, or a Pipeline that ends with one.
        If ``sensitive_column`` names a column of X, it sees the whole of X. If groups are given
        beside X, it sees X and, after its columns, one column of 0 and 1 for every group but the
        first. With ``sensitive_at_prediction=False`` it sees no groups.
    fairness_weight : float, default=1.0
        How much the differences of matched people count; 0 fits the regressor on the target.
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on besides their predictions. "marginal" uses their features, and
        "joint" adds the target. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`; it sees the weighted prediction as one more feature.
    score_weight : float, default=1.25
        Cost of matching predictions that differ by one standard deviation of the target, on the
        scale of squared distances of features. With 0 people are matched without their
        predictions, and with 25 nearly by equal predictions.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. The prediction for every row is by a regressor that was
        trained on the other folds.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : fitted estimator
        The model that has learned the smoothed predictions.
    targets_ : array of shape (n_rows,)
        The smoothed prediction for every training row; with weight 0, its target.

    Notes
    -----
    With :math:`\eta` the predictions, w the weights of rows and :math:`\Gamma` the coupling, each
    summing to 1, the targets minimise

    .. math:: \sum_i w_i (t_i - \eta_i)^2 + \lambda \sum_{ij} \Gamma_{ij} (t_i - t_j)^2.

    Predictions and targets are in standard deviations of the target here.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fairmatch import MatchSmoothingRegressor
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> amount = 1000.0 * split.X_train[:, 0]
    >>> model = MatchSmoothingRegressor(HistGradientBoostingRegressor(max_iter=5), cv=2)
    >>> model = model.fit(
    ...     split.X_train[:, 1:], amount, sensitive_features=split.sensitive_features_train)
    >>> model.predict(
    ...     split.X_test[:, 1:], sensitive_features=split.sensitive_features_test).shape
    (200,)
    """

    estimator: Any
    _: KW_ONLY
    fairness_weight: float = 1.0
    transport: str | Matcher = "marginal"
    score_weight: float = 1.25
    cv: Any = 5
    random_state: Any = None

    _curve_weights: ClassVar[tuple[float, ...]] = SMOOTHING_WEIGHTS
    _save_instead: ClassVar[str | None] = softening.SAVE_INSTEAD
    _matches: ClassVar[bool] = True
    _family: ClassVar[Family] = Family(
        "table",
        RealSmoothingSettings,
        SmoothingLearner,
        ModelScorer,
        lambda: TableEncoder(missing="encode"),
    )

    def __sklearn_clone__(self) -> Any:
        return clone_wrapper(self)

    def __sklearn_tags__(self) -> Any:
        return wrapped_tags(super().__sklearn_tags__(), self.estimator)

    def _reader(self) -> WholeTableReader:
        return whole_table_reader(self, matches=True, adds_groups=True)

    def _learner(self) -> SmoothingLearner:
        output = RealOutput(self.target_mean_, self.target_scale_)
        return SmoothingLearner(RealSmoothingSettings.of(self), output)

    def _transport(self) -> Transport:
        return Transport(self.transport, Comparison.of(self), real=True, sampling=Sampling.of(self))

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> Matched:
        return match_compared(self._transport(), rows, coupling)

    def _match_held_out(self, rows: TrainingRows) -> Coupling:
        refuse_scores(self.score_weight)
        return self._transport().match(rows)
