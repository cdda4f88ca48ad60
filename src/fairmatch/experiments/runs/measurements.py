"""Measurements of a model that the tables may need, taken when it is trained."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from fairmatch.experiments.runs.methods import Scorer
from fairmatch.experiments.runs.problem import Problem
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.minibatches import minibatch_transport_cost
from fairmatch.measures import (
    consistency,
    gap_table,
    random_subset_gaps,
    rank_agreement,
    undesirable_flips,
)
from fairmatch.tables.arrays import BoolArray, FloatArray

N_SUBSETS = 1000
N_BATCHES, BATCH_SIZE = 100, 1024

_DIGITS = 5
_GAPS = (
    *("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"),
    *("true_positive_gap", "false_positive_gap", "equalized_odds_gap"),
)


def measure_test(
    scorer: Scorer, problem: Problem, reference: FloatArray | None = None
) -> dict[str, Any]:
    """Return the measurements of a model on the test rows.

    Parameters
    ----------
    scorer : callable
        Takes the groups of the test rows and returns their scores.
    problem : Problem
        The split.
    reference : array of shape (n_test,), optional
        Scores of the unconstrained model, for rank agreement and flips.

    Returns
    -------
    dict
        Name to a number or a list of numbers, ready for JSON. A number that is not defined is None.
    """
    split, groups = problem.split, problem.split.group_test
    scores = np.clip(scorer(groups), 0.0, 1.0)
    flipped = np.clip(scorer(1 - groups), 0.0, 1.0)
    gaps = gap_table(split.y_test, scores, sensitive_features=groups)
    found: dict[str, Any] = {
        "accuracy": np.mean((scores >= 0.5) == split.y_test),
        "acceptance_rate": np.mean(scores >= 0.5),
        **{name: gaps[name] for name in _GAPS},
        "consistency": consistency(scores, flipped),
        "transport_cost": _transport_cost(scores, problem),
        **_half_space_facts(scores, problem),
    }
    for name, rows in problem.named_subsets().items():
        inside = gap_table(None, scores[rows], sensitive_features=groups[rows])
        found |= {f"{name}: {gap}": inside[gap] for gap in _GAPS[:3]}
    if reference is not None:
        found |= _against_reference(scores, reference, groups, problem.favoured_code)
    return {name: _plain(value) for name, value in found.items()}


def measure_training(
    scores: FloatArray, problem: Problem, coupling: Coupling | None
) -> dict[str, Any]:
    """Return the measurements of a model on its training rows.

    Parameters
    ----------
    scores : array of shape (n_train,)
        Scores of the training rows.
    problem : Problem
        The split.
    coupling : Coupling or None
        A matching of the training rows, for the matched gap.
    """
    groups, labels = problem.split.group_train, problem.split.y_train
    scores = np.clip(scores, 0.0, 1.0)
    gaps = gap_table(None, scores, sensitive_features=groups, coupling=coupling)
    wanted = ("demographic_parity_gap", "mean_parity_gap", "wasserstein_parity_gap")
    found = {"accuracy": np.mean((scores >= 0.5) == labels), **{n: gaps[n] for n in wanted}}
    if coupling is not None:
        found["matched_parity_gap"] = gaps["matched_parity_gap"]
    return {f"training: {name}": _plain(value) for name, value in found.items()}


def _transport_cost(scores: FloatArray, problem: Problem) -> float:
    """Return the cost of the fair matching over mini-batches, as the paper estimates it.

    The mini-batches are smaller where a group is.
    """
    groups = problem.split.group_test
    size = min(BATCH_SIZE, int(np.bincount(groups).min()))
    estimate = minibatch_transport_cost(
        scores, groups, problem.split.X_test, batch_size=size, n_batches=N_BATCHES, random_state=0
    )
    return estimate.mean


def _half_space_facts(scores: FloatArray, problem: Problem) -> dict[str, Any]:
    """Return the gaps in random half-spaces as a box plot shows them, with its outliers."""
    gaps = random_subset_gaps(
        None,
        scores,
        sensitive_features=problem.split.group_test,
        X=problem.split.X_test,
        n_subsets=N_SUBSETS,
        random_state=0,  # the same half-spaces for every model of every method
    )
    gaps = gaps[np.isfinite(gaps)]
    low, median, high = np.quantile(gaps, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside: BoolArray = (gaps >= low - reach) & (gaps <= high + reach)
    return {
        "half-spaces: n": len(gaps),
        "half-spaces: mean": gaps.mean(),
        "half-spaces: std": gaps.std(ddof=1),
        "half-spaces: box": [gaps[inside].min(), low, median, high, gaps[inside].max()],
        "half-spaces: largest": gaps.max(),
        "half-spaces: outliers": np.sort(gaps[~inside]).round(3),
    }


def _against_reference(
    scores: FloatArray, reference: FloatArray, groups: Any, favoured: int
) -> dict[str, Any]:
    agreement = rank_agreement(reference, scores, sensitive_features=groups)
    flips = undesirable_flips(reference, scores, sensitive_features=groups, privileged=favoured)
    found: dict[str, Any] = {}
    for code in (0, 1):
        found[f"rank agreement: S={code}"] = agreement[code]
        found[f"flips: S={code}"] = flips.tables[code].ravel()
        found[f"undesirable flips: S={code}"] = flips.undesirable[code]
    return found


def _plain(value: Any) -> Any:
    """Return a value rounded for JSON, with None for NaN."""
    if isinstance(value, list | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, int | np.integer):
        return int(value)
    return round(float(value), _DIGITS) if np.isfinite(value) else None


def pack_scores(scores: FloatArray) -> str:
    """Return scores as text, two bytes each, for comparison with other runs.

    Examples
    --------
    >>> import numpy as np
    >>> np.abs(unpack_scores(pack_scores(np.array([0.0, 0.25, 1.0]))) - [0, 0.25, 1]).max() < 1e-5
    np.True_
    """
    return b64encode(np.round(scores * 65535.0).astype("<u2").tobytes()).decode()


def unpack_scores(text: str) -> FloatArray:
    """Return the scores that `pack_scores` packed."""
    return np.frombuffer(b64decode(text), dtype="<u2") / 65535.0
