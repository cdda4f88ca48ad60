"""Counterparts of a person: the nearest, the matched, and the nearest with another decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import InputError
from fairmatch.matching.network import cheapest_plan
from fairmatch.people.checks import FloatArray, check_count, plain_value
from fairmatch.people.columns import Column
from fairmatch.people.encoding import Points, Table, TableEncoder
from fairmatch.people.files import write_whole
from fairmatch.people.leaks import find_leaks
from fairmatch.people.people import IndexArray, People

Value = str | float | None
# A prototype needs at least this many people, so that it shows no single person.
LEAST_PROTOTYPE = 10
# People of each group among whom matched counterparts are sought.
_SAMPLE = 1000
# The price of a score difference, in units of the largest distance. It makes the matching prefer
# the least score gap, and among those matchings the nearest.
_PRICE = 1000.0
_SHOWN = 6
_TABLES = 4


@dataclass(frozen=True)
class Differing:
    """A column in which two people differ."""

    column: str  #: The column.
    #: The explained person's value and the other value. None means that it is missing.
    own: Value
    other: Value

    @property
    def change(self) -> float | None:
        """How much larger the other value is; None unless both are numbers."""
        if isinstance(self.own, float) and isinstance(self.other, float):
            return self.other - self.own
        return None

    def __str__(self) -> str:
        return f"{self.column} {_written(self.own)} → {_written(self.other)}"


@dataclass(frozen=True)
class Counterpart:
    """Another person, or the prototype of several, to compare with the explained person."""

    group: str  #: The group.
    score: float  #: The score; of a prototype, the median score.
    #: Whether the person is selected; of a prototype, whether at least half of the people are. None
    #: for predictions of a number, which select nobody.
    selected: bool | None
    distance: float  #: Squared distance; of a prototype, the median squared distance.
    #: The columns that differ, with the largest contribution to the distance first.
    differing: tuple[Differing, ...]
    id: str | None = None  #: The person's identifier. A prototype has none.
    n_people: int = 1  #: How many people this describes: 1, or the people of the prototype.


@dataclass(frozen=True)
class Explanation:
    """A person's decision, compared with the plain model's and with other people's.

    ``print`` shows sentences, `to_dict` returns the facts, and notebooks show a card.
    """

    #: The person's identifier and group.
    id: str
    group: str
    score: float  #: The person's score.
    selected: bool | None  #: Whether the person is selected. None for predictions of a number.
    #: The score at which decisions change. None for predictions of a number.
    threshold: float | None
    plain_score: float | None  #: The score of the plain model, if there is one.
    plain_selected: bool | None  #: The decision of the plain model, if there is one.
    #: The nearest people of every other group, among everybody in the table.
    nearest: tuple[Counterpart, ...]
    #: The matched person of every other group, by the nearest fair matching. It is empty if only
    #: prototypes are shown, because a match is one person.
    matched: tuple[Counterpart, ...]
    #: The nearest person of the same group with the other decision: the smallest change of
    #: features, among real people, at which the decision differs. None if there is nobody.
    flip: Counterpart | None
    outcome: str = "selected"  #: What the selected are called.
    #: Medians of the ten (or ``prototype``) nearest people of every other group that has as many. A
    #: letter shows these and no single person.
    prototypes: tuple[Counterpart, ...] = ()
    #: The same for people of the person's own group with the other decision.
    flip_prototype: Counterpart | None = None
    n_other: int = 0  #: How many people of the person's group have the other decision.

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """Return the explanation, one statement per line."""
        lines = [f"Person {self.id} (group {self.group}): {self._decision(self)}."]
        if self.plain_score is not None:
            change = self.score - self.plain_score
            same = "" if self.selected is None else ", and the decision is the same"
            if self.plain_selected != self.selected:
                same = f", and the decision is different: {self._word(self.plain_selected)}"
            lines.append(
                f"The plain model gives {_written(self.plain_score)} ({change:+.3g} with this "
                f"model){same}."
            )
        lines += [f"Nearest in group {one.group}: {self._told(one)}." for one in self.nearest]
        lines += [f"Matched in group {one.group}: {self._told(one)}." for one in self.matched]
        if self.flip is not None:
            lines.append(f"Nearest in group {self.group} with the other decision: "
                         f"{self._told(self.flip)}.")  # fmt: skip
        elif self.selected is not None:
            few = "Too few people in group {} have the other decision to show their medians."
            told = few if self.n_other else "Nobody in group {} has the other decision."
            lines.append(told.format(self.group))
        return lines

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _word(self, selected: bool | None) -> str:
        return self.outcome if selected else f"not {self.outcome}"

    def _decision(self, one: Explanation | Counterpart) -> str:
        score = f"score {_written(one.score)}"
        return score if one.selected is None else f"{score}, {self._word(one.selected)}"

    def _told(self, one: Counterpart) -> str:
        who = f"person {one.id}" if one.id is not None else f"the median of {one.n_people} people"
        shown = "; ".join(map(str, one.differing[:_SHOWN]))
        more = len(one.differing) - _SHOWN
        told = f"differs in {shown}" if shown else "equal in every column"
        return f"{who}, {self._decision(one)}; {told}" + (f"; {more} more" if more > 0 else "")

    def _repr_html_(self) -> str:
        """Return a card for a notebook."""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.sentences()[1:])
        return (
            "<div style='border:1px solid #999;border-radius:4px;padding:0.5em 1em'>"
            f"<strong>{escape(self.sentences()[0])}</strong><ul>{lines}</ul></div>"
        )

    def letter(self, path: str | Path, *, sender: str = "") -> Path:
        """Write a plain-language page for the person, one side of A4, as HTML.

        Parameters
        ----------
        path : str or Path
            The file, which should end in .html. A browser prints it.
        sender : str, optional
            Sender of the letter.

        Notes
        -----
        The letter shows medians of ten people or more and no other person, even if the explanation
        shows single people.
        """
        body = _LETTER.format(body=self._letter_body(), sender=escape(sender))
        return write_whole(path, body, private=True)

    def _letter_body(self) -> str:
        parts = [f"<h1>About the decision for {escape(self.id)}</h1>"]
        score = _written(self.score)
        if self.selected is None:
            parts.append(f"<p>The model predicts {score} for you.</p>")
        else:
            parts.append(
                f"<p>A model gave you a score of {score}. The decision changes at a score of "
                f"{_written(self.threshold)}. The decision was: "
                f"<strong>{escape(self._word(self.selected))}</strong>.</p>"
            )
        if self.plain_score is not None:
            changed = self.plain_selected != self.selected
            told = "would have been different" if changed else "would have been the same"
            decision = "" if self.selected is None else f" The decision {told}."
            parts.append(
                "<p>The model was built to treat groups of people alike. Without this, your "
                f"score would have been {_written(self.plain_score)}.{decision}</p>"
            )
        # One side of A4 has room for so many tables, and for fewer rows in each if there are more.
        others = sorted(self.prototypes, key=lambda one: one.distance)[:_TABLES]
        flip = self.flip_prototype
        n_rows = min(_SHOWN, max(1, 34 // (len(others) + (flip is not None) or 1) - 5))
        parts += [
            f"<p>We compared you with the {one.n_people} people of group "
            f"“{escape(one.group)}” who are most like you. Their median score is "
            f"{_written(one.score)}.{self._majority(one)}</p>{_difference_table(one, n_rows)}"
            for one in others
        ]
        if flip is not None:
            parts.append(
                f"<p>The {flip.n_people} people of your own group who are most like you and whose "
                f"decision was “{escape(self._word(flip.selected))}” differ from you as follows."
                f"</p>{_difference_table(flip, n_rows)}"
            )
        if len(others) < len(self.prototypes):
            parts.append(f"<p>There are {len(self.prototypes)} other groups. The {_TABLES} nearest "
                         "to you are shown.</p>")  # fmt: skip
        parts.append(
            "<p>This describes other people's data and decisions. It does not promise that a "
            "change of your data would change the decision.</p>"
        )
        return "\n".join(parts)

    def _majority(self, one: Counterpart) -> str:
        if one.selected is None:
            return ""
        how = "At least half" if one.selected else "Fewer than half"
        return f" {how} of them were {escape(self.outcome)}."


_LETTER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>About a decision</title>
<style>
@page {{ size: A4; margin: 2cm }}
body {{ font: 11pt/1.4 sans-serif; max-width: 17cm; margin: 1cm auto }}
h1 {{ font-size: 15pt }} table {{ border-collapse: collapse }}
td, th {{ text-align: left; padding: 0.1em 1em 0.1em 0 }}
</style></head><body>
<p>{sender}</p>
{body}
</body></html>
"""


def _difference_table(one: Counterpart, n_rows: int) -> str:
    if not one.differing:
        return "<p>They have the same values as you.</p>"
    rows = "".join(
        f"<tr><td>{escape(found.column)}</td><td>{escape(_written(found.own))}</td>"
        f"<td>{escape(_written(found.other))}</td></tr>"
        for found in one.differing[:n_rows]
    )
    return f"<table><tr><th></th><th>you</th><th>they</th></tr>{rows}</table>"


def _written(value: Value) -> str:
    if value is None:
        return "missing"
    return value if isinstance(value, str) else f"{value:.4g}"


class Neighbourhood:
    """People with scores, among whom counterparts are sought.

    Parameters
    ----------
    people : People
        The people, with a table. Without ids they are called by their row numbers.
    scores, plain : array of shape (n_rows,)
        Their scores, and those of the plain model or None.
    threshold : float or None
        The score at which decisions change; None for numeric predictions.
    high : bool
        Whether scores at or above the threshold are selected, rather than those below.
    outcome : str
        Words for the favourable outcome.
    """

    def __init__(
        self,
        people: People,
        scores: FloatArray,
        *,
        plain: FloatArray | None = None,
        threshold: float | None = 0.5,
        high: bool = True,
        outcome: str = "selected",
    ) -> None:
        assert people.table is not None
        self.table, self.groups, self.ids = people.table, people.groups, people.ids
        self.scores, self.plain = scores, plain
        self.decides, self.threshold = threshold is not None, threshold or 0.0
        self.high, self.outcome = high, outcome
        # Of two groups: people of the second, their duals, the price of a score, and the partners.
        self._duals: dict[
            tuple[int, int], tuple[IndexArray, FloatArray, float, dict[int, int]]
        ] = {}

    @cached_property
    def selected(self) -> NDArray[np.bool_]:
        """Whether each person is selected."""
        above = np.asarray(self.scores >= self.threshold)
        return above if self.high else ~above

    @cached_property
    def _kept(self) -> list[int]:
        """The places of the columns that are not the group itself."""
        exact = {leak.column for leak in find_leaks(self.table, self.groups) if leak.is_exact}
        return [k for k, column in enumerate(self.table.columns) if column.name not in exact]

    @cached_property
    def columns(self) -> list[Column]:
        """The columns that describe people, without those that are the group itself."""
        return [self.table.columns[k] for k in self._kept]

    @cached_property
    def points(self) -> Points:
        """The people as points; their squared distance says how alike two people are."""
        table = self.table
        if len(self._kept) < len(table.columns):
            frame = nw.from_native(table.native, eager_only=True, pass_through=True)
            frame = frame if isinstance(frame, nw.DataFrame) else np.asarray(frame)
            table = Table(nw.to_native(frame[:, self._kept], pass_through=True))
        return TableEncoder(missing="encode", max_levels=None).fit(table).to_points(table)

    @cached_property
    def _ranges(self) -> FloatArray:
        spans = []
        for column in self.columns:
            known = column.values[~column.missing] if column.levels is None else np.zeros(0)
            spans.append(float(np.ptp(known)) if len(known) else 0.0)
        return np.array(spans)

    def row_of(self, id: Any) -> int:
        """Return the row of an identifier; without ids it is the row number itself."""
        if self.ids is None:
            try:
                row = int(id)
            except (TypeError, ValueError):
                row = -1
            if not 0 <= row < len(self.table):
                raise InputError(
                    f"{id!r} is not a row of the table, which has {len(self.table):,} rows "
                    "(counted from 0). Pass a row number, or pass ids.",
                    parameter="id",
                )
            return row
        try:
            return self.ids.index(str(id))
        except ValueError:
            raise InputError(
                f"No person has the identifier {id!r}. Pass one of ids.", parameter="id"
            ) from None

    def explain(self, row: int, *, n_nearest: int = 3, prototype: int | None = None) -> Explanation:
        """Explain the decision of the person in a row.

        Parameters
        ----------
        row : int
            Row of the table, counted from 0.
        n_nearest : int, default=3
            How many of the nearest people of each other group to show.
        prototype : int, optional
            Show the medians of this many nearest people, at least 10, instead of single people.
        """
        row = self._checked(row)
        check_count("n_nearest", n_nearest, 1)
        check_count("prototype", prototype, LEAST_PROTOTYPE, optional=True)
        own, size = int(self.groups.codes[row]), prototype or LEAST_PROTOTYPE
        distance = self.distances(row)

        def beside(rows: IndexArray, *, is_prototype: bool = False) -> Counterpart:
            return self._beside(row, rows, distance[rows], is_prototype)

        def shown(rows: IndexArray, n_most: int) -> tuple[list[Counterpart], list[Counterpart]]:
            """Return the people to show, and the prototype, if there are enough people for one."""
            median = []
            if len(rows) >= size:
                median = [beside(_nearest(rows, distance, size), is_prototype=True)]
            if prototype is not None:
                return median, median
            return [beside(one[None]) for one in _nearest(rows, distance, n_most)], median

        nearest, prototypes, matched = [], [], []
        for code in self.groups.compared:
            if code == own:
                continue
            people, median = shown(np.flatnonzero(self.groups.is_group(code)), n_nearest)
            nearest += people
            prototypes += median
            if prototype is None and own in self.groups.compared:
                matched.append(beside(np.array([self._partner(row, own, code)])))
        others = np.empty(0, dtype=np.intp)
        if self.decides:
            same = self.groups.is_group(own)
            others = np.flatnonzero(same & (self.selected != self.selected[row]))
        flip, flip_prototype = shown(others, 1)
        plain = None if self.plain is None else float(self.plain[row])
        plain_selected = None
        if plain is not None and self.decides:
            plain_selected = (plain >= self.threshold) == self.high
        return Explanation(
            id=self._id(row),
            group=str(self.groups.labels[own]),
            score=float(self.scores[row]),
            selected=bool(self.selected[row]) if self.decides else None,
            threshold=self.threshold if self.decides else None,
            plain_score=plain,
            plain_selected=plain_selected,
            nearest=tuple(nearest),
            matched=tuple(matched),
            flip=next(iter(flip), None),
            outcome=self.outcome,
            prototypes=tuple(prototypes),
            flip_prototype=next(iter(flip_prototype), None),
            n_other=len(others),
        )

    def _checked(self, row: Any) -> int:
        if not isinstance(row, int | np.integer) or not 0 <= row < len(self.table):
            raise InputError(
                f"rows must be rows of X, counted from 0 and below {len(self.table):,}; got "
                f"{row!r}.",
                parameter="rows",
            )
        return int(row)

    def _id(self, row: int) -> str:
        return str(row) if self.ids is None else self.ids[row]

    def distances(self, row: int) -> FloatArray:
        """Return the squared distance of everybody to the person in a row.

        Parameters
        ----------
        row : int
            Row of the table, counted from 0.
        """
        everybody = np.arange(len(self.points))
        return self.points.pair_costs(everybody, np.full(len(everybody), row))

    def _beside(
        self, row: int, rows: IndexArray, near: FloatArray, is_prototype: bool
    ) -> Counterpart:
        """Return one person, or the medians of several, compared with the person in a row."""
        return Counterpart(
            group=str(self.groups.labels[self.groups.codes[rows[0]]]),
            score=float(np.median(self.scores[rows])),
            selected=bool(self.selected[rows].mean() >= 0.5) if self.decides else None,
            distance=float(np.median(near)),
            differing=self._differing(row, [_middle(column, rows) for column in self.columns]),
            id=None if is_prototype else self._id(int(rows[0])),
            n_people=len(rows),
        )

    def _differing(self, row: int, values: Sequence[Value]) -> tuple[Differing, ...]:
        """Return the columns that differ, with the largest contribution to the distance first."""
        found = []
        for column, span, other in zip(self.columns, self._ranges, values, strict=True):
            own = _middle(column, np.array([row]))
            if own == other:
                continue
            size = 2.0
            if isinstance(own, float) and isinstance(other, float) and span > 0.0:
                size = ((own - other) / span) ** 2
            found.append((size, Differing(column.name, own, other)))
        found.sort(key=lambda one: -one[0])
        return tuple(one for _, one in found)

    def _partner(self, row: int, own: int, other: int) -> int:
        """Return the matched person of another group: the least cost less the dual of the person.

        The nearest fair matching of a sample of both groups has a dual for each sampled person.
        With these duals everybody has a counterpart, in the sample or not.
        """
        if (own, other) not in self._duals:
            self._solve(*sorted((own, other)))
        rows, dual, price, partners = self._duals[own, other]
        if row in partners:
            return partners[row]
        cost = self.points.pair_costs(np.full(len(rows), row), rows)
        cost += price * np.abs(self.scores[row] - self.scores[rows])
        return int(rows[np.argmin(cost - dual)])

    def _solve(self, first: int, second: int) -> None:
        """Match samples of two groups; keep the duals, and who is matched with whom."""
        rows, others = self._sample(first), self._sample(second)
        places = np.repeat(rows, len(others)), np.tile(others, len(rows))
        cost = self.points.pair_costs(*places).reshape(len(rows), len(others))
        span = float(np.ptp(self.scores)) or 1.0
        price = _PRICE * (float(cost.max()) or 1.0) / span
        cost += price * np.abs(self.scores[rows][:, None] - self.scores[others])
        shares = [np.full(len(own), 1.0 / len(own)) for own in (rows, others)]
        plan, _, u, v = cheapest_plan(shares[0], shares[1], cost)
        ahead = dict(zip(rows.tolist(), others[plan.argmax(axis=1)].tolist(), strict=True))
        behind = dict(zip(others.tolist(), rows[plan.argmax(axis=0)].tolist(), strict=True))
        self._duals[first, second] = others, v, price, ahead
        self._duals[second, first] = rows, u, price, behind

    def _sample(self, code: int) -> IndexArray:
        rows = np.flatnonzero(self.groups.is_group(code))
        if len(rows) <= _SAMPLE:
            return rows
        return np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))


def _nearest(rows: IndexArray, distance: FloatArray, n_most: int) -> IndexArray:
    """Return the nearest of some people, the nearest first."""
    if n_most < len(rows):
        rows = rows[np.argpartition(distance[rows], n_most - 1)[:n_most]]
    return rows[np.lexsort((rows, distance[rows]))]


def _middle(column: Column, rows: IndexArray) -> Value:
    """Return the median of a column's numbers, or its most frequent level."""
    known = column.values[rows][~column.missing[rows]]
    if 2 * len(known) < len(rows) or not len(known):
        return None
    if column.levels is None:
        return float(np.median(known))
    return str(plain_value(column.levels[int(np.bincount(known.astype(np.intp)).argmax())]))
