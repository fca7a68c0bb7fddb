"""The base of dataclasses that users hold: their display at the prompt, five lines at most, and arrays of their own.

Arrays are copied and read-only, so that no later change to what an object was made of reaches it.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Self

import numpy as np

from mechdesign.base.validation import array_fields, check_arguments, own_array

_WIDTH = 96  # columns of a line
_LINES = 4  # below the name of the class


class ReprMixin:
    """A dataclass that is shown by `facts`, in text and as a small table on pages, whose fields are checked by their
    names and kinds before it is made, and whose arrays are copied and read-only after its `__post_init__`.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        if args or keywords:  # there are none where a copy or a pickle is made
            check_arguments(cls, args, keywords)
        return super().__new__(cls)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__repr__" not in cls.__dict__:  # there, `dataclass` leaves it alone
            cls.__repr__ = ReprMixin.__repr__  # type: ignore[method-assign]
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = _then_own(cls.__post_init__)  # type: ignore[assignment,method-assign]

    def __post_init__(self) -> None:
        _own_arrays(self)

    def __eq__(self, other: object) -> bool:
        """Whether the fields are equal, arrays by their entries."""
        if self is other or type(self) is not type(other):
            return self is other
        own: tuple[Field[Any], ...] = fields(self)  # type: ignore[arg-type]
        return all(_alike(getattr(self, field.name, None), getattr(other, field.name, None)) for field in own)

    def __hash__(self) -> int:
        own: tuple[Field[Any], ...] = fields(self)  # type: ignore[arg-type]
        plain = [value for field in own if isinstance(value := getattr(self, field.name, None), (str, int, float))]
        return hash((type(self), *plain))

    def facts(self) -> Mapping[str, object]:
        """What is worth a line: the fields that are not at their defaults."""
        own: tuple[Field[Any], ...] = fields(self)  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in own if field.repr}
        usual = {field.name: field.default for field in own if field.default is not MISSING}
        return {name: value for name, value in values.items() if not (name in usual and _usual(value, usual[name]))}

    def __repr__(self) -> str:
        lines = [(name, brief(value)) for name, value in self.facts().items()]
        if len(lines) > _LINES:
            (name, words), *others = lines[_LINES - 1 :]
            lines[_LINES - 1 :] = [(name, ", ".join([words, *(" ".join(other) for other in others)]))]
        wide = max((len(name) for name, _ in lines), default=0)
        return "\n".join([type(self).__name__, *(f"  {n:<{wide}}  {_cut(v, _WIDTH - wide)}" for n, v in lines)])

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{html.escape(n)}</th><td>{html.escape(brief(v))}</td></tr>" for n, v in self.facts().items())
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{''.join(rows)}</table>"


def _usual(value: object, usual: object) -> bool:
    """Whether a field is at its default, also after it was copied."""
    return value is usual or (isinstance(value, (str, int, float)) and type(value) is type(usual) and value == usual)


def _alike(one: Any, other: Any) -> bool:
    """Whether two values of a field are equal; arrays and Datasets are by what they hold."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if hasattr(one, "identical"):
        return bool(one.identical(other))
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _then_own(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """A `__post_init__` that ends with `_own_arrays`."""

    @functools.wraps(check)
    def after(self: Any) -> None:
        check(self)
        _own_arrays(self)

    return after


def _own_arrays(instance: Any) -> None:
    """Replace every array among the fields of a dataclass by its own; lists too, where a field is of numbers."""
    kind: type = type(instance)
    listed = array_fields(kind)
    for field in fields(instance):
        value: Any = getattr(instance, field.name, None)
        rows = isinstance(value, (list, tuple)) or (hasattr(value, "__array__") and not np.isscalar(value))
        if isinstance(value, np.ndarray) or (rows and field.name in listed):
            object.__setattr__(instance, field.name, own_array(value, field.name))


def brief(value: object) -> str:
    """A value in one line: arrays by their shape and range, objects by their own facts, texts cut."""
    if isinstance(value, ReprMixin):
        facts = [(name, brief(fact)) for name, fact in value.facts().items()]
        inner = facts[0][1] if len(facts) == 1 else ", ".join(f"{name} {fact}" for name, fact in facts)
        return _cut(f"{type(value).__name__}({inner})" if inner else type(value).__name__, _WIDTH - 16)
    if isinstance(value, np.ndarray):
        shape = " x ".join(map(str, value.shape)) or "1"
        ranged = value.size > 0 and value.dtype.kind in "iuf"
        return f"{shape} {value.dtype}" + (f", {value.min():.6g} to {value.max():.6g}" if ranged else "")
    if hasattr(value, "sizes") and hasattr(value, "attrs"):
        return f"{type(value).__name__}, " + ", ".join(f"{name} {size}" for name, size in value.sizes.items())
    if isinstance(value, Mapping):
        return _cut("{" + ", ".join(f"{key}: {brief(item)}" for key, item in value.items()) + "}", _WIDTH - 16)
    if isinstance(value, (list, tuple)) and len(value) > 6:
        return f"{len(value)} of {type(value[0]).__name__}"
    if isinstance(value, float):
        return f"{value:.9g}"
    return _cut(value if isinstance(value, str) else repr(value), _WIDTH - 16)


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
