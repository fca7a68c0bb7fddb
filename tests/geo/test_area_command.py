"""`mechdesign area`: from a GeoJSON file to a certified table, and a report back in degrees."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from exported import proved
from placed import spline_weights
from rows import each_row
from taken import needs
from tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo import Plane, area_problem, plane_level
from mechdesign.geo.design import cells_instead, check_pairs, chosen_for, dearer, positions_method
from mechdesign.positions import Positions

pyproj = pytest.importorskip("pyproj")
pytest.importorskip("shapely")

PARK = ROOT / "problems" / "data" / "example_park.geojson"
USUAL = ["--cell", "400", "--within", "400", "--factor", repr(math.exp(1.3862)), "--positions", "cells"]
GEOD = pyproj.Geod(ellps="WGS84")


def test_an_area_becomes_a_certified_table_and_reports_in_degrees(run_json, tmp_path):
    file = tmp_path / "area.nc"
    code, made = run_json("area", PARK, *USUAL, "-o", file)
    assert (code, made["certified"], made["program"]) == (0, True, "optimal")
    assert made["position_claim"] is None  # 1.4 nats along a cell
    assert made["geodesic_epsilon"] == pytest.approx(0.6931 / 200)
    assert run_json("verify", file)[1]["certified"]
    domain = domain_of(md.load(file))
    lon, lat = domain.plane.backward(domain.points)
    code, drawn = run_json("sample", file, "--lon", lon[5] + 1e-4, "--lat", lat[5] - 1e-4, "-n", 200, "--seed", 2)
    assert (code, drawn["reports"]) == (
        0,
        run_json("sample", file, "--secret", 5, "-n", 200, "--seed", 2)[1]["reports"],
    )
    for y, east, north in zip(drawn["reports"], drawn["report_longitude"], drawn["report_latitude"], strict=True):
        assert GEOD.inv(east, north, lon[y], lat[y])[2] <= 40.0  # a tenth of a cell
    assert len(set(drawn["reports"])) > 3


def points_of(mechanism, dim):
    return np.column_stack([mechanism[f"{dim}_x"].values, mechanism[f"{dim}_y"].values])


def domain_of(mechanism):
    return md.Domain.from_description(json.loads(mechanism.attrs["domain"]), points_of(mechanism, "secret"))


def test_exports_hold_degrees_beside_the_plane(run_json, tmp_path, capsys):
    file = tmp_path / "area.nc"
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", file)
    for name in ("t.csv", "t.json"):
        assert run_json("export", file, "--degrees", "-o", tmp_path / name)[0] == 0
        proved(tmp_path / name)
        capsys.readouterr()
    with (tmp_path / "t.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    plane = Plane(**{k: json.loads(md.load(file).attrs["domain"])["plane"][k] for k in ("latitude", "longitude")})
    for row in rows[:: max(len(rows) // 50, 1)]:
        for who in ("secret", "report"):
            east, north = float(row[f"{who}_x"]), float(row[f"{who}_y"])
            azimuth = np.degrees(np.arctan2(east, north))
            lon, lat, _ = GEOD.fwd(plane.longitude, plane.latitude, azimuth, np.hypot(east, north))
            assert float(row[f"{who}_longitude"]) == pytest.approx(lon, abs=1e-9)
            assert float(row[f"{who}_latitude"]) == pytest.approx(lat, abs=1e-9)
    told = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert told["coordinates"] == "x, y, longitude, latitude"
    assert told["secret_points"][0] == [float(rows[0][f"secret_{a}"]) for a in ("x", "y", "longitude", "latitude")]


def test_levels_and_prior_come_from_rasters(run_json, tmp_path):
    map_ = tmp_path / "density.asc"
    rows = [" ".join(str(1 + k + j) for k in range(8)) for j in range(8)]
    map_.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(rows))
    file = tmp_path / "area.nc"
    levels = tmp_path / "levels.asc"
    nats = [" ".join(f"{4e-3 + 2e-4 * (k + j):.4f}" for k in range(8)) for j in range(8)]
    levels.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(nats))
    options = ["--prior", map_, "--levels-from", levels, "--gap", "0.01"]
    code, made = run_json("area", PARK, *USUAL[:2], *USUAL[6:], *options, "-o", file)
    assert (code, made["certified"]) == (0, True)
    mechanism = md.load(file)
    density = md.read.raster(map_, unit="m").at(points_of(mechanism, "secret"))
    assert mechanism["prior"].values == pytest.approx(density / density.sum())
    stated = md.read.raster(levels, unit="m").at(points_of(mechanism, "secret"))
    assert mechanism["level"].values == pytest.approx(stated, rel=1e-6)
    assert stated.max() > stated.min()


def test_the_forbidden_part_holds_no_cell(run_json, tmp_path):
    water = tmp_path / "water.geojson"
    ring = [[2.33, 48.85], [2.35, 48.85], [2.35, 48.87], [2.33, 48.87], [2.33, 48.85]]
    water.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    words = ["area", PARK, *USUAL, "--program", "planar-laplace", "--forbidden", water, "-o", tmp_path / "dry.nc"]
    assert run_json(*words)[0] == 0
    mechanism = md.load(tmp_path / "dry.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    assert (plane.backward(points_of(mechanism, "secret"))[0] > 2.35).all()


@each_row(
    ("changed", "field"),
    [
        ({"--cell": "5000"}, "cell"),
        ({"--cell": "0"}, "cell"),
        ({"--cell": "1_0"}, "cell"),
        ({"--cell": "1e-300"}, "cell"),
        ({"--cell": "0.01"}, "cell"),
        ({"--cell": "10"}, "cell"),
        ({"--within": "0"}, "within"),
        ({"--factor": "-1"}, "factor"),
        ({"--factor": "nan"}, "factor"),
        ({"--people": "9"}, "people"),
        ({"--radii": "1,2"}, "radii"),
        ({"--unit": "degree"}, "unit"),
        ({"--program": "magic"}, "program"),
        ({"--loss": "joy"}, "loss"),
        ({"--positions": "winding"}, "positions"),
        ({"--positions": "some"}, "positions"),
        ({"--time-limit": "0"}, "time-limit"),
        ({"--within": "399"}, "cell"),
        ({"--prior": "nowhere.tif"}, "raster"),
        ({"--forbidden": "nowhere.geojson"}, "area"),
    ],
)
def test_bad_input_is_named_and_leaves_no_file(run_json, tmp_path, changed, field):
    options = dict(zip(USUAL[::2], USUAL[1::2], strict=True)) | changed
    code, said = run_json("area", PARK, *(word for pair in options.items() for word in pair), "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"]) == (2, field)
    assert said["error"]["message"]
    assert list(tmp_path.iterdir()) == []


def test_an_area_of_too_many_cells_is_refused_before_a_table_is_made(run_json, tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1e5))
    code, said = run_json("area", PARK, *USUAL, "--cell", "100", "-o", tmp_path / "a.nc")
    assert (code, said["error"]["kind"], said["error"]["field"]) == (2, "size", "cell")


def setting(cells, nats, kind="euclidean"):
    """A square map of 200 m cells with so many nats between neighbours."""
    side = math.isqrt(cells)
    domain = md.Domain.grid((side, side), cell=200.0, unit="m")
    level = md.PrivacyLevel.constant(nats / 200, "m")
    metric = md.Euclidean(epsilon=nats / 200, unit="m") if kind == "euclidean" else md.Eikonal(level=level)
    return md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())


@each_row(
    ("cells", "nats", "kind", "program"),
    [
        (576, 0.7, "euclidean", "optimal"),
        (1681, 0.7, "euclidean", "planar-laplace"),
        (400, 0.31, "euclidean", "optimal"),
        (576, 0.31, "euclidean", "planar-laplace"),
        (100, 0.01, "euclidean", "optimal"),
        (121, 0.01, "euclidean", "planar-laplace"),
        (1600, 0.7, "eikonal", "optimal"),
        (1681, 0.7, "eikonal", "eikonal"),
        (225, 0.1, "eikonal", "optimal"),
        (256, 0.1, "eikonal", "eikonal"),
    ],
)
def test_the_rule_goes_by_cells_and_by_nats_between_neighbours(cells, nats, kind, program):
    chosen, why = chosen_for(setting(cells, nats, kind))
    assert chosen == program
    assert f"these are {cells:,}" in why
    assert f"{nats:.2g} nats between neighbours" in why


def test_the_choice_is_told_with_what_the_other_one_costs(run, run_json, tmp_path):
    words = ["area", PARK, "--cell", "400", "--within", "400", "--factor", "4", "--positions", "cells"]
    code, made = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, made["program"], made["alternative"]) == (0, "optimal", "planar_laplace")
    other = run_json(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1]
    assert made["alternative_loss"] == pytest.approx(other["loss"], rel=REORDERED)
    assert made["alternative_position_loss"] == pytest.approx(other["position_loss"], rel=REORDERED)
    assert made["alternative_loss"] > made["loss"]
    assert "it takes about a minute up to" in made["chosen"]
    assert other["chosen"] == "planar-laplace, as --program says"
    assert (other["alternative"], other["alternative_loss"]) == ("optimal", None)
    said = " ".join(run(*words, "-o", tmp_path / "c.nc")[1].split())
    assert "Protects cells of 400 m, not positions: between two people within 400 m" in said
    _, _, noise = said.partition(f"Made by the optimal program: {made['chosen'].split(': ')[1]}. Planar Laplace noise ")
    off = float(re.match(r"would be ([\d.]+) m off\.", noise)[1])
    assert 0 <= off / other["position_loss"] - 1 <= 1e-3  # four digits, rounded up


def test_levels_that_vary_may_be_given_eikonal_weights(run_json, tmp_path):
    map_ = tmp_path / "density.asc"
    rows = [" ".join(f"{1e-4 * (36 + k + j):.4f}" for k in range(8)) for j in range(8)]
    map_.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(rows))
    options = ["--levels-from", map_, "--program", "eikonal"]
    code, made = run_json("area", PARK, *USUAL[:2], *USUAL[6:], *options, "-o", tmp_path / "a.nc")
    assert (code, made["program"], made["certified"]) == (0, "eikonal", True)
    assert made["alternative_loss"] > made["loss"]


@pytest.mark.parametrize(
    "words",
    [
        ["--within", "400", "--factor", "4"],
        ["--epsilon", repr(math.log(2.0) / 200)],
    ],
)
def test_a_level_in_every_form(run_json, tmp_path, words):
    code, made = run_json("area", PARK, "--cell", "400", *words, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    assert (code, made["geodesic_epsilon"]) == (0, pytest.approx(math.log(2.0) / 200, rel=1e-12))


def test_a_box_of_degrees(run_json, tmp_path):
    words = ["--cell", "400", "--epsilon", "0.003", "--program", "planar-laplace"]
    code, made = run_json("area", "--box", "2.34,48.85,2.36,48.87", *words, "-o", tmp_path / "a.nc")
    assert (code, made["problem"], made["certified"]) == (0, "a", True)
    mechanism = md.load(tmp_path / "a.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    assert (lon.min() > 2.34, lon.max() < 2.36, lat.min() > 48.85, lat.max() < 48.87) == (True,) * 4


@each_row(
    ("words", "field"),
    [
        ([], "area"),
        (["--box", "2,48,2.1,48.1", PARK], "area"),
        (["--box", "2,48,2.1"], "box"),
        (["--box", "2,48,x,48.1"], "box"),
        (["--box", "2,48.1,2.1,48"], "box"),
    ],
)
def test_boxes_that_are_none(run_json, tmp_path, words, field):
    code, said = run_json("area", *words, "--cell", "400", "--epsilon", "0.003", "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"], list(tmp_path.iterdir())) == (2, field, [])


@each_row(
    ("words", "field"),
    [
        ([], "factor"),
        (["--factor", "2"], "within"),
        (["--within", "0", "--factor", "2"], "within"),
        (["--within", "200"], "factor"),
        (["--within", "200", "--factor", "1"], "factor"),
        (["--within", "200", "--factor", "2", "--epsilon", "1"], "factor"),
        (["--epsilon", "0"], "epsilon"),
        (["--within", "200", "--factor", "inf"], "factor"),
    ],
)
def test_levels_that_are_none(run_json, tmp_path, words, field):
    code, said = run_json("area", PARK, "--cell", "400", *words, "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"], list(tmp_path.iterdir())) == (2, field, [])


@each_row(
    ("words", "field"),
    [
        (["--lon", "2.348"], "at"),
        (["--lon", "2.348", "--lat", "48.86", "--secret", "1"], "at"),
        (["--lon", "3.348", "--lat", "48.86"], "lon, lat"),
        (["--lon", "2.348", "--lat", "98"], "lon, lat"),
    ],
)
def test_places_that_are_not_there_are_refused(run_json, tmp_path, words, field):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    code, said = run_json("sample", tmp_path / "a.nc", *words)
    assert (code, said["error"]["field"]) == (2, field)


def test_files_without_a_plane_take_no_degrees(run_json, tmp_path):
    domain = md.Domain.grid((2, 2), cell=1.0, unit="m")
    metric = md.Euclidean(epsilon=1.0, unit="m")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    file = md.save(md.baselines.exponential(problem), tmp_path / "flat.nc")
    assert run_json("sample", file, "--lon", "0", "--lat", "0")[1]["error"]["field"] == "lon, lat"
    assert run_json("export", file, "--degrees", "-o", tmp_path / "t.csv")[1]["error"]["field"] == "degrees"
    assert not (tmp_path / "t.csv").exists()


def test_the_picture_says_degrees(run_json, tmp_path):
    pytest.importorskip("matplotlib")
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    figure = md.plot.mechanism(md.load(tmp_path / "a.nc"))
    figure.canvas.draw()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude (degrees)", "latitude (degrees)")
    plane = Plane.from_description(json.loads(md.load(tmp_path / "a.nc").attrs["domain"])["plane"], "m")
    shown = [
        (tick, float(label.get_text())) for tick, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    ]
    assert len(shown) > 1
    for north, latitude in shown:
        assert GEOD.inv(plane.longitude, plane.latitude, plane.longitude, latitude)[2] == pytest.approx(
            abs(north), abs=40.0
        )
    east = [
        (tick, float(label.get_text())) for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    ]
    for x, longitude in east:
        assert GEOD.inv(plane.longitude, plane.latitude, longitude, plane.latitude)[2] == pytest.approx(
            abs(x), abs=40.0
        )


@pytest.mark.parametrize(
    ("lon", "lat", "words"),
    [
        (3.348, 48.86, ("outside the grid", "3.348 48.86 degrees", "places lie at longitudes 2.3", "latitudes 48.8")),
        (48.86, 2.343, ("exchanged", "give longitude 2.343 and latitude 48.86")),
        (200.0, 48.86, ("within 180", "degrees")),
    ],
)
def test_degrees_are_refused_in_degrees(run_json, tmp_path, lon, lat, words):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    code, said = run_json("sample", tmp_path / "a.nc", "--lon", lon, "--lat", lat)
    told = " ".join(str(said["error"][key]) for key in ("message", "value"))
    assert (code, said["error"]["field"]) == (2, "lon, lat")
    assert [word for word in words if word not in told] == []
    assert "unit: m" not in told


def test_the_nearest_place_in_degrees_is_the_nearest_on_the_ground(run_json, tmp_path):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    mechanism = md.load(tmp_path / "a.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    said = run_json("sample", tmp_path / "a.nc", "--lon", 2.5, "--lat", 48.87)[1]["error"]["message"]
    away = GEOD.inv(np.full(len(lon), 2.5), np.full(len(lon), 48.87), lon, lat)[2]
    assert f"place {int(np.argmin(away))}, is at {lon[np.argmin(away)]:.4f}" in said


def people_file(folder):
    """People around the park: a town in its west."""
    rng = np.random.default_rng(4)
    places = rng.normal((48.858, 2.343), (0.02, 0.02), (400, 2))
    lines = ["latitude,longitude,population", *(f"{lat:.6f},{lon:.6f},{rng.integers(0, 60)}" for lat, lon in places)]
    path = folder / "people.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_levels_from_people(run_json, tmp_path):
    """Second route: the same level and prior from the functions of the package."""
    people, file = people_file(tmp_path), tmp_path / "area.nc"
    words = [
        "area",
        PARK,
        "--cell",
        "400",
        "--levels-from",
        people,
        "--people",
        "600",
        "--radii",
        "300,2e3",
    ]
    code, made = run_json(*words, "--program", "eikonal", "-o", file)
    assert (code, made["certified"], made["program"]) == (0, True, "eikonal")
    mechanism = md.load(file)
    domain = md.geo.read_area(PARK).grid(cell=400.0)
    density = md.geo.read_people(people, domain, margin=2000.0).density
    level = md.maps.elastic_level(density, people=600, least=300.0, most=2000.0)
    assert np.array_equal(points_of(mechanism, "secret"), domain.points)
    assert mechanism["level"].values == pytest.approx(level.at(domain.points), rel=1e-6)
    assert mechanism["prior"].values == pytest.approx(md.priors.from_density(density, domain))
    assert made["geodesic_epsilon"] == pytest.approx(level.at(domain.points).min(), rel=0.2)


def test_the_sentence_on_levels_from_people(run, tmp_path):
    options = ["--levels-from", people_file(tmp_path), "--people", "600", "--radii", "300,2e3"]
    words = ["area", "--box", "2.34,48.855,2.345,48.86", "--cell", "200", *options, "--factor", "4"]
    said = " ".join(run(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1].split())
    assert "The level is 1.38629 nats over the radius of the disc that holds 600 people, its radius between 300" in said


@each_row(
    ("words", "field"),
    [
        (["--people", "100"], "people"),
        (["--levels-from", "people.csv", "--within", "200"], "within"),
        (["--levels-from", "people.csv", "--epsilon", "0.01"], "epsilon"),
        (["--levels-from", "people.csv", "--factor", "1"], "factor"),
        (["--levels-from", "people.csv", "--radii", "500,100"], "least"),
        (["--levels-from", "people.csv", "--radii", "500,0"], "most"),
        (["--levels-from", "people.csv", "--radii", "1"], "radii"),
        (["--levels-from", "nowhere.csv"], "people"),
    ],
)
def test_levels_from_people_that_are_none(run_json, tmp_path, monkeypatch, words, field):
    people_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    level = [] if "--levels-from" in words else ["--epsilon", "0.01"]
    code, said = run_json("area", PARK, "--cell", "400", *words, *level, "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"]) == (2, field)
    assert not (tmp_path / "a.nc").exists()


def test_many_cells_need_no_table(run_json, tmp_path, monkeypatch):
    """Factors of 1,681 cells and more are made where a table of them would be refused."""
    monkeypatch.setattr("mechdesign.geo.design.HELD", 10**9)
    options = ["--people", "60", "--radii", "100,300"]
    words = ["area", PARK, "--cell", "25", "--levels-from", people_file(tmp_path), *options, "-o", tmp_path / "a.nc"]
    code, said = run_json(*words, "--program", "optimal")
    assert (code, said["error"]["kind"]) == (2, "size")
    designed = []

    def stop(asked, problem, *rest):
        designed.append(problem)
        raise InputError("enough", field="test", value=None, remedy="none")

    monkeypatch.setattr("mechdesign.geo.design._between_cells", stop)
    assert run_json(*words)[1]["error"]["field"] == "test"
    assert designed[0].domain.size > 1600


BOX = ["--box", "12.480,41.890,12.500,41.905"]
GENTLE = ["--cell", "400", "--within", "2000", "--factor", "2", "--gap", "0.05"]  # 0.14 nats along a cell


@needs("positions")
def test_positions_are_the_default_where_they_cost_little(run_json, tmp_path):
    """And not against it; a position draws for itself, in degrees and in metres alike."""
    file, cells = tmp_path / "any.nc", tmp_path / "cells.nc"
    code, made = run_json("area", *BOX, *GENTLE, "-o", file)
    assert (code, made["program"], made["certified"]) == (0, "positions", True)
    assert made["position_claim"] == md.load(file).attrs["position_claim"]
    assert made["lower_bound"] <= made["position_loss"]
    checked = run_json("verify", file)[1]
    assert (checked["certified"], checked["position_breaches"]) == (True, 0)
    _, other = run_json("area", *BOX, *GENTLE, "--positions", "cells", "-o", cells)
    assert (other["program"], other["position_claim"]) == ("optimal", None)
    assert other["position_loss"] > other["loss"]
    east, north = points_of(md.load(file), "secret")[3] + [190.0, -190.0]
    plane = Plane(**{k: json.loads(md.load(file).attrs["domain"])["plane"][k] for k in ("latitude", "longitude")})
    lon, lat = plane.backward(np.array([[east, north]]))
    drawn = [
        run_json("sample", file, *where, "-n", 2000, "--seed", 2)[1]["reports"]
        for where in (["--lon", lon[0], "--lat", lat[0]], ["--at", f"{east},{north}"], ["--secret", 3])
    ]
    assert drawn[0] == drawn[1] != drawn[2]


@each_row(
    ("options", "field"),
    [
        (["--positions", "some"], "positions"),
        (["--positions", "any", "--program", "planar-laplace"], "positions"),
        (["--positions", "any", "--program", "eikonal"], "positions"),
        (["--positions", "any", "--loss", "zero-one"], "loss"),
    ],
)
def test_positions_that_cannot_be_had_are_refused(run_json, tmp_path, options, field):
    code, told = run_json("area", PARK, *GENTLE, *options, "-o", tmp_path / "a.nc")
    assert code == 2
    assert told["error"]["field"] == field
    assert list(tmp_path.iterdir()) == []


def stated(shape, nats, *, prior=None, mask=None):
    """The program between any two positions of cells of 200 m, with so many nats along a cell."""
    plane = md.geo.Plane(latitude=41.9, longitude=12.5)
    domain = md.Domain.grid(shape, cell=200.0, unit="m", plane=plane, mask=mask)
    return Positions(problem=area_problem(domain, epsilon=nats / 200, positions=True))


@each_row(
    ("shape", "method"),
    [((10, 10), "cones"), ((25, 23), "cones"), ((30, 30), "cones"), ((40, 30), "columns"), ((60, 40), "columns")],
    by_default=[((10, 10), "cones"), ((40, 30), "columns")],
)
def test_the_rule_of_methods_goes_by_operations(shape, method):
    assert positions_method(stated(shape, 0.7), explicit=False) == method


def test_an_area_without_symmetry_takes_columns_earlier():
    mask = np.ones((25, 23), bool)
    mask[3, 5:7] = False
    assert positions_method(stated((25, 23), 0.7, mask=mask), explicit=False) == "columns"


def test_too_many_cells_for_any_position_are_told_before_anything_is_made():
    """Sizes by arithmetic alone: no table, no cost."""
    program = stated((200, 190), 0.7)
    with pytest.raises(md.errors.SizeError, match=r"38,000 cells are too many .*--cell 4\d\d makes fewer"):
        positions_method(program, explicit=False)
    assert "cost" not in vars(program)


@needs("positions")
@each_row(
    ("size", "loss", "varies", "program", "why"),
    [
        (400, "distance", False, "auto", None),
        (9999, "squared", False, "auto", None),
        (9999, "squared", False, "optimal", None),
        (250, "distance", True, "auto", None),
        (400, "zero-one", False, "auto", "the zero-one loss counts cells"),
        (400, "distance", False, "eikonal", "--program eikonal protects cells alone"),
        (9216, "distance", True, "auto", "9,216 cells with levels that vary are more than the 250 .*--cell 1300"),
    ],
)
def test_why_cells_are_protected_instead(size, loss, varies, program, why):
    found = cells_instead(SimpleNamespace(size=size, spacing=200.0), loss, varies=varies, program=program)
    assert found is None if why is None else re.match(why, found)


def test_any_position_is_given_up_where_it_costs_half_as_much_again():
    assert dearer(1499.0, 1000.0, "m") is None
    assert dearer(None, 1000.0, "m") is None
    assert "1,501 m off, not 1,000 m" in dearer(1501.0, 1000.0, "m")


def test_pairs_of_too_many_cells_are_refused_with_the_cell_that_would_do():
    check_pairs(SimpleNamespace(size=4096, spacing=500.0))
    with pytest.raises(md.errors.SizeError, match=r"7,260 cells have 26,353,800 pairs .*some 10 minutes") as error:
        check_pairs(SimpleNamespace(size=7260, spacing=500.0))
    assert "--cell 680 makes fewer" in error.value.message


def probabilities_at(mechanism, places):
    """P(y|x) (b, m) at positions (b, 2) of a mechanism between positions, by the weights that are drawn with."""
    claim = md.Sampler(mechanism).admission
    cells, points = claim.positions.snapped(claim.domain, places)
    across, upward = (spline_weights(points[:, axis]) for axis in (0, 1))
    weights = (across[:, :, None] * upward[:, None, :]).reshape(-1, 9)
    table, around = mechanism["mass"].values / 2.0**62, mechanism["around_row"].values
    return np.einsum("bk,bky->by", weights, table[around[cells]])


def largest_odds(mechanism, within, pairs=20_000):
    """The largest factor by which a report changes the odds of random positions so far apart in a straight line."""
    domain, rng = domain_of(mechanism), np.random.default_rng(5)
    side, low = domain.cell[0], np.asarray(domain.origin)
    here = domain.points[rng.integers(domain.size, size=pairs)] + side * (rng.random((pairs, 2)) - 0.5)
    turn = rng.uniform(0, 2 * np.pi, pairs)
    there = here + within * np.column_stack([np.cos(turn), np.sin(turn)])
    index = np.floor((there - low) / side).astype(int)
    inside = ((index >= 0) & (index < domain.shape)).all(axis=1)
    inside[inside] = domain.lookup[tuple(index[inside].T)] >= 0
    assert inside.sum() > pairs / 20
    here, there = probabilities_at(mechanism, here[inside]), probabilities_at(mechanism, there[inside])
    return float(np.exp(np.abs(np.log(here / there)).max()))


RIVER = [[12.47, 41.88235], [12.4819, 41.88235], [12.4819, 41.8833], [12.47, 41.8833], [12.47, 41.88235]]
BANKS = ["--box", "12.475,41.880,12.4825,41.8855", "--cell", "80", "--within", "200", "--factor", "2", "--gap", "0.05"]


@pytest.fixture
def river(tmp_path):
    file = tmp_path / "river.geojson"
    file.write_text(json.dumps({"type": "Polygon", "coordinates": [RIVER]}))
    return file


@pytest.mark.slow
@needs("positions", "web")
def test_a_river_between_two_people_does_not_raise_their_odds(run, run_json, river, tmp_path):
    """Straight lines by default, beside random positions on both banks; along paths inside the factor is far larger,
    and said. The whole way to reports in degrees, tables for others and pages.
    """
    straight, inside = tmp_path / "straight.nc", tmp_path / "inside.nc"
    code, made = run_json("area", *BANKS, "--forbidden", river, "-o", straight)
    assert (code, made["positions"], made["positions_reason"], made["certified"]) == (0, "any", None, True)
    mechanism = md.load(straight)
    dry = mechanism["prior"].values > 0
    assert made["reports"] == dry.sum() < made["secrets"] == dry.size
    assert np.array_equal(points_of(mechanism, "report"), points_of(mechanism, "secret")[dry])
    assert 1.8 < largest_odds(mechanism, 200.0) <= made["factor_within"] < 2.001
    assert run_json("verify", straight)[1]["lower_bound_checked"] is True
    code, walked = run_json("area", *BANKS, "--forbidden", river, "--positions", "inside", "-o", inside)
    assert (code, walked["secrets"]) == (0, dry.sum())
    assert 3 < largest_odds(md.load(inside), 200.0) <= walked["factor_within"]
    assert walked["position_loss"] < made["position_loss"]
    drawn = run_json("sample", straight, "--lon", 12.478, "--lat", 41.8828, "-n", 50, "--seed", 3)[1]
    wet = md.geo.read_area(river).contains(np.array(drawn["report_longitude"]), np.array(drawn["report_latitude"]))
    assert not wet.any()
    assert run_json("export", straight, "--degrees", "-o", tmp_path / "t.csv")[0] == 0
    assert run("export", straight, "-o", tmp_path / "p.html")[0] == 0
    assert run("export", straight, "-o", tmp_path / "web")[0] == 0


def test_a_ragged_area_is_drawn_within_its_rectangle(run_json, river, tmp_path):
    pytest.importorskip("matplotlib")
    words = ["area", *BANKS, "--cell", "120", "--forbidden", river, "-o", tmp_path / "a.nc"]
    assert run_json(*words)[0] == 0
    figure = md.plot.mechanism(md.load(tmp_path / "a.nc"))
    figure.canvas.draw()
    assert any("true place" in text.get_text() for text in figure.findobj(lambda part: hasattr(part, "get_text")))


@needs("positions")
def test_cells_wider_than_their_radius_are_refused(run, run_json, tmp_path):
    words = ["area", "--box", "36.75,-1.35,36.90,-1.22", "--cell", "2000", "--within", "200", "--factor", "2"]
    for options, why in ((["--positions", "cells"], "is wider than"), (["--loss", "zero-one"], "zero-one loss counts")):
        code, said = run_json(*words, *options, "-o", tmp_path / "a.nc")
        assert (code, said["error"]["field"]) == (2, "cell")
        assert why in said["error"]["message"]
        assert "--cell 200 or less" in said["error"]["message"]
    assert list(tmp_path.iterdir()) == []
    code, said, _ = run(*words, "-o", tmp_path / "a.nc")
    assert code == 0
    assert "with --cell 270 about 7 %" in " ".join(said.split())


@needs("positions")
def test_why_cells_are_protected_stands_in_the_first_line(run, run_json, tmp_path):
    words = ["area", "--box", "2.34,48.855,2.345,48.86", "--cell", "200", "--within", "400", "--factor", "2"]
    words += ["--program", "planar-laplace"]
    assert (
        run_json(*words, "-o", tmp_path / "a.nc")[1]["positions_reason"]
        == "--program planar-laplace protects cells alone"
    )
    said = run(*words, "-o", tmp_path / "b.nc")[1]
    assert " ".join(said.split()).startswith("Protects cells of 200 m, not positions, because --program planar-laplace")
    assert run_json(*words, "--positions", "cells", "-o", tmp_path / "c.nc")[1]["positions_reason"] is None


def test_other_suffixes_than_nc_are_refused(run_json, tmp_path):
    code, said = run_json("area", PARK, *USUAL, "-o", tmp_path / "a.csv")
    assert (code, said["error"]["field"]) == (2, "output")
    assert "mechdesign export" in said["error"]["message"]
    assert list(tmp_path.iterdir()) == []


@needs("positions")
def test_a_box_that_is_small_for_its_level_says_so(run, run_json, tmp_path):
    """Beside the mean distance to the middle of a rectangle, by random positions; what is advised does what it says."""
    box = ["area", "--box", "139.70,35.65,139.805,35.722", "--cell", "1200", "--within", "1000", "--gap", "0.02"]
    code, said, _ = run(*box, "--factor", "1.5", "-o", tmp_path / "a.nc")
    found = re.search(
        r"reporting one place in the middle is ([\d,]+) m off, this report ([\d,]+) m", " ".join(said.split())
    )
    constant, loss = (float(word.replace(",", "")) for word in found.groups())
    assert code == 0
    assert 0.6 * constant < loss < constant
    domain = domain_of(md.load(tmp_path / "a.nc"))
    sides = np.asarray(domain.shape) * 1200.0
    far = np.hypot(*((np.random.default_rng(1).random((100_000, 2)) - 0.5) * sides).T).mean()
    assert constant == pytest.approx(far, rel=0.02)
    factor = re.search(r"or with --factor ([\d.]+)", " ".join(said.split())).group(1)
    better = run_json(*box, "--factor", factor, "-o", tmp_path / "b.nc")[1]
    assert 0.4 < better["position_loss"] / better["constant_position_loss"] < 0.6


def test_the_same_file_on_a_machine_at_work(run_json, tmp_path, monkeypatch):
    """A clock on which every look takes a quarter of an hour changes nothing: no default effort is counted in time."""
    words = [[*BOX, *GENTLE], [*BOX, "--cell", "400", "--epsilon", "0.004", "--positions", "cells"]]
    first = [run_json("area", *given, "-o", tmp_path / f"{k}.nc")[0] for k, given in enumerate(words)]
    clock = itertools.count(10**6, 900)
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    (tmp_path / "again").mkdir()  # of the same name, which a design is called by
    again = [run_json("area", *given, "-o", tmp_path / "again" / f"{k}.nc")[0] for k, given in enumerate(words)]
    assert first == again == [0, 0]
    for k in range(len(words)):
        assert (tmp_path / f"{k}.nc").read_bytes() == (tmp_path / "again" / f"{k}.nc").read_bytes()


@each_row("options", [[], ["--positions", "cells"], ["--program", "eikonal"], ["--program", "optimal"]])
def test_every_route_is_given_the_limit_and_told_where_to_report(run_json, tmp_path, monkeypatch, options):
    given = []

    def stop(*_, **named):
        given.append(named)
        raise InputError("enough", field="test", value=None, remedy="none")

    monkeypatch.setattr("mechdesign.geo.design.solve", stop)
    words = ["area", PARK, "--cell", "400", "--levels-from", people_file(tmp_path), *options, "--time-limit", "30"]
    assert run_json(*words, "-o", tmp_path / "a.nc")[1]["error"]["field"] == "test"
    assert given[0]["time_limit"] <= 30.0
    assert callable(given[0]["on_progress"])


def wide_area():
    """Cells of 60 km about a place in the north, where the plane is longer than the ground by up to 0.1 %."""
    plane = md.geo.Plane(latitude=52.0, longitude=10.0)
    return md.Domain.grid((7, 7), cell=60_000.0, unit="m", origin=(-210_000.0, -210_000.0), plane=plane)


def test_the_level_for_positions_holds_for_geodesic_distances_between_any_of_them():
    """Random pairs in cells, and across the ground at the outermost corner, where that for centres would not do."""
    domain, rng, epsilon = wide_area(), np.random.default_rng(7), 1e-5
    here = domain.points[rng.integers(domain.size, size=4000)] + 60_000 * (rng.random((4000, 2)) - 0.5)
    there = here + rng.normal(size=(4000, 2)) * 10 ** rng.uniform(1, 5, size=(4000, 1))
    corner = np.array([210_000.0, 210_000.0])
    here, there = np.vstack([here, corner - [20.0, 0.0]]), np.vstack([there, corner - [0.0, 20.0]])
    inside = (np.abs(there) <= 210_000).all(axis=1)
    assert inside.sum() > 1000
    ground = GEOD.inv(*domain.plane.backward(here[inside]), *domain.plane.backward(there[inside]))[2]
    length = np.linalg.norm(here - there, axis=1)[inside]
    allowed = epsilon * np.asarray(ground) * (1 + 1e-9) + 1e-13  # rounding of degrees, metres to 1e-8
    assert (plane_level(domain, epsilon, positions=True) * length <= allowed).all()
    assert (plane_level(domain, epsilon) * length)[-1] > allowed[-1]


def test_what_is_drawn_keeps_the_claim_on_the_ground():
    """Exact probabilities of random positions, near and far: their ratio against geodesic distance."""
    domain, rng, epsilon = wide_area(), np.random.default_rng(8), 6e-6
    problem = area_problem(domain, epsilon=epsilon, loss="distance", positions=True)
    mechanism = md.positions.spline_laplace(problem)
    here = domain.points[rng.integers(domain.size, size=300)] + 60_000 * (rng.random((300, 2)) - 0.5)
    there = np.clip(here + rng.normal(size=(300, 2)) * 10 ** rng.uniform(2, 5, size=(300, 1)), -209_999, 209_999)
    ratio = probabilities_at(mechanism, here) / probabilities_at(mechanism, there)
    rise = np.abs(np.log(ratio)).max(axis=1)
    ground = np.asarray(GEOD.inv(*domain.plane.backward(here), *domain.plane.backward(there))[2])
    rounding = 2 * epsilon * 60_000 * 2.0**-16
    assert (rise <= epsilon * ground + rounding).all()
    assert (rise > 0.5 * epsilon * ground).any()


CITIES = {
    "Cape Town": ["--box", "18.41,-33.935,18.44,-33.915", "--cell", "300", "--within", "300", "--factor", "3"],
    "Taveuni, across the antimeridian": [
        "--box",
        "179.98,-16.82,-179.98,-16.79",
        "--cell",
        "400",
        "--epsilon",
        "0.003",
    ],
    "Istanbul, both shores": ["--box", "28.97,41.00,29.02,41.04", "--cell", "400", "--within", "500", "--factor", "2"],
}


@pytest.mark.slow
@pytest.mark.parametrize("city", CITIES)
def test_a_city_from_its_box_to_reports_pages_and_proofs_of_others(run, run_json, tmp_path, city):
    words, file = ["area", *CITIES[city], "--gap", "0.01"], tmp_path / "city.nc"
    if "shores" in city:
        strait = [[28.975, 40.99], [29.0, 41.0], [29.03, 41.05], [29.01, 41.05], [28.985, 41.015], [28.975, 40.99]]
        (tmp_path / "water.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [strait]}))
        words += ["--forbidden", tmp_path / "water.geojson"]
    code, made = run_json(*words, "-o", file)
    assert (code, made["positions"], made["certified"]) == (0, "any", True)
    checked = run_json("verify", file)[1]
    assert (checked["certified"], checked["lower_bound_checked"]) == (True, True)
    mechanism = md.load(file)
    assert largest_odds(mechanism, made["within"]) <= made["factor_within"]
    plane = domain_of(mechanism).plane
    lon, lat = (at[0] for at in plane.backward(points_of(mechanism, "secret")[7:8] + 31.0))
    drawn = run_json("sample", file, "--lon", lon, "--lat", lat, "-n", 400, "--seed", 1)[1]
    away = GEOD.inv(np.full(400, lon), np.full(400, lat), drawn["report_longitude"], drawn["report_latitude"])[2]
    assert np.mean(away) < 3 * made["position_loss"]
    assert run_json("export", file, "--degrees", "-o", tmp_path / "t.csv")[0] == 0
    proved(tmp_path / "t.csv")
    assert run("export", file, "-o", tmp_path / "p.html")[0] == 0
    assert run("export", file, "-o", tmp_path / "web")[0] == 0
