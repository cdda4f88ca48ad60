"""Monitoring the gap of a deployed model, with people in batches and any number of looks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, logsumexp, xlog1py, xlogy

from fairmatch.exceptions import GroupError, InputError, LabelError, ModelFileError
from fairmatch.measures.intervals import joined
from fairmatch.measures.registry import Measure, of_averages
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_choice,
    check_count,
    check_length,
    check_number,
    is_missing,
    plain_value,
    read_column,
    read_scores,
)
from fairmatch.people.files import write_whole
from fairmatch.people.groups import attribute_columns, listed, read_codes, value_name
from fairmatch.people.outcome import is_vectors

# The shares of the capital that are bet. Small ones find small gaps, large ones find large gaps
# quickly. The capital is divided among them, and large ones get more of it.
_BETS = np.geomspace(0.01, 0.7, 12)
_SHARES = np.sqrt(_BETS) / np.sqrt(_BETS).sum()
# So many people of a group may wait for a partner. If more wait, several are compared at once.
_QUEUE = 256
_VERSION = 1
# The search for a limit: so many steps, each with so many parts.
_STEPS, _PARTS = 5, np.arange(1.0, 65.0)[:, None] / 64.0


def read_watched(measure: str) -> Measure:
    """Return a measure that can be monitored: a gap of decisions or of mean scores."""
    known = of_averages(decides=True) | of_averages(decides=False)
    check_choice("measure", measure, known)
    return known[measure]


@dataclass(frozen=True)
class GapState:
    """What a monitor knows after an update.

    Examples
    --------
    >>> GapState(10, 10, 0.1, 0.0, 0.8, 1.2, False).alarm
    False
    """

    n_people: int  #: People seen so far, in known groups.
    #: People whom the measure compares: those with a label of the class, or everybody.
    n_compared: int
    #: The estimated gap: the largest over pairs of groups. None while a group has nobody.
    value: float | None
    #: Limits of the confidence sequence, which contains the gap at all times simultaneously, with
    #: the monitor's confidence. With ``window`` it is an ordinary interval that ignores repeated
    #: looks.
    low: float
    high: float
    #: Evidence against "the gap is at most max_gap". The alarm sounds at ``1 / (1 - confidence)``,
    #: or at ``window``.
    evidence: float
    alarm: bool  #: Whether the gap has been shown to exceed the bound, now or before.
    period: str | None = None  #: Name of the update, given by the caller.
    n_rows: int = 0  #: Rows of the update, with people of other groups and of none.


_SETTINGS = "max_gap", "measure", "groups", "confidence", "threshold", "pos_label", "window"
_ARRAYS = "sums", "sizes", "capital"
# A decision or a score; and an array, as its values in a row, with None for -inf, and its shape.
SavedValue: TypeAlias = bool | Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
SavedArray: TypeAlias = tuple[list[float | None], tuple[int, ...]]


class SavedMonitor(msgspec.Struct, tag_field="kind", tag="fairmatch.GapMonitor"):
    """What a file holds of a monitor."""

    version: int
    max_gap: float
    measure: str
    groups: tuple[Any, ...]
    confidence: float
    threshold: float
    pos_label: Any
    window: int | None
    n_unknown: int
    negative: Any
    waiting: dict[str, tuple[int, float]]
    open: list[list[Annotated[list[list[SavedValue]], msgspec.Meta(min_length=2, max_length=2)]]]
    sums: SavedArray
    sizes: SavedArray
    capital: SavedArray
    history: list[GapState]


class GapMonitor:
    r"""Monitor the gap of a deployed model, and raise an alarm when it is shown to exceed a bound.

    Parameters
    ----------
    max_gap : float, default=0.05
        The bound.
    measure : str, default="demographic_parity_gap"
        The gap to monitor: "demographic_parity_gap", "mean_parity_gap", "true_positive_gap",
        "false_positive_gap" or "equalized_odds_gap".
    groups : sequence of labels
        The groups. People of other groups, or without one, are counted and compared with nobody.
    confidence : float, default=0.95
        If the gap never exceeds the bound, the probability of an alarm is at most one minus this,
        however often you look.
    threshold : float, default=0.5
        A score at or above the threshold is a selection.
    pos_label : default=1
        The label that counts as positive.
    window : int, optional
        With a window the monitor forgets: the estimate uses the last one to two windows of people,
        and the average time to a false alarm is at least this many people. The confidence then no
        longer holds for all times simultaneously.

    Attributes
    ----------
    state : GapState
        What is known now.
    history : list of GapState
        The state after every update.

    Notes
    -----
    The alarm is a bet (Chugg, Cortes-Gomez, Wilder and Ramdas, "Auditing fairness by betting",
    2023). People of two groups are compared in the order in which they come. If one group is much
    larger, the mean of several of its people is compared with one person of the other. Let
    :math:`D_t` be the difference and :math:`\varepsilon` the bound. The capital

    .. math:: K_t = \prod_{i \le t} \left(1 + \lambda (D_i - \varepsilon)\right)

    grows beyond :math:`1 / \alpha` with probability at most :math:`\alpha` if the mean of
    :math:`D` is at most :math:`\varepsilon`. The evidence is the mean of the capitals of several
    :math:`\lambda`, weighted by :math:`\sqrt\lambda`, of both directions and of all pairs of
    groups. For equalised odds, which is the mean of two gaps, the alarm sounds when the lower limit
    exceeds the bound.

    The limits come from one confidence sequence per group, at a level of
    :math:`1 - \alpha / K`: all rates :math:`p` with
    :math:`\int q^{S} (1 - q)^{n - S} d\pi(q) < \frac{K}{\alpha} p^{S} (1 - p)^{n - S}`, where
    :math:`S` is the sum of the :math:`n` decisions or scores, and :math:`\pi` is the Beta(1/2, 1/2)
    distribution.

    The monitor stores only sums and capitals, and decisions that wait for a partner or for their
    label.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> monitor = GapMonitor(max_gap=0.05, groups=["f", "m"])
    >>> for day in range(5):
    ...     sex = generator.choice(["f", "m"], 400)
    ...     hired = generator.random(400) < np.where(sex == "f", 0.3, 0.5)
    ...     state = monitor.update(hired, sex)
    >>> state.n_people, state.alarm, state.low > 0.05
    (2000, True, True)
    """

    def __init__(
        self,
        max_gap: float = 0.05,
        *,
        groups: Sequence[Hashable],
        measure: str = "demographic_parity_gap",
        confidence: float = 0.95,
        threshold: float = 0.5,
        pos_label: Any = 1,
        window: int | None = None,
    ) -> None:
        check_number("max_gap", max_gap, "[0, 1)")
        check_number("confidence", confidence, "[0.5, 1)")
        check_number("threshold", threshold, "[0, 1]")
        check_count("window", window, 2, optional=True)
        self._asked = read_watched(measure)
        labels = tuple(plain_value(label) for label in groups)
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise GroupError(
                f"groups must name at least two different groups, got {listed(labels)}.",
                parameter="groups",
            )
        self.max_gap, self.measure, self.groups = float(max_gap), measure, labels
        self.confidence, self.threshold = float(confidence), float(threshold)
        self.pos_label, self.window = plain_value(pos_label), window
        self.n_unknown = 0
        self.history: list[GapState] = []
        self._classes = self._asked.labels
        self._pairs = list(combinations(range(len(labels)), 2))
        shape = len(self._classes), len(labels)
        # Sums and numbers of people; with a window, those of the last full one and of this one.
        self._sums = np.zeros((2, *shape))
        self._sizes = np.zeros((2, *shape))
        # People of each side of a pair who have no partner yet, by class, pair and side.
        empty: NDArray[Any] = np.empty(
            0, dtype=np.bool_ if self._asked.needs_decisions else np.float64
        )
        self._open = [[[empty, empty] for _ in self._pairs] for _ in self._classes]
        # Logarithm of the capital, by class, pair, direction and bet.
        start = 0.0 if window is None else -np.inf
        self._capital = np.full((shape[0], len(self._pairs), 2, len(_BETS)), start)
        self._waiting: dict[str, tuple[int, float]] = {}
        self._negative: Any = None

    def __repr__(self) -> str:
        state = self.state
        gap = "nothing yet" if state.value is None else f"{state.value:.3f}"
        alarm = ", ALARM" if state.alarm else ""
        told = f"{gap}, {state.n_people} people{alarm}"
        return f"<GapMonitor of {self.measure} <= {self.max_gap:g}: {told}>"

    @property
    def state(self) -> GapState:
        """The current state."""
        return self.history[-1] if self.history else GapState(0, 0, None, 0.0, 1.0, 1.0, False)

    @property
    def n_waiting(self) -> int:
        """People whose label has not arrived yet."""
        return len(self._waiting)

    def is_waiting(self, ids: ArrayLike) -> BoolArray:
        """Return whether each identifier is that of a person whose label has not arrived yet.

        Parameters
        ----------
        ids : array-like of shape (n_people,)
            Identifiers.
        """
        return np.array([str(name) in self._waiting for name in np.asarray(ids).tolist()], bool)

    def update(
        self,
        scores: ArrayLike,
        sensitive_features: Any,
        y_true: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        period: str | None = None,
    ) -> GapState:
        """Add people, in the order in which they came, and return the current state.

        Parameters
        ----------
        scores : array-like of shape (n_people,)
            Scores in [0, 1], or 0/1 decisions.
        sensitive_features : array-like of shape (n_people,) or (n_people, n_attributes)
            Group of every person. Combinations of several attributes are written "f, Black".
        y_true : array-like of shape (n_people,), optional
            Labels, for measures that need them. With ``ids``, labels may be missing and be passed
            to `add_labels` later.
        ids : array-like of shape (n_people,), optional
            Identifiers, all different, and none that already waits for a label.
        period : str, optional
            Name of this update in the history, such as a date.
        """
        if is_vectors(scores):
            raise InputError(
                f"GapMonitor and {np.shape(scores)[1]} columns of class probabilities do not "
                "combine. Monitor one class against the rest: pass its decisions, 0 and 1.",
                parameter="scores",
            )
        values: NDArray[Any] = read_scores(scores, name="scores")
        codes = self._codes(sensitive_features, len(values))
        if self._asked.needs_decisions:
            values = values >= self.threshold
        labelled, positive = np.ones(len(values), dtype=np.bool_), None
        names: list[str] = []
        if self._classes != (None,):
            if y_true is None and ids is None:
                raise InputError(
                    f"{self.measure} compares people with the same label. Pass y_true, or pass ids "
                    "and call add_labels when the labels are known.",
                    parameter="y_true",
                )
            names = [] if ids is None else self._names(ids, len(values), waiting=False)
            if y_true is None:
                labelled[:] = False
            else:
                labels, missing = self._labels(y_true, len(values), optional=bool(names))
                labelled, positive = ~missing, labels[~missing] == self.pos_label
        self.n_unknown += int(np.count_nonzero(codes < 0))
        for row in np.flatnonzero(~labelled).tolist():
            self._waiting[names[row]] = int(codes[row]), float(values[row])
        if not labelled.any():
            return self._note(period, n_rows=len(codes))
        if not labelled.all():
            values, codes = values[labelled], codes[labelled]
        return self._take_in(values, codes, positive, period, n_rows=len(labelled))

    def add_labels(
        self, ids: ArrayLike, y_true: ArrayLike, *, period: str | None = None
    ) -> GapState:
        """Add labels of people who were passed to `update` without one.

        Parameters
        ----------
        ids : array-like of shape (n_people,)
            Identifiers that were passed to `update`. Others raise an error.
        y_true : array-like of shape (n_people,)
            Their labels.
        period : str, optional
            Name of this update in the history.

        Notes
        -----
        The confidence holds if the time at which a label arrives does not depend on the decision.
        """
        names = self._names(ids, None, waiting=True)
        labels, _ = self._labels(y_true, len(names), optional=False)
        taken = [self._waiting.pop(name) for name in names]
        codes = np.array([code for code, _ in taken], dtype=np.intp)
        values = np.array([value for _, value in taken], dtype=self._open[0][0][0].dtype)
        return self._take_in(values, codes, labels == self.pos_label, period, n_rows=len(codes))

    def _names(self, ids: ArrayLike, n_rows: int | None, *, waiting: bool) -> list[str]:
        """Return identifiers as text; raise unless each is there once, and all wait or none."""
        column = read_column(ids, "ids")
        check_length(column, n_rows, "ids")
        names = [str(name) for name in column.tolist()]
        wrong = [name for name in names if (name in self._waiting) != waiting]
        if is_missing(column).any():
            what = "some are missing"
        elif wrong:
            how = "is not waiting for a label" if waiting else "already waits for a label"
            what = f"{wrong[0]!r} {how}"
        elif len(set(names)) < len(names):
            what = f"{Counter(names).most_common(1)[0][0]!r} is repeated"
        else:
            return names
        told = "Pass ids of update" if waiting else "Pass new ids, and pass labels to add_labels"
        raise InputError(f"ids cannot be used: {what}. {told}, each once.", parameter="ids")

    def _labels(
        self, y_true: ArrayLike, n_rows: int, *, optional: bool
    ) -> tuple[NDArray[Any], BoolArray]:
        """Return labels, and where they are missing; raise if they are not of the two classes.

        A batch may hold one class only, so the negative label is the first that is seen.
        """
        labels = read_column(y_true, "y_true")
        check_length(labels, n_rows, "y_true")
        missing = is_missing(labels)
        if missing.any() and not optional:
            raise LabelError(
                f"y_true has {int(missing.sum())} missing labels. Leave those rows out, or pass "
                "ids to update, so that the people wait for their label.",
                parameter="y_true",
            )
        known = labels[~missing]
        negative = pd.unique(known[known != self.pos_label]).tolist()
        found = ([] if self._negative is None else [self._negative]) + negative
        strange = [label for label in found if label != found[0]]
        if strange:
            raise LabelError(
                f"y_true must hold two classes: {self.pos_label!r}, which is positive, and one "
                f"other. It has {found[0]!r} and {strange[0]!r}. Correct the labels, or name "
                "the positive one.",
                parameter="y_true",
            )
        self._negative = found[0] if found else None
        return labels, missing

    def _codes(self, sensitive_features: Any, n_rows: int) -> NDArray[np.int32]:
        codes, names = _factorise(sensitive_features)
        places = {label: code for code, label in enumerate(self.groups)}
        known = [*(places.get(plain_value(name), -1) for name in names), -1]
        own: NDArray[np.int32] = np.array(known, dtype=np.int32)[codes]
        n_known = int(np.count_nonzero(own >= 0))
        if n_rows and not n_known and (codes >= 0).all():
            raise GroupError(
                f"sensitive_features holds none of the groups {listed(self.groups)}; the first "
                f"value is {plain_value(names[codes[0]])!r}. Correct groups=, or pass another "
                "column.",
                parameter="sensitive_features",
            )
        check_length(own, n_rows, "sensitive_features")
        return own

    def _take_in(
        self,
        values: NDArray[Any],
        codes: NDArray[Any],
        positive: BoolArray | None,
        period: str | None,
        n_rows: int,
    ) -> GapState:
        count = np.count_nonzero if self._asked.needs_decisions else np.sum
        for place, label in enumerate(self._classes):
            groups = range(len(self.groups))
            inside = codes if label is None else np.where(positive == label, codes, -1)
            by_group = [values[np.flatnonzero(inside == code)] for code in groups]
            self._sums[1, place] += [count(own) for own in by_group]
            self._sizes[1, place] += [len(own) for own in by_group]
            for at, (first, second) in enumerate(self._pairs):
                self._bet(place, at, by_group[first], by_group[second])
        if self.window is not None and self._sizes[1].sum() >= self.window:
            self._sums[0], self._sizes[0] = self._sums[1], self._sizes[1]
            self._sums[1], self._sizes[1] = 0.0, 0.0
        return self._note(period, n_new=int(np.count_nonzero(codes >= 0)), n_rows=n_rows)

    def _bet(self, place: int, at: int, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Compare the people of two groups in their order, and let the capitals grow or shrink."""
        waiting = self._open[place][at]
        sides = [np.concatenate(own) for own in zip(waiting, (first, second), strict=True)]
        n_pairs = min(map(len, sides))
        if n_pairs == 0:
            waiting[:] = sides
            return
        means = []
        for side, values in enumerate(sides):
            step = 1 if len(values) - n_pairs <= _QUEUE else len(values) // n_pairs
            taken = values[: step * n_pairs]
            means.append(taken if step == 1 else taken.reshape(n_pairs, step).mean(axis=1))
            waiting[side] = values[step * n_pairs :]
        differences = np.subtract(*means, dtype=np.float64)
        counts = np.ones(n_pairs)
        if self.window is None:  # the order does not matter, and decisions have few differences
            differences, numbers = np.unique(differences, return_counts=True)
            counts = numbers.astype(np.float64)
        bets = _BETS / (1.0 + self.max_gap)
        for side, sign in enumerate((1.0, -1.0)):
            growth = np.log1p((sign * differences - self.max_gap)[:, None] * bets)
            if self.window is None:
                self._capital[place, at, side] += counts @ growth
                continue
            # Shiryaev and Roberts: a new capital of 1 starts with every comparison.
            total_growth = np.cumsum(growth, axis=0)
            started = np.vstack([np.zeros(len(bets)), total_growth[:-1]])
            before = np.logaddexp(self._capital[place, at, side], 0.0)
            starts = (
                np.logaddexp(before, logsumexp(-started[1:], axis=0)) if n_pairs > 1 else before
            )
            self._capital[place, at, side] = total_growth[-1] + starts

    def _note(self, period: str | None, n_new: int = 0, n_rows: int = 0) -> GapState:
        """Add the present state to the history."""
        sums, sizes = self._sums.sum(axis=0), self._sizes.sum(axis=0)
        low, high = self._limits(sums, sizes)
        gaps = None
        if sizes.all():
            rates = sums / sizes
            apart = [max(abs(r[a] - r[b]) for a, b in self._pairs) for r in rates]
            gaps = float(joined(apart, self._asked.agg))
        shares = _SHARES * len(_BETS) / self._capital.size
        evidence = float((np.exp(np.minimum(self._capital, 700.0)) * shares).sum())
        wanted = 1.0 / (1.0 - self.confidence) if self.window is None else float(self.window)
        # The mean of two gaps may keep a bound that one of them breaks.
        shown = low > self.max_gap if len(self._classes) > 1 else evidence >= wanted
        before = self.state
        state = GapState(
            before.n_people + n_new,
            int(sizes.sum()),
            gaps,
            low,
            high,
            evidence,
            bool(shown or before.alarm),
            period,
            n_rows,
        )
        self.history.append(state)
        return state

    def _limits(self, sums: FloatArray, sizes: FloatArray) -> tuple[float, float]:
        """Return the limits of the gap, from limits of every group."""
        error = (1.0 - self.confidence) / sums.size
        lows, highs = rate_limits(sums.ravel(), sizes.ravel(), error)
        lows, highs = lows.reshape(sums.shape), highs.reshape(sums.shape)
        least, most = [], []
        for low, high in zip(lows, highs, strict=True):
            least.append(max(max(low[a] - high[b], low[b] - high[a], 0.0) for a, b in self._pairs))
            most.append(max(max(high[a] - low[b], high[b] - low[a]) for a, b in self._pairs))
        return float(joined(least, self._asked.agg)), float(joined(most, self._asked.agg))

    # Files

    def to_dict(self) -> dict[str, Any]:
        """Return the complete state of the monitor as plain values."""
        kept: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        for name in _ARRAYS:
            array = getattr(self, f"_{name}")
            values = [x if np.isfinite(x) else None for x in array.ravel().tolist()]
            kept[name] = values, array.shape
        saved = SavedMonitor(
            version=_VERSION,
            n_unknown=self.n_unknown,
            negative=self._negative,
            waiting=self._waiting,
            open=[[[side.tolist() for side in pair] for pair in own] for own in self._open],
            history=self.history,
            **kept,
        )
        content: dict[str, Any] = msgspec.to_builtins(saved)
        return content

    @classmethod
    def from_dict(cls, content: Any) -> GapMonitor:
        """Return the monitor of `to_dict`. Raise if the values are damaged."""
        if not isinstance(content, dict) or content.get("kind") != "fairmatch.GapMonitor":
            raise ModelFileError("This is not a saved GapMonitor.")
        if content.get("version") != _VERSION:
            raise ModelFileError(
                f"This GapMonitor was saved in version {content.get('version')!r} of the format, "
                f"and version {_VERSION} is read here."
            )
        try:
            saved = msgspec.convert(content, SavedMonitor)
            monitor = cls(**{name: getattr(saved, name) for name in _SETTINGS})
            for name in _ARRAYS:
                values, shape = getattr(saved, name)
                array = np.array([-np.inf if x is None else x for x in values]).reshape(shape)
                if array.shape != getattr(monitor, f"_{name}").shape or np.isnan(array).any():
                    raise ValueError(f"{name} has another shape")
                setattr(monitor, f"_{name}", array)
            if [len(own) for own in saved.open] != [len(own) for own in monitor._open]:
                raise ValueError("open has another shape")
            if any(not -1 <= code < len(monitor.groups) for code, _ in saved.waiting.values()):
                raise ValueError("waiting names an unknown group")
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise ModelFileError(f"The saved GapMonitor is damaged: {error}.") from error
        kind = monitor._open[0][0][0].dtype
        monitor._open = [
            [[np.array(side, dtype=kind) for side in pair] for pair in own] for own in saved.open
        ]
        monitor.n_unknown, monitor._negative = saved.n_unknown, saved.negative
        monitor._waiting, monitor.history = saved.waiting, saved.history
        return monitor

    def save(self, path: str | Path) -> Path:
        """Write the monitor to a JSON file, whole or not at all."""
        return write_whole(path, json.dumps(self.to_dict(), allow_nan=False))

    @classmethod
    def load(cls, path: str | Path) -> GapMonitor:
        """Read a monitor that `save` wrote, to continue with it."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ModelFileError(
                f"{path} cannot be read ({error.strerror}). Name a file that GapMonitor.save wrote."
            ) from error
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{path} does not hold a GapMonitor: {error}") from error
        return cls.from_dict(content)


def _factorise(sensitive_features: Any) -> tuple[NDArray[Any], Any]:
    """Return a code per row and the name behind each code; a missing group has the code -1."""
    if isinstance(sensitive_features, pd.Series):  # its text need not become objects
        return pd.factorize(sensitive_features)
    columns = attribute_columns(sensitive_features, "sensitive_features")
    every = [read_codes(values, "sensitive_features") for _, values in columns]
    if len(every) == 1:
        return every[0]
    table = np.column_stack([codes for codes, _ in every])
    found, codes = np.unique(table, axis=0, return_inverse=True)
    texts = [
        ", ".join(value_name(names[code]) for code, (_, names) in zip(row, every, strict=True))
        for row in found
    ]
    return np.where((table < 0).any(axis=1), -1, codes), texts


def rate_limits(sums: FloatArray, sizes: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
    """Return limits of means that hold at all times at once, each with this error probability.

    Parameters
    ----------
    sums, sizes : arrays of shape (n,)
        Sum of the values in [0, 1], and their number.
    error : float
        Probability that a limit is ever wrong.

    Examples
    --------
    >>> low, high = rate_limits(np.array([30.0]), np.array([100.0]), 0.05)
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (0.17, 0.46)
    """
    mixture = betaln(sums + 0.5, sizes - sums + 0.5) - betaln(0.5, 0.5)
    centre = np.where(sizes > 0.0, sums / np.maximum(sizes, 1.0), 0.5)

    # Both borders at once, the lower ones from 0 and the upper ones from 1: every step divides the
    # interval that holds a border by 64.
    far = np.repeat([0.0, 1.0], len(centre))
    inside, sums, sizes, mixture = (np.tile(own, 2) for own in (centre, sums, sizes, mixture))
    for _ in range(_STEPS):
        tried = inside + (far - inside) * _PARTS
        fitted = xlogy(sums, tried) + xlog1py(sizes - sums, -tried)
        away = mixture - fitted >= -np.log(error)
        away[-1] = True
        first = away.argmax(axis=0)
        far, width = tried[first, np.arange(len(far))], (far - inside) / len(_PARTS)
        inside = far - width
    return far[: len(centre)], far[len(centre) :]
