"""The optimal program over a pool of priced columns, at any size: the mechanism is kept as factors, not as a table.

1. Multipliers from passes on a ladder of grids (local_bound.py).
2. Rounds: every report is priced in its ball; rays that the pool lacks join it as columns, a few generators each
   (fields.py); weights and multipliers move by a proximal interior-point method (pool_master.py). What the priced
   multipliers are worth, sum lambda min(1, rho), and the loss of the weights with what their row sums will cost,
   tell how far apart the bounds will be.
3. Lengths of edges that pay for the row sums (solvers/eikonal/row_sum_budget.py), integers: a certified mechanism.
4. A bound, proved (local_bound.py).

Nothing that the rounds find has to be right. Results do not depend on the number of threads.

Lengths leave what the row sums spend (solvers/eikonal/row_sum_budget.py), but they are integers here, in steps, and
one step less moves row sums there by as much: where lengths may rise again, as those of a potential do, an excess of
a step stays.
So they fall from those claimed, half of the way that each has to go, and none rises. What is left over is taken off
the step, so that the certificate holds.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mechdesign.base import interrupts
from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.factored import dataset
from mechdesign.factored.certificate import Columns, Factors
from mechdesign.factored.certify import GOOD, certify_factors
from mechdesign.factored.dataset import ProvedBound, make_factored
from mechdesign.factored.fields import FieldTask, Generators, field_block, generators_of
from mechdesign.factored.local_bound import certify, settled
from mechdesign.factored.local_pricing import BLOCK, DualState, Places, PricingTask, Radii, ratio_block
from mechdesign.factored.pool_master import Blocks, Matrix, Vector, improve
from mechdesign.factored.rounds import SLACK, Units, quantised_weights
from mechdesign.factored.row_sums import (
    OVER_ROWS,
    ROWS,
    CertifiedFactors,
    LossData,
    merged_rows,
    rounded_words,
    row_block,
    sum_block,
)
from mechdesign.factored.work_folder import Arrays, BlockedWork, Work, Workers, all_blocks, merged_pass, threads
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.losses import Distance
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.optimal import Optimal
from mechdesign.solvers.choose import PoolSolver
from mechdesign.solvers.cone.pricing import ConePricer, homogeneous_bound
from mechdesign.solvers.eikonal.row_sum_budget import left, spent
from mechdesign.solvers.result import Design, Report, Stop, Targets, counter, reporter

_BLAS = ThreadpoolController()  # blocks of a few hundred places: more threads cost more than they bring
LARGEST = 50_000  # secrets up to which a pool of columns is made: beyond, minutes become hours
LARGEST_TABLE = 1600  # secrets up to which the result is a table
TABLED = 6_000  # the same where the loss is one, which no factors have room for: six tables of 0.3 GB
FEWEST, MOST, WORK = 8, 40, 100_000  # rounds, and reports priced by them where they are few, about
_PASSES = 3  # before the rounds, on a grid that starts from a coarser one
_FEW = 3_000  # places up to which wider radii cost nothing
_SAME = 0.01  # nats within which offsets count as equal
_SHARE, _FINEST = 0.2, 2e-4  # of the gap asked for that the master may leave, and the least that it is asked for
_ENOUGH, _NEAR = 0.7, 1.4  # of the gap asked for: estimates, levelled and not, at which rounds end
_SLOW = 0.9  # share of the gap before that a round may leave; of more, and without another column, it is the last
_REPEATS, _LEVEL = 12, 0.02  # of the master, each levels row sums further; share of the gap asked for that one gains
_FRESH = 0.1  # weight of a column that joins, in that of its report at first
_FAINT = 1e-3  # of the weight of a report: columns below are dropped in the end
_LAST = 0.3  # share of the time limit that is kept for the certificates, at most
_CERTIFIED, _LEVELS = 5.0, 2  # passes of pricing that they take, about, and repeats of the master before them
ROUNDS, _PATIENCE = 40, 8  # passes in which lengths fall, at most, and without more of them kept


class ColumnCertifier:
    """The columns of a pool with fixed weights (c,) > 0, on their way to a certificate."""

    def __init__(
        self, problem: DesignProblem, executor: Workers, columns: Generators, weight: Vector, *, report: Report
    ) -> None:
        self.problem, self.executor, self.report = problem, executor, report
        self.units = Units.for_lengths(problem.edges.length)
        self.target = columns.report
        self.columns = Columns(
            place=columns.place,
            offset=np.minimum(columns.offset, self.units.cap).astype(np.uint16),
            first=columns.first[:-1].copy(),
        )
        self.weight = quantised_weights(weight)

    def certify(self) -> CertifiedFactors:
        """Integers that satisfy the certificate, their rows, and the factor of the step.

        Cost: up to 40 passes over the exact sums of the rows, and one or two over their losses.
        Raises: DesignError where half the distances break the claim, which they do for no weights.
        """
        units, sums = self._lengths()

        def exact(data: LossData) -> Arrays:
            return self._pass("certificate", row_block, data, OVER_ROWS)

        factors = self._factors(units)
        edges, report = self.problem.edges, self.report
        return certify_factors(self.problem, factors, self.target, edges, sums, exact=exact, report=report)

    def _lengths(self) -> tuple[NDArray[np.int64], Vector]:
        """Lengths (e,) in steps that leave what the row sums spend, and the row sums (n,) up to a factor: those of the
        round that keeps the most of the claimed lengths, once its kappa is taken off.
        """
        edges, size, kept = self.problem.edges, self.problem.domain.size, 0.0
        units, at = self.units.quantise(edges.length), 0
        best = units, np.ones(size)
        for number in range(1, ROUNDS + 1):
            factors = self._factors(units)
            sums = rounded_words(self._pass("row sums", sum_block, factors, ("row_sum",))["row_sum"])
            kappa = float(factors.claim_utilisation(edges, sums, SLACK).max())
            self.report(f"row sums, round {number} of {ROUNDS}", done=size, total=size, kappa=kappa)
            keeps = float(np.mean(units / edges.length)) / kappa
            if keeps > kept:
                kept, best, at = keeps, (units, sums), number
            if kappa <= GOOD or number - at >= _PATIENCE:
                break
            wanted = self.units.quantise(left(edges, np.log(sums), SLACK))
            units = np.minimum(units, (units + wanted) // 2)
        return best

    def _factors(self, units: NDArray[np.int64]) -> Factors:
        metric = self.units.metric(self.problem.domain.points, self.problem.edges, units)
        inner = np.arange(self.problem.domain.size)
        return Factors(metric=metric, step=self.units.step, weight=self.weight, inner=inner, columns=self.columns)

    def _pass(self, name: str, work: Work, state: object, over_rows: tuple[str, ...]) -> Arrays:
        size = self.problem.domain.size
        blocks = BlockedWork(work=work, state=state, total=size, block=ROWS, name=name)
        return merged_pass(self.executor, blocks, over_rows, on_done=counter(self.report, name, size))


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Radii in nats of the balls of reports (a narrow core gives rays that cost more than they promise), below the top
    of a ray, where its generators are no longer kept, of the fields of columns in the master, and of their losses.
    """

    balls: Radii
    deepest: float
    keep: float
    reach: float


USUAL = Depths(balls=Radii(reach=16.0, core=8.0, keep=10.0), deepest=7.0, keep=12.0, reach=18.0)
WIDE = Depths(balls=Radii(reach=30.0, core=20.0, keep=20.0), deepest=18.0, keep=20.0, reach=27.0)

_REACH, _CORE = 18.0, 10.0  # of the balls of the certificate: narrower ones than in pricing lose 0.09 %


def rejection_reason(problem: DesignProblem) -> str | None:
    """Why a problem cannot be solved by a pool of columns; None if it can."""
    if problem.reports is not problem.domain:
        return "reports are other places than the secrets"
    if problem.loss.code is None and problem.metric.sparse and problem.domain.size <= TABLED:
        return None
    return dataset.rejection_reason(problem)


def makes_table(problem: DesignProblem) -> bool:
    """Whether the result is a table, not factors."""
    return problem.domain.size <= LARGEST_TABLE or problem.loss.code is None


def solve_pool(program: Optimal, targets: Targets) -> Design | xr.Dataset:
    """The mechanism of an optimal program, certified, with a proved bound; see the module docstring.

    `stopped` is "gap" (the rounds ended as the gap was in sight; the bounds say whether it was met), "rounds" (all
    done, or no ray that the pool lacks), "time" or "interrupt": a first Ctrl-C ends the rounds, and what the last
    finished one found is certified; a second one ends the run.
    Cost: on a grid of 100 x 100 cells some minutes of a core, of 200 x 200 three quarters of an hour.
    Memory: some 22 bytes for every place within 12 nats of a column.
    Raises: UnsuitableError for a problem that `rejection_reason` refuses; SizeError beyond 50,000 secrets.
    """
    problem = program.problem
    reason = rejection_reason(problem)
    if reason is not None:
        raise UnsuitableError(f"cannot be solved by a pool of columns: {reason}", field="method", value="pool")
    if problem.domain.size > LARGEST:
        message = f"a pool of columns has at most {LARGEST:,} secrets: use the program eikonal"
        raise SizeError(message, field="cells", value=problem.domain.size)
    with threads() as executor, _BLAS.limit(limits=1):
        search = PoolRun(problem, targets, executor)
        stopped = search.rounds()
        columns, weight = search.used()
        # A loss that is a table is computed of the table: its certificate by rows takes any loss.
        stated = replace(problem, loss=Distance()) if problem.loss.code is None else problem
        certified = ColumnCertifier(stated, executor, columns, weight, report=search.report).certify()
        if makes_table(problem):
            every, total = np.arange(problem.domain.size), rounded_words(certified.rows.row_sum)
            table = merged_rows(certified.data.factors, every, columns.report, total)
            return _tabled(problem, table, [search.proof, search.best], stopped)
        bound = search.bound()
    parameters = {**program.parameters(), "gap": targets.gap, "rounds": search.number, "factor": certified.factor}
    return make_factored(problem, certified, program=program.name, parameters=parameters, stopped=stopped, bound=bound)


class ColumnPool(PoolSolver):
    """A pool of columns as a route of the optimal program."""

    def rejection_reason(self, problem: DesignProblem) -> str | None:
        if problem.domain.size > LARGEST:
            return f"it takes up to {LARGEST:,} secrets"
        return rejection_reason(problem)

    def makes_table(self, problem: DesignProblem) -> bool:
        return makes_table(problem)

    def needs_closed_form(self, problem: DesignProblem) -> bool:
        return problem.domain.size <= LARGEST_TABLE

    def solve(self, program: Optimal, targets: Targets) -> Design | xr.Dataset:
        return solve_pool(program, targets)


COLUMN_POOL = ColumnPool()


class PoolRun:
    """A run under way: the pool, its fields, costs and weights, the multipliers, and the weights of the least loss."""

    def __init__(self, problem: DesignProblem, targets: Targets, executor: Workers) -> None:
        self.problem, self.targets, self.executor = problem, targets, executor
        self.report = reporter(targets.on_progress)
        self.started = time.monotonic()
        self.deadline = self.started + targets.time_limit
        self.places = Places.of(problem)
        units = Units.for_lengths(problem.edges.length)
        self.step = units.nats
        self.lengths = units.quantise(self.places.graph.length)
        n = self.places.size
        self.depths = WIDE if n <= _FEW else USUAL
        self.state = DualState(dual=np.zeros(n), weight=np.ones(n), ratio=np.ones(n))
        self.proof, self.best, self.worth = np.zeros(n), np.zeros(n), 0.0
        self.columns, self.cost, self.weight = Generators.none(), np.zeros(0), np.zeros(0)
        self.loss, self.least = np.inf, np.zeros(0)
        self.matrix: Matrix | None = None
        self.seen: set[tuple[int, bytes, bytes]] = set()
        self.number = 0
        self.priced = self.mastered = 0.0  # seconds of the last pass of pricing, and of the last master

    def rounds(self) -> str:
        """Rounds of pricing and weighing; why they ended."""
        stopped = interrupts.search(self._rounds, "interrupt")
        self.matrix = None  # gigabytes that the certificates do not need
        return stopped

    def _rounds(self) -> str:
        self.state, _ = settled(self.problem, self.executor, deadline=self._latest(), report=self.report, last=_PASSES)
        if not self.state.dual.any():
            return "gap"
        self.proof = self.best = self.state.dual
        blocks, near, stopped, took, levelled = Blocks(self.places), np.inf, "rounds", 0.0, False
        while self.number < min(max(FEWEST, WORK // self.places.size), MOST):
            started = time.monotonic()
            if started + took > self._latest():
                stopped = "time"
                break
            grown, before = self._extend(), near
            if self.matrix is None:
                break
            first = self._improve(blocks)
            self.number += 1
            near, took = (first - self.worth) / first, time.monotonic() - started
            slow = near > _SLOW * before
            levelled = near <= _NEAR * self.targets.gap or (slow and not grown)
            if levelled:
                self._level(blocks)
            gap = self._gap()
            size = {"variables": self.columns.size, "constraints": self.places.size}
            bounds = {"loss": self.loss, "lower_bound": self.worth, "gap": gap}
            self.report("pool of columns, estimated", round=self.number - 1, **bounds, **size)
            if gap <= _ENOUGH * self.targets.gap and near <= _NEAR * self.targets.gap:
                return "gap"
            if slow and not grown:
                break
        if self.number and not levelled:
            self._level(blocks)
        return stopped

    def _latest(self, levels: int = _LEVELS) -> float:
        """Until when, of time.monotonic(), rounds may go on, so that time is left for so many repeats of the master and
        for the certificates.
        """
        rest = _LAST * self.targets.time_limit
        if self.priced:
            rest = min(rest, _CERTIFIED * self.priced + levels * self.mastered)
        return self.deadline - rest if self.deadline < np.inf else np.inf

    def used(self) -> tuple[Generators, Vector]:
        """The columns that matter, with their weights; the distance from every place where no round was finished."""
        n = self.places.size
        if not len(self.least):
            own = np.arange(n)
            columns = Generators(place=own, offset=np.zeros(n, np.int64), first=np.arange(n + 1), report=own)
            return columns, self.state.weight
        report = self.columns.report[: len(self.least)]
        used = np.flatnonzero(self.least > _FAINT * np.bincount(report, self.least, n)[report])
        return self.columns.of(used), self.least[used]

    def bound(self) -> ProvedBound | None:
        """The proved bound of the last multipliers; None where it is interrupted."""
        on_done = counter(self.report, "bound, certificate", self.places.size)
        return interrupts.search(
            lambda: certify(self.executor, self.places, self.best, reach=_REACH, core=_CORE, on_done=on_done), None
        )

    def _extend(self) -> bool:
        """Price all reports; rays that the pool lacks join it; whether there were any."""
        started, n, dual = time.monotonic(), self.places.size, self.state.dual
        task = PricingTask.all(self.places, dual, **asdict(self.depths.balls), start=self.state.ratio)
        on_done = counter(self.report, f"round {self.number + 1}, pricing", n)
        blocks = BlockedWork(work=ratio_block, state=task, total=n, block=BLOCK, name="ratios")
        ratios, fresh = [], Generators.none()
        for number, rays in enumerate(all_blocks(self.executor, blocks, on_done=on_done)):
            ratios.append(rays["ratio"])
            reports = BLOCK * number + np.arange(len(rays["ratio"]))
            columns = generators_of(self.places, rays, reports, step=self.step, deepest=self.depths.deepest)
            fresh = fresh.with_more(columns.of(self._unseen(columns)))
        ratio = np.concatenate(ratios)
        self.best, self.worth = dual, float(dual @ np.minimum(ratio, 1.0))
        self.state = replace(self.state, ratio=ratio)
        self.priced = time.monotonic() - started
        if not fresh.size:
            return False
        if self.matrix is not None:
            self.matrix = replace(self.matrix)  # without its transpose and what is visible of it, twice its size
        matrix, cost = self._fields(fresh)
        if self.matrix is None:
            self.matrix, weight = matrix, self.state.weight[fresh.report]
        else:
            self.matrix = self.matrix.with_more(matrix)
            weight = _FRESH * np.bincount(self.columns.report, self.weight, n).astype(float)[fresh.report]
        self.cost = np.concatenate([self.cost, cost])
        self.weight = np.concatenate([self.weight, weight])
        self.columns = self.columns.with_more(fresh)
        return True

    def _unseen(self, rays: Generators) -> NDArray[np.int64]:
        fresh, coarse = [], max(1, round(_SAME / self.step))
        for k in range(rays.size):
            own = slice(rays.first[k], rays.first[k + 1])
            key = (int(rays.report[k]), rays.place[own].tobytes(), (rays.offset[own] // coarse).tobytes())
            if key not in self.seen:
                self.seen.add(key)
                fresh.append(k)
        return np.array(fresh, np.int64)

    def _fields(self, columns: Generators) -> tuple[Matrix, Vector]:
        task = FieldTask(
            places=self.places,
            units=self.lengths,
            step=self.step,
            columns=columns,
            keep=self.depths.keep,
            reach=self.depths.reach,
        )
        blocked = BlockedWork(work=field_block, state=task, total=columns.size, block=BLOCK, name="fields")
        blocks = all_blocks(self.executor, blocked)
        joined = {name: np.concatenate([arrays[name] for arrays in blocks]) for name in blocks[0]}
        return Matrix.of(joined["count"], joined["place"], joined["value"], self.places.size), joined["cost"]

    def _improve(self, blocks: Blocks) -> float:
        """Better weights and multipliers; the loss of the weights with what their row sums will cost."""
        started = time.monotonic()
        self.weight, dual, loss = self._mastered(blocks, self.weight, self.state.dual, self._latest())
        self.state = replace(self.state, dual=dual)
        self.mastered = time.monotonic() - started
        return loss

    def _level(self, blocks: Blocks) -> None:
        """Repeat the master from where it ended: its pull goes back to the multipliers before, and row sums get closer
        to 1. That is for the weights of the least loss alone: pricing goes on from the first point, as multipliers
        that are the best of the pool are worth less where columns are missing.
        """
        weight, dual, loss = self.weight, self.state.dual, np.inf
        for _ in range(_REPEATS):
            if time.monotonic() > self._latest(0):
                break
            weight, dual, settled_loss = self._mastered(blocks, weight, dual, self._latest(0))
            gained, loss = loss - settled_loss, min(loss, settled_loss)
            if gained < _LEVEL * self.targets.gap * loss or self._gap() <= _ENOUGH * self.targets.gap:
                break

    def _mastered(self, blocks: Blocks, weight: Vector, dual: Vector, deadline: float) -> tuple[Vector, Vector, float]:
        """Weights, multipliers and the loss after a master from others; the weights of the least loss are kept."""
        assert self.matrix is not None
        gap = self._precision()
        weight, dual, sums = improve(self.matrix, blocks, self.cost, weight, dual, gap=gap, deadline=deadline)
        loss = float(self.cost @ weight) * (1 + 2 * self._spent(sums))
        if loss < self.loss:
            self.loss, self.least = loss, weight
        return weight, np.maximum(dual, 0.0), loss

    def _gap(self) -> float:
        """The gap of the best weights, as estimated."""
        return (self.loss - self.worth) / self.loss

    def _precision(self) -> float:
        return max(_SHARE * self.targets.gap, _FINEST)

    def _spent(self, sums: Vector) -> float:
        """The mean share of an edge that goes to the row sums at its ends: a loss of lengths grows by twice as much."""
        edges = self.problem.edges
        return float(np.mean(spent(edges, np.log(sums)) / edges.length))


def _tabled(problem: DesignProblem, table: Vector, duals: list[Vector], stopped: str) -> Design:
    """A table of integers, with the best bound of some multipliers, priced on the whole graph."""
    mass = repair(table, problem.edges, problem.weighted_loss)
    loss = total_cost(mass, problem.weighted_loss)
    pricer = ConePricer.of(problem)
    bounds = [homogeneous_bound(pricer, problem.weighted_loss, dual, loss=loss) for dual in duals]
    best = max(bounds, key=lambda bound: bound.value)
    return Design(mass=mass, loss=loss, dual=best.dual, lower_bound=best.value, stopped=Stop(stopped))
