"""Small tables with a real difference between two groups, and settings that train in no time."""

import numpy as np
from paper.rivals import (
    AdversarialClassifier,
    GapRegularizedClassifier,
    ReductionClassifier,
    UnconstrainedClassifier,
)

from fairmatch import FTMClassifier, NeuralNetwork


def network(**settings):
    """A small network that trains in no time, unless the settings say otherwise."""
    return NeuralNetwork(**{"hidden_sizes": (8,), "epochs": 2, "batch_size": 32, **settings})


QUICK = {"estimator": network(), "random_state": 0}
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
