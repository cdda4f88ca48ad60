"""FTM and its rivals as scikit-learn estimators."""

import warnings
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairmatch.batches import Batches, CoupledBatches, MatchedBatches
from fairmatch.coupling import Coupling, IndexArray
from fairmatch.exceptions import CouplingError, GapNotReachedWarning, InputError
from fairmatch.inputs import read_column, read_groups
from fairmatch.matching import OptimalTransportMatcher
from fairmatch.measures import MEASURES
from fairmatch.paths import PAPER_WEIGHTS, FairnessPath
from fairmatch.penalized import Network, PenalizedClassifier, TrainingTable
from fairmatch.penalties import (
    AdversaryPenalty,
    ConstraintViolationPenalty,
    MatchedGapPenalty,
    Penalty,
    SquaredMeanGapPenalty,
)

# Relative duality gap of the coupling that FTM trains on. A plan proven to cost at most a
# thousandth more than the best trains the same model and is found in a fraction of the time.
_TRAINING_TOLERANCE = 1e-3


class Matcher(Protocol):
    """Anything that matches the people of two groups."""

    def match(
        self,
        X: ArrayLike,
        sensitive_features: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Coupling:
        """Match the rows of a table."""


class UnconstrainedClassifier(PenalizedClassifier):
    """The network trained for accuracy alone: the paper's "Unfair" baseline.

    Parameters
    ----------
    network, epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, sensitive_at_prediction, encoder
        As in `FTMClassifier`.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = UnconstrainedClassifier(epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:2], sensitive_features=german.sensitive_features[:2]).shape
    (2,)
    """

    fairness_weight = 0.0

    def __init__(
        self,
        *,
        network: Network = None,
        epochs: int = 200,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        encoder: Any = "table",
        device: str = "cpu",
        random_state: int | None = None,
        verbose: int = 0,
        keep_on_interrupt: bool = False,
    ) -> None:
        super().__init__(
            0.0,
            network=network,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            decay=decay,
            sensitive_column=sensitive_column,
            sensitive_at_prediction=sensitive_at_prediction,
            encoder=encoder,
            device=device,
            random_state=random_state,
            verbose=verbose,
            keep_on_interrupt=keep_on_interrupt,
        )


class GapRegularizedClassifier(PenalizedClassifier):
    r"""Cross-entropy plus the squared gap of mean scores: the paper's "Reg".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.
    network, epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, sensitive_at_prediction, encoder
        As in `FTMClassifier`.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Notes
    -----
    Minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2` (Donini et al.,
    2018; Chuang and Mroueh, 2021, call it GapReg).

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        return SquaredMeanGapPenalty(fairness_weights, shares)


class ReductionClassifier(PenalizedClassifier):
    r"""Cross-entropy plus squared constraint violations: what the paper calls "Reduction".

    The paper's Reduction is FairTorch's penalty, inspired by the constraints of Agarwal et al.
    (2018); it is not their algorithm, which is `ExponentiatedGradientClassifier`. With two groups
    the penalty equals :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`: it is
    `GapRegularizedClassifier` with another weight.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.
    network, epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, sensitive_at_prediction, encoder
        As in `FTMClassifier`.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ReductionClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        return ConstraintViolationPenalty(fairness_weights, shares)


class AdversarialClassifier(PenalizedClassifier):
    """A network against an adversary that guesses the group from its output: the paper's "Adv".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success in the network's objective.
    network, epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, sensitive_at_prediction, encoder
        As in `FTMClassifier`.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Notes
    -----
    After Zhang, Lemoine and Mitchell (2018), as the paper states it: the network minimises its
    loss minus the weighted loss of the adversary.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = AdversarialClassifier(1.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        return AdversaryPenalty(fairness_weights, shares, generator=generator)


class FTMClassifier(PenalizedClassifier):
    r"""Fairness Through Matching: treat matched people of the two groups alike.

    First people of the two groups are matched by optimal transport; then a network learns to
    predict well while giving matched people similar scores.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        How people are matched: on their features; on features and labels (label weight 100);
        or by any object with a ``match`` method like `OptimalTransportMatcher`'s. With an
        `OptimalTransportMatcher` that has a ``batch_size`` people are matched afresh in every
        step, as in the paper; otherwise all rows are matched once.
    fairness_weight : float, default=1.0
        The paper's lambda.
    max_gap : float, optional
        Choose the weight instead: train a path on part of the rows and keep the most accurate
        model whose gap on the held-out rows is at most this.
    gap_measure : str, default="demographic_parity_gap"
        Which gap ``max_gap`` bounds; a name of `fairmatch.measures.MEASURES`.
    fairness_weights : sequence of float, optional
        Weights that ``max_gap`` chooses from; by default 0 and the paper's 18.
    validation_size : float, default=0.2
        Share of the rows held out for that choice, stratified by label and group.
    refit : bool, default=False
        Whether to train once more on all rows with the weight chosen.
    network : sequence of int, or torch.nn.Module, optional
        Widths of the hidden layers, by default two layers as wide as the encoded features; or a
        module of your own that maps rows to one logit each.
    epochs, batch_size : int, default=200, 1024
        A batch holds half its rows from each group. An epoch goes over the table once, and has
        at least 32 steps.
    learning_rate, decay : float, default=0.001, 0.95
        Of Adam; the rate is multiplied by the decay after each epoch.
    sensitive_column : str or int, optional
        Column of X that holds the groups. It is split off before matching. This is what makes
        every scikit-learn meta-estimator and scorer work.
    sensitive_at_prediction : bool, default=True
        Whether the group is an input of the network. With False it is needed in training only.
    encoder : "table", None or a transformer, default="table"
        How X becomes numbers: `fairmatch.encoding.TableEncoder`, not at all, or your own way.
        Missing values are an error unless the encoder takes them
        (``TableEncoder(missing="encode")``).
    device : str, default="cpu"
        Where torch computes.
    random_state : int, optional
        Same seed, same bits, on the same machine and versions.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps what has been learned.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second is the positive one.
    groups_ : tuple
        The two groups.
    fairness_weight_ : float
        The weight in use.
    path_ : FairnessPath
        With ``max_gap``: the models it chose from.
    validation_curve_ : DataFrame
        With ``max_gap``: their measures on the held-out rows.

    Notes
    -----
    Minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3 of the
    paper) for the coupling T.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(fairness_weight=5.0, epochs=5, random_state=0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

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
        network: Network = None,
        epochs: int = 200,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        encoder: Any = "table",
        device: str = "cpu",
        random_state: int | None = None,
        verbose: int = 0,
        keep_on_interrupt: bool = False,
    ) -> None:
        super().__init__(
            fairness_weight,
            network=network,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            decay=decay,
            sensitive_column=sensitive_column,
            sensitive_at_prediction=sensitive_at_prediction,
            encoder=encoder,
            device=device,
            random_state=random_state,
            verbose=verbose,
            keep_on_interrupt=keep_on_interrupt,
        )
        self.transport = transport
        self.max_gap = max_gap
        self.gap_measure = gap_measure
        self.fairness_weights = fairness_weights
        self.validation_size = validation_size
        self.refit = refit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Match the people, then learn.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in every classifier here.
        coupling : Coupling, optional
            A ready matching of these rows, instead of ``transport``. With ``max_gap`` it is an
            error, because part of the rows is held out.

        Returns
        -------
        self
        """
        weight = self.fairness_weight
        if self.max_gap is not None:
            if coupling is not None:
                raise CouplingError(
                    "With max_gap part of the rows is held out, so a ready coupling of all the "
                    "rows does not fit. Leave one of the two out."
                )
            chosen = self._choose(X, y, sensitive_features, sample_weight)
            weight = chosen.fairness_weight
            if not self.refit:
                self._adopt(chosen.__dict__, fairness_weight_=weight)
                return self
        table = self._read_training(X, y, sensitive_features, sample_weight)
        (self.network_,) = self._train(table, [weight], coupling)
        self.fairness_weight_ = weight
        return self

    def _choose(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> Self:
        """Train a path on part of the rows, and pick its model on the rest."""
        self._check_choice()
        _, sensitive = self._features_and_groups(X, sensitive_features)
        train, held_out = _stratified_split(
            read_column(y, "y"), sensitive, self.validation_size, self.random_state
        )
        given = (X, y, sensitive_features, sample_weight)
        parts: list[list[Any]] = [
            [None if v is None else _safe_indexing(_plain(v), rows) for v in given]
            for rows in (train, held_out)
        ]
        weights = (0.0, *PAPER_WEIGHTS) if self.fairness_weights is None else self.fairness_weights
        template = clone(self).set_params(max_gap=None)
        X_train, y_train, groups_train, weight_train = parts[0]
        models = template._fit_path(
            X_train, y_train, weights, sensitive_features=groups_train, sample_weight=weight_train
        )
        X_held, y_held, groups_held, weight_held = parts[1]
        coupling = None
        if self.gap_measure == "matched_parity_gap":
            coupling = self._match_held_out(models[0], X_held, y_held, groups_held, weight_held)
        self.path_ = FairnessPath(np.asarray(weights, dtype=np.float64), models)
        self.validation_curve_ = self.path_.curve(
            X_held,
            y_held,
            sensitive_features=groups_held,
            sample_weight=None if coupling is not None else weight_held,
            coupling=coupling,
        )
        chosen: Self = models[self._best()]
        return chosen

    def _best(self) -> int:
        """Position of the most accurate model within the gap, or of the smallest gap."""
        gaps = self.validation_curve_[self.gap_measure].to_numpy()
        accuracy = self.validation_curve_["accuracy"].to_numpy()
        within = gaps <= self.max_gap
        if within.any():
            return int(np.argmax(np.where(within, accuracy, -np.inf)))
        warnings.warn(
            f"No fairness weight reached {self.gap_measure} <= {self.max_gap:g} on the held-out "
            f"rows; the smallest gap reached is {gaps.min():.4g}, at weight "
            f"{self.path_.weights[int(gaps.argmin())]:g}, and that model is kept. Try larger "
            "fairness_weights.",
            GapNotReachedWarning,
            stacklevel=4,
        )
        return int(gaps.argmin())

    def _match_held_out(
        self, model: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> Coupling:
        features, sensitive = self._features_and_groups(X, sensitive_features)
        encoded = model._encode(features, fit=False)
        return self._matcher().match(encoded, sensitive, y, sample_weight=sample_weight)

    def _check_choice(self) -> None:
        if self.gap_measure not in MEASURES:
            raise InputError(
                f"gap_measure={self.gap_measure!r} is not a measure; choose one of "
                f"{', '.join(MEASURES)}."
            )
        if self.max_gap is None or not self.max_gap >= 0.0:
            raise InputError(f"max_gap must not be negative, got {self.max_gap}.")
        if not 0.0 < self.validation_size < 1.0:
            raise InputError(
                f"validation_size must lie strictly between 0 and 1, got {self.validation_size}."
            )

    def _matcher(self) -> Matcher:
        if isinstance(self.transport, str):
            label_weights = {"marginal": 0.0, "joint": 100.0}
            if self.transport not in label_weights:
                raise InputError(
                    f"transport must be 'marginal', 'joint' or a matcher, got {self.transport!r}."
                )
            return OptimalTransportMatcher(
                label_weights[self.transport], tolerance=_TRAINING_TOLERANCE
            )
        if not hasattr(self.transport, "match"):
            raise InputError(f"A matcher needs a match method; {self.transport!r} has none.")
        return self.transport

    def _batches(
        self, table: TrainingTable, coupling: Coupling | None, generator: np.random.Generator
    ) -> Batches:
        groups, mass = table.groups, table.mass
        matcher = self._matcher()
        if coupling is None:
            if isinstance(matcher, OptimalTransportMatcher) and matcher.batch_size is not None:
                points = matcher.points(table.features, table.labels)
                size = 2 * matcher.batch_size
                return MatchedBatches(matcher, points, groups, mass, size, generator)
            coupling = matcher.match(
                table.features,
                groups.codes,
                table.labels,
                sample_weight=mass if table.weighted else None,
            )
        else:
            coupling.check_rows(len(groups))
            coupling.read_groups(np.array(groups.labels, dtype=object)[groups.codes])
        return CoupledBatches(coupling, groups, mass, self.batch_size, generator)

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        return MatchedGapPenalty(fairness_weights, shares)


def _plain(values: Any) -> Any:
    """Let lists be indexed like arrays."""
    return np.asarray(values) if isinstance(values, list | tuple) else values


def _stratified_split(
    y: Any, sensitive: ArrayLike, held_out: float, random_state: Any
) -> tuple[IndexArray, IndexArray]:
    """Split rows at random, in equal shares within each label and group."""
    groups = read_groups(sensitive, n_rows=len(y))
    _, label = np.unique(y, return_inverse=True)
    seed = random_state if isinstance(random_state, int | np.integer) else None
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(y), dtype=bool)
    for stratum in np.unique(strata := 2 * label + groups.codes):
        rows = generator.permutation(np.flatnonzero(strata == stratum))
        chosen[rows[: round(held_out * len(rows))]] = True
    if chosen.all() or not chosen.any():
        raise InputError(
            f"validation_size={held_out:g} leaves no rows on one side of the split of {len(y)}."
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
