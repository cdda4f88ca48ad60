"""Do the runs that are not done yet, several at a time."""

import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from traceback import format_exception
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from fairmatch.datasets import Dataset
from fairmatch.exceptions import InputError
from fairmatch.experiments.runs.measurements import (
    measure_test,
    measure_training,
    pack_scores,
    unpack_scores,
)
from fairmatch.experiments.runs.methods import Method
from fairmatch.experiments.runs.problem import Problem
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.experiments.runs.spec import RunSpec
from fairmatch.experiments.runs.training import fit_curve

_REPORTED_VERSIONS = (
    *("numpy", "scipy", "pandas", "scikit-learn", "POT", "torch", "lightgbm", "fairlearn"),
)


@dataclass(frozen=True, eq=False)
class Task:
    """A run with all that it needs, so that any process can do it.

    Attributes
    ----------
    spec : RunSpec
        What to run.
    load : callable
        Returns the table.
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
    traceback: str = ""


def run_task(task: Task) -> Record:
    """Train a curve and measure all of it."""
    import torch

    torch.set_num_threads(1)  # runs are done side by side
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
    """Keep one run's error from ending the others."""
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
    """Return the versions of all that a result depends on."""
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
    """Do all runs that have no record yet; each is recorded as soon as it is done.

    A run that fails, or that kills the process it is in, holds up no other. (With one job, runs are
    done in the process of the caller, which dies with them.)

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
        Runs that ended in an error.

    Raises
    ------
    InputError
        If a method is not known, if the unconstrained run that others are compared with is not
        among the specs, or if a file that should be a record is not one.
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
                if record is None:  # a record without the comparison would never be completed
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
    """Find the unconstrained run that each run is compared with, by the run's digest."""
    by_split: dict[tuple[str, str, int], RunSpec] = {}
    for spec in specs:
        # Rows that were dropped from the training make another model: nothing is compared with it.
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
                f"{spec.name} is compared with a run of {reference!r} on the same split, which is "
                "not among the runs. Add it to them; if it is recorded, it is not done again."
            )
    return found


def _results(
    specs: Sequence[RunSpec],
    store: RecordStore,
    task: Callable[[RunSpec], Task | Failure],
    jobs: int | None,
) -> Iterator[Record | Failure]:
    """Do runs side by side; one that kills its process fails, and stops no other."""
    left = {spec.digest: spec for spec in specs}
    sent: dict[str, RunSpec] = {}

    def calls() -> Iterator[Any]:
        # Asked just before each run, because another process may share the folder. What it has
        # begun comes last, in case it never ends it.
        for hurry in (False, True):
            for spec in list(left.values()):
                if spec.digest not in sent and spec not in store and (store.claim(spec) or hurry):
                    sent[spec.digest] = spec
                    yield delayed(_attempt)(task(spec))

    # No more runs are sent than there are processes: under way are the first that are not back.
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
        # It is not known who died, so each is tried again with nobody beside it.
        for spec in under_way[: effective_n_jobs(jobs)]:
            del left[spec.digest]
            try:
                yield from results([delayed(_attempt)(task(spec))])
            except BrokenProcessPool:
                yield Failure(spec, "The process died, perhaps for lack of memory.")
        sent.clear()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Start processes that ignore an interrupt: the one that starts them hears it, and ends them.

    A terminal sends it to all of them, and each would show a traceback.
    """
    if threading.current_thread() is not threading.main_thread():  # no other may set it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # processes inherit this
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
