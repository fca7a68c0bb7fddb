"""Location-privacy and metric-privacy mechanisms by optimization, certified in exact integers."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Of the core, beside the names at the top.
_PARTS = (
    "baselines",
    "extend",
    "losses",
    "plot",
    "priors",
    "programs",
    "read",
    "utility",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version(__name__)
    try:
        return _attached(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    raise _unknown(name)


def _unknown(name: str) -> AttributeError:
    """The error for a name that is nowhere, with those that come close to it."""
    from difflib import get_close_matches

    from mechdesign.base.registry import capabilities
    from mechdesign.errors import UnknownNameError

    meant = {"problem": "md.DesignProblem", "metrics": "md.Euclidean", "mechanism": "md.solve", "area": "md.geo.Area"}
    known = {f"md.{one}": one for one in __all__}
    parts = [*_PARTS, *capabilities()]
    if "pictures" not in capabilities():
        parts.remove("plot")
    for part in parts:
        known |= {f"md.{part}.{one}": one for one in import_module(f"{__name__}.{part}").__all__}
    plain = {full: one.lower() for full, one in known.items()}
    close = [meant[name.lower()]] if name.lower() in meant else []
    close += [full for full, one in plain.items() if one == name.lower() and full not in close]
    near = get_close_matches(name.lower(), plain.values(), n=3, cutoff=0.75)
    close += [full for full, one in plain.items() if one in near and full not in close]
    close += [full for full, one in plain.items() if name.lower() in one.split("_") and full not in close]
    remedy = (
        f"is it {', '.join(close[:4])}?" if close else "dir(mechdesign) lists the names, and those of md.geo its own"
    )
    return UnknownNameError(f"module {__name__!r} has no attribute {name!r}", field=name, remedy=remedy)
