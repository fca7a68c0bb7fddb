"""Small tables with limits on discs of each kind, and random changes of a limit in a file or in an exported table."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import xarray as xr

import mechdesign as md

PEOPLE = list(range(1, 7))
CAP, LIFT = md.posteriors.PosteriorCap, md.posteriors.PosteriorLift
LIMITS: dict[str, Callable[[], Any]] = {  # on 2 x 3 cells; the fullest disc has 11, 17 and 11 of 21 people, and so on
    "limit anywhere": lambda: CAP(radius=0.6, share="11/20", people=PEOPLE),
    "limit about places": lambda: CAP(radius=1.0, share="5/6", people=PEOPLE, centres="places"),
    "limit by area": lambda: CAP(radius=0.8, share="11/20", people=PEOPLE, centres="area"),
    "limit for wrong counts": lambda: CAP(radius=0.6, share="7/10", people=PEOPLE, wrong_by="5/4"),
    "limit of two counts": lambda: CAP(radius=0.6, share="3/5", people=[PEOPLE, PEOPLE[::-1]]),
    "lift": lambda: LIFT(radius=0.6, factor="3/2", people=PEOPLE),
}
_WHOLE = (
    -1,
    0,
    1,
    2,
    3,
    5,
    17,
    2**16 - 1,
    2**16,
    2**31,
    2**32 - 1,
    2**32,
    2**63,
    10**30,
    True,
    None,
    "1",
    1.0,
    0.5,
    [1],
)
_SHARES = (
    *("1/2", "11/20", "3/5", "7/10", "4/5", "5/6", "9/10", "3/2", "2/1", "5/4", "1/1", "65535/65536", "1/65535", "0/1"),
    *("-1/2", "1/0", "11/20 ", "11/20\n", "0011/20", "+3/5", "٣/5", "60%", "0.6", "nan", "", 0.6, None, ["3/5"]),
)
_RADII = (*(0.3, 0.5, 0.51, 0.6, 0.7, 0.72, 0.8, 1.0, 1.2, 2.0, 1e9, 1e149, 1e150, 1e200, 0.0, -0.0, -1.0), *(1, True))
_RADII += (math.inf, math.nan, "0.6", None, [0.6], 5e-324)
_CENTRES = ("places", "anywhere", "area", "nowhere", "Anywhere", 0, None, ["area"])
_NAMES = ("radius", "centres", "people", "share", "factor", "wrong_by", "constraint", "note", "Share", "shares")


def problem() -> md.DesignProblem:
    """Two by three cells, people as the prior."""
    domain = md.Domain.grid((2, 3), 1.0, unit="cell")
    prior = md.priors.proportional(PEOPLE)
    return md.DesignProblem(domain, md.Euclidean(1.0, unit="cell"), prior, md.losses.Distance(), name="limited")


def design(kind: str) -> xr.Dataset:
    """The optimum under a limit."""
    return md.solve(md.programs.Constrained(problem(), constraints=[LIMITS[kind]()]))


def change(limit: dict[str, Any], random: Random, *, exported: bool) -> str:
    """Change a limit at random; exported, whether it is that of an exported table. Returns what was done."""
    name = random.choice([*sorted(limit), *sorted(limit), *_NAMES])
    way = random.choice(("value", "value", "value", "value", "gone", "renamed", "added"))
    if way == "gone":
        limit.pop(name, None)
    elif way == "renamed":
        limit[random.choice(_NAMES)] = limit.pop(name, None)
    elif name == "people" and isinstance(limit.get("people"), list) and limit["people"]:
        _people(limit, random, exported=exported)
    elif name == "radius":
        limit[name] = random.choice((*_RADII, random.uniform(0.3, 1.6)))
    elif name == "centres":
        limit[name] = random.choice(_CENTRES)
    elif name in ("share", "factor", "wrong_by") and exported:
        close = [random.randrange(1, 14), random.randrange(1, 14)]
        limit[name] = random.choice((close, close, [random.choice(_WHOLE), random.choice(_WHOLE)], [1], "3/5", None))
    elif name in ("share", "factor", "wrong_by"):
        limit[name] = random.choice((*_SHARES, f"{random.randrange(1, 14)}/{random.randrange(1, 14)}"))
    elif name == "constraint" and not exported:
        limit[name] = random.choice(("posterior-cap", "posterior-lift", "report-cap", "posterior-limit", None))
    else:
        limit[name] = random.choice((*_WHOLE, *_SHARES))
    return f"{way} {name}"


def _people(limit: dict[str, Any], random: Random, *, exported: bool) -> None:
    """Other people: a count, a row, their order or number."""
    rows = [limit["people"]] if exported else limit["people"]
    row = rows[random.randrange(len(rows))]
    way = random.randrange(8)
    if not isinstance(row, list) or not row:
        limit["people"] = deepcopy(PEOPLE)
    elif way < 4:
        row[random.randrange(len(row))] = random.choice((*_WHOLE, random.randrange(12), random.randrange(12)))
    elif way == 4:
        row[:] = random.choice(
            (row[:-1], [*row, 1], [], row[::-1], [0] * len(row), [2 * k for k in row if k in PEOPLE])
        )
    elif way == 5:
        row[:] = random.sample(row, len(row))
    elif way == 6 and not exported:
        rows.append(deepcopy(random.choice((row, row[::-1], [0] * len(row), []))))
    else:
        limit["people"] = random.choice((None, [], row, [row], 21, {"0": row}))
