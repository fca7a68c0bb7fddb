from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
import xarray as xr

import mechdesign as md
from mechdesign import Raster
from mechdesign.errors import InputError, UnitError

X, Y, Z = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 2.0]), np.array([5.0, 5.5, 6.0, 9.0])
VALUES = np.random.default_rng(0).uniform(1, 2, (3, 2, 4))
FLAT = Raster(x=X, y=Y, values=VALUES[:, :, 0])
DEEP = Raster(x=X, y=Y, z=Z, values=VALUES)
THIN = Raster(x=X, y=Y, z=Z[:1], values=VALUES[:, :, :1])


@pytest.mark.parametrize(
    ("raster", "axes"), [(FLAT, [X, Y]), (DEEP, [X, Y, Z]), (THIN, [X, Y, Z[:1]])], ids=["flat", "deep", "thin"]
)
def test_axes_and_fingerprint_are_those_of_the_values(raster, axes):
    assert [nodes.tolist() for nodes in raster.axes] == [nodes.tolist() for nodes in axes]
    numbers = [a for nodes in axes for a in nodes.tolist()] + raster.values.ravel().tolist()
    packed = b"".join(struct.pack("<d", a) for a in numbers)
    assert raster.fingerprint() == hashlib.sha256(packed).hexdigest()[:12]


def last_changed(array, value):
    changed = array.copy()
    changed.flat[-1] = value
    return changed


def test_every_node_and_every_value_changes_the_fingerprint():
    fields = {"x": X, "y": Y, "z": Z, "values": VALUES}
    others = [Raster(**(fields | {name: last_changed(array, 9.5)})) for name, array in fields.items()]
    assert len({raster.fingerprint() for raster in (*others, FLAT, THIN, DEEP)}) == 7


def test_raster_repeats_its_outermost_nodes():
    places = np.array([[0.0, 2.0, 5.5], [3.0, -1.0, 9.0], [-4.0, 7.0, 1.0], [8.0, -9.0, 30.0]])
    assert DEEP.at(places).tolist() == [VALUES[0, 1, 1], VALUES[2, 0, 3], VALUES[0, 1, 0], VALUES[2, 0, 3]]
    assert FLAT.at(places).tolist() == [VALUES[0, 1, 0], VALUES[2, 0, 0], VALUES[0, 1, 0], VALUES[2, 0, 0]]
    assert DEEP.at(places[:, :1]).tolist() == DEEP.at(places * [1, 0, 0]).tolist()


@pytest.mark.parametrize(("raster", "sizes"), [(FLAT, (6.0, 10.0)), (DEEP, (6.0, 10.0, 2.0))], ids=["flat", "deep"])
def test_stretched_cells_fill_the_sizes(raster, sizes):
    stretched = raster.stretch(*sizes, unit="km")
    assert stretched.unit == "km"
    assert np.array_equal(stretched.values, raster.values)
    for nodes, size in zip(stretched.axes, sizes, strict=True):
        half = size / len(nodes) / 2
        np.testing.assert_allclose(nodes, np.linspace(half, size - half, len(nodes)), rtol=1e-14)


def test_a_raster_is_stretched_along_all_of_its_axes():
    for raster, sizes in ((FLAT, (1.0,)), (FLAT, (1.0, 1.0, 1.0)), (DEEP, (1.0, 1.0))):
        with pytest.raises(InputError, match="one size per axis") as caught:
            raster.stretch(*sizes)
        assert caught.value.field == "raster"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"values": VALUES[:, :, 0]}, r"shape \(3, 2, 4\)"),
        ({"values": VALUES.T}, r"shape \(3, 2, 4\)"),
        ({"z": np.zeros(1)}, r"shape \(3, 2\)"),
        ({"z": np.zeros(0), "values": VALUES[:, :, :0]}, "shape"),
        ({"values": np.ones((3, 2, 4, 1))}, "shape"),
        *(({axis: nodes[::-1]}, "ascend") for axis, nodes in (("x", X), ("y", Y), ("z", Z))),
        ({"z": np.array([5.0, 5.0, 6.0, 9.0])}, "ascend"),
        ({"z": np.array([5.0, 5.5, 6.0, np.inf])}, "ascend"),
        ({"z": np.array([5.0, 5.5, 6.0, 1e151])}, "ascend"),
        ({"z": np.array([0.0, 5e-324, 6.0, 9.0])}, "at least 1e-289 apart"),
        ({"z": np.array([0.0, 1e-290, 6.0, 9.0])}, "at least 1e-289 apart"),
        ({"x": X[:, None]}, "ascend"),
        ({"values": last_changed(VALUES, np.nan)}, "1 NODATA"),
        ({"unit": "parsec"}, "unknown unit"),
    ],
)
def test_bad_rasters_are_refused(fields, message):
    with pytest.raises((InputError, UnitError), match=message) as caught:
        Raster(**({"x": X, "y": Y, "z": Z, "values": VALUES, "name": "map"} | fields))
    assert caught.value.field.startswith("map")


def test_arrays_of_xarray_and_csv_are_the_same_raster(tmp_path):
    """Against the constructor, values transposed by hand."""
    x, y, values = np.array([5.0, 15.0, 25.0]), np.array([0.0, 10.0]), np.arange(6.0).reshape(3, 2)
    expected = Raster(x=x, y=y, values=values, unit="m")
    turned = xr.DataArray(values.T[::-1], coords={"y": y[::-1], "x": x}, dims=("y", "x"), name="people")
    nodes = [(a, b, values[i, j]) for j, b in enumerate(y) for i, a in enumerate(x)]
    (tmp_path / "people.csv").write_text("X,Y,people\n" + "".join(f"{a},{b},{v}\n" for a, b, v in nodes[::-1]))
    for source in (turned, tmp_path / "people.csv"):
        from_source = md.read.raster(source, unit="m")
        assert all(np.array_equal(getattr(from_source, part), getattr(expected, part)) for part in ("x", "y", "values"))
    degrees = turned.rename(x="lon", y="lat")
    with pytest.raises(UnitError):
        md.read.raster(degrees, unit="m")
    with pytest.raises(InputError, match="x comes first"):
        Raster(x=x, y=y, values=values.T)
    for text in ("x,people\n1,2\n", "x,y,people\n1,2,3\n1,2,4\n", "x,y,a,b\n1,2,3,4\n"):
        (tmp_path / "people.csv").write_text(text)
        with pytest.raises(InputError):
            md.read.raster(tmp_path / "people.csv", unit="m")
