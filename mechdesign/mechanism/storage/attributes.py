"""Attributes of HDF5 files of strangers: one text or one number each, bounded before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5t

from mechdesign.mechanism.storage.hdf5 import MOST, refusal
from mechdesign.mechanism.storage.texts import Watched, references

SCALES = "DIMENSION_LIST"  # of a variable: a reference for each axis, to the array that names it
KIND, LABEL = "CLASS", "NAME"  # of an array that names an axis
HIDDEN = {SCALES, KIND, LABEL, "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"}
_UNREAD = HIDDEN - {SCALES, KIND, LABEL}
_TEXTS = 1 << 26  # bytes of all texts of a file; a level map of 1000 x 1000 cells takes 20 MB
_SMALL = 1 << 12  # bytes of an attribute that is not read
_AXES, _WIDEST = 2, 8  # of an array; bytes of a number

Attribute = str | np.integer[Any] | np.floating[Any]


def check_attributes(owners: Mapping[str, h5py.Group | h5py.Dataset], watched: Watched) -> None:
    """Refuse attributes that are neither one number nor one text, too many, too long, or of a text that is not there.

    owners: the arrays by name, and the file under "".
    Raises: VerificationError.
    """
    total, varying = 0, set()
    for name, owner in owners.items():
        if h5a.get_num_attrs(owner.id) > MOST:
            raise refusal(f"more than {MOST} attributes are refused", name or "file", h5a.get_num_attrs(owner.id))
        for key in owner.attrs:
            size, elements = _checked(f"{name or 'file'}:{key}", key, owner.attrs.get_id(key))
            total += size
            if elements:
                varying.add((key, elements))
    watched.watching, pieces = False, watched.pieces()
    for key, elements in sorted(varying):
        found = references(pieces, key, elements)
        if key == SCALES and max(reference.length for reference in found) > 1:
            raise refusal("axes of several names are refused", SCALES, [reference.length for reference in found])
        total += sum(reference.length for reference in found)
        if total > _TEXTS:
            raise refusal(f"texts of more than {_TEXTS} bytes are refused", "attributes", total)
        watched.check(found)


def _checked(name: str, key: str, attribute: h5a.AttrID) -> tuple[int, int]:
    """Bytes that an attribute takes, and how many values of variable length it has, whose lengths are not known yet."""
    kind, elements = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
    form, size = kind.get_class(), attribute.get_storage_size() if elements else 0
    if elements and not kind.committed():
        if key == SCALES and form == h5t.VLEN and elements <= _AXES:
            return size, elements
        if key in _UNREAD and size <= _SMALL:
            return size, 0
        if key not in _UNREAD | {SCALES} and elements == 1:
            if form == h5t.STRING:
                return size, int(kind.is_variable_str())
            if form in (h5t.INTEGER, h5t.FLOAT) and kind.get_size() <= _WIDEST:
                return size, 0
    raise refusal("attributes that are not one number or one text are refused", name, f"{elements} of {size} bytes")


def value_of(owner: h5py.Group | h5py.Dataset, key: str) -> Attribute:
    """The value of a checked attribute. Raises: ValueError for a text that is not UTF-8."""
    found = owner.attrs[key]
    single = found.reshape(-1)[0] if isinstance(found, np.ndarray) else found
    return single.decode() if isinstance(single, bytes) else single
