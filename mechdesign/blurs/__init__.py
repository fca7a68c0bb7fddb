"""Blurs of positions, audited from outside: functions, commands, and rules by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
