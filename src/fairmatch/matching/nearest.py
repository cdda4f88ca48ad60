"""The nearest of the fairest matchings: the most favourable reading of a model."""

from typing import Any

from numpy.typing import ArrayLike

from fairmatch.exceptions import InputError
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.frontier import Frontier
from fairmatch.matching.given import check_columns
from fairmatch.matching.parts import PartRows, couple_parts
from fairmatch.matching.quantiles import ScoredParts
from fairmatch.matching.solver import EXACT, Transport
from fairmatch.tables.criterion import Criterion
from fairmatch.tables.located import read_points
from fairmatch.tables.parameters import check_number
from fairmatch.tables.points import Points


def nearest_fair_matching(
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: Any,
    *,
    slack: float = 0.0,
    y_true: ArrayLike | None = None,
    criterion: str | Criterion = "demographic_parity",
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = 1,
    tolerance: float = EXACT,
) -> Coupling:
    r"""Return the nearest matching among those with the least possible mean score gap.

    Many matchings have the least possible mean score gap, which is the Wasserstein parity gap. This
    function returns one with the least transport cost: the most favourable reading of a model.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or 0/1 decisions.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : array-like of shape (n_rows, n_features), table or Points
        The features, which decide who is near to whom. Numbers are used as they are. A table with
        categories is encoded by `TableEncoder`: numbers are scaled to [0, 1], and two different
        levels are at squared distance 2.
    slack : float, default=0.0
        How far the mean score gap of every part may exceed the least possible one. With infinity,
        the matching has the least transport cost of all, as that of `OptimalTransportMatcher`.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. They are needed if the criterion compares people of the same class.
    criterion : str or Criterion, default="demographic_parity"
        Whom to match: everybody ("demographic_parity"), people with a positive label
        ("equal_opportunity"), or each class by itself ("equalized_odds").
    reference : a group label, optional
        The group with which every other group is matched. By default it is the largest.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    pos_label : default=1
        The label that counts as positive.
    tolerance : float, default=1e-9
        Relative duality gap that must be proven. A gap of 1e-9 counts as exact.

    Returns
    -------
    Coupling
        A coupling from every other group to the reference group. The certificate of a part holds
        its transport cost. It also holds a lower bound on the cost of every matching whose mean
        score gap stays within the same limit.

    Raises
    ------
    SolverError
        If the tolerance cannot be proven.

    Notes
    -----
    For each part, with :math:`W_1` the Wasserstein distance of its two groups' scores,

    .. math:: \min_Q \mathbb{E}_Q \|x_i - x_j\|^2 \quad\text{such that}\quad
              \mathbb{E}_Q |f_i - f_j| \le W_1 + \text{slack} .

    Without slack this is optimal transport on the allowed pairs. From the first group to the
    second, a pair may cross a score level t upwards only where :math:`F_0(t) > F_1(t)`, and
    downwards only where :math:`F_0(t) < F_1(t)`. It may not cross t where they are equal. With
    slack, the score gap has a price. The two optimal matchings at the critical price are mixed to
    meet the bound. docs/explain/theory.md has the proof.

    Examples
    --------
    Equal quantiles match 0 with 1/2 and 1/2 with 1. Keeping 1/2 in place has the same mean gap,
    and here it is nearer:

    >>> from fairmatch import fair_matching, nearest_fair_matching
    >>> scores, groups, X = [0.0, 0.5, 0.5, 1.0], [0, 0, 1, 1], [[0.0], [5.0], [5.0], [0.0]]
    >>> equal, near = fair_matching(scores, groups), nearest_fair_matching(scores, groups, X)
    >>> equal.gap(scores), near.gap(scores)
    (0.5, 0.5)
    >>> equal.transport_cost(X), near.transport_cost(X)
    (25.0, 0.0)
    """
    check_number("slack", slack, "[0, inf]")
    given, features = read_scored(
        "nearest_fair_matching",
        y_score,
        sensitive_features,
        X,
        tolerance=tolerance,
        y_true=y_true,
        criterion=criterion,
        reference=reference,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )

    def couple(part: PartRows) -> Coupling:
        first, second = part.in_order
        found = part_frontier(given, part, features, tolerance).at_slack(float(slack))
        pairs = first[found.source], second[found.target], found.mass
        return part.coupling(*pairs, given.groups, certificate=found.certificate)

    return couple_parts(given.parts, couple)


def read_scored(
    caller: str,
    y_score: ArrayLike,
    sensitive_features: ArrayLike,
    X: Any,
    *,
    tolerance: float,
    **more: Any,
) -> tuple[ScoredParts, Points]:
    """Return the scores by part, and the features. Raise if something is wrong with them.

    Parameters
    ----------
    caller : str
        Name of the calling function, for errors.
    y_score, sensitive_features, X, tolerance, **more
        The arguments of `nearest_fair_matching`, as the caller passed them.
    """
    check_number("tolerance", tolerance, "(0, 1)")
    if X is None:
        raise InputError(
            f"{caller} got X=None, and it needs the features to compute distances. Pass X, or use "
            "fair_matching, which needs only the scores."
        )
    given = ScoredParts.read(y_score, sensitive_features, **more)
    features = read_points(X, n_rows=len(given.scores))
    check_columns(features, caller)
    return given, features


def part_frontier(
    given: ScoredParts, part: PartRows, features: Points, tolerance: float
) -> Frontier:
    """Return the frontier of one part, with the groups in the order of `PartRows.in_order`."""
    rows = part.in_order
    first, second = (features[r] for r in rows)
    weights = given.weights
    mass = (None, None) if weights is None else tuple(weights[r] / weights[r].sum() for r in rows)
    scores = given.scores[rows[0]], given.scores[rows[1]]
    return Frontier(Transport(first, second, *mass, scores=scores), tolerance)
