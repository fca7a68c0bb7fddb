"""Reports along a trace: rules beside `Clock` and `Risk`, models of movement, files of session designs, smoothing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
