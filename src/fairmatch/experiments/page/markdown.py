"""Cells and tables of the page of results, as Markdown."""

from collections.abc import Iterable, Sequence
from html import escape
from re import sub

import numpy as np

from fairmatch.experiments.reading.levels import Reading


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown.

    Examples
    --------
    >>> print(table(["α", "cost"], [["0", "3.61"]]))
    | α | cost |
    |---|---|
    | 0 | 3.61 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


def plain_text(text: str) -> str:
    r"""Return a text with the signs of Markdown and HTML escaped.

    Examples
    --------
    >>> print(plain_text("*best* <of> a|b"))
    \*best\* &lt;of&gt; a\|b
    """
    return sub(r"([\\`*_\[\]|~])", r"\\\1", escape(text, quote=False))


def mean_cell(reading: Reading, digits: int = 4) -> str:
    """Return a mean with its standard error and the number of its splits.

    Examples
    --------
    >>> mean_cell(Reading({0: 0.8, 1: 0.9}, (0.1, 0.1), 5), 2)
    '0.85 ± 0.05 (2 of 5)'
    """
    if not reading.n:
        return f"not reached (0 of {reading.n_seeds})"
    of = f"{reading.n}" if reading.n == reading.n_seeds else f"{reading.n} of {reading.n_seeds}"
    error = f" ± {reading.error:.{digits}f}" if np.isfinite(reading.error) else ""
    return f"{reading.mean:.{digits}f}{error} ({of})"


def paper_cell(value: float | None, digits: int = 4) -> str:
    """Return a figure of the paper with three digits, or with four where it has them.

    Examples
    --------
    >>> paper_cell(0.81), paper_cell(0.8125)
    ('0.810', '0.8125')
    """
    if value is None:
        return ""
    shown = f"{value:.{digits}f}"
    return shown[:-1] if digits == 4 and shown.endswith("0") else shown
