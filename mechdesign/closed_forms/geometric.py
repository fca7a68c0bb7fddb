"""The geometric mechanism of a metric space: P(y|u) proportional to e^{-eps |u - y|}.

* normalised: each row over the domain is divided by its own sum, as in Alvim et al. 2018 (section IV-B). The sums
  differ, so the true level exceeds eps: on 30 x 30 cells of 150 m at 0.0040154449 per m it is 1.525 eps.
* clamped: noise on the infinite lattice; reports outside the domain move to the border. This is post-processing of an
  eps-private mechanism, and so eps-private.

On the infinite line P(y|u) = tanh(eps h / 2) e^{-eps |u - y|}, which is optimal under 0/1 loss (Ghosh et al. 2012).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.build import closed_form_mechanism, decaying_table, level_or_default
from mechdesign.closed_forms.lattice_noise import Border, clamp_to_border, displacements, lattice_problem, tables_for
from mechdesign.problem.problem import DesignProblem


@validate_call
def geometric_mechanism(
    problem: DesignProblem, epsilon: float | None = None, *, border: Border = "clamped"
) -> xr.Dataset:
    """The geometric mechanism on a grid: P(y|u) falls off as e^(-epsilon |u - y|).

    Parameters
    ----------
    problem : DesignProblem
        The domain, metric, prior and loss.
    epsilon : float
        Nats per unit; by default the smallest level of the metric.
    border : {"clamped", "normalised"}
        "clamped" moves outside mass to the border of a square grid. "normalised" divides rows by their sums over any
        domain with coordinates, which breaks the claim.

    Returns
    -------
    xarray.Dataset, certified at the smallest scale that holds

    Examples
    --------
    >>> problem = md.load_problem("line", cells=4)
    >>> round(md.baselines.geometric(problem).attrs["ratio"], 6)
    1.0
    >>> md.baselines.geometric(problem, border="normalised").attrs["ratio"] > 1
    True
    """
    level = level_or_default(problem, epsilon)
    table = tables_for(border, normalised=normalised_table, clamped=clamped_table)(problem, level)
    return closed_form_mechanism(
        problem, table, name=f"geometric_{border}", claimed_epsilon=level, parameters={"border": border}
    )


def normalised_table(problem: DesignProblem, epsilon: float) -> Matrix:
    """e^{-eps |u - y|} with each row divided by its sum, (n, m)."""
    return decaying_table(problem.domain.euclidean_to(problem.reports), epsilon)


def clamped_table(problem: DesignProblem, epsilon: float) -> Matrix:
    """The infinite-lattice mechanism with outside mass moved to the border, (n, n)."""
    shape, cell = lattice_problem(problem, "the clamped geometric mechanism")
    count = displacements(shape, cell, epsilon)
    step = np.arange(count) * cell
    offsets = np.exp(-epsilon * (step if len(shape) == 1 else np.hypot(step[:, None], step[None, :])))
    table = clamp_to_border(offsets, problem.domain)
    # Every row adds up the same masses, so all sums agree to rounding. This is the one normaliser of the lattice.
    return np.asarray(table / table.sum(axis=1, keepdims=True))
