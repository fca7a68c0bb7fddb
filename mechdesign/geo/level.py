"""The document of `mechdesign level`: a level as odds within a radius, as noise, and over several reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mechdesign.base.formatting import length, number, percent
from mechdesign.base.units import LENGTHS, canonical_unit, unit_word
from mechdesign.base.validation import check_whole
from mechdesign.errors import UnitError
from mechdesign.evaluation.privacy_radius import disc_share, nats_within, odds_factor
from mechdesign.evaluation.radial_laplace import mean_radius, radius_ppf
from mechdesign.output.text_tables import Block

QUANTILES = (0.5, 0.9, 0.95, 0.99)


def level_document(
    *,
    radius: float,
    epsilon: float,
    unit: str = "m",
    reports: int = 1,
    interest: float | None = None,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Explain an epsilon in nats per unit: on the plane for a unit of length, else on one axis."""
    # Places up to `radius` apart have nats and factor, two within `radius` of a person nats_both_within. The shares
    # disc_share and interval_share apply to people or values spread evenly. The figure nats_together is for all reports
    # at this epsilon, epsilon_each for reports that split it. retrieval_radius is None without `interest`.
    known, count = canonical_unit(unit), check_whole(reports, "reports")
    if known == "degree":
        raise UnitError("is an angle, not a length", field="unit", value=unit, remedy="pass the radius in m or km")
    within, axes = nats_within(radius, epsilon), 2 if known in LENGTHS or known == "cell" else 1
    retrieved = None
    if interest is not None and axes == 1:
        message = "applies only to positions on a plane, in a unit of length"
        raise UnitError(message, field="interest", value=f"{interest:g} {unit}")
    if interest is not None:
        from mechdesign.evaluation.retrieval import retrieval_radius  # takes seconds to import

        retrieved = float(retrieval_radius(interest, confidence, epsilon))
    return {
        "radius": float(radius),
        "unit": known,
        "epsilon": epsilon,
        "epsilon_unit": f"nats per {unit_word(known)}",
        "nats": within,
        "factor": odds_factor(within),
        "nats_both_within": 2 * within,
        "factor_both_within": odds_factor(2 * within),
        **({"disc_share": disc_share(within)} if axes == 2 else {"interval_share": -math.expm1(-within)}),
        "expected_distance": mean_radius(epsilon, axes),
        "quantiles": {f"{p:g}": float(radius_ppf(p, epsilon, axes)) for p in QUANTILES},
        "reports": count,
        "nats_together": count * within,
        "factor_together": odds_factor(count * within),
        "epsilon_each": epsilon / count,
        "expected_distance_each": mean_radius(epsilon / count, axes),
        "interest": interest,
        "confidence": None if interest is None else float(confidence),
        "retrieval_radius": retrieved,
    }


def level_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the document of `level_document` as text; factors and distances are rounded up, to stay bounds."""
    unit, count, on_plane = document["unit"], document["reports"], "disc_share" in document
    places = "places" if on_plane else "values"
    radius = length(document["radius"], unit, digits=6)

    def rounded_up(name: str) -> str:
        return number(document[name], up=True, digits=6)

    def distance(value: float) -> str:
        return length(value, unit, up=True, digits=6)

    quantiles = ", ".join(f"{float(p):.0%} {distance(r)}" for p, r in document["quantiles"].items())
    epsilon = f"{number(document['epsilon'], digits=9)} {document['epsilon_unit']}"
    odds = f"one report changes anybody's odds by a factor of at most {rounded_up('factor')}"
    yield f"Within {radius}, {odds}: epsilon is {epsilon}."
    lines = {
        "epsilon": epsilon,
        "odds": f"between {places} up to {radius} apart change by a factor of at most {rounded_up('factor')} "
        f"({rounded_up('nats')} nats)",
        "odds nearby": f"between {places} both within {radius} of {'a person' if on_plane else 'the true one'}: "
        f"{rounded_up('factor_both_within')} ({rounded_up('nats_both_within')} nats)",
        **_share_line(document, radius),
        "planar Laplace noise"
        if on_plane
        else "Laplace noise": f"mean distance {distance(document['expected_distance'])}",
        "reports within": quantiles,
    }
    if count > 1:
        lines |= {
            f"{count} reports": f"each at this epsilon, together a factor of at most {rounded_up('factor_together')} "
            f"({rounded_up('nats_together')} nats)",
            "split epsilon": f"{number(document['epsilon_each'], up=False, digits=6)} {document['epsilon_unit']} for "
            f"each report, mean distance {distance(document['expected_distance_each'])}",
        }
    if document["retrieval_radius"] is not None:
        lines["retrieve"] = (
            f"{distance(document['retrieval_radius'])} around the report contain all within "
            f"{distance(document['interest'])} of the location with probability "
            f"{percent(document['confidence'], up=False)}"
        )
    yield lines


def _share_line(document: Mapping[str, Any], radius: str) -> dict[str, str]:
    if "interval_share" in document:
        name, share = "in one interval", document["interval_share"]
        even = f"up to {radius} from any value, if values are spread evenly; more if they are not"
    else:
        name, share = "in one disc", document["disc_share"]
        even = "if people are spread evenly; more in towns and at coasts (see audit --disc)"
    return {name: f"at most {percent(share, up=True, digits=3)} of the probability, {even}"}
