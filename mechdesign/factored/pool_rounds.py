"""Rounds of a pool: pricing finds columns, the master moves their weights and the multipliers."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.arrays import Indices, Integers, Vector
from mechdesign.factored.ascent import DualState, below_costs
from mechdesign.factored.ball import Places
from mechdesign.factored.column_certifier import spare_lengths
from mechdesign.factored.columns import Columns
from mechdesign.factored.dataset import ProvedBound
from mechdesign.factored.field_matrix import FieldMatrix
from mechdesign.factored.fields import FieldTask, columns_of, field_block
from mechdesign.factored.ladder import ladder_state
from mechdesign.factored.local_bound import certify_bound
from mechdesign.factored.pool_master import PlaceBlocks, improve
from mechdesign.factored.pricing import BLOCK, LEFT_OUT, TREE_ARRAYS, LastTrees, PricingTask, Radii, ratio_block
from mechdesign.factored.rounds import Units
from mechdesign.factored.work_folder import BlockedWork, Workers, all_blocks
from mechdesign.problem.losses import APART, LENGTH
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.eikonal.row_sum_budget import used_slack
from mechdesign.solvers.result import Targets, counter, reporter


@dataclass(frozen=True, kw_only=True)
class PoolConstants:
    """Constants of the rounds: guesses that trade time for the gap; nothing that is proved depends on them."""

    fewest_rounds: int = 14
    most_rounds: int = 40
    priced_reports: int = 100_000  # in all rounds, about
    first_passes: int = 3  # before the rounds, on a grid that starts from a coarser one
    few_places: int = 3_000  # up to which wider radii cost nothing
    kept: float = 0.35  # share of the lowering by neighbours that the certificate spares; measured on two maps
    growth: float = 1.3  # of a loss by the share of lengths that row sums and rounding take; measured on two maps
    growth_squared: float = 1.6
    pull: float = 3.0  # kappa of pool_master.py, in rounds
    levelling_pull: float = 30.0  # the same for levelling: 3 needs five masters for the same row sums
    same: float = 0.01  # nats within which offsets count as equal
    master_share: float = 0.2  # of the gap asked for, that the master may leave
    master_gap: float = 2e-4  # the least relative gap that the master is asked for
    enough: float = 0.95  # of the gap asked for: estimate after levelling at which rounds end at first
    levelled: float = 0.75  # of the gap that levelling leaves, before it was measured: 0.65 to 0.8 on two maps
    caution: float = 0.9  # factor on `enough` after a certificate that misses the gap, beyond the share missed
    attempts: int = 3  # certificates, at most
    slow: float = 0.9  # share of the gap before: a round that leaves more, and finds no column, is the last
    repeats: int = 12  # of the master, each levels row sums further
    repeat_gain: float = 0.02  # of the gap asked for, that a repeat gains at least
    fresh: float = 0.1  # weight of a column that joins, in that of its report
    faint: float = 1e-3  # of the weight of a report: columns below are dropped in the end
    certificate_share: float = 0.3  # of the time limit, kept for the certificates at most
    certificates: float = 5.0  # passes of pricing that the certificates take, about
    last_repeats: int = 2  # of the master before the certificates
    bound_reach: float = 18.0  # nats, of the balls of the certificate
    bound_core: float = 10.0  # narrower ones than in pricing lose 0.09 %, measured on Philadelphia

    def rounds(self, size: int) -> int:
        return min(max(self.fewest_rounds, self.priced_reports // size), self.most_rounds)


CONSTANTS = PoolConstants()


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Radii in nats."""

    balls: Radii  # of reports: a narrow core gives rays that cost more than they promise
    deepest: float  # below the top of a ray, to which its generators are kept
    keep: float  # of the fields of columns in the master
    reach: float  # of the losses of columns


USUAL = Depths(balls=Radii(reach=16.0, core=8.0, keep=10.0), deepest=7.0, keep=12.0, reach=18.0)
WIDE = Depths(balls=Radii(reach=30.0, core=20.0, keep=20.0), deepest=18.0, keep=20.0, reach=27.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Columns with the data of the master."""

    columns: Columns
    target: Indices  # (c,), the places that they report
    cost: Vector  # (c,), expected losses
    weight: Vector  # (c,)
    matrix: FieldMatrix  # their fields

    def with_more(self, more: Pool) -> Pool:
        return Pool(
            columns=Columns.concatenate([self.columns, more.columns]),
            target=np.concatenate([self.target, more.target]),
            cost=np.concatenate([self.cost, more.cost]),
            weight=np.concatenate([self.weight, more.weight]),
            matrix=self.matrix.with_more(more.matrix),
        )


class PoolRun:
    """A run under way: the pool, the multipliers, and the weights of the least loss."""

    def __init__(self, problem: DesignProblem, targets: Targets, executor: Workers) -> None:
        self.problem, self.targets, self.executor = problem, targets, executor
        self.report = reporter(targets.on_progress)
        self.deadline = time.monotonic() + targets.time_limit
        self.places = Places.of(problem)
        units = Units.for_lengths(problem.edges.length)
        self.step = units.nats
        self.lengths = units.quantise(self.places.graph.length)
        # Lengths are rounded down, by half a unit on average.
        self.rounded = spare_lengths(problem.edges, units) + units.nats / 2
        n = self.places.size
        self.depths = WIDE if n <= CONSTANTS.few_places else USUAL
        self.state = DualState(dual=np.zeros(n), weight=np.ones(n), ratio=np.ones(n))
        self.pool: Pool | None = None
        self.seen: set[tuple[int, bytes, bytes]] = set()  # columns of the pool, offsets rounded
        self.number = 0  # of rounds that ended
        self.first_dual, self.best_dual = np.zeros(n), np.zeros(n)
        self.best_bound = 0.0  # of `best_dual`, estimated
        self.least_loss, self.best_weight = np.inf, np.zeros(0)
        self.pricing_seconds = self.master_seconds = 0.0  # of the last ones
        self.enough = CONSTANTS.enough

    def rounds(self) -> str:
        stopped = interrupts.interruptible(self._rounds, "interrupt")
        if self.pool is not None:  # a copy without cached gigabytes that the certificates do not need
            self.pool = replace(self.pool, matrix=replace(self.pool.matrix))
        return stopped

    def _rounds(self) -> str:
        if not self.number:
            self.state, _ = ladder_state(
                self.problem, self.executor, deadline=self._latest(), report=self.report, last=CONSTANTS.first_passes
            )
            if not self.state.dual.any():
                return "gap"
            self.first_dual = self.best_dual = self.state.dual
        blocks, wanted = PlaceBlocks(self.places), self.targets.gap
        max_rounds = CONSTANTS.rounds(self.places.size)
        first_gap, stopped, seconds, is_levelled = np.inf, "rounds", 0.0, False
        levelled = CONSTANTS.levelled
        while self.number < max_rounds:
            started = time.monotonic()
            if started + seconds > self._latest():
                stopped = "time"
                break
            has_grown, before = self._extend(), first_gap
            if self.pool is None:
                break
            first = self._improve(blocks)
            self.number += 1
            first_gap, seconds = relative_gap(first, self.best_bound), time.monotonic() - started
            # Levelling costs several masters, so it waits until it promises the gap, or nothing else helps.
            is_slow = first_gap > CONSTANTS.slow * before
            is_levelled = levelled * first_gap <= self.enough * wanted or (is_slow and not has_grown)
            if is_levelled:
                self._level(blocks)
            # The priced multipliers and the loss with the cost of row sums estimate the final gap.
            gap = self._gap()
            size = {"variables": self.pool.columns.size, "constraints": self.places.size}
            bounds = {"loss": self.least_loss, "lower_bound": self.best_bound, "gap": gap}
            self.report("pool of columns, estimated", round=self.number - 1, **bounds, **size)
            if is_levelled:
                if gap <= self.enough * wanted:
                    return "gap"
                levelled = gap / first_gap
            if is_slow and not has_grown:
                break
        if self.number and not is_levelled:
            self._level(blocks)
        return stopped

    def _latest(self, repeats: int = CONSTANTS.last_repeats) -> float:
        # Rounds end early enough that `repeats` of the master and the certificates fit in the time limit.
        rest = CONSTANTS.certificate_share * self.targets.time_limit
        if self.pricing_seconds:
            rest = min(rest, CONSTANTS.certificates * self.pricing_seconds + repeats * self.master_seconds)
        return self.deadline - rest if self.deadline < np.inf else np.inf

    def used_columns(self) -> tuple[Columns, Integers, Vector]:
        # Before any round: the column of every place, with the weights of the ladder.
        n = self.places.size
        if self.pool is None or not len(self.best_weight):
            every = np.arange(n)
            columns = Columns(place=every, offset=np.zeros(n, np.int64), first=every)
            return columns, every, self.state.weight
        target = self.pool.target[: len(self.best_weight)]
        of_report = np.bincount(target, self.best_weight, n)[target]
        used = np.flatnonzero(self.best_weight > CONSTANTS.faint * of_report)
        return self.pool.columns.select(used), target[used], self.best_weight[used]

    def bound(self) -> ProvedBound | None:
        on_done = counter(self.report, "bound, certificate", self.places.size)

        def certify() -> ProvedBound:
            radii = Radii(reach=CONSTANTS.bound_reach, core=CONSTANTS.bound_core).around(self.places)
            reach, core = radii.reach, radii.core
            return certify_bound(self.executor, self.places, self.best_dual, reach=reach, core=core, on_done=on_done)

        return interrupts.interruptible(certify, None)

    def _extend(self) -> bool:
        started, n, state, dual = time.monotonic(), self.places.size, self.state, self.state.dual
        radii = self.depths.balls.around(self.places)
        task = PricingTask.all(self.places, dual, **asdict(radii), start=state.ratio, last=state.trees)
        on_done = counter(self.report, f"round {self.number + 1}, pricing", n)
        blocked = BlockedWork(work=ratio_block, state=task, total=n, block=BLOCK, name="ratios")
        ratios, trees, fresh, targets, outside = [], [], [], [], []
        for number, rays in enumerate(all_blocks(self.executor, blocked, on_done=on_done)):
            ratios.append(rays["ratio"])
            outside.append({name: rays[name] for name in LEFT_OUT})
            reports = BLOCK * number + np.arange(len(rays["ratio"]))
            columns = columns_of(self.places, rays, step=self.step, deepest=self.depths.deepest)
            unseen = self._unseen(columns, reports)
            # A known ray of negative price teaches the master nothing: the next pricing starts anew, and often ends at
            # another ray of about the same price.
            stale = rays["ratio"] < 1 - CONSTANTS.master_share * self.targets.gap
            stale[unseen] = False
            trees.append(
                {name: rays[name] for name in TREE_ARRAYS} | {"core_hash": np.where(stale, 0, rays["core_hash"])}
            )
            if len(unseen):
                fresh.append(columns.select(unseen))
                targets.append(reports[unseen])
        ratio = np.concatenate(ratios)
        # Only priced multipliers estimate a bound: the master knows the columns of the pool alone. The certificate will
        # lower some near a report whose ratio is below 1, and those of places that cannot be left out.
        edges, least = self.problem.edges, np.minimum(ratio, 1.0)
        near = least.copy()
        np.minimum.at(near, edges.tail, least[edges.head])
        np.minimum.at(near, edges.head, least[edges.tail])
        lowered = near + CONSTANTS.kept * (least - near)
        self.best_dual, self.best_bound = dual, float(below_costs(self.places, dual, outside) @ lowered)
        self.state = replace(state, ratio=ratio, trees=LastTrees.of(trees))
        self.pricing_seconds = time.monotonic() - started
        if fresh:
            self._add(Columns.concatenate(fresh), np.concatenate(targets))
        return bool(fresh)

    def _unseen(self, columns: Columns, reports: Integers) -> Integers:
        unseen, coarse = [], max(1, round(CONSTANTS.same / self.step))
        bounds = columns.bounds
        for k in range(columns.size):
            part = slice(bounds[k], bounds[k + 1])
            # Rounded offsets: a ray that differs by less than 0.01 nats brings nothing new.
            key = (int(reports[k]), columns.place[part].tobytes(), (columns.offset[part] // coarse).tobytes())
            if key not in self.seen:
                self.seen.add(key)
                unseen.append(k)
        return np.array(unseen, np.int64)

    def _add(self, columns: Columns, target: Integers) -> None:
        if self.pool is None:
            start_weight = self.state.weight
        else:
            of_report = np.bincount(self.pool.target, self.pool.weight, self.places.size)
            start_weight = CONSTANTS.fresh * of_report.astype(float)
            # A copy without the cached transpose and visible part, which take twice its size.
            self.pool = replace(self.pool, matrix=replace(self.pool.matrix))
        matrix, cost = self._fields(columns, target)
        fresh = Pool(columns=columns, target=target, cost=cost, weight=start_weight[target], matrix=matrix)
        self.pool = fresh if self.pool is None else self.pool.with_more(fresh)

    def _fields(self, columns: Columns, target: Integers) -> tuple[FieldMatrix, Vector]:
        task = FieldTask(
            places=self.places,
            units=self.lengths,
            step=self.step,
            columns=columns,
            target=target,
            keep=self.depths.keep,
            reach=self.depths.reach,
        )
        blocked = BlockedWork(work=field_block, state=task, total=columns.size, block=BLOCK, name="fields")
        blocks = all_blocks(self.executor, blocked)
        joined = {name: np.concatenate([arrays[name] for arrays in blocks]) for name in blocks[0]}
        return FieldMatrix.of(joined["count"], joined["place"], joined["value"], self.places.size), joined["cost"]

    def _improve(self, blocks: PlaceBlocks) -> float:
        assert self.pool is not None
        started = time.monotonic()
        weight, dual, loss = self._master(blocks, self.pool.weight, self.state.dual, CONSTANTS.pull, self._latest())
        self.pool = replace(self.pool, weight=weight)
        self.state = replace(self.state, dual=dual)
        self.master_seconds = time.monotonic() - started
        return loss

    def _level(self, blocks: PlaceBlocks) -> None:
        # Repeats from the last point bring row sums closer to 1.
        # Pricing continues from the first point, not from here: the best multipliers of the pool overrate missing
        # columns.
        assert self.pool is not None
        weight, dual, loss = self.pool.weight, self.state.dual, np.inf
        for _ in range(CONSTANTS.repeats):
            if time.monotonic() > self._latest(0):
                break
            weight, dual, levelled_loss = self._master(blocks, weight, dual, CONSTANTS.levelling_pull, self._latest(0))
            gained, loss = loss - levelled_loss, min(loss, levelled_loss)
            wanted = self.targets.gap
            if gained < CONSTANTS.repeat_gain * wanted * loss or self._gap() <= self.enough * wanted:
                break

    def _master(
        self, blocks: PlaceBlocks, weight: Vector, dual: Vector, pull: float, deadline: float
    ) -> tuple[Vector, Vector, float]:
        # The mechanism is made from the weights of the smallest loss, which need not be the last.
        assert self.pool is not None
        gap = max(CONSTANTS.master_share * self.targets.gap, CONSTANTS.master_gap)
        cost, target = self.pool.cost, self.pool.target
        weight, dual, sums = improve(
            self.pool.matrix, blocks, cost, weight, dual, pull=pull, gap=gap, deadline=deadline
        )
        # Rows are divided by their sums, and most of a column lies near the place that it reports.
        straight = self.problem.loss.code in (LENGTH, APART)
        growth = CONSTANTS.growth if straight else CONSTANTS.growth_squared
        loss = float(cost @ (weight / sums[target])) * (1 + growth * self._lost_share(sums))
        if loss < self.least_loss:
            self.least_loss, self.best_weight = loss, weight
        return weight, np.maximum(dual, 0.0), loss

    def _gap(self) -> float:
        return relative_gap(self.least_loss, self.best_bound)

    def _lost_share(self, sums: Vector) -> float:
        # The mean share of an edge that the row sums at its ends and rounding take.
        edges = self.problem.edges
        return float(np.mean((used_slack(edges, np.log(sums)) + self.rounded) / edges.length))


def relative_gap(loss: float, bound: float) -> float:
    """The gap of a loss, relative to it."""
    return (loss - bound) / loss if loss > 0 else 0.0
