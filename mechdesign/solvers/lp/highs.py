"""HiGHS: the only file that imports highspy. Solves a LinearProgram; knows nothing about privacy."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import highspy
import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.errors import SolverError
from mechdesign.solvers.lp.linear_program import LinearProgram
from mechdesign.solvers.result import Status

Method = Literal["simplex", "ipm"]
_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
}
_DROPPED = 1e-9  # entries of a matrix up to which HiGHS drops them, with a warning
_SMALL = 1e-12  # of a column, below which HiGHS may drop an entry: the smallest value that the option accepts
_INFEASIBLE = 1e-7  # below zero; a point further off was solved from another basis than that of HiGHS
_VERTEX: dict[str, Any] = {"output_flag": False, "solver": "simplex", "threads": 1}
_FEASIBLE = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
# A tolerance, a strategy (1 dual, 4 primal) and presolve, one after another until one ends at an optimal vertex.
_TRIALS: list[dict[str, Any]] = [
    {**dict.fromkeys(_FEASIBLE, tolerance), "simplex_strategy": strategy, "presolve": presolve}
    for tolerance, strategy, presolve in ((1e-10, 1, "off"), (1e-9, 1, "off"), (1e-8, 1, "on"), (1e-7, 4, "on"))
]
_TIGHT: dict[str, Any] = dict.fromkeys(_FEASIBLE, 1e-9)
_CENTRAL: dict[str, Any] = {**_TIGHT, "solver": "ipm", "run_crossover": "off", "presolve": "off"}
_ENDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
_ITERATIONS = 20  # of the simplex method for each row, five times the usual number: beyond, it cycles
_PRIMAL = 4  # HiGHS's number for the primal simplex method: a vertex stays feasible when only the cost changes


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearSolution:
    """Point, multipliers and status at the end of HiGHS."""

    x: Vector
    dual: Vector  # of the linking rows
    status: Status
    objective: float


# Crossover is off: repair certifies the point afterwards, and the bound is recomputed from the multipliers. The
# interior-point method is HiPO if its package is installed (the extra `hipo`), else IPX.
class CostSeries:
    """Minimises many costs over the rows of one program by the primal simplex method, each from the last vertex."""

    # The cost of the program itself is not used.
    def __init__(self, program: LinearProgram) -> None:
        self._solver: Any = highspy.Highs()
        options = {"output_flag": False, "solver": "simplex", "simplex_strategy": _PRIMAL, "presolve": "off"}
        _set(self._solver, {**options, **_TIGHT})
        _pass(self._solver, program)
        self._columns = np.arange(len(program.cost), dtype=np.int32)

    def minimise(self, cost: Vector) -> Vector:
        """A vertex of minimum cost; raises SolverError if HiGHS does not find one."""
        self._solver.changeColsCost(len(self._columns), self._columns, cost)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            word = self._solver.modelStatusToString(status)
            raise SolverError("HiGHS found no vertex", field="solver", value=word)
        return np.array(self._solver.getSolution().col_value)


class ColumnMaster:
    """minimise c x subject to A x = right in the first `linking` rows, A x <= right in the others, x >= 0."""

    # unit: of the costs, per row. A column is divided by the sum of its linking rows. HiGHS gets no entries below
    # `_SMALL`; `_from_basis` solves with them.
    def __init__(self, *, right: Vector, linking: int, unit: float) -> None:
        self._right, self._linking, self._unit, self._first = right, linking, unit, True
        self._solver: Any = highspy.Highs()
        _set(self._solver, {**_VERTEX, "small_matrix_value": _SMALL})
        lower = np.where(np.arange(len(right)) < linking, right, -np.inf)
        empty = sp.csr_array((len(right), 0))
        self._solver.passModel(
            _model(LinearProgram(cost=np.zeros(0), matrix=empty, row_lower=lower, row_upper=right, linking=len(right)))
        )
        self._columns, self._cost, self._sum = np.empty((0, len(right))), np.empty(0), np.empty(0)

    def add(self, columns: Matrix, cost: Vector) -> None:
        """Add columns (k, rows) with their costs (k,)."""
        # Rays range over many magnitudes; divided by their sums, all columns are alike to absolute tolerances.
        total = columns[:, : self._linking].sum(axis=1)
        total[total == 0] = 1.0
        scaled, k = columns / total[:, None], len(cost)
        matrix = sp.csr_array(np.where(np.abs(scaled) > _SMALL, scaled, 0.0))
        status = self._solver.addCols(
            k, cost / (total * self._unit), np.zeros(k), np.full(k, highspy.kHighsInf), matrix.nnz,
            matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32), matrix.data,
        )  # fmt: skip
        if status != highspy.HighsStatus.kOk:
            raise SolverError("HiGHS refused columns", field="rays", value=str(status))
        self._columns = np.concatenate([self._columns, scaled])
        self._cost = np.concatenate([self._cost, cost / (total * self._unit)])
        self._sum = np.concatenate([self._sum, total])

    def solve(self, time_limit: float, *, interior: float | None = None) -> LinearSolution:
        """The optimal vertex; or the centre of the optima to a relative tolerance `interior`, by interior points."""
        # HiGHS counts its time over all runs; 1e18 stands for infinity, which the option does not accept.
        ends = min(self._solver.getRunTime() + time_limit, 1e18)
        if interior is not None:
            self._solver.clearSolver()
            _set(self._solver, {**_CENTRAL, "ipm_optimality_tolerance": max(interior, 1e-12), "time_limit": ends})
            self._solver.run()
            # Without crossover the next simplex run has to start without a basis.
            self._solver.setOptionValue("solver", "simplex")
            self._first = True
            return self._solution()
        max_iterations = _ITERATIONS * len(self._right)
        for trial in _TRIALS:
            options = {**trial, "time_limit": ends, "simplex_iteration_limit": max_iterations}
            if trial is not _TRIALS[0]:
                self._solver.clearSolver()
            # New columns leave the last vertex primal feasible.
            elif not self._first:
                options["simplex_strategy"] = _PRIMAL
            _set(self._solver, options)
            self._solver.run()
            self._first = False
            if self._solver.getModelStatus() in _ENDED:
                break
        return self._solution(vertex=True)

    def _solution(self, *, vertex: bool = False) -> LinearSolution:
        word = self._solver.modelStatusToString(self._solver.getModelStatus())
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError("HiGHS found no optimum", field="solver", value=word)
        solution = self._solver.getSolution()
        x, dual = np.array(solution.col_value), np.array(solution.row_dual)
        if vertex:
            x, dual = self._from_basis(x, dual)
        objective = float(self._cost @ x) * self._unit
        return LinearSolution(x=x / self._sum, dual=dual * self._unit, status=Status.OPTIMAL, objective=objective)

    def _from_basis(self, x: Vector, dual: Vector) -> tuple[Vector, Vector]:
        """Point and multipliers solved for from the basis with one refinement; the given ones if that fails."""
        # A logical variable in the basis takes its row out and leaves its multiplier 0.
        basis = self._solver.getBasis()
        basic = np.flatnonzero([status == highspy.HighsBasisStatus.kBasic for status in basis.col_status])
        rows = np.flatnonzero([status != highspy.HighsBasisStatus.kBasic for status in basis.row_status])
        if len(basic) != len(rows) or len(basic) == 0:
            return x, dual
        matrix, cost, right = self._columns[basic][:, rows], self._cost[basic], self._right[rows]
        try:
            factors = scipy.linalg.lu_factor(matrix.T, check_finite=False)
        except (scipy.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
            return x, dual
        value = scipy.linalg.lu_solve(factors, right)
        value += scipy.linalg.lu_solve(factors, right - matrix.T @ value)
        price = scipy.linalg.lu_solve(factors, cost, trans=1)
        price += scipy.linalg.lu_solve(factors, cost - matrix @ price, trans=1)
        if not (np.isfinite(value).all() and np.isfinite(price).all()) or value.min() < -_INFEASIBLE:
            return x, dual
        point, multipliers = np.zeros_like(x), np.zeros_like(dual)
        point[basic], multipliers[rows] = np.maximum(value, 0.0), price
        return point, multipliers


def solve_linear_program(
    program: LinearProgram, *, method: Method = "simplex", tolerance: float = 1e-9, time_limit: float = np.inf
) -> LinearSolution:
    """Solve with the dual simplex or the interior-point method, in one thread; raises SolverError without a point."""
    solver: Any = highspy.Highs()
    options = {
        **_TIGHT,
        "output_flag": False,
        "solver": "hipo" if method == "ipm" and find_spec("highspy_extras") else method,
        "run_crossover": "off",
        "ipm_optimality_tolerance": max(tolerance, 1e-12),
        "time_limit": float(min(time_limit, 1e18)),
    }
    _set(solver, options)
    _pass(solver, program)
    solver.run()
    solution = solver.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)[: program.linking]
    ended = solver.getModelStatus()
    complete = len(x) == len(program.cost) and len(dual) == program.linking
    if not (complete and np.isfinite(x).all() and np.isfinite(dual).all()):
        message = "HiGHS gave no finite point: allow more time, or use fewer cells"
        raise SolverError(message, field="solver", value=solver.modelStatusToString(ended))
    objective = float(solver.getInfo().objective_function_value)
    return LinearSolution(x=x, dual=dual, status=_STATUS.get(ended, Status.OTHER), objective=objective)


def _set(solver: Any, options: dict[str, Any]) -> None:
    for name, value in options.items():
        solver.setOptionValue(name, value)


def _pass(solver: Any, program: LinearProgram) -> None:
    status = solver.passModel(_model(program))
    # A warning is an error here: it can mean that the model was changed.
    if status != highspy.HighsStatus.kOk:
        raise SolverError("HiGHS refused the model", field="program", value=str(status))


def _model(program: LinearProgram) -> Any:
    # Entries that HiGHS would drop with a warning, which `_pass` treats as an error.
    matrix = program.matrix.copy()
    matrix.data[np.abs(matrix.data) <= _DROPPED] = 0.0
    matrix.eliminate_zeros()
    model = highspy.HighsLp()
    model.num_col_ = len(program.cost)
    model.num_row_ = matrix.shape[0]
    model.col_cost_ = program.cost
    model.col_lower_ = np.zeros(len(program.cost))
    model.col_upper_ = np.full(len(program.cost), highspy.kHighsInf)
    model.row_lower_ = np.where(np.isinf(program.row_lower), -highspy.kHighsInf, program.row_lower)
    model.row_upper_ = np.where(np.isinf(program.row_upper), highspy.kHighsInf, program.row_upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model
