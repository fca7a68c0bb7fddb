"""Tables of mechanisms in CSV, JSON and Parquet, for programs that do not have this package.

Every format has the same `Content`: comments (claim, units, losses, checksum of the source, sizes), coordinates, edges
of the claim and masses. The claim can be checked from these. A text ends in a line with its SHA-256.

CSV: one line per (secret, report); all else is in FILE.csv-metadata.json, the JSON below without points and masses.

    secret,secret_x,report,report_x,probability,mass
    0,0.5,0,0.5,0.5,2305843009213693952   all reports of secret 0, then of the next

Classes have two more columns at the end, secret_label and report_label.

probability is mass / 2^62 as the nearest double; the claim is of the masses. A factored mechanism has a column row_sum
after mass, and probability = mass / row_sum.

JSON: one object, for programs that sample with integers; docs/reference/file-formats.md lists its names. An entry of
`edge` is [tail, head, length in nats as an exact hexadecimal float]. An entry of `patch` has the nine rows around a
cell, then the levels at its corners or its quarters'. `mass` has a string for each row, masses separated by blanks.
They exceed 2^53: text.split(" ").map(BigInt) reads them in JavaScript. JSON always has all rows: a client that asked
for its own row would reveal its place.

Parquet (extra `parquet`): the columns of the CSV. The metadata of the schema holds the comments by name, all but texts
in JSON, and `edge` as above.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.spreadsheets import cell_of
from mechdesign.errors import InputError
from mechdesign.mechanism.accuracy import accuracy, round_up
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.hashing import file_digest
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_points
from mechdesign.mechanism.storage import file_sha256
from mechdesign.problem.domain import AXES
from mechdesign.problem.plane import Plane
from mechdesign.programs.constrained import claimed_limits

FORMAT = "mechdesign/table/1"  # of JSON
DEGREES = ("x", "y", "longitude", "latitude")  # x and y in `unit`
_ATTRIBUTES = ("problem", "program", "loss")  # of the mechanism, that comments repeat


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """A table or factors to write: rows (secrets), recomputed figures by name, and a plane if degrees are added."""

    stored: MechanismFile
    rows: range
    figures: Mapping[str, float] = field(default_factory=dict)
    plane: Plane | None = None
    name: str = ""  # of the file
    with_bound: bool = False  # trees prove the lower bound, and go into the file with all that they need

    @cached_property
    def secrets(self) -> list[list[float]]:
        """Coordinates of all n secrets, in `unit`; with a plane also longitude and latitude in degrees."""
        return self._with_degrees(stored_points(self.stored.mechanism, "secret"))

    @cached_property
    def reports(self) -> list[list[float]]:
        """Coordinates of all m reports, in `report_unit`."""
        return (
            self.secrets
            if self.stored.is_factored
            else self._with_degrees(stored_points(self.stored.mechanism, "report"))
        )

    @cached_property
    def labels(self) -> tuple[Sequence[str], Sequence[str]] | None:
        """Labels of all secrets and of all reports; None unless both are classes."""
        if self.stored.is_factored or self.stored.domain.labels is None:
            return None
        reports = self.stored.domain if self.stored.same_places else self.stored.report_domain
        return None if reports.labels is None else (self.stored.domain.labels, reports.labels)

    @cached_property
    def accuracy(self) -> list[float] | None:
        """Radii in `unit` about reports that hold the true position with 95 % under the prior, rounded up, or None."""
        radii = accuracy(self.stored.mechanism)
        return None if radii is None else round_up(radii)

    def axes(self, points: list[list[float]]) -> Sequence[str]:
        """Names of the coordinates of secrets or of reports: x, y, z as far as they go."""
        return DEGREES if self.plane is not None else AXES[: len(points[0])]

    @cached_property
    def edges(self) -> list[tuple[int, int, str]]:
        """Edges of the claim between written secrets: tail, head, length in nats as an exact hexadecimal float."""
        edges = self.stored.edges
        listed = zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True)
        return [(u, v, length.hex()) for u, v, length in listed if u in self.rows and v in self.rows]

    @cached_property
    def patches(self) -> list[list[int | str]]:
        """Entries of `patch` in the order of positions/patches.py, levels in nats per `unit`; only with all rows."""
        positions = self.stored.positions
        if positions is None or len(self.rows) < len(self.secrets):
            return []
        levels = [[level.hex() for level in levels] for levels in positions.corner_level.tolist()]
        return [[*rows, *corners] for rows, corners in zip(positions.around.tolist(), levels, strict=True)]

    @property
    def bound(self) -> dict[str, list[Any]]:
        """Prior, multipliers and a table of losses as exact hexadecimal floats, and the steps of trees as text."""
        if not self.with_bound:
            return {}
        mechanism = self.stored.mechanism
        vectors = {name: [x.hex() for x in mechanism[name].values.tolist()] for name in ("prior", "dual")}
        bound = {**vectors, "tree": [" ".join(map(str, row)) for row in mechanism["tree"].values.tolist()]}
        if "loss_table" in mechanism:
            # A string for each report, as trees are.
            bound["losses"] = [" ".join(x.hex() for x in own) for own in mechanism["loss_table"].values.T.tolist()]
        return bound

    @property
    def comments(self) -> dict[str, Any]:
        """Comments by name; claim: the claim as data; sha256: that of the mechanism's file, None if unsaved."""
        mechanism, unit = self.stored.mechanism, self.stored.report_unit
        claim: dict[str, Any] = {
            "metric": self.stored.metric.describe(),
            "domain": self.stored.domain.describe(),
            "positions": {"metric": self.stored.problem_metric.describe()} if self.patches else None,
            "denominator": "row_sum" if self.stored.is_factored else "2^62",
        }
        # A limit on posteriors is about all rows: a part of the table cannot show it.
        limits = claimed_limits(str(mechanism.attrs["program"]), self.stored.parameters)
        if limits and len(self.rows) == len(self.secrets):
            claim["caps"] = [cap for limit in limits for cap in limit.claims()]
        return {
            "claim": claim,
            **({} if self.plane is None else {"coordinates": ", ".join(DEGREES)}),
            **({} if unit == self.stored.domain.unit else {"report_unit": unit}),
            **({} if self.labels is None else {"report_labels": list(self.labels[1])}),
            **{name: str(mechanism.attrs[name]) for name in _ATTRIBUTES},
            "sha256": file_digest(mechanism),
            **({"objective_of": str(mechanism.attrs["objective_of"])} if "objective" in self.figures else {}),
            **self.figures,
            **({} if self.accuracy is None else {"accuracy": self.accuracy}),
            "secrets": len(self.secrets),
            "reports": len(self.reports),
            "edges": len(self.edges),
        }

    def _with_degrees(self, points: NDArray[np.float64]) -> list[list[float]]:
        if self.plane is None:
            return points.tolist()
        return np.column_stack([points, *self.plane.backward(points)]).tolist()

    def masses(self) -> Iterator[tuple[int, list[int], int | None]]:
        """Every row: secret, masses (m,), and for a factored mechanism their sum."""
        exact = rows_of(self.stored.mechanism)
        for u in self.rows:
            masses, total = exact.integers(u)
            yield u, masses, total if self.stored.is_factored else None


def plane_of(stored: MechanismFile) -> Plane:
    """The plane of a mechanism whose reports are secrets."""
    if stored.domain.plane is None or stored.report_cells is None:
        problem = stored.mechanism.attrs["problem"]
        raise InputError("the mechanism does not say where on Earth its places are", field="degrees", value=problem)
    return stored.domain.plane


@contextmanager
def _sealed_text(path: Path, before: str, after: str) -> Iterator[TextIO]:
    """Open a new text file (UTF-8, line feeds), and end it with a line of the SHA-256 of all bytes before."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        yield stream
    # The digest is of the bytes on disk, so the last line follows after the text is closed.
    digest = file_sha256(path)
    with path.open("ab") as ending:
        ending.write(f"{before}{digest}{after}\n".encode())


def as_json(value: object) -> str:
    """One line of JSON, floats in the digits that read back exactly."""
    return json.dumps(value, allow_nan=False)


def write_csv(content: Content, path: Path) -> None:
    """Write the table alone. Cost: 1 microsecond per mass."""
    secret = [f"secret_{axis}" for axis in content.axes(content.secrets)]
    report = [f"report_{axis}" for axis in content.axes(content.reports)]
    sums = ["row_sum"] if content.stored.is_factored else []
    labels: tuple[Sequence[str], Sequence[str]] | None = None
    if content.labels is not None:
        labels = tuple([cell_of(label) for label in side] for side in content.labels)  # type: ignore[assignment]
        sums = ["secret_label", "report_label"]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["secret", *secret, "report", *report, "probability", "mass", *sums])
        for u, masses, total in content.masses():
            start, whole, end = [u, *content.secrets[u]], total or ROW_SUM, [] if total is None else [total]
            if labels is not None:
                named = ([labels[0][u], label] for label in labels[1])
                ends = [(y, m, end) for (y, m), end in zip(enumerate(masses), named, strict=True)]
                writer.writerows([*start, y, *content.reports[y], m / whole, m, *end] for y, m, end in ends)
                continue
            # A quotient of two integers is rounded once, to the nearest double.
            writer.writerows([*start, y, *content.reports[y], m / whole, m, *end] for y, m in enumerate(masses))


def write_beside(content: Content, path: Path, table: Path) -> None:
    """Write the metadata of a CSV table that exists already."""
    _write_object(content, path, {"table": table.name, "table_sha256": file_sha256(table)}, {})


def write_json(content: Content, path: Path) -> None:
    """Write one JSON object, at most 20 bytes per mass."""
    lists = {
        "secret_points": map(as_json, content.secrets),
        "report_points": map(as_json, content.reports),
        "mass": (f'"{" ".join(map(str, masses))}"' for _, masses, _ in content.masses()),
    }
    _write_object(content, path, {}, lists)


def _write_object(content: Content, path: Path, more: Mapping[str, Any], lists: Mapping[str, Iterable[str]]) -> None:
    """Write the comments and `more`, a line each; then edges, patches and lists of JSON texts, a line an entry."""
    with _sealed_text(path, '"content_sha256": "', '"}') as stream:
        stream.write(f'{{"format": "{FORMAT}",\n')
        for name, value in {**more, "unit": content.stored.domain.unit, **content.comments}.items():
            stream.write(f"{as_json(name)}: {as_json(value)},\n")
        for name, lines in {
            "edge": map(as_json, content.edges),
            **({"patch": map(as_json, content.patches)} if content.patches else {}),
            **{name: map(as_json, entries) for name, entries in content.bound.items()},
            **lists,
        }.items():
            stream.write(f"{as_json(name)}: [")
            for k, line in enumerate(lines):
                stream.write(",\n" * bool(k) + line)
            stream.write("],\n")


def write_parquet(content: Content, path: Path) -> None:
    """Write one table, or raise SizeError if its columns do not fit in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    n, m = len(content.rows), len(content.reports)
    axes = len(content.secrets[0]) + len(content.reports[0])
    require_memory(n, m, tables=4 + 2 * axes, noun="a Parquet table")
    secret, report = np.repeat(np.asarray(content.rows, np.int32), m), np.tile(np.arange(m, dtype=np.int32), n)
    columns: dict[str, NDArray[Any]] = {}
    for dim, index, points in (("secret", secret, content.secrets), ("report", report, content.reports)):
        columns[dim] = index
        columns |= {f"{dim}_{a}": np.array(points)[index, k] for k, a in enumerate(content.axes(points))}
        if content.labels is not None:
            columns[f"{dim}_label"] = np.array(content.labels[int(dim == "report")], object)[index]
    # 2^62 is a power of two: the quotient is rounded once, when the mass becomes a double.
    masses = content.stored.mechanism["mass"].values[content.rows].ravel()
    columns |= {"probability": masses / float(ROW_SUM), "mass": masses}
    comments = {"unit": content.stored.domain.unit, "probability": "mass / 2^62", "edge": as_json(content.edges)}
    comments |= {name: value if isinstance(value, str) else as_json(value) for name, value in content.comments.items()}
    table = pa.table(columns).replace_schema_metadata(comments)
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)
