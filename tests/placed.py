"""Mechanisms that draw any position, made once: spline kernels on rectangles, with holes, under levels that vary, and
a design by levels of quarters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import xarray as xr

import mechdesign as md
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.figures import certified_scale
from mechdesign.positions.levels import corner_levels, quarter_levels
from mechdesign.positions.patches import Patches, patches
from mechdesign.positions.repair import repair

HOLES = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], bool)
PLANE = md.geo.Plane(latitude=41.9, longitude=179.995)
LAND = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0], [1, 1, 1, 1]], bool)  # of "land": where reports lie
SIDES = {"square": 0.5, "holes": 2.0, "levels": 1.0, "quarters": 1.0, "plane": 200.0, "land": 200.0}
_FAR = 40  # cells beyond the grid that a kernel reaches


def domain_of(name: str) -> md.Domain:
    """The places of a case."""
    if name in ("plane", "land"):
        return md.Domain.grid((4, 4), cell=200.0, unit="m", origin=-400.0, plane=PLANE)
    mask = HOLES if name == "holes" else None
    shape = (4, 4) if name == "quarters" else (5, 5)  # a design, of which the others are none
    return md.Domain.grid(shape, cell=SIDES[name], unit="km", origin=(-3.0, 1.25), mask=mask)


def metric_of(name: str) -> md.Metric:
    """Half a nat a cell; "levels", "quarters": to 1.5 times it, with node lines that are not those of cells."""
    domain = domain_of(name)
    if name not in ("levels", "quarters"):
        return md.Euclidean(epsilon=0.5 / SIDES[name], unit=domain.unit)
    coarse = md.Domain.grid((4, 3), cell=(1.3, 1.9), unit="km", origin=(-3.2, 1.0))
    return md.Eikonal(level=md.PrivacyLevel.from_values(coarse, 0.5 + 0.25 * np.random.default_rng(0).random((4, 3))))


def kernel_rows(domain: md.Domain, level: float) -> np.ndarray:
    """Rows (n, n) of e^{-level r}, smoothed at its tip, over a far larger grid; reports go to the nearest cell."""
    shape, side = domain.shape, domain.cell[0]
    reach = list(product(*(range(-_FAR, count + _FAR) for count in shape)))
    steps = np.array(reach, float)
    inside = domain.index.astype(float)
    nearest = ((steps[:, None, :] - inside[None]) ** 2).sum(axis=2).argmin(axis=1)
    rows = []
    for cell in inside:
        weight = np.exp(-level * side * np.sqrt(((steps - cell) ** 2).sum(axis=1) + 1 / 16))
        rows.append(np.bincount(nearest, weights=weight, minlength=domain.size))
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


@cache
def placed(name: str) -> xr.Dataset:
    """The mechanism of a case."""
    domain, metric = domain_of(name), metric_of(name)
    problem = md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance(), name=name
    )
    if name == "land":
        return _on_land(problem)
    if name == "quarters":
        return md.solve(md.positions.Positions(problem=problem), gap=0.01)
    share = 0.8 if name == "holes" else 0.94
    return kernel(problem, kernel_rows(domain, share * metric.smallest_level))


def kernel(problem: md.DesignProblem, rows: np.ndarray, quarters: bool = False) -> xr.Dataset:
    """Rows (n, m), divided by their sums and repaired until any position is protected, as a mechanism.

    quarters: its levels are those of quarters of cells.
    """
    levels = quarter_levels if quarters else corner_levels
    found = patches(problem.domain, problem.metric, levels(problem.domain, problem.metric))
    mass = repair(rows, found)
    return build_dataset(
        problem, mass, program="kernel", extras=Extras(scale=certified_scale(problem, mass), positions=found)
    )


def _on_land(problem: md.DesignProblem) -> xr.Dataset:
    """Any position of a rectangle is protected, and reports are its cells on land."""
    domain, land = problem.domain, LAND.ravel()
    reports = md.Domain.points_at(domain.points[land], unit=domain.unit)
    problem = replace(problem, reports=reports, loss=md.losses.Distance())
    rows = kernel_rows(domain, 0.8 * problem.metric.smallest_level)[:, land]
    return kernel(problem, rows)


def spline_weights(points: np.ndarray) -> np.ndarray:
    """The weights (..., 3) of the steps -1, 0, +1 at points (...), in 2^-16 of a cell from its centre."""
    t = np.asarray(points) / 2**16
    return np.stack([(0.5 - t) ** 2 / 2, 0.75 - t**2, (0.5 + t) ** 2 / 2], axis=-1)


def masses_at(mass: list[list[int]], found: Patches, cell: int, steps: list[int], grain: int) -> list[int]:
    """2^68 grain^4 P(y|x), integers, for every report y, at steps / grain sides from the centre of a cell."""
    first, second = (((grain - 2 * s) ** 2, 6 * grain**2 - 8 * s * s, (grain + 2 * s) ** 2) for s in steps)
    rows = [mass[row] for row in found.around[cell].tolist()]
    a, b, c, d, e, f, g, h, i = (x * y for x in first for y in second)
    return [
        a * p + b * q + c * r + d * s + e * t + f * u + g * v + h * w + i * x
        for p, q, r, s, t, u, v, w, x in zip(*rows, strict=True)
    ]
