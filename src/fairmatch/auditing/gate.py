"""Bounds on the gaps of an audit, for the command line and for pytest."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from fairmatch.exceptions import GroupError, InputError

# The command line reads the modes before it loads what an audit needs.
if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Estimate, Gap

RATIO = "selection_ratio"
"""Name of the ratio. A ratio may be too small, and a gap may be too large."""

MODES = {
    "shown": "fails if the whole confidence interval is beyond the bound",
    "estimate": "fails if the estimate is beyond the bound",
    "upper": "fails if any part of the confidence interval is beyond the bound",
}
"""The values of ``gate`` and ``--gate``, and when each fails."""


@dataclass(frozen=True)
class Gate:
    """An upper bound on a gap, or a lower bound on the ratio of selection rates.

    With several classes, the gaps over all classes are checked if there are any.
    """

    name: str
    bound: float

    def broken(self, audit: Audit, mode: str) -> str | None:
        """Return in words how an audit breaks the bound, or None where it does not.

        Raise if the fact is not stated, or nobody or everybody is selected.
        """
        from fairmatch.measures import MEASURES

        is_ratio = self.name == RATIO
        own = {} if audit.classes is None else {gap.name: gap for gap in audit.classes.gaps}
        decides = is_ratio or (self.name not in own and MEASURES[self.name].needs_decisions)
        if decides and audit.undecided:
            raise GroupError(
                f"{self.name} of {audit.model_name} cannot pass a gate. {audit.undecided} Choose "
                "another threshold, or bound a gap of scores (mean_parity_gap)."
            )
        fact: Estimate | Gap = (
            audit.selection_ratio if is_ratio else own.get(self.name) or audit.gap(self.name)
        )
        value, words = fact.value, self.name
        if mode != "estimate":
            lower = (mode == "shown") != is_ratio
            value = fact.low if lower else fact.high
            words = f"the {'lower' if lower else 'upper'} limit of {self.name}"
        if value is None or isnan(value):
            why = fact.refused or f"The data do not give {words}."
            raise GroupError(f"{self.name} of {audit.model_name} is not stated. {why}")
        if value < self.bound if is_ratio else value > self.bound:
            side, sign = ("Below", "<") if is_ratio else ("Above", ">")
            shown = f"{value:.4f} {sign} {self.bound:g}"
            return f"{side} the bound: {words} of {audit.model_name}, {shown}"
        return None


def assert_gap(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    max_gap: float = 0.05,
    measure: str = "demographic_parity_gap",
    gate: str = "shown",
    **settings: Any,
) -> None:
    """Raise an AssertionError if the gap of a classifier exceeds a bound on these people.

    Parameters
    ----------
    model : fitted classifier
        The model, with ``predict_proba``.
    X : table or array of shape (n_rows, n_columns)
        Held-out people.
    y : array-like of shape (n_rows,), optional
        Their labels, for gaps that need them.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Their groups. A model with ``sensitive_column`` finds them in X.
    max_gap : float, default=0.05
        The bound.
    measure : str, default="demographic_parity_gap"
        The gap.
    gate : {"shown", "estimate", "upper"}, default="shown"
        When the bound is broken, as with ``fairmatch audit --gate``: "shown" if the lower
        confidence limit exceeds it, "estimate" if the estimate does, and "upper" if the upper limit
        does.
    **settings
        Further settings of `fairmatch.audit`, such as ``threshold`` or ``confidence``. A model of
        several classes needs ``favourable``, and its gaps are those over all classes.

    Raises
    ------
    AssertionError
        If the gap exceeds the bound, or cannot be stated for these people.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0]] * 40, [0, 1] * 40
    >>> model = LogisticRegression().fit(X, y)
    >>> assert_gap(model, X, y, sensitive_features=["f"] * 40 + ["m"] * 40)
    """
    import numpy as np

    from fairmatch.auditing.audit import audit, class_table, score_people
    from fairmatch.auditing.explain import split_groups
    from fairmatch.people.checks import check_choice, check_number

    check_number("max_gap", max_gap, "[0, inf)")
    check_choice("gate", gate, MODES)
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"assert_gap is for classifiers, but {type(model).__name__} has no predict_proba. "
            "Audit its predictions with fairmatch.audit.",
            parameter="model",
        )
    scores = class_table(model, X, sensitive_features, named=False)  # of several classes
    if scores is model:
        known = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
        label = settings.setdefault("pos_label", known[-1])
        scores = score_people(model, X, sensitive_features, label)
    _, sensitive_features = split_groups(model, X, sensitive_features, "assert_gap")
    settings = {"model_name": type(model).__name__, **settings}
    found = audit(scores, sensitive_features=sensitive_features, y_true=y, **settings)
    gaps = {gap.name: gap for gap in (found.classes or found).gaps}
    if measure not in gaps:
        raise InputError(
            f"measure={measure!r} is not among the gaps of these people: {', '.join(gaps)}. "
            "Pass y for gaps of error rates.",
            parameter="measure",
        )
    try:
        broken = Gate(measure, max_gap).broken(found, gate)
    except GroupError as error:
        raise AssertionError(f"{error}") from error
    if broken is not None:
        gap = gaps[measure]
        limits = "" if gap.low is None else f" [{gap.low:.3f}, {gap.high:.3f}]"
        raise AssertionError(
            f"{measure} of {found.model_name} is {gap.value:.3f}{limits} on {found.n_rows:,} "
            f"people, and must be at most {max_gap:g}. {broken}. Gate {gate!r}: {MODES[gate]}."
        )
