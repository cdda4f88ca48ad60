"""The errors and warnings of fairmatch.

Each error is also the builtin that callers already catch. Each message says what was given,
what was expected and what to do. An error about one parameter carries its name in ``parameter``.
A program with another name for it, such as the command line, shows its own name instead::

    FairmatchError
    ├── InputError (ValueError)          data or a parameter is not usable as it is
    │   ├── GroupError                   groups cannot be compared, or are too small
    │   ├── LabelError                   labels are missing, or not of two classes
    │   └── ColumnError (KeyError)       a column is missing or has the wrong type
    ├── CouplingError (ValueError)       a coupling is invalid, or used on another table
    ├── SolverError (RuntimeError)       a solver found no result, or no proof of it
    ├── GapNotReachedError (RuntimeError) no model is within ``max_gap``, and ``strict=True``
    ├── MissingExtraError (ImportError)  an optional library is not installed
    ├── DatasetError (OSError)           a dataset is missing, damaged or not downloadable
    ├── OutputFileError (OSError)        a file cannot be written
    └── ModelFileError (ValueError)      a saved model is damaged or of the wrong type
    FairmatchWarning (UserWarning)
    ├── GapNotReachedWarning             no model or adjustment is within ``max_gap``
    ├── ConstantModelWarning             the model gives nearly everyone one prediction
    ├── SmallGroupWarning                groups are too small for a reliable gap
    ├── UnknownGroupWarning              many rows have no group
    ├── LeakWarning                      a column nearly reveals the group
    └── TrainingInterruptedWarning       training was stopped early; the model is kept
"""

import sys
import warnings


class FairmatchError(Exception):
    """Base class of every error raised by fairmatch.

    Parameters
    ----------
    *args
        The message: what was given, what was expected, and what to do.
    parameter : str, optional
        Name of the Python parameter at fault, such as ``"max_gap"``.

    Examples
    --------
    >>> InputError("max_gap must be a number in [0, 1], got 3.", parameter="max_gap").parameter
    'max_gap'
    """

    parameter: str | None = None

    def __init__(self, *args: object, parameter: str | None = None) -> None:
        super().__init__(*args)
        self.parameter = parameter


class InputError(FairmatchError, ValueError):
    """The data or a parameter is not usable as it is."""


class GroupError(InputError):
    """The sensitive features do not form groups that can be compared."""


class LabelError(InputError):
    """The labels or targets are missing or have the wrong type."""


class ColumnError(InputError, KeyError):
    """A column is missing or has the wrong type."""

    # KeyError shows the repr of its argument; a sentence should be shown as it is.
    __str__ = Exception.__str__


class CouplingError(FairmatchError, ValueError):
    """A coupling is invalid, or is used on a table that it was not made for."""


class SolverError(FairmatchError, RuntimeError):
    """A solver stopped without a result, or before its result was proven."""


class GapNotReachedError(FairmatchError, RuntimeError):
    """No model of a path has a gap within ``max_gap``, and ``strict=True`` was given."""


class MissingExtraError(FairmatchError, ImportError):
    """A library that an optional part of fairmatch needs is not installed."""


class DatasetError(FairmatchError, OSError):
    """A dataset is missing or damaged, or cannot be downloaded."""


class ModelFileError(FairmatchError, ValueError):
    """A saved model is damaged, truncated, or of the wrong type."""


class OutputFileError(FairmatchError, OSError):
    """A file cannot be written: the disk is full, or permission is denied.

    Examples
    --------
    >>> error = OutputFileError(28, "No space left on device", "report.html")
    >>> print(error, error.filename)
    report.html cannot be written: No space left on device. Choose another place. report.html
    """

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror}. Choose another place."


class FairmatchWarning(UserWarning):
    """Base class of every warning given by fairmatch."""


class GapNotReachedWarning(FairmatchWarning):
    """No model of a path, or no strength of an adjustment, has a gap within ``max_gap``."""


class ConstantModelWarning(FairmatchWarning):
    """The chosen model gives everyone the same prediction, or nearly so."""


class SmallGroupWarning(FairmatchWarning):
    """Groups are too small for a reliable gap."""


class UnknownGroupWarning(FairmatchWarning):
    """Many rows have no group, so gaps describe only the other rows."""


class LeakWarning(FairmatchWarning):
    """A column reveals the group, or nearly so, to a model that must not see it."""


class TrainingInterruptedWarning(FairmatchWarning):
    """The user stopped the training early and kept what had been learned."""


def notify(message: str, category: type[FairmatchWarning]) -> None:
    """Issue a warning that points at the first caller outside fairmatch."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fairmatch."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)
