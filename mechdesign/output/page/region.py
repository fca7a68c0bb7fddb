"""What a page of a compact map carries: the file, byte by byte, and what is said of it.

Names of the object beside those of contents.py: `first`, the cell whose surroundings are proved at once, of the highest
level, of several the one nearest to the middle; `levels_per`, of the unit, the length that levels are said per.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.mechanism.compact.file import packed
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.table.dataset import versions
from mechdesign.output.page.contents import FORMAT, Arrays
from mechdesign.output.page.facts import exact, said_of
from mechdesign.output.page.sentence import TIMES, USUAL, Saying, lengths, short
from mechdesign.verification.verify import Verification

_KINDS = ((1, 0), (0, 1), (1, 1), (2, 1), (1, 2))
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # of the cells, in the table for readers without scripts


def region_contents(compact: CompactMap, checked: Verification) -> tuple[dict[str, Any], bytes]:
    """The object and the bytes of a page of a compact map that was verified, with its texts as `facts`."""
    arrays, content = Arrays(), packed(compact)
    place = arrays.place(np.frombuffer(content, np.uint8))
    contents = {
        "format": FORMAT,
        "kind": "region",
        "complete": False,
        "attrs": {},
        "arrays": {"compact": place},
        "beside": {},
        "first": _first(compact),
        "levels_per": _per(compact.unit)[0],
        "saying": _saying(compact).as_dict(),
        "verification": checked.as_dict(),
        "comparison": None,
        "facts": _facts(compact, checked, content[-32:].hex()),
    }
    return contents, arrays.packed()


def stretch(cell: tuple[float, ...], stencil: int) -> float:
    """How far the distance of a stencil graph on a whole rectangle of cells (h1, h2) exceeds the Euclidean one at most,
    at a constant level: 1 / cos(a / 2), a the largest angle between neighbouring steps.
    """
    steps = _KINDS[: 3 if stencil == 8 else 5]
    angles = np.sort([math.atan2(b * cell[1], a * cell[0]) for a, b in steps])
    return float(1 / math.cos(np.diff(angles).max() / 2))


def _per(unit: str) -> tuple[float, str]:
    """The length in the unit that levels are said per, and its name."""
    return (1000.0, "km") if unit == "m" else (1.0, lengths(unit, 1))


def _levels(compact: CompactMap) -> Any:
    """Levels (n1, n2) of the secrets, per length of `_per`."""
    held = compact.level.ravel()[compact.inner].reshape(compact.cells)
    return held * compact.level_unit * _per(compact.unit)[0]


def _first(compact: CompactMap) -> int:
    held = compact.level.ravel()[compact.inner].reshape(compact.cells)
    i, j = np.nonzero(held == held.max())
    away = (i - compact.cells[0] / 2) ** 2 + (j - compact.cells[1] / 2) ** 2
    at = int(np.argmin(away))
    return int(i[at]) * compact.cells[1] + int(j[at])


def _saying(compact: CompactMap) -> Saying:
    """The sentence: what a report changes odds by within a radius, wherever somebody is, and the range of levels."""
    levels, (per, name) = _levels(compact), _per(compact.unit)
    rate = float(levels.max()) / per * stretch(compact.cell, compact.stencil)
    radius = math.log(USUAL) / rate
    return Saying(
        template=f"Within {{radius}} {lengths(compact.unit)}, wherever somebody is, a report changes an attacker's "
        f"odds by no more than a factor of {{factor}}; levels fall from {{most}} to {{least}} nats per {name}.",
        values={"radius": radius, "factor": USUAL, "most": float(levels.max()), "least": float(levels.min())},
        texts={
            "radius": short(radius, upwards=False),
            "factor": short(USUAL, upwards=True),
            "most": short(float(levels.max())),
            "least": short(float(levels.min())),
        },
    )


def _facts(compact: CompactMap, checked: Verification, digest: str) -> dict[str, Any]:
    """Texts of the page; every one is one line that shows what it is."""
    unit, levels, (_, per) = lengths(compact.unit), _levels(compact), _per(compact.unit)
    held = xr.Dataset(attrs={"problem": compact.problem, "sha256": digest, "versions": versions()})
    said = said_of(held, "map", checked.claim or "", program=visible(compact.program))
    provenance = {name: text for name, text in said["provenance"].items() if name != "made with"}
    side = f" {TIMES} ".join(dict.fromkeys(short(h) for h in compact.cell))
    told = {
        "effective_epsilon": (checked.effective_epsilon, "of the claim"),
        "violations": (checked.violations, ""),
        "rebuilt": (checked.rebuilt, ""),
        "worst": (checked.worst, ""),
    }
    return said | {
        "provenance": {**provenance, "checksum of the design": compact.mechanism},
        "sentence": _saying(compact).sentence,
        "subtitle": f"{compact.cells[0]:,} {TIMES} {compact.cells[1]:,} cells of {side} {unit} · map",
        "unit": unit,
        "per": per,
        "figures": [
            {"key": key, "name": key.replace("_", " "), "text": exact(value), "unit": words}
            for key, (value, words) in told.items()
            if value is not None
        ],
        "listed": {
            "head": ["share of the cells", f"level at most, nats per {per}"],
            "rows": [[f"{100 * share:g} %", f"{np.quantile(levels, share):.3g}"] for share in _SHARES],
            "rest": 0,
        },
    }
