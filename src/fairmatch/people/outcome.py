"""What a score is: a probability, a vector of class probabilities, or a number."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax

from fairmatch.exceptions import InputError, LabelError
from fairmatch.people.checks import (
    FloatArray,
    check_choice,
    check_length,
    check_probabilities,
    column_names,
    is_missing,
    plain_value,
    read_classes,
    read_column,
    read_finite,
    read_scores,
    refuse_masked,
    sorted_values,
)

Derivatives = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Loss:
    r"""A loss of margins, with the link that turns margins into predictions.

    A margin is the number that a learner adds up, such as log-odds. Links are canonical: the slope
    of the link is the second derivative of the loss.

    Notes
    -----
    The logistic loss is the cross-entropy of labels 0 and 1; the margin is the log-odds. With
    :math:`\sigma(z) = 1 / (1 + e^{-z})` the link is :math:`p = \sigma(z)`. The loss is
    :math:`-y \log p - (1 - y) \log(1 - p)`. Its derivatives are :math:`p - y` and
    :math:`p (1 - p)`.

    The squared loss is :math:`(z - y)^2 / 2`; the margin is the prediction. Its derivatives are
    :math:`z - y` and 1.

    The softmax loss is the cross-entropy of labels 0 to C - 1; there is one margin per class. The
    link is :math:`p_c = e^{z_c} / \sum_k e^{z_k}` and the loss :math:`-\log p_y`. Its derivatives
    by the margin of class c are :math:`p_c - 1[y = c]` and :math:`p_c (1 - p_c)`.

    Examples
    --------
    >>> LOGISTIC.values(np.array([0.0, 1.0]), np.array([0.0, 0.0])).round(4).tolist()
    [0.6931, 0.6931]
    >>> SQUARED.values(np.array([1.0]), np.array([3.0])).tolist()
    [2.0]
    >>> softmax_loss(3).values(np.array([2.0]), np.zeros((1, 3))).round(4).tolist()
    [1.0986]
    """

    name: str
    #: The predictions that belong to margins.
    link: Callable[[FloatArray], FloatArray] = field(compare=False)
    #: The margin of the best constant prediction, of labels and masses.
    start: Callable[[FloatArray, FloatArray], Any] = field(compare=False)
    #: The loss of every row, of labels and margins.
    values: Callable[[FloatArray, FloatArray], FloatArray] = field(compare=False)
    #: The first and second derivatives of every row's loss by its margin, of labels and margins.
    derivatives: Callable[[FloatArray, FloatArray], Derivatives] = field(compare=False)
    n_margins: int = 1  #: How many margins a row has.

    # A file holds the name of a loss and never its functions.
    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "n_margins": self.n_margins}

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = {"logistic": LOGISTIC, "squared": SQUARED}.get(state["name"])
        vars(self).update(vars(known or softmax_loss(state["n_margins"])))


def _log_odds(labels: FloatArray, mass: FloatArray) -> float:
    share = np.clip(np.average(labels, weights=mass), 1e-15, 1.0 - 1e-15)
    return float(np.log(share / (1.0 - share)))


def _logistic(labels: FloatArray, margins: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, (1.0 - 2.0 * labels) * margins))


def _logistic_derivatives(labels: FloatArray, margins: FloatArray) -> Derivatives:
    # This is LightGBM's own formula. With it, weight 0 is LightGBM's model to the last bit.
    signs = 2.0 * labels - 1.0
    with np.errstate(over="ignore"):  # an infinite odds has no gradient, as it should
        response = -signs / (1.0 + np.exp(signs * margins))
    return response, np.abs(response) * (1.0 - np.abs(response))


def _mean(labels: FloatArray, mass: FloatArray) -> float:
    return float(np.average(labels, weights=mass))


def _half_square(labels: FloatArray, margins: FloatArray) -> FloatArray:
    return np.asarray((margins - labels) ** 2 / 2.0)


def _square_derivatives(labels: FloatArray, margins: FloatArray) -> Derivatives:
    return margins - labels, np.ones_like(margins)


def _log_shares(labels: FloatArray, mass: FloatArray, n_classes: int) -> FloatArray:
    counts = np.bincount(labels.astype(np.intp), mass, minlength=n_classes)
    return np.asarray(np.log(np.clip(counts / mass.sum(), 1e-15, None)))


def _softmax(labels: FloatArray, margins: FloatArray) -> FloatArray:
    own = np.take_along_axis(margins, labels.astype(np.intp)[:, None], axis=1)[:, 0]
    return np.asarray(logsumexp(margins, axis=1) - own)


def _softmax_derivatives(labels: FloatArray, margins: FloatArray) -> Derivatives:
    chances = _chances(margins)
    first = chances.copy()
    first[np.arange(len(labels)), labels.astype(np.intp)] -= 1.0
    return first, chances * (1.0 - chances)


_chances = partial(softmax, axis=-1)
LOGISTIC = Loss("logistic", expit, _log_odds, _logistic, _logistic_derivatives)
SQUARED = Loss("squared", np.asarray, _mean, _half_square, _square_derivatives)


def softmax_loss(n_classes: int) -> Loss:
    """Return the cross-entropy of so many classes."""
    start = partial(_log_shares, n_classes=n_classes)
    return Loss("softmax", _chances, start, _softmax, _softmax_derivatives, n_classes)


@dataclass(frozen=True)
class Outcome:
    """What a score is, and what follows from it.

    Examples
    --------
    >>> PROBABILITY.read([0.2, 1]).tolist()
    [0.2, 1.0]
    >>> NUMBER.decides, NUMBER.loss.name
    (False, 'squared')
    """

    name: str  #: "probability", "classes" or "number".
    loss: Loss  #: The loss that compares a score with a label, with its link.
    #: Whether a score decides: a probability at or above a threshold is a selection, and a number
    #: selects nobody.
    decides: bool
    has_unit: bool  #: Whether scores are in units of the target, so that gaps have a unit too.
    #: Three or more classes, one for every column of the scores; empty for other outcomes.
    classes: tuple[Any, ...] = ()
    ordered: bool = False  #: Whether the classes are in order, from the lowest to the highest.
    #: Positions of the classes that are good for a person, if they are named.
    favourable: tuple[int, ...] = ()

    @property
    def several(self) -> bool:
        """Whether there are more than two classes, so that scores are vectors."""
        return bool(self.classes)

    def read(
        self, y_score: ArrayLike, *, name: str = "y_score", n_rows: int | None = None
    ) -> FloatArray:
        """Return scores as float64. Raise unless they are scores of this kind."""
        if self.several:
            scores = read_vectors(y_score, name=name)
            check_length(scores, n_rows, name)
            return scores
        if self.decides and not self.has_unit:
            return read_scores(y_score, name=name, n_rows=n_rows)
        return read_finite(y_score, name, n_rows)


def largest_class(scores: FloatArray) -> NDArray[np.intp]:
    """Return the class with the largest probability; ties go to the later class.

    Examples
    --------
    >>> import numpy as np
    >>> largest_class(np.array([[0.2, 0.4, 0.4], [0.5, 0.5, 0.0]])).tolist()
    [2, 1]
    """
    return np.asarray(scores.shape[1] - 1 - np.argmax(scores[:, ::-1], axis=1))


def read_vectors(y_score: ArrayLike, *, name: str = "y_score") -> FloatArray:
    """Read probabilities of two or more classes, one row per person, as float64."""
    refuse_masked(y_score, name)
    array = np.asarray(y_score)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "biuf" or not len(array):
        raise InputError(
            f"{name} must be an array of numbers with one row per person and one column per "
            f"class, got shape {array.shape} and dtype {array.dtype}. Pass probabilities.",
            parameter=name,
        )
    scores = array.astype(np.float64)
    sums = check_probabilities(scores, name)
    # Rows that sum to 1 up to rounding keep every bit.
    return np.asarray(scores / np.where(np.abs(sums - 1.0) > 1e-9, sums, 1.0)[:, None])


def is_vectors(y_score: Any) -> bool:
    """Return whether scores have one column for each of several classes."""
    shape = np.shape(y_score)
    return len(shape) == 2 and shape[1] > 1


def read_class_scores(
    y_score: Any, classes: Sequence[Any] | None = None, y_true: Any = None, favourable: Any = None
) -> tuple[FloatArray, Outcome]:
    """Return one column per class, and the outcome with the classes.

    Columns with names are put in the order of ``classes``. A single column holds predicted classes,
    which get the probability 1. Without ``classes`` they are the names of the columns, else the
    labels in sorted order, else the positions of the columns.

    Examples
    --------
    >>> scores, outcome = read_class_scores(["low", "high", "middle"], ["low", "middle", "high"])
    >>> scores.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    known = None if y_true is None else _values(y_true, "y_true")
    if is_vectors(y_score):
        scores, names = read_vectors(y_score), column_names(y_score)
        found, source = _column_classes(classes, names, known, scores.shape[1])
        if classes is not None and names is not None and len(found) == scores.shape[1]:
            scores = scores[:, _order_of_columns(names, found)]
    else:
        array, source = np.asarray(y_score), "y_score"
        if array.dtype.kind == "f" and not (array == np.floor(array)).all():
            raise InputError(
                "classes and favourable are for scores with one column per class, or for "
                "predicted classes, but y_score is one column of numbers. Leave them out, or "
                "pass all class probabilities.",
                parameter="favourable" if classes is None else "classes",
            )
        own = {*_values(y_score, "y_score"), *(known or ())}
        found = sorted_values(own) if classes is None else [*map(plain_value, classes)]
        codes = class_codes(y_score, found, n_rows=len(array), name="y_score")
        scores = np.eye(len(found))[codes.astype(np.intp)]
    if len(found) != scores.shape[1] or len(set(found)) < len(found):
        raise InputError(
            f"{source} must name {scores.shape[1]} different classes, one for every column of "
            f"y_score; got {found!r}.",
            parameter="classes",
        )
    strange = [own for own in known or () if own not in found]
    if strange:
        raise LabelError(
            f"y_true holds {strange[0]!r}, which is not one of the classes {found!r}. Pass "
            "classes=[...] with every class, in the order of the columns of y_score.",
            parameter="classes",
        )
    good = read_favourable(favourable, found)
    return scores, class_outcome(found, ordered=classes is not None, favourable=good)


def _values(array: Any, name: str) -> list[Any]:
    """Return the different values of labels, without missing ones."""
    labels = read_column(array, name)
    return [plain_value(own) for own in dict.fromkeys(labels[~is_missing(labels)].tolist())]


def _column_classes(
    classes: Sequence[Any] | None, names: list[Any] | None, known: list[Any] | None, n_classes: int
) -> tuple[list[Any], str]:
    """Return the classes of the columns, and the name of the argument that says so."""
    if classes is not None or names is not None:
        source, found = ("y_score", names) if classes is None else ("classes", classes)
        return [plain_value(own) for own in found or ()], source
    if known is not None and len(known) == n_classes:
        return sorted_values(known), "y_true"
    if known is not None and not all(own in range(n_classes) for own in known):
        raise LabelError(
            f"y_score has {n_classes} columns and y_true holds {len(known)} classes, so it is not "
            "known which column belongs to which class. Pass classes=[...] in the order of the "
            "columns.",
            parameter="classes",
        )
    return list(range(n_classes)), "y_score"


def _order_of_columns(names: list[Any], classes: list[Any]) -> list[int]:
    """Return the place of every class among the columns; names come before the order."""
    in_order = list(range(len(classes)))
    places = class_places(names, classes)
    if places is None and names != in_order:
        raise InputError(
            f"y_score has the columns {names!r}, and classes={classes!r} was given, so it is not "
            "known which column belongs to which class. Name the columns like the classes, or pass "
            "an array with the columns in the order of the classes.",
            parameter="classes",
        )
    return places or in_order


def class_places(names: Sequence[Any], classes: Sequence[Any]) -> list[int] | None:
    """Return the place of every class among columns that are named like the classes.

    A prefix that all names share, and differences in case, are ignored. Return None if no column is
    named like a class. Raise if only some columns are.

    Examples
    --------
    >>> class_places(["score_High", "score_Low"], ["Low", "High"])
    [1, 0]
    """
    columns, wanted = ([str(own).casefold() for own in given] for given in (names, classes))
    for start in {own.removesuffix(text) for own in columns[:1] for text in wanted}:
        if sorted(start + text for text in wanted) == sorted(columns):
            return [columns.index(start + text) for text in wanted]
    if any(re.search(rf"(^|\W|_){re.escape(text)}$", own) for own in columns for text in wanted):
        raise InputError(
            f"Some of the columns {list(names)!r} are named like the classes {list(classes)!r}, "
            "but not all. Name one column for each class.",
            parameter="classes",
        )
    return None


def read_favourable(favourable: Any, classes: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions of the classes that are good for a person; none if none is named."""
    if favourable is None:
        return ()
    is_list = isinstance(favourable, list | tuple | set | frozenset | np.ndarray)
    named = [plain_value(own) for own in favourable] if is_list else [favourable]
    strange = [own for own in named if own not in classes]
    if strange or not 0 < len(set(named)) < len(classes):
        raise InputError(
            f"favourable must name some of the classes {list(classes)!r}, and not all of them; got "
            f"{named!r}.",
            parameter="favourable",
        )
    return tuple(sorted(classes.index(own) for own in set(named)))


def class_outcome(
    classes: Sequence[Any], *, ordered: bool = False, favourable: tuple[int, ...] = ()
) -> Outcome:
    """Return the outcome of three or more classes.

    Examples
    --------
    >>> grades = class_outcome(["low", "middle", "high"], ordered=True)
    >>> grades.classes, grades.several, grades.loss.name
    (('low', 'middle', 'high'), True, 'softmax')
    """
    return Outcome(
        "classes", softmax_loss(len(classes)), True, False, tuple(classes), ordered, favourable
    )


def class_levels(scores: FloatArray) -> FloatArray:
    """Return the expected place of ordered classes, from 0 for the lowest to 1 for the highest.

    Examples
    --------
    >>> import numpy as np
    >>> class_levels(np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])).tolist()
    [0.5, 1.0]
    """
    return np.asarray(scores @ np.linspace(0.0, 1.0, scores.shape[1])).clip(0.0, 1.0)


def class_codes(y_true: Any, classes: Sequence[Any], *, n_rows: int, name: str) -> FloatArray:
    """Return the position of every label among the classes."""
    array = read_classes(y_true, name, n_rows)
    place = {own: at for at, own in enumerate(classes)}
    strange = next((label for label in array.tolist() if label not in place), None)
    if strange is not None:
        raise LabelError(
            f"{name} holds {strange!r}, which is not one of the classes {list(classes)!r}. Leave "
            "those rows out, or list every class.",
            parameter=name,
        )
    return np.array([place[label] for label in array.tolist()], dtype=np.float64)


PROBABILITY = Outcome("probability", LOGISTIC, decides=True, has_unit=False)
NUMBER = Outcome("number", SQUARED, decides=False, has_unit=True)
MARK = Outcome("mark", LOGISTIC, decides=True, has_unit=True)
"""Scores with a range of their own, such as marks, and a threshold. Only audits read them."""
OUTCOMES: dict[str, Outcome] = {outcome.name: outcome for outcome in (PROBABILITY, NUMBER)}


def read_outcome(value: Any, name: str = "outcome") -> Outcome:
    """Return the outcome with this name. Raise an error that lists the names if there is none."""
    if isinstance(value, Outcome):
        return value
    check_choice(name, value, OUTCOMES)
    return OUTCOMES[value]
