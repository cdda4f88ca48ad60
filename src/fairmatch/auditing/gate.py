"""A gap as a test: for pytest, before a model is released."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairmatch.auditing.audit import audit, score_people
from fairmatch.exceptions import InputError
from fairmatch.learning.reading import split_columns
from fairmatch.people.checks import check_number


def assert_gap(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    max_gap: float = 0.05,
    measure: str = "demographic_parity_gap",
    upper: bool = False,
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
    upper : bool, default=False
        Whether the upper confidence limit must keep the bound, rather than the measured gap.
    **settings
        Further settings of `fairmatch.audit`, such as ``threshold`` or ``confidence``.

    Raises
    ------
    AssertionError
        If the gap exceeds the bound, or cannot be stated for these people.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = [[0.0]] * 80, [0, 1] * 40
    >>> model = DummyClassifier().fit(X, y)
    >>> assert_gap(model, X, y, sensitive_features=["f"] * 40 + ["m"] * 40)
    """
    check_number("max_gap", max_gap, "[0, inf)")
    label = np.asarray(model.classes_).tolist()[-1] if hasattr(model, "classes_") else 1
    label = settings.setdefault("pos_label", label)
    scores = score_people(model, X, sensitive_features, label)
    inside = getattr(model, "sensitive_column", None)
    if sensitive_features is None and inside is not None:
        sensitive_features = split_columns(X, inside)[1]
    if sensitive_features is None:
        raise InputError(
            "assert_gap compares groups and needs the group of every row. Pass "
            "sensitive_features=, or a model with sensitive_column.",
            parameter="sensitive_features",
        )
    settings = {"model_name": type(model).__name__, **settings}
    found = audit(scores, sensitive_features=sensitive_features, y_true=y, **settings)
    gaps = {gap.name: gap for gap in found.gaps}
    if measure not in gaps:
        raise InputError(
            f"measure={measure!r} is not among the gaps of these people: {', '.join(gaps)}. "
            "Pass y for gaps of error rates.",
            parameter="measure",
        )
    gap = gaps[measure]
    if gap.value is None:
        raise AssertionError(f"{measure} of {found.model_name} cannot be stated. {gap.refused}")
    judged = gap.high if upper and gap.high is not None else gap.value
    if judged > max_gap:
        limits = "" if gap.low is None else f" [{gap.low:.3f}, {gap.high:.3f}]"
        what = "its upper confidence limit" if upper else "it"
        raise AssertionError(
            f"{measure} of {found.model_name} is {gap.value:.3f}{limits} on {found.n_rows:,} "
            f"people, and {what} must be at most {max_gap:g}."
        )
