"""One run: train a model, and find the nearest fair matching of the test rows."""

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
    """Train the model of a spec, and return the record of its matchings.

    Parameters
    ----------
    spec : RunSpec
        A spec that `fairmatch.experiments.matchings.cases.matched_cases` makes.
    load : callable
        Returns the table.
    method : Method
        The method that trains the model.

    Returns
    -------
    Record
        A curve of one model. Accuracy and ΔDP are of all test rows. ΔWDP, the position of the
        nearest fair matching and the score gap of the nearest people are of a sample. The position
        is 0 at the nearest matching and 1 at a random one; it is measured without slack and with
        the slack of the spec.
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
    """Return the indices of at most `most` rows of each group, drawn at random."""
    generator = np.random.default_rng([seed, 1500])
    drawn = [
        generator.permutation(np.flatnonzero(groups == code))[:most] for code in np.unique(groups)
    ]
    return np.sort(np.concatenate(drawn))


def matching_facts(
    scores: FloatArray, groups: IndexArray, features: FloatArray, slack: float
) -> dict[str, float]:
    """Compute ΔWDP, the position of the nearest fair matching, and the nearest people's gap."""
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
    """Compute the mean squared distance between random people of the two groups."""
    first, second = (features[groups == code] for code in np.unique(groups))
    spread = float(first.var(axis=0).sum() + second.var(axis=0).sum())
    return spread + float(((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum())
