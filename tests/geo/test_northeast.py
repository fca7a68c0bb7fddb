"""The problem of a region: the shipped one, and another from a file of the same columns."""

from __future__ import annotations

import gzip
import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import ROOT

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo import Area, Plane, area_problem

pytest.importorskip("pyproj")

ELSEWHERE = {"latitude": -33.9, "longitude": 18.6, "cells": 8, "cell": 800.0, "inhabitants": 900.0, "stencil": 8}


def file_of(folder, seed=2, count=300):
    """A made-up region in the format of the census, columns in another order, compressed."""
    rng = np.random.default_rng(seed)
    places = rng.normal((-33.9, 18.6), 0.03, (count, 2))
    lines = ["STATE,POPULATION,LATITUDE,LONGITUDE\n"]
    lines += [f"9,{rng.integers(0, 900)},{lat:+.6f},{lon:+.6f}\n" for lat, lon in places]
    path = folder / "elsewhere.csv.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


def test_the_shipped_region_has_levels_between_its_ends():
    problem = md.load_problem("northeast", cells=30)
    level = problem.metric.level_at(problem.domain)
    assert problem.domain.size == 900
    stretched = 1 + problem.domain.plane.excess(problem.domain.max_radius)
    assert level.min() * stretched >= 2 / 5000 * (1 - 1e-12)
    assert level.max() <= 2 / 500
    assert len(np.unique(level)) > 100
    assert problem.prior.sum() == pytest.approx(1.0)


def test_another_region_from_the_same_columns_works_unchanged(tmp_path):
    problem = md.load_problem("northeast", points=str(file_of(tmp_path)), **ELSEWHERE)
    mechanism = md.solve(md.EikonalWeights(problem), method="table")
    assert md.verify(mechanism).certified
    assert problem.metric.level_at(problem.domain).max() > 1.5 * problem.metric.smallest_level
    emptiest = 2 / problem.metric.smallest_level
    assert float(mechanism.attrs["expected_loss"]) < emptiest
    capped = md.load_problem("northeast", points=str(file_of(tmp_path)), **ELSEWHERE, most=600.0)
    assert capped.metric.smallest_level == pytest.approx(2 / 600, rel=1e-6)


def test_plane_level_is_lowered_by_stretch_and_cut():
    plane = Plane(latitude=40.0, longitude=-75.0)
    far = md.Domain.grid((2, 3), cell=500.0, unit="m", origin=(100_000.0, 0.0), plane=plane)
    nodes = 100_250.0 + 500.0 * np.arange(-4, 6), 250.0 + 500.0 * np.arange(-4, 7)
    values = np.random.default_rng(0).uniform(0.001, 0.004, (10, 11))
    level = md.PrivacyLevel(raster=md.Raster(x=nodes[0], y=nodes[1], values=values, unit="m"))
    problem = area_problem(far, epsilon=level)
    assert problem.metric.level.raster.values.shape == (2, 3)
    stored, ground = problem.metric.level_at(far), level.at(far.points)
    excess = Fraction(plane.excess(far.max_radius))
    shares = [Fraction(s) * (1 + excess) / Fraction(g) for s, g in zip(stored, ground, strict=True)]
    assert all(1 - Fraction(1, 2**40) <= share <= 1 for share in shares)
    assert problem.parameters["geodesic_epsilon"] == ground.min()
    with pytest.raises(InputError, match="either a varying epsilon or levels"):
        area_problem(far, epsilon=level, levels=level.raster, slope=1.0)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"cells": 1}, "cells"),
        ({"people": 0}, "people"),
        ({"people": 1e9}, "people"),
        ({"latitude": -75.0, "longitude": 40.5}, "people"),
        ({"latitude": 89.0}, "latitude, longitude"),
        ({"least": 6000.0}, "least"),
        ({"most": math.inf}, "margin"),
        ({"cell": 1e-9}, "cell"),
        ({"points": "nowhere.csv"}, "people"),
    ],
)
def test_bad_parameters(tmp_path, changed, field):
    path = tmp_path / "few.csv"
    path.write_text("latitude,longitude,population\n40.5,-74.9,90000\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        md.load_problem("northeast", **({"cells": 4, "points": str(path)} | changed))
    assert caught.value.field == field


def test_an_area_may_be_of_any_plane():
    """The lattice of an area in degrees, water left out, has the people of its dry cells only."""
    area = Area.box(west=-74.2, south=40.6, east=-74.0, north=40.72)
    bay = Area.box(west=-74.1, south=40.6, east=-74.03, north=40.7)
    domain = area.grid(1000.0, forbidden=bay)
    people = md.geo.read_people(ROOT / "problems" / "data" / "northeast_block_groups_2020.csv.gz", domain, water=bay)
    lattice = np.array([(x, y) for x in people.density.x for y in people.density.y])
    wet = bay.contains(*domain.plane.backward(lattice))
    assert wet.any()
    assert (people.density.values.ravel()[wet] == 0).all()
    assert people.density.values.sum() * 1e6 == pytest.approx(people.inside)
