"""Parameters of estimators: declared once, in the part that uses them.

A part, such as the settings of a network, is a small dataclass that says what its parameters are,
what they default to and what they mean, and which attributes an estimator with them has.
`estimator` gives a class the parameters of several parts: its constructor stores them, and its
docstring describes each parameter and attribute where it stands.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar, cast

Class = TypeVar("Class", bound=type)

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


class Settings:
    """Base of the parts that declare parameters; subclasses are dataclasses."""

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the part of an estimator, read from its parameters and checked."""
        given = {f.name: getattr(estimator, f.name) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        part = cls(**given)
        part.check()
        return part

    def check(self) -> None:
        """Raise an error unless every parameter is of a value that is allowed."""


def estimator(*parts: type[Settings]) -> Callable[[Class], Class]:
    """Return a decorator that adds the parameters of parts to a class, and its constructor.

    Parameters
    ----------
    *parts : classes derived from Settings
        Their fields become keyword parameters, after those that the class itself declares. Where
        two parts declare the same name, the last one describes it. Attributes that base classes
        and parts describe join the docstring, unless the class describes them itself.

    Returns
    -------
    decorator
        Makes a dataclass of the class. Its constructor stores, and does nothing else.

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
    """Return the entries of a section, those of base classes too, by the name that comes first."""
    found: dict[str, str] = {}
    for kind in reversed(described.__mro__):
        found |= _entries(kind, section)
    return found


def _entries(described: type, section: str) -> dict[str, str]:
    """Return what a docstring says of each name in a section."""
    if described.__module__.startswith("sklearn."):
        return {}  # its docstrings speak of other things
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
    """Return a class's docstring with the parameters of its parts after its own, and attributes."""
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
