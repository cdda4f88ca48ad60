"""The same objective for gradient-boosted trees: a loss plus a weighted penalty, by LightGBM."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import clone

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.base import GroupClassifier, seed_sequence
from fairmatch.learning.choice import LABEL_WEIGHT, MatchingClassifier, stratified_split
from fairmatch.learning.grouped import TrainingRows, with_groups
from fairmatch.learning.trees.growing import TreeTrainer, unseen_scores
from fairmatch.learning.trees.objective import (
    BoostingObjective,
    MatchedGap,
    SquaredMeanGap,
    TreePenalty,
)
from fairmatch.matching.coupling import Coupling, IndexArray, check_coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.matching.parts import rows_with_mass
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.encoder import TableEncoder
from fairmatch.tables.parameters import check_count, check_number, check_verbose, check_weights


class BoostedClassifier(GroupClassifier):
    """Trees that descend a loss plus a weighted penalty; subclasses say which (`_penalty`)."""

    # People are matched on numbers; the trees see the columns as they are.
    encoder: Any = TableEncoder(missing="encode")
    encoder_: Any

    def __init__(
        self,
        fairness_weight: float = 1.0,
        *,
        n_rounds: int = 200,
        warmup: float = 0.0,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        scale_pos_weight: float = 1.0,
        early_stopping_rounds: int | None = None,
        validation_size: float = 0.2,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        n_jobs: int = 1,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.fairness_weight = fairness_weight
        self.n_rounds = n_rounds
        self.warmup = warmup
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.scale_pos_weight = scale_pos_weight
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_size = validation_size
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _penalty(
        self, features: FloatArray, rows: TrainingRows, coupling: Coupling | None
    ) -> TreePenalty:
        """Say what is added to the loss."""

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one estimator per weight, with one matching and one binning of the table."""
        template: Self = clone(self)
        template._check_parameters(fairness_weights)
        template._check_coupling(coupling)
        rows = template._read_training(X, y, sensitive_features, sample_weight)
        features = template._fit_encoder(rows)
        parts = template._parts(rows)
        penalties = [
            template._penalty(features[index], part, coupling) if any(fairness_weights) else None
            for index, part in parts
        ]
        trainer = TreeTrainer(
            template._lightgbm_parameters(),
            *(part for _, part in parts),
            categorical=template.encoder_.categorical_positions,
            n_rounds=self.n_rounds,
            warmup=int(self.warmup * self.n_rounds),
            patience=self.early_stopping_rounds,
            verbose=self.verbose > 0,
        )
        models = []
        for weight in map(float, fairness_weights):
            objectives = [
                BoostingObjective(part, weight, penalty, self.learning_rate, self.scale_pos_weight)
                for (_, part), penalty in zip(parts, penalties, strict=True)
            ]
            trees, held_out = trainer.train(*objectives)
            model = self._fitted(
                weight,
                template,
                trees_=trees,
                base_margin_=trainer.base_margin,
                n_rounds_=trees.num_trees(),
                held_out_objective_=held_out,
                fairness_weight_=weight,
            )
            models.append(model)
        return models

    def _parts(self, rows: TrainingRows) -> list[tuple[IndexArray, TrainingRows]]:
        """Put what the trees see in place of the features; hold rows out to stop by."""
        codes = rows.groups.codes.astype(np.float64) if self.sensitive_at_prediction else None
        inputs = with_groups(self.encoder_.to_codes(rows.features), codes)
        indices = [np.arange(len(inputs))]
        if self.early_stopping_rounds is not None:
            names = np.array(self.groups_, dtype=object)[rows.groups.codes]
            indices = [
                *stratified_split(rows.labels, names, self.validation_size, self.random_state)
            ]
        parts = [(index, rows.take(index, inputs[index])) for index in indices]
        for _, part in parts:
            rows_with_mass(part.groups, part.weights)
        return parts

    def _lightgbm_parameters(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_child_samples": self.min_child_samples,
            "reg_lambda": self.reg_lambda,
            "subsample": self.subsample,
            "subsample_freq": 1,
            "colsample_bytree": self.colsample_bytree,
            "seed": int(seed_sequence(self.random_state).generate_state(1)[0] >> 1),
            "num_threads": self.n_jobs,
            "deterministic": True,
            "force_row_wise": True,
            "feature_pre_filter": False,  # with it, LightGBM fails where it leaves no column
            "verbosity": -1,
        }

    def _positive_scores(self, features: Any, codes: FloatArray | None) -> FloatArray:
        inputs = with_groups(self.encoder_.to_codes(features), codes)
        margins = self.trees_.predict(inputs, raw_score=True, num_threads=self.n_jobs)
        return np.asarray(expit(self.base_margin_ + margins))

    def _check_coupling(self, coupling: Coupling | None) -> None:
        if coupling is not None:
            raise CouplingError(f"{type(self).__name__} does not match people: leave coupling out.")

    def _check_parameters(self, fairness_weights: Sequence[float]) -> None:
        check_weights("fairness_weight", fairness_weights, "[0, inf)")
        for name, least in {"n_rounds": 1, "num_leaves": 2, "min_child_samples": 0}.items():
            check_count(name, getattr(self, name), least)
        check_count("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if self.early_stopping_rounds is not None:
            check_number("validation_size", self.validation_size, "(0, 1)")
        check_number("warmup", self.warmup, "[0, 1)")
        check_number("reg_lambda", self.reg_lambda, "[0, inf]")
        check_number("scale_pos_weight", self.scale_pos_weight, "(0, inf)")
        for name in ("learning_rate", "subsample", "colsample_bytree"):
            check_number(name, getattr(self, name), "(0, 1]")
        check_count("n_jobs", self.n_jobs, -1, optional=True)
        check_verbose(self.verbose)


class GapRegularizedBoostingClassifier(BoostedClassifier):
    r"""Boosted trees with the squared gap of mean scores as penalty: the rival of FTM.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.
    n_rounds, warmup, learning_rate, num_leaves, min_child_samples, reg_lambda
        As in `FTMBoostingClassifier`.
    subsample, colsample_bytree, scale_pos_weight, early_stopping_rounds, validation_size
        As in `FTMBoostingClassifier`; what is watched is the loss plus the weighted penalty.
    sensitive_column, sensitive_at_prediction
        As in `FTMBoostingClassifier`.
    n_jobs, random_state, verbose
        As in `FTMBoostingClassifier`.

    Notes
    -----
    Minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2`, the objective of
    `GapRegularizedClassifier`.

    Examples
    --------
    >>> from fairmatch import GapRegularizedBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedBoostingClassifier(10.0, n_rounds=5).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    def _penalty(
        self, features: FloatArray, rows: TrainingRows, coupling: Coupling | None
    ) -> TreePenalty:
        return SquaredMeanGap(rows)


class FTMBoostingClassifier(BoostedClassifier, MatchingClassifier):
    r"""Fairness Through Matching for gradient-boosted trees.

    People of the two groups are matched by optimal transport on an encoded copy of the table;
    then LightGBM's trees learn to predict well while giving matched people similar scores.
    Categorical columns and missing values go to the trees as they are.

    Parameters
    ----------
    transport : {"marginal", "joint", "predicted"} or a matcher, default="marginal"
        How people are matched: on their features; on features and labels (label weight 100); on
        features and the scores that plain trees give to rows they have not seen (the same
        weight); or by any object with a ``match`` method like `OptimalTransportMatcher`'s.
    fairness_weight : float, default=1.0
        The paper's lambda; 0 is plain LightGBM.
    max_gap, gap_measure, fairness_weights, validation_size, refit
        Choose the weight by a gap instead, as in `FTMClassifier`.
    n_rounds : int, default=200
        Number of trees.
    warmup : float, default=0.0
        Share of the trees, the first ones, that see the loss alone. Where the weight is large,
        the penalty then pulls together scores that have been learned, instead of keeping them
        from being learned.
    learning_rate : float, default=0.1
        Shrinkage of every tree; below 1 the steps of the penalty are safe.
    num_leaves, min_child_samples : int, default=31, 20
        Greatest number of leaves of a tree, least number of rows in a leaf.
    reg_lambda : float, default=0.0
        L2 penalty of the leaf values.
    subsample, colsample_bytree : float, default=1.0, 1.0
        Share of the rows and of the columns that a tree is grown on.
    scale_pos_weight : float, default=1.0
        What the loss of positive rows is multiplied by, as in LightGBM. The matching and the
        penalty do not change; ``sample_weight`` weighs rows in all three.
    early_stopping_rounds : int, optional
        Hold out ``validation_size`` of the rows, match them among themselves, and stop when the
        objective on them has not improved for so many rounds; the trees up to the best round are
        kept. A ready ``coupling`` is then an error. With ``max_gap`` these rows are taken from
        the ones that are trained on.
    sensitive_column : str or int, optional
        Column of X that holds the groups. It is split off before matching.
    sensitive_at_prediction : bool, default=True
        Whether the trees see the group. With False it is needed in training only.
    n_jobs : int, default=1
        Threads of LightGBM; 0 means all.
    random_state : int, optional
        Same seed, same model, on the same machine and versions.
    verbose : int, default=0
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second is the positive one.
    groups_ : tuple
        The two groups.
    fairness_weight_ : float
        The weight in use.
    trees_ : lightgbm.Booster
        The trees; their sum and ``base_margin_`` is the log-odds of the positive class.
    base_margin_ : float
        Log-odds of the positive class in the training rows, where boosting starts.
    n_rounds_ : int
        Number of trees.
    held_out_objective_ : array
        The objective on held-out rows after each round, infinite in the warm-up; empty without
        early stopping.
    path_, validation_curve_
        With ``max_gap``, as in `FTMClassifier`.

    Notes
    -----
    Minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3 of the
    paper) for the coupling T, with :math:`|d|` smoothed as :math:`\sqrt{d^2 + 0.05^2} - 0.05`.

    Examples
    --------
    >>> from fairmatch import FTMBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMBoostingClassifier(fairness_weight=2.0, n_rounds=5)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    _transports: ClassVar = {**MatchingClassifier._transports, "predicted": 0.0}

    def __init__(
        self,
        transport: str | Matcher = "marginal",
        fairness_weight: float = 1.0,
        *,
        max_gap: float | None = None,
        gap_measure: str = "demographic_parity_gap",
        fairness_weights: Sequence[float] | None = None,
        validation_size: float = 0.2,
        refit: bool = False,
        n_rounds: int = 200,
        warmup: float = 0.0,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        reg_lambda: float = 0.0,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        scale_pos_weight: float = 1.0,
        early_stopping_rounds: int | None = None,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        n_jobs: int = 1,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            fairness_weight,
            n_rounds=n_rounds,
            warmup=warmup,
            learning_rate=learning_rate,
            num_leaves=num_leaves,
            min_child_samples=min_child_samples,
            reg_lambda=reg_lambda,
            subsample=subsample,
            colsample_bytree=colsample_bytree,
            scale_pos_weight=scale_pos_weight,
            early_stopping_rounds=early_stopping_rounds,
            validation_size=validation_size,
            sensitive_column=sensitive_column,
            sensitive_at_prediction=sensitive_at_prediction,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.transport = transport
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.fairness_weights = fairness_weights
        self.refit = refit

    def _check_choice(self) -> None:
        super()._check_choice()
        if self.transport == "predicted" and self.gap_measure == "matched_parity_gap":
            raise InputError(
                "With transport='predicted' people are matched on scores of the training rows, "
                "which held-out rows do not have: matched_parity_gap cannot be the gap_measure."
            )

    def _check_coupling(self, coupling: Coupling | None) -> None:
        self._matcher()
        check_coupling(coupling)
        if coupling is not None and self.early_stopping_rounds is not None:
            raise CouplingError(
                "With early_stopping_rounds part of the rows is held out, so a ready coupling of "
                "all the rows does not fit. Leave one of the two out."
            )

    def _penalty(
        self, features: FloatArray, rows: TrainingRows, coupling: Coupling | None
    ) -> TreePenalty:
        if coupling is None and isinstance(self.transport, str) and self.transport == "predicted":
            scores = unseen_scores(
                self._lightgbm_parameters(),
                rows,
                categorical=self.encoder_.categorical_positions,
                n_rounds=self.n_rounds,
            )
            features = np.column_stack([features, np.sqrt(LABEL_WEIGHT) * scores])
        return MatchedGap(self._couple(features, rows.labels, rows.groups, rows.weights, coupling))
