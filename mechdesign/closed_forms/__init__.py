"""What theory already knows: one mechanism a file, each with `mechanism(problem, ...)`, and the laws of their noise.

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
    "randomized_response",
    "release",
    "tuples",
]
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=_FORMS)
