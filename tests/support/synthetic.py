"""Small tables with a real difference between two groups, and settings that train in no time."""

from dataclasses import replace

import numpy as np
from paper.rivals import (
    AdversarialClassifier,
    GapRegularizedClassifier,
    ReductionClassifier,
    UnconstrainedClassifier,
)

from fairmatch import FTMClassifier, NeuralNetwork
from fairmatch.learning.reading import EncodedTable
from fairmatch.people.encoding import read_points
from fairmatch.people.groups import read_groups
from fairmatch.people.people import Labels, People
from fairmatch.people.weights import Weights

QUICK = {"hidden_sizes": (8,), "epochs": 2, "batch_size": 32, "random_state": 0}
PENALIZED = [
    FTMClassifier,
    GapRegularizedClassifier,
    ReductionClassifier,
    AdversarialClassifier,
]
NETWORKS = [*PENALIZED, UnconstrainedClassifier]


def people(n=120, seed=0, share=0.4):
    """Features that shift with the group, labels that follow them, and the groups."""
    generator = np.random.default_rng(seed)
    group = (generator.random(n) < share).astype(int)
    X = generator.normal(size=(n, 4))
    X[:, 0] += 1.2 * group
    X[:, 1] -= 0.6 * group
    y = (X[:, 0] + 0.5 * X[:, 2] + 0.8 * generator.normal(size=n) > 0.5).astype(int)
    return X, y, group


def rows_of(X, y, group, weights=None, apart=()):
    """People as a learner sees them: the table is its own encoding."""
    weight = None if weights is None else Weights(len(weights), weights)
    table = EncodedTable(X, read_points(X), len(X))
    labels = Labels(np.asarray(y, dtype=float), (0, 1))
    return People(replace(read_groups(group), apart=apart), table, labels, weight)


def made(family, first=None, **settings):
    """Make a model. What its constructor does not know goes into its network or its trees."""
    known = family._get_param_names()
    if first is not None and "transport" in known:
        first, settings["transport"] = None, first
    inner = {name: value for name, value in settings.items() if name not in known}
    settings = {name: value for name, value in settings.items() if name in known}
    if inner and hasattr(family, "_lightgbm"):
        settings["estimator"] = family._lightgbm(**{"n_jobs": 1, **inner})
    elif inner:
        settings["estimator"] = NeuralNetwork(**inner)
    return family(**settings) if first is None else family(first, **settings)
