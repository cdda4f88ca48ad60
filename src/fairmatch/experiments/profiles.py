"""How much is run: which tables, how many splits, and how long each model trains."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairmatch.datasets import PAPER_DATASETS


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
