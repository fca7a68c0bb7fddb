"""Location-privacy and metric-privacy mechanisms by optimization, certified in exact integers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
