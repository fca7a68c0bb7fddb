"""Statistical designs in the core's tables: how they are solved, and how a file's objective and bound are checked."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.evaluation.loss import mechanism_loss
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.claim import MechanismFile
from mechdesign.solvers.solve import Entry
from mechdesign.surveys.criterion_bound import proved_bound, sides
from mechdesign.surveys.solve_design import solve_statistical
from mechdesign.surveys.statistical_design import StatisticalDesign
from mechdesign.verification.verify import AGREE, figure_differences

ENTRY = Entry(
    program=StatisticalDesign,
    solve=solve_statistical,
    takes_bound=True,
    rebuild=lambda problem, parameters: StatisticalDesign(
        problem,
        error=parameters.get("error", "transport"),
        areas=parameters.get("areas"),
        loss_weight=parameters.get("loss_weight", 0.0),
    ),
)


def check_statistical(stored: MechanismFile, program: StatisticalDesign) -> tuple[list[str], bool | None]:
    """What is wrong with the objective of a stored design, and whether its bound follows; None where there is none."""
    mechanism = stored.mechanism
    value = program.objective(mechanism["mass"].values / float(ROW_SUM), mechanism_loss(mechanism))
    return figure_differences(mechanism, {"objective": value}), _criterion_follows(mechanism, program)


def _criterion_follows(mechanism: xr.Dataset, program: StatisticalDesign) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    if "dual" not in mechanism or "multiplier" not in mechanism:
        return False
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    count = len(sides(program.problem))
    finite = np.isfinite(multipliers).all() and np.isfinite(dual).all() and (multipliers >= 0).all()
    if multipliers.shape != (count * (count + 1) // 2,) or not finite:
        return False
    return bool(mechanism.attrs["lower_bound"] <= proved_bound(program, dual, multipliers) * (1 + AGREE))
