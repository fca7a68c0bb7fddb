"""Location-privacy and metric-privacy mechanisms by optimization, certified in exact integers."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_ROOMS = ("programs", "losses", "geo", "population", "release", "traces", "utility", "baselines", "errors")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version(__name__)
    try:
        return _attached(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    return _moved(name)


def _moved(name: str) -> Any:
    """A name of version 0.1 that was at the top and is in a room below it. Raises: AttributeError."""
    from warnings import warn

    verb, _, rest = name.partition("_")
    found = [(verb, rest)] if verb in ("read", "plot") and rest else [(room, name) for room in _ROOMS]
    for room, inside in found:
        module = import_module(f"{__name__}.{room}")
        if hasattr(module, inside):
            warn(f"mechdesign.{name} is mechdesign.{room}.{inside}", DeprecationWarning, stacklevel=3)
            return getattr(module, inside)
    raise _unknown(name)


def _unknown(name: str) -> AttributeError:
    """The error for a name that is nowhere, with those that come close to it."""
    from difflib import get_close_matches

    from mechdesign.errors import UnknownNameError

    rooms = {room: import_module(f"{__name__}.{room}").__all__ for room in (*_ROOMS[:-1], "plot", "priors", "read")}
    known = {f"md.{one}": one for one in __all__} | {
        f"md.{r}.{one}": one for r, names in rooms.items() for one in names
    }
    plain = {full: one.lower() for full, one in known.items()}
    close = [full for full, one in plain.items() if one == name.lower()]
    near = get_close_matches(name.lower(), plain.values(), n=3, cutoff=0.75)
    close += [full for full, one in plain.items() if one in near and full not in close]
    close += [full for full, one in plain.items() if name.lower() in one.split("_") and full not in close]
    remedy = (
        f"is it {', '.join(close[:4])}?" if close else "dir(mechdesign) lists the names, and those of md.geo its own"
    )
    return UnknownNameError(f"module {__name__!r} has no attribute {name!r}", field=name, remedy=remedy)
