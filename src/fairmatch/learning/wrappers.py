"""Fairness around any model that a user already has."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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
from fairmatch.learning.choice import GapChoice, RealGapChoice
from fairmatch.learning.estimator import FairClassifier, FairRegressor, Family
from fairmatch.learning.learners import (
    ClassOutput,
    Learner,
    Output,
    RealOutput,
    check_columns,
    clone_wrapper,
    wrapped_tags,
)
from fairmatch.learning.penalties import Comparison, GroupComparison, Sampling, Transport
from fairmatch.learning.reading import (
    GroupSettings,
    GroupSizes,
    TableReader,
    TrainingRows,
    as_list,
    group_columns,
    table_width,
)
from fairmatch.learning.settings import ALIGNMENT_STRENGTHS, SMOOTHING_WEIGHTS, Settings
from fairmatch.learning.settings import estimator as with_parameters
from fairmatch.learning.smoothing import Matched, match_compared, refuse_scores, smooth_matched
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.people.checks import FloatArray, check_flag, check_number, check_weights
from fairmatch.people.encoding import Points, TableEncoder, read_points
from fairmatch.people.groups import listed, read_criterion
from fairmatch.people.outcome import Loss
from fairmatch.people.people import Labels, People
from fairmatch.people.weights import Weights


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
class WholeTableReader(TableReader):
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
    ) -> tuple[Any, NDArray[np.intp] | None]:
        """Return the table of new rows, and the codes of their groups if the model uses them."""
        features, codes = super().read_new(read_table(X), sensitive_features, where)
        self._check_names(features)
        apart = 0 if self.at_prediction else len(as_list(self.columns))
        if table_width(features) != self.n_features_in_ - apart:
            raise InputError(
                f"X has {table_width(features)} features, but {self.who} is expecting "
                f"{self.n_features_in_ - apart} features as input. Pass the columns of fit."
            )
        return features, codes

    def fit_encoder(self, features: Any, n_rows: int) -> Points:
        """Return the encoded features as points, or points without columns if nobody is matched."""
        if _num_samples(features) != n_rows:
            raise InputError(
                f"X has {_num_samples(features)} rows, y has {n_rows}. Pass one label for every "
                "row of X."
            )
        if not self.matches:
            return read_points(np.empty((n_rows, 0)))
        return super().fit_encoder(self._without_groups(features), n_rows)

    def points(self, features: Any) -> Points:
        """Return the features of new rows as points, without columns if nobody is matched."""
        if not self.matches:
            return read_points(np.empty((_num_samples(features), 0)))
        return super().points(self._without_groups(features))

    def inputs(
        self, features: Any, codes: NDArray[Any] | None, points: Points | None = None
    ) -> SeenRows:
        """Return rows in the form that the learner sees."""
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


def whole_table_reader(model: Any, *, matches: bool, adds_groups: bool) -> WholeTableReader:
    """Return a reader with an estimator's parameters that has seen no table yet."""
    groups = GroupSettings.of(model)
    return WholeTableReader(
        type(model).__name__,
        groups.sensitive_column,
        groups.sensitive_at_prediction,
        model._encoder(),
        optional=matches,
        keep=groups.keep,
        matches=matches,
        adds_groups=adds_groups,
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


@dataclass(frozen=True)
class AlignmentSettings(Settings):
    """What is adjusted and how; the estimator itself declares and describes the parameters."""

    estimator: Any = None
    criterion: str = "demographic_parity"
    decisions: str = "align"
    prefit: bool = False
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names the first setting that cannot be used."""
        check_adjustment(read_criterion(self.criterion), self.decisions)
        Learner(self.estimator).check(real=self.real)
        check_flag("prefit", self.prefit)
        if self.prefit:
            check_prefit(self.estimator)

    @property
    def real(self) -> bool:
        """Whether the scores are real numbers instead of probabilities."""
        return False


@dataclass(frozen=True)
class RealAlignmentSettings(AlignmentSettings):
    """What is adjusted and how, for predictions that are real numbers."""

    @property
    def real(self) -> bool:
        """Whether the scores are real numbers instead of probabilities."""
        return True


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

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the adjusted score of every row."""
        raw = inputs.scored(self.model, self.output.raw)
        assert inputs.codes is not None, "an adjustment needs the groups"
        return self.output.standard(self.adjustment.move(raw, self.places[inputs.codes]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "adjustment_": self.adjustment}


@dataclass(frozen=True, eq=False)
class AlignmentLearner:
    """A learner that fits a model once, and one adjustment of its scores per strength.

    Parameters
    ----------
    settings : AlignmentSettings
        What is adjusted, and how.
    output : Output
        The kind of the model's output.
    pooled : tuple
        Labels of the groups that are pooled as "other".
    """

    settings: AlignmentSettings
    output: Any
    pooled: tuple[Any, ...] = ()

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[AlignmentScorer]:
        """Return one scorer per strength; ``loss`` and ``compare`` are not used."""
        model, scores = self._scored(rows)
        groups = replace(rows.groups, apart=rows.ignored)
        people = People(groups, None, Labels(rows.labels, (0, 1)), Weights(len(rows), rows.weights))
        adjustments = adjust_people(
            people,
            scores,
            strengths=weights,
            criterion=self.settings.criterion,
            decisions=self.settings.decisions,
            scale=self.output.scale,
        )
        return [
            AlignmentScorer(model, self.output, replace(one, pooled=self.pooled), places_of(groups))
            for one in adjustments
        ]

    def _scored(self, rows: TrainingRows) -> tuple[Any, FloatArray]:
        """Return the model for new rows, and the scores that the adjustment is fitted on."""
        table, learner = rows.inputs.table, Learner(self.settings.estimator)
        if self.settings.prefit:
            check_columns(learner.estimator, table)
            return learner.estimator, self.output.raw(learner.estimator, table)
        self.output.check(learner, weighted=rows.weights is not None)
        labels, folds = self.output.own(rows.labels), self.output.folds(self.settings.cv, rows)
        scores = learner.unseen_scores(table, labels, rows.weights, folds, self.output.raw)
        return learner.fit(table, labels, rows.weights), scores


softening_SAVE_INSTEAD = "Save model.estimator_, which is the whole model, with its own library."


@dataclass(frozen=True)
class SmoothingSettings(Settings):
    """The learner and its folds; the estimator itself declares and describes the parameters."""

    estimator: Any = None
    score_weight: float = 5.0
    cv: Any = 5

    def check(self) -> None:
        """Raise an error that names the first setting that cannot be used."""
        check_number("score_weight", self.score_weight, "[0, inf)")
        self.check_learner(Learner(self.estimator))

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner has scores and takes weights of rows."""
        learner.check(weighted=True)


@dataclass(frozen=True)
class RealSmoothingSettings(SmoothingSettings):
    """The learner of real numbers, and its folds."""

    def check_learner(self, learner: Learner) -> None:
        """Raise unless the learner is a regressor; it need not take weights."""
        learner.check(real=True)


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

    FILE: ClassVar[str] = ""

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the score of every row."""
        return self.output.standard(self.output.raw(self.model, inputs.table))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "estimator_": self.model, "targets_": self.targets}


@dataclass(frozen=True, eq=False)
class SmoothingLearner:
    """A learner that fits one model per fairness weight.

    All models share the out-of-fold scores and the matching.

    Parameters
    ----------
    settings : SmoothingSettings
        The learner, its folds and the weight of scores in the matching.
    output : Output
        The kind of the model's output.
    """

    settings: SmoothingSettings
    output: Any

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Matched],
        weights: Sequence[float],
    ) -> list[ModelScorer]:
        """Return one scorer per weight.

        Parameters
        ----------
        rows : TrainingRows
            Rows to learn from.
        loss : Loss
            Not used, because the learner has its own.
        compare : callable
            Returns the matching of given rows. It is called only if a weight is positive. The rows
            have one more number: the out-of-fold score times the root of ``score_weight``.
        weights : sequence of float
            Fairness weights; 0 fits the learner on the labels.
        """
        learner, table = Learner(self.settings.estimator), rows.inputs.table
        self.output.check(learner, weighted=rows.weights is not None)
        labels = self.output.own(rows.labels)
        targets = np.tile(rows.labels, (len(weights), 1))
        smoothed = [place for place, weight in enumerate(weights) if weight > 0.0]
        soft = None
        if smoothed:
            folds = self.output.folds(self.settings.cv, rows)
            raw = learner.unseen_scores(table, labels, rows.weights, folds, self.output.raw)
            scores = self.output.standard(raw)
            column = np.sqrt(self.settings.score_weight) * scores
            matched = compare(replace(rows, points=rows.points.with_number(column)))
            positive = [weights[place] for place in smoothed]
            targets[smoothed] = smooth_matched(
                scores, matched, positive, rows, learner, self.output
            )
            soft = learner.soften(table, labels, rows.weights)
        return [
            ModelScorer(
                learner.fit(table, labels, rows.weights)
                if weight == 0.0 or soft is None
                else soft.fit(self.output.soft(target)),
                self.output,
                self.output.soft(target),
            )
            for weight, target in zip(weights, targets, strict=True)
        ]


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
    _save_instead: ClassVar[str | None] = SAVE_INSTEAD
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
    _save_instead: ClassVar[str | None] = softening_SAVE_INSTEAD
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
    _save_instead: ClassVar[str | None] = SAVE_INSTEAD
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
    _save_instead: ClassVar[str | None] = softening_SAVE_INSTEAD
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
