"""What `mechdesign level` says: a privacy level as odds within a radius, as noise, as the cost of several reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mechdesign.base.checks import check_whole
from mechdesign.base.units import canonical_unit, unit_word
from mechdesign.closed_forms.noise.privacy_radius import epsilon_within, nats_of_factor, nats_within, odds_factor
from mechdesign.closed_forms.noise.radial_laplace import mean_radius, radius_ppf
from mechdesign.errors import InputError, UnitError
from mechdesign.output.figures import length, number, percent
from mechdesign.output.terminal.printing import listing, say

QUANTILES = (0.5, 0.9, 0.95, 0.99)


def level_document(
    *,
    radius: float,
    unit: str = "m",
    factor: float | None = None,
    nats: float | None = None,
    epsilon: float | None = None,
    reports: int = 1,
    interest: float | None = None,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """The level that is given by one of `factor`, `nats` (both within `radius`) and `epsilon`, in all three forms.

    Returns: radius, unit, epsilon (nats per unit), epsilon_unit, nats and factor between two places up to radius apart,
        nats_both_within and factor_both_within between two places that are both within radius of a person;
        expected_distance and quantiles (by probability) of one planar Laplace report, in units; reports, nats_together
        and factor_together for so many reports at this epsilon, epsilon_each and expected_distance_each where they
        share it; interest, confidence and retrieval_radius, None unless interest is given.
    Raises: InputError unless exactly one form is given and all numbers are in range; UnitError for an unknown unit or
        an angle.
    """
    given = {"factor": factor, "nats": nats, "epsilon": epsilon}
    if sum(value is not None for value in given.values()) != 1:
        named = ", ".join(f"--{name}" for name, value in given.items() if value is not None)
        raise InputError(
            "one form of the level is needed",
            field="factor",
            value=named or "none",
            remedy="pass --within 200 --factor 2, or --nats or --epsilon instead of --factor",
        )
    known, count = canonical_unit(unit), check_whole(reports, "reports")
    if known == "degree":
        raise UnitError("an angle is no length", field="unit", value=unit, remedy="give the radius in m or km")
    if factor is not None:
        nats = nats_of_factor(factor)
    eps = epsilon_within(radius, nats) if nats is not None else float(epsilon or 0)
    within = nats_within(radius, eps)
    asked = None if interest is None else _retrieved(interest, confidence, eps)
    return {
        "radius": float(radius),
        "unit": known,
        "epsilon": eps,
        "epsilon_unit": f"nats per {unit_word(known)}",
        "nats": within,
        "factor": odds_factor(within),
        "nats_both_within": 2 * within,
        "factor_both_within": odds_factor(2 * within),
        "expected_distance": mean_radius(eps),
        "quantiles": {f"{p:g}": float(radius_ppf(p, eps)) for p in QUANTILES},
        "reports": count,
        "nats_together": count * within,
        "factor_together": odds_factor(count * within),
        "epsilon_each": eps / count,
        "expected_distance_each": mean_radius(eps / count),
        "interest": interest,
        "confidence": None if interest is None else float(confidence),
        "retrieval_radius": asked,
    }


def _retrieved(interest: float, confidence: float, epsilon: float) -> float:
    from mechdesign.utility.loss.retrieval import retrieval_radius

    return float(retrieval_radius(interest, confidence, epsilon))


def print_level(document: Mapping[str, Any]) -> None:
    """The document of `level_document` in sentences, a line each, on stdout; factors and distances rounded up."""
    unit, count = document["unit"], document["reports"]
    radius = length(document["radius"], unit, digits=6)

    def up(name: str) -> str:
        return number(document[name], up=True, digits=6)

    def away(value: float) -> str:
        return length(value, unit, up=True, digits=6)

    quantiles = ", ".join(f"{float(p):.0%} {away(r)}" for p, r in document["quantiles"].items())
    epsilon = f"{number(document['epsilon'], digits=9)} {document['epsilon_unit']}"
    odds = f"one report changes anybody's odds by a factor of at most {up('factor')}"
    say(f"Within {radius}, {odds}: epsilon is {epsilon}.")
    lines = {
        "epsilon": epsilon,
        "odds": f"between places up to {radius} apart change by a factor of at most {up('factor')} ({up('nats')} nats)",
        "odds nearby": f"between places both within {radius} of a person: {up('factor_both_within')} "
        f"({up('nats_both_within')} nats)",
        "planar Laplace noise": f"mean distance {away(document['expected_distance'])}",
        "reports within": quantiles,
    }
    if count > 1:
        lines |= {
            f"{count} reports": f"at this epsilon, together: a factor of {up('factor_together')} "
            f"({up('nats_together')} nats)",
            "sharing it": f"each at {number(document['epsilon_each'], up=False, digits=6)} {document['epsilon_unit']}, "
            f"mean distance {away(document['expected_distance_each'])}",
        }
    if document["retrieval_radius"] is not None:
        lines["retrieve"] = (
            f"{away(document['retrieval_radius'])} around the report, for all within {away(document['interest'])} of "
            f"the location with probability {percent(document['confidence'], up=False)}"
        )
    listing(lines)
