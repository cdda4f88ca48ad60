"""The errors and warnings of fairmatch.

Each is also the builtin that callers already catch, and each message says what was given,
what was expected and what to do::

    FairmatchError
    ├── InputError (ValueError)          data or a parameter that cannot be used as it is
    │   ├── GroupError                   not exactly two groups, or a group too small
    │   ├── LabelError                   not exactly two classes, or a label that is missing
    │   └── ColumnError (KeyError)       a column that is not there, or of the wrong kind
    ├── CouplingError (ValueError)       a coupling that is invalid, or used on another table
    ├── SolverError (RuntimeError)       optimality was not proven within the limits
    ├── MissingExtraError (ImportError)  an optional part is not installed
    ├── DatasetError (OSError)           a table is absent, damaged or cannot be fetched
    └── ModelFileError (ValueError)      a saved model is damaged or of another kind
    FairmatchWarning (UserWarning)
    ├── GapNotReachedWarning             no model of the path is within ``max_gap``
    ├── ConstantModelWarning             a model within ``max_gap`` accepts nobody or everybody
    ├── SmallGroupWarning                groups too small for what is said about them
    ├── LeakWarning                      a column nearly gives the group away
    └── TrainingInterruptedWarning       training was ended early and kept
"""


class FairmatchError(Exception):
    """Base class of every error raised by fairmatch."""


class InputError(FairmatchError, ValueError):
    """The data or a parameter given cannot be used as it is."""


class GroupError(InputError):
    """The sensitive features do not form groups that can be compared."""


class LabelError(InputError):
    """The labels are not two classes, or one that is needed is missing."""


class ColumnError(InputError, KeyError):
    """A column is not there, or is not of the kind that is needed."""

    # KeyError shows the repr of its argument; a sentence should be shown as it is.
    __str__ = Exception.__str__


class CouplingError(FairmatchError, ValueError):
    """A coupling is invalid, or is used on a table that it was not made for."""


class SolverError(FairmatchError, RuntimeError):
    """A solver stopped before optimality was proven."""


class MissingExtraError(FairmatchError, ImportError):
    """An optional part of fairmatch is not installed."""


class DatasetError(FairmatchError, OSError):
    """A table is absent, damaged, or cannot be fetched."""


class ModelFileError(FairmatchError, ValueError):
    """A saved model is damaged, truncated, or of another kind."""


class FairmatchWarning(UserWarning):
    """Base class of every warning given by fairmatch."""


class GapNotReachedWarning(FairmatchWarning):
    """No model of the path is within the asked gap on the validation rows."""


class ConstantModelWarning(FairmatchWarning):
    """The model that was chosen accepts nobody, or everybody, among the validation rows."""


class SmallGroupWarning(FairmatchWarning):
    """Groups are so small that what is measured or bounded says little about them."""


class LeakWarning(FairmatchWarning):
    """A column nearly gives the group to a model that is meant not to see it."""


class TrainingInterruptedWarning(FairmatchWarning):
    """Training was ended early by the user, who asked to keep what had been learned."""
