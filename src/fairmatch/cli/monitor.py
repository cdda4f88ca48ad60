"""The command ``fairmatch monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmatch.cli.labelled import together
from fairmatch.cli.options import check_page, command
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.monitor import GapMonitor, GapState

# Options that are settings of the monitor, which a file with its state keeps.
_SETTINGS = ("max_gap", "measure", "confidence", "threshold", "window")


@command("fairmatch monitor log.parquet --time day --score score --sensitive sex --max-gap 0.05")
def monitor(asked: Any) -> int:
    """Monitor the gap in a log of decisions; exit with 1 if it provably exceeds the bound.

    TABLE is a .csv or .parquet file to which rows are added. Every call reads the periods that are
    later than the last one read, and prints one line for each. A period must be complete when it is
    read: adding rows to it later is an error. Only labels may be filled in later, if --id names the
    people.
    """
    from fairmatch.auditing.monitor import GapMonitor, read_watched
    from fairmatch.people.checks import check_names
    from fairmatch.people.files import check_outputs, find_value, read_table, write_whole
    from fairmatch.people.roles import split_names

    table, label, ids = asked.table, asked.y_true, asked.ids
    check_page(asked.out)
    path = Path(asked.state or f"{table}.monitor.json")
    check_outputs([table], out=asked.out, state=str(path))
    needs_labels = read_watched(asked.measure).needs_labels
    if needs_labels and label is None:
        raise InputError(
            f"{asked.measure} compares people with the same label. Name it with --label."
        )
    if ids is not None and not needs_labels:
        raise InputError(
            f"--id is for labels that arrive later, and {asked.measure} needs no labels."
        )
    named = split_names(asked.sensitive_features, ())
    text = [] if ids is None else [ids]
    frame = read_table(table, categories=named, text=text, **asked.reading).rename(columns=str)
    attributes = split_names(asked.sensitive_features, list(frame.columns))
    wanted = [asked.time, asked.scores, *attributes, *(one for one in (label, ids) if one)]
    check_names(wanted, list(frame.columns), table=table)
    required = [asked.time, *text, *([label] if label is not None and ids is None else [])]
    for name in required:
        if n_missing := int(frame[name].isna().sum()):
            told = f"{table}: {name!r} is missing in {n_missing} rows."
            if name == label:
                told += " Leave them out, or name identifiers with --id if labels arrive later."
            raise InputError(told)
    if not frame[asked.time].is_monotonic_increasing:
        frame = frame.sort_values(asked.time, kind="stable")
    given = together(frame, attributes)
    if len(attributes) == 1:
        given = given.astype("category")  # text is compared once, not once for every period
    watching = GapMonitor.load(path) if path.exists() else None
    settings = {name: getattr(asked, name) for name in _SETTINGS} | {"pos_label": 1}
    if asked.positive is not None and label is not None:
        known = [*([] if watching is None else [watching.pos_label]), *frame[label]]
        of = f"the values of column {label!r}"
        settings["pos_label"] = find_value(known, asked.positive, "positive", of)
    for name, value in settings.items() if watching is not None else ():
        if getattr(watching, name) != value:
            option = name.replace("pos_label", "positive").replace("_", "-")
            raise InputError(
                f"{path} was begun with --{option} {getattr(watching, name)}, and now it is "
                f"{value}. Keep the setting, or begin another file with --state."
            )
    if watching is None:
        present = given.dropna().drop_duplicates()
        if len(attributes) > 1:
            present = present.astype(str).agg(", ".join, axis=1)
        watching = GapMonitor(groups=asked.groups or sorted(present.tolist(), key=str), **settings)
    n_before = len(watching.history)
    try:
        _read_on(
            watching,
            frame[asked.time].to_numpy(),
            frame[asked.scores],
            given,
            None if label is None else frame[label],
            names=None if ids is None else frame[ids].to_numpy(),
        )
    finally:  # what was read before an error is kept, and not read again
        new = watching.history[n_before:]
        if new:
            watching.save(path)
        for one in new:
            _print(one, watching)
    if not new:
        print("Nothing new.")
    if asked.out is not None:
        write_whole(asked.out, page(watching))
        print(f"Page written to {asked.out}")
    return 1 if watching.state.alarm else 0


def _read_on(
    watching: GapMonitor, moments: Any, scores: Any, groups: Any, labels: Any, *, names: Any
) -> None:
    """Take in the periods of a log that are new, and labels that have arrived since.

    Moments are the sorted periods of the rows; the other columns have as many rows. There are names
    if labels arrive later: the first row of a name is the person. Later ones bring the label of the
    person and are nobody new.
    """
    from dataclasses import replace

    import numpy as np
    import pandas as pd

    seen = {one.period: one.n_rows for one in watching.history if one.period is not None}
    starts = np.flatnonzero(np.append(True, moments[1:] != moments[:-1]))
    lengths = np.diff(np.append(starts, len(moments)))
    written = [str(one).removesuffix(" 00:00:00") for one in pd.Index(moments[starts])]
    known = np.isin(written, list(seen))
    last = max(np.flatnonzero(known), default=-1)
    for place, (period, length) in enumerate(zip(written, lengths.tolist(), strict=True)):
        if known[place] and seen[period] != length:
            raise InputError(
                f"{period} had {seen[period]:,} rows when it was read and has {length:,} now. Add "
                "rows of later periods only, or begin another file with --state."
            )
        if place < last and not known[place]:
            raise InputError(
                f"{period} is new and lies before {written[last]}, which has been read. Add rows "
                "of later periods only, or begin another file with --state."
            )

    def bring(rows: Any) -> None:
        """Add the labels that these rows hold for people who wait for one."""
        if names is not None:
            rows = rows[labels.notna().to_numpy()[rows]]
            rows = rows[watching.is_waiting(names[rows])]
            rows = rows[~pd.Series(names[rows]).duplicated().to_numpy()]
            if len(rows):
                watching.add_labels(names[rows], labels.to_numpy()[rows])

    bring(np.flatnonzero(np.repeat(known, lengths)))
    is_first = None if names is None else ~pd.Series(names).duplicated().to_numpy()
    for period, start, length, is_known in zip(written, starts, lengths, known, strict=True):
        if is_known:
            continue
        n_kept, rows = len(watching.history), np.arange(start, start + length)
        own: Any = slice(start, start + length)  # without copies
        if names is not None and is_first is not None:
            own = rows[is_first[rows] & ~watching.is_waiting(names[rows])]
        if names is None or len(own):
            watching.update(
                scores.to_numpy()[own],
                groups.iloc[own],
                None if labels is None else labels.to_numpy()[own],
                ids=None if names is None else names[own],
            )
        # One line for each period. If its labels are unusable, the next call reads them again.
        try:
            bring(rows)
        finally:
            watching.history[n_kept:] = [replace(watching.state, period=period, n_rows=len(rows))]


def _written(state: GapState) -> str:
    return f"labels of {state.n_rows:,} people" if state.period is None else state.period


def _print(state: GapState, watching: GapMonitor) -> None:
    gap = "no gap yet" if state.value is None else f"gap {state.value:.3f}"
    band = f"[{state.low:.3f}, {state.high:.3f}]"
    alarm = f"  ALARM: the gap exceeds {watching.max_gap:g}" if state.alarm else ""
    print(f"{_written(state)}  {state.n_people:,} people  {gap} {band}{alarm}")


def page(watching: GapMonitor) -> str:
    """Return one HTML page with the curve of the gap, its band and the bound, without scripts."""
    from html import escape

    history = watching.history
    width, height, left, base = 760.0, 300.0, 50.0, 320.0
    top = max([watching.max_gap * 2, *(min(one.high, 1.0) for one in history[-1:]),
               *(one.value or 0.0 for one in history)]) * 1.1 or 1.0  # fmt: skip

    def at(place: int, value: float) -> str:
        x = left + width * (place / max(len(history) - 1, 1))
        return f"{x:.1f},{base - height * min(value, top) / top:.1f}"

    lows = [at(k, one.low) for k, one in enumerate(history)]
    highs = [at(k, one.high) for k, one in enumerate(history)]
    curve = [at(k, one.value) for k, one in enumerate(history) if one.value is not None]
    bound = base - height * min(watching.max_gap, top) / top
    alarms = [k for k, one in enumerate(history) if one.alarm]
    told = "No alarm has been raised."
    mark = ""
    if alarms:
        first = history[alarms[0]]
        told = f"Alarm at {_written(first)}: the gap has been shown to exceed {watching.max_gap:g}."
        x = at(alarms[0], 0.0).split(",")[0]
        mark = f"<line x1='{x}' x2='{x}' y1='20' y2='{base}' stroke='#b00' stroke-dasharray='4'/>"
    promise = "The band holds at all times at once"
    if watching.window is not None:
        promise = "With a window the band holds at one time, not at all times at once"
    rows = "".join(
        f"<tr><td>{escape(_written(one))}</td><td>{one.n_people:,}</td>"
        f"<td>{'' if one.value is None else f'{one.value:.3f}'}</td>"
        f"<td>{one.low:.3f} to {one.high:.3f}</td><td>{'alarm' if one.alarm else ''}</td></tr>"
        for one in history
    )
    ends = [escape(_written(one)) for one in (history[:1] + history[-1:])] or ["", ""]
    groups = ", ".join(escape(str(group)) for group in watching.groups)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(watching.measure)}</title>
<style>body {{ font: 15px/1.5 sans-serif; max-width: 860px; margin: 2em auto }}
td, th {{ padding: 0.1em 1em 0.1em 0; text-align: left }}</style></head><body>
<h1>{escape(watching.measure)} of {groups}</h1>
<p><strong>{escape(told)}</strong> {promise}, with a confidence of {watching.confidence:.0%}.</p>
<svg viewBox="0 0 840 350" role="img" aria-label="{escape(told)}">
<polygon points="{" ".join([*lows, *reversed(highs)])}" fill="#cfe0f5"/>
<polyline points="{" ".join(curve)}" fill="none" stroke="#1f4e9c" stroke-width="2"/>
<line x1="{left}" x2="{left + width}" y1="{bound:.1f}" y2="{bound:.1f}" stroke="#b00"/>
<text x="{left + width}" y="{bound - 5:.1f}" text-anchor="end">bound {watching.max_gap:g}</text>
{mark}
<text x="5" y="{base}">0</text><text x="5" y="30">{top:.2f}</text>
<text x="{left}" y="345">{ends[0]}</text>
<text x="{left + width}" y="345" text-anchor="end">{ends[1]}</text>
</svg>
<table><tr><th>period</th><th>people</th><th>gap</th><th>band</th><th></th></tr>{rows}</table>
</body></html>
"""
