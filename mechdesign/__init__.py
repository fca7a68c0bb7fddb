"""Location-privacy and metric-privacy mechanisms by optimization, certified in exact integers."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Public modules of the core.
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
    from difflib import get_close_matches

    from mechdesign.base.registry import capabilities
    from mechdesign.errors import UnknownNameError

    meant = {"problem": "md.DesignProblem", "metrics": "md.Euclidean", "mechanism": "md.solve", "area": "md.geo.Area"}
    known = {f"md.{short}": short for short in __all__}
    parts = [*_PARTS, *capabilities()]
    if "pictures" not in capabilities():
        parts.remove("plot")
    for part in parts:
        known |= {f"md.{part}.{short}": short for short in import_module(f"{__name__}.{part}").__all__}
    plain = {full: short.lower() for full, short in known.items()}
    suggestions = [meant[name.lower()]] if name.lower() in meant else []
    suggestions += [full for full, short in plain.items() if short == name.lower() and full not in suggestions]
    similar = get_close_matches(name.lower(), plain.values(), n=3, cutoff=0.75)
    suggestions += [full for full, short in plain.items() if short in similar and full not in suggestions]
    suggestions += [
        full for full, short in plain.items() if name.lower() in short.split("_") and full not in suggestions
    ]
    remedy = (
        f"is it {', '.join(suggestions[:4])}?"
        if suggestions
        else "dir(mechdesign) lists the names, and those of md.geo its own"
    )
    return UnknownNameError(f"module {__name__!r} has no attribute {name!r}", field=name, remedy=remedy)
