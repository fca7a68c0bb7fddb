"""Shares of a disc after reports of a blur where people live, against integrals over the lattice of the people."""

from __future__ import annotations

from pathlib import Path

import careless_blurs
import numpy as np
import pytest
from conftest import ROOT
from fixtures.problems import shipped_problem

import mechdesign as md
from mechdesign.blurs.disc_audit import FINE, grid_shares, laplace_shares

PEOPLE = Path(shipped_problem("northeast").__file__).parent / "data" / "northeast_block_groups_2020.csv.gz"
CITY = (39.9526, -75.1652)
RADIUS = 550.0  # m: the lattice of 125 m has discs of this radius with the right area
SHARES = 0.025  # of a share: 200 reports, each with 1,300 displacements


def even_people(tmp_path, population=1.0):
    """Points 1 km apart, each of as many people, on 60 x 60 km about the default place, or all at the place."""
    north, east = np.meshgrid(np.arange(-0.27, 0.271, 0.009), np.arange(-0.363, 0.364, 0.0121))
    rows = np.column_stack([41.9 + north.ravel(), 12.5 + east.ravel(), np.full(north.size, population)])
    rows[len(rows) // 2, 2] = 1.0
    path = tmp_path / "even.csv"
    np.savetxt(path, rows, delimiter=",", header="latitude,longitude,population", comments="")
    return path


@pytest.mark.study
def test_even_people_have_the_share_of_even_density(tmp_path):
    audit = md.blurs.audit_blur(careless_blurs.planar_laplace, disc=RADIUS, draws=100)
    shares = md.blurs.blur_disc_shares(audit, even_people(tmp_path))
    assert shares["share"] == pytest.approx(audit.share, abs=SHARES)
    assert shares["before"] == pytest.approx(np.pi * RADIUS**2 / 20_000**2, rel=0.2)


def corner_of_a_cell(latitude, longitude):
    """Displacements that are not symmetric: to the south-west corner of a cell of 2.2 x 8.3 km."""
    return np.floor(latitude / 0.02) * 0.02, np.floor(longitude / 0.1) * 0.1


def test_all_people_in_a_village_are_found(tmp_path):
    """The people of one square kilometre: every position that the report allows and that has people is in one disc."""
    audit = md.blurs.audit_blur(corner_of_a_cell, disc=1000, draws=100)
    shares = md.blurs.blur_disc_shares(audit, even_people(tmp_path, 0.0))
    assert (shares["share"], shares["before"]) == (pytest.approx(1, abs=0.02), pytest.approx(1, abs=0.02))


def lattice_shares(rule):
    """Chances and shares of all reports within 10 km, by transforms over the lattice or products of its axes."""
    plane = md.geo.Plane(latitude=CITY[0], longitude=CITY[1])
    domain = md.Domain.grid((160, 160), cell=FINE, unit="m", origin=-10_000.0, plane=plane)
    persons = md.geo.read_people(PEOPLE, domain, margin=5000.0).density.values * FINE**2
    if rule == "laplace-500":
        return laplace_shares(persons, 2 / 500, RADIUS)
    return grid_shares(persons, domain.shape, 2000.0, 500.0, RADIUS)


@pytest.mark.study
@pytest.mark.parametrize("rule", ["laplace-500", "android-coarse"])
def test_shares_in_a_city_by_the_lattice(rule):
    audit = md.blurs.audit_blur(md.blurs.RULES[rule].blur(CITY), at=CITY, disc=RADIUS, draws=100)
    found = md.blurs.blur_disc_shares(audit, PEOPLE)
    chance, share = lattice_shares(rule)
    order = np.argsort(share)
    cumulated = np.cumsum(chance[order]) / chance.sum()
    median, high = share[order][np.searchsorted(cumulated, [0.5, 0.9])]
    assert found["share"] == pytest.approx(chance @ share / chance.sum(), abs=SHARES)
    assert found["median"] == pytest.approx(median, abs=SHARES)
    assert found["one_in_ten"] == pytest.approx(high, abs=SHARES)


@pytest.mark.study
def test_raster_and_points_have_the_same_shares(tmp_path):
    """One density in both files: half the people live to the east of the place."""
    audit = md.blurs.audit_blur(careless_blurs.circle, draws=100)
    rows = np.loadtxt(even_people(tmp_path), delimiter=",", skiprows=1)
    rows[rows[:, 1] < 12.5, 2] = 0
    points = tmp_path / "half.csv"
    np.savetxt(points, rows, delimiter=",", header="latitude,longitude,population", comments="")
    raster = tmp_path / "half.asc"
    line = " ".join(["0"] * 50 + ["100"] * 50)
    head = "ncols 100\nnrows 100\nxllcorner 12\nyllcorner 41.4\ncellsize 0.01\n"
    raster.write_text(head + "\n".join([line] * 100) + "\n")
    one = md.blurs.blur_disc_shares(audit, points)
    other = md.blurs.blur_disc_shares(audit, raster, crs="EPSG:4326")
    assert one["share"] == pytest.approx(other["share"], abs=2 * SHARES)
    assert one["before"] == pytest.approx(other["before"], rel=0.1)
    # Next to the border half of the circle is empty, so the other half holds more.
    assert one["one_in_ten"] > one["median"] + 0.03


@pytest.mark.study
def test_command_prints_shares_where_people_live(run_json, tmp_path):
    words = ("audit", "--function", f"{ROOT / 'scripts' / 'careless_blurs.py'}:circle", "--people")
    code, document = run_json(*words, even_people(tmp_path), "--disc", "550")
    assert (code, document["people"]["radius"]) == (0, 550.0)
    assert document["people"]["share"] == pytest.approx(document["share"], abs=0.05)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--columns", "population=all"], "columns"),
        (["--crs", "EPSG:4326"], "crs"),
    ],
)
def test_columns_without_people_are_refused(run_json, words, field):
    function = f"{ROOT / 'scripts' / 'careless_blurs.py'}:circle"
    code, document = run_json("audit", "--function", function, *words)
    assert (code, document["error"]["field"]) == (2, field)
