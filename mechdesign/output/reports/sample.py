"""The document and text of `mechdesign sample`. Coordinates have no more digits than a cell needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.errors import InputError, SizeError
from mechdesign.mechanism.accuracy import SHARE, round_up
from mechdesign.mechanism.sampler import Sampler
from mechdesign.output.text_tables import Block, Note, TextTable
from mechdesign.problem.classes import label_arrays, place_number
from mechdesign.problem.domain import AXES
from mechdesign.problem.locate import identifying_digits, place_on_earth, refuse_degrees, round_coordinate
from mechdesign.verification.kinds import open_sampler

if TYPE_CHECKING:
    from mechdesign.solvers.result import Progress

MAX_REPORTS = 1_000_000  # of one document: half a gigabyte


def sample_document(
    mechanism: Any,
    *,
    at: Sequence[float] | None = None,
    degrees: tuple[float | None, float | None] = (None, None),
    secret: int | str | None = None,
    count: int = 1,
    seed: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Draw `count` reports for a place `at`, degrees (east, north) or a secret, by number or label; never name it."""
    # With a claim about positions the place itself draws (a secret: its centre), otherwise its cell. Coordinates have
    # the decimals of a tenth of a cell. Raises VerificationError for a mechanism that is not certified.
    if count > MAX_REPORTS:
        raise SizeError(f"at most {MAX_REPORTS:,} reports are written at a time", field="n", value=count)
    longitude, latitude = degrees
    chosen = sum(place is not None for place in (at, secret, longitude))
    if (longitude is None) != (latitude is None) or chosen != 1:
        raise InputError("one place is needed: --at X Y, --lon E --lat N, or --secret N", field="at")
    if isinstance(secret, str):
        labels = label_arrays(getattr(mechanism, "attrs", {})).get("secret", np.empty(0, str)).tolist()
        secret = place_number(secret, labels, "secret")
    sampler = open_sampler(mechanism, on_progress=on_progress)
    domain, placed = sampler.domain, sampler.report_points
    # Degrees passed as --at would be a place near the origin of the plane, and its report a wrong one.
    if at is not None and len(at) == domain.dimension:
        refuse_degrees(domain, np.array([at]), only_if_rare=False)
    if longitude is not None and latitude is not None:
        at = place_on_earth(domain, longitude, latitude)
    # `report` scans the whole row whatever it draws, so that its time reveals little; `sample` is for simulations.
    if isinstance(sampler, Sampler) and count == 1 and seed is None:
        drawn = sampler.report_arrays(secret, at=at)
    else:
        draw = sampler.sample_arrays if isinstance(sampler, Sampler) else sampler.sample
        drawn = draw(secret, count, at=at, rng=seed)
    axes = [a for a in AXES if f"report_{a}" in drawn.coords]
    unit = drawn.coords[f"report_{axes[0]}"].attrs["units"]
    labels = np.ravel(drawn.coords["report_label"].values).tolist() if "report_label" in drawn.coords else None
    # Classes without an order have numbers for coordinates, which say nothing.
    axes = axes if domain.has_distances else []
    coordinates: dict[str, Any] = {} if labels is None else {"report_label": labels}
    for axis, digits in zip(axes, identifying_digits(placed), strict=False):
        values = np.ravel(drawn.coords[f"report_{axis}"].values)
        coordinates[f"report_{axis}"] = [round_coordinate(x, digits) for x in values.tolist()]
    if longitude is not None:
        assert domain.plane is not None
        east_north = np.column_stack(domain.plane.backward(placed[np.ravel(drawn.values)]))
        # Decimals to a tenth of a cell, or of the least distance of two places: more digits would suggest accuracy.
        decimals = domain.plane.decimals(domain.spacing)
        for name, values in zip(("report_longitude", "report_latitude"), east_north.T.tolist(), strict=True):
            coordinates[name] = [round_coordinate(x, decimals) for x in values]
    return {
        "reports": np.ravel(drawn.values).tolist(),
        **coordinates,
        "accuracy": _radii(drawn),
        "unit": unit,
        **{name: drawn.attrs[name] for name in ("bits", "claim", "cost")},
    }


def _radii(drawn: Any) -> list[float] | None:
    """The radii of reports, rounded up to three digits; None for mechanisms without radii."""
    if "accuracy" not in drawn.coords:
        return None
    return round_up(np.ravel(drawn.coords["accuracy"].values))


def sample_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """Reports, a line each; bits and cost as notes."""
    columns = [name for name in document if name.startswith("report_")]
    if document["accuracy"] is not None:
        columns.append("accuracy")
    unit = "" if document["unit"] == "1" else f" [{document['unit']}]"
    units = {"report_longitude": " [degree east]", "report_latitude": " [degree north]", "report_label": ""}
    lines = zip(document["reports"], *(document[name] for name in columns), strict=True)
    yield TextTable(
        ["report", *(name + units.get(name, unit) for name in columns)],
        [[f"{value:.15g}" if isinstance(value, float) else str(value) for value in line] for line in lines],
    )
    if document["accuracy"] is not None:
        yield Note(f"accuracy: the radius that holds the truth with probability {100 * SHARE:g} % under the prior")
    yield Note(f"random bits: {document['bits']}")
    yield Note(f"cost: {document['cost']}")
