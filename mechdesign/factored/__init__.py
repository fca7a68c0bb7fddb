"""Mechanisms of many places, kept as factors instead of a table: eikonal weights, and pools of columns."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
