"""Comparison of programs, baselines and the user's mechanisms on one problem, one row each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import xarray as xr

from mechdesign.base.formatting import Column, Rounding
from mechdesign.base.memory import require_memory
from mechdesign.base.progress import progress_if
from mechdesign.base.registry import Role
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.table import ANYWHERE, BASELINES, FREQUENCY_ORACLES
from mechdesign.errors import InputError, MechdesignError, SizeError, SolverError, UnsuitableError
from mechdesign.evaluation.loss import constant_loss, expected_distance, position_loss
from mechdesign.evaluation.remap import remapped_loss
from mechdesign.mechanism.figures import relative_gap
from mechdesign.output.own_makers import EFFECTIVE, InputMechanisms, own_mechanisms
from mechdesign.output.text_tables import where_possible
from mechdesign.problem.lattice import check_connected
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.matched import MatchedOptimal
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import EXPECTED_LOSS, Program
from mechdesign.programs.queries import QueryWeights
from mechdesign.solvers.matched import effective_epsilon, matched_families
from mechdesign.solvers.solve import SOLVERS, TABLES, check_targets, solve

# Edge lengths are rounded down by up to 2^-43, so a mechanism that is exactly at the claim may show this much above 1.
AT_CLAIM = 1 + 2.0**-40
POSITIONS = "positions"  # of `claim_over`
ANY, PROGRAM = "any mechanism", "the program"  # of `lower_bound_of`
COLUMNS = (
    Column("loss", "loss"),
    Column("lower bound", "lower_bound", Rounding.DOWN),
    Column("gap", "gap", is_share=True),
    Column("remapped loss", "remapped_loss"),
    Column("distance", "expected_distance"),
    Column("claimed eps", "claimed_epsilon", Rounding.NEAREST),
    Column("effective eps", "effective_epsilon"),
    Column("ratio", "ratio", digits=5),
    Column("rank", "rank", Rounding.NEAREST),
    Column("asymptotic MSE", "asymptotic_mse", Rounding.NEAREST),
)
POSITION_COLUMNS = (Column("position loss", "position_loss"), Column("claim over", "claim_over"))  # of both kinds
_SHARE = 0.6  # of the remaining time, for one solve (a guess): later solves still get some
_SHORTEST = 1e-3  # seconds, at least, for one solve
Maker = Callable[[], xr.Dataset]


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """Figures of one mechanism, None if one does not exist. Losses are in loss units, distances in units of length.

    - lower_bound_of: "any mechanism" with this claim, or "the program": any that meets its other constraints too.
    - claimed_epsilon, effective_epsilon: in nats per unit (randomized response: nats). For a Euclidean metric the
      effective one is the largest log-ratio per unit over all pairs, for others claimed_epsilon times ratio.
    - ratio: the largest log-ratio over the claimed distance. Levels and ratio are of the claim over claim_over, "cells"
      or "positions". A row_ratio may exceed 1 for positions, which draw from spline means of rows.
    - epsilon_lower_bound: no mechanism that is private below it has the matched distance.
    - rank: below the number of secrets, no number of reports identifies their distribution.
    - asymptotic_mse: the number of reports times the mean squared error of the estimated distribution, in squared units
      (dual Sobolev norm H^-1 at the prior). None if the rank is too low. Beyond 1,600 secrets both are None.
    - position_loss: the loss to the true position, uniform in its cell.
    """

    mechanism: str
    loss: float
    lower_bound: float | None = None
    lower_bound_of: str | None = None
    gap: float | None = None
    remapped_loss: float | None
    expected_distance: float | None
    claimed_epsilon: float | None
    effective_epsilon: float | None
    ratio: float
    epsilon_lower_bound: float | None = None
    rank: int | None
    asymptotic_mse: float | None
    position_loss: float | None
    claim_over: str
    row_ratio: float | None

    @property
    def is_private_between_cells(self) -> bool:
        """True if the rows of the mechanism satisfy the claim of the problem, and reports are drawn from these rows."""
        return self.claim_over != POSITIONS and self.ratio <= AT_CLAIM

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def makers(
    problem: DesignProblem,
    *,
    gap: float = 1e-3,
    time_limit: float = float("inf"),
    frequency_oracles: bool = False,
    positions: bool = False,
) -> dict[str, Maker]:
    """The functions that make the mechanisms of `compare`, by row name."""
    # At a matched distance mechanisms are compared by epsilon, so each family is tuned to that distance.
    if problem.matched_distance is not None:
        optimal = partial(solve, MatchedOptimal(problem=problem), gap=gap, time_limit=time_limit)
        return matched_families(problem) | {"optimal": optimal}
    ends = time.monotonic() + time_limit

    def within_share(program: Callable[[DesignProblem], Program], **options: Any) -> Maker:
        """A maker whose solve gets a share of the time that remains when it starts."""
        return lambda: solve(program(problem), time_limit=max(_SHARE * (ends - time.monotonic()), _SHORTEST), **options)

    makers_by_name = {"optimal": within_share(Optimal, gap=gap)}
    if problem.query is not None:
        makers_by_name["query"] = within_share(QueryWeights)
    if positions:
        if "positions" in SOLVERS:
            makers_by_name["positions"] = within_share(SOLVERS["positions"].program, gap=gap)
        makers_by_name |= {name: partial(make, problem) for name, make in ANYWHERE.items()}
    makers_by_name["eikonal"] = within_share(EikonalWeights, method="table")
    forms = {**BASELINES, **(FREQUENCY_ORACLES if frequency_oracles else {})}
    return makers_by_name | {name: partial(make, problem) for name, make in forms.items()}


def each_mechanism(
    problem: DesignProblem,
    *,
    gap: float = 1e-3,
    time_limit: float = float("inf"),
    only: Sequence[str] | None = None,
    mechanisms: InputMechanisms | None = None,
    frequency_oracles: bool = False,
    positions: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> Iterator[tuple[str, xr.Dataset | MechdesignError]]:
    """Make the mechanisms (those in `only`), each with its row name, or its error. Ctrl-C ends with the current one."""
    check_targets(gap, time_limit)
    # `only` may name a row of either optional kind.
    known = makers(
        problem,
        gap=gap,
        time_limit=time_limit,
        frequency_oracles=frequency_oracles or bool(only),
        positions=positions or bool(only),
    )
    mine = own_mechanisms(problem, mechanisms, known=known)
    made = mine.makers(problem, gap=gap)
    own = [name for name in (*(mechanisms or ()), *(f"{name}{EFFECTIVE}" for name in mine.families))]
    for name in only or ():
        if name not in known and name not in own:
            others = ", ".join([*known, *own])
            raise InputError(f"unknown mechanism, none of {others}", field="only", value=name)
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, noun="a comparison")
    check_connected(problem.edges, problem.domain.size)  # raised here: each row would only be left out
    names = [name for name in (*known, *own) if not only or name in only]
    ends = time.monotonic() + time_limit
    for count, name in enumerate(names, 1):
        if on_progress is not None:
            on_progress(f"{count} of {len(names)}: {name}")
        try:
            # The first row is made even without time, so that a comparison is never empty.
            if count > 1 and time.monotonic() > ends:
                raise UnsuitableError("left out", field="time_limit", value=time_limit)
            if name in made:
                mechanism = made[name](max(_SHARE * (ends - time.monotonic()), _SHORTEST))
            else:
                mechanism = mine.fixed[name] if name in mine.fixed else known[name]()
        except (UnsuitableError, SizeError, SolverError) as error:
            yield name, error
            continue
        yield name, mechanism
        if mechanism.attrs.get("stopped") == "interrupt":
            return


@validate_call
def compare(
    problem: DesignProblem,
    *,
    mechanisms: InputMechanisms | None = None,
    frequency_oracles: bool = False,
    positions: bool = False,
    gap: float = 1e-3,
    time_limit: float = float("inf"),
    on_progress: Callable[[str], None] | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """A row for every program and baseline that fits the problem, and for every mechanism of yours.

    The lower bound is the best one proved for the optimal program, in every row that satisfies the problem's claim.

    Parameters
    ----------
    problem : DesignProblem
        Domain, metric, prior and loss.
    mechanisms : mapping of str to (n, m) array, Dataset, Program or callable
        Yours by name, over the same secrets, unrepaired, at the smallest scale of the metric that they satisfy. A
        program is solved. A function f(problem, epsilon) of tables has two rows: at the epsilon of the metric, and at
        the one where the table satisfies the claim, "NAME (effective)".
    frequency_oracles, positions : bool
        Add those of the literature on frequency estimation, and the design that is private between any two positions.
    gap, time_limit : float
        Relative gap of every solve; seconds in total, shared by the solves.
    on_progress, verbose : callable, bool
        Called with a line of text before each mechanism; progress on standard error.

    Returns
    -------
    pandas.DataFrame of the columns of `mechdesign.output.compare.ComparisonRow`, missing figures NaN

    Examples
    --------
    >>> table = md.compare(md.load_problem("discrete", secrets=3)).set_index("mechanism")
    >>> round(float(table.loc["randomized_response", "ratio"]), 6)
    1.0
    """
    with progress_if(verbose, problem.name, on_progress, limit=time_limit) as report:
        results = each_mechanism(
            problem,
            gap=gap,
            time_limit=time_limit,
            mechanisms=mechanisms,
            frequency_oracles=frequency_oracles,
            positions=positions,
            on_progress=report,
        )
        table = pd.DataFrame([row.to_json() for row in rows(dict(results), problem)])
    # Missing ranks need a nullable integer type; missing floats are NaN.
    figures = [name for name in table.columns if name not in ("mechanism", "claim_over", "lower_bound_of")]
    return table.astype({name: "Int64" if name == "rank" else float for name in figures})


def rows(results: Mapping[str, xr.Dataset | MechdesignError], problem: DesignProblem) -> list[ComparisonRow]:
    """The rows of the mechanisms of one problem, without those that do not fit it."""
    tables = {name: mechanism for name, mechanism in results.items() if isinstance(mechanism, xr.Dataset)}
    return with_bounds([row_of(name, mechanism, problem) for name, mechanism in tables.items()], tables)


def with_bounds(rows: Sequence[ComparisonRow], mechanisms: Mapping[str, xr.Dataset]) -> list[ComparisonRow]:
    """Add the lower bound of epsilon to every row, and the best proved bound of the loss where it holds."""
    attrs = [mechanisms[row.mechanism].attrs for row in rows]
    # A bound of another objective does not bound the expected loss.
    bounds = [float(a["lower_bound"]) for a in attrs if "lower_bound" in a and "objective" not in a]
    bound = max(bounds, default=None)
    epsilon = next((float(a["epsilon_lower_bound"]) for a in attrs if "epsilon_lower_bound" in a), None)
    complete = []
    for row in rows:
        full = replace(row, epsilon_lower_bound=epsilon)
        # A mechanism that breaks the claim may have less loss than the bound.
        own = _own_bound(mechanisms[row.mechanism])
        known = {value: of for value, of in ((bound, ANY), (own, PROGRAM)) if value is not None}
        if known and row.is_private_between_cells:
            value = max(known)
            gap = relative_gap(row.loss, value, constant_loss(mechanisms[row.mechanism]))
            full = replace(full, lower_bound=value, lower_bound_of=known[value], gap=gap)
        complete.append(full)
    return complete


def _own_bound(mechanism: xr.Dataset) -> float | None:
    """The bound of the expected loss under the constraints of the mechanism's own program."""
    attrs = mechanism.attrs
    return (
        float(attrs["lower_bound"]) if attrs.get("objective_of") == EXPECTED_LOSS and "lower_bound" in attrs else None
    )


def best_private(rows: Sequence[ComparisonRow], mechanisms: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """The mechanism with the smallest loss among those private as claimed; the first one if none is."""
    private = [row for row in rows if row.is_private_between_cells] or list(rows[:1])
    return mechanisms[min(private, key=lambda row: row.loss).mechanism]


def columns(rows: Sequence[ComparisonRow]) -> tuple[Column, ...]:
    """The columns of a printed table: with POSITION_COLUMNS if a row has a claim about positions."""
    return COLUMNS + POSITION_COLUMNS if any(row.claim_over == POSITIONS for row in rows) else COLUMNS


# The rank of a mechanism as the channel of a survey, and the asymptotic MSE of estimates; None if too costly.
CHANNEL_FIGURES: Role[Callable[[xr.Dataset], tuple[int | None, float | None]]] = Role("channel")


def figure_texts(row: ComparisonRow, shown: Sequence[Column] = COLUMNS) -> list[str]:
    """The rounded figures of a row, in the order of the columns; "-" for None."""
    return [column.text(row) for column in shown]


def row_of(name: str, mechanism: xr.Dataset, problem: DesignProblem) -> ComparisonRow:
    """The row of one mechanism, without the lower bound, which another mechanism may prove."""
    ratio, row_ratio, over = float(mechanism.attrs["ratio"]), None, "cells"
    if "position_claim" in mechanism.attrs:  # of a design of ours: its cones are certified
        ratio, row_ratio, over = 1.0, ratio, POSITIONS
    claimed = mechanism.attrs.get("claimed_epsilon")
    # A figure that is too costly is left out alone: the row keeps the others.
    rank: int | None = None
    asymptotic: float | None = None
    if CHANNEL_FIGURES.is_filled:
        figures = partial(CHANNEL_FIGURES.get(), mechanism)
        rank, asymptotic = where_possible(f"{name}: the error of many reports", figures, (rank, asymptotic))
    if math.isinf(ratio):  # a report is possible from one secret and impossible from another
        effective: float | None = math.inf
    else:
        # Between positions the level of the metric itself is certified; ratios of rows say nothing about it.
        effective = problem.metric.smallest_level if over == POSITIONS else effective_epsilon(mechanism, problem)
    if effective is None and claimed is not None:
        effective = float(claimed) * ratio
    return ComparisonRow(
        mechanism=name,
        loss=float(mechanism.attrs["expected_loss"]),
        remapped_loss=where_possible(f"{name}: the remapped loss", lambda: remapped_loss(mechanism), None),
        expected_distance=where_possible(f"{name}: the distance", lambda: expected_distance(mechanism), None),
        claimed_epsilon=None if claimed is None else float(claimed),
        effective_epsilon=effective,
        ratio=ratio,
        rank=rank,
        asymptotic_mse=asymptotic,
        position_loss=where_possible(f"{name}: the loss at positions", lambda: position_loss(mechanism), None),
        claim_over=over,
        row_ratio=row_ratio,
    )
