"""The errors and warnings of fairmatch.

Each is also the builtin that callers already catch, and each message says what was given,
what was expected and what to do. An error about one parameter carries its name in ``parameter``,
and a program in which the parameter is called otherwise, such as the command line, shows that::

    FairmatchError
    ├── InputError (ValueError)          data or a parameter that cannot be used as it is
    │   ├── GroupError                   groups that cannot be compared, or are too small
    │   ├── LabelError                   labels that are missing, or not of two classes
    │   └── ColumnError (KeyError)       a column that is not there, or of the wrong kind
    ├── CouplingError (ValueError)       a coupling that is invalid, or used on another table
    ├── SolverError (RuntimeError)       a solver has no result, or could not prove it
    ├── GapNotReachedError (RuntimeError) no model is within ``max_gap``, and ``strict=True``
    ├── MissingExtraError (ImportError)  an optional part is not installed
    ├── DatasetError (OSError)           a table is absent, damaged or cannot be fetched
    ├── OutputFileError (OSError)        a file cannot be written
    └── ModelFileError (ValueError)      a saved model is damaged or of another kind
    FairmatchWarning (UserWarning)
    ├── GapNotReachedWarning             no model or adjustment is within ``max_gap``
    ├── ConstantModelWarning             the chosen model treats nearly everybody alike
    ├── SmallGroupWarning                groups too small to say much about them
    ├── UnknownGroupWarning              many rows have no group
    ├── LeakWarning                      a column nearly reveals the group
    └── TrainingInterruptedWarning       training was ended early and kept
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
        Name of the parameter of Python that is at fault, such as ``"max_gap"``.

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
    """The data or a parameter given cannot be used as it is."""


class GroupError(InputError):
    """The sensitive features do not form groups that can be compared."""


class LabelError(InputError):
    """The labels or targets are missing, or are not of the kind that is needed."""


class ColumnError(InputError, KeyError):
    """A column is not there, or is not of the kind that is needed."""

    # KeyError shows the repr of its argument; a sentence should be shown as it is.
    __str__ = Exception.__str__


class CouplingError(FairmatchError, ValueError):
    """A coupling is invalid, or is used on a table that it was not made for."""


class SolverError(FairmatchError, RuntimeError):
    """A solver stopped without a result, or before its result was proven."""


class GapNotReachedError(FairmatchError, RuntimeError):
    """No model of a path has a gap within ``max_gap``, and ``strict=True`` was given."""


class MissingExtraError(FairmatchError, ImportError):
    """An optional part of fairmatch is not installed."""


class DatasetError(FairmatchError, OSError):
    """A table is absent, damaged, or cannot be fetched."""


class ModelFileError(FairmatchError, ValueError):
    """A saved model is damaged, truncated, or of another kind."""


class OutputFileError(FairmatchError, OSError):
    """A file cannot be written: there is no place on the disk, or no permission.

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
    """The chosen model treats everybody alike, or nearly so."""


class SmallGroupWarning(FairmatchWarning):
    """Groups are too small for a reliable gap."""


class UnknownGroupWarning(FairmatchWarning):
    """Many rows have no group, so that gaps are those of the other people."""


class LeakWarning(FairmatchWarning):
    """A column nearly gives the group to a model that is meant not to see it."""


class TrainingInterruptedWarning(FairmatchWarning):
    """Training was ended early by the user, who asked to keep what had been learned."""


def notify(message: str, category: type[FairmatchWarning]) -> None:
    """Issue a warning that points at the first caller outside fairmatch."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fairmatch."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)
