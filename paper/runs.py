"""Runs: training, measuring and recording."""

import platform
import signal
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from traceback import format_exception
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from fairmatch.datasets import Dataset
from fairmatch.exceptions import InputError
from fairmatch.matching.coupling import Coupling
from fairmatch.measures import (
    consistency,
    gap_table,
    random_subset_gaps,
    rank_agreement,
    undesirable_flips,
)
from fairmatch.people.checks import BoolArray, FloatArray
from paper.methods import Method, Scorer, fit_curve
from paper.minibatches import minibatch_transport_cost
from paper.records import Record, RecordStore
from paper.specs import Problem, RunSpec

N_SUBSETS = 1000
N_BATCHES, BATCH_SIZE = 100, 1024

_DIGITS = 5
_GAPS = (
    *("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"),
    *("true_positive_gap", "false_positive_gap", "equalized_odds_gap"),
)


def measure_test(
    scorer: Scorer, problem: Problem, reference: FloatArray | None = None
) -> dict[str, Any]:
    """Return the measurements of a model on the test rows.

    Parameters
    ----------
    scorer : callable
        Takes the groups of the test rows and returns their scores.
    problem : Problem
        The split.
    reference : array of shape (n_test,), optional
        Scores of the unconstrained model, for rank agreement and flips.

    Returns
    -------
    dict
        Name to a number or a list of numbers, ready for JSON. A number that is not defined is None.
    """
    split, groups = problem.split, problem.split.group_test
    scores = np.clip(scorer(groups), 0.0, 1.0)
    flipped = np.clip(scorer(1 - groups), 0.0, 1.0)
    gaps = gap_table(split.y_test, scores, sensitive_features=groups)
    found: dict[str, Any] = {
        "accuracy": np.mean((scores >= 0.5) == split.y_test),
        "acceptance_rate": np.mean(scores >= 0.5),
        **{name: gaps[name] for name in _GAPS},
        "consistency": consistency(scores, flipped),
        "transport_cost": _transport_cost(scores, problem),
        **_half_space_facts(scores, problem),
    }
    for name, rows in problem.named_subsets().items():
        inside = gap_table(None, scores[rows], sensitive_features=groups[rows])
        found |= {f"{name}: {gap}": inside[gap] for gap in _GAPS[:3]}
    if reference is not None:
        found |= _against_reference(scores, reference, groups, problem.favoured_code)
    return {name: _plain(value) for name, value in found.items()}


def measure_training(
    scores: FloatArray, problem: Problem, coupling: Coupling | None
) -> dict[str, Any]:
    """Return the measurements of a model on its training rows.

    Parameters
    ----------
    scores : array of shape (n_train,)
        Scores of the training rows.
    problem : Problem
        The split.
    coupling : Coupling or None
        A matching of the training rows, for the matched gap.
    """
    groups, labels = problem.split.group_train, problem.split.y_train
    scores = np.clip(scores, 0.0, 1.0)
    gaps = gap_table(None, scores, sensitive_features=groups, coupling=coupling)
    wanted = ("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap")
    found = {"accuracy": np.mean((scores >= 0.5) == labels), **{n: gaps[n] for n in wanted}}
    if coupling is not None:
        found["matched_parity_gap"] = gaps["matched_parity_gap"]
    return {f"training: {name}": _plain(value) for name, value in found.items()}


def _transport_cost(scores: FloatArray, problem: Problem) -> float:
    """Return the cost of the fair matching over mini-batches, as the paper estimates it.

    The mini-batches are smaller where a group is.
    """
    groups = problem.split.group_test
    size = min(BATCH_SIZE, int(np.bincount(groups).min()))
    estimate = minibatch_transport_cost(
        scores, groups, problem.split.X_test, batch_size=size, n_batches=N_BATCHES, random_state=0
    )
    return estimate.mean


def _half_space_facts(scores: FloatArray, problem: Problem) -> dict[str, Any]:
    """Return the gaps in random half-spaces as a box plot shows them, with its outliers."""
    gaps = random_subset_gaps(
        None,
        scores,
        sensitive_features=problem.split.group_test,
        X=problem.split.X_test,
        n_subsets=N_SUBSETS,
        random_state=0,  # the same half-spaces for every model of every method
    )
    gaps = gaps[np.isfinite(gaps)]
    low, median, high = np.quantile(gaps, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside: BoolArray = (gaps >= low - reach) & (gaps <= high + reach)
    return {
        "half-spaces: n": len(gaps),
        "half-spaces: mean": gaps.mean(),
        "half-spaces: std": gaps.std(ddof=1),
        "half-spaces: box": [gaps[inside].min(), low, median, high, gaps[inside].max()],
        "half-spaces: largest": gaps.max(),
        "half-spaces: outliers": np.sort(gaps[~inside]).round(3),
    }


def _against_reference(
    scores: FloatArray, reference: FloatArray, groups: Any, favoured: int
) -> dict[str, Any]:
    agreement = rank_agreement(reference, scores, sensitive_features=groups)
    flips = undesirable_flips(reference, scores, sensitive_features=groups, privileged=favoured)
    found: dict[str, Any] = {}
    for code in (0, 1):
        found[f"rank agreement: S={code}"] = agreement[code]
        found[f"flips: S={code}"] = flips.tables[code].ravel()
        found[f"undesirable flips: S={code}"] = flips.undesirable[code]
    return found


def _plain(value: Any) -> Any:
    """Return a value rounded for JSON, with None for NaN."""
    if isinstance(value, list | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, int | np.integer):
        return int(value)
    return round(float(value), _DIGITS) if np.isfinite(value) else None


def pack_scores(scores: FloatArray) -> str:
    """Return scores as text, two bytes each, for comparison with other runs.

    Examples
    --------
    >>> import numpy as np
    >>> np.abs(unpack_scores(pack_scores(np.array([0.0, 0.25, 1.0]))) - [0, 0.25, 1]).max() < 1e-5
    np.True_
    """
    return b64encode(np.round(scores * 65535.0).astype("<u2").tobytes()).decode()


def unpack_scores(text: str) -> FloatArray:
    """Return the scores that `pack_scores` packed."""
    return np.frombuffer(b64decode(text), dtype="<u2") / 65535.0


_REPORTED_VERSIONS = (
    *("numpy", "scipy", "pandas", "scikit-learn", "POT", "torch", "lightgbm", "fairlearn"),
)


@dataclass(frozen=True, eq=False)
class Task:
    """A run with everything that a process needs to do it.

    Attributes
    ----------
    spec : RunSpec
        The spec of the run.
    load : callable
        Returns the table.
    method : Method
        The method that trains the curve.
    reference : str or None
        Packed scores of the unconstrained model on the same test rows; None if it is compared
        with none.
    """

    spec: RunSpec
    load: Callable[[], Dataset]
    method: Method
    reference: str | None = None


@dataclass(frozen=True)
class Failure:
    """A run that ended in an error."""

    spec: RunSpec
    error: str
    traceback: str = ""


def run_task(task: Task) -> Record:
    """Train the curve of a task, measure all of its models, and return the record."""
    import torch

    torch.set_num_threads(1)  # other runs use the other cores
    start = time.process_time()
    spec, settings = task.spec, task.spec.settings
    problem = Problem.draw(task.load(), spec.seed, settings.get("minority_share"))
    curve = fit_curve(task.method, problem, settings, spec.seed)
    reference = None if task.reference is None else unpack_scores(task.reference)
    rows = [
        {
            "weight": float(weight),
            **measure_test(scorer, problem, reference),
            **measure_training(training, problem, curve.coupling),
        }
        for weight, scorer, training in zip(
            settings["weights"], curve.scorers, curve.training_scores, strict=True
        )
    ]
    packed = None
    if task.method.reference is None:
        packed = pack_scores(curve.scorers[0](problem.split.group_test))
    return Record(
        spec,
        {name: [row[name] for row in rows] for name in rows[0]},
        round(time.process_time() - start, 1),
        versions(),
        packed,
    )


def _attempt(task: Task | Failure) -> Record | Failure:
    """Return the record of a task, or its failure: an error must not end the other runs."""
    if isinstance(task, Failure):
        return task
    try:
        return run_task(task)
    except (Exception, SystemExit) as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        told = f"{type(error).__name__}: {error}{notes}"
        return Failure(task.spec, told, "".join(format_exception(error)))


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, fairmatch and the packages that a result depends on."""
    from fairmatch import __version__

    found = {"fairmatch": __version__, "python": platform.python_version()}
    for name in _REPORTED_VERSIONS:
        with suppress(PackageNotFoundError):  # not every method needs every package
            found[name] = version(name)
    return found


def run_all(
    specs: Sequence[RunSpec],
    store: RecordStore,
    *,
    loaders: Mapping[str, Callable[[], Dataset]],
    methods: Mapping[str, Method],
    jobs: int | None = None,
    on_done: Callable[[Record | Failure], None] | None = None,
) -> list[Failure]:
    """Do all runs that have no record yet, and return those that failed.

    Each run is recorded as soon as it is done. A run that fails, or that kills its process, does
    not stop the others. With one job, however, runs share the caller's process, and a run that
    kills it ends them all.

    Parameters
    ----------
    specs : sequence of RunSpec
        The runs, in the order in which they are done. Unconstrained models go first, because
        others are compared with them.
    store : RecordStore
        The folder of the records.
    loaders : mapping
        Name of a table to the function that loads it.
    methods : mapping
        Name of a method to the method.
    jobs : int, optional
        Number of runs at a time. None leaves it to ``joblib.parallel_config``, whose backend may
        use several machines.
    on_done : callable, optional
        Called with each record or failure.

    Returns
    -------
    list of Failure
        The runs that ended in an error.

    Raises
    ------
    InputError
        If a method is unknown, if the specs lack the unconstrained run that others are compared
        with, or if a file in the store is not a record.
    """
    for spec in specs:
        if spec.method not in methods:
            raise InputError(f"There is no method {spec.method!r}; there are {', '.join(methods)}.")
    store.clean()
    failures: list[Failure] = []
    pending = store.missing(specs)
    references = _references(pending, specs, methods)
    scores: dict[str, str | None] = {}  # of the references that were read

    def task(spec: RunSpec) -> Task | Failure:
        packed, other = None, references[spec.digest]
        if other is not None:
            if other.digest not in scores:
                record = store.find(other)
                if record is None:  # a record without the comparison would stay incomplete
                    return Failure(spec, f"The run it is compared with, {other.name}, failed.")
                scores[other.digest] = record.reference_scores
            packed = scores[other.digest]
        return Task(spec, loaders[spec.dataset], methods[spec.method], packed)

    first = [spec for spec in pending if methods[spec.method].reference is None]
    then = [spec for spec in pending if methods[spec.method].reference is not None]
    for wave in (first, then):
        for done in _results(wave, store, task, jobs):
            if isinstance(done, Failure):
                failures.append(done)
            else:
                store.write(done)
            if on_done is not None:
                on_done(done)
    return failures


def _references(
    pending: Sequence[RunSpec], specs: Sequence[RunSpec], methods: Mapping[str, Method]
) -> dict[str, RunSpec | None]:
    """Return the unconstrained run that each run is compared with, by the run's digest."""
    by_split: dict[tuple[str, str, int], RunSpec] = {}
    for spec in specs:
        # A model trained on fewer rows is another model. Nothing is compared with it.
        if "minority_share" not in spec.settings:
            by_split.setdefault((spec.dataset, spec.method, spec.seed), spec)
    found: dict[str, RunSpec | None] = {}
    for spec in pending:
        reference = methods[spec.method].reference
        if reference is None or "minority_share" in spec.settings:
            found[spec.digest] = None
        elif (spec.dataset, reference, spec.seed) in by_split:
            found[spec.digest] = by_split[spec.dataset, reference, spec.seed]
        else:
            raise InputError(
                f"{spec.name} is compared with a run of {reference!r} on the same split, and that "
                "run is not among the specs. Add it; if it is recorded, it is not done again."
            )
    return found


def _results(
    specs: Sequence[RunSpec],
    store: RecordStore,
    task: Callable[[RunSpec], Task | Failure],
    jobs: int | None,
) -> Iterator[Record | Failure]:
    """Do runs in parallel and yield their results; a run that kills its process is a failure."""
    left = {spec.digest: spec for spec in specs}
    sent: dict[str, RunSpec] = {}

    def calls() -> Iterator[Any]:
        # Joblib asks just before each run, so a record of another process is seen. Runs that
        # another process has begun come last, in case it never finishes them.
        for hurry in (False, True):
            for spec in list(left.values()):
                if spec.digest not in sent and spec not in store and (store.claim(spec) or hurry):
                    sent[spec.digest] = spec
                    yield delayed(_attempt)(task(spec))

    # No more runs are sent than there are processes, so the first unfinished ones are under way.
    how = {"return_as": "generator_unordered", "batch_size": 1, "pre_dispatch": "n_jobs"}

    def results(calls: Iterable[Any]) -> Iterator[Record | Failure]:
        with _no_interrupts():
            begun: Iterator[Record | Failure] = Parallel(n_jobs=jobs, **how)(calls)
        return begun

    while left:
        try:
            for done in results(calls()):
                del left[done.spec.digest]
                yield done
                store.release(done.spec)
            return
        except BrokenProcessPool:
            under_way = [spec for spec in sent.values() if spec.digest in left]
        finally:
            for spec in sent.values():
                store.release(spec)
        # Nobody knows which run killed the process, so each is tried again alone.
        for spec in under_way[: effective_n_jobs(jobs)]:
            del left[spec.digest]
            try:
                yield from results([delayed(_attempt)(task(spec))])
            except BrokenProcessPool:
                yield Failure(spec, "The process died, perhaps for lack of memory.")
        sent.clear()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Start worker processes that ignore an interrupt.

    A terminal sends an interrupt to every process, and each worker would show a traceback. The
    parent process receives it too, and ends the workers.
    """
    if threading.current_thread() is not threading.main_thread():  # no other thread may set it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # processes inherit this
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
