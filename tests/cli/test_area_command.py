"""`mechdesign area`: from a GeoJSON file to a certified table, and a report back in degrees."""

from __future__ import annotations

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.handover.verify_table import main as check_table
from mechdesign.mechanism.positions.snapping import snapped, step_weights
from mechdesign.output.terminal.chosen import between_positions, chosen_for
from mechdesign.setting.problems.area import area_problem, plane_level
from mechdesign.setting.space.plane import Plane

pyproj = pytest.importorskip("pyproj")
pytest.importorskip("shapely")

PARK = ROOT / "problems" / "data" / "example_park.geojson"
USUAL = ["--cell", "400", "--radius", "200", "--level", "0.6931"]
GEOD = pyproj.Geod(ellps="WGS84")


def test_an_area_becomes_a_certified_table_and_reports_in_degrees(run_json, tmp_path):
    file = tmp_path / "area.nc"
    code, made = run_json("area", PARK, *USUAL, "-o", file)
    assert (code, made["certified"], made["program"]) == (0, True, "optimal")
    assert made["position_claim"] is None  # 1.4 nats along a cell
    assert made["geodesic_epsilon"] == pytest.approx(0.6931 / 200)
    assert run_json("verify", file)[1]["certified"]
    domain = md.Domain.from_description(
        json.loads(md.load(file).attrs["domain"]), points := points_of(md.load(file), "secret")
    )
    lon, lat = domain.plane.backward(points)
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


def test_exports_hold_degrees_beside_the_plane(run_json, tmp_path, capsys):
    file = tmp_path / "area.nc"
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", file)
    for name in ("t.csv", "t.json"):
        assert run_json("export", file, "--degrees", "-o", tmp_path / name)[0] == 0
        assert check_table([str(tmp_path / name)]) == 0
        capsys.readouterr()
    with (tmp_path / "t.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
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
    options = ["--prior", map_, "--levels", map_, "--slope", "1e-4", "--gap", "0.01"]
    code, made = run_json("area", PARK, *USUAL, *options, "-o", file)
    assert (code, made["certified"]) == (0, True)
    mechanism = md.load(file)
    density = md.read.raster(map_, unit="m").at(points_of(mechanism, "secret"))
    assert mechanism["prior"].values == pytest.approx(density / density.sum())
    assert mechanism["level"].values == pytest.approx(0.6931 / 200 + 1e-4 * density, rel=1e-6)


def test_the_forbidden_part_holds_no_cell(run_json, tmp_path):
    water = tmp_path / "water.geojson"
    ring = [[2.33, 48.85], [2.35, 48.85], [2.35, 48.87], [2.33, 48.87], [2.33, 48.85]]
    water.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    words = ["area", PARK, *USUAL, "--program", "planar-laplace", "--forbidden", water, "-o", tmp_path / "dry.nc"]
    assert run_json(*words)[0] == 0
    mechanism = md.load(tmp_path / "dry.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    assert (plane.backward(points_of(mechanism, "secret"))[0] > 2.35).all()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"--cell": "5000"}, "cell"),
        ({"--cell": "0"}, "cell"),
        ({"--cell": "1_0"}, "cell"),
        ({"--cell": "1e-300"}, "cell"),
        ({"--cell": "0.01"}, "cell"),
        ({"--cell": "10"}, "cell"),
        ({"--stencil": "\uff18"}, "stencil"),
        ({"--radius": "0"}, "radius"),
        ({"--level": "-1"}, "level"),
        ({"--level": "nan"}, "level"),
        ({"--unit": "degree"}, "unit"),
        ({"--program": "magic"}, "program"),
        ({"--loss": "joy"}, "loss"),
        ({"--slope": "1"}, "slope"),
        ({"--prior": "nowhere.tif"}, "raster"),
        ({"--forbidden": "nowhere.geojson"}, "area"),
    ],
)
def test_bad_input_is_named_and_leaves_no_file(run_json, tmp_path, changed, field):
    options = dict(zip(USUAL[::2], USUAL[1::2], strict=True)) | changed
    code, said = run_json("area", PARK, *(word for pair in options.items() for word in pair), "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"]) == (2, field)
    assert said["error"]["remedy"]
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


@pytest.mark.parametrize(
    ("cells", "nats", "kind", "program"),
    [
        (576, 0.7, "euclidean", "optimal"),
        (1681, 0.7, "euclidean", "planar-laplace"),
        (400, 0.31, "euclidean", "optimal"),
        (576, 0.31, "euclidean", "planar-laplace"),
        (225, 0.01, "euclidean", "optimal"),
        (256, 0.01, "euclidean", "planar-laplace"),
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
    words = ["area", PARK, "--cell", "400", "--within", "200", "--factor", "2"]
    code, made = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, made["program"], made["alternative"]) == (0, "optimal", "planar_laplace")
    other = run_json(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1]
    assert made["alternative_loss"] == other["loss"] > made["loss"]
    assert made["alternative_smallest_epsilon"] == pytest.approx(other["smallest_epsilon"])
    assert "it takes about a minute up to" in made["chosen"]
    assert other["chosen"] == "planar-laplace, as --program says"
    assert (other["alternative"], other["alternative_loss"]) == ("optimal", None)
    said = " ".join(run(*words, "-o", tmp_path / "c.nc")[1].split())
    assert said.startswith(
        "Protects cells of 400 m, not positions: between two people within 200 m, one report changes"
    )
    assert " off the true position on average. Between centres of cells that is " in said
    assert f"The planar Laplace mechanism would have a loss of {math.ceil(10 * other['loss']) / 10:.1f} m." in said


def test_levels_that_vary_may_be_given_eikonal_weights(run_json, tmp_path):
    map_ = tmp_path / "density.asc"
    rows = [" ".join(str(1 + k + j) for k in range(8)) for j in range(8)]
    map_.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(rows))
    options = ["--levels", map_, "--slope", "1e-4", "--program", "eikonal", "--radius", "100"]
    code, made = run_json("area", PARK, *USUAL[:2], *USUAL[4:], *options, "-o", tmp_path / "a.nc")
    assert (code, made["program"], made["certified"]) == (0, "eikonal", True)
    assert made["alternative_loss"] > made["loss"]


@pytest.mark.parametrize(
    "words",
    [
        ["--within", "200", "--nats", repr(math.log(2.0))],
        ["--within", "200", "--factor", "2"],
        ["--epsilon", repr(math.log(2.0) / 200)],
        ["--radius", "200", "--level", repr(math.log(2.0))],
    ],
)
def test_a_level_in_every_form(run_json, tmp_path, words):
    code, made = run_json("area", PARK, "--cell", "400", *words, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    assert (code, made["geodesic_epsilon"]) == (0, pytest.approx(math.log(2.0) / 200, rel=1e-12))


def test_a_box_of_degrees(run_json, tmp_path):
    words = ["--cell", "400", "--epsilon", "0.003", "--program", "planar-laplace"]
    code, made = run_json("area", "--box", "2.34,48.85,2.36,48.87", *words, "-o", tmp_path / "a.nc")
    assert (code, made["problem"], made["certified"]) == (0, "box", True)
    mechanism = md.load(tmp_path / "a.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    assert (lon.min() > 2.34, lon.max() < 2.36, lat.min() > 48.85, lat.max() < 48.87) == (True,) * 4


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ([], "factor"),
        (["--factor", "2"], "within"),
        (["--within", "0", "--factor", "2"], "within"),
        (["--within", "200"], "factor"),
        (["--within", "200", "--radius", "200", "--factor", "2"], "within"),
        (["--within", "200", "--factor", "1"], "factor"),
        (["--within", "200", "--factor", "2", "--epsilon", "1"], "factor"),
        (["--epsilon", "0"], "epsilon"),
        (["--within", "200", "--nats", "inf"], "nats"),
    ],
)
def test_levels_that_are_none(run_json, tmp_path, words, field):
    code, said = run_json("area", PARK, "--cell", "400", *words, "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"], list(tmp_path.iterdir())) == (2, field, [])


@pytest.mark.parametrize(
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
        (200.0, 48.86, ("within 180", "degrees east")),
    ],
)
def test_degrees_are_refused_in_degrees(run_json, tmp_path, lon, lat, words):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    code, said = run_json("sample", tmp_path / "a.nc", "--lon", lon, "--lat", lat)
    told = " ".join(str(said["error"][key]) for key in ("message", "value", "remedy"))
    assert (code, said["error"]["field"]) == (2, "lon, lat")
    assert [word for word in words if word not in told] == []
    assert "unit: m" not in told


def test_the_nearest_place_in_degrees_is_the_nearest_on_the_ground(run_json, tmp_path):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    mechanism = md.load(tmp_path / "a.nc")
    plane = Plane.from_description(json.loads(mechanism.attrs["domain"])["plane"], "m")
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    said = run_json("sample", tmp_path / "a.nc", "--lon", 2.5, "--lat", 48.87)[1]["error"]["remedy"]
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
        "--least",
        "300",
        "--most",
        "2e3",
    ]
    code, made = run_json(*words, "--program", "eikonal", "-o", file)
    assert (code, made["certified"], made["program"]) == (0, True, "eikonal")
    mechanism = md.load(file)
    domain = md.read.area(PARK).grid(cell=400.0)
    density = md.read.people(people, domain, margin=2000.0).density
    level = md.PrivacyLevel.elastic(density, people=600, least=300.0, most=2000.0)
    assert np.array_equal(points_of(mechanism, "secret"), domain.points)
    assert mechanism["level"].values == pytest.approx(level.at(domain.points), rel=1e-6)
    assert mechanism["prior"].values == pytest.approx(md.priors.from_density(density, domain))
    assert made["geodesic_epsilon"] == pytest.approx(level.at(domain.points).min(), rel=0.2)


def test_the_sentence_on_levels_from_people(run, tmp_path):
    options = ["--levels-from", people_file(tmp_path), "--people", "600", "--least", "300", "--most", "2e3"]
    words = ["area", "--box", "2.34,48.855,2.345,48.86", "--cell", "200", *options, "--factor", "4"]
    said = " ".join(run(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1].split())
    assert "The level is 1.38629 nats over the radius of the disc that holds 600 people, its radius between 300" in said


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--people", "100"], "people"),
        (["--levels-from", "people.csv", "--within", "200"], "within"),
        (["--levels-from", "people.csv", "--epsilon", "0.01"], "epsilon"),
        (["--levels-from", "people.csv", "--nats", "2", "--factor", "3"], "factor"),
        (["--levels-from", "people.csv", "--most", "100"], "least"),
        (["--levels-from", "people.csv", "--most", "0"], "most"),
        (["--levels-from", "people.csv", "--slope", "1"], "slope"),
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
    monkeypatch.setattr("mechdesign.cli.area._TABLES", 10**9)
    options = ["--people", "60", "--least", "100", "--most", "300"]
    words = ["area", PARK, "--cell", "25", "--levels-from", people_file(tmp_path), *options, "-o", tmp_path / "a.nc"]
    code, said = run_json(*words, "--program", "optimal")
    assert (code, said["error"]["kind"]) == (2, "size")
    designed = []

    def stop(problem, *rest, **given):
        designed.append(problem)
        raise InputError("enough", field="test", value=None, remedy="none")

    monkeypatch.setattr("mechdesign.cli.area._designed", stop)
    assert run_json(*words)[1]["error"]["field"] == "test"
    assert designed[0].domain.size > 1600


BOX = ["--box", "12.480,41.890,12.500,41.905"]
GENTLE = ["--cell", "400", "--within", "2000", "--factor", "2", "--gap", "0.05"]  # 0.14 nats along a cell


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("size", "epsilon", "loss", "program", "asked", "wanted"),
    [
        (400, 0.35, "distance", "auto", None, True),
        (400, 0.35, "squared", "auto", None, True),
        (401, 0.35, "distance", "auto", None, False),
        (400, 0.351, "distance", "auto", None, False),
        (400, 0.35, "zero-one", "auto", None, False),
        (400, 0.35, "distance", "optimal", None, False),
        (400, None, "distance", "auto", None, False),
        (9999, 9.0, "distance", "auto", "any", True),
        (9999, None, "distance", "optimal", "any", True),
        (4, 0.01, "distance", "auto", "cells", False),
    ],
)
def test_the_rule_for_positions(size, epsilon, loss, program, asked, wanted):
    domain = SimpleNamespace(size=size, spacing=1.0, shape=(size,))
    assert between_positions(domain, epsilon, loss, program=program, asked=asked) is wanted
    ragged = SimpleNamespace(size=size, spacing=1.0, shape=(size + 1,))
    told = between_positions(ragged, epsilon, loss, program=program, asked=asked)
    assert told is (wanted and asked == "any")


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
    mechanism = md.baselines.spline_laplace(problem)
    here = domain.points[rng.integers(domain.size, size=300)] + 60_000 * (rng.random((300, 2)) - 0.5)
    there = np.clip(here + rng.normal(size=(300, 2)) * 10 ** rng.uniform(2, 5, size=(300, 1)), -209_999, 209_999)
    table, around = mechanism["mass"].values / 2.0**62, mechanism["around_row"].values

    def drawn(places):
        cells, points = snapped(domain, places)
        across, upward = (step_weights(points[:, axis]) / 2.0**33 for axis in (0, 1))
        weights = (across[:, :, None] * upward[:, None, :]).reshape(-1, 9)
        return np.einsum("bk,bky->by", weights, table[around[cells]])

    rise = np.abs(np.log(drawn(here) / drawn(there))).max(axis=1)
    ground = np.asarray(GEOD.inv(*domain.plane.backward(here), *domain.plane.backward(there))[2])
    rounding = 2 * epsilon * 60_000 * 2.0**-16
    assert (rise <= epsilon * ground + rounding).all()
    assert (rise > 0.5 * epsilon * ground).any()
