from __future__ import annotations

import json

import numpy as np
import pytest

from mechdesign.errors import InputError, UnitError
from mechdesign.setting.domain import Domain
from mechdesign.setting.units import KNOWN_UNITS, canonical_unit, require_unit

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


@pytest.mark.parametrize(
    ("make", "field"),
    [
        *((lambda s=s: Domain.grid(s, cell=1.0, unit="m"), "cells") for s in (0, (), (2, 0), (2, -1), (2.5, 2))),
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
    assert caught.value.remedy


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
