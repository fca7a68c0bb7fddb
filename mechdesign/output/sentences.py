"""The one maker of sentences: what a mechanism protects, how far off its reports are, what the best would be.

A `Saying` is a template and its figures: terminal, pictures and client print it filled in, a page fills it in the
browser with figures that it has found again, and refuses those that differ. Every figure has its value in full and the
text that people read, rounded to the safe side: losses and factors up, bounds and radii down. Names of figures: within
and factor, of the protection; path, the factor along paths inside a masked area; loss, the headline; cell_loss, between
centres of cells; bound, and avoidable, the share of the loss in percent that a design stopped early may not need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mechdesign.base.units import lengths
from mechdesign.mechanism.protection import Protection
from mechdesign.mechanism.stored import Stored
from mechdesign.output.figures import DIGITS, TIMES, amount, length, number, percent
from mechdesign.programs.optimal.bounded import Bounded
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.programs.optimal.positions import Positions
from mechdesign.setting.objective.losses import Distance, SquaredDistance, ZeroOne
from mechdesign.utility.loss.true_position import position_loss

_NOISE = 1e-12  # relative: rounding of sums of losses


@dataclass(frozen=True, kw_only=True)
class Saying:
    """template, with {NAME} for every figure; values, the figures in full; texts, as people read them, by name."""

    template: str
    values: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The template filled in."""
        return self.template.format(**self.texts)

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {"template": self.template, "values": dict(self.values), "texts": dict(self.texts)}


def joined(parts: Iterable[Saying | None]) -> Saying:
    """Sentences one after another."""
    there = [part for part in parts if part is not None]
    return Saying(
        template=" ".join(part.template for part in there),
        values={name: value for part in there for name, value in part.values.items()},
        texts={name: text for part in there for name, text in part.texts.items()},
    )


# --- sentences -------------------------------------------------------------------------------------------------------


def protects(p: Protection, *, because: str | None = None) -> Saying:
    """What is protected, and the factor by which one report changes odds; because, why it is no more than that."""
    subject = f"Protects {p.subject}{'' if because is None else f', because {because},'}"
    subject = subject.removesuffix(",")
    if p.factor is None:
        return Saying(template=f"{subject}; by what factor odds change between two people is not known.")
    if p.factor == 1:
        return Saying(template=f"{subject}: a report tells nothing about anybody.")
    values: dict[str, float] = {"factor": p.factor}
    texts = {"factor": number(p.factor, up=True)}
    change = (
        "no bounded factor" if math.isinf(p.factor) else f"a factor of {'up to' if p.exact else 'at most'} {{factor}}"
    )
    where = ""
    if p.within:
        whole = number(p.within, up=False, digits=6)
        asked = float(whole.replace(",", "")) == p.within if TIMES not in whole else False
        values["within"], texts["within"] = p.within, whole if asked else number(p.within, up=False)
        where = f"within {{within}} {lengths(p.unit) if texts['within'] != '1' else p.unit}"
    if p.kind == "cells":
        who = f"between two people {where or 'however close'}, one report changes the odds"
    elif p.kind == "places":
        along = "" if p.along is None else f" along {p.along}"
        who = f"between {p.between or f'two of them {where}{along}'}, one report changes the odds"
    else:
        straight = "" if p.path is None else " in a straight line"
        who = f"{where}{straight}, one report changes anybody's odds"
    said = f"{subject}: {who} by {change}"
    if p.path is not None:
        values["path"], texts["path"] = p.path, number(p.path, up=True)
        said += ", along paths inside the area by at most {path}"
    return Saying(template=f"{said}.", values=values, texts=texts)


def error_sentence(stored: Stored, *, at_position: float | None = None) -> Saying:
    """How far off reports are: at true positions where that is known, else from the places themselves.

    at_position, the loss at true positions where it was computed already.
    """
    value, at = headline_loss(stored, at_position=at_position)
    return _error(stored, value, "the true position" if at else None)


def headline_loss(stored: Stored, *, at_position: float | None = None) -> tuple[float, bool]:
    """The loss that people are told first, in loss units, and whether it is that at true positions."""
    found = position_loss(stored.mechanism) if at_position is None else at_position
    return (float(stored.mechanism.attrs["expected_loss"]), False) if found is None else (found, True)


def objective_sentence(stored: Stored, value: float, what: str) -> Saying:
    """The figure that was made small instead of the expected loss, by the name that the program gives it."""
    unit = stored.loss.unit(stored.domain.unit) if "loss" in what else "1"
    shown = {"loss": amount(value, "units" if (unit, stored.loss.name) == ("1", "distance") else unit, up=True)}
    return Saying(template=f"{what.capitalize()} is {{loss}}.", values={"loss": value}, texts=shown)


def _error(stored: Stored, value: float, place: str | None, name: str = "loss") -> Saying:
    unit = stored.domain.unit
    what = "Reports" if stored.same_places or place else "Answers"
    off = "off" if place is None else f"off {place}"
    if type(stored.loss) is ZeroOne:
        shown = {name: percent(1 - value, up=False, digits=DIGITS)}
        return Saying(
            template=f"A report is the true one with probability {{{name}}}.",
            values={name: 100 * (1 - value)},
            texts=shown,
        )
    if type(stored.loss) is Distance:
        return _of_length(f"{what} are {{{name}}} {off} on average.", name, value, unit, up=True)
    if type(stored.loss) is SquaredDistance:
        root = math.sqrt(max(value, 0.0))
        return _of_length(f"{what} are {{{name}}} {off} (root mean square).", name, root, unit, up=True)
    shown = {name: amount(value, stored.loss.unit(unit), up=True)}
    return Saying(template=f"{what} have a loss of {{{name}}} on average.", values={name: value}, texts=shown)


def bound_sentence(stored: Stored, *, at_position: float | None = None, gap: float | None = None) -> Saying | None:
    """What no mechanism does better than, beside the loss that it bounds; None where nothing was proved. A program with
    limits of its own bounds mechanisms that keep these too.

    gap, (loss - bound) / loss of these two where it was computed already. The bound of a design between centres of
    cells is one of the loss between centres. Of squared distances it says the same at true positions: those add the
    variance of a cell to every mechanism that moves a position to the centre of its cell
    (setting/objective/true_position.py). Of others it stands beside the loss between centres.
    """
    attrs, loss = stored.mechanism.attrs, stored.loss
    bound = float(attrs["lower_bound"]) if "lower_bound" in attrs else 0.0
    if bound <= 0:
        return None
    by_form = stored.positions is not None and attrs["program"] == Positions.name
    if stored.positions is not None and not by_form:
        return None
    value, at = headline_loss(stored, at_position=at_position)
    told = float(attrs.get("objective", attrs["expected_loss"]))
    limited = attrs["program"] in (Bounded.name, Constrained.name)
    whose = f"no mechanism {'of this form' if by_form else 'with this claim'}{' and its limits' * limited}"
    share = (told - bound) / told if gap is None else gap
    end = f" (gap {percent(max(share, 0.0), up=True)})." if told > 0 else "."
    if "objective" in attrs and not by_form:
        values, texts = {"bound": bound}, {"bound": number(bound, up=False)}
        return Saying(template=f"{whose.capitalize()} has less than {{bound}}{end}", values=values, texts=texts)
    if type(loss) is ZeroOne:
        values, texts = {"bound": 100 * (1 - bound)}, {"bound": percent(1 - bound, up=True, digits=DIGITS)}
        return Saying(template=f"{whose.capitalize()} does better than {{bound}}{end}", values=values, texts=texts)
    unit = stored.domain.unit
    if type(loss) is SquaredDistance:
        more = value - told if at and not by_form else 0.0
        root = math.sqrt(max(bound + more * (1 - _NOISE), 0.0))
        return _of_length(f"{whose.capitalize()} does better than {{bound}}{end}", "bound", root, unit, up=False)
    if type(loss) is Distance and at and not by_form:
        centres = _of_length("Between centres of cells that is {cell_loss}, and ", "cell_loss", told, unit, up=True)
        best = _of_length(f"{whose} does better than {{bound}}{end}", "bound", bound, unit, up=False)
        return Saying(
            template=centres.template + best.template,
            values={**centres.values, **best.values},
            texts={**centres.texts, **best.texts},
        )
    if type(loss) is Distance:
        return _of_length(f"{whose.capitalize()} does better than {{bound}}{end}", "bound", bound, unit, up=False)
    texts = {"bound": amount(bound, loss.unit(unit), up=False)}
    return Saying(
        template=f"{whose.capitalize()} does better than {{bound}}{end}", values={"bound": bound}, texts=texts
    )


def stopped_sentence(stopped: str | None, gap: float | None, *, limit: float | None = None) -> Saying | None:
    """What a design that was stopped early may be missing, and the option that goes on; None where it was not.

    gap, (loss - bound) / loss; limit, the seconds that it had.
    """
    why = {"time": "Stopped at its time limit", "interrupt": "Stopped by hand"}.get(stopped or "")
    if why is None:
        return None
    longer = "a longer --time-limit" if limit is None or math.isinf(limit) else f"--time-limit {4 * limit:g}"
    on = f"{longer} goes on" if stopped == "time" else "the same command without an interruption goes on"
    if gap is None or not 0 <= gap < 1:
        return Saying(template=f"{why}: how much better the best is was not found; {on}.")
    values, texts = {"avoidable": 100 * gap}, {"avoidable": percent(gap, up=True)}
    return Saying(
        template=f"{why}: up to {{avoidable}} of the loss may be avoidable; {on}.", values=values, texts=texts
    )


def _of_length(template: str, name: str, value: float, unit: str, *, up: bool) -> Saying:
    return Saying(template=template, values={name: value}, texts={name: length(value, unit, up=up)})
