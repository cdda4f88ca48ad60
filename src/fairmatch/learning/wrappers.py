"""Fairness around any model that a user already has."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples, check_is_fitted

from fairmatch.exceptions import InputError
from fairmatch.learning.adjust import ScoreAdjustment, adjust_people, check_adjustment, places_of
from fairmatch.learning.estimator import FairClassifier, FairEstimator, FairRegressor
from fairmatch.learning.learners import (
    ClassOutput,
    Learner,
    Output,
    RealOutput,
    check_columns,
    clone_wrapper,
    wrapped_tags,
)
from fairmatch.learning.penalties import Transport
from fairmatch.learning.reading import (
    Columns,
    EncodedTable,
    Reader,
    SmallGroups,
    as_list,
    encoded,
    group_columns,
    labels_of,
    table_width,
)
from fairmatch.learning.smoothing import match_compared, refuse_scores, smooth_matched
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.people.checks import FloatArray, check_flag, check_number
from fairmatch.people.encoding import Points, Table, TableEncoder, read_points
from fairmatch.people.groups import listed, read_criterion
from fairmatch.people.people import People

# Strengths of quantile alignment: shares of the way to the common distribution.
ALIGNMENT_STRENGTHS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0),
)
# Weights of match smoothing, whose penalty is a squared difference.
SMOOTHING_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200)


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows in the form that a learner sees, and their groups.

    Attributes
    ----------
    table : table or array of shape (n_rows, n_columns)
        What the learner sees.
    codes : array of shape (n_rows,), or None
        Codes of the groups; None if the model does not use them.
    """

    table: Any
    codes: NDArray[Any] | None
    _scored: dict[int, tuple[Any, FloatArray]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(_num_samples(self.table))

    def scored(self, model: Any, score: Any) -> FloatArray:
        """Return the scores of a model, which are computed only once per model."""
        if id(model) not in self._scored:
            self._scored[id(model)] = model, score(model, self.table)
        return self._scored[id(model)][1]


@dataclass(eq=False)
class WholeTableReader(Reader):
    """A reader for a learner that takes tables as they are.

    If the groups are a column of the table, the learner sees the whole table. If they are given
    beside it, one column of 0 and 1 for every group but the first is added. If new rows do not
    need groups, the learner sees no groups.

    Parameters
    ----------
    matches : bool
        Whether people are matched; the table is then also encoded.
    adds_groups : bool
        Whether groups that are given beside the table are added to it. They are not for a model
        that came fitted, because its columns are fixed.
    """

    matches: bool = False
    adds_groups: bool = True

    def split(self, X: Any, sensitive_features: Any, where: str = "fit") -> tuple[Any, Any]:
        """Return the table for the learner, and the groups."""
        table = read_table(X)
        rest, sensitive = super().split(table, sensitive_features, where)
        return (table if self.at_prediction else rest), sensitive

    def read_new(
        self, X: Any, sensitive_features: Any, where: str = "predict"
    ) -> tuple[Table, NDArray[np.intp] | None]:
        """Return the table of new rows, and the codes of their groups if the model uses them."""
        table, codes = super().read_new(read_table(X), sensitive_features, where)
        features = table.native
        self._check_names(features)
        apart = 0 if self.at_prediction else len(as_list(self.columns))
        if table_width(features) != self.n_features_in_ - apart:
            raise InputError(
                f"X has {table_width(features)} features, but {self.who} is expecting "
                f"{self.n_features_in_ - apart} features as input. Pass the columns of fit."
            )
        return table, codes

    def fit_encoder(self, table: Table) -> Points:
        """Return the encoded features as points, or points without columns if nobody is matched."""
        if not self.matches:
            return read_points(np.empty((len(table), 0)))
        return super().fit_encoder(self._described(table))

    def points(self, table: Table) -> Points:
        """Return a table as points, without columns if nobody is matched."""
        if not self.matches:
            return read_points(np.empty((len(table), 0)))
        return super().points(self._described(table))

    def _described(self, table: Table) -> Table:
        """Return a table without the groups' columns."""
        return table if self.columns is None else Table(self._without_groups(table.native))

    def inputs(
        self, table: Table, codes: NDArray[Any] | None, points: Points | None = None
    ) -> SeenRows:
        """Return rows in the form that the learner sees."""
        features = table.native
        if codes is not None and len(codes) != _num_samples(features):
            raise InputError(
                f"sensitive_features has {len(codes)} rows, X has {_num_samples(features)}. Pass "
                "one group for every row of X."
            )
        if codes is None or self.columns is not None or not self.adds_groups:
            return SeenRows(features, codes)
        return SeenRows(add_columns(features, group_columns(codes, len(self.groups_))), codes)

    def _check_names(self, features: Any) -> None:
        """Raise unless named columns are those of the fit, in their order."""
        given = getattr(features, "column_names", getattr(features, "columns", None))
        if given is None or self.feature_names_in_ is None:
            return
        known, given = list(self.feature_names_in_), list(given)
        if not self.at_prediction:  # the groups' columns have been dropped, or were missing
            known = [name for name in known if name in given]
        if given != known:
            strange = [name for name in given if name not in known]
            lacking = [name for name in known if name not in given]
            what = (
                f"lacks {listed(lacking)}"
                if lacking
                else (f"also has {listed(strange)}" if strange else "has another order")
            )
            raise InputError(
                f"The feature names should match those that were passed during fit: X {what}. "
                "Pass a table with the same columns in the same order."
            )


def read_table(X: Any) -> Any:
    """Return a table unchanged, and anything else as an array of two dimensions."""
    if sparse.issparse(X):
        raise InputError(
            "X is a sparse matrix, but groups and columns are read from tables. Pass a dense "
            "array (X.toarray()), or a table of pandas or polars."
        )
    if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
        return X
    try:
        return check_array(X, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        raise InputError(
            f"X cannot be read as a table ({error}). Pass a table, or an array of two dimensions."
        ) from error


def add_columns(table: Any, columns: FloatArray) -> Any:
    """Return a table with columns of numbers added after its own.

    Examples
    --------
    >>> import pandas as pd
    >>> add_columns(pd.DataFrame({"age": [30, 40]}), np.array([[1.0], [0.0]])).columns.tolist()
    ['age', 'group_1']
    """
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        array = np.asarray(table)
        return np.column_stack([array, columns.astype(array.dtype)])
    taken = set(frame.columns)
    named: dict[Any, FloatArray] = {}
    for place, column in enumerate(columns.T, start=1):
        # If names are numbers, the new ones are too: scikit-learn refuses a mixture.
        name: Any = f"group_{place}" if all(isinstance(c, str) for c in taken) else len(taken)
        while name in taken:
            name = f"_{name}" if isinstance(name, str) else name + 1
        named[name] = column
        taken.add(name)
    if frame.implementation.is_pandas():
        return (
            table.assign(**named)
            if all(isinstance(n, str) for n in named)
            else _joined(table, named)
        )
    series = [
        nw.new_series(name, column, backend=frame.implementation) for name, column in named.items()
    ]
    return frame.with_columns(*series).to_native()


def _joined(table: Any, named: dict[Any, FloatArray]) -> Any:
    wider = table.copy()
    for name, column in named.items():
        wider[name] = column
    return wider


SAVE_INSTEAD = (
    "Save the adjustment with model.adjustment_.save('file.json'), save model.estimator_ with its "
    "own library, and apply the adjustment to its scores: "
    "ScoreAdjustment.load('file.json').apply(scores, groups)."
)


def check_prefit(model: Any) -> None:
    """Raise unless a model has been fitted."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        if getattr(model, "classes_", None) is not None:
            return  # a model of another library that has classes, so it is fitted
        raise InputError(
            f"prefit=True was given, but the estimator, {type(model).__name__}, is not fitted. Fit "
            "it first, or use prefit=False, which fits it."
        ) from None


@dataclass(frozen=True, eq=False)
class AlignmentScorer:
    """A model with an adjustment of its scores by group.

    Attributes
    ----------
    model : fitted estimator
        The model that scores rows.
    output : Output
        The kind of the model's output.
    adjustment : ScoreAdjustment
        The adjustment of its scores.
    places : array of shape (n_groups,)
        Position of every group in the adjustment; -1 for groups that are not compared.
    """

    model: Any
    output: Output
    adjustment: ScoreAdjustment
    places: NDArray[np.intp]

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the adjusted score of every row."""
        raw = inputs.scored(self.model, self.output.raw)
        assert inputs.codes is not None, "an adjustment needs the groups"
        return self.output.standard(self.adjustment.move(raw, self.places[inputs.codes]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "adjustment_": self.adjustment}


softening_SAVE_INSTEAD = "Save model.estimator_, which is the whole model, with its own library."


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A model of another library that scores rows.

    Attributes
    ----------
    model : fitted estimator
        The model that scores rows.
    output : Output
        The kind of the model's output.
    targets : array of shape (n_rows,)
        What it has learned: the smoothed score of every training row, in the model's unit.
    """

    model: Any
    output: Output
    targets: FloatArray

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return self.output.standard(self.output.raw(self.model, inputs.table))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "targets_": self.targets}


class Wrapper(FairEstimator):
    """Estimators around a model of another library."""

    estimator: Any
    cv: Any = 5

    def __sklearn_clone__(self) -> Any:
        return clone_wrapper(self)

    def __sklearn_tags__(self) -> Any:
        return wrapped_tags(super().__sklearn_tags__(), self.estimator)

    def _whole_table_reader(self, *, matches: bool, adds_groups: bool) -> WholeTableReader:
        return WholeTableReader(
            type(self).__name__,
            self._outcome,
            self.sensitive_column,
            self.sensitive_at_prediction,
            self._encoder(),
            small_groups=self.small_groups,
            optional=matches,
            matches=matches,
            adds_groups=adds_groups,
        )

    def _output(self) -> Any:
        """Return the kind of the model's output."""
        if self._outcome.decides:
            return ClassOutput(self.reader_.classes_)
        return RealOutput(self.reader_.mean_, self.reader_.scale_)


class AlignedModel(Wrapper):
    """A wrapper that fits a model once, and one adjustment of its scores per strength."""

    _weight_name: ClassVar[str | None] = "strength"
    _weight_range: ClassVar[str] = "[0, 1]"
    _curve_weights: ClassVar[tuple[float, ...]] = ALIGNMENT_STRENGTHS
    _save_instead: ClassVar[str | None] = SAVE_INSTEAD

    prefit: bool = False
    decisions: str = "align"

    def _encoder(self) -> None:
        return None

    def _reader(self) -> WholeTableReader:
        return self._whole_table_reader(matches=False, adds_groups=not self.prefit)

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
        Learner(self.estimator).check(real=not self._outcome.decides)
        check_flag("prefit", self.prefit)
        if self.prefit:
            check_prefit(self.estimator)

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[AlignmentScorer]:
        output = self._output()
        model, scores = self._scored(people, output)
        adjustments = adjust_people(
            replace(people, table=None, labels=replace(labels_of(people), classes=(0, 1))),
            scores,
            strengths=weights,
            criterion=self.criterion,
            decisions=self.decisions,
            scale=output.scale,
        )
        pooled, places = self.reader_.pooled_, places_of(people.groups)
        return [
            AlignmentScorer(model, output, replace(one, pooled=pooled), places)
            for one in adjustments
        ]

    def _scored(self, people: People, output: Any) -> tuple[Any, FloatArray]:
        """Return the model for new rows, and the scores that the adjustment is fitted on."""
        table, learner = encoded(people).inputs.table, Learner(self.estimator)
        if self.prefit:
            check_columns(learner.estimator, table)
            return learner.estimator, output.raw(learner.estimator, table)
        weights = people.weights
        output.check(learner, weighted=weights is not None)
        labels, folds = output.own(labels_of(people).values), output.folds(self.cv, people)
        scores = learner.unseen_scores(table, labels, weights, folds, output.raw)
        return learner.fit(table, labels, weights), scores


class SmoothedModel(Wrapper):
    """A wrapper that fits one model per fairness weight on smoothed scores.

    All models share the out-of-fold scores and the matching.
    """

    _curve_weights: ClassVar[tuple[float, ...]] = SMOOTHING_WEIGHTS
    _save_instead: ClassVar[str | None] = softening_SAVE_INSTEAD
    _matches: ClassVar[bool] = True

    score_weight: float = 5.0

    def _encoder(self) -> TableEncoder:
        return TableEncoder(missing="encode")

    def _reader(self) -> WholeTableReader:
        return self._whole_table_reader(matches=True, adds_groups=True)

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        check_number("score_weight", self.score_weight, "[0, inf)")
        real = not self._outcome.decides
        Learner(self.estimator).check(weighted=not real, real=real)

    def _transport(self) -> Transport:
        return Transport(
            self.transport,
            self._outcome,
            self.criterion,
            self.reference,
            match_rows=self.match_rows,
            random_state=self.random_state,
        )

    def _match(self, people: People) -> Coupling:
        refuse_scores(self.score_weight)
        return self._transport().match(people)

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[ModelScorer]:
        output, learner = self._output(), Learner(self.estimator)
        seen = encoded(people)
        table, given = seen.inputs.table, people.weights
        output.check(learner, weighted=given is not None)
        numbers = labels_of(people).values
        labels = output.own(numbers)
        targets = np.tile(numbers, (len(weights), 1))
        smoothed = [place for place, weight in enumerate(weights) if weight > 0.0]
        soft = None
        if smoothed:
            folds = output.folds(self.cv, people)
            raw = learner.unseen_scores(table, labels, given, folds, output.raw)
            scores = output.standard(raw)
            column = np.sqrt(self.score_weight) * scores
            points = seen.points.with_number(column)
            near = replace(people, table=EncodedTable(seen.inputs, points, len(people)))
            matched = match_compared(self._transport(), near, coupling)
            positive = [weights[place] for place in smoothed]
            targets[smoothed] = smooth_matched(scores, matched, positive, near, learner, output)
            soft = learner.soften(table, labels, given)
        return [
            ModelScorer(
                learner.fit(table, labels, given)
                if weight == 0.0 or soft is None
                else soft.fit(output.soft(target)),
                output,
                output.soft(target),
            )
            for weight, target in zip(weights, targets, strict=True)
        ]


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
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the most accurate model whose gap on the held-out rows is at most this.
        A model that accepts nearly everybody or nearly nobody is kept only if no other qualifies.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `fairmatch.measures.MEASURES`. By default it is
        the gap of decisions that belongs to the criterion.
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. The limits hold for all models of the path at once. By default, the measured
        gap itself must be at most ``max_gap``.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group. A column of X
        that is a copy of the group is then an error, and one that gives it away is a warning.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are compared like others,
        unless they have a single row. With "pool" they become one group, "other". With "ignore"
        the model learns from their rows and compares them with nobody. A tuple such as
        ``("pool", 50)`` has another number of rows.
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

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float | Sequence[float] = 1.0,
        criterion: str = "demographic_parity",
        decisions: str = "align",
        prefit: bool = False,
        cv: Any = 5,
        max_gap: float | None = None,
        gap_measure: str | None = None,
        validation_size: float = 0.2,
        confidence: float | None = None,
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.criterion = criterion
        self.decisions = decisions
        self.prefit = prefit
        self.cv = cv
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.validation_size = validation_size
        self.confidence = confidence
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state


class MatchSmoothingClassifier(SmoothedModel, FairClassifier):
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
    fairness_weight : float or a list of float, default=1.0
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
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Who is compared: by default everybody, with "equal_opportunity" people with a positive
        label, and with "equalized_odds" people with the same label, for each class.
    reference : a group label, optional
        The group that every other group is compared with; by default the largest.
    match_rows : int or None, default=50000
        Greatest number of rows of two groups that are matched. In a larger table a sample is
        matched, drawn by group and label, and a smaller group is kept whole. The penalty sees the
        sample's pairs, and the loss sees all rows. None matches everybody.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the most accurate model whose gap on the held-out rows is at most this.
        A model that accepts nearly everybody or nearly nobody is kept only if no other qualifies.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `fairmatch.measures.MEASURES`. By default it is
        the gap of decisions that belongs to the criterion.
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. The limits hold for all models of the path at once. By default, the measured
        gap itself must be at most ``max_gap``.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group. A column of X
        that is a copy of the group is then an error, and one that gives it away is a warning.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are compared like others,
        unless they have a single row. With "pool" they become one group, "other". With "ignore"
        the model learns from their rows and compares them with nobody. A tuple such as
        ``("pool", 50)`` has another number of rows.
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

    def __init__(
        self,
        estimator: Any,
        *,
        fairness_weight: float | Sequence[float] = 1.0,
        transport: str | Matcher = "marginal",
        score_weight: float = 5.0,
        criterion: str = "demographic_parity",
        reference: Any = None,
        match_rows: int | None = 50_000,
        cv: Any = 5,
        max_gap: float | None = None,
        gap_measure: str | None = None,
        validation_size: float = 0.2,
        confidence: float | None = None,
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_weight = fairness_weight
        self.transport = transport
        self.score_weight = score_weight
        self.criterion = criterion
        self.reference = reference
        self.match_rows = match_rows
        self.cv = cv
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.validation_size = validation_size
        self.confidence = confidence
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state


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
        How far to go: 0 does not move the predictions, and 1 aligns them fully.
    prefit : bool, default=False
        Whether ``estimator`` is already fitted and is used without another fit. Then fit this
        regressor on rows that the estimator was not trained on. The estimator sees X without added
        columns.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. The adjustment is fitted on the prediction for every row by a
        model that was trained on the other folds.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the model with the least squared error whose gap on the held-out rows is
        at most this. The gap is in units of the target, or in standard deviations if the measure
        is relative.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in ``REAL_GAPS`` of `fairmatch.measures.registry`.
        By default it is "mean_parity_gap".
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. The limits hold for all models of the path at once. By default, the measured
        gap itself must be at most ``max_gap``.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group. A column of X
        that is a copy of the group is then an error, and one that gives it away is a warning.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are compared like others,
        unless they have a single row. With "pool" they become one group, "other". With "ignore"
        the model learns from their rows and compares them with nobody. A tuple such as
        ``("pool", 50)`` has another number of rows.
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

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float | Sequence[float] = 1.0,
        prefit: bool = False,
        cv: Any = 5,
        max_gap: float | None = None,
        gap_measure: str | None = None,
        validation_size: float = 0.2,
        confidence: float | None = None,
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.prefit = prefit
        self.cv = cv
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.validation_size = validation_size
        self.confidence = confidence
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state


class MatchSmoothingRegressor(SmoothedModel, FairRegressor):
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
    fairness_weight : float or a list of float, default=1.0
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
    reference : a group label, optional
        The group that every other group is compared with; by default the largest.
    match_rows : int or None, default=50000
        Greatest number of rows of two groups that are matched. In a larger table a sample is
        matched, drawn by group and label, and a smaller group is kept whole. The penalty sees the
        sample's pairs, and the loss sees all rows. None matches everybody.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the model with the least squared error whose gap on the held-out rows is
        at most this. The gap is in units of the target, or in standard deviations if the measure
        is relative.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in ``REAL_GAPS`` of `fairmatch.measures.registry`.
        By default it is "mean_parity_gap".
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. The limits hold for all models of the path at once. By default, the measured
        gap itself must be at most ``max_gap``.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group. A column of X
        that is a copy of the group is then an error, and one that gives it away is a warning.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are compared like others,
        unless they have a single row. With "pool" they become one group, "other". With "ignore"
        the model learns from their rows and compares them with nobody. A tuple such as
        ``("pool", 50)`` has another number of rows.
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

    def __init__(
        self,
        estimator: Any,
        *,
        fairness_weight: float | Sequence[float] = 1.0,
        transport: str | Matcher = "marginal",
        score_weight: float = 1.25,
        reference: Any = None,
        match_rows: int | None = 50_000,
        cv: Any = 5,
        max_gap: float | None = None,
        gap_measure: str | None = None,
        validation_size: float = 0.2,
        confidence: float | None = None,
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        small_groups: SmallGroups = "warn",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_weight = fairness_weight
        self.transport = transport
        self.score_weight = score_weight
        self.reference = reference
        self.match_rows = match_rows
        self.cv = cv
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.validation_size = validation_size
        self.confidence = confidence
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.small_groups = small_groups
        self.random_state = random_state
