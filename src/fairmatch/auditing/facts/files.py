"""Facts as JSON, with the name and version of their schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypeVar

from fairmatch.exceptions import InputError
from fairmatch.storage.plain import from_plain, schema_of, to_plain

Kind = TypeVar("Kind", bound="JsonFacts")
Upgrades: TypeAlias = dict[int, Callable[[dict[str, Any]], dict[str, Any]]]


class JsonFacts:
    """Facts that can be written to JSON and read back unchanged.

    A subclass is a frozen dataclass that names its schema. Files with an earlier version of the
    schema are read too: ``UPGRADES[k]`` turns content of version k into content of version k + 1.
    """

    SCHEMA: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int]
    UPGRADES: ClassVar[Upgrades] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values, with the name and version of their schema."""
        return {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION, **to_plain(self)}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the facts as JSON; see `docs/reference/audit-json.md` for the schema.

        Parameters
        ----------
        indent : int, optional
            Number of spaces per level. None writes everything on one line.
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls: type[Kind], text: str) -> Kind:
        """Read facts that `to_json` wrote, in this version of the schema or an earlier one.

        Parameters
        ----------
        text : str
            The JSON text.
        """
        try:
            content = json.loads(text)
            name, version = content["schema"], content["schema_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"This is not JSON that fairmatch wrote: {error!r}. Pass the text that to_json "
                "returned."
            ) from error
        known = {*cls.UPGRADES, cls.SCHEMA_VERSION}
        if name != cls.SCHEMA or version not in known:
            raise InputError(
                f"This is {name} version {version}; expected {cls.SCHEMA} version "
                f"{' or '.join(map(str, sorted(known)))}. Read it with the class that wrote it, or "
                "with a newer version of fairmatch."
            )
        try:
            while version < cls.SCHEMA_VERSION:
                content = cls.UPGRADES[version](content)
                version += 1
            return from_plain(cls, content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"This {cls.SCHEMA} is damaged: {error!r}. Write it again with to_json."
            ) from error

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of what `to_json` writes."""
        return schema_of(cls, cls.SCHEMA, cls.SCHEMA_VERSION)
