"""A researcher's own tables and methods, described in a short TOML file and added to a study."""

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from re import fullmatch
from typing import Any, NamedTuple

from fairmatch.exceptions import InputError
from fairmatch.experiments.custom.method import own_method
from fairmatch.experiments.custom.table import OwnTable, sha256_of
from fairmatch.experiments.lines import Series
from fairmatch.experiments.runs.methods import Curve, Method
from fairmatch.experiments.runs.problem import Problem
from fairmatch.experiments.study import Study


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

    Parameters
    ----------
    study : Study
        The study to add to.
    path : str or Path
        A TOML file with ``[tables.NAME]`` and ``[methods.NAME]``; see docs/howto/own-study.md.

    Returns
    -------
    Study
        The study's tables, then the file's, and a line for each of the file's methods. If the
        file has ``datasets = ["NAME", ...]``, the study has only those tables.

    Raises
    ------
    InputError
        If the file, a table or a method cannot be used as it is.

    Notes
    -----
    An estimator may be in a Python module beside the file or in the working folder. A run is
    identified by its content. It is done again when the table's file, the roles of its columns or
    the module's file change.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairmatch.experiments.profiles import QUICK
    >>> from fairmatch.experiments.study import Study
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
        _read_table(name, given, file.parent)
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
        identities={**study.identities, **{table.name: table.identity() for table in tables}},
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


def _read_table(name: str, content: Any, folder: Path) -> OwnTable:
    where = f"[tables.{name}]"
    given = _read_keys(content, _TABLE_KEYS, where)
    for column in given["drop"]:
        if not isinstance(column, str):
            raise InputError(f"{where}: drop must hold names of columns as text, got {column!r}.")
    return OwnTable.read(name, folder / given.pop("file"), **given)


@dataclass(frozen=True, eq=False)
class OwnFit:
    """The training of a researcher's method, held as names alone.

    A worker process unpickles this before it knows the folder of the class. So it holds no object
    of the class, and imports the class when it is called.
    """

    folders: tuple[str, ...]
    name: str
    estimator: str
    weight_parameter: str | None = None
    weights: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def method(self) -> Method:
        """Return the method, with its class imported."""
        # Appended, because a researcher's file must not hide a package that others import.
        for folder in self.folders:
            if folder not in sys.path:
                sys.path.append(folder)
        return own_method(
            self.name,
            self.estimator,
            weight_parameter=self.weight_parameter,
            weights=self.weights,
            settings=self.settings,
        )

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
        """Return the curve of a problem, trained with the settings and the seed."""
        fit = self.method().fit
        assert fit is not None
        return fit(problem, settings, seed)


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
    fit = OwnFit(
        folders,
        name,
        given["estimator"],
        given["weight_parameter"],
        tuple(given["weights"]),
        given["settings"],
    )
    method = fit.method()
    code = fit.code()
    settings = {**method.settings, **({"code": code} if code else {})}
    return replace(method, fit=fit, settings=settings), Series(name, label, name)
