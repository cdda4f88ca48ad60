"""The cases of the study of groups: a table, its groups, a criterion, and the gaps asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairmatch.datasets import Dataset, load_acsincome, load_adult
from fairmatch.exceptions import InputError
from fairmatch.tables.groups import Groups, read_groups

# A group is compared by itself if about this many of its rows are test rows.
_LEAST_TEST_ROWS = 400
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Case:
    """A question that the study answers.

    Attributes
    ----------
    name, title : str
        The name in files, and the name on the page.
    load : callable
        Returns the dataset.
    criterion : str
        Fairness criterion of the learners and of the gap, such as "demographic_parity".
    levels : tuple of float
        The gaps at which accuracies are compared.
    largest : int or None
        How many of the largest groups are kept apart; None keeps all that have enough test rows.
        The others are pooled as "other".
    match_rows : int or None
        How many rows are matched; None matches all.
    """

    name: str
    title: str
    load: Callable[[], Dataset]
    criterion: str
    levels: tuple[float, ...]
    largest: int | None = None
    match_rows: int | None = None

    def groups(self, dataset: Dataset) -> Groups:
        """Return the groups of the table, with small ones pooled."""
        groups = read_groups(dataset.sensitive_features)
        least = int(_LEAST_TEST_ROWS / _TEST_SHARE)
        if self.largest is not None and groups.n_groups > self.largest:
            least = int(np.sort(groups.sizes())[-self.largest])
        return groups.pooled(least)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "adult-race",
            "Adult by race, demographic parity",
            lambda: load_adult(sensitive="race"),
            "demographic_parity",
            (0.03, 0.05, 0.08),
        ),
        Case(
            "adult-sex-race",
            "Adult by sex and race, demographic parity",
            lambda: load_adult(sensitive=["sex", "race"]),
            "demographic_parity",
            (0.03, 0.05, 0.08),
        ),
        Case(
            "adult-sex-odds",
            "Adult by sex, equalised odds (the larger of ΔTPR and ΔFPR)",
            load_adult,
            "equalized_odds",
            (0.03, 0.042),
        ),
        Case(
            "acsincome-sex",
            "ACSIncome by sex, demographic parity",
            load_acsincome,
            "demographic_parity",
            (0.02, 0.06),
            match_rows=50_000,
        ),
        Case(
            "acsincome-race",
            "ACSIncome by race (the five largest groups), demographic parity",
            lambda: load_acsincome(sensitive="race"),
            "demographic_parity",
            (0.02, 0.05),
            largest=5,
            match_rows=50_000,
        ),
    )
}


def find_case(name: str) -> Case:
    """Return the case with a name, or raise an error that lists the cases."""
    if name not in CASES:
        raise InputError(f"There is no case {name!r}. There are: {', '.join(CASES)}.")
    return CASES[name]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a case: features, labels and groups."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    group: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class CaseSplit:
    """A random split of a case. Every method is tuned on the same rows.

    Attributes
    ----------
    fit : Rows
        Rows to fit on, 64% of the table.
    tune : Rows
        Rows to choose a candidate on, 16% of the table.
    test : Rows
        Rows to report on, 20% of the table.
    """

    fit: Rows
    tune: Rows
    test: Rows

    @classmethod
    def draw(cls, case: Case, seed: int) -> "CaseSplit":
        """Return the split that a seed draws."""
        from fairmatch.learning.candidates import categorised  # the page needs no learner

        dataset = case.load()
        table = categorised(dataset.X)  # learners of other libraries need categories
        names = case.groups(dataset).names()
        labels = dataset.y.to_numpy().astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(labels))
        n_test = round(_TEST_SHARE * len(order))
        n_tune = round(_TEST_SHARE * (len(order) - n_test))
        parts = np.split(order, [n_test, n_test + n_tune])
        test, tune, fit = (
            Rows(table.iloc[rows].reset_index(drop=True), labels[rows], names[rows])
            for rows in map(np.sort, parts)
        )
        return cls(fit, tune, test)
