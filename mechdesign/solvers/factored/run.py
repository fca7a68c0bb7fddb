"""The eikonal mechanism without a table: weights and integer distances, certified in one last pass over the rows.

1. Weights to start from: the closed form of the local curvature on grids, the exact ones on a line
   (programs/eikonal/curvature.py).
2. Rounds of weights and edge budgets, each one pass over the rows (factored_rounds.py), with a frame of reports
   around grids of two and three axes where steps at the border are short.
3. Weights become integers. The step of the metric is multiplied by a factor in [0.49, 1], and the exact row sums of the
   scaled kernel either satisfy the certificate (mechanism/factored/certificate.py) or say how much smaller the factor
   must be; at 1/2 less the rounding the certificate holds for any weights.
4. A lower bound of the loss of any mechanism with the claim, from local pricing (solvers/local/).

No pass holds more than a block of rows, on any number of cores or machines, and results do not depend on how many. A
run with a work folder goes on where it ended, to the bits of a run that did not end.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import DesignError, InputError, UnsuitableError
from mechdesign.mechanism.factored.certificate import STEP_BITS, WEIGHT_BITS, Factors
from mechdesign.mechanism.factored.dataset import ROWS, ProvedBound, judge, make_factored
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, join_words, rounded_words, row_block
from mechdesign.mechanism.table.dataset import versions
from mechdesign.programs.eikonal.curvature import curvature_excess, line_weights, local_weights, ruled
from mechdesign.programs.eikonal.weights import EikonalWeights, border_step, rings
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.windows import tiled
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.eikonal.frame import FRAME_CELLS, Framed, framed
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, in_order, threads, together
from mechdesign.solvers.factored.cluster import workers
from mechdesign.solvers.factored.rounds import (
    FARTHEST,
    NEAREST,
    SETTLING,
    Claim,
    State,
    Units,
    advance,
    pass_block,
    settles,
    shared_state,
)
from mechdesign.solvers.factored.work_folder import Folder, run_key, work_folder
from mechdesign.solvers.kernels.progress import Reported, Streaming
from mechdesign.solvers.local.bound import local_bound

ROUNDS = 24
BOUNDED = range(1_601, 50_001)  # secrets: by default smaller ones are tables, larger ones take over half an hour
GOOD = 1.0 + 2e-5  # kappa at which the rounds end early
FRAMELESS = 0.7  # nats of a step at the border from which constant levels have no negative weights
FINISHED = ("kappa", "rounds")  # why a run ends that has nothing left to do
_STATE = "state"  # its name in the work folder
_OVER_ROWS = ("row_sum", "loss")
_LEAST_FACTOR = 0.49
_SHRINK = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """How a factored design is run: rounds at most; work, a folder that keeps finished blocks and at last the
    mechanism; scheduler, the address of a dask scheduler; time_limit in seconds, checked after every round;
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
    Cost: a pass per round and one or two exact ones; a pass relaxes n sources over the framed graph, 10 sweeps each.
    Raises: UnsuitableError for a program without a factored form; InputError where `work` holds another run or is in
        use, or where no scheduler answers; SolverError where a block fails.
    """
    reason = suits(program)
    if reason is not None:
        raise UnsuitableError(
            f"no factored form: {reason}", field="method", value="factored", remedy="use the method table"
        )
    problem = program.problem
    frame = framed(problem, _widest_frame(problem))
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
            state, kappa, stopped = search.rounds(state)
            judged, rows, factor = search.certify(state, kappa)
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
        self,
        program: EikonalWeights,
        run: Run,
        frame: Framed,
        claim: Claim,
        crew: Workers,
        folder: Folder,
    ) -> None:
        self.problem, self.run, self.frame, self.claim = program.problem, run, frame, claim
        self.crew, self.folder = crew, folder
        self.units = Units.for_lengths(frame.edges.length, FARTHEST)
        self.order = tiled(program.problem.domain.points)
        self.stage = ""  # the round under way

    def rounds(self, state: State) -> tuple[State, float, str]:
        """The last state that was weighed, its kappa, and why it is the last. Interrupted before any was weighed: the
        first state, with kappa 1 for want of a better one.
        """
        kept = self.folder.read(_STATE)
        state = state if kept is None else State.from_arrays(kept)
        weighed = state, 1.0
        try:
            while True:
                logarithm, update, kappa = self._weigh(state)
                weighed = state, kappa
                if kappa <= GOOD:
                    return *weighed, "kappa"
                if state.number + 1 >= self.run.rounds:
                    return *weighed, "rounds"
                if time.monotonic() - self.run.started > self.run.time_limit:
                    return *weighed, "time"
                state = advance(state, logarithm, update, rounds=self.run.rounds)
                self.folder.write(_STATE, state.as_arrays())
                self.folder.retain(_STATE)
        except KeyboardInterrupt:
            return *weighed, "interrupt"

    def _weigh(self, state: State) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """A round's pass: the logarithms of the row sums (n,), the update of the weights (k,), and kappa."""
        self.stage = f"round {state.number + 1} of {self.run.rounds}"
        length = self.claim.lengths(self.frame, state.potential)
        settling = settles(state, self.run.rounds)
        units = self.units.within(NEAREST)
        shared = shared_state(self.frame, units, state, length, self.order, exact=settling)
        arrays = self._pass(self.stage, pass_block, shared)
        used = np.ldexp(self.units.step * self.units.whole(length[self.claim.own]).astype(float), -STEP_BITS)
        kappa = self.claim.kappa(used, self.claim.spent(arrays["row_sum"]))
        self._tell(self.stage, self.problem.domain.size, kappa)
        seen = arrays["mass"] > 0
        update = np.divide(arrays["rise"], arrays["mass"], out=np.ones(self.frame.size), where=seen)
        return np.log(arrays["row_sum"]), update, kappa

    def certify(self, state: State, kappa: float) -> tuple[LossData, RowBlock, float]:
        """Integers that satisfy the certificate, with the factor of the step."""
        metric = self.units.metric(self.frame, self.claim.lengths(self.frame, state.potential))
        scaled = np.rint(state.weight / state.weight.max() * (1 << WEIGHT_BITS))
        weight = np.maximum(scaled, 1).astype(np.uint32)
        factor = 1.0 if kappa <= 1 else 1 / kappa
        while True:
            step = int(self.units.step * max(factor, _LEAST_FACTOR))
            factors = Factors(metric=metric, step=step, weight=weight, inner=self.frame.inner)
            judged = judge(self.problem, factors, self.frame.target)
            arrays = self._pass(f"certificate {state.number} {step}", exact_block, judged)
            rows = RowBlock(**arrays)
            breaches = factors.breaches(self.problem.edges, join_words(rows.row_sum))
            used = factors.nats_per_unit * metric.units[self.claim.own].astype(float)
            kappa = self.claim.kappa(used, self.claim.spent(rounded_words(rows.row_sum)))
            self._tell(f"certificate, {breaches} breaches", self.problem.domain.size, kappa)
            if breaches == 0:
                return judged, rows, step / self.units.step
            if factor <= _LEAST_FACTOR:
                raise DesignError(
                    "half the distances break the claim", field="weight", value=step, remedy="report this problem"
                )
            factor *= (1 - _SHRINK) / max(1.0, kappa)

    def bound(self, stopped: str) -> tuple[ProvedBound | None, str]:
        """A lower bound, if there is time for one, and why the run ends; none after an interrupt, or by one."""
        if stopped == "interrupt":
            return None, stopped
        deadline = self.run.started + self.run.time_limit

        def tell(stage: str, done: int, total: int) -> None:
            self._told(stage, done, total, None)

        try:
            found = local_bound(self.problem, self.crew, deadline=deadline, tell=tell)
        except KeyboardInterrupt:
            return None, "interrupt"
        return found, "time" if time.monotonic() > deadline else stopped

    def _pass(self, name: str, work: Work, shared: Any) -> Arrays:
        """A pass over all rows."""
        total = self.problem.domain.size
        found = in_order(self.crew, work, shared, total, self.run.block, folder=self.folder, name=name)

        def told() -> Iterator[Arrays]:
            for _, stop, arrays in found:
                self._tell(name, stop, None)
                yield arrays

        with contextlib.closing(found):
            return together(told(), _OVER_ROWS)

    def _tell(self, stage: str, done: int, kappa: float | None) -> None:
        self._told(stage, done, self.problem.domain.size, kappa)

    def _told(self, stage: str, done: int, total: int, kappa: float | None) -> None:
        if self.run.on_progress is not None:
            seconds = time.monotonic() - self.run.started
            self.run.on_progress(Streaming(stage=stage, done=done, total=total, kappa=kappa, seconds=seconds))


def all_rows(judged: LossData, *, told: Callable[[int], object] = lambda done: None) -> RowBlock:
    """The exact sums of all rows, on this machine's cores; told is called with the rows done. Cost: one pass."""
    with threads() as crew:
        blocks = in_order(crew, exact_block, judged, len(judged.prior), ROWS, folder=Folder(), name="rows")

        def arrays() -> Iterator[Arrays]:
            for _, stop, found in blocks:
                told(stop)
                yield found

        with contextlib.closing(blocks):
            return RowBlock(**together(arrays(), _OVER_ROWS))


def exact_block(judged: LossData, start: int, stop: int) -> Arrays:
    """`row_block`, as the work of a pass."""
    return row_block(judged, start, stop)


def _widest_frame(problem: DesignProblem) -> int:
    """Most cells of frame: none on a line, nor where steps at the border are so long that no weight is negative."""
    shape, border = problem.domain.shape, border_step(problem)
    if shape is None or len(shape) == 1 or border is None or border >= FRAMELESS:
        return 0
    return max(FRAME_CELLS, max(shape) // 2)


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
