"""The command ``fairmatch monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.cli import options
from fairmatch.cli.options import FILE, Command, check_page
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.monitor import GapMonitor, GapState


@click.command(
    cls=Command,
    example="fairmatch monitor log.parquet --time day --score score --sensitive sex --max-gap 0.05",
)
@click.argument("table", type=FILE)
@click.option("--time", required=True, metavar="COL", help="Column with the day or time.")
@click.option(
    "--score",
    "scores",
    default="score",
    metavar="COL",
    help="Column with scores or decisions [score].",
)
@options.sensitive("Column with the groups", required=True)
@click.option(
    "--label", "y_true", metavar="COL", help="Column with labels, for gaps of error rates."
)
@click.option("--positive", metavar="LABEL", help="The positive label; by default 1.")
@click.option(
    "--id",
    "ids",
    metavar="COL",
    help="Column with identifiers, if labels arrive later: people without a label wait until their "
    "row has one, or a later row with the same identifier.",
)
@click.option("--max-gap", type=float, default=0.05, help="The bound.")
@click.option(
    "--measure",
    metavar="GAP",
    default="demographic_parity_gap",
    help="The gap of decisions or of mean scores, such as equalized_odds_gap or mean_parity_gap.",
)
@click.option("--confidence", type=options.UPPER_LEVEL, default=0.95, help="Confidence.")
@click.option(
    "--threshold", type=float, default=0.5, help="People with a score at or above it are selected."
)
@click.option(
    "--window",
    type=click.IntRange(min=2),
    help="Use only the last people: at least this many, at most twice as many.",
)
@options.several("--group", "groups", metavar="GROUP", help="A group; by default all in the file.")
@click.option(
    "--state",
    type=FILE,
    metavar="FILE",
    help="File with the state of the monitor between calls. By default TABLE.monitor.json.",
)
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write an HTML page with the gap and its confidence band.",
)
@options.reading
def monitor(
    table: str,
    time: str,
    scores: str,
    sensitive_features: tuple[str, ...],
    y_true: str | None,
    positive: str | None,
    ids: str | None,
    max_gap: float,
    measure: str,
    confidence: float,
    threshold: float,
    window: int | None,
    groups: tuple[str, ...],
    state: str | None,
    out: str | None,
    reading: dict[str, Any],
) -> int:
    """Monitor the gap in a log of decisions; exit with 1 if it provably exceeds the bound.

    TABLE is a .csv or .parquet file to which rows are added. Every call reads the periods that are
    later than the last one read, and prints one line for each. A period must be complete when it is
    read: rows that are added to it later are an error. Only labels may be filled in later, if --id
    names the people.
    """
    from fairmatch.auditing.monitor import GapMonitor, read_watched
    from fairmatch.people.files import check_outputs, find_value, read_table, write_whole
    from fairmatch.people.roles import split_names

    label = y_true
    check_page(out)
    path = Path(state or f"{table}.monitor.json")
    check_outputs([table], out=out, state=str(path))
    needs_labels = read_watched(measure).needs_labels
    if needs_labels and label is None:
        raise InputError(f"{measure} compares people with the same label. Name it with --label.")
    if ids is not None and not needs_labels:
        raise InputError(f"--id is for labels that arrive later, and {measure} needs no labels.")
    named = split_names(sensitive_features, ())
    text = [] if ids is None else [ids]
    frame = read_table(table, categories=named, text=text, **reading).rename(columns=str)
    attributes = split_names(sensitive_features, list(frame.columns))
    for name in (time, scores, *attributes, *(one for one in (label, ids) if one)):
        if name not in frame.columns:
            raise InputError(f"{table} has no column {name!r}.")
    required = [time, *text, *([label] if label is not None and ids is None else [])]
    for name in required:
        if n_missing := int(frame[name].isna().sum()):
            told = f"{table}: {name!r} is missing in {n_missing} rows."
            if name == label:
                told += " Leave them out, or name identifiers with --id if labels arrive later."
            raise InputError(told)
    moments = frame[time].to_numpy()
    if (moments[1:] < moments[:-1]).any():
        frame = frame.sort_values(time, kind="stable")
        moments = frame[time].to_numpy()
    given: Any = frame[attributes] if len(attributes) > 1 else frame[attributes[0]]
    if len(attributes) == 1:
        given = given.astype("category")  # text is compared once, not once for every period
    settings: dict[str, Any] = {"max_gap": max_gap, "measure": measure, "confidence": confidence,
                "threshold": threshold, "window": window, "pos_label": 1}  # fmt: skip
    watching = GapMonitor.load(path) if path.exists() else None
    if positive is not None and label is not None:
        known = [*([] if watching is None else [watching.pos_label]), *frame[label]]
        of = f"the values of column {label!r}"
        settings["pos_label"] = find_value(known, positive, "positive", of)
    for name, value in settings.items() if watching is not None else ():
        if getattr(watching, name) != value:
            option = name.replace("pos_label", "positive").replace("_", "-")
            raise InputError(
                f"{path} was begun with --{option} {getattr(watching, name)}, and now it is "
                f"{value}. Keep the setting, or begin another file with --state."
            )
    if watching is None:
        if len(attributes) > 1:
            known = given.dropna().drop_duplicates().astype(str).agg(", ".join, axis=1).tolist()
        else:
            codes, levels = given.array.codes, given.cat.categories.tolist()
            known = [level for code, level in enumerate(levels) if (codes == code).any()]
        watching = GapMonitor(groups=groups or sorted(known, key=str), **settings)
    columns = frame[scores], given, None if label is None else frame[label]
    n_before = len(watching.history)
    try:
        _read_on(watching, moments, *columns, names=None if ids is None else frame[ids].to_numpy())
    finally:  # what was read before an error is kept, and not read again
        new = watching.history[n_before:]
        if new:
            watching.save(path)
        for one in new:
            _print(one, watching)
    if not new:
        print("Nothing new.")
    if out is not None:
        write_whole(out, page(watching))
        print(f"Page written to {out}")
    return 1 if watching.state.alarm else 0


def _read_on(
    watching: GapMonitor, moments: Any, scores: Any, groups: Any, labels: Any, *, names: Any
) -> None:
    """Take in the periods of a log that are new, and labels that have arrived since.

    Parameters
    ----------
    watching : GapMonitor
        The monitor.
    moments : array of shape (n_rows,)
        The period of every row, sorted.
    scores, groups, labels : Series or DataFrame with n_rows rows
        The columns of the log; the labels may be None.
    names : array of shape (n_rows,) or None
        Identifiers, if labels arrive later. The first row of an identifier is the person. Later
        ones bring the label of the person and are nobody new.
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
