"""The spec of a run: a method, a split of a table, and every setting that changes the result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairmatch.exceptions import InputError


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, which trains a method's whole fairness curve on one random split.

    Two specs with the same content have the same `digest`. It identifies the run, which is never
    computed twice.

    Attributes
    ----------
    dataset, method : str
        Names of the table and of the method in the study.
    seed : int
        Seed of the split, and of everything random in the training.
    settings : mapping
        All other settings that the result depends on, as plain JSON values.

    Examples
    --------
    >>> spec = RunSpec("german", "reg", 0, {"weights": [1.0, 2.0], "epochs": 5})
    >>> spec.digest == RunSpec("german", "reg", 0, {"epochs": 5, "weights": [1, 2]}).digest
    True
    >>> spec.name
    'german-reg-seed0-04b789c1b7'
    """

    dataset: str
    method: str
    seed: int
    settings: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The first ten hexadecimal digits of the content's SHA-256."""
        text = json.dumps(_canonical(self.as_json()), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """Name of the run for people; it ends in the digest."""
        return f"{self.dataset}-{self.method}-seed{self.seed}-{self.digest}"

    def as_json(self) -> dict[str, Any]:
        """Return the content as plain values."""
        return {
            "dataset": self.dataset,
            "method": self.method,
            "seed": self.seed,
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunSpec":
        """Return the spec that `as_json` wrote."""
        try:
            return cls(
                str(content["dataset"]),
                str(content["method"]),
                int(content["seed"]),
                dict(content["settings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not the spec of a run: {error!r}.") from error


def _canonical(value: Any) -> Any:
    """Return a value in which 1 and 1.0 are written alike, because they mean the same."""
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
