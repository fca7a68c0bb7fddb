"""What a mechanism is worth: its loss, what reports say of a population, the error of releases. Nothing is printed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
