"""The search for an area's mechanism: between any two positions where that is feasible, else between cells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from mechdesign.base.formatting import length
from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.evaluation.loss import position_loss
from mechdesign.geo import choose
from mechdesign.geo.area import area_problem
from mechdesign.geo.choose import BetweenPositions, CellsReason, Choice, Named, Refused, WithLimit
from mechdesign.geo.terminal import reason_words
from mechdesign.problem.domain import Domain
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.raster import Raster
from mechdesign.problem.tables import Note
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.solvers.result import Progress
from mechdesign.solvers.solve import solve

if TYPE_CHECKING:
    from mechdesign.posteriors.limits import PosteriorCap

HELD = 8  # 64-bit numbers for every pair of cells that a run holds at most, as measured
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaStatement:
    """The problem of an area, between positions or cells."""

    domain: Domain
    level: float | PrivacyLevel
    density: Raster | None
    nats_per_cell: float
    loss: str
    paths: str
    name: str
    parameters: dict[str, Any]

    @property
    def varies(self) -> bool:
        return isinstance(self.level, PrivacyLevel)

    def problem(self, *, positions: bool = False) -> DesignProblem:
        level = self.level
        if positions and not isinstance(level, PrivacyLevel) and "within" in self.parameters:
            from mechdesign.positions.patches import rounding_length

            # The factor holds within the radius, rounding of positions included.
            level = level / (1 + 1.01 * rounding_length(self.parameters["cell"]) / self.parameters["within"])
        return area_problem(
            self.domain,
            epsilon=level,
            positions=positions,
            density=self.density,
            nats_per_cell=self.nats_per_cell,
            stencil=16,  # of a level that varies: at most 2.8 % above straight lines
            loss=self.loss,
            paths=self.paths,
            name=self.name,
            parameters=self.parameters,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaSearch:
    """A problem, its program and positions, and the targets of the search; it ends at a moment of `time.monotonic`."""

    stated: AreaStatement
    program: str
    positions: str | None
    limit: PosteriorCap | None
    gap: float
    ends: float
    bound: bool | None
    on_note: Note
    on_progress: Callable[[Progress], None] | None

    @property
    def remaining(self) -> float:
        return max(self.ends - time.monotonic(), _LEAST_SECONDS)

    def solve(self) -> tuple[xr.Dataset, DesignProblem, Choice, CellsReason | None]:
        """The mechanism, its problem, the choice of the program, and why cells alone are protected, if unasked."""
        stated, explicit = self.stated, self.positions is not None
        reason = None
        if not explicit:
            reason = choose.cells_reason(stated.domain, stated.loss, varies=stated.varies, program=self.program)
        if self.positions != "cells" and reason is None:
            problem = stated.problem(positions=True)
            try:
                mechanism, method = self._between_positions(problem)
            except (SizeError, UnsuitableError) as error:
                if explicit:
                    raise
                reason = Refused(error.message)
            else:
                if stated.varies and not explicit:
                    by_cells = position_loss(self._between_cells(stated.problem(), "eikonal"))
                    unit = problem.loss.unit(stated.domain.unit)
                    reason = choose.too_far_off(position_loss(mechanism), by_cells, unit)
                if reason is None:
                    return mechanism, problem, BetweenPositions(method=method), None
        problem = stated.problem()
        check_cell(stated.domain, stated.parameters.get("within"), reason)
        choice: Choice = Named(program=self.program)
        if self.limit is not None:
            choice = WithLimit()
        elif self.program == "auto":
            choice = choose.chosen_program(problem)
        return self._between_cells(problem, choice.program), problem, choice, reason

    def _between_positions(self, problem: DesignProblem) -> tuple[xr.Dataset, str]:
        from mechdesign.positions.program import Positions

        size = problem.domain.size
        require_memory(size, size, tables=HELD, what="any two positions of the area", field="cell")
        program = Positions(problem)
        method = choose.positions_method(program, explicit=self.positions == "any")
        mechanism = solve(
            program,
            gap=self.gap,
            time_limit=self.remaining,
            method=method,
            on_progress=self.on_progress,
            bound=bool(self.bound),
        )
        return mechanism, method

    def _between_cells(self, problem: DesignProblem, program: str) -> xr.Dataset:
        if program == "planar-laplace":
            if problem.domain.size > choose.TABLES:
                self.on_note(f"{problem.domain.size:,} cells have {choose.pairs(problem.domain)}")
            return planar_laplace_mechanism(problem)
        stated: Program = EikonalWeights(problem=problem) if program == "eikonal" else Optimal(problem=problem)
        if self.limit is not None:
            stated = Constrained(problem, constraints=[self.limit])
        bound = self.bound if program == "eikonal" else None
        return solve(stated, gap=self.gap, time_limit=self.remaining, on_progress=self.on_progress, bound=bound)


def check_cell(domain: Domain, within: float | None, reason: CellsReason | None) -> None:
    """Refuse cells wider than the radius within which they are to protect people; reason, why no position is."""
    if within is None or domain.spacing <= within:
        return
    unit = domain.unit
    why = "" if reason is None else f", and cells are protected, because {reason_words(reason)}"
    remedy = f"use cell={choose.two_digits(within, up=False):g} or less"
    raise InputError(
        f"nothing within a cell is protected, and a cell of {length(domain.spacing, unit)} is wider than the "
        f"{length(within, unit)} of `within`{why}",
        field="cell",
        value=domain.spacing,
        remedy=f"{remedy}, or positions='any'" if reason is None else remedy,
    )
