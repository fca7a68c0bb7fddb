"""Limits on posteriors: after every report no disc contains more than a share of the probability."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
