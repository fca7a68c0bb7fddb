"""The eikonal mechanism without a table: weights and integer distances, certified in one last pass over the rows.

1. Weights to start from: the closed form of the local curvature on grids, the exact ones on a line
   (programs/curvature.py).
2. Rounds of weights and edge budgets, each one pass over the rows (rounds.py), with a frame of reports
   around grids of two and three axes where steps at the border are short.
3. Weights become integers. The step of the metric is multiplied by a factor in [0.49, 1], and the exact row sums of the
   scaled kernel either satisfy the certificate or say how much smaller the factor must be.
4. A lower bound of the loss of any mechanism with the claim, from local pricing (local_bound.py).

No pass holds more than a block of rows, on any number of cores or machines, and results do not depend on how many. A
run with a work folder goes on where it ended, to the bits of a run that did not end.

The factor of the step. Shorter steps shorten every distance, and with them the ratios between rows, in proportion; the
row sums, which spend the rest of an edge, change as well. A step breaks the claim by some kappa > 1, the largest
log-ratio over claimed length; the next one is that much shorter and more. The edges nearest to their claim are tried
alone before all rows are summed. At 0.49 of the step, which is 1/2 less the rounding, the certificate holds for any
weights (certificate.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.base.memory import require_bytes
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import DesignError, InputError, SolverError, UnsuitableError
from mechdesign.factored.certificate import Factors
from mechdesign.factored.cluster import workers
from mechdesign.factored.dataset import ROWS, ProvedBound, loss_data, make_factored, unsuited
from mechdesign.factored.integer_metric import tiled
from mechdesign.factored.local_bound import in_time, local_bound
from mechdesign.factored.rounds import (
    FARTHEST,
    MOVING,
    SETTLED,
    SETTLING,
    SHORT,
    SLACK,
    Shared,
    State,
    Units,
    advance,
    claim_of,
    pass_block,
    settles,
    whole_weights,
)
from mechdesign.factored.row_sums import LossData, RowBlock, join_words, rounded_words, row_block, sum_block, sum_rows
from mechdesign.factored.work_folder import (
    Arrays,
    Folder,
    OnDone,
    Work,
    Workers,
    run_key,
    threads,
    whole_pass,
    work_folder,
)
from mechdesign.mechanism.dataset import versions
from mechdesign.problem.lattice import Edges
from mechdesign.problem.metric import Metric
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.curvature import curvature_excess, line_weights, local_weights, ruled
from mechdesign.programs.eikonal import EikonalWeights, border_step, rings
from mechdesign.solvers.eikonal.row_sum_budget import left
from mechdesign.solvers.eikonal.weights import FRAME_CELLS, Framed, frame_width, framed
from mechdesign.solvers.result import Progress, Report, counter, reporter

ROUNDS = 24  # at most
BOUNDED = range(1_601, 50_001)  # secrets: by default smaller ones are tables, larger ones take over half an hour
GOOD = 1.0 + 2e-5  # kappa at which the rounds end early
FRAMELESS = 0.7  # nats of a step at the border from which constant levels have no negative weights
FINISHED = ("kappa", "rounds")  # why a run ends that has nothing left to do
_STATE = "state"  # its name in the work folder
_FEW = 128  # rows that an estimate of the time takes
_CERTIFICATES = 3.0  # passes over exact sums that certifying takes, about, with those of the edges that are tried alone
_BOUND = 0.9  # of the time limit, until which a bound is sought: blocks under way end, and the file is made
_SOON = 2.0  # seconds that rounds get in any case
_PER_PLACE, _PER_EDGE = 400, 200  # bytes of a design, at its peak
Pass = Callable[[LossData], Arrays]  # `row_block` of all rows
OVER_ROWS = ("row_sum", "loss")  # arrays of `row_block`
_LEAST_FACTOR = 0.49  # of the step, at which any weights certify
_SHRINK = 1e-6  # by which a factor falls more than kappa asks for
_MORE = 4e-3  # of an excess up to this, as much again: a shorter step changes the sums as well
_TRIED, _SHARE = 1024, 64  # edges that are tried alone: so many, or one of so many
_TRIALS = 12  # at most


def certified(
    problem: DesignProblem,
    factors: Factors,
    target: NDArray[np.int64],
    claim: Edges,
    expected: NDArray[np.float64],
    *,
    exact: Pass,
    report: Report,
) -> tuple[LossData, RowBlock, float]:
    """Integers that satisfy the certificate, their rows, and the factor of the step, in [0.49, 1].

    factors at the whole step; target (c,), the report of every column; claim, its edges; expected (n,), the row sums
    there up to a factor, about, or ones where nothing is known of them.
    Cost: one pass over the exact sums and losses of the rows, rarely two, and sums of up to 2,048 rows a few times.
    Raises: DesignError where half the distances break the claim, which they do for no weights.
    """
    size, sums = problem.domain.size, expected
    factor = 1 / max(1.0, float(factors.strain(claim, sums, SLACK).max()))
    while True:
        factor = _tried(factors, claim, sums, factor)
        scaled = _at(factors, factor)
        data = loss_data(problem, scaled, target)
        rows = RowBlock(**exact(data))
        breaches = scaled.breaches(problem.edges, join_words(rows.row_sum))
        sums = rounded_words(rows.row_sum)
        kappa = float(scaled.strain(claim, sums, SLACK).max())
        report(f"certificate, {breaches} breaches", done=size, total=size, kappa=kappa)
        if breaches == 0:
            return data, rows, scaled.step / factors.step
        if factor <= _LEAST_FACTOR:
            raise DesignError("half the distances break the claim", field="weight", value=scaled.step)
        factor = _shorter(factor, kappa)


def _tried(factors: Factors, claim: Edges, expected: NDArray[np.float64], factor: float) -> float:
    """A factor, at most this one, at which the edges that are the nearest to their claim keep it; expected row sums
    (n,), about.
    """
    strain = _at(factors, factor).strain(claim, expected, SLACK)
    count = min(_TRIED, len(strain) // _SHARE)
    if count == 0:
        return factor
    chosen = np.argpartition(-strain, count - 1)[:count]
    nearest = Edges(tail=claim.tail[chosen], head=claim.head[chosen], length=claim.length[chosen])
    ends = np.isin(factors.order, nearest.tail) | np.isin(factors.order, nearest.head)
    secrets, sums = factors.order[ends], np.ones(len(factors.inner))
    for _ in range(_TRIALS):
        scaled = _at(factors, factor)
        sums[secrets] = rounded_words(sum_rows(scaled, secrets))
        kappa = float(scaled.strain(nearest, sums, SLACK).max())
        if kappa <= 1 or factor <= _LEAST_FACTOR:
            break
        factor = _shorter(factor, kappa)
    return factor


def _at(factors: Factors, factor: float) -> Factors:
    return replace(factors, step=int(factors.step * max(factor, _LEAST_FACTOR)))


def _shorter(factor: float, kappa: float) -> float:
    excess = max(0.0, kappa - 1.0)
    return factor * (1 - _SHRINK) / (1.0 + excess + min(excess, _MORE))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """How a factored design is run: rounds at most; work, a folder that keeps finished blocks and at last the
    mechanism; scheduler, the address of a dask scheduler; time_limit in seconds, some of them for the certificate;
    on_progress, called after every block; block, its rows: the last bits of sums depend on it; bound, whether a lower
    bound is computed, in the time that is left; by default from 1,601 to 50,000 secrets.
    """

    rounds: int = ROUNDS
    work: str | Path | None = None
    scheduler: str | None = None
    time_limit: float = math.inf
    on_progress: Callable[[Progress], None] | None = None
    block: int = ROWS
    bound: bool | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.rounds <= SETTLING:
            message = f"must be more than the {SETTLING} that settle the lengths"
            raise InputError(message, field="rounds", value=self.rounds)


def suits(program: EikonalWeights) -> str | None:
    """Why a program has no factored form; None where it has one."""
    if program.distances != "graph":
        return "fast-marching fields are not symmetric, so a row needs the fields of all reports"
    return unsuited(program.problem)


def bounded(program: EikonalWeights, run: Run) -> bool:
    """Whether a run computes a lower bound."""
    return program.problem.domain.size in BOUNDED if run.bound is None else run.bound


def solve_factored(program: EikonalWeights, run: Run) -> xr.Dataset:
    """The factored mechanism of a weight program, certified; see the module docstring.

    `stopped` is "kappa" (the weights keep the claim to 2e-5), "rounds" (all rounds done), "time" or "interrupt": a
    first Ctrl-C ends the rounds, or the bound, and what the last finished round weighed is certified; a second one ends
    the run.
    A run that ended by "kappa" or "rounds" leaves its mechanism in the work folder, and the next call returns it at
    once; else the next call goes on with the rounds.
    Cost: a pass per round and one or two exact ones; a pass finds a window around every secret.
    Raises: UnsuitableError for a program without a factored form; SizeError where it would not fit in memory;
        InputError where `work` holds another run or is in use, or where no scheduler answers; SolverError where a block
        fails.
    """
    reason = suits(program)
    if reason is not None:
        raise UnsuitableError(f"no factored form: {reason}", field="method", value="factored")
    problem = program.problem
    widest = _widest_frame(problem)
    _require_room(problem, frame_width(problem, widest))
    frame = framed(problem, widest)
    state = State(number=0, weight=_first_weights(frame, problem.metric), potential=np.zeros(problem.domain.size))
    key = _run_key(program, run, frame, state)
    described = f"{problem.name}, {problem.domain.size} secrets, {run.rounds} rounds"
    with work_folder(run.work, key, of=described) as folder:
        finished = folder.mechanism()
        if finished is not None and finished.attrs["stopped"] in FINISHED:
            folder.retain()
            return finished
        with workers(run.scheduler) as executor:
            search = _Search(problem, run, frame, executor, folder)
            search.keep_time(state)
            state, expected, stopped = search.rounds(state)
            data, rows, factor = search.certify(state, expected)
            bound, stopped = search.bound(stopped) if bounded(program, run) else (None, stopped)
        remedy = "edge budgets" + f" with a frame of {frame.width} cells outside the domain" * (frame.width > 0)
        run_parameters = {"remedy": remedy, "rounds": state.number + 1, "factor": factor}
        diagnosis, counts = _diagnosis(problem)
        dataset = make_factored(
            problem,
            data,
            rows,
            frame.target,
            program=program.name,
            parameters={**program.parameters(), **run_parameters, **counts},
            diagnosis=diagnosis,
            stopped=stopped,
            bound=bound,
        )
        folder.keep_mechanism(dataset)
        folder.retain(*() if stopped in FINISHED else (_STATE, search.stage))
    return dataset


class _Search:
    """A run under way."""

    def __init__(self, problem: DesignProblem, run: Run, frame: Framed, executor: Workers, folder: Folder) -> None:
        self.problem, self.run, self.frame, self.executor, self.folder = problem, run, frame, executor, folder
        self.claim, self.own = claim_of(frame)
        self.units = Units.for_lengths(frame.edges.length, FARTHEST)
        self.short = float(frame.edges.length.min()) < SHORT
        self.order = tiled(problem.domain.points)
        self.report = reporter(run.on_progress)
        self.stage = ""  # the round under way
        self.ends = math.inf  # when rounds end, so that there is time for the certificate

    def keep_time(self, state: State) -> None:
        """Keep time for the certificate, by that of some rows at the machine's load of now.

        Raises: SolverError where there is less than it takes, with an estimate.
        """
        if self.run.time_limit == math.inf:
            return
        data, few = loss_data(self.problem, self._factors(state), self.frame.target), min(_FEW, len(self.order))
        taken = []
        for _ in range(2):  # the first may have to load compiled code
            began = time.monotonic()
            row_block(data, 0, few)
            taken.append(time.monotonic() - began)
        one = min(taken) * len(self.order) / few / max(1, self.executor.ahead() // 2)
        now, ends = time.monotonic(), self.run.started + self.run.time_limit
        if now + one > max(ends, now + _SOON):
            need = now - self.run.started + _CERTIFICATES * one
            message = f"is too short to certify {len(self.order):,} rows, which takes about {math.ceil(need):,} s here"
            remedy = f"allow {10 * math.ceil(0.2 * need):,} s, or use larger cells"
            raise SolverError(message, field="time_limit", value=self.run.time_limit, remedy=remedy)
        self.ends = max(ends - _CERTIFICATES * one, now + _SOON)

    def rounds(self, state: State) -> tuple[State, NDArray[np.float64], str]:
        """The last state that was weighed, its row sums (n,), and why it is the last. Interrupted before any was
        weighed: the first state, with ones for want of better ones.
        """
        stored = self.folder.read(_STATE)
        if stored is not None:
            state = State(number=int(stored["number"]), weight=stored["weight"], potential=stored["potential"])
        weighed = state, np.ones(self.problem.domain.size)

        def run() -> str:
            nonlocal state, weighed
            while True:
                try:
                    row_sum, update, kappa = self._weigh(state)
                except OutOfTime:
                    return "time"
                weighed = state, row_sum
                if kappa <= GOOD:
                    return "kappa"
                if state.number + 1 >= self.run.rounds:
                    return "rounds"
                if time.monotonic() > min(self.ends, self.run.started + self.run.time_limit):
                    return "time"
                state = advance(state, np.log(row_sum), update, rounds=self.run.rounds)
                self.folder.write(_STATE, {name: np.asarray(value) for name, value in vars(state).items()})
                self.folder.retain(_STATE)

        stopped = interrupts.search(run, "interrupt")
        return *weighed, stopped

    def _weigh(self, state: State) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """A round's pass: the row sums (n,), the update of the weights (k,), and kappa."""
        self.stage = f"round {state.number + 1} of {self.run.rounds}"
        exact = self.short or settles(state, self.run.rounds)
        units = self.units.within(SETTLED if exact else MOVING)
        nats = units.nats * np.arange(units.cap + 1)
        shared = Shared(
            metric=units.metric(self.frame.domain.points, self.frame.edges, units.whole(self._lengths(state))),
            inner=self.frame.inner,
            order=self.order,
            kernel=(np.exp(-nats) - np.exp(-nats[-1])).astype(np.float32),
            weight=(state.weight / state.weight.max()).astype(np.float32),
            exact=exact,
        )
        arrays = self._pass(self.stage, pass_block, shared, ends=self.ends)
        kappa = float(self._factors(state).strain(self.claim, arrays["row_sum"], SLACK).max())
        self.report(self.stage, done=len(self.order), total=len(self.order), kappa=kappa)
        seen = arrays["mass"] > 0
        update = np.divide(arrays["rise"], arrays["mass"], out=np.ones(self.frame.size), where=seen)
        return arrays["row_sum"], update, kappa

    def certify(self, state: State, expected: NDArray[np.float64]) -> tuple[LossData, RowBlock, float]:
        """Integers that satisfy the certificate, with the factor of the step."""
        factors = self._factors(state)

        def exact(data: LossData) -> Arrays:
            return self._pass(f"certificate {state.number} {data.factors.step}", row_block, data)

        target, claim = self.frame.target, self.claim
        return certified(self.problem, factors, target, claim, expected, exact=exact, report=self.report)

    def _lengths(self, state: State) -> NDArray[np.float64]:
        """Lengths (e,) of the framed graph in nats, those of the claim as they are `left`."""
        length = self.frame.edges.length.copy()
        length[self.own] = left(self.claim, state.potential, SLACK)
        return length

    def _factors(self, state: State) -> Factors:
        frame, whole = self.frame, self.units.whole(self._lengths(state))
        metric = self.units.metric(frame.domain.points, frame.edges, whole)
        return Factors(metric=metric, step=self.units.step, weight=whole_weights(state.weight), inner=frame.inner)

    def bound(self, stopped: str) -> tuple[ProvedBound | None, str]:
        """A lower bound, if there is time for one, and why the run ends; none after an interrupt, or by one."""
        if stopped == "interrupt":
            return None, stopped
        deadline = self.run.started + _BOUND * self.run.time_limit

        def proved() -> tuple[ProvedBound | None, str]:
            return local_bound(self.problem, self.executor, deadline=deadline, report=self.report), stopped

        missed: tuple[ProvedBound | None, str] = None, "interrupt"
        bound, ended = interrupts.search(proved, missed)
        if ended == "interrupt":
            return None, ended
        late = bound is None and deadline < math.inf
        return bound, "time" if late or time.monotonic() > deadline else stopped

    def _pass(self, name: str, work: Work, shared: Any, ends: float = math.inf) -> Arrays:
        """A pass over all rows. Raises: OutOfTime after a block that ends too late for another."""
        size = len(self.order)
        on_done = counter(in_time(self.report, ends), name, size)
        block, folder = self.run.block, self.folder
        return whole_pass(
            self.executor, work, shared, size, block, over_rows=OVER_ROWS, name=name, folder=folder, on_done=on_done
        )


def _widest_frame(problem: DesignProblem) -> int:
    """Most cells of frame: none on a line, nor where steps at the border are so long that no weight is negative."""
    shape, border = problem.domain.shape, border_step(problem)
    if shape is None or len(shape) == 1 or border is None or border >= FRAMELESS:
        return 0
    return max(FRAME_CELLS, max(shape) // 2)


def _require_room(problem: DesignProblem, width: int) -> None:
    """Refuse what would not fit, before a frame of `width` cells is made around the places.

    Raises: SizeError with the estimate.
    """
    size, shape, edges = problem.domain.size, problem.domain.shape, len(problem.edges.tail)
    wider = math.prod((side + 2 * width) / side for side in shape or ())
    require_bytes(
        int(wider * (_PER_PLACE * size + _PER_EDGE * edges)),
        what=f"a factored design of {size} places with {edges} edges",
        field="cells",
        value=size,
        remedy="use fewer or larger cells, or fewer neighbours",
    )


def _run_key(program: EikonalWeights, run: Run, frame: Framed, first: State) -> str:
    """All that the bits of the result depend on, but for the processor."""
    problem, edges = program.problem, frame.edges
    described = {
        "problem": [problem.name, problem.parameters, problem.loss.name, program.parameters()],
        "metric": problem.metric.describe(),
        "domain": problem.domain.describe(),
        "run": [run.rounds, run.block, *["bound"] * bounded(program, run)],
        "versions": [versions(), metadata.version("numba")],
    }
    arrays = (frame.domain.points, edges.tail, edges.head, edges.length, first.weight, problem.prior_array)
    return run_key(described, *arrays)


def _first_weights(frame: Framed, metric: Metric) -> NDArray[np.float64]:
    domain = frame.domain
    if not ruled(metric, domain):
        return np.ones(domain.size)
    if domain.dimension > 1:
        return local_weights(domain, metric)
    left, right = np.full(domain.size, np.inf), np.full(domain.size, np.inf)
    right[frame.edges.tail], left[frame.edges.head] = frame.edges.length, frame.edges.length
    return line_weights(left, right)


def _diagnosis(problem: DesignProblem) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Curvature excess and rings of the secrets; how many cells the curvature rule predicts a negative weight for, and
    the shortest edge at the border. Nothing where the rule does not apply.
    """
    domain, metric = problem.domain, problem.metric
    if not ruled(metric, domain):
        return {}, {}
    excess = curvature_excess(domain, metric)
    counts = {"cells_with_excess": int((excess > 0).sum()), "shortest_border_step": border_step(problem)}
    return {"excess": excess, "ring": rings(domain)}, counts


def all_rows(data: LossData, *, on_done: OnDone = lambda done: None) -> RowBlock:
    """Sums and losses of all rows, on this machine's cores; on_done is called with the rows done. Cost: the windows
    around the secrets, and 4 ns for each of their columns. Memory: that of a few blocks.
    """
    size = len(data.prior)
    with threads() as executor:
        return RowBlock(
            **whole_pass(executor, row_block, data, size, ROWS, over_rows=OVER_ROWS, name="rows", on_done=on_done)
        )


def row_sums(factors: Factors, *, on_done: OnDone = lambda done: None) -> NDArray[np.uint64]:
    """High and low 64 bits of S(u) (n, 2); the same for a quarter of the cost."""
    size = len(factors.inner)
    with threads() as executor:
        arrays = whole_pass(
            executor, sum_block, factors, size, ROWS, over_rows=("row_sum",), name="sums", on_done=on_done
        )
    return arrays["row_sum"]
