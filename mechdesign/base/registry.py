"""Tables of the core that capabilities add to.

A capability is a folder of this package with a file registration.py, whose `TABLES` says what it adds: for each table
of the core names and where their values are found, as "module:name". That file imports nothing, and a value is imported
when it is first asked for, so that a table costs what is taken from it. Without its folder a capability's names are
gone, and nothing else is.

    TABLES = {"solvers": {"positions": "mechdesign.positions.solve:ENTRY"}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from mechdesign.errors import InputError

Value = TypeVar("Value")

_PACKAGE = __name__.split(".")[0]


@cache
def capabilities() -> dict[str, Mapping[str, Mapping[str, str]]]:
    """The tables of every capability that is there, by its name, in the order of names."""
    folder = Path(__file__).parents[1]
    names = sorted(place.parent.name for place in folder.glob("*/registration.py"))
    return {name: import_module(f"{_PACKAGE}.{name}.registration").TABLES for name in names}


class Table(MutableMapping[str, Value]):
    """A table of the core by its name: its own entries first, then those of capabilities, then those set later.

    Setting an entry is how another package adds its own.
    """

    def __init__(self, name: str, entries: Mapping[str, Value] | None = None) -> None:
        self._added = dict(entries or {})
        self._places = {key: place for tables in capabilities().values() for key, place in tables.get(name, {}).items()}

    def __getitem__(self, key: str) -> Value:
        if key not in self._added:
            self._added[key] = resolve_name(self._places[key])
        return self._added[key]

    def __setitem__(self, key: str, value: Value) -> None:
        self._added[key] = value

    def __delitem__(self, key: str) -> None:
        self._places.pop(key, None)
        self._added.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._added, *self._places)))

    def __len__(self) -> int:
        return len(set(self._added) | set(self._places))

    def __contains__(self, key: object) -> bool:
        return key in self._added or key in self._places


PROVIDERS: Table[Any] = Table("providers")


def provider(role: str) -> Any:
    """The module of a capability that plays a role in the core, such as "page". Raises: InputError where none does."""
    if role not in PROVIDERS:
        raise InputError("is not part of this installation", field=role, remedy="install all of mechdesign")
    return PROVIDERS[role]
