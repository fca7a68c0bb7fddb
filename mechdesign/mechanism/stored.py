"""Stored: what a mechanism file says, rebuilt in one place for all that read one.

Edges and lengths come from the metric, the level map and the coordinates, never from the list in the file; only where
the edges themselves are the claim (a graph), they are the file's. The lengths that a graph lists are those of the
claim, multiplied already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.base.descriptions import read_json
from mechdesign.base.units import canonical_unit
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.columns import Columns
from mechdesign.mechanism.positions.claim import RULE, position_sentence
from mechdesign.mechanism.positions.patches import Patches, level_faults, patches
from mechdesign.mechanism.schema import COLUMNED, FACTORED, MECHANISMS, check, refused
from mechdesign.mechanism.table.dataset import COST, claim_sentence, stored_points
from mechdesign.setting.metric.integer_metric import IntegerMetric
from mechdesign.setting.metric.metric import Metric, Rebuilt
from mechdesign.setting.metric.metrics import metric_from_description
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.objective.losses import LOSSES, Loss, TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import AXES, Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """A mechanism, a table or a factored one, that satisfies its schema; make one with `read`.

    What contradicts itself raises a MechdesignError where it is asked for.
    """

    mechanism: xr.Dataset

    @property
    def factored(self) -> bool:
        """Whether it is kept as factors instead of a table."""
        return self.mechanism.attrs["schema"] in (FACTORED, COLUMNED)

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
    def _listed_before(self) -> Edges | None:
        """The edges listed with the lengths of the problem's metric; None where the file does not hold both."""
        if self.listed is None or "problem_length" not in self.mechanism:
            return None
        return replace(self.listed, length=self.mechanism["problem_length"].values)

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
    def asked(self) -> Metric | None:
        """The metric of the problem that the mechanism was made for: that of the claim is `multiple` times it.

        None where the file does not say what was asked for (a graph whose own lengths it does not list).
        Raises: VerificationError where multiple, metric and problem_metric do not fit together.
        """
        multiple, attrs = float(self.mechanism.attrs["multiple"]), self.mechanism.attrs
        claimed = float(described(self.mechanism, "metric")["multiplier"])
        if multiple == 1 and "problem_metric" not in attrs:
            return self.metric
        own = float(described(self.mechanism, "problem_metric")["multiplier"]) if "problem_metric" in attrs else 1.0
        if not (math.isfinite(multiple) and multiple >= 0 and own * multiple == claimed):
            raise refused("is not what the claim is times the metric of the problem", "multiple", multiple, claimed)
        if "problem_metric" not in attrs:
            return None if self.metric.listed else replace(self.metric, scale=own)
        metric = metric_from_description(described(self.mechanism, "problem_metric"), self._listed_before)
        if metric.listed:
            if self._listed_before is None:
                raise refused("must be there", "problem_length", "no such variable", "the whole file")
            metric = replace(metric, scale=own)
            again = replace(metric, scale=claimed).edges(self.domain).length
            if not np.array_equal(again, self.edges.length):
                raise refused("does not give the lengths of the claim", "problem_length", "", "the lengths asked for")
        elif replace(metric, scale=claimed).describe() != self.metric.describe():
            raise refused("is another metric than that of the claim", "problem_metric", metric.kind, self.metric.kind)
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
            kind: Literal["nodes", "points"] = "nodes" if self.domain.kind == "nodes" else "points"
            reports = Domain(kind=kind, points=stored_points(self.mechanism, "report"), unit=self.report_unit)
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
        kept = described(self.mechanism, "parameters")
        if not isinstance(kept.get("knobs"), dict):
            raise refused(
                "must hold the parameters of the problem", "parameters", f"{kept!s:.80}", "a mapping parameters"
            )
        return kept

    @cached_property
    def positions(self) -> Patches | None:
        """Rows and levels of the claim about positions, rebuilt but for the levels; None where there is none.

        Raises: VerificationError where only a part of it is there, or the metric of the problem cannot be told.
        """
        levels = [name for name in ("corner_level", "quarter_level") if name in self.mechanism]
        kept = ["around_row" in self.mechanism, len(levels) == 1]
        kept += [name in self.mechanism.attrs for name in ("position_rule", "position_claim")]
        if not any(kept) and not levels:
            return None
        if not all(kept) or self.asked is None:
            raise refused("is there in part", "position_claim", kept, "rule, sentence, rows and levels of positions")
        return patches(self.domain, self.asked, self.mechanism[levels[0]].values)

    @property
    def same_places(self) -> bool:
        """Whether reports are the secrets."""
        return self.factored or np.array_equal(self.domain.points, stored_points(self.mechanism, "report"))

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
    def factors(self) -> Factors:
        """The integers of a factored mechanism. Raises: InputError where one is out of range."""
        held, attrs = self.mechanism, self.mechanism.attrs
        if len(np.unique(held["inner"].values)) < self.domain.size:
            raise refused("two secrets share a place", "inner", "", "a place of its own for every secret")
        metric = IntegerMetric(
            points=stored_points(held, "place"),
            tail=held["edge_tail"].values,
            head=held["edge_head"].values,
            units=held["edge_units"].values,
            cap=int(attrs["cap"]),
        )
        columns = None
        if attrs["schema"] == COLUMNED:
            place, offset = held["generator_place"].values, held["generator_offset"].values
            columns = Columns(place=place, offset=offset, first=held["first_generator"].values)
        return Factors(
            metric=metric,
            step=int(attrs["step"]),
            weight=held["weight"].values,
            inner=held["inner"].values,
            columns=columns,
        )

    def differences(self) -> list[str]:
        """How the claim, levels, edges and units of the file differ from what metric and geometry give."""
        attrs, reasons = self.mechanism.attrs, []
        self.parameters  # noqa: B018
        if attrs["claim"] not in _sentences(self):
            reasons.append("claim: the stored sentence is not the one that the metric, level and grid give")
        if attrs["cost"] != COST:
            reasons.append("cost: the stored sentence is not that of one report")
        level = self.metric.level_at(self.domain)
        stored = self.mechanism["level"].values if "level" in self.mechanism else None
        if (stored is None) != (level is None) or (level is not None and (level != stored).any()):
            reasons.append("level: differs from the level map of the metric")
        if self.rebuilt != "edge list only" and self.listed is not None:
            reasons += _edge_differences(self.listed, self.edges)
        return reasons + _position_differences(self) + _unit_differences(self)


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
        found = read_json(text)
    except (ValueError, RecursionError) as error:
        raise refused(f"cannot be read ({error})", name, f"{text!s:.80}", "a JSON object") from error
    if not isinstance(found, dict):
        raise refused("must be an object", name, f"{text!s:.80}", "a JSON object")
    return found


def contradiction(error: Exception) -> VerificationError:
    """What a file that raised `error` while it was rebuilt is refused with."""
    if isinstance(error, VerificationError):
        return error
    if isinstance(error, MechdesignError):
        said = f"the file contradicts itself: {error.message}"
        return VerificationError(said, field=error.field, value=error.value, remedy="use an unaltered file")
    said = f"not a complete file ({type(error).__name__}: {error})"
    return VerificationError(said, field="file", value="", remedy="use an unaltered file")


def _sentences(stored: Stored) -> set[str]:
    """The sentences by which a file names its claim: that of today, and the one of files whose scale was printed to
    twelve digits. What is printed is always the first.
    """
    scale = float(stored.metric.scale)
    exact, rounded = (f"where d is {digits} times " for digits in (repr(scale), f"{scale:.12g}"))
    return {stored.claim, stored.claim.replace(exact, rounded)}


def _edge_differences(stored: Edges, edges: Edges) -> list[str]:
    if len(stored.tail) != len(edges.tail):
        return [f"edge_tail: the file lists {len(stored.tail)} edges, the metric has {len(edges.tail)}"]
    if not (np.array_equal(stored.tail, edges.tail) and np.array_equal(stored.head, edges.head)):
        return ["edge_tail: the file lists other edges than the metric has"]
    different = np.flatnonzero(stored.length != edges.length)
    if len(different) == 0:
        return []
    e = int(different[0])
    said = f"first edge {e}: {stored.length[e]!r} instead of {edges.length[e]!r}"
    return [f"edge_length: {len(different)} differ from the metric, {said}"]


def _position_differences(stored: Stored) -> list[str]:
    """How the claim about positions differs from what metric and geometry give."""
    if stored.positions is None or stored.asked is None:
        return []
    attrs, reasons = stored.mechanism.attrs, level_faults(stored.domain, stored.asked, stored.positions.corner_level)
    if not np.array_equal(stored.mechanism["around_row"].values, stored.positions.around):
        reasons.append("around_row: the cells around a cell have other rows by the rule")
    if attrs["position_rule"] != RULE:
        reasons.append("position_rule: another rule than that of this version")
    if attrs["position_claim"] != position_sentence(stored.asked, stored.domain, stored.positions):
        reasons.append("position_claim: the stored sentence is not the one that the metric, levels and grid give")
    return reasons


def _unit_differences(stored: Stored) -> list[str]:
    """Units that are not those of the domain, the loss or the variable; coordinates must say theirs."""
    unit, mechanism = stored.domain.unit, stored.mechanism
    loss = stored.loss.unit(unit)
    wanted = {"mass": "2^-62", "edge_length": "nats", "prior": "1", "level": f"nats per {unit}", "dual": loss}
    wanted |= dict.fromkeys(("corner_level", "quarter_level"), f"nats per {unit}")
    wanted |= {"row_loss": loss, "loss_table": loss, "problem_length": "nats"}
    wanted |= {f"{dim}_{axis}": unit for dim in ("secret", "place") for axis in AXES}
    report = unit if stored.same_places else canonical_unit(stored.report_unit)
    wanted |= {f"report_{axis}": report for axis in AXES}
    found = {
        name: mechanism[name].attrs.get("units", None if name in mechanism.coords else said)
        for name, said in wanted.items()
        if name in mechanism.variables
    }
    return [f"{name}: in {unit}, should be in {wanted[name]}" for name, unit in found.items() if unit != wanted[name]]
