"""What reports say about everybody: estimates, distances between distributions, matched mechanisms, studies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
