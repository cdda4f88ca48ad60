"""Runs: training, measuring and recording."""

import platform
import signal
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from traceback import format_exception
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

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
from paper.methods import Curve, Method, Model, Problem
from paper.records import Record, RecordStore
from paper.specs import Loader, RunSpec, Study, check_names

N_SUBSETS = 1000
N_BATCHES, BATCH_SIZE = 100, 1024

_DIGITS = 5
_GAPS = (
    *("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"),
    *("true_positive_gap", "false_positive_gap", "equalized_odds_gap"),
)

# Measurements of one model: name to a number or a list of numbers, ready for JSON.
Facts: TypeAlias = dict[str, Any]


def draw_table(load: Loader, spec: RunSpec) -> Problem:
    """Return the split of a table that a spec asks for."""
    return Problem.draw(load(), spec.seed, spec.settings.get("minority_share"))


def measure_curve(
    problem: Problem, curve: Curve, spec: RunSpec, reference: FloatArray | None
) -> Iterator[Facts]:
    """Yield the measurements of every model, on test and training rows."""
    for model in curve.models:
        training = model(problem.train, problem.train.group)
        yield {
            **measure_test(model, problem, reference),
            **measure_training(training, problem, curve.coupling),
        }


def measure_test(model: Model, problem: Problem, reference: FloatArray | None = None) -> Facts:
    """Return the measurements of a model on the test rows.

    Rank agreement and flips compare it with `reference`, the scores of the unconstrained model. A
    number that is not defined is None.
    """
    test, groups = problem.test, problem.test.group
    scores = np.clip(model(test, groups), 0.0, 1.0)
    flipped = np.clip(model(test, 1 - groups), 0.0, 1.0)
    gaps = gap_table(test.y, scores, sensitive_features=groups)
    found: Facts = {
        "accuracy": np.mean((scores >= 0.5) == test.y),
        "acceptance_rate": np.mean(scores >= 0.5),
        **{name: gaps[name] for name in _GAPS},
        "consistency": consistency(scores, flipped),
        "transport_cost": minibatch_costs(scores, groups, test.encoded).mean(),
        **_half_space_facts(scores, problem),
    }
    for name, rows in problem.named_subsets().items():
        inside = gap_table(None, scores[rows], sensitive_features=groups[rows])
        found |= {f"{name}: {gap}": inside[gap] for gap in _GAPS[:3]}
    if reference is not None:
        found |= _against_reference(scores, reference, groups, problem.favoured_code)
    return rounded(found)


def measure_training(scores: FloatArray, problem: Problem, coupling: Coupling | None) -> Facts:
    """Return the measurements of training rows; the matched gap needs a matching of them."""
    groups, labels = problem.train.group, problem.train.y
    scores = np.clip(scores, 0.0, 1.0)
    gaps = gap_table(None, scores, sensitive_features=groups, coupling=coupling)
    found = {"accuracy": np.mean((scores >= 0.5) == labels), **{n: gaps[n] for n in _GAPS[:3]}}
    if coupling is not None:
        found["matched_parity_gap"] = gaps["matched_parity_gap"]
    return rounded({f"training: {name}": value for name, value in found.items()})


def minibatch_costs(
    scores: FloatArray,
    groups: Any,
    features: FloatArray,
    *,
    batch_size: int = BATCH_SIZE,
    n_batches: int = N_BATCHES,
    seed: int = 0,
) -> FloatArray:
    r"""Return the transport cost of a model's fair matching in random mini-batches.

    Each batch holds `batch_size` people of each of the groups 0 and 1, and equal ranks are matched.
    Mini-batches are smaller where a group is. Their mean is the paper's estimate of the cost that
    `fair_matching` gives exactly. The estimate has a bias, which falls as batches grow (Remark
    A.2). The remark prints its second exponent with the wrong sign: the rate is
    :math:`n_0^{-1/2} + n_1^{-1/2}`, which is of order :math:`m^{-1/2}` for batches of :math:`m`
    people.

    Examples
    --------
    >>> scores, features = np.array([0.1, 0.2, 0.1, 0.2]), np.array([[0.0], [1.0], [0.0], [3.0]])
    >>> minibatch_costs(scores, np.array([0, 0, 1, 1]), features, n_batches=2).tolist()
    [2.0, 2.0]
    """
    generator = np.random.default_rng(seed)
    rows = [np.flatnonzero(groups == code) for code in (0, 1)]
    size = min(batch_size, *map(len, rows))
    costs = np.empty(n_batches)
    for batch in range(n_batches):
        drawn = [generator.choice(own, size=size, replace=False) for own in rows]
        source, target = (own[np.argsort(scores[own], kind="stable")] for own in drawn)
        costs[batch] = ((features[source] - features[target]) ** 2).sum(axis=1).mean()
    return costs


def _half_space_facts(scores: FloatArray, problem: Problem) -> Facts:
    """Return the gaps in random half-spaces as a box plot shows them, with its outliers."""
    gaps = random_subset_gaps(
        None,
        scores,
        sensitive_features=problem.test.group,
        X=problem.test.encoded,
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
) -> Facts:
    agreement = rank_agreement(reference, scores, sensitive_features=groups)
    flips = undesirable_flips(reference, scores, sensitive_features=groups, privileged=favoured)
    found: Facts = {}
    for code in (0, 1):
        found[f"rank agreement: S={code}"] = agreement[code]
        found[f"flips: S={code}"] = flips.tables[code].ravel()
        found[f"undesirable flips: S={code}"] = flips.undesirable[code]
    return found


def rounded(found: Facts) -> Facts:
    """Return measurements rounded for JSON, with None for NaN."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | np.ndarray):
            return [plain(item) for item in value]
        if isinstance(value, int | np.integer):
            return int(value)
        return round(float(value), _DIGITS) if np.isfinite(value) else None

    return {name: plain(value) for name, value in found.items()}


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


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, fairmatch and the packages that a result depends on."""
    from fairmatch import __version__

    found = {"fairmatch": __version__, "python": platform.python_version()}
    for name in _REPORTED_VERSIONS:
        with suppress(PackageNotFoundError):  # not every method needs every package
            found[name] = version(name)
    return found


@dataclass(frozen=True, eq=False)
class Task:
    """A run, and how it is done. Every study consists of tasks."""

    spec: RunSpec  #: The spec of the run.
    method: Method  #: The method that trains the curve.
    draw: Callable[[RunSpec], Problem]  #: Takes the spec and returns the problem.
    #: Takes the problem, the curve, the spec and the scores of the reference; yields the
    #: measurements of each model.
    measure: Callable[[Problem, Curve, RunSpec, FloatArray | None], Iterable[Facts]]
    #: The unconstrained run of the same split that it is compared with.
    reference: RunSpec | None = None
    #: Whether others are compared with this run, so that the scores are recorded.
    keeps_scores: bool = False
    times_training: bool = False  #: Whether the recorded CPU time is that of the training alone.


def study_tasks(study: Study, specs: Iterable[RunSpec] | None = None) -> list[Task]:
    """Return the tasks of some specs of a study; by default of all its runs."""
    specs = study.runs() if specs is None else list(specs)
    check_names("method", (spec.method for spec in specs), study.methods)
    return [
        Task(
            spec,
            study.methods[spec.method],
            partial(draw_table, study.loaders[spec.dataset]),
            measure_curve,
            study.reference_of(spec),
            keeps_scores=study.methods[spec.method].reference is None,
        )
        for spec in specs
    ]


def run_task(task: Task, reference: str | None = None) -> Record:
    """Train the curve of a task, measure all of its models, and return the record."""
    import torch

    torch.set_num_threads(1)  # other runs use the other cores
    start = time.process_time()
    problem = task.draw(task.spec)
    begun = time.process_time()
    settings = {"weights": task.method.weights, **task.spec.settings}
    curve = task.method.fit(problem, settings, task.spec.seed)
    trained = time.process_time() - begun
    scores = None if reference is None else unpack_scores(reference)
    found = list(task.measure(problem, curve, task.spec, scores))
    rows = [{"weight": float(w), **facts} for w, facts in zip(curve.weights, found, strict=True)]
    packed = None
    if task.keeps_scores:
        packed = pack_scores(curve.models[0](problem.test, problem.test.group))
    return Record(
        task.spec,
        {name: [row[name] for row in rows] for name in rows[0]},
        round(trained if task.times_training else time.process_time() - start, 1),
        versions(),
        packed,
    )


@dataclass(frozen=True)
class Failure:
    """A run that ended in an error."""

    spec: RunSpec
    error: str
    traceback: str = ""


def _attempt(task: Task, reference: str | None) -> Record | Failure:
    """Return the record of a task, or its failure: an error must not end the other runs."""
    try:
        if task.reference is not None and reference is None:
            # A record without the comparison would stay incomplete.
            told = f"The run it is compared with, {task.reference.name}, failed."
            return Failure(task.spec, told)
        return run_task(task, reference)
    except (Exception, SystemExit) as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        told = f"{type(error).__name__}: {error}{notes}"
        return Failure(task.spec, told, "".join(format_exception(error)))


def run_all(
    tasks: Sequence[Task],
    store: RecordStore,
    *,
    jobs: int | None = None,
    on_done: Callable[[Record | Failure], None] | None = None,
) -> list[Failure]:
    """Do all runs that have no record yet, and return those that failed.

    Each run is recorded as soon as it is done, in the order of the tasks; those that others are
    compared with go first, and it is an error if one of these is neither recorded nor among the
    tasks. A run that fails, or that kills its process, does not stop the others. With one job,
    however, runs share the caller's process, and a run that kills it ends them all. ``jobs=None``
    leaves their number to ``joblib.parallel_config``, whose backend may use several machines.
    """
    store.clean()
    missing = {spec.digest for spec in store.missing(task.spec for task in tasks)}
    pending = [task for task in tasks if task.spec.digest in missing]
    for task in pending:
        other = task.reference
        if other is not None and other.digest not in missing and other not in store:
            raise InputError(
                f"{task.spec.name} is compared with a run of {other.method!r} on the same split, "
                "which is neither recorded nor among the tasks. Add it; if it is recorded, it is "
                "not done again."
            )
    scores: dict[str, str | None] = {}  # of the references that were read

    def call(task: Task) -> Any:
        other = task.reference
        if other is not None and scores.get(other.digest) is None:
            record = store.find(other)
            scores[other.digest] = None if record is None else record.reference_scores
        return delayed(_attempt)(task, None if other is None else scores[other.digest])

    failures: list[Failure] = []
    for wave in (True, False):
        chosen = [task for task in pending if task.keeps_scores == wave]
        for done in _results(chosen, store, call, jobs):
            if isinstance(done, Failure):
                failures.append(done)
            else:
                store.write(done)
            if on_done is not None:
                on_done(done)
    return failures


def _results(
    tasks: Sequence[Task],
    store: RecordStore,
    call: Callable[[Task], Any],
    jobs: int | None,
) -> Iterator[Record | Failure]:
    """Do runs in parallel and yield their results; a run that kills its process is a failure."""
    left = {task.spec.digest: task for task in tasks}
    sent: dict[str, Task] = {}

    def calls() -> Iterator[Any]:
        # Joblib asks just before each run, so a record of another process is seen. Runs that
        # another process has begun come last, in case it never finishes them.
        for hurry in (False, True):
            for digest, task in list(left.items()):
                new = digest not in sent and task.spec not in store
                if new and (store.claim(task.spec) or hurry):
                    sent[digest] = task
                    yield call(task)

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
            under_way = [digest for digest in sent if digest in left]
        finally:
            for task in sent.values():
                store.release(task.spec)
        # Nobody knows which run killed the process, so each is tried again alone.
        for digest in under_way[: effective_n_jobs(jobs)]:
            task = left.pop(digest)
            try:
                yield from results([call(task)])
            except BrokenProcessPool:
                yield Failure(task.spec, "The process died, perhaps for lack of memory.")
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
