r"""Plan: the accuracy of the shares of areas before anything is collected, and the number of people that takes.

    (1)  standard error = sqrt([sum_y q a^2 - share^2] / N),   q = P^T p the law of reports under the planned truth p

of the linear estimator (surveys/linear_estimator.py), exact at every N; without privacy sqrt(share (1 - share) / N).
The error is half the length of an interval, z standard errors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Matrix, Vector
from mechdesign.base.validation import check_whole
from mechdesign.errors import InputError
from mechdesign.geo.partition import Partition
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.schema import Schema, VariableSpec, coordinates
from mechdesign.problem.domain import Domain
from mechdesign.problem.priors import check_prior
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.matched import Family, family_of
from mechdesign.solvers.matched import find_crossing
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.intervals import fewest_effective, quantile
from mechdesign.surveys.linear_estimator import linear_weights

PLAN = Schema(
    name="mechdesign/plan/1",
    own_variables={
        "area_of": VariableSpec(dtype="int64", dims=("secret",), places="area"),
        "truth": VariableSpec(dtype="float64", dims=("secret",)),
        "share": VariableSpec(dtype="float64", dims=("area",)),
        "deviation_without": VariableSpec(dtype="float64", dims=("area",)),
        "people_without": VariableSpec(dtype="float64", dims=("area",)),
        "deviation": VariableSpec(dtype="float64", dims=("design", "area")),
        "standard_error": VariableSpec(dtype="float64", dims=("design", "area")),
        "error": VariableSpec(dtype="float64", dims=("design", "area")),
        "people": VariableSpec(dtype="float64", dims=("design", "area")),
        "fewest": VariableSpec(dtype="float64", dims=("design", "area")),
        "bias": VariableSpec(dtype="float64", dims=("design", "area")),
    },
    places=("secret",),
    attributes={
        **dict.fromkeys(("schema", "problem", "domain", "areas", "designs", "versions", "sha256"), str),
        **dict.fromkeys(("confidence", "z", "wanted_error"), float),
        "reports": int,
        "simultaneous": int,
    },
)
CLOSE = 1e-4  # relative accuracy of the epsilon for an error


# Eleven arguments: a plan, four properties of its intervals, and two labels that are stored.
def plan(
    tables: Mapping[str, ArrayLike],
    areas: Partition,
    domain: Domain,
    *,
    people: int,
    truth: ArrayLike,
    prior: ArrayLike | None = None,
    error: float = 0.02,
    confidence: float = 0.95,
    simultaneous: bool = False,
    problem: str = "",
    described: Mapping[str, Mapping[str, Any]] | None = None,
) -> xr.Dataset:
    """The accuracy of the shares of areas, for every table by name.

    Parameters
    ----------
    tables, areas, domain : mapping of str to (n, m) array, Partition, Domain
        P(y|u) by name; the areas of the n places.
    people, truth, prior : int, (n,) array, (n,) array
        N; the planned distribution; the prior of the estimator, by default the truth.
    error, confidence, simultaneous : float, float, bool
        Half the length of a wanted interval, as a share; of every interval, or of all together (Bonferroni).
    problem, described : str, mapping
        Its name; the description of each table to store (JSON).

    Returns
    -------
    xarray.Dataset
        Sealed. Over designs and areas: deviation, sqrt(N) standard errors. standard_error of N people, and error, z
        standard errors. people, needed for the wanted error. fewest, needed for an interval. bias, max |P a - g|.
        Infinite where a share is not identifiable. Over areas: share, deviation_without and people_without privacy.

    Examples
    --------
    >>> domain = md.Domain.grid((2, 2), 1.0)
    >>> areas, truth = md.geo.Partition.blocks(domain, 2, 1), md.priors.uniform(domain)
    >>> plan = md.surveys.plan({"truth": np.eye(4)}, areas, domain, people=1000, truth=truth)
    >>> plan["error"].values.round(4)
    array([[0.031, 0.031]])
    """
    count = check_whole(people, "people")
    if not 0 < error < 1:
        raise InputError("must be between 0 and 1", field="error", value=error)
    known = check_prior(truth, domain)
    fixed = known if prior is None else check_prior(prior, domain)
    wanted = areas.indicator
    if len(wanted) != domain.size or not tables:
        raise InputError(f"must label {domain.size} places", field="areas", value=len(wanted))
    z = quantile(confidence, intervals=len(areas.names) if simultaneous else 1)
    figures = [_figures(Channel.of(np.asarray(table, float)), wanted, known, fixed) for table in tables.values()]
    deviation, kurtosis, bias = (np.stack(parts) for parts in zip(*figures, strict=True))
    share = known @ wanted
    without = np.sqrt(np.clip(share * (1 - share), 0, None))
    standard_error = deviation / math.sqrt(count)
    by_area = {"units": "1"}
    rows = ("design", "area")
    variables: dict[str, Any] = {
        "area_of": ("secret", areas.label),
        "truth": ("secret", known, by_area),
        "share": ("area", share, by_area),
        "deviation_without": ("area", without, by_area),
        "people_without": ("area", people_for(without, error, z)),
        "deviation": (rows, deviation, by_area),
        "standard_error": (rows, standard_error, by_area),
        "error": (rows, z * standard_error + bias, by_area),
        "people": (rows, people_for(deviation, error, z)),
        "fewest": (rows, np.ceil(fewest_effective(z) * kurtosis)),
        "bias": (rows, bias, by_area),
    }
    attrs: dict[str, Any] = {
        "schema": PLAN.name,
        "problem": problem,
        "domain": domain.describe_json(),
        "areas": json.dumps(list(areas.names)),
        "designs": json.dumps([{"name": name, **(described or {}).get(name, {})} for name in tables]),
        "versions": versions(),
        "confidence": float(confidence),
        "z": z,
        "wanted_error": float(error),
        "reports": count,
        "simultaneous": int(simultaneous),
    }
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain), attrs=attrs))


def people_for(deviation: Floats, error: float, z: float) -> Floats:
    """The least N >= 1 with z deviation / sqrt(N) <= error, by (1)."""
    return np.maximum(np.ceil((z * deviation / error) ** 2), 1.0)


def _figures(channel: Channel, wanted: Matrix, truth: Vector, prior: Vector) -> tuple[Vector, Vector, Vector]:
    """Deviation, kurtosis and bias (K,) of the shares of a channel; infinite where not identifiable."""
    if channel.secrets != len(wanted):
        raise InputError(f"must have a row for each of {len(wanted)} secrets", field="tables", value=channel.secrets)
    weights = linear_weights(channel, wanted, prior)
    law = truth @ channel.table
    variance, fourth = (channel.moments(law, weights.values, order=order) for order in (2, 4))
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.where(fourth > 0, fourth / variance**2, 1.0)
    # A share that no weights reproduce has no finite error, whatever the number of people.
    lost = ~weights.identifiable
    return (
        np.where(lost, np.inf, np.sqrt(variance)),
        np.where(lost, np.inf, kurtosis),
        np.where(lost, weights.bias, np.minimum(weights.bias, 1.0)),
    )


def epsilon_for(
    problem: DesignProblem,
    family: str | Family | Callable[[DesignProblem, float], Matrix],
    areas: Partition,
    *,
    people: int,
    error: float = 0.02,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> float | None:
    """The least epsilon of a family at which N people give every area an interval of at most +-error, to 1e-4 of it.

    Parameters
    ----------
    problem, areas : DesignProblem, Partition
        Domain and prior, which is the planned truth; the areas of its places.
    family, people : str, Family or callable, int
        As in `md.utility.match_distance`, its errors fall with epsilon; N.
    error, confidence, simultaneous : float, float, bool
        As of `plan`.

    Returns
    -------
    float, nats per unit (randomized response: nats), rounded up, or None if no epsilon is enough

    Examples
    --------
    >>> problem = md.load_problem("paris", cells=2, distance=60.0)
    >>> areas = md.geo.Partition.blocks(problem.domain, 2, 1)
    >>> md.surveys.epsilon_for(problem, "geometric_clamped", areas, people=5000, error=0.05) > 0
    True
    """
    z = quantile(confidence, intervals=len(areas.names) if simultaneous else 1)
    count = check_whole(people, "people")
    chosen = family_of(family)
    # The root is searched in ln epsilon, because the range spans several powers of ten.
    lowest, middle, highest = map(math.log, chosen.epsilons(problem.domain))
    prior, wanted = problem.prior_array, areas.indicator

    def excess(log_epsilon: float) -> float:
        table = np.asarray(chosen.table(problem, math.exp(log_epsilon)), float)
        deviation, _, _ = _figures(Channel.of(table), wanted, prior, prior)
        times = float(z * deviation.max() / math.sqrt(count) / error)
        # An area of all places has deviation 0: the logarithm is kept finite for the root search.
        return math.log(min(max(times, math.exp(-100)), math.exp(100)))

    # Errors fall with epsilon: if the largest one is too small, all are.
    if excess(highest) > 0:
        return None
    root = find_crossing(excess, middle, lowest, highest, CLOSE)
    # Rounded up by the tolerance of the root, so that the error is met.
    return math.exp(lowest if root is None else root + CLOSE)
