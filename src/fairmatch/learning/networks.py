"""Networks that minimise a loss plus a weighted penalty."""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from itertools import pairwise, repeat
from math import ceil
from typing import Any, ClassVar

import numpy as np
import torch
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.nn import functional

from fairmatch.exceptions import (
    InputError,
    ModelFileError,
    TrainingInterruptedWarning,
    notify,
)
from fairmatch.learning.choice import Prepared
from fairmatch.learning.estimator import (
    ChoosesWeight,
    FairClassifier,
    FairRegressor,
    MatchesPeople,
    documented,
)
from fairmatch.learning.learners import Learner
from fairmatch.learning.penalties import FreshlyMatchedGap, MatchedGap
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.reading import Reader, encoded, labels_of, seed_sequence
from fairmatch.learning.saving import FILE, Arrays, State, read_arrays, write_arrays
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.people.checks import FloatArray, check_count, check_number, check_verbose, is_count
from fairmatch.people.encoding import Points
from fairmatch.people.outcome import LOGISTIC, Loss
from fairmatch.people.people import Comparison, IndexArray, People

# How many matchings are computed ahead of the step that trains on them.
_AHEAD = 8
# Several parts share the pairs of a batch. Each has at least this many, or a whole batch if that
# is smaller.
_LEAST_PAIRS = 256


@dataclass(frozen=True)
class Batch:
    """The rows of one step, and their weights in the loss.

    The first ``n_pairs`` rows are the first members of pairs that are compared, and the next
    ``n_pairs`` are the second members. Rows that are only compared have weight 0. The expected
    value of the weighted loss is the mean loss of the table.
    """

    rows: IndexArray
    weight: NDArray[np.float32]
    n_pairs: int = 0


def _draws(
    mass: FloatArray, n_steps: int, size: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Draw positions in proportion to their mass, and shuffle them into steps."""
    total = n_steps * size
    ends = np.cumsum(mass)
    at = (np.arange(total) + generator.random()) * (ends[-1] / total)
    drawn = np.minimum(np.searchsorted(ends, at, side="right"), len(mass) - 1)
    return generator.permutation(drawn).reshape(n_steps, size)


Pairs = list[tuple[IndexArray, IndexArray]]  # of every part
# What the pairs of a part are drawn from: masses, and the rows that they are the masses of. These
# are the rows of two groups, which are drawn independently, or both sides of a coupling's pairs.
Drawn = tuple[FloatArray, Sequence[IndexArray]]


class Batches:
    """Batches of rows of the whole table, and of pairs of rows that are compared.

    Every part has as many pairs in a batch, and a small group is repeated. ``shared`` are the
    weights of rows in the loss if the rows of pairs serve the loss too. Otherwise the loss has rows
    of its own, and so it sees everybody. ``rematch`` replaces the pairs of the steps by others.
    """

    def __init__(
        self,
        mass: FloatArray,
        batch_size: int,
        generator: np.random.Generator,
        parts: Sequence[Sequence[Drawn]] = (),
        part_size: int = 0,
        shared: NDArray[np.float32] | None = None,
        rematch: Callable[[Iterator[Pairs]], Iterator[Pairs]] = iter,
    ) -> None:
        self.mass, self.generator, self.parts, self.rematch = mass, generator, parts, rematch
        self.part_size, self.shared = part_size, shared
        self.others, self.n_others = generator, min(batch_size, len(mass))
        if parts and shared is None:
            # A separate generator draws the rows of the loss, which are independent of the pairs.
            self.others = np.random.default_rng(generator.integers(2**63))

    def epoch(self, n_steps: int) -> Iterator[Batch]:
        """Return the batches of one epoch."""
        drawn = []
        for part in self.parts:
            at = [_draws(own, n_steps, self.part_size, self.generator) for own, _ in part]
            first, second = (rows[k] for k, (_, own) in zip(at, part, strict=True) for rows in own)
            drawn.append((first, second))
        pairs = ([(first[k], second[k]) for first, second in drawn] for k in range(n_steps))
        others: Iterable[IndexArray] = repeat(np.empty(0, dtype=np.intp), n_steps)
        if self.shared is None:
            others = _draws(self.mass, n_steps, self.n_others, self.others)
        for compared, other in zip(self.rematch(pairs), others, strict=True):
            rows = np.concatenate([*(own[side] for side in (0, 1) for own in compared), other])
            n_pairs = (len(rows) - len(other)) // 2
            if self.shared is not None:
                yield Batch(rows, self.shared[rows], n_pairs)
            else:
                weight = np.full(len(rows), 1.0 / len(other), dtype=np.float32)
                weight[: 2 * n_pairs] = 0.0
                yield Batch(rows, weight, n_pairs)


def _n_pairs(mass: FloatArray, batch_size: int) -> int:
    """Return the number of pairs in a batch, at most half the rows with mass."""
    return max(1, min(batch_size, int((mass > 0.0).sum()) // 2))


def _loss_weights(
    mass: FloatArray, sides: Sequence[IndexArray], marginals: Sequence[FloatArray], n_pairs: int
) -> NDArray[np.float32] | None:
    """Return the weights with which both sides of pairs give an unbiased estimate of the mean loss.

    The marginals, by which the sides are drawn, may differ from the rows' own shares, as after
    matching in mini-batches. There are no such weights if a row is never drawn.
    """
    weight, total = np.zeros(len(mass), dtype=np.float32), sum(mass[rows].sum() for rows in sides)
    for rows, marginal in zip(sides, marginals, strict=True):
        if not (marginal[rows] > 0.0).all():
            return None
        own = mass[rows].sum()
        weight[rows] = np.float32(own / total / n_pairs)
        weight[rows] *= (mass[rows] / own / marginal[rows]).astype(np.float32)
    return weight


def pair_batches(
    parts: Sequence[Comparison],
    mass: FloatArray,
    batch_size: int,
    generator: np.random.Generator,
    rematch: Callable[[Iterator[Pairs]], Iterator[Pairs]] = iter,
) -> Batches:
    """Return batches with as many rows of one group as of the other, drawn independently.

    If there is one part and every row is in it, the same rows are used for the loss and the
    comparison.
    """
    n_pairs, shared = _n_pairs(mass, batch_size), None
    part_size = max(-(-n_pairs // len(parts)), min(n_pairs, _LEAST_PAIRS))
    sides = parts[0].in_order
    if len(parts) == 1 and sum(map(len, sides)) == (mass > 0.0).sum():
        shared = _loss_weights(mass, sides, [mass / mass[rows].sum() for rows in sides], n_pairs)
    drawn = [[(mass[rows], [rows]) for rows in part.in_order] for part in parts]
    return Batches(mass, batch_size, generator, drawn, part_size, shared, rematch)


def coupled_batches(
    coupling: Coupling, people: People, batch_size: int, generator: np.random.Generator
) -> Batches:
    """Return batches of pairs of a ready coupling, drawn by their mass.

    If the coupling has two groups and every row is in a pair, its pairs also serve the loss.
    """
    groups, sides, shared = people.groups, people.rows_with_mass(), None
    n_pairs, one = _n_pairs(people.mass, batch_size), len(coupling.parts) == 1
    if one:  # the smaller group code comes first
        first, second = (groups.code_of(label) for label in coupling.groups)
        coupling = coupling if first < second else coupling.inverse
    if one and len(sides) == 2 and groups.memberships is None and not groups.apart:
        shared = _loss_weights(people.mass, sides, coupling.marginals(), n_pairs)
    drawn = [[(coupling.mass, [coupling.source_index, coupling.target_index])]]
    part_size = min(n_pairs, len(coupling))
    return Batches(people.mass, batch_size, generator, drawn, part_size, shared)


def matched_ahead(
    steps: Iterator[Pairs], matcher: OptimalTransportMatcher, points: Points
) -> Iterator[Pairs]:
    """Yield the pairs of every step, matched anew as in the paper.

    Another process matches them ahead of the training.
    """

    def submit(first: IndexArray, second: IndexArray) -> Any:
        given = matcher.pair, points[first], points[second]
        try:
            return _other_core().submit(*given)
        except BrokenExecutor:  # something outside ended the process
            _other_core.cache_clear()
            return _other_core().submit(*given)

    def matched(first: IndexArray, second: IndexArray, order: Any) -> tuple[IndexArray, IndexArray]:
        try:
            return first, second[order.result()]
        except BrokenExecutor:
            return first, second[submit(first, second).result()]

    waiting: deque[Any] = deque()
    try:
        for pairs in steps:
            waiting.append([(*pair, submit(*pair)) for pair in pairs])
            if len(waiting) > _AHEAD:
                yield [matched(*awaited) for awaited in waiting.popleft()]
        while waiting:
            yield [matched(*awaited) for awaited in waiting.popleft()]
    finally:
        for awaited in waiting:
            for *_, future in awaited:
                future.cancel()


@cache
def _other_core() -> ProcessPoolExecutor:
    """Start the process that matches ahead; it ends by itself after a minute without work.

    This is a process, because the solver of POT (Python Optimal Transport) blocks all other
    threads. It is separate from joblib's reusable pool, because joblib may be using that pool to
    run this very training. It leaves Ctrl-C, which a terminal sends to all processes, to the
    process that trains.
    """
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=60,
        env={"OPENBLAS_NUM_THREADS": "1"},
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )


class StackedMLP(nn.Module):
    """L multilayer perceptrons with stacked weights, trained by one optimiser.

    All networks start from the same weights, so later differences come from the objective alone.
    ``forward`` maps (n_rows, n_inputs), or (L, n_rows, n_inputs) if the networks see different
    inputs, to margins of shape (L, n_rows), or (L, n_rows, n_outputs) with several outputs.
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
    def sizes(self) -> list[int]:
        """Number of inputs, widths of the hidden layers, and number of outputs."""
        return [self.weights[0].shape[-1], *self.hidden_sizes, self.weights[-1].shape[-2]]

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the margins of every network."""
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
        return StackedMLP.from_tensors(self.sizes, tensors)

    @classmethod
    def from_tensors(cls, sizes: Sequence[int], tensors: Mapping[str, Tensor]) -> "StackedMLP":
        """Return one network with ready weights; raise if their shapes do not fit."""
        n_inputs, *hidden_sizes, n_outputs = sizes
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


class ModuleStack(nn.Module):
    """Copies of a user's own module, which maps every row to one or ``n_outputs`` numbers."""

    def __init__(self, modules: Sequence[nn.Module], n_outputs: int = 1) -> None:
        super().__init__()
        self.members, self.n_outputs = nn.ModuleList(modules), n_outputs

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the margins of every network."""
        own = inputs.unbind() if inputs.ndim == 3 else [inputs] * len(self.members)
        found = [member(rows) for member, rows in zip(self.members, own, strict=True)]
        n_rows = inputs.shape[-2]
        if found[0].numel() != n_rows * self.n_outputs:
            raise InputError(
                f"The network of your own must map a row to {self.n_outputs} numbers, one for "
                f"every class of several; it maps {n_rows} rows to {tuple(found[0].shape)}.",
                parameter="estimator",
            )
        return torch.stack([own.reshape(n_rows, self.n_outputs) for own in found]).squeeze(-1)

    def select(self, index: int) -> "ModuleStack":
        """Return one of the networks as a stack of its own."""
        return ModuleStack([self.members[index]], self.n_outputs)


Stack = StackedMLP | ModuleStack
Link = Callable[[Tensor], Tensor]


def _entropy(margins: Tensor, labels: Tensor) -> Tensor:
    wanted = labels.long().expand(margins.shape[:2])
    return functional.cross_entropy(margins.transpose(1, 2), wanted, reduction="none")


def _logistic(margins: Tensor, labels: Tensor) -> Tensor:
    wanted = labels.expand_as(margins)
    return functional.binary_cross_entropy_with_logits(margins, wanted, reduction="none")


# By the name of a loss: its values for margins of shape (L, n_rows, ...) and labels, and the link.
TORCH_LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Link]] = {
    "logistic": (_logistic, torch.sigmoid),
    "squared": (lambda margins, labels: (margins - labels) ** 2 / 2.0, lambda margins: margins),
    "softmax": (_entropy, partial(torch.softmax, dim=-1)),
}


class Penalty(nn.Module):
    r"""A penalty with one fairness weight per network.

    By default it is the mean score gap between matched people, :math:`\Delta\mathrm{MDP}`
    (equation 2), of parts with these weights.
    """

    fairness_weights: Tensor
    part_weights: Tensor

    def __init__(
        self,
        fairness_weights: Tensor,
        part_weights: Tensor | None = None,
        link: Link = torch.sigmoid,
    ) -> None:
        super().__init__()
        self.link = link
        self.register_buffer("fairness_weights", fairness_weights)
        one = fairness_weights.new_ones(1)
        self.register_buffer("part_weights", one if part_weights is None else part_weights)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the weighted penalty of the pairs' margins, two tensors (L, n_pairs, ...)."""
        return self.fairness_weights * self.value(self.link(first), self.link(second))

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the penalty of the pairs' scores, without the fairness weights."""
        sizes: Tensor = MatchedGap.sizes(first - second, vectors=first.ndim == 3)
        return sizes.reshape(len(sizes), len(self.part_weights), -1).mean(dim=2) @ self.part_weights


Comparing = tuple[Batches, Penalty]


class Objective(nn.Module):
    """The loss and the penalty of L networks on one batch.

    Inputs of shape (n_rows, n_inputs) are seen by all networks. Those of shape (L, n_rows,
    n_inputs) differ between the networks.
    """

    def __init__(
        self,
        network: Stack,
        inputs: FloatArray,
        labels: FloatArray,
        penalty: Penalty | None = None,
        device: str = "cpu",
        loss: Callable[[Tensor, Tensor], Tensor] = _logistic,
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
        margins = self.network(self.inputs[..., rows, :])
        loss = self.loss(margins, self.labels[rows]) @ weight
        if self.penalty is None:
            return torch.stack([loss, torch.zeros_like(loss)])
        n = batch.n_pairs
        return torch.stack([loss, self.penalty(margins[:, :n], margins[:, n : 2 * n])])


# An epoch has at least this many steps. Otherwise, on a table of a few hundred rows, the learning
# rate would decay before the networks have learned anything.
MIN_STEPS_PER_EPOCH = 16
# Hidden layers are as wide as the encoded table, and at least this wide. A network as narrow as a
# table with a few columns barely leaves its initial weights before the rate has decayed.
MIN_WIDTH = 32

# How long and how fast to learn, by name.
SCHEDULES: dict[str, dict[str, Any]] = {
    "short": {"epochs": 40, "learning_rate": 0.003, "decay": 0.9},
    "paper": {"epochs": 200, "learning_rate": 0.001, "decay": 0.95},
}
# Networks that continue a plain one have the whole schedule in this share of the epochs.
CONTINUED = 0.25

Widths = Sequence[int] | torch.nn.Module | None


@dataclass(eq=False, repr=False)
class NeuralNetwork(BaseEstimator):  # type: ignore[misc]
    """A network and how it is trained, for `FTMClassifier` and `FTMRegressor`.

    It holds settings and is not fitted itself. For networks it is what a LightGBM estimator is for
    boosted trees.

    Parameters
    ----------
    hidden_sizes : sequence of int, or torch.nn.Module, optional
        Widths of the hidden layers, or a module of your own that maps every row to one number. By
        default there are two layers as wide as the encoded features, and at least 32 wide.
    schedule : {"short", "paper"}, default="short"
        How long and how fast to learn. It sets the defaults of ``epochs``, ``learning_rate`` and
        ``decay``: 40, 0.003 and 0.9 with "short", and 200, 0.001 and 0.95 with "paper". In the
        recorded runs the short schedule is as good as the paper's.
    epochs : int, optional
        Number of epochs. An epoch has one step for every ``batch_size`` rows of the table, and at
        least 16 steps. By default the schedule's number.
    batch_size : int, default=1024
        Rows of each group in a batch, at most half the table. Without a penalty, a batch has this
        many rows of the whole table.
    learning_rate : float, optional
        Adam's learning rate in the first epoch. By default the schedule's.
    decay : float, optional
        Factor on the learning rate after every epoch. By default the schedule's.
    device : str, default="cpu"
        Device that torch computes on.
    n_jobs : int or None, default=1
        Threads of torch in training. Networks for tables are small, and on a busy machine several
        threads wait for each other. None keeps torch's own setting.
    verbose : int, optional
        1 shows a progress bar on a terminal, and 0 shows none. By default there is one if training
        takes longer than two seconds.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C stops the training and keeps what has been learned. By default it raises
        ``KeyboardInterrupt``.

    Examples
    --------
    >>> from fairmatch import FTMClassifier, NeuralNetwork
    >>> FTMClassifier(NeuralNetwork((64, 64), epochs=10), fairness_weight=5.0)
    FTMClassifier(estimator=NeuralNetwork(epochs=10, hidden_sizes=(64, 64)),
                  fairness_weight=5.0)
    """

    hidden_sizes: Widths = None
    _: KW_ONLY
    schedule: str = "short"
    epochs: int | None = None
    batch_size: int = 1024
    learning_rate: float | None = None
    decay: float | None = None
    device: str = "cpu"
    n_jobs: int | None = 1
    verbose: int | None = None
    keep_on_interrupt: bool = False

    def check(self, *, modules: bool = True) -> None:
        """Raise an error that names the first setting of a wrong type or size.

        ``modules`` is whether a module of the user's own may be the network.
        """
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
        if modules and isinstance(self.hidden_sizes, torch.nn.Module):
            return
        sizes = np.asarray(() if self.hidden_sizes is None else self.hidden_sizes, dtype=object)
        if sizes.ndim != 1 or not all(map(is_count, sizes)):
            or_module = ", or a torch.nn.Module" * modules
            raise InputError(
                f"hidden_sizes must be a list of widths, such as (64, 64){or_module}; got "
                f"{self.hidden_sizes!r}."
            )

    def stack(
        self,
        n_networks: int,
        n_inputs: int,
        width: int,
        generator: torch.Generator,
        n_outputs: int = 1,
    ) -> Stack:
        """Return untrained networks; by default their two hidden layers have this width."""
        if isinstance(self.hidden_sizes, torch.nn.Module):
            members = [deepcopy(self.hidden_sizes) for _ in range(n_networks)]
            return ModuleStack(members, n_outputs)
        hidden = (max(width, MIN_WIDTH),) * 2 if self.hidden_sizes is None else self.hidden_sizes
        return StackedMLP(n_networks, n_inputs, hidden, generator, n_outputs)

    def descend(
        self,
        objective: nn.Module,
        batches: Batches,
        n_rows: int,
        weights: FloatArray,
        seed: np.random.SeedSequence,
        share: float = 1.0,
    ) -> int:
        """Train all networks of an objective with Adam, and return the number of epochs.

        There is one network per weight. The networks of a stack share no weights, so training on
        the sum of their objectives trains each of them as if it were alone. With a smaller
        ``share`` the schedule runs through in that share of the epochs.
        """
        named = SCHEDULES[self.schedule]
        given = {name: getattr(self, name) for name in named}
        chosen = named | {name: value for name, value in given.items() if value is not None}
        n_epochs, rate = ceil(share * chosen["epochs"]), chosen["learning_rate"]
        n_steps = max(-(-n_rows // self.batch_size), MIN_STEPS_PER_EPOCH)
        optimizer = torch.optim.Adam(list(objective.parameters()), lr=rate, fused=True)
        gamma = chosen["decay"] ** (chosen["epochs"] / n_epochs)
        decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=gamma)
        done = 0
        objective.train()
        # A user's own module may draw from torch's global generator, whose state is restored.
        with (
            torch.random.fork_rng(),
            threads(self.n_jobs),
            TrainingProgress(n_epochs, weights, verbose=self.verbose) as progress,
        ):
            torch.manual_seed(int(seed.generate_state(1)[0]))
            try:
                for epoch in range(n_epochs):
                    terms = []
                    for batch in batches.epoch(n_steps):
                        term = objective(batch)
                        optimizer.zero_grad()
                        term.sum().backward()
                        optimizer.step()
                        terms.append(term.detach())
                    decay.step()
                    done = epoch + 1
                    means = torch.stack(terms).mean(dim=0)
                    progress.update(epoch, means.cpu().double().numpy)
            except KeyboardInterrupt:
                if not self.keep_on_interrupt:
                    raise
        if done < n_epochs:
            notify(
                f"Training was interrupted after {done} of {n_epochs} epochs, and the "
                "model is kept as it was then. Fit again to train it to the end.",
                TrainingInterruptedWarning,
            )
        if not all(values.isfinite().all() for values in objective.parameters()):
            raise InputError(
                f"Training diverged: with learning_rate={rate:g} the network's "
                "weights are no longer finite. Choose a smaller learning_rate."
            )
        objective.eval().to("cpu")
        return done


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


def torch_generator(seed: np.random.SeedSequence) -> torch.Generator:
    """Return a new generator of torch for a seed."""
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))


def network_from(arrays: Arrays, sizes: Any) -> StackedMLP:
    """Return a network with given sizes and weights; raise an error if they do not fit."""
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ModelFileError("The file is damaged: sizes of a network must be whole numbers.")
    shapes: dict[str, tuple[int, ...]] = {}
    for index, (width, following) in enumerate(pairwise(sizes)):
        shapes |= {f"weights.{index}": (1, following, width), f"biases.{index}": (1, following)}
    if shapes != {name: values.shape for name, values in arrays.items()} or not shapes:
        raise ModelFileError(
            f"The file is damaged: the weights of a network with the sizes {sizes} must have the "
            f"shapes {shapes}."
        )
    tensors = {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
    network: StackedMLP = StackedMLP.from_tensors(sizes, tensors).eval()
    return network


@dataclass(frozen=True, eq=False)
class NetworkScorer:
    """A network that scores rows."""

    network: Stack
    n_epochs: int
    loss: Loss = LOGISTIC

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the score of every row; raise if an input is too large for the network."""
        given = torch.as_tensor(inputs, dtype=torch.float32)
        # Scoring takes little work, and several threads would only wait for each other.
        with torch.no_grad(), threads(1):
            margins = self.network(given)[0].to(torch.float64)
        if not margins.isfinite().all():
            row = int((~margins.isfinite()).nonzero()[0, 0])
            largest = float(np.abs(inputs[row]).max())
            raise InputError(
                f"Row {row} of X has a value that is too large to be scored: its encoded size is "
                f"{largest:g}. Correct the value, or leave the row out."
            )
        scores: FloatArray = TORCH_LOSSES[self.loss.name][1](margins).numpy()
        return scores

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {"scorer_": self, "network_": self.network, "n_epochs_": self.n_epochs}

    def state(self) -> State:
        """Return the state to save: the weights and the sizes of the network."""
        if not isinstance(self.network, StackedMLP):
            raise InputError(
                "A model with a network of your own cannot be saved without pickling it. Save the "
                "network's state_dict yourself, or use the built-in one."
            )
        arrays: Arrays = {k: v.numpy() for k, v in self.network.state_dict().items()}
        facts = {"network_sizes": self.network.sizes, "n_epochs": self.n_epochs}
        return State(FILE, write_arrays(arrays), facts)


def train_networks(
    network: NeuralNetwork,
    people: People,
    inputs: FloatArray,
    weights: Sequence[float],
    *,
    loss: Loss,
    penalty: Callable[[], Any],
    random_state: Any,
    start: NetworkScorer | None = None,
) -> list[NetworkScorer]:
    """Train a path of networks together, and return one scorer per weight.

    All networks start from the same weights and see the same batches. Inputs of shape (L, n_rows,
    n_inputs) differ between the networks. The penalty is asked for only if a weight is positive.
    It is a matched gap, or has a method ``comparing`` that returns the batches and the torch module
    that belong to it; ``seed`` is for what the penalty itself draws. A single network may continue
    a trained one, ``start``, in a share of the epochs.
    """
    factors, mass = np.asarray(weights, dtype=np.float64), people.mass
    network_seed, batch_seed, penalty_seed = seed_sequence(random_state).spawn(3)
    generator, size = np.random.default_rng(batch_seed), network.batch_size
    values, link = TORCH_LOSSES[loss.name]
    if start is None:
        sizes = len(factors), inputs.shape[-1], encoded(people).points.n_columns
        n_outputs = loss.n_margins
        stack = network.stack(*sizes, torch_generator(network_seed), n_outputs)
    else:
        stack = deepcopy(start.network)
    module: Penalty | None = None
    own = torch.as_tensor(factors, dtype=torch.float32)
    formula = penalty() if factors.any() else None
    if formula is None:  # nothing is compared, so training is plain and needs no matching
        batches = Batches(mass, size, generator)
    elif isinstance(formula, MatchedGap):
        batches = coupled_batches(formula.coupling, people, size, generator)
        module = Penalty(own, link=link)
    elif isinstance(formula, FreshlyMatchedGap):
        rematch = partial(matched_ahead, matcher=formula.matcher, points=formula.points)
        size = formula.matcher.batch_size or size
        batches = pair_batches(formula.parts, mass, size, generator, rematch)
        shares = own.new_tensor([part.weight for part in formula.parts])
        module = Penalty(own, shares, link)
    else:
        batches, module = formula.comparing(
            people, own, batch_size=size, link=link, generator=generator, seed=penalty_seed
        )
    objective = Objective(stack, inputs, labels_of(people).values, module, network.device, values)
    before, share = (0, 1.0) if start is None else (start.n_epochs, CONTINUED)
    n_epochs = network.descend(objective, batches, len(people), factors, network_seed, share)
    return [NetworkScorer(stack.select(k), before + n_epochs, loss) for k in range(len(factors))]


@dataclass(eq=False, repr=False)
class NetworkEstimator(ChoosesWeight):
    """Estimators that train networks.

    A subclass is also a `FairClassifier` or a `FairRegressor`. Its `_penalty` returns a matched
    gap, or an object with a method ``comparing``: see `train_networks`.

    Parameters
    ----------
    estimator : NeuralNetwork, optional
        The network and how it is trained: its layers, epochs, learning rate, device. By default
        ``NeuralNetwork()``. In a grid search its parameters are called ``estimator__epochs`` and
        so on.
    encoder : "table", None or a transformer, default="table"
        What turns X into numbers. "table" is `fairmatch.people.encoding.TableEncoder`, None leaves
        X as it is, and any other transformer works too. Missing values raise an error unless the
        encoder accepts them, as ``TableEncoder(missing="encode")`` does.
    random_state : int, optional
        Seed. The same seed gives the same bits on the same machine, versions and number of
        threads.

    Attributes
    ----------
    n_epochs_ : int
        Number of complete epochs of its training.
    """

    _state_file: ClassVar[str] = FILE
    _maps: ClassVar[tuple[str, ...]] = ("predicted", "marginal", "joint")
    _matches_anew: ClassVar[bool] = True

    estimator: NeuralNetwork | None = None
    _: KW_ONLY
    encoder: Any = "table"

    def _network(self) -> NeuralNetwork:
        """Return the network and how it is trained."""
        chosen = NeuralNetwork() if self.estimator is None else self.estimator
        if not isinstance(chosen, NeuralNetwork):
            raise InputError(
                "estimator must be a fairmatch.NeuralNetwork, such as NeuralNetwork(epochs=10), or "
                f"None; got {chosen!r}.",
                parameter="estimator",
            )
        return chosen

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        self._network().check()

    def _prepare(self, people: People, coupling: Coupling | None) -> Prepared:
        """Return a trainer of networks, with a matching that is made once it is needed."""
        penalty = cache(lambda: self._penalty(people, coupling))

        def train(
            weights: Sequence[float], start: NetworkScorer | None = None
        ) -> list[NetworkScorer]:
            return train_networks(
                self._network(),
                people,
                encoded(people).inputs,
                weights,
                loss=self._outcome.loss,
                penalty=penalty,
                random_state=self.random_state,
                start=start,
            )

        if not self._choosing:
            return Prepared(train)
        # The models that ``max_gap`` chooses from continue one plain network.
        plain = cache(lambda: train([0.0])[0])

        def follow(weights: Sequence[float]) -> list[NetworkScorer]:
            return [train([own], plain())[0] if own else plain() for own in weights]

        return Prepared(follow)

    def _unseen_scores(self, people: People) -> FloatArray:
        """Return the score of every row by plain trees that were grown on the other half."""
        outcome, inputs, labels = self._outcome, encoded(people).inputs, labels_of(people)
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        trees: Any = HistGradientBoostingRegressor
        if outcome.decides:
            trees = HistGradientBoostingClassifier
        classes = np.arange(max(len(outcome.classes), 2), dtype=np.float64)
        learner = Learner(trees(random_state=seed), outcome, classes)
        halves = StratifiedKFold(2, shuffle=True, random_state=seed)
        strata = people.groups.n_groups * labels.positive + people.groups.codes
        if outcome.several:  # every class is in both halves
            strata = labels.values
        return learner.unseen(inputs, people, list(halves.split(inputs, strata)))

    def _restore(self, content: bytes, facts: dict[str, Any], reader: Reader) -> NetworkScorer:
        network = network_from(read_arrays(content), facts["network_sizes"])
        ends = [network.sizes[0], network.sizes[-1]]
        if ends != [reader.n_inputs, len(reader.outcome.classes) or 1]:
            raise ModelFileError(
                f"The file is damaged: the table has {reader.n_inputs} inputs, and the network "
                f"maps {ends[0]} to {ends[1]}."
            )
        if type(facts["n_epochs"]) is not int or facts["n_epochs"] < 0:
            raise ModelFileError(f"The file is damaged: n_epochs is {facts['n_epochs']!r}.")
        return NetworkScorer(network, facts["n_epochs"], reader.outcome.loss)

    @classmethod
    def _restored_estimator(cls, parameters: dict[str, Any]) -> NeuralNetwork:
        strange = set(parameters) - set(NeuralNetwork._get_param_names())
        if strange:
            raise ModelFileError(f"The file is damaged: networks have no parameter {strange}.")
        sizes = parameters.get("hidden_sizes")
        return NeuralNetwork(**{**parameters, "hidden_sizes": sizes and tuple(sizes)})


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class FTMClassifier(NetworkEstimator, MatchesPeople, FairClassifier):
    r"""Fairness Through Matching: treat matched people of different groups alike.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar scores. There may be more than two classes, and
    groups may be `fairmatch.group_probabilities`, with ``sensitive_at_prediction=False``.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="marginal"
        What people are matched on. "marginal" uses their features. "predicted" adds a score of
        every row, by plain trees that were grown on other rows, and "joint" adds their labels, both
        with a weight of 100. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`. An `OptimalTransportMatcher` with a ``batch_size`` matches
        people anew in every step, as in the paper. Otherwise people are matched once, before
        training.
    fairness_weight : float or a list of float, default=1.0
        Weight of the penalty, the paper's lambda. With ``max_gap``, a list of weights to
        choose from; a single number then leaves the weights to the method.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight by bisection. It measures
        models on the held-out share ``validation_size`` of the rows. These models continue one
        plain network, in a quarter of its epochs. Of the models within the bound whose score is
        within one standard error of the best, fit keeps the one closest to the plain model, and
        trains it on all rows in the same way. If no model is within the bound, the fairest is kept,
        with a warning. A model that accepts nearly everybody or nearly nobody is kept only if no
        other qualifies.

    Attributes
    ----------
    network_ : StackedMLP or ModuleStack
        The trained network, which maps a row to the log-odds of the positive class, or to one
        margin for each of several classes.

    Notes
    -----
    The network minimises :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section
    4.3 of the paper) for the coupling T. The loss sees everybody, even people whom T leaves
    without a match. With more than two groups, or a criterion that compares people of the same
    label, T has several parts, and the penalty is their weighted mean. With several classes l is
    the cross-entropy, and the gap of two people is half the L1 distance of their probabilities.

    Examples
    --------
    >>> from fairmatch import FTMClassifier, NeuralNetwork
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(NeuralNetwork(epochs=5), fairness_weight=5.0, random_state=0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    _several: ClassVar[bool] = True

    criterion: str = "demographic_parity"
    scoring: Any = "accuracy"
    calibrate: bool = False


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class FTMRegressor(NetworkEstimator, MatchesPeople, FairRegressor):
    r"""Fairness Through Matching for a real target: matched people get similar predictions.

    First, people of different groups are matched by optimal transport. Then a network learns to
    predict well and to give matched people similar predictions.

    Parameters
    ----------
    transport : {"predicted", "marginal", "joint"} or a matcher, default="marginal"
        As in `FTMClassifier`, with a prediction for every row and the target instead of scores and
        labels; a difference by one standard deviation costs 25.
    fairness_weight : float or a list of float, default=1.0
        Weight of the penalty, the paper's lambda. The network learns the target in standard
        deviations, so a weight means the same in every unit. With ``max_gap``, a list of weights to
        choose from; a single number then leaves the weights to the method.

    Attributes
    ----------
    network_ : StackedMLP or ModuleStack
        The trained network; it predicts in standard deviations from the mean.

    Notes
    -----
    The network minimises :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for
    the coupling T, where Y and f are in standard deviations of Y. With more than two groups T has
    several parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from fairmatch import FTMRegressor, NeuralNetwork
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMRegressor(NeuralNetwork(epochs=5), fairness_weight=5.0, random_state=0)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    scoring: Any = "neg_root_mean_squared_error"
