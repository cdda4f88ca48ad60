"""What a run is: a dataset, a split and a method."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.datasets import PAPER_DATASETS, Dataset, Split, paper_split
from fairmatch.exceptions import InputError
from fairmatch.people.checks import BoolArray


@dataclass(frozen=True)
class Profile:
    """How much is run.

    Attributes
    ----------
    name : str
        "full" or "quick".
    datasets : tuple of str
        Names of the tables.
    n_seeds : int
        Number of random splits of each table.
    lengths : mapping
        Length of the training, for every kind of schedule.
    thinning : int
        The study trains every `thinning`-th of a method's fairness weights.
    label_weights : tuple of float
        The values of the label weight α that are compared.
    label_weight_grid : tuple of float
        The fairness weights at which label weights are compared. They enclose the levels of
        interest.
    """

    name: str
    datasets: tuple[str, ...]
    n_seeds: int
    lengths: Mapping[str, Mapping[str, float]]
    thinning: int
    label_weights: tuple[float, ...]
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
    """A line of a table or figure: a method with its settings.

    Attributes
    ----------
    key, label : str
        The name that programs use, and the name that people read.
    method : str
        Name of the method.
    settings : mapping
        Settings that differ from the method's own.
    paper : str or None
        Name of the line in the paper's tables; None if the paper does not have it.
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


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, which trains a method's whole fairness curve on one random split.

    Two specs with the same content have the same `digest`. It identifies the run, which is never
    computed twice.

    Attributes
    ----------
    dataset, method : str
        Names of the table and of the method in the study.
    seed : int
        Seed of the split, and of everything random in the training.
    settings : mapping
        All other settings that the result depends on, as plain JSON values.

    Examples
    --------
    >>> spec = RunSpec("german", "reg", 0, {"weights": [1.0, 2.0], "epochs": 5})
    >>> spec.digest == RunSpec("german", "reg", 0, {"epochs": 5, "weights": [1, 2]}).digest
    True
    >>> spec.name
    'german-reg-seed0-04b789c1b7'
    """

    dataset: str
    method: str
    seed: int
    settings: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The first ten hexadecimal digits of the content's SHA-256."""
        text = json.dumps(_canonical(self.as_json()), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """Name of the run for people; it ends in the digest."""
        return f"{self.dataset}-{self.method}-seed{self.seed}-{self.digest}"

    def as_json(self) -> dict[str, Any]:
        """Return the content as plain values."""
        return {
            "dataset": self.dataset,
            "method": self.method,
            "seed": self.seed,
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunSpec":
        """Return the spec that `as_json` wrote."""
        try:
            return cls(
                str(content["dataset"]),
                str(content["method"]),
                int(content["seed"]),
                dict(content["settings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not the spec of a run: {error!r}.") from error


def _canonical(value: Any) -> Any:
    """Return a value in which 1 and 1.0 are written alike, because they mean the same."""
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


# How the paper halves two of the tables (Section 5.2.2): a column, the names of both halves, and
# the value of the first half. None halves at the median of the test rows; the median is high.
NAMED_SUBSETS: dict[str, tuple[str, str, str, str | None]] = {
    "german": ("age", "high age", "low age", None),
    "dutch": ("marital_status", "married", "not married", "married"),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """One split of a table into training and test rows.

    Attributes
    ----------
    dataset : Dataset
        The table.
    split : Split
        The rows of the table as numbers.
    """

    dataset: Dataset
    split: Split

    @classmethod
    def draw(cls, dataset: Dataset, seed: int, minority_share: float | None = None) -> "Problem":
        """Return the split of a table that a seed draws.

        Parameters
        ----------
        dataset : Dataset
            The table.
        seed : int
            Seed of the split.
        minority_share : float, optional
            Share of S = 0 among the training rows. Rows of S = 0 are dropped at random to reach it.
        """
        split = paper_split(dataset, seed)
        if minority_share is not None:
            split = _thinned(split, minority_share, seed)
        return cls(dataset, split)

    @property
    def raw_train(self) -> pd.DataFrame:
        """The training rows as they are in the table."""
        return self.dataset.X.iloc[self.split.train_index]

    @property
    def raw_test(self) -> pd.DataFrame:
        """The test rows as they are in the table."""
        return self.dataset.X.iloc[self.split.test_index]

    @property
    def favoured_code(self) -> int:
        """Code of the favoured group."""
        return self.dataset.groups.index(self.dataset.favoured_group)

    def named_subsets(self) -> dict[str, BoolArray]:
        """Return the halves of the test rows that the paper compares; none for other tables."""
        if self.dataset.name not in NAMED_SUBSETS:
            return {}
        column, first, second, value = NAMED_SUBSETS[self.dataset.name]
        values = self.raw_test[column].to_numpy()
        inside = values >= np.median(values) if value is None else values == value
        if not 0 < inside.sum() < len(inside):
            raise InputError(f"All test rows are alike in {column!r}: they cannot be halved.")
        return {first: inside, second: ~inside}


def _thinned(split: Split, minority_share: float, seed: int) -> Split:
    if not 0.0 < minority_share < 1.0:
        raise InputError(f"minority_share must lie in (0, 1), got {minority_share}.")
    rows = np.flatnonzero(split.group_train == 0)
    others = int((split.group_train == 1).sum())
    wanted = round(others * minority_share / (1.0 - minority_share))
    if not 1 <= wanted <= len(rows):
        raise InputError(
            f"A minority_share of {minority_share:g} needs {wanted} training rows of S = 0, and "
            f"there are {len(rows)}. Choose another share."
        )
    kept = np.random.default_rng([seed, 595]).choice(rows, size=wanted, replace=False)
    keep = np.sort(np.concatenate([kept, np.flatnonzero(split.group_train == 1)]))
    training: dict[str, Any] = {
        name: getattr(split, name)[keep]
        for name in (
            "X_train",
            "y_train",
            "group_train",
            "sensitive_features_train",
            "train_index",
        )
    }
    return replace(split, **training)
