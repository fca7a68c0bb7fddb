"""Objects as text and as HTML: the class and up to four facts, a line each."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

_WIDTH = 96  # columns of a line
_LINES = 4  # below the name of the class


# Methods that files and checks call: tab completion leaves them out.
FOR_FILES = frozenset(
    [
        "repr_fields",
        "describe",
        "describe_json",
        "from_description",
        "fingerprint",
        "check",
        "described",
        "uses_stored_edges",
        "require_alike",
        "require_distances",
        "require_cover",
        "storable_parameters",
    ]
)


class ReprMixin:
    """Shows a dataclass by its `repr_fields`: as text, and as a small table on pages."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Otherwise `dataclass` would write its own `__repr__` into each subclass.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = ReprMixin.__repr__  # type: ignore[method-assign]

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in FOR_FILES]

    def repr_fields(self) -> Mapping[str, object]:
        """The values to show by name: the fields that are not at their defaults."""
        facts: dict[str, object] = {}
        for field in fields(self):  # type: ignore[arg-type]
            if not field.repr:
                continue
            value = getattr(self, field.name)
            if field.default is MISSING or not _is_default(value, field.default):
                facts[field.name] = value
        return facts

    def __repr__(self) -> str:
        lines = [(name, brief(value)) for name, value in self.repr_fields().items()]
        # The last line takes all further facts.
        if len(lines) > _LINES:
            (name, words), *others = lines[_LINES - 1 :]
            lines[_LINES - 1 :] = [(name, ", ".join([words, *(" ".join(other) for other in others)]))]
        width = max((len(name) for name, _ in lines), default=0)
        return "\n".join([type(self).__name__, *(f"  {n:<{width}}  {_cut(v, _WIDTH - width)}" for n, v in lines)])

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{html.escape(n)}</th><td>{html.escape(brief(v))}</td></tr>" for n, v in self.repr_fields().items()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{''.join(rows)}</table>"


def _is_default(value: object, default: object) -> bool:
    if value is default:
        return True
    # A copy or a file restores an equal value, not the same object.
    return isinstance(value, (str, int, float)) and type(value) is type(default) and value == default


def brief(value: object) -> str:
    """A value in one line: arrays by shape and range, objects by their facts, texts cut."""
    if isinstance(value, ReprMixin):
        facts = [(name, brief(fact)) for name, fact in value.repr_fields().items()]
        inner = facts[0][1] if len(facts) == 1 else ", ".join(f"{name} {fact}" for name, fact in facts)
        return _cut(f"{type(value).__name__}({inner})" if inner else type(value).__name__, _WIDTH - 16)
    if isinstance(value, np.ndarray):
        shape = " x ".join(map(str, value.shape)) or "1"
        has_range = value.size > 0 and value.dtype.kind in "iuf"
        return f"{shape} {value.dtype}" + (f", {value.min():.6g} to {value.max():.6g}" if has_range else "")
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
