"""Discs after one report of a rule of devices, or of planar Laplace noise; the prior is people on a fine lattice.

Positions and centres of discs are the cells of a lattice of 125 m. Reports of a rule are the cells of its grid, and
positions beyond 6 deviations from a cell, below 10^-8 of its reports, are left out. Reports of noise are the cells of
the lattice. The noise is cut at 25 / epsilon, or at the margin. Discs are searched up to 2.5 / epsilon plus a radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.special import ndtr

from mechdesign.base.formatting import length
from mechdesign.base.validation import check_positive, validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.geo.area import Area
from mechdesign.geo.people import read_people
from mechdesign.geo.rules import RULES, named_rule
from mechdesign.posteriors.audit import DiscAudit, RuleDiscAuditor
from mechdesign.posteriors.disc_sums import DiscKind
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.tables import Note, silent

FINE, MARGIN = 125.0, 5_000.0  # m: side of a cell, and how far people are counted beyond the window
LAPLACE = "planar-laplace"
_TAILS = 6.0  # deviations
_SELDOM = 1e-6  # of the likeliest report: below, a report is not counted
Table = NDArray[np.float64]


@validate_call
def audit_rule_discs(
    name: str,
    path: str | Path,
    domain: Domain,
    radii: Sequence[float],
    *,
    epsilon: float | None = None,
    columns: Columns = None,
    crs: str | None = None,
    on_note: Note = silent,
) -> dict[str, Any]:
    """Audit a rule, or planar-laplace at epsilon (nats per m), over cells of 125 m; radii in m."""
    if (name == LAPLACE) != (epsilon is not None):
        raise InputError(f"belongs to {LAPLACE} alone, which needs it", field="epsilon", value=epsilon)
    if name not in RULES and name != LAPLACE:
        named_rule(name)
    if domain.shape is None or domain.cell != (FINE, FINE) or domain.unit != "m":
        raise InputError(f"must be a grid of cells of {FINE:g} m", field="domain", value=domain.cell)
    persons = lattice_people(path, domain, columns=columns, crs=crs, on_note=on_note)
    edge = math.ceil(MARGIN / FINE)
    inner = persons[edge:-edge, edge:-edge]
    discs = []
    for radius in radii:
        check_positive(radius, "disc")
        before = float(_sums(inner, _disc(radius)).max() / inner.sum())
        if epsilon is None:
            rule = named_rule(name)
            chance, share = grid_shares(persons, domain.shape, rule.grid, rule.deviation, radius)
            about = f"about the centre of a cell of {FINE:g} m"
        else:
            chance, share = laplace_shares(persons, epsilon, radius)
            near = length(_reach(epsilon, radius), "m", up=False)
            about = f"about the centre of a cell of {FINE:g} m within {near} of the report"
        found = DiscAudit.of(
            DiscKind(radius=radius, unit="m", centres="places", about=about), before=before, chance=chance, share=share
        )
        discs.append(found.as_dict())
    mean = named_rule(name).mean_distance() if epsilon is None else mean_radius(epsilon)
    return {"rule": name, "people": float(inner.sum()), "mean_distance": mean, "discs": discs}


class RuleDiscs(RuleDiscAuditor):
    """Audits of rules by discs, over the window of a box."""

    def audit(
        self,
        rule: str,
        people: Path,
        box: Sequence[float],
        radii: Sequence[float],
        *,
        epsilon: float | None,
        columns: dict[str, str] | None,
        crs: str | None,
        on_note: Note,
    ) -> dict[str, Any]:
        return audit_rule_discs(
            rule, people, window(box), radii, epsilon=epsilon, columns=columns, crs=crs, on_note=on_note
        )


RULE_DISCS = RuleDiscs()


def window(box: Sequence[float]) -> Domain:
    """The window between west, south, east and north in degrees, in cells of 125 m."""
    west, south, east, north = box
    return Area.box(west=west, south=south, east=east, north=north).grid(cell=FINE, unit="m")


def lattice_people(
    path: str | Path, domain: Domain, *, columns: Columns = None, crs: str | None = None, on_note: Note = silent
) -> Table:
    """The people of each cell of the whole lattice of a domain, with a margin of `MARGIN` on all sides."""
    people = read_people(path, domain, margin=MARGIN, columns=columns, crs=crs, on_note=on_note)
    return np.asarray(people.density.values) * FINE**2


def grid_shares(
    persons: Table, window: tuple[int, ...], grid: float, deviation: float, radius: float
) -> tuple[Table, Table]:
    """For the reports of a square grid within the window: the people, and the largest share in one disc."""
    parts = []
    for cells, whole in zip(persons.shape, window, strict=True):
        at = (np.arange(cells) - cells / 2 + 0.5) * FINE
        starts = np.arange(math.floor(whole * FINE / grid)) * grid - whole * FINE / 2
        axis = []
        for low, high in zip(starts, starts + grid, strict=True):
            near = np.flatnonzero((at > low - _TAILS * deviation) & (at < high + _TAILS * deviation))
            given = ndtr((high - at[near]) / deviation) - ndtr((low - at[near]) / deviation) if deviation else 1.0
            axis.append((slice(near[0], near[-1] + 1), np.broadcast_to(given, near.shape)))
        parts.append(axis)
    disc, found = _disc(radius), [(0.0, 0.0)]
    for rows, of_row in parts[0]:
        for columns, of_column in parts[1]:
            joint = persons[rows, columns] * np.outer(of_row, of_column)
            if joint.sum() > 0:
                found.append((joint.sum(), _sums(joint, disc).max() / joint.sum()))
    both = np.array(found)
    return both[:, 0], both[:, 1]


def laplace_shares(persons: Table, epsilon: float, radius: float) -> tuple[Table, Table]:
    """`grid_shares` for planar Laplace noise reported at the cells of the window; epsilon in nats per m."""
    x, y = _around(min(MARGIN, 25 / epsilon))
    decay = np.exp(-epsilon * np.hypot(x, y))
    best = np.zeros(persons.shape)
    reach = _reach(epsilon, radius)
    line = np.arange(-(reach // FINE), reach // FINE + 1) * FINE
    # Over all centres of discs near a report: the sum over the disc of prior times density, for all reports at once.
    for a, b in ((a, b) for a in line for b in line if math.hypot(a, b) <= reach):
        inside = decay * (np.hypot(x - a, y - b) <= radius)
        if inside.any():
            best = np.maximum(best, _sums(persons, inside))
    edge = math.ceil(MARGIN / FINE)
    chance = _sums(persons, decay)[edge:-edge, edge:-edge].ravel()
    highest = best[edge:-edge, edge:-edge].ravel()
    # Errors of the transforms are relative to the largest sum: shares of very rare reports would be rounding noise.
    counted = chance > _SELDOM * chance.max()
    return chance[counted], highest[counted] / chance[counted]


def _reach(epsilon: float, radius: float) -> float:
    return 2.5 / epsilon + radius


def _around(reach: float) -> NDArray[np.float64]:
    cells = math.floor(reach / FINE)
    return np.mgrid[-cells : cells + 1, -cells : cells + 1] * FINE


def _disc(radius: float) -> Table:
    return np.asarray(np.hypot(*_around(radius)) <= radius, float)


def _sums(values: Table, kernel: Table) -> Table:
    """The sum over v of values(c + v) kernel(v) for every cell c, the kernel (2 h + 1, 2 h + 1) about 0."""
    half = kernel.shape[0] // 2
    size = [next_fast_len(n + kernel.shape[0], real=True) for n in values.shape]
    full = irfft2(rfft2(values, size) * np.conj(rfft2(kernel, size)), size)
    return np.asarray(np.roll(full, (half, half), (0, 1))[: values.shape[0], : values.shape[1]])
