"""The charts of a page, as SVG that needs no script and prints as it is seen.

Horizontal places are shares of the width, so a chart fits a phone and a sheet of paper. Vertical
places are pixels. Series differ by colour and by shape, so they can be distinguished in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

Row = Mapping[str, Any]
Domain = tuple[float, float]

# One shape per series; further series repeat them, and labels and tables tell these apart.
SHAPES = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
    "M-4.5,-4.5h9v9h-9z",
    "M0,-5.5L5.5,4.5H-5.5z",
    "M0,-6L6,0L0,6L-6,0z",
    "M-5,-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
)
# Where horizontal axes end, in per cent: the number under the last mark needs some room.
_RIGHT = 95.0
# Longer labels are broken into lines, so that they fit a chart on a phone.
_LONGEST_LINE = 44
# So many values of a chart are spoken; all of them are in the table below it.
_SPOKEN = 12


def different(rows: Sequence[Row], field: str) -> list[str]:
    """Return the different values of a field, in their order."""
    return list(dict.fromkeys(row[field] for row in rows))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers from low to high."""
    power = floor(log10((high - low) / most))
    step = 10.0**power
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= most + 1e-9)
    return [
        round(k * step, max(0, 1 - power))
        for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    ]


def mark(k: int, n_shades: int = 0) -> str:
    """Return the mark of a series for a legend, or of one of so many shades."""
    if n_shades:
        shade = f'<rect class="s1" x="-6" y="-6" width="12" height="12" {_shade(k, n_shades)}/>'
        return f'<svg class="swatch" viewBox="-7 -7 14 14">{shade}</svg>'
    shape = SHAPES[k % len(SHAPES)]
    return f'<svg class="swatch" viewBox="-7 -7 14 14"><path class="{_hue(k)}" d="{shape}"/></svg>'


def _shade(k: int, n_shades: int) -> str:
    """Return how dark the k-th class in order is."""
    share = k / (n_shades - 1) if n_shades > 1 else 1.0
    return f'style="fill-opacity:{0.12 + 0.88 * share:.2f}"'


def _hue(k: int) -> str:
    return f"s{k % len(SHAPES) + 1}"


def _number(value: float, percent: bool = False) -> str:
    return f"{100 * value:.4g}%" if percent else f"{value:.6g}"


class _Axis:
    """A horizontal axis from one share of the width to another."""

    def __init__(self, domain: Domain, left: float = 3.0, percent: bool = False) -> None:
        low, high = domain
        self.low, self.high = (low, high) if high > low else (low - 0.5, low + 0.5)
        self.left, self.percent = left, percent

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.left + (_RIGHT - self.left) * share

    def drawn(self, top: float, bottom: float, title: str) -> list[str]:
        parts = []
        for tick in ticks(self.low, self.high):
            x = f"{self.at(tick):.2f}%"
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
            parts.append(
                f'<text class="tick" x="{x}" y="{bottom + 15}" text-anchor="middle">'
                f"{_number(tick, self.percent)}</text>"
            )
        middle = (self.left + _RIGHT) / 2
        parts.append(
            f'<text class="tick" x="{middle}%" y="{bottom + 32}" text-anchor="middle">'
            f"{escape(title)}</text>"
        )
        return parts

    def line(self, at: float, top: float, bottom: float, words: str) -> list[str]:
        x = self.at(at)
        anchor = "end" if x > 55 else "start"
        return [
            f'<line class="reference" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{bottom}"/>',
            f'<text class="tick" x="{x:.2f}%" y="{top - 3}" text-anchor="{anchor}">'
            f"{escape(words)}</text>",
        ]


def _mark(x: float, y: float, k: int, words: str) -> str:
    shape = SHAPES[k % len(SHAPES)]
    return (
        f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible"><path class="{_hue(k)}" d="{shape}">'
        f"<title>{escape(words)}</title></path></svg>"
    )


def _svg(height: float, parts: Sequence[str], words: str) -> str:
    return (
        f'<svg class="chart" role="img" aria-label="{escape(words)}" width="100%" '
        f'height="{height:.0f}">{"".join(parts)}</svg>'
    )


def _spoken(axis: str, said: Sequence[str]) -> str:
    more = len(said) - _SPOKEN
    rest = f"; and {more} more in the table" if more > 0 else ""
    return f"{axis}: {'; '.join(said[:_SPOKEN])}{rest}."


def _estimate(row: Row, percent: bool) -> str:
    """Return an estimate and its interval in words."""
    value, low, high = (
        None if row.get(name) is None else f"{row[name]:z.1%}" if percent else f"{row[name]:z.4g}"
        for name in ("value", "low", "high")
    )
    return f"{value}" if low is None or high is None else f"{value} ({low} to {high})"


def dots(
    rows: Sequence[Row],
    *,
    axis: str,
    domain: Domain,
    series: Sequence[str] = (),
    references: Mapping[str, float] | None = None,
    percent: bool = False,
) -> str:
    """Draw estimates as marks with their intervals as bars, a label above each.

    Rows have ``label``, ``series``, ``value``, ``low`` and ``high``. Series without intervals
    share a line. References are words with numbers, drawn as dashed lines.
    """
    series = series or different(rows, "series")
    scale = _Axis(domain, percent=percent)
    top = 16.0 if references else 2.0
    y = top
    marks: list[str] = []
    said = []
    step = 13 if any(row.get("low") is not None for row in rows) else 0
    for label in different(rows, "label"):
        for line in wrap(label, _LONGEST_LINE, break_on_hyphens=False):
            marks.append(f'<text class="label" x="0" y="{y + 13}">{escape(line)}</text>')
            y += 15
        y += 0 if step else 13
        for row in (row for row in rows if row["label"] == label):
            y += step
            k = series.index(row["series"])
            words = ", ".join(filter(None, [label, row["series"] if len(series) > 1 else ""]))
            words = f"{words} {_estimate(row, percent)}"
            said.append(words)
            if row.get("low") is not None and row.get("high") is not None:
                marks.append(
                    f'<line class="bar {_hue(k)}" x1="{scale.at(row["low"]):.2f}%" '
                    f'x2="{scale.at(row["high"]):.2f}%" y1="{y}" y2="{y}"/>'
                )
            marks.append(_mark(scale.at(row["value"]), y, k, words))
        y += 10
    parts = scale.drawn(top, y, axis)
    for words, at in (references or {}).items():
        parts += scale.line(at, top, y, words)
        said.append(f"the dashed line is {words}, at {_number(at, percent)}")
    return _svg(y + 38, [*parts, *marks], _spoken(axis, said))


def stacked(rows: Sequence[Row], *, axis: str, series: Sequence[str]) -> str:
    """Draw shares that sum to 1 as the parts of a bar, in the order of the series.

    Rows have ``label``, ``series`` and ``value``. The shares stand above a bar if there is room.
    """
    scale = _Axis((0.0, 1.0), percent=True)
    y, parts, said = 2.0, list[str](), []
    for label in different(rows, "label"):
        own = [row for row in rows if row["label"] == label]
        shares = [f"{row['series']} {row['value']:.0%}" for row in own]
        said.append(f"{label}: {', '.join(shares)}")
        parts.append(f'<text class="label" x="0" y="{y + 13}">{escape(label)}</text>')
        if len(words := " · ".join(shares)) <= 48:
            y += 15
            parts.append(f'<text class="tick" x="3%" y="{y + 13}">{escape(words)}</text>')
        left = 0.0
        for row, words in zip(own, shares, strict=True):
            x, end = scale.at(left), scale.at(left + row["value"])
            left += row["value"]
            shade = _shade(series.index(row["series"]), len(series))
            parts.append(
                f'<rect class="s1 part" x="{x:.2f}%" y="{y + 18}" width="{end - x:.2f}%" '
                f'height="16" {shade}><title>{escape(words)}</title></rect>'
            )
        y += 42
    return _svg(y + 38, [*scale.drawn(2.0, y, axis), *parts], _spoken(axis, said))


_HEIGHT = 200.0


def _upright(top: float, words: str, percent: bool) -> tuple[list[str], Any]:
    """Return a vertical axis from 0 to some number, and the function that places a value."""

    def place(value: float) -> float:
        return 18 + (_HEIGHT - 18) * (1.0 - min(max(value, 0.0), top) / top)

    parts = [f'<text class="tick" x="0" y="10">{escape(words)}</text>']
    for tick in ticks(0.0, top, 4):
        y = place(tick)
        parts.append(f'<line class="grid" x1="11%" x2="{_RIGHT:g}%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick" x="10%" y="{y + 4:.1f}" text-anchor="end">'
            f"{_number(tick, percent)}</text>"
        )
    return parts, place


def histogram(
    rows: Sequence[Row],
    *,
    axis: str,
    series: Sequence[str],
    references: Mapping[str, float],
    top: float,
) -> str:
    """Draw the shares in intervals as bars, those of several series side by side.

    Rows have ``low``, ``high``, ``series`` and ``share``. The ordinate ends at ``top``.
    """
    used = [name for name in series if name in different(rows, "series")]
    scale = _Axis((min(r["low"] for r in rows), max(r["high"] for r in rows)), left=11.0)
    upright, place = _upright(top, "share of people", True)
    parts = [*scale.drawn(18, _HEIGHT, axis), *upright]
    for row in rows:
        if not row["share"]:
            continue
        left, right = scale.at(row["low"]), scale.at(row["high"])
        width = (right - left) * 0.92 / len(used)
        left += width * used.index(row["series"])
        y = place(row["share"])
        words = f"{row['series']}, {row['low']:.3g} to {row['high']:.3g}: {row['share']:.1%}"
        parts.append(
            f'<rect class="{_hue(series.index(row["series"]))}" x="{left:.2f}%" y="{y:.1f}" '
            f'width="{width:.2f}%" height="{_HEIGHT - y:.1f}"><title>{escape(words)}</title></rect>'
        )
    for words, at in references.items():
        parts += scale.line(at, 18, _HEIGHT, words)
    said = []
    for name in used:
        own = [row for row in rows if row["series"] == name]
        most = max(own, key=lambda row: row["share"])
        said.append(f"most of {name} in {most['low']:.3g} to {most['high']:.3g}")
    return _svg(_HEIGHT + 38, parts, _spoken(f"Histogram of {axis}", said))


def points(
    rows: Sequence[Row],
    *,
    axis: str,
    upright: str,
    domain: Domain,
    series: Sequence[str] = (),
    joined: bool = False,
    diagonal: bool = False,
) -> str:
    """Draw points with their intervals, joined in their order if asked; the ordinate from 0 to 1.

    Rows have ``series``, ``x``, ``value``, ``low``, ``high`` and ``label``.
    """
    series = series or different(rows, "series")
    scale = _Axis(domain, left=11.0)
    lines, place = _upright(1.0, upright, False)
    parts = [*scale.drawn(18, _HEIGHT, axis), *lines]
    if diagonal:
        ends = [(scale.at(v), place(v)) for v in (0.0, 1.0)]
        parts.append(_line("reference", *ends))
    said = []
    for name in different(rows, "series"):
        own = [row for row in rows if row["series"] == name]
        k = series.index(name)
        places = [(scale.at(row["x"]), place(row["value"])) for row in own]
        if joined:
            parts += [_line(f"join {_hue(k)}", *ends) for ends in pairwise(places)]
        for row, (x, y) in zip(own, places, strict=True):
            words = f"{row['label']}: {row['x']:.3f}, {_estimate(row, False)}"
            said.append(words)
            if row.get("low") is not None and row.get("high") is not None:
                ends = [(x, place(row["low"])), (x, place(row["high"]))]
                parts.append(_line(f"bar {_hue(k)}", *ends))
            parts.append(_mark(x, y, k, words))
    return _svg(_HEIGHT + 38, parts, _spoken(f"{upright} against {axis}", said))


def _line(kind: str, first: tuple[float, float], second: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = first, second
    return f'<line class="{kind}" x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def slopes(
    pairs: Sequence[tuple[float, float, bool]], *, names: Sequence[str], axis: str, domain: Domain
) -> str:
    """Draw matched people as lines from the score of one to the score of the other.

    A line is dashed where the two are decided differently.
    """
    scale = _Axis(domain)
    parts = scale.drawn(22, 144, axis)
    for y, name in zip((14, 140), names, strict=True):
        parts.append(f'<text class="label" x="3%" y="{y}">{escape(name)}</text>')
    for first, second, flips in pairs:
        kind = "pair flips" if flips else "pair"
        parts.append(_line(kind, (scale.at(first), 24), (scale.at(second), 122)))
    for first, second, _ in pairs:
        parts.append(f'<circle class="s1" cx="{scale.at(first):.2f}%" cy="24" r="3"/>')
        parts.append(f'<circle class="s2" cx="{scale.at(second):.2f}%" cy="122" r="3"/>')
    n_flips = sum(flips for *_, flips in pairs)
    words = (
        f"{len(pairs)} matched pairs as lines from the {axis} of {names[0]} to that of {names[1]}"
        f"; {n_flips} of them are decided differently."
    )
    return _svg(182, parts, words)
