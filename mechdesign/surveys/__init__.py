"""Surveys: distributions estimated from reports, distances between them, matched mechanisms, and plans."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
