"""Mechanisms of many places: factored weights, pools of columns, compact maps, elastic levels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
