"""Do the runs that are not done yet, several at a time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from joblib import Parallel, delayed

from fairmatch.datasets import Dataset
from fairmatch.exceptions import InputError
from fairmatch.experiments.measurements import (
    measure_test,
    measure_training,
    pack_scores,
    unpack_scores,
)
from fairmatch.experiments.methods import Method
from fairmatch.experiments.problems import Problem
from fairmatch.experiments.records import Record, RecordStore
from fairmatch.experiments.specs import RunSpec

_REPORTED_VERSIONS = ("fairmatch", "numpy", "scipy", "POT", "torch", "lightgbm")


@dataclass(frozen=True, eq=False)
class Task:
    """A run with all that it needs, so that any process can do it.

    Attributes
    ----------
    spec : RunSpec
        What to run.
    load : callable
        Gives the table.
    method : Method
        How to train.
    reference : str or None
        Packed scores of the unconstrained model on the same test rows.
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


def run_task(task: Task) -> Record:
    """Train a curve and measure all of it."""
    import torch

    torch.set_num_threads(1)  # runs are done side by side
    start = time.process_time()
    spec, settings = task.spec, task.spec.settings
    problem = Problem.draw(task.load(), spec.seed, settings.get("minority_share"))
    curve = task.method.fit(problem, settings, spec.seed)
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
        _versions(),
        packed,
    )


def _attempt(task: Task | Failure) -> Record | Failure:
    """Keep one run's error from ending the others."""
    if isinstance(task, Failure):
        return task
    try:
        return run_task(task)
    except Exception as error:
        return Failure(task.spec, f"{type(error).__name__}: {error}")


@cache
def _versions() -> dict[str, str]:
    from fairmatch import __version__

    found = {"fairmatch": __version__}
    for name in _REPORTED_VERSIONS[1:]:
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
    """Do all runs that have no record yet; each is recorded as soon as it is done.

    Parameters
    ----------
    specs : sequence of RunSpec
        In the order in which they are wanted. Unconstrained models go first, because others are
        compared with them.
    store : RecordStore
        Where records are.
    loaders, methods : mapping
        What the names in the specs mean.
    jobs : int, optional
        Runs at a time. None leaves it to ``joblib.parallel_config``, whose backend may be one of
        several machines.
    on_done : callable, optional
        Called with each record or failure.

    Returns
    -------
    list of Failure
        Runs that ended in an error; the others were not held up by them.
    """
    for spec in specs:
        if spec.method not in methods:
            raise InputError(f"There is no method {spec.method!r}; there are {', '.join(methods)}.")
    failures: list[Failure] = []
    pending = [spec for spec in specs if spec not in store]
    first = [spec for spec in pending if methods[spec.method].reference is None]
    then = [spec for spec in pending if methods[spec.method].reference is not None]
    for wave in (first, then):
        tasks = [
            _task(spec, specs, store, loaders[spec.dataset], methods[spec.method]) for spec in wave
        ]
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        for done in parallel(delayed(_attempt)(task) for task in tasks):
            if isinstance(done, Failure):
                failures.append(done)
            else:
                store.write(done)
            if on_done is not None:
                on_done(done)
    return failures


def _task(
    spec: RunSpec,
    specs: Sequence[RunSpec],
    store: RecordStore,
    load: Callable[[], Dataset],
    method: Method,
) -> Task | Failure:
    packed = None
    # Rows that were dropped from the training make another unconstrained model; none is trained.
    if method.reference is not None and "minority_share" not in spec.settings:
        for other in specs:
            same = (other.dataset, other.method, other.seed)
            if same == (spec.dataset, method.reference, spec.seed):
                record = store.find(other)
                if record is None:  # a record without the comparison would never be completed
                    return Failure(spec, f"The run it is compared with, {other.name}, failed.")
                packed = record.reference_scores
    return Task(spec, load, method, packed)


def estimate_seconds(specs: Sequence[RunSpec], records: Sequence[Record]) -> tuple[float, int]:
    """Guess the CPU time of runs from recorded ones of the same method and table.

    Returns
    -------
    float, int
        Seconds, and the number of runs for which there is nothing to go by.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for record in records:
        pace = record.seconds / _size(record.spec)
        known.setdefault((record.spec.dataset, record.spec.method), []).append(pace)
    total, unknown = 0.0, 0
    for spec in specs:
        found = known.get((spec.dataset, spec.method))
        if found is None:
            unknown += 1
        else:
            total += _size(spec) * sum(found) / len(found)
    return total, unknown


def _size(spec: RunSpec) -> float:
    """Say how much work a run is, beside others of its method and table."""
    return float(len(spec.settings["weights"]) * spec.settings.get("epochs", 1))
