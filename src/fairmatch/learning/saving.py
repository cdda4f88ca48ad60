"""Saved models: weights or trees as data, everything else as JSON; nothing is unpickled."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import fairmatch
from fairmatch.exceptions import InputError, MissingExtraError, ModelFileError
from fairmatch.matching.matchers import OptimalTransportMatcher
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.files import PARTIAL, partials, whole_folder
from fairmatch.people.similarity import is_embedding

_KIND, _VERSION = "fairmatch.model", 3
_DESCRIPTION = "model.json"
# Files of a saved model, and the files that `fairmatch train` writes beside it.
_WRAPPED = "model.skops"
_OWN = {_DESCRIPTION, "weights.safetensors", "trees.txt", _WRAPPED, "curve.json", "curve.svg"}
_MOST_BYTES = 2**30
# Settings of a machine, and not of a model. They are neither saved nor taken from a file.
_RUNTIME = {
    *("n_jobs", "num_threads", "num_thread", "nthread", "nthreads", "verbose", "verbosity"),
    *("device", "device_type", "gpu_device_id", "gpu_platform_id", "num_gpu", "gpu_use_dp"),
    *("keep_on_interrupt", "machines", "machine_list_filename", "num_machines"),
    *("local_listen_port", "time_out", "pre_partition", "tree_learner"),
}
_EXPECTED = (
    f"A saved model is a folder with {_DESCRIPTION} and the file of its weights or trees. Name "
    "such a folder."
)
_AGAIN = "Copy both files of the model again, or save the model once more."
_TRIES, _PAUSE = 40, 0.025
# A list of columns, which scikit-learn 1.6 keeps and skops does not know.
_HARMLESS = ("sklearn.compose._column_transformer._RemainderColsList",)


@dataclass(frozen=True)
class State:
    """The state of a model, ready to be saved."""

    file: str  #: Name of the file that holds what was learned.
    content: bytes  #: Content of that file.
    facts: dict[str, Any]  #: What else is needed to restore the model, as plain values.


@dataclass(frozen=True)
class UnsavedMatcher:
    """A placeholder for a user's own matcher; a saved model keeps only its name."""

    name: str

    def match(self, *_: Any, **__: Any) -> Any:
        """Raise an error, because the matcher itself was not saved."""
        raise InputError(
            f"This model was trained with a matcher of your own, {self.name}, which a saved model "
            "does not hold. Set transport= to the matcher before fitting."
        )


def save_model(
    model: Any, path: str | Path, *, beside: Callable[[Path], object] | None = None
) -> Path:
    """Write a fitted model to a folder, which is returned; `load` reads it back.

    The folder must be new, empty, or hold a saved model, which is then replaced. ``beside`` writes
    further files into the folder that it gets, such as the model's curve. The folder appears with
    all of its files or not at all.
    """
    check_is_fitted(model)
    name = type(model).__name__
    is_own = getattr(fairmatch, name, None) is type(model)
    if not is_own and model._save_instead is not None:
        raise InputError(
            f"{name} holds models of another library, which cannot be written without pickling "
            f"them, but fairmatch does not pickle. {model._save_instead}"
        )
    if not is_own:
        raise InputError(
            f"{name} is not a class of fairmatch, so it could not be loaded without pickling it. "
            "Save a model of one of fairmatch's own classes."
        )
    check_folder(path)
    state: State = model._get_state() if model._save_instead is None else _wrapped(model)
    description = {
        "kind": _KIND,
        "version": _VERSION,
        "fairmatch": fairmatch.__version__,
        **_described(model, state),
        "weights_sha256": hashlib.sha256(state.content).hexdigest(),
    }
    description["sha256"] = _digest(description)
    text = json.dumps(description, indent=1, ensure_ascii=False)
    with whole_folder(path) as partial:
        (partial / state.file).write_bytes(state.content)
        (partial / _DESCRIPTION).write_bytes(text.encode("utf-8", "surrogatepass"))
        if beside is not None:
            beside(partial)
    return Path(path)


def _described(model: Any, state: State) -> dict[str, Any]:
    given = model.get_params(deep=False) if model._save_instead is None else {}
    parameters = {k: _to_json(k, v) for k, v in given.items()}
    return {"class": type(model).__name__, "parameters": parameters, **state.facts}


@dataclass(frozen=True)
class Enclosed:
    """One of fairmatch's own models inside a wrapper: its description as JSON, and its weights."""

    text: str
    content: bytes

    @classmethod
    def of(cls, model: Any) -> "Enclosed":
        """Enclose a model, fitted or not."""
        state = model._get_state() if hasattr(model, "scorer_") else State("", b"", {})
        return cls(json.dumps(_described(model, state)), state.content)

    def model(self) -> Any:
        """Return the model again."""
        description = json.loads(self.text)
        kind = _class(Path(_WRAPPED), description.get("class"))
        return _build(description, kind, self.content)


def _exchange(wrapper: Any, known: type, exchange: Callable[[Any], Any]) -> None:
    """Exchange values of a type in a wrapper, in its scorer and in the scorer's learner."""
    done: dict[int, Any] = {}  # the same value stays the same

    def one(value: Any) -> Any:
        if isinstance(value, known) and getattr(value, "_save_instead", None) is None:
            return done.setdefault(id(value), exchange(value))
        learner = hasattr(value, "estimator") and not isinstance(value, BaseEstimator)
        if is_dataclass(value) and (value is scorer or learner):
            inside = {own.name: one(getattr(value, own.name)) for own in fields(value)}
            return replace(value, **inside)  # type: ignore[type-var]
        return value

    scorer = wrapper.scorer_
    vars(wrapper).update({name: one(value) for name, value in vars(wrapper).items()})


def _skops(what: str) -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{what} holds a model of another library, which is written and read by skops: "
            "pip install 'fairmatch[skops]'."
        ) from error
    return skops.io


def _wrapped(model: Any) -> State:
    """Return a wrapper with the model inside it, as skops writes them."""
    name, kept = type(model).__name__, copy(model)
    for left in ("path_", "validation_curve_"):
        vars(kept).pop(left, None)
    try:
        _exchange(kept, fairmatch.learning.estimator.FairEstimator, Enclosed.of)
        content: bytes = _skops(name).dumps(kept)
    except MissingExtraError as error:
        raise MissingExtraError(f"{error} Or: {model._save_instead}") from error
    except Exception as error:  # the model may hold anything
        raise InputError(
            f"{name} holds a model that skops cannot write ({error}), so it cannot be written "
            f"without pickling it, but fairmatch does not pickle. {model._save_instead}"
        ) from error
    return State(_WRAPPED, content, {})


def _unwrapped(folder: Path, kind: type[Any], content: bytes, trusted: Sequence[str]) -> Any:
    """Return the wrapper of a file; raise if it holds types that nobody has said to trust."""
    skops = _skops(str(folder))
    try:
        found = skops.get_untrusted_types(data=content)
        known = {*trusted, *_HARMLESS}
        strange = [one for one in found if not (one in known or _is_own_class(one))]
        model = None if strange else skops.loads(content, trusted=found)
        if model is not None:
            _exchange(model, Enclosed, Enclosed.model)
    except Exception as error:
        raise ModelFileError(f"{folder / _WRAPPED} is damaged: {error!r}. {_AGAIN}") from error
    if strange:
        raise ModelFileError(
            f"{folder} holds objects of these types: {', '.join(strange)}. Loading them may run "
            f"their code. If you trust whoever wrote the file, call load(path, trusted={strange})."
        )
    if type(model) is not kind:
        raise ModelFileError(f"{folder} is damaged: it does not hold a {kind.__name__}. {_AGAIN}")
    return model


def _is_own_class(name: str) -> bool:
    """Return whether a type's name is that of a class of fairmatch, not of a function."""
    module, _, own = name.rpartition(".")
    if module.split(".")[0] != "fairmatch":
        return False
    found = getattr(sys.modules.get(module), own, None)
    return isinstance(found, type) and found.__module__.startswith("fairmatch.")


def check_folder(path: str | Path) -> None:
    """Raise unless a folder is new, empty, or holds a saved model and nothing else."""
    folder = Path(path)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{path} is a file. A model is saved in a folder. Choose another name.")
    names = {file.name for file in folder.iterdir() if not file.name.endswith(PARTIAL)}
    if not names:
        return
    strange = sorted(names - _OWN)
    if not strange and _is_ours(folder / _DESCRIPTION):
        return
    shown = ", ".join((strange or sorted(names))[:5])
    raise InputError(
        f"{path} holds files that are not of a saved model ({shown}), and saving would delete "
        "them. Choose a folder that is new or empty."
    )


def _is_ours(file: Path) -> bool:
    try:
        return bool(read_json(file, _KIND, _EXPECTED, _AGAIN))
    except ModelFileError:
        return False


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that ``model.save`` has written.

    Parameters
    ----------
    path : str or Path
        The folder of the model.
    trusted : sequence of str, optional
        For wrappers around models of another library: types beyond those of scikit-learn and NumPy
        that skops trusts. Without them, such a file raises an error that lists its types.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the folder is not a saved model, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from fairmatch import FTMClassifier, NeuralNetwork, load
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMClassifier(NeuralNetwork(epochs=2), random_state=0).fit(
    ...     german.X, german.y, sensitive_features=german.sensitive_features)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder))
    >>> groups = german.sensitive_features
    >>> bool((again.predict_proba(german.X, sensitive_features=groups)
    ...       == model.predict_proba(german.X, sensitive_features=groups)).all())
    True
    """
    folder = Path(path)
    if folder.is_file():
        raise ModelFileError(
            f"{folder} is a file, but a saved model is a folder. Name the folder. An adjustment "
            "of scores is a file: read it with ScoreAdjustment.load."
        )
    description, kind, content = _read_whole(folder)
    if kind._save_instead is not None:
        _check_digest(folder, description)
        return _unwrapped(folder, kind, content, trusted)
    try:
        model = _build(description, kind, content)
    except MissingExtraError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{folder} cannot be loaded. {error} {_AGAIN}") from error
    # A file from elsewhere may hold anything, so any error may come of it.
    except Exception as error:
        raise ModelFileError(f"{folder} is damaged: {error!r}. {_AGAIN}") from error
    # This check is last, because the errors above are more precise. Without it, a file with
    # swapped classes would reverse every decision.
    _check_digest(folder, description)
    return model


def _check_digest(folder: Path, description: dict[str, Any]) -> None:
    if description.get("sha256") != _digest(description):
        raise ModelFileError(
            f"{folder / _DESCRIPTION} is not the file that was saved: its checksum differs. "
            f"{_AGAIN}"
        )


def _read_whole(folder: Path) -> tuple[dict[str, Any], type[Any], bytes]:
    """Read both files of one model, even while another model replaces it."""
    for left in reversed(range(_TRIES)):
        before = _inode(folder)
        try:
            return _read_both(folder)
        except ModelFileError:
            # Try again only if the folder is being replaced.
            if not (left and (_inode(folder) != before or partials(folder))):
                raise
        time.sleep(_PAUSE)
    raise AssertionError


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _read_both(folder: Path) -> tuple[dict[str, Any], type[Any], bytes]:
    description = _read_description(folder)
    kind = _class(folder, description.get("class"))
    file = folder / (kind._state_file if kind._save_instead is None else _WRAPPED)
    content = _read(file, _EXPECTED)
    if hashlib.sha256(content).hexdigest() != description["weights_sha256"]:
        raise ModelFileError(
            f"{file} is not the file that was saved: its checksum differs from the one in "
            f"{_DESCRIPTION}. {_AGAIN}"
        )
    return description, kind, content


def _class(folder: Path, name: Any) -> type[Any]:
    """Return a public class of fairmatch that can be loaded; raise for any other name."""
    kind = getattr(fairmatch, name) if isinstance(name, str) and name in fairmatch.__all__ else None
    if not (isinstance(kind, type) and hasattr(kind, "_save_instead")):
        raise ModelFileError(
            f"{folder} is damaged: fairmatch has no model class {name!r}. Install the version that "
            "wrote it."
        )
    return kind


def _digest(description: dict[str, Any]) -> str:
    """Return the checksum of a description; the order and spacing of its JSON do not matter."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _build(description: dict[str, Any], kind: type[Any], content: bytes) -> Any:
    given = description["parameters"]
    known = set(kind._get_param_names())
    if not isinstance(given, dict):
        raise ModelFileError("The file is damaged: parameters must have names.")
    if not set(given) <= known:
        strange = ", ".join(sorted(set(given) - known)[:5])
        raise ModelFileError(f"The file is damaged: {kind.__name__} has no parameter {strange}.")
    model = kind(**{k: _from_json(kind, k, v) for k, v in given.items()})
    if "weights_sha256" in description or content:  # a model inside a wrapper may be unfitted
        model._set_state(content, description)
    return model


def _read_description(folder: Path) -> dict[str, Any]:
    description = read_json(folder / _DESCRIPTION, _KIND, _EXPECTED, _AGAIN)
    if "weights_sha256" not in description:
        raise ModelFileError(
            f"{folder / _DESCRIPTION} does not describe a fairmatch model: it has no "
            f"weights_sha256. {_AGAIN}"
        )
    if description.get("version") != _VERSION:
        raise ModelFileError(
            f"{folder} was written by fairmatch {description.get('fairmatch')}, in format version "
            f"{description.get('version')}; this is fairmatch {fairmatch.__version__}, which reads "
            f"version {_VERSION}. Install the version that wrote it, or train the model again."
        )
    return description


def read_json(file: Path, kind: str, expected: str, again: str) -> dict[str, Any]:
    """Return the JSON of a file of this kind; raise an error that says what was expected."""
    content = _read(file, expected)
    try:
        found = json.loads(content)
        refuse_half_characters(found)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is not valid JSON: {error}. {again}") from None
    if not isinstance(found, dict) or found.get("kind") != kind:
        what = kind.replace(".", " ")
        raise ModelFileError(f"{file} does not describe a {what}. {expected}")
    return found


def _read(file: Path, expected: str) -> bytes:
    """Return the content of a plain file of moderate size."""
    try:
        if file.exists() and not file.is_file():  # a device or a pipe may never end
            raise ModelFileError(f"{file} is not a plain file. {expected}")
        if file.stat().st_size > _MOST_BYTES:
            raise ModelFileError(f"{file} is too large to be a model. {expected}")
        return file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{file} cannot be read ({error.strerror}). {expected}") from error


def refuse_half_characters(content: Any) -> None:
    r"""Raise a ValueError if a text of JSON holds half a character, which no file can hold.

    Examples
    --------
    >>> refuse_half_characters({"group": "\ud800"})
    Traceback (most recent call last):
    ValueError: a text holds half of a character (a lone surrogate)
    """
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a character (a lone surrogate)") from None


def plain_label(value: Any) -> Any:
    """Return a label as a plain value for JSON; raise if JSON cannot hold it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InputError(f"{value!r} cannot be saved as JSON. Use text or numbers.")


def _to_json(name: str, value: Any) -> Any:
    """Return a parameter as plain values for JSON."""
    if isinstance(value, TableEncoder):
        return value.parameters_to_dict()
    if name == "transport" and not isinstance(value, str):
        if type(value) is OptimalTransportMatcher:
            return asdict(value)
        own = value.name if isinstance(value, UnsavedMatcher) else type(value).__name__
        return {"own_matcher": own}
    if name == "estimator" and value is not None:
        return {k: _to_json(k, v) for k, v in value.get_params().items() if k not in _RUNTIME}
    if name == "similarity" and is_embedding(value):
        return "embedding"  # only fit needs the array, which has a row for every training row
    if name == "similarity" and isinstance(value, Mapping):
        return {str(k): float(v) for k, v in value.items()}
    if name == "sensitive_column" and isinstance(value, Mapping):
        return {"columns": _to_json("", list(value)), "edges": _to_json("", list(value.values()))}
    if isinstance(value, tuple | list | np.ndarray):
        return [_to_json("", item) for item in value]
    if name == "random_state" and not isinstance(value, int | np.integer):
        return None  # the state that a generator had before training is gone
    return plain_label(value)


# Columns with groups, and the edges of the bands of those that hold numbers.
_CUT = {"columns", "edges"}


def _from_json(kind: type[Any], name: str, value: Any) -> Any:
    """Return a parameter of a class of fairmatch from what a file holds."""
    if name == "transport" and isinstance(value, dict):
        if set(value) == {"own_matcher"}:
            return UnsavedMatcher(str(value["own_matcher"]))
        return OptimalTransportMatcher(**value)
    if name == "encoder" and isinstance(value, dict):
        return TableEncoder.from_parameters(value)
    if name == "estimator" and value is not None:
        known = {k: v for k, v in _plain(value).items() if k not in _RUNTIME}
        return kind._restored_estimator(known)
    if name == "similarity" and isinstance(value, dict):
        return {k: number_from(v, name, least=0.0) for k, v in value.items()}
    if name == "sensitive_column" and isinstance(value, dict) and set(value) == _CUT:
        return dict(zip(*(_plain(value)[part] for part in ("columns", "edges")), strict=True))
    if isinstance(value, dict):
        raise ModelFileError(f"The file is damaged: {name} must be a plain value.")
    if isinstance(value, list) and name != "sensitive_column":
        return tuple(value)
    return value


def _plain(value: Any) -> dict[str, Any]:
    """Return parameters by name; raise unless all of them are plain values or lists of such."""
    if not isinstance(value, dict) or not all(map(str.isidentifier, value)):
        raise ModelFileError("The file is damaged: parameters must have names.")
    for name, one in value.items():
        if not _is_plain(one):
            raise ModelFileError(f"The file is damaged: {name} must be a plain value.")
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def number_from(value: Any, what: str, *, least: float = -np.inf) -> float:
    """Return a finite number of a file that is at least ``least``; raise if it is anything else."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not np.isfinite(value) or value < least:
        raise ModelFileError(f"The file is damaged: {what} is {value!r}.")
    return float(value)


FILE = "weights.safetensors"
Arrays = dict[str, NDArray[Any]]


def write_arrays(arrays: Arrays) -> bytes:
    """Return arrays as safetensors."""
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(values) for name, values in arrays.items()})


def read_arrays(content: bytes) -> Arrays:
    """Return the arrays of a file; raise unless all of them hold finite floats."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    try:
        arrays: Arrays = load_arrays(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{FILE} does not hold weights: {error}") from error
    if not all(v.dtype.kind == "f" and np.isfinite(v).all() for v in arrays.values()):
        raise ModelFileError(f"{FILE} is damaged: the weights must all be finite numbers.")
    return arrays
