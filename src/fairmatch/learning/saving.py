"""Saved models: what was learned as data, everything else as JSON; nothing is unpickled.

A saved model is a folder with two files. ``model.json`` says what it is and holds the checksum of
the other, ``weights.safetensors`` of a network or ``trees.txt`` of boosted trees, so that a
damaged or exchanged file is found before it is used.
"""

import hashlib
import json
import os
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import fairmatch
from fairmatch.exceptions import InputError, MissingExtraError, ModelFileError
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.tables.encoder import TableEncoder

_FORMAT = {"kind": "fairmatch.model", "version": 1}
_DESCRIPTION = "model.json"
# Only these are ever made from a file. Each learner's module knows what its models have learned.
_LEARNERS = {
    "FTMClassifier": "learning.networks.files",
    "UnconstrainedClassifier": "learning.networks.files",
    "GapRegularizedClassifier": "learning.networks.files",
    "ReductionClassifier": "learning.networks.files",
    "AdversarialClassifier": "learning.networks.files",
    "FTMBoostingClassifier": "learning.trees.text",
    "GapRegularizedBoostingClassifier": "learning.trees.text",
    "LAFTRTransformer": "learning.representations.files",
    "SIPMTransformer": "learning.representations.files",
    "TransportRepairTransformer": "learning.representations.files",
    "RepresentationClassifier": "learning.representations.files",
}
_REPRESENTATIONS = ("LAFTRTransformer", "SIPMTransformer", "TransportRepairTransformer")


# What a model has learned is in one of these.
_LEARNED = ("weights.safetensors", "trees.txt")


def save_model(model: Any, path: str | Path) -> Path:
    """Write a fitted model to a folder; `load` reads it back."""
    check_is_fitted(model)
    name = type(model).__name__
    if name not in _LEARNERS:
        raise InputError(
            f"{name} cannot be saved without pickling it; these can: {', '.join(_LEARNERS)}."
        )
    learner = _learner(name)
    weights, facts = learner.dump(model)
    if not (model.encoder_ is None or isinstance(model.encoder_, TableEncoder)):
        raise InputError(
            "A model with an encoder of your own cannot be saved without pickling it. Encode the "
            "table before the model and fit with encoder=None."
        )
    description = {
        **_FORMAT,
        "fairmatch": fairmatch.__version__,
        "class": name,
        "parameters": {k: _to_json(k, v) for k, v in model.get_params(deep=False).items()},
        "classes": _classes(model),
        "groups": [_plain(label) for label in model.groups_],
        "fairness_weight": _weight(model),
        "n_features_in": model.n_features_in_,
        "feature_names_in": _names(model),
        "encoder": None if model.encoder_ is None else model.encoder_.to_dict(),
        **facts,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    description["sha256"] = _digest(description)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(description, indent=1, ensure_ascii=False)
    _write({folder / learner.FILE: weights, folder / _DESCRIPTION: text.encode()})
    for name in _LEARNED:
        if name != learner.FILE:  # of a model that was there before
            (folder / name).unlink(missing_ok=True)
    return folder


def load(path: str | Path) -> Any:
    """Read a model that was written by ``model.save``.

    Parameters
    ----------
    path : str or Path
        The folder.

    Returns
    -------
    estimator
        Ready to predict.

    Raises
    ------
    ModelFileError
        If the folder is not a saved model, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from fairmatch import FTMClassifier, load
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(epochs=2, random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder))
    >>> groups = german.sensitive_features
    >>> bool((again.predict_proba(german.X, sensitive_features=groups)
    ...       == model.predict_proba(german.X, sensitive_features=groups)).all())
    True
    """
    folder = Path(path)
    description = _read_description(folder)
    if description.get("class") not in tuple(_LEARNERS):  # it may be of any type
        raise ModelFileError(
            f"{folder} is damaged: there is no model class {description.get('class')!r}."
        )
    learner = _learner(description["class"])
    file = folder / learner.FILE
    weights = _read(file)
    if hashlib.sha256(weights).hexdigest() != description["weights_sha256"]:
        raise ModelFileError(
            f"{file} is not the file that was saved: its checksum differs from the one in "
            f"{_DESCRIPTION}. Copy both files of the model again."
        )
    try:
        model = _build(description, weights, learner)
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(f"{folder} is damaged: {error!r}") from error
    # Last, because the errors above say more. Swapped classes would turn every decision round.
    if description.get("sha256") != _digest(description):
        raise ModelFileError(
            f"{folder / _DESCRIPTION} is not the file that was saved: its checksum differs. Copy "
            "both files of the model again."
        )
    return model


def _digest(description: dict[str, Any]) -> str:
    """Give the checksum of a description, whatever the order and spacing of its JSON."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _learner(name: str) -> Any:
    """Find what reads and writes the models of a class, and needs the library that trains them."""
    try:
        return import_module(f"fairmatch.{_LEARNERS[name]}")
    except ModuleNotFoundError as error:
        extra = fairmatch._EXTRAS.get(error.name or "", "all")
        raise MissingExtraError(
            f"Models of {name} need {error.name}: pip install 'fairmatch[{extra}]'."
        ) from error


def _build(description: dict[str, Any], weights: bytes, learner: Any) -> Any:
    parameters = {k: _from_json(k, v) for k, v in description["parameters"].items()}
    model = getattr(fairmatch, description["class"])(**parameters)
    encoder = description["encoder"]
    model.encoder_ = None if encoder is None else TableEncoder.from_dict(encoder)
    if description["classes"] is not None or hasattr(model, "predict"):
        model.classes_ = np.array(_two(description["classes"]))
    model.groups_ = tuple(_two(description["groups"]))
    if description["fairness_weight"] is not None or hasattr(model, "predict"):
        model.fairness_weight_ = float(description["fairness_weight"])
    model.n_features_in_ = int(description["n_features_in"])
    if description["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(description["feature_names_in"], dtype=object)
    learner.restore(model, weights, description)
    return model


def _classes(model: Any) -> list[Any] | None:
    """Give the labels; repair has seen none."""
    labels = getattr(model, "classes_", None)
    return None if labels is None else [_plain(label) for label in labels]


def _weight(model: Any) -> float | None:
    """Give the weight in use, where it is not a parameter of another name."""
    weight = getattr(model, "fairness_weight_", getattr(model, "fairness_weight", None))
    return None if weight is None else float(weight)


def _two(labels: list[Any]) -> list[Any]:
    first, second = map(_plain, labels)
    return [first, second]


def _read_description(folder: Path) -> dict[str, Any]:
    content = _read(folder / _DESCRIPTION)
    try:
        description = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{folder / _DESCRIPTION} is not valid JSON: {error}") from None
    kind = description.get("kind") if isinstance(description, dict) else None
    if kind != _FORMAT["kind"] or "weights_sha256" not in description:
        raise ModelFileError(f"{folder / _DESCRIPTION} does not describe a fairmatch model.")
    if description.get("version") != _FORMAT["version"]:
        raise ModelFileError(
            f"{folder} has format version {description.get('version')}; this fairmatch reads "
            f"version {_FORMAT['version']}. Install the version that wrote it: "
            f"{description.get('fairmatch')}."
        )
    return dict(description)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{file} cannot be read ({error.strerror}). A saved model is a folder with "
            f"{_DESCRIPTION} and what the model has learned."
        ) from error


def _write(contents: dict[Path, bytes]) -> None:
    """Write all files or none: a full disk leaves the old ones as they were."""
    partial = {file: file.with_name(f"{file.name}.{os.getpid()}.partial") for file in contents}
    try:
        for file, content in contents.items():
            partial[file].write_bytes(content)
        for file in contents:
            partial[file].replace(file)
    except OSError as error:
        error.filename = str(next(iter(contents)).parent)  # the model's, whichever file it was
        raise
    finally:
        for file in contents:
            partial[file].unlink(missing_ok=True)


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InputError(f"{value!r} cannot be saved as JSON; use text or numbers as labels.")


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, TableEncoder):
        return {"missing": value.missing, "dtype": np.dtype(value.dtype).name}
    if isinstance(value, OptimalTransportMatcher):
        return asdict(value)
    if name == "representation" and value is not None:
        parameters = {k: _to_json(k, v) for k, v in value.get_params(deep=False).items()}
        return {"class": type(value).__name__, "parameters": parameters}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    if name == "transport" and not isinstance(value, str):
        return "marginal"  # how people were matched in training; no part in prediction
    if name == "random_state" and not isinstance(value, int | np.integer):
        return None  # a generator: its state when the model was made is gone
    return _plain(value)


def _from_json(name: str, value: Any) -> Any:
    if name == "transport" and isinstance(value, dict):
        return OptimalTransportMatcher(**value)
    if name == "encoder" and isinstance(value, dict):
        return TableEncoder(missing=value["missing"], dtype=np.dtype(value["dtype"]).type)
    if name == "representation" and isinstance(value, dict):
        if value["class"] not in _REPRESENTATIONS:
            raise ModelFileError(f"There is no representation {value['class']!r}.")
        parameters = {k: _from_json(k, v) for k, v in value["parameters"].items()}
        return getattr(fairmatch, value["class"])(**parameters)
    return tuple(value) if isinstance(value, list) else value
