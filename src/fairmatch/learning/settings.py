"""Parameters of estimators, each declared once in the part that uses it.

A part, such as the settings of a network, is a small dataclass. It declares parameters with their
defaults, and describes them and the attributes of an estimator that has them. `estimator` adds the
parameters of several parts to a class: the constructor stores them, and the docstring of the class
describes every parameter and attribute.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar, cast

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
