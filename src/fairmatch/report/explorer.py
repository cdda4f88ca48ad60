"""The people of an audit, as data for the explorer of the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from fairmatch.auditing.facts import Audit, Individuals, Pairs
from fairmatch.auditing.matchings import NEAR
from fairmatch.report.wording import (
    MATCHINGS,
    by_size,
    column_words,
    is_drawn,
    label_words,
    other_words,
    outcome_words,
    selected_from,
    told_apart,
)

# The page should stay below 6 MB with several models; the charting library takes 1 MB of it.
MOST_BYTES = 3_000_000


def explorer_json(audits: Sequence[Audit], *, most_bytes: int = MOST_BYTES) -> str | None:
    """Return the people of some audits, and who is matched with whom, as JSON of bounded length.

    None if no audit has people's rows. If the text would be too long, fewer people are listed,
    drawn at random. A listed person comes with all counterparts, so some people appear only as
    counterparts. The first ``n_listed`` people of a table are the listed ones.
    """
    shown = [(audit, audit.individuals) for audit in audits if audit.individuals is not None]
    if not shown:
        return None
    n_people = max(len(people.ids) for _, people in shown)
    text = _json(_payload(shown, n_people))
    n_listed, per_person = n_people, len(text) / n_people
    while len(text) > most_bytes and n_listed > 1:
        # Counterparts come along, so the text shrinks more slowly than the list.
        while n_listed > 1 and _n_written(shown, n_listed) * per_person > most_bytes:
            n_listed = int(n_listed * 0.9)
        text = _json(_payload(shown, n_listed))
        per_person *= 1.1
    return text


def explorer_lead(audits: Sequence[Audit]) -> str:
    """Return sentences on who a counterpart is, and on who can be shown instead."""
    near = any(
        audit.individuals is not None and audit.individuals.near is not None for audit in audits
    )
    any_two = " Any two groups can be chosen." if len(audits[0].matchings) > 1 else ""
    if not near:
        return f"Counterparts are matched by their scores, which need not be equal.{any_two}"
    drawn = " of those drawn" if any(map(is_drawn, audits)) else ""
    return (
        "Counterparts are matched people, and a counterpart need not be the nearest "
        f"person{drawn}. The nearest person can be chosen instead. People who are matched by "
        f"their scores need not have equal scores.{any_two}"
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


Shown = Sequence[tuple[Audit, Individuals]]


def _same_people(shown: Shown) -> list[list[Individuals]]:
    """Return the people of all models, with models of the same people together."""
    tables: list[list[Individuals]] = []
    for _, people in shown:
        for table in tables:
            if _table_facts(table[0]) == _table_facts(people):
                table.append(people)
                break
        else:
            tables.append([people])
    return tables


def _table_facts(people: Individuals) -> tuple[Any, ...]:
    return people.ids, people.group, people.labels, people.hidden, people.columns


def _n_written(shown: Shown, n_listed: int) -> float:
    """Return how many people are written, on average over the tables."""
    tables = _same_people(shown)
    return sum(len(_order(table, n_listed)[0]) for table in tables) / len(tables)


def _payload(shown: Shown, n_listed: int) -> dict[str, Any]:
    tables: list[dict[str, Any]] = []
    places: dict[int, tuple[int, list[int], int]] = {}
    for number, members in enumerate(_same_people(shown)):
        order, listed = _order(members, n_listed)
        tables.append(_table(members[0], order, listed))
        places |= {id(people): (number, order, listed) for people in members}
    models = []
    for audit, people in shown:
        number, order, listed = places[id(people)]
        classes = told_apart(people.chances, longest=1000)
        models.append(
            {
                "name": audit.model_name,
                "table": number,
                # Predictions select nobody, and have none of the three.
                "outcome": "" if audit.threshold is None else outcome_words(audit),
                "other": "" if audit.threshold is None else other_words(audit),
                "rule": "" if audit.threshold is None else selected_from(audit),
                "scores": [round(people.scores[k], 4) for k in order],
                # Taken before rounding, which could move a score across the threshold.
                "selected": [people.selected[k] for k in order] if people.selected else [],
                "chances": [
                    {"words": classes[name], "values": [round(values[k], 3) for k in order]}
                    for name, values in people.chances.items()
                ],
                "labels": ["another label", label_words(audit, True).removeprefix("the ")]
                if people.chances
                else ["label negative", "label positive"],
                "pairs": {
                    name: _pairs(pairs, len(people.ids), order, listed)
                    for name, pairs in _all_pairs(people).items()
                },
            }
        )
    # A row of a table of counts stands for as many people as it counts.
    counted = any(audit.weights == "counts" and people.weights for audit, people in shown)
    names = {name for _, people in shown for name in _all_pairs(people)}
    drawn = any(is_drawn(audit) for audit, _ in shown)
    groups, reference = shown[0][0].groups, shown[0][0].reference
    labels = [group.label for group in groups]
    return {
        "groups": labels,
        "order": [labels.index(group.label) for group in by_size(groups)],
        "reference": labels.index(reference) if reference in labels else None,
        "matchings": {
            name: f"{words} of those drawn" if name == NEAR and drawn else words
            for name, words in MATCHINGS.items()
            if name in names
        },
        "n_people": max(len(people.ids) for _, people in shown),
        "unit": "rows" if counted else "people",
        "tables": tables,
        "models": models,
    }


def _order(members: Sequence[Individuals], n_listed: int) -> tuple[list[int], int]:
    """Return the people drawn for the list, then their counterparts, and the number listed."""
    n_people = len(members[0].ids)
    if n_listed >= n_people:
        return list(range(n_people)), n_people
    order = np.random.default_rng(0).permutation(n_people)
    # People whose matches with every other group are known come first.
    across = [p.first + p.second for people in members for p in people.across.values()]
    first = np.isin(order, np.concatenate([np.empty(0, dtype=int), *map(np.array, across)]))
    listed = np.sort(np.concatenate([order[first], order[~first]])[:n_listed])
    is_listed = np.zeros(n_people, dtype=bool)
    is_listed[listed] = True
    along = np.zeros(n_people, dtype=bool)
    for people in members:
        for name, pairs in _all_pairs(people).items():
            first, second = np.array(pairs.first), np.array(pairs.second)
            along[second[is_listed[first]]] = True
            if name != NEAR:
                along[first[is_listed[second]]] = True
    return [*listed.tolist(), *np.flatnonzero(along & ~is_listed).tolist()], n_listed


def _table(people: Individuals, order: list[int], n_listed: int) -> dict[str, Any]:
    words = told_apart([*people.columns, *people.hidden], column_words, longest=1000)
    return {
        "n_listed": n_listed,
        "ids": [people.ids[k] for k in order],
        "group": [people.group[k] for k in order],
        "labels": [people.labels[k] for k in order] if people.labels else [],
        "columns": [
            {"words": words[name], **_column(name, values, order)}
            for name, values in people.columns.items()
        ],
        "hidden": list(people.hidden),
        "hidden_words": [words[name] for name in people.hidden],
    }


def _column(name: str, values: Sequence[str | float | None], order: list[int]) -> dict[str, Any]:
    """Return a column for JSON: categories as codes with their levels, numbers unchanged."""
    own = [values[k] for k in order]
    if all(value is None or isinstance(value, float) for value in own):
        return {"name": name, "values": [_number(v) for v in own if not isinstance(v, str)]}
    levels = list(dict.fromkeys(str(value) for value in own if value is not None))
    codes = {level: code for code, level in enumerate(levels)}
    coded = [None if value is None else codes[str(value)] for value in own]
    return {"name": name, "levels": levels, "values": coded}


def _number(value: float | None) -> float | int | str | None:
    if value is None:
        return None
    if not np.isfinite(value):
        return str(value)
    short = float(f"{value:.10g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _all_pairs(people: Individuals) -> dict[str, Pairs]:
    """Return the pairs of every matching, and the pairs of everybody with the nearest people.

    With many groups, the pairs of other groups follow the pairs with the reference.
    """
    found = dict(people.pairs)
    if people.near is not None:
        found[NEAR] = people.near
    for name, across in people.across.items():
        found[name] = _joined(found[name], across) if name in found else across
    return found


def _joined(first: Pairs, second: Pairs) -> Pairs:
    return Pairs(*(getattr(first, f.name) + getattr(second, f.name) for f in fields(Pairs)))


def _pairs(pairs: Pairs, n_people: int, order: list[int], n_listed: int) -> dict[str, list[Any]]:
    place = np.full(n_people, -1)
    place[order] = np.arange(len(order))
    first, second = place[np.array(pairs.first)], place[np.array(pairs.second)]
    # A pair of two people who are not listed would belong to nobody.
    kept = (first >= 0) & (second >= 0) & ((first < n_listed) | (second < n_listed))
    weight = np.array(pairs.mass)[kept] * n_people
    return {
        "first": first[kept].tolist(),
        "second": second[kept].tolist(),
        "mass": weight.round(4).tolist(),
        "gap": np.array(pairs.score_gap)[kept].round(4).tolist(),
        "distance": np.array(pairs.distance)[kept].round(3).tolist() if pairs.distance else [],
    }
