"""Solve a program with limits on the posterior of discs, and verify its tables."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Masses
from mechdesign.base.time_budget import TimeBudget
from mechdesign.errors import DesignError, InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import RESOLUTION, total_cost
from mechdesign.posteriors.block_search import OPTIONS, BlockSearch, design_fields
from mechdesign.posteriors.limits import DiscConstraint
from mechdesign.posteriors.rows import ProgramRows
from mechdesign.programs.coupled import SideRows, stack_rows
from mechdesign.solvers.cone.pricing import best_bound
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.incumbent import Incumbent
from mechdesign.solvers.limits import LimitSolver
from mechdesign.solvers.result import SolveResult, Targets, reporter


class PosteriorLimits(LimitSolver):
    """The solver of `PosteriorCap` and `PosteriorLift`."""

    @cached_property
    def rows(self) -> ProgramRows:
        limits = [limit for limit in self.program.limits if isinstance(limit, DiscConstraint)]
        return ProgramRows([caps for limit in limits for caps in limit.caps(self.program.problem)])

    def solve(self, targets: Targets) -> SolveResult:
        limits = self.rows
        if self.program.convex_inequalities:
            raise InputError(
                "limits on discs can be combined only with linear inequalities",
                field="constraints",
                value=len(self.program.user_inequalities),
            )
        search = BlockSearch(
            program=self.program,
            limits=limits,
            incumbent=Incumbent(
                constant=self.program.problem.constant_loss, target=targets.gap, report=reporter(targets.on_progress)
            ),
            budget=TimeBudget.of(targets.time_limit),
        )
        others = self.program.side_rows()
        return self._solve_with_rows(others, search, targets) if others.size else search.design(search.run())

    def breaches(self, mass: Masses) -> list[str]:
        return self.rows.breaches(mass)

    def stored_rows(self, mechanism: xr.Dataset) -> SideRows | None:
        return self.rows.stored_rows(mechanism)

    def _solve_with_rows(self, others: SideRows, search: BlockSearch, targets: Targets) -> SolveResult:
        """Solve with other linear rows: the coupled program, to which rows that break are added round by round."""
        n, reports = search.cost.shape
        for _ in range(OPTIONS.rounds):
            tightened = self.rows.side_rows(search.rows, reports, search.tighter)
            time_left = max(0.0, search.budget.remaining())
            design = solve_coupled(
                self.program, replace(targets, time_limit=time_left), stack_rows([others, tightened], n * reports)
            )
            if self.rows.hold(design.mass):
                return self._with_bound(design, others, search)
            # Without a new row more rounds cannot help, though the repaired integers break a limit.
            known = len(search.rows)
            search.add_rows(search.next_rows(design.mass / float(ROW_SUM)))
            if len(search.rows) == known:
                break
        raise DesignError(
            "a rare report breaks a limit on discs under the other constraints",
            field="constraints",
            remedy="use a larger share",
        )

    def _with_bound(self, design: SolveResult, others: SideRows, search: BlockSearch) -> SolveResult:
        assert design.multipliers is not None
        n, reports = search.cost.shape
        rows = stack_rows([others, self.rows.side_rows(search.rows, reports)], n * reports)
        # Priced for the limits themselves: a bound for the slightly lower ones of the search could exceed the optimum.
        loss = max(total_cost(design.mass, search.cost), RESOLUTION * search.incumbent.constant)
        bound = best_bound(search.pricer, search.cost, rows, design.dual, design.multipliers, loss=loss)
        assert bound.multipliers is not None
        fields = design_fields(self.rows, search.rows, bound.multipliers[others.size :])
        fields["multipliers"] = np.r_[bound.multipliers[: others.size], fields["multipliers"]]
        return replace(design, dual=bound.dual, lower_bound=bound.value, **fields)
