"""Rest: the secret that a budget draws a report for, and the name under which it remembers the report.

| remember | drawn for | repeated |
|---|---|---|
| cell | the cell around the position: with a claim between positions, its centre | in the same cell |
| visit | the first position of a visit | within `visit` of it, and until the position is STAY times as far |
| none | the position | never |

The pattern of repetitions is revealed. It follows from the positions alone, not from draws. Given the pattern, reports
of different names are independent draws of their secrets. So (1) of sessions/budget.py holds for two traces with the
same pattern, with one term for each name. `web/device/rest.mjs` has the same rules and sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from mechdesign.errors import InputError
from mechdesign.output.memory_claim import STAY, Remember
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_at

MODES: tuple[Remember, ...] = ("cell", "visit", "none")
POINT = 1 << 16  # points of a visit are rounded to 2^-16 of a cell, as positions of the client
_VISIT = re.compile(r"@ ([0-9]{1,9}) (-?[0-9]{1,5}) (-?[0-9]{1,5})")  # names of cells begin without @


class Secret(NamedTuple):
    """The cell and the point (2,) in it that a report is drawn for; `name` in the memory, None if it is not kept."""

    name: str | None
    cell: int
    point: tuple[int, ...]


def check_mode(remember: object, visit: object) -> None:
    """Refuse an unknown mode, and a radius that is missing, not positive or without a visit."""
    if remember not in MODES:
        raise InputError("unknown mode", field="remember", value=remember, remedy=f"use one of {', '.join(MODES)}")
    if remember != "visit":
        if visit is not None:
            raise InputError("applies to visits alone", field="visit", value=visit, remedy='pass remember="visit"')
        return
    if isinstance(visit, bool) or not isinstance(visit, (int, float)) or not 0 < visit < math.inf:
        remedy = "give the radius of a visit in the unit of the map"
        raise InputError("must be positive and finite", field="visit", value=visit, remedy=remedy)


def point_in(domain: Domain, cell: int, position: Sequence[float]) -> tuple[int, ...]:
    """The point of a cell of a grid that a position in it is rounded to, in 2^-16 of a side from its centre."""
    assert domain.index is not None and domain.origin is not None and domain.cell is not None
    parts = zip(position, domain.index[cell].tolist(), domain.origin, domain.cell, strict=True)
    shares = ((Fraction(x) - Fraction(low)) / Fraction(h) - step - Fraction(1, 2) for x, step, low, h in parts)
    return tuple(math.floor(share * POINT + Fraction(1, 2)) for share in shares)


def visit_of(domain: Domain, visit: float, names: Iterable[str], last: str | None, position: Sequence[float]) -> Secret:
    """The visit of a position: the one of the last report, else the nearest remembered one, else a new one."""
    if domain.kind != "grid" or domain.dimension != 2:
        raise InputError("needs cells of a grid in the plane", field="remember", value="visit", remedy='use "cell"')
    found, least = None, math.inf
    for name in names:
        match = _VISIT.fullmatch(name)
        if match is None:
            continue
        cell, *point = map(int, match.groups())
        square = _square_to(domain, cell, point, position)
        reach = STAY * visit if name == last else visit
        # A visit that lasts is not exchanged for a nearer place: this would reveal movements within it.
        if name == last and square <= reach * reach:
            return Secret(name, cell, tuple(point))
        if square <= reach * reach and square < least:
            found, least = Secret(name, cell, tuple(point)), square
    if found is not None:
        return found
    cell = place_at(domain, position)
    own = point_in(domain, cell, position)
    return Secret(" ".join(map(str, ("@", cell, *own))), cell, own)


def _square_to(domain: Domain, cell: int, point: Sequence[int], position: Sequence[float]) -> float:
    assert domain.index is not None and domain.origin is not None and domain.cell is not None
    # The operations of places.mjs in their order, so that the same fixes have the same visits in both.
    x, y = (
        low + (step + 0.5) * side + (steps / POINT) * side
        for low, step, side, steps in zip(domain.origin, domain.index[cell].tolist(), domain.cell, point, strict=True)
    )
    return (x - position[0]) ** 2 + (y - position[1]) ** 2
