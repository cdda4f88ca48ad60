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

from fairmatch.auditing.audit import (
    audit,
    called,
    compare_models,
    predict_people,
    score_people,
)
from fairmatch.auditing.facts import Audit, Comparison, ImpactTable
from fairmatch.exceptions import InputError
from fairmatch.people.bands import bands
from fairmatch.people.checks import check_names
from fairmatch.people.files import MISSING_WORDS, find_positive, find_value, read_table
from fairmatch.people.memberships import group_probabilities
from fairmatch.people.outcome import class_places
from fairmatch.people.roles import Roles, RoleTable, describe_column, split_names, suspect
from fairmatch.people.similarity import written_similarity

_SIMILARITIES = {"auto": "auto", "relevance": "relevance", "range": None}


def audit_files(
    paths: Sequence[str],
    roles: Roles,
    *,
    models: Sequence[str] = (),
    pos_label: str | None = None,
    accepted: Sequence[str] = (),
    classes: Sequence[str] = (),
    unordered: bool = False,
    privileged: Sequence[str] | None = None,
    reading: Mapping[str, Any] | None = None,
    show: Callable[[RoleTable], None] | None = None,
    progress: Callable[[str], None] | None = None,
    given: Sequence[str] = (),
    similar: Sequence[str] = (),
    categorical: Sequence[str] = (),
    estimated: bool = False,
    known: str | None = None,
    cuts: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | None = None,
    stages: Sequence[str] = (),
    **settings: Any,
) -> Audit | Comparison:
    """Audit the scores in one or several tables of the same people."""
    if not roles.scores and not models and not stages:
        raise InputError(
            "Neither a column of scores nor a saved model was named, but an audit needs scores. "
            "Name one of the two."
        )
    options = {"text": [] if roles.id is None else [roles.id], **(reading or {})}
    tables = [read_table(path, **options).rename(columns=str) for path in paths]
    names = list(tables[0].columns)
    for column in split_names(categorical, names, "categorical"):
        check_names([column], names, table=paths[0])
        for table in tables:
            table[column] = table[column].astype("string").astype(object).astype("category")
    first = tables[0]
    factors = split_names(given, names, "given")
    check_names(factors, names, table=paths[0])
    alike: Any = split_names(similar, names, "similarity") or ["auto"]
    steps = split_names(stages, names, "stages")
    check_names([*steps, *([] if by is None else [by])], names, table=paths[0])
    if steps:
        roles = replace(roles, scores=tuple(steps[-1:]), stages=tuple(steps[:-1]))
    roles = roles.among(list(first.columns))
    read = roles.read(first, name=paths[0])
    _check_same_people(paths, tables, read)
    words = _accepted_words(accepted, first[steps or list(roles.scores)], stages=bool(steps))
    if show is not None:
        show(read)
    attributes = list(roles.sensitive)
    sensitive = _sensitive(first, attributes, cuts or {}, estimated=estimated)
    if estimated and known is not None:
        check_names([known], names, table=paths[0])
        settings["known"] = first[known].to_numpy()
    is_real = settings.get("kind") == "number"
    fitted = {folder: load_model(folder) for folder in models}
    is_decided = bool(classes) and len(roles.scores) == 1  # the column holds each person's class
    if classes and not is_decided and len(classes) != len(roles.scores) and (
        roles.scores or not models
    ):  # fmt: skip
        raise InputError(
            f"{len(classes)} classes are named, but {len(roles.scores)} columns of scores. Name "
            "one column for each class, in the same order, or one column with the class of each "
            "person.",
            parameter="classes",
        )
    wide = [own for own in fitted.values() if len(getattr(own, "classes_", ())) > 2]
    order = list(classes)
    if wide and not classes:
        order, unordered = np.asarray(wide[0].classes_).tolist(), True
    positive: Any = 1
    if roles.label is not None:
        labels = first[roles.label]
        written = {str(own): own for own in labels.dropna().unique().tolist()}
        order = [written.get(str(own), own) for own in order]  # as they are written in the file
        if not is_real and not order:
            of = f"the values of column {roles.label!r}"
            positive = find_positive(labels, pos_label, "pos_label", of)
    if is_real and pos_label is not None:
        positive = pos_label  # the audit refuses it, because a number has no positive label
    good = settings.pop("favourable", None)
    settings["favourable"] = _favourable(good, order) if order else good or "high"
    if order:
        settings["classes"] = None if unordered else order
    if is_decided:
        written = {str(own): own for own in first[roles.scores[0]].dropna().unique().tolist()}
        order = [written.get(str(own), own) for own in order]
        settings["classes"] = None if unordered else order
    by_class = classes and roles.scores and not is_decided
    places = class_places(roles.scores, classes) if by_class else None
    scores: dict[str, Any] = {}
    sources: list[tuple[str, str | None]] = []
    for path, table in zip(paths, tables, strict=True):
        stem = [Path(path).stem] * (len(paths) > 1)
        if is_decided:
            scores[": ".join([*stem, roles.scores[0]])] = table[roles.scores[0]].to_numpy()
            sources.append((path, None))
            continue
        if order and roles.scores:
            own = pd.DataFrame({c: _numbers(table[c], None) for c in roles.scores})
            if places is not None:
                own = own.iloc[:, places]
            scores["".join(stem) or "model"] = own.set_axis(order, axis=1)
            sources.append((path, None))
            continue
        for column in roles.scores:
            name = ": ".join([*stem, *[column] * (len(roles.scores) > 1)]) or column
            scores[name if name not in scores else f"{path}: {column}"] = _numbers(
                table[column], words[column], is_alone=len(words) == 1
            )
            sources.append((path, words[column]))
    for folder, model in fitted.items():
        scores[Path(folder).name] = _model_scores(
            model, paths[0], first, read, sensitive, pos_label, order, is_real=is_real
        )
        sources.append((paths[0], None))

    def table_of(own: Sequence[str]) -> Any:
        return first[list(own)] if own else None

    def values_of(own: str | None) -> Any:
        return None if own is None else first[own].to_numpy()

    facts: dict[str, Any] = {
        "sensitive_features": sensitive,
        "X": table_of(read.features),
        "y_true": values_of(roles.label),
        "sample_weight": values_of(roles.weight),
        "ids": values_of(roles.id),
        "keep": list(roles.kept),
        "given": table_of(factors),
        "similarity": _SIMILARITIES.get(",".join(alike), written_similarity(alike)),
        "pos_label": positive,
        "progress": progress,
        **settings,
    }
    favoured: list[Any] | None = None if privileged is None else list(privileged)
    if favoured and is_real:
        raise InputError(
            f"privileged={favoured} was given with kind='number', but numeric predictions have no "
            "decisions to flip. Leave it out.",
            parameter="privileged",
        )
    if favoured and (len(scores) == 1 or steps):
        raise InputError(
            f"privileged={favoured} was given for one model, but flips are changes "
            "of a decision from one model to another. Leave it out, or audit several models.",
            parameter="privileged",
        )
    if favoured and len(attributes) == 1:  # else the name of a group lists several values
        values = first[attributes[0]]
        favoured = [find_value(values, written, "privileged") for written in favoured]
    if by is not None:
        facts["by"] = _codes(first[by])
    if len(scores) > 1 and not steps:
        found = compare_models(scores, privileged=favoured, **facts)
        both = zip(found.audits, sources, strict=True)
        return replace(found, audits=tuple(_signed(own, *of, read) for own, of in both))
    ((name, decided),), (source,) = scores.items(), sources
    if not steps:
        return _signed(audit(decided, model_name=name, **facts), *source, read)
    facts["stages"] = {step: _numbers(first[step], words[step], is_alone=False) for step in steps}
    found_stages = _signed(audit(model_name=steps[-1], **facts), *source, read)
    if len(set(words.values()) - {None}) < 2:
        return found_stages
    each = ", ".join(f"{name}={word}" for name, word in words.items() if word is not None)
    settings = {**found_stages.provenance.settings, "accepted_by_stage": each}
    return replace(found_stages, provenance=replace(found_stages.provenance, settings=settings))


def _sensitive(
    table: pd.DataFrame,
    attributes: list[str],
    cuts: Mapping[str, Mapping[str, Any]],
    *,
    estimated: bool,
) -> Any:
    """Return the groups as `fairmatch.audit` takes them."""
    for column in cuts:
        if column not in attributes:
            raise InputError(
                f"{column!r} is cut into bands, and is no column with groups. Name it among the "
                "groups too.",
                parameter="bands",
            )
    banded = {column: bands(table[column], **how) for column, how in cuts.items()}
    if estimated:
        return group_probabilities(table[attributes])
    if len(attributes) == 1:
        return banded.get(attributes[0], _codes(table[attributes[0]]).to_numpy())
    # Several attributes are crossed, so only a single one keeps its order.
    crossed = {column: np.asarray(own) for column, own in banded.items()}
    return table[attributes].assign(**crossed)


def _codes(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return whole numbers as such. Where one is missing, a file has them as 1.0 and 2.0."""
    if not pd.api.types.is_float_dtype(column) or not (column.dropna() % 1.0 == 0.0).all():
        return column
    codes = [None if pd.isna(value) else int(value) for value in column]
    return pd.Series(codes, column.index, dtype=object, name=column.name)


def _favourable(good: Any, classes: Sequence[Any]) -> list[Any]:
    """Return which of several classes are good for a person."""
    if good is None:
        raise InputError(
            f"There are {len(classes)} classes, but it is not known which of them are good for a "
            f"person. Name them, such as {classes[-1]}.",
            parameter="favourable",
        )
    good = split_names(good, ()) if isinstance(good, str) else good
    return [find_value(classes, str(own), "favourable", "the classes") for own in good]


def _check_same_people(paths: Sequence[str], tables: list[pd.DataFrame], read: RoleTable) -> None:
    pattern = ""
    if all(Path(path).suffix == ".parquet" for path in paths):
        pattern = (
            " To read the files as one table, put quotes around the pattern, such as "
            f"'{Path(paths[0]).parent / '*.parquet'}', or name the folder."
        )
    shared = [name for role in ("id", "sensitive", "label") for name in read.named(role)]
    for path, table in zip(paths[1:], tables[1:], strict=True):
        check_names([*read.named("score"), *shared], list(table.columns), table=path)
        if len(table) != len(tables[0]):
            raise InputError(
                f"{path} has {len(table)} rows and {paths[0]} has {len(tables[0])}. Only models "
                f"of the same people can be compared: pass tables with the same rows.{pattern}"
            )
        for column in shared:
            if not table[column].equals(tables[0][column]):
                raise InputError(
                    f"{path} and {paths[0]} differ in column {column!r}. Only models of the same "
                    "people can be compared: pass tables with the same rows in the same order."
                    f"{pattern}"
                )


# Words that mean that a person is accepted.
_YES = {"yes", "y", "true", "t", "accepted", "accept", "approved", "granted", "hired", "selected",
        "offer", "offered", "invited", "admitted", "passed", "pass", "1"}  # fmt: skip


def _accepted_words(
    typed: Sequence[str], table: pd.DataFrame, *, stages: bool
) -> dict[str, str | None]:
    """Return the word that means acceptance in each column of decisions, typed as COL=VALUE.

    A VALUE without a column applies to all columns without a word of their own. Stages that are 0
    and 1 already, such as the column of the applicants, need none.
    """
    words: dict[str, str] = {}
    names = list(table.columns)
    for text in typed:
        column = max((name for name in names if text.startswith(f"{name}=")), key=len, default="")
        if not column and "=" in text and not (table.astype(str) == text).any(axis=None):
            check_names([text.partition("=")[0]], names, table="--accepted")
        word = text.removeprefix(f"{column}=") if column else text
        if words.setdefault(column, word) != word:
            each = " ".join(f"--accepted {shlex.quote(name)}=VALUE" for name in names)
            raise InputError(
                f"accepted gives {f'column {column!r}' if column else 'all columns'} two words, "
                f"{words[column]!r} and {word!r}. Give one word for all columns, or one for each: "
                f"{each}.",
                parameter="accepted",
            )
    shared = words.get("")

    def needs_none(own: pd.Series[Any]) -> bool:
        return stages and set(own.dropna()) <= {0, 1} and shared not in own.astype(str).tolist()

    return {name: words.get(name, None if needs_none(table[name]) else shared) for name in names}


def _numbers(
    column: pd.Series[Any], accepted: str | None, *, is_alone: bool = True
) -> np.ndarray[Any, Any]:
    """Return scores unchanged. Return decisions in words as 1 for yes and 0 for no."""
    if accepted is None and pd.api.types.is_numeric_dtype(column):
        return column.to_numpy()
    values = column.dropna().unique().tolist()
    shown = ", ".join(str(value) for value in values[:5])
    if accepted is not None and len(values) > 2:
        advice = "Leave it out if these are scores."
        if len({str(value).strip().casefold() for value in values}) == 2:
            shown = ", ".join(repr(str(value)) for value in values[:5])
            advice = "Some differ only in capitals or spaces: spell them the same way."
        raise InputError(
            f"accepted={accepted!r} was given, but column {column.name!r} holds more than two "
            f"values ({shown}). Decisions have two values. {advice}",
            parameter="accepted",
        )
    like_yes = [value for value in values if str(value).strip().casefold() in _YES] or values[-1:]
    typed = " ".join(
        f"--accepted {shlex.quote(str(value) if is_alone else f'{column.name}={value}')}"
        for value in like_yes[:1]
    )
    if accepted is not None:
        try:
            yes = find_value(column, accepted, "accepted")
        except InputError as error:
            more = "" if is_alone else f" A column may have its own word: {typed}."
            raise InputError(f"{error}{more}", parameter="accepted") from None
        return np.where(column.notna(), (column == yes).astype(float), np.nan)
    if 1 <= len(values) <= 2:
        raise InputError(
            f"Column {column.name!r} holds words ({shown}), but scores are numbers. If the words "
            f"are decisions, name the one that means yes: {typed}.",
            parameter="accepted",
        )
    found = suspect(describe_column(str(column.name), nw.from_native(column, series_only=True)))
    if found is not None and found.words.startswith("holds numbers with"):
        raise InputError(f"Column {column.name!r} {found.words}. Scores must be numbers.")
    return column.to_numpy()  # the audit's error then names the row with a word among numbers


def load_model(folder: str) -> Any:
    """Return a saved model."""
    from fairmatch import load  # loading a model needs torch; an audit of scores does not

    return load(folder)


def _model_scores(
    model: Any,
    path: str,
    table: pd.DataFrame,
    read: RoleTable,
    sensitive: Any,
    written: str | None,
    order: Sequence[Any],
    *,
    is_real: bool,
) -> Any:
    """Return the scores of a saved model for the rows of a table; of several classes in order."""
    known = getattr(model, "feature_names_in_", None)
    attributes = read.named("sensitive") if getattr(model, "sensitive_column", None) else []
    names = list(known) if known is not None else [*read.features, *attributes]
    check_names(names, list(table.columns), table=path)
    if is_real:
        return predict_people(model, table[names], sensitive)
    classes = np.asarray(model.classes_).tolist()
    if order:
        places = [find_value(classes, str(own), "classes", "the classes of the model")
                  for own in order]  # fmt: skip
        found = pd.DataFrame(called(model, "predict_proba", table[names], sensitive),
                             columns=classes)  # fmt: skip
        return found[places].set_axis(list(order), axis=1)
    # A model of the classes 0 and 1 may call 1 what the table's labels call by a word.
    if read.named("label") and set(classes) == {0, 1}:
        written = "1"
    positive = find_positive(classes, written, "pos_label", "the classes of the model")
    return score_people(model, table[names], sensitive, positive)


def _signed(found: Audit, path: str, accepted: str | None, read: RoleTable) -> Audit:
    """Return an audit that records its source file, and how the columns were read."""
    settings = {} if accepted is None else {"accepted": accepted}
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    notes = list(found.notes)
    for column in read.columns:
        if column.role == "sensitive" and column.n_missing:
            words = f" {MISSING_WORDS}" if Path(path).suffix.lower() == ".csv" else ""
            notes.append(
                f"For {column.n_missing:,} people {column.name!r} is missing. They are shown as "
                f"unknown, but are compared with nobody.{words}"
            )
    found = replace(found, columns=read.columns, notes=tuple(notes))
    return from_source(found, Path(path).name, digest, read.named("sensitive"), settings)


def from_source(
    found: Audit, name: str, digest: str, attributes: Sequence[str], settings: Mapping[str, Any]
) -> Audit:
    """Return an audit that records the source of the people, and how they were read."""

    def named(tables: tuple[ImpactTable, ...]) -> tuple[ImpactTable, ...]:
        """Name a single attribute; several are named already."""
        one = tuple(attributes)
        return tuple(replace(own, attributes=one) for own in tables) if len(one) == 1 else tables

    provenance = replace(
        found.provenance,
        source=name,
        source_sha256=digest,
        settings={**found.provenance.settings, **settings},
    )
    return replace(
        found,
        provenance=provenance,
        impact=named(found.impact),
        stages=tuple(replace(one, impact=named(one.impact)) for one in found.stages),
    )
