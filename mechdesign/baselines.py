"""Closed-form mechanisms to compare a design with: each takes a problem and returns a certified mechanism.

BASELINES is the table of those that `compare` and `sweep` run: BASELINES["mine"] = f adds one; RIVALS that of the
mechanisms of the literature on estimating distributions, which `compare` runs with rivals=True. `from_table` makes a
mechanism of probabilities (n, m), at the smallest scale of the problem's metric that they satisfy.
"""

from mechdesign.closed_forms.mechanisms.baselines import BASELINES, RIVALS
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism as from_table
from mechdesign.closed_forms.mechanisms.constant import mechanism as constant
from mechdesign.closed_forms.mechanisms.exponential import mechanism as exponential
from mechdesign.closed_forms.mechanisms.geometric import mechanism as geometric
from mechdesign.closed_forms.mechanisms.planar_laplace import mechanism as planar_laplace
from mechdesign.closed_forms.mechanisms.randomized_response import mechanism as randomized_response
from mechdesign.closed_forms.mechanisms.spline_laplace import mechanism as spline_laplace
from mechdesign.verification.audit import repaired

__all__ = [
    "BASELINES",
    "RIVALS",
    "constant",
    "exponential",
    "from_table",
    "geometric",
    "planar_laplace",
    "randomized_response",
    "repaired",
    "spline_laplace",
]
