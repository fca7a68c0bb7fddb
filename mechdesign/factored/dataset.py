"""The Dataset of a factored mechanism: weights and an integer metric instead of a table (certificate.py).

`_variables` lists the variables. Attributes: those of a table, with step (in 2^-48 nats) and cap; lower_bound, with
bound_reach and bound_core, the radii in nats at which `dual` proves it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.base.arrays import AnyArray, Indices, Integers, Unsigned, Vector
from mechdesign.errors import DesignError
from mechdesign.factored.certificate import KERNEL_BITS, Factors
from mechdesign.factored.columns import GENERATORS, Columns
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.factored.row_sums import (
    CertifiedFactors,
    LossData,
    RowBlock,
    join_words,
    rounded_words,
)
from mechdesign.factored.schema import FACTORED
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.mechanism_file import COST, ClaimCheck, FactorFiles, MechanismFile, claim_sentence
from mechdesign.mechanism.schema import coordinates, file_error, stored_points
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import SQUARE
from mechdesign.problem.problem import DesignProblem


def rejection_reason(problem: DesignProblem) -> str | None:
    """Why a problem has no factored mechanism; None where it has one."""
    if not problem.metric.sparse:
        return f"the {problem.metric.kind} metric has too many edges"
    if problem.loss.code is None:
        return "factored mechanisms support only losses computed from coordinates"
    return None


def loss_data(problem: DesignProblem, factors: Factors, target: Integers) -> LossData:
    """Coordinates, prior and loss for sums over rows, of a problem whose reports are its secrets."""
    return LossData(
        factors=factors,
        secrets=problem.domain.points,
        reports=problem.domain.points[target],
        prior=problem.prior_array,
        loss=problem.loss,
    )


def make_factored(
    problem: DesignProblem,
    certified: CertifiedFactors,
    *,
    program: str,
    parameters: Mapping[str, Any],
    diagnosis: Mapping[str, AnyArray] | None = None,
    stopped: str | None = None,
    bound: ProvedBound | None = None,
) -> xr.Dataset:
    """The sealed Dataset of a factored mechanism at the claim of the metric; diagnosis, arrays (n,) to keep."""
    domain, factors = problem.domain, certified.data.factors
    if factors.breaches(problem.edges, join_words(certified.rows.row_sum)):
        raise DesignError("factors break the claim", field="weight", remedy="report this problem")
    figures = loss_figures(certified.data, certified.rows, domain)
    variables = _variables(problem, certified, figures)
    variables |= {name: ("secret", values) for name, values in (diagnosis or {}).items()}
    attrs: dict[str, str | int | float] = {
        "schema": FACTORED,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps({"problem_parameters": problem.storable_parameters, **parameters}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "claim": claim_sentence(problem.metric, domain, problem.edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": figures.loss,
        "scale": 1.0,
        "ratio": largest_ratio(factors, problem.edges, certified.rows.row_sum),
        "step": factors.step,
        "cap": factors.metric.cap,
        "versions": versions(),
    }
    if figures.remapped_loss is not None:
        attrs["remapped_loss"] = figures.remapped_loss
    if stopped is not None:
        attrs["stopped"] = stopped
    if bound is not None:
        variables |= {"dual": ("secret", bound.dual, {"units": problem.loss_unit}), **bound.tree_variables()}
        attrs |= {"lower_bound": bound.value, "bound_reach": bound.reach, "bound_core": bound.core}
    places = {
        name.replace("secret", "place"): ("place", values, coordinate_attrs)
        for name, (_, values, coordinate_attrs) in coordinates(
            "secret", Domain.points_at(factors.metric.points, unit=domain.unit)
        ).items()
    }
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain) | places, attrs=attrs))


# | variable | dims | meaning |
# |---|---|---|
# | weight | column | uint32, W(k) in [1, 2^28] |
# | target | column | the secret whose cell is reported when the column is drawn (post-processing) |
# | remap | column | the cell with the least posterior expected loss, where it was computed |
# | first_generator | column | the number of the first generator of each column; the next column begins where it ends |
# | generator_place, generator_offset | generator | the place v of a generator, uint16 f_v in steps, at most the cap |
# | inner | secret | the place that each secret is; places are the cells of the domain and of the frame around it |
# | edge_tail, edge_head, edge_units | edge | the integer metric: uint16 lengths in steps |
# | row_sum | secret, word | S(u), high and low 64 bits |
# | row_loss | secret | expected loss from each secret |
# | claim_tail, claim_head, claim_length | claimed | the edges of the claim in nats, where they were given as a list |
# | prior, level, excess, ring | secret | prior; eps(u); curvature excess; rings from the border |
# | dual | secret | multipliers of the row sums that prove lower_bound, where one was computed |
# | tree_size, tree | secret; coded | uint32, uint8: codes of trees (ball.py), those of one report after the other |
def _variables(problem: DesignProblem, certified: CertifiedFactors, figures: LossFigures) -> dict[str, Any]:
    domain, rows, factors = problem.domain, certified.rows, certified.data.factors
    metric, columns = factors.metric, factors.columns
    variables: dict[str, Any] = {
        "weight": ("column", factors.weight),
        "target": ("column", certified.target),
        "inner": ("secret", factors.inner),
        "edge_tail": ("edge", metric.tail),
        "edge_head": ("edge", metric.head),
        "edge_units": ("edge", metric.units),
        "row_sum": (("secret", "word"), rows.row_sum),
        "row_loss": ("secret", rows.loss, {"units": problem.loss_unit}),
        "prior": ("secret", problem.prior_array.copy(), {"units": "1"}),
    }
    if figures.remap is not None:
        variables["remap"] = ("column", figures.remap)
    if columns is not None:
        over = {"place": "generator", "offset": "generator", "first": "column"}
        variables |= {name: (over[part], getattr(columns, part)) for part, name in GENERATORS.items()}
    level = problem.metric.level_at(domain)
    if level is not None:
        variables["level"] = ("secret", level, {"units": f"nats per {domain.unit}"})
    if problem.metric.uses_stored_edges:
        listed = {"tail": problem.edges.tail, "head": problem.edges.head, "length": problem.edges.length}
        variables |= {f"claim_{name}": ("claimed", values.copy()) for name, values in listed.items()}
    return variables


@dataclass(frozen=True, kw_only=True, eq=False)
class ProvedBound:
    """A lower bound of the loss and its proof."""

    value: float
    dual: Vector  # (n,), multipliers
    reach: float  # nats of the balls in which reports are priced
    core: float  # nats of their cores
    trees: Sequence[NDArray[np.uint8]] | None = None  # (n,), codes of trees (ball.py); without them reports are priced

    def tree_variables(self) -> dict[str, Any]:
        """The trees as variables of a file."""
        # Files have no dimensions of length 0.
        if self.trees is None or not any(map(len, self.trees)):
            return {}
        size = np.array([len(codes) for codes in self.trees], np.uint32)
        return {"tree": ("coded", np.concatenate(self.trees)), "tree_size": ("secret", size)}


def stored_trees(mechanism: xr.Dataset) -> list[NDArray[np.uint8]] | None:
    """The trees of a file, untrusted; None without them or if their sizes do not fit."""
    if "tree" not in mechanism or "tree_size" not in mechanism:
        return None
    codes, ends = mechanism["tree"].values, np.cumsum(mechanism["tree_size"].values.astype(np.int64))
    return np.split(codes, ends[:-1]) if ends[-1] == len(codes) else None


@dataclass(frozen=True, kw_only=True, eq=False)
class LossFigures:
    """Expected losses; those with a remap only for the squared distance."""

    loss: float
    remap: Indices | None = None  # (c,), the cell nearest to the posterior mean of every column
    remapped_loss: float | None = None


def loss_figures(data: LossData, rows: RowBlock, domain: Domain) -> LossFigures:
    """The figures of all n rows."""
    loss = math.fsum(data.prior * rows.loss)
    if data.loss.code != SQUARE:
        return LossFigures(loss=loss)
    centre = data.secrets.mean(axis=0)
    assert rows.moments is not None
    # Inside its window a column has the moments that blocks summed; E(F), the floor, counts at every secret.
    share = data.prior * data.floor / np.ldexp(rounded_words(rows.row_sum), -KERNEL_BITS)
    far = [math.fsum(share), *(math.fsum(share * axis) for axis in (data.secrets - centre).T)]
    # sums over u of prior(u) P(k|u) times 1 and the coordinates from the centre, (c, 1 + a)
    moments = rows.moments + data.factors.weight[:, None] * np.array(far)
    mass, first = moments[:, 0], moments[:, 1:]
    # The posterior mean minimises the expected squared distance; its nearest cell is the best of the cells.
    seen = mass > 0
    mean = np.where(seen[:, None], first / np.where(seen, mass, 1.0)[:, None], 0.0)
    remap = np.asarray(cKDTree(domain.points - centre).query(mean)[1], np.int64)
    # E|x - y|^2 - E|x - z|^2 = 2 (z - y) E x + (|y|^2 - |z|^2) mass, of coordinates from the centre: little cancels.
    old, new = data.reports - centre, domain.points[remap] - centre
    gain = 2 * ((new - old) * first).sum(axis=1) + ((old**2).sum(axis=1) - (new**2).sum(axis=1)) * mass
    return LossFigures(loss=loss, remap=remap, remapped_loss=loss - math.fsum(np.maximum(gain, 0.0)))


def largest_ratio(factors: Factors, edges: Edges, row_sum: Unsigned) -> float:
    """The largest bound of a log-ratio over its length, in floating point; at most 1 by the proof in integers."""
    # Right to 2^-44 nats over the shortest length (`claim_utilisation`), and cut at 1, which the certificate proves.
    # Attained, before columns with one report are merged, if the edge is a shortest path and one of its ends is a
    # column.
    return min(1.0, float(factors.claim_utilisation(edges, rounded_words(row_sum)).max()))


def stored_factors(stored: MechanismFile) -> Factors:
    """The integers of a factored mechanism. Raises: InputError where one is out of range."""
    mechanism, attrs = stored.mechanism, stored.mechanism.attrs
    weight, inner = mechanism["weight"].values, mechanism["inner"].values
    if len(np.unique(inner)) < stored.domain.size:
        raise file_error("must not repeat a place", "inner", "a place twice", "a separate place for every secret")
    edges = {part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "units")}
    metric = IntegerMetric(points=stored_points(mechanism, "place"), cap=int(attrs["cap"]), **edges)
    missing = [name for name in GENERATORS.values() if name not in mechanism]
    if 0 < len(missing) < len(GENERATORS):
        raise file_error("is missing", missing[0], "no such variable", "all variables of generators")
    columns = None if missing else Columns(**{part: mechanism[name].values for part, name in GENERATORS.items()})
    return Factors(metric=metric, step=int(attrs["step"]), weight=weight, inner=inner, columns=columns)


def check_factors(stored: MechanismFile) -> ClaimCheck:
    """The claim compared with metric and geometry, and every edge of it checked by the stored row sums."""
    bad = stored.factors.breaches(stored.edges, join_words(stored.mechanism["row_sum"].values))
    reasons = [f"row_sum: {bad} (edge, direction) pairs break the claim"] * bool(bad)
    return ClaimCheck(violations=bad, reasons=stored.differences() + reasons)


class Factored(FactorFiles):
    """Factors as the contents of a mechanism file."""

    def stored_factors(self, stored: MechanismFile) -> Factors:
        return stored_factors(stored)

    def check_factors(self, stored: MechanismFile) -> ClaimCheck:
        return check_factors(stored)


FACTOR_READER = Factored()
