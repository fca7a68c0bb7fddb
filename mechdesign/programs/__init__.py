"""Constrained programs, stated; nothing here solves."""

from importlib import import_module
from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_ELSEWHERE = {"PosteriorCap": "mechdesign.posteriors.limits", "PosteriorLift": "mechdesign.posteriors.limits"}
__all__ += _ELSEWHERE


def __getattr__(name: str) -> Any:
    return getattr(import_module(_ELSEWHERE[name]), name) if name in _ELSEWHERE else _attached(name)
