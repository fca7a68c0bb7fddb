"""Arguments of a call: one that is missing, unknown or of another kind is refused before any work, by its name.

`asked` does so for a function, `check_construction` for a class: what Python would say later, of an attribute that a
text does not have, is said of the argument. Kinds are those of the annotations, as far as they can be told at a glance:
classes of this package, Datasets, paths, numbers, texts, tables of names; ranges, shapes and choices are the callee's.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mechdesign.errors import InputError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_UNIONS = (typing.Union, types.UnionType)
_SHOWN = 60  # characters of a value
_REMEDIES = {
    "DesignProblem": "pass a problem, such as md.load_problem('philadelphia') or md.DesignProblem(...)",
    "Dataset": "pass a Dataset, such as md.solve(problem) or md.load('FILE.nc')",
    "Program": "pass a program, such as md.Optimal(problem)",
    "Domain": "pass a domain, such as md.Domain.grid((20, 20), cell=100.0, unit='m')",
    "Metric": "pass a metric, such as md.Euclidean(epsilon=0.01, unit='m')",
    "Loss": "pass a loss, such as md.losses.Distance()",
    "PrivacyLevel": "pass a level, such as md.PrivacyLevel.constant(0.01, 'm')",
    "Raster": "pass a raster, such as md.read.raster('FILE.asc', unit='m')",
    "Area": "pass an area, such as md.read.area('FILE.geojson')",
    "path": "pass the path of a file",
    "number": "pass a number",
    "numbers": "pass numbers",
    "text": "pass a text",
}


def asked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, its arguments checked first. Raises: InputError that names the argument."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: _P.args, **given: _P.kwargs) -> _R:
        _check(function, function.__name__, signature, args, given)
        return function(*args, **given)

    return call


def check_construction(kind: type, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
    """Refuse the arguments of a dataclass that do not fit its fields. Raises: as `asked`."""
    _check(kind, kind.__name__, _signature(kind), args, given)


@functools.cache
def array_fields(kind: type) -> frozenset[str]:
    """The fields of a dataclass that hold numbers, arrays or lists of them."""
    several = (Sequence, list, tuple, dict)
    hints = _hints(kind).items()
    return frozenset(name for name, hint in hints if _is_array(hint) and typing.get_origin(hint) not in several)


@functools.cache
def _signature(kind: type) -> inspect.Signature:
    return inspect.signature(kind)


def _check(
    function: Callable[..., Any],
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    given: Mapping[str, Any],
) -> None:
    try:
        bound = signature.bind(*args, **given)
    except TypeError as error:
        raise _unbound(name, signature, error) from error
    for parameter, value in bound.arguments.items():
        hint, stated = _hints(function).get(parameter), signature.parameters[parameter]
        usual = value is stated.default or stated.kind in _GATHERING
        if hint is not None and not usual and not _fits(value, hint):
            words = list(dict.fromkeys(_words(hint)))
            raise InputError(
                f"must be {' or '.join(_article(word) for word in words)}",
                field=parameter,
                value=shown(value),
                remedy=next((_REMEDIES[word] for word in words if word in _REMEDIES), f"see help of {name}"),
            )


_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _unbound(name: str, signature: inspect.Signature, error: TypeError) -> InputError:
    """The refusal of arguments that are too many, missing or unknown."""
    named = re.search(r"'(\w+)'", str(error))
    shape = ", ".join(_written(p) for p in signature.parameters.values() if p.name != "self")
    return InputError(
        f"{error} in a call of {name}",
        field=named[1] if named else name,
        value=None,
        remedy=f"write {name}({shape})",
    )


def _written(parameter: inspect.Parameter) -> str:
    """A parameter as a call writes it; those with a default in brackets."""
    if parameter.kind in _GATHERING:
        return "..."
    word = f"{parameter.name}=..." if parameter.kind is inspect.Parameter.KEYWORD_ONLY else parameter.name
    return word if parameter.default is inspect.Parameter.empty else f"[{word}]"


def shown(value: object) -> str:
    """A value in a few words: numbers and texts as they are, of others the type."""
    plain = value is None or isinstance(value, (str, int, float, Path))
    told = repr(value) if plain else f"a {type(value).__name__}"
    if isinstance(value, type):
        told = f"the class {value.__name__}"
    return told if len(told) <= _SHOWN else told[: _SHOWN - 1] + "…"


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be told, by name; those of a class are those of its bases too. What stands for imports
    of type checkers alone is left out.
    """
    owners = reversed(function.__mro__) if isinstance(function, type) else [inspect.unwrap(function)]
    found: dict[str, Any] = {}
    for owner in owners:
        namespace = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
        for name, written in inspect.get_annotations(owner).items():
            with contextlib.suppress(NameError, TypeError, AttributeError):
                found[name] = eval(written, namespace) if isinstance(written, str) else written
    return found


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the kind of an annotation, where that can be told."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if _is_array(hint):
        return _fits_array(value, parts)
    if origin in _UNIONS:
        return any(_fits(value, part) for part in parts)
    if hint is None or hint is type(None):
        return value is None
    kind = origin or hint
    if kind in (float, int):
        return not isinstance(value, (str, bytes)) and (hasattr(value, "__float__") or hasattr(value, "__index__"))
    if kind is Path:
        return isinstance(value, (str, Path))
    if kind in (str, Mapping):
        return isinstance(value, kind)
    if isinstance(kind, type) and issubclass(kind, Iterable) and kind.__module__ == "collections.abc":
        return hasattr(value, "__iter__") and (str in parts or not _textual(value))
    own = isinstance(kind, type) and kind.__module__.startswith("mechdesign.")
    return isinstance(value, kind) if own or getattr(kind, "__name__", "") == "Dataset" else True


def _fits_array(value: object, parts: tuple[Any, ...]) -> bool:
    """The same of what NumPy makes an array of, or of one of the other parts of a union with it."""
    if any(isinstance(part, type) and isinstance(value, part) for part in parts if part is not str):
        return True
    if Path in parts and isinstance(value, str):
        return True
    return not (_textual(value) or type(value).__module__.startswith("mechdesign."))


def _textual(value: object) -> bool:
    """Whether a value is a text, or holds one."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, str) for item in value)
    return isinstance(value, (str, bytes))


def _is_array(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in _UNIONS:
        return any(_is_array(part) for part in typing.get_args(hint))
    return origin not in (Mapping, Callable) and (
        "numpy" in str(getattr(hint, "__module__", "")) or "numpy" in str(hint)
    )


def _words(hint: Any) -> list[str]:
    """What an annotation asks for, in words."""
    origin = typing.get_origin(hint)
    if origin in _UNIONS and not _is_array(hint):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        words = [word for part in parts for word in _words(part)]
        return [word for word in words if word != "text"] if "path" in words else words
    if hint is Path:
        return ["path"]
    if hint in (float, int):
        return ["number"]
    if hint is str:
        return ["text"]
    if _is_array(hint) or origin is not None:
        return ["table by name"] if origin is Mapping else ["numbers" if _is_array(hint) else "list"]
    return [getattr(hint, "__name__", str(hint))]


def _article(word: str) -> str:
    return word if word == "numbers" else f"a{'n' * (word[0] in 'AEIOaeio')} {word}"
