"""A file of points to a file of reports, in parts: `mechdesign sample FILE.nc points.csv -o reports.csv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.log import log_note
from mechdesign.base.threads import Rng, source
from mechdesign.errors import InputError
from mechdesign.mechanism.collection import Collection, Drawn, Located
from mechdesign.output.point_files.columns import FIELD, PlaceColumns, are_exchanged, locate, place_columns
from mechdesign.output.point_files.formats import point_format
from mechdesign.output.point_files.parts import Part, ReportedPart
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import AXES
from mechdesign.problem.locate import identifying_digits, round_coordinate
from mechdesign.verification.kinds import open_sampler

OUTSIDE = ("refuse", "empty")
ADDED = ("report", "report_label", *(f"report_{axis}" for axis in (*AXES, "longitude", "latitude")), "accuracy", "cost")


@dataclass(frozen=True, kw_only=True)
class PointOptions:
    """How a file of points is read.

    Attributes
    ----------
    outside : {"refuse", "empty"}
        Points in no cell are refused, or have no report.
    person : str or None
        The column that names the person, whose equal points are one secret.
    columns, keep : mapping, sequence
        Names of columns by ours; columns that look like positions, and stay.
    crs, rng : str, int or numpy.random.Generator
        Coordinate system of a layer that declares none; for simulations only.
    """

    outside: str = "refuse"
    person: str | None = None
    columns: Columns = None
    keep: Sequence[str] = ()
    crs: str | None = None
    rng: Rng = None


@dataclass(kw_only=True, eq=False)
class _Job:
    """The state of one run: numbers of points, of repeated and of empty reports so far."""

    collection: Collection
    options: PointOptions
    as_layer: bool
    columns: PlaceColumns | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"points": 0, "repeated": 0, "empty": 0})

    def run(self, part: Part) -> ReportedPart:
        if self.columns is None:
            chosen = self.options
            self.columns = place_columns(
                part, self.collection, columns=chosen.columns, person=chosen.person, keep=chosen.keep
            )
            if taken := [name for name in self.columns.kept if name in ADDED]:
                message, remedy = "has a column with the name of one that is added", "rename it"
                raise InputError(message, field=FIELD, value=", ".join(taken), remedy=remedy)
        located = locate(part, self.columns, self.collection)
        self._refuse_outside(located, part)
        drawn = self.collection.draw(located, self._persons(part, self.columns.person))
        self.counts["points"] += len(located.cells)
        self.counts["repeated"] += int(drawn.is_repeated.sum())
        self.counts["empty"] += int((~located.is_inside).sum())
        return self._report_part(part, drawn)

    @staticmethod
    def _persons(part: Part, column: str | None) -> list[Any] | None:
        if column is None:
            return None
        persons = part.frame[column].tolist()
        # Rows without a name would all be one person, whose equal points share a report.
        nameless = [
            k for k, person in enumerate(persons) if person is None or person != person or not str(person).strip()
        ]
        if nameless:
            message, value = "names no person", f"row {part.first + nameless[0]}"
            raise InputError(message, field="id", value=value, remedy="give every row a person, or leave --id out")
        return persons

    def _refuse_outside(self, located: Located, part: Part) -> None:
        if located.is_inside.all() or self.options.outside == "empty":
            return
        outside = np.flatnonzero(~located.is_inside)
        more = f", and {len(outside) - 1:,} more of the {len(located.cells):,} around it" if len(outside) > 1 else ""
        message = "lies outside the mechanism, or has no position"
        # The position is not printed: a log of commands must not hold the secrets.
        value = f"the point in row {part.first + int(outside[0])}{more}"
        remedy = "remove it, or leave its report empty: outside='empty'"
        assert self.columns is not None
        if are_exchanged(part, self.columns, self.collection, outside):
            remedy = "longitude and latitude are exchanged; write the longitude first"
            if part.degrees is None:
                longitude, latitude = self.columns.place
                remedy = "longitude and latitude are exchanged; name them: "
                remedy += f"columns={{'longitude': '{latitude}', 'latitude': '{longitude}'}}"
        raise InputError(message, field=FIELD, value=value, remedy=remedy)

    def _report_part(self, part: Part, drawn: Drawn) -> ReportedPart:
        import pandas as pd

        assert self.columns is not None
        has = drawn.reports >= 0
        at = np.where(has, drawn.reports, 0)
        frame = part.frame[self.columns.kept].copy()
        frame["report"] = pd.array(at, dtype="Int64")
        frame.loc[~has, "report"] = pd.NA
        degrees = None
        if self.collection.report_degrees is not None:
            degrees = np.where(has[:, None], self.collection.report_degrees[at], np.nan)
        figures: dict[str, Any] = {}
        labels = self.collection.source.report_labels
        if labels is not None:
            frame["report_label"] = np.where(has, labels[at], "")
        elif self.writes_degrees:
            assert degrees is not None
            figures |= {"report_longitude": degrees[:, 0], "report_latitude": degrees[:, 1]}
        elif not self.as_layer:
            figures |= {f"report_{axis}": values[at] for axis, values in zip(AXES, self._coordinates, strict=False)}
        if self.collection.radii is not None:
            figures["accuracy"] = self.collection.radii[at]
        figures["cost"] = np.where(drawn.is_repeated, 0.0, float(self.collection.source.cost))
        for name, values in figures.items():
            frame[name] = np.where(has, values, np.nan)
        return ReportedPart(frame=frame, degrees=degrees)

    @property
    def writes_degrees(self) -> bool:
        assert self.columns is not None
        return not self.as_layer and self.columns.form in ("geometry", "degrees")

    @property
    def _coordinates(self) -> list[Any]:
        places = self.collection.source.report_points
        rounded = zip(places.T, identifying_digits(places), strict=True)
        return [np.array([round_coordinate(x, digits) for x in values.tolist()]) for values, digits in rounded]


def sample_file(
    mechanism: Any,
    points: Path,
    output: Path,
    *,
    options: PointOptions | None = None,
    overwrite: bool = False,
    on_note: Callable[[str], None] = log_note,
    on_progress: Callable[[Any], None] = lambda state: None,
) -> dict[str, Any]:
    """Write a file with a report for every point of a file, and return the figures of the run."""
    # Columns that look like positions are left out, all others are kept; report, accuracy and cost are added. Nothing
    # is written if a point is refused. Raises VerificationError for a mechanism that is not certified.
    chosen = options or PointOptions()
    if chosen.outside not in OUTSIDE:
        raise InputError("unknown choice", field="outside", value=chosen.outside, remedy=f"use {' or '.join(OUTSIDE)}")
    reads, writes = point_format(points, FIELD), point_format(output, "output")
    target = check_target(output, overwrite=overwrite)
    if points.exists() and target.exists() and points.samefile(target):
        raise InputError("is the file of points", field="output", value=output, remedy="write another file")
    for one in (reads, writes):
        one.require()
    rng = None if chosen.rng is None else np.random.default_rng(chosen.rng)
    collection = Collection(source=open_sampler(mechanism, on_progress=on_progress), rng=rng)
    if writes.is_layer and collection.report_degrees is None:
        message = "is a layer in degrees, and the reports are not places on Earth"
        raise InputError(message, field="output", value=output.name, remedy="write .csv or .parquet")
    job = _Job(collection=collection, options=chosen, as_layer=writes.is_layer)

    def report_parts() -> Iterator[ReportedPart]:
        for part in reads.read(points, crs=chosen.crs, on_note=on_note):
            yield job.run(part)
            on_progress(f"{job.counts['points']:,} points")
        if job.counts["points"] == 0:
            raise InputError("has no points", field=FIELD, value=points)

    write_atomically(target, lambda temporary: writes.write(temporary, report_parts()))
    _, bits = source(chosen.rng)
    return _document(job, target, bits) | {"omits_empty": not writes.allows_empty}


def _document(job: _Job, target: Path, bits: str) -> dict[str, Any]:
    collection, columns, counts = job.collection, job.columns, job.counts
    assert columns is not None
    drawn = counts["points"] - counts["empty"] - counts["repeated"]
    most = drawn if columns.person is None else collection.most_reports
    return {
        "file": str(target),
        "points": counts["points"],
        "reports": counts["points"] - counts["empty"],
        "drawn": drawn,
        "repeated": counts["repeated"],
        "empty": counts["empty"],
        "persons": None if columns.person is None else collection.persons,
        "id": columns.person,
        "most_reports_of_one": most,
        "cost_of_one_report": float(collection.source.cost),
        "largest_cost_of_one": float(most * collection.source.cost),
        "has_accuracy": collection.radii is not None or collection.domain.kind != "grid",
        "place": columns.place or ["geometry"],
        "kept": columns.kept,
        "left_out": columns.left_out,
        "unit": collection.domain.unit,
        "bits": bits,
        "claim": collection.source.claim,
    }


def file_words(document: Mapping[str, Any]) -> Iterator[str]:
    """The sentences about a file of reports: first the claim for all reports of a person together."""
    most, total = document["most_reports_of_one"], document["reports"]
    if total == 1:
        yield "One report satisfies the claim of the mechanism; further ones of the same person add up."
    elif document["id"] is None:
        yield (
            f"{total:,} reports add up: k of them from one person satisfy the claim only for k times the distance, and "
            f"{most:,} times it if all points are of one person. Nothing in the file limits k."
        )
    else:
        yield (
            f"Together, the reports of one person satisfy the claim only for up to {most:,} times the distance. "
            f"So many were drawn for one of the {document['persons']:,} persons, and they add up."
        )
        yield (
            f"{document['repeated']:,} reports repeat that of an equal point of the same person at no cost. The file "
            "shows which points of a person are equal, and nothing is claimed between traces that repeat differently."
        )
    if document["empty"]:
        yield (
            f"{document['empty']:,} of {document['points']:,} points have no report. This reveals that they lie "
            "outside the mechanism, or have no position."
            + (" The file leaves them out, since its format has no empty positions." * document["omits_empty"])
        )
    if document["left_out"]:
        yield f"Left out, as they look like positions: {', '.join(document['left_out'])}."
    kept = ", ".join(document["kept"])
    yield f"Kept as they are, without any claim: {kept or 'none'}. The order of the rows is kept too."
    if not document["has_accuracy"]:
        yield "The reports have no accuracy, which is computed only from a table with its prior."
    yield f"Each report: {document['claim']}"
    yield f"random bits: {document['bits']}"
