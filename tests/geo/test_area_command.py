"""`mechdesign area`: from a GeoJSON file to a certified table, and a report back in degrees."""

from __future__ import annotations

import csv
import json
import math
import re
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.areas import PARK, domain_of, points_of
from fixtures.export_mechanisms import prove_export
from fixtures.rows import few_by_default
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import InputError, SizeError
from mechdesign.geo import area_design, area_report, area_search
from mechdesign.geo.choice_words import choice_words
from mechdesign.geo.choose import chosen_program
from mechdesign.output.reports import solve as summary
from mechdesign.solvers import optimal_bound

pyproj = pytest.importorskip("pyproj")
pytest.importorskip("shapely")

USUAL = ["--cell", "400", "--within", "400", "--factor", repr(math.exp(1.3862)), "--positions", "cells"]
FOLLOW = ["--people", "people.csv", "--people-per-disc", "2000"]
GEOD = pyproj.Geod(ellps="WGS84")


def test_area_gives_certified_table_and_degrees(run_json, tmp_path):
    file = tmp_path / "area.nc"
    code, outcome = run_json("area", PARK, *USUAL, "-o", file)
    assert (code, outcome["certified"], outcome["program"]) == (0, True, "optimal")
    assert outcome["position_claim"] is None  # 1.4 nats along a cell
    assert outcome["geodesic_epsilon"] == pytest.approx(0.6931 / 200)
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


def test_exports_have_degrees_and_plane(run_json, tmp_path, capsys):
    file = tmp_path / "area.nc"
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", file)
    for name in ("t.csv", "t.json"):
        assert run_json("export", file, "--degrees", "-o", tmp_path / name)[0] == 0
        prove_export(tmp_path / name)
        capsys.readouterr()
    with (tmp_path / "t.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    plane = domain_of(md.load(file)).plane
    for row in rows[:: max(len(rows) // 50, 1)]:
        for who in ("secret", "report"):
            east, north = float(row[f"{who}_x"]), float(row[f"{who}_y"])
            azimuth = np.degrees(np.arctan2(east, north))
            lon, lat, _ = GEOD.fwd(plane.longitude, plane.latitude, azimuth, np.hypot(east, north))
            assert float(row[f"{who}_longitude"]) == pytest.approx(lon, abs=1e-9)
            assert float(row[f"{who}_latitude"]) == pytest.approx(lat, abs=1e-9)
    content = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert content["coordinates"] == "x, y, longitude, latitude"
    assert content["secret_points"][0] == [float(rows[0][f"secret_{a}"]) for a in ("x", "y", "longitude", "latitude")]


def test_levels_and_prior_come_from_rasters(run_json, tmp_path):
    map_ = tmp_path / "density.asc"
    rows = [" ".join(str(1 + k + j) for k in range(8)) for j in range(8)]
    map_.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(rows))
    file = tmp_path / "area.nc"
    levels = tmp_path / "levels.asc"
    nats = [" ".join(f"{4e-3 + 2e-4 * (k + j):.4f}" for k in range(8)) for j in range(8)]
    levels.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(nats))
    options = ["--prior", map_, "--levels-from", levels, "--gap", "0.01"]
    code, outcome = run_json("area", PARK, *USUAL[:2], *USUAL[6:], *options, "-o", file)
    assert (code, outcome["certified"]) == (0, True)
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
    plane = domain_of(mechanism).plane
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
    code, output = run_json("area", PARK, *(word for pair in options.items() for word in pair), "-o", tmp_path / "a.nc")
    assert (code, output["error"]["field"]) == (2, field)
    assert output["error"]["message"]
    assert list(tmp_path.iterdir()) == []


def test_area_with_too_many_cells_is_refused_early(run_json, tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1e5))
    code, output = run_json("area", PARK, "--cell", "100", *USUAL[2:], "-o", tmp_path / "a.nc")
    assert (code, output["error"]["kind"], output["error"]["field"]) == (2, "size", "cell")


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
        (100, 0.01, "euclidean", "optimal"),
        (121, 0.01, "euclidean", "planar-laplace"),
        (1600, 0.7, "eikonal", "optimal"),
        (1681, 0.7, "eikonal", "eikonal"),
        (225, 0.1, "eikonal", "optimal"),
        (256, 0.1, "eikonal", "eikonal"),
    ],
)
def test_the_rule_goes_by_cells_and_by_nats_between_neighbours(cells, nats, kind, program):
    choice = chosen_program(setting(cells, nats, kind))
    why = choice_words(choice)
    assert choice.program == program
    assert f"this area has {cells:,}" in why
    assert f"{nats:.2g} nats between neighbouring cells" in why


def test_choice_is_printed_with_the_other_loss(run, run_json, tmp_path):
    words = ["area", PARK, "--cell", "400", "--within", "400", "--factor", "4", "--positions", "cells"]
    code, outcome = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, outcome["program"], outcome["alternative"]) == (0, "optimal", "planar_laplace")
    other = run_json(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1]
    assert outcome["alternative_loss"] == pytest.approx(other["loss"], rel=REORDERED)
    assert outcome["alternative_position_loss"] == pytest.approx(other["position_loss"], rel=REORDERED)
    assert outcome["alternative_loss"] > outcome["loss"]
    assert "takes about a minute up to" in outcome["chosen"]
    assert other["chosen"] == "planar-laplace, as requested by --program"
    assert (other["alternative"], other["alternative_loss"]) == ("optimal", None)
    output = " ".join(run(*words, "-o", tmp_path / "c.nc")[1].split())
    assert "Protects cells of 400 m, not positions: between two people within 400 m" in output
    _, _, noise = output.partition(f"Method: {outcome['chosen']}. Planar Laplace noise ")
    off = float(re.match(r"has a mean error of ([\d.]+) m\.", noise)[1])
    assert 0 <= off / other["position_loss"] - 1 <= 1e-3  # four digits, rounded up


def test_noise_on_plane_says_that_border_is_ignored(run, tmp_path, monkeypatch):
    """Above 4,096 cells, here above 1, the loss of noise is a closed form, 2 / eps for the distance."""
    monkeypatch.setattr(area_report, "MAX_PAIR_CELLS", 1)
    words = " ".join(run("area", PARK, *USUAL, "-o", tmp_path / "a.nc")[1].split())
    output = "On the whole plane, without the border of the area, planar Laplace noise has a mean loss of "
    assert output in words
    loss = float(re.match(r"([\d.]+) m", words.partition(output)[2])[1])
    assert loss == pytest.approx(2 * 200 / 0.6931, rel=0.01)  # the level of the plane is a little lower


def test_varying_levels_accept_eikonal_weights(run, tmp_path):
    map_ = tmp_path / "density.asc"
    rows = [" ".join(f"{1e-4 * (36 + k + j):.4f}" for k in range(8)) for j in range(8)]
    map_.write_text("ncols 8\nnrows 8\nxllcorner -2000\nyllcorner -2000\ncellsize 500\n" + "\n".join(rows))
    options = ["--levels-from", map_, "--program", "eikonal"]
    code, output, notes = run("area", PARK, *USUAL[:2], *USUAL[6:], *options, "-o", tmp_path / "a.nc", "--json")
    outcome = json.loads(output)
    assert (code, outcome["program"], outcome["certified"]) == (0, "eikonal", True)
    assert "--prior-is" not in notes  # levels are not counts of people
    assert outcome["alternative_loss"] > outcome["loss"]


@pytest.mark.exhaustive
@needs("positions")
def test_cells_in_parts_have_a_design_between_positions(run_json, tmp_path):
    """No edge joins the parts of the park in cells of 600 m, and so no factor between cells is there to compare."""
    map_ = tmp_path / "map.asc"
    map_.write_text("ncols 3\nnrows 3\nxllcorner -9000\nyllcorner -9000\ncellsize 6000\n1 2 3\n4 5 6\n7 8 9\n")
    words = ["area", PARK, "--cell", "600", "--levels-from", map_, "--nats-per-cell", "9e3", "-o", tmp_path / "a.nc"]
    code, outcome = run_json(*words)
    assert (code, outcome["program"], outcome["certified"]) == (0, "positions", True)


def test_loss_of_cells_in_parts_is_unknown():
    parts = md.Domain.grid((1, 3), cell=1.0, unit="m", mask=np.array([[True, False, True]]))
    metric = md.Eikonal(level=md.PrivacyLevel.constant(1.0, "m"))
    problem = md.DesignProblem(parts, metric, md.priors.uniform(parts), md.losses.Distance())
    search = area_search.AreaSearch(
        statement=SimpleNamespace(problem=lambda: problem),
        program="auto",
        positions=None,
        limit=None,
        gap=1e-3,
        ends=math.inf,
        bound=None,
        on_note=print,
        on_progress=None,
    )
    assert search._cells_loss() is None


@pytest.mark.parametrize(
    "words",
    [
        ["--within", "400", "--factor", "4"],
        ["--epsilon", repr(math.log(2.0) / 200)],
    ],
)
def test_a_level_in_every_form(run_json, tmp_path, words):
    code, outcome = run_json(
        "area", PARK, "--cell", "400", *words, "--program", "planar-laplace", "-o", tmp_path / "a.nc"
    )
    assert (code, outcome["geodesic_epsilon"]) == (0, pytest.approx(math.log(2.0) / 200, rel=1e-12))


def test_a_box_of_degrees(run_json, tmp_path):
    words = ["--cell", "400", "--epsilon", "0.003", "--program", "planar-laplace"]
    code, outcome = run_json("area", "--box", "2.34,48.85,2.36,48.87", *words, "-o", tmp_path / "a.nc")
    assert (code, outcome["problem"], outcome["certified"]) == (0, "a", True)
    mechanism = md.load(tmp_path / "a.nc")
    plane = domain_of(mechanism).plane
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    assert 2.34 < lon.min() < lon.max() < 2.36
    assert 48.85 < lat.min() < lat.max() < 48.87


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
def test_invalid_boxes_are_refused(run_json, tmp_path, words, field):
    code, output = run_json("area", *words, "--cell", "400", "--epsilon", "0.003", "-o", tmp_path / "a.nc")
    assert (code, output["error"]["field"], list(tmp_path.iterdir())) == (2, field, [])


@pytest.mark.parametrize(
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
def test_invalid_levels_are_refused(run_json, tmp_path, words, field):
    code, output = run_json("area", PARK, "--cell", "400", *words, "-o", tmp_path / "a.nc")
    assert (code, output["error"]["field"], list(tmp_path.iterdir())) == (2, field, [])


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--lon", "2.348"], "at"),
        (["--lon", "2.348", "--lat", "48.86", "--secret", "1"], "at"),
        (["--lon", "3.348", "--lat", "48.86"], "lon, lat"),
        (["--lon", "2.348", "--lat", "98"], "lon, lat"),
    ],
)
def test_missing_places_are_refused(run_json, tmp_path, words, field):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    code, output = run_json("sample", tmp_path / "a.nc", *words)
    assert (code, output["error"]["field"]) == (2, field)


def test_files_without_a_plane_take_no_degrees(run_json, tmp_path):
    domain = md.Domain.grid((2, 2), cell=1.0, unit="m")
    metric = md.Euclidean(epsilon=1.0, unit="m")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    file = md.save(md.baselines.exponential(problem), tmp_path / "flat.nc")
    assert run_json("sample", file, "--lon", "0", "--lat", "0")[1]["error"]["field"] == "lon, lat"
    assert run_json("export", file, "--degrees", "-o", tmp_path / "t.csv")[1]["error"]["field"] == "degrees"
    assert not (tmp_path / "t.csv").exists()


def test_picture_has_axes_in_degrees(run_json, tmp_path):
    pytest.importorskip("matplotlib")
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    figure = md.plot.mechanism(md.load(tmp_path / "a.nc"))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude (degrees east)", "latitude (degrees north)")
    plane = domain_of(md.load(tmp_path / "a.nc")).plane
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
    code, output = run_json("sample", tmp_path / "a.nc", "--lon", lon, "--lat", lat)
    content = " ".join(str(output["error"][key]) for key in ("message", "value"))
    assert (code, output["error"]["field"]) == (2, "lon, lat")
    assert [word for word in words if word not in content] == []
    assert "unit: m" not in content


def test_nearest_place_in_degrees_is_nearest_on_ground(run_json, tmp_path):
    run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    mechanism = md.load(tmp_path / "a.nc")
    plane = domain_of(mechanism).plane
    lon, lat = plane.backward(points_of(mechanism, "secret"))
    output = run_json("sample", tmp_path / "a.nc", "--lon", 2.5, "--lat", 48.87)[1]["error"]["message"]
    away = GEOD.inv(np.full(len(lon), 2.5), np.full(len(lon), 48.87), lon, lat)[2]
    assert f"place {int(np.argmin(away))}, is at {lon[np.argmin(away)]:.4f}" in output


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
    words = ["area", PARK, "--cell", "400", "--people", people, "--people-per-disc", "600", "--radii", "300,2e3"]
    code, outcome = run_json(*words, "--program", "eikonal", "-o", file)
    assert (code, outcome["certified"], outcome["program"]) == (0, True, "eikonal")
    mechanism = md.load(file)
    domain = md.geo.read_area(PARK).grid(cell=400.0)
    density = md.geo.read_people(people, domain, margin=2000.0).density
    level = md.geo.elastic_level(density, people=600, least=300.0, most=2000.0)
    assert np.array_equal(points_of(mechanism, "secret"), domain.points)
    assert mechanism["level"].values == pytest.approx(level.at(domain.points), rel=1e-6)
    assert mechanism["prior"].values == pytest.approx(md.priors.from_density(density, domain))
    assert outcome["geodesic_epsilon"] == pytest.approx(level.at(domain.points).min(), rel=0.2)


def test_the_sentence_on_levels_from_people(run, tmp_path):
    options = ["--people", people_file(tmp_path), "--people-per-disc", "600", "--radii", "300,2e3"]
    words = ["area", "--box", "2.34,48.855,2.345,48.86", "--cell", "200", *options, "--factor", "4"]
    output = " ".join(run(*words, "--program", "planar-laplace", "-o", tmp_path / "b.nc")[1].split())
    assert (
        "Epsilon varies by place: 1.38629 nats over the radius of the disc that holds 600 people, a radius between 300"
        in output
    )


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--people", "100"], "people"),
        (["--levels-from", "people.csv"], "raster"),
        (["--levels-from", "map.asc", *FOLLOW], "people-per-disc"),
        ([*FOLLOW, "--within", "200"], "within"),
        ([*FOLLOW, "--epsilon", "0.01"], "epsilon"),
        ([*FOLLOW, "--factor", "1"], "factor"),
        ([*FOLLOW, "--radii", "500,100"], "least"),
        ([*FOLLOW, "--radii", "500,0"], "most"),
        ([*FOLLOW, "--radii", "1"], "radii"),
        (["--people", "nowhere.csv", "--people-per-disc", "100"], "people"),
    ],
)
def test_invalid_levels_from_people_are_refused(run_json, tmp_path, monkeypatch, words, field):
    people_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    level = ["--epsilon", "0.01"] if words == ["--people", "100"] else []
    code, output = run_json("area", PARK, "--cell", "400", *words, *level, "-o", tmp_path / "a.nc")
    assert (code, output["error"]["field"]) == (2, field)
    assert not (tmp_path / "a.nc").exists()


def test_many_cells_need_no_table(run_json, tmp_path, monkeypatch):
    """Factors of 1,681 cells and more are made where a table of them would be refused."""
    monkeypatch.setattr(area_design, "TABLES_IN_MEMORY", 10**9)
    options = ["--people-per-disc", "60", "--radii", "100,300"]
    words = ["area", PARK, "--cell", "25", "--people", people_file(tmp_path), *options, "-o", tmp_path / "a.nc"]
    code, output = run_json(*words, "--program", "optimal")
    assert (code, output["error"]["kind"]) == (2, "size")
    designed = []

    def stop(asked, problem, *rest):
        designed.append(problem)
        raise InputError("enough", field="test", value=None, remedy="none")

    monkeypatch.setattr("mechdesign.geo.area_search.AreaSearch._between_cells", stop)
    assert run_json(*words)[1]["error"]["field"] == "test"
    assert designed[0].domain.size > 1600


def test_other_suffixes_than_nc_are_refused(run_json, tmp_path):
    code, output = run_json("area", PARK, *USUAL, "-o", tmp_path / "a.csv")
    assert (code, output["error"]["field"]) == (2, "output")
    assert "mechdesign export" in output["error"]["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    few_by_default(
        [[], ["--positions", "cells"], ["--program", "eikonal"], ["--program", "optimal"]], [], ["--program", "eikonal"]
    ),
)
def test_every_route_gets_time_limit_and_progress(run_json, tmp_path, monkeypatch, options):
    given = []

    def stop(*_, **named):
        given.append(named)
        raise InputError("enough", field="test", value=None, remedy="none")

    monkeypatch.setattr(area_search, "solve", stop)
    levels = ["--people", people_file(tmp_path), "--people-per-disc", "2000"]
    words = ["area", PARK, "--cell", "400", *levels, *options, "--time-limit", "30"]
    assert run_json(*words, "-o", tmp_path / "a.nc")[1]["error"]["field"] == "test"
    assert given[0]["time_limit"] <= 30.0
    assert callable(given[0]["on_progress"])


def test_ctrl_c_in_the_bound_of_an_area_keeps_the_file(run_json, tmp_path, monkeypatch):
    def press_ctrl_c(*given, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(optimal_bound, "ENTRIES", 0)
    monkeypatch.setattr(optimal_bound, "homogeneous_bound", press_ctrl_c)
    file = tmp_path / "area.nc"
    code, outcome = run_json("area", PARK, *USUAL, "--program", "eikonal", "-o", file)
    assert (code, outcome["certified"], outcome["stopped"]) == (0, True, "interrupt")
    assert md.verify(md.load(file)).certified


def test_an_area_without_its_bound(run, run_json, tmp_path):
    file = tmp_path / "area.nc"
    _, outcome = run_json("area", PARK, *USUAL, "--program", "eikonal", "--no-bound", "-o", file)
    assert outcome["lower_bound"] is None
    assert "lower_bound" not in md.load(file).attrs
    code, _, error = run("area", PARK, *USUAL, "--program", "optimal", "--no-bound", "-o", tmp_path / "b.nc")
    assert code == 2
    assert "always computes its bound" in error


def test_oversized_comparison_keeps_the_file(run, tmp_path):
    """A level so low that planar Laplace noise would need a table of 10^7 GB."""
    file = tmp_path / "area.nc"
    words = ["--cell", "400", "--within", "400", "--factor", "1.000001", "--positions", "cells"]
    code, out, error = run("area", PARK, *words, "-o", file)
    assert code == 0
    assert "planar Laplace noise is left out: " in " ".join(error.split())
    assert "Planar Laplace noise" not in out
    assert md.verify(md.load(file)).certified


@pytest.mark.parametrize("failure", [MemoryError(), OverflowError("too large"), SizeError("does not fit")])
@pytest.mark.parametrize("figure", ["remapped_loss", "position_loss", "within_cell_error"])
def test_failing_figure_keeps_the_file(figure, failure, run_json, tmp_path, monkeypatch):
    def failing(*given, **options):
        raise failure

    monkeypatch.setattr(summary, figure, failing)
    file = tmp_path / "area.nc"
    code, outcome = run_json("area", PARK, *USUAL, "--program", "planar-laplace", "-o", file)
    assert (code, outcome[figure]) == (0, None)
    assert md.verify(md.load(file)).certified
