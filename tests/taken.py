"""Capabilities that are taken away, as tests/test_structure.py does: what a test asks of one skips the test."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar, NoReturn

import pytest

from mechdesign.base import registry

CAPABILITIES = (
    *("devicemap", "factored", "geo", "pictures", "positions", "posteriors"),
    *("release", "sessions", "surveys", "web"),
)


class _Absent(type):
    """A name of a capability that is not there: it can be imported and compared, whatever else skips."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _skip()

    def __call__(cls, *args: object, **given: object) -> NoReturn:
        _skip()

    __getitem__ = __iter__ = __len__ = __lt__ = __gt__ = __le__ = __ge__ = __call__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __call__
    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __floordiv__ = __mod__ = __rmod__ = __neg__ = __call__


def needs(*names: str) -> pytest.MarkDecorator:
    """The mark of a test that runs commands or scripts of capabilities."""
    absent = [name for name in names if name not in registry.capabilities()]
    return pytest.mark.skipif(bool(absent), reason="needs a capability that is taken away")


def _skip() -> NoReturn:
    pytest.skip("needs a capability that is taken away", allow_module_level=True)


class _Module(ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(name, (), {})


class _Finder(MetaPathFinder, Loader):
    """Modules of capabilities that are not there."""

    def __init__(self, absent: frozenset[str]) -> None:
        self.absent = absent

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        parts = name.split(".")
        found = parts[0] == "mechdesign" and len(parts) > 1 and parts[1] in self.absent
        return ModuleSpec(name, self, is_package=True) if found else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Let tests import the names of capabilities that are not there. Call it before the package is imported."""
    absent = frozenset(CAPABILITIES) - frozenset(registry.capabilities())
    if absent:
        sys.meta_path.insert(0, _Finder(absent))
        implementation = registry.Role.get
        registry.Role.get = lambda role: implementation(role) if role.is_filled else _skip()
