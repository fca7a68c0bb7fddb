"""Pictures of answers and of places on Earth, lines drawn over maps, scale bars, and the axes of a sweep."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from fixtures.areas import domain_of
from fixtures.problems import CASES, SMALL
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import sweep
from mechdesign.errors import FileFormatError, InputError
from mechdesign.pictures.canvas import GREEN, bar_length
from mechdesign.plot import sweep as plot_sweep

RIVER = [[2.336, 48.859], [2.344, 48.8605], [2.35, 48.858]]


def geojson(path, *geometries):
    features = [{"type": "Feature", "properties": {}, "geometry": geometry} for geometry in geometries]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def area():
    pytest.importorskip("pyproj")
    domain = md.geo.Area.box(2.33, 48.85, 2.36, 48.87).grid(500.0)
    return md.baselines.planar_laplace(md.geo.area_problem(domain, epsilon=0.002, name="box"))


def lines_of(axes, colour="#1b4f72"):
    return [line.get_xydata() for line in axes.lines if line.get_color() == colour]


def test_lines_of_a_file_lie_where_they_are_on_earth(area, tmp_path):
    over = geojson(
        tmp_path / "over.geojson",
        {"type": "LineString", "coordinates": RIVER},
        {"type": "Polygon", "coordinates": [[*RIVER, RIVER[0]]]},
        {"type": "Point", "coordinates": [2.34, 48.86]},
        {"type": "LineString", "coordinates": [[-70.0, -30.0], [-71.0, -31.0]]},
        None,
    )
    figure = md.plot.mechanism(area, over=over)
    expected = domain_of(area).plane.forward(*np.array(RIVER).T)
    maps = [axes for axes in figure.axes if axes.images]
    assert len(maps) == 4
    for axes in maps:
        line, ring = lines_of(axes)  # what is on another continent is left out
        assert np.allclose(line, expected)
        assert np.allclose(ring[:3], expected)
        assert axes.get_xlim() == tuple(axes.images[0].get_extent()[:2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('{"type": "Point", "coordinates": [2, 48]}', "holds no lines"),
        ('{"type": "LineString", "coordinates": [[2, 48]]}', "LineString that is not valid"),
        ('{"type": "LineString", "coordinates": [[2, 48], [2, 98]]}', "latitudes within 90 degrees"),
        ('{"type": "LineString", "coordinates": [[2, 48], [NaN, 48]]}', "cannot be read"),
        ('{"type": "LineString", "coordinates": 7}', "coordinates in lists"),
        ('{"type": "Sphere"}', "type 'Sphere'"),
        ("[" * 5000 + "]" * 5000, "cannot be read"),
        ('{"type": "LineString", "coordinates": [[2, 48], [3, 48]], "crs": "EPSG:3857"}', "coordinate system"),
    ],
)
def test_invalid_files_of_lines(area, tmp_path, text, message):
    (tmp_path / "bad.geojson").write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message) as caught:
        md.plot.save(area, tmp_path / "map.png", over=tmp_path / "bad.geojson")
    assert caught.value.field == "over"
    assert not (tmp_path / "map.png").exists()


def test_lines_need_a_place_on_earth(tmp_path):
    over = geojson(tmp_path / "over.geojson", {"type": "LineString", "coordinates": RIVER})
    for drawn in (md.baselines.exponential(CASES["euclidean lattice"]()), sweep(CASES["discrete"](), [1.0])):
        with pytest.raises(InputError) as caught:
            md.plot.save(drawn, tmp_path / "map.png", over=over)
        assert caught.value.field == "over"


@pytest.mark.parametrize(
    ("width", "length"),
    [(3.0, 1.0), (2999.0, 500.0), (3000.0, 1000.0), (5800.0, 1000.0), (6000.0, 2000.0), (17.0, 5.0)],
)
def test_a_scale_bar_is_a_round_length_of_at_most_a_third(width, length):
    assert bar_length(width) == pytest.approx(length)


def test_maps_in_a_unit_of_length_have_a_scale_bar(area):
    level = md.plot.mechanism(area).axes[0]
    (bar,) = [line for line in level.lines if line.get_gid() == "scale bar"]
    assert np.ptp(bar.get_xdata()) == pytest.approx(500.0)
    assert any(text.get_text() == "500 m" for text in level.texts)
    assert not md.plot.mechanism(md.baselines.exponential(CASES["euclidean lattice"]())).axes[0].texts


def test_a_query_is_drawn_answer_by_answer():
    problem = SMALL["query"]()
    mechanism = md.solve(md.Optimal(problem=problem))
    table = md.probabilities(mechanism).values
    likeliest, expected, *answers = md.plot.mechanism(mechanism).axes
    shape = problem.domain.shape
    assert np.array_equal(likeliest.images[0].get_array().T, table.argmax(axis=1).reshape(shape))
    losses = (table * problem.loss_matrix).sum(axis=1)
    assert np.allclose(expected.images[0].get_array().T, losses.reshape(shape))
    reported = problem.prior_array @ table
    assert len(answers) == min(4, table.shape[1])
    for axes, y in zip(answers, np.argsort(-reported, kind="stable"), strict=False):
        assert np.allclose(axes.images[0].get_array().T, table[:, y].reshape(shape))
        assert axes.get_title(loc="left").startswith(f"probability of answer {y} by place")
    bars = md.plot.mechanism(mechanism, [1, 2]).axes[2:]
    for axes, u in zip(bars, (1, 2), strict=True):
        assert [patch.get_height() for patch in axes.patches] == pytest.approx(table[u].tolist())


def test_a_release_is_drawn_as_an_image_and_rows():
    problem = md.load_problem("income", cells=12, outputs=9)
    mechanism = md.baselines.exponential(problem)
    table = md.probabilities(mechanism).values
    above, below = md.plot.mechanism(mechanism, [2, 7]).axes[:2]
    assert np.allclose(above.collections[0].get_array(), table.T)
    assert [line.get_ydata().tolist() for line in below.lines] == [table[2].tolist(), table[7].tolist()]
    assert above.get_xlabel() == "true number (USD)"
    usual = md.plot.mechanism(mechanism).axes[1].lines
    assert "where the loss is largest" in " ".join(line.get_label() for line in usual)
    with pytest.raises(InputError) as caught:
        md.plot.mechanism(mechanism, [12])
    assert caught.value.field == "secret"


@pytest.mark.parametrize("case", few_by_default(["euclidean lattice", "discrete", "eikonal, masked"], "discrete"))
def test_a_sweep_has_its_levels_in_nats_above(case):
    problem = CASES[case]()
    (above, _) = figure_axes = plot_sweep(sweep(problem, [0.5, 1.0])).axes
    (nats,) = above.child_axes
    level = problem.metric.stated_level(problem.domain.unit)
    level = problem.metric.smallest_level if level is None else level[0]
    above.figure.draw_without_rendering()
    assert np.allclose(nats.get_xlim(), np.array(figure_axes[1].get_xlim()) * level)
    assert nats.get_xlabel().startswith("eps ")


def test_a_graph_has_no_level_above():
    assert not plot_sweep(sweep(CASES["graph, table loss"](), [1.0])).axes[0].child_axes


def test_baseline_beyond_the_axis_has_an_arrow():
    curve = sweep(CASES["euclidean lattice"](), [0.5, 1.0, 2.0])
    gone = curve.assign(exponential_effective_scale=("scale", [0.01, 0.05, 1.0]))
    assert not arrows(curve.assign(exponential_effective_scale=("scale", curve["scale"].values)))
    (arrow,) = arrows(gone)
    axes = plot_sweep(gone).axes[0]
    (x, y), low = arrow, axes.get_xlim()[0]
    assert x == pytest.approx(low)
    levels, losses = gone["exponential_effective_scale"].values, gone["exponential_loss"].values
    inside = int(np.flatnonzero(levels >= low)[0])
    share = math.log(low / levels[inside - 1]) / math.log(levels[inside] / levels[inside - 1])
    between = math.log(losses[inside - 1]) * (1 - share) + math.log(losses[inside]) * share
    assert math.log(y) == pytest.approx(between)
    assert f"down to {levels[0]:.2g}" in [text.get_text() for text in axes.texts]


def arrows(curve):
    """Where the arrows of the exponential mechanism are."""
    lines = [line for line in plot_sweep(curve).axes[0].lines if line.get_gid() == "leaves the axis"]
    return [line.get_xydata()[0].tolist() for line in lines if line.get_color() == GREEN]


def test_legends_lie_outside_the_curves():
    figure = plot_sweep(sweep(CASES["discrete"](), [1.0, 2.0]))
    assert [axes.get_legend() for axes in figure.axes] == [None, None]
    assert len(figure.legends) == 1
