from __future__ import annotations

import json

import numpy as np
import pytest

from mechdesign import Domain
from mechdesign.base.units import KNOWN_UNITS, canonical_unit, require_unit
from mechdesign.errors import InputError, SizeError, UnitError
from mechdesign.geo import Plane
from mechdesign.problem.domain import MAX_CELLS_PER_PLACE, MAX_LATTICE_CELLS

LAST_BITS = 1e-14  # sums and roots of a few numbers of order 1

HOLED = np.array([[True, False, True], [True, True, False]])


def test_grid_cells_are_centres_with_the_last_axis_fastest():
    domain = Domain.grid((2, 3), cell=(1.0, 0.5), unit="metres", origin=(10.0, -1.0), mask=HOLED)
    assert domain.points.tolist() == [[10.5, -0.75], [10.5, 0.25], [11.5, -0.75], [11.5, -0.25]]
    assert domain.index.tolist() == [[0, 0], [0, 2], [1, 0], [1, 1]]
    assert domain.lookup.tolist() == [[0, -1, 1], [2, 3, -1]]
    assert (domain.size, domain.dimension, domain.unit) == (4, 2, "m")


def test_one_number_serves_every_axis():
    domain = Domain.grid((2, 1, 2), cell=2.0, unit="m", origin=1.0)
    assert domain.points.tolist() == [[2, 2, 2], [2, 2, 4], [4, 2, 2], [4, 2, 4]]
    assert Domain.grid(3, cell=2.0, unit="m").points.tolist() == [[1], [3], [5]]


def test_points_and_nodes():
    assert Domain.points_at([0.0, 2.0], unit="km").points.tolist() == [[0], [2]]
    assert Domain.nodes(3).points.tolist() == [[0], [1], [2]]
    assert Domain.nodes([[0.0, 1.0], [2.0, 3.0]], unit="m").dimension == 2
    with pytest.raises(InputError, match="lattice") as caught:
        _ = Domain.nodes(3).lookup
    assert caught.value.field == "domain"


@pytest.mark.parametrize(
    "domain",
    [
        Domain.grid(4, cell=0.3, unit="m", origin=0.1),
        Domain.grid((2, 3), cell=(0.3, 0.7), unit="km", origin=(-5.1, 2.2), mask=HOLED),
        Domain.grid((3, 2, 2), cell=1 / 3, unit="m", mask=np.arange(12).reshape(3, 2, 2) % 5 != 0),
        Domain.grid((3, 3), cell=100.0, unit="m", origin=(452317.7, 5411932.3)),
        Domain.points_at([[0.0, 1.0], [2.0, 3.5]], unit="mi"),
        Domain.nodes([[0.0, 1.0], [2.0, 3.5]], unit="m"),
    ],
)
def test_a_described_domain_comes_back(domain):
    again = Domain.from_description(json.loads(domain.describe_json()), domain.points)
    assert again.points.tobytes() == domain.points.tobytes()
    assert (again.kind, again.unit, again.shape, again.cell, again.origin) == (
        domain.kind,
        domain.unit,
        domain.shape,
        domain.cell,
        domain.origin,
    )
    if domain.index is not None:
        assert np.array_equal(again.lookup, domain.lookup)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p + 1e-9, "not the cell centres"),
        (lambda p: p[::-1], "not the cell centres"),
        (lambda p: p + np.array([1.0, 0.0]), "outside"),
        (lambda p: p - np.array([0.0, 1.0]), "outside"),
        (lambda p: np.vstack([p, p[:1]]), "not the cell centres"),
    ],
)
def test_coordinates_that_contradict_the_lattice_are_refused(change, message):
    domain = Domain.grid((2, 3), cell=1.0, unit="m", mask=HOLED)
    with pytest.raises(InputError, match=message) as caught:
        Domain.from_description(domain.describe(), change(domain.points))
    assert caught.value.field == "coordinates"


PLACED = Domain.grid(
    (2, 3), cell=1.0, unit="m", origin=(-1.0, -1.5), mask=HOLED, plane=Plane(latitude=40.0, longitude=-75.0)
)
MISSING = object()
HOSTILE = {
    "kind unknown": ({"kind": "sphere"}, "domain"),
    "kind no word": ({"kind": 3}, "domain"),
    "kind missing": ({"kind": MISSING}, "domain"),
    "unit unknown": ({"unit": "parsec"}, "unit"),
    "unit no word": ({"unit": ["m"]}, "unit"),
    "a name too many": ({"mask": [[True]]}, "domain"),
    "a name too few": ({"cell": MISSING}, "domain"),
    **{
        f"shape {shape!r}": ({"shape": shape}, "shape")
        for shape in (
            [2.0, 3],
            [True, 3],
            ["2", 3],
            [None, 3],
            [[2], 3],
            [0, 3],
            [-2, 3],
            [2, 2**31],
            [2, 10**30],
            6,
            "23",
            {"x": 2},
        )
    },
    "another number of axes": ({"shape": [6]}, "coordinates"),
    "far more cells than places": ({"shape": [10**9, 10**9]}, "mask"),
    **{
        f"cell {cell!r}": ({"cell": cell}, "cell")
        for cell in (
            [1.0, np.nan],
            [1.0, np.inf],
            [1.0, 0.0],
            [1.0, -1.0],
            [1.0, "1"],
            [True, 1.0],
            [[1.0, 1.0]],
            [1.0, 10**400],
            1.0,
        )
    },
    "cells that nothing is divided by": ({"cell": [1e-300, 1e-300]}, "coordinates"),
    **{
        f"origin {origin!r}": ({"origin": origin}, "origin")
        for origin in (
            [0.0, np.nan],
            [0.0, -np.inf],
            [0.0, None],
            [False, 0.0],
            [0.0, 10**17 + 1],
            None,
        )
    },
    "an origin far away": ({"origin": [1e308, -1e308]}, "coordinates"),
    **{
        f"plane {plane!r}": ({"plane": {**PLACED.plane.describe(), **plane}}, field)
        for plane, field in (
            ({"latitude": True}, "latitude"),
            ({"latitude": "40"}, "latitude"),
            ({"longitude": np.nan}, "longitude"),
            ({"latitude": 95.0}, "latitude, longitude"),
            ({"height": 0.0}, "plane"),
            ({"projection": 7}, "plane"),
        )
    },
    "plane a list": ({"plane": [40.0, -75.0]}, "plane"),
}


def test_points_keep_their_plane_and_nodes_have_none():
    plane = Plane(latitude=40.0, longitude=-75.0)
    points = [[0.0, 3.0], [4.0, 0.0], [400.0, -7.0]]
    domain = Domain.points_at(points, unit="m", plane=plane)
    assert domain.spacing == 5.0
    assert Domain.grid((2, 3), cell=(2.0, 0.5), unit="m").spacing == 0.5
    again = Domain.from_description(json.loads(domain.describe_json()), domain.points)
    assert (again.plane, again.kind) == (plane, "points")
    bare = Domain.points_at(points, unit="m")
    assert bare.describe() == {"kind": "points", "unit": "m"}
    described = domain.describe() | {"kind": "nodes"}
    for make in (
        lambda: Domain.from_description(described, domain.points),
        lambda: Domain.points_at([0.0, 1.0], unit="m", plane=plane),
        lambda: Domain.points_at(points, unit="km", plane=plane),
    ):
        with pytest.raises(InputError) as caught:
            make()
        assert caught.value.field == "plane"
    with pytest.raises(InputError, match="stretch"):
        Domain.points_at([[0.0, 0.0], [500e3, 0.0]], unit="m", plane=plane)


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.obligation("descriptions")
def test_invalid_domain_description_is_refused_early(case, monkeypatch):
    """No array is allocated before the refusal: np.zeros records its calls."""
    change, field = HOSTILE[case]
    described = json.loads(PLACED.describe_json()) | change
    described = {name: value for name, value in described.items() if value is not MISSING}
    allocated = []
    monkeypatch.setattr(np, "zeros", lambda *shape: allocated.append(shape))
    with pytest.raises(InputError) as caught:
        Domain.from_description(described, PLACED.points)
    assert (caught.value.field, allocated) == (field, [])
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("description", [None, [], "grid", 3, {}])
def test_a_description_is_a_table(description):
    with pytest.raises(InputError) as caught:
        Domain.from_description(description, PLACED.points)
    assert caught.value.field == "domain"


@pytest.mark.parametrize("kind", ["grid", "points", "nodes"])
@pytest.mark.parametrize(
    "change",
    [
        lambda p: np.where(p > 0, np.nan, p),
        lambda p: np.where(p > 0, np.inf, p),
        lambda p: np.where(p > 0, 1e300, p),
        lambda p: p.astype(np.float32),
        lambda p: p.astype(np.int64),
        lambda p: p.astype(object),
        lambda p: p[:, 0],
        lambda p: p[None],
        lambda p: np.hstack([p, p]),
        lambda p: p[:, :0],
    ],
    ids=["nan", "inf", "1e300", "32 bits", "integers", "objects", "a list", "a stack", "four axes", "no axis"],
)
def test_invalid_coordinates_are_refused(kind, change):
    grid = Domain.grid((2, 3), cell=1.0, unit="m", origin=(-1.0, -1.5), mask=HOLED)
    described = grid.describe() if kind == "grid" else {"kind": kind, "unit": "m"}
    with pytest.raises(InputError) as caught:
        Domain.from_description(described, change(grid.points))
    assert caught.value.field in ("coordinates", "points")


def corners(shape):
    mask = np.zeros(shape, bool)
    mask.flat[[0, -1]] = True
    return mask


def test_lattice_size_is_limited_per_place():
    assert MAX_LATTICE_CELLS == MAX_CELLS_PER_PLACE * 1024
    wide, long = (2048, MAX_LATTICE_CELLS // 2048), MAX_CELLS_PER_PLACE * 1025
    assert Domain.grid(wide, cell=1.0, unit="m", mask=corners(wide)).size == 2
    row = np.arange(long) % MAX_CELLS_PER_PLACE == 0
    domain = Domain.grid(long, cell=1.0, unit="m", mask=row)
    assert Domain.from_description(json.loads(domain.describe_json()), domain.points).size == 1025
    for shape, mask in (
        ((2048, MAX_LATTICE_CELLS // 2048 + 1), corners((2048, MAX_LATTICE_CELLS // 2048 + 1))),
        (long + 1, row),
    ):
        with pytest.raises(InputError, match="places") as caught:
            Domain.grid(shape, cell=1.0, unit="m", mask=np.append(row, False) if mask is row else mask)
        assert caught.value.field == "mask"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Domain.grid((10**6, 10**6), cell=1.0, unit="m"),
        lambda: Domain.grid((2**31 - 1,) * 3, cell=1.0, unit="m"),
        lambda: Domain.nodes(10**12),
        lambda: Domain.nodes(10**400),
    ],
)
def test_oversized_problem_is_refused_before_allocation(make):
    with pytest.raises(SizeError) as caught:
        make()
    assert caught.value.field == "cells"


def test_distances_to_other_places():
    here = Domain.grid((2, 2), cell=1.0, unit="m")
    there = Domain.points_at([[3.5, 4.5], [0.5, 0.5]], unit="m")
    np.testing.assert_allclose(
        here.euclidean_to(there), [[5, 0], [18**0.5, 1], [20**0.5, 1], [13**0.5, 2**0.5]], rtol=LAST_BITS
    )


@pytest.mark.parametrize(
    "other", [Domain.grid((2, 2), cell=1.0, unit="km"), Domain.grid(4, cell=1.0, unit="m")], ids=["unit", "axes"]
)
def test_reports_in_another_space_are_refused(other):
    with pytest.raises(InputError, match="share unit and dimension") as caught:
        Domain.grid((2, 2), cell=1.0, unit="m").euclidean_to(other)
    assert caught.value.field == "reports"


SHAPELESS = (0, (), (2, 0), (2, -1), (2.5, 2), (2, 2**31), (2, 10**400), (2, np.nan), (2, np.inf), (None, 2))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        *((lambda s=s: Domain.grid(s, cell=1.0, unit="m"), "cells") for s in SHAPELESS),
        (lambda: Domain.grid(("2", 2), cell=1.0, unit="m"), "shape"),
        *((lambda c=c: Domain.grid(4, cell=c, unit="m"), "cell") for c in (0.0, -1.0, np.nan, np.inf, (1.0, 1.0))),
        *((lambda o=o: Domain.grid((2, 2), cell=1.0, unit="m", origin=o), "origin") for o in (np.nan, (1.0,))),
        *(
            (lambda m=m: Domain.grid((2, 3), cell=1.0, unit="m", mask=m), "mask")
            for m in (HOLED.T, HOLED.astype(int), np.zeros((2, 3), bool), np.arange(6).reshape(2, 3) == 3)
        ),
        (lambda: Domain.grid(1, cell=1.0, unit="m"), "domain"),
        (lambda: Domain.points_at([0.0], unit="m"), "domain"),
        (lambda: Domain.points_at([], unit="m"), "domain"),
        (lambda: Domain.nodes(1), "domain"),
        (lambda: Domain.grid((2,) * 4, cell=1.0, unit="m"), "points"),
        (lambda: Domain.grid((2,) * 99, cell=1.0, unit="m"), "points"),
        (lambda: Domain.points_at([0.0, 1e151], unit="m"), "points"),
        (lambda: Domain.points_at(np.zeros((2, 2, 2)), unit="m"), "points"),
        (lambda: Domain.points_at(np.eye(4), unit="m"), "points"),
        (lambda: Domain.points_at([0.0, np.nan], unit="m"), "points"),
        (lambda: Domain.points_at([0.0, np.inf], unit="m"), "points"),
        (lambda: Domain.points_at([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]], unit="m"), "points"),
        (lambda: Domain.grid(3, cell=1.0, unit="parsec"), "unit"),
    ],
)
def test_bad_domains_are_refused(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("Metres", "m"),
        (" km ", "km"),
        ("miles", "mi"),
        ("US survey foot", "ft"),
        ("degrees_n", "degree"),
        ("usd", "USD"),
    ],
)
def test_spellings_of_units(name, canonical):
    assert canonical_unit(name) == canonical
    assert canonical in KNOWN_UNITS
    require_unit(name, canonical, "axis")


@pytest.mark.parametrize(
    ("declared", "wanted", "remedy"),
    [("degrees", "m", "project"), ("feet", "m", "convert"), ("m", "degree", "convert")],
)
def test_differing_units_are_refused(declared, wanted, remedy):
    with pytest.raises(UnitError, match=f"while {wanted} was asked for") as caught:
        require_unit(declared, wanted, "axis")
    assert caught.value.field == "axis"
    assert caught.value.remedy.startswith(remedy)
    assert caught.value.as_dict()["kind"] == "unit"
