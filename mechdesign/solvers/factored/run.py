"""The eikonal mechanism without a table: weights and integer distances, certified in one last pass over the rows.

1. Weights to start from: the closed form of the local curvature on grids, the exact ones on a line
   (programs/eikonal/curvature.py).
2. Rounds of weights and edge budgets, each one pass over the rows (rounds.py), with a frame of reports
   around grids of two and three axes where steps at the border are short.
3. Weights become integers. The step of the metric is multiplied by a factor in [0.49, 1], and the exact row sums of the
   scaled kernel either satisfy the certificate or say how much smaller the factor must be (step.py).
4. A lower bound of the loss of any mechanism with the claim, from local pricing (solvers/local/).

No pass holds more than a block of rows, on any number of cores or machines, and results do not depend on how many. A
run with a work folder goes on where it ended, to the bits of a run that did not end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.memory import require_bytes
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import InputError, SolverError, UnsuitableError
from mechdesign.mechanism.factored.certificate import STEP_BITS, WEIGHT_BITS, Factors
from mechdesign.mechanism.factored.dataset import ROWS, ProvedBound, judge, make_factored
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, row_block
from mechdesign.mechanism.table.dataset import versions
from mechdesign.programs.eikonal.curvature import curvature_excess, line_weights, local_weights, ruled
from mechdesign.programs.eikonal.weights import EikonalWeights, border_step, rings
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.windows import tiled
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.eikonal.frame import FRAME_CELLS, Framed, frame_width, framed
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, whole_pass
from mechdesign.solvers.factored.cluster import workers
from mechdesign.solvers.factored.rounds import (
    FARTHEST,
    MOVING,
    SETTLED,
    SETTLING,
    SHORT,
    Claim,
    State,
    Units,
    advance,
    pass_block,
    settles,
    shared_state,
)
from mechdesign.solvers.factored.step import OVER_ROWS, certified
from mechdesign.solvers.factored.work_folder import Folder, run_key, work_folder
from mechdesign.solvers.kernels.progress import Reported, Streaming
from mechdesign.solvers.local.bound import local_bound

ROUNDS = 24
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """How a factored design is run: rounds at most; work, a folder that keeps finished blocks and at last the
    mechanism; scheduler, the address of a dask scheduler; time_limit in seconds, of which what the certificate takes
    is kept;
    on_progress, called after every block; block, rows of a block: sums are added block by block, so their last bits
    depend on it; bound, whether a lower bound is computed, in the time that is left; by default from 1,601 to 50,000
    secrets.
    """

    rounds: int = ROUNDS
    work: str | Path | None = None
    scheduler: str | None = None
    time_limit: float = math.inf
    on_progress: Callable[[Reported], None] | None = None
    block: int = ROWS
    bound: bool | None = None
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.rounds <= SETTLING:
            raise InputError(
                f"must be more than {SETTLING}, the rounds that settle the lengths",
                field="rounds",
                value=self.rounds,
                remedy=f"use {ROUNDS}, or more where edges are short",
            )


def suits(program: EikonalWeights) -> str | None:
    """Why a program has no factored form; None where it has one."""
    problem = program.problem
    if program.distances != "graph":
        return "fast-marching fields are not symmetric, so a row needs the fields of all reports"
    if not problem.metric.sparse:
        return f"the {problem.metric.kind} metric has no short list of edges"
    if problem.loss.code is None:
        return "a loss given as a table, or by no formula of the sums over rows, is as large as the mechanism"
    return None


def bounded(program: EikonalWeights, run: Run) -> bool:
    """Whether a run computes a lower bound."""
    return program.problem.domain.size in BOUNDED if run.bound is None else run.bound


def solve_factored(program: EikonalWeights, run: Run) -> xr.Dataset:
    """The factored mechanism of a weight program, certified; see the module docstring.

    `stopped` is "kappa" (the weights keep the claim to 2e-5), "rounds" (all rounds done), "time" or "interrupt": a
    first Ctrl-C ends the rounds, and what the last finished round weighed is certified; a second one ends the run.
    A run that ended by "kappa" or "rounds" leaves its mechanism in the work folder, and the next call returns it at
    once; else the next call goes on with the rounds.
    Cost: a pass per round and one or two exact ones; a pass finds a window around every secret.
    Raises: UnsuitableError for a program without a factored form; SizeError where it would not fit in memory;
        InputError where `work` holds another run or is in use, or where no scheduler answers; SolverError where a block
        fails.
    """
    reason = suits(program)
    if reason is not None:
        raise UnsuitableError(
            f"no factored form: {reason}", field="method", value="factored", remedy="use the method table"
        )
    problem = program.problem
    widest = _widest_frame(problem)
    _require_room(problem, frame_width(problem, widest))
    frame = framed(problem, widest)
    claim = Claim.of(frame, problem.edges)
    state = State(number=0, weight=_first_weights(frame, problem.metric), potential=np.zeros(problem.domain.size))
    key = _run_key(program, run, frame, state)
    described = f"{problem.name}, {problem.domain.size} secrets, {run.rounds} rounds"
    with work_folder(run.work, key, of=described) as folder:
        finished = folder.mechanism()
        if finished is not None and finished.attrs["stopped"] in FINISHED:
            folder.retain()
            return finished
        with workers(run.scheduler) as crew:
            search = _Search(program, run, frame, claim, crew, folder)
            search.keep_time(state)
            state, expected, stopped = search.rounds(state)
            judged, rows, factor = search.certify(state, expected)
            bound, stopped = search.bound(stopped) if bounded(program, run) else (None, stopped)
        diagnosis = _diagnosis(program)
        dataset = make_factored(
            problem,
            judged,
            rows,
            frame.target,
            program=program.name,
            parameters={
                **program.parameters(),
                "remedy": "edge budgets"
                + (f" with a frame of {frame.width} cells outside the domain" * (frame.width > 0)),
                "rounds": state.number + 1,
                "factor": factor,
                **_counts(problem, diagnosis),
            },
            diagnosis=diagnosis,
            stopped=stopped,
            bound=bound,
        )
        folder.keep_mechanism(dataset)
        folder.retain(*() if stopped in FINISHED else (_STATE, search.stage))
    return dataset


class _Search:
    """A run under way."""

    def __init__(
        self, program: EikonalWeights, run: Run, frame: Framed, claim: Claim, crew: Workers, folder: Folder
    ) -> None:
        self.problem, self.run, self.frame, self.claim = program.problem, run, frame, claim
        self.crew, self.folder = crew, folder
        self.units = Units.for_lengths(frame.edges.length, FARTHEST)
        self.short = float(frame.edges.length.min()) < SHORT
        self.order = tiled(program.problem.domain.points)
        self.stage = ""  # the round under way
        self.ends = math.inf  # when rounds end, so that there is time for the certificate

    def keep_time(self, state: State) -> None:
        """Keep time for the certificate, by that of some rows at the machine's load of now.

        Raises: SolverError where there is less than it takes, with an estimate.
        """
        if self.run.time_limit == math.inf:
            return
        judged, few = judge(self.problem, self._factors(state), self.frame.target), min(_FEW, len(self.order))
        taken = []
        for _ in range(2):  # the first may have to load compiled code
            began = time.monotonic()
            row_block(judged, 0, few)
            taken.append(time.monotonic() - began)
        one = min(taken) * len(self.order) / few / max(1, self.crew.ahead() // 2)
        now, ends = time.monotonic(), self.run.started + self.run.time_limit
        if now + one > max(ends, now + _SOON):
            need = now - self.run.started + _CERTIFICATES * one
            raise SolverError(
                f"is too short to certify {len(self.order):,} rows, which takes about {math.ceil(need):,} s here",
                field="time_limit",
                value=self.run.time_limit,
                remedy=f"allow {10 * math.ceil(0.2 * need):,} s, or use larger cells",
            )
        self.ends = max(ends - _CERTIFICATES * one, now + _SOON)

    def rounds(self, state: State) -> tuple[State, NDArray[np.float64], str]:
        """The last state that was weighed, its row sums (n,), and why it is the last. Interrupted before any was
        weighed: the first state, with ones for want of better ones.
        """
        kept = self.folder.read(_STATE)
        state = state if kept is None else State.from_arrays(kept)
        weighed = state, np.ones(self.problem.domain.size)
        slowest, began = 0.0, time.monotonic()
        try:
            while True:
                row_sum, update, kappa = self._weigh(state)
                weighed = state, row_sum
                if kappa <= GOOD:
                    return *weighed, "kappa"
                if state.number + 1 >= self.run.rounds:
                    return *weighed, "rounds"
                slowest, began = max(slowest, time.monotonic() - began), time.monotonic()
                if began > self.run.started + self.run.time_limit or began + slowest > self.ends:
                    return *weighed, "time"
                state = advance(state, np.log(row_sum), update, rounds=self.run.rounds)
                self.folder.write(_STATE, state.as_arrays())
                self.folder.retain(_STATE)
        except OutOfTime:
            return *weighed, "time"
        except KeyboardInterrupt:
            return *weighed, "interrupt"

    def _weigh(self, state: State) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """A round's pass: the row sums (n,), the update of the weights (k,), and kappa."""
        self.stage = f"round {state.number + 1} of {self.run.rounds}"
        length = self.claim.lengths(self.frame, state.potential)
        exact = self.short or settles(state, self.run.rounds)
        units = self.units.within(SETTLED if exact else MOVING)
        shared = shared_state(self.frame, units, state, length, self.order, exact=exact)
        arrays = self._pass(self.stage, pass_block, shared, ends=self.ends)
        used = np.ldexp(self.units.step * self.units.whole(length[self.claim.own]).astype(float), -STEP_BITS)
        kappa = float(self.claim.strain(used, self.claim.spent(arrays["row_sum"])).max())
        self._tell(self.stage, self.problem.domain.size, kappa)
        seen = arrays["mass"] > 0
        update = np.divide(arrays["rise"], arrays["mass"], out=np.ones(self.frame.size), where=seen)
        return arrays["row_sum"], update, kappa

    def certify(self, state: State, expected: NDArray[np.float64]) -> tuple[LossData, RowBlock, float]:
        """Integers that satisfy the certificate, with the factor of the step."""
        factors = self._factors(state)

        def exact(judged: LossData, step: int) -> Arrays:
            return self._pass(f"certificate {state.number} {step}", row_block, judged)

        return certified(self.problem, factors, self.frame.target, self.claim, expected, exact=exact, told=self._tell)

    def _factors(self, state: State) -> Factors:
        metric = self.units.metric(self.frame, self.claim.lengths(self.frame, state.potential))
        scaled = np.rint(state.weight / state.weight.max() * (1 << WEIGHT_BITS))
        weight = np.maximum(scaled, 1).astype(np.uint32)
        return Factors(metric=metric, step=self.units.step, weight=weight, inner=self.frame.inner)

    def bound(self, stopped: str) -> tuple[ProvedBound | None, str]:
        """A lower bound, if there is time for one, and why the run ends; none after an interrupt, or by one."""
        if stopped == "interrupt":
            return None, stopped
        deadline = self.run.started + _BOUND * self.run.time_limit

        def tell(stage: str, done: int, total: int) -> None:
            self._told(stage, done, total, None)

        try:
            found = local_bound(self.problem, self.crew, deadline=deadline, tell=tell)
        except KeyboardInterrupt:
            return None, "interrupt"
        late = found is None and deadline < math.inf
        return found, "time" if late or time.monotonic() > deadline else stopped

    def _pass(self, name: str, work: Work, shared: Any, ends: float = math.inf) -> Arrays:
        """A pass over all rows. Raises: OutOfTime after a block that ends too late for another."""

        def told(done: int) -> None:
            self._tell(name, done, None)
            if done < len(self.order) and time.monotonic() > ends:
                raise OutOfTime

        return whole_pass(
            self.crew,
            work,
            shared,
            self.problem.domain.size,
            self.run.block,
            over_rows=OVER_ROWS,
            name=name,
            folder=self.folder,
            told=told,
        )

    def _tell(self, stage: str, done: int, kappa: float | None) -> None:
        self._told(stage, done, self.problem.domain.size, kappa)

    def _told(self, stage: str, done: int, total: int, kappa: float | None) -> None:
        if self.run.on_progress is not None:
            seconds = time.monotonic() - self.run.started
            self.run.on_progress(Streaming(stage=stage, done=done, total=total, kappa=kappa, seconds=seconds))


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


def _diagnosis(program: EikonalWeights) -> dict[str, NDArray[Any]]:
    domain, metric = program.problem.domain, program.problem.metric
    if not ruled(metric, domain):
        return {}
    return {"excess": curvature_excess(domain, metric), "ring": rings(program.problem.domain)}


def _counts(problem: DesignProblem, found: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """How many cells the curvature rule predicts a negative weight for, and the shortest edge at the border."""
    if not found:
        return {}
    return {
        "cells_with_excess": int((found["excess"] > 0).sum()),
        "shortest_border_step": border_step(problem),
    }
