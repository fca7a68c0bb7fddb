"""Mechanisms of the user that are made for a problem: programs, and families f(problem, epsilon) of tables.

A family has two rows: at the epsilon of the metric, and, as "NAME (effective)", at the epsilon at which the table
satisfies exactly that claim. The second is found by

    ln ratio(eps) = 0,    ratio(eps) the largest log-ratio of the table over the claimed distance                   (1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.certificate import max_log_ratio_of_doubles
from mechdesign.output.own_mechanisms import check_name, dataset_for, input_mechanisms, mechanism_for, table_for
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import EXPECTED_LOSS, Program
from mechdesign.solvers.matched import find_crossing
from mechdesign.solvers.solve import program_spec, solve

EFFECTIVE = " (effective)"  # after the name of a family, at its effective epsilon
_RANGE = math.log(1e4)  # of epsilons around the claim: a guess; families of the literature need a factor of 2
_ACCURACY = 1e-8  # of ln eps in (1)
Family = Callable[[DesignProblem, float], ArrayLike]
_BOUND = ("objective", "objective_of", "lower_bound")  # attributes
InputMechanisms = Mapping[str, ArrayLike | xr.Dataset | Program | Family]
Maker = Callable[[float], xr.Dataset]  # from seconds


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnMechanisms:
    """The mechanisms of the user by name: tables that are made, and those that are made for each problem."""

    fixed: Mapping[str, xr.Dataset]
    programs: Mapping[str, Program]
    families: Mapping[str, Family]

    def makers(self, problem: DesignProblem, *, scale: float = 1.0, gap: float = 1e-3) -> dict[str, Maker]:
        """The makers of programs and families for a problem, whose metric is `scale` times that of the programs."""
        makers: dict[str, Maker] = {}
        for name, program in self.programs.items():
            makers[name] = _program_maker(problem, name, _at_scale(program, scale), gap)
        for name, family in self.families.items():
            makers[name] = _family_maker(problem, name, family)
            makers[name + EFFECTIVE] = _effective_maker(problem, name, family)
        return makers


def own_mechanisms(
    problem: DesignProblem, mechanisms: InputMechanisms | None, *, known: Collection[str] = ()
) -> OwnMechanisms:
    """Sort and check the user's tables, Datasets, programs and families by name; known: names that are taken."""
    given = dict(mechanisms or {})
    programs = {name: value for name, value in given.items() if isinstance(value, Program)}
    families = {name: cast(Family, value) for name, value in given.items() if _is_family(value)}
    taken = [*known, *(name + EFFECTIVE for name in families)]
    for name in (*programs, *families):
        check_name(name, taken)
    for name, program in programs.items():
        own = program.problem
        if not own.domain.same_places(problem.domain) or not own.reports.same_places(problem.reports):
            raise InputError("is over other secrets or reports than the problem", field="mechanisms", value=name)
    tables: Any = {name: value for name, value in given.items() if name not in programs and name not in families}
    return OwnMechanisms(
        fixed=input_mechanisms(problem, tables, known=taken),
        programs=programs,
        families=families,
    )


def _is_family(value: object) -> bool:
    return callable(value) and not hasattr(value, "__array__") and not isinstance(value, (Program, xr.Dataset))


def _at_scale(program: Program, scale: float) -> Program:
    if scale == 1:
        return program
    return replace(program, problem=replace(program.problem, metric=scale * program.problem.metric))


def _program_maker(problem: DesignProblem, name: str, program: Program, gap: float) -> Maker:
    def make(seconds: float) -> xr.Dataset:
        solved = solve(program, gap=gap, time_limit=seconds, method=_method_of(program))
        # The bound under the program's own constraints is one of this problem alone.
        kept = _BOUND if program.problem == problem and solved.attrs.get("objective_of") == EXPECTED_LOSS else ()
        return dataset_for(problem, name, solved).assign_attrs({key: solved.attrs[key] for key in kept})

    return make


def _method_of(program: Program) -> str:
    """A comparison is of tables; programs with one method alone make nothing else."""
    return "table" if "table" in program_spec(program).methods else "auto"


def _family_maker(problem: DesignProblem, name: str, family: Family) -> Maker:
    def make(seconds: float) -> xr.Dataset:
        epsilon = nominal_epsilon(problem)
        return mechanism_for(problem, name, _table(problem, name, family, epsilon), claimed_epsilon=epsilon)

    return make


def _effective_maker(problem: DesignProblem, name: str, family: Family) -> Maker:
    def make(seconds: float) -> xr.Dataset:
        epsilon = effective_parameter(problem, name, family)
        return mechanism_for(problem, name, _table(problem, name, family, epsilon), claimed_epsilon=epsilon)

    return make


def nominal_epsilon(problem: DesignProblem) -> float:
    """The epsilon of a metric, times its scale; UnsuitableError without a single one."""
    metric = problem.metric
    stated = metric.stated_level(problem.domain.unit)
    level = metric.smallest_level if stated is None else stated[0]
    if level is None:
        message = "has no single epsilon for a family f(problem, epsilon)"
        raise UnsuitableError(message, field="metric", value=metric.kind, remedy="pass tables instead")
    return float(level)


def effective_parameter(problem: DesignProblem, name: str, family: Family) -> float:
    """The epsilon at which a family satisfies exactly the claim: the root of (1), rounded down."""
    edges = problem.edges

    def missing(log_epsilon: float) -> float:
        worst = max_log_ratio_of_doubles(_table(problem, name, family, math.exp(log_epsilon)), edges)
        # Falling in eps, as `find_crossing` expects.
        return math.inf if worst.value <= 0 else -math.log(worst.value)

    start = math.log(nominal_epsilon(problem))
    root = find_crossing(missing, start, start - _RANGE, start + _RANGE, _ACCURACY)
    if root is None:
        raise UnsuitableError("satisfies the claim at no epsilon", field="mechanisms", value=name)
    # brentq is right to its tolerance on either side.
    return math.exp(root - 4 * _ACCURACY)


def _table(problem: DesignProblem, name: str, family: Family, epsilon: float) -> Matrix:
    return table_for(problem, name, family(problem, epsilon))
