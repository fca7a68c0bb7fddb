"""Protection: the printed factor is at least the largest between two real positions, and close to it.

The oracle is brute force without rules of the package. For all pairs of cells it searches the nearest positions in
both, and checks their cells with `place_at`. Distances are geodesics of the ellipsoid (pyproj), or fractions without a
plane. Odds are fractions of the stored integers.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten
from fixtures.position_mechanisms import domain_of, kernel, masses_at, position_mechanism
from fixtures.problems import CASES
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import baselines
from mechdesign.evaluation.protection import Protection, displacements_within, factor_of, path_length_bound, protection
from mechdesign.geo import area_problem
from mechdesign.geo.area import area_of
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.sentences import protection_sentence
from mechdesign.problem.locate import place_at

CLOSE = Fraction(1, 10**6)  # relative excess of the printed factor over the exact one, at most
INSET = 1e-6  # m between positions and a border: geodesics are computed to some 1e-8 m
GRID = 5  # positions along a side of a cell, in searches

CITIES = {  # south of the equator, across the antimeridian, with water
    "Montevideo": ((-56.25, -34.95, -56.15, -34.87), None),
    "Taveuni": ((179.95, -16.90, -179.95, -16.80), None),
    "Rotterdam": ((4.44, 51.88, 4.54, 51.94), [[4.43, 51.903], [4.55, 51.899], [4.55, 51.911], [4.43, 51.915]]),
}
CITY_CASES = [  # cell, radius and factor: radii below a cell, of one cell, of several cells, of a cell and a half
    ("Montevideo", 1500.0, 200.0, 2.0),
    ("Montevideo", 1000.0, 1000.0, 2.0),
    ("Montevideo", 1000.0, 2000.0, 3.0),
    ("Montevideo", 1200.0, 1800.0, 1.5),
    ("Taveuni", 2000.0, 500.0, 4.0),
    ("Taveuni", 1500.0, 1500.0, 2.0),
    ("Taveuni", 1700.0, 3400.0, 2.0),
    ("Taveuni", 1600.0, 2222.0, 1.2),
    ("Rotterdam", 1000.0, 50.0, 2.0),
    ("Rotterdam", 900.0, 900.0, 8.0),
    ("Rotterdam", 800.0, 2400.0, 2.0),
    ("Rotterdam", 1100.0, 1375.0, 2.5),
]


@cache
def city(name: str, cell: float, radius: float, factor: float) -> xr.Dataset:
    """Planar Laplace between the cells of a city, as `area` makes it."""
    pytest.importorskip("pyproj")
    (west, south, east, north), water = CITIES[name]
    forbidden = None if water is None else area_of([[np.array([*water, water[0]], float)]])
    domain = md.geo.Area.box(west=west, south=south, east=east, north=north).grid(cell=cell, forbidden=forbidden)
    known = {"within": radius, "nats": math.log(factor), "cell": cell}
    return baselines.planar_laplace(area_problem(domain, epsilon=math.log(factor) / radius, parameters=known))


def odds(mechanism: xr.Dataset, u: int, v: int) -> Fraction:
    """The largest of mass[u, y] / mass[v, y] and its inverse."""
    rows = mechanism["mass"].values[[u, v]].tolist()
    return max(max(Fraction(a, b), Fraction(b, a)) for a, b in zip(*rows, strict=True))


def ends(low: float, high: float, other_low: float, other_high: float) -> list[tuple[float, float]]:
    """The nearest coordinates in two half-open intervals."""
    if high <= other_low:
        return [(high - INSET, other_low)]
    if other_high <= low:
        return [(low, other_high - INSET)]
    left, right = max(low, other_low), min(high, other_high)
    return [(x, x) for x in np.linspace(left, right - INSET, 3)]


def largest_on_the_ground(mechanism: xr.Dataset, radius: float) -> Fraction:
    """The largest odds between two positions in cells that are at most `radius` apart along geodesics."""
    pyproj = pytest.importorskip("pyproj")
    stored = MechanismFile.read(mechanism)
    domain, earth, found = stored.domain, pyproj.Geod(ellps="WGS84"), Fraction(1)
    side = domain.cell[0]
    corner = np.asarray(domain.origin) + domain.index * side
    for u in range(domain.size):
        for v in range(u):
            if odds_bound(mechanism, u, v) <= found:
                continue
            axes = [ends(*(corner[u, k], corner[u, k] + side, corner[v, k], corner[v, k] + side)) for k in (0, 1)]
            at = np.array([[(x, y), (z, w)] for (x, z), (y, w) in product(*axes)])
            (east, north), (other_east, other_north) = (domain.plane.backward(at[:, k]) for k in (0, 1))
            away = np.asarray(earth.inv(east, north, other_east, other_north)[2])
            for k in np.flatnonzero(away <= radius):
                assert (place_at(domain, at[k, 0].tolist()), place_at(domain, at[k, 1].tolist())) == (u, v)
                found = max(found, odds(mechanism, u, v))
    return found


def odds_bound(mechanism: xr.Dataset, u: int, v: int) -> float:
    """An upper bound of the odds, in doubles: pairs below the current maximum need no search."""
    rows = mechanism["mass"].values[[u, v]].astype(float)
    return float(max((rows[0] / rows[1]).max(), (rows[1] / rows[0]).max())) * (1 + 1e-12)


@pytest.mark.parametrize(
    "asked", few_by_default([(case,) for case in CITY_CASES], *[(CITY_CASES[number],) for number in (0, 3, 6)])
)
def test_city_cells_by_brute_force_over_positions(asked):
    mechanism, radius = city(*asked), asked[2]
    found, true = protection(MechanismFile.read(mechanism)), largest_on_the_ground(mechanism, radius)
    assert found.kind == "cells"
    assert found.within == radius
    assert found.exact
    assert true <= Fraction(found.factor) <= true * (1 + CLOSE)
    # The claim is between centres: the centres of two people within the radius may be farther apart.
    assert found.factor > asked[3]
    checked = md.verify(mechanism)
    assert checked.protection == found
    assert checked.as_dict()["protects"] == found.subject
    assert checked.as_dict()["factor_within"] == found.factor
    sentence = protection_sentence(found)
    assert sentence.startswith(
        f"Protects cells of {asked[1]:,g} m, not positions: between two people within {radius:,g} m, "
    )
    assert Fraction(sentence.split()[-1].rstrip(".").replace(",", "")) >= true


def flat(shape: tuple[int, ...], cell: float, within: float | None, *, unit: str = "km") -> xr.Dataset:
    """The exponential mechanism on a grid without a plane."""
    domain = md.Domain.grid(shape, cell=cell, unit=unit, origin=0.3)
    problem = md.DesignProblem(
        domain=domain,
        metric=md.Euclidean(epsilon=1.1 / cell, unit=unit),
        prior=md.priors.uniform(domain),
        loss=md.losses.Distance(),
        parameters={} if within is None else {"within": within, "factor": 2.0},
    )
    return baselines.exponential(problem)


def largest_in_fractions(mechanism: xr.Dataset, within: Fraction) -> Fraction:
    """The largest odds between positions of half-open cells less than or equal to `within` apart, or however close."""
    domain = MechanismFile.read(mechanism).domain
    side, near, found = Fraction(domain.cell[0]), Fraction(1, 10**30), Fraction(1)
    for u in range(domain.size):
        for v in range(u):
            steps = [abs(a - b) for a, b in zip(*domain.index[[u, v]].tolist(), strict=True)]
            gap = [(step - 1) * side + near * side if step else Fraction(0) for step in steps]
            if (
                sum(each**2 for each in gap) <= max(within, 2 * near * side) ** 2
                and odds_bound(mechanism, u, v) > found
            ):
                found = max(found, odds(mechanism, u, v))
    return found


@pytest.mark.parametrize(
    ("cell", "within"),
    [
        (0.25, None),
        (0.25, 0.1),
        (0.25, 0.25),  # exactly a cell: every position two cells away is farther
        (0.25, 0.5),
        (0.1, 0.3),  # in doubles slightly below three cells
        (0.1, 0.1 + 0.2),  # in doubles slightly above
        (0.25, 1.25),  # 3, 4, 5
        (0.25, math.nextafter(1.25, 2.0)),
        (0.25, 99.0),
    ],
)
def test_cells_of_a_plain_map_by_fractions(cell, within):
    mechanism = flat((6, 6), cell, within)
    found = protection(MechanismFile.read(mechanism))
    true = largest_in_fractions(mechanism, Fraction(within or 0))
    assert found.within == (within or 0.0)
    assert found.exact
    assert true <= Fraction(found.factor) <= true * (1 + CLOSE)
    assert protection_sentence(found).startswith("Protects cells of ")
    assert ("however close" in protection_sentence(found)) == (within is None)


def test_more_distance_is_never_more_protection():
    mechanism = flat((8, 7), 0.25, None)
    factors = [
        protection(MechanismFile.read(mechanism), within).factor for within in np.linspace(0.05, 2.5, 50).tolist()
    ]
    assert factors == sorted(factors)
    assert len(set(factors)) > 5


@pytest.mark.parametrize(
    "case", ["euclidean lattice", "eikonal, 8 neighbours", "eikonal, masked", "reports apart from secrets"]
)
def test_claim_bounds_the_factor_beyond_the_work_limit(case, monkeypatch):
    """At least the factor of the rows; from the claimed distance of touching cells, or the path along the lattice."""
    make = md.baselines.exponential if "apart" in case else md.baselines.planar_laplace
    stored = MechanismFile.read(make(CASES[case]()))
    by_rows = protection(stored)
    monkeypatch.setattr("mechdesign.evaluation.protection.MAX_COMPARISONS", 0)
    by_claim = protection(stored)
    assert by_rows.exact
    assert not by_claim.exact
    index, away = stored.domain.index, stored.problem.distances
    touch = np.abs(index[:, None] - index[None]).max(axis=2) == 1
    longest = math.exp(away[touch].max())
    assert by_rows.factor <= longest * (1 + 1e-9) <= by_claim.factor * (1 + 2e-9)
    assert by_claim.factor <= longest ** (1.0 + 1e-9 if "masked" in case or "lattice" in case else 1.1)
    assert " at most " in protection_sentence(by_claim)


def test_claim_bounds_the_factor_by_kind_of_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any pair under the discrete metric, a radius between places, all pairs of a masked map; and constant reports."""
    monkeypatch.setattr("mechdesign.evaluation.protection.MAX_COMPARISONS", 0)
    domain, prior = md.Domain.grid((3, 3), cell=1.0, unit="km"), np.full(9, 1 / 9)
    problem = md.DesignProblem(domain, md.Discrete(0.7), prior, md.losses.Distance())
    discrete = MechanismFile.read(baselines.exponential(problem))
    longest = math.exp(0.7 * discrete.metric.scale)
    assert longest * (1 - 1e-12) <= protection(discrete).factor <= longest * (1 + 1e-9)
    nothing = protection(MechanismFile.read(baselines.constant(CASES["euclidean lattice"]())))
    assert nothing.factor == 1.0
    assert not nothing.exact
    points = MechanismFile.read(baselines.exponential(CASES["scattered points"]()))
    level = points.metric.epsilon * points.metric.scale
    assert math.exp(1.5 * level) <= protection(points, 1.5).factor <= math.exp(1.5 * level) * (1 + 1e-9)
    masked = MechanismFile.read(baselines.planar_laplace(CASES["eikonal, masked"]()))
    near = protection(masked).factor
    monkeypatch.setattr("mechdesign.evaluation.protection._MAX_LISTED_PAIRS", 0)
    longest = math.exp(masked.problem.distances.max())
    assert near < longest * (1 - 1e-9) <= protection(masked).factor <= longest * (1 + 1e-9)
    monkeypatch.setattr("mechdesign.evaluation.protection.MAX_PATH_CELLS", 0)
    unknown = protection(masked)
    assert unknown.factor is None
    assert "is not known" in protection_sentence(unknown)


def test_varying_level_protects_neighbouring_values(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = md.Domain.grid(4, cell=1.0, unit="USD")
    metric = md.Eikonal(level=md.PrivacyLevel.from_values(domain, [0.5, 0.6, 0.7, 0.8]))
    case_mechanism = baselines.exponential(md.DesignProblem(domain, metric, np.full(4, 0.25), md.losses.Distance()))
    found = protection(MechanismFile.read(case_mechanism))
    rows = md.probabilities(case_mechanism).values
    assert found.factor == pytest.approx(max((rows[:-1] / rows[1:]).max(), (rows[1:] / rows[:-1]).max()), rel=1e-12)
    assert protection_sentence(found).startswith(
        "Protects these 4 values: between two of them side by side, one report"
    )
    assert found.exact
    # Without comparisons the factor comes from the claim.
    monkeypatch.setattr("mechdesign.evaluation.protection.MAX_COMPARISONS", 0)
    claimed = protection(MechanismFile.read(case_mechanism))
    assert not claimed.exact
    assert claimed.factor == pytest.approx(math.exp(case_mechanism["edge_length"].values.max()), rel=1e-9)
    assert claimed.factor >= found.factor


def test_ways_along_a_lattice_are_never_shorter_than_the_claim():
    stored = MechanismFile.read(baselines.planar_laplace(CASES["eikonal, 8 neighbours"]()))
    away, index = stored.problem.distances, stored.domain.index
    for step in ((0, 1), (1, 0), (1, 1), (2, 1), (-1, 2), (3, 3)):
        there = [(u, v) for u, v in np.ndindex(away.shape) if tuple(index[v] - index[u]) == step]
        longest = max(away[u, v] for u, v in there)
        bound = float(path_length_bound(stored.edges, stored.domain, np.array([step])))
        assert longest <= bound <= 3 * longest


# --- positions -------------------------------------------------------------------------------------------------------


def exact_factor(nats: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(nats.numerator) / Decimal(nats.denominator)).exp())


@pytest.mark.parametrize("nats", [0.0, 1e-300, 1e-9, math.log(2), 0.69314718055994529, 1.0, 30.0, 79.999, 80.5, 708.0])
def test_a_factor_is_rounded_up(nats):
    true = exact_factor(Fraction(nats))
    assert true <= Fraction(factor_of(nats)) <= true * (1 + Fraction(1, 10**11))
    assert factor_of(1e4) == math.inf


@cache
def positions_at(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions (k, 2) in the unit of a map, a grid in every cell, and ln P(y|x) there (k, m)."""
    mechanism, domain = case_mechanism(name), MechanismFile.read(case_mechanism(name)).domain
    stored, side = MechanismFile.read(mechanism), domain.cell[0]
    mass = mechanism["mass"].values.tolist()
    steps = [2 * k - GRID + 1 for k in range(GRID)]  # over 2 GRID sides, from the centre
    at, logs = [], []
    for u, centre in enumerate(domain.points):
        for i, j in product(steps, repeat=2):
            row = np.array(masses_at(mass, stored.positions, u, [i, j], 2 * GRID), float)
            logs.append(np.log(row / row.sum()))
            at.append(centre + side * np.array([i, j]) / (2 * GRID))
    return np.array(at), np.array(logs)


def largest_found(name: str, within: float) -> float:
    """The largest odds among positions of the grid at most `within` apart."""
    at, logs = positions_at(name)
    found = 0.0
    for k in range(len(at)):
        near = np.hypot(*(at - at[k]).T) <= within
        found = max(found, float((logs[k] - logs[near]).max()))
    return math.exp(found)


def case_mechanism(name: str) -> xr.Dataset:
    return river() if name == "river" else position_mechanism(name)


@cache
def river() -> xr.Dataset:
    """Positions on two banks with two cells of water between them, joined by a ford at one end.

    The claim is along paths inside. Rows have a kernel of the path length between centres.
    """
    mask = np.ones((6, 6), bool)
    mask[2:4, 1:] = False
    domain = md.Domain.grid((6, 6), cell=50.0, unit="m", mask=mask)
    metric = md.Euclidean(epsilon=math.log(2) / 150, unit="m")
    problem = md.DesignProblem(
        domain=domain,
        metric=metric,
        prior=md.priors.uniform(domain),
        loss=md.losses.Distance(),
        parameters={"within": 150.0, "factor": 2.0},
    )
    beside = np.hypot(*(domain.points[:, None] - domain.points[None]).transpose(2, 0, 1)) < 75
    ways = np.where(beside, np.hypot(*(domain.points[:, None] - domain.points[None]).transpose(2, 0, 1)), np.inf)
    for k in range(domain.size):
        ways = np.minimum(ways, ways[:, k, None] + ways[k])
    return kernel(problem, np.exp(-0.9 * metric.epsilon * ways))


@pytest.mark.parametrize("within", [None, 0.3, 1.7])
@pytest.mark.parametrize("name", ["square", "plane", "levels", pytest.param("quarters", marks=pytest.mark.exhaustive)])
def test_any_two_positions_by_the_formula_and_by_search(name, within):
    """exp of the claimed level times the radius on the ground, and of the rounding; no position found exceeds it."""
    mechanism, side = position_mechanism(name), domain_of(name).cell[0]
    stored = MechanismFile.read(mechanism)
    found = protection(stored, None if within is None else within * side)
    least, most = (Fraction(level) for level in level_of(mechanism))
    plane = stored.domain.plane
    stretch = Fraction(1) if plane is None else 1 + Fraction(plane.excess(stored.domain.max_position_radius))
    rounding = Fraction(1.01 * math.sqrt(2)) * most * Fraction(side) / 2**16
    assert found.kind == "positions"
    low, high = (exact_factor(level * stretch * Fraction(found.within) + rounding) for level in (least, most))
    assert low * (1 - CLOSE) <= Fraction(found.factor) <= high * (1 + CLOSE)
    if least == most:
        assert Fraction(found.factor) >= exact_factor(most * stretch * Fraction(found.within) + rounding * (1 - CLOSE))
        assert within is not None or 2 <= found.factor < 2.001
    assert largest_found(name, found.within) <= found.factor
    assert md.verify(mechanism).ratio == 1
    assert protection_sentence(found).startswith("Protects any two positions: within ")


def level_of(mechanism: xr.Dataset) -> tuple[float, float]:
    """The smallest and largest level in the cells, by the levels at their corners in the file."""
    corners = mechanism["corner_level" if "corner_level" in mechanism else "quarter_level"].values
    return float(corners.min()), float(corners.max()) * (1 + 2.0**-50) / (1 - 2.0**-50)


@pytest.mark.parametrize("within", few_by_default([20.0, 110.0, 150.0, 200.0], 20.0, 150.0))
def test_positions_on_both_banks_of_a_river(within):
    """The factor in a straight line exceeds that of any searched positions by a few percent of the nats.

    If the radius reaches across the river, it is far above the factor along paths.
    """
    found, true = protection(MechanismFile.read(river()), within), largest_found("river", within)
    reaches_across = within > 100
    assert true <= found.factor <= true**1.12 if reaches_across else true <= found.factor < 1.2
    assert (found.factor > 1.1 * found.path) == reaches_across
    assert found.path == pytest.approx(2 ** (within / 150), rel=1e-5)
    sentence = protection_sentence(found)
    assert (
        f"within {within:g} m in a straight line, one report changes anybody's odds by a factor of at most " in sentence
    )
    assert sentence.rstrip(".").endswith("along paths inside the area by at most " + sentence.split()[-1].rstrip("."))


def test_designed_radius_is_first_in_files_of_positions():
    document = md.verify(river()).as_dict()
    assert document["protects"] == "any two positions"
    assert document["within"] == 150.0
    assert document["ratio"] == 1.0
    assert document["row_ratio"] == pytest.approx(river().attrs["ratio"], rel=1e-9)
    assert document["row_ratio"] > 1.4
    assert 2.5 < document["factor_within"] < 3


# --- places, other metrics, damaged files ----------------------------------------------------------------------------


def test_places_of_other_kinds():
    discrete = protection(MechanismFile.read(baselines.exponential(CASES["discrete"]())))
    table = md.probabilities(baselines.exponential(CASES["discrete"]()))
    assert table.attrs["units"] == "1"
    rows = table.values
    assert discrete.factor == pytest.approx((rows[:, None] / rows[None]).max(), rel=1e-12)
    assert protection_sentence(discrete).startswith("Protects these 6 classes: between any two of them, one report ")
    points = MechanismFile.read(baselines.exponential(CASES["scattered points"]()))
    found = protection(points, 1.5)
    rows = md.probabilities(points.mechanism).values
    near = points.domain.euclidean_to(points.domain) <= 1.5
    assert found.factor == pytest.approx((rows[:, None] / rows[None]).max(axis=2)[near].max(), rel=1e-12)
    assert protection_sentence(found).startswith(
        "Protects these 9 places: between two of them within 1.5 km, one report"
    )
    nothing = protection(MechanismFile.read(md.baselines.constant(CASES["euclidean lattice"]())))
    assert protection_sentence(nothing) == "Protects cells, not positions: a report reveals nothing about anybody."


def test_first_line_has_the_reason_for_cells():
    found = Protection(
        kind="cells", subject="cells of 2 km, not positions", unit="km", within=0.2, factor=3.0, exact=True
    )
    assert protection_sentence(found, because="9,215 cells are more than 400") == (
        "Protects cells of 2 km, not positions, because 9,215 cells are more than 400: between two people within "
        "0.2 km, one report changes the odds by a factor of up to 3."
    )
    unknown = Protection(kind="cells", subject="cells", unit="m", within=1.0, factor=None, exact=False)
    assert (
        protection_sentence(unknown)
        == "Protects cells; the factor by which a report changes the odds between two people is not known."
    )
    unbounded = Protection(kind="positions", subject="any two", unit="m", within=1.0, factor=math.inf, exact=False)
    assert "by an unbounded factor" in protection_sentence(unbounded)


@pytest.mark.parametrize("radius", [math.nan, math.inf, -1.0, 0.0, "200", None, True, 1e-320, 1e300])
def test_forged_radius_is_not_a_claim(radius):
    """A radius in the parameters only chooses the two people of the sentence."""
    mechanism = flat((4, 4), 0.25, None)
    parameters = mechanism.attrs["parameters"].replace(
        '"problem_parameters": {}', '"problem_parameters": {"within": RADIUS}'
    )
    text = {"nan": "NaN", "inf": "Infinity", "None": "null", "True": "true"}.get(str(radius), repr(radius))
    forged = rewritten(mechanism, parameters=parameters.replace("RADIUS", text.replace("'", '"')))
    try:
        found = protection(MechanismFile.read(forged))
    except md.errors.MechdesignError:
        return
    likely = Fraction(radius) if radius in (1e-320, 1e300) else Fraction(0)
    true = largest_in_fractions(mechanism, likely)
    assert true <= Fraction(found.factor) <= true * (1 + CLOSE)


def test_displacements_are_those_that_fractions_find():
    """On a lattice whose sides are not multiples of each other, with and without the stretch of a plane."""
    domain = md.Domain.grid((9, 7), cell=(0.3, 0.7), unit="km")
    for radius, stretch in product((0.1, 0.3, 0.7, 1.4, 1.5), (Fraction(1), Fraction(1001, 1000))):
        steps, _ = displacements_within(domain, Fraction(radius), stretch)
        found = {tuple(step) for step in steps.tolist()}
        wanted = set()
        for step in product(range(-8, 9), range(-6, 7)):
            gaps = [max(abs(k) - 1, 0) * Fraction(side) for k, side in zip(step, domain.cell, strict=True)]
            if step > (0, 0) and sum(gap**2 for gap in gaps) < (Fraction(radius) * stretch) ** 2:
                wanted.add(step)
        assert found == wanted
