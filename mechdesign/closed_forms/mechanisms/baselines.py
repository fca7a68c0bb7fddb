"""The table of baselines: what `compare` and `sweep` set beside a design, and pictures draw.

Add yours with BASELINES["mine"] = f, where f takes a DesignProblem and returns a certified mechanism, as
`closed_form_mechanism` makes one of a table; it raises UnsuitableError for problems that it is not for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import xarray as xr

from mechdesign.closed_forms.mechanisms import constant, exponential, geometric, planar_laplace, randomized_response
from mechdesign.setting.problems.problem import DesignProblem

BASELINES: dict[str, Callable[[DesignProblem], xr.Dataset]] = {
    "exponential": exponential.mechanism,
    "geometric_clamped": partial(geometric.mechanism, border="clamped"),
    "geometric_normalised": partial(geometric.mechanism, border="normalised"),
    "planar_laplace": planar_laplace.mechanism,
    "randomized_response": randomized_response.mechanism,
    "constant": constant.mechanism,
}
