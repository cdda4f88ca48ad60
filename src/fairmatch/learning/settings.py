"""Parameters of estimators, each declared once in the part that uses it."""

import dataclasses
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar, cast

from fairmatch.exceptions import FairmatchWarning

Class = TypeVar("Class", bound=type)

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


class Settings:
    """Base class of the parts that declare parameters; subclasses are dataclasses."""

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return a part with the parameters of an estimator, and check them."""
        given = {f.name: getattr(estimator, f.name) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        part = cls(**given)
        part.check()
        return part

    def check(self) -> None:
        """Raise an error unless every parameter has an allowed value."""


def estimator(*parts: type[Settings]) -> Callable[[Class], Class]:
    """Return a decorator that adds the parameters of parts to a class.

    Parameters
    ----------
    *parts : classes derived from Settings
        Their fields become keyword parameters after those that the class itself declares. If
        two parts declare the same name, the last one describes it. The docstring also lists the
        attributes that base classes and parts describe, unless the class describes them itself.

    Returns
    -------
    decorator
        Turns a class into a dataclass whose constructor only stores the parameters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Speed(Settings):
    ...     '''How fast.
    ...
    ...     Parameters
    ...     ----------
    ...     rate : float, default=0.1
    ...         Size of a step.
    ...     '''
    ...
    ...     rate: float = 0.1
    >>> @estimator(Speed)
    ... class Learner:
    ...     '''Learns.
    ...
    ...     Parameters
    ...     ----------
    ...     weight : float, default=1.0
    ...         Weight of the penalty.
    ...     '''
    ...
    ...     weight: float = 1.0
    >>> import inspect
    >>> print(inspect.signature(Learner).parameters["rate"])
    rate: float = 0.1
    >>> for line in inspect.getdoc(Learner).splitlines()[4:]:
    ...     print(line)
    weight : float, default=1.0
        Weight of the penalty.
    rate : float, default=0.1
        Size of a step.
    """

    def made(cls: Class) -> Class:
        own = inspect.get_annotations(cls)
        described: dict[str, str] = {}
        for part in parts:
            for field in dataclasses.fields(part):  # type: ignore[arg-type]
                if field.name not in own:
                    cls.__annotations__ = {**cls.__annotations__, field.name: field.type}
                    setattr(cls, field.name, dataclasses.field(default=field.default, kw_only=True))
            described |= _inherited(part, "Parameters")
        parameters = {k: v for k, v in described.items() if k not in own}
        attributes = _inherited(cls, "Attributes")
        for part in parts:
            attributes = {**attributes, **_inherited(part, "Attributes"), **attributes}
        cls.__doc__ = _with_entries(cls, parameters, attributes)
        return cast("Class", dataclasses.dataclass(eq=False, repr=False)(cls))

    return made


def _inherited(described: type, section: str) -> dict[str, str]:
    """Return the entries of a section, with those of base classes, by their first name."""
    found: dict[str, str] = {}
    for kind in reversed(described.__mro__):
        found |= _entries(kind, section)
    return found


def _entries(described: type, section: str) -> dict[str, str]:
    """Return the entry of every name in one section of a docstring."""
    if described.__module__.startswith("sklearn."):
        return {}  # scikit-learn's base classes describe other parameters
    text = _sections(described).get(section, "")
    found: dict[str, str] = {}
    if not text:
        return found
    for entry in re.split(r"\n(?=\w)", text.strip("\n")):
        names = entry.split(" :", 1)[0]
        first, *others = [name.strip() for name in names.split(",")]
        found[first] = entry
        found |= dict.fromkeys(others, "")
    return found


def _sections(described: type) -> dict[str, str]:
    pieces = _SECTION.split(inspect.cleandoc(described.__doc__ or ""))
    return dict(zip(["", *pieces[1::2]], pieces[::2], strict=True))


def _with_entries(cls: type, parameters: dict[str, str], attributes: dict[str, str]) -> str:
    """Return a class's docstring with the parameters and attributes of its parts added."""
    sections = _sections(cls)
    head = sections.pop("").rstrip()
    own = sections.pop("Parameters", "").rstrip()
    sections.pop("Attributes", "")
    listed = [own.strip("\n"), *parameters.values()]
    shown = {"Parameters": _lines(listed), "Attributes": _lines(attributes.values())}
    ordered = {**{name: text for name, text in shown.items() if text}, **sections}
    body = [f"{name}\n{'-' * len(name)}\n{text.strip(chr(10))}" for name, text in ordered.items()]
    return "\n\n".join([head, *body]) + "\n"


def _lines(entries: Iterable[str]) -> str:
    return "\n".join(text.rstrip() for text in entries if text)


# The weights of the paper's Appendix D.2.
PAPER_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10)

# Among the larger weights, trees with the marginal map pass from deciding to accepting nobody or
# everybody. On each of the four tables and on ACSIncome, one of these weights has a model that
# decides with a gap of .02, with that map and with the default one.
BOOSTING_CHOICES = (
    *(0.0, *PAPER_WEIGHTS[:14]),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 5.5, 6.0, 7.0, 10.0, 20.0, 50.0),
)

# These weights reach the paper's levels on its four tables.
LAFTR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SIPM_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 4.0)

# A classifier undoes a partial repair as long as it can tell the groups apart. So most of the
# change happens near amount 1, and most amounts lie there.
REPAIR_AMOUNTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0)

# The weights of the paper's rivals, from its Appendix D.2.
REDUCTION_WEIGHTS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500),
)
REG_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 1.8, 2, 3, 5, 10, 20, 50, 100),
)
ADV_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 15, 20),
    *(30, 50, 100),
)
# Bounds of exponentiated gradient, the loosest first.
REDUCTION_BOUNDS = (0.08, 0.05, 0.03, 0.02, 0.01)

# Strengths of quantile alignment: shares of the way to the common distribution.
ALIGNMENT_STRENGTHS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0),
)
# Weights of match smoothing, whose penalty is a squared difference.
SMOOTHING_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200)
# Weights of regressors. The squared loss of a target in standard deviations yields to small ones.
REGRESSION_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)


def notify(message: str, category: type[FairmatchWarning]) -> None:
    """Issue a warning that points at the first caller outside fairmatch."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fairmatch."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)
