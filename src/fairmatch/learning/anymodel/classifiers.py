"""Models that somebody already has, made fair: by their scores, or by what they learn."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from fairmatch.exceptions import InputError
from fairmatch.learning.anymodel import aligning, softening
from fairmatch.learning.anymodel.aligning import (
    AlignmentLearner,
    AlignmentScorer,
    AlignmentSettings,
)
from fairmatch.learning.anymodel.cloning import clone_wrapper, wrapped_tags
from fairmatch.learning.anymodel.outputs import ClassOutput
from fairmatch.learning.anymodel.seen import WholeTableReader, whole_table_reader
from fairmatch.learning.anymodel.softening import ModelScorer, SmoothingLearner, SmoothingSettings
from fairmatch.learning.anymodel.spreading import Matched, match_compared, refuse_scores
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.classifier import FairClassifier
from fairmatch.learning.comparison import Comparison, Sampling, Transport
from fairmatch.learning.family import Family
from fairmatch.learning.groupsizes import GroupSizes
from fairmatch.learning.reader import GroupSettings
from fairmatch.learning.rows import TrainingRows
from fairmatch.learning.settings import estimator as with_parameters
from fairmatch.learning.weights import ALIGNMENT_STRENGTHS, SMOOTHING_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.parameters import check_weights


@with_parameters(GapChoice, GroupSettings, GroupSizes)
class QuantileAlignmentClassifier(FairClassifier):
    r"""Any classifier, with its scores adjusted by group.

    Every group's scores are moved towards the distribution that all groups have in common, or one
    threshold per group is set. Within a group the order of people stays, and nothing is random.

    Parameters
    ----------
    estimator : classifier
        What scores: any classifier of scikit-learn's kind with ``predict_proba``, a Pipeline, or
        a regressor of probabilities. It sees the whole of X where ``sensitive_column`` is a
        column of it. Where groups are given beside X, it also sees one column of 0 and 1 for
        every group but the first, behind the columns of X.
    strength : float, default=1.0
        How far to go: 0 leaves the scores alone, 1 goes all the way. With
        ``decisions="threshold"`` it is the share of the model's own gap that is taken away.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores are made alike: by default everybody's; those of people with a positive
        label; or, by thresholds only, those of each class.
    decisions : {"align", "threshold"}, default="align"
        Whether scores are aligned, or the most accurate thresholds within a gap are set. Scores
        are then bent so that every group's threshold lies at one half.
    prefit : bool, default=False
        Whether ``estimator`` has been fitted and is used as it is. Fit this one then on rows that
        it has not seen. It sees X as it is.
    cv : int, splitter or list of (train, test), default=5
        Folds of the scores that the adjustment is fitted on, each by a model that has not seen
        the row.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    adjustment_ : ScoreAdjustment
        What moves its scores; its ``save`` writes a JSON file. ``adjustment_.parts`` says what
        gap ties leave (``remaining_gap``).
    fairness_weight_ : float
        The strength in use.

    Notes
    -----
    A score f of group s becomes :math:`(1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))` with t the
    strength, :math:`F_s` and :math:`Q_s` the distribution and quantile functions of the group's
    scores and :math:`p_s` its share. With t = 1 it is the best score under squared loss whose
    distribution is the same in all groups (Chzhen et al., 2020; Jiang et al., 2020). In terms of
    the paper it is the group-fair model whose implicit matching is the quantile matching of the
    model's own scores. The groups are needed at prediction.

    Equalised odds fixes a point of every group's ROC curve. Where the curves do not meet,
    thresholds without randomisation have no gap only if they accept everybody or nobody; this
    class does not randomise.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairmatch import QuantileAlignmentClassifier
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> model = QuantileAlignmentClassifier(LogisticRegression(max_iter=1000))
    >>> model = model.fit(
    ...     split.X_train, split.y_train, sensitive_features=split.sensitive_features_train)
    >>> model.predict(
    ...     split.X_test, sensitive_features=split.sensitive_features_test).shape
    (200,)
    """

    estimator: Any
    _: KW_ONLY
    strength: float = 1.0
    criterion: str = "demographic_parity"
    decisions: str = "align"
    prefit: bool = False
    cv: Any = 5
    random_state: Any = None

    _weight_name: ClassVar[str | None] = "strength"
    _curve_weights: ClassVar[tuple[float, ...]] = ALIGNMENT_STRENGTHS
    _save_instead: ClassVar[str | None] = aligning.SAVE_INSTEAD
    _family: ClassVar[Family] = Family(
        "table", AlignmentSettings, AlignmentLearner, AlignmentScorer, lambda: None
    )

    def __sklearn_clone__(self) -> Any:
        return clone_wrapper(self)

    def __sklearn_tags__(self) -> Any:
        return wrapped_tags(super().__sklearn_tags__(), self.estimator)

    def _reader(self) -> WholeTableReader:
        return whole_table_reader(self, matches=False, adds_groups=not self.prefit)

    def _learner(self) -> AlignmentLearner:
        return AlignmentLearner(AlignmentSettings.of(self), ClassOutput(self.classes_))

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        check_weights("strength", fairness_weights, "[0, 1]")
        AlignmentSettings.of(self)
        if not self.sensitive_at_prediction:
            raise InputError(
                "sensitive_at_prediction=False was given, and scores are adjusted by group, so new "
                "rows need theirs. Leave it out, or use MatchSmoothingClassifier, which can do "
                "without."
            )
        self._refuse_coupling(coupling)


@with_parameters(Comparison, Sampling, GapChoice, GroupSettings, GroupSizes)
class MatchSmoothingClassifier(FairClassifier):
    r"""Fairness Through Matching around any learner that takes weights of rows.

    The learner scores every row that it has not seen. People of different groups are matched, the
    scores of matched people are drawn together, and the learner learns the result.

    Parameters
    ----------
    estimator : classifier
        What learns: any classifier of scikit-learn's kind with ``predict_proba`` whose ``fit``
        takes ``sample_weight``, a Pipeline that ends with one, or a regressor. LightGBM and
        XGBoost learn the targets directly, by cross-entropy; others see every row twice, as
        positive and as negative, weighed by the target. It sees the whole of X where
        ``sensitive_column`` is a column of it. Where groups are given beside X, it also sees one
        column of 0 and 1 for every group but the first, behind the columns of X.
    fairness_weight : float, default=1.0
        How much the differences of matched people count; 0 is the learner itself.
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        How people are matched: on their features; on features and labels; or by any object with a
        ``match`` method like `OptimalTransportMatcher`'s. Each of them sees the weighed score as
        one more feature.
    score_weight : float, default=5.0
        What a whole difference of scores costs where people are matched, as a squared distance
        of features: 0 is the marginal map of the features alone, and 100 nearly matches equal
        scores.
    cv : int, splitter or list of (train, test), default=5
        Folds of the scores, each by a learner that has not seen the row.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : fitted estimator
        The model that has learned the targets. Where the learner takes probabilities as targets,
        it is a regressor of them.
    targets_ : array of shape (n_rows,)
        What it has learned: the smoothed score of every training row.

    Notes
    -----
    With :math:`\eta` the scores, w the weights of rows and :math:`\Gamma` the coupling, each
    summing to 1, the targets minimise

    .. math:: \sum_i w_i (t_i - \eta_i)^2 + \lambda \sum_{ij} \Gamma_{ij} (t_i - t_j)^2.

    This is the objective of FTM (Section 4.3 of the paper) for squared loss and squared
    differences, over all scores of the training rows. FTM's own penalty is the absolute
    difference. All weights of a path share scores and coupling.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairmatch import MatchSmoothingClassifier
    >>> from fairmatch.datasets import load_german, paper_split
    >>> split = paper_split(load_german(), seed=0)
    >>> model = MatchSmoothingClassifier(LogisticRegression(max_iter=1000), fairness_weight=5.0)
    >>> model = model.fit(
    ...     split.X_train, split.y_train, sensitive_features=split.sensitive_features_train)
    >>> model.predict(
    ...     split.X_test, sensitive_features=split.sensitive_features_test).shape
    (200,)
    """

    estimator: Any
    _: KW_ONLY
    fairness_weight: float = 1.0
    transport: str | Matcher = "marginal"
    score_weight: float = 5.0
    cv: Any = 5
    random_state: Any = None

    _curve_weights: ClassVar[tuple[float, ...]] = SMOOTHING_WEIGHTS
    _save_instead: ClassVar[str | None] = softening.SAVE_INSTEAD
    _matches: ClassVar[bool] = True
    _family: ClassVar[Family] = Family(
        "table",
        SmoothingSettings,
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
        return SmoothingLearner(SmoothingSettings.of(self), ClassOutput(self.classes_))

    def _transport(self) -> Transport:
        return Transport(self.transport, Comparison.of(self), sampling=Sampling.of(self))

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> Matched:
        return match_compared(self._transport(), rows, coupling)

    def _match_held_out(self, rows: TrainingRows) -> Coupling:
        refuse_scores(self.score_weight)
        return self._transport().match(rows)
