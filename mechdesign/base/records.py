"""The base of the dataclasses that users hold: checked arguments, copied read-only arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np

from mechdesign.base.display import ReprMixin
from mechdesign.base.validation import array_fields, check_arguments, frozen_copy


class FrozenRecord(ReprMixin):
    """A frozen dataclass with checked fields and copied arrays; equal if all fields and array entries are equal."""

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        # copy and pickle call __new__ without arguments, which were checked already.
        if args or keywords:
            check_arguments(cls, args, keywords)
        return super().__new__(cls)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = _freeze_after(cls.__post_init__)  # type: ignore[assignment,method-assign]

    def __post_init__(self) -> None:
        _freeze_arrays(self)

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return all(_equal(getattr(self, name, None), getattr(other, name, None)) for name in names)

    def __hash__(self) -> int:
        values = [getattr(self, field.name, None) for field in fields(self)]  # type: ignore[arg-type]
        return hash((type(self), *(value for value in values if isinstance(value, (str, int, float)))))


def _equal(one: Any, other: Any) -> bool:
    """Compare two values of a field; arrays and Datasets by their content."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if hasattr(one, "identical"):
        return bool(one.identical(other))
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _freeze_after(check: Callable[[Any], None]) -> Callable[[Any], None]:

    @functools.wraps(check)
    def after(self: Any) -> None:
        check(self)
        _freeze_arrays(self)

    return after


def _freeze_arrays(instance: Any) -> None:
    """Replace every array among the fields by a read-only copy; lists too, if the field is of numbers."""
    kind: type = type(instance)
    numeric = array_fields(kind)
    for field in fields(instance):
        value: Any = getattr(instance, field.name, None)
        is_sequence = isinstance(value, (list, tuple)) or (hasattr(value, "__array__") and not np.isscalar(value))
        if isinstance(value, np.ndarray) or (is_sequence and field.name in numeric):
            object.__setattr__(instance, field.name, frozen_copy(value, field.name))
