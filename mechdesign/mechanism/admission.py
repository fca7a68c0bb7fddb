"""Admission: what is proved of a mechanism, in whole numbers, before anything is drawn from it.

A table: it is unaltered since it was sealed (SHA-256), its entries are positive and its rows sum to exactly 2^62, its
claim is the sentence that its own metric, geometry and edges give, edges and lengths are rebuilt from metric and
geometry (a graph lists its own), and no edge is violated. This is the part of `verify` that is about privacy; losses
and bounds are not looked at. Cost: O(e m) comparisons of 2 ns, once.

Factors: unaltered, the claim as above, and the certificate of every edge from the stored row sums; each row that is
drawn from must then sum to its stored sum. `verify` adds all the row sums up again. Cost: 3 microseconds an edge.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import xarray as xr

from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.mechanism.factored import SCHEMA as FACTORED
from mechdesign.mechanism.factored import stored_factors, stored_problem
from mechdesign.mechanism.factored_sums import join_words
from mechdesign.mechanism.table import SCHEMA, checksum, claim_sentence, stored_domain, stored_edges
from mechdesign.setting.domain import Domain
from mechdesign.setting.geodesic import Edges, check_connected
from mechdesign.setting.metrics import Graph, Metric, metric_from_description


@dataclass(frozen=True, kw_only=True, eq=False)
class Admission:
    """What was proved: P(y|u) <= e^{d(u,u')} P(y|u') over `domain`, d the distance of `metric`, one report."""

    domain: Domain
    metric: Metric
    edges: Edges

    @property
    def cost(self) -> Fraction:
        """What one report costs, as an exact multiple of the metric with multiplier 1; of a graph, whose lengths are
        listed multiplied, 1.
        """
        return Fraction(1) if self.metric.kind == "graph" else Fraction(self.metric.multiplier)

    @property
    def unit(self) -> str:
        """64 hexadecimal digits that name the metric with multiplier 1 and the places it is over: costs add up, and
        secrets are the same cells, where they agree.
        """
        described = self.metric.describe() | ({} if self.metric.kind == "graph" else {"multiplier": 1.0})
        digest = hashlib.sha256(json.dumps([described, self.domain.describe()], sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.domain.points, "<f8").tobytes())
        if self.metric.kind == "graph":
            for part, dtype in ((self.edges.tail, "<i8"), (self.edges.head, "<i8"), (self.edges.length, "<f8")):
                digest.update(np.ascontiguousarray(part, dtype).tobytes())
        return digest.hexdigest()


def admit(mechanism: xr.Dataset) -> Admission:
    """Prove the claim of a mechanism, a table or a factored one.

    Raises: VerificationError where it is altered, incomplete or not private as claimed.
    """
    schema = mechanism.attrs.get("schema")
    if schema not in (SCHEMA, FACTORED):
        raise _refused("not a mechanism", field="schema", value=schema)
    try:
        if mechanism.attrs.get("sha256") != checksum(mechanism):
            raise _refused("the checksum does not match the content", field="sha256")
        admission = _factors(mechanism) if schema == FACTORED else _table(mechanism)
        found = claim_sentence(admission.metric, admission.domain, admission.edges)
    except VerificationError:
        raise
    except MechdesignError as error:
        raise _refused(f"the mechanism contradicts itself: {error.message}", field=error.field) from error
    except Exception as error:
        raise _refused(f"not a complete mechanism ({type(error).__name__}: {error})", field="mechanism") from error
    if mechanism.attrs.get("claim") != found:
        raise _refused("not the sentence that metric, geometry and edges give", field="claim")
    return admission


def _table(mechanism: xr.Dataset) -> Admission:
    mass = mechanism["mass"]
    if (mass.dtype, mass.dims) != (np.dtype(np.uint64), ("secret", "report")) or not row_sums_exact(mass.values):
        raise _refused("must be positive 64-bit integers (secret, report), rows summing to exactly 2^62", field="mass")
    domain = stored_domain(mechanism)
    description = json.loads(mechanism.attrs["metric"])
    metric = metric_from_description(description)
    if metric is None:
        edges = stored_edges(mechanism)
        multiplier = float(description["multiplier"])
        metric = Graph(tail=edges.tail, head=edges.head, length=edges.length, multiplier=multiplier)
        check_connected(edges, domain.size)
    else:
        edges = metric.edges(domain)
    if edges.tail.min() < 0 or edges.head.min() < 0 or max(edges.tail.max(), edges.head.max()) >= domain.size:
        raise _refused("an edge ends outside the secrets", field="edge_tail")
    bad = violations(np.ascontiguousarray(mass.values), edges)
    if bad:
        raise _refused(f"{bad} (edge, direction, report) triples break the claim", field="mass")
    return Admission(domain=domain, metric=metric, edges=edges)


def _factors(mechanism: xr.Dataset) -> Admission:
    problem, factors = stored_problem(mechanism), stored_factors(mechanism)
    bad = factors.breaches(problem.edges, join_words(mechanism["row_sum"].values))
    if bad:
        raise _refused(f"{bad} (edge, direction) pairs break the claim", field="row_sum")
    target = mechanism["target"].values
    if target.min() < 0 or target.max() >= problem.domain.size:
        raise _refused("must name secrets", field="target")
    return Admission(domain=problem.domain, metric=problem.metric, edges=problem.edges)


def _refused(message: str, *, field: str, value: object = None) -> VerificationError:
    return VerificationError(
        message, field=field, value=value, remedy="draw only from an unaltered mechanism that `verify` certifies"
    )
