"""The optimal program over a pool of priced columns, at any size: the mechanism is kept as factors, not as a table.

1. Multipliers from passes on a ladder of grids (solvers/local/).
2. Rounds: every report is priced in its ball; rays that the pool lacks join it as columns, a few generators each
   (fields.py); weights and multipliers move by a proximal interior-point method (master.py). What the priced
   multipliers are worth, sum lambda min(1, rho), and the loss of the weights with what their row sums will cost,
   tell how far apart the bounds will be.
3. Edge budgets, whole numbers, exact row sums (settle.py): a certified mechanism.
4. A bound, proved (solvers/local/certificate.py).

Nothing that the rounds find has to be right. Results do not depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.mechanism.factored.certificate import STEP_BITS
from mechdesign.mechanism.factored.dataset import ProvedBound, make_factored
from mechdesign.mechanism.table.dataset import total_cost
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays, Workers, in_order, threads
from mechdesign.solvers.factored.rounds import Claim, Units
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.kernels.design import Design, Targets
from mechdesign.solvers.kernels.pricing import ConePricer, homogeneous_bound
from mechdesign.solvers.kernels.progress import Progress, Streaming
from mechdesign.solvers.local.bound import settled
from mechdesign.solvers.local.certificate import certify
from mechdesign.solvers.local.passes import Radii, State
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, ratio_block
from mechdesign.solvers.pool.fields import Generators, Spread, field_block, generators_of
from mechdesign.solvers.pool.master import improve
from mechdesign.solvers.pool.matrix import Matrix, Vector
from mechdesign.solvers.pool.schwarz import Blocks
from mechdesign.solvers.pool.settle import Settling, table_of

_BLAS = ThreadpoolController()  # blocks of a few hundred places: more threads cost more than they bring
LARGEST = 50_000  # secrets up to which a pool of columns is made: beyond, minutes become hours
POOLED = 4_900  # secrets from which "auto" solves the optimal program by a pool of columns: 70 x 70
LARGEST_TABLE = 1600  # secrets up to which the result is a table
FEWEST, MOST, WORK = 8, 40, 40_000  # rounds, and reports priced by them where they are few, about
_PASSES = 60  # at most, on the grid itself, before the rounds
_FEW = 3_000  # places up to which wider radii cost nothing
_SAME = 0.01  # nats within which offsets count as equal
_SHARE, _FINEST = 0.2, 2e-4  # of the gap asked for that the master may leave, and the least that it is asked for
_ENOUGH = 0.7  # of the gap asked for: the estimate at which rounds end
_SLOW = 0.9  # share of the gap that a round without another column has to leave behind, or it is the last
_REPEATS = 4  # of the master where its loss is near enough: each levels the row sums further
_FRESH = 0.1  # weight of a column that joins, in that of its report at first
_FAINT = 1e-3  # of the weight of a report: columns below are dropped in the end
_LAST = 0.3  # share of the time limit that is kept for the certificates


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Radii in nats: of the balls of reports, of their cores and of rays (a narrow core gives rays that cost more than
    they promise); below the top of a ray, where its generators are no longer kept; of the fields of columns in the
    master, and of their losses.
    """

    balls: Radii
    deepest: float
    keep: float
    reach: float


USUAL = Depths(balls=Radii(reach=16.0, core=8.0, keep=10.0), deepest=7.0, keep=12.0, reach=18.0)
WIDE = Depths(balls=Radii(reach=30.0, core=20.0, keep=20.0), deepest=18.0, keep=20.0, reach=27.0)


def suits(problem: DesignProblem) -> str | None:
    """Why a problem cannot be solved by a pool of columns; None where it can."""
    if problem.reports is not problem.domain:
        return "reports are other places than the secrets"
    if not problem.metric.sparse:
        return f"the {problem.metric.kind} metric has no short list of edges"
    if problem.loss.code is None:
        return "a loss given as a table is as large as the mechanism"
    return None


def solve_pool(program: Optimal, targets: Targets) -> Design | xr.Dataset:
    """The mechanism of an optimal program, certified, with a proved bound; see the module docstring.

    `stopped` is "gap" (the rounds ended as the gap was in sight; the bounds say whether it was met), "rounds" (all
    done, or no ray that the pool lacks), "time" or "interrupt": a first Ctrl-C ends the rounds, and what the last
    finished one found is certified; a second one ends the run.
    Cost: on a grid of 100 x 100 cells some minutes of a core, of 200 x 200 three quarters of an hour.
    Memory: 16 bytes for every place within 12 nats of a column.
    Raises: UnsuitableError for a problem that `suits` refuses; SizeError beyond 50,000 secrets.
    """
    problem = program.problem
    reason = suits(problem)
    if reason is not None:
        raise UnsuitableError(
            f"cannot be solved by a pool of columns: {reason}",
            field="method",
            value="pool",
            remedy="use the method auto, or fewer places",
        )
    if problem.domain.size > LARGEST:
        raise SizeError(
            f"a pool of columns has at most {LARGEST:,} secrets",
            field="cells",
            value=problem.domain.size,
            remedy="use fewer cells, or the program eikonal",
        )
    with threads() as crew, _BLAS.limit(limits=1):
        search = Search(problem, targets, crew)
        stopped = search.rounds()
        columns, weight = search.kept()
        judged, rows, factor = Settling(problem, crew, columns, weight, told=search.told).certified()
        if problem.domain.size <= LARGEST_TABLE:
            return _tabled(problem, table_of(judged, rows, columns.report), [search.proof, search.best], stopped)
        bound = search.bound()
    return make_factored(
        problem,
        judged,
        rows,
        columns.report,
        program=program.name,
        parameters={**program.parameters(), "gap": targets.gap, "rounds": search.number, "factor": factor},
        diagnosis={},
        stopped=stopped,
        bound=bound,
    )


class Search:
    """A run under way: the pool, its fields, costs and weights, the multipliers, and the weights of the least loss."""

    def __init__(self, problem: DesignProblem, targets: Targets, crew: Workers) -> None:
        self.problem, self.targets, self.crew = problem, targets, crew
        self.started = time.monotonic()
        self.deadline = self.started + targets.time_limit
        self.places = Places.of(problem)
        units = Units.for_lengths(problem.edges.length)
        self.step = float(np.ldexp(units.step, -STEP_BITS))
        self.lengths = units.whole(self.places.length)
        n = self.places.size
        self.depths = WIDE if n <= _FEW else USUAL
        self.state = State(dual=np.zeros(n), weight=np.ones(n), ratio=np.ones(n))
        self.proof, self.best, self.worth = np.zeros(n), np.zeros(n), 0.0
        self.columns, self.cost, self.weight = Generators.none(), np.zeros(0), np.zeros(0)
        self.loss, self.least = np.inf, np.zeros(0)
        self.matrix: Matrix | None = None
        self.seen: set[tuple[int, bytes, bytes]] = set()
        self.number = 0

    def rounds(self) -> str:
        """Rounds of pricing and weighing; why they ended."""
        limit = self.deadline - _LAST * self.targets.time_limit if self.deadline < np.inf else np.inf
        try:
            self.state, _ = settled(self.problem, self.crew, deadline=limit, tell=self._tell, last=_PASSES)
            if not self.state.dual.any():
                return "gap"
            self.proof = self.state.dual
            blocks, near = Blocks(self.places), np.inf
            while self.number < min(max(FEWEST, WORK // self.places.size), MOST):
                if time.monotonic() > limit:
                    return "time"
                grown, before = self._extend(), near
                if self.matrix is None:
                    break
                first = self._improve(blocks, limit)
                self.number += 1
                near, gap = (first - self.worth) / first, (self.loss - self.worth) / self.loss
                self._tell_round(gap)
                if gap <= _ENOUGH * self.targets.gap and near <= self.targets.gap:
                    return "gap"
                if not grown and near > _SLOW * before:
                    break
            return "rounds"
        except KeyboardInterrupt:
            return "interrupt"

    def kept(self) -> tuple[Generators, Vector]:
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
        """The better of the proved bounds of the multipliers of the passes and of the master, which are worth more
        and which the certificate lowers more; None where it is interrupted.
        """
        told = partial(self.told, "bound, certificate", kappa=None)
        best: ProvedBound | None = None
        try:
            best = certify(self.crew, self.places, self.proof, told=told)
            if best.value < self.worth:
                other = certify(self.crew, self.places, self.best, told=told)
                best = max(best, other, key=lambda bound: bound.value)
        except KeyboardInterrupt:
            pass
        return best

    def told(self, stage: str, done: int, kappa: float | None) -> None:
        """Say where the run stands."""
        self._tell(stage, done, self.places.size, kappa)

    def _tell_round(self, gap: float) -> None:
        if self.targets.on_progress is not None:
            self.targets.on_progress(
                Progress(
                    method="pool of columns, estimated",
                    round=self.number - 1,
                    iteration=None,
                    loss=self.loss,
                    lower_bound=self.worth,
                    gap=gap,
                    variables=self.columns.size,
                    constraints=self.places.size,
                    seconds=time.monotonic() - self.started,
                )
            )

    def _tell(self, stage: str, done: int, total: int, kappa: float | None = None) -> None:
        if self.targets.on_progress is not None:
            seconds = time.monotonic() - self.started
            self.targets.on_progress(Streaming(stage=stage, done=done, total=total, kappa=kappa, seconds=seconds))

    def _extend(self) -> bool:
        """Price all reports; rays that the pool lacks join it; whether there were any."""
        dual = self.state.dual
        asked = Asked.all(self.places, dual, **asdict(self.depths.balls), start=self.state.ratio)
        ratio, fresh = np.empty(self.places.size), Generators.none()
        blocks = in_order(self.crew, ratio_block, asked, self.places.size, BLOCK, folder=Folder(), name="ratios")
        with contextlib.closing(blocks):
            for start, stop, found in blocks:
                ratio[start:stop] = found["ratio"]
                reports, deepest = np.arange(start, stop), self.depths.deepest
                rays = generators_of(self.places, found, reports, step=self.step, deepest=deepest)
                fresh = fresh.with_more(rays.of(self._unseen(rays)))
                self.told(f"round {self.number + 1}, pricing", stop, None)
        self.best, self.worth = dual, float(dual @ np.minimum(ratio, 1.0))
        self.state = State(dual=dual, weight=self.state.weight, ratio=ratio)
        if not fresh.size:
            return False
        fields = self._fields(fresh)
        share = 1.0 if self.matrix is None else _FRESH
        held = (
            np.bincount(self.columns.report, self.weight, self.places.size)
            if self.matrix is not None
            else self.state.weight
        )
        self.matrix = fields[0] if self.matrix is None else self.matrix.with_more(fields[0])
        self.cost = np.concatenate([self.cost, fields[1]])
        self.weight = np.concatenate([self.weight, share * held[fresh.report]])
        self.columns = self.columns.with_more(fresh)
        return True

    def _unseen(self, rays: Generators) -> NDArray[np.int64]:
        kept, coarse = [], max(1, round(_SAME / self.step))
        for k in range(rays.size):
            own = slice(rays.first[k], rays.first[k + 1])
            key = (int(rays.report[k]), rays.place[own].tobytes(), (rays.offset[own] // coarse).tobytes())
            if key not in self.seen:
                self.seen.add(key)
                kept.append(k)
        return np.array(kept, np.int64)

    def _fields(self, columns: Generators) -> tuple[Matrix, Vector]:
        spread = Spread(
            places=self.places,
            units=self.lengths,
            step=self.step,
            columns=columns,
            keep=self.depths.keep,
            reach=self.depths.reach,
        )
        blocks = in_order(self.crew, field_block, spread, columns.size, BLOCK, folder=Folder(), name="fields")
        with contextlib.closing(blocks):
            found: list[Arrays] = [arrays for _, _, arrays in blocks]
        joined = {name: np.concatenate([arrays[name] for arrays in found]) for name in found[0]}
        return Matrix.of(joined["count"], joined["place"], joined["value"], self.places.size), joined["cost"]

    def _improve(self, blocks: Blocks, deadline: float) -> float:
        """Better weights and multipliers; the loss of the first point that it comes to, about.

        Once the loss is near enough the master is repeated from where it ended: its pull goes back to the multipliers
        before, and row sums get closer to 1. That is for the point of the least loss that was found alone;
        pricing and the next round go on from the first point.
        """
        assert self.matrix is not None
        gap, weight, dual, loss = max(_SHARE * self.targets.gap, _FINEST), self.weight, self.state.dual, np.inf
        for number in range(1 + _REPEATS):
            point = improve(self.matrix, blocks, self.cost, weight, dual, gap=gap, deadline=deadline)
            weight, dual = point.weight, np.maximum(point.dual, 0.0)
            raw = float(self.cost @ weight)
            found = raw * (1 + 2 * self._spent(point.sums))
            if number == 0:
                self.weight, first = weight, found
                self.state = State(dual=dual, weight=self.state.weight, ratio=self.state.ratio)
            if found < self.loss:
                self.loss, self.least = found, weight
            gained, loss = loss - found, min(loss, found)
            if gained < gap * loss or raw - self.worth > self.targets.gap * raw or time.monotonic() > deadline:
                break
        return first

    def _spent(self, sums: Vector) -> float:
        """The mean share of an edge that goes to the row sums at its ends: a loss of lengths grows by twice as much."""
        edges = self.problem.edges
        return float(np.mean(Claim.whole(edges).spent(sums) / edges.length))


def _tabled(problem: DesignProblem, table: Vector, duals: list[Vector], stopped: str) -> Design:
    """A table of whole numbers, with the best bound of some multipliers, priced on the whole graph."""
    mass = repair(table, problem.edges, problem.weighted_loss)
    loss = total_cost(mass, problem.weighted_loss)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    bounds = [homogeneous_bound(pricer, problem.weighted_loss, dual, loss=loss) for dual in duals]
    found = max(bounds, key=lambda bound: bound.value)
    return Design(mass=mass, loss=loss, dual=found.dual, lower_bound=found.value, stopped=stopped)
