"""What is asked: one constrained program a file, stated. Nothing here solves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
