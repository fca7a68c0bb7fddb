"""promise: what a report protects and costs, in a sentence for people, from what was proved."""

from __future__ import annotations

import math

from mechdesign.closed_forms.noise.privacy_radius import odds_factor
from mechdesign.mechanism.stored import Stored
from mechdesign.output.sentences import error_sentence
from mechdesign.setting.metric.euclidean import Euclidean

_CELLS = """\
* **The claim is about cells.** A position becomes the cell around it, on a border the higher one. Two people in one
  cell cannot be told apart at all; two in neighbouring cells only as far as their cells.
* **A remembered report protects only people who repeat their cells alike.** The first report from a cell is drawn, paid
  and kept; from then on the same cell gives the same report, at no cost, so that averaging gains nothing. The claim is
  for traces whose cells are equal at the same pairs of reports; between others, such as one who stays and one who
  leaves, the ratio is infinite. For somebody who moves make a session instead (`mechdesign session design`)."""
_POSITIONS = """\
* **The claim is about positions**, any two of them in the area, however close and on whichever side of a border. A
  position is rounded to 2^-16 of a cell, and draws the row of one of the 3 x 3 cells around it, by chance; which one is
  never told. `reportCell` reports the centre of a cell.
* **A fix that moved is another secret.** The same point, to 2^-16 of a cell, gives the same report, at no cost; one a
  metre away is drawn and paid anew. Give a resting device one position, or report less often."""


def promise(stored: Stored, *, loss: float | None) -> str:
    """The sentence, about positions where these are drawn, else cells. For the Euclidean metric it names the radius
    that was asked for (else that of a factor of 2), and the factor that the level of the claim gives within it, to four
    digits; on a plane the radius is on the ground. For other metrics it refers to the claim.
    """
    metric, domain = stored.metric, stored.domain
    said = "" if loss is None else error_sentence(stored).sentence
    whose = "cells" if stored.positions is None else "positions"
    by_claim = f"One report changes anybody's odds between two {whose} by a factor of at most e^d, d as claimed. {said}"
    if not isinstance(metric, Euclidean):
        return by_claim.strip()
    level = metric.epsilon * float(metric.scale)
    if domain.plane is not None:
        level *= 1 + domain.plane.excess(domain.reach if stored.positions is None else domain.farthest)
    asked = stored.parameters["knobs"].get("radius")
    own = isinstance(asked, (int, float)) and 0 < asked < math.inf
    radius = float(asked) if own else math.log(2) / level if level > 0 else math.inf
    if not 0 < level * radius < 100:
        return by_claim.strip()
    unit = "" if domain.unit == "1" else f" {domain.unit}"
    within = f"Within {radius:.4g}{unit}, one report changes anybody's odds between two {whose} by a factor of at most"
    return f"{within} {odds_factor(level * radius):.4g}. {said}".strip()


def what_is_drawn(stored: Stored) -> str:
    """What a position becomes, and what a remembered report protects: the first lines of the list in the README."""
    return _CELLS if stored.positions is None else _POSITIONS
