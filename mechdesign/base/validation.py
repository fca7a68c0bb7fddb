"""Arguments of a call, checked before any work: types by annotations (`validate_call`), ranges by functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arrays import AnyArray, Booleans, Floats
from mechdesign.base.labels import values_in_place_order
from mechdesign.errors import InputError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_N = TypeVar("_N", bound=np.generic)
_UNIONS = (typing.Union, types.UnionType)
# For annotations of modules that import xarray for type checkers alone: its import takes 0.6 s.
_XARRAY = types.SimpleNamespace(Dataset=type("Dataset", (), {}), DataArray=Any)
_SHOWN = 60  # characters of a value


def validate_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that its arguments are checked first."""

    @functools.wraps(function)
    def call(*args: _P.args, **keywords: _P.kwargs) -> _R:
        check_arguments(function, args, keywords)
        return function(*args, **keywords)

    return call


def check_arguments(owner: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Refuse arguments of a function or class that do not fit its annotations."""
    signature, hints = _signature(owner), _hints(owner)
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        # The signature without annotations, which may be lines long.
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
        raise TypeError(f"{error}: {owner.__name__}{inspect.Signature(plain)}") from None
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        # A default passes whatever its annotation: None may stand for a value that is filled in later.
        is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name in hints and not is_variadic and value is not parameter.default:
            hint, written = hints[name]
            if not _fits(value, hint):
                raise InputError(f"must be of type {written}", field=name, value=_describe_value(value))


@functools.cache
def array_fields(kind: type) -> frozenset[str]:
    """The fields of a dataclass that hold numbers, arrays or lists of them."""
    several = (Sequence, list, tuple, dict)
    hints = _hints(kind).items()
    return frozenset(name for name, (hint, _) in hints if _is_array(hint) and typing.get_origin(hint) not in several)


_signature = functools.cache(inspect.signature)


def _describe_value(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    words = repr(value) if value is None or isinstance(value, (str, int, float, Path)) else f"a {type(value).__name__}"
    return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"


@functools.cache
def _hints(owner: Callable[..., Any]) -> dict[str, tuple[Any, str]]:
    """Annotations by name, evaluated and as written, with those of bases; without imports for type checkers."""
    owners = reversed(owner.__mro__) if isinstance(owner, type) else [inspect.unwrap(owner)]
    hints: dict[str, tuple[Any, str]] = {}
    for source in owners:
        namespace = {"xr": _XARRAY} | (vars(sys.modules[source.__module__]) if source.__module__ in sys.modules else {})
        for name, annotation in inspect.get_annotations(source).items():
            with contextlib.suppress(NameError, TypeError, AttributeError):
                hint = eval(annotation, namespace) if isinstance(annotation, str) else annotation  # noqa: S307 - own source text
                hints[name] = hint, str(annotation)
    return hints


def _fits(value: object, hint: Any) -> bool:
    """True unless a value contradicts its annotation; annotations that cannot be checked fit."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if _is_array(hint):
        return _fits_array(value, parts)
    if origin in _UNIONS:
        return any(_fits(value, part) for part in parts)
    if hint is None or hint is type(None):
        return value is None
    kind = origin or hint
    if kind in (float, int):  # whatever becomes one: NumPy's scalars, Fraction, Decimal
        return not isinstance(value, (str, bytes)) and (hasattr(value, "__float__") or hasattr(value, "__index__"))
    if kind is Path:
        return isinstance(value, (str, Path))
    if kind in (str, Mapping):
        return isinstance(value, kind)
    if isinstance(kind, type) and issubclass(kind, Iterable) and kind.__module__ == "collections.abc":
        return hasattr(value, "__iter__") and (str in parts or not _textual(value))
    is_ours = isinstance(kind, type) and kind.__module__.startswith("mechdesign.")
    if getattr(kind, "__name__", "") == "Dataset":
        return any(base.__name__ == "Dataset" for base in type(value).__mro__) or hasattr(value, "stands_for_a_dataset")
    return isinstance(value, kind) if is_ours else True


def _fits_array(value: object, parts: tuple[Any, ...]) -> bool:
    """True if NumPy can make an array of a value, or it has another type of the union."""
    others = {part for part in parts if isinstance(part, type)} - {str, Any} | ({str} if Path in parts else set())
    if isinstance(value, tuple(others)):
        return True
    return not (_textual(value) or type(value).__module__.startswith("mechdesign."))


def _textual(value: object) -> bool:
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


def check_positive(value: float | None, name: str, *, infinite: bool = False) -> float:
    """`value` as a positive number, finite unless `infinite`."""
    number = float("nan") if value is None else float(value)
    if not number > 0 or (np.isinf(number) and not infinite):
        raise InputError("must be positive" if infinite else "must be positive and finite", field=name, value=value)
    return number


def as_numbers(values: ArrayLike, field: str, *places: Floats | None, ascending: bool = False) -> Floats:
    """An array of doubles; labelled data is put in the order of the places."""
    return _as_doubles(values_in_place_order(values, field, *places, ascending=ascending), field)


def _as_doubles(values: ArrayLike, field: str) -> Floats:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InputError("must be an array of numbers", field=field, value=reprlib.repr(values)) from error


def check_finite(values: ArrayLike, name: str) -> Floats:
    """`values` as an array of doubles."""
    array = _as_doubles(values, name)
    refuse_entries(~np.isfinite(array), array, "must be finite", field=name)
    return array


def refuse_entries(wrong: Booleans, values: AnyArray, message: str, *, field: str, remedy: str | None = None) -> None:
    """Refuse an array some of whose entries are `wrong`."""
    if wrong.any():
        raise InputError(message, field=field, value=_first_entry(wrong, values), remedy=remedy)


def check_not_negative(values: Floats, name: str) -> None:
    """Refuse an array with an entry that is negative or not finite."""
    refuse_entries(~np.isfinite(values), values, "must be finite", field=name)
    refuse_entries(values < 0, values, "must not be negative", field=name)


def _first_entry(wrong: Booleans, values: AnyArray) -> str:
    """For example "inf at [2], and 3 more"."""
    index, more = np.argwhere(wrong)[0].tolist(), int(np.count_nonzero(wrong)) - 1
    value = values[tuple(index)]
    shown = f"{value:.9g}" if isinstance(value, np.floating) else f"{value}"
    return shown + (f" at {index}" if index else "") + (f", and {more:,} more" if more else "")


def frozen_copy(values: ArrayLike, name: str) -> AnyArray:
    """A read-only copy of `values`; an array that owns its data and is read-only already is returned itself."""
    if type(values) is np.ndarray and values.flags.owndata and not values.flags.writeable:
        return values
    try:
        copy = np.array(values)
    except ValueError as error:
        raise InputError("must be an array", field=name, value=f"a {type(values).__name__}") from error
    copy.setflags(write=False)
    return copy


def read_only(values: NDArray[_N]) -> NDArray[_N]:
    """A read-only view."""
    view = values.view()
    view.setflags(write=False)
    return view


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """A positive finite privacy level."""
    value = float(epsilon)
    if value == 0:
        raise InputError("must be positive; eps = 0 admits constant mechanisms only", field=field, value=value)
    return check_positive(value, field)


def check_whole(value: int, field: str, *, minimum: int = 1) -> int:
    """Return the value as an int, at least `minimum`."""
    try:
        number = minimum - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = minimum - 1
    if number < minimum:
        raise InputError(f"must be an integer, at least {minimum}", field=field, value=value)
    return number
