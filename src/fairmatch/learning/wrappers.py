"""Fairness around any model that a user already has: aligned scores, and match smoothing."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.learning.adjust import ScoreAdjustment, adjust_people, check_adjustment, places_of
from fairmatch.learning.choice import Prepared, crossed_folds
from fairmatch.learning.estimator import (
    ChoosesWeight,
    FairClassifier,
    FairEstimator,
    FairRegressor,
    MatchesPeople,
    documented,
)
from fairmatch.learning.learners import (
    Learner,
    SeenRows,
    WholeTableReader,
    check_columns,
    fresh,
)
from fairmatch.learning.reading import EncodedTable, encoded, labels_of
from fairmatch.learning.smoothing import smoother
from fairmatch.matching.coupling import Coupling
from fairmatch.people.checks import FloatArray, check_flag, check_number
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import read_criterion
from fairmatch.people.people import IndexArray, People

# Strengths of quantile alignment: shares of the way to the common distribution.
ALIGNMENT_STRENGTHS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0),
)
# Folds in which adjustments are fitted to measure them on rows that they have not seen.
_ADJUSTMENT_FOLDS = 5
# Weights of match smoothing, whose penalty is a squared difference.
SMOOTHING_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200)


class Wrapper(FairEstimator):
    """Estimators around a model of another library.

    Parameters
    ----------
    random_state : int, optional
        Seed of the split on which ``max_gap`` chooses. The estimator has a seed of its own.
    """

    estimator: Any
    cv: Any = 3
    prefit: bool = False

    def _copied(self) -> dict[str, Any]:
        # A clone of the inner model would be unfitted, and with prefit=True it must be fitted.
        inner = self.estimator if self.prefit is True else fresh(self.estimator)
        return {**super()._copied(), "estimator": inner}

    def __sklearn_tags__(self) -> Any:
        """Return the tags, with those of the wrapped model about its tables."""
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except (AttributeError, TypeError):
            return tags  # not an estimator; fit raises the error
        for name in ("allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        return tags

    def _encoder(self) -> TableEncoder | None:
        # The learner sees the table as it is; its numbers are for the matching.
        return TableEncoder(missing="encode") if isinstance(self, MatchesPeople) else None

    def _reader(self) -> WholeTableReader:
        known = vars(super()._reader())
        known |= {"optional": isinstance(self, MatchesPeople), "adds_groups": not self.prefit}
        return WholeTableReader(**known)

    def _learner(self) -> Learner:
        """Return the user's learner, with the classes or the unit of the rows of the fit."""
        reader = self.reader_
        return Learner(self.estimator, self._outcome, reader.classes_, reader.mean_, reader.scale_)


@dataclass(frozen=True, eq=False)
class AlignmentScorer:
    """A model with an adjustment of its scores by group.

    ``places`` are the positions of the groups in the adjustment; -1 for groups that are not
    compared.
    """

    learner: Learner
    model: Any
    adjustment: ScoreAdjustment
    places: NDArray[np.intp]

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the adjusted score of every row."""
        assert inputs.codes is not None, "an adjustment needs the groups"
        raw = inputs.scored(self.learner, self.model)
        places = self.places[inputs.codes]
        return self.learner.standard(self.adjustment.move(raw, places, inputs.strata))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "adjustment_": self.adjustment}


@dataclass(eq=False, repr=False)
class AlignedModel(Wrapper, ChoosesWeight):
    """A wrapper that fits a model once, and one adjustment of its scores per strength.

    Parameters
    ----------
    given : str or list of str, optional
        Columns of X within whose levels scores are adjusted, such as job title and grade. A number
        with more than ten different values is cut into five bands. For learning, strata with fewer
        than ten people of a group are pooled. ``max_gap`` bounds the mean absolute gap within
        strata, without pooling. In new strata, people get the adjustment of the whole table.
    prefit : bool, default=False
        Whether ``estimator`` is already fitted and is used as it is. Then fit this wrapper on rows
        that the estimator was not trained on. The estimator sees X without added columns.
    cv : int, splitter or list of (train, test), default=3
        How rows are split into folds. The adjustment is fitted on out-of-fold scores: each row is
        scored by a model that was trained on the other folds.
    validation_size : float, default=0.2
        Share of the rows that ``confidence`` sets aside, stratified by label and group.
    """

    _prepares_unseen: ClassVar[bool] = True
    _weight_name: ClassVar[str | None] = "strength"
    _weight_range: ClassVar[str] = "[0, 1]"
    _curve_weights: ClassVar[tuple[float, ...]] = ALIGNMENT_STRENGTHS
    _save_instead: ClassVar[str | None] = (
        "Save the adjustment with model.adjustment_.save('file.json'), save model.estimator_ with "
        "its own library, and apply the adjustment to its scores: "
        "ScoreAdjustment.load('file.json').apply(scores, groups)."
    )

    decisions = "align"  # a parameter of the classifier

    estimator: Any
    _: KW_ONLY
    strength: float | Sequence[float] = 1.0
    prefit: bool = False
    cv: Any = 3

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        if not self.sensitive_at_prediction:
            kind = "Classifier" if self._outcome.decides else "Regressor"
            raise InputError(
                "sensitive_at_prediction=False was given, but scores are adjusted by group, so new "
                f"rows need their groups. Leave it out, or use MatchSmoothing{kind}, which can "
                "predict without groups.",
                parameter="sensitive_at_prediction",
            )
        check_adjustment(read_criterion(self.criterion), self.decisions)
        check_flag("prefit", self.prefit)
        Learner(self.estimator, self._outcome).check(prefit=self.prefit)

    def _prepare(self, people: People, coupling: Coupling | None) -> Prepared:
        table, learner = encoded(people).inputs.table, self._learner()
        if self.prefit:
            check_columns(self.estimator, table)
            scores = learner.raw(self.estimator, table)
        else:
            learner.check(weighted=people.weights is not None)
            scores = learner.unseen(table, people, self.cv)
        places, plain = places_of(people.groups), replace(people, table=None)

        @cache
        def model() -> Any:
            if self.prefit:
                return self.estimator
            return learner.fit(table, labels_of(people).values, people.weights)

        def adjusted(rows: IndexArray, weights: Sequence[float]) -> list[ScoreAdjustment]:
            return adjust_people(
                plain.take(rows),
                scores[rows],
                strengths=weights,
                criterion=self.criterion,
                decisions=self.decisions,
                scale="probability" if self._outcome.decides else "real",
            )

        def train(weights: Sequence[float]) -> list[AlignmentScorer]:
            return [
                AlignmentScorer(learner, model(), replace(one, pooled=self.reader_.pooled_), places)
                for one in adjusted(np.arange(len(people)), weights)
            ]

        def unseen(weights: Sequence[float]) -> list[FloatArray]:
            """Adjust every fold's out-of-fold scores by a fit on the other folds."""
            codes, found = places[people.groups.codes], np.empty((len(weights), *scores.shape))
            strata = None if people.strata is None else people.strata.values
            every = np.arange(len(people))
            try:
                folds = crossed_folds(people, _ADJUSTMENT_FOLDS, 0)
                parts = [(test, adjusted(rest, weights)) for rest, test in folds]
            except (GroupError, LabelError):  # a group, or a class of it, has too few rows to split
                parts = [(every, adjusted(every, weights))]
            for test, adjustments in parts:
                own = None if strata is None else strata[test]
                for scored, one in zip(found, adjustments, strict=True):
                    scored[test] = learner.standard(one.move(scores[test], codes[test], own))
            return list(found)

        return Prepared(train, unseen=unseen)


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A model that has learned ``targets``, the smoothed scores of its training rows."""

    learner: Learner
    model: Any
    targets: FloatArray

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return self.learner.standard(self.learner.raw(self.model, inputs.table))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "targets_": self.targets}


@dataclass(eq=False, repr=False)
class SmoothedModel(Wrapper, ChoosesWeight, MatchesPeople):
    """A wrapper that fits one model per fairness weight, on smoothed scores.

    All models share the out-of-fold scores and the matching.

    Parameters
    ----------
    cv : int, splitter or list of (train, test), default=3
        How rows are split into folds. Every row is scored by a learner that was trained on the
        other folds.
    """

    _cross_fits: ClassVar[bool] = True
    _curve_weights: ClassVar[tuple[float, ...]] = SMOOTHING_WEIGHTS
    _save_instead: ClassVar[str | None] = (
        "Save model.estimator_, which is the whole model, with its own library."
    )

    estimator: Any
    _: KW_ONLY
    score_weight: float = 5.0
    cv: Any = 3

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        check_number("score_weight", self.score_weight, "[0, inf)")
        # A classifier learns soft targets by weights of rows, and a regressor does so directly.
        Learner(self.estimator, self._outcome).check(weighted=self._outcome.decides)

    def _match(self, people: People) -> Coupling:
        if self.score_weight > 0.0:
            raise InputError(
                f"With score_weight={self.score_weight:g} people are matched on scores of the "
                "training rows, which held-out rows do not have, so matched_parity_gap cannot be "
                "the gap_measure. Use score_weight=0, or another gap_measure.",
                parameter="score_weight",
            )
        return super()._match(people)

    def _prepare(self, people: People, coupling: Coupling | None) -> Prepared:
        table, learner = encoded(people).inputs.table, self._learner()
        numbers = certain = labels_of(people).values
        learner.check(weighted=people.weights is not None)
        if self._outcome.several:
            certain = np.eye(len(self._outcome.classes))[numbers.astype(np.intp)]

        @cache
        def smoothing() -> tuple[Callable[[float], FloatArray], Callable[[FloatArray], Any]]:
            scores = learner.standard(learner.unseen(table, people, self.cv))
            pairs = self._matched(people, scores, coupling)
            targets = smoother(learner, table, people, scores, *pairs)
            return targets, learner.softly(table, numbers, people.weights)

        def trained(weight: float) -> ModelScorer:
            if weight == 0.0:
                model = learner.fit(table, numbers, people.weights)
                return ModelScorer(learner, model, learner.own_unit(certain))
            targets, fit = smoothing()
            target = targets(weight)
            return ModelScorer(learner, fit(target), learner.own_unit(target))

        def train(weights: Sequence[float]) -> list[ModelScorer]:
            return [trained(weight) for weight in weights]

        return Prepared(train)

    def _matched(
        self, people: People, scores: FloatArray, coupling: Coupling | None
    ) -> tuple[Coupling, NDArray[np.bool_] | None]:
        """Return the coupling, and which rows a matching without a sample would match."""
        transport, seen = self._transport(), encoded(people)
        if coupling is not None:
            transport.refuse_other(coupling, people)
            return coupling, None
        # The score counts like one more feature. Two certain classes are as far apart as 0 and 1.
        points = seen.points
        for column in np.sqrt(0.5) * scores.T if scores.ndim == 2 else [scores]:
            points = points.with_number(np.sqrt(self.score_weight) * column)
        people = replace(people, table=EncodedTable(seen.inputs, points, len(people)))
        compared = np.zeros(len(people), dtype=bool)
        for part in transport.parts(people):
            compared[part.source_rows] = compared[part.target_rows] = True
        return transport.match(people), compared


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class QuantileAlignmentClassifier(AlignedModel, FairClassifier):
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
    strength : float or a list of float, default=1.0
        Strength of the adjustment: 0 does not move the scores, and 1 aligns them fully. With
        ``decisions="threshold"`` it is the share of the model's own gap that is removed.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose scores are equalised. By default everybody's. With "equal_opportunity" those of people
        with a positive label, or with several classes the recalls of every class. With
        "equalized_odds" those within each class, which only thresholds can do.
    decisions : {"align", "threshold"}, default="align"
        "align" aligns the scores of all groups. "threshold" sets the most accurate threshold of
        every group within a gap, and adjusts the scores so that 0.5 is the threshold for all. With
        more than two classes, "align" moves the probability vectors towards the barycentre of the
        groups (demographic parity only), and "threshold" adds offsets to them.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the strength. It measures strengths by
        cross-fitting over all rows. Candidates are strengths within the bound whose score is within
        one standard error of the best. If the gap of some of them plus its standard error is within
        the bound, fit keeps the one of these that is closest to the plain model, and otherwise the
        fairest candidate. It is fitted again on all rows. If no strength is within the bound, the
        fairest is kept, with a warning. A model that accepts nearly everybody or nearly nobody is
        kept only if no other qualifies.
    calibrate : bool, default=False
        Whether to calibrate the scores by group on cross-fitted scores, as `fit_calibration` does.
        No decision changes. It needs ``decisions="threshold"``, because calibration would undo an
        alignment.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    adjustment_ : ScoreAdjustment
        The adjustment of its scores; its ``save`` writes a JSON file. With ``decisions="align"``,
        ``adjustment_.parts.remaining_gap`` is the gap that ties leave.
    fairness_weight_ : float
        The strength that the model was fitted with.
    calibration_ : ScoreCalibration or None
        With ``calibrate``: the maps of the scores.

    Notes
    -----
    A score f of group s becomes :math:`(1 - t) f + t \sum_{s'} p_{s'} Q_{s'}(F_s(f))` with t the
    strength, :math:`F_s` and :math:`Q_s` the distribution and quantile functions of the group's
    scores and :math:`p_s` its share. With t = 1 the result is the best score under squared loss
    that has the same distribution in all groups (Chzhen et al., 2020; Jiang et al., 2020). In the
    paper's terms, it is the group-fair model whose implicit matching is the quantile matching of
    the original scores. New rows need their groups.

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

    _several: ClassVar[bool] = True

    criterion: str = "demographic_parity"
    decisions: str = "align"
    scoring: Any = "accuracy"
    calibrate: bool = False


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class MatchSmoothingClassifier(SmoothedModel, FairClassifier):
    r"""Fairness Through Matching (FTM) for any learner that accepts sample weights.

    First, every row gets a score from a learner that was not trained on it. Then people of
    different groups are matched, and the scores of matched people are pulled towards each other.
    Finally the learner is trained on these smoothed scores.

    Parameters
    ----------
    estimator : classifier
        The learner: any classifier with scikit-learn's interface and ``predict_proba`` whose
        ``fit`` takes ``sample_weight``, a Pipeline that ends with one, or a regressor. LightGBM and
        XGBoost learn the smoothed scores of two classes directly, by cross-entropy. Otherwise
        classifiers see every row once for each class, with its smoothed probability as weight.
        If ``sensitive_column`` names a column of X, the learner sees the whole of X. If groups are
        given beside X, it sees X and, after its columns, one column of 0 and 1 for every group but
        the first. With ``sensitive_at_prediction=False`` it sees no groups.
    fairness_weight : float or a list of float, default=1.0
        Weight of the differences between matched people; 0 fits the learner on the labels.
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on besides their scores. "marginal" uses their features, and "joint"
        adds their labels. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`; it sees the weighted score as one more feature.
    score_weight : float, default=5.0
        Cost of matching a score of 0 with a score of 1, on the scale of squared distances of
        features. With 0 people are matched without their scores, and with 100 almost only by their
        scores.
    calibrate : bool, default=False
        Whether to calibrate the scores by group on held-out rows, as `fit_calibration` does. No
        decision changes.

    Attributes
    ----------
    estimator_ : fitted estimator
        The model that has learned the smoothed scores. For LightGBM and XGBoost it is a regressor
        of probabilities.
    targets_ : array of shape (n_rows,) or (n_rows, n_classes)
        The smoothed score of every training row, one column for each of several classes; with
        weight 0, its label as 0 or 1.
    calibration_ : ScoreCalibration or None
        With ``calibrate``: the maps of the scores.

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

    _several: ClassVar[bool] = True

    criterion: str = "demographic_parity"
    scoring: Any = "accuracy"
    calibrate: bool = False


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class QuantileAlignmentRegressor(AlignedModel, FairRegressor):
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
    strength : float or a list of float, default=1.0
        Strength of the alignment: 0 does not move the predictions, and 1 aligns them fully.

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

    scoring: Any = "neg_root_mean_squared_error"


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class MatchSmoothingRegressor(SmoothedModel, FairRegressor):
    r"""Fairness Through Matching (FTM) for any regressor.

    First, every row gets a prediction from a regressor that was not trained on it. Then people of
    different groups are matched, and the predictions of matched people are pulled towards each
    other. Finally the regressor is trained on these smoothed predictions.

    Parameters
    ----------
    estimator : regressor
        The learner: any regressor with scikit-learn's interface, or a Pipeline that ends with one.
        If ``sensitive_column`` names a column of X, it sees the whole of X. If groups are given
        beside X, it sees X and, after its columns, one column of 0 and 1 for every group but the
        first. With ``sensitive_at_prediction=False`` it sees no groups.
    fairness_weight : float or a list of float, default=1.0
        Weight of the differences between matched people; 0 fits the regressor on the target.
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on besides their predictions. "marginal" uses their features, and
        "joint" adds the target. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`; it sees the weighted prediction as one more feature.
    score_weight : float, default=1.25
        Cost of matching predictions that differ by one standard deviation of the target, on the
        scale of squared distances of features. With 0 people are matched without their predictions,
        and with 25 almost only by their predictions.

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

    score_weight: float = 1.25
    scoring: Any = "neg_root_mean_squared_error"
