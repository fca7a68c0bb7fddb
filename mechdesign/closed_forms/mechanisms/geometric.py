r"""The geometric mechanism of a metric space: P(y|u) proportional to e^{-eps |u - y|}.

* normalised: each row over the domain is divided by its own sum, as paper 001 does (section IV-B). The sums differ from
  row to row, so the true level exceeds eps: on 30 x 30 cells of 150 m at 0.0040154449 per m it is 1.525 eps.
* clamped: noise on the infinite lattice, with one normaliser, and reports outside the domain moved to the border.
  Post-processing of an eps-private mechanism: exactly eps.
Known: on the infinite line P(y|u) = tanh(eps h / 2) e^{-eps |u - y|}; it is optimal under 0/1 loss (Ghosh et al. 2012).
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.closed_forms.mechanisms.build import (
    Border,
    bordered,
    closed_form_mechanism,
    lattice_problem,
    level_or_default,
)
from mechdesign.closed_forms.mechanisms.clamped_lattice import clamp_to_border, displacements
from mechdesign.setting.problems.problem import DesignProblem


@asked
def mechanism(problem: DesignProblem, epsilon: float | None = None, *, border: Border = "clamped") -> xr.Dataset:
    """The geometric mechanism at `epsilon` nats per unit (default: the smallest level of the metric).

    border: "normalised" (any domain with coordinates) or "clamped" (square grids of one or two axes).
    Raises: InputError for another border or a domain that does not fit.
    """
    level = level_or_default(problem, epsilon)
    table = bordered(border, normalised=normalised_table, clamped=clamped_table)(problem, level)
    return closed_form_mechanism(
        problem, table, name=f"geometric_{border}", claimed_epsilon=level, parameters={"border": border}
    )


def normalised_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """e^{-eps |u - y|} with each row divided by its sum, (n, m)."""
    away = problem.domain.euclidean_to(problem.reports)
    weight = np.exp(-epsilon * (away - away.min(axis=1, keepdims=True)))  # the nearest report never vanishes
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def clamped_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """The infinite-lattice mechanism with outside mass moved to the border, (n, n)."""
    shape, cell = lattice_problem(problem, "the clamped geometric mechanism")
    count = displacements(shape, cell, epsilon)
    step = np.arange(count) * cell
    offsets = np.exp(-epsilon * (step if len(shape) == 1 else np.hypot(step[:, None], step[None, :])))
    table = clamp_to_border(offsets, problem.domain)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
