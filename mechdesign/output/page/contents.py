"""What a page carries: the file it was made from, whole where it can be, and what was said of it.

One JSON object, and one run of bytes: all arrays little-endian one after another, compressed by gzip. Names of the
object:

| name | value |
|---|---|
| format, kind | "mechdesign/page/1"; table, rows (of a table too large), factors, region, curve or shares |
| attrs | attributes of the file, by name: [type, value], whole numbers as texts |
| arrays | variables of the file, by name: dtype, shape, dims, coordinate, attrs, start in the bytes |
| beside | arrays that the file lacks, in the same form: edges rebuilt, degrees, secrets whose rows are carried |
| complete | whether every variable is there as it is in the file, so that its checksum can be found again |
| saying | the sentence: template, values, texts |
| verification | what `verify` found when the page was made |
| comparison | rows of `compare`, or null |
| mechanisms | of an estimate: such objects of the mechanisms that made its reports, arrays in the same bytes |
"""

from __future__ import annotations

import gzip
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.mechanism.storage.files import file_checksum
from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.dataset import stored_points
from mechdesign.output.sentences import Saying, bound_sentence, error_sentence, joined, protects, stopped_sentence
from mechdesign.output.tables.compare import AT_CLAIM, Row
from mechdesign.output.tables.files import documented
from mechdesign.output.tables.sweep import baseline_names
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.true_position import position_loss
from mechdesign.verification.verify import Verification

FORMAT = "mechdesign/page/1"
MOST_MASSES = 900 * 900  # of a table in a page: 6.5 MB, proved in seconds
MOST_PLACES = 50_000  # of a factored mechanism in a page
MOST_GENERATORS = 1_000_000  # of its columns


class Arrays:
    """Arrays laid one after another; `place` says where one is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def place(self, values: NDArray[Any], **said: Any) -> dict[str, Any]:
        """Append an array; its dtype, shape and start, beside what is `said` of it."""
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        start = self._size + -self._size % 8
        self._parts += [bytes(start - self._size), data]
        self._size = start + len(data)
        return {"dtype": values.dtype.str.lstrip("<>|="), "shape": list(values.shape), "start": start, **said}

    def packed(self) -> bytes:
        """All of them, compressed; the same bytes for the same arrays."""
        return gzip.compress(b"".join(self._parts), 6, mtime=0)


def saying_of(stored: Stored, checked: Verification) -> Saying:
    """What a page begins with: what is protected, how far off reports are, the lower bound where `verify` found it
    again, and what a design that was stopped may be missing.
    """
    assert checked.protection is not None
    attrs, at_position = stored.mechanism.attrs, position_loss(stored.mechanism)
    parts: list[Saying | None] = [protects(checked.protection), error_sentence(stored, at_position=at_position)]
    value, gap = float(attrs.get("objective", attrs["expected_loss"])), None
    if checked.lower_bound_checked:
        gap = (value - float(attrs["lower_bound"])) / value if value > 0 else 0.0
        if "objective" not in attrs or stored.positions is not None:
            parts.append(bound_sentence(stored, at_position=at_position, gap=gap))
    said = joined([*parts, stopped_sentence(attrs.get("stopped"), gap)])
    return Saying(
        template=said.template,
        values={name: value for name, value in said.values.items() if f"{{{name}}}" in said.template},
        texts=said.texts,
    )


def mechanism_contents(
    stored: Stored, checked: Verification, comparison: Sequence[Row] | None = None
) -> tuple[dict[str, Any], bytes]:
    """The object and the bytes of a page of a mechanism that was verified.

    Raises: InputError for a factored mechanism of more than 50,000 places, or columns of more than 10^6 generators.
    """
    arrays = Arrays()
    contents = mechanism_part(stored, checked, arrays)
    return contents | {"comparison": None if comparison is None else _compared(comparison)}, arrays.packed()


def mechanism_part(stored: Stored, checked: Verification, arrays: Arrays) -> dict[str, Any]:
    """The object of a page of a mechanism, its arrays laid behind the others. Raises: as `mechanism_contents`."""
    mechanism = stored.mechanism
    for dim, most in (("place", MOST_PLACES), ("generator", MOST_GENERATORS)):
        if stored.factored and mechanism.sizes.get(dim, 0) > most:
            raise InputError(
                f"has more than {most:,} {dim}s, too many for a page",
                field="page",
                value=mechanism.sizes[dim],
                remedy="make a page of a smaller area, or use verify and plot",
            )
    beside: dict[str, NDArray[Any]] = {}
    carried = None
    if stored.factored:
        edges = stored.edges
        beside |= {"claim_tail": edges.tail, "claim_head": edges.head, "claim_length": edges.length}
    elif mechanism["mass"].size > MOST_MASSES:
        carried = near_rows(stored, MOST_MASSES // mechanism.sizes["report"])
        beside |= {"carried": carried, "mass": mechanism["mass"].values[carried]}
        beside |= edges_within(stored.edges, carried)
    degrees = degrees_of(stored.domain, stored_points(stored.mechanism, "secret"))
    if degrees is not None:
        beside["degrees"] = degrees
    left_out = ("mass", "edge_tail", "edge_head", "edge_length") if carried is not None else ()
    return {
        "format": FORMAT,
        "kind": "factors" if stored.factored else "table" if carried is None else "rows",
        "complete": carried is None,
        **file_part(mechanism, arrays, left_out),
        "beside": {name: arrays.place(values) for name, values in beside.items()},
        "edges": len(stored.edges.tail),
        "network": stored.metric.network,
        "saying": saying_of(stored, checked).as_dict(),
        "verification": {**checked.as_dict(), "sha256": file_checksum(stored.mechanism)},
        "comparison": None,
    }


def curve_contents(curve: xr.Dataset) -> tuple[dict[str, Any], bytes]:
    """The object and the bytes of a page of a sweep."""
    arrays = Arrays()
    shown = [name for name in baseline_names() if f"{name}_loss" in curve]
    others = [
        str(name).removesuffix("_effective_epsilon") for name in curve if str(name).endswith("_effective_epsilon")
    ]
    contents = {
        "format": FORMAT,
        "kind": "curve",
        "complete": True,
        **file_part(curve, arrays),
        "beside": {},
        "comparison": None,
        "baselines": shown + [name for name in others if name not in shown],
        "at_claim": AT_CLAIM,
    }
    return contents, arrays.packed()


def near_rows(stored: Stored, count: int) -> NDArray[np.int64]:
    """The likeliest secret and those nearest to it by edges, `count` of them at most, ascending."""
    edges = stored.edges
    first = int(np.argmax(stored.mechanism["prior"].values))
    beside: list[list[int]] = [[] for _ in range(stored.domain.size)]
    order = np.argsort(edges.length, kind="stable")
    for u, v in zip(edges.tail[order].tolist(), edges.head[order].tolist(), strict=True):
        beside[u].append(v)
        beside[v].append(u)
    seen, waiting = {first}, deque([first])
    while waiting and len(seen) < count:
        for v in beside[waiting.popleft()]:
            if v not in seen and len(seen) < count:
                seen.add(v)
                waiting.append(v)
    return np.array(sorted(seen), np.int64)


def edges_within(edges: Edges, carried: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The edges of a claim with both ends among the secrets `carried`."""
    kept = np.isin(edges.tail, carried) & np.isin(edges.head, carried)
    return {
        "claim_tail": edges.tail[kept].astype(np.int64),
        "claim_head": edges.head[kept].astype(np.int64),
        "claim_length": edges.length[kept],
    }


def file_part(held: xr.Dataset, arrays: Arrays, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """Attributes and variables of a Dataset as a page carries them."""
    return {
        "attrs": {str(name): _typed(value) for name, value in held.attrs.items()},
        "arrays": {
            str(name): arrays.place(
                variable.values,
                dims=[str(dim) for dim in variable.dims],
                coordinate=name in held.coords,
                attrs={str(key): _typed(value) for key, value in variable.attrs.items()},
            )
            for name, variable in held.variables.items()
            if name not in left_out
        },
    }


def _typed(value: object) -> list[Any]:
    if isinstance(value, (int, np.integer)):
        return ["int", str(int(value))]
    if isinstance(value, (float, np.floating)):
        return ["float", float(value)]
    return ["str", str(value)]


def degrees_of(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Longitudes and latitudes (n, 2) of points of a domain; None off Earth, and where pyproj is not installed."""
    if domain.plane is None:
        return None
    try:
        return np.column_stack(domain.plane.backward(points))
    except InputError:
        return None


def _compared(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """Rows of a comparison, each with whether it breaks the claim of the problem."""
    return [{**row, "broken": not row["effective_epsilon"] <= AT_CLAIM} for row in documented(rows)]
