"""Where and why Algorithm 1 (K w = 1, w >= 0) has no solution, as data: the curvature rule and the solved weights.

A Dataset over the secrets:

| variable | where | meaning |
|---|---|---|
| ring | grids | rings from the border of the domain, masked cells included; 0 at the border |
| level | metrics with one | eps(u), before the scale of the metric |
| excess | eikonal metric on a grid | of programs/curvature.py; in the plane Laplacian(log eps) - eps^2 |
| predicted | as excess | 1 where the excess of the cell itself is positive, else 0 |
| local_weight | as excess | w to first order in the cell size, negative where predicted |
| weight | n <= 5,000 | the signed solution of K w = 1 by one dense factorisation |
| negative | as weight | 1 where the weight is negative beyond rounding, else 0 |
| cause | as weight | of a negative weight: 1 boundary, 2 curvature, 3 unknown (negative_weights.py); else 0 |

Attributes: problem, parameters, domain, metric as in a mechanism; diagnosis, a sentence; cells_with_excess;
border_rings, the rings within one nat of the border; negative_weights, negative_by_boundary, negative_by_curvature.

The rule is first order in the cell size h and holds away from the border.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.linalg
import xarray as xr

from mechdesign.base.validation import validate_call
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.schema import COMMON_ATTRIBUTES, Schema, VariableSpec, coordinates
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.curvature import curvature_excess, has_curvature_rule, signed_weights
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.solvers.eikonal.negative_weights import CAUSES, Diagnosis, border_rings, diagnose, rings

DIAGNOSIS = Schema(
    name="mechdesign/diagnosis/2",
    own_variables={
        name: VariableSpec(dtype=dtype, dims=("secret",), optional=True)
        for dtype, names in {
            "int64": ("ring",),
            "float64": ("level", "excess", "local_weight", "weight"),
            "uint8": ("predicted", "negative", "cause"),
        }.items()
        for name in names
    },
    places=("secret",),
    attributes=COMMON_ATTRIBUTES,
    optional={
        "diagnosis": str, "border_rings": int, "cells_with_excess": int, "negative_weights": int,
        "negative_by_boundary": int, "negative_by_curvature": int,
    },
)  # fmt: skip
DENSE = 5000  # secrets up to which K is factorised: 200 MB twice, some seconds


@validate_call
def diagnosis(problem: DesignProblem) -> xr.Dataset:
    """The negative weights of the eikonal weight system of a problem, solved and as the curvature rule predicts them.

    The rule needs an eikonal metric on a grid, and O(n) time; up to 5,000 secrets the system is solved in O(n^3).

    Parameters
    ----------
    problem : DesignProblem
        A problem whose reports are its secrets.

    Returns
    -------
    xarray.Dataset, which `mechdesign.solvers.eikonal.diagnosis` describes

    Examples
    --------
    >>> result = md.diagnosis(md.load_problem("line", cells=4))
    >>> bool((result["weight"] > 0).all())
    True
    """
    domain, metric = problem.domain, problem.metric
    program = EikonalWeights(problem=problem)
    if not has_curvature_rule(metric, domain) and domain.size > DENSE:
        message = f"needs an eikonal metric on a grid for more than {DENSE} secrets: use fewer, or such a metric"
        raise UnsuitableError(message, field="metric", value=f"{metric.kind} metric, {domain.size} {domain.kind}")
    variables: dict[str, Any] = {}
    attrs: dict[str, str | int] = {
        "schema": DIAGNOSIS.name,
        "problem": problem.name,
        "parameters": json.dumps({"problem_parameters": problem.storable_parameters}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(metric.describe(), sort_keys=True),
        "versions": versions(),
    }
    if domain.kind == "grid":
        variables["ring"] = ("secret", rings(domain), {"units": "1"})
    level, outer = metric.level_at(domain), border_rings(problem)
    if level is not None:
        variables["level"] = ("secret", level, {"units": f"nats per {domain.unit}"})
    if outer is not None:
        attrs["border_rings"] = outer
    if has_curvature_rule(metric, domain):
        # Second differences across a kink of eps grow as 1 / h: a bilinear raster has a positive excess at convex kinks
        # only, in strips one or two cells wide, for small h.
        excess = curvature_excess(domain, metric)
        unit = "1" if domain.unit == "1" else f"{domain.unit}^-2"
        variables["excess"] = ("secret", excess, {"units": unit})
        variables["predicted"] = ("secret", (excess > 0).astype(np.uint8))
        variables["local_weight"] = ("secret", signed_weights(domain, metric), {"units": "1"})
        attrs["cells_with_excess"] = int((excess > 0).sum())
        attrs["diagnosis"] = (
            f"the curvature rule predicts {attrs['cells_with_excess']} negative of {domain.size} weights"
        )
    if domain.size <= DENSE:
        # By LU, not Cholesky: the kernel of fast marching is not symmetric.
        factors = scipy.linalg.lu_factor(program.kernel())
        solution = diagnose(problem, scipy.linalg.lu_solve(factors, np.ones(domain.size)))
        variables |= _weight_variables(solution)
        attrs |= solution.as_parameters()
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain), attrs=attrs))


def _weight_variables(solution: Diagnosis) -> dict[str, Any]:
    cause = np.zeros(len(solution.weights), np.uint8)
    cause[solution.cells] = [1 + CAUSES.index(word) for word in solution.cause]
    meaning = "0 not negative, " + ", ".join(f"{k} {word}" for k, word in enumerate(CAUSES, 1))
    return {
        "weight": ("secret", solution.weights, {"units": "1"}),
        "negative": ("secret", (cause > 0).astype(np.uint8)),
        "cause": ("secret", cause, {"meaning": meaning}),
    }
