"""What the paper's experiments consist of: which methods run on which tables, how long, how often.

Every experiment only names runs. The same run serves all experiments that name it, because a run
is known by its content.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fairmatch.datasets import PAPER_DATASETS, Dataset, load_dataset
from fairmatch.exceptions import InputError
from fairmatch.experiments.runs.methods import METHODS, Method
from fairmatch.experiments.runs.problem import NAMED_SUBSETS
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.experiments.runs.spec import RunSpec

Loader = Callable[[], Dataset]


@dataclass(frozen=True)
class Series:
    """A line of a table or figure: a method with the settings that make it this one.

    Attributes
    ----------
    key, label : str
        For programs, and for people.
    method : str
        Name of the method.
    settings : mapping
        Settings that differ from the method's own.
    paper : str or None
        Its name in the paper's tables.
    """

    key: str
    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None


SERIES: dict[str, Series] = {
    series.key: series
    for series in (
        Series("unfair", "Unfair", "unfair", paper="Unfair"),
        Series("reduction", "Reduction", "reduction", paper="Reduction"),
        Series("reg", "Reg", "reg", paper="Reg"),
        Series("adv", "Adv", "adv", paper="Adv"),
        Series("ftm-batch", "FTM, mini-batch maps", "ftm-batch", paper="FTM"),
        Series("ftm", "FTM, all rows (ours)", "ftm"),
        Series(
            "ftm-batch-joint",
            "FTM joint, mini-batch maps",
            "ftm-batch",
            {"label_weight": 100},
            paper="FTM joint",
        ),
        Series("ftm-joint", "FTM joint, all rows (ours)", "ftm", {"label_weight": 100}),
        Series("laftr", "LAFTR", "laftr", paper="LAFTR"),
        Series("sipm", "sIPM-LFR", "sipm", paper="sIPM-LFR"),
        Series("repair", "Transport repair", "repair", paper="Gordaliza"),
        Series("trees-unfair", "trees: unconstrained", "trees-unfair"),
        Series("trees-reg", "trees: Reg", "trees-reg"),
        Series("trees-eg", "trees: exponentiated gradient", "trees-eg"),
        Series("trees-ftm", "trees: FTM (ours)", "trees-ftm"),
        Series("trees-ftm-joint", "trees: FTM joint (ours)", "trees-ftm", {"label_weight": 100}),
        Series("trees-predicted", "trees: FTM, predicted map (ours)", "trees-predicted"),
    )
}
"""All lines, in the order of the tables."""

PAPER_RIVALS = ("reduction", "reg", "adv")


@dataclass(frozen=True)
class Profile:
    """How much is run.

    Attributes
    ----------
    name : str
        "full" or "quick".
    datasets : tuple of str
        The tables.
    n_seeds : int
        Random splits of each.
    lengths : mapping
        Length of training, for every kind of schedule.
    thinning : int
        Every so many-th fairness weight is trained.
    label_weights : tuple of float
        The values of α that are compared.
    label_weight_grid : tuple of float
        At these fairness weights, which enclose the levels in question.
    """

    name: str
    datasets: tuple[str, ...]
    n_seeds: int
    lengths: Mapping[str, Mapping[str, float]]
    thinning: int
    label_weights: tuple[float, ...]
    label_weight_grid: tuple[float, ...]


# Forty epochs at three times the paper's learning rate take the place of its 200: see the
# experiment `schedule`, and docs/reproduction.md.
FULL = Profile(
    "full",
    PAPER_DATASETS,
    5,
    {
        "network": {"epochs": 40, "learning_rate": 0.003, "decay": 0.9},
        "trees": {"rounds": 200},
        "own": {},
    },
    1,
    (0, 1, 5, 10, 50, 100, 200, 1000),
    (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2, 3),
)
QUICK = Profile(
    "quick",
    ("german", "adult"),
    2,
    {
        "network": {"epochs": 6, "learning_rate": 0.005, "decay": 0.6},
        "trees": {"rounds": 60},
        "own": {},
    },
    4,
    (0, 5, 100),
    (0.1, 0.5, 0.9, 1.3, 3),
)
PROFILES = {profile.name: profile for profile in (FULL, QUICK)}

SCHEDULES: dict[str, Mapping[str, float]] = {
    "200 epochs at .001 (the paper's)": {"epochs": 200, "learning_rate": 0.001, "decay": 0.95},
    "100 epochs at .001": {"epochs": 100, "learning_rate": 0.001, "decay": 0.95},
    "40 epochs at .003 (used)": FULL.lengths["network"],
}
SCHEDULE_WEIGHTS = (0.5, 0.8, 1.2, 2, 3)
SCHEDULE_SEEDS = 2
SCHEDULE_TABLES = ("adult", "german")  # a large one and a small one
MINORITY_SHARE = 0.05
# Every second weight is enough to read one level off a curve.
ONE_LEVEL = 2


@dataclass(frozen=True)
class Experiment:
    """A part of the paper's experiment section.

    Attributes
    ----------
    name, title : str
        For the command line, and for people.
    runs : callable
        Gives the specs of one dataset and seed.
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
        The tables that are looked at.
    n_seeds : int
        Random splits of each.
    series : mapping
        All lines.
    methods, loaders : mapping
        What the names of methods and tables mean.
    identities : mapping
        For a researcher's own table, what identifies its content.
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
        """Make the paper's study, or a part of it."""
        study = cls(profile, profile.datasets, profile.n_seeds if n_seeds is None else n_seeds)
        return study if datasets is None else study.only(datasets)

    def only(self, datasets: Sequence[str]) -> "Study":
        """Look at some tables alone."""
        for name in datasets:
            if name not in self.loaders:
                known = ", ".join(self.loaders)
                raise InputError(f"There is no dataset {name!r}; there are {known}.")
        return replace(self, datasets=tuple(dict.fromkeys(datasets)))

    def spec(self, key: str, dataset: str, seed: int, **settings: Any) -> RunSpec:
        """Write the spec of a line's run; settings given here come before its own."""
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
        """Say which line, with which settings, has a label weight: the main lines have two."""
        main = {0.0: key, 100.0: f"{key}-joint"}
        if value in main:
            return main[value], {}
        return key, {"label_weight": value, "weights": [*self.profile.label_weight_grid]}

    def records(
        self, store: RecordStore, key: str, dataset: str, **settings: Any
    ) -> dict[int, Record]:
        """Find what is recorded of a line, by seed."""
        specs = {seed: self.spec(key, dataset, seed, **settings) for seed in range(self.n_seeds)}
        found = {seed: store.find(spec) for seed, spec in specs.items()}
        return {seed: record for seed, record in found.items() if record is not None}

    def runs(self, names: Sequence[str] | None = None) -> list[RunSpec]:
        """List the runs of some experiments, and those they are compared with, each once."""
        chosen = [find_experiment(name) for name in names] if names else EXPERIMENTS.values()
        listed: dict[str, RunSpec] = {}
        for seed in range(self.n_seeds):
            for experiment in chosen:
                for dataset in self.datasets:
                    for spec in experiment.runs(self, dataset, seed):
                        # A record must not depend on which experiments were asked for.
                        for run in (*self._references(spec), spec):
                            listed.setdefault(run.digest, run)
        return list(listed.values())

    def _references(self, spec: RunSpec) -> list[RunSpec]:
        """Name the unconstrained run that a run is compared with."""
        reference = self.methods[spec.method].reference
        # Scores are not compared where rows were dropped from the training.
        if reference is None or "minority_share" in spec.settings:
            return []
        return [self.spec(reference, spec.dataset, spec.seed)]


def find_experiment(name: str) -> Experiment:
    """Give an experiment by its name."""
    if name not in EXPERIMENTS:
        raise InputError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def _all_lines(study: Study, dataset: str, seed: int) -> Iterable[RunSpec]:
    return [study.spec(key, dataset, seed) for key in study.series]


def _lines(*keys: str, only: Sequence[str] = ()) -> Callable[[Study, str, int], Iterable[RunSpec]]:
    """Name the runs of some lines; `only` on some tables."""

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
