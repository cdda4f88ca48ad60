"""Dataclasses as plain values and back, and their JSON Schema."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_SIMPLE = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}

_hints = cache(get_type_hints)


def to_plain(value: Any) -> Any:
    """Turn dataclasses into dicts and tuples into lists, at every level."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: Any) -> T:
    """Return the dataclass that `to_plain` turned into plain values. Unknown keys are ignored.

    A field that a file of an earlier version lacks gets its default.
    """
    result: T = _read(kind, value)
    return result


def _read(kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        known = [f for f in fields(kind) if f.name in value or not _has_default(f)]
        return kind(**{f.name: _read(hints[f.name], value[f.name]) for f in known})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _read(next(a for a in arguments if _fits(a, value)), value)
    if origin is dict:
        return {key: _read(arguments[1], item) for key, item in value.items()}
    if origin is tuple:
        kinds = arguments if arguments[-1] is not Ellipsis else (arguments[0],) * len(value)
        return tuple(_read(k, item) for k, item in zip(kinds, value, strict=True))
    if not _fits(kind, value):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return float(value) if kind is float else value


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _fits(kind: Any, value: Any) -> bool:
    if is_dataclass(kind):
        return isinstance(value, dict)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple)
    return isinstance(value, get_origin(kind) or kind)


def schema_of(kind: type[Any], name: str, version: int) -> dict[str, Any]:
    """Return the JSON Schema of a file that holds a dataclass, its schema's name and version."""
    definitions: dict[str, Any] = {}
    _describe(kind, definitions)
    top = definitions.pop(kind.__name__)
    head = {"schema": {"const": name}, "schema_version": {"const": version}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **top,
        "properties": {**head, **top["properties"]},
        "required": [*head, *top["required"]],
        "$defs": definitions,
    }


def _describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(kind) and isinstance(kind, type):
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}  # a placeholder, in case the type refers to itself
            hints = _hints(kind)
            definitions[name] = {
                "type": "object",
                "description": (kind.__doc__ or "").partition("\n")[0],
                "properties": {f.name: _describe(hints[f.name], definitions) for f in fields(kind)},
                "required": [f.name for f in fields(kind)],
            }
        return {"$ref": f"#/$defs/{name}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_describe(a, definitions) for a in arguments]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _describe(arguments[1], definitions)}
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return {"type": "array", "items": _describe(arguments[0], definitions)}
        parts = [_describe(a, definitions) for a in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}
    return dict(_SIMPLE[kind])
