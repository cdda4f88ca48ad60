"""What is run: specs of single runs, and the studies that consist of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairmatch.datasets import PAPER_DATASETS, Dataset, load_dataset
from fairmatch.exceptions import InputError
from paper.methods import METHODS, NAMED_SUBSETS, Method

if TYPE_CHECKING:
    from paper.records import Record, RecordStore


@dataclass(frozen=True)
class Profile:
    """How much is run."""

    name: str  #: "full" or "quick".
    datasets: tuple[str, ...]  #: Names of the tables.
    n_seeds: int  #: Number of random splits of each table.
    #: Length of the training, for every kind of schedule.
    lengths: Mapping[str, Mapping[str, float]]
    thinning: int  #: The study trains every `thinning`-th of a method's fairness weights.
    label_weights: tuple[float, ...]  #: The values of the label weight α that are compared.
    #: The fairness weights at which label weights are compared. They enclose the levels of
    #: interest.
    label_weight_grid: tuple[float, ...]


# Forty epochs at three times the paper's learning rate take the place of its 200: see the
# experiment `schedule`, and docs/evidence/reproduction.md.
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
class Series:
    """A line of a table or figure: a method with its settings."""

    #: The name that programs use, and the name that people read.
    key: str
    label: str
    method: str  #: Name of the method.
    #: Settings that differ from the method's own.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Name of the line in the paper's tables; None if the paper does not have it.
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
        Series("trees-smoothing", "trees: match smoothing (ours)", "trees-smoothing"),
        Series(
            "trees-smoothing-marginal",
            "trees: match smoothing, features alone (ours)",
            "trees-smoothing",
            {"score_weight": 0},
        ),
        Series("trees-alignment", "trees: quantile alignment", "trees-alignment"),
        Series("trees-thresholds", "trees: thresholds by group", "trees-thresholds"),
    )
}
"""All lines, in the order of the tables."""

PAPER_RIVALS = ("reduction", "reg", "adv")
_MAIN = ("unfair", *PAPER_RIVALS, "ftm-batch", "ftm")


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, which trains a method's whole fairness curve on one random split.

    Two specs with the same content have the same `digest`. It identifies the run, which is never
    computed twice.

    Examples
    --------
    >>> spec = RunSpec("german", "reg", 0, {"weights": [1.0, 2.0], "epochs": 5})
    >>> spec.digest == RunSpec("german", "reg", 0, {"epochs": 5, "weights": [1, 2]}).digest
    True
    >>> spec.name
    'german-reg-seed0-04b789c1b7'
    """

    #: Names of the table and of the method in the study.
    dataset: str
    method: str
    seed: int  #: Seed of the split, and of everything random in the training.
    #: All other settings that the result depends on, as plain JSON values.
    settings: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The first ten hexadecimal digits of the content's SHA-256."""
        # 1 and 1.0 mean the same, so they are written alike.
        content = json.loads(json.dumps(vars(self), allow_nan=False), parse_int=float)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """Name of the run for people; it ends in the digest."""
        return f"{self.dataset}-{self.method}-seed{self.seed}-{self.digest}"


Loader = Callable[[], Dataset]


@dataclass(frozen=True)
class Experiment:
    """A part of the paper's experiment section: its title, and its runs on a table and a split."""

    title: str
    runs: Callable[[Study, str, int], Iterable[RunSpec]]


@dataclass(frozen=True, eq=False)
class Study:
    """A profile, with the tables and methods that a researcher has added."""

    profile: Profile  #: How much is run.
    datasets: tuple[str, ...]  #: Names of the tables in the study.
    n_seeds: int  #: Number of random splits of each table.
    #: Key of a line to the line.
    series: Mapping[str, Series] = field(default_factory=lambda: SERIES)
    #: Name of a method to the method.
    methods: Mapping[str, Method] = field(
        default_factory=lambda: {
            name: method for name, method in METHODS.items() if method.schedule != "tuned"
        }
    )
    #: Name of a table to the function that loads it.
    loaders: Mapping[str, Loader] = field(
        default_factory=lambda: {name: partial(load_dataset, name) for name in PAPER_DATASETS}
    )
    #: Name of a researcher's own table to the settings that identify its content.
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, profile: Profile, *, datasets: Sequence[str] | None = None, n_seeds: int | None = None
    ) -> Study:
        """Return the paper's study; tables and number of splits are by default the profile's."""
        study = cls(profile, profile.datasets, profile.n_seeds if n_seeds is None else n_seeds)
        return study if datasets is None else study.only(datasets)

    def only(self, datasets: Sequence[str]) -> Study:
        """Return the study restricted to some of its tables."""
        check_names("dataset", datasets, self.loaders)
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
        """Return the key of the line with a label weight, and the settings that its runs need."""
        # The main lines have the label weights 0 and 100, and need no further settings.
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

        By default these are all experiments, with all methods.
        """
        check_names("method", methods or (), self.methods)
        check_names("experiment", names or (), EXPERIMENTS)
        chosen = [EXPERIMENTS[name] for name in names or EXPERIMENTS]
        listed: dict[str, RunSpec] = {}
        for seed in range(self.n_seeds):
            for experiment in chosen:
                for dataset in self.datasets:
                    for spec in experiment.runs(self, dataset, seed):
                        if methods and spec.method not in methods:
                            continue
                        # A record must not depend on which experiments the user asks for.
                        for run in filter(None, (self.reference_of(spec), spec)):
                            listed.setdefault(run.digest, run)
        return list(listed.values())

    def reference_of(self, spec: RunSpec) -> RunSpec | None:
        """Return the unconstrained run that a run is compared with, if there is one."""
        reference = self.methods[spec.method].reference
        # Scores are not compared where training rows were dropped.
        if reference is None or "minority_share" in spec.settings:
            return None
        return self.spec(reference, spec.dataset, spec.seed)


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise unless all names are known."""
    for name in names:
        if name not in (listed := list(known)):
            raise InputError(f"There is no {what} {name!r}; there are {', '.join(listed)}.")


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
    return [study.spec(key, dataset, seed, minority_share=MINORITY_SHARE) for key in _MAIN]


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


EXPERIMENTS: dict[str, Experiment] = {
    "tradeoff": Experiment("Accuracy against fairness", _all_lines),
    "subsets": Experiment("Gaps in random subsets", _lines(*_MAIN)),
    "variables": Experiment(
        "Gaps in subsets by a variable", _lines(*_MAIN, only=tuple(NAMED_SUBSETS))
    ),
    "joint": Experiment(
        "Marginal and joint map on Adult",
        _lines("ftm-batch", "ftm-batch-joint", "ftm", "ftm-joint", only=("adult",)),
    ),
    "consistency": Experiment("Consistency", _lines(*_MAIN)),
    "ranks": Experiment("Rank agreement with the unfair model", _lines(*_MAIN)),
    "flips": Experiment("Undesirable flips", _lines(*_MAIN)),
    "representation": Experiment(
        "Fair representations", _lines("laftr", "sipm", "repair", "ftm-batch", "ftm")
    ),
    "imbalance": Experiment("Training rows 5 : 95", _imbalance),
    "label-weight": Experiment("Label weight, transport cost and accuracy", _label_weights),
    "schedule": Experiment("Length of the training", _schedules),
}
"""The paper's experiment section, by the names on the command line."""
