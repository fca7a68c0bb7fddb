"""What a page of a compact map carries: the file, byte by byte, and what is said of it.

Names of the object beside those of contents.py: `first`, the cell whose surroundings are proved at once, of the highest
level, of several the one nearest to the middle; `levels_per`, of the unit, the length that levels are said per.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.base.units import lengths
from mechdesign.mechanism.compact.file import packed
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.table.dataset import versions
from mechdesign.output.figures import TIMES, number
from mechdesign.output.page.contents import FORMAT, Arrays
from mechdesign.output.page.facts import exact, said_of
from mechdesign.output.sentences import Saying, joined, protects
from mechdesign.verification.verify import Verification

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
        "saying": _saying(compact, checked).as_dict(),
        "verification": checked.as_dict(),
        "comparison": None,
        "facts": _facts(compact, checked, content),
    }
    return contents, arrays.packed()


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


def _saying(compact: CompactMap, checked: Verification) -> Saying:
    """The sentence: what is protected, and the range of levels."""
    assert checked.protection is not None
    levels, name = _levels(compact), _per(compact.unit)[1]
    most, least = float(levels.max()), float(levels.min())
    fall = Saying(
        template=f"Levels fall from {{most}} to {{least}} nats per {name}.",
        values={"most": most, "least": least},
        texts={"most": number(most, up=True), "least": number(least, up=False)},
    )
    return joined([protects(checked.protection), fall])


def _facts(compact: CompactMap, checked: Verification, content: bytes) -> dict[str, Any]:
    """Texts of the page; every one is one line that shows what it is."""
    unit, levels, (_, per) = lengths(compact.unit), _levels(compact), _per(compact.unit)
    held = xr.Dataset(attrs={"problem": compact.problem, "sha256": content[-32:].hex(), "versions": versions()})
    checksum = hashlib.sha256(content).hexdigest()
    said = said_of(held, "map", checked.claim or "", checksum=checksum, program=visible(compact.program))
    provenance = {name: text for name, text in said["provenance"].items() if name != "made with"}
    side = f" {TIMES} ".join(dict.fromkeys(number(h) for h in compact.cell))
    told = {
        "ratio": (checked.ratio, "of the claim"),
        "violations": (checked.violations, ""),
        "rebuilt": (checked.rebuilt, ""),
        "worst": (checked.worst, ""),
    }
    return said | {
        "provenance": {**provenance, "seal of the design": compact.mechanism},
        "sentence": _saying(compact, checked).sentence,
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
