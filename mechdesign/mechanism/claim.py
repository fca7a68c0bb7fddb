"""Stored: what a mechanism file says, rebuilt in one place for all that read one.

Edges and lengths come from the metric, the level map and the coordinates, never from the list in the file; only where
the edges themselves are the claim (a graph), they are the file's. The lengths that a graph lists are those of the
claim, multiplied already.

`prove` gives an `Admission`, what is proved of a mechanism in integers before anything is drawn from it.

A table: it satisfies its schema, its entries are positive and its rows sum to exactly 2^62, its claim is the sentence
that its own metric, geometry and edges give, edges and lengths are rebuilt from metric and geometry (a graph lists its
own), and no edge is violated. `verify` is this proof, with losses, figures and bounds recomputed besides. Cost: O(e m)
comparisons of 2 ns, once.

Factors: the claim as above, and the certificate of every edge from the stored row sums; each row that is drawn from
must then sum to its stored sum. `verify` adds all the row sums up again. Cost: 3 microseconds an edge.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.base.numbers import read_json
from mechdesign.base.registry import Role
from mechdesign.base.units import canonical_unit
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.mechanism.dataset import (
    COST,
    FACTORED,
    MECHANISMS,
    PositionClaim,
    check,
    claim_sentence,
    edge_bytes,
    refused,
    stored_points,
)
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import LOSSES, Loss, TableLoss
from mechdesign.problem.metric import Metric, Rebuilt, metric_from_description
from mechdesign.problem.problem import DesignProblem

_OF_POSITIONS = ("around_row", "corner_level", "quarter_level", "position_rule", "position_claim")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """A mechanism, a table or a factored one, that satisfies its schema; make one with `read`.

    What contradicts itself raises a MechdesignError where it is asked for.
    """

    mechanism: xr.Dataset

    @property
    def factored(self) -> bool:
        """Whether it is kept as factors instead of a table."""
        return self.mechanism.attrs["schema"] == FACTORED

    @cached_property
    def domain(self) -> Domain:
        """The secrets."""
        return stored_domain(self.mechanism)

    @cached_property
    def listed(self) -> Edges | None:
        """The edges of the claim as the file lists them; None where it lists none."""
        prefix = "claim" if self.factored else "edge"
        parts = [f"{prefix}_{part}" for part in ("tail", "head", "length")]
        if any(name not in self.mechanism for name in parts):
            return None
        tail, head, length = (self.mechanism[name].values for name in parts)
        return Edges(tail=tail, head=head, length=length)

    @cached_property
    def metric(self) -> Metric:
        """The metric of the claim; where its edges are listed, they have the lengths listed, and the scale is 1."""
        metric = metric_from_description(described(self.mechanism, "metric"), self.listed)
        if metric.listed and self.listed is None:
            raise refused("must list the edges of a graph", "claim_tail", "no such variable", "the whole file")
        return metric

    @property
    def rebuilt(self) -> Rebuilt:
        """Where edges and lengths come from."""
        return self.metric.rebuilt

    @cached_property
    def edges(self) -> Edges:
        """The edges of the claim, rebuilt. Lengths that are listed may all be 0: reports that tell nothing."""
        if not self.metric.listed or self.listed is None:
            return self.metric.edges(self.domain)
        length = np.asarray(self.listed.length, float)
        if not (np.isfinite(length) & (length >= 0)).all():
            raise refused("must be finite and not negative", "edge_length", f"{length.min()}", "lengths in nats")
        ones = replace(self.listed, length=np.ones_like(length))
        joined = metric_from_description(self.metric.describe(), ones).edges(self.domain)
        return replace(joined, length=length)

    @cached_property
    def claim(self) -> str:
        """The claim in one sentence, rebuilt."""
        return claim_sentence(self.metric, self.domain, self.edges)

    @cached_property
    def problem_metric(self) -> Metric:
        """The metric of the problem that the mechanism was made for: that of the claim is `scale` times it.

        Raises: VerificationError where scale, metric and problem_metric do not fit together.
        """
        mechanism, attrs = self.mechanism, self.mechanism.attrs
        scale, claimed = float(attrs["scale"]), float(described(mechanism, "metric")["multiplier"])
        if "problem_metric" not in attrs:
            if scale != 1:
                raise refused("must be 1 where no problem_metric is named", "scale", scale, "1, or the metric")
            return self.metric
        own = float(described(mechanism, "problem_metric")["multiplier"])
        if not (math.isfinite(scale) and scale >= 0 and own * scale == claimed):
            raise refused("is not what the claim is times the metric of the problem", "scale", scale, claimed)
        before = None
        if self.listed is not None and "problem_length" in mechanism:
            before = replace(self.listed, length=mechanism["problem_length"].values)
        metric = metric_from_description(described(mechanism, "problem_metric"), before)
        if not metric.listed:
            if replace(metric, scale=claimed).describe() != self.metric.describe():
                raise refused("is not the metric of the claim", "problem_metric", metric.kind, self.metric.kind)
            return metric
        if before is None:
            raise refused("must be there", "problem_length", "no such variable", "the whole file")
        metric = replace(metric, scale=own)
        if not np.array_equal(replace(metric, scale=claimed).edges(self.domain).length, self.edges.length):
            raise refused("does not give the lengths of the claim", "problem_length")
        return metric

    @cached_property
    def loss(self) -> Loss:
        """The loss; of a table, the one that the file holds."""
        name = self.mechanism.attrs["loss"]
        if name == TableLoss.name and "loss_table" in self.mechanism:
            table = self.mechanism["loss_table"]
            return TableLoss(values=table.values, units=str(table.attrs.get("units", "1")))
        if name not in LOSSES:
            raise refused("unknown loss", "loss", name, " or ".join([*LOSSES, TableLoss.name]))
        return LOSSES[name]

    @cached_property
    def problem(self) -> DesignProblem:
        """The design problem at the metric of the claim."""
        reports = self.domain
        if not self.factored and not self.same_places:
            reports = Domain(kind="points", points=stored_points(self.mechanism, "report"), unit=self.report_unit)
        if self.metric.over(self.domain) is not self.metric:
            raise refused("is in another unit than the places", "metric", self.metric.kind, self.domain.unit)
        return DesignProblem(
            domain=self.domain,
            metric=self.metric,
            prior=self.mechanism["prior"].values,
            loss=self.loss,
            reports=reports,
            name=self.mechanism.attrs["problem"],
            parameters=self.parameters["knobs"],
        )

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """What the program kept beside the parameters of the problem."""
        parameters = described(self.mechanism, "parameters")
        if not isinstance(parameters.get("knobs"), dict):
            raise refused("must hold those of the problem", "parameters", f"{parameters!s:.80}", "a mapping knobs")
        return parameters

    @cached_property
    def positions(self) -> PositionClaim | None:
        """The claim about positions, rebuilt; None where there is none.

        Raises: VerificationError where only a part of it is there; InputError where the capability positions is not.
        """
        if not any(name in self.mechanism or name in self.mechanism.attrs for name in _OF_POSITIONS):
            return None
        return POSITION_CLAIMS.get().stored_claim(self)

    @property
    def same_places(self) -> bool:
        """Whether reports are the secrets."""
        return self.factored or (
            self.report_unit == self.domain.unit
            and np.array_equal(self.domain.points, stored_points(self.mechanism, "report"))
        )

    @cached_property
    def report_cells(self) -> NDArray[np.int64] | None:
        """The secrets (m,) that the reports are: all of them, or those of an area within its rectangle; None where a
        report is no secret.
        """
        if self.same_places:
            return np.arange(self.domain.size)
        points, unit = stored_points(self.mechanism, "report"), self.report_unit
        if unit != self.domain.unit or points.shape[1] != self.domain.dimension:
            return None
        away, cell = cKDTree(self.domain.points).query(points)
        return np.asarray(cell, np.int64) if (away == 0).all() else None

    @property
    def report_unit(self) -> str:
        """The unit of the coordinates of reports."""
        return str(self.mechanism["secret_x" if self.factored else "report_x"].attrs["units"])

    @cached_property
    def factors(self) -> Any:
        """The integers of a factored mechanism (`Factors`). Raises: InputError where one is out of range."""
        return FACTOR_FILES.get().stored_factors(self)

    def differences(self) -> list[str]:
        """How the claim, levels, edges and units of the file differ from what metric and geometry give."""
        attrs, reasons = self.mechanism.attrs, []
        self.parameters  # noqa: B018
        if attrs["claim"] != self.claim:
            reasons.append("claim: the stored sentence is not the one that the metric, level and grid give")
        if attrs["cost"] != COST:
            reasons.append("cost: the stored sentence is not that of one report")
        level = self.metric.level_at(self.domain)
        stored = self.mechanism["level"].values if "level" in self.mechanism else None
        if (stored is None) != (level is None) or (level is not None and (level != stored).any()):
            reasons.append("level: differs from the level map of the metric")
        if "problem_length" in self.mechanism and not ("problem_metric" in attrs and self.problem_metric.listed):
            reasons.append("problem_length: no metric of the problem lists its edges")
        if self.rebuilt != "edge list only" and self.listed is not None:
            reasons += _edge_differences(self.listed, self.edges)
        if self.positions is not None:
            reasons += self.positions.differences(self.mechanism, self.problem_metric, self.domain)
        return reasons + _unit_differences(self)


def read(mechanism: xr.Dataset) -> Stored:
    """The mechanism of a Dataset, a table or a factored one.

    Raises: VerificationError where a variable or attribute is not what the schema says.
    """
    check(mechanism, *MECHANISMS.values())
    return Stored(mechanism=mechanism)


def stored_domain(described_over: xr.Dataset) -> Domain:
    """The places that the attribute domain of a Dataset describes, mechanism or not, at its coordinates of secrets."""
    points = stored_points(described_over, "secret")
    return Domain.from_description(described(described_over, "domain"), points)


def described(mechanism: xr.Dataset, name: str) -> dict[str, Any]:
    """The JSON object in an attribute (`read_json`). Raises: VerificationError for anything else."""
    text = mechanism.attrs[name]
    try:
        description = read_json(text)
    except (ValueError, RecursionError) as error:
        raise refused(f"cannot be read ({error})", name, f"{text!s:.80}", "a JSON object") from error
    if not isinstance(description, dict):
        raise refused("must be an object", name, f"{text!s:.80}", "a JSON object")
    return description


@contextlib.contextmanager
def rebuilding() -> Iterator[None]:
    """Work on what a file says: whatever that raises becomes one VerificationError; infinities and nans pass."""
    try:
        with np.errstate(all="ignore"):
            yield
    except VerificationError:
        raise
    except MechdesignError as error:
        message = f"the file contradicts itself: {error.message}"
        raise VerificationError(message, field=error.field, value=error.value) from error
    except Exception as error:
        message = f"not a complete file ({type(error).__name__}: {error})"
        raise VerificationError(message, field="file") from error


def _edge_differences(stored: Edges, edges: Edges) -> list[str]:
    if len(stored.tail) != len(edges.tail):
        return [f"edge_tail: the file lists {len(stored.tail)} edges, the metric has {len(edges.tail)}"]
    if not (np.array_equal(stored.tail, edges.tail) and np.array_equal(stored.head, edges.head)):
        return ["edge_tail: the file lists other edges than the metric has"]
    # Bits, since the claim's fingerprint is of bytes, where -0.0 is not 0.
    different = np.flatnonzero(stored.length.view(np.int64) != edges.length.view(np.int64))
    if len(different) == 0:
        return []
    e = int(different[0])
    first = f"first edge {e}: {stored.length[e]!r} instead of {edges.length[e]!r}"
    return [f"edge_length: {len(different)} differ from the metric, {first}"]


def _unit_differences(stored: Stored) -> list[str]:
    """Units that are not those of the domain, the loss or the variable; coordinates must say theirs."""
    unit, mechanism = stored.domain.unit, stored.mechanism
    loss = stored.loss.unit(unit)
    wanted = {"mass": "2^-62", "prior": "1"} | dict.fromkeys(("edge_length", "problem_length"), "nats")
    wanted |= dict.fromkeys(("level", "corner_level", "quarter_level"), f"nats per {unit}")
    wanted |= dict.fromkeys(("dual", "row_loss", "loss_table"), loss)
    wanted |= {f"{dim}_{axis}": unit for dim in ("secret", "place") for axis in AXES}
    report = unit if stored.same_places else canonical_unit(stored.report_unit)
    wanted |= {f"report_{axis}": report for axis in AXES}
    stated = {
        name: mechanism[name].attrs.get("units", None if name in mechanism.coords else right)
        for name, right in wanted.items()
        if name in mechanism.variables
    }
    return [f"{name}: in {unit}, should be in {wanted[name]}" for name, unit in stated.items() if unit != wanted[name]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Admission:
    """What was proved: P(y|u) <= e^{d(u,u')} P(y|u') over `domain`, d the distance of `metric`, one report; claim says
    it in one sentence. With `positions`, the claim about positions, and `metric` is the one that it is for; rows alone
    are then never drawn from.
    """

    domain: Domain
    metric: Metric
    edges: Edges
    claim: str
    positions: PositionClaim | None = None

    @property
    def charge(self) -> Fraction:
        """What one report costs, as an exact multiple of the metric at scale 1; where its edges are listed, and so
        multiplied already, 1.
        """
        return Fraction(1) if self.metric.listed else Fraction(self.metric.scale)

    @property
    def unit(self) -> str:
        """64 hexadecimal digits that name the metric at scale 1 and the places it is over: costs add up, and
        secrets are the same cells, where they agree.
        """
        described = self.metric.describe() | ({} if self.metric.listed else {"multiplier": 1.0})
        described |= {} if self.positions is None else {"positions": True}
        digest = hashlib.sha256(json.dumps([described, self.domain.describe()], sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.domain.points, "<f8").tobytes())
        if self.metric.listed:
            digest.update(edge_bytes(self.edges))
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """What the integers of a mechanism show: violations, (edge, direction, report) triples, or (edge, direction) pairs
    of factors, that break the claim, and position_breaches, (cell, report) pairs that break that about positions, None
    where they cannot be counted; reasons, why the claim is not proved, empty where it is.
    """

    violations: int | None
    position_breaches: int | None = None
    reasons: list[str]


class PositionClaims(Protocol):
    """Reads the claims about positions of mechanism files."""

    def stored_claim(self, stored: Stored) -> PositionClaim:
        """The claim about positions of a file, rebuilt. Raises: VerificationError if a part of it is missing."""
        ...


class FactorFiles(Protocol):
    """Reads and checks the factors of mechanism files."""

    def stored_factors(self, stored: Stored) -> Any:
        """The integers of a factored mechanism. Raises: InputError if one is out of range."""
        ...

    def check_factors(self, stored: Stored) -> Proof:
        """The claim compared with metric and geometry, and every edge of it checked by the stored row sums."""
        ...


POSITION_CLAIMS: Role[PositionClaims] = Role("positions")
FACTOR_FILES: Role[FactorFiles] = Role("factors")


def examined(stored: Stored) -> Proof:
    """The claim compared with metric and geometry, and every edge of it checked in integers."""
    if stored.factored:
        return FACTOR_FILES.get().check_factors(stored)
    mass = np.ascontiguousarray(stored.mechanism["mass"].values)
    whole, placed = row_sums_exact(mass), stored.positions
    count = violations(mass, stored.edges) if mass.min() >= 1 else None
    broken = placed.breaches(mass) if whole and placed is not None else None
    reasons = ["mass: an entry is 0, or a row does not sum to exactly 2^62"] * (not whole)
    reasons += [f"mass: {count} (edge, direction, report) triples break the claim"] * bool(count)
    reasons += [f"mass: {broken} (cell, report) pairs break the claim about positions"] * bool(broken)
    return Proof(violations=count, position_breaches=broken, reasons=stored.differences() + reasons)


def prove(mechanism: xr.Dataset) -> Admission:
    """Prove the claim of a mechanism, a table or a factored one.

    Raises: VerificationError where it is altered, incomplete or not private as claimed.
    """
    with rebuilding():
        stored = read(mechanism)
        reasons = examined(stored).reasons
        proved = Admission(domain=stored.domain, metric=stored.metric, edges=stored.edges, claim=stored.claim)
        if stored.positions is not None:
            claim = mechanism.attrs["position_claim"]
            proved = replace(proved, metric=stored.problem_metric, claim=claim, positions=stored.positions)
    if reasons:
        raise unproved(reasons)
    return proved


def unproved(reasons: list[str]) -> VerificationError:
    """The refusal of a mechanism whose claim is not proved, by the first of the reasons."""
    name, _, message = reasons[0].partition(": ")
    return VerificationError(message, field=name, remedy="use an unaltered mechanism that `verify` certifies")
