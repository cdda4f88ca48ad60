"""Train one model and match the test rows by its scores, as kindly as its gap allows."""

import time
from collections.abc import Callable

import numpy as np

from fairmatch.datasets import Dataset
from fairmatch.experiments.runs.methods import Method
from fairmatch.experiments.runs.problem import Problem
from fairmatch.experiments.runs.records import Record
from fairmatch.experiments.runs.runner import versions
from fairmatch.experiments.runs.spec import RunSpec
from fairmatch.experiments.runs.training import fit_curve
from fairmatch.matching.coupling import IndexArray
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.matching.nearest import nearest_fair_matching
from fairmatch.measures import demographic_parity_gap, wasserstein_parity_gap
from fairmatch.tables.arrays import FloatArray

_DIGITS = 5


def run_case(spec: RunSpec, load: Callable[[], Dataset], method: Method) -> Record:
    """Train the model of a spec and measure its matchings.

    Parameters
    ----------
    spec : RunSpec
        As `fairmatch.experiments.matchings.cases` makes it.
    load : callable
        Returns the table.
    method : Method
        How to train.

    Returns
    -------
    Record
        A curve of one model: accuracy and gaps of all test rows, and, of a sample of them, where
        the nearest fair matching lies between the nearest matching (0) and a random one (1), at no
        slack and at the spec's, and the score gap of the nearest people.
    """
    start = time.process_time()
    problem = Problem.draw(load(), spec.seed)
    (scorer,) = fit_curve(method, problem, spec.settings, spec.seed).scorers
    split = problem.split
    scores = np.clip(scorer(split.group_test), 0.0, 1.0)
    rows = sample_rows(split.group_test, spec.settings["matched_rows"], spec.seed)
    found = {
        "accuracy": float(np.mean((scores >= 0.5) == split.y_test)),
        "acceptance_rate": float(np.mean(scores >= 0.5)),
        "demographic_parity_gap": demographic_parity_gap(
            None, scores, sensitive_features=split.group_test
        ),
        **matching_facts(
            scores[rows], split.group_test[rows], split.X_test[rows], spec.settings["slack"]
        ),
    }
    curve = {name: [round(value, _DIGITS)] for name, value in found.items()}
    curve = {"weight": [float(spec.settings["weights"][0])], **curve}
    return Record(spec, curve, round(time.process_time() - start, 1), versions())


def sample_rows(groups: IndexArray, most: int, seed: int) -> IndexArray:
    """Return the positions of rows of each group, drawn at random, at most a given number."""
    generator = np.random.default_rng([seed, 1500])
    drawn = [
        generator.permutation(np.flatnonzero(groups == code))[:most] for code in np.unique(groups)
    ]
    return np.sort(np.concatenate(drawn))


def matching_facts(
    scores: FloatArray, groups: IndexArray, features: FloatArray, slack: float
) -> dict[str, float]:
    """Compute where the model's kindest matching lies, and how it scores the nearest people."""
    nearest = OptimalTransportMatcher().match(features, groups)
    least, most = nearest.transport_cost(features), random_cost(features, groups)
    found = {
        "wasserstein_parity_gap": wasserstein_parity_gap(None, scores, sensitive_features=groups),
        "nearest people's gap": nearest.gap(scores),
    }
    for name, allowed in (("position, no slack", 0.0), ("position", slack)):
        fair = nearest_fair_matching(scores, groups, features, slack=allowed)
        found[name] = (fair.transport_cost(features) - least) / (most - least)
    return found


def random_cost(features: FloatArray, groups: IndexArray) -> float:
    """Compute the mean squared distance of two people of different groups drawn at random."""
    first, second = (features[groups == code] for code in np.unique(groups))
    spread = float(first.var(axis=0).sum() + second.var(axis=0).sum())
    return spread + float(((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum())
