"""Fair decisions for new rows without a known group: a threshold that depends on P(group | X).

Among all decisions with a small gap, the most accurate ones accept a person whose score exceeds one
half plus multiples of the probability of each group. A linear program gives the multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog
from sklearn.utils import _safe_indexing

from fairmatch.exceptions import InputError, SolverError
from fairmatch.learning.adjust import places_of
from fairmatch.learning.estimator import FairClassifier, documented
from fairmatch.learning.learners import Learner, SeenRows, read_folds
from fairmatch.learning.offsets import ClassOffsets, fit_offsets
from fairmatch.learning.reading import Columns, SmallGroups, encoded, labels_of
from fairmatch.learning.wrappers import ALIGNMENT_STRENGTHS, Wrapper
from fairmatch.matching.coupling import Coupling
from fairmatch.people.checks import FloatArray
from fairmatch.people.groups import Criterion, read_criterion
from fairmatch.people.people import People

# The linear program has a variable for each row. More rows hardly change its multipliers.
_MOST_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class BlindRule:
    r"""How much the probability of each group moves a person's score.

    Notes
    -----
    The moved score is :math:`f - \sum \lambda_{ys} P(Y = y, S = s \mid X) / P(Y = y, S = s)`, and a
    moved score of at least one half is accepted. For demographic parity there is no class.
    """

    #: The :math:`\lambda`, for each class that is compared and each group.
    multipliers: FloatArray
    shares: FloatArray  #: Share of the people who belong to the class and the group.
    gap: float  #: The gap on the rows of the fit, by the probabilities of the groups.

    def move(self, scores: FloatArray, masses: FloatArray) -> FloatArray:
        """Return moved scores, from probabilities of shape (n_rows, n_classes, n_groups)."""
        moved = scores - np.tensordot(masses, self.multipliers / self.shares, 2)
        return np.asarray(np.clip(moved, 0.0, 1.0))


def gap_of(decisions: FloatArray, masses: FloatArray, weights: FloatArray) -> float:
    """Return the gap of decisions: the largest over pairs of groups, averaged over the classes."""
    rates = np.tensordot(weights * decisions, masses, 1) / np.tensordot(weights, masses, 1)
    return float(np.ptp(rates, axis=1).mean())


def fit_rules(
    scores: FloatArray, masses: FloatArray, weights: FloatArray, strengths: Sequence[float]
) -> list[BlindRule]:
    r"""Return one rule per strength: the most accurate one that removes that share of the gap.

    Scores are those of rows that the model has not seen. The masses, of shape (n_rows, n_classes,
    n_groups), are the probability of each compared class and group, given X.

    Notes
    -----
    With decisions :math:`d_i \in [0, 1]` and rates :math:`r_{ys}` of class and group,

    .. math:: \max_{d, c, t} \sum_i w_i (2 f_i - 1) d_i \quad\text{with}\quad
              c_y \le r_{ys} \le c_y + t_y, \quad \sum_y t_y \le C \cdot \text{gap}.

    All but a few of the best decisions are 0 or 1, and they follow from the multipliers of the
    constraints.
    """
    if len(scores) > _MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(scores), _MOST_ROWS, replace=False)
        scores, masses, weights = scores[rows], masses[rows], weights[rows]
    n_rows, n_classes, n_groups = masses.shape
    total = weights.sum()
    shares = np.tensordot(weights, masses, 1) / total
    plain = gap_of((scores >= 0.5).astype(np.float64), masses, weights)
    # Columns: decisions, the lowest rate c of each class, and its gap t.
    rates = (weights[:, None, None] * masses / (total * shares)).reshape(n_rows, -1).T
    which = np.repeat(np.eye(n_classes), n_groups, axis=0)
    nothing = np.zeros_like(which)
    limits = np.vstack(
        [
            np.hstack([rates, -which, -which]),
            np.hstack([-rates, which, nothing]),
            np.concatenate([np.zeros(n_rows + n_classes), np.ones(n_classes)])[None],
        ]
    )
    # A cost of about 1 per row: HiGHS gives up on some programs whose costs are 1 / n_rows.
    gains = weights * (2.0 * scores - 1.0) * (n_rows / total)
    cost = np.concatenate([-gains, np.zeros(2 * n_classes)])
    found = []
    for strength in strengths:
        gap = (1.0 - strength) * plain
        multipliers = np.zeros((n_classes, n_groups))
        if strength > 0.0 and plain > 0.0:
            sides = np.append(np.zeros(len(limits) - 1), n_classes * gap)
            solved = linprog(cost, A_ub=limits, b_ub=sides, bounds=(0.0, 1.0), method="highs")
            if solved.fun is None:
                raise SolverError(f"The solver did not find the rule: {solved.message}")
            marginals = -np.asarray(solved.ineqlin.marginals)[:-1].reshape(2, n_classes, n_groups)
            multipliers = (marginals[0] - marginals[1]) / (2.0 * n_rows)
        found.append(BlindRule(multipliers, shares, gap))
    return found


@dataclass(frozen=True, eq=False)
class GroupModel:
    """A classifier of the class and the group of a person."""

    model: Any
    n_classes: int
    n_groups: int

    def masses(self, table: Any) -> FloatArray:
        """Return the probability of each class and group, of shape (rows, classes, groups)."""
        found = np.asarray(self.model.predict_proba(table), dtype=np.float64)
        masses = np.zeros((len(found), self.n_classes * self.n_groups))
        masses[:, np.asarray(self.model.classes_, dtype=np.intp)] = found
        return masses.reshape(-1, self.n_classes, self.n_groups)


@dataclass(frozen=True, eq=False)
class BlindScorer:
    """A model of the label, a model of the group, and the rule that combines them."""

    learner: Learner
    model: Any
    groups: GroupModel
    rule: BlindRule | ClassOffsets
    classes: list[int]

    def scores(self, inputs: SeenRows) -> FloatArray:
        """Return the moved score of every row."""
        raw = inputs.scored(self.learner, self.model)
        masses = inputs.once(self.groups, self.groups.masses)
        if isinstance(self.rule, ClassOffsets):
            return self.rule.move_members(raw, _members(masses, self.rule.conditions))
        return self.rule.move(raw, masses[:, self.classes])

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {
            "scorer_": self,
            "estimator_": self.model,
            "group_estimator_": self.groups.model,
            "rule_": self.rule,
        }


@documented
@dataclass(eq=False, repr=False)
class GroupBlindClassifier(Wrapper, FairClassifier):
    r"""Any classifier, with decisions that also depend on the probability of each group.

    New rows need no group. Training needs the groups, or probabilities of them
    (`fairmatch.group_probabilities`).

    Parameters
    ----------
    estimator : classifier
        The model that scores people: any classifier with scikit-learn's interface and
        ``predict_proba``, or a Pipeline. It does not see the group.
    group_estimator : classifier, optional
        The model of the group, or of group and label together if the criterion compares people of
        the same class. It must support several classes. By default it is a copy of ``estimator``.
    strength : float or a list of float, default=1.0
        Share of the model's own gap that is removed.
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Whose decisions are equalised: everybody's, those of people with a positive label, or those
        within each class.
    cv : int, splitter or list of (train, test), default=5
        How rows are split into folds. The rule is fitted on out-of-fold scores and probabilities:
        those of each row come from models that were trained on the other folds.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the strength: it trains on part of the rows and
        keeps the most accurate model whose gap on the held-out rows is at most this. The gap of
        estimated groups is weighted by their probabilities.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. Groups must then be known.
    calibrate : bool, default=False
        Whether to calibrate the scores of all people on held-out rows, as `fit_calibration` does
        for each group. No decision changes.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. New rows may come without it.
    random_state : int, optional
        Seed of the split of ``max_gap``.

    Attributes
    ----------
    estimator_, group_estimator_ : estimator
        The fitted models of the label and of the group.
    rule_ : BlindRule or ClassOffsets
        The multipliers, or the offsets of several classes.
    classes_ : array of shape (n_classes,)
        The labels; the second of two is the positive one.
    fairness_weight_ : float
        The strength that the model was fitted with.
    path_ : FairnessPath
        With ``max_gap`` or ``calibrate``: the models among which fit chose.
    validation_curve_ : DataFrame
        With ``max_gap`` or ``calibrate``: the measures of these models on the held-out rows.
    calibration_ : ScoreCalibration or None
        With ``calibrate``: the map of the scores.

    Notes
    -----
    For demographic parity a person is accepted if

    .. math:: P(Y = 1 \mid X) - \sum_s \lambda_s \frac{P(S = s \mid X)}{P(S = s)} \ge \tfrac12,

    which are the most accurate decisions with a given gap that use only X. Criteria that compare
    people of the same class use :math:`P(S = s, Y = y \mid X)` and a multiplier for each class. The
    :math:`\lambda` are those of the linear program in `fairmatch.learning.blind.fit_rules`. With
    several classes the decision is :math:`\arg\max_c P(Y = c \mid X) + \sum_s \psi_{sc} P(S = s
    \mid X)`, or the same with :math:`P(S = s, Y = y \mid X)` and offsets :math:`\psi_{syc}`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairmatch import GroupBlindClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X = german.X.select_dtypes("number")
    >>> model = GroupBlindClassifier(LogisticRegression(max_iter=5000), strength=0.5)
    >>> model = model.fit(X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    _weight_name: ClassVar[str | None] = "strength"
    _weight_range: ClassVar[str] = "[0, 1]"
    _curve_weights: ClassVar[tuple[float, ...]] = ALIGNMENT_STRENGTHS
    _save_instead: ClassVar[str | None] = (
        "Save model.estimator_ and model.group_estimator_ with their own libraries, and "
        "model.rule_.multipliers and model.rule_.shares, or of several classes "
        "model.rule_.offsets, as numbers."
    )
    _estimated: ClassVar[bool] = True
    _several: ClassVar[bool] = True
    sensitive_at_prediction = False

    estimator: Any
    _: KW_ONLY
    group_estimator: Any = None
    strength: float | Sequence[float] = 1.0
    criterion: str = "demographic_parity"
    cv: Any = 5
    max_gap: float | None = None
    gap_measure: str | None = None
    validation_size: float = 0.2
    confidence: float | None = None
    calibrate: bool = False
    sensitive_column: Columns = None
    small_groups: SmallGroups = "warn"
    unknown: str = "ignore"
    random_state: Any = None

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        Learner(self.estimator, self._outcome).check()
        own = self.estimator if self.group_estimator is None else self.group_estimator
        name = "estimator" if self.group_estimator is None else "group_estimator"
        if not hasattr(own, "predict_proba"):
            raise InputError(
                f"{name} must have predict_proba, because it also models the group, but "
                f"{type(own).__name__} has none. Pass a classifier.",
                parameter=name,
            )

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[BlindScorer]:
        table, learner = encoded(people).inputs.table, self._learner()
        people = replace(people, table=None)
        estimated = people.groups.memberships is not None
        learner.check(weighted=people.weights is not None or estimated)
        criterion, labels = read_criterion(self.criterion), labels_of(people)
        strata = people.groups.n_groups * labels.values.astype(np.intp) + people.groups.codes
        folds = read_folds(self.cv, table, learner.own_labels(labels.values), strata)
        scores = learner.unseen(table, people, folds)
        parts = [
            self._fit_groups(_safe_indexing(table, train), people.take(train), criterion).masses(
                _safe_indexing(table, test)
            )
            for train, test in folds
        ]
        masses = np.empty((len(people), *parts[0].shape[1:]))
        masses[np.concatenate([test for _, test in folds])] = np.concatenate(parts)
        # Probabilities with labels have the negative class first.
        classes = [int(label) if label is not None else 0 for label in criterion.labels]
        rules: Sequence[BlindRule | ClassOffsets]
        if self._outcome.several:
            members = _members(masses, criterion.needs_labels)
            names = tuple(people.groups.labels[own] for own in people.groups.compared)
            rules = fit_offsets(scores, members, people.mass, criterion, names, strengths=weights)
        else:
            rules = fit_rules(scores, masses[:, classes], people.mass, weights)
        model = learner.fit(table, labels.values, people.weights)
        groups = self._fit_groups(table, people, criterion)
        return [BlindScorer(learner, model, groups, rule, classes) for rule in rules]

    def _fit_groups(self, table: Any, people: People, criterion: Criterion) -> GroupModel:
        """Return a model of the group, and of the label with it if the criterion needs it."""
        groups = people.groups
        places = places_of(groups)
        weights, codes, rows = people.weights, groups.codes, np.arange(len(people))
        if groups.memberships is not None:
            expanded, rows = people.expanded()
            weights, codes = expanded.mass, expanded.groups.codes
        kept = places[codes] >= 0
        rows, codes = rows[kept], places[codes[kept]]
        n_classes = 1
        if criterion.needs_labels:
            n_classes = len(self._outcome.classes) if self._outcome.several else 2
            codes = codes + len(groups.compared) * labels_of(people).values[rows].astype(np.intp)
        estimator = self.estimator if self.group_estimator is None else self.group_estimator
        learner = Learner(estimator, self._outcome)
        own = None if weights is None else weights[kept]
        # Without classes, the learner sees the codes as they are.
        model = learner.fit(_safe_indexing(table, rows), codes.astype(np.float64), own)
        return GroupModel(model, n_classes, len(groups.compared))


def _members(masses: FloatArray, joint: Any) -> FloatArray:
    """Return probabilities of groups, or of groups and classes, as offsets take them."""
    return masses.transpose(0, 2, 1) if joint else masses[:, 0]
