"""Shares of the posterior in one disc after one report of a rounding rule of devices, or of planar Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.special import ndtr

from mechdesign.base.arrays import Floats, Matrix, Vector
from mechdesign.base.formatting import length
from mechdesign.base.log import log_note
from mechdesign.base.validation import check_positive
from mechdesign.blurs.rounding import named_rounding
from mechdesign.errors import InputError
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.geo.area import Area
from mechdesign.geo.people import read_people
from mechdesign.posteriors.audit import DiscAudit
from mechdesign.posteriors.disc_sums import DiscKind
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.tables import Note

FINE, MARGIN = 125.0, 5_000.0  # m: side of a cell, and how far people are counted beyond the window
LAPLACE = "planar-laplace"
_TAILS = 6.0  # deviations: positions further from a cell are omitted
_RARE = 1e-6  # of the chance of the likeliest report: rarer ones are not counted
_FAR, _NEAR = 25.0, 2.5  # nats: where noise is cut, and how far from a report of noise discs are centred


# The prior is people on a lattice of 125 m. Its cells are also the positions, the centres of discs, and the reports of
# noise. Reports of a rule are the cells of its grid inside the window.
# Three things are omitted. Positions beyond 6 deviations from a cell make less than 10^-8 of its reports. Noise is cut
# at 25 / epsilon, or at the margin. Discs are centred up to 2.5 / epsilon plus a radius from a report of noise.
def audit_rule_discs(
    name: str,
    path: Path,
    window: Domain | Sequence[float],
    radii: Sequence[float],
    *,
    epsilon: float | None = None,
    columns: Columns = None,
    crs: str | None = None,
    on_note: Note = log_note,
) -> dict[str, Any]:
    """Audit a rule, or planar-laplace at epsilon (nats per m), over a window of cells or of degrees; radii in m."""
    if name == LAPLACE and epsilon is None:
        raise InputError(f"{LAPLACE} requires an epsilon", field="epsilon", value="none")
    if name != LAPLACE and epsilon is not None:
        raise InputError(f"applies only to {LAPLACE}", field="epsilon", value=epsilon, remedy="leave it out")
    rule = None if name == LAPLACE else named_rounding(name)
    domain = window if isinstance(window, Domain) else Area.box(*window).grid(cell=FINE, unit="m")
    if domain.shape is None or domain.cell != (FINE, FINE) or domain.unit != "m":
        raise InputError(f"must be a grid of cells of {FINE:g} m", field="domain", value=domain.cell)
    people = read_people(path, domain, margin=MARGIN, columns=columns, crs=crs, on_note=on_note)
    persons = np.asarray(people.density.values) * FINE**2
    edge = math.ceil(MARGIN / FINE)
    inner = persons[edge:-edge, edge:-edge]
    discs = []
    for radius in radii:
        check_positive(radius, "disc")
        before = float(cell_sums(inner, disc_kernel(radius)).max() / inner.sum())
        about = f"about the centre of a cell of {FINE:g} m"
        if rule is not None:
            chance, share = grid_shares(persons, domain.shape, rule.width, rule.deviation, radius)
        else:
            assert epsilon is not None
            chance, share = laplace_shares(persons, epsilon, radius)
            about += f" within {length(_NEAR / epsilon + radius, 'm', up=False)} of the report"
        kind = DiscKind(radius=radius, unit="m", centres="places", about=about)
        discs.append(DiscAudit.of(kind, before=before, chance=chance, share=share).as_dict())
    mean = mean_radius(epsilon or 1.0) if rule is None else rule.mean_error()
    return {"rule": name, "people": float(inner.sum()), "mean_distance": mean, "discs": discs}


def grid_shares(
    persons: Matrix, window: tuple[int, ...], grid: float, deviation: float, radius: float
) -> tuple[Vector, Vector]:
    """For the reports of a square grid within the window: the people, and the largest share in one disc."""
    # Axes are independent: P(y|u) is a product of the chances of a row and of a column.
    axes = []
    for cells, window_cells in zip(persons.shape, window, strict=True):
        positions = (np.arange(cells) - cells / 2 + 0.5) * FINE
        starts = np.arange(math.floor(window_cells * FINE / grid)) * grid - window_cells * FINE / 2
        ranges = []
        for low, high in zip(starts, starts + grid, strict=True):
            possible = np.flatnonzero((positions > low - _TAILS * deviation) & (positions < high + _TAILS * deviation))
            offsets = positions[possible]
            chance = ndtr((high - offsets) / deviation) - ndtr((low - offsets) / deviation) if deviation else 1.0
            ranges.append((slice(possible[0], possible[-1] + 1), np.broadcast_to(chance, possible.shape)))
        axes.append(ranges)
    disc, reports = disc_kernel(radius), [(0.0, 0.0)]
    for rows, of_row in axes[0]:
        for columns, of_column in axes[1]:
            joint = persons[rows, columns] * np.outer(of_row, of_column)
            if joint.sum() > 0:
                reports.append((joint.sum(), cell_sums(joint, disc).max() / joint.sum()))
    chances, shares = np.array(reports).T
    return chances, shares


def laplace_shares(persons: Matrix, epsilon: float, radius: float) -> tuple[Vector, Vector]:
    """`grid_shares` for planar Laplace noise reported at the cells of the window; epsilon in nats per m."""
    x, y = _steps_within(min(MARGIN, _FAR / epsilon))
    decay = np.exp(-epsilon * np.hypot(x, y))
    best = np.zeros(persons.shape)
    reach = _NEAR / epsilon + radius
    line = np.arange(-(reach // FINE), reach // FINE + 1) * FINE
    # Over all centres of discs near a report: the sum over the disc of prior times density, for all reports at once.
    for a, b in ((a, b) for a in line for b in line if math.hypot(a, b) <= reach):
        inside = decay * (np.hypot(x - a, y - b) <= radius)
        if inside.any():
            best = np.maximum(best, cell_sums(persons, inside))
    edge = math.ceil(MARGIN / FINE)
    chance = cell_sums(persons, decay)[edge:-edge, edge:-edge].ravel()
    highest = best[edge:-edge, edge:-edge].ravel()
    # Errors of the transforms are relative to the largest sum: shares of very rare reports would be rounding noise.
    counted = chance > _RARE * chance.max()
    return chance[counted], highest[counted] / chance[counted]


def _steps_within(reach: float) -> Floats:
    cells = math.floor(reach / FINE)
    return np.mgrid[-cells : cells + 1, -cells : cells + 1] * FINE


def disc_kernel(radius: float) -> Matrix:
    """1 for the cells of the lattice within a radius of the middle one, and 0 for others."""
    return np.asarray(np.hypot(*_steps_within(radius)) <= radius, float)


def cell_sums(values: Matrix, kernel: Matrix) -> Matrix:
    """The sum over v of values(c + v) kernel(v) for every cell c, the kernel (2 h + 1, 2 h + 1) about 0."""
    half = kernel.shape[0] // 2
    size = [next_fast_len(n + kernel.shape[0], real=True) for n in values.shape]
    # The conjugate turns the convolution into a correlation: sums ahead of c, not behind it. The padding by the size of
    # the kernel keeps values of one border out of sums at the other.
    full = irfft2(rfft2(values, size) * np.conj(rfft2(kernel, size)), size)
    return np.asarray(np.roll(full, (half, half), (0, 1))[: values.shape[0], : values.shape[1]])
