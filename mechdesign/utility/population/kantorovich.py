r"""The Kantorovich (earth mover's) distance between distributions over places, with a certificate on both sides.

    K(p, q) = min over plans of sum plan(x, y) d(x, y) = max over 1-Lipschitz f of sum f(x) (p(x) - q(x))

Source: paper 001, section II, equations (1) and (3), and section V, which judges estimates by it. The programs stand in
`programs/transport.py`, the bounds and their rounding in `solvers/transport/certificate.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.programs.transport import excess
from mechdesign.setting.objective.priors import SUM_TOLERANCE
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.kernels.progress import Transporting
from mechdesign.solvers.transport.ground import Ground
from mechdesign.solvers.transport.transport import Watch, transport


@dataclass(frozen=True, kw_only=True, eq=False)
class Kantorovich(Shown):
    """A certified Kantorovich distance; all lengths in `unit`.

    value: what the plan costs, within [lower, upper]; lower <= K(p, q) <= upper, rounding included; gap, (upper -
    lower) / upper. Distances under about 2^-49 of the largest ground distance are not resolved: their gap is 1.
    potentials f (n,): a 1-Lipschitz function over all places, to rounding, with sum f (p - q) = lower up to the
    rounding that `lower` counts: the 1-Lipschitz statistic that p and q disagree on most.
    source, target (e,) place numbers and mass (e,): the plan moves p to q by sum mass d(source, target); what p and q
    share stays. method: "line" or "network".
    """

    value: float
    lower: float
    upper: float
    gap: float
    potentials: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    mass: NDArray[np.float64]
    unit: str
    method: str


@dataclass(frozen=True, kw_only=True, eq=False)
class KantorovichBatch(Shown):
    """Distances of k pairs, each (k,) and as in `Kantorovich`: value, lower, upper, gap; unit; method."""

    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    gap: NDArray[np.float64]
    unit: str
    method: str


@asked
def kantorovich(
    p: ArrayLike,
    q: ArrayLike,
    domain: Domain | ArrayLike,
    *,
    tolerance: float = 1e-9,
    on_progress: Callable[[Transporting], None] | None = None,
) -> Kantorovich:
    """K(p, q) for distributions p, q (n,) over the places of `domain`.

    domain: a Domain, with the Euclidean distance in its unit (of graph nodes: between their coordinates), or a table of
    ground distances (n, n), which is checked to be a metric. tolerance: the relative gap to reach; where the method
    stalls, the gap it has is returned. The method is "line" (closed form) on a line and "network" (network simplex with
    column generation) elsewhere. on_progress: told of every round and of the end.
    Cost: 30 x 30 cells take about 12 ms, 100 x 100 four seconds and 0.6 GB; a table takes O(n^3) to check.
    Raises: InputError for masses that are negative, not finite, of another length or do not sum to 1 within 1e-9 (they
    are divided by their sums), or a table that is no metric.
    """
    ground = Ground.of(domain)
    watch = None if on_progress is None else _watch(on_progress, 0, 1, time.perf_counter())
    return _distance(_masses(p, "p", ground), _masses(q, "q", ground), ground, tolerance, watch)


@asked
def kantorovich_batch(
    p: ArrayLike,
    q: ArrayLike,
    domain: Domain | ArrayLike,
    *,
    tolerance: float = 1e-9,
    on_progress: Callable[[Transporting], None] | None = None,
) -> KantorovichBatch:
    """K(p_i, q) for every row of p (k, n), against one q (n,) or row by row against q (k, n).

    The other arguments are those of `kantorovich`; a table of ground distances is checked once.
    Raises: InputError as `kantorovich`, naming the row, before anything is solved.
    """
    ground = Ground.of(domain)
    first, second = np.atleast_2d(np.asarray(p, float)), np.asarray(q, float)
    if second.ndim == 2 and len(second) != len(first):
        raise InputError(
            "must be one distribution, or as many as p", field="q", value=second.shape, remedy="pair the rows"
        )
    left = [_masses(row, f"p[{i}]", ground) for i, row in enumerate(first)]
    several = second.ndim == 2
    right = [_masses(row, f"q[{i}]" if several else "q", ground) for i, row in enumerate(np.atleast_2d(second))]
    started = time.perf_counter()
    found: list[Kantorovich] = []
    for i, row in enumerate(left):
        watch = None if on_progress is None else _watch(on_progress, i, len(left), started)
        found.append(_distance(row, right[i if several else 0], ground, tolerance, watch))
    return KantorovichBatch(
        value=np.array([one.value for one in found]),
        lower=np.array([one.lower for one in found]),
        upper=np.array([one.upper for one in found]),
        gap=np.array([one.gap for one in found]),
        unit=ground.unit,
        method="line" if ground.line else "network",
    )


def _distance(
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    ground: Ground,
    tolerance: float,
    watch: Watch | None,
) -> Kantorovich:
    if not 0 < tolerance < 1:
        raise InputError("must lie between 0 and 1", field="tolerance", value=tolerance, remedy="use 1e-9")
    found, used = transport(ground, excess(p - q), tolerance=tolerance, watch=watch)
    if watch is not None:
        watch(None, found.lower, found.upper, len(found.plan.mass))
    return Kantorovich(
        value=found.cost,
        lower=found.lower,
        upper=found.upper,
        gap=found.gap,
        potentials=found.potentials,
        source=found.plan.source,
        target=found.plan.target,
        mass=found.plan.mass,
        unit=ground.unit,
        method=used,
    )


def _masses(given: ArrayLike, field: str, ground: Ground) -> NDArray[np.float64]:
    """The distribution (n,), divided by its correctly rounded sum."""
    masses = np.asarray(given, float)
    if masses.shape != (ground.size,):
        raise InputError(
            f"must have shape ({ground.size},)", field=field, value=masses.shape, remedy="one mass per place"
        )
    if not np.isfinite(masses).all():
        raise InputError("must be finite", field=field, value="nan or inf", remedy="give a finite mass to every place")
    if (masses < 0).any():
        raise InputError("must not be negative", field=field, value=f"{masses.min():.6g}", remedy="give masses >= 0")
    total = math.fsum(masses)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            "must sum to 1", field=field, value=f"sum {total:.12g}", remedy="use priors.proportional to normalise"
        )
    return masses / total


def _watch(on_progress: Callable[[Transporting], None], done: int, total: int, started: float) -> Watch:
    def told(turn: int | None, lower: float, upper: float, columns: int) -> None:
        on_progress(
            Transporting(
                done=done + (turn is None),
                total=total,
                round=turn,
                lower=lower,
                upper=upper,
                columns=columns,
                seconds=time.perf_counter() - started,
            )
        )

    return told
