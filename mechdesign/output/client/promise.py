"""promise: what a report protects and costs, in a sentence for people, from what was proved."""

from __future__ import annotations

from mechdesign.mechanism.protection import Protection
from mechdesign.mechanism.stored import Stored
from mechdesign.output.sentences import error_sentence, joined, protects

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


def promise(stored: Stored, protection: Protection) -> str:
    """What is protected, and how far off reports are: the sentences of a page, without the bound."""
    return joined([protects(protection), error_sentence(stored)]).sentence


def what_is_drawn(stored: Stored) -> str:
    """What a position becomes, and what a remembered report protects: the first lines of the list in the README."""
    return _CELLS if stored.positions is None else _POSITIONS
