"""`mechdesign area` between any two positions: when it is chosen, its cost, and the claim on the ground."""

from __future__ import annotations

import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.areas import PARK, domain_of, points_of
from fixtures.export_mechanisms import prove_export
from fixtures.position_mechanisms import spline_weights
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.geo import area_problem, choose, plane_level
from mechdesign.geo.as_good_as_noise import _operations, cell_as_good_as_noise
from mechdesign.geo.choice_words import reason_words
from mechdesign.geo.choose import cells_reason, check_pairs, column_parts, cone_parts, positions_method, too_costly
from mechdesign.positions import Positions
from mechdesign.positions.solve import operations

pyproj = pytest.importorskip("pyproj")
pytest.importorskip("shapely")

GEOD = pyproj.Geod(ellps="WGS84")
BOX = ["--box", "12.480,41.890,12.500,41.905"]
GENTLE = ["--cell", "400", "--within", "2000", "--factor", "2", "--gap", "0.05"]  # 0.14 nats along a cell
RIVER = [[12.47, 41.88235], [12.4819, 41.88235], [12.4819, 41.8833], [12.47, 41.8833], [12.47, 41.88235]]
BANKS = ["--box", "12.475,41.880,12.4825,41.8855", "--cell", "80", "--within", "200", "--factor", "2", "--gap", "0.05"]
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


@needs("positions")
def test_positions_are_the_default_where_they_cost_little(run_json, tmp_path):
    """And not against it; a position draws for itself, in degrees and in metres alike."""
    file, cells = tmp_path / "any.nc", tmp_path / "cells.nc"
    code, outcome = run_json("area", *BOX, *GENTLE, "--no-bound", "-o", file)
    assert (code, outcome["program"], outcome["certified"]) == (0, "positions", True)
    assert outcome["position_claim"] == md.load(file).attrs["position_claim"]
    assert outcome["lower_bound"] <= outcome["position_loss"]
    checked = run_json("verify", file)[1]
    assert checked["certified"]
    assert checked["position_breaches"] == 0
    _, other = run_json("area", *BOX, *GENTLE, "--positions", "cells", "-o", cells)
    assert (other["program"], other["position_claim"]) == ("optimal", None)
    assert other["position_loss"] > other["loss"]
    east, north = points_of(md.load(file), "secret")[3] + [190.0, -190.0]
    plane = domain_of(md.load(file)).plane
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
def test_infeasible_positions_are_refused(run_json, tmp_path, options, field):
    code, content = run_json("area", PARK, *GENTLE, *options, "-o", tmp_path / "a.nc")
    assert code == 2
    assert content["error"]["field"] == field
    assert list(tmp_path.iterdir()) == []


def positions_program(shape, nats, *, prior=None, mask=None):
    """The program between any two positions of cells of 200 m, with so many nats along a cell."""
    plane = md.geo.Plane(latitude=41.9, longitude=12.5)
    domain = md.Domain.grid(shape, cell=200.0, unit="m", plane=plane, mask=mask)
    return Positions(problem=area_problem(domain, epsilon=nats / 200, positions=True))


@pytest.mark.parametrize(
    ("shape", "method"),
    few_by_default(
        [((10, 10), "cones"), ((25, 23), "cones"), ((30, 30), "cones"), ((40, 30), "columns"), ((60, 40), "columns")],
        ((10, 10), "cones"),
        ((40, 30), "columns"),
    ),
)
def test_the_rule_of_methods_goes_by_operations(shape, method):
    assert positions_method(positions_program(shape, 0.7), explicit=False) == method


def test_an_area_without_symmetry_takes_columns_earlier():
    mask = np.ones((25, 23), bool)
    mask[3, 5:7] = False
    assert positions_method(positions_program((25, 23), 0.7, mask=mask), explicit=False) == "columns"


def test_too_many_cells_for_positions_are_refused_early():
    """Sizes by arithmetic alone: no table, no cost."""
    program = positions_program((200, 190), 0.7)
    with pytest.raises(md.errors.SizeError, match=r"38,000 cells are too many .*cell=4\d\d makes fewer"):
        positions_method(program, explicit=False)
    assert "cost" not in vars(program)


@needs("positions")
@pytest.mark.parametrize(
    ("size", "loss", "varies", "program", "why"),
    [
        (400, "distance", False, "auto", None),
        (9999, "squared", False, "auto", None),
        (9999, "squared", False, "optimal", None),
        (250, "distance", True, "auto", None),
        (400, "zero-one", False, "auto", "the zero-one loss depends only on the cell"),
        (400, "distance", False, "eikonal", "program='eikonal' protects only cells"),
        (9216, "distance", True, "auto", ".*limited to 250 cells, got 9,216 .*cell=1300"),
    ],
)
def test_why_cells_are_protected_instead(size, loss, varies, program, why):
    result = cells_reason(SimpleNamespace(size=size, spacing=200.0), loss, varies=varies, program=program)
    assert result is None if why is None else re.match(why, reason_words(result))


def test_positions_are_dropped_where_they_cost_too_much():
    assert too_costly(1499.0, 1000.0, "m") is None
    assert too_costly(None, 1000.0, "m") is None
    assert "1,501 m of error instead of 1,000 m" in reason_words(too_costly(1501.0, 1000.0, "m"))


def test_too_many_pairs_are_refused_with_a_cell_size():
    check_pairs(SimpleNamespace(size=4096, spacing=500.0))
    with pytest.raises(md.errors.SizeError, match=r"7,260 cells have 26,353,800 pairs .*some 10 minutes") as error:
        check_pairs(SimpleNamespace(size=7260, spacing=500.0))
    assert "cell=680 makes fewer" in error.value.message


def probabilities_at(mechanism, places):
    """P(y|x) (b, m) at positions (b, 2) of a mechanism between positions, by the weights that are drawn with."""
    claim = md.Sampler(mechanism).certificate
    cells, points = claim.positions.snap(claim.domain, places)
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


@pytest.fixture
def river(tmp_path):
    file = tmp_path / "river.geojson"
    file.write_text(json.dumps({"type": "Polygon", "coordinates": [RIVER]}))
    return file


@pytest.mark.study
@needs("positions", "web")
def test_a_river_between_two_people_does_not_raise_their_odds(run, run_json, river, tmp_path):
    """Straight lines by default, beside random positions on both banks; along paths inside the factor is far larger,
    and said. The whole way to reports in degrees, tables for others and pages.
    """
    straight, inside = tmp_path / "straight.nc", tmp_path / "inside.nc"
    code, outcome = run_json("area", *BANKS, "--forbidden", river, "-o", straight)
    assert (code, outcome["positions"], outcome["positions_reason"], outcome["certified"]) == (0, "any", None, True)
    mechanism = md.load(straight)
    dry = mechanism["prior"].values > 0
    assert outcome["reports"] == dry.sum() < outcome["secrets"] == dry.size
    assert np.array_equal(points_of(mechanism, "report"), points_of(mechanism, "secret")[dry])
    assert 1.8 < largest_odds(mechanism, 200.0) <= outcome["factor_within"] < 2.001
    assert run_json("verify", straight)[1]["lower_bound_checked"] is True
    code, walked = run_json("area", *BANKS, "--forbidden", river, "--positions", "inside", "-o", inside)
    assert (code, walked["secrets"]) == (0, dry.sum())
    assert 3 < largest_odds(md.load(inside), 200.0) <= walked["factor_within"]
    assert walked["position_loss"] < outcome["position_loss"]
    drawn = run_json("sample", straight, "--lon", 12.478, "--lat", 41.8828, "-n", 50, "--seed", 3)[1]
    wet = md.geo.read_area(river).contains(np.array(drawn["report_longitude"]), np.array(drawn["report_latitude"]))
    assert not wet.any()
    assert run_json("export", straight, "--degrees", "-o", tmp_path / "t.csv")[0] == 0
    assert run("export", straight, "-o", tmp_path / "p.html")[0] == 0
    assert run("export", straight, "-o", tmp_path / "web")[0] == 0


def test_a_ragged_area_is_drawn_within_its_rectangle(run_json, river, tmp_path):
    pytest.importorskip("matplotlib")
    coarser = ["160" if word == "80" else word for word in BANKS]
    words = ["area", *coarser, "--forbidden", river, "--no-bound", "-o", tmp_path / "a.nc"]
    assert run_json(*words)[0] == 0
    figure = md.plot.mechanism(md.load(tmp_path / "a.nc"))
    figure.draw_without_rendering()
    assert any("true place" in text.get_text() for text in figure.findobj(lambda part: hasattr(part, "get_text")))


@needs("positions")
def test_cells_wider_than_their_radius_are_refused(run_json, tmp_path):
    words = ["area", "--box", "36.75,-1.35,36.90,-1.22", "--cell", "2000", "--within", "200", "--factor", "2"]
    for options, why in (
        (["--positions", "cells"], "is wider than"),
        (["--loss", "zero-one"], "zero-one loss depends"),
    ):
        code, output = run_json(*words, *options, "-o", tmp_path / "a.nc")
        assert (code, output["error"]["field"]) == (2, "cell")
        assert why in output["error"]["message"]
        assert "--cell 200 or less" in output["error"]["message"]
    assert list(tmp_path.iterdir()) == []


@needs("positions")
def test_better_noise_stands_in_the_first_sentence():
    """At 28 nats a cell noise stays in its cell, and no spline does."""
    area = md.geo.Area.box(12.48, 41.89, 12.487, 41.895)
    report = md.geo.design(area, 300.0, within=300.0, factor=1e12, bound=False, gap=0.05).report
    check_noise(report, is_better=True)
    assert "No cell size near this one promises a design as good." in report.sentences()


def check_noise(report, *, is_better):
    """Noise at the position, its figure and its proof are stated, in the first sentence if it is better."""
    outcome, output = report.to_json(), report.sentences()
    noise = outcome["alternative_position_loss"]
    assert (outcome["alternative"], outcome["alternative_positions"]) == ("planar_laplace", "any")
    assert outcome["alternative_loss"] is None
    assert (noise < outcome["position_loss"]) == is_better
    proof = "That noise protects any two positions too, in real arithmetic; it is not proved here."
    assert output.startswith("Plain noise is better than this design. Planar Laplace noise drawn") == is_better
    assert output.count(proof) == 1
    stated = float(re.search(r"moved to the nearest cell has a mean error of ([\d.]+) m", output)[1])
    assert 0 <= stated / noise - 1 < 1e-3  # four digits, rounded up


@needs("positions")
@pytest.mark.usefixtures("near_noise")
def test_certified_noise_replaces_a_worse_design(monkeypatch):
    """One row a cell of 1.9 nats is far above noise at the position; noise on 5 x 5 squares a cell is not."""
    monkeypatch.setattr(choose, "MAX_CONE_OPERATIONS", 1e6)
    monkeypatch.setattr(choose, "MAX_COLUMN_ROWS", 9)
    area = md.geo.Area.box(12.48, 41.89, 12.4925, 41.8995)
    made = md.geo.design(area, 550.0, within=200.0, factor=2.0, bound=False, gap=0.02)
    outcome = made.report.to_json()
    assert (outcome["parts"], outcome["chosen"]) == (
        5,
        "noise certified for any two positions, with 5 x 5 rows a cell",
    )
    assert made.verification.certified
    assert 1 < outcome["position_loss"] / outcome["alternative_position_loss"] < 1.01
    assert made.report.sentences().startswith("Plain noise is better than this design.")
    assert "This design is noise too, certified." in made.report.sentences()
    monkeypatch.setattr(choose, "MAX_NOISE_MASSES", 100.0)
    kept = md.geo.design(area, 550.0, within=200.0, factor=2.0, bound=False, gap=0.02).report.to_json()
    assert kept["parts"] == 1
    assert kept["position_loss"] > 1.01 * outcome["position_loss"]


@needs("positions")
def test_why_cells_are_protected_stands_in_the_first_line(run, run_json, tmp_path):
    words = ["area", "--box", "2.34,48.855,2.345,48.86", "--cell", "200", "--within", "400", "--factor", "2"]
    words += ["--program", "planar-laplace"]
    assert (
        run_json(*words, "-o", tmp_path / "a.nc")[1]["positions_reason"]
        == "--program planar-laplace protects only cells"
    )
    output = run(*words, "-o", tmp_path / "b.nc")[1]
    assert " ".join(output.split()).startswith(
        "Protects cells of 200 m, not positions, because --program planar-laplace"
    )
    assert run_json(*words, "--positions", "cells", "-o", tmp_path / "c.nc")[1]["positions_reason"] is None


def area_of_cells(cell, shape=(5, 4), *, mask=None):
    """Cells of so many metres on the plane of Rome."""
    plane = md.geo.Plane(latitude=41.9, longitude=12.5)
    return md.Domain.grid(shape, cell=float(cell), unit="m", plane=plane, mask=mask)


@pytest.mark.parametrize(("cell", "parts"), [(173, 1), (174, 2), (347, 3), (692, 4), (865, 5), (9000, 7)])
def test_rows_are_at_most_six_tenths_wide(cell, parts):
    """Ln 2 / 200 m; the numbers of squares along a cell are tried from the finest down."""
    problem = area_problem(area_of_cells(cell), epsilon=math.log(2) / 200, positions=True)
    assert cone_parts(problem) == list(range(parts, 0, -1))


@pytest.mark.parametrize(
    ("shape", "cones", "columns"),
    [((17, 16), 2, None), ((17, 16), 1, 3), ((40, 40), 1, None), ((30, 30), None, 2), ((17, 16), None, 3)],
)
def test_columns_have_finer_rows_than_cones(shape, cones, columns):
    """1.04 nats along a cell: rows at 0.4 nats, or as fine as 4,000 rows allow if cones are too wide."""
    problem = area_problem(area_of_cells(300, shape), epsilon=math.log(2) / 200, positions=True)
    assert column_parts(problem, cones) == columns


@pytest.mark.parametrize("parts", [2, 3])
def test_rows_finer_than_reports_keep_prior_and_reports(parts):
    """A cell without people that is not reported: its squares have no prior, and reports are those of the cells."""
    mask = np.ones((4, 3), bool)
    mask[1, 2] = False
    domain = area_of_cells(400, (4, 3), mask=mask)
    cells, rows = (area_problem(domain, epsilon=0.003, positions=True, parts=k) for k in (1, parts))
    assert np.allclose(rows.reports.points, cells.reports.points)
    assert (cells.domain.size, rows.domain.size) == (12, 12 * parts**2)
    coarse = rows.prior_array.reshape(4, parts, 3, parts).sum(axis=(1, 3))
    assert np.allclose(coarse, cells.prior_array.reshape(4, 3))
    within = area_problem(domain, epsilon=0.003, positions=True, paths="inside", parts=parts)
    assert (within.domain.size, within.reports.size) == (11 * parts**2, 11)
    with pytest.raises(md.errors.InputError, match="parts"):
        area_problem(domain, epsilon=0.003, positions=True, parts=0)


def test_prior_is_as_fine_as_rows():
    """A raster of pixels of 100 m: people of a cell live where it has them, and cells keep their people."""
    domain = area_of_cells(400, (4, 3))
    pixels = np.random.default_rng(6).random((16, 12)) * (np.arange(16)[:, None] % 4 < 3)
    centres = [100.0 * (np.arange(count) + 0.5) for count in pixels.shape]
    density = md.Raster(x=centres[0], y=centres[1], values=pixels, unit="m", counts=True)
    cells, rows = (area_problem(domain, epsilon=0.003, positions=True, density=density, parts=k) for k in (1, 4))
    assert np.allclose(rows.prior_array.reshape(16, 12), pixels / pixels.sum())
    assert np.allclose(cells.prior_array.reshape(4, 3), pixels.reshape(4, 4, 3, 4).sum(axis=(1, 3)) / pixels.sum())
    cropped = area_problem(
        area_of_cells(400, (4, 3), mask=np.arange(12).reshape(4, 3) != 5),
        epsilon=0.003,
        positions=True,
        density=density,
        parts=4,
    )
    kept = np.kron(np.arange(12).reshape(4, 3) != 5, np.ones((4, 4))) * pixels
    assert np.allclose(cropped.prior_array.reshape(16, 12), kept / kept.sum())


@needs("positions")
def test_people_live_in_the_squares_of_their_points(tmp_path):
    """Two groups at opposite corners of cells of 500 m draw with their own rows."""
    plane = md.geo.Area.box(12.480, 41.890, 12.500, 41.905).plane()
    domain = md.geo.Area.box(12.480, 41.890, 12.500, 41.905).grid(500.0, plane=plane)
    corners = np.asarray(domain.origin) + np.array([[80.0, 80.0], [1920.0, 1900.0]])
    longitude, latitude = plane.backward(corners)
    lines = [f"{north:.6f},{east:.6f},100" for east, north in zip(longitude, latitude, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["latitude,longitude,population", *lines]) + "\n")
    made = md.geo.design(
        md.geo.Area.box(12.480, 41.890, 12.500, 41.905),
        500.0,
        within=200.0,
        factor=2.0,
        people=tmp_path / "people.csv",
        bound=False,
        gap=0.05,
    )
    rows, parts = made.problem, made.choice.parts
    assert parts == 3
    check_noise(made.report, is_better=False)
    assert made.verification.certified
    inside = rows.prior_array.reshape(4, 3, 4, 3).sum(axis=(0, 2))
    assert inside.max() > 1.02 * inside.min()  # not spread evenly within cells


@needs("positions")
def test_levels_that_vary_have_finer_rows():
    """The gradient at random positions against the level there, by differences of probabilities."""
    at = np.linspace(-3000, 3000, 13)
    values = 0.002 + 0.0012 * np.sin(at / 900)[:, None] * np.cos(at / 800)[None, :]
    level = md.PrivacyLevel(raster=md.Raster(x=at, y=at, values=values, unit="m"))
    made = md.geo.design(md.geo.Area.box(12.480, 41.890, 12.492, 41.903), 500.0, levels=level, gap=0.02, bound=False)
    assert (made.choice.method, made.choice.parts) == ("cones", 3)
    assert md.verify(made.mechanism).lower_bound_checked
    domain, rng = domain_of(made.mechanism), np.random.default_rng(2)
    here = np.asarray(domain.origin) + rng.random((4000, 2)) * (np.asarray(domain.shape) * domain.cell[0] - 4) + 2
    turn = rng.uniform(0, 2 * np.pi, len(here))
    step = np.column_stack([np.cos(turn), np.sin(turn)])
    first, second = (probabilities_at(made.mechanism, here + far * step) for far in (-1.0, 1.0))
    slope = np.abs(np.log(first / second)).max(axis=1) / 2
    assert (slope <= level.at(here) * 1.005).all()  # positions are rounded to 3 mm of 2 m
    assert (slope > 0.9 * level.at(here)).any()


@pytest.mark.parametrize(("shape", "parts"), [((9, 8), 2), ((8, 8), 2), ((13, 12), 1)])
def test_estimated_operations_are_those_of_the_program(shape, parts):
    program = Positions(area_problem(area_of_cells(300, shape), epsilon=0.003, positions=True, parts=parts))
    assert _operations(list(shape), parts, True) == pytest.approx(operations(program, "cones"), rel=0.25)


def test_the_named_cell_has_rows_narrow_enough():
    """Rome at 300 m with one row a cell, which noise beats by 0.9 %; and a design that no cell would save."""
    problem = area_problem(area_of_cells(300, (17, 16)), epsilon=math.log(2) / 200, positions=True)
    given = {"parts": 1, "method": "cones", "noise": 540.1}
    assert cell_as_good_as_noise(problem, loss=544.9, **given) == 330.0
    assert cell_as_good_as_noise(problem, loss=600.0, **given) is None
    # By (1) the best mechanism has 517 m: nothing is as good as noise of less, and rows of any cell lie above it.
    for noise, named in ((530.0, 330.0), (516.0, None)):
        assert cell_as_good_as_noise(problem, loss=544.9, **given | {"noise": noise}) == named
    steep = area_problem(area_of_cells(300, (3, 3)), epsilon=0.09, positions=True)
    assert cell_as_good_as_noise(steep, parts=7, method="cones", loss=120.0, noise=116.6) is None


@needs("positions", "pictures")
def test_coarse_cells_have_finer_rows(run, run_json, tmp_path):
    """Better than noise where one row a cell is worse; true cells have a probability, and reports degrees."""
    pytest.importorskip("matplotlib")
    words = ["area", "--box", "12.480,41.890,12.498,41.903", "--cell", "500", "--within", "200", "--factor", "2"]
    words += ["--gap", "0.05"]
    code, outcome = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, outcome["certified"], outcome["reports"], outcome["secrets"]) == (0, True, 9, 81)
    assert outcome["parts"] == 3
    assert outcome["position_loss"] < outcome["alternative_position_loss"]
    assert 0 < outcome["any_lower_bound"] < outcome["position_loss"]
    assert outcome["any_gap"] < 0.08
    mechanism = md.load(tmp_path / "a.nc")
    coarse = area_problem(domain_of_cells(mechanism), epsilon=math.log(2) / 200, positions=True)
    one = md.solve(Positions(coarse), bound=False, gap=0.02)
    assert one.attrs["objective"] > outcome["alternative_position_loss"]
    assert largest_odds(mechanism, 200.0) <= outcome["factor_within"] < 2.001
    figure = md.plot.mechanism(mechanism)
    titles = " ".join(text.get_text() for text in figure.findobj(lambda part: hasattr(part, "get_text")))
    assert re.search(r"true place [1-9]", titles)
    assert "3 x 3 cells, 3 x 3 rows a cell" in titles
    assert run_json("export", tmp_path / "a.nc", "--degrees", "-o", tmp_path / "t.csv")[0] == 0


def domain_of_cells(mechanism):
    """The 3 x 3 cells of 500 m whose rows are 3 x 3 squares."""
    domain = domain_of(mechanism)
    return md.Domain.grid((3, 3), cell=500.0, unit="m", origin=domain.origin, plane=domain.plane)


@needs("positions")
def test_small_box_prints_a_warning(run, run_json, tmp_path):
    """Against the mean distance to the middle of a rectangle, by random positions; the advice has the stated effect."""
    box = ["area", "--box", "139.70,35.65,139.78,35.71", "--cell", "1200", "--within", "1000", "--gap", "0.05"]
    box.append("--no-bound")
    code, output, _ = run(*box, "--factor", "1.5", "-o", tmp_path / "a.nc")
    result = re.search(r"the same place: a mean error of ([\d,]+) m instead of ([\d,]+) m", " ".join(output.split()))
    loss, constant = (float(word.replace(",", "")) for word in result.groups())
    assert code == 0
    assert 0.6 * constant < loss < constant
    domain = domain_of(md.load(tmp_path / "a.nc"))
    sides = np.asarray(domain.shape) * 1200.0
    far = np.hypot(*((np.random.default_rng(1).random((20_000, 2)) - 0.5) * sides).T).mean()
    assert constant == pytest.approx(far, rel=0.02)
    factor = re.search(r"or with --factor ([\d.]+)", " ".join(output.split())).group(1)
    better = run_json(*box, "--factor", factor, "-o", tmp_path / "b.nc")[1]
    assert 0.4 < better["position_loss"] / better["constant_position_loss"] < 0.6


@pytest.mark.parametrize(
    "words",
    [
        ["--cell", "400", "--epsilon", "0.004", "--positions", "cells"],
        pytest.param(GENTLE, marks=pytest.mark.exhaustive, id="positions"),
    ],
)
def test_busy_machine_makes_the_same_file(run_json, tmp_path, monkeypatch, words):
    """A clock on which every look takes a quarter of an hour changes nothing: no default effort is counted in time."""
    assert run_json("area", *BOX, *words, "-o", tmp_path / "a.nc")[0] == 0
    clock = itertools.count(10**6, 900)
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    (tmp_path / "again").mkdir()  # of the same name, which a design is called by
    assert run_json("area", *BOX, *words, "-o", tmp_path / "again" / "a.nc")[0] == 0
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "again" / "a.nc").read_bytes()


def wide_area():
    """Cells of 60 km about a place in the north, where the plane is longer than the ground by up to 0.1 %."""
    plane = md.geo.Plane(latitude=52.0, longitude=10.0)
    return md.Domain.grid((7, 7), cell=60_000.0, unit="m", origin=(-210_000.0, -210_000.0), plane=plane)


def test_position_level_holds_for_geodesic_distances():
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


def test_draws_satisfy_the_claim_on_the_ground():
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


@pytest.mark.study
@pytest.mark.parametrize("city", CITIES)
def test_city_from_box_to_reports_and_proofs(run, run_json, tmp_path, city):
    words, file = ["area", *CITIES[city], "--gap", "0.01"], tmp_path / "city.nc"
    if "shores" in city:
        strait = [[28.975, 40.99], [29.0, 41.0], [29.03, 41.05], [29.01, 41.05], [28.985, 41.015], [28.975, 40.99]]
        (tmp_path / "water.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [strait]}))
        words += ["--forbidden", tmp_path / "water.geojson"]
    code, outcome = run_json(*words, "-o", file)
    assert (code, outcome["positions"], outcome["certified"]) == (0, "any", True)
    checked = run_json("verify", file)[1]
    assert checked["certified"]
    assert checked["lower_bound_checked"]
    mechanism = md.load(file)
    assert largest_odds(mechanism, outcome["within"]) <= outcome["factor_within"]
    plane = domain_of(mechanism).plane
    lon, lat = (at[0] for at in plane.backward(points_of(mechanism, "secret")[7:8] + 31.0))
    drawn = run_json("sample", file, "--lon", lon, "--lat", lat, "-n", 400, "--seed", 1)[1]
    away = GEOD.inv(np.full(400, lon), np.full(400, lat), drawn["report_longitude"], drawn["report_latitude"])[2]
    assert np.mean(away) < 3 * outcome["position_loss"]
    assert run_json("export", file, "--degrees", "-o", tmp_path / "t.csv")[0] == 0
    prove_export(tmp_path / "t.csv")
    assert run("export", file, "-o", tmp_path / "p.html")[0] == 0
    assert run("export", file, "-o", tmp_path / "web")[0] == 0
