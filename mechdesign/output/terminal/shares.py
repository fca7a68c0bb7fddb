"""What `mechdesign plan` and `mechdesign estimate` say: a sentence, the tables, and what they mean."""

from __future__ import annotations

import json
import math

import xarray as xr

from mechdesign.base.units import unit_word
from mechdesign.output.tables.shares import Row, plan_rows, share_rows, uninformative, worst_of
from mechdesign.output.terminal.printing import print_table, say
from mechdesign.utility.population.goodness_of_fit import REFUSED
from mechdesign.utility.population.intervals import fewest_effective

NOTHING = "nothing"
_MOST = 60  # areas that a table lists
_LEAST = 1e-300  # p values are not told smaller


def print_plan(planned: xr.Dataset, needed: dict[str, float | None], unit: str) -> None:
    """A plan: the designs side by side, then the error of every area; needed, the epsilon for the wanted error."""
    designs, people = json.loads(planned.attrs["designs"]), int(planned.attrs["reports"])
    wanted, areas = float(planned.attrs["wanted_error"]), json.loads(planned.attrs["areas"])
    worst = [worst_of(planned, d) for d in range(len(designs))]
    best = min(range(len(designs)), key=lambda d: worst[d]["worst_error"] or math.inf)
    together = " for all together" if planned.attrs["simultaneous"] else ""
    confidence = f"{100 * planned.attrs['confidence']:g} % confidence{together}"
    if worst[best]["worst_standard_error"] is None:
        say(f"No share of the worst area, {worst[best]['worst_area']}, can be told from reports of any number.")
    elif worst[best]["uninformative"]:
        say(
            f"With {people:,} people {designs[best]['name']} tells of the share of {worst[best]['worst_area']} no more "
            f"than is known beforehand, from 0 to 100 %, {confidence}: +-{100 * wanted:g} points take "
            f"{_whole(worst[best]['people'])} people, or a larger epsilon."
        )
    else:
        say(
            f"With {people:,} people {designs[best]['name']} tells the share of every area to "
            f"+-{_points(worst[best]['worst_error'])} points or better, {confidence}; worst is "
            f"{worst[best]['worst_area']}."
        )
    print()
    rows = plan_rows(planned)
    plain = max(rows, key=lambda row: row["error_without"])
    known = NOTHING if uninformative(plain["share"], plain["error_without"]) else _points(plain["error_without"])
    head = ["design", "worst error", "worst area", f"people for +-{100 * wanted:g}", "times, median", "times, worst"]
    lines = [
        [
            design["name"],
            NOTHING if row["uninformative"] else _points(row["worst_error"]),
            row["worst_area"],
            _whole(row["people"]),
            _times(row["times_median"]),
            _times(row["times_worst"]),
        ]
        for design, row in zip(designs, worst, strict=True)
    ]
    most = float(planned["people_without"].max())
    print_table(head, [*lines, ["no privacy", known, "", _whole(most), "1", "1"]])
    _print_errors(rows, [design["name"] for design in designs], areas)
    for name, epsilon in needed.items():
        per = "nats" if name == "randomized_response" else f"nats per {unit_word(unit)}"
        told = (
            f"{name} takes an epsilon of {epsilon:.4g} {per}"
            if epsilon is not None
            else f"no epsilon of {name} is enough"
        )
        say(f"For +-{100 * wanted:g} points with {people:,} people {told}.")
    say(
        f"Errors in points (hundredths), half the length of an interval at {confidence}, of the linear estimator: "
        "exact at every number of people if they are distributed as planned. times: people against those that it takes "
        "without privacy, in the median and in the worst area."
    )
    if any(row["standard_error"] is None or uninformative(row["share"], row["error"]) for row in rows):
        say(
            f"{NOTHING}: an interval from 0 to 100 %, no more than is known beforehand. More people, a larger epsilon "
            "or larger areas help."
        )
    fewest = [row["fewest"] for row in worst if row["fewest"] is not None]
    if fewest and max(fewest) > people:
        say(f"An interval for every area takes {_whole(max(fewest))} people at least, whatever its length.")


def _print_errors(rows: list[Row], designs: list[str], areas: list[str]) -> None:
    """The error of every area under every design."""
    by = {(row["design"], row["area"]): row for row in rows}
    first = designs[0]
    lines = [
        [
            area,
            f"{100 * by[first, area]['share']:.2f}",
            _error(by[first, area], "error_without"),
            *(_error(by[name, area], "error") for name in designs),
        ]
        for area in areas[:_MOST]
    ]
    print_table(["area", "planned %", "no privacy", *designs], lines)
    if len(areas) > _MOST:
        say(f"{len(areas) - _MOST} more areas are in the file of -o.")


def print_estimate(estimate: xr.Dataset) -> None:
    """An estimate: how many reports, whether they fit, a row an area, and what its interval means."""
    attrs, rows = estimate.attrs, share_rows(estimate)
    stopped = str(attrs["method"]).startswith("expectation")
    by = "expectation maximization, stopped in time" if stopped else "maximum likelihood"
    say(
        f"{attrs['reports']:,} reports; the distribution over {estimate.sizes['secret']} secrets by {by}, "
        f"within {attrs['gap']:.1e} nats per report of the most likely one."
    )
    for name, which in (("fit_p", "These reports"), ("against_fit_p", "The reports of the other period")):
        if name in attrs and attrs[name] < REFUSED:
            say(
                f"{which} cannot have come from {'this mechanism' if _single(estimate) else 'these mechanisms'} "
                f"(p below {max(attrs[name], _LEAST):.1e}): do not trust what follows."
            )
    if not rows:
        say("Shares of areas take --areas FILE; -o FILE.csv keeps the distribution.")
        return
    print()
    confidence = f"{100 * attrs['confidence']:g} %"
    middle = "share %" if attrs["interval"] == "linear" else "middle %"
    head = ["area", middle, "from", "to", "standard error", "effective reports", "most likely %"]
    print_table(
        head,
        [
            [
                row["area"],
                *(_percent(row[name]) for name in ("share", "low", "high")),
                ">100"
                if row["standard_error"] is not None and row["standard_error"] > 1
                else _percent(row["standard_error"]),
                _times(row["effective"]),
                _percent(row["likelihood_share"]),
            ]
            for row in rows[:_MOST]
        ],
    )
    if "difference" in estimate:
        compared = ("share", "against_share", "difference", "difference_low", "difference_high")
        print_table(
            ["area", "this period %", "other period %", "difference", "from", "to"],
            [[row["area"], *(_percent(row[name]) for name in compared)] for row in rows[:_MOST]],
        )
    if len(rows) > _MOST:
        say(f"{len(rows) - _MOST} more areas are in the file of -o.")
    _print_reasons(rows, attrs["z"])
    if attrs["simultaneous"]:
        say(f"With {confidence} confidence every interval holds its share, all of them together.")
    else:
        say(f"Each interval holds its share with {confidence} confidence; all together need --simultaneous.")
    say(_ground(estimate))


def _print_reasons(rows: list[Row], z: float) -> None:
    """Which areas have no interval, and why."""
    few = [row for row in rows if row["reason"] is not None and row["reason"].startswith("too few")]
    if few:
        listed = ", ".join(f"{row['area']} ({row['effective']:.3g})" for row in few)
        say(f"No interval, too few effective reports (it takes {fewest_effective(z):.3g}): {listed}.")
    whole = [row["area"] for row in rows if row["low"] is not None and row["low"] <= 0 and row["high"] >= 1]
    if whole:
        say(
            f"No more than is known beforehand, from 0 to 100 %: {', '.join(whole)}. More reports, a larger epsilon or "
            "larger areas help."
        )
    for row in rows:
        if row["reason"] is not None and row not in few:
            say(f"No interval for {row['area']}: {row['reason']}.")


def _ground(estimate: xr.Dataset) -> str:
    """Why the intervals hold."""
    attrs = estimate.attrs
    if attrs["interval"] == "affine":
        guess = {"pilot": "a pilot", "prior": "the prior of the mechanism"}.get(attrs["guess"], "a guess")
        return f"Affine bounds, made short where {guess} is right; they hold where it is wrong."
    return (
        "The linear estimator is unbiased whatever the truth; intervals are cut to 0 and 100. An interval takes "
        f"{fewest_effective(attrs['z']):.3g} effective reports. most likely: the share in the distribution "
        "that makes the reports most likely, which has no interval."
    )


def _single(estimate: xr.Dataset) -> bool:
    return len(json.loads(estimate.attrs["mechanisms"])) == 1


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
