"""What is protected, and how a report is judged: domain, privacy level, metric, prior, loss, problem."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["losses", "priors"])
