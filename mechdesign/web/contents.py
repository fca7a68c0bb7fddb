"""Contents of a page: the mechanism, complete where it fits, and figures about it.

One JSON object, and all arrays little-endian one after another, compressed by gzip. Names of the object:

| name | value |
|---|---|
| kind | table, rows (of a table too large), factors or region |
| attrs | attributes of the mechanism, by name |
| arrays | its variables, by name: dtype, shape, units where it has some, start in the bytes |
| beside | arrays that it lacks, in the same form: rebuilt edges, degrees, carried rows, a packed table, lines |
| edges | number of edges of the claim |
| protection | within, factor (null where it is not known, "unbounded" where there is none), exact, path |
| position_loss | the loss to true positions, or null |
| verification | the outcome of `verify` when the page was made |
| facts | names, units, provenance, how to cite, a table for readers without scripts |

The page makes its own sentences from these numbers, once it has recomputed them.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices
from mechdesign.base.formatting import TIMES, format_cell, number
from mechdesign.base.streams import visible
from mechdesign.base.units import plural_unit
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import drawn_rows, loss_matrix, position_loss
from mechdesign.mechanism.figures import relative_gap
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.schema import stored_points, without_derived
from mechdesign.output.captions import grid_words, mechanism_words, readable_unit
from mechdesign.output.compare import AT_CLAIM
from mechdesign.output.lines import lines_over
from mechdesign.output.sentences import (
    any_gap,
    bound_sentence,
    error_sentence,
    has_other_objective,
    join_sentences,
    limit_sentences,
    protection_sentence,
    stopped_sentence,
)
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import words_of
from mechdesign.verification.verify import Verification
from mechdesign.web.basemap import lines_beside
from mechdesign.web.identity import CHECKSUM, exact, identity_of, parameter_words
from mechdesign.web.page_table import PageTable

MOST_PLACES = 50_000  # of a factored mechanism in a page
MOST_GENERATORS = 1_000_000  # of its columns
MOST_LISTED = 60  # places in the table for readers without scripts
_TABLE = ("mass", "edge_tail", "edge_head", "edge_length")


class Arrays:
    """Arrays laid out one after another; `place` appends one and returns its position."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def place(self, values: NDArray[Any], **attributes: Any) -> dict[str, Any]:
        """Append an array; its dtype, shape and start, and its further attributes."""
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        # A typed array of JavaScript must start at a multiple of its item size, at most 8 bytes.
        start = self._size + -self._size % 8
        self._parts += [bytes(start - self._size), data]
        self._size = start + len(data)
        return {"dtype": values.dtype.str.lstrip("<>|="), "shape": list(values.shape), "start": start, **attributes}

    def pack(self, contents: dict[str, Any]) -> bytes:
        """Compress the length of `contents` (uint32), their JSON, and at a multiple of 8 bytes the arrays."""
        text = json.dumps(contents, allow_nan=False, separators=(",", ":")).encode()
        before = len(text).to_bytes(4, "little") + text
        # Without a time, so that the same mechanism gives the same page.
        return gzip.compress(b"".join([before, bytes(-len(before) % 8), *self._parts]), 6, mtime=0)


def headline(stored: MechanismFile, checked: Verification) -> str:
    """The first sentences of a page: shortfall, protection, error, and the bound if `verify` proved it."""
    assert checked.protection is not None
    attrs, at_position = stored.mechanism.attrs, position_loss(stored.mechanism)
    parts: list[str | None] = [protection_sentence(checked.protection), limit_sentences(stored)]
    parts.append(error_sentence(stored, at_position=at_position))
    value, gap = float(attrs.get("objective", attrs["expected_loss"])), None
    if checked.lower_bound_checked:
        gap = relative_gap(value, float(attrs["lower_bound"]), 0.0) if value > 0 else 0.0
    # sentence.js states no bound of another objective, and both headlines must agree.
    if (checked.lower_bound_checked or any_gap(stored) is not None) and not has_other_objective(stored):
        parts.append(bound_sentence(stored, at_position=at_position, gap=gap))
    return join_sentences([stopped_sentence(stored, attrs.get("stopped"), gap), *parts])


def mechanism_contents(table: PageTable, facts: dict[str, Any], over: str | Path | None = None) -> tuple[str, bytes]:
    """The kind and the bytes of a page of a mechanism that was verified; over: GeoJSON of lines on its map."""
    arrays, stored, checked = Arrays(), table.stored, table.checked
    mechanism = stored.mechanism
    for dim, most in (("place", MOST_PLACES), ("generator", MOST_GENERATORS)):
        if stored.is_factored and mechanism.sizes.get(dim, 0) > most:
            raise InputError(
                f"has more than {most:,} {dim}s, too many for a page",
                field="page",
                value=mechanism.sizes[dim],
                remedy="make a page of a smaller area, or use verify and plot",
            )
    beside = lines_beside(lines_over(over, stored.domain), stored.domain)
    left_out: tuple[str, ...] = ()
    if stored.is_factored:
        edges = stored.edges
        beside |= {"claim_tail": edges.tail, "claim_head": edges.head, "claim_length": edges.length}
    elif table.rounded is not None:
        beside["packed"], left_out = np.frombuffer(table.container, np.uint8), _TABLE
    elif table.carried is not None:
        beside |= _rows_beside(stored, table.carried)
        # Without all edges trees prove nothing.
        left_out = (*_TABLE, "tree")
    degrees = degrees_of(stored.domain, stored_points(mechanism, "secret"))
    if degrees is not None:
        beside["degrees"] = degrees
    contents: dict[str, Any] = {
        "kind": "factors" if stored.is_factored else "table" if table.carried is None else "rows",
        "attrs": {str(name): plain(value) for name, value in mechanism.attrs.items()},
        "arrays": {
            str(name): arrays.place(variable.values, **_unit(variable))
            for name, variable in without_derived(mechanism).variables.items()
            if name not in left_out
        },
        "beside": {name: arrays.place(values) for name, values in beside.items()},
        "edges": len(stored.edges.tail),
        "network": stored.metric.network,
        "protection": protection_contents(checked),
        "position_loss": position_loss(mechanism),
        "verification": checked.as_dict(),
        "facts": facts,
    }
    return contents["kind"], arrays.pack(contents)


def _rows_beside(stored: MechanismFile, carried: Indices) -> dict[str, NDArray[Any]]:
    """Rows of a table that is too large for a page, and the edges between them."""
    edges = stored.edges
    inside = np.isin(edges.tail, carried) & np.isin(edges.head, carried)
    return {
        "carried": carried,
        "mass": stored.mechanism["mass"].values[carried],
        "claim_tail": edges.tail[inside].astype(np.int64),
        "claim_head": edges.head[inside].astype(np.int64),
        "claim_length": edges.length[inside],
    }


def protection_contents(checked: Verification) -> dict[str, Any]:
    """The numbers of the sentence on protection."""
    p = checked.protection
    assert p is not None
    # JSON has no infinity.
    factor: float | str | None = "unbounded" if p.factor == math.inf else p.factor
    return {"within": p.within, "factor": factor, "exact": p.exact, "path": p.path}


def _unit(variable: xr.Variable) -> dict[str, str]:
    return {"units": str(variable.attrs["units"])} if "units" in variable.attrs else {}


def plain(value: object) -> str | int | float:
    """Convert an attribute to a type of JSON."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    return float(value) if isinstance(value, (float, np.floating)) else str(value)


def degrees_of(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Longitudes and latitudes (n, 2) of points of a domain; None off Earth, and where pyproj is not installed."""
    if domain.plane is None:
        return None
    try:
        return np.column_stack(domain.plane.backward(points))
    except InputError:
        return None


def mechanism_facts(table: PageTable, source: xr.Dataset) -> dict[str, Any]:
    """Texts of the page of a mechanism, the `source` of its table: one line each, without control characters."""
    stored, checked = table.stored, table.checked
    mechanism = stored.mechanism
    attrs, domain = mechanism.attrs, stored.domain
    loss_unit = readable_unit(stored.loss_unit)
    placed = checked.position_claim is not None
    bound = attrs["lower_bound"] if checked.lower_bound_checked else None
    figures = {
        "expected_loss": ("expected loss", checked.expected_loss, loss_unit),
        "objective": ("objective", attrs.get("objective"), ""),
        "lower_bound": ("lower bound", bound, loss_unit),
        "ratio": ("ratio", checked.ratio, "of the claim"),
        "violations": ("violations", checked.violations, ""),
        "position_breaches": ("gradients that are too steep", checked.position_breaches, ""),
        "rebuilt": ("rebuilt from", checked.edge_source, ""),
        "lower_bound_checked": ("lower bound checked", checked.lower_bound_checked, ""),
        "lower_bound_reason": ("reason", checked.lower_bound_reason, ""),
        "worst": ("closest to the claim of rows" if placed else "closest to the claim", checked.worst, ""),
        "row_ratio": ("ratio of rows (positions draw mixtures of rows)", checked.row_ratio, "of the claim of rows"),
    }
    claims = {"claim": checked.claim, "position_claim": checked.position_claim}
    identity, note = identity_of(source, "mechanism", parameters=parameter_words(mechanism)), table.note()
    if table.rounded is not None:
        identity["provenance"][f"{CHECKSUM} before rounding"] = identity["provenance"].pop(CHECKSUM)
    return (
        identity
        | ({} if note is None else {"note": note})
        | {
            **{name: visible(claim) for name, claim in claims.items() if claim is not None},
            "sentence": headline(stored, checked),
            "subtitle": f"{_places(stored)} · {visible(attrs['program']).replace('_', ' ')} mechanism",
            "unit": plural_unit(domain.unit),
            "noun": words_of(domain).report_noun,
            "loss_unit": loss_unit,
            "report_unit": plural_unit(stored.report_unit),
            "same_places": stored.same_places,
            "figures": [
                {"key": key, "name": name, "text": exact(value), "unit": unit}
                for key, (name, value, unit) in figures.items()
                if value is not None
            ],
            "listed": _most_likely_places(stored),
        }
    )


def comparison_facts(rows: Sequence[Mapping[str, Any]], unit: str, mechanism: xr.Dataset) -> dict[str, Any]:
    """Rows of a comparison as the page of a mechanism shows them; unit, that of losses."""
    names = ("loss", "claimed_epsilon", "effective_epsilon", "ratio")
    return {
        "heads": [f"loss ({unit})" if unit else "loss", "claimed epsilon", "effective epsilon", "ratio"],
        "rows": [
            {
                "name": mechanism_words(visible(row["mechanism"]), mechanism),
                "broken": not row["ratio"] <= AT_CLAIM,
                "figures": [format_cell(row[name], digits=3) for name in names],
            }
            for row in rows
        ],
    }


def _places(stored: MechanismFile) -> str:
    domain = stored.domain
    if domain.shape is None:
        known = domain.kind == "points" or stored.metric.network or domain.labels is not None
        return f"{domain.size:,} {words_of(domain).many if known else 'secrets'}"
    parts = stored.row_parts
    side = f" {TIMES} ".join(dict.fromkeys(number(h * parts) for h in domain.cell or ()))
    of_side = f" of {side} {plural_unit(domain.unit, 1 + (side != '1'))}"
    return grid_words(domain.shape, words_of(domain).many, domain.size, parts, times=TIMES, of_side=of_side)


def _most_likely_places(stored: MechanismFile) -> dict[str, Any]:
    mechanism = stored.mechanism
    prior, points = mechanism["prior"].values, stored_points(mechanism, "secret")
    order = np.argsort(-prior, kind="stable")[:MOST_LISTED]
    axes = ["x", "y", "z"][: points.shape[1]] if stored.domain.has_distances else []
    level = mechanism["level"].values if "level" in mechanism else None
    head = [
        words_of(stored.domain).report_noun,
        *axes,
        "prior",
        *(["level"] if level is not None else []),
        "expected loss",
    ]
    rows = [
        [
            visible(stored.domain.name_of(u)),
            *(f"{x:.6g}" for x in points[u, : len(axes)]),
            f"{prior[u]:.3g}",
            *([f"{level[u]:.3g}"] if level is not None else []),
            f"{loss:.6g}",
        ]
        for u, loss in zip(order.tolist(), _losses(stored, order).tolist(), strict=True)
    ]
    return {"head": head, "rows": rows, "rest": len(prior) - len(order)}


def _losses(stored: MechanismFile, order: NDArray[np.int64]) -> NDArray[np.float64]:
    if stored.is_factored:
        return np.asarray(stored.mechanism["row_loss"].values[order], float)
    return np.asarray((drawn_rows(stored.mechanism, order) * loss_matrix(stored.mechanism)[order]).sum(axis=1))
