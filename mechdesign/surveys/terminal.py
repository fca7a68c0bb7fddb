"""The text that `mechdesign plan` and `mechdesign estimate` print: a sentence, tables, and their legend."""

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

UNINFORMATIVE = "uninformative"  # in tables: the interval is 0 to 100 %
_MOST = 60  # areas listed in a table
DEGREES = ("longitude", "latitude")
_PLACES = 10  # places listed by an estimate without areas
_SMALLEST_P = 1e-300


def plan_words(document: Mapping[str, Any], unit: str) -> Iterator[Block]:
    """Yield the text of a plan document: the best design, all designs, then the error of every area."""
    designs, rows, people = document["designs"], document["areas"], f"{document['people']:,} people"
    wanted, within = f"{100 * document['wanted_error']:g} points", document.get("within")
    yield _plan_sentence(document, people, wanted)
    yield _design_table(document, unit, wanted)
    areas: dict[str, list[Row]] = {}
    for row in rows:
        areas.setdefault(row["area"], []).append(row)
    yield _area_table(areas, [design["name"] for design in designs])
    yield from _left_out(len(areas))
    for name, epsilon in document["epsilon_for_error"].items():
        per = "nats" if name == "randomized_response" else f"nats per {unit_word(unit)}"
        need = f"{name} needs epsilon {epsilon:.4g} {per}" if epsilon else f"no epsilon of {name} is large enough"
        yield f"For an error of {wanted} with {people}, {need}."
    if within is not None:
        yield (
            f"odds within {length(within, unit)}: the largest factor by which one report changes the odds between two "
            "places that far apart. For cells, distances are between centres."
        )
    yield (
        f"Errors are in percentage points: half the length of an interval at {_confidence(document)}. The standard "
        "errors behind them are exact for any number of people who are distributed as planned. times: people needed, "
        "relative to a survey without privacy, in the median and in the worst area."
    )
    yield from _uninformative_notes(rows)
    if "next" in document:
        yield f"Next: {document['next']} makes the mechanism that people report with. plan FILE shows its errors."
    fewest = max(design["fewest"] or 0 for design in designs)
    if fewest > document["people"]:
        yield f"An interval for every area needs at least {_whole(fewest)} people, whatever its length."


def _confidence(document: Mapping[str, Any]) -> str:
    together = " for all together" if document["simultaneous"] else ""
    return f"{100 * document['confidence']:g} % confidence{together}"


def _plan_sentence(document: Mapping[str, Any], people: str, wanted: str) -> str:
    best = min(document["designs"], key=lambda design: design["worst_error"] or math.inf)
    if best["worst_standard_error"] is None:
        return f"The share of {best['worst_area']} cannot be estimated from any number of reports."
    if best["uninformative"]:
        return (
            f"With {people}, {best['name']} gives no information about the share of {best['worst_area']}: its interval "
            f"is 0 to 100 % ({_confidence(document)}). An error of {wanted} needs {_whole(best['people'])} people or a "
            "larger epsilon."
        )
    return (
        f"With {people}, {best['name']} estimates the share of every area to within "
        f"{_points(best['worst_error'])} percentage points ({_confidence(document)}). The worst area is "
        f"{best['worst_area']}."
    )


def _design_table(document: Mapping[str, Any], unit: str, wanted: str) -> TextTable:
    plain, within = max(document["areas"], key=lambda row: row["error_without"]), document.get("within")
    rows = []
    for design in document["designs"]:
        error = UNINFORMATIVE if design["uninformative"] else _points(design["worst_error"])
        times = [_times(design["times_median"]), _times(design["times_worst"])]
        odds = [] if within is None else [format_cell(design["odds_within"], rounding=Rounding.UP, digits=3)]
        rows.append([design["name"], *odds, error, design["worst_area"], _whole(design["people"]), *times])
    heads = [] if within is None else [f"odds within {length(within, unit)}"]
    without = [_error(plain, "error_without"), "", _whole(document["people_without"]), "1", "1"]
    return TextTable(
        [
            "design",
            *heads,
            "worst error, points",
            "worst area",
            f"people for {wanted}",
            "times, median",
            "times, worst",
        ],
        [*rows, ["no privacy", *["-" for _ in heads], *without]],
    )


def _area_table(areas: Mapping[str, list[Row]], designs: list[str]) -> TextTable:
    rows = []
    for area, by_design in list(areas.items())[:_MOST]:
        planned = [f"{100 * by_design[0]['share']:.2f}", _error(by_design[0], "error_without")]
        rows.append([area, *planned, *(_error(row, "error") for row in by_design)])
    return TextTable(["area", "planned %", "error without privacy", *designs], rows)


def _uninformative_notes(rows: list[Row]) -> Iterator[str]:
    # Two causes with two remedies: a share that is not identifiable, and one with an interval as long as [0, 1].
    lost = sorted({row["area"] for row in rows if row["standard_error"] is None})
    if lost:
        names = ", ".join(lost[:_MOST])
        yield (
            f"{UNINFORMATIVE}: an interval of 0 to 100 %. For {names} a larger survey does not help, because two "
            "distributions with different shares give the same reports. Larger areas or another design may help."
        )
    if any(_error(row, "error") == UNINFORMATIVE for row in rows if row["standard_error"] is not None):
        yield (f"{UNINFORMATIVE}: the interval is 0 to 100 %. More people, a larger epsilon or larger areas help.")


_SECRETS = {"position": "places", "value": "values", "class": "classes"}


def estimate_words(document: EstimateDocument) -> Iterator[Block]:
    """Yield the text of an estimate: reports, fit, one row per area, and the meaning of its interval."""
    rows, nouns, attrs = document.areas, document.nouns, document.estimate.attrs
    yield f"{attrs['reports']:,} reports over {document.domain.size} {_SECRETS[nouns.truth]}."
    for which, p in document.fits.items():
        if p < REFUSED:
            yield (
                f"{which} do not fit {document.makers} (p at most {max(p, _SMALLEST_P):.1e}). Do not trust the results "
                "below."
            )
    stopped = attrs["method"].startswith("expectation")
    by = "expectation maximization, stopped early" if stopped else "maximum likelihood"
    method = (
        f"Most likely: the distribution by {by}. Its log-likelihood is within {attrs['gap']:.1e} nats per report of "
        "the maximum. It has no interval."
    )
    if not rows:
        many = _SECRETS[nouns.truth]
        yield from _most_likely(document.cells, nouns.report_noun)
        yield method
        classes = document.domain.labels is not None
        spatial = "--areas 2x2, or --areas districts.geojson for your own polygons,"
        files = spatial if nouns.truth == "position" else "--areas classes" if classes else "--areas FILE.csv"
        yield (
            f"Reports do not identify single {many} well. Next: {files} gives shares of areas with intervals. "
            f"-o FILE.csv keeps every {nouns.report_noun}."
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
        yield f"With {confidence} confidence, all intervals contain their shares at once."
    else:
        yield f"Each interval contains its share with {confidence} confidence. --simultaneous covers all at once."
    yield (
        "Estimates are unbiased for any truth and add up to 100 %. A share is its estimate clipped to 0 to 100 %; its "
        f"interval lies around it, and needs at least {fewest_effective(attrs['z']):.3g} effective reports."
    )
    yield method


def _share_table(rows: list[Row]) -> TextTable:
    listed = []
    for row in rows[:_MOST]:
        shares = [_percent(row[name]) for name in ("estimate", "share", "low", "high")]
        deviation = ">100" if (row["standard_error"] or 0) > 1 else _percent(row["standard_error"])
        listed.append([row["area"], *shares, deviation, _times(row["effective"]), _percent(row["likelihood_share"])])
    return TextTable(
        ["area", "estimate %", "share %", "from", "to", "standard error", "effective reports", "most likely %"], listed
    )


def _sentences(rows: list[Row], confidence: float) -> Iterator[Block]:
    """Yield the share of every area and its interval, rounded outwards. Areas without information are left out."""
    listed = [row for row in rows if row["low"] is not None and not uninformative(row["share"], row["standard_error"])]
    if listed:
        yield f"Shares with their {100 * confidence:g} % intervals:"
    for row in listed[:_MOST]:
        low, high = max(row["low"], 0.0), min(row["high"], 1.0)
        ends = {"lower": number(100 * low, up=False, digits=2), "upper": number(100 * high, up=True, digits=2)}
        words = interval_words(low, high, **ends)
        share = f"{percent(row['share'])}, " if 0 < row["share"] < 1 else ""
        yield f"{row['area']}: {share}{words}"


def _most_likely(cells: list[Row], noun: str) -> Iterator[Block]:
    first = sorted(cells, key=lambda cell: -cell["probability"])[:_PLACES]
    axes = [name for name in (DEGREES if "longitude" in cells[0] else AXES) if name in cells[0]]
    yield TextTable(
        [noun, *axes, "most likely %"],
        [
            [str(row.get("label", row["cell"])), *(f"{row[name]:.9g}" for name in axes), _percent(row["probability"])]
            for row in first
        ],
    )


def _left_out(areas: int) -> Iterator[Block]:
    if areas > _MOST:
        yield f"{areas - _MOST} more areas are not listed here; -o FILE keeps all."


def _reasons(rows: list[Row], z: float) -> Iterator[Block]:
    few = [row for row in rows if row["reason"] is not None and row["reason"].startswith("too few")]
    if few:
        listed = ", ".join(f"{row['area']} ({row['effective']:.3g})" for row in few)
        yield f"No interval, too few effective reports (at least {fewest_effective(z):.3g} needed): {listed}."
    whole = [row["area"] for row in rows if row["low"] is not None and row["low"] <= 0 and row["high"] >= 1]
    if whole:
        yield (
            f"No information, the interval is 0 to 100 %: {', '.join(whole)}. More reports, a larger epsilon or larger "
            "areas help."
        )
    for row in rows:
        if row["reason"] is not None and row not in few:
            yield f"No interval for {row['area']}: {row['reason']}."


def _error(row: Row, name: str) -> str:
    value = row[name]
    lost = name == "error" and row["standard_error"] is None
    return UNINFORMATIVE if lost or uninformative(row["share"], value) else _points(value)


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
