"""The tables of baselines and rivals: what `compare` and `sweep` set beside a design, and pictures draw.

Rivals are the mechanisms of the literature on estimating distributions; `compare` adds them where it is asked to,
and so it does with those of ANYWHERE, which are private between any two positions.

Add yours with BASELINES["mine"] = f, where f takes a DesignProblem and returns a certified mechanism, as
`closed_form_mechanism` makes one of a table; it raises UnsuitableError for problems that it is not for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import xarray as xr

from mechdesign.closed_forms.mechanisms import (
    constant,
    disk_area,
    exponential,
    geometric,
    hadamard_response,
    planar_laplace,
    randomized_response,
    spline_laplace,
    square_wave,
    subset_exponential,
    subset_selection,
    unary_encoding,
)
from mechdesign.setting.problems.problem import DesignProblem

BASELINES: dict[str, Callable[[DesignProblem], xr.Dataset]] = {
    "exponential": exponential.mechanism,
    "geometric_clamped": partial(geometric.mechanism, border="clamped"),
    "geometric_normalised": partial(geometric.mechanism, border="normalised"),
    "planar_laplace": planar_laplace.mechanism,
    "randomized_response": randomized_response.mechanism,
    "constant": constant.mechanism,
}

ANYWHERE: dict[str, Callable[[DesignProblem], xr.Dataset]] = {"spline_laplace": spline_laplace.mechanism}

RIVALS: dict[str, Callable[[DesignProblem], xr.Dataset]] = {
    "subset_selection": subset_selection.mechanism,
    "unary_encoding": unary_encoding.mechanism,
    "hadamard_response": hadamard_response.mechanism,
    "subset_exponential": subset_exponential.mechanism,
    "square_wave": square_wave.mechanism,
    "disk_area": disk_area.mechanism,
}
