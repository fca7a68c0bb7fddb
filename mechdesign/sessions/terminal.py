"""The text of `mechdesign session`: releases, accounts and proposals."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.output.text_tables import Block, TextTable, show
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.locate import identifying_digits, round_coordinate
from mechdesign.sessions.rules import Clock
from mechdesign.sessions.session import Account, Release
from mechdesign.sessions.study.propose import DAYS, Point, Proposal

_LARGEST = 1e6  # larger odds are printed as powers of ten


def show_release(release: Release, domain: Domain, *, as_json: bool) -> None:
    """Print the release in words or as JSON, coordinates to a tenth of a cell."""
    # More digits would suggest that a release is more exact than a cell.
    digits = identifying_digits(domain.points)
    location = {
        axis: round_coordinate(x, decimals) for axis, x, decimals in zip(AXES, release.location, digits, strict=False)
    }
    degrees: dict[str, float] = {}
    if domain.plane is not None:
        decimals = domain.plane.decimals(domain.spacing)
        east, north = domain.plane.backward(np.array([release.location]))
        degrees = {"longitude": round(float(east[0]), decimals), "latitude": round(float(north[0]), decimals)}
    document = {
        "tick": release.tick,
        "place": release.place,
        **({} if release.label is None else {"label": release.label}),
        **location,
        "unit": release.unit,
        **degrees,
        "expected_error": release.error,
        "drawn": release.drawn,
        "report": release.report,
        "charge": str(release.charge),
        "remaining": str(release.remaining),
    }
    where = " ".join(f"{x:.12g}" for x in location.values())
    unit = "" if release.unit == "1" else f" {release.unit}"
    earth = "".join(f"{', ' if name == 'longitude' else ' '}{name} {value}" for name, value in degrees.items())
    words = {
        "expected error": f"{release.error:.6g}{unit}",
        "drawn": f"report {release.report}" if release.drawn else "nothing",
        "cost": f"{float(release.charge):.9g} times the metric; {float(release.remaining):.9g} remaining in its window",
    }
    place = f"place {release.place}, at {where}{unit}{earth}" if release.label is None else f"class {release.label}"
    show(document, [f"Tick {release.tick}: {place}.", words], as_json=as_json)


def show_account(account: Account, *, as_json: bool) -> None:
    """Print an account in words, or as JSON, amounts as exact fractions."""
    document = {name: str(x) if isinstance(x, Fraction) else x for name, x in asdict(account).items()}
    words = {
        "window": account.window,
        "limit": _exact(account.limit),
        "total spent": _exact(account.spent),
        "worst window": _exact(account.worst) + (f", from tick {account.first}" if account.worst else ""),
        "remaining": f"{_exact(account.remaining)} in the window that ends with the last tick",
        "largest possible": f"{_exact(account.promised)} in one window, for any reports",
    }
    sentence = f"{account.reports} reports up to tick {account.last}. Every window is within the limit."
    show(document, [sentence, words], as_json=as_json)


def _exact(value: Fraction) -> str:
    return f"{float(value):.12g} ({value})" if value.denominator > 1 else str(value)


def proposal_document(proposal: Proposal) -> dict[str, Any]:
    """The proposal as JSON: exact worst windows as text, errors in the unit of the domain."""
    design = proposal.design
    return {
        "sha256": design.sha256,
        "claim": design.claim,
        "worst": {words: str(design.worst(words)) for words in ("1d", "24h", f"{DAYS}d")},
        "rule": design.rule.describe(),
        "charges": [str(charge) for charge in design.charges],
        "places": design.domain.size,
        "ticks": design.ticks,
        "unit": design.domain.unit,
        "limit": proposal.limit,
        "within": proposal.within,
        "people": proposal.people,
        "days": DAYS,
        "constant_error": proposal.constant,
        "curve": [_point_record(point) for point in proposal.points],
    }


def proposal_words(proposal: Proposal, file: Path) -> list[Block]:
    """The proposal in words."""
    unit, chosen, design = proposal.design.domain.unit, proposal.point_at_limit, proposal.design
    day, any_day, weeks = (f"{float(design.worst(words)):.9g}" for words in ("1d", "24h", f"{DAYS}d"))
    attacks = list(chosen.identified)
    homes = [f"home by {name}" for name in attacks]
    head = ["nats a day", f"mean error, {unit}", "reports a day", "rule", *homes, "certified odds"]
    rows = []
    for point in proposal.points:
        measured = [f"{point.error:.0f}", f"{point.reports:.1f}", _short(point)]
        shares = [f"{point.identified[name]:.0%}" for name in attacks]
        rows.append([f"{point.total:g}{' *' if point is chosen else ''}", *measured, *shares, _odds(point.nats)])
    return [
        f"Proposed for {proposal.limit:g} nats within {proposal.within:g} {unit} a day: {_rule(chosen, unit)}. In the "
        f"simulation the mean error is {chosen.error:.0f} {unit}; always naming the best fixed place gives "
        f"{proposal.constant:.0f} {unit}.",
        {
            "file": f"{file}, with its tables",
            "certified": f"{day} nats a calendar day, {any_day} in any 24 hours, {weeks} in {DAYS} days",
            "places": f"{design.domain.size}, {design.ticks} ticks a day",
        },
        TextTable(head, rows, groups=[[1, 2, 3], [*range(4, len(head))]]),
        f"* the design. {proposal.people} synthetic people, {DAYS} days each; a home is found if an attack names "
        f"a point within {proposal.within:g} {unit} of it. Certified odds: the largest factor by which {DAYS} days of "
        f"reports can change the odds of two homes {proposal.within:g} {unit} apart, if nothing else of the two traces "
        "is farther apart. The odds hold for everyone; the errors are for simulated people.",
    ]


def _point_record(point: Point) -> dict[str, Any]:
    return {
        "total": point.total,
        "rule": point.rule.describe(),
        "error": point.error,
        "reports_a_day": point.reports,
        "homes_found": point.identified,
        "certified_nats": point.nats,
    }


def _rule(point: Point, unit: str) -> str:
    costs = point.rule.costs
    count, cost = len(costs), f"{costs[0]:.4g} nats"
    if count > 1:
        cost += " each" if costs[0] == costs[-1] else f" the first and {costs[-1]:.4g} each further one"
    rule = point.rule.rule
    if isinstance(rule, Clock):
        hours = ", ".join(f"{int(hour)}:{round(hour % 1 * 60):02d}" for hour in rule.hours)
        return f"a report at {hours}, of {cost}"
    reports = f"at most {count} reports a day" if count > 1 else "at most one report a day"
    return f"{reports}, of {cost}, when the expected error exceeds {rule.threshold:.0f} {unit}"


def _short(point: Point) -> str:
    rule, count = point.rule.rule, len(point.rule.costs)
    return f"clock, {count}" if isinstance(rule, Clock) else f"risk > {rule.threshold:.0f}, {count}"


def _odds(nats: float) -> str:
    decades = nats / math.log(10)
    return f"{math.exp(nats):,.0f}" if decades < math.log10(_LARGEST) else f"10^{decades:.0f}"
