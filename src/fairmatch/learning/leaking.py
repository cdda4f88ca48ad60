"""Columns that reveal the group to a model that must not see it."""

from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from fairmatch.exceptions import ColumnError, InputError, LeakWarning
from fairmatch.learning.notice import notify
from fairmatch.tables.leaks import find_leaks

# In a larger table, a sample of this many rows is searched.
_MOST_ROWS = 100_000


def refuse_leaks(features: Any, sensitive: Any, keep: str | Collection[str]) -> None:
    """Raise if a column is the group or determines it; warn if it nearly does.

    Parameters
    ----------
    features : table or array of shape (n_rows, n_columns)
        What the model sees.
    sensitive : column, or table of several attributes
        Group of every row.
    keep : "all" or a collection of str
        Columns to keep although they give the group away.

    Raises
    ------
    ColumnError
        If a column gives the group away in every row and is not in ``keep``.
    """
    if isinstance(keep, str):
        if keep != "all":
            raise InputError(f"keep must be a list of columns or 'all', got {keep!r}.")
        return
    if (n_rows := _num_samples(features)) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS])
        features, sensitive = _safe_indexing(features, rows), _safe_indexing(sensitive, rows)
    found = [leak for leak in find_leaks(features, sensitive) if leak.column not in keep]
    if exact := [leak for leak in found if leak.is_exact]:
        names = list(dict.fromkeys(leak.column for leak in exact))
        raise ColumnError(
            f"With sensitive_at_prediction=False the model must not see the group, but X gives it "
            f"away: {'; '.join(leak.words for leak in exact)}. Leave it out of X, or keep it on "
            f"purpose: keep={names}."
        )
    if found:
        notify(
            f"With sensitive_at_prediction=False the model must not see the group, but X nearly "
            f"gives it away: {'; '.join(leak.words for leak in found)}. Leave it out of X, or keep "
            f"it on purpose: keep={list(dict.fromkeys(leak.column for leak in found))}.",
            LeakWarning,
        )
