"""NetCDF-4 files, as `save` writes them, read into Datasets by rules: `hdf5` has those for arrays, `attributes` theirs.

What is looked over is what is read: nothing is opened a second time, by name or through another library.
"""

from __future__ import annotations

from typing import BinaryIO

import h5py
import xarray as xr
from h5py import h5o, h5r

from mechdesign.mechanism.storage.attributes import HIDDEN, KIND, LABEL, SCALES, Attribute, check_attributes, value_of
from mechdesign.mechanism.storage.hdf5 import arrays_of, refusal, require_room, shape_of, stored, values
from mechdesign.mechanism.storage.texts import Watched

_SCALE = "DIMENSION_SCALE"
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
_PACKED = ("_FillValue", "missing_value", "scale_factor", "add_offset")
_COORDINATES = "coordinates"  # names the variables that are coordinates


def read_netcdf(stream: BinaryIO) -> xr.Dataset:
    """The Dataset of an open file, without masking or scaling.

    Raises: VerificationError naming the variable for what is not as the package writes it; SizeError where the arrays
        do not fit in memory; whatever the HDF5 library raises where the file is damaged.
    """
    watched = Watched(stream)
    with h5py.File(watched, "r") as file:
        arrays = arrays_of(file)
        owners = {name: h5py.Dataset(array) for name, array in arrays.items()}
        check_attributes({"": file, **owners}, watched)
        scales = [name for name, owner in owners.items() if _word(owner, KIND) == _SCALE]
        kept = {
            name: stored(name, array)
            for name, array in arrays.items()
            if name not in scales or not _word(owners[name], LABEL).startswith(_NO_VARIABLE)
        }
        require_room(kept.values(), stream)
        sizes = {h5o.get_info(arrays[name]).addr: (name, shape_of(name, arrays[name])) for name in scales}
        attributes = {name: _attributes(name, owners[name]) for name in kept}
        overall = _attributes("file", file)
        named = " ".join(str(held.pop(_COORDINATES, "")) for held in (overall, *attributes.values())).split()
        dims = {name: _dims(file, name, owners[name], sizes) for name in kept}
        variables = {name: (dims[name], values(array, stream), attributes[name]) for name, array in kept.items()}
    found = xr.Dataset(variables, attrs=overall)
    return found.set_coords([name for name in named if name in kept])


def _word(owner: h5py.Dataset, key: str) -> str:
    return str(value_of(owner, key)) if key in owner.attrs else ""


def _attributes(name: str, owner: h5py.Group | h5py.Dataset) -> dict[str, Attribute]:
    found = {key: value_of(owner, key) for key in owner.attrs if key not in HIDDEN}
    packed = [key for key in _PACKED if key in found]
    if packed:
        raise refusal("fill values and scale factors are refused", name, packed)
    return found


def _dims(
    file: h5py.File, name: str, owner: h5py.Dataset, sizes: dict[int, tuple[str, tuple[int, ...]]]
) -> tuple[str, ...]:
    """The names of the axes of an array: those of the arrays that it refers to, or its own where it names its axis."""
    if SCALES in owner.attrs:
        at = [h5o.get_info(h5r.dereference(axis[0], file.id)).addr for axis in owner.attrs[SCALES]]
        found = [sizes.get(address, ("", ())) for address in at]
    else:
        found = [(other, shape) for other, shape in sizes.values() if other == name]
    if tuple(shape for _, shape in found) != tuple((side,) for side in owner.shape):
        raise refusal("axes without a name of their size are refused", name, owner.shape)
    return tuple(axis for axis, _ in found)
