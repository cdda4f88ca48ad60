"""Explain the decisions of a model, one person at a time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fairmatch.auditing.audit import plain_model, predict_people, score_people
from fairmatch.auditing.counterparts import Explanation, Neighbourhood
from fairmatch.auditing.people import FAVOURED
from fairmatch.exceptions import InputError
from fairmatch.learning.reading import split_columns
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_length,
    check_number,
    read_column,
    read_numbers,
    read_scores,
)
from fairmatch.people.encoding import Table
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import is_vectors, read_class_scores
from fairmatch.people.people import People


class Explainer(Neighbourhood):
    """Explains the decisions of a model to people of one table.

    It scores and encodes the table once, so the second explanation is quick.

    Parameters
    ----------
    model, X, sensitive_features, plain, ids, threshold, favourable, outcome, pos_label
        The arguments of `explain`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [3.0], [1.6], [2.5], [3.5]])
    >>> scores = [0.2, 0.4, 0.9, 0.3, 0.6, 0.8]
    >>> explainer = Explainer(scores, X, sensitive_features=["a", "a", "a", "b", "b", "b"])
    >>> explainer.explain(1, n_nearest=1).nearest[0].id
    '3'
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        *,
        sensitive_features: Any = None,
        plain: Any = None,
        ids: Any = None,
        threshold: float = 0.5,
        favourable: str = "high",
        outcome: str | None = None,
        pos_label: Any = 1,
    ) -> None:
        check_number("threshold", threshold, "[0, 1]")
        check_choice("favourable", favourable, FAVOURED)
        features, sensitive_features = split_groups(model, X, sensitive_features, "explain")
        table = Table(features)
        groups = read_groups(sensitive_features, n_rows=len(table), unknown="unknown")
        is_number = hasattr(model, "predict") and is_regressor(model)
        plain = plain_model(model) if plain is None else plain
        names = None if ids is None else tuple(map(str, read_column(ids, "ids").tolist()))
        check_length(np.empty(len(table) if names is None else len(names)), len(table), "ids")
        given = X, sensitive_features, pos_label, is_number
        super().__init__(
            People(groups, table, ids=names),
            _scored(model, *given),
            plain=None if plain is None else _scored(plain, *given),
            threshold=None if is_number else float(threshold),
            high=favourable == "high",
            outcome=outcome or FAVOURED[favourable],
        )
        check_length(self.scores, len(table), "model")


def split_groups(model: Any, X: Any, sensitive_features: Any, caller: str) -> tuple[Any, Any]:
    """Return X without groups, and the groups: those given, or those that the model finds in X."""
    inside = getattr(model, "sensitive_column", None)
    if inside is not None:
        X, own = split_columns(X, inside)
        sensitive_features = own if sensitive_features is None else sensitive_features
    if sensitive_features is None:
        raise InputError(
            f"{caller} compares groups and needs the group of every row. Pass "
            "sensitive_features=, or a model with sensitive_column.",
            parameter="sensitive_features",
        )
    return X, sensitive_features


def _scored(
    model: Any, X: Any, sensitive_features: Any, pos_label: Any, is_number: bool
) -> FloatArray:
    """Return the scores of a model, or scores as they were given."""
    if not (hasattr(model, "predict") or hasattr(model, "predict_proba")):
        if is_vectors(model) and not is_number:
            scores, outcome = read_class_scores(model)
            names = list(outcome.classes)
            _refuse_several(names)
            return scores[:, names.index(pos_label) if pos_label in names else 1]
        return read_numbers(model, "plain") if is_number else read_scores(model)
    if is_number:
        return predict_people(model, X, sensitive_features)
    known = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
    _refuse_several(known)
    label = pos_label if pos_label in known else known[-1]
    return score_people(model, X, sensitive_features, label)


def _refuse_several(classes: list[Any]) -> None:
    """Raise if there are more than two classes: an explanation is about one score."""
    if len(classes) > 2:
        raise InputError(
            f"explain and {len(classes)} classes do not combine: it explains the decision by one "
            "score. Pass the probabilities of the class in question, such as "
            "model.predict_proba(X)[:, 0], as model.",
            parameter="model",
        )


def explain(
    model: Any,
    X: Any,
    *,
    rows: int | Sequence[int] | BoolArray,
    sensitive_features: Any = None,
    plain: Any = None,
    ids: Any = None,
    n_nearest: int = 3,
    prototype: int | None = None,
    threshold: float = 0.5,
    favourable: str = "high",
    outcome: str | None = None,
    pos_label: Hashable = 1,
) -> Explanation | list[Explanation]:
    r"""Explain decisions by the plain model's decision and by comparable people.

    Parameters
    ----------
    model : fitted estimator, or array of scores
        A model of two classes, or a regressor, which has no decisions. For several classes, pass
        the probabilities of one of them.
    X : table or array of shape (n_rows, n_columns)
        The people among whom counterparts are searched. A model does not store people.
    rows : int, sequence of int or mask of shape (n_rows,)
        Whom to explain, by row of X, counted from 0. A mask of booleans gives the rows in which it
        is True.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row, unless the model finds it in X.
    plain : fitted estimator or array of scores, optional
        The model without a fairness constraint. By default it is the model of weight 0 on the
        path that ``max_gap`` was chosen on, if there is one.
    ids : array-like of shape (n_rows,), optional
        Identifiers. By default they are row numbers.
    n_nearest : int, default=3
        How many of the nearest people of each other group to show.
    prototype : int, optional
        Show medians of this many nearest people, at least 10, instead of single people. Groups with
        fewer people are then not shown.
    threshold : float, default=0.5
        A score at or above the threshold is a selection.
    favourable : {"high", "low"}, default="high"
        With "low", people below the threshold are selected.
    outcome : str, optional
        Words for the favourable outcome, such as "hired".
    pos_label : default=1
        The label that a high score predicts. If the model does not know it, its last class is
        used.

    Returns
    -------
    Explanation or list of Explanation
        One explanation for a single row, or a list.

    Notes
    -----
    The distance is that of the audit: numbers are scaled to [0, 1], and two different categories
    are at squared distance 2. Columns that are a copy of the group are left out. The matched
    counterpart of a person i in a group with sampled people j is

    .. math:: \arg\min_j \; c_{ij} + \mu |f_i - f_j| - v_j,

    where :math:`c` is the squared distance, :math:`f` the score, :math:`\mu` a price so high that
    score gaps come first, and :math:`v` the optimal dual of the matching of up to 1,000 people of
    each group. To explain many people of one table, keep an `Explainer`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [3.0], [1.6], [2.5], [3.5]])
    >>> scores = [0.2, 0.4, 0.9, 0.3, 0.6, 0.8]
    >>> groups = ["a", "a", "a", "b", "b", "b"]
    >>> print(explain(scores, X, sensitive_features=groups, rows=1, n_nearest=1))
    Person 1 (group a): score 0.4, not selected.
    Nearest in group b: person 3, score 0.3, not selected; differs in x0 2 → 1.6.
    Matched in group b: person 4, score 0.6, selected; differs in x0 2 → 2.5.
    Nearest in group a with the other decision: person 2, score 0.9, selected; differs in x0 2 → 3.
    """
    explainer = Explainer(
        model,
        X,
        sensitive_features=sensitive_features,
        plain=plain,
        ids=ids,
        threshold=threshold,
        favourable=favourable,
        outcome=outcome,
        pos_label=pos_label,
    )
    if isinstance(rows, int | np.integer):
        return explainer.explain(int(rows), n_nearest=n_nearest, prototype=prototype)
    if (mask := np.asarray(rows)).dtype == np.bool_:
        check_length(mask, len(explainer.table), "rows")
        rows = np.flatnonzero(mask).tolist()
    return [explainer.explain(row, n_nearest=n_nearest, prototype=prototype) for row in rows]
