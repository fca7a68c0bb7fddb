"""Areas: blocks, polygons, lists of cells, label rasters; and files that leave a place out or claim it twice."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mechdesign import Domain
from mechdesign.errors import FileFormatError, InputError
from mechdesign.geo import Partition, Plane, read_areas
from mechdesign.geo.partition import MOST

FLAT = Domain.grid((4, 3), cell=1.0, unit="km")


def on_earth():
    pytest.importorskip("pyproj")
    pytest.importorskip("shapely")
    plane = Plane(latitude=48.85, longitude=2.35)
    return Domain.grid((4, 3), cell=200.0, unit="m", origin=(-400.0, -300.0), plane=plane)


def polygon(domain, low, high):
    """The degrees of a box in the plane, its sides straight in degrees: far from any centre of these cells."""
    corners = np.array([low, (high[0], low[1]), high, (low[0], high[1]), low], float)
    return np.column_stack(domain.plane.backward(corners)).tolist()


def feature(ring, **properties):
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def write_features(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def test_blocks_are_nearly_equal_and_named_by_column_and_row():
    result = read_areas("3x2", FLAT)
    assert result.names == ("1-1", "1-2", "2-1", "2-2", "3-1", "3-2")
    table = np.empty((4, 3), int)
    table[tuple(FLAT.index.T)] = result.label
    assert table.tolist() == [[0, 0, 1], [0, 0, 1], [2, 2, 3], [4, 4, 5]]
    np.testing.assert_array_equal(result.indicator.sum(axis=1), 1)
    masked = Domain.grid((2, 2), cell=1.0, unit="km", mask=[[True, True], [False, True]])
    assert read_areas("1x2", masked).label.tolist() == [0, 1, 1]


@pytest.mark.parametrize(("words", "field"), [("5x1", "areas"), ("0x1", "areas"), ("3by2", "raster"), ("", "raster")])
def test_invalid_block_words_are_refused(words, field):
    with pytest.raises(InputError) as caught:
        read_areas(words, FLAT)
    assert caught.value.field == field


def test_polygons_of_one_name_are_one_area_and_the_rest_is_named(tmp_path):
    domain = on_earth()
    west = feature(polygon(domain, (-400, -300), (0, 300)), name="west")
    corner = feature(polygon(domain, (200, 100), (400, 300)), name="west")
    south = {**feature(polygon(domain, (0, -300), (400, -100))), "id": 7}
    path = write_features(tmp_path / "a.geojson", west, south, corner)
    notes = []
    result = read_areas(path, domain, on_note=notes.append)
    assert result.names == ("west", "7", "elsewhere")
    assert result.label.tolist() == [0, 0, 0, 0, 0, 0, 1, 2, 2, 1, 2, 0]
    assert notes[-1] == "Cells outside all areas are assigned to an area named 'elsewhere': 3 cells: 7, 8, 10."
    assert read_areas(path, domain, rest="east").names == ("west", "7", "east")


def test_overlaps_are_named_common_borders_allowed(tmp_path):
    domain = on_earth()
    rings = [polygon(domain, (-400, -300), (150, 300)), polygon(domain, (50, -300), (400, 300))]
    path = write_features(tmp_path / "a.geojson", feature(rings[0], name="west"), feature(rings[1], name="east"))
    with pytest.raises(InputError, match="overlap") as caught:
        read_areas(path, domain)
    assert caught.value.value == "west and east share 3 cells: 6, 7, 8"
    longitude, latitude = domain.plane.backward(domain.points)
    middle = float(longitude[domain.lookup[1, 1]])  # a border through the centre of a cell
    north, low, high = float(latitude[domain.lookup[1, 1]]), 48.8, 48.9
    west = [[2.3, low], [middle, low], [middle, north], [middle, high], [2.3, high], [2.3, low]]
    east = [[middle, low], [2.4, low], [2.4, high], [middle, high], [middle, north], [middle, low]]
    write_features(path, feature(west, name="west"), feature(east, name="east"))
    result = read_areas(path, domain)
    assert result.names[result.label[domain.lookup[1, 1]]] == "west"
    assert set(result.label.tolist()) == {0, 1}


def test_an_area_without_a_place_is_refused(tmp_path):
    domain = on_earth()
    tiny = feature(polygon(domain, (-399, -299), (-398, -298)), name="tiny")
    with pytest.raises(InputError, match="no place of the map lies"):
        read_areas(write_features(tmp_path / "a.geojson", tiny), domain)
    large = feature(polygon(domain, (0, -300), (400, 300)), name="large")
    with pytest.raises(InputError, match="holds no place") as caught:
        read_areas(write_features(tmp_path / "a.geojson", tiny, large), domain)
    assert caught.value.value == "tiny"


def test_polygons_need_a_place_on_earth(tmp_path):
    path = tmp_path / "a.geojson"
    path.write_text("{}")
    with pytest.raises(InputError, match="degrees"):
        read_areas(path, FLAT)


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"type": "FeatureCollection", "features": []}'])
def test_files_without_polygons_are_refused(tmp_path, text):
    domain, path = on_earth(), tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError):
        read_areas(path, domain)


def test_cells_of_a_list(tmp_path):
    path = tmp_path / "a.csv"
    lines = [f"{cell},{'north' if cell % 3 == 2 else 'south'}" for cell in range(12)]
    path.write_text("cell,Area\n" + "\n".join(lines))
    result = read_areas(path, FLAT)
    assert result.names == ("south", "north")
    assert result.label.tolist() == [0, 0, 1] * 4
    path.write_text("# made by hand\narea, cell\nnorth,0\n")
    assert read_areas(path, FLAT, rest="south").names == ("north", "south")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cell,area\n0,a\n0,a\n", "0 a in line 3"),
        ("cell,area\n12,a\n", "12 a in line 2"),
        ("cell,area\n-1,a\n", "-1 a in line 2"),
        ("cell,area\n0.5,a\n", "0.5 a in line 2"),
        ("cell,area\n,a\n", "nothing in line 2"),
        ("cell,place\n0,a\n", "cell, place"),
        ("", "a.csv"),
    ],
)
def test_invalid_cell_lists_are_refused(tmp_path, text, said):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_areas(path, FLAT)
    assert caught.value.field == "areas"
    assert caught.value.value.endswith(said)


def test_labels_of_a_raster(tmp_path):
    path = tmp_path / "labels.asc"
    path.write_text("ncols 4\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n9 9 3 3\n9 9 3 3\n1 1 1 1\n")
    result = read_areas(path, FLAT)
    assert result.names == ("1", "3", "9")
    assert result.label.tolist() == [0, 2, 2] * 2 + [0, 1, 1] * 2
    path.write_text(path.read_text().replace("9 9 3 3", "9 9 3.5 3"))
    with pytest.raises(InputError, match="integers"):
        read_areas(path, FLAT)


def test_labels_in_degrees_are_of_nearest_node(tmp_path):
    domain, path = on_earth(), tmp_path / "labels.asc"
    path.write_text("ncols 2\nnrows 2\nxllcorner 2.340\nyllcorner 48.84\ndx 0.01\ndy 0.01\n1 9\n1 9\n")
    longitude, _ = domain.plane.backward(domain.points)
    path.with_suffix(".prj").write_text(wgs84())
    result = read_areas(path, domain)
    np.testing.assert_array_equal(np.array(result.names)[result.label] == "9", longitude > 2.35)


def wgs84():
    import pyproj

    return pyproj.CRS.from_epsg(4326).to_wkt("WKT1_GDAL")


@pytest.mark.parametrize(
    ("names", "label"),
    [(("a", "a"), [0, 1]), (("a", ""), [0, 1]), (("a", "\x1b[2J"), [0, 1]), (("a", "b"), [0, 0]), ((), [])],
)
def test_invalid_areas_are_refused(names, label):
    with pytest.raises(InputError) as caught:
        Partition(names=names, label=np.array(label, np.int64))
    assert caught.value.field == "areas"


def test_as_many_areas_as_a_table_can_hold():
    with pytest.raises(InputError, match=str(MOST)):
        Partition.of_labels(np.arange(MOST + 1))


def test_missing_files_are_named(tmp_path):
    for name in ("a.csv", "a.asc"):
        with pytest.raises(FileFormatError):
            read_areas(tmp_path / name, FLAT)


@pytest.mark.parametrize("other", ["Nord Ost", "nord  ost", "NORD OST"])
def test_names_equal_but_for_case_are_refused(tmp_path, other):
    path = tmp_path / "a.csv"
    lines = "".join(f"{k},{'nord ost ' if k < 6 else other}\n" for k in range(12))
    path.write_text("cell,area\n" + lines, encoding="utf-8")
    with pytest.raises(InputError, match="differ only in case or spaces") as caught:
        read_areas(path, FLAT)
    assert f"'nord ost' and {other!r}" in str(caught.value)


def test_area_without_name_is_refused_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("# mine\ncell,area\n\n0,a\n1, \n")
    with pytest.raises(InputError, match=r"has no name .* in line 5"):
        read_areas(tmp_path / "a.csv", FLAT)


def test_cells_in_other_encodings(tmp_path):
    lines = "cell,area\n0,München\n" + "".join(f"{k},b\n" for k in range(1, 12))
    path = tmp_path / "a.csv"
    path.write_bytes(lines.encode("latin-1"))
    with pytest.raises(FileFormatError, match="can't decode"):
        read_areas(path, FLAT)
    path.write_bytes(lines.encode("utf-16"))
    assert read_areas(path, FLAT).names == ("München", "b")
    for encoding in ("utf-8", "utf-8-sig"):
        for end in ("\n", "\r\n", "\r"):
            path.write_bytes(lines.replace("\n", end).encode(encoding))
            assert read_areas(path, FLAT).names == ("München", "b")
