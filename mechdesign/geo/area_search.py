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
from mechdesign.evaluation.position_noise import snapped_noise_loss
from mechdesign.geo import choose
from mechdesign.geo.area import area_problem
from mechdesign.geo.cell_squares import cut_cells
from mechdesign.geo.choice_words import reason_words
from mechdesign.geo.choose import BetweenPositions, CellsReason, Choice, Named, Refused, WithLimit
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
    from mechdesign.positions.program import Positions
    from mechdesign.posteriors.limits import PosteriorCap

TABLES_IN_MEMORY = 8  # tables of doubles over all pairs of cells that a run holds at most, as measured
_MIN_SECONDS = 1.0  # that a search gets although the limit has passed, to return some certified table
_STENCIL = 16  # neighbours of a level that varies: paths are at most 2.8 % longer than straight lines


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaStatement:
    """The problem of an area, stated between positions or between cells."""

    domain: Domain
    level: float | PrivacyLevel
    density: Raster | None
    people: Callable[[Domain], Raster] | None  # their density on squares of cells, if a file has their points
    nats_per_cell: float
    loss: str
    paths: str
    name: str
    parameters: dict[str, Any]

    @property
    def varies(self) -> bool:
        return isinstance(self.level, PrivacyLevel)

    def problem(self, *, positions: bool = False, parts: int = 1) -> DesignProblem:
        """The problem between positions, with `parts` squares along a cell as rows, or between cells."""
        level = self.level
        if positions and not isinstance(level, PrivacyLevel) and "within" in self.parameters:
            from mechdesign.positions.patches import rounding_length

            # Positions are rounded before a draw, which adds to their distance. A level that is lower by this share,
            # and 1 % of it for floating point, keeps the factor at `within` itself.
            level = level / (1 + 1.01 * rounding_length(self.parameters["cell"] / parts) / self.parameters["within"])
        return area_problem(
            self.domain,
            epsilon=level,
            positions=positions,
            density=self.density if parts == 1 or self.people is None else self.people(cut_cells(self.domain, parts)),
            nats_per_cell=self.nats_per_cell,
            stencil=_STENCIL,
            loss=self.loss,
            paths=self.paths,
            parts=parts,
            name=self.name,
            parameters=self.parameters,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaSearch:
    """A problem, its program and positions, and the targets of the search; `ends` is a time of `time.monotonic`."""

    statement: AreaStatement
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
        return max(self.ends - time.monotonic(), _MIN_SECONDS)

    def solve(self) -> tuple[xr.Dataset, DesignProblem, Choice, CellsReason | None]:
        """The mechanism, its problem, the choice of the program, and the reason for cells unless requested."""
        statement, is_explicit = self.statement, self.positions is not None
        reason = None
        if not is_explicit:
            reason = choose.cells_reason(
                statement.domain, statement.loss, varies=statement.varies, program=self.program
            )
        if self.positions != "cells" and reason is None:
            try:
                program, method = self._program_of_positions()
                mechanism = self._between_positions(program, method)
                if not statement.varies:
                    program, method, mechanism = self._no_worse_than_noise(program, method, mechanism)
                problem = program.problem
            except (SizeError, UnsuitableError) as error:
                if is_explicit:
                    raise
                reason = Refused(error.message)
            else:
                if statement.varies and not is_explicit:
                    # No formula predicts the cost of positions where levels vary. Factors between cells take seconds,
                    # so the two are compared.
                    reason = choose.too_costly(position_loss(mechanism), self._cells_loss(), problem.loss_unit)
                if reason is None:
                    parts = round(statement.domain.spacing / problem.domain.spacing)
                    return mechanism, problem, BetweenPositions(method=method, parts=parts), None
        problem = statement.problem()
        check_cell(statement.domain, statement.parameters.get("within"), reason)
        choice: Choice = Named(program=self.program)
        if self.limit is not None:
            choice = WithLimit()
        elif self.program == "auto":
            choice = choose.chosen_program(problem)
        return self._between_cells(problem, choice.program), problem, choice, reason

    def _cells_loss(self) -> float | None:
        """The loss of factors between cells; None if the cells fall into parts, which have no such design."""
        try:
            return position_loss(self._between_cells(self.statement.problem(), "eikonal"))
        except InputError as error:
            if error.field != "mask":
                raise
            return None

    def _program_of_positions(self) -> tuple[Positions, str]:
        """The program between positions with the rows that the rule takes, and its method."""
        from mechdesign.positions.program import Positions

        problem = self.statement.problem(positions=True)
        size = problem.domain.size
        require_memory(size, size, tables=TABLES_IN_MEMORY, noun="any two positions of the area", field="cell")

        def cut(parts: int) -> Positions:
            return Positions(problem if parts == 1 else self.statement.problem(positions=True, parts=parts))

        cones, long = None, self.bound is True
        for parts in choose.cone_parts(problem, long=long):
            program = cut(parts)
            if choose.takes_cones(program, long=long):
                cones = parts
                break
        columns = None if self.statement.varies else choose.column_parts(problem, cones)
        if columns is not None:
            return cut(columns), "columns"
        if cones is not None:
            return program, "cones"
        return program, choose.positions_method(program, explicit=self.positions == "any")

    def _no_worse_than_noise(
        self, program: Positions, method: str, mechanism: xr.Dataset
    ) -> tuple[Positions, str, xr.Dataset]:
        """The design, or certified noise if noise at the position is better by more than the rule allows."""
        from mechdesign.positions.program import Positions

        problem, loss = program.problem, position_loss(mechanism)
        level = float(problem.metric.smallest_level or 0.0)
        if loss is None or level * problem.domain.spacing <= choose.FINE_NATS:
            return program, method, mechanism
        noise = snapped_noise_loss(problem.domain, problem.reports, problem.prior_array, level, problem.loss)
        parts = choose.noise_parts(self.statement.problem(positions=True))
        if parts is None or noise is None or loss <= noise * (1 + choose.MAX_NOISE_EXCESS):
            return program, method, mechanism
        certified = Positions(self.statement.problem(positions=True, parts=parts))
        other = self._between_positions(certified, "noise", bound=self.bound is True)
        other_loss = position_loss(other)
        if other_loss is None or other_loss >= loss:
            return program, method, mechanism
        return certified, "noise", other

    def _between_positions(self, program: Positions, method: str, *, bound: bool | None = None) -> xr.Dataset:
        return solve(
            program,
            gap=self.gap,
            time_limit=self.remaining,
            method=method,
            on_progress=self.on_progress,
            bound=self.bound if bound is None else bound,
        )

    def _between_cells(self, problem: DesignProblem, program: str) -> xr.Dataset:
        if program == "planar-laplace":
            if problem.domain.size > choose.MAX_PAIR_CELLS:
                self.on_note(f"{problem.domain.size:,} cells have {choose.pairs_words(problem.domain)}")
            return planar_laplace_mechanism(problem)
        design_program: Program = EikonalWeights(problem=problem) if program == "eikonal" else Optimal(problem=problem)
        if self.limit is not None:
            design_program = Constrained(problem, constraints=[self.limit])
        bound = self.bound if program == "eikonal" else None
        return solve(design_program, gap=self.gap, time_limit=self.remaining, on_progress=self.on_progress, bound=bound)


def check_cell(domain: Domain, within: float | None, reason: CellsReason | None) -> None:
    """Refuse cells wider than `within`; `reason` explains why only cells are protected."""
    if within is None or domain.spacing <= within:
        return
    cell, radius = (length(size, domain.unit) for size in (domain.spacing, within))
    message = f"a cell of {cell} is wider than the {radius} of `within`, and nothing within a cell is protected"
    remedy = f"use cell={choose.two_digits(within, up=False):g} or less"
    if reason is None:
        remedy += ", or positions='any'"
    else:
        message += f"; only cells are protected because {reason_words(reason)}"
    raise InputError(message, field="cell", value=domain.spacing, remedy=remedy)
