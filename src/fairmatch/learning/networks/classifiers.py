"""FTM and its rivals as scikit-learn estimators."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fairmatch.exceptions import InputError
from fairmatch.learning.choice import MatchingClassifier
from fairmatch.learning.networks.batches import Batches, CoupledBatches, MatchedBatches
from fairmatch.learning.networks.penalized import EncodedRows, Network, PenalizedClassifier
from fairmatch.learning.networks.penalties import (
    AdversaryPenalty,
    ConstraintViolationPenalty,
    MatchedGapPenalty,
    Penalty,
    SquaredMeanGapPenalty,
)
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher


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
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.encoder = encoder
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.keep_on_interrupt = keep_on_interrupt

    def _check_parameters(self, fairness_weights: Sequence[float]) -> None:
        super()._check_parameters(fairness_weights)
        if np.any(fairness_weights):
            raise InputError(
                "UnconstrainedClassifier has no fairness weight, so it has no path. Give "
                "fairness_path another estimator."
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


class FTMClassifier(PenalizedClassifier, MatchingClassifier):
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
        Which gap ``max_gap`` bounds; a name of `fairmatch.measures.gaps.MEASURES`.
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
        A batch is so many rows of each group (at most half the table); the loss and the
        comparison use the same rows. An epoch is as many steps as it takes to go over the table
        in such batches, and at least 16.
    learning_rate, decay : float, default=0.001, 0.95
        Of Adam; the rate is multiplied by the decay after each epoch.
    sensitive_column : str or int, optional
        Column of X that holds the groups. It is split off before matching. This is what makes
        every scikit-learn meta-estimator and scorer work.
    sensitive_at_prediction : bool, default=True
        Whether the group is an input of the network. With False it is needed in training only.
    encoder : "table", None or a transformer, default="table"
        How X becomes numbers: `fairmatch.tables.encoder.TableEncoder`, not at all, or your own way.
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

    def _check_coupling(self, coupling: Coupling | None) -> None:
        self._matcher()
        check_coupling(coupling)

    def _batches(
        self, encoded: EncodedRows, coupling: Coupling | None, generator: np.random.Generator
    ) -> Batches:
        rows, matcher = encoded.rows, self._matcher()
        if (
            coupling is None
            and isinstance(matcher, OptimalTransportMatcher)
            and matcher.batch_size is not None
        ):
            points, size = matcher.points(encoded.features, rows.labels), matcher.batch_size
            return MatchedBatches(matcher, points, rows.groups, rows.mass, size, generator)
        coupling = self._couple(encoded.features, rows.labels, rows.groups, rows.weights, coupling)
        return CoupledBatches(coupling, rows.groups, rows.mass, self.batch_size, generator)

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        return MatchedGapPenalty(fairness_weights, shares)
