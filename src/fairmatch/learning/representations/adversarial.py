"""Fair representations that are learned against a critic: LAFTR and sIPM-LFR."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import CouplingError, InputError, LabelError
from fairmatch.learning.base import seed_sequence
from fairmatch.learning.grouped import TrainingRows, check_lengths, with_groups
from fairmatch.learning.networks.batches import PairBatches
from fairmatch.learning.networks.descent import GradientLearner, check_widths, torch_generator
from fairmatch.learning.networks.penalized import MIN_WIDTH
from fairmatch.learning.networks.stack import StackedMLP
from fairmatch.learning.representations.base import GroupTransformer
from fairmatch.learning.representations.critics import (
    AdversaryCritic,
    Critic,
    RepresentationObjective,
    SigmoidCritic,
    moments,
)
from fairmatch.learning.weights import LAFTR_WEIGHTS, SIPM_WEIGHTS
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray, read_column, read_features
from fairmatch.tables.parameters import check_count, check_number, check_weights


class CriticTransformer(ClassNamePrefixFeaturesOutMixin, GradientLearner, GroupTransformer):  # type: ignore[misc]
    """A representation that is learned against a critic.

    Subclasses say which critic (`_critic`).
    """

    # How many numbers represent a row, unless the caller says otherwise.
    _components: ClassVar[int]

    network_: StackedMLP
    decoder_: StackedMLP

    def __init__(
        self,
        fairness_weight: float = 1.0,
        *,
        n_components: int | None = None,
        task_weight: float = 1.0,
        reconstruction_weight: float = 0.1,
        network: Sequence[int] | None = None,
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
        self.fairness_weight = fairness_weight
        self.n_components = n_components
        self.task_weight = task_weight
        self.reconstruction_weight = reconstruction_weight
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

    __metadata_request__inverse_transform: ClassVar = {"sensitive_features": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _critic(self, fairness_weights: torch.Tensor, generator: torch.Generator) -> Critic:
        """Say what looks for the group in the representation."""
        raise NotImplementedError

    @property
    def _n_latents(self) -> int:
        return self._components if self.n_components is None else self.n_components

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_outputs

    def inverse_transform(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> FloatArray:
        """Rebuild encoded rows from their representation.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
            What `transform` gave.
        sensitive_features : array-like of shape (n_rows,)
            Group of every row, which the representation is meant not to tell.

        Returns
        -------
        array of shape (n_rows, n_features)
            Features as the encoder gives them, as far as the representation holds them.
        """
        check_is_fitted(self)
        if sensitive_features is None:
            raise InputError(
                f"{type(self).__name__}.inverse_transform needs the group of every row: pass "
                "sensitive_features=."
            )
        codes = self._group_codes(read_column(sensitive_features, "sensitive_features"))
        latents = read_features(X)
        if latents.shape[1] != self._n_features_out:
            raise InputError(
                f"X has {latents.shape[1]} columns; a representation has {self._n_features_out}."
            )
        check_lengths(latents, codes)
        return _apply(self.decoder_, with_groups(latents, codes))

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike | None,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one transformer per weight, all at once."""
        if coupling is not None:
            raise CouplingError(f"{type(self).__name__} does not match people: leave coupling out.")
        if y is None:
            raise LabelError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: the "
                "representation is learned such that the labels can be predicted from it."
            )
        template: Self = clone(self)
        template._check_parameters(fairness_weights)
        rows = template._read_training(X, y, sensitive_features, sample_weight)
        pairs = template._train(rows, template._fit_encoder(rows), fairness_weights)
        return [
            self._fitted(
                weight, template, network_=network, decoder_=decoder, fairness_weight_=float(weight)
            )
            for weight, (network, decoder) in zip(fairness_weights, pairs, strict=True)
        ]

    def _train(
        self, rows: TrainingRows, features: FloatArray, fairness_weights: Sequence[float]
    ) -> list[tuple[StackedMLP, StackedMLP]]:
        weights = np.asarray(fairness_weights, dtype=np.float64)
        network_seed, batch_seed, critic_seed = seed_sequence(self.random_state).spawn(3)
        codes = rows.groups.codes.astype(np.float64) if self.sensitive_at_prediction else None
        inputs, generator = with_groups(features, codes), torch_generator(network_seed)
        n_features = features.shape[1]
        sizes = (max(n_features, MIN_WIDTH),) if self.network is None else tuple(self.network)
        size, n_latents = len(weights), self._n_latents
        encoder = StackedMLP(size, inputs.shape[1], sizes, generator, n_latents)
        decoder = StackedMLP(size, n_latents + 1, sizes[::-1], generator, n_features)
        critic = self._critic(
            torch.as_tensor(weights, dtype=torch.float32), torch_generator(critic_seed)
        )
        objective = RepresentationObjective(
            encoder,
            decoder,
            StackedMLP(size, n_latents, (), generator),
            critic,
            inputs=inputs,
            features=features,
            labels=rows.labels,
            mass=rows.mass,
            task_weight=self.task_weight,
            reconstruction_weight=self.reconstruction_weight,
            device=self.device,
        )
        batches = PairBatches(
            rows.groups, rows.mass, self.batch_size, np.random.default_rng(batch_seed)
        )
        self._descend(objective, batches, len(rows.labels), weights, network_seed)
        _standardize(encoder, inputs, rows.mass)
        return [(encoder.select(index), decoder.select(index)) for index in range(size)]

    def _represent(self, features: FloatArray, codes: FloatArray | None) -> FloatArray:
        return _apply(self.network_, with_groups(features, codes))

    def _check_parameters(self, fairness_weights: Sequence[float]) -> None:
        check_weights("fairness_weight", fairness_weights, "[0, inf)")
        self._check_schedule()
        check_count("n_components", self.n_components, optional=True)
        check_widths(self.network)
        for name in ("task_weight", "reconstruction_weight"):
            check_number(name, getattr(self, name), "[0, inf)")


def _apply(network: StackedMLP, inputs: FloatArray) -> FloatArray:
    """Give the outputs of the one network of a stack."""
    with torch.no_grad():
        outputs = network.outputs(torch.as_tensor(inputs, dtype=torch.float32))[0]
    values: FloatArray = outputs.to(torch.float64).numpy()
    return values


def _standardize(encoder: StackedMLP, inputs: FloatArray, mass: FloatArray) -> None:
    """Let the last layer do for all rows what training did in each batch."""
    with torch.no_grad():
        latents = encoder.outputs(torch.as_tensor(inputs, dtype=torch.float32))
        mean, spread = moments(latents, torch.as_tensor(mass, dtype=torch.float32))
        encoder.weights[-1] /= spread.transpose(1, 2)
        encoder.biases[-1].sub_(mean[:, 0]).div_(spread[:, 0])


class LAFTRTransformer(CriticTransformer):
    r"""A representation that an adversary cannot read the group from (LAFTR; Madras et al., 2018).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success.
    n_components : int, optional
        How many numbers represent a row; by default 8.
    task_weight : float, default=1.0
        Weight of the cross-entropy of a linear head that predicts the label.
    reconstruction_weight : float, default=0.1
        Weight of the share of the table's variance that a decoder cannot rebuild. Tables of a few
        hundred rows, where the encoder would learn the labels by heart, want more: 3 for German.
    network : sequence of int, optional
        Widths of the encoder's hidden layers, by default one as wide as the encoded features;
        the decoder has the same in reverse.
    epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, encoder
        As in `FTMClassifier`.
    sensitive_at_prediction : bool, default=True
        Whether the encoder sees the group. With False it is needed in training only.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Attributes
    ----------
    groups_ : tuple
        The two groups.
    network_, decoder_ : StackedMLP
        What represents a row, and what rebuilds it.

    Notes
    -----
    Encoder f, head k and decoder g descend, and the adversary h climbs,

    .. math:: a\, E\, l(Y, k(Z)) + b\, \frac{E \|X - g(Z, S)\|^2}{E \|X - E X\|^2}
              + \lambda \Bigl(1 - \sum_s E\bigl[|h(Z) - s| \mid S = s\bigr]\Bigr),
              \qquad Z = f(X, S),

    with the group-normalised L1 objective for demographic parity. Each number of the
    representation has mean 0 and spread 1 on the training rows.

    Examples
    --------
    >>> from fairmatch import LAFTRTransformer
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> LAFTRTransformer(n_components=3, epochs=2, random_state=0).fit_transform(
    ...     german.X, german.y, sensitive_features=german.sensitive_features).shape
    (1000, 3)
    """

    default_weights: ClassVar[tuple[float, ...]] = LAFTR_WEIGHTS
    _components: ClassVar[int] = 8

    def _critic(self, fairness_weights: torch.Tensor, generator: torch.Generator) -> Critic:
        return AdversaryCritic(fairness_weights, self._n_latents, generator=generator)


class SIPMTransformer(CriticTransformer):
    r"""A representation whose groups no sigmoid unit tells apart (sIPM-LFR; Kim et al., 2022).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the integral probability metric.
    n_components : int, optional
        How many numbers represent a row; by default 3. With more of them the groups differ in
        ways that no single sigmoid unit sees, and a network on them does.
    task_weight, reconstruction_weight, network
        As in `LAFTRTransformer`.
    epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`.
    sensitive_column, sensitive_at_prediction, encoder
        As in `LAFTRTransformer`.
    device, random_state, verbose, keep_on_interrupt
        As in `FTMClassifier`.

    Attributes
    ----------
    groups_ : tuple
        The two groups.
    network_, decoder_ : StackedMLP
        What represents a row, and what rebuilds it.

    Notes
    -----
    With the terms of `LAFTRTransformer` for task and reconstruction, the fairness weight
    multiplies the distance between the groups' representations

    .. math:: d_\sigma = \sup_{\theta, \mu} \bigl| E[\sigma(\theta^\top Z + \mu) \mid S = 0]
              - E[\sigma(\theta^\top Z + \mu) \mid S = 1] \bigr|,

    which is 0 only where the two distributions are the same. Several discriminators climb side
    by side, and the best counts.

    Examples
    --------
    >>> from fairmatch import SIPMTransformer
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> SIPMTransformer(n_components=3, epochs=2, random_state=0).fit_transform(
    ...     german.X, german.y, sensitive_features=german.sensitive_features).shape
    (1000, 3)
    """

    default_weights: ClassVar[tuple[float, ...]] = SIPM_WEIGHTS
    _components: ClassVar[int] = 3

    def _critic(self, fairness_weights: torch.Tensor, generator: torch.Generator) -> Critic:
        return SigmoidCritic(fairness_weights, self._n_latents, generator=generator)
