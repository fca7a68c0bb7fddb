"""The registry of baselines, which `compare` and `sweep` set next to a design, and pictures draw."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import xarray as xr

from mechdesign.base.registry import Registry
from mechdesign.closed_forms.constant import constant_mechanism
from mechdesign.closed_forms.exponential import exponential_mechanism
from mechdesign.closed_forms.geometric import geometric_mechanism
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.closed_forms.randomized_response import randomized_response_mechanism
from mechdesign.problem.problem import DesignProblem

Baseline = Callable[[DesignProblem], xr.Dataset]
# Add yours with BASELINES["mine"] = f, where f takes a DesignProblem and returns a certified mechanism. It raises
# UnsuitableError for unsupported problems. Capabilities fill ANYWHERE (private between any two positions) and
# FREQUENCY_ORACLES (estimation of distributions), which `compare` adds on request.
BASELINES: Registry[Baseline] = Registry(
    "baselines",
    {
        "exponential": exponential_mechanism,
        "geometric_clamped": partial(geometric_mechanism, border="clamped"),
        "geometric_normalised": partial(geometric_mechanism, border="normalised"),
        "planar_laplace": planar_laplace_mechanism,
        "randomized_response": randomized_response_mechanism,
        "constant": constant_mechanism,
    },
)
ANYWHERE: Registry[Baseline] = Registry("baselines between positions")
FREQUENCY_ORACLES: Registry[Baseline] = Registry("frequency oracles")
