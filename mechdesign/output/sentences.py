"""Sentences on protection, error and lower bound, for the terminal, pictures, clients and HTML.

The program of a page makes the same ones from the numbers that it recomputed (web/browser/proof/sentence.js). Losses
and factors are rounded up, bounds and radii down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from mechdesign.base.formatting import DIGITS, TIMES, amount, length, number, percent, sentence
from mechdesign.evaluation.loss import position_loss
from mechdesign.evaluation.protection import Protection
from mechdesign.mechanism.claim import MechanismFile
from mechdesign.mechanism.figures import relative_gap
from mechdesign.problem.losses import Distance, SquaredDistance, ZeroOne
from mechdesign.problem.vocabulary import words_of
from mechdesign.programs.bounded import Bounded
from mechdesign.programs.constrained import Constrained, claimed_limits
from mechdesign.programs.program import EXPECTED_LOSS

_BY_FORM = "positions"  # the program whose bound is one of mechanisms of its own form
QUOTED_GAP = 0.2  # of a bound that a sentence quotes, at most: a bound farther below the loss says little
FAR_ABOVE = 10.0  # times the gap that was asked for, from which a design is far from what was asked
_NOISE = 1e-12  # relative: rounding of sums of losses


def joined(parts: Iterable[str | None]) -> str:
    """Sentences one after another."""
    return " ".join(part for part in parts if part)


def protects(p: Protection, *, because: str | None = None) -> str:
    """What is protected, and the factor by which one report changes odds; because, why it is no more than that."""
    subject = f"Protects {p.subject}{'' if because is None else f', because {because},'}"
    subject = subject.removesuffix(",")
    if p.factor is None:
        return f"{subject}; by what factor odds change between two people is not known."
    if p.factor == 1:
        return f"{subject}: a report tells nothing about anybody."
    change = f"a factor of {'up to' if p.exact else 'at most'} {number(p.factor, up=True)}"
    if math.isinf(p.factor):
        change = "no bounded factor"
    where = ""
    if p.within:
        whole = number(p.within, up=False, digits=6)
        exact = TIMES not in whole and float(whole.replace(",", "")) == p.within
        radius = whole if exact else number(p.within, up=False)
        unit = {"units": "unit", "cells": "cell"}.get(p.unit, p.unit) if radius == "1" else p.unit
        where = f"within {radius} {unit}"
    if p.kind == "cells":
        who = f"between two people {where or 'however close'}, one report changes the odds"
    elif p.kind == "places":
        along = "" if p.along is None else f" along {p.along}"
        who = f"between {p.between or f'two of them {where}{along}'}, one report changes the odds"
    else:
        straight = "" if p.path is None else " in a straight line"
        who = f"{where}{straight}, one report changes anybody's odds"
    along = "" if p.path is None else f", along paths inside the area by at most {number(p.path, up=True)}"
    return f"{subject}: {who} by {change}{along}."


def limit_sentences(stored: MechanismFile) -> str | None:
    """The claimed limits in words; None if there are none."""
    limits = claimed_limits(str(stored.mechanism.attrs["program"]), stored.parameters)
    return joined(limit.sentence(stored.domain) for limit in limits) or None


def error_sentence(stored: MechanismFile, *, at_position: float | None = None) -> str:
    """The mean error at true positions where known, else from the places; at_position: that loss, if computed."""
    value, at = headline_loss(stored, at_position=at_position)
    shown = _loss(stored, value, up=True)
    what = "Reports" if stored.same_places or at else "Answers"
    off = f"off the true {words_of(stored.domain).truth}" if at else "off"
    if type(stored.loss) is ZeroOne:
        return f"A report is the true one with probability {shown}."
    if type(stored.loss) is Distance:
        return f"{what} are {shown} {off} on average."
    if type(stored.loss) is SquaredDistance:
        return f"{what} are {shown} {off} (root mean square)."
    return f"{what} have a loss of {shown} on average."


def _loss(stored: MechanismFile, value: float, *, up: bool) -> str:
    """A loss as people read it: of squared distances the root, of 0 and 1 the probability of the true report."""
    unit = stored.domain.unit
    if type(stored.loss) is ZeroOne:
        return percent(1 - value, up=not up, digits=DIGITS)
    if type(stored.loss) is Distance:
        return length(value, unit, up=up)
    if type(stored.loss) is SquaredDistance:
        return length(math.sqrt(max(value, 0.0)), unit, up=up)
    return amount(value, stored.loss.unit(unit), up=up)


def headline_loss(stored: MechanismFile, *, at_position: float | None = None) -> tuple[float, bool]:
    """The loss that is stated first, in loss units, and whether it is that at true positions."""
    at_position = position_loss(stored.mechanism) if at_position is None else at_position
    return (float(stored.mechanism.attrs["expected_loss"]), False) if at_position is None else (at_position, True)


def bound_sentence(stored: MechanismFile, *, at_position: float | None = None, gap: float | None = None) -> str | None:
    """The lower bound next to the loss that it bounds; None without one, or where the gap is above `QUOTED_GAP`.

    at_position, gap: the loss at true positions and (loss - bound) / loss, if computed. A bound between centres of
    cells holds at true positions for squared distances, plus the variance of a cell (problem/position_loss.py); for
    other losses it stands next to the loss between centres, and for another objective next to that.
    """
    attrs, loss = stored.mechanism.attrs, stored.loss
    bound = float(attrs["lower_bound"]) if "lower_bound" in attrs else 0.0
    by_form = stored.positions is not None and attrs["program"] == _BY_FORM
    if stored.positions is not None and not by_form:
        return None
    value, at = headline_loss(stored, at_position=at_position)
    objective, what = float(attrs.get("objective", attrs["expected_loss"])), str(attrs.get("objective_of"))
    limited = attrs["program"] in (Bounded.name, Constrained.name)
    whose = f"no mechanism {'of this form' if by_form else 'with this claim'}{' and its limits' * limited}"
    share = relative_gap(objective, bound, 0.0) if gap is None and objective > 0 else gap or 0.0
    quoted = bound > 0 and not (objective > 0 and share > QUOTED_GAP)
    end = f" (gap {percent(share, up=True)})." if objective > 0 else "."
    if has_other_objective(stored):
        unit = loss.unit(stored.domain.unit) if "loss" in what else "1"
        unit = "units" if (unit, loss.name) == ("1", "distance") else unit
        subject = f"Between centres of cells {what}" if at and "loss" in what else sentence(what)
        reached = f"{subject} is {amount(objective, unit, up=True)}"
        return f"{reached}, and {whose} has less than {amount(bound, unit, up=False)}{end}" if quoted else f"{reached}."
    if not quoted:
        return None
    if type(loss) is SquaredDistance and at and not by_form:
        bound += (value - objective) * (1 - _NOISE)
    best = f"{whose} does better than {_loss(stored, bound, up=False)}{end}"
    if type(loss) is Distance and at and not by_form:
        return f"Between {words_of(stored.domain).centres} that is {_loss(stored, objective, up=True)}, and {best}"
    return sentence(best)


def has_other_objective(stored: MechanismFile) -> bool:
    """True if the program of a mechanism minimises another figure than the expected loss under the claim."""
    of = stored.mechanism.attrs.get("objective_of", EXPECTED_LOSS)
    return stored.positions is None and of != EXPECTED_LOSS


def asked_gap(stored: MechanismFile) -> float | None:
    """The gap that the design worked towards; None where it worked towards none."""
    gap = stored.parameters.get("gap")
    return float(gap) if isinstance(gap, (int, float)) and not isinstance(gap, bool) and gap > 0 else None


def is_far_above(stored: MechanismFile, gap: float | None) -> bool:
    """True if the design ended more than `FAR_ABOVE` times above the gap that was asked for."""
    asked = asked_gap(stored)
    return asked is not None and gap is not None and gap > FAR_ABOVE * asked


def stopped_sentence(
    stored: MechanismFile, stopped: str | None, gap: float | None, *, limit: float | None = None
) -> str | None:
    """The possible shortfall of a design that stopped early or ended far above its gap, with the remedy; else None."""
    most = 1 if asked_gap(stored) is not None else QUOTED_GAP
    known = gap is not None and 0 <= gap < 1 and gap <= most
    avoidable = f"{at_most(gap)} of the loss may be avoidable" if known and gap is not None else ""
    why = {"time": "Stopped at its time limit", "interrupt": "Stopped by hand"}.get(stopped or "")
    if why is None:
        if not is_far_above(stored, gap):
            return None
        return f"{sentence(avoidable)}." if known else "How much better the best is was not found."
    longer = "a longer --time-limit" if limit is None or math.isinf(limit) else f"--time-limit {4 * limit:g}"
    on = f"{longer} goes on" if stopped == "time" else "the same command without an interruption goes on"
    return f"{why}: {avoidable}; {on}." if known else f"{why}: how much better the best is was not found; {on}."


def at_most(share: float) -> str:
    """A share in percent that is not exceeded: "up to 12 %", or "under 0.0001 %"."""
    text = percent(share, up=True)
    return text if text.startswith("under") else f"up to {text}"
