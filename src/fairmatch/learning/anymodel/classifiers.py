"""Classifiers that make any given model fair: by its scores, or by what it learns."""

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

    Either every group's scores are moved towards one common distribution, or one threshold is set
    per group. Within a group the order of people stays, and nothing is random.

    Parameters
    ----------
    estimator : classifier
        The model that scores people: any classifier with scikit-learn's interface and
        ``predict_proba``, a Pipeline, or a regressor of probabilities. If ``sensitive_column``
        names a column of X, it sees the whole of X. If groups are given beside X, it sees X and,
        after its columns, one column of 0 and 1 for every group but the first.
    strength : float, default=1.0
        How far to go: 0 does not move the scores, and 1 aligns them fully. With
        ``decisions="threshold"`` it is the share of the model's own gap that is taken away.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores are made alike. By default these are everybody's. With "equal_opportunity" they
        are those of people with a positive label. With "equalized_odds" they are those of each
        class, which only thresholds can do.
    decisions : {"align", "threshold"}, default="align"
        "align" aligns the scores of all groups. "threshold" sets the most accurate threshold of
        every group within a gap, and bends the scores until every threshold lies at one half.
    prefit : bool, default=False
        Whether ``estimator`` is already fitted and is used without another fit. Then fit this
        classifier on rows that the estimator was not trained on. The estimator sees X without
        added columns.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. The adjustment is fitted on the score of every row by a model
        that was trained on the other folds.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    adjustment_ : ScoreAdjustment
        The adjustment of its scores; its ``save`` writes a JSON file. With ``decisions="align"``,
        ``adjustment_.parts.remaining_gap`` is the gap that ties leave.
    fairness_weight_ : float
        The strength that the model was fitted with.

    Notes
    -----
    A score f of group s becomes :math:`(1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))` with t the
    strength, :math:`F_s` and :math:`Q_s` the distribution and quantile functions of the group's
    scores and :math:`p_s` its share. With t = 1 the result is the best score under squared loss
    that has the same distribution in all groups (Chzhen et al., 2020; Jiang et al., 2020). In the
    terms of the paper, it is the group-fair model with the quantile matching of the model's own
    scores as its implicit matching. New rows need their groups.

    Equalised odds fixes a point of every group's ROC (receiver operating characteristic) curve.
    Where the curves do not meet, thresholds without randomisation have no gap only if they accept
    everybody or nobody. This class does not randomise.

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
        return AlignmentLearner(
            AlignmentSettings.of(self), ClassOutput(self.classes_), self.reader_.pooled_
        )

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        check_weights("strength", fairness_weights, "[0, 1]")
        AlignmentSettings.of(self)
        if not self.sensitive_at_prediction:
            raise InputError(
                "sensitive_at_prediction=False was given, but scores are adjusted by group, so new "
                "rows need their groups. Leave it out, or use MatchSmoothingClassifier, which can "
                "predict without groups."
            )
        self._refuse_coupling(coupling)


@with_parameters(Comparison, Sampling, GapChoice, GroupSettings, GroupSizes)
class MatchSmoothingClassifier(FairClassifier):
    r"""Fairness Through Matching (FTM) around any learner that takes weights of rows.

    First, every row gets a score from a learner that was not trained on it. Then people of
    different groups are matched, and the scores of matched people are drawn together. Finally the
    learner is trained on these smoothed scores.

    Parameters
    ----------
    estimator : classifier
        The learner: any classifier with scikit-learn's interface and ``predict_proba`` whose
        ``fit`` takes ``sample_weight``, a Pipeline that ends with one, or a regressor. LightGBM and
        XGBoost learn the smoothed scores directly, by cross-entropy. Other classifiers see every
        row twice, as positive and as negative, with weights that follow from its smoothed score.
        If ``sensitive_column`` names a column of X, the learner sees the whole of X. If groups are
        given beside X, it sees X and, after its columns, one column of 0 and 1 for every group but
        the first. With ``sensitive_at_prediction=False`` it sees no groups.
    fairness_weight : float, default=1.0
        How much the differences of matched people count; 0 fits the learner on the labels.
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on besides their scores. "marginal" uses their features, and "joint"
        adds their labels. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`; it sees the weighted score as one more feature.
    score_weight : float, default=5.0
        Cost of matching a score of 0 with a score of 1, on the scale of squared distances of
        features. With 0 people are matched without their scores, and with 100 nearly by equal
        scores.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. Every row is scored by a learner that was trained on the
        other folds.
    random_state : int, optional
        Seed of the split that ``max_gap`` chooses on; the estimator has a seed of its own.

    Attributes
    ----------
    estimator_ : fitted estimator
        The model that has learned the smoothed scores. For LightGBM and XGBoost it is a regressor
        of probabilities.
    targets_ : array of shape (n_rows,)
        The smoothed score of every training row; with weight 0, its label as 0 or 1.

    Notes
    -----
    With :math:`\eta` the scores, w the weights of rows and :math:`\Gamma` the coupling, each
    summing to 1, the targets minimise

    .. math:: \sum_i w_i (t_i - \eta_i)^2 + \lambda \sum_{ij} \Gamma_{ij} (t_i - t_j)^2.

    This is the objective of FTM (Section 4.3 of the paper) with squared loss and squared
    differences, over all scores of the training rows. FTM itself penalises absolute differences.
    All weights of a path share the scores and the coupling.

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
