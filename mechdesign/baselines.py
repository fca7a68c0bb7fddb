"""Closed-form mechanisms: each takes a problem and returns a certified mechanism.

BASELINES is the table of those that `compare` and `sweep` run; BASELINES["mine"] = f adds one. FREQUENCY_ORACLES has
those on estimating distributions. `from_table` makes a mechanism of probabilities (n, m), at the smallest scale of the
problem's metric that they satisfy.
"""

from mechdesign.closed_forms.build import closed_form_mechanism as from_table
from mechdesign.closed_forms.constant import constant_mechanism as constant
from mechdesign.closed_forms.exponential import exponential_mechanism as exponential
from mechdesign.closed_forms.geometric import geometric_mechanism as geometric
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism as planar_laplace
from mechdesign.closed_forms.randomized_response import randomized_response_mechanism as randomized_response
from mechdesign.closed_forms.table import BASELINES, FREQUENCY_ORACLES
from mechdesign.verification.audit import repair_table

__all__ = [
    "BASELINES",
    "FREQUENCY_ORACLES",
    "constant",
    "exponential",
    "from_table",
    "geometric",
    "planar_laplace",
    "randomized_response",
    "repair_table",
]
