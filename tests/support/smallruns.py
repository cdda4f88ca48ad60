"""A study that takes no time, and problems small enough to check by hand."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
from paper.methods import Problem
from paper.specs import QUICK, Study

from fairmatch.datasets import Dataset

TINY = replace(
    QUICK,
    datasets=("german",),
    lengths={
        "network": {"epochs": 1, "learning_rate": 0.005, "decay": 0.6},
        "trees": {"rounds": 2},
        "own": {},
    },
    thinning=20,
)


def tiny_study(n_seeds=1):
    """German, one epoch, one or two weights."""
    return Study.of(TINY, n_seeds=n_seeds)


def small_table(n_rows=200, seed=0, name="small", **columns):
    """Make a table whose labels follow a feature that follows the group."""
    generator = np.random.default_rng(seed)
    group = np.arange(n_rows) % 2
    skill = generator.normal(size=n_rows) + group
    labels = (skill + generator.normal(size=n_rows) > 0.5).astype(int)
    frame = pd.DataFrame({"skill": skill, "noise": generator.normal(size=n_rows), **columns})
    sex = pd.Series(np.array(["f", "m"])[group], name="sex")
    return Dataset(
        name, frame, pd.Series(labels, name="y"), sex, ("f", "m"), "m", "y is 1", 32, "Made up."
    )


def small_problem(**keywords):
    """Split a small table."""
    return Problem.draw(small_table(**keywords), 0)


def content(store):
    """What the records of a store say, by name; how long the runs took is left to chance."""
    found = {record.spec.name: record.as_json() for record in store}
    for record in found.values():
        del record["seconds"]
    return found


def loans(n_rows=200, **columns):
    """Two groups, two labels, a number, a truth value and a category."""
    dataset = small_table(n_rows)
    return pd.DataFrame(
        {
            "id": [f"person {k}" for k in range(n_rows)],
            "income": dataset.X["skill"],
            "owner": np.arange(n_rows) % 3 == 0,
            "job": np.array(["cook", "nurse", "clerk"])[np.arange(n_rows) // 3 % 3],
            "sex": dataset.sensitive_features,
            "repaid": np.array(["no", "yes"])[dataset.y],
            **columns,
        }
    )


def wait_for(happened, seconds=240.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)
