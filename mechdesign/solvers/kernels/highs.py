"""HiGHS: the only file that imports highspy. Solves a LinearProgram; says nothing about privacy.

Warnings while passing the model are errors: HiGHS drops entries <= 1e-9 and refuses those >= 1e15. Crossover is off:
the point is repaired and certified afterwards, and the bound is recomputed from the multipliers. The interior-point
method is HiPO where its package is installed (the extra `hipo`), IPX otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SolverError
from mechdesign.programs.program import LinearProgram

Method = Literal["simplex", "ipm"]
_PRIMAL = 4  # HiGHS's number for the primal simplex method: a vertex stays feasible when only the cost changes


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearSolution:
    """x, the primal point; dual, the multipliers of the linking rows; status, HiGHS's word for it; objective."""

    x: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: str
    objective: float


class CostSeries:
    """One feasible region, many costs: minimises cost x over the rows of a program by the primal simplex method, from
    the vertex that was optimal for the cost before. The cost of the program itself is not used.
    """

    def __init__(self, program: LinearProgram) -> None:
        self._solver: Any = highspy.Highs()
        options = {"output_flag": False, "solver": "simplex", "simplex_strategy": _PRIMAL, "presolve": "off"}
        for name, value in options.items():
            self._solver.setOptionValue(name, value)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, 1e-9)
        status = self._solver.passModel(_model(program))
        if status != highspy.HighsStatus.kOk:
            raise SolverError(
                "HiGHS refused the model", field="program", value=str(status), remedy="rescale the problem"
            )
        self._columns = np.arange(len(program.cost), dtype=np.int32)

    def minimise(self, cost: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vertex x of least cost x. Raises: SolverError where HiGHS ends without an optimal one."""
        self._solver.changeColsCost(len(self._columns), self._columns, cost)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            word = self._solver.modelStatusToString(status)
            raise SolverError("HiGHS found no vertex", field="solver", value=word, remedy="use shorter edges")
        return np.array(self._solver.getSolution().col_value)


def solve_linear_program(
    program: LinearProgram, *, method: Method = "simplex", tolerance: float = 1e-9, time_limit: float = np.inf
) -> LinearSolution:
    """Solve with the dual simplex method or the interior-point method (one thread).

    tolerance: relative optimality tolerance of the interior point; feasibility is asked to 1e-9 in both.
    Raises: SolverError if HiGHS refuses the model, or ends without a finite point.
    """
    solver: Any = highspy.Highs()
    options = {
        "output_flag": False,
        "solver": "hipo" if method == "ipm" and find_spec("highspy_extras") else method,
        "run_crossover": "off",
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "ipm_optimality_tolerance": max(tolerance, 1e-12),
        "time_limit": float(min(time_limit, 1e18)),
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    status = solver.passModel(_model(program))
    if status != highspy.HighsStatus.kOk:
        raise SolverError("HiGHS refused the model", field="program", value=str(status), remedy="rescale the problem")
    solver.run()
    solution = solver.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)[: program.linking]
    word = solver.modelStatusToString(solver.getModelStatus())
    if (
        len(x) != len(program.cost)
        or len(dual) != program.linking
        or not (np.isfinite(x).all() and np.isfinite(dual).all())
    ):
        raise SolverError(
            "HiGHS gave no finite point", field="solver", value=word, remedy="allow more time, or fewer cells"
        )
    return LinearSolution(x=x, dual=dual, status=word, objective=float(solver.getInfo().objective_function_value))


def _model(program: LinearProgram) -> Any:
    matrix = program.matrix
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
