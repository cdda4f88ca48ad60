"""Audits of tables in files."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from fairmatch.auditing.audit import audit, compare_models, predict_people, score_people
from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.datasets.catalogue import split_names
from fairmatch.exceptions import InputError
from fairmatch.people.checks import check_names
from fairmatch.people.files import MISSING_WORDS, class_written, find_value, read_table
from fairmatch.people.roles import Roles, RoleTable, describe_column, suspect


def audit_files(
    paths: Sequence[str],
    roles: Roles,
    *,
    models: Sequence[str] = (),
    pos_label: str = "1",
    accepted: str | None = None,
    privileged: Sequence[str] | None = None,
    reading: Mapping[str, Any] | None = None,
    show: Callable[[RoleTable], None] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Audit | Comparison:
    """Audit the scores in one or several tables of the same people.

    Parameters
    ----------
    paths : sequence of str
        CSV or Parquet files, told apart by their ending. Several files must hold the same people
        in the same order. Features, labels and weights come from the first file.
    roles : Roles
        The role of each column.
    models : sequence of str
        Folders of saved models, which score the features.
    pos_label : str, default="1"
        The positive label, as it is written in the table.
    accepted : str, optional
        The word that means yes, if the scores are decisions in words.
    privileged : sequence of str, optional
        The favoured groups, as they are written in the table.
    reading : mapping, optional
        Further arguments of `fairmatch.people.files.read_table`.
    show : callable, optional
        Called with the `RoleTable`, which describes every column, before the audit starts.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        Further arguments of `fairmatch.audit`.

    Returns
    -------
    Audit or Comparison
        An audit of one model, or a comparison of several.
    """
    if not roles.scores and not models:
        raise InputError(
            "Neither a column of scores nor a saved model was named, and an audit needs scores. "
            "Name a column with --score, or a saved model with --model."
        )
    if privileged is not None and settings.get("scale") == "real":
        raise InputError(
            f"--privileged {' '.join(privileged)} was given with --scale real, and predictions "
            "flip no decisions. Leave --privileged out."
        )
    options = {"text": [] if roles.id is None else [roles.id], **(reading or {})}
    tables = [read_table(path, **options).rename(columns=str) for path in paths]
    first = tables[0]
    roles = replace(roles, sensitive=split_names(roles.sensitive, list(first.columns)))
    read = roles.read(first, name=paths[0])
    shared = [name for role in ("score", "sensitive", "label", "id") for name in read.named(role)]
    for path, table in zip(paths[1:], tables[1:], strict=True):
        check_names(shared, list(table.columns), table=path)
    _check_same_people(paths, tables, read)
    if show is not None:
        show(read)
    attributes = [name for name, role in roles.named() if role == "sensitive"]
    sensitive = first[attributes] if len(attributes) > 1 else first[attributes[0]].to_numpy()
    scale = str(settings.get("scale", "probability"))
    label_value = _positive(first, roles.label, pos_label, scale)
    scores: dict[str, Any] = {}
    for path, table in zip(paths, tables, strict=True):
        for column in roles.scores:
            name = _name(Path(path).stem, column, len(paths) > 1, len(roles.scores) > 1)
            given = _numbers(table[column], accepted)
            scores[name if name not in scores else f"{path}: {column}"] = given
    for folder in models:
        scores[Path(folder).name] = _model_scores(
            folder, paths[0], first, read, sensitive, pos_label, scale
        )
    features = read.features
    facts: dict[str, Any] = {
        "sensitive_features": sensitive,
        "X": first[features] if features else None,
        "y_true": None if roles.label is None else first[roles.label].to_numpy(),
        "sample_weight": None if roles.weight is None else first[roles.weight].to_numpy(),
        "ids": None if roles.id is None else first[roles.id].to_numpy(),
        "pos_label": 1 if label_value is None else label_value,
        "progress": progress,
        **settings,
    }
    favoured = privileged and [_privileged(first, read, written) for written in privileged]
    if len(scores) == 1:
        ((name, own),) = scores.items()
        yes = accepted if roles.scores else None
        return _signed(audit(own.to_numpy(), model_name=name, **facts), paths[0], read, yes)
    arrays = {name: own.to_numpy() for name, own in scores.items()}
    found = compare_models(arrays, privileged=favoured, **facts)
    sources = [(path, accepted) for path in paths for _ in roles.scores]
    sources += [(paths[0], None)] * len(models)
    signed = tuple(
        _signed(a, path, read, yes) for a, (path, yes) in zip(found.audits, sources, strict=True)
    )
    return replace(found, audits=signed)


def _privileged(table: pd.DataFrame, read: RoleTable, written: str) -> Any:
    attributes = read.named("sensitive")
    if len(attributes) > 1:  # the name of a combination lists the values of its attributes
        return written
    return _value(table[attributes[0]], written, "--privileged")


def _check_same_people(paths: Sequence[str], tables: list[pd.DataFrame], read: RoleTable) -> None:
    pattern = ""
    if all(Path(path).suffix == ".parquet" for path in paths):
        pattern = (
            " To read the files as one table, put quotes around the pattern, such as "
            f"'{Path(paths[0]).parent / '*.parquet'}', or name the folder."
        )
    for path, table in zip(paths[1:], tables[1:], strict=True):
        if len(table) != len(tables[0]):
            raise InputError(
                f"{path} has {len(table)} rows and {paths[0]} has {len(tables[0])}. Only models "
                f"of the same people can be compared: pass tables with the same rows.{pattern}"
            )
        for column in (name for role in ("id", "sensitive", "label") for name in read.named(role)):
            if not table[column].equals(tables[0][column]):
                raise InputError(
                    f"{path} and {paths[0]} differ in column {column!r}. Only models of the same "
                    "people can be compared: pass tables with the same rows in the same order."
                    f"{pattern}"
                )


def _numbers(column: pd.Series[Any], accepted: str | None) -> pd.Series[Any]:
    """Return scores unchanged. Return decisions in words as 1 for yes and 0 for no."""
    if accepted is None and pd.api.types.is_numeric_dtype(column):
        return column
    values = column.dropna().unique().tolist()
    shown = ", ".join(str(value) for value in values[:5])
    if accepted is None:
        if len(values) != 2:
            _refuse_written_numbers(column)
            return column  # the audit's error then names the row with a word among numbers
        raise InputError(
            f"Column {column.name!r} holds words ({shown}), and scores are numbers. If the words "
            "are decisions, name the one that means yes, such as --accepted "
            f"{shlex.quote(str(values[-1]))}."
        )
    if len(values) > 2:
        raise InputError(
            f"--accepted {accepted} was given, and column {column.name!r} holds more than two "
            f"values ({shown}). Decisions have two values. Leave --accepted out if these are "
            "scores."
        )
    yes = _value(column, accepted, "--accepted")
    decided: pd.Series[Any] = (column == yes).astype(float).where(column.notna())
    return decided


def _refuse_written_numbers(column: pd.Series[Any]) -> None:
    """Raise if scores are numbers that are read as text, and say how to write them."""
    facts = describe_column(str(column.name), nw.from_native(column, series_only=True))
    found = suspect(facts)
    if found is not None and found.words.startswith("holds numbers with"):
        raise InputError(f"Column {column.name!r} {found.words}. Scores must be numbers.")


def _positive(table: pd.DataFrame, label: str | None, written: str, scale: str) -> Any:
    """Return the positive label if there are labels. A real-valued target has none."""
    if label is not None and scale == "probability":
        return _value(table[label], written, "--positive")
    return None if scale == "probability" or written == "1" else written


def _value(column: pd.Series[Any], written: str, option: str) -> Any:
    """Return the value of a column that is written as ``written``."""
    values = column.dropna().unique().tolist()
    try:
        return find_value(values, written)
    except LookupError:
        shown = ", ".join(str(value) for value in values[:5])
        raise InputError(
            f"Column {column.name!r} has no value {written!r}; it holds {shown}. Name one of its "
            f"values with {option}."
        ) from None


def _name(stem: str, column: str, several_files: bool, several_scores: bool) -> str:
    if several_files and several_scores:
        return f"{stem}: {column}"
    return stem if several_files else column


def _model_scores(
    folder: str,
    path: str,
    table: pd.DataFrame,
    read: RoleTable,
    sensitive: Any,
    positive: str,
    scale: str,
) -> pd.Series[float]:
    from fairmatch import load  # loading a model needs torch; an audit of scores does not

    model = load(folder)
    inside = getattr(model, "sensitive_column", None)
    known = getattr(model, "feature_names_in_", None)
    attributes = read.named("sensitive") if inside else []
    names = list(known) if known is not None else [*read.features, *attributes]
    check_names(names, list(table.columns), table=path)
    if scale == "real":
        return pd.Series(np.asarray(predict_people(model, table[names], sensitive)))
    try:
        label = class_written(model, positive)
    except InputError:
        # A model of the classes 0 and 1 may call 1 what the table's labels call by a word.
        if not read.named("label") or set(np.asarray(model.classes_).tolist()) != {0, 1}:
            raise
        label = 1
    return pd.Series(np.asarray(score_people(model, table[names], sensitive, label)))


def _signed(found: Audit, path: str, read: RoleTable, accepted: str | None) -> Audit:
    """Return an audit that records its source file, and how the columns were read."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    provenance = replace(found.provenance, source=Path(path).name, source_sha256=digest)
    if accepted is not None:
        settings = {**provenance.settings, "accepted": accepted}
        provenance = replace(provenance, settings=settings)
    notes = list(found.notes)
    for column in read.columns:
        if column.role == "sensitive" and column.n_missing:
            words = f" {MISSING_WORDS}" if Path(path).suffix.lower() == ".csv" else ""
            notes.append(
                f"For {column.n_missing:,} people {column.name!r} is missing. They are shown as "
                f"unknown, and are compared with nobody.{words}"
            )
    impact, attributes = found.impact, read.named("sensitive")
    if len(attributes) == 1:
        impact = tuple(replace(table, attributes=tuple(attributes)) for table in impact)
    return replace(
        found, provenance=provenance, columns=read.columns, notes=tuple(notes), impact=impact
    )
