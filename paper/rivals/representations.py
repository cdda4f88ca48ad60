"""Fair representations, and a classifier on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.exceptions import InputError
from fairmatch.learning.estimator import FairClassifier, FairEstimator, MatchesPeople
from fairmatch.learning.networks import (
    MIN_WIDTH,
    Batch,
    NetworkScorer,
    NeuralNetwork,
    StackedMLP,
    pair_batches,
    torch_generator,
    train_networks,
)
from fairmatch.learning.penalties import Transport
from fairmatch.learning.reading import (
    Columns,
    Reader,
    check_lengths,
    encoded,
    group_columns,
    labels_of,
    seed_sequence,
)
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.people.checks import (
    FloatArray,
    check_count,
    check_number,
)
from fairmatch.people.groups import CRITERIA
from fairmatch.people.outcome import PROBABILITY, Outcome
from fairmatch.people.people import People
from paper.rivals import LAFTR_WEIGHTS, REPAIR_AMOUNTS, SIPM_WEIGHTS
from paper.rivals.networks import AdversaryNetwork, reverse_gradient

# Encoded rows, and the codes of their groups; None if groups are not used.
Read = tuple[FloatArray, NDArray[Any] | None]


class FairTransformer(  # type: ignore[misc]
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, FairEstimator
):
    """A representation of rows of two groups.

    A subclass names the parameter that is its weight. Its `_learn` returns objects that `represent`
    encoded rows, given the codes of their groups, or None if groups are not used.
    """

    __metadata_request__transform: ClassVar = {"sensitive_features": True}
    _outcome: ClassVar[Outcome] = PROBABILITY

    representer_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._reader().needs_labels
        return tags

    def _reader(self) -> Reader:
        return replace(super()._reader(), small_groups=None)

    @property
    def _n_features_out(self) -> int:
        n_outputs: int = self.representer_.n_outputs
        return n_outputs

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn a representation of a table; a coupling is for those that match."""
        return super().fit(
            X,
            y,  # type: ignore[arg-type]  # some representations need no labels
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> FloatArray:
        """Learn a representation of a table, and return the representation of its rows."""
        given = {"sample_weight": sample_weight, "coupling": coupling}
        self.fit(X, y, sensitive_features=sensitive_features, **given)  # type: ignore[arg-type]
        return self.transform(X, sensitive_features=sensitive_features)

    def transform(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Return the representation of rows, without a column for the groups."""
        read = read_encoded(self, X, sensitive_features, "transform")
        represented: FloatArray = self.representer_.represent(*read)
        return represented


def read_encoded(
    model: FairEstimator, X: Any, sensitive_features: ArrayLike | None, where: str
) -> Read:
    """Return the encoded features of new rows, and the codes of their groups."""
    check_is_fitted(model)
    table, codes = model.reader_.read_new(X, sensitive_features, where)
    numbers = model.reader_.numbers(table)
    check_lengths(numbers, codes)
    return numbers, codes


# A latent is divided by its spread, but by no less than this. Otherwise a nearly constant latent
# would be blown up.
_MIN_SPREAD = 1e-3


class Critic(nn.Module):
    """Base class of the critics of L encoders, with one fairness weight each.

    An encoder can fool a critic that learns too slowly: it hides the group where the critic does
    not look at that moment, and a new critic finds it. So critics learn faster than encoders.
    Adam's steps have the same size for every gradient, so the weights in use are ``speed`` times
    the parameters that Adam moves. ``slope_weight`` is the price of half the mean square of the
    slope of a critic's guess. Without it the game runs in circles.
    """

    fairness_weights: Tensor

    def __init__(self, fairness_weights: Tensor, slope_weight: float, speed: float) -> None:
        super().__init__()
        self.register_buffer("fairness_weights", fairness_weights)
        self.slope_weight, self.speed = slope_weight, speed

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return what each encoder pays, of shape (L,); the gradient also trains the critics.

        The first ``n_source`` rows of the latents are of the first group.
        """
        raise NotImplementedError


class AdversaryCritic(Critic):
    r"""LAFTR's adversary: a network that guesses the group (Madras et al., 2018).

    Its loss is the group-normalised L1 distance of its guess h(z) from the group. Its success is
    the gap between the groups' mean guesses,

    .. math:: 1 - \sum_s E[|h(z) - s| \mid S = s] = E[h(z) \mid S = 1] - E[h(z) \mid S = 0].

    This bounds the demographic parity gap of every classifier on z that is no stronger than the
    adversary. One backward pass trains both sides, because the gradient is reversed between the
    adversary and the encoder.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        n_latents: int,
        hidden_sizes: Sequence[int] = (64, 64),
        slope_weight: float = 0.3,
        speed: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights, slope_weight, speed)
        self.network = AdversaryNetwork(
            len(fairness_weights), n_latents, hidden_sizes, speed=speed, generator=generator
        )

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return the adversaries' weighted success; its gradient trains both sides."""
        latents = reverse_gradient(latents, self.fairness_weights[:, None, None])
        logits, slopes = self.network.guess(latents)
        guess = torch.sigmoid(logits.squeeze(2))
        gap = guess[:, n_source:].mean(dim=1) - guess[:, :n_source].mean(dim=1)
        steep = slopes.square().sum(dim=(2, 3)).mean(dim=1)
        game = self.slope_weight * steep / 2.0 - gap
        # The value is the weighted success, and the gradient is that of the game.
        return self.fairness_weights * gap.detach() + game - game.detach()


class SigmoidCritic(Critic):
    r"""The sigmoid integral probability metric (Kim et al., 2022), maximised by gradient steps.

    .. math:: \sup_{\theta, \mu} \bigl| E[\sigma(\theta^\top z + \mu) \mid S = 0]
              - E[\sigma(\theta^\top z + \mu) \mid S = 1] \bigr|.

    The objective has many local maxima. So several discriminators climb at once from different
    starts, and the encoder pays for the best of them.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        n_latents: int,
        n_discriminators: int = 16,
        slope_weight: float = 0.01,
        speed: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights, slope_weight, speed)
        start = torch.rand((1, n_latents + 1, n_discriminators), generator=generator)
        start = (2.0 * start - 1.0) * (3.0 / n_latents) ** 0.5 / speed
        self.discriminators = nn.Parameter(start.repeat(len(fairness_weights), 1, 1))

    def forward(self, latents: Tensor, n_source: int) -> Tensor:
        """Return the weighted gap of the best discriminators; its gradient trains both sides."""
        quick = self.speed * self.discriminators
        gaps = self.gaps(latents.detach(), n_source, quick)
        slope = quick[:, :-1].square().sum(dim=(1, 2))
        game = self.slope_weight * slope / 2.0 - gaps.sum(dim=1)
        best = gaps.argmax(dim=1)[:, None, None].expand(-1, quick.shape[1], 1)
        strongest = quick.detach().gather(2, best)
        paid = self.gaps(latents, n_source, strongest)[:, 0]
        return self.fairness_weights * paid + game - game.detach()

    def gaps(self, latents: Tensor, n_source: int, discriminators: Tensor) -> Tensor:
        """Return each discriminator's gap between the groups' means."""
        weight, bias = discriminators[:, :-1], discriminators[:, -1:]
        values = torch.sigmoid(torch.baddbmm(bias, latents, weight))
        return (values[:, :n_source].mean(dim=1) - values[:, n_source:].mean(dim=1)).abs()


class RepresentationObjective(nn.Module):
    r"""The objective of L encoders on one batch of pairs.

    .. math:: a\, E\, l(Y, k(z)) + b\, \frac{E \|x - g(z, s)\|^2}{E \|x - \bar x\|^2}
              + \lambda\, \mathrm{success\ of\ the\ critic\ on}\ z

    The latents z are scaled to mean 0 and standard deviation 1 in the batch. With a free scale, an
    encoder could hide the group where the critic is too flat to find it.
    """

    def __init__(
        self,
        encoder: StackedMLP,
        decoder: StackedMLP,
        head: StackedMLP,
        critic: Critic,
        *,
        inputs: FloatArray,
        features: FloatArray,
        labels: FloatArray,
        mass: FloatArray,
        task_weight: float,
        reconstruction_weight: float,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.head, self.critic = encoder, decoder, head, critic
        self.inputs = torch.as_tensor(inputs, dtype=torch.float32, device=device)
        self.features = torch.as_tensor(features, dtype=torch.float32, device=device)
        self.labels = torch.as_tensor(labels, dtype=torch.float32, device=device)
        self.task_weight, self.reconstruction_weight = task_weight, reconstruction_weight
        # A table of identical rows has no variance to divide by.
        centred = features - np.average(features, axis=0, weights=mass)
        self.spread = max(float(np.average(centred**2, axis=0, weights=mass).sum()), 1e-12)
        self.to(device)

    def forward(self, batch: Batch) -> Tensor:
        """Return each encoder's loss and its price for the critic, of shape (2, L)."""
        rows = torch.from_numpy(batch.rows).to(self.inputs.device)
        weight = torch.from_numpy(batch.weight).to(self.inputs.device)
        latents = standardized(self.encoder.outputs(self.inputs[rows]), weight)
        loss = torch.zeros(len(latents), device=latents.device)
        if self.task_weight:
            loss = loss + self.task_weight * self.task_loss(latents, rows, weight)
        if self.reconstruction_weight:
            lost = self.reconstruction_loss(latents, rows, weight, batch.n_pairs)
            loss = loss + self.reconstruction_weight * lost
        return torch.stack([loss, self.critic(latents, batch.n_pairs)])

    def task_loss(self, latents: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
        """Return the heads' cross-entropy."""
        logits = self.head(latents)
        truth = self.labels[rows].expand_as(logits)
        losses = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
        return losses @ weight

    def reconstruction_loss(
        self, latents: Tensor, rows: Tensor, weight: Tensor, n_source: int
    ) -> Tensor:
        """Return the share of the table's variance that the decoders cannot rebuild."""
        group = torch.zeros((*latents.shape[:2], 1), device=latents.device)
        group[:, n_source:] = 1.0
        rebuilt = self.decoder.outputs(torch.cat([latents, group], dim=2))
        return (rebuilt - self.features[rows]).square().sum(dim=-1) @ weight / self.spread


def standardized(latents: Tensor, weight: Tensor) -> Tensor:
    """Return latents shifted and scaled to mean 0 and standard deviation 1, with weighted rows."""
    mean, spread = moments(latents, weight)
    return (latents - mean) / spread


def moments(latents: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of every latent, of shape (L, 1, n_latents)."""
    share = (weight / weight.sum())[:, None]
    mean = (latents * share).sum(dim=1, keepdim=True)
    variance = ((latents - mean).square() * share).sum(dim=1, keepdim=True)
    return mean, variance.clamp_min(_MIN_SPREAD**2).sqrt()


@dataclass(frozen=True, eq=False)
class CriticRepresenter:
    """An encoder and its decoder."""

    #: The encoder, which represents rows, and the decoder, which rebuilds them.
    network: StackedMLP
    decoder: StackedMLP
    n_epochs: int  #: Number of epochs of their training.

    @property
    def n_outputs(self) -> int:
        """How many numbers represent a row."""
        return self.network.sizes[-1]

    def represent(self, encoded: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the representation of encoded rows."""
        return _apply(self.network, _beside(encoded, codes))

    @staticmethod
    def represent_path(
        members: Sequence["CriticRepresenter"], encoded: FloatArray, codes: NDArray[Any] | None
    ) -> FloatArray:
        """Return the representation of the same rows by every member; the first axis is members."""
        return np.stack([one.represent(encoded, codes) for one in members])

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the transformer shows."""
        return {
            "representer_": self,
            "network_": self.network,
            "decoder_": self.decoder,
            "n_epochs_": self.n_epochs,
        }


def _beside(values: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
    """Return values with a column for the group, unless groups are not used."""
    return values if codes is None else np.column_stack([values, group_columns(codes, 2)])


def _apply(network: StackedMLP, inputs: FloatArray) -> FloatArray:
    """Return the outputs of the only network in a stack."""
    with torch.no_grad():
        outputs = network.outputs(torch.as_tensor(inputs, dtype=torch.float32))[0]
    values: FloatArray = outputs.to(torch.float64).numpy()
    return values


def _standardize(encoder: StackedMLP, inputs: FloatArray, mass: FloatArray) -> None:
    """Build the scaling over all rows into the last layer; training scaled every batch."""
    with torch.no_grad():
        latents = encoder.outputs(torch.as_tensor(inputs, dtype=torch.float32))
        mean, spread = moments(latents, torch.as_tensor(mass, dtype=torch.float32))
        encoder.weights[-1] /= spread.transpose(1, 2)
        encoder.biases[-1].sub_(mean[:, 0]).div_(spread[:, 0])


class CriticTransformer(FairTransformer):
    """A representation that is learned against a critic, which a subclass names."""

    _critic: ClassVar[type[Critic]]
    _n_components: ClassVar[int]

    def __init__(
        self,
        fairness_weight: float = 1.0,
        *,
        n_components: int | None = None,
        task_weight: float = 1.0,
        reconstruction_weight: float = 0.1,
        estimator: NeuralNetwork | None = None,
        encoder: Any = "table",
        sensitive_column: Columns = None,
        sensitive_at_prediction: bool = True,
        random_state: Any = None,
    ) -> None:
        self.fairness_weight = fairness_weight
        self.n_components = n_components
        self.task_weight = task_weight
        self.reconstruction_weight = reconstruction_weight
        self.estimator = estimator
        self.encoder = encoder
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.random_state = random_state

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        (self.estimator or NeuralNetwork()).check(modules=False)
        check_count("n_components", self.n_components, optional=True)
        for name in ("task_weight", "reconstruction_weight"):
            check_number(name, getattr(self, name), "[0, inf)")

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[CriticRepresenter]:
        """Train the representations of all weights together."""
        people.groups.only_two(type(self).__name__)
        network, factors = self.estimator or NeuralNetwork(), np.asarray(weights, dtype=np.float64)
        network_seed, batch_seed, critic_seed = seed_sequence(self.random_state).spawn(3)
        generator, inputs = torch_generator(network_seed), encoded(people).inputs
        features = encoded(people).points.dense()
        n_features, chosen = features.shape[1], network.hidden_sizes
        sizes = (max(n_features, MIN_WIDTH),) if chosen is None else tuple(chosen)
        size = len(factors)
        n_latents = self._n_components if self.n_components is None else self.n_components
        mapped = StackedMLP(size, inputs.shape[1], sizes, generator, n_latents)
        decoder = StackedMLP(size, n_latents + 1, sizes[::-1], generator, n_features)
        critic: Any = self._critic  # its constructor takes more than that of the base class
        objective = RepresentationObjective(
            mapped,
            decoder,
            StackedMLP(size, n_latents, (), generator),
            critic(
                torch.as_tensor(factors, dtype=torch.float32),
                n_latents,
                generator=torch_generator(critic_seed),
            ),
            inputs=inputs,
            features=features,
            labels=labels_of(people).values,
            mass=people.mass,
            task_weight=self.task_weight,
            reconstruction_weight=self.reconstruction_weight,
            device=network.device,
        )
        parts = people.comparisons(CRITERIA["demographic_parity"])
        batches = pair_batches(
            parts, people.mass, network.batch_size, np.random.default_rng(batch_seed)
        )
        n_epochs = network.descend(objective, batches, len(people), factors, network_seed)
        _standardize(mapped, inputs, people.mass)
        return [
            CriticRepresenter(mapped.select(k), decoder.select(k), n_epochs) for k in range(size)
        ]


class LAFTRTransformer(CriticTransformer):
    r"""A representation that hides the group from an adversary (LAFTR; Madras et al., 2018).

    LAFTR stands for Learning Adversarially Fair and Transferable Representations.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success.
    n_components : int, optional
        How many numbers represent a row; by default 8.
    task_weight : float, default=1.0
        Weight of the cross-entropy of a linear head that predicts the label.
    reconstruction_weight : float, default=0.1
        Weight of the share of the table's variance that a decoder cannot rebuild. In a small table
        the encoder may learn the labels by heart, and a larger weight helps, such as 3 for German.
    estimator : NeuralNetwork, optional
        The encoder's hidden layers and how it is trained; the decoder has the same layers in
        reverse. By default there is one layer as wide as the encoded features, at least 32 wide.
    encoder, sensitive_column, sensitive_at_prediction, random_state
        As for `fairmatch.FTMClassifier`.

    Notes
    -----
    The encoder f, the head k and the decoder g minimise, and the adversary h maximises,

    .. math:: a\, E\, l(Y, k(Z)) + b\, \frac{E \|X - g(Z, S)\|^2}{E \|X - E X\|^2}
              + \lambda \Bigl(1 - \sum_s E\bigl[|h(Z) - s| \mid S = s\bigr]\Bigr),
              \qquad Z = f(X, S),

    where a is ``task_weight``, b is ``reconstruction_weight`` and :math:`\lambda` is
    ``fairness_weight``. The last term is the paper's group-normalised L1 objective for demographic
    parity. Every component has mean 0 and standard deviation 1 on the training rows.

    Examples
    --------
    >>> from fairmatch import NeuralNetwork
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> LAFTRTransformer(
    ...     n_components=3, estimator=NeuralNetwork(epochs=2), random_state=0).fit_transform(
    ...     german.X, german.y, sensitive_features=german.sensitive_features).shape
    (1000, 3)
    """

    _curve_weights: ClassVar[tuple[float, ...]] = LAFTR_WEIGHTS
    _critic: ClassVar[type[Critic]] = AdversaryCritic
    _n_components: ClassVar[int] = 8


class SIPMTransformer(CriticTransformer):
    r"""A representation in which no sigmoid unit tells the groups apart (Kim et al., 2022).

    The method is sIPM-LFR: learning fair representations (LFR) with the sigmoid integral
    probability metric (sIPM). Parameters are those of `LAFTRTransformer`, except that a row is
    represented by 3 numbers by default. With more numbers, the groups may differ in ways that a
    network finds and a single sigmoid unit does not.

    Notes
    -----
    The objective is that of `LAFTRTransformer`, with the metric of `SigmoidCritic` in place of the
    adversary's success. It is 0 only if the two distributions are the same.
    """

    _curve_weights: ClassVar[tuple[float, ...]] = SIPM_WEIGHTS
    _critic: ClassVar[type[Critic]] = SigmoidCritic
    _n_components: ClassVar[int] = 3


Sides = tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class RepairRepresenter:
    """Training rows of each group, and the shifts that full repair gives them."""

    #: The distinct training rows of each group, and their shifts.
    points: Sides
    shifts: Sides
    amount: float  #: Share of the shift that rows are moved by.
    n_neighbors: int  #: How many training rows a new row takes its shift from.

    @property
    def n_outputs(self) -> int:
        """How many numbers represent a row."""
        return int(self.points[0].shape[1])

    def represent(self, encoded: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the moved rows."""
        return encoded + self.amount * self.shift(encoded, codes)

    @staticmethod
    def represent_path(
        members: Sequence["RepairRepresenter"], encoded: FloatArray, codes: NDArray[Any] | None
    ) -> FloatArray:
        """Return the rows moved by every amount; the first axis is the members."""
        shift = members[0].shift(encoded, codes)
        return np.stack([encoded + one.amount * shift for one in members])

    def shift(self, features: FloatArray, codes: NDArray[Any] | None) -> FloatArray:
        """Return the shifts of rows under full repair, from the nearest training rows."""
        assert codes is not None
        shift = np.empty_like(features)
        for code, (points, shifts) in enumerate(zip(self.points, self.shifts, strict=True)):
            own = np.flatnonzero(codes == code)
            if len(own):
                n_neighbors = min(self.n_neighbors, len(points))
                # The search expands squared distances, which loses precision far from the origin.
                centre = points.mean(axis=0)
                search = NearestNeighbors(n_neighbors=n_neighbors).fit(points - centre)
                nearest = search.kneighbors(features[own] - centre, return_distance=False)
                shift[own] = shifts[nearest].mean(axis=1)
        return shift

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the transformer shows."""
        return {"representer_": self, "points_": self.points, "shifts_": self.shifts}


def _shifts(people: People, coupling: Coupling) -> tuple[Sides, Sides]:
    """Return the distinct rows of each group, and the shifts that the coupling gives them."""
    features = encoded(people).points.dense()
    sizes = people.groups.sizes(people.weights)
    shares = sizes / sizes.sum()
    pairs = np.flatnonzero(coupling.mass > 0.0)
    source, target = coupling.source_index[pairs], coupling.target_index[pairs]
    points, shifts = [], []
    for code, (own, partners) in enumerate(((source, target), (target, source))):
        # Identical rows must move alike, because a map is a function of the point.
        unique, point = np.unique(features[own], axis=0, return_inverse=True)
        mass = sparse.csr_array(
            (coupling.mass[pairs], (point.ravel(), partners)),
            shape=(len(unique), len(features)),
        )
        total = np.asarray(mass.sum(axis=1), dtype=np.float64)
        partner_sum = np.asarray(mass @ features, dtype=np.float64)
        points.append(unique)
        shifts.append(shares[1 - code] * (partner_sum / total[:, None] - unique))
    return tuple(points), tuple(shifts)


class TransportRepairTransformer(MatchesPeople, FairTransformer):
    r"""Both groups, moved to their common barycenter (Gordaliza et al., 2019).

    People are matched by optimal transport on their features. Every row then moves towards the
    mean of its matches, all or part of the way to the groups' Wasserstein barycenter.

    Parameters
    ----------
    amount : float, default=1.0
        Share of the way that rows move: 0 leaves them as they are, and 1 is full repair.
    tolerance : float, default=1e-3
        Largest relative duality gap of the matching. It must be proven.
    n_neighbors : int, default=1
        How many training rows of the same group a new row takes its shift from.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. The representation does not contain
        it.

    Notes
    -----
    With the optimal coupling :math:`\mathbb{Q}` of the groups and their shares
    :math:`\pi_0, \pi_1`, the barycenter of a pair is :math:`\pi_0 x_0 + \pi_1 x_1`. A row moves to
    the mean of the barycenters with its partners, the barycentric projection. With amount t this is

    .. math:: x \mapsto (1 - t)\, x + t\, \bigl(\pi_s x +
              \pi_{s'} E_{\mathbb{Q}}[X_{s'} \mid X_s = x]\bigr).

    If the groups have the same size and no row occurs twice, partners are one to one, and full
    repair makes them coincide. Otherwise rows have several partners, whose mean differs from each
    single partner. The groups' means then agree, but a forest still finds traces of the group.

    A new row moves by the shift of the nearest training row of its group, or by the mean shift of
    the ``n_neighbors`` nearest. A training row is its own nearest neighbour. With more than one
    neighbour it also moves by a mean shift, and the statements above hold only approximately.

    The projection to the barycenter is that of Gordaliza et al. Moving part of the way is the
    geometric repair of Feldman et al. (2015), with the same amount for every row.

    Examples
    --------
    >>> X, groups = [[0.0], [1.0], [4.0], [7.0]], [0, 0, 1, 1]
    >>> TransportRepairTransformer(encoder=None).fit_transform(
    ...     X, sensitive_features=groups).ravel().tolist()
    [2.0, 4.0, 2.0, 4.0]
    """

    _curve_weights: ClassVar[tuple[float, ...]] = REPAIR_AMOUNTS
    _weight_name: ClassVar[str | None] = "amount"
    _weight_range: ClassVar[str] = "[0, 1]"
    _estimated: ClassVar[bool] = False

    def __init__(
        self,
        amount: float = 1.0,
        *,
        tolerance: float = 1e-3,
        n_neighbors: int = 1,
        sensitive_column: Columns = None,
        encoder: Any = "table",
    ) -> None:
        self.amount = amount
        self.tolerance = tolerance
        self.n_neighbors = n_neighbors
        self.sensitive_column = sensitive_column
        self.encoder = encoder

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_number("tolerance", self.tolerance, "(0, 1)")
        super()._check(weights, coupling)

    def _transport(self) -> Transport:
        matcher = OptimalTransportMatcher(tolerance=self.tolerance)
        return Transport(matcher, self._outcome)

    def _reader(self) -> Reader:
        # The shift of a row depends on its group, so new rows need their groups.
        return replace(super()._reader(), optional=False, needs_labels=False)

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[RepairRepresenter]:
        """Match people once, and move them by every amount."""
        groups = people.groups.only_two(type(self).__name__)
        if coupling is None:
            matcher = OptimalTransportMatcher(tolerance=self.tolerance)
            points = encoded(people).points
            coupling = matcher.match_people(People(groups, weight=people.weight), points)
        else:
            coupling.check_groups(groups)
        if groups.code_of(coupling.groups[0]) > groups.code_of(coupling.groups[1]):
            coupling = coupling.inverse
        full = RepairRepresenter(*_shifts(people, coupling), 1.0, self.n_neighbors)
        return [replace(full, amount=float(amount)) for amount in weights]


@dataclass(frozen=True, eq=False)
class RepresentationScorer:
    """A network that scores the representation of rows."""

    representation: Any  #: The fitted representation.
    head: NetworkScorer  #: The network on the representation.

    def scores(self, inputs: Read) -> FloatArray:
        """Return the score of every row."""
        return self.head.scores(self.representation.representer_.represent(*inputs))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        known = {"scorer_": self, "representation_": self.representation}
        return {**self.head.attributes(), **known}


class RepresentationClassifier(FairClassifier):
    """A fair representation, and a network on it that is trained for accuracy alone.

    scikit-learn's ``Pipeline`` does the same for one weight, and this class for a whole curve:
    `fairness_path` learns the representations of all weights in one pass, and the networks on them
    in another.

    Parameters
    ----------
    representation : transformer, optional
        A `LAFTRTransformer`, `SIPMTransformer` or `TransportRepairTransformer`. Its settings
        include the groups' column, the encoder of the table and the fairness weight. By default it
        is a `TransportRepairTransformer` with full repair. A representation without a seed gets
        one from ``random_state``.

    Examples
    --------
    >>> from fairmatch import NeuralNetwork, fairness_path
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> groups = german.sensitive_features
    >>> model = RepresentationClassifier(
    ...     TransportRepairTransformer(), estimator=NeuralNetwork(epochs=5), random_state=0)
    >>> path = fairness_path(
    ...     german.X, german.y, sensitive_features=groups, fairness_weights=[0.0, 1.0],
    ...     estimator=model)
    >>> [m.representation.amount for m in path.models]
    [0.0, 1.0]
    """

    def __init__(
        self,
        representation: FairTransformer | None = None,
        *,
        estimator: NeuralNetwork | None = None,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.estimator = estimator
        self.random_state = random_state

    @property
    def default_weights(self) -> tuple[float, ...]:
        """Weights of a whole curve, which are those of the representation."""
        return self._chosen.default_weights

    @property
    def fairness_weight(self) -> float:
        """Weight of the representation."""
        return float(self._weight)

    @property
    def _chosen(self) -> FairTransformer:
        """The representation given as a parameter, or the default one."""
        chosen = self.representation or TransportRepairTransformer()
        if not isinstance(chosen, FairTransformer):
            raise InputError(
                "representation must be one of the rivals' transformers, such as "
                f"TransportRepairTransformer(); got {chosen!r}. Any other transformer goes into "
                "scikit-learn's Pipeline."
            )
        return chosen

    @property
    def _weight(self) -> Any:
        return self._chosen._weight

    def _set_weight(self, weight: float) -> None:
        self.representation = clone(self._chosen)
        self.representation._set_weight(weight)

    def _encoder(self) -> Any:
        return self._chosen._encoder()

    def _reader(self) -> Reader:
        return replace(self._chosen._reader(), who=type(self).__name__, needs_labels=True)

    def _inputs(self, X: Any, sensitive_features: ArrayLike | None) -> Read:
        return read_encoded(self, X, sensitive_features, "predict")

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        self._chosen._check(weights, coupling)
        (self.estimator or NeuralNetwork()).check()

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> list[RepresentationScorer]:
        """Train all representations together, then all networks on them."""
        representation = self._seeded()
        members: Any = representation._learn(people, weights, coupling)
        codes = people.groups.codes if self.reader_.at_prediction else None
        inputs = members[0].represent_path(members, encoded(people).points.dense(), codes)
        # The networks have no penalty: each is trained plainly on its representation.
        heads = train_networks(
            self.estimator or NeuralNetwork(),
            people,
            inputs,
            [0.0] * len(members),
            loss=self._outcome.loss,
            penalty=lambda: None,
            random_state=self.random_state,
        )
        known = self.reader_.attributes()
        return [
            RepresentationScorer(
                representation._fitted(weight, {**known, **member.attributes()}), head
            )
            for weight, member, head in zip(weights, members, heads, strict=True)
        ]

    def _seeded(self) -> FairTransformer:
        """Return a copy of the representation, with a seed if it has none of its own."""
        representation: FairTransformer = clone(self._chosen)
        parameters = representation.get_params(deep=False)
        if self.random_state is not None and parameters.get("random_state", 0) is None:
            seed = seed_sequence(self.random_state).generate_state(1, np.uint64)[0] >> np.uint64(1)
            representation.set_params(random_state=int(seed))
        return representation
