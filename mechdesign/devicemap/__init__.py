"""Device maps: factored mechanisms of grids in small files, and reports drawn from them on devices."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
