"""Certified tables for single reports of a session: for any belief, and for the belief before a report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Vector
from mechdesign.base.validation import check_positive, validate_call
from mechdesign.closed_forms.exponential import exponential_mechanism
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.errors import UnsuitableError
from mechdesign.geo.area import plane_level
from mechdesign.mechanism.views import probabilities
from mechdesign.problem import priors
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.solvers.eikonal.negative_weights import ZERO
from mechdesign.solvers.solve import solve

_SLACK = 1e-6  # relative, of a level: tables from formulas are rounded and must stay below the claim
_FAINT = 1e-9  # of a belief, spread over all places, so that every place stays possible, whatever the filter says


# A table costs c nats within a radius r: it is private for c times the Euclidean metric of 1 / r, so charges over a
# domain add up.
@validate_call
def report_table(domain: Domain, nats: float, *, within: float) -> xr.Dataset:
    """A certified table for one report that costs at most `nats` within a radius.

    Its metric is nats times Euclidean(1 / within).

    Parameters
    ----------
    domain, nats, within : Domain, float, float
        The places; nats within the radius; the radius, in the unit of the domain.

    Returns
    -------
    xarray.Dataset, in O(n^3) time

    Examples
    --------
    >>> table = md.sessions.report_table(md.Domain.grid((3, 3), 100.0, unit="m"), 1.0, within=100.0)
    >>> md.verify(table).certified
    True
    """
    problem = _problem(domain, priors.uniform(domain), nats, within)
    program = EikonalWeights(problem=problem)
    # Positive eikonal weights give a table that is optimal, or close to it, from one nat between neighbours. Otherwise
    # planar Laplace noise clamped to the cells of a square grid, or the exponential mechanism elsewhere.
    weights = np.linalg.solve(program.kernel(), np.ones(domain.size))
    if weights.min() >= -ZERO * weights.max():
        return solve(program)
    try:
        return planar_laplace_mechanism(problem, nats * _level(domain, within) * (1 - _SLACK))
    except UnsuitableError:
        return exponential_mechanism(replace(problem, metric=(1 - _SLACK) * problem.metric))


@validate_call
def state_table(
    domain: Domain, belief: ArrayLike, nats: float, *, within: float, gap: float = 0.02, time_limit: float = 20.0
) -> xr.Dataset:
    """The certified table of at most `nats` within a radius with the least expected distance after a belief.

    The belief must follow from the releases. Then a new table may be chosen at every report.

    Parameters
    ----------
    domain, belief : Domain, (n,) array
        The places, and their probabilities.
    nats, within : float
        Within the radius; the radius, in the unit of the domain.
    gap, time_limit : float
        Target of the relative gap; seconds.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> domain = md.Domain.grid((2, 2), 100.0, unit="m")
    >>> md.verify(md.sessions.state_table(domain, [0.7, 0.1, 0.1, 0.1], 1.0, within=100.0)).certified
    True
    """
    prior = priors.proportional(np.asarray(belief, float) + _FAINT / domain.size, field="belief")
    problem = _problem(domain, prior, nats, within)
    # The optimum under this prior, up to its gap; the usual table wins where it is as good after remapping.
    usual = report_table(domain, nats, within=within)
    best = solve(Optimal(problem=problem), gap=gap, time_limit=time_limit)
    return best if loss_after(best, prior, domain) < loss_after(usual, prior, domain) else usual


@validate_call
def loss_after(mechanism: xr.Dataset, belief: ArrayLike, domain: Domain) -> float:
    """The expected distance between a position and the best estimate after a report, given a belief before it.

    It is sum_y min_z sum_u b(u) P(y|u) |u - z|.

    Parameters
    ----------
    mechanism : xarray.Dataset
        The table of the report.
    belief, domain : (n,) array, Domain
        b, and the places.

    Returns
    -------
    float, in units of the domain, in O(n^2 m) time

    Examples
    --------
    >>> problem = md.load_problem("line", cells=3)
    >>> md.sessions.loss_after(md.baselines.constant(problem), problem.prior_array, problem.domain)
    0.6666666666666666
    """
    # Dividing by the probability of the report is left out: it does not change the best estimate.
    joint = np.asarray(belief, float)[:, None] * probabilities(mechanism).values
    return float((domain.euclidean_to(domain) @ joint).min(axis=0).sum())


def _problem(domain: Domain, prior: Vector, nats: float, within: float) -> DesignProblem:
    metric = check_positive(nats, "nats") * Euclidean(epsilon=_level(domain, within), unit=domain.unit)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=Distance(), name="report")


def _level(domain: Domain, within: float) -> float:
    """1 / r in nats per unit of the domain; on Earth divided by the stretch of the plane, for geodesic distances."""
    ground = 1 / check_positive(within, "within")
    return ground if domain.plane is None else plane_level(domain, ground)
