"""Registries of the core that capabilities add to.

A capability is a folder with a file registration.py, which imports nothing. Its `TABLES` lists names and the places of
their values, such as {"solvers": {"positions": "mechdesign.positions.solve:ENTRY"}}. A value is imported at first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from mechdesign.errors import InputError

Value = TypeVar("Value")

_PACKAGE = __name__.split(".")[0]


@cache
def capabilities() -> dict[str, Mapping[str, Mapping[str, str]]]:
    """The `TABLES` of every capability that is installed, by its name, in the order of names."""
    folder = Path(__file__).parents[1]
    names = sorted(place.parent.name for place in folder.glob("*/registration.py"))
    return {name: import_module(f"{_PACKAGE}.{name}.registration").TABLES for name in names}


class Registry(MutableMapping[str, Value]):
    """Entries by name: those of the core first, then of capabilities, then those that another package sets."""

    def __init__(self, name: str, entries: Mapping[str, Value] | None = None) -> None:
        # Names and places alone: a value is imported when it is first read.
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


_ROLES: Registry[Any] = Registry("roles")


class Role(Generic[Value]):
    """The implementation of the Protocol `Value` by a capability; at most one."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_filled(self) -> bool:
        return self.name in _ROLES

    def get(self) -> Value:
        """The implementation; InputError if its capability is not installed."""
        if not self.is_filled:
            raise InputError("is not part of this installation", field=self.name, remedy="install all of mechdesign")
        implementation: Value = _ROLES[self.name]
        return implementation
