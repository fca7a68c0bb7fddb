"""The Dataset of a factored mechanism: weights and an integer metric instead of a table. Made only here.

| variable | dims | meaning |
|---|---|---|
| weight | column | uint32, W(k) in [1, 2^28] |
| target | column | the secret whose cell is reported when the column is drawn (post-processing) |
| remap | column | the cell with the least posterior expected loss, where it was computed |
| first_generator | column | the number of the first generator of each column; the next column begins where it ends |
| generator_place, generator_offset | generator | the place v of a generator, and uint16 f_v in steps, at most the cap |
| inner | secret | the place that each secret is; places are the cells of the domain and of the frame around it |
| edge_tail, edge_head, edge_units | edge | the integer metric: uint16 lengths in steps |
| row_sum | secret, word | S(u), high and low 64 bits |
| row_loss | secret | expected loss from each secret |
| claim_tail, claim_head, claim_length | claimed | the edges of the claim in nats, where they were given as a list |
| prior, level, excess, ring | secret | prior; eps(u); curvature excess; rings from the border |
| dual | secret | multipliers of the row sums that prove lower_bound, where one was computed |
| block_sha256 | block, byte | SHA-256 of row_sum and row_loss, `block` rows at a time |

Attributes: those of a table, with step (whole number of 2^-48 nats), cap and block; lower_bound, of the loss of any
mechanism with the claim, with bound_reach and bound_core, the radii in nats at which `dual` proves it. What is claimed,
and why it holds, is in certificate.py. Where the columns are the distances from every place in turn, the schema is
another one: weight, target and remap are over the dimension place, and there are no generators.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.errors import DesignError
from mechdesign.mechanism.factored.certificate import KERNEL_BITS, Factors
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, join_words, rounded_words
from mechdesign.mechanism.schema import COLUMNED, FACTORED
from mechdesign.mechanism.table.dataset import COST, claim_sentence, coordinates, seal, versions
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.objective.losses import SQUARE
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

ROWS = 1024  # per block of stored results


def judge(problem: DesignProblem, factors: Factors, target: NDArray[np.int64]) -> LossData:
    """What the sums over rows need: coordinates, prior and loss of a problem whose reports are its secrets."""
    return LossData(
        factors=factors,
        secrets=problem.domain.points,
        reports=problem.domain.points[target],
        prior=problem.prior_array,
        loss=problem.loss,
    )


def make_factored(
    problem: DesignProblem,
    judged: LossData,
    rows: RowBlock,
    target: NDArray[np.int64],
    *,
    program: str,
    parameters: Mapping[str, Any],
    diagnosis: Mapping[str, NDArray[Any]],
    stopped: str | None = None,
    bound: ProvedBound | None = None,
) -> xr.Dataset:
    """The sealed Dataset of a factored mechanism at the claim of the problem's metric.

    rows holds all n rows; target (c,), the secret that each column reports; diagnosis, arrays (n,) to keep under their
    names; bound, where one was computed.
    Raises: DesignError where the integer certificate does not hold.
    """
    domain, factors = problem.domain, judged.factors
    if factors.breaches(problem.edges, join_words(rows.row_sum)):
        raise DesignError("the factors break the claim", field="weight", remedy="report this mechanism")
    metric, columns = factors.metric, factors.columns
    over = "place" if columns is None else "column"
    figures = judgement(judged, rows, domain)
    places = {
        name.replace("secret", "place"): ("place", values, attrs)
        for name, (_, values, attrs) in coordinates("secret", Domain.points_at(metric.points, unit=domain.unit)).items()
    }
    unit = problem.loss.unit(domain.unit)
    variables: dict[str, Any] = {
        "weight": (over, factors.weight),
        "target": (over, target),
        "inner": ("secret", factors.inner),
        "edge_tail": ("edge", metric.tail),
        "edge_head": ("edge", metric.head),
        "edge_units": ("edge", metric.units),
        "row_sum": (("secret", "word"), rows.row_sum),
        "row_loss": ("secret", rows.loss, {"units": unit}),
        "prior": ("secret", problem.prior_array.copy(), {"units": "1"}),
        "block_sha256": (("block", "byte"), block_digests(rows.row_sum, rows.loss)),
    }
    if figures.remap is not None:
        variables["remap"] = (over, figures.remap)
    if columns is not None:
        variables |= {
            "first_generator": ("column", columns.first),
            "generator_place": ("generator", columns.place),
            "generator_offset": ("generator", columns.offset),
        }
    level = problem.metric.level_at(domain)
    if level is not None:
        variables["level"] = ("secret", level, {"units": f"nats per {domain.unit}"})
    if problem.metric.listed:
        listed = {"tail": problem.edges.tail, "head": problem.edges.head, "length": problem.edges.length}
        variables |= {f"claim_{name}": ("claimed", values.copy()) for name, values in listed.items()}
    variables |= {name: ("secret", values) for name, values in diagnosis.items()}
    attrs: dict[str, str | int | float] = {
        "schema": FACTORED if columns is None else COLUMNED,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps({"knobs": dict(problem.parameters), **parameters}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "claim": claim_sentence(problem.metric, domain, problem.edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": figures.loss,
        "multiple": 1.0,
        "effective_epsilon": effective_epsilon(factors, problem.edges, rows.row_sum),
        "step": factors.step,
        "cap": metric.cap,
        "block": ROWS,
        "versions": versions(),
    }
    if figures.remapped_loss is not None:
        attrs["remapped_loss"] = figures.remapped_loss
    if stopped is not None:
        attrs["stopped"] = stopped
    if bound is not None:
        variables["dual"] = ("secret", bound.dual, {"units": unit})
        attrs |= {"lower_bound": bound.value, "bound_reach": bound.reach, "bound_core": bound.core}
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain) | places, attrs=attrs))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProvedBound:
    """A lower bound of the loss and what proves it: multipliers dual (n,), and the radii in nats of the balls in which
    reports are priced and of their cores.
    """

    value: float
    dual: NDArray[np.float64]
    reach: float
    core: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgement:
    """loss, the expected loss; remap (c,), the best cell for every column, and remapped_loss, the expected loss with
    it: None unless the loss is the squared distance, where the best cell is the one nearest to the posterior mean.
    """

    loss: float
    remap: NDArray[np.int64] | None = None
    remapped_loss: float | None = None


def judgement(judged: LossData, rows: RowBlock, domain: Domain) -> Judgement:
    """The figures of all n rows."""
    loss = math.fsum(judged.prior * rows.loss)
    if judged.loss.code != SQUARE:
        return Judgement(loss=loss)
    centre = judged.secrets.mean(axis=0)
    moments = _moments(judged, rows, centre)
    mass, first = moments[:, 0], moments[:, 1:]
    seen = mass > 0
    mean = np.where(seen[:, None], first / np.where(seen, mass, 1.0)[:, None], 0.0)
    remap = np.asarray(cKDTree(domain.points - centre).query(mean)[1], np.int64)
    was, becomes = judged.reports - centre, domain.points[remap] - centre
    gain = 2 * ((becomes - was) * first).sum(axis=1) + ((was**2).sum(axis=1) - (becomes**2).sum(axis=1)) * mass
    return Judgement(loss=loss, remap=remap, remapped_loss=loss - math.fsum(np.maximum(gain, 0.0)))


def _moments(judged: LossData, rows: RowBlock, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over u of prior(u) P(k|u) times 1 and the coordinates from a centre, (c, 1 + a)."""
    assert rows.moments is not None
    share = judged.prior * judged.floor / np.ldexp(rounded_words(rows.row_sum), -KERNEL_BITS)
    coordinates = judged.secrets - centre
    far = [math.fsum(share), *(math.fsum(share * axis) for axis in coordinates.T)]
    return np.asarray(rows.moments + judged.factors.weight[:, None] * np.array(far))


def effective_epsilon(factors: Factors, edges: Edges, row_sum: NDArray[np.uint64]) -> float:
    """A bound of every log-ratio over length: max over edges of (step q(u, v) + |ln S(u) - ln S(v)|) / d_e, at most 1
    where the integers certify. Attained, before columns of one report are merged, where the edge is a shortest path and
    one of its ends is a column of its own.
    """
    logarithm = np.log(rounded_words(row_sum))
    spent = np.abs(logarithm[edges.tail] - logarithm[edges.head])
    return min(1.0, float(((factors.nats_per_unit * factors.units_of(edges) + spent) / edges.length).max()))


def block_digests(row_sum: NDArray[np.uint64], row_loss: NDArray[np.float64]) -> NDArray[np.uint8]:
    """SHA-256 (blocks, 32) of the little-endian bytes of both, `ROWS` secrets at a time."""
    digests = []
    for start in range(0, len(row_sum), ROWS):
        digest = hashlib.sha256(np.ascontiguousarray(row_sum[start : start + ROWS], "<u8").tobytes())
        digest.update(np.ascontiguousarray(row_loss[start : start + ROWS], "<f8").tobytes())
        digests.append(np.frombuffer(digest.digest(), np.uint8))
    return np.stack(digests)
