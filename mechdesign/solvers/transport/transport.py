"""Solve transport programs between places: column generation from coarse to fine, and certify what comes out.

Over a domain the places are grouped (cells in twos per axis), the coarse program is solved in the same way, and its
potentials, extended to the fine places, say which columns are worth starting with: the `_NEAREST` of least reduced cost
of every source and target. Columns are added until pricing all of them closes the gap. A table of distances starts from
its nearest columns. On a line the distribution functions give plan and potentials in closed form.
Memory: the costs (r, c) of what moves, 200 MB where 10,000 places have an excess; no other table of that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.errors import InputError, SolverError
from mechdesign.programs.transport import Excess, Transport, excess
from mechdesign.solvers.kernels.highs import GrowingProgram
from mechdesign.solvers.transport.certificate import Certified, Plan, certify, in_order, nothing_to_move
from mechdesign.solvers.transport.ground import Ground, euclidean, extension
from mechdesign.solvers.transport.network_simplex import TransportTree
from mechdesign.solvers.transport.pricing import cheapest, tightened

Method = Literal["auto", "line", "network", "highs", "statement", "pot"]
Watch = Callable[[int | None, float, float, int], None]  # round, or None at the end; lower, upper, columns
METHODS = ("auto", "line", "network", "highs", "statement", "pot")
STATED = 90_000  # entries of the plan up to which the cvxpy statement is solved
_NEAREST = {"network": 12, "highs": 8}  # columns of least reduced cost per source and target to start with
_MORE = 3  # columns of least reduced cost per source and target that a round adds
_ROUNDS = 200
_PRICED = 1e-12  # a reduced cost below minus this, against the largest cost, counts
_COARSE_GAP = 1e-3  # to which coarse programs are solved
_SMALL = 2500  # entries of the plan under which nothing is grouped


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solution:
    """Values v (c,) at the targets, and what columns (rows, columns) carry: mass; all where costs are at most 1."""

    values: NDArray[np.float64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    mass: NDArray[np.float64]


class _Master(Protocol):
    """A transport program over some of its columns."""

    def add(self, rows: NDArray[np.int64], columns: NDArray[np.int64], cost: NDArray[np.float64]) -> None:
        """More columns."""

    def solve(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float] | None:
        """Potentials u, v and cost of a plan (or more), or None where nothing came of it."""

    def plan(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Rows, columns and masses of the last solution."""


def transport(
    ground: Ground, moved: Excess, *, method: Method = "auto", tolerance: float = 1e-9, watch: Watch | None = None
) -> tuple[Certified, Method]:
    """The certified least cost of moving an excess over the ground distance, and the method that was used.

    "auto" is "line" on a line and "network" (the network simplex method) elsewhere. Stops at a relative gap of
    `tolerance`, or with the gap it has when no column is left that would narrow it.
    Raises: InputError for an unknown method, one that does not fit, or POT where it is not installed; SolverError
    where cvxpy or POT give no point.
    """
    if method not in METHODS:
        raise InputError("unknown method", field="method", value=method, remedy="use one of " + ", ".join(METHODS))
    if method == "auto":
        method = "line" if ground.line else "network"
    if not moved.difference.any():
        return nothing_to_move(ground.size), method
    if not (len(moved.sources) and len(moved.targets)):
        none = np.empty(0, np.int64)
        return certify(ground, moved, np.empty(0), Plan(source=none, target=none, mass=np.empty(0))), method
    if method == "line":
        return _on_a_line(ground, moved), method
    solution, scale = _solved(ground, moved, method, tolerance, watch)
    plan = Plan(source=moved.sources[solution.rows], target=moved.targets[solution.columns], mass=solution.mass)
    return certify(ground, moved, solution.values * scale, plan), method


def _solved(
    ground: Ground, moved: Excess, method: Method, tolerance: float, watch: Watch | None
) -> tuple[_Solution, float]:
    """The solution with costs divided by the largest, and that cost."""
    cost = ground.between(moved.sources, moved.targets)
    scale = float(cost.max())
    if method in ("statement", "pot"):
        program = Transport(supply=moved.supply, demand=moved.demand, cost=cost / scale)
        return (_by_statement if method == "statement" else _by_pot)(program), scale
    values = np.zeros(len(moved.targets))
    if ground.points is not None and ground.index is not None:
        values = _prolonged(ground.points, ground.index, moved, method) / scale
    cost /= scale
    part = float(moved.supply.sum()) * scale
    scaled = None if watch is None else lambda r, low, up, k: watch(r, low * part, up * part, k)
    return _generate(method, moved, cost, values, tolerance, scaled), scale


def _prolonged(
    points: NDArray[np.float64], index: NDArray[np.int64], moved: Excess, method: Method
) -> NDArray[np.float64]:
    """Potentials at the targets of `moved` (c,) from the program over groups of places; zeros where it is small."""
    support = np.concatenate([moved.sources, moved.targets])
    place = index[support]
    place = place - place.min(axis=0)
    if len(moved.sources) * len(moved.targets) <= _SMALL:
        return np.zeros(len(moved.targets))
    half = place >> 1
    _, first, group = np.unique(half @ _strides(half), return_index=True, return_inverse=True)
    count = np.bincount(group)
    centres = np.column_stack([np.bincount(group, axis) / count for axis in points[support].T])
    coarse = excess(np.asarray(np.bincount(group, moved.difference[support]), float))
    if not (len(coarse.sources) and len(coarse.targets)):
        return np.zeros(len(moved.targets))
    guess = _prolonged(centres, half[first], coarse, method)
    cost = euclidean(centres[coarse.sources], centres[coarse.targets])
    scale = float(cost.max())
    found = _generate(method, coarse, cost / scale, guess / scale, _COARSE_GAP, None)
    return extension(points[moved.targets], centres[coarse.targets], found.values * scale)


def _strides(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Factors (k,) that make one number of each row of whole numbers (n, k) >= 0."""
    return np.concatenate([[1], np.cumprod(index.max(axis=0)[:-1] + 1)])


def _generate(
    method: Method, moved: Excess, cost: NDArray[np.float64], guess: NDArray[np.float64], tolerance: float,
    watch: Watch | None,
) -> _Solution:  # fmt: skip
    """Column generation from the values `guess` (c,), for cost (r, c) at most 1."""
    total = float(moved.supply.sum())
    supply, demand = moved.supply / total, moved.demand / float(moved.demand.sum())
    columns = cost.shape[1]
    u, v = tightened(cost, guess)
    known, _ = cheapest(cost, u, v, _NEAREST[method])
    if method == "highs":
        spare, served, _ = in_order(supply, demand)
        known = np.union1d(known, spare * columns + served)
    rows, targets = np.divmod(known, columns)
    price = cost[rows, targets]
    master: _Master
    if method == "network":
        master = tree = TransportTree(supply, demand)
        tree.add(rows, targets, price)
        tree.start(np.argsort(price - u[rows] + v[targets], kind="stable"))
    else:
        master = _HighsMaster(supply, demand)
        master.add(rows, targets, price)
    best, values = -np.inf, v
    for turn in range(_ROUNDS):
        solved = master.solve()
        if solved is None:
            break
        u, v, upper = solved
        feasible, tight = tightened(cost, v)
        lower = float(supply @ feasible - demand @ tight)
        if lower > best:
            best, values = lower, tight
        if watch is not None:
            watch(turn, best, upper, len(known))
        if upper - best <= tolerance / 2 * upper:
            break
        keys, _ = cheapest(cost, u, v, _MORE, -_PRICED)
        keys = np.setdiff1d(keys, known, assume_unique=True)
        if len(keys) == 0:
            break
        known = np.concatenate([known, keys])
        rows, targets = np.divmod(keys, columns)
        master.add(rows, targets, cost[rows, targets])
    rows, targets, mass = master.plan()
    return _Solution(values=values, rows=rows, columns=targets, mass=mass * total)


class _HighsMaster:
    """HiGHS over some columns: masses of mean 1, the last row free, which the others imply.

    The dual simplex method first, the primal one from its basis when columns are added.
    """

    def __init__(self, supply: NDArray[np.float64], demand: NDArray[np.float64]) -> None:
        self._rows, self._size = len(supply), len(supply) + len(demand)
        self._unit = 2 / self._size
        bounds = np.concatenate([supply, demand]) / self._unit
        lower, upper = bounds.copy(), bounds.copy()
        lower[-1], upper[-1] = -np.inf, np.inf
        self._program = GrowingProgram(lower, upper)
        self._keys: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._x = np.empty(0)

    def add(self, rows: NDArray[np.int64], columns: NDArray[np.int64], cost: NDArray[np.float64]) -> None:
        count = len(rows)
        entries = np.column_stack([rows, self._rows + columns]).ravel()
        shape = (self._size, count)
        self._program.add(
            cost, sp.csc_array((np.ones(2 * count), entries, np.arange(0, 2 * count + 1, 2)), shape=shape)
        )
        self._keys.append((rows, columns))

    def solve(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float] | None:
        found = self._program.solve("dual" if len(self._keys) == 1 else "primal")
        if found is None:
            return None
        self._x = found.x
        return found.dual[: self._rows], -found.dual[self._rows :], found.objective * self._unit

    def plan(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        rows, columns = (np.concatenate(parts)[: len(self._x)] for parts in zip(*self._keys, strict=True))
        used = self._x > 0
        return rows[used], columns[used], self._x[used] * self._unit


def _by_statement(program: Transport) -> _Solution:
    """The cvxpy statement in HiGHS without presolve, with masses of mean 1."""
    import cvxpy as cp

    if program.cost.size > STATED:
        raise InputError(
            f"the statement is solved up to {STATED} entries of the plan",
            field="method",
            value=f"{program.cost.shape[0]} x {program.cost.shape[1]} entries",
            remedy='use method="auto"',
        )
    unit = float(program.supply.sum()) * 2 / sum(program.cost.shape)
    statement = Transport(supply=program.supply / unit, demand=program.demand / unit, cost=program.cost).statement()
    statement.solve(solver=cp.HIGHS, presolve="off", primal_feasibility_tolerance=1e-9, dual_feasibility_tolerance=1e-9)
    plan = statement.variables()[0].value
    if plan is None:
        raise SolverError("HiGHS gave no plan", field="method", value=str(statement.status), remedy='use method="auto"')
    rows, columns = np.nonzero(plan > 0)
    values = np.asarray(statement.constraints[2].dual_value, float)
    return _Solution(values=values, rows=rows, columns=columns, mass=plan[rows, columns] * unit)


def _by_pot(program: Transport) -> _Solution:
    """POT's network simplex method on the whole program."""
    try:
        import ot
    except ImportError as error:
        raise InputError(
            "needs POT", field="method", value="pot", remedy="install the extra: pip install 'mechdesign[ot]'"
        ) from error
    total = float(program.supply.sum())
    supply, demand = program.supply / total, program.demand / float(program.demand.sum())
    plan, log = ot.emd(supply, demand, program.cost, numItermax=10**9, log=True, numThreads=1)
    rows, columns = np.nonzero(plan)
    return _Solution(values=-np.asarray(log["v"]), rows=rows, columns=columns, mass=plan[rows, columns] * total)


def _on_a_line(ground: Ground, moved: Excess) -> Certified:
    """In order along the line; the potential falls where mass passes to the right. The distance is int |F_p - F_q|."""
    assert ground.points is not None
    order = np.argsort(ground.points[:, 0])
    line, difference = ground.points[order, 0], moved.difference[order]
    passing = np.cumsum(difference)[:-1]
    potential = np.empty(ground.size)
    potential[order] = np.concatenate([[0.0], np.cumsum(-np.sign(passing) * np.diff(line))])
    rows, columns, mass = in_order(np.maximum(difference, 0.0), np.maximum(-difference, 0.0))
    plan = Plan(source=order[rows], target=order[columns], mass=mass)
    return certify(ground, moved, potential[moved.targets], plan)
