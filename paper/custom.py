"""Studies of one's own tables and methods."""

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from pathlib import Path
from re import fullmatch
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from fairmatch.datasets import Dataset
from fairmatch.exceptions import GroupError, InputError, LabelError
from fairmatch.learning.path import categorised
from fairmatch.people.checks import FloatArray, check_names
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.files import MISSING_WORDS, read_table
from paper.methods import Curve, Method, Model, Problem, Rows
from paper.specs import Series, Study


def own_method(
    name: str,
    estimator: str,
    *,
    weight_parameter: str | None = None,
    weights: Sequence[float] = (),
    settings: Mapping[str, Any] | None = None,
    folders: Sequence[str] = (),
) -> Method:
    """Return a method that trains a scikit-learn-like classifier.

    ``estimator`` is the import path of the class, as ``"package.module:Class"``. ``weights`` are
    values of ``weight_parameter``, which trades accuracy for fairness, from the most accurate to
    the fairest; without it the method has one model. ``folders`` may hold the module, and a change
    of a module there makes another method.

    Examples
    --------
    >>> from paper.custom import own_method
    >>> own_method("forest", "sklearn.ensemble:RandomForestClassifier").weights
    (0.0,)
    """
    if (weight_parameter is None) != (not weights):
        raise InputError(
            f"Method {name!r} has {'weights' if weights else 'weight_parameter'} alone. Name "
            "weight_parameter and weights together, or neither."
        )
    if weight_parameter == "random_state":
        raise InputError(
            f"Method {name!r}: weight_parameter is 'random_state', which is set to the seed of the "
            "split. Name the parameter that trades accuracy for fairness."
        )
    fit = OwnFit(name, estimator, weight_parameter, settings or {}, tuple(folders))
    try:
        plain = fit.unfitted()
        if weight_parameter is not None:
            plain.set_params(**{weight_parameter: weights[0]})
    except InputError:
        raise
    except Exception as error:  # a researcher's class may fail in any way
        raise InputError(
            f"Method {name!r}: {estimator} cannot be made with these parameters "
            f"({type(error).__name__}: {error}). Correct its settings."
        ) from error
    for needed in ("fit", "predict"):
        if not hasattr(plain, needed):
            raise InputError(
                f"Method {name!r}: {estimator} has no method {needed!r}. Name a classifier with "
                "fit and predict."
            )
    code = fit.code()
    return Method(
        name,
        tuple(weights) or (0.0,),  # not converted: the parameter may need whole numbers
        fit,
        schedule="own",
        settings={
            "estimator": estimator,
            "weight_parameter": weight_parameter,
            # As text, because 1 and 1.0 may differ, as they do in scikit-learn's forests.
            "parameters": json.dumps([settings or {}, weights], sort_keys=True),
            **({"code": code} if code else {}),
        },
    )


@dataclass(frozen=True, eq=False)
class OwnFit:
    """The training of a researcher's classifier, held as names alone.

    A worker process unpickles this before it knows the folder of the class. So it holds no object
    of the class, and imports the class when it is called.
    """

    name: str
    estimator: str
    weight_parameter: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def unfitted(self) -> Any:
        """Return the classifier with its settings."""
        # Appended, because a researcher's file must not hide a package that others import.
        sys.path += [folder for folder in self.folders if folder not in sys.path]
        return clone(_find_class(self.name, self.estimator)(**self.settings))

    def code(self) -> str | None:
        """Return the SHA-256 of the module's file, if it is the researcher's own."""
        module = self.estimator.partition(":")[0]
        file = getattr(import_module(module), "__file__", None)
        inside = Path(*module.split("."))
        own = (
            Path(folder, *ending.parts)
            for folder in self.folders
            for ending in (inside.with_suffix(".py"), inside / "__init__.py")
        )
        for path in own:
            if file is not None and path.exists() and path.samefile(file):
                return sha256_of(path)
        return None

    def __call__(self, problem: Problem, settings: Mapping[str, Any], seed: int) -> Curve:
        """Return the curve of a problem, trained at the weights of the settings."""
        models = []
        for weight in settings["weights"]:
            model = self.unfitted()
            chosen = {} if self.weight_parameter is None else {self.weight_parameter: weight}
            if "random_state" in model.get_params():
                chosen["random_state"] = seed
            models.append(_fit_any(model.set_params(**chosen), chosen, problem.train))
        return Curve(settings["weights"], models)


def _find_class(name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    if module.endswith(".py"):
        raise InputError(f"Method {name!r}: write {path!r} without '.py'.")
    try:
        return getattr(import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise InputError(
            f"Method {name!r}: there is no {path!r} ({error}). Write it as "
            "'package.module:Class', and make sure that the package is installed or in the "
            "working folder."
        ) from error
    except (Exception, SystemExit) as error:  # a researcher's module may fail in any way
        raise InputError(
            f"Method {name!r}: the module of {path!r} cannot be imported "
            f"({type(error).__name__}: {error}). Correct the module."
        ) from error


def _fit_any(model: Any, chosen: Mapping[str, Any], train: Rows) -> Model:
    """Train a researcher's classifier; its errors tell the parameters that were chosen."""

    def takes_groups(method: str) -> bool:
        return "sensitive_features" in signature(getattr(model, method)).parameters

    @contextmanager
    def told() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            error.add_note(f"{type(model).__name__} with {dict(chosen)}")
            raise

    apart = takes_groups("fit")

    def features(rows: Rows, group: Any) -> Any:
        return rows.encoded if apart else np.column_stack([rows.encoded, group])

    def scores(rows: Rows, group: Any) -> FloatArray:
        how = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        given = {"sensitive_features": group} if apart and takes_groups(how) else {}
        with told():
            found = getattr(model, how)(features(rows, group), **given)
            return _as_scores(found, f"{type(model).__name__}.{how}", len(rows))

    with told():
        given = {"sensitive_features": train.group} if apart else {}
        model.fit(features(train, train.group), train.y, **given)
    return scores


def _as_scores(given: Any, giver: str, n_rows: int) -> FloatArray:
    """Return the scores of Y = 1 from the output of a classifier."""
    found = np.asarray(given)
    try:
        numbers = found.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{giver} gave values that are not all numbers; the first is {found.ravel()[0]!r}. "
            "Labels are 0 or 1, as fit receives them. Return these."
        ) from None
    if found.shape not in ((n_rows,), (n_rows, 2)):
        raise InputError(
            f"{giver} gave an array of shape {found.shape} for {n_rows} rows. Return two columns, "
            "for the labels 0 and 1, or one number for each row."
        )
    scores = numbers if numbers.ndim == 1 else numbers[:, 1]
    if (outside := ~((scores >= 0.0) & (scores <= 1.0))).any():  # also finds NaN
        raise InputError(
            f"{giver} gave {scores[outside][0]:g} for a row. Scores lie in [0, 1], and decisions "
            "are 0 or 1. Return these."
        )
    return scores


SMALLEST_PART = 20
"""Rows of each label that a group needs, because only a fifth of them are test rows."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A table in a file, with the roles of its columns."""

    name: str  #: Name of the table in the study.
    file: Path  #: A .csv or .parquet file.
    #: Everything about the table that a run's result depends on, as specs hold it: the SHA-256 of
    #: the file, the columns with labels and groups, those that are left out, the positive label,
    #: both groups with the favoured one last, and the size of a mini-batch.
    roles: Mapping[str, Any]

    @classmethod
    def read(cls, name: str, content: Any, folder: Path) -> "OwnTable":
        """Return the table that a file of a study describes, or raise if it cannot be used."""
        where = f"[tables.{name}]"
        given = _read_keys(content, _TABLE_KEYS, where)
        for column in given["drop"]:
            if not isinstance(column, str):
                raise InputError(
                    f"{where}: drop must hold names of columns as text, got {column!r}."
                )
        file, target, sensitive = folder / given["file"], given["target"], given["sensitive"]
        frame, drop = read_table(file), sorted(set(given["drop"]))
        for column in (target, sensitive, *drop):
            check_names([column], list(frame.columns), table=f"{where}: {file.name}")
        if len({target, sensitive, *drop}) < 2 + len(drop):
            raise InputError(
                f"{where}: target, sensitive and drop must be different columns. Name each column "
                "once."
            )
        labels = _two_values(frame[target], LabelError, f"{where}: target", "labels")
        positive = _one_of(given["positive"], labels, f"{where}: positive")
        groups = _two_values(frame[sensitive], GroupError, f"{where}: sensitive", "groups")
        rows = frame[sensitive].astype(str)
        accepted = frame[target].astype(str) == positive
        if (smallest := int(pd.crosstab(rows, accepted).to_numpy().min())) < SMALLEST_PART:
            raise GroupError(
                f"{where}: a group of {sensitive!r} has {smallest} rows of one label. "
                f"{SMALLEST_PART} are needed, because only a fifth of them are test rows. Add "
                "rows, or choose other groups."
            )
        favoured = str(accepted.groupby(rows).mean().idxmax())
        if given["favoured"] is not None:
            favoured = _one_of(given["favoured"], groups, f"{where}: favoured")
        batch_size = given["batch_size"]
        if batch_size is None:
            batch_size = min(1024, len(frame) // 5)
        if not 2 <= batch_size <= len(frame):
            raise InputError(
                f"{where}: batch_size must be from 2 to {len(frame)}, the number of rows; got "
                f"{batch_size}."
            )
        roles = {
            "sha256": sha256_of(file),
            "target": target,
            "positive": positive,
            "sensitive": sensitive,
            "groups": [groups[1 - groups.index(favoured)], favoured],
            "batch_size": batch_size,
            "drop": drop,
        }
        table = cls(name, file, roles)
        _check_features(table.features(frame), where)
        return table

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that are neither labels nor groups, and are not left out."""
        return frame.drop(
            columns=[self.roles["target"], self.roles["sensitive"], *self.roles["drop"]]
        )

    def load(self) -> Dataset:
        """Return the table as a dataset, or raise if its file is not the one in the specs."""
        roles = self.roles
        if sha256_of(self.file) != roles["sha256"]:
            raise InputError(f"{self.file} has changed since the runs were planned. Start again.")
        frame = read_table(self.file)
        return Dataset(
            name=self.name,
            # The encoding has a place for every level, also for those of test rows alone.
            X=categorised(self.features(frame)),
            y=(frame[roles["target"]].astype(str) == roles["positive"]).astype(np.int64),
            sensitive_features=frame[roles["sensitive"]].astype(str),
            groups=tuple(roles["groups"]),
            favoured_group=roles["groups"][1],
            positive_label=f"{roles['target']} is {roles['positive']}",
            batch_size=roles["batch_size"],
            description=f"The table {self.file.name}.",
        )


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _two_values(
    column: "pd.Series[Any]", error: type[InputError], where: str, what: str
) -> tuple[str, str]:
    if n_missing := int(column.isna().sum()):
        raise error(
            f"{where}: {column.name!r} lacks {n_missing} values. Remove those rows from the file. "
            f"{MISSING_WORDS}"
        )
    values = sorted(str(value) for value in column.unique())
    if len(values) != 2:
        listed = ", ".join(repr(value) for value in values[:6])
        listed += ", …" if len(values) > 6 else ""
        raise error(
            f"{where}: {column.name!r} must have two {what}, and has {len(values)} ({listed}). "
            f"Remove the rows of other {what}, or add a column that merges some."
        )
    return values[0], values[1]


def _one_of(value: Any, known: Sequence[str], where: str) -> str:
    """Return the value of a column that a user means; 1, 1.0 and "1" are the same."""
    spellings = [str(value)]
    if isinstance(value, bool):
        spellings.append(str(int(value)))
    if isinstance(value, int | float):
        spellings += [str(float(value)), f"{value:g}"]
    for spelling in spellings:
        if spelling in known:
            return spelling
    raise InputError(f"{where} must be {known[0]!r} or {known[1]!r}, got {value!r}.")


def _check_features(features: pd.DataFrame, where: str) -> None:
    if features.columns.empty:
        raise InputError(f"{where}: no columns are left to learn from. Drop fewer columns.")
    for column in features.select_dtypes(exclude=["number", "bool"]):
        n_levels = features[column].nunique()
        if n_levels > max(50, len(features) // 2):
            raise InputError(
                f"{where}: the text column {column!r} has {n_levels} different values in "
                f"{len(features)} rows, as an id has. Leave it out with drop = [{column!r}]."
            )
    missing = features.isna().sum()
    if listed := ", ".join(f"{name!r} ({count})" for name, count in missing.items() if count):
        raise InputError(
            f"{where}: columns with missing values, and how many: {listed}. Fill them in, remove "
            "those rows from the file, or leave the columns out with drop = [...]."
        )
    try:
        TableEncoder().fit(features)
    except InputError as error:
        raise InputError(f"{where}: {error} Or leave the column out with drop = [...].") from error


class _Key(NamedTuple):
    """A key of the file: what its value must be, and the default."""

    kind: type
    words: str
    default: Any = None
    required: bool = False


_FILE_KEYS = {
    "datasets": _Key(list, "a list of names"),
    "tables": _Key(dict, "written as [tables.NAME]", {}),
    "methods": _Key(dict, "written as [methods.NAME]", {}),
}
_TABLE_KEYS = {
    "file": _Key(str, "the name of a file", required=True),
    "target": _Key(str, "the name of a column", required=True),
    "positive": _Key(object, "a label", required=True),
    "sensitive": _Key(str, "the name of a column", required=True),
    "favoured": _Key(object, "a group"),
    "batch_size": _Key(int, "a whole number"),
    "drop": _Key(list, "a list of columns", []),
}
_METHOD_KEYS = {
    "estimator": _Key(str, "text such as 'package.module:Class'", required=True),
    "settings": _Key(dict, "a table such as { depth = 3 }", {}),
    "label": _Key(str, "text"),
    "weight_parameter": _Key(str, "the name of a parameter"),
    "weights": _Key(list, "a list of numbers", []),
}


def extend_study(study: Study, path: str | Path) -> Study:
    r"""Return a study with the tables and methods of a file added.

    The file is TOML, with ``[tables.NAME]`` and ``[methods.NAME]``; docs/howto/own-study.md
    describes it. The result has the study's tables, then the file's, and a line for each of the
    file's methods; with ``datasets = ["NAME", ...]`` in the file, only those tables. An estimator
    may be in a Python module beside the file or in the working folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from paper.specs import QUICK, Study
    >>> text = '[methods.forest]\nestimator = "sklearn.ensemble:RandomForestClassifier"\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "mine.toml"
    ...     _ = file.write_text(text)
    ...     study = extend_study(Study.of(QUICK, datasets=["german"]), file)
    >>> study.spec("forest", "german", 0).settings["estimator"]
    'sklearn.ensemble:RandomForestClassifier'
    """
    file = Path(path).resolve()
    content = _read_keys(_read_toml(file), _FILE_KEYS, str(file))
    folders = (str(file.parent), str(Path.cwd()))
    labels = {series.label for series in study.series.values()}
    tables = [
        OwnTable.read(name, given, file.parent)
        for name, given in _entries(content, "tables", file, study.loaders)
    ]
    methods = [
        _read_method(name, given, folders, labels)
        for name, given in _entries(content, "methods", file, {**study.methods, **study.series})
    ]
    if not tables and not methods:
        raise InputError(f"{file} adds nothing: write [tables.NAME] or [methods.NAME] in it.")
    names = (*study.datasets, *(table.name for table in tables))
    loaders = {**study.loaders, **{table.name: table.load for table in tables}}
    if content["datasets"] is not None:
        names = _chosen(content["datasets"], loaders, file)
    return replace(
        study,
        datasets=names,
        series={**study.series, **{series.key: series for _, series in methods}},
        methods={**study.methods, **{method.name: method for method, _ in methods}},
        loaders=loaders,
        identities={**study.identities, **{table.name: {"table": table.roles} for table in tables}},
    )


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))  # some editors add a mark
    except FileNotFoundError:
        raise InputError(f"There is no file {file}. Check its name.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # TOML errors are ValueErrors, and name the line
        raise InputError(f"{file} cannot be read as TOML: {error}") from error


def _read_keys(given: Any, known: Mapping[str, _Key], where: str) -> dict[str, Any]:
    """Return the keys with defaults filled in, or raise if a key or its value is wrong."""
    if not isinstance(given, dict):
        raise InputError(f"{where} must hold keys and values, got {given!r}.")
    for key in given:
        if key not in known:
            raise InputError(f"{where} has an unknown key {key!r}. {_hint(key, known)}")
    if lacking := [name for name, key in known.items() if key.required and name not in given]:
        raise InputError(f"{where} lacks {', '.join(lacking)}. Add what is missing.")
    for name, value in given.items():
        key = known[name]
        truth = isinstance(value, bool) and key.kind is not object  # Python counts it as an int
        if truth or not isinstance(value, key.kind):
            raise InputError(f"{where}: {name} must be {key.words}, got {value!r}.")
        if known is _FILE_KEYS:  # the content is read later
            continue
        for item, told in value.items() if isinstance(value, dict) else [(name, value)]:
            if not _is_plain(told):
                raise InputError(
                    f"{where}: {item} must be text, finite numbers, true or false, got {told!r}."
                )
    return {**{name: key.default for name, key in known.items()}, **given}


def _hint(name: Any, known: Mapping[str, Any]) -> str:
    near = get_close_matches(str(name), known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."


def _is_plain(value: Any) -> bool:
    """Return whether JSON can hold a value; it cannot hold TOML's dates and infinities."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _entries(
    content: Mapping[str, Any], kind: str, file: Path, taken: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    for name in content[kind]:
        if not fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}", name):  # records are named by it
            raise InputError(
                f"{file}: the name {name!r} must have at most 50 characters: letters, digits, '-' "
                "and '_', with a letter or digit first."
            )
        if not isinstance(content[kind][name], dict):
            raise InputError(f"{file}: write [{kind}.NAME], with a name of yours, for [{kind}].")
        if name in taken:
            raise InputError(
                f"{file}: the name {name!r} is taken already. Choose another one for "
                f"[{kind}.{name}]."
            )
    return list(content[kind].items())


def _chosen(names: list[Any], known: Mapping[str, Any], file: Path) -> tuple[str, ...]:
    if not names:
        raise InputError(f"{file}: datasets must name at least one table, got an empty list.")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"{file}: there is no dataset {name!r}. {_hint(name, known)}")
    return tuple(dict.fromkeys(names))


def _read_method(
    name: str, content: Any, folders: tuple[str, ...], labels: set[str]
) -> tuple[Method, Series]:
    where = f"[methods.{name}]"
    given = _read_keys(content, _METHOD_KEYS, where)
    label = given["label"] or name
    if "|" in label or not label.isprintable():
        raise InputError(
            f"{where}: the label {label!r} stands in tables and cannot hold '|' or line breaks. "
            "Choose another label."
        )
    if label in labels:
        raise InputError(f"{where}: the label {label!r} is taken already. Choose another label.")
    labels.add(label)
    for weight in given["weights"]:
        if not isinstance(weight, int | float) or isinstance(weight, bool):
            raise InputError(f"{where}: weights must be numbers, got {weight!r}.")
    method = own_method(
        name,
        given["estimator"],
        weight_parameter=given["weight_parameter"],
        weights=given["weights"],
        settings=given["settings"],
        folders=folders,
    )
    return method, Series(name, label, name)
