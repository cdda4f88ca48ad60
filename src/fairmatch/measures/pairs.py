"""The gap between every two groups, and which of them is better off."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch.exceptions import CouplingError
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import read_by_label
from fairmatch.measures.odds import check_aggregate
from fairmatch.measures.table import Measure, Settings, read_measure
from fairmatch.tables.arrays import FloatArray, read_scores


@dataclass(frozen=True)
class PairGap:
    """The gap between two groups.

    Attributes
    ----------
    first, second : group label
        The two groups.
    value : float
        Their gap.
    better_off : group label, or None
        The group that is accepted more often, or the one with the higher mean score if scores are
        compared. It is None if the two are equal. A high score counts as good for a person.
    label : bool, optional
        The class whose people are compared, for the matched gap within a class: True is Y = 1,
        False is Y = 0. Otherwise it is None.

    Examples
    --------
    >>> from fairmatch.measures import gaps_by_pair
    >>> gaps_by_pair(None, [1, 0, 1, 1], sensitive_features=list("aabb"))
    [PairGap(first='a', second='b', value=0.5, better_off='b', label=None)]
    """

    first: Any
    second: Any
    value: float
    better_off: Any
    label: bool | None = None


def gaps_by_pair(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    measure: str | Measure = "demographic_parity_gap",
    sample_weight: ArrayLike | None = None,
    coupling: Coupling | None = None,
    threshold: float = 0.5,
    bins: int | None = None,
    pos_label: Any = 1,
    agg: str = "mean",
) -> list[PairGap]:
    """Compute the gap between every two groups.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,), or None
        Labels of two classes. Gaps of error rates need them.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. The combinations of several attributes are the groups.
    measure : str or Measure, default="demographic_parity_gap"
        A measure, or the name of one in `fairmatch.measures.MEASURES`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. It cannot be combined with a coupling, which carries its own weights.
    coupling : Coupling, optional
        A matching of these rows. The matched gap needs it; other measures do not take it.
    threshold : float, default=0.5
        A score at or above the threshold is accepted.
    bins : int, optional
        Number of equal intervals for the total variation. None computes it exactly.
    pos_label : default=1
        The label that counts as positive.
    agg : {"mean", "worst_case"}, default="mean"
        Whether ``equalized_odds_gap`` is the mean of a pair's two gaps, or the larger one.

    Returns
    -------
    list of PairGap
        One for every two groups, in the order of their labels. For the matched gap there is one
        for every part of the coupling. The measure itself is the largest of these gaps. Only the
        mean over two classes can be larger, because its two gaps may belong to different pairs.

    Examples
    --------
    >>> for pair in gaps_by_pair(None, [1, 0, 1, 1, 0, 0], sensitive_features=list("aabbcc")):
    ...     print(pair.first, pair.second, pair.value, pair.better_off)
    a b 0.5 b
    a c 0.5 a
    b c 1.0 b
    """
    asked = read_measure(measure)
    check_aggregate(agg)
    if asked.needs_coupling:
        check_coupling(coupling, optional=False)
        assert coupling is not None
        if sample_weight is not None:
            raise CouplingError(
                "sample_weight was given together with a coupling, which carries its own mass. "
                "Pass the weights to the matcher instead."
            )
        return _of_parts(read_scores(y_score), sensitive_features, coupling)
    if coupling is not None:
        raise CouplingError(
            f"coupling was given, but {asked.name} does not compare matched people. Leave it out, "
            "or ask for measure='matched_parity_gap'."
        )
    given = y_true, y_score, sensitive_features, sample_weight, pos_label
    by_label = read_by_label(asked.labels, *given)
    settings = Settings(threshold, bins)
    found = list(by_label.values())
    levels = np.sum([asked.statistic(groups, settings) for groups in found], axis=0)
    names = found[0].labels
    return [
        PairGap(
            names[a],
            names[b],
            _reduced([asked.of_pair(groups, a, b, settings) for groups in found], agg),
            _better(names[a], names[b], float(levels[a] - levels[b])),
        )
        for a, b in combinations(range(len(names)), 2)
    ]


def _reduced(values: list[float], agg: str) -> float:
    return max(values) if agg == "worst_case" else sum(values) / len(values)


def _better(first: Any, second: Any, difference: float) -> Any:
    return None if difference == 0.0 else (first if difference > 0.0 else second)


def _of_parts(
    scores: FloatArray, sensitive_features: ArrayLike, coupling: Coupling
) -> list[PairGap]:
    coupling.check_rows(len(scores))
    coupling.read_groups(sensitive_features)
    pairs = []
    for part in coupling.parts:
        difference = float((scores[part.source_index] - scores[part.target_index]) @ part.mass)
        first, second = part.groups
        better = _better(first, second, difference)
        pairs.append(PairGap(first, second, part.gap(scores), better, part.label))
    return pairs
