"""Levels of categories, compared by meaning: 1, 1.0 and "1" are the same level."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BOOLEANS = {"true": True, "false": False}


def level_type(levels: Sequence[Any]) -> str:
    """Return the type of levels: "boolean", "number", "text", or "nothing" if there are none.

    Parameters
    ----------
    levels : sequence
        Levels of one category, all of one type.

    Examples
    --------
    >>> from fairmatch.tables.levels import level_type
    >>> level_type([False, True]), level_type([1, 2.5]), level_type(["1"])
    ('boolean', 'number', 'text')
    """
    if not len(levels):
        return "nothing"
    if all(isinstance(level, bool | np.bool_) for level in levels):
        return "boolean"
    return "text" if isinstance(levels[0], str) else "number"


def find_levels(known: Sequence[Any], asked: Sequence[Any]) -> npt.NDArray[np.intp]:
    """Find levels among others by their meaning, even if table libraries use other types.

    Parameters
    ----------
    known : sequence
        The existing levels, all booleans, all numbers or all text.
    asked : sequence
        The levels to find, all booleans, all numbers or all text.

    Returns
    -------
    ndarray of int
        The position of each asked level in `known`, or -1 if it is not there.

    Notes
    -----
    Levels of the same type are compared as they are: the texts "1" and "01" differ. Between types,
    a boolean equals its spellings in files (``True``, ``true``, ``TRUE``) and the number 0 or 1. A
    number equals every text that spells it, such as "1" and "1.0".

    Examples
    --------
    >>> from fairmatch.tables.levels import find_levels
    >>> find_levels([False, True], ["true", "false", "unknown"])
    array([ 1,  0, -1])
    >>> find_levels(["1", "2"], [2.0, 3.0])
    array([ 1, -1])
    """
    types = {level_type(known), level_type(asked)}
    if "text" not in types or types <= {"text", "nothing"}:
        # In Python, True, 1 and 1.0 are the same key.
        index = pd.Index(known, dtype=object)
        return np.asarray(index.get_indexer(pd.Index(asked, dtype=object)), dtype=np.intp)
    booleans = "boolean" in types
    last_first = list(enumerate(known))[::-1]  # among levels with one meaning the first counts
    spelt = {str(level): position for position, level in last_first}
    meant = {_key(level, booleans): position for position, level in last_first}
    # An equal spelling comes first: the number 1 is the text "1" rather than "01".
    found = [spelt.get(str(level), meant.get(_key(level, booleans), -1)) for level in asked]
    return np.array(found, dtype=np.intp)


def _key(level: Any, booleans: bool) -> Any:
    """Return a key that levels of the same meaning share."""
    if not isinstance(level, str):
        return level
    if booleans and level.casefold() in _BOOLEANS:
        return _BOOLEANS[level.casefold()]
    if _WHOLE.fullmatch(level):
        return int(level)
    return float(level) if _NUMBER.fullmatch(level) else level
