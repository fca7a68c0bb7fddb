"""A mechanism file with everything that its claim implies, rebuilt in one place for every reader."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mechdesign.base.arrays import IntegerMatrix, Points
from mechdesign.base.json_fields import read_json
from mechdesign.base.registry import Role
from mechdesign.base.units import canonical_unit
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.mechanism.hashing import fingerprint
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.mechanism.schema import MECHANISMS, TABLE, file_error, stored_points, validate
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import LOSSES, Loss, TableLoss
from mechdesign.problem.metric import EdgeSource, Metric
from mechdesign.problem.metrics import metric_from_description
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import words_of

if TYPE_CHECKING:
    import xarray as xr

COST = "one report; k reports cost k times the epsilon"
_AT_CORNER = 1e-9  # of a secret: reports so near to a corner lie at it
_POSITION_FIELDS = ("around_row", "corner_level", "quarter_level", "position_rule", "position_claim")


# Edges and lengths come from the metric, the level map and the coordinates; the file's edge list counts only where it
# is the claim (a graph, its lengths already scaled).
@dataclass(frozen=True, kw_only=True, eq=False)
class MechanismFile:
    """A table or factors that satisfy their schema, by `MechanismFile.read`; properties may raise MechdesignError."""

    mechanism: xr.Dataset

    @classmethod
    def read(cls, mechanism: xr.Dataset) -> MechanismFile:
        """The mechanism of a Dataset; raises a VerificationError if its schema does not allow it."""
        validate(mechanism, *MECHANISMS.values())
        return cls(mechanism=mechanism)

    @property
    def is_factored(self) -> bool:
        return bool(self.mechanism.attrs["schema"] != TABLE)

    @cached_property
    def domain(self) -> Domain:
        return stored_domain(self.mechanism)

    @cached_property
    def stored_edges(self) -> Edges | None:
        prefix = "claim" if self.is_factored else "edge"
        parts = [f"{prefix}_{part}" for part in ("tail", "head", "length")]
        if any(name not in self.mechanism for name in parts):
            return None
        tail, head, length = (self.mechanism[name].values for name in parts)
        return Edges(tail=tail, head=head, length=length)

    @cached_property
    def metric(self) -> Metric:
        """The metric of the claim; if it uses stored edges, their lengths include the scale, which is then 1."""
        metric = metric_from_description(json_attribute(self.mechanism, "metric"), self.stored_edges)
        if metric.uses_stored_edges and self.stored_edges is None:
            raise file_error("must list the edges of a graph", "claim_tail", "no such variable", "the whole file")
        return metric

    @property
    def edge_source(self) -> EdgeSource:
        return self.metric.edge_source

    @cached_property
    def edges(self) -> Edges:
        """The edges of the claim, rebuilt. Stored lengths may all be 0 (a constant mechanism)."""
        if not self.metric.uses_stored_edges or self.stored_edges is None:
            return self.metric.edges(self.domain)
        length = np.asarray(self.stored_edges.length, float)
        if not (np.isfinite(length) & (length >= 0)).all():
            raise file_error("must be finite and not negative", "edge_length", f"{length.min()}", "lengths in nats")
        # A graph refuses edges of length 0; their ends are checked with lengths of 1.
        ones = replace(self.stored_edges, length=np.ones_like(length))
        edges_of_ones = metric_from_description(self.metric.describe(), ones).edges(self.domain)
        return replace(edges_of_ones, length=length)

    @cached_property
    def claim(self) -> str:
        return claim_sentence(self.metric, self.domain, self.edges)

    @cached_property
    def problem_metric(self) -> Metric:
        """The metric of the problem that the mechanism was made for: that of the claim is `scale` times it."""
        mechanism, attrs = self.mechanism, self.mechanism.attrs
        scale, claimed = float(attrs["scale"]), float(json_attribute(mechanism, "metric")["multiplier"])
        if "problem_metric" not in attrs:
            if scale != 1:
                raise file_error("must be 1 without a problem_metric", "scale", scale, "1, or the metric")
            return self.metric
        scale_of_problem = float(json_attribute(mechanism, "problem_metric")["multiplier"])
        # Exact equality: `Metric.__rmul__` computes this very product of doubles.
        if not (math.isfinite(scale) and scale >= 0 and scale_of_problem * scale == claimed):
            raise file_error("times the scale of problem_metric is not that of the claim", "scale", scale, claimed)
        unscaled_edges = None
        if self.stored_edges is not None and "problem_length" in mechanism:
            unscaled_edges = replace(self.stored_edges, length=mechanism["problem_length"].values)
        metric = metric_from_description(json_attribute(mechanism, "problem_metric"), unscaled_edges)
        if not metric.uses_stored_edges:
            if replace(metric, scale=claimed).describe() != self.metric.describe():
                raise file_error("is not the metric of the claim", "problem_metric", metric.kind, self.metric.kind)
            return metric
        if unscaled_edges is None:
            raise file_error("must be there", "problem_length", "no such variable", "the whole file")
        # The lengths of the problem times the scale must be those of the claim, bit for bit.
        metric = replace(metric, scale=scale_of_problem)
        if not np.array_equal(replace(metric, scale=claimed).edges(self.domain).length, self.edges.length):
            raise file_error("does not give the lengths of the claim", "problem_length")
        return metric

    @cached_property
    def loss(self) -> Loss:
        """The loss; of a table, the one that the file holds."""
        name = self.mechanism.attrs["loss"]
        if name == TableLoss.name and "loss_table" in self.mechanism:
            table = self.mechanism["loss_table"]
            return TableLoss(values=table.values, units=str(table.attrs.get("units", "1")))
        if name not in LOSSES:
            raise file_error("unknown loss", "loss", name, " or ".join([*LOSSES, TableLoss.name]))
        return LOSSES[name]

    @property
    def loss_unit(self) -> str:
        """The unit of losses and bounds, such as "m^2"; "1" for numbers without one."""
        return self.loss.unit(self.domain.unit)

    @cached_property
    def problem(self) -> DesignProblem:
        reports = self.domain
        if not self.is_factored and not self.same_places:
            reports = self.report_domain
        if self.metric.in_unit_of(self.domain) is not self.metric:
            raise file_error("is in another unit than the places", "metric", self.metric.kind, self.domain.unit)
        return DesignProblem(
            domain=self.domain,
            metric=self.metric,
            prior=self.mechanism["prior"].values,
            loss=self.loss,
            reports=reports,
            name=self.mechanism.attrs["problem"],
            parameters=self.parameters["problem_parameters"],
        )

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the program, and under problem_parameters those of the problem."""
        parameters = json_attribute(self.mechanism, "parameters")
        if not isinstance(parameters.get("problem_parameters"), dict):
            raise file_error(
                "must hold those of the problem", "parameters", f"{parameters!s:.80}", "a mapping problem_parameters"
            )
        return parameters

    @cached_property
    def positions(self) -> PositionClaim | None:
        if not any(name in self.mechanism or name in self.mechanism.attrs for name in _POSITION_FIELDS):
            return None
        return POSITION_CLAIMS.get().stored_claim(self)

    @property
    def report_domain(self) -> Domain:
        """The domain of reports that are not the secrets."""
        points = stored_points(self.mechanism, "report")
        if "reports" in self.mechanism.attrs:
            reports = Domain.from_description(json_attribute(self.mechanism, "reports"), points)
            if reports.unit != self.report_unit:
                raise file_error("is in another unit than the reports", "reports", reports.unit, self.report_unit)
            return reports
        return Domain(kind="points", points=points, unit=self.report_unit)

    @property
    def same_places(self) -> bool:
        return self.is_factored or (
            "reports" not in self.mechanism.attrs
            and self.report_unit == self.domain.unit
            and np.array_equal(self.domain.points, stored_points(self.mechanism, "report"))
        )

    @property
    def row_parts(self) -> int:
        """The secrets along each side of a cell of reports: 1 unless rows are finer than reports."""
        return parts_of(self.parameters, self.domain.shape)

    @cached_property
    def report_cells(self) -> IntegerMatrix | None:
        """The secrets (m,) at the reports, which may be those of an area in its rectangle; None if one is elsewhere."""
        if self.same_places:
            return np.arange(self.domain.size)
        points, unit = stored_points(self.mechanism, "report"), self.report_unit
        if unit != self.domain.unit or points.shape[1] != self.domain.dimension:
            return None
        if self.row_parts % 2 == 0:
            return self._cells_above(points)
        from scipy.spatial import cKDTree

        distance, cell = cKDTree(self.domain.points).query(points)
        if "reports" in self.mechanism.attrs and (distance == 0).all():
            labels, own = self.report_domain.labels, self.domain.labels
            if labels is None or own is None or any(own[u] != label for u, label in zip(cell, labels, strict=True)):
                return None
        return np.asarray(cell, np.int64) if (distance == 0).all() else None

    def _cells_above(self, corners: Points) -> IntegerMatrix | None:
        """The secrets (m,) whose low corners are at points (m, k): reports in the middle of an even number of rows."""
        domain = self.domain
        assert domain.origin is not None and domain.cell is not None and domain.shape is not None
        place = (corners - np.asarray(domain.origin)) / np.asarray(domain.cell)
        index = np.rint(place).astype(np.int64)
        if np.abs(place - index).max() > _AT_CORNER or ((index < 0) | (index >= domain.shape)).any():
            return None
        cells = domain.lookup[tuple(index.T)]
        return np.asarray(cells, np.int64) if (cells >= 0).all() else None

    @cached_property
    def report_at(self) -> IntegerMatrix | None:
        """The report (n,) of the cell of reports that holds each secret, -1 for none; None unless rows are finer."""
        domain, cells, parts = self.domain, self.report_cells, self.row_parts
        if parts == 1 or cells is None or domain.index is None:
            return None
        # A cell of reports has `parts` secrets along each side, and its report in the middle.
        owner = {tuple(place): y for y, place in enumerate((domain.index[cells] // parts).tolist())}
        return np.array([owner.get(tuple(place), -1) for place in (domain.index // parts).tolist()])

    @property
    def report_unit(self) -> str:
        return str(self.mechanism["secret_x" if self.is_factored else "report_x"].attrs["units"])

    @cached_property
    def factors(self) -> Any:
        """The integers of a factored mechanism (`Factors`)."""
        return FACTOR_FILES.get().stored_factors(self)

    def differences(self) -> list[str]:
        """A reason for each of claim, levels, edges and units that differs from the one rebuilt."""
        attrs, reasons = self.mechanism.attrs, []
        # Raises if the parameters are not a mapping, before anything uses them.
        self.parameters  # noqa: B018
        if attrs["claim"] != self.claim:
            reasons.append("claim: the stored sentence is not the one that the metric, level and grid give")
        if attrs["cost"] != COST:
            reasons.append("cost: the stored sentence is not that of one report")
        level = self.metric.level_at(self.domain)
        stored = self.mechanism["level"].values if "level" in self.mechanism else None
        # True if one of the two is missing.
        differs = stored is not level
        if level is not None and stored is not None:
            differs = bool((level != stored).any())
        if differs:
            reasons.append("level: differs from the level map of the metric")
        if "problem_length" in self.mechanism and not (
            "problem_metric" in attrs and self.problem_metric.uses_stored_edges
        ):
            reasons.append("problem_length: no metric of the problem lists its edges")
        if self.edge_source != "edge list only" and self.stored_edges is not None:
            reasons += _edge_differences(self.stored_edges, self.edges)
        if self.positions is not None:
            reasons += self.positions.differences(self.mechanism, self.problem_metric, self.domain)
        return reasons + _unit_differences(self)


def stored_domain(dataset: xr.Dataset) -> Domain:
    """The places of a Dataset, mechanism or not: its attribute `domain` at its coordinates of secrets."""
    points = stored_points(dataset, "secret")
    return Domain.from_description(json_attribute(dataset, "domain"), points)


def parts_of(parameters: Mapping[str, Any], shape: Sequence[int] | None) -> int:
    """The secrets along each side of a cell of reports, from the parameters of a file; 1 if they are not finer."""
    own = parameters.get("problem_parameters")
    parts = own.get("parts") if isinstance(own, dict) else None
    if shape is None or not isinstance(parts, int) or not 1 < parts < math.prod(shape):
        return 1
    return 1 if any(count % parts for count in shape) else parts


def json_attribute(mechanism: xr.Dataset, name: str) -> dict[str, Any]:
    """The JSON object in an attribute."""
    text = mechanism.attrs[name]
    try:
        description = read_json(text)
    except (ValueError, RecursionError) as error:
        raise file_error(f"cannot be read ({error})", name, f"{text!s:.80}", "a JSON object") from error
    if not isinstance(description, dict):
        raise file_error("must be an object", name, f"{text!s:.80}", "a JSON object")
    return description


@contextlib.contextmanager
def verification_errors() -> Iterator[None]:
    """Turn any exception raised on an untrusted file into a VerificationError; infinities and nans pass."""
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
    # Compare bits: the fingerprint in the claim hashes bytes, and -0.0 differs from 0 there.
    different = np.flatnonzero(stored.length.view(np.int64) != edges.length.view(np.int64))
    if len(different) == 0:
        return []
    e = int(different[0])
    first = f"first edge {e}: {stored.length[e]!r} instead of {edges.length[e]!r}"
    return [f"edge_length: {len(different)} differ from the metric, {first}"]


def _unit_differences(file: MechanismFile) -> list[str]:
    """Reasons for units that are not those of the domain, the loss or the variable; coordinates must have theirs."""
    reasons = []
    for name, unit in _units(file).items():
        if name not in file.mechanism.variables:
            continue
        default = None if name in file.mechanism.coords else unit
        stated = file.mechanism[name].attrs.get("units", default)
        if stated != unit:
            reasons.append(f"{name}: in {stated}, should be in {unit}")
    return reasons


def _units(file: MechanismFile) -> dict[str, str]:
    unit = file.domain.unit
    units = {"mass": "2^-62", "prior": "1"} | dict.fromkeys(("edge_length", "problem_length"), "nats")
    units |= dict.fromkeys(("level", "corner_level", "quarter_level"), f"nats per {unit}")
    units |= dict.fromkeys(("dual", "row_loss", "loss_table"), file.loss_unit)
    units |= {f"{dim}_{axis}": unit for dim in ("secret", "place") for axis in AXES}
    report_unit = unit if file.same_places else canonical_unit(file.report_unit)
    return units | {f"report_{axis}": report_unit for axis in AXES}


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimCheck:
    """Reasons why the claim of a file is not proved, and counts of breaches (None if they cannot be counted)."""

    # violations: (edge, direction, report) triples, or (edge, direction) of factors; position_breaches: (cell, report).

    violations: int | None
    position_breaches: int | None = None
    reasons: list[str]


class PositionClaims(Protocol):
    """Reads the claims about positions of mechanism files."""

    def stored_claim(self, file: MechanismFile) -> PositionClaim:
        """The claim about positions of a file, rebuilt; VerificationError if a part of it is missing."""
        ...


class FactorFiles(Protocol):
    """Reads and checks the factors of mechanism files."""

    def stored_factors(self, file: MechanismFile) -> Any:
        """The integers of a factored mechanism; InputError if one is out of range."""
        ...

    def check_factors(self, file: MechanismFile) -> ClaimCheck:
        """The claim compared with metric and geometry, and every edge of it checked by the stored row sums."""
        ...


POSITION_CLAIMS: Role[PositionClaims] = Role("positions")
FACTOR_FILES: Role[FactorFiles] = Role("factors")


def claim_sentence(metric: Metric, domain: Domain, edges: Edges) -> str:
    """The claim in one sentence, with a fingerprint of the edge list."""
    times = ""
    # Stored lengths include the scale.
    if metric.scale != 1 and not metric.uses_stored_edges:
        times = f"{float(metric.scale)!r} times "
    where = "places" if domain.labels is None else "classes"
    if domain.shape is not None:
        where = f"{words_of(domain).many} of a {' x '.join(map(str, domain.shape))} grid"
        if domain.plane is not None:
            where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.max_radius)}"
    return (
        f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {domain.size} secrets "
        f"({where}), where d is {times}{metric.claim(domain)}; checked on {len(edges.tail)} edges "
        f"(list {fingerprint(edges)}). "
        "k reports cost k times as much."
    )
