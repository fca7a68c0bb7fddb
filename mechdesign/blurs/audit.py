"""Audit of any blur from outside: findings, a lower bound of its nats, and the share of a disc after a report.

A blur is a function f(latitude, longitude, rng), f(latitude, longitude), or a command. Every figure is of draws: it
proves a defect, never its absence. A disc lies at the best shift from the report, which one half of the draws chooses.
Its share is how often the other half is in it, for positions spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mechdesign.base.arrays import Floats, Points, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Seed, seed_of
from mechdesign.base.validation import check_positive, check_whole, validate_call
from mechdesign.blurs.calls import Call, Command, call_of, displacements, shift
from mechdesign.blurs.findings import SPREAD, Draws, Finding, draw, find, find_restart, mean_of_reports
from mechdesign.blurs.nats import CONFIDENCE, Witness, border_pair, lower_bound, pairs_about, same_digits
from mechdesign.errors import InputError
from mechdesign.evaluation.radial_laplace import radius_cdf

DISC = 1850 * 0.3048  # m: the radius in laws about precise geolocation, 1,850 ft
PLACE = (41.9, 12.5)  # latitude and longitude
OPTIMUM = 1.511  # eps times mean error of the best table on a square whose side is 5.8 mean errors, see OPTIMUM_AT
OPTIMUM_AT = (11, 0.8)  # cells a side, and nats per cell: its loss is 1.8886 cells, and none is below 1.8875
_EXTENTS = (2e3, 8e3, 32e3, 128e3)  # m: half the side of the square of positions, the next if reports are further off
_CELLS = 4  # times the distance of reports of a fixed rule: positions fill several of its cells
_CENTRES = 400  # shifts of a disc that are tried


@dataclass(frozen=True, kw_only=True, eq=False)
class BlurAudit(FrozenRecord):
    """The audit of a blur; lengths in m.

    Attributes
    ----------
    name, latitude, longitude
        The blur, and the middle of the positions.
    findings
        Defects, the gravest first.
    within, nats, confidence, witness
        One report changes the odds of two positions `within` apart by a factor of at least e^nats. The witness has
        the pair and the event.
    mean_error
        Mean distance of reports from positions.
    averaged, averaged_error
        The mean of so many reports of one place is so far from it.
    disc, share, disc_shift
        A disc of this radius holds the true position with this probability. The report is this step to the north and
        to the east from its centre, the best of some 400.
    laplace_nats, laplace_share, optimum_nats
        Nats and share of planar Laplace noise with this mean error. The nats of the certified optimum with this mean
        error, on a square of 5.8 mean errors.
    is_coupled
        True if the seed decides the report, as coupled runs need.
    displacements, reports
        Steps to the north and to the east from positions to reports (n, 2), and reports (n, 2) in degrees.

    Examples
    --------
    >>> audit = md.blurs.audit_blur(lambda lat, lon: (round(lat, 2), round(lon, 2)), draws=500)
    >>> audit.witness.hits, audit.share > 0.8
    ((500, 0), True)
    """

    name: str
    latitude: float
    longitude: float
    findings: Sequence[Finding]
    within: float
    nats: float
    confidence: float
    witness: Witness
    mean_error: float
    averaged: int
    averaged_error: float
    disc: float
    share: float
    disc_shift: Sequence[float]
    laplace_nats: float
    laplace_share: float
    optimum_nats: float
    is_coupled: bool
    displacements: Points
    reports: Floats

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, without draws."""
        shown = {name: value for name, value in vars(self).items() if name not in ("displacements", "reports")}
        found = [asdict(finding) for finding in self.findings]
        return shown | {"findings": found, "witness": self.witness.as_dict()}


@validate_call
def audit_blur(
    blur: Callable[..., Any] | Command,
    *,
    at: Sequence[float] = PLACE,
    within: float = 200.0,
    disc: float = DISC,
    draws: int = 10_000,
    rng: Seed = 0,
    restarted: Callable[..., Any] | None = None,
) -> BlurAudit:
    """Audit a blur: defects, a lower bound of its nats, and the share of a disc. Nothing here proves privacy.

    Parameters
    ----------
    blur : callable or Command
        f(latitude, longitude, rng) with a generator of NumPy, or f(latitude, longitude), which may draw from `random`
        or `np.random`: both are seeded for each call. It returns latitude and longitude in degrees, with an accuracy in
        m or without, or None for no report.
    at : (latitude, longitude)
        The middle of the positions, in degrees.
    within, disc : float
        The distance of two positions, and the radius of a disc, in m.
    draws, rng : int, int or numpy.random.Generator
        Reports from each of the two positions that count for the bound; the seed or generator of all draws.
    restarted : callable
        The function of its module loaded again, as if the program restarted: finds a generator with a constant seed.

    Returns
    -------
    BlurAudit

    Examples
    --------
    >>> def jitter(lat, lon, rng):
    ...     turn = rng.uniform(0, 2 * np.pi)
    ...     return lat + 0.005 * np.sin(turn), lon + 0.005 * np.cos(turn) / np.cos(np.radians(lat))
    >>> audit = md.blurs.audit_blur(jitter, draws=500)
    >>> [finding.kind for finding in audit.findings]
    ['fixed radius']
    """
    if len(at) != 2 or not (abs(float(at[0])) <= 85 and abs(float(at[1])) <= 180):
        raise InputError("must be a latitude within 85 and a longitude within 180 degrees", field="at", value=tuple(at))
    check_positive(within, "within")
    check_positive(disc, "disc")
    check_whole(draws, "draws")
    rng = np.random.default_rng(seed_of(rng))
    call, place = call_of(blur), np.array([[float(at[0]), float(at[1])]])
    found = [] if restarted is None else find_restart(call, call_of(restarted), place, rng)
    for extent in _EXTENTS:
        positions = shift(np.repeat(place, SPREAD, axis=0), rng.uniform(-extent, extent, (SPREAD, 2)))
        drawn = draw(call, positions, place, rng)
        far = float(np.quantile(drawn.radii, 0.99)) if len(drawn.steps) else 0.0
        if len(drawn.steps) and extent >= (_CELLS * far if drawn.is_fixed else far):
            break
    if not len(drawn.steps):
        raise InputError("reports nothing about the place", field="at", value=tuple(at), remedy="choose another")
    witness = lower_bound(call, _pairs(call, drawn, within, rng), rng, draws)
    mean, (count, error) = float(drawn.radii.mean()), mean_of_reports(drawn)
    epsilon = 2 / mean if mean else math.inf
    share, step = disc_share(drawn.steps, disc)
    return BlurAudit(
        name=getattr(blur, "__name__", None) or (blur.words[0] if isinstance(blur, Command) else type(blur).__name__),
        latitude=float(at[0]), longitude=float(at[1]), findings=(*found, *find(drawn)), within=float(within),
        nats=witness.nats, confidence=CONFIDENCE, witness=witness, mean_error=mean, averaged=count,
        averaged_error=error, disc=float(disc), share=share, disc_shift=step, laplace_nats=epsilon * within,
        laplace_share=float(radius_cdf(disc, epsilon)) if mean else 1.0,
        optimum_nats=OPTIMUM / 2 * epsilon * within, is_coupled=drawn.is_repeatable or drawn.is_fixed,
        displacements=drawn.steps, reports=drawn.reports[:, :2],
    )  # fmt: skip


def _pairs(call: Call, drawn: Draws, within: float, rng: np.random.Generator) -> list[tuple[Vector, Vector]]:
    """Pairs about the place, and one across a border where reports repeat."""
    pairs = pairs_about(drawn.place, within)
    if drawn.is_fixed or drawn.is_discrete:
        # Of the positions whose report is another one, that nearest to its own is hardly at a border itself.
        far = np.hypot(*displacements(drawn.positions, drawn.reports).T)
        far[same_digits(drawn.reports) == same_digits(drawn.still[:1])] = np.inf
        other = int(np.nanargmin(np.nan_to_num(far, nan=np.inf)))
        if np.isfinite(far[other]):
            pairs.append(border_pair(call, drawn.place[0], drawn.positions[other], within, rng))
    return pairs


def disc_share(steps: Points, disc: float) -> tuple[float, tuple[float, float]]:
    """The share of steps (n, 2) within a disc (m) about the best shift, chosen on every other one; and the shift."""
    chosen, counted = steps[::2], steps[1::2]
    centres = np.vstack([np.zeros((1, 2)), chosen.mean(axis=0), chosen[:_CENTRES]])
    inside = [(np.hypot(*(chosen - centre).T) <= disc).sum() for centre in centres]
    best = centres[int(np.argmax(inside))]
    return float((np.hypot(*(counted - best).T) <= disc).mean()), (float(best[0]), float(best[1]))


@validate_call
def assert_private(
    blur: Callable[..., Any] | Command,
    *,
    within: float,
    factor: float,
    at: Sequence[float] = PLACE,
    draws: int = 10_000,
    rng: Seed = 0,
) -> BlurAudit:
    """Fail if an audit finds a defect, or shows that one report changes odds by more than a factor. For tests.

    Parameters
    ----------
    blur, at, draws, rng
        As for `audit_blur`.
    within, factor : float
        No report may change the odds of two positions at most `within` m apart by more than the factor.

    Returns
    -------
    BlurAudit
        Of a blur that passes. Passing is evidence, not a proof: certify a table for that.

    Raises
    ------
    AssertionError
        With the defects, or with the witness.

    Examples
    --------
    >>> def laplace(lat, lon, rng):
    ...     turn, radius = rng.uniform(0, 2 * np.pi), rng.gamma(2, 600)
    ...     north, east = radius * np.cos(turn) / 111_000, radius * np.sin(turn) / 111_000
    ...     return lat + north, lon + east / np.cos(np.radians(lat))
    >>> md.blurs.assert_private(laplace, within=200, factor=2, draws=500).findings
    ()
    """
    if not float(factor) > 1:
        raise InputError("must be above 1", field="factor", value=factor)
    audit = audit_blur(blur, at=at, within=within, draws=draws, rng=rng)
    failures = [finding.sentence for finding in audit.findings]
    if audit.nats > math.log(float(factor)):
        failures.append(
            f"One report changes odds by a factor of at least {math.exp(audit.nats):.3g}, at {CONFIDENCE:.0%}, not "
            f"{factor:g}: {audit.witness.as_dict()}"
        )
    if failures:
        raise AssertionError(" ".join(failures))
    return audit
