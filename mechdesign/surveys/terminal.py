"""What `mechdesign plan` and `mechdesign estimate` say: a sentence, the tables, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mechdesign.base.formatting import Rounding, format_cell, length, number, percent
from mechdesign.base.units import unit_word
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.problem.domain import AXES
from mechdesign.surveys.document import EstimateDocument, Row, interval_words, uninformative
from mechdesign.surveys.goodness_of_fit import REFUSED
from mechdesign.surveys.intervals import fewest_effective

NOTHING = "nothing"
_MOST = 60  # areas that a table lists
DEGREES = ("longitude", "latitude")
_PLACES = 10  # that an estimate without areas lists
_LEAST = 1e-300  # p values are not told smaller


def plan_words(document: Mapping[str, Any], unit: str) -> Iterator[Block]:
    """The document of a plan, epsilon_for_error included: the designs side by side, then the error of every area."""
    designs, rows, people = document["designs"], document["areas"], f"{document['people']:,} people"
    wanted, within = f"+-{100 * document['wanted_error']:g}", document.get("within")
    yield _plan_sentence(document, people, wanted)
    yield _design_table(document, unit, wanted)
    areas: dict[str, list[Row]] = {}
    for row in rows:
        areas.setdefault(row["area"], []).append(row)
    yield _area_table(areas, [design["name"] for design in designs])
    yield from _left_out(len(areas))
    for name, epsilon in document["epsilon_for_error"].items():
        per = "nats" if name == "randomized_response" else f"nats per {unit_word(unit)}"
        takes = f"{name} takes an epsilon of {epsilon:.4g} {per}" if epsilon else f"no epsilon of {name} is enough"
        yield f"For {wanted} points with {people} {takes}."
    if within is not None:
        yield (
            f"odds within {length(within, unit)}: the factor by which one report changes anybody's odds between two "
            "places so far apart, at most; of cells, between their centres."
        )
    yield (
        f"Errors in points (hundredths), half the length of an interval at {_confidence(document)}, of the linear "
        "estimator: exact at every number of people if they are distributed as planned. times: people against those "
        "that it takes without privacy, in the median and in the worst area."
    )
    yield from _uninformative_notes(rows)
    if "next" in document:
        yield f"Next: {document['next']} makes the mechanism that people report with, and plan FILE says what it gives."
    fewest = max(design["fewest"] or 0 for design in designs)
    if fewest > document["people"]:
        yield f"An interval for every area takes {_whole(fewest)} people at least, whatever its length."


def _confidence(document: Mapping[str, Any]) -> str:
    """The confidence of a plan in words."""
    together = " for all together" if document["simultaneous"] else ""
    return f"{100 * document['confidence']:g} % confidence{together}"


def _plan_sentence(document: Mapping[str, Any], people: str, wanted: str) -> str:
    """What the best design gives its worst area."""
    best = min(document["designs"], key=lambda design: design["worst_error"] or math.inf)
    if best["worst_standard_error"] is None:
        return f"No share of the worst area, {best['worst_area']}, can be told from reports of any number."
    if best["uninformative"]:
        return (
            f"With {people} {best['name']} tells of the share of {best['worst_area']} no more than is known "
            f"beforehand, from 0 to 100 %, {_confidence(document)}: {wanted} points take {_whole(best['people'])} "
            "people, or a larger epsilon."
        )
    return (
        f"With {people} {best['name']} tells the share of every area to +-{_points(best['worst_error'])} points or "
        f"better, {_confidence(document)}; worst is {best['worst_area']}."
    )


def _design_table(document: Mapping[str, Any], unit: str, wanted: str) -> TextTable:
    """A row a design, and one without privacy."""
    plain, within = max(document["areas"], key=lambda row: row["error_without"]), document.get("within")
    rows = []
    for design in document["designs"]:
        error = NOTHING if design["uninformative"] else _points(design["worst_error"])
        times = [_times(design["times_median"]), _times(design["times_worst"])]
        odds = [] if within is None else [format_cell(design["odds_within"], rounding=Rounding.UP, digits=3)]
        rows.append([design["name"], *odds, error, design["worst_area"], _whole(design["people"]), *times])
    heads = [] if within is None else [f"odds within {length(within, unit)}"]
    without = [_error(plain, "error_without"), "", _whole(document["people_without"]), "1", "1"]
    return TextTable(
        ["design", *heads, "worst error", "worst area", f"people for {wanted}", "times, median", "times, worst"],
        [*rows, ["no privacy", *["-" for _ in heads], *without]],
    )


def _area_table(areas: Mapping[str, list[Row]], designs: list[str]) -> TextTable:
    """A row an area: its planned share, its error without privacy, and that of every design."""
    rows = []
    for area, by_design in list(areas.items())[:_MOST]:
        planned = [f"{100 * by_design[0]['share']:.2f}", _error(by_design[0], "error_without")]
        rows.append([area, *planned, *(_error(row, "error") for row in by_design)])
    return TextTable(["area", "planned %", "no privacy", *designs], rows)


def _uninformative_notes(rows: list[Row]) -> Iterator[str]:
    """Which intervals are from 0 to 100 %, and what helps."""
    lost = sorted({row["area"] for row in rows if row["standard_error"] is None})
    if lost:
        yield (
            f"{NOTHING}: an interval from 0 to 100 %. For {', '.join(lost[:_MOST])} no number of people helps: two "
            "distributions that differ in the share give the same reports. Larger areas or another design may help."
        )
    if any(_error(row, "error") == NOTHING for row in rows if row["standard_error"] is not None):
        yield (
            f"{NOTHING}: an interval from 0 to 100 %, no more than is known beforehand. More people, a larger epsilon "
            "or larger areas help."
        )


_SECRETS = {"position": "places", "value": "values", "class": "classes"}


def estimate_words(document: EstimateDocument) -> Iterator[Block]:
    """How many reports an estimate has, whether they fit, a row an area, and what its interval means."""
    rows, nouns, attrs = document.areas, document.nouns, document.estimate.attrs
    yield f"{attrs['reports']:,} reports over {document.domain.size} {_SECRETS[nouns.truth]}."
    for which, p in document.fits.items():
        if p < REFUSED:
            yield (
                f"{which} cannot have come from {document.makers} (p below {max(p, _LEAST):.1e}): do not trust what "
                "follows."
            )
    stopped = attrs["method"].startswith("expectation")
    by = "expectation maximization, stopped in time" if stopped else "maximum likelihood"
    method = (
        f"Most likely: the distribution by {by}, within {attrs['gap']:.1e} nats per report of the most likely one; "
        "it has no interval."
    )
    if not rows:
        many = _SECRETS[nouns.truth]
        yield from _most_likely(document.cells, nouns.reported)
        yield method
        spatial = "--areas 2x2, or --areas districts.geojson for your own polygons,"
        files = spatial if nouns.truth == "position" else "--areas FILE.csv"
        yield (
            f"Single {many} are not told well by reports. Next: {files} gives "
            f"shares of areas with intervals; -o FILE.csv keeps every {nouns.reported}."
        )
        return
    yield from _sentences(rows, attrs["confidence"])
    yield _share_table(rows)
    if "difference" in rows[0]:
        compared = ("estimate", "against_estimate", "difference", "difference_low", "difference_high")
        yield TextTable(
            ["area", "this period %", "other period %", "difference", "from", "to"],
            [[row["area"], *(_percent(row[name]) for name in compared)] for row in rows[:_MOST]],
        )
    yield from _left_out(len(rows))
    yield from _reasons(rows, attrs["z"])
    confidence = f"{100 * attrs['confidence']:g} %"
    if attrs["simultaneous"]:
        yield f"With {confidence} confidence every interval holds its share, all of them together."
    else:
        yield f"Each interval holds its share with {confidence} confidence; all together need --simultaneous."
    yield (
        "Estimates are unbiased whatever the truth, and those of all areas add up to 100 %. Shares are estimates cut "
        "to 0 and 100, and intervals lie about shares. An interval takes "
        f"{fewest_effective(attrs['z']):.3g} effective reports."
    )
    yield method


def _share_table(rows: list[Row]) -> TextTable:
    """A row an area."""
    listed = []
    for row in rows[:_MOST]:
        shares = [_percent(row[name]) for name in ("estimate", "share", "low", "high")]
        deviation = ">100" if (row["standard_error"] or 0) > 1 else _percent(row["standard_error"])
        listed.append([row["area"], *shares, deviation, _times(row["effective"]), _percent(row["likelihood_share"])])
    return TextTable(
        ["area", "estimate %", "share %", "from", "to", "standard error", "effective reports", "most likely %"], listed
    )


def _sentences(rows: list[Row], confidence: float) -> Iterator[Block]:
    """The share of every area and its interval, rounded outwards; of areas without one their table says why."""
    told = [row for row in rows if row["low"] is not None and not uninformative(row["share"], row["standard_error"])]
    if told:
        yield f"Shares with their {100 * confidence:g} % intervals:"
    for row in told[:_MOST]:
        low, high = max(row["low"], 0.0), min(row["high"], 1.0)
        ends = {"lower": number(100 * low, up=False, digits=2), "upper": number(100 * high, up=True, digits=2)}
        words = interval_words(low, high, **ends)
        share = f"{percent(row['share'])}, " if 0 < row["share"] < 1 else ""
        yield f"{row['area']}: {share}{words}"


def _most_likely(cells: list[Row], noun: str) -> Iterator[Block]:
    """The places that most reports come from by the most likely distribution."""
    first = sorted(cells, key=lambda cell: -cell["probability"])[:_PLACES]
    axes = [name for name in (DEGREES if "longitude" in cells[0] else AXES) if name in cells[0]]
    yield TextTable(
        [noun, *axes, "most likely %"],
        [[str(row["cell"]), *(f"{row[name]:.9g}" for name in axes), _percent(row["probability"])] for row in first],
    )


def _left_out(areas: int) -> Iterator[Block]:
    if areas > _MOST:
        yield f"{areas - _MOST} more areas are in the file of -o."


def _reasons(rows: list[Row], z: float) -> Iterator[Block]:
    """Which areas have no interval, and why."""
    few = [row for row in rows if row["reason"] is not None and row["reason"].startswith("too few")]
    if few:
        listed = ", ".join(f"{row['area']} ({row['effective']:.3g})" for row in few)
        yield f"No interval, too few effective reports (it takes {fewest_effective(z):.3g}): {listed}."
    whole = [row["area"] for row in rows if row["low"] is not None and row["low"] <= 0 and row["high"] >= 1]
    if whole:
        yield (
            f"No more than is known beforehand, from 0 to 100 %: {', '.join(whole)}. More reports, a larger epsilon or "
            "larger areas help."
        )
    for row in rows:
        if row["reason"] is not None and row not in few:
            yield f"No interval for {row['area']}: {row['reason']}."


def _error(row: Row, name: str) -> str:
    """An error in points, where the interval says more than was known beforehand."""
    value = row[name]
    lost = name == "error" and row["standard_error"] is None
    return NOTHING if lost or uninformative(row["share"], value) else _points(value)


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
