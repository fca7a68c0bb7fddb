"""SolveResult, Stop, Status, Targets and Progress: the result of a solver, why it ended, its targets, and its state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from mechdesign.base.arrays import AnyArray, MaskMatrix, Masses, Vector
from mechdesign.base.formatting import percent
from mechdesign.closed_forms.best import ClosedForm
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.problem.problem import DesignProblem


class Stop(StrEnum):
    """Why a search ended; its value is the word in files and JSON."""

    NONE = ""  # nothing was searched
    GAP = "gap"  # loss and bound are as near as asked
    TIME = "time"
    INTERRUPT = "interrupt"  # Ctrl-C
    PRECISION = "precision"  # the method resolves no more
    COLUMNS = "columns"  # the cheapest weights of columns
    SEARCH = "search"  # no further ray gains enough
    KAPPA = "kappa"  # weights keep the claim to 2e-5
    ROUNDS = "rounds"  # all rounds are done

    @property
    def is_early(self) -> bool:
        return self in (Stop.TIME, Stop.INTERRUPT)


class Status(Enum):
    """How a linear program ended."""

    OPTIMAL = auto()
    INFEASIBLE = auto()
    TIME_LIMIT = auto()
    OTHER = auto()  # a point of lower accuracy, or none


Report = Callable[..., None]  # of a method, by name the further fields of `Progress`


def _resident() -> float:
    return float(psutil.Process().memory_info().rss / 2**20)


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """The state of a search, or of a pass over rows: the argument of `on_progress`.

    Attributes
    ----------
    method, seconds : str, float
        The method, or the stage of a pass; seconds so far.
    round, iteration : int
        From 0, and within it; None when the round is over.
    done, total, unit : int, int, str
        Finished and all items, and their name; total is None if unknown.
    loss, lower_bound, gap : float
        The best so far, in loss units, infinite before the first; (loss - lower_bound) / loss.
    gap_of : str
        The words for this gap: "gap" if it is that of the mechanism.
    variables, constraints : int
        Of the program being solved.
    kappa, memory_mb : float
        The largest log-ratio over claimed length, after a pass that computes it; resident memory of the process.

    Examples
    --------
    >>> str(md.extend.Progress(method="mine", seconds=2.0, loss=1.0, lower_bound=0.75, gap=0.25, memory_mb=80))
    'gap 25 %, mine, [0.75, 1], 80 MB'
    """

    method: str
    seconds: float
    round: int | None = None
    iteration: int | None = None
    done: int = 0
    total: int | None = None
    unit: str = "rows"
    loss: float = math.inf
    lower_bound: float = -math.inf
    gap: float = math.inf
    gap_of: str = "gap"
    variables: int = 0
    constraints: int = 0
    kappa: float | None = None
    memory_mb: float = field(default_factory=_resident)

    @property
    def brief(self) -> str:
        if self.total is not None:
            return f"{self.method}, {self.done:,} of {self.total:,} {self.unit}"
        if not math.isfinite(self.gap):
            return f"no table yet, {self.method}"
        # Before a first bound the gap is 1, and above it where a method has passed bounds below 0.
        return (
            f"{self.gap_of} {percent(self.gap)}, {self.method}"
            if self.gap < 1
            else f"no lower bound yet, {self.method}"
        )

    def __str__(self) -> str:
        words = [self.brief]
        if math.isfinite(self.loss):
            words.append(f"[{self.lower_bound:.7g}, {self.loss:.7g}]")
        if self.round is not None:
            words.append(f"round {self.round + 1}")
        if self.iteration is not None:
            words.append(f"iteration {self.iteration}")
        if self.variables:
            words.append(f"{self.variables} variables, {self.constraints} constraints")
        if self.kappa is not None:
            words.append(f"kappa {self.kappa:.6f}")
        return ", ".join([*words, f"{self.memory_mb:.0f} MB"])


OnProgress = Callable[[Progress], None] | None


def reporter(on_progress: OnProgress) -> Report:
    """A function that reports a `Progress`, by method and further fields, with the seconds since now."""
    started = time.monotonic()

    def send(method: str, **state: Any) -> None:
        if on_progress is not None:
            on_progress(Progress(method=method, seconds=time.monotonic() - started, **state))

    return send


def with_gap_name(on_progress: OnProgress, gap_of: str) -> OnProgress:
    """`on_progress` for an inner search, whose gap is not that of the mechanism."""
    return None if on_progress is None else lambda state: on_progress(replace(state, gap_of=gap_of))


def silent(method: str, **state: Any) -> None:
    """Report nothing."""


def counter(report: Report, method: str, total: int) -> Callable[[int], None]:
    """A function that reports the finished rows, or reports, of a pass."""
    return lambda done: report(method, done=done, total=total)


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """The targets of `solve` for the solver of a program.

    Attributes
    ----------
    gap, time_limit : float
        Target of (objective - lower_bound) / objective; seconds.
    method : str
        One of those of the program's `ProgramSpec`.
    on_progress : callable
    bound : bool
        Whether to compute a lower bound with the table; None for the program's default.
    options : object
        The options class of the program's solver, such as `md.factored.FactoredOptions`.

    Examples
    --------
    >>> md.extend.Targets(gap=1e-3, time_limit=60).method
    'auto'
    """

    gap: float
    time_limit: float = math.inf
    method: str = "auto"
    on_progress: OnProgress = None
    bound: bool | None = None
    options: object = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SolveResult:
    """The result of a solver: an integer table, its proved bound and its origin.

    Attributes
    ----------
    mass : (n, m) uint64 array
        Certified for `scale` times the metric of the problem.
    loss : float
        Its expected loss, in loss units; nan if the solver does not compute it.
    dual, multipliers : (n,), (k,) arrays
        Multipliers of the row sums and of side rows, in loss units, which prove lower_bound; else empty and None.
    tree : (m, n) uint16 array
        parent - place modulo 2^16 in the tree of each report, which prove lower_bound from the multipliers; or None.
    row_variables : mapping
        Variables of the file, by name: the rows of claimed limits that the last multipliers belong to.
    lower_bound, lower_bound_of : float, str
        In loss units, minus infinity without one; the program that it bounds, if another.
    objective, objective_of : float, str
        The objective and its name, unless it is the expected loss.
    stopped : str
        Why the search ended; see `md.solve`.
    parameters, figures : mappings
        Further parameters and attributes for the file.
    problem : DesignProblem
        Only if it is not that of the program: other reports, or another level.
    claimed_epsilon : float
        Nominal, in nats per unit.
    cut : (m, n) bool array
        The final cuts: a start for the search at another scale of the metric.
    positions : object
        The claim between positions, if mass is certified for one.

    Examples
    --------
    >>> md.extend.SolveResult(mass=np.full((2, 2), 2**61, np.uint64), loss=0.5, stopped="gap").lower_bound
    -inf
    """

    mass: Masses
    loss: float = math.nan
    dual: Vector = field(default_factory=lambda: np.zeros(0))
    multipliers: Vector | None = None
    tree: NDArray[np.uint16] | None = None
    row_variables: Mapping[str, AnyArray] | None = None
    lower_bound: float = -math.inf
    lower_bound_of: str | None = None
    objective: float | None = None
    objective_of: str | None = None
    stopped: Stop = Stop.NONE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    problem: DesignProblem | None = None
    scale: float = 1.0
    claimed_epsilon: float | None = None
    figures: Mapping[str, str | float] = field(default_factory=dict)
    cut: MaskMatrix | None = None
    positions: PositionClaim | None = None


def with_floor(result: SolveResult, floor: ClosedForm | None) -> SolveResult:
    """The result, its table replaced by the closed form if that loses less."""
    if floor is None or result.loss <= floor.loss:
        return result
    # The bound and its multipliers stay: they do not depend on the table.
    parameters = {**result.parameters, "closed_form": floor.name}
    return replace(result, mass=floor.mass, loss=floor.loss, parameters=parameters)
