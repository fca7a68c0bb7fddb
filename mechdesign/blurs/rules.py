"""Rules that blur positions, by name: a table of kinds, parameters and public sources, and their audit at a latitude.

A row states a rule as its documentation or a standard does, not the code of a product. Where the size of a cell depends
on the latitude, figures are those of the plane at that latitude. S2 and H3 cells vary by their place; they are taken as
squares and regular hexagons of the mean area.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base.formatting import length, number, percent
from mechdesign.base.validation import check_positive, validate_call
from mechdesign.blurs.audit import DISC, OPTIMUM, PLACE
from mechdesign.blurs.calls import metres_per_degree
from mechdesign.blurs.laws import CellLaw, Law, ZoneLaw, even_radius, laplace, normal, ring
from mechdesign.blurs.rounding import ROUNDINGS, audit_rounding, rounding_words, vectors
from mechdesign.errors import InputError
from mechdesign.evaluation.radial_laplace import radius_cdf
from mechdesign.output.reports.verdict import RuleAuditor
from mechdesign.output.text_tables import Block

_EARTH = 510_065_621.724e6  # m^2, of the ellipsoid
_DEVICE = 7  # seed of the device of `Rule.blur`
_WITNESS = 500.0  # m between the two positions of a witness
_FIXED, _EDGE = ("no randomness",), ("bounded",)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule that blurs positions; a row of `RULES`.

    Attributes
    ----------
    words, source
        The rule and its public documentation or standard.
    law
        The law of one report at a latitude.
    finds
        The kinds of findings that `audit_blur` has of it.

    Examples
    --------
    >>> rule = md.blurs.RULES["survey-2"]
    >>> rule.finds, rule.law(0.0).mean_error()
    (('bounded',), 1000.0)
    """

    words: str
    source: str
    law: Callable[[float], Law]
    finds: tuple[str, ...] = ()

    def blur(self, at: tuple[float, float] = PLACE) -> Callable[[float, float, np.random.Generator], Any]:
        """The rule as a function of positions near a place, in degrees; an offset of a device is that of one device."""
        law, place = self.law(at[0]), np.array([at], float)

        def blur(latitude: float, longitude: float, rng: np.random.Generator) -> Any:
            # Degrees of longitude of the place, so that positions and reports have the same plane.
            north, east = metres_per_degree(at[0])
            step = (np.array([[latitude, longitude]]) - place) * [north, east]
            report = law.sample(step, np.random.default_rng(_DEVICE) if law.is_kept else rng)[0]
            return None if np.isnan(report[0]) else tuple((place + report / [north, east])[0])

        return blur


def degree_cells(height: float, width: float | None = None, **more: Any) -> Callable[[float], CellLaw]:
    """Cells of so many degrees of latitude and of longitude."""

    def law(latitude: float) -> CellLaw:
        north, east = map(float, metres_per_degree(latitude))
        return CellLaw(height=height * north, width=(width or height) * east, **more)

    return law


def _anywhere(law: Law) -> Callable[[float], Law]:
    return lambda latitude: law


def _area(square_metres: float, sides: int) -> Callable[[float], Law]:
    width = math.sqrt(square_metres * (2 / math.sqrt(3) if sides == 6 else 1))
    return _anywhere(CellLaw(height=width, width=width, sides=sides))


_DHS = "The DHS Program, SAR7: random angle and distance up to 2, 5 or 10 km; here without its limits of districts"
_MASK = "A geographic mask, as Zandbergen 2014 reviews them; the size is ours"
_LEVELS = "Andrés et al. 2013, at the default levels of Location Guard"
# Name, parameters, words, source, law by parameter, findings. S2 has 6 cells at level 0, each of which has four at the
# next. H3 has 122 cells at resolution 0, of which 12 are pentagons, and seven hexagons for each at the next.
_FAMILIES: tuple[tuple[str, Sequence[int], str, str, Callable[[int], Callable[[float], Law]], tuple[str, ...]], ...] = (
    ("android-coarse", (0,), "normal offset of 500 m, then cells of 2 km",
     "Android Open Source Project, LocationFudger: an offset, then a grid, 2,000 m by default",
     lambda _: _anywhere(ROUNDINGS["android-coarse"]), ()),
    ("webkit-grid", (0,), "cells of 5 km", "WebKit in pull request 233 of the W3C's Geolocation API",
     lambda _: _anywhere(ROUNDINGS["webkit-grid"]), _FIXED),
    ("s2-{}", range(10, 14), "S2 cells of level {}", "S2 Geometry, S2 Cell Statistics: average areas",
     lambda k: _area(_EARTH / 6 / 4**k, 4), _FIXED),
    ("h3-{}", range(6, 10), "H3 cells of resolution {}", "H3, Tables of Cell Statistics Across Resolutions",
     lambda k: _area(_EARTH / (2 + 120 * 7**k), 6), _FIXED),
    ("geohash-{}", (5, 6, 7), "geohash of {} characters", "Geohash of Niemeyer 2008, as ST_GeoHash of PostGIS has it",
     lambda k: degree_cells(180 / 2 ** (5 * k // 2), 360 / 2 ** (5 * k - 5 * k // 2)), _FIXED),
    ("plus-code-{}", (6, 8), "plus code of {} digits", "Open Location Code Specification, code precision",
     lambda k: degree_cells(20.0 ** (2 - k // 2)), _FIXED),
    ("decimals-{}", (1, 2, 3), "degrees rounded to {} decimals", "Arithmetic",
     lambda k: degree_cells(10.0**-k), _FIXED),
    ("bits-{}", range(11, 20), "the top {} bits of degrees times 10^7 in 32 bits",
     "Meshtastic, Channel Configuration: position precision", lambda k: degree_cells(2 ** (32 - k) * 1e-7), _FIXED),
    ("even-in-cell", (0,), "even in the cell of 0.2 degrees that holds the position",
     "iNaturalist, help on geoprivacy", lambda _: degree_cells(0.2, is_random=True), _EDGE),
    ("disc-{}", (1000,), "even in a disc of {:,} m", _MASK, lambda k: _anywhere(ring(0, k)), _EDGE),
    ("donut-250-{}", (1000,), "even between 250 and {:,} m",
     "Donut method of Hampton et al. 2010, between two distances; sizes and even area are ours",
     lambda k: _anywhere(ring(250, k)), (*_EDGE, "hole")),
    ("gaussian-{}", (500,), "normal offset of {} m on each axis", _MASK, lambda k: _anywhere(normal(k)), ()),
    ("survey-{}", (2, 5, 10), "even direction, radius even up to {} km", _DHS,
     lambda k: _anywhere(even_radius(1000 * k)), _EDGE),
    ("device-offset-{}", (1000,), "one offset a device, even in a disc of {:,} m", "A rule of ours",
     lambda k: _anywhere(ring(0, k, is_kept=True)), ("repeated seed",)),
    ("zone-{}", (500,), "no report within {} m of a home",
     "Strava support, Edit Map Visibility: a radius about an address; the size is ours",
     lambda k: _anywhere(ZoneLaw(radius=k)), ("exact",)),
    ("laplace-{}", (200, 500, 2000), "planar Laplace noise, 2 nats over {:,} m", _LEVELS,
     lambda k: _anywhere(laplace(k)), ()),
)  # fmt: skip
RULES = {
    name.format(k): Rule(words=words.format(k), source=source, law=law(k), finds=finds)
    for name, parameters, words, source, law, finds in _FAMILIES
    for k in parameters
}


@validate_call
def audit_rule(name: str, *, latitude: float = PLACE[0], disc: float = DISC) -> dict[str, Any]:
    """Audit one report of a rule at a latitude, for positions spread evenly.

    Parameters
    ----------
    name : str
        A rule of `RULES`.
    latitude, disc : float
        In degrees; the radius of a disc in m.

    Returns
    -------
    dict
        Lengths in m. effective_epsilon is in nats per m, and None if no level is finite. Then witness has a pair and an
        event. Laplace and optimum are at the same mean_distance. Rounding rules have more figures.

    Examples
    --------
    >>> rule = md.blurs.audit_rule("geohash-6", latitude=60.0)
    >>> rule["effective_epsilon"], round(rule["mean_distance"])
    (None, 234)
    """
    if name not in RULES:
        raise InputError("unknown rule", field="rule", value=name, remedy="use " + ", ".join(RULES))
    if not abs(latitude) <= 85:
        raise InputError("must be a latitude within 85 degrees", field="at", value=latitude)
    rule = RULES[name]
    law, radius = rule.law(latitude), check_positive(disc, "disc")
    mean, witness = law.mean_error(), law.witness(_WITNESS)
    more = {} if name not in ROUNDINGS else audit_rounding(name) | {"vectors": vectors(name)}
    epsilon = 2 / mean if mean else math.inf
    equal = {"nats_per_km": 1000 * epsilon, "share": float(radius_cdf(radius, epsilon)) if mean else 1.0}
    return more | {
        "rule": name,
        "words": rule.words,
        "source": rule.source,
        "latitude": latitude,
        "effective_epsilon": law.epsilon,
        "witness": None if witness is None else vars(witness) | {"nats": witness.nats},
        "mean_distance": mean,
        "disc": radius,
        "share": law.share(radius),
        "laplace": more.get("laplace", {}) | equal,
        "optimum_nats_per_km": 1000 * OPTIMUM / 2 * epsilon,
        "finds": list(rule.finds),
    }


def rule_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the document of a rule as text."""
    if "distances" in document:
        yield from rounding_words(document)
    elif document["effective_epsilon"] is None:
        yield f"No epsilon bounds {document['rule']}: {document['words']}."
    else:
        level = number(1000 * document["effective_epsilon"])
        yield f"{document['rule']} has {level} nats per km: {document['words']}."
    laplace, mean, share = document["laplace"], document["mean_distance"], percent(document["share"])
    yield {
        "source": document["source"],
        "witness": None if document["witness"] is None else _witness_words(document["witness"]),
        "mean error": length(mean, "m"),
        f"disc of {length(document['disc'], 'm')}": f"holds the true position with probability {share}",
        "at equal error": f"planar Laplace noise has {number(laplace['nats_per_km'])} nats per km and "
        f"{percent(laplace['share'])} in the disc, the certified optimum on a square of 5.8 mean errors "
        f"{number(document['optimum_nats_per_km'], up=True)} nats per km"
        if mean
        else None,
    }


def _witness_words(witness: Mapping[str, Any]) -> str:
    nats = "infinite" if witness["nats"] is None else f"{number(witness['nats'])} nats"
    pair = f"two positions {length(witness['distance'], 'm')} apart"
    return f"{pair}; {witness['event']}: {number(witness['here'])} and {number(witness['there'])}, {nats}"


RULE_AUDITOR = RuleAuditor(audit=audit_rule, words=rule_words)
