"""Networks that minimise a loss plus a weighted penalty."""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, repeat
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.exceptions import InputError, ModelFileError, TrainingInterruptedWarning
from fairmatch.learning import penalties as formulas
from fairmatch.learning.choice import GapChoice, RealGapChoice
from fairmatch.learning.estimator import FairClassifier, FairRegressor, Family
from fairmatch.learning.penalties import (
    Adversary,
    Comparison,
    ConstraintViolation,
    GroupComparison,
    GroupPenalty,
    Sampling,
    SquaredMeanGap,
    Transport,
)
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.reading import (
    EncoderSettings,
    GroupSettings,
    GroupSizes,
    TableReader,
    TrainingRows,
    epochs_from,
    seed_sequence,
)
from fairmatch.learning.saving import FILE, Arrays, State, read_arrays, write_arrays
from fairmatch.learning.settings import (
    ADV_WEIGHTS,
    REDUCTION_WEIGHTS,
    REG_WEIGHTS,
    Settings,
    estimator,
    notify,
)
from fairmatch.matching.coupling import Coupling, IndexArray, PartRows, rows_with_mass
from fairmatch.matching.matchers import Matcher, OptimalTransportMatcher
from fairmatch.people.checks import FloatArray, check_count, check_number, check_verbose, is_count
from fairmatch.people.encoding import Points
from fairmatch.people.groups import Groups
from fairmatch.people.outcome import LOGISTIC, Loss

# How many matchings are computed ahead of the step that trains on them.
_AHEAD = 8
# Several parts share the pairs of a batch. Each has at least this many, or a whole batch if that
# is smaller.
_LEAST_PAIRS = 256


@dataclass(frozen=True)
class Batch:
    """The rows of one step: rows for the loss, with weights, and pairs for the comparison.

    Attributes
    ----------
    rows : array of int
        Row positions. The first ``n_pairs`` are the first members of the pairs, and the next
        ``n_pairs`` are the second members, in the same order. Further rows are in no pair.
    weight : array of float32
        Weight of each row in the loss; 0 for rows that are only compared. The expected value of
        the weighted loss is the mean loss of the table.
    n_pairs : int
        Number of pairs; 0 if nobody is compared.
    """

    rows: IndexArray
    weight: NDArray[np.float32]
    n_pairs: int = 0


class Batches(Protocol):
    """A source of batches."""

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""


def _draws(
    mass: FloatArray, n_steps: int, size: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Draw positions in proportion to their mass, and shuffle them into steps."""
    total = n_steps * size
    ends = np.cumsum(mass)
    at = (np.arange(total) + generator.random()) * (ends[-1] / total)
    drawn = np.minimum(np.searchsorted(ends, at, side="right"), len(mass) - 1)
    return generator.permutation(drawn).reshape(n_steps, size)


class RowBatches:
    """Batches of rows from the whole table, for training without a penalty."""

    def __init__(self, mass: FloatArray, batch_size: int, generator: np.random.Generator) -> None:
        self.mass, self.generator = mass, generator
        self.size = min(batch_size, len(mass))
        self.weight = np.full(self.size, 1.0 / self.size, dtype=np.float32)

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        for rows in _draws(self.mass, n_steps, self.size, self.generator):
            yield Batch(rows, self.weight)


class PairBatches:
    """Batches with as many rows of one group as of the other, for every part.

    The two rows of a pair are drawn independently. If there is one part and every row is in it,
    the same rows serve the loss and the comparison. The loss then weighs the rows of each group by
    the group's share of the table, and stays an unbiased estimate of the mean loss. Otherwise the
    loss has rows of its own. A batch repeats rows of a group that is smaller than the batch.

    Parameters
    ----------
    parts : sequence of PartRows
        The pairs of groups that are compared.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Rows of each group. Several parts share them, with at least 256 for each.
    generator : numpy.random.Generator
        Draws the rows.

    Attributes
    ----------
    part_size : int
        Pairs of each part in a batch. The pairs of a part follow each other.
    """

    def __init__(
        self,
        parts: Sequence[PartRows],
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.parts, self.mass, self.generator = parts, mass, generator
        n_rows = int((mass > 0.0).sum())
        self.size = max(1, min(batch_size, n_rows // 2))
        self.part_size = max(-(-self.size // max(len(parts), 1)), min(self.size, _LEAST_PAIRS))
        self.shared = self._sharing()
        # A separate generator draws the rows of the loss, which are independent of the pairs.
        self.others = (
            None
            if self.shared is not None
            else RowBatches(mass, batch_size, np.random.default_rng(generator.integers(2**63)))
        )

    def _sharing(self) -> NDArray[np.float32] | None:
        """Return the weights of rows in the loss, or None if the pairs cannot serve the loss."""
        if len(self.parts) > 1 or not self._covers(self.parts[0].in_order):
            return None
        sides = self.parts[0].in_order
        masses = np.array([self.mass[rows].sum() for rows in sides])
        weight = np.zeros(len(self.mass), dtype=np.float32)
        for rows, share in zip(sides, masses / masses.sum(), strict=True):
            weight[rows] = np.float32(share / self.size)
        return weight

    def _covers(self, sides: tuple[IndexArray, IndexArray]) -> bool:
        return sum(map(len, sides)) == int((self.mass > 0.0).sum())

    def draw(self, n_steps: int) -> list[tuple[IndexArray, IndexArray]]:
        """Draw the rows of an epoch: for every part, two arrays of shape (n_steps, part_size)."""
        return [
            tuple(  # type: ignore[misc]
                rows[_draws(self.mass[rows], n_steps, self.part_size, self.generator)]
                for rows in part.in_order
            )
            for part in self.parts
        ]

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        drawn, others = self.draw(n_steps), self._other_rows(n_steps)
        for step in range(n_steps):
            yield self._batch([(a[step], b[step]) for a, b in drawn], next(others))

    def _other_rows(self, n_steps: int) -> Iterator[Batch | None]:
        return repeat(None) if self.others is None else self.others.epoch(n_steps)

    def _batch(self, pairs: list[tuple[IndexArray, IndexArray]], others: Batch | None) -> Batch:
        rows = np.concatenate([side[k] for k in (0, 1) for side in pairs])
        n_pairs = len(rows) // 2
        if others is None:
            assert self.shared is not None
            return Batch(rows, self.shared[rows], n_pairs)
        unseen = np.zeros(len(rows), dtype=np.float32)
        return Batch(
            np.concatenate([rows, others.rows]), np.concatenate([unseen, others.weight]), n_pairs
        )


class CoupledBatches(PairBatches):
    """Batches of pairs from a ready coupling, drawn by their mass.

    If the coupling has two groups and every row is in a pair, its pairs also serve the loss. The
    marginals of the coupling may differ from the rows' own, as after matching in mini-batches; the
    weights in the loss then correct the difference. Otherwise the loss has rows of its own, and so
    it sees everybody.

    Parameters
    ----------
    coupling : Coupling
        Who is matched with whom.
    groups : Groups
        Group of every row.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Greatest number of pairs in a batch.
    generator : numpy.random.Generator
        Draws the pairs.
    """

    def __init__(
        self,
        coupling: Coupling,
        groups: Groups,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.coupling = _in_order(coupling, groups)
        weights = None if (mass > 0.0).all() else mass
        self._sides = rows_with_mass(groups, weights)
        super().__init__((), mass, batch_size, generator)
        self.part_size = min(self.size, len(coupling))

    def _sharing(self) -> NDArray[np.float32] | None:
        if len(self._sides) > 2 or len(self.coupling.parts) > 1:
            return None
        weight = np.zeros(len(self.mass), dtype=np.float32)
        total = self.mass.sum()
        for rows, marginal in zip(self._sides, self.coupling.marginals(), strict=True):
            if not (marginal[rows] > 0.0).all():
                return None
            wanted = self.mass[rows]
            weight[rows] = np.float32(wanted.sum() / total / self.size)
            weight[rows] *= (wanted / wanted.sum() / marginal[rows]).astype(np.float32)
        return weight

    def draw(self, n_steps: int) -> list[tuple[IndexArray, IndexArray]]:
        """Draw the pairs of an epoch."""
        pairs = _draws(self.coupling.mass, n_steps, self.part_size, self.generator)
        return [(self.coupling.source_index[pairs], self.coupling.target_index[pairs])]


def _in_order(coupling: Coupling, groups: Groups) -> Coupling:
    """Return a coupling of two groups with the smaller group code first."""
    if len(coupling.parts) > 1:
        return coupling
    first, second = (groups.code_of(label) for label in coupling.groups)
    return coupling if first < second else coupling.inverse


class MatchedBatches(PairBatches):
    """Batches of rows that are matched anew in every step, as in the paper.

    Another process matches the rows ahead of the training.

    Parameters
    ----------
    matcher : OptimalTransportMatcher
        Matches the rows of a batch, part by part.
    points : Points
        What rows are matched on.
    parts : sequence of PartRows
        The pairs of groups that are compared.
    mass : array of shape (n_rows,)
        Weight of every row.
    batch_size : int
        Rows of each group. Several parts share them, with at least 256 for each.
    generator : numpy.random.Generator
        Draws the rows.
    """

    def __init__(
        self,
        matcher: OptimalTransportMatcher,
        points: Points,
        parts: Sequence[PartRows],
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(parts, mass, batch_size, generator)
        self.matcher, self.points = matcher, points

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        waiting: deque[list[_Awaited]] = deque()
        drawn, others = self.draw(n_steps), self._other_rows(n_steps)
        try:
            for step in range(n_steps):
                pairs = [(first[step], second[step]) for first, second in drawn]
                waiting.append([(a, b, self._submit(a, b)) for a, b in pairs])
                if len(waiting) > _AHEAD:
                    yield self._matched(waiting.popleft(), next(others))
            while waiting:
                yield self._matched(waiting.popleft(), next(others))
        finally:
            for awaited in waiting:
                for *_, future in awaited:
                    future.cancel()

    def _submit(self, first: IndexArray, second: IndexArray) -> "Future[IndexArray]":
        points = self.points[first], self.points[second]
        future: Future[IndexArray]
        try:
            future = _other_core().submit(self.matcher.pair, *points)
        except BrokenExecutor:  # something outside ended the process
            _other_core.cache_clear()
            future = _other_core().submit(self.matcher.pair, *points)
        return future

    def _matched(self, awaited: "list[_Awaited]", others: Batch | None) -> Batch:
        pairs = []
        for first, second, order in awaited:
            try:
                found = order.result()
            except BrokenExecutor:
                found = self._submit(first, second).result()
            pairs.append((first, second[found]))
        return self._batch(pairs, others)


_Awaited = tuple[IndexArray, IndexArray, "Future[IndexArray]"]


@cache
def _other_core() -> ProcessPoolExecutor:
    """Start the process that matches ahead; it ends by itself after a minute without work.

    This is a process, because the solver of POT (Python Optimal Transport) blocks all other
    threads. It is separate from joblib's reusable pool, because joblib may be using that pool to
    run this very training.
    """
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=60,
        env={"OPENBLAS_NUM_THREADS": "1"},
        initializer=_leave_interrupts_to_others,
    )


def _leave_interrupts_to_others() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the training process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class NetworkStack(nn.Module):
    """L networks that see the same inputs or different ones.

    ``forward`` maps (n_rows, n_inputs) or (L, n_rows, n_inputs) to logits of shape (L, n_rows).
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        raise NotImplementedError

    def select(self, index: int) -> "NetworkStack":
        """Return one of the networks as a stack of its own."""
        raise NotImplementedError


class StackedMLP(NetworkStack):
    """L multilayer perceptrons with stacked weights, trained by one optimiser.

    All networks start from the same weights, so later differences come from the objective.

    Parameters
    ----------
    n_networks : int
        Number of networks.
    n_inputs : int
        Number of inputs of each network.
    hidden_sizes : sequence of int
        Widths of the hidden layers, with ReLU after each of them.
    generator : torch.Generator, optional
        Draws the initial weights, from the same range as ``torch.nn.Linear``.
    n_outputs : int, default=1
        Number of outputs of each network for a row; a classifier has one logit.
    """

    def __init__(
        self,
        n_networks: int,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        generator: torch.Generator | None = None,
        n_outputs: int = 1,
    ) -> None:
        super().__init__()
        self.hidden_sizes = tuple(int(size) for size in hidden_sizes)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for width, following in pairwise([n_inputs, *hidden_sizes, n_outputs]):
            bound = width**-0.5
            for parameters, shape in (
                (self.weights, (following, width)),
                (self.biases, (following,)),
            ):
                start = (2.0 * torch.rand(shape, generator=generator) - 1.0) * bound
                parameters.append(nn.Parameter(start.repeat(n_networks, *[1] * len(shape))))

    @property
    def n_inputs(self) -> int:
        """Number of inputs of each network."""
        return int(self.weights[0].shape[-1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs of each network."""
        return int(self.weights[-1].shape[-2])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        return self.outputs(inputs).squeeze(-1)

    def outputs(self, inputs: Tensor) -> Tensor:
        """Return all outputs of every network, of shape (L, n_rows, n_outputs)."""
        # One network after the other is quicker than a batched product, because the intermediate
        # values of one network stay in the processor's cache.
        own = inputs.unbind() if inputs.ndim == 3 else [inputs] * len(self.weights[0])
        pairs = zip(self.networks(), own, strict=True)
        return torch.stack([_apply(layers, values) for layers, values in pairs])

    def networks(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield the layers of one network after the other."""
        unbound = [(w.unbind(), b.unbind()) for w, b in zip(self.weights, self.biases, strict=True)]
        for index in range(len(self.weights[0])):
            yield [(w[index], b[index]) for w, b in unbound]

    def select(self, index: int) -> "StackedMLP":
        """Return a copy of one of the networks as a stack of its own."""
        tensors = {name: t[index : index + 1].clone() for name, t in self.state_dict().items()}
        return StackedMLP.from_tensors(self.n_inputs, self.hidden_sizes, tensors, self.n_outputs)

    @classmethod
    def from_tensors(
        cls,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        tensors: Mapping[str, Tensor],
        n_outputs: int = 1,
    ) -> "StackedMLP":
        """Return one network with ready weights; raise if their shapes do not fit."""
        # The initial weights are replaced at once, so they are neither drawn nor stored.
        with torch.device("meta"):
            network = cls(1, n_inputs, hidden_sizes, n_outputs=n_outputs)
        network.load_state_dict(tensors, assign=True)
        return network.to(torch.float32)


def _apply(layers: list[tuple[Tensor, Tensor]], values: Tensor) -> Tensor:
    *hidden, (weight, bias) = layers
    for hidden_weight, hidden_bias in hidden:
        values = functional.relu(functional.linear(values, hidden_weight, hidden_bias))
    return functional.linear(values, weight, bias)


class ModuleStack(NetworkStack):
    """Copies of a user's own module.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        Each maps (n_rows, n_inputs) to one logit per row.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(modules)

    @classmethod
    def copies(cls, module: nn.Module, n_networks: int) -> "ModuleStack":
        """Return a stack of copies of a module, all with the same weights."""
        return cls([deepcopy(module) for _ in range(n_networks)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of every network."""
        own = inputs.unbind() if inputs.ndim == 3 else [inputs] * len(self.members)
        pairs = zip(self.members, own, strict=True)
        return torch.stack([member(values).reshape(len(values)) for member, values in pairs])

    def select(self, index: int) -> "ModuleStack":
        """Return one of the networks as a stack of its own."""
        return ModuleStack([self.members[index]])


@dataclass(frozen=True)
class TorchLoss:
    """A loss of margins, and the link that turns margins into scores.

    Attributes
    ----------
    values : callable
        Maps margins and labels of the same shape to losses.
    link : callable
        Maps margins to scores.
    """

    values: Callable[[Tensor, Tensor], Tensor]
    link: Callable[[Tensor], Tensor]


def _logistic(margins: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(margins, labels, reduction="none")


def _squared(margins: Tensor, labels: Tensor) -> Tensor:
    return (margins - labels) ** 2 / 2.0


def _same(margins: Tensor) -> Tensor:
    return margins


TORCH_LOSSES = {
    "logistic": TorchLoss(_logistic, torch.sigmoid),
    "squared": TorchLoss(_squared, _same),
}


class AdversaryNetwork(nn.Module):
    """L adversaries, which guess groups from the outputs of L models.

    An adversary and its model play against each other, and without further terms they run in
    circles. So an adversary pays for the slope of its guess, which makes such games converge
    (Mescheder, Geiger and Nowozin, 2018: "Which training methods for GANs do actually converge?").
    A model can fool an adversary that learns too slowly, so an adversary may learn faster. Adam's
    steps have the same size for every gradient, so the weights in use are ``speed`` times the
    parameters that Adam moves.

    Parameters
    ----------
    n_networks : int
        Number of adversaries.
    n_inputs : int
        Number of inputs of each adversary.
    hidden_sizes : sequence of int
        Widths of the hidden layers.
    n_outputs : int, default=1
        Number of logits of each guess: 1 for two groups, else one per group.
    speed : float, default=1
        How many times faster than its model an adversary learns.
    generator : torch.Generator, optional
        Draws the initial weights, which are the same for every adversary.
    """

    def __init__(
        self,
        n_networks: int,
        n_inputs: int,
        hidden_sizes: Sequence[int],
        n_outputs: int = 1,
        speed: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.speed = speed
        self.stack = StackedMLP(n_networks, n_inputs, hidden_sizes, generator, n_outputs)
        with torch.no_grad():
            for values in self.stack.parameters():
                values.div_(speed)

    def guess(self, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return the guesses and their slopes.

        Parameters
        ----------
        given : tensor of shape (L, n_rows, n_inputs)
            What the adversaries see of each row.

        Returns
        -------
        guesses : tensor of shape (L, n_rows, n_outputs)
            Logits of the groups.
        slopes : tensor of shape (L, n_rows, n_outputs, n_inputs)
            Derivatives of the guesses by the inputs.
        """
        found = []
        for layers, values in zip(self.stack.networks(), given.unbind(), strict=True):
            quick = [(self.speed * weight, self.speed * bias) for weight, bias in layers]
            found.append(_guess(quick, values))
        guesses, slopes = zip(*found, strict=True)
        return torch.stack(guesses), torch.stack(slopes)


def _guess(layers: list[tuple[Tensor, Tensor]], values: Tensor) -> tuple[Tensor, Tensor]:
    *hidden, (weight, bias) = layers
    active = []
    for hidden_weight, hidden_bias in hidden:
        values = functional.relu(functional.linear(values, hidden_weight, hidden_bias))
        active.append(values > 0.0)
    slopes = weight.expand(len(values), *weight.shape)
    for (hidden_weight, _), on in zip(reversed(hidden), reversed(active), strict=True):
        slopes = (slopes * on[:, None, :]) @ hidden_weight
    return functional.linear(values, weight, bias), slopes


def reverse_gradient(values: Tensor, weight: Tensor) -> Tensor:
    """Return the values unchanged; in the backward pass, multiply their gradient by -weight."""
    reversed_: Tensor = _ReverseGradient.apply(values, weight)  # type: ignore[no-untyped-call]
    return reversed_


class _ReverseGradient(torch.autograd.Function):
    """The identity, with a gradient that is multiplied by minus a weight."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return -weight * gradients[0], None


Link = Callable[[Tensor], Tensor]


class Penalty(nn.Module):
    """Base class of penalties, with one fairness weight per network.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    link : callable
        Turns margins into scores.
    """

    fairness_weights: Tensor

    def __init__(self, fairness_weights: Tensor, link: Link = torch.sigmoid) -> None:
        super().__init__()
        self.register_buffer("fairness_weights", fairness_weights)
        self.link = link

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted penalty of the pairs' margins, two tensors of shape (L, n_pairs)."""
        return self.fairness_weights * self.value(self.link(first), self.link(second))

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the penalty of the pairs' scores, without the fairness weights."""
        raise NotImplementedError


class MatchedGapPenalty(Penalty):
    r"""The mean score gap between matched people, :math:`\Delta\mathrm{MDP}` (equation 2).

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    part_weights : tensor of shape (n_parts,), optional
        Weight of each part. A batch has the same number of pairs of each, one part after the
        other. By default there is one part.
    link : callable
        Turns margins into scores.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        part_weights: Tensor | None = None,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__(fairness_weights, link)
        weights = fairness_weights.new_ones(1) if part_weights is None else part_weights
        self.register_buffer("part_weights", weights)

    part_weights: Tensor

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the mean gap of the pairs."""
        sizes: Tensor = formulas.MatchedGap.sizes(first - second)
        return sizes.reshape(len(sizes), len(self.part_weights), -1).mean(dim=2) @ self.part_weights


class MeanPenalty(Penalty):
    """The weighted sum of squared contrasts of the groups' mean scores in a batch.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    formula : fairmatch.learning.penalties.MeanPenalty
        The contrasts and their weights.
    link : callable
        Turns margins into scores.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: formulas.MeanPenalty,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__(fairness_weights, link)
        self.formula = formula
        weights = torch.as_tensor(formula.contrast_weights).to(fairness_weights.dtype)
        self.register_buffer("contrast_weights", weights)

    contrast_weights: Tensor

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted sum of squared contrasts."""
        means = torch.stack([m.mean(dim=1) for m in strata(self.formula, first, second)])
        contrasts: Tensor = self.formula.contrasts(means)
        return self.contrast_weights @ contrasts**2


def strata(formula: formulas.GroupPenalty, first: Tensor, second: Tensor) -> list[Tensor]:
    """Return the values of each stratum, of shape (L, n), from those of the parts' pairs."""
    n_parts = len(formula.parts)
    found: list[list[Tensor]] = [[] for _ in formula.strata]
    for ends, at in ((first, formula.first), (second, formula.second)):
        for values, stratum in zip(ends.chunk(n_parts, dim=1), at, strict=True):
            found[stratum].append(values)
    return [torch.cat(values, dim=1) if len(values) > 1 else values[0] for values in found]


class AdversaryPenalty(Penalty):
    r"""An adversary that predicts the group from the model's logit (Zhang et al., 2018).

    The adversary minimises its cross-entropy, and the model maximises it, times the fairness
    weight. One backward pass trains both, because the gradient is reversed between the adversary
    and the model. All groups count the same, even if their sizes differ. If the criterion compares
    people within both classes, the adversary also sees the label.

    Without a further term the two run in circles. With weights above about 5 the model ends with
    nearly constant scores, and their tiny differences give the group away. So the adversary also
    pays half the mean square of the slope of its guess.

    Parameters
    ----------
    fairness_weights : tensor of shape (L,)
        The paper's lambda, one per network.
    formula : fairmatch.learning.penalties.Adversary
        The groups, and the classes within which they are compared.
    hidden_size : int
        Width of the adversary's two hidden layers.
    generator : torch.Generator, optional
        Draws the initial weights, which are the same for every network's adversary.
    """

    def __init__(
        self,
        fairness_weights: Tensor,
        formula: formulas.Adversary,
        hidden_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fairness_weights)
        self.formula = formula
        self.groups = sorted({group for _, group in formula.strata})
        labels = {label for label, _ in formula.strata}
        self.told = len(labels) > 1
        n_outputs = 1 if len(self.groups) == 2 else len(self.groups)
        sizes = hidden_size, hidden_size
        self.network = AdversaryNetwork(
            len(fairness_weights), 1 + self.told, sizes, n_outputs, generator=generator
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted loss of the adversary; its gradient trains both sides."""
        members = strata(self.formula, first, second)
        logits = reverse_gradient(torch.cat(members, dim=1), self.fairness_weights[:, None])
        sizes = [values.shape[1] for values in members]
        share = [1.0 / (len(sizes) * size) for size in sizes]
        weight = logits.new_tensor(np.repeat(share, sizes))
        given = [logits]
        if self.told:
            labels = np.repeat([bool(label) for label, _ in self.formula.strata], sizes)
            given.append(logits.new_tensor(labels).expand_as(logits))
        guess, slope = self.network.guess(torch.stack(given, dim=2))
        codes = np.repeat([self.groups.index(group) for _, group in self.formula.strata], sizes)
        truth = torch.as_tensor(codes, device=logits.device)
        loss = _entropy(guess, truth) @ weight
        price = slope[..., 0].square().sum(dim=2) @ weight / 2.0
        game = loss + price
        # The value is the adversary's weighted loss, and the gradient is that of the game.
        return self.fairness_weights * loss.detach() + game - game.detach()


def _entropy(guess: Tensor, truth: Tensor) -> Tensor:
    """Return the cross-entropy of every guess, of shape (L, n_rows)."""
    if guess.shape[2] == 1:
        wanted = truth.to(guess.dtype).expand(guess.shape[:2])
        return functional.binary_cross_entropy_with_logits(
            guess.squeeze(2), wanted, reduction="none"
        )
    wanted = truth.expand(guess.shape[:2])
    return functional.cross_entropy(guess.transpose(1, 2), wanted, reduction="none")


@dataclass(frozen=True)
class Comparing:
    """The batches and the penalty of a training with pairs.

    Attributes
    ----------
    batches : Batches
        Source of the rows for the loss, and of the pairs.
    penalty : Penalty
        What the pairs add to the loss.
    """

    batches: Batches
    penalty: Penalty


def comparing(
    formula: object,
    rows: TrainingRows,
    fairness_weights: Tensor,
    *,
    batch_size: int,
    link: Link,
    generator: np.random.Generator,
    adversary: torch.Generator,
) -> Comparing:
    """Return the batches and the torch module that belong to a penalty.

    Parameters
    ----------
    formula : a penalty of `fairmatch.learning.penalties`
        The penalty, which knows whom it compares.
    rows : TrainingRows
        The rows to learn from.
    fairness_weights : tensor of shape (L,)
        Weights of the penalty, one per network.
    batch_size : int
        Rows of each group in a batch; a matcher with a ``batch_size`` uses its own.
    link : callable
        Turns margins into scores.
    generator : numpy.random.Generator
        Draws the batches.
    adversary : torch.Generator
        Draws the initial weights of an adversary.
    """
    weights, mass = fairness_weights, rows.mass
    if isinstance(formula, formulas.MatchedGap):
        coupled = CoupledBatches(formula.coupling, rows.groups, mass, batch_size, generator)
        return Comparing(coupled, MatchedGapPenalty(weights, link=link))
    if isinstance(formula, formulas.FreshlyMatchedGap):
        size = formula.matcher.batch_size or batch_size
        matched = MatchedBatches(
            formula.matcher, formula.points, formula.parts, mass, size, generator
        )
        shares = weights.new_tensor([part.weight for part in formula.parts])
        return Comparing(matched, MatchedGapPenalty(weights, shares, link))
    assert isinstance(formula, formulas.GroupPenalty)
    batches = PairBatches(formula.parts, mass, batch_size, generator)
    if isinstance(formula, formulas.Adversary):
        return Comparing(batches, AdversaryPenalty(weights, formula, generator=adversary))
    assert isinstance(formula, formulas.MeanPenalty)
    return Comparing(batches, MeanPenalty(weights, formula, link))


# An epoch has at least this many steps. Otherwise, on a table of a few hundred rows, the learning
# rate would decay before the networks have learned anything.
MIN_STEPS_PER_EPOCH = 16


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Attributes
    ----------
    epochs : int
        Number of epochs.
    steps_per_epoch : int
        Number of steps in every epoch.
    learning_rate : float
        Adam's learning rate in the first epoch.
    decay : float
        Factor on the learning rate after every epoch.
    """

    epochs: int
    steps_per_epoch: int
    learning_rate: float = 1e-3
    decay: float = 0.95

    @classmethod
    def for_table(
        cls, n_rows: int, batch_size: int, *, epochs: int, learning_rate: float, decay: float
    ) -> "Schedule":
        """Return a schedule with one step per ``batch_size`` rows, and at least 16 per epoch."""
        steps = max(-(-n_rows // batch_size), MIN_STEPS_PER_EPOCH)
        return cls(epochs, steps, learning_rate, decay)


class Objective(nn.Module):
    """The loss and the penalty of L networks on one batch.

    Parameters
    ----------
    network : NetworkStack
        The networks to train.
    inputs : array of shape (n_rows, n_inputs) or (L, n_rows, n_inputs)
        What all networks see, or what each of them sees.
    labels : array of shape (n_rows,)
        0 or 1, or real numbers.
    penalty : Penalty, optional
        The penalty, which is added to the loss.
    device : str
        Device that torch computes on.
    loss : callable
        Maps margins of shape (L, n_rows) and labels of the same shape to losses.
    """

    def __init__(
        self,
        network: NetworkStack,
        inputs: FloatArray,
        labels: FloatArray,
        penalty: Penalty | None = None,
        device: str = "cpu",
        loss: Callable[[Tensor, Tensor], Tensor] = TORCH_LOSSES["logistic"].values,
    ) -> None:
        super().__init__()
        self.network, self.penalty, self.loss = network, penalty, loss
        self.inputs = torch.as_tensor(inputs, dtype=torch.float32, device=device)
        self.labels = torch.as_tensor(labels, dtype=torch.float32, device=device)
        self.to(device)

    def forward(self, batch: Batch) -> Tensor:
        """Return each network's loss and weighted penalty, of shape (2, L)."""
        rows = torch.from_numpy(batch.rows).to(self.inputs.device)
        weight = torch.from_numpy(batch.weight).to(self.inputs.device)
        logits = self.network(self.inputs[..., rows, :])
        loss = self.loss(logits, self.labels[rows].expand_as(logits)) @ weight
        if self.penalty is None:
            return torch.stack([loss, torch.zeros_like(loss)])
        n = batch.n_pairs
        return torch.stack([loss, self.penalty(logits[:, :n], logits[:, n : 2 * n])])


def train(
    objective: nn.Module,
    batches: Batches,
    schedule: Schedule,
    *,
    on_epoch: Callable[[int, FloatArray], None] | None = None,
    keep_on_interrupt: bool = False,
) -> int:
    """Minimise an objective in place with Adam, and return the number of epochs.

    The networks of a stack share no weights. So training on the sum of their objectives trains
    each of them as if it were alone.

    Parameters
    ----------
    objective : module
        Maps a batch to terms, one column per network. Their sum is minimised over all parameters
        of the module.
    batches : Batches
        Source of the batches.
    schedule : Schedule
        How long and how fast to learn.
    on_epoch : callable, optional
        Called after every epoch with its number and each network's mean terms.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps the networks; by default it raises
        ``KeyboardInterrupt``.

    Returns
    -------
    int
        Number of complete epochs.
    """
    parameters = list(objective.parameters())
    optimizer = torch.optim.Adam(parameters, lr=schedule.learning_rate, fused=True)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=schedule.decay)
    done = 0
    try:
        for epoch in range(schedule.epochs):
            terms = []
            for batch in batches.epoch(schedule.steps_per_epoch):
                term = objective(batch)
                optimizer.zero_grad()
                term.sum().backward()
                optimizer.step()
                terms.append(term.detach())
            decay.step()
            done = epoch + 1
            if on_epoch is not None:
                on_epoch(epoch, torch.stack(terms).mean(dim=0).cpu().numpy().astype(np.float64))
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
    return done


# Hidden layers are as wide as the encoded table, and at least this wide. A network as narrow as a
# table with a few columns barely leaves its initial weights before the rate has decayed.
MIN_WIDTH = 32

# How long and how fast to learn, by name.
SCHEDULES: dict[str, dict[str, Any]] = {
    "short": {"epochs": 40, "learning_rate": 0.003, "decay": 0.9},
    "paper": {"epochs": 200, "learning_rate": 0.001, "decay": 0.95},
}

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class DescentSettings(Settings):
    """How networks are trained.

    Parameters
    ----------
    schedule : {"short", "paper"}, default="short"
        How long and how fast to learn. It sets the defaults of ``epochs``, ``learning_rate`` and
        ``decay``: 40, 0.003 and 0.9 with "short", and 200, 0.001 and 0.95 with "paper". In the
        recorded runs the short schedule is as good as the paper's.
    epochs : int, optional
        Number of epochs. An epoch has one step for every ``batch_size`` rows of the table, and at
        least 16 steps. By default the schedule's number.
    batch_size : int, default=1024
        Rows of each group in a batch, at most half the table. Training without a penalty has this
        many rows of the whole table in a batch.
    learning_rate : float, optional
        Adam's learning rate in the first epoch. By default the schedule's.
    decay : float, optional
        Factor on the learning rate after every epoch. By default the schedule's.
    device : str, default="cpu"
        Device that torch computes on.
    n_jobs : int or None, default=1
        Threads of torch in training. Networks for tables are small, and on a busy machine several
        threads wait for each other. None keeps torch's own setting.
    random_state : int, optional
        Seed. The same seed gives the same bits on the same machine, versions and number of
        threads.
    verbose : int, optional
        1 shows a progress bar on a terminal, and 0 shows none. By default there is one if training
        takes longer than two seconds.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the training and keeps what has been learned. By default Ctrl-C raises
        ``KeyboardInterrupt``.
    """

    schedule: str = "short"
    epochs: int | None = None
    batch_size: int = 1024
    learning_rate: float | None = None
    decay: float | None = None
    device: str = "cpu"
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int | None = None
    keep_on_interrupt: bool = False

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        if not isinstance(self.schedule, str) or self.schedule not in SCHEDULES:
            names = " or ".join(map(repr, SCHEDULES))
            raise InputError(f"schedule must be {names}, got {self.schedule!r}.")
        check_count("epochs", self.epochs, optional=True)
        check_count("batch_size", self.batch_size)
        if self.decay is not None:
            check_number("decay", self.decay, "(0, 1]")
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, "(0, inf)")
        check_verbose(0 if self.verbose is None else self.verbose)
        check_count("n_jobs", self.n_jobs, optional=True)
        _check_device(self.device)

    def descend(
        self,
        objective: nn.Module,
        batches: Batches,
        n_rows: int,
        weights: FloatArray,
        seed: np.random.SeedSequence,
    ) -> int:
        """Train all networks of an objective, one per weight; return the number of epochs."""
        named = SCHEDULES[self.schedule]
        given = {name: getattr(self, name) for name in named}
        chosen = named | {name: value for name, value in given.items() if value is not None}
        schedule = Schedule.for_table(n_rows, self.batch_size, **chosen)
        objective.train()
        # A user's own module may draw from torch's global generator, whose state is restored.
        with (
            torch.random.fork_rng(),
            threads(self.n_jobs),
            TrainingProgress(schedule.epochs, weights, verbose=self.verbose) as progress,
        ):
            torch.manual_seed(int(seed.generate_state(1)[0]))
            n_epochs = train(
                objective,
                batches,
                schedule,
                on_epoch=lambda epoch, values: progress.update(epoch, lambda: values),
                keep_on_interrupt=self.keep_on_interrupt,
            )
        if n_epochs < schedule.epochs:
            notify(
                f"Training was interrupted after {n_epochs} of {schedule.epochs} epochs, and the "
                "model is kept as it was then. Fit again to train it to the end.",
                TrainingInterruptedWarning,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={schedule.learning_rate:g} the network's "
                "weights are no longer finite. Choose a smaller learning_rate."
            )
        objective.eval().to("cpu")
        return n_epochs


@dataclass(frozen=True)
class NetworkSettings(DescentSettings):
    """A network, and how it is trained.

    Parameters
    ----------
    network : sequence of int, or torch.nn.Module, optional
        Widths of the hidden layers, or a module of your own that maps every row to one number. By
        default there are two layers as wide as the encoded features, and at least 32 wide.

    Attributes
    ----------
    network_ : NetworkStack
        The trained network.
    n_epochs_ : int
        Number of complete epochs of its training.
    """

    network: Network = None

    def check(self) -> None:
        """Raise an error that names the first setting of a wrong type or size."""
        super().check()
        if not isinstance(self.network, torch.nn.Module):
            check_widths(self.network, "a list of widths, such as (64, 64), or a torch.nn.Module")


@contextmanager
def threads(wanted: int | None) -> Iterator[None]:
    """Set the number of torch's threads, and reset it afterwards; None changes nothing."""
    before = torch.get_num_threads()
    if wanted is None or wanted == before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check_device(device: Any) -> None:
    """Raise unless torch can compute on a device."""
    try:
        torch.empty(0, device=device)
    # The type of torch's error depends on the kind of device and on how torch was built.
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            "device must be one that torch can compute on, such as 'cpu' or 'cuda', got "
            f"{device!r} ({error}). Pass device='cpu'."
        ) from error


def check_widths(network: Any, expected: str = "a list of widths, such as (64, 64)") -> None:
    """Raise unless ``network`` is a list of widths or None."""
    sizes = np.asarray(() if network is None else network, dtype=object)
    if sizes.ndim != 1 or not all(map(is_count, sizes)):
        raise InputError(f"network must be {expected}; got {network!r}.")


def torch_generator(seed: np.random.SeedSequence) -> torch.Generator:
    """Return a new generator of torch for a seed."""
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))


def network_arrays(network: Any) -> Arrays:
    """Return the weights of a built-in network."""
    if not isinstance(network, StackedMLP):
        raise InputError(
            "A model with a network of your own cannot be saved without pickling it. Save the "
            "network's state_dict yourself, or use the built-in one."
        )
    return {name: values.numpy() for name, values in network.state_dict().items()}


def network_from(arrays: Arrays, sizes: Any) -> StackedMLP:
    """Return a network with given sizes and weights; raise an error if they do not fit.

    Parameters
    ----------
    arrays : dict of str to array
        Weights in the form that `network_arrays` returns.
    sizes : list of int
        Number of inputs, widths of the hidden layers, number of outputs.
    """
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ModelFileError("The file is damaged: sizes of a network must be whole numbers.")
    if len(arrays) != 2 * (len(sizes) - 1):
        raise ModelFileError(
            f"The file is damaged: {len(sizes) - 1} layers have {2 * (len(sizes) - 1)} arrays of "
            f"weights, and there are {len(arrays)}."
        )
    for index, (width, following) in enumerate(pairwise(sizes)):
        shapes = {"weights": (1, following, width), "biases": (1, following)}
        for name, shape in shapes.items():
            found = arrays.get(f"{name}.{index}")
            if found is None or found.shape != shape:
                raise ModelFileError(
                    f"The file is damaged: {name}.{index} must have the shape {shape}."
                )
    tensors = {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
    n_inputs, *hidden_sizes, n_outputs = sizes
    network: StackedMLP = StackedMLP.from_tensors(n_inputs, hidden_sizes, tensors, n_outputs).eval()
    return network


@dataclass(frozen=True, eq=False)
class NetworkScorer:
    """A network that scores rows.

    Attributes
    ----------
    network : NetworkStack
        A stack that holds one network.
    n_epochs : int or None
        Number of epochs of its training; None for older files, which lack it.
    loss : Loss
        The loss; its link turns margins into scores.
    """

    network: NetworkStack
    n_epochs: int | None = None
    loss: Loss = LOGISTIC

    FILE: ClassVar[str] = FILE

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the score of every row."""
        margins = _outputs(self.network, inputs)
        scores: FloatArray = TORCH_LOSSES[self.loss.name].link(margins).numpy()
        return scores

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        trained = {} if self.n_epochs is None else {"n_epochs_": self.n_epochs}
        return {"scorer_": self, "network_": self.network, **trained}

    def state(self) -> State:
        """Return the state to save: the weights and the sizes of the network."""
        content = write_arrays(network_arrays(self.network))
        assert isinstance(self.network, StackedMLP)
        facts = {
            "n_inputs": self.network.n_inputs,
            "hidden_sizes": list(self.network.hidden_sizes),
            "n_epochs": self.n_epochs,
        }
        return State(FILE, content, facts)

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> "NetworkScorer":
        """Return the scorer of a saved state; raise an error if it is damaged."""
        hidden = facts["hidden_sizes"]
        if not isinstance(hidden, list):
            raise ModelFileError("The file is damaged: hidden_sizes must be a list.")
        network = network_from(read_arrays(content), [facts["n_inputs"], *hidden, 1])
        if network.n_inputs != reader.n_inputs:
            raise ModelFileError(
                f"The file is damaged: the table has {reader.n_inputs} inputs, and the network "
                f"takes {network.n_inputs}."
            )
        return cls(network, epochs_from(facts), model._target.loss)


def _outputs(network: NetworkStack, inputs: FloatArray) -> torch.Tensor:
    """Return the margins of one network; raise if an input is too large for it."""
    given = torch.as_tensor(inputs, dtype=torch.float32)
    # Scoring takes little work, and several threads would only wait for each other.
    with torch.no_grad(), threads(1):
        margins: torch.Tensor = network(given)[0].to(torch.float64)
    if not margins.isfinite().all():
        row = int((~margins.isfinite()).nonzero()[0])
        largest = float(np.abs(inputs[row]).max())
        raise InputError(
            f"Row {row} of X has a value that is too large to be scored: its encoded size is "
            f"{largest:g}. Correct the value, or leave the row out."
        )
    return margins


class NetworkLearner:
    """A learner that trains a path of networks together.

    All networks start from the same weights and see the same batches.

    Parameters
    ----------
    settings : NetworkSettings
        The sizes of the networks, and the settings of their training.
    """

    def __init__(self, settings: NetworkSettings) -> None:
        self.settings = settings

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[NetworkScorer]:
        """Return one scorer per weight.

        Parameters
        ----------
        rows : TrainingRows
            Rows to learn from. Inputs of shape (L, n_rows, n_inputs) differ between the networks.
        loss : Loss
            The loss, which compares margins with labels.
        compare : callable
            Returns the penalty on given rows. It is called only if a weight is positive.
        weights : sequence of float
            Weights of the penalty.
        """
        settings, factors = self.settings, np.asarray(weights, dtype=np.float64)
        network_seed, batch_seed, penalty_seed = seed_sequence(settings.random_state).spawn(3)
        stack = self._stack(rows, len(factors), torch_generator(network_seed))
        generator = np.random.default_rng(batch_seed)
        torch_loss = TORCH_LOSSES[loss.name]
        penalty: Penalty | None = None
        batches: Batches
        if factors.any():
            made = comparing(
                compare(rows),
                rows,
                torch.as_tensor(factors, dtype=torch.float32),
                batch_size=settings.batch_size,
                link=torch_loss.link,
                generator=generator,
                adversary=torch_generator(penalty_seed),
            )
            batches, penalty = made.batches, made.penalty
        else:
            # Nothing is compared, so training is plain and needs no matching.
            batches = RowBatches(rows.mass, settings.batch_size, generator)
        objective = Objective(
            stack, rows.inputs, rows.labels, penalty, settings.device, torch_loss.values
        )
        n_epochs = settings.descend(objective, batches, len(rows), factors, network_seed)
        return [NetworkScorer(stack.select(k), n_epochs, loss) for k in range(len(factors))]

    def _stack(
        self, rows: TrainingRows, n_networks: int, generator: torch.Generator
    ) -> NetworkStack:
        chosen = self.settings.network
        if isinstance(chosen, torch.nn.Module):
            return ModuleStack.copies(chosen, n_networks)
        width = max(rows.points.n_columns, MIN_WIDTH)
        hidden_sizes = (width, width) if chosen is None else chosen
        return StackedMLP(n_networks, rows.inputs.shape[-1], hidden_sizes, generator)


def _network_learner(settings: NetworkSettings, reader: TableReader) -> NetworkLearner:
    return NetworkLearner(settings)


NETWORKS = Family("numbers", NetworkSettings, _network_learner, NetworkScorer)


@estimator(NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class UnconstrainedClassifier(FairClassifier):
    """A network trained for accuracy alone: the paper's "Unfair" baseline.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = UnconstrainedClassifier(epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict(german.X[:2], sensitive_features=german.sensitive_features[:2]).shape
    (2,)
    """

    _weight_name: ClassVar[str | None] = None
    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class GapRegularizedClassifier(FairClassifier):
    r"""Cross-entropy plus the squared gap of mean scores: the paper's "Reg".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.

    Notes
    -----
    The network minimises :math:`E\, l(Y, f) + \lambda\, \Delta\overline{\mathrm{DP}}(f)^2` (Donini
    et al., 2018; Chuang and Mroueh, 2021, call it GapReg). With more than two groups, or a
    criterion that compares people of the same label, the squared gap is the weighted mean over the
    parts.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = GapRegularizedClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REG_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return SquaredMeanGap(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class ReductionClassifier(FairClassifier):
    r"""Cross-entropy plus squared constraint violations: the paper's "Reduction".

    The paper's Reduction is FairTorch's penalty, which builds on the constraints of Agarwal et al.
    (2018). It is not their algorithm; `ExponentiatedGradientClassifier` is.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty.

    Notes
    -----
    With :math:`\mu_s` the mean score of group s and :math:`\mu` that of all rows, the penalty is
    :math:`\sum_s (\mu_s - \mu)^2`, within each class that is compared. For two groups with shares
    :math:`\pi_0` and :math:`\pi_1` it equals
    :math:`(\pi_0^2 + \pi_1^2)\, \Delta\overline{\mathrm{DP}}^2`. So with two groups this class is
    `GapRegularizedClassifier` with another weight.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = ReductionClassifier(10.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = REDUCTION_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return ConstraintViolation(Comparison.of(self).parts(rows), rows)


@estimator(Comparison, GapChoice, NetworkSettings, GroupSettings, EncoderSettings, GroupSizes)
class AdversarialClassifier(FairClassifier):
    r"""A network against an adversary that guesses the group from its output: the paper's "Adv".

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the adversary's success in the network's objective.

    Notes
    -----
    The method follows Zhang, Lemoine and Mitchell (2018) in the paper's version: the network
    minimises :math:`E\, l(Y, f) - \lambda\, E\, l(S, h(f))`, its loss minus the weighted loss of
    the adversary h. With more than two groups the adversary guesses among all of them.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = AdversarialClassifier(1.0, epochs=5, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    """

    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _curve_weights: ClassVar[tuple[float, ...]] = ADV_WEIGHTS

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> GroupPenalty:
        return Adversary(Comparison.of(self).parts(rows), rows)


@estimator(
    *(Comparison, Sampling, GapChoice, NetworkSettings),
    *(GroupSettings, EncoderSettings, GroupSizes),
)
class FTMClassifier(FairClassifier):
    r"""Fairness Through Matching: treat matched people of different groups alike.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar scores.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on. "marginal" uses their features. "joint" adds their labels, with
        a label weight of 100. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`. An `OptimalTransportMatcher` with a ``batch_size`` matches
        people anew in every step, as in the paper. Otherwise people are matched once, before
        training.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda.

    Notes
    -----
    The network minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section
    4.3 of the paper) for the coupling T. The loss sees everybody, even people whom T leaves
    without a match. With more than two groups, or a criterion that compares people of the same
    label, T has several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(fairness_weight=5.0, epochs=5, random_state=0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    transport: str | Matcher = "marginal"
    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        sampling = Sampling.of(self)
        return Transport(self.transport, Comparison.of(self), fresh=True, sampling=sampling)


@estimator(
    *(GroupComparison, Sampling, RealGapChoice, NetworkSettings),
    *(GroupSettings, EncoderSettings, GroupSizes),
)
class FTMRegressor(FairRegressor):
    r"""Fairness Through Matching for a real target: matched people get similar predictions.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar predictions.

    Parameters
    ----------
    transport : {"marginal", "joint"} or a matcher, default="marginal"
        What people are matched on. "marginal" uses their features. "joint" adds the target; a
        difference by one standard deviation costs 25. A matcher is any object with a ``match``
        method like that of `OptimalTransportMatcher`. An `OptimalTransportMatcher` with a
        ``batch_size`` matches people anew in every step. Otherwise people are matched once, before
        training.
    fairness_weight : float, default=1.0
        Weight of the penalty, the paper's lambda. The network learns the target in standard
        deviations, so a weight means the same in every unit.

    Attributes
    ----------
    network_ : NetworkStack
        The network; it predicts in standard deviations from the mean.

    Notes
    -----
    The network minimises :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for
    the coupling T, where Y and f are in standard deviations of Y. With more than two groups T has
    several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMRegressor
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMRegressor(fairness_weight=5.0, epochs=5, random_state=0)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    transport: str | Matcher = "marginal"
    fairness_weight: float = 1.0

    _family: ClassVar[Family] = NETWORKS
    _state_file: ClassVar[str] = NetworkScorer.FILE
    _matches: ClassVar[bool] = True

    def _transport(self) -> Transport:
        return Transport(
            self.transport,
            Comparison.of(self),
            fresh=True,
            real=True,
            sampling=Sampling.of(self),
        )
