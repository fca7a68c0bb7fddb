"""What `mechdesign session design` says: the rule, error against total, and homes found beside the certified odds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from mechdesign.output.terminal.printing import listing, print_table, say
from mechdesign.utility.traces.propose import DAYS, Point, Proposal
from mechdesign.utility.traces.sessions import Clocked

_LARGEST = 1e6  # odds beyond which a power of ten is told


def proposal_document(found: Proposal) -> dict[str, Any]:
    """The proposal as JSON: worst windows exact, as text; errors in the unit; nats within the radius."""
    design = found.design
    return {
        "sha256": design.sha256,
        "claim": design.claim,
        "worst": {words: str(design.worst(words)) for words in ("1d", "24h", f"{DAYS}d")},
        "rule": design.rule.describe(),
        "charges": [str(charge) for charge in design.charges],
        "places": design.domain.size,
        "ticks": design.ticks,
        "unit": design.domain.unit,
        "limit": found.limit,
        "within": found.within,
        "people": found.people,
        "days": DAYS,
        "constant_error": found.constant,
        "curve": [_described(point) for point in found.points],
    }


def print_proposal(found: Proposal, file: Path) -> None:
    """The same in words, at any width."""
    unit, own, design = found.design.domain.unit, found.own, found.design
    day, any_day, weeks = (f"{float(design.worst(words)):.9g}" for words in ("1d", "24h", f"{DAYS}d"))
    say(
        f"Proposed for {found.limit:g} nats within {found.within:g} {unit} a day: {_rule(own, unit)}. Simulated, the "
        f"estimates are {own.error:.0f} {unit} off on average; the best fixed place is {found.constant:.0f} {unit} off."
    )
    listing(
        {
            "file": f"{file}, with its table",
            "certified": f"{day} nats a calendar day, {any_day} in any 24 hours, {weeks} in {DAYS} days",
            "places": f"{design.domain.size}, {design.ticks} ticks a day",
        }
    )
    print()
    unit_head = f"mean error, {unit}"
    attacks = list(own.found)
    head = [
        "nats a day",
        unit_head,
        "reports a day",
        "rule",
        *(f"home by {name}" for name in attacks),
        "certified odds",
    ]
    rows = []
    for point in found.points:
        mark = " *" if point is own else ""
        shares = [f"{point.found[name]:.0%}" for name in attacks]
        rows.append([f"{point.total:g}{mark}", f"{point.error:.0f}", f"{point.reports:.1f}", _short(point)])
        rows[-1] += [*shares, _odds(point.nats)]
    print_table(head, rows, groups=[[1, 2, 3], [*range(4, len(head))]])
    say(
        f"* the design. {found.people} synthetic people, {DAYS} days each; a home counts as found where an attack "
        f"names a point within {found.within:g} {unit} of it. Certified odds: the most that {DAYS} days of reports can "
        f"multiply the odds of two homes {found.within:g} {unit} apart by. Real people walk otherwise: the odds hold "
        "for them, the errors need not."
    )


def _described(point: Point) -> dict[str, Any]:
    rule = {"kind": "clock", "hours": point.rule.hours} if isinstance(point.rule, Clocked) else {
        "kind": "risk", "above": point.rule.above
    }  # fmt: skip
    return {
        "total": point.total,
        "rule": {**rule, "costs": point.rule.costs},
        "error": point.error,
        "reports_a_day": point.reports,
        "homes_found": point.found,
        "certified_nats": point.nats,
    }


def _rule(point: Point, unit: str) -> str:
    costs = point.rule.costs
    count, each = len(costs), f"{costs[0]:.4g} nats"
    if count > 1:
        each += " each" if costs[0] == costs[-1] else f" the first and {costs[-1]:.4g} each further one"
    if isinstance(point.rule, Clocked):
        hours = ", ".join(f"{int(hour)}:{round(hour % 1 * 60):02d}" for hour in point.rule.hours)
        return f"a report at {hours}, of {each}"
    most = f"at most {count} reports a day" if count > 1 else "at most one report a day"
    return f"{most}, of {each}, where the expected error exceeds {point.rule.above:.0f} {unit}"


def _short(point: Point) -> str:
    count = len(point.rule.costs)
    return f"clock, {count}" if isinstance(point.rule, Clocked) else f"risk > {point.rule.above:.0f}, {count}"


def _odds(nats: float) -> str:
    decades = nats / math.log(10)
    return f"{math.exp(nats):,.0f}" if decades < math.log10(_LARGEST) else f"10^{decades:.0f}"
