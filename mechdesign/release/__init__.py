"""Numbers released instead of places: queries, their smooth sensitivity, the laws of noise, the error of a mean."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
