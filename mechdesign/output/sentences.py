"""Sentences on protection, error and lower bound, for the terminal, pictures, clients and pages."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mechdesign.base.formatting import DIGITS, TIMES, amount, length, number, percent, sentence
from mechdesign.evaluation.loss import position_loss
from mechdesign.evaluation.protection import Protection
from mechdesign.mechanism.figures import relative_gap
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.problem.losses import Distance, SquaredDistance, ZeroOne
from mechdesign.problem.vocabulary import words_of
from mechdesign.programs.bounded import Bounded
from mechdesign.programs.constrained import Constrained, claimed_limits
from mechdesign.programs.program import EXPECTED_LOSS

_POSITIONS = "positions"  # the program whose bound holds among mechanisms of its own form
QUOTED_GAP = 0.2  # largest gap of a bound that a sentence quotes: a bound further below the loss says little
LARGE_GAP = 10.0  # times the target gap: a design that ends above this is reported first, as a shortfall
_NOISE = 1e-12  # relative rounding error of sums of losses
_UNKNOWN = "it is not known how far the loss is from the minimum"


def join_sentences(parts: Iterable[str | None]) -> str:
    """Sentences one after another, without empty ones."""
    return " ".join(part for part in parts if part)


# A page in a browser makes the same sentences from the numbers that it recomputed (web/browser/proof/sentence.js):
# change both together. Losses and factors are rounded up, bounds and radii down, so that a rounded sentence is still
# true.
def protection_sentence(p: Protection, *, because: str | None = None) -> str:
    """The protected secrets and the factor by which one report changes odds; because: why no more is protected."""
    subject = f"Protects {p.subject}{'' if because is None else f', because {because},'}"
    subject = subject.removesuffix(",")
    if p.factor is None:
        return f"{subject}; the factor by which a report changes the odds between two people is not known."
    if p.factor == 1:
        return f"{subject}: a report reveals nothing about anybody."
    # "up to" is attained by some report; "at most" is a bound.
    change = f"a factor of {'up to' if p.exact else 'at most'} {number(p.factor, up=True)}"
    if math.isinf(p.factor):
        change = "an unbounded factor"
    where = ""
    if p.within:
        # Six digits print most radii exactly. Others are rounded down: the factor then holds within the stated radius.
        full = number(p.within, up=False, digits=6)
        is_exact = TIMES not in full and float(full.replace(",", "")) == p.within
        radius = full if is_exact else number(p.within, up=False)
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
    return join_sentences(limit.sentence(stored.domain) for limit in limits) or None


def error_sentence(stored: MechanismFile, *, at_position: float | None = None) -> str:
    """The mean error to true positions if it exists, else to secrets; at_position: that loss, if already computed."""
    value, is_at_position = headline_loss(stored, at_position=at_position)
    shown = _format_loss(stored, value, up=True)
    answers = "" if stored.same_places or is_at_position else " of the answers"
    error = f"distance to the true {words_of(stored.domain).truth}" if is_at_position else f"error{answers}"
    if type(stored.loss) is ZeroOne:
        return f"A report is correct with probability {shown}."
    if type(stored.loss) is Distance:
        return f"The mean {error} is {shown}."
    if type(stored.loss) is SquaredDistance:
        return f"The root mean square {error} is {shown}."
    return f"The mean loss{answers} is {shown}."


def _format_loss(stored: MechanismFile, value: float, *, up: bool) -> str:
    """A loss in words: the root of a squared distance, the probability of a correct report for a loss of 0 and 1."""
    unit = stored.domain.unit
    if type(stored.loss) is ZeroOne:
        return percent(1 - value, up=not up, digits=DIGITS)
    if type(stored.loss) is Distance:
        return length(value, unit, up=up)
    if type(stored.loss) is SquaredDistance:
        return length(math.sqrt(max(value, 0.0)), unit, up=up)
    return amount(value, stored.loss_unit, up=up)


def headline_loss(stored: MechanismFile, *, at_position: float | None = None) -> tuple[float, bool]:
    """The loss that is stated first, in loss units; True if it is the loss to true positions."""
    at_position = position_loss(stored.mechanism) if at_position is None else at_position
    return (float(stored.mechanism.attrs["expected_loss"]), False) if at_position is None else (at_position, True)


def bound_sentence(stored: MechanismFile, *, at_position: float | None = None, gap: float | None = None) -> str | None:
    """The lower bound next to the loss that it bounds; None without one, or if the gap is above `QUOTED_GAP`."""
    attrs, loss = stored.mechanism.attrs, stored.loss
    bound = float(attrs["lower_bound"]) if "lower_bound" in attrs else 0.0
    own_form = stored.positions is not None and attrs["program"] == _POSITIONS
    if stored.positions is not None and not own_form:
        return None
    value, is_at_position = headline_loss(stored, at_position=at_position)
    objective, name = float(attrs.get("objective", attrs["expected_loss"])), str(attrs.get("objective_of"))
    has_limits = attrs["program"] in (Bounded.name, Constrained.name)
    rivals = f"no mechanism {'of this form' if own_form else 'with this claim'}{' and its limits' * has_limits}"
    if own_form and (best := _any_bound_sentence(stored)) is not None:
        return best
    share = relative_gap(objective, bound, 0.0) if gap is None and objective > 0 else gap or 0.0
    is_quoted = bound > 0 and not (objective > 0 and share > QUOTED_GAP)
    end = f" (gap {percent(share, up=True)})." if objective > 0 else "."
    if has_other_objective(stored):
        unit = stored.loss_unit if "loss" in name else "1"
        unit = "units" if (unit, loss.name) == ("1", "distance") else unit
        subject = f"Between centres of cells {name}" if is_at_position and "loss" in name else sentence(name)
        reached = f"{subject} is {amount(objective, unit, up=True)}"
        below = f"{rivals} has less than {amount(bound, unit, up=False)}{end}"
        return f"{reached}, and {below}" if is_quoted else f"{reached}."
    if not is_quoted:
        return None
    # The bound is on the loss between centres. To true positions a squared distance has the variance of a cell on top,
    # whatever the mechanism (problem/position_loss.py), so the bound moves with it. No such rule holds for distances:
    # their bound stands next to the loss between centres.
    if type(loss) is SquaredDistance and is_at_position and not own_form:
        bound += (value - objective) * (1 - _NOISE)
    best = f"{rivals} does better than {_format_loss(stored, bound, up=False)}{end}"
    if type(loss) is Distance and is_at_position and not own_form:
        centres = f"Between {words_of(stored.domain).centres} the mean distance is"
        return f"{centres} {_format_loss(stored, objective, up=True)}, and {best}"
    return sentence(best)


def _any_bound_sentence(stored: MechanismFile) -> str | None:
    """The bound over every mechanism of a claim between positions; None without one above 1 - `QUOTED_GAP`."""
    share = any_gap(stored)
    if share is None or share > QUOTED_GAP:
        return None
    bound = _format_loss(stored, float(stored.mechanism.attrs["any_lower_bound"]), up=False)
    rivals = "No mechanism at all with this claim and these reports"
    return f"{rivals} does better than {bound} (gap {percent(share, up=True)})."


def any_gap(stored: MechanismFile) -> float | None:
    """The relative gap to the bound over every mechanism between positions; None without one."""
    attrs = stored.mechanism.attrs
    if stored.positions is None or attrs["program"] != _POSITIONS or "any_lower_bound" not in attrs:
        return None
    objective, bound = float(attrs["objective"]), float(attrs["any_lower_bound"])
    return relative_gap(objective, bound, 0.0) if objective > 0 and bound > 0 else None


def has_other_objective(stored: MechanismFile) -> bool:
    """True if the program of a mechanism minimises something else than the expected loss under the claim."""
    objective = stored.mechanism.attrs.get("objective_of", EXPECTED_LOSS)
    return stored.positions is None and objective != EXPECTED_LOSS


def target_gap(stored: MechanismFile) -> float | None:
    """The gap at which the solver was to stop; None if it had no such target."""
    gap = stored.parameters.get("gap")
    return float(gap) if isinstance(gap, (int, float)) and not isinstance(gap, bool) and gap > 0 else None


def has_large_gap(stored: MechanismFile, gap: float | None) -> bool:
    """True if the design ended at more than `LARGE_GAP` times its target gap."""
    target = target_gap(stored)
    return target is not None and gap is not None and gap > LARGE_GAP * target


def stopped_sentence(
    stored: MechanismFile, stopped: str | None, gap: float | None, *, limit: float | None = None
) -> str | None:
    """The possible shortfall of a design that stopped early or has a large gap, with the remedy; else None."""
    largest = 1 if target_gap(stored) is not None else QUOTED_GAP
    shortfall = _UNKNOWN
    if gap is not None and 0 <= gap < 1 and gap <= largest:
        shortfall = f"{format_upper_share(gap)} of the loss may be avoidable"
    why = {"time": "Stopped at the time limit", "interrupt": "Stopped by hand"}.get(stopped or "")
    if why is None:
        return f"{sentence(shortfall)}." if has_large_gap(stored, gap) else None
    remedy = "run the command again without an interruption"
    if stopped == "time":
        remedy = (
            f"pass {'a longer --time-limit' if limit is None or math.isinf(limit) else f'--time-limit {4 * limit:g}'}"
        )
    return f"{why}: {shortfall}. To search longer, {remedy}."


def format_upper_share(share: float) -> str:
    """An upper limit in percent: "up to 12 %", or "under 0.0001 %"."""
    text = percent(share, up=True)
    return text if text.startswith("under") else f"up to {text}"
