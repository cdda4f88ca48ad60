"""A fitted adjustment of scores: curves or thresholds by group, saved as plain JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.anymodel.alignment import Alignment, read_on_scale
from fairmatch.learning.anymodel.curves import group_codes
from fairmatch.learning.anymodel.thresholds import GroupThresholds
from fairmatch.storage.atomic import write_whole
from fairmatch.tables.arrays import FloatArray, plain_value
from fairmatch.tables.groups import OTHER

_KIND, _VERSION = "fairmatch.adjustment", 1
_MOST_BYTES = 2**28
_EXPECTED = "Name a file that ScoreAdjustment.save or fairmatch adjust --save wrote."
# Ways to adjust scores, with the class of each fitted part.
DECISIONS: dict[str, type[Alignment] | type[GroupThresholds]] = {
    "align": Alignment,
    "threshold": GroupThresholds,
}


@dataclass(frozen=True, eq=False)
class ScoreAdjustment:
    """A fitted adjustment of a model's scores.

    `fit_adjustment` returns one, and a `QuantileAlignmentClassifier` holds one as ``adjustment_``.

    Parameters
    ----------
    parts : Alignment or GroupThresholds
        One increasing curve per group, or one threshold per group.
    strength : float, default=1.0
        How far an alignment moves the scores: 0 does not move them, and 1 aligns them fully.
        Thresholds already contain their strength.
    pooled : tuple, default=()
        Labels of small groups that are adjusted as one group, "other".
    ignored : tuple, default=()
        Labels of small groups whose scores are not moved.

    Examples
    --------
    >>> from fairmatch import fit_adjustment
    >>> scores, groups = [0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]
    >>> adjustment = fit_adjustment(scores, groups)
    >>> adjustment.apply(scores, groups).round(2).tolist()
    [0.3, 0.5, 0.3, 0.5]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ScoreAdjustment.load(adjustment.save(f"{folder}/adjustment.json"))
    >>> again.apply([0.2], ["a"]).round(2).tolist()
    [0.4]
    """

    parts: Alignment | GroupThresholds
    strength: float = 1.0
    pooled: tuple[Any, ...] = ()
    ignored: tuple[Any, ...] = ()

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self.parts.labels

    @property
    def decisions(self) -> str:
        """How scores are adjusted: "align" or "threshold"."""
        return next(name for name, kind in DECISIONS.items() if isinstance(self.parts, kind))

    @property
    def scale(self) -> str:
        """What the scores are: "probability", "rank" or "real"."""
        return self.parts.scale if isinstance(self.parts, Alignment) else "probability"

    def apply(self, y_score: ArrayLike, sensitive_features: ArrayLike) -> FloatArray:
        """Return the adjusted scores of a table.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores of the model that the adjustment was fitted for.
        sensitive_features : array-like of shape (n_rows,), or a table of several attributes
            Group of every row. Each must have been in the table of the fit.

        Returns
        -------
        array of shape (n_rows,)
            The adjusted scores. Adjusted probabilities of at least one half are accepted.
        """
        scores = read_on_scale(y_score, self.scale)
        known = (*self.labels, *self.pooled, *self.ignored)
        codes = group_codes(sensitive_features, known, self.parts.attributes, n_rows=len(scores))
        pool = [self.labels.index(OTHER)] * len(self.pooled) if self.pooled else []
        places = np.array([*range(len(self.labels)), *pool, *[-1] * len(self.ignored)])
        return self.move(scores, places[codes])

    def move(self, scores: FloatArray, codes: NDArray[Any]) -> FloatArray:
        """Return adjusted scores, from checked scores and group codes.

        A score with code -1 stays as it is.
        """
        if isinstance(self.parts, Alignment):
            return self.parts.move(scores, codes, self.strength)
        return self.parts.move(scores, codes)

    def save(self, path: str | Path) -> Path:
        """Write the adjustment to a JSON file; `load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The file.
        """
        content = {
            "kind": _KIND,
            "version": _VERSION,
            "decisions": self.decisions,
            "strength": self.strength,
            "pooled": [plain_value(label) for label in self.pooled],
            "ignored": [plain_value(label) for label in self.ignored],
            "parts": self.parts.get_state(),
        }
        try:
            text = json.dumps(content, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The adjustment cannot be written as JSON ({error}). Use text or numbers as the "
                "labels of groups."
            ) from None
        return write_whole(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an adjustment that `save` has written.

        Parameters
        ----------
        path : str or Path
            The file to read.

        Returns
        -------
        ScoreAdjustment
            The adjustment.

        Raises
        ------
        ModelFileError
            If the file is not a saved adjustment, or is damaged.
        """
        file = Path(path)
        try:
            if not file.exists():
                raise ModelFileError(f"There is no file {file}. {_EXPECTED}")
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                raise ModelFileError(f"{file} is not a file of an adjustment. {_EXPECTED}")
            content = json.loads(file.read_bytes())
        except OSError as error:
            raise ModelFileError(
                f"{file} cannot be read ({error.strerror}). {_EXPECTED}"
            ) from error
        except ModelFileError:
            raise
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{file} is not valid JSON: {error}. {_EXPECTED}") from None
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise ModelFileError(f"{file} does not describe an adjustment of scores. {_EXPECTED}")
        if content.get("version") != _VERSION:
            raise ModelFileError(
                f"{file} has format version {content.get('version')}; this fairmatch reads "
                f"version {_VERSION}. Install the version of fairmatch that wrote it."
            )
        kind, strength = DECISIONS.get(str(content.get("decisions"))), content.get("strength")
        if kind is None or isinstance(strength, bool) or not isinstance(strength, int | float):
            raise ModelFileError(
                f"{file} is damaged: decisions or strength are missing. Save the adjustment again."
            )
        if not 0.0 <= strength <= 1.0:
            raise ModelFileError(
                f"{file} is damaged: its strength is {strength:g}, and must be in [0, 1]. Save the "
                "adjustment again."
            )
        parts = kind.from_state(content.get("parts"))
        small = [content.get(name, []) for name in ("pooled", "ignored")]
        pooled_alone = bool(small[0]) and OTHER not in parts.labels
        if pooled_alone or not all(isinstance(labels, list) for labels in small):
            raise ModelFileError(
                f"{file} is damaged: its small groups are not those of its curves. Save the "
                "adjustment again."
            )
        return cls(parts, float(strength), tuple(small[0]), tuple(small[1]))
