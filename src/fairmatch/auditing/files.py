"""Audits of tables in files: reading them, finding their columns, checking that people agree."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairmatch.auditing.assembly import audit, compare_models
from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.auditing.people import score_people
from fairmatch.exceptions import GroupError, InputError
from fairmatch.tables.files import (
    MISSING_WORDS,
    check_column,
    class_written,
    find_value,
    read_table,
)


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what.

    Attributes
    ----------
    scores : sequence of str
        Columns with scores; each is a model.
    sensitive : str
        The group.
    label, id : str or None
        The outcome; who the person is.
    features : sequence of str or None
        What describes people; None takes all columns without another role.
    models : sequence of str
        Folders of saved models, which score the features.
    """

    scores: Sequence[str]
    sensitive: str
    label: str | None = None
    id: str | None = None
    features: Sequence[str] | None = None
    models: Sequence[str] = ()


def audit_files(
    paths: Sequence[str],
    roles: Roles,
    *,
    pos_label: str = "1",
    privileged: str | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Audit | Comparison:
    """Audit the scores in one or several tables of the same people.

    Parameters
    ----------
    paths : sequence of str
        CSV or Parquet files, by their ending. Several must hold the same people in the same
        order; features and labels are those of the first.
    roles : Roles
        Which columns are what.
    pos_label, privileged : str
        The positive label and the favoured group, as they are written in the table.
    progress
        As in `fairmatch.audit`.
    **settings
        Further arguments of `fairmatch.audit`.

    Returns
    -------
    Audit or Comparison
        A comparison if there is more than one model.
    """
    if not roles.scores and not roles.models:
        raise InputError("Nothing to audit: name a column of scores, or a saved model.")
    text = [] if roles.id is None else [roles.id]
    tables = [read_table(path, text=text).rename(columns=str) for path in paths]
    first = tables[0]
    for path, table in zip(paths, tables, strict=True):
        _check_columns(path, table, [*roles.scores, roles.sensitive, roles.label, roles.id])
    _check_columns(paths[0], first, roles.features or [])
    _check_same_people(paths, tables, roles)
    features = _features(first, roles)
    sensitive = first[roles.sensitive]
    if n_missing := int(sensitive.isna().sum()):
        raise GroupError(
            f"Column {roles.sensitive!r} of {paths[0]} has {n_missing} missing values. Drop those "
            f"rows, or give them a group of their own on purpose. {MISSING_WORDS}"
        )
    label_value = (
        None if roles.label is None else _value(first[roles.label], pos_label, "--positive")
    )
    scores: dict[str, Any] = {}
    for path, table in zip(paths, tables, strict=True):
        for column in roles.scores:
            name = _name(Path(path).stem, column, len(paths) > 1, len(roles.scores) > 1)
            scores[name if name not in scores else f"{path}: {column}"] = table[column]
    for folder in roles.models:
        scores[Path(folder).name] = _model_scores(
            folder, paths[0], first, features, roles, pos_label
        )
    given: dict[str, Any] = {
        "sensitive_features": sensitive.to_numpy(),
        "X": first[features] if features else None,
        "y_true": None if roles.label is None else first[roles.label].to_numpy(),
        "ids": None if roles.id is None else first[roles.id].to_numpy(),
        "pos_label": 1 if label_value is None else label_value,
        "progress": progress,
        **settings,
    }
    favoured = None if privileged is None else _value(sensitive, privileged, "--privileged")
    if len(scores) == 1:
        ((name, own),) = scores.items()
        return _signed(audit(own.to_numpy(), model_name=name, **given), paths[0])
    arrays = {name: own.to_numpy() for name, own in scores.items()}
    found = compare_models(arrays, privileged=favoured, **given)
    n_models = len(roles.models)
    sources = [path for path in paths for _ in roles.scores] + [paths[0]] * n_models
    signed = tuple(_signed(a, path) for a, path in zip(found.audits, sources, strict=True))
    return replace(found, audits=signed)


def _check_columns(path: str, table: pd.DataFrame, names: Sequence[str | None]) -> None:
    for name in names:
        if name is not None:
            check_column(table, name, table=path)


def _check_same_people(paths: Sequence[str], tables: list[pd.DataFrame], roles: Roles) -> None:
    for path, table in zip(paths[1:], tables[1:], strict=True):
        if len(table) != len(tables[0]):
            raise InputError(
                f"{path} has {len(table)} rows and {paths[0]} has {len(tables[0])}: only models "
                "of the same people can be compared."
            )
        for column in (roles.id, roles.sensitive, roles.label):
            if column is not None and not table[column].equals(tables[0][column]):
                raise InputError(
                    f"{path} and {paths[0]} differ in column {column!r}: only models of the same "
                    "people, in the same order, can be compared."
                )


def _features(table: pd.DataFrame, roles: Roles) -> list[str]:
    if roles.features is not None:
        return list(roles.features)
    taken = {*roles.scores, roles.sensitive, roles.label, roles.id}
    return [name for name in table.columns if name not in taken]


def _value(column: pd.Series[Any], written: str, option: str) -> Any:
    """Find the value of a column that is written this way."""
    values = column.dropna().unique().tolist()
    try:
        return find_value(values, written)
    except LookupError:
        shown = ", ".join(str(value) for value in values[:5])
        raise InputError(
            f"Column {column.name!r} has no value {written!r}; it holds {shown}. Say which one is "
            f"meant with {option}."
        ) from None


def _name(stem: str, column: str, several_files: bool, several_scores: bool) -> str:
    if several_files and several_scores:
        return f"{stem}: {column}"
    return stem if several_files else column


def _model_scores(
    folder: str,
    path: str,
    table: pd.DataFrame,
    features: list[str],
    roles: Roles,
    positive: str,
) -> pd.Series[float]:
    from fairmatch import load  # it needs torch, which an audit of scores does not

    model = load(folder)
    inside = getattr(model, "sensitive_column", None)
    known = getattr(model, "feature_names_in_", None)
    names = list(known) if known is not None else [*features, *([roles.sensitive] * bool(inside))]
    _check_columns(path, table, names)
    label = class_written(model, positive)
    scores = score_people(model, table[names], table[roles.sensitive].to_numpy(), label)
    return pd.Series(np.asarray(scores))


def _signed(found: Audit, path: str) -> Audit:
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    provenance = replace(found.provenance, source=Path(path).name, source_sha256=digest)
    return replace(found, provenance=provenance)
