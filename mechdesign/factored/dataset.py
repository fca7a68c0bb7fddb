"""The Dataset of a factored mechanism: weights and an integer metric instead of a table. Made and read only here.

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

Attributes: those of a table, with step (integer number of 2^-48 nats) and cap; lower_bound, of the loss of any
mechanism with the claim, with bound_reach and bound_core, the radii in nats at which `dual` proves it. What is claimed,
and why it holds, is in certificate.py. Where there are no generators, the columns are the distances from every place in
turn.

`FactoredMechanism` has rows, samples and exact integers of it, a block of secrets at a time. Reports are the cells of
the secrets: the mass of every column goes to the cell that the column reports (`target`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from mechdesign.base.memory import require_memory
from mechdesign.base.threads import Rng, source
from mechdesign.errors import DesignError, InputError, VerificationError
from mechdesign.factored.certificate import KERNEL_BITS, Factors
from mechdesign.factored.columns import GENERATORS, Columns
from mechdesign.factored.integer_metric import BLOCK, IntegerMetric
from mechdesign.factored.row_sums import (
    CertifiedFactors,
    LossData,
    RowBlock,
    dense_rows,
    join_words,
    merged_rows,
    rounded_words,
)
from mechdesign.factored.schema import FACTORED
from mechdesign.mechanism.build import Extras, build_dataset, versions
from mechdesign.mechanism.claim import COST, ClaimCheck, FactorFiles, MechanismFile, claim_sentence
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.repair import repair
from mechdesign.mechanism.rows import Rows, Scan
from mechdesign.mechanism.schema import coordinates, refused, stored_points
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import SQUARE
from mechdesign.problem.problem import DesignProblem


def rejection_reason(problem: DesignProblem) -> str | None:
    """Why a problem has no factored mechanism; None where it has one."""
    if not problem.metric.sparse:
        return f"the {problem.metric.kind} metric has no short list of edges"
    if problem.loss.code is None:
        return "a loss given as a table, or by no formula of the sums over rows, is as large as the mechanism"
    return None


def loss_data(problem: DesignProblem, factors: Factors, target: NDArray[np.int64]) -> LossData:
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
    certified: CertifiedFactors,
    *,
    program: str,
    parameters: Mapping[str, Any],
    diagnosis: Mapping[str, NDArray[Any]] | None = None,
    stopped: str | None = None,
    bound: ProvedBound | None = None,
) -> xr.Dataset:
    """The sealed Dataset of a factored mechanism at the claim of the metric; diagnosis, arrays (n,) to keep."""
    domain, data, rows = problem.domain, certified.data, certified.rows
    factors = data.factors
    if factors.breaches(problem.edges, join_words(rows.row_sum)):
        raise DesignError("the factors break the claim", field="weight", remedy="report this mechanism")
    metric, columns = factors.metric, factors.columns
    figures = loss_figures(data, rows, domain)
    places = {
        name.replace("secret", "place"): ("place", values, attrs)
        for name, (_, values, attrs) in coordinates("secret", Domain.points_at(metric.points, unit=domain.unit)).items()
    }
    unit = problem.loss.unit(domain.unit)
    variables: dict[str, Any] = {
        "weight": ("column", factors.weight),
        "target": ("column", certified.target),
        "inner": ("secret", factors.inner),
        "edge_tail": ("edge", metric.tail),
        "edge_head": ("edge", metric.head),
        "edge_units": ("edge", metric.units),
        "row_sum": (("secret", "word"), rows.row_sum),
        "row_loss": ("secret", rows.loss, {"units": unit}),
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
    if problem.metric.listed:
        listed = {"tail": problem.edges.tail, "head": problem.edges.head, "length": problem.edges.length}
        variables |= {f"claim_{name}": ("claimed", values.copy()) for name, values in listed.items()}
    variables |= {name: ("secret", values) for name, values in (diagnosis or {}).items()}
    attrs: dict[str, str | int | float] = {
        "schema": FACTORED,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps({"knobs": problem.kept_parameters, **parameters}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "claim": claim_sentence(problem.metric, domain, problem.edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": figures.loss,
        "scale": 1.0,
        "ratio": largest_ratio(factors, problem.edges, rows.row_sum),
        "step": factors.step,
        "cap": metric.cap,
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
    """A lower bound of the loss and what proves it."""

    value: float
    dual: NDArray[np.float64]  # (n,), multipliers
    reach: float  # nats of the balls in which reports are priced
    core: float  # nats of their cores


@dataclass(frozen=True, kw_only=True, eq=False)
class LossFigures:
    """Expected losses; those with a remap only for the squared distance."""

    loss: float
    remap: NDArray[np.int64] | None = None  # (c,), the cell nearest to the posterior mean of every column
    remapped_loss: float | None = None


def loss_figures(data: LossData, rows: RowBlock, domain: Domain) -> LossFigures:
    """The figures of all n rows."""
    loss = math.fsum(data.prior * rows.loss)
    if data.loss.code != SQUARE:
        return LossFigures(loss=loss)
    centre = data.secrets.mean(axis=0)
    assert rows.moments is not None
    share = data.prior * data.floor / np.ldexp(rounded_words(rows.row_sum), -KERNEL_BITS)
    far = [math.fsum(share), *(math.fsum(share * axis) for axis in (data.secrets - centre).T)]
    # sums over u of prior(u) P(k|u) times 1 and the coordinates from the centre, (c, 1 + a)
    moments = rows.moments + data.factors.weight[:, None] * np.array(far)
    mass, first = moments[:, 0], moments[:, 1:]
    seen = mass > 0
    mean = np.where(seen[:, None], first / np.where(seen, mass, 1.0)[:, None], 0.0)
    remap = np.asarray(cKDTree(domain.points - centre).query(mean)[1], np.int64)
    was, becomes = data.reports - centre, domain.points[remap] - centre
    gain = 2 * ((becomes - was) * first).sum(axis=1) + ((was**2).sum(axis=1) - (becomes**2).sum(axis=1)) * mass
    return LossFigures(loss=loss, remap=remap, remapped_loss=loss - math.fsum(np.maximum(gain, 0.0)))


def largest_ratio(factors: Factors, edges: Edges, row_sum: NDArray[np.uint64]) -> float:
    """A bound of every log-ratio over length, at most 1 where the integers certify."""
    # Attained, before columns of one report are merged, where the edge is a shortest path and one of its ends is a
    # column of its own.
    return min(1.0, float(factors.claim_utilisation(edges, rounded_words(row_sum)).max()))


def stored_factors(stored: MechanismFile) -> Factors:
    """The integers of a factored mechanism. Raises: InputError where one is out of range."""
    mechanism, attrs = stored.mechanism, stored.mechanism.attrs
    weight, inner = mechanism["weight"].values, mechanism["inner"].values
    if len(np.unique(inner)) < stored.domain.size:
        raise refused("two secrets share a place", "inner", "", "a place of its own for every secret")
    edges = {part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "units")}
    metric = IntegerMetric(points=stored_points(mechanism, "place"), cap=int(attrs["cap"]), **edges)
    missing = [name for name in GENERATORS.values() if name not in mechanism]
    if 0 < len(missing) < len(GENERATORS):
        raise refused("must be there", missing[0], "no such variable", "all of its generators")
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

_LIMB = 43  # bits of the low part of a cumulative mass
_HALF = np.uint64(29)
_MOST_COLUMNS = 2_000_000  # each at most 2^43 + 2^15 in the high part, so that sums of both fit 64 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredMechanism(Rows):
    """A factored Dataset with the questions that a table answers: rows, samples, exact integers.

    The Dataset is copied, so that later changes do not reach it. What is drawn or returned exactly comes from rows
    that were added up again here, and draws from a mechanism that was verified here, once.

    Parameters
    ----------
    dataset : xarray.Dataset
        A factored mechanism.

    Examples
    --------
    >>> problem = md.load_problem("line", cells=4)
    >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
    >>> mechanism.table().sizes["report"]
    4
    """

    dataset: xr.Dataset = field(kw_only=False)
    placed = "secret"

    def __post_init__(self) -> None:
        if self.dataset.attrs.get("schema") != FACTORED:
            remedy = "use a Dataset that solve returned with method factored"
            schema = self.dataset.attrs.get("schema")
            raise InputError("not a factored mechanism", field="schema", value=schema, remedy=remedy)
        object.__setattr__(self, "dataset", self.dataset.copy(deep=True))
        columns = self.stored.mechanism.sizes["column"]
        if columns > _MOST_COLUMNS:
            message = f"more than {_MOST_COLUMNS:,} columns: use fewer cells"
            raise InputError(message, field="column", value=columns)

    @cached_property
    def stored(self) -> MechanismFile:
        """What the Dataset says, rebuilt."""
        return MechanismFile.read(self.dataset)

    @cached_property
    def factors(self) -> Factors:
        """The integers of the mechanism."""
        return self.stored.factors

    @cached_property
    def row_sums(self) -> list[int]:
        """S(u) of every secret, exact."""
        return join_words(self.dataset["row_sum"].values)

    def probabilities(self, secrets: ArrayLike) -> NDArray[np.float64]:
        """P(y|u) (b, n) of secrets (b,), in floating point: for looking at. Cost: the distances from each secret."""
        numbers = self.checked(secrets)
        total = rounded_words(self.dataset["row_sum"].values[numbers])
        return merged_rows(self.factors, numbers, self.dataset["target"].values, total)

    def column_blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
        """Neighbouring reports (r,), secrets (b,), and P(y|u) (b, r) in floating point, until each report was there."""
        # At secrets that are left out the kernel has its least value.
        factors = self.factors
        if factors.columns is not None:
            raise InputError("columns of this mechanism are no places", field="column", value=factors.size)
        kernel, total = factors.kernel.astype(float), rounded_words(self.dataset["row_sum"].values)
        target, room = self.dataset["target"].values, factors.metric.windows()
        secret = np.full(factors.size, -1)
        secret[factors.inner] = np.arange(self.secrets)
        ordered = np.argsort(factors.order)[target]  # where the report of a column stands in the order of the work
        for first in range(0, self.secrets, BLOCK):
            reports = factors.order[first : first + BLOCK]
            columns = np.flatnonzero((ordered >= first) & (ordered < first + BLOCK))
            window = room.window_of(columns)
            own = secret[window.places] >= 0
            secrets = secret[window.places[own]]
            block = np.zeros((len(reports), len(secrets)))
            np.add.at(block, ordered[columns] - first, (kernel[window.field[own]] * factors.weight[columns]).T)
            yield reports, secrets, block.T / total[secrets, None]

    def row(self, secret: int) -> xr.DataArray:
        """P(.|u) of one secret over the reports, with their coordinates."""
        coordinates = {
            str(name).replace("secret", "report"): ("report", values.values, values.attrs)
            for name, values in self.dataset.coords.items()
            if str(name).startswith("secret_")
        }
        values, attrs = self.probabilities([secret])[0], {"units": "1"}
        return xr.DataArray(values, dims="report", coords=coordinates, name="probability", attrs=attrs)

    def integers(self, secret: int) -> tuple[list[int], int]:
        """The exact masses of one row over the reports, and their sum S(u): P(y|u) = mass / sum."""
        distances = self.factors.distances(self.checked([secret]))[:, 0].tolist()
        masses, kernel, target = (
            [0] * self.secrets,
            self.factors.kernel.tolist(),
            self.dataset["target"].values.tolist(),
        )
        for q, weight, cell in zip(distances, self.factors.weight.tolist(), target, strict=True):
            masses[cell] += kernel[q] * weight
        self._check_sum(secret, sum(masses))
        return masses, self.row_sums[secret]

    def table(self) -> xr.Dataset:
        """The same mechanism as a table with rows summing to 2^62, repaired to integers and certified."""
        problem = self.stored.problem
        require_memory(self.secrets, self.secrets, tables=6, what="the table of a factored mechanism")
        mass = repair(self.probabilities(np.arange(self.secrets)), problem.edges, problem.weighted_loss)
        parameters = {name: value for name, value in self.stored.parameters.items() if name != "knobs"}
        extras = Extras(parameters=parameters)
        return build_dataset(problem, mass, program=self.dataset.attrs["program"], extras=extras)

    def sample(self, secrets: ArrayLike, size: int, *, rng: Rng = None) -> NDArray[np.int64]:
        """Reports (b, size) drawn independently for secrets (b,), each with exactly its probability mass / S(u).

        A uniform integer below S(u) is compared with the exact cumulative masses. Bits come from the operating system;
        with `rng`, a seed or a generator of NumPy, from there, for simulations only: such reports can be predicted.
        """
        numbers = self.checked(secrets)
        self.certificate  # noqa: B018  proves the claim, once
        bits, _ = source(rng)
        target = self.dataset["target"].values
        drawn = np.empty((len(numbers), size), np.int64)
        for own, distances in dense_rows(self.factors, numbers):
            for b, row in enumerate(range(own.start, own.stop)):
                high, low = self._cumulative(distances[:, b])
                self._check_sum(numbers[row], (int(high[-1]) << _LIMB) + int(low[-1]))
                drawn[row] = target[_draw(high, low, size, bits)]
        return drawn

    def _check_sum(self, secret: int, total: int) -> None:
        if total != self.row_sums[secret]:
            message = "a row sums to something else than was certified"
            raise VerificationError(message, field="row_sum", remedy="use an unaltered file")

    def _cumulative(self, distances: NDArray[np.uint16]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Cumulative masses (c,), exact, as a high part and the low 43 bits."""
        mask = np.uint64((1 << _LIMB) - 1)
        kernel_high, kernel_low = self.factors.halves
        weight = self.factors.weight.astype(np.uint64)
        upper, lower = kernel_high[distances] * weight, kernel_low[distances] * weight  # mass = upper 2^29 + lower
        shift = np.uint64(_LIMB) - _HALF
        low = ((upper & np.uint64((1 << int(shift)) - 1)) << _HALF) + (lower & mask)
        high = (upper >> shift) + (lower >> np.uint64(_LIMB)) + (low >> np.uint64(_LIMB))
        total = np.cumsum(low & mask, dtype=np.uint64)
        return np.cumsum(high, dtype=np.uint64) + (total >> np.uint64(_LIMB)), total & mask

    def live(self, secret: int, scan: Scan) -> tuple[int, str]:
        return int(self.sample([secret], 1)[0, 0]), "depend on the secret"

    def can_report(self, place: int) -> bool:
        return place < self.secrets and place in self.dataset["target"].values


def _draw(
    high: NDArray[np.uint64], low: NDArray[np.uint64], size: int, bits: Callable[[int], bytes]
) -> NDArray[np.int64]:
    """Columns drawn by cumulative masses (c,): how many of them are at most a uniform integer below the last."""
    columns, done = np.empty(size, np.int64), 0
    last = (high[-1], low[-1])
    spare = np.uint64(64 - int(last[0]).bit_length())
    while done < size:
        raw = np.frombuffer(bits(16 * (size - done)), np.uint64).reshape(-1, 2)
        top, rest = raw[:, 0] >> spare, raw[:, 1] >> np.uint64(64 - _LIMB)
        mask = (top < last[0]) | ((top == last[0]) & (rest < last[1]))
        top, rest = top[mask], rest[mask]
        place, beyond = np.searchsorted(high, top, side="left"), np.searchsorted(high, top, side="right")
        for tie in np.flatnonzero(place < beyond):
            place[tie] += np.searchsorted(low[place[tie] : beyond[tie]], rest[tie], side="right")
        columns[done : done + len(place)] = place
        done += len(place)
    return columns
