"""A study: which runs are wanted, and which of them are recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fairmatch.datasets import PAPER_DATASETS, Dataset, load_dataset
from fairmatch.exceptions import InputError
from paper.methods import METHODS, Method
from paper.records import Record, RecordStore
from paper.specs import (
    FULL,
    MINORITY_SHARE,
    NAMED_SUBSETS,
    ONE_LEVEL,
    PAPER_RIVALS,
    SCHEDULE_SEEDS,
    SCHEDULE_TABLES,
    SCHEDULE_WEIGHTS,
    SCHEDULES,
    SERIES,
    Profile,
    RunSpec,
    Series,
)

Loader = Callable[[], Dataset]


@dataclass(frozen=True)
class Experiment:
    """A part of the paper's experiment section.

    Attributes
    ----------
    name, title : str
        The name on the command line, and the name that people read.
    runs : callable
        Takes a study, the name of a table and a seed; returns the specs of the runs.
    """

    name: str
    title: str
    runs: Callable[["Study", str, int], Iterable[RunSpec]]


@dataclass(frozen=True, eq=False)
class Study:
    """A profile, with the tables and methods that a researcher has added.

    Attributes
    ----------
    profile : Profile
        How much is run.
    datasets : tuple of str
        Names of the tables in the study.
    n_seeds : int
        Number of random splits of each table.
    series : mapping
        Key of a line to the line.
    methods : mapping
        Name of a method to the method.
    loaders : mapping
        Name of a table to the function that loads it.
    identities : mapping
        Name of a researcher's own table to the settings that identify its content.
    """

    profile: Profile
    datasets: tuple[str, ...]
    n_seeds: int
    series: Mapping[str, Series] = field(default_factory=lambda: SERIES)
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    loaders: Mapping[str, Loader] = field(
        default_factory=lambda: {name: partial(load_dataset, name) for name in PAPER_DATASETS}
    )
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, profile: Profile, *, datasets: Sequence[str] | None = None, n_seeds: int | None = None
    ) -> "Study":
        """Return the paper's study, or a part of it.

        Parameters
        ----------
        profile : Profile
            How much is run.
        datasets : sequence of str, optional
            Names of the tables; by default those of the profile.
        n_seeds : int, optional
            Number of random splits of each table; by default that of the profile.
        """
        study = cls(profile, profile.datasets, profile.n_seeds if n_seeds is None else n_seeds)
        return study if datasets is None else study.only(datasets)

    def only(self, datasets: Sequence[str]) -> "Study":
        """Return the study restricted to some of its tables."""
        for name in datasets:
            if name not in self.loaders:
                known = ", ".join(self.loaders)
                raise InputError(f"There is no dataset {name!r}; there are {known}.")
        return replace(self, datasets=tuple(dict.fromkeys(datasets)))

    def spec(self, key: str, dataset: str, seed: int, **settings: Any) -> RunSpec:
        """Return the spec of a line's run; `settings` override those of the line."""
        series = self.series[key]
        method = self.methods[series.method]
        lengths = self.profile.lengths[method.schedule]
        # A researcher's own weights are few, and were chosen by hand.
        weights = list(method.weights[:: 1 if method.schedule == "own" else self.profile.thinning])
        if "minority_share" in settings:
            weights = weights[::ONE_LEVEL]
        given = {
            "weights": weights,
            **lengths,
            **method.settings,
            **series.settings,
            **self.identities.get(dataset, {}),
            **settings,
        }
        return RunSpec(dataset, series.method, seed, given)

    def of_label_weight(self, key: str, value: float) -> tuple[str, dict[str, Any]]:
        """Return the key of the line with a label weight, and the settings that its runs need.

        The main lines have the label weights 0 and 100, and need no further settings.
        """
        main = {0.0: key, 100.0: f"{key}-joint"}
        if value in main:
            return main[value], {}
        return key, {"label_weight": value, "weights": [*self.profile.label_weight_grid]}

    def records(
        self, store: RecordStore, key: str, dataset: str, **settings: Any
    ) -> dict[int, Record]:
        """Return the records of a line, by seed."""
        specs = {seed: self.spec(key, dataset, seed, **settings) for seed in range(self.n_seeds)}
        found = {seed: store.find(spec) for seed, spec in specs.items()}
        return {seed: record for seed, record in found.items() if record is not None}

    def runs(
        self, names: Sequence[str] | None = None, methods: Sequence[str] | None = None
    ) -> list[RunSpec]:
        """Return the runs of some experiments, and the runs they are compared with, each once.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the experiments; by default all.
        methods : sequence of str, optional
            Names of the methods; by default all. The runs they are compared with are listed too.
        """
        for name in methods or ():
            if name not in self.methods:
                known = ", ".join(self.methods)
                raise InputError(f"There is no method {name!r}; there are {known}.")
        chosen = [find_experiment(name) for name in names] if names else EXPERIMENTS.values()
        listed: dict[str, RunSpec] = {}
        for seed in range(self.n_seeds):
            for experiment in chosen:
                for dataset in self.datasets:
                    for spec in experiment.runs(self, dataset, seed):
                        if methods and spec.method not in methods:
                            continue
                        # A record must not depend on which experiments the user asks for.
                        for run in (*self._references(spec), spec):
                            listed.setdefault(run.digest, run)
        return list(listed.values())

    def _references(self, spec: RunSpec) -> list[RunSpec]:
        """Return the unconstrained run that a run is compared with, if there is one."""
        reference = self.methods[spec.method].reference
        # Scores are not compared where training rows were dropped.
        if reference is None or "minority_share" in spec.settings:
            return []
        return [self.spec(reference, spec.dataset, spec.seed)]


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in EXPERIMENTS:
        raise InputError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def _all_lines(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
    return [study.spec(key, dataset, seed) for key in study.series]


def _lines(*keys: str, only: Sequence[str] = ()) -> Callable[[Study, str, int], Iterable[RunSpec]]:
    """Return a function that lists the runs of some lines, on the tables in `only` if given."""

    def runs(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
        if only and dataset not in only:
            return []
        own = [key for key in study.series if key not in SERIES]
        return [study.spec(key, dataset, seed) for key in (*keys, *own)]

    return runs


def _imbalance(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
    if dataset != "adult":
        return []
    # The unconstrained model of the thinned rows is where the curves begin.
    keys = ("unfair", *PAPER_RIVALS, "ftm-batch", "ftm")
    return [study.spec(key, dataset, seed, minority_share=MINORITY_SHARE) for key in keys]


def _label_weights(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
    if dataset != "adult":
        return []
    keys = ("ftm", "ftm-batch") if seed == 0 else ("ftm",)
    lines = [study.of_label_weight(k, value) for k in keys for value in study.profile.label_weights]
    return [study.spec(key, dataset, seed, **settings) for key, settings in lines]


def _schedules(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
    if seed >= SCHEDULE_SEEDS or study.profile is not FULL or dataset not in SCHEDULE_TABLES:
        return []
    return [
        study.spec("ftm", dataset, seed, weights=list(SCHEDULE_WEIGHTS), **schedule)
        for schedule in SCHEDULES.values()
    ]


_MAIN = ("unfair", *PAPER_RIVALS, "ftm-batch", "ftm")

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment("tradeoff", "Accuracy against fairness", _all_lines),
        Experiment("subsets", "Gaps in random subsets", _lines(*_MAIN)),
        Experiment(
            "variables", "Gaps in subsets by a variable", _lines(*_MAIN, only=tuple(NAMED_SUBSETS))
        ),
        Experiment(
            "joint",
            "Marginal and joint map on Adult",
            _lines("ftm-batch", "ftm-batch-joint", "ftm", "ftm-joint", only=("adult",)),
        ),
        Experiment("consistency", "Consistency", _lines(*_MAIN)),
        Experiment("ranks", "Rank agreement with the unfair model", _lines(*_MAIN)),
        Experiment("flips", "Undesirable flips", _lines(*_MAIN)),
        Experiment(
            "representation",
            "Fair representations",
            _lines("laftr", "sipm", "repair", "ftm-batch", "ftm"),
        ),
        Experiment("imbalance", "Training rows 5 : 95", _imbalance),
        Experiment("label-weight", "Label weight, transport cost and accuracy", _label_weights),
        Experiment("schedule", "Length of the training", _schedules),
    )
}
"""The paper's experiment section."""
