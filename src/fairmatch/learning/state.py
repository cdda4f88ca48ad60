"""What a model knows about its table: as plain values for JSON, and restored from them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.reader import TableReader
from fairmatch.learning.saving import plain_label
from fairmatch.tables.encoder import TableEncoder

# A file that claims more columns than this is refused, before it can exhaust the memory.
_MOST_COLUMNS = 10_000_000


def reader_facts(reader: TableReader) -> dict[str, Any]:
    """Return what a reader knows about the training table, as plain values."""
    if not (reader.encoder_ is None or isinstance(reader.encoder_, TableEncoder)):
        raise InputError(
            "A model with an encoder of your own cannot be saved without pickling it. Encode the "
            "table before the model and fit with encoder=None."
        )
    return {
        "groups": [plain_label(label) for label in reader.groups_],
        "attributes": list(reader.attributes_),
        "pooled": [plain_label(label) for label in reader.pooled_],
        "n_features_in": reader.n_features_in_,
        "feature_names_in": reader.feature_names_in_,
        "encoder": None if reader.encoder_ is None else reader.encoder_.to_dict(),
    }


def restore_reader(reader: TableReader, facts: dict[str, Any]) -> None:
    """Restore what a reader knew about its table; raise if the values are impossible."""
    reader.groups_ = labels_from(facts["groups"], "groups")
    reader.attributes_ = tuple(map(str, facts.get("attributes", ())))  # older files lack it
    reader.pooled_ = tuple(map(plain_label, facts.get("pooled", ())))
    reader.n_features_in_ = _count(facts["n_features_in"], "n_features_in")
    names = facts["feature_names_in"]
    if names is not None:
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise ModelFileError("feature_names_in is damaged: it must be a list of names.")
        if len(names) != reader.n_features_in_:
            raise ModelFileError(
                f"feature_names_in is damaged: it must name {reader.n_features_in_} columns, and "
                f"names {len(names)}."
            )
    reader.feature_names_in_ = names
    encoder = facts["encoder"]
    reader.encoder_ = None if encoder is None else _encoder_from(encoder)


def labels_from(values: Any, what: str) -> tuple[Any, ...]:
    """Return two or more different labels; raise if the values are anything else."""
    if not isinstance(values, list) or not 2 <= len(values) <= _MOST_COLUMNS:
        raise ModelFileError(f"The file is damaged: {what} must be a list of labels.")
    found = tuple(map(plain_label, values))
    if len(set(found)) < len(found) or any(value is None for value in found):
        raise ModelFileError(f"The file is damaged: {what} must be labels that all differ.")
    return found


def classes_from(values: Any) -> NDArray[Any]:
    """Return two classes in their order; raise if there are more or fewer."""
    found = labels_from(values, "classes")
    if len(found) != 2:
        raise ModelFileError(f"The file is damaged: there must be two classes, not {len(found)}.")
    return np.array(found)


def weight_from(value: Any) -> float:
    """Return a fairness weight; raise unless it is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"The file is damaged: {value!r} is not a fairness weight.")
    if not 0.0 <= float(value) < float("inf"):
        raise ModelFileError(f"The file is damaged: {value!r} is not a fairness weight.")
    return float(value)


def epochs_from(facts: dict[str, Any]) -> int | None:
    """Return the number of epochs of training, or None for older files, which lack it."""
    value = facts.get("n_epochs")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ModelFileError(f"The file is damaged: n_epochs is {value!r}.")
    return value


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_COLUMNS:
        raise ModelFileError(f"The file is damaged: {what} is {value!r}.")
    return value


def _encoder_from(content: Any) -> TableEncoder:
    """Return the encoder of a file; raise if a part of its description is damaged."""
    columns = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(columns, list):
        raise ModelFileError("This does not describe a TableEncoder: it has no columns.")
    for column in columns:
        if not isinstance(column, dict) or not isinstance(column.get("had_missing"), bool):
            raise ModelFileError("This does not describe a TableEncoder: a column is damaged.")
        for name in ("minimum", "maximum", "mean"):
            if name in column and not np.isfinite(float(column[name])):
                raise ModelFileError(f"This does not describe a TableEncoder: {name} is infinite.")
    return TableEncoder.from_dict(content)
