"""Rules that blur positions, by name: a table of kinds, parameters and public sources, and their audit at a latitude.

A row states a rule as its documentation or a standard does, not the code of a product. Where the size of a cell depends
on the latitude, figures are those of the plane at that latitude. S2 and H3 cells vary by their place; they are taken as
squares and regular hexagons of the mean area.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
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


def degree_cells(height: float, width: float, **more: Any) -> Callable[[float], CellLaw]:
    """Cells of so many degrees of latitude and of longitude."""

    def law(latitude: float) -> CellLaw:
        north, east = metres_per_degree(latitude)
        return CellLaw(height=height * float(north), width=width * float(east), **more)

    return law


def _anywhere(law: Law) -> Callable[[float], Law]:
    return lambda latitude: law


def _square(side: float, deviation: float = 0.0) -> Callable[[float], Law]:
    return _anywhere(CellLaw(height=side, width=side, deviation=deviation))


def _hexagons(resolution: int) -> Callable[[float], Law]:
    # 122 cells at resolution 0, of which 12 are pentagons, and seven times as many hexagons at each further one.
    width = math.sqrt(_EARTH / (2 + 120 * 7**resolution) * 2 / math.sqrt(3))
    return _anywhere(CellLaw(height=width, width=width, sides=6))


_S2, _H3 = "S2 Geometry, S2 Cell Statistics", "H3, Tables of cell statistics across resolutions"
_GEOHASH, _PLUS = "Geohash: base 32, bits of longitude and latitude in turn", "Open Location Code, specification"
_ANDROID, _WEBKIT = "Android Open Source Project, LocationFudger", "WebKit, description of approximate location"
_DHS = "The DHS Program, Geographic Displacement Procedure and Geospatial Covariate Extraction"
_EXTENSION = "Andrés et al. 2013; defaults of browser extensions as they document them"
_RADIUS = "Geographic masking, as in Zandbergen 2014"
RULES: dict[str, Rule] = {
    "android-coarse": Rule(words="normal offset of 500 m, then cells of 2 km", source=_ANDROID, law=_square(2000, 500)),
    "webkit-grid": Rule(words="cells of 5 km", source=_WEBKIT, law=_square(5000), finds=_FIXED),
    **{
        f"s2-{k}": Rule(
            words=f"S2 cells of level {k}", source=_S2, law=_square((_EARTH / 6 / 4**k) ** 0.5), finds=_FIXED
        )
        for k in (10, 11, 12, 13)
    },
    **{
        f"h3-{k}": Rule(words=f"H3 cells of resolution {k}", source=_H3, law=_hexagons(k), finds=_FIXED)
        for k in (6, 7, 8, 9)
    },
    **{
        f"geohash-{k}": Rule(
            words=f"geohash of {k} characters",
            source=_GEOHASH,
            finds=_FIXED,
            law=degree_cells(180 / 2 ** (5 * k // 2), 360 / 2 ** (5 * k - 5 * k // 2)),
        )
        for k in (5, 6, 7)
    },
    **{
        f"plus-code-{k}": Rule(
            words=f"plus code of {k} digits", source=_PLUS, law=degree_cells(side, side), finds=_FIXED
        )
        for k, side in ((6, 0.05), (8, 0.0025))
    },
    **{
        f"decimals-{k}": Rule(
            words=f"degrees rounded to {k} decimals",
            source="Arithmetic",
            law=degree_cells(10.0**-k, 10.0**-k),
            finds=_FIXED,
        )
        for k in (1, 2, 3)
    },
    **{
        f"bits-{k}": Rule(
            words=f"the top {k} bits of degrees times 10^7 in 32 bits",
            source="Fixed-point arithmetic, as radio protocols document it",
            law=degree_cells(2 ** (32 - k) * 1e-7, 2 ** (32 - k) * 1e-7),
            finds=_FIXED,
        )
        for k in range(11, 20)
    },
    "even-in-cell": Rule(
        words="even in the cell of 0.2 degrees that holds the position",
        source="iNaturalist, help on geoprivacy",
        law=degree_cells(0.2, 0.2, is_random=True),
        finds=_EDGE,
    ),
    "disc-1000": Rule(words="even in a disc of 1,000 m", source=_RADIUS, law=_anywhere(ring(0, 1000)), finds=_EDGE),
    "donut-250-1000": Rule(
        words="even between 250 and 1,000 m",
        source="Hampton et al. 2010",
        law=_anywhere(ring(250, 1000)),
        finds=(*_EDGE, "hole"),
    ),
    "gaussian-500": Rule(words="normal offset of 500 m on each axis", source=_RADIUS, law=_anywhere(normal(500))),
    **{
        f"survey-{k}": Rule(
            words=f"even direction, radius even up to {k} km",
            source=_DHS,
            law=_anywhere(even_radius(1000 * k)),
            finds=_EDGE,
        )
        for k in (2, 5, 10)
    },
    "device-offset-1000": Rule(
        words="one offset a device, even in a disc of 1,000 m",
        source=_RADIUS,
        law=_anywhere(ring(0, 1000, is_kept=True)),
        finds=("repeated seed",),
    ),
    "zone-500": Rule(
        words="no report within 500 m of a home",
        source="Sports apps, as they document privacy zones",
        law=_anywhere(ZoneLaw(radius=500)),
        finds=("exact",),
    ),
    **{
        f"laplace-{k}": Rule(
            words=f"planar Laplace noise, 2 nats over {k:,} m", source=_EXTENSION, law=_anywhere(laplace(k))
        )
        for k in (200, 500, 2000)
    },
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
