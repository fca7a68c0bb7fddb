"""The eikonal mechanism without a table: weights and integer distances, certified in one last pass over the rows.

1. Weights to start from: the closed form of the local curvature on grids, the exact ones on a line
   (programs/curvature.py).
2. Rounds of weights and edge budgets, each one pass over the rows (rounds.py). Grids of two and three axes have
   a frame of reports around them if steps at the border are short.
3. Weights become integers, and the step of the metric is shortened until they satisfy the certificate (certify.py).
4. A lower bound of the loss of any mechanism with the claim, from local pricing (local_bound.py).

Results do not depend on the number of cores or machines. A run with a work folder resumes, with bit-identical results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base import interrupts
from mechdesign.base.arrays import AnyArray, Floats
from mechdesign.base.memory import require_bytes
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import InputError, SolverError, UnsuitableError
from mechdesign.factored import dataset
from mechdesign.factored.certificate import Factors
from mechdesign.factored.certify import GOOD, certify_factors
from mechdesign.factored.cluster import workers
from mechdesign.factored.dataset import ProvedBound, loss_data, make_factored
from mechdesign.factored.integer_metric import tile_order
from mechdesign.factored.local_bound import in_time, local_bound
from mechdesign.factored.options import FactoredOptions
from mechdesign.factored.rounds import (
    ROUND_CONSTANTS,
    SLACK,
    EikonalState,
    PassData,
    Units,
    claimed_edges,
    leaves_weights,
    next_round,
    pass_block,
    quantised_weights,
)
from mechdesign.factored.row_sums import OVER_ROWS, ROWS, CertifiedFactors, LossData, row_block
from mechdesign.factored.work_folder import (
    Arrays,
    BlockedWork,
    Folder,
    Work,
    Workers,
    discard_finished,
    merged_pass,
    run_key,
    work_folder,
)
from mechdesign.mechanism.build import versions
from mechdesign.problem.metric import Metric
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.curvature import curvature_excess, has_curvature_rule, line_weights, local_weights
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.solvers.choose import FactoredSolver
from mechdesign.solvers.eikonal.negative_weights import border_step, rings
from mechdesign.solvers.eikonal.padding import MAX_CELLS, PaddedProblem, pad_problem, padding_width
from mechdesign.solvers.eikonal.row_sum_budget import remaining_length
from mechdesign.solvers.result import Progress, Report, Targets, counter, reporter

FINISHED = ("kappa", "rounds")  # why a run ends that has nothing left to do
_STATE = "state"  # its name in the work folder


@dataclass(frozen=True, kw_only=True)
class DesignConstants:
    """Constants of a run: they share out time and memory, and change no proof."""

    fewest_bounded: int = 1_601  # secrets from which a bound is computed by default: fewer are solved as tables
    most_bounded: int = 50_000  # secrets up to which it is: more take over half an hour
    frameless_step: float = 0.7  # nats of a step at the border from which constant levels have no negative weights
    timed_rows: int = 128  # rows whose seconds estimate those of a pass
    # Exact passes that a certificate takes, a guess: one or two factors of the step, and the tries of single edges.
    certificate_passes: float = 3.0
    bound_share: float = 0.9  # of the time limit, at which a bound is given up: running blocks and the file need time
    least_seconds: float = 2.0  # that rounds get in any case
    bytes_per_place: int = (
        400  # of a design at its peak, an estimate: too low a one risks memory, too high refuses maps
    )
    bytes_per_edge: int = 200


CONSTANTS = DesignConstants()


def rejection_reason(program: EikonalWeights) -> str | None:
    """Why a program has no factored form; None where it has one."""
    if program.distances != "graph":
        return "fast-marching fields are not symmetric, so a row needs the fields of all reports"
    return dataset.rejection_reason(program.problem)


def computes_bound(program: EikonalWeights, options: FactoredOptions) -> bool:
    """True if a run computes a lower bound."""
    if options.bound is not None:
        return options.bound
    return CONSTANTS.fewest_bounded <= program.problem.domain.size <= CONSTANTS.most_bounded


def solve_factored(
    program: EikonalWeights,
    options: FactoredOptions | None = None,
    *,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
    block: int = ROWS,
    started: float | None = None,
) -> xr.Dataset:
    """The factored mechanism of a weight program, certified; time_limit in seconds since `started`, by default now."""
    # `block` rows at a time, on which the last bits of sums depend. `stopped` is "kappa" (the weights keep the claim to
    # 2e-5), "rounds", "time" or "interrupt"; after the first two the work folder returns the finished mechanism to the
    # next call.
    began = time.monotonic() if started is None else started
    options = options or FactoredOptions()
    reason = rejection_reason(program)
    if reason is not None:
        raise UnsuitableError(f"no factored form: {reason}", field="method", value="factored")
    problem = program.problem
    widest = _widest_frame(problem)
    _require_room(problem, padding_width(problem, widest))
    frame = pad_problem(problem, widest)
    first_weight = _first_weights(frame, problem.metric)
    state = EikonalState(number=0, weight=first_weight, potential=np.zeros(problem.domain.size))
    key = _run_key(program, options, block, frame, first_weight)
    described = f"{problem.name}, {problem.domain.size} secrets, {options.rounds} rounds"
    with work_folder(options.work, key, of=described) as folder:
        finished = folder.mechanism()
        if finished is not None and finished.attrs["stopped"] in FINISHED:
            folder.keep_only()
            return finished
        with workers(options.scheduler) as executor:
            run = FactoredRun(
                problem=problem,
                rounds=options.rounds,
                frame=frame,
                executor=executor,
                folder=folder,
                block=block,
                started=began,
                time_limit=time_limit,
                report=reporter(on_progress),
            )
            mechanism = _run_to_mechanism(program, run, state, computes_bound(program, options))
        folder.keep_mechanism(mechanism)
        folder.keep_only(*() if mechanism.attrs["stopped"] in FINISHED else (_STATE, run.stage))
    return mechanism


def _run_to_mechanism(program: EikonalWeights, run: FactoredRun, first: EikonalState, bounded: bool) -> xr.Dataset:
    run.reserve_time(first)
    state, expected, stopped = run.run_rounds(first)
    certified = run.certify(state, expected)
    bound, stopped = run.bound(stopped) if bounded else (None, stopped)
    width = run.frame.width
    remedy = f"edge budgets with a frame of {width} cells outside the domain" if width else "edge budgets"
    run_parameters = {"remedy": remedy, "rounds": state.number + 1, "factor": certified.factor}
    diagnosis, counts = _diagnosis(run.problem)
    return make_factored(
        run.problem,
        certified,
        program=program.name,
        parameters={**program.parameters(), **run_parameters, **counts},
        diagnosis=diagnosis,
        stopped=stopped,
        bound=bound,
    )


class FactoredForm(FactoredSolver):
    """The factored form as a method of eikonal weights."""

    def rejection_reason(self, program: EikonalWeights) -> str | None:
        return rejection_reason(program)

    def solve(self, program: EikonalWeights, targets: Targets) -> xr.Dataset:
        options = FactoredOptions() if targets.options is None else targets.options
        if not isinstance(options, FactoredOptions):
            raise InputError("must be md.factored.FactoredOptions", field="options", value=type(options).__name__)
        if targets.bound is not None:
            options = replace(options, bound=targets.bound)
        return solve_factored(program, options, time_limit=targets.time_limit, on_progress=targets.on_progress)

    def options(self, **fields: Any) -> FactoredOptions:
        return FactoredOptions(**fields)

    def discard_finished(self, work: str | Path) -> None:
        discard_finished(work)


FACTORED_FORM = FactoredForm()


@dataclass(kw_only=True, eq=False)
class FactoredRun:
    """A factored design under way."""

    problem: DesignProblem
    rounds: int  # at most
    frame: PaddedProblem
    executor: Workers
    folder: Folder
    block: int
    started: float  # of time.monotonic()
    time_limit: float  # seconds
    report: Report
    stage: str = ""  # the round under way
    rounds_end: float = math.inf  # early enough for the certificate

    def __post_init__(self) -> None:
        self.claim, self.claimed = claimed_edges(self.frame)
        self.units = Units.for_lengths(self.frame.edges.length, ROUND_CONSTANTS.widest_range)
        self.has_short_edges = float(self.frame.edges.length.min()) < ROUND_CONSTANTS.short_edge
        self.order = tile_order(self.problem.domain.points)

    def reserve_time(self, state: EikonalState) -> None:
        # The time of a certificate is estimated from some rows, before any round: a run without one is worth nothing.
        if self.time_limit == math.inf:
            return
        data = loss_data(self.problem, self._factors(state), self.frame.target)
        few = min(CONSTANTS.timed_rows, len(self.order))
        seconds = []
        # The faster of two: the first may have to load compiled code.
        for _ in range(2):
            began = time.monotonic()
            row_block(data, 0, few)
            seconds.append(time.monotonic() - began)
        one_pass = min(seconds) * len(self.order) / few / max(1, self.executor.ahead() // 2)
        now, ends = time.monotonic(), self.started + self.time_limit
        if now + one_pass > max(ends, now + CONSTANTS.least_seconds):
            need = now - self.started + CONSTANTS.certificate_passes * one_pass
            message = f"is too short to certify {len(self.order):,} rows, which takes about {math.ceil(need):,} s here"
            remedy = f"allow {10 * math.ceil(0.2 * need):,} s, or use larger cells"
            raise SolverError(message, field="time_limit", value=self.time_limit, remedy=remedy)
        self.rounds_end = max(ends - CONSTANTS.certificate_passes * one_pass, now + CONSTANTS.least_seconds)

    def run_rounds(self, state: EikonalState) -> tuple[EikonalState, Floats, str]:
        stored = self.folder.read(_STATE)
        if stored is not None:
            state = EikonalState(number=int(stored["number"]), weight=stored["weight"], potential=stored["potential"])
        weighed = state, np.ones(self.problem.domain.size)

        def run() -> str:
            nonlocal state, weighed
            while True:
                try:
                    row_sum, update, kappa = self._weigh(state)
                except OutOfTime:
                    return "time"
                # The certificate needs row sums of the very state that it certifies, so both are kept together.
                weighed = state, row_sum
                if kappa <= GOOD:
                    return "kappa"
                if state.number + 1 >= self.rounds:
                    return "rounds"
                if time.monotonic() > min(self.rounds_end, self.started + self.time_limit):
                    return "time"
                state = next_round(state, np.log(row_sum), update, rounds=self.rounds)
                self.folder.write(_STATE, {name: np.asarray(value) for name, value in vars(state).items()})
                self.folder.keep_only(_STATE)

        stopped = interrupts.interruptible(run, "interrupt")
        return *weighed, stopped

    def _weigh(self, state: EikonalState) -> tuple[Floats, Floats, float]:
        self.stage = f"round {state.number + 1} of {self.rounds}"
        exact = self.has_short_edges or leaves_weights(state, self.rounds)
        units = self.units.within(ROUND_CONSTANTS.settled_range if exact else ROUND_CONSTANTS.moving_range)
        nats = units.nats * np.arange(units.cap + 1)
        shared = PassData(
            metric=units.metric(self.frame.domain.points, self.frame.edges, units.quantise(self._lengths(state))),
            inner=self.frame.inner,
            order=self.order,
            # 0 at the cap, so that a window holds all of the sum: places outside add nothing.
            kernel=(np.exp(-nats) - np.exp(-nats[-1])).astype(np.float32),
            weight=(state.weight / state.weight.max()).astype(np.float32),
            exact=exact,
        )
        arrays = self._pass(self.stage, pass_block, shared, ends=self.rounds_end)
        kappa = float(self._factors(state).claim_utilisation(self.claim, arrays["row_sum"], SLACK).max())
        self.report(self.stage, done=len(self.order), total=len(self.order), kappa=kappa)
        # Places that no secret reaches within the range keep their weight.
        is_reached = arrays["mass"] > 0
        update = np.divide(arrays["rise"], arrays["mass"], out=np.ones(self.frame.size), where=is_reached)
        return arrays["row_sum"], update, kappa

    def certify(self, state: EikonalState, expected: Floats) -> CertifiedFactors:
        def exact(data: LossData) -> Arrays:
            return self._pass(f"certificate {state.number} {data.factors.step}", row_block, data)

        factors, target = self._factors(state), self.frame.target
        return certify_factors(self.problem, factors, target, self.claim, expected, exact=exact, report=self.report)

    def bound(self, stopped: str) -> tuple[ProvedBound | None, str]:
        if stopped == "interrupt":
            return None, stopped
        deadline = self.started + CONSTANTS.bound_share * self.time_limit

        def prove() -> tuple[ProvedBound | None, str]:
            return local_bound(self.problem, self.executor, deadline=deadline, report=self.report), stopped

        missed: tuple[ProvedBound | None, str] = None, "interrupt"
        bound, ended = interrupts.interruptible(prove, missed)
        if ended == "interrupt":
            return None, ended
        late = bound is None and deadline < math.inf
        return bound, "time" if late or time.monotonic() > deadline else stopped

    def _lengths(self, state: EikonalState) -> Floats:
        length = self.frame.edges.length.copy()
        length[self.claimed] = remaining_length(self.claim, state.potential, SLACK)
        return length

    def _factors(self, state: EikonalState) -> Factors:
        frame, units = self.frame, self.units.quantise(self._lengths(state))
        metric = self.units.metric(frame.domain.points, frame.edges, units)
        return Factors(metric=metric, step=self.units.step, weight=quantised_weights(state.weight), inner=frame.inner)

    def _pass(self, name: str, work: Work, shared: Any, ends: float = math.inf) -> Arrays:
        # Raises OutOfTime after a block that ends too late for another; finished blocks stay in the folder.
        size = len(self.order)
        blocks = BlockedWork(work=work, state=shared, total=size, block=self.block, name=name)
        on_done = counter(in_time(self.report, ends), name, size)
        return merged_pass(self.executor, blocks, OVER_ROWS, folder=self.folder, on_done=on_done)


def _widest_frame(problem: DesignProblem) -> int:
    shape, border = problem.domain.shape, border_step(problem)
    if shape is None or len(shape) == 1 or border is None or border >= CONSTANTS.frameless_step:
        return 0
    return max(MAX_CELLS, max(shape) // 2)


def _require_room(problem: DesignProblem, width: int) -> None:
    size, shape, edges = problem.domain.size, problem.domain.shape, len(problem.edges.tail)
    wider = math.prod((side + 2 * width) / side for side in shape or ())
    require_bytes(
        int(wider * (CONSTANTS.bytes_per_place * size + CONSTANTS.bytes_per_edge * edges)),
        noun=f"a factored design of {size} places with {edges} edges",
        field="cells",
        value=size,
        remedy="use fewer or larger cells, or fewer neighbours",
    )


def _run_key(program: EikonalWeights, options: FactoredOptions, block: int, frame: PaddedProblem, first: Floats) -> str:
    # Everything that determines the bits of the result, except the processor. `first` are the weights of round 0.
    problem, edges = program.problem, frame.edges
    described = {
        "problem": [problem.name, problem.parameters, problem.loss.name, program.parameters()],
        "metric": problem.metric.describe(),
        "domain": problem.domain.describe(),
        "run": [options.rounds, block, *["bound"] * computes_bound(program, options)],
        "versions": [versions(), metadata.version("numba")],
    }
    arrays = (frame.domain.points, edges.tail, edges.head, edges.length, first, problem.prior_array)
    return run_key(described, *arrays)


def _first_weights(frame: PaddedProblem, metric: Metric) -> Floats:
    # Any positive weights would do: better ones save rounds.
    domain = frame.domain
    if not has_curvature_rule(metric, domain):
        return np.ones(domain.size)
    if domain.dimension > 1:
        return local_weights(domain, metric)
    left, right = np.full(domain.size, np.inf), np.full(domain.size, np.inf)
    right[frame.edges.tail], left[frame.edges.head] = frame.edges.length, frame.edges.length
    return line_weights(left, right)


def _diagnosis(problem: DesignProblem) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    domain, metric = problem.domain, problem.metric
    if not has_curvature_rule(metric, domain):
        return {}, {}
    excess = curvature_excess(domain, metric)
    counts = {"cells_with_excess": int((excess > 0).sum()), "shortest_border_step": border_step(problem)}
    return {"excess": excess, "ring": rings(domain)}, counts
