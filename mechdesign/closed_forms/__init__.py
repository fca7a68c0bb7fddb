"""What theory already knows: one mechanism a file, each with `mechanism(problem, ...)`; queries, their smooth
sensitivity, and the laws of noise for them.

A closed form becomes integers unrepaired; its file claims the smallest multiple of the problem's metric that holds.
"""

import lazy_loader

_FORMS = [
    "constant",
    "exponential",
    "geometric",
    "noise",
    "noise_a_priori",
    "planar_laplace",
    "queries",
    "randomized_response",
    "release",
    "smooth_sensitivity",
]
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=_FORMS)
