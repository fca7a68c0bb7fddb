"""Estimates as layers: every area has its figures and the polygon that it came from, at the right place."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechdesign as md

pytest.importorskip("pyproj", reason="needs the extra: pip install 'mechdesign[geo]'")
shapely = pytest.importorskip("shapely", reason="needs the extra: pip install 'mechdesign[geo]'")
CENTRES = {"Rome": (41.9, 12.5), "Sydney": (-33.87, 151.2), "Taveuni": (-16.85, 179.999)}
SUFFIXES = (".geojson", ".gpkg", ".parquet")


def survey(folder, name="Rome"):
    """A mechanism of 4 x 4 cells of 100 m, 2,000 reports, and two districts, of which one has a hole: the words."""
    latitude, longitude = CENTRES[name]
    plane = md.geo.Plane(latitude=latitude, longitude=longitude)
    domain = md.Domain.grid((4, 4), cell=100.0, unit="m", origin=(-200.0, -200.0), plane=plane)
    problem = md.DesignProblem(
        domain=domain, metric=md.Euclidean(epsilon=0.02, unit="m"), prior=np.full(16, 1 / 16), loss=md.losses.Distance()
    )
    mechanism = md.baselines.exponential(problem)
    md.save(mechanism, folder / "m.nc")
    reports = md.sample(mechanism, np.arange(2000) % 16, rng=3).values.ravel()
    (folder / "r.csv").write_text("\n".join(["report", *map(str, reports)]) + "\n")
    lines = [f"{report},{1 + k % 3},{'young' if k % 2 else 'old'}" for k, report in enumerate(reports)]
    (folder / "w.csv").write_text("\n".join(["report,w,age", *lines]) + "\n")
    boxes = {"west": (-200, -200, 0, 200), "east": (0, -200, 200, 200)}
    features = []
    for number, (area, (west, south, east, north)) in enumerate(boxes.items()):
        rings = [[[west, south], [east, south], [east, north], [west, north], [west, south]]]
        if area == "east":
            rings.append([[110, 110], [110, 190], [190, 190], [190, 110], [110, 110]])
        degrees = [np.column_stack(plane.backward(np.array(ring, float))) for ring in rings]
        # As people draw it: on beyond 180 degrees.
        rings = [
            np.column_stack([ring[:, 0] % 360 if name == "Taveuni" else ring[:, 0], ring[:, 1]]) for ring in degrees
        ]
        shape = {"type": "Polygon", "coordinates": [ring.tolist() for ring in rings]}
        properties = {"name": area, "code": 7 + number, "Share": "kept out", "mayor": None if number else "A. B."}
        features.append({"type": "Feature", "properties": properties, "geometry": shape})
    (folder / "districts.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return ["estimate", folder / "r.csv", folder / "m.nc"], plane


def read(path):
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    return geopandas.read_parquet(path) if path.suffix == ".parquet" else geopandas.read_file(path)


@pytest.mark.parametrize("name", CENTRES)
def test_geopandas_reads_areas_with_their_polygons(run_json, tmp_path, name) -> None:
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    words, plane = survey(tmp_path, name)
    files = [tmp_path / f"e{suffix}" for suffix in SUFFIXES]
    outputs = [word for path in files for word in ("-o", path)]
    code, document = run_json(*words, "--areas", tmp_path / "districts.geojson", *outputs)
    assert code == 0
    for path in files:
        frame = read(path).set_index("area")
        assert frame.crs.to_authority() in (("EPSG", "4326"), ("OGC", "CRS84"))
        assert list(frame.index) == ["west", "east", "elsewhere"]
        for row in document["areas"]:
            for column in ("estimate", "share", "low", "high", "standard_error"):
                assert frame.loc[row["area"], column] == pytest.approx(row[column], rel=1e-12)
        assert frame["code"].tolist()[:2] == [7, 8]
        assert "kept out" not in frame.to_string()  # a property named as a figure
        assert (np.abs(frame.bounds.dropna().to_numpy()[:, [0, 2]]) <= 180).all()
        # The place by another route: in the plane of the mechanism the districts are those that were drawn.
        metres = [shapely.transform(shape, lambda xy: plane.forward(xy[:, 0], xy[:, 1])) for shape in frame.geometry]
        expected = [shapely.box(-200, -200, 0, 200), shapely.box(0, -200, 200, 200) - shapely.box(110, 110, 190, 190)]
        # The rest is the cell whose centre lies in the hole; its corners are rounded to 4 cm.
        assert metres[2].symmetric_difference(shapely.box(100, 100, 200, 200)).area < 30
        for found, drawn in zip(metres, expected, strict=False):
            assert found.symmetric_difference(drawn).area < 1.0


def test_the_hole_is_outside_its_area(run_json, tmp_path) -> None:
    words, _ = survey(tmp_path)
    code, document = run_json(*words, "--areas", tmp_path / "districts.geojson", "-o", tmp_path / "e.geojson")
    assert code == 0
    areas = {row["cell"]: row["area"] for row in document["cells"]}
    assert areas[15] == "elsewhere"
    assert [sum(area == name for area in areas.values()) for name in ("west", "east")] == [8, 7]
    features = json.loads((tmp_path / "e.geojson").read_text())["features"]
    assert [len(feature["geometry"]["coordinates"]) for feature in features[:2]] == [1, 2]
    assert len(features[2]["geometry"]["coordinates"][0]) == 5


@pytest.mark.parametrize(("name", "utm"), [("Rome", "EPSG:32633"), ("Taveuni", "EPSG:32760"), ("Taveuni", "plane")])
def test_layers_are_in_the_system_of_choice(run_json, tmp_path, name, utm) -> None:
    """Areas in the plane or UTM, projected by geopandas: those of the layer in degrees."""
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    words, _ = survey(tmp_path, name)
    words[1] = tmp_path / "w.csv"
    survey_words = [*words, "--weights", "w", "--areas", tmp_path / "districts.geojson", "-o"]
    assert run_json(*survey_words, tmp_path / "d.gpkg")[0] == 0
    for target, start in (("p.gpkg", survey_words), ("c.parquet", ["estimate", tmp_path / "r.csv", *words[2:], "-o"])):
        assert run_json(*start, tmp_path / target, "--layer-crs", utm)[0] == 0
    areas, cells, degrees = (read(tmp_path / name) for name in ("p.gpkg", "c.parquet", "d.gpkg"))
    assert areas.crs == cells.crs
    assert areas.crs.is_projected
    assert np.allclose(cells.area, 10_000, rtol=2e-3)
    assert (degrees.to_crs(areas.crs).symmetric_difference(areas).area < 100).all()  # of 10,000 m^2 and more
    code, document = run_json(*survey_words, tmp_path / "d.geojson", "--layer-crs", utm)
    assert (code, document["error"]["field"]) == (2, "crs")
    code, document = run_json(*survey_words, tmp_path / "d.csv", "--layer-crs", utm)
    assert (code, document["error"]["field"]) == (2, "layer_crs")


def test_other_areas_are_unions_of_their_cells(run_json, tmp_path) -> None:
    words, plane = survey(tmp_path)
    code, _ = run_json(*words, "--areas", "2x1", "-o", tmp_path / "e.geojson")
    assert code == 0
    features = json.loads((tmp_path / "e.geojson").read_text())["features"]
    assert [feature["properties"]["area"] for feature in features] == ["1-1", "2-1"]
    for feature, drawn in zip(features, [shapely.box(-200, -200, 0, 200), shapely.box(0, -200, 200, 200)], strict=True):
        shape = shapely.from_geojson(json.dumps(feature["geometry"]))
        metres = shapely.transform(shape, lambda xy: plane.forward(xy[:, 0], xy[:, 1]))
        assert shape.geom_type == "Polygon"
        assert metres.symmetric_difference(drawn).area < 50  # of 80,000 m^2: degrees are rounded to 4 cm
    # Without areas, and with --cells, a feature is a cell.
    for name, options in (("c.geojson", ()), ("d.geojson", ("--areas", "2x1", "--cells"))):
        assert run_json(*words, *options, "-o", tmp_path / name)[0] == 0
        assert len(json.loads((tmp_path / name).read_text())["features"]) == 16
