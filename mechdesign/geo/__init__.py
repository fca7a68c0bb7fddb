"""Places on Earth: areas, planes, streets, and the meaning of an epsilon within a radius."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
