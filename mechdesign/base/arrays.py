"""Aliases of array types by shape and kind of number: one name each, used in every signature.

Type checkers do not see the shape, a promise to the reader: n rows, m columns, d axes of coordinates. Arguments that
users pass are `ArrayLike`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]  # (n,), one number for each place, report, edge, ...
Matrix = NDArray[np.float64]  # (n, m), such as the probability or the loss of each secret (row) and report (column)
Points = NDArray[np.float64]  # (n, d), coordinates in the unit of the domain
Stack = NDArray[np.float64]  # (k, n, m), such as one matrix for each block, shift or sample
Floats = NDArray[np.float64]  # any shape, for functions that work element by element
Singles = NDArray[np.float32]  # any shape, single precision

Indices = NDArray[np.int64]  # (n,), numbers of places, reports, edges, ..., from 0
IntegerMatrix = NDArray[np.int64]  # (n, m), such as the places in a grid, or steps by axis
IntegerStack = NDArray[np.int64]  # (k, n, m)
Integers = NDArray[np.int64]  # any shape
Indices32 = NDArray[np.int32]  # (n,), as SciPy's compressed rows hold them

Masses = NDArray[np.uint64]  # (n, m), probabilities as integers: a row sums to 2^62
Unsigned = NDArray[np.uint64]  # any shape, other unsigned integers such as fixed-point factors
Unsigned32 = NDArray[np.uint32]  # any shape
Bytes = NDArray[np.uint8]  # any shape, such as the channels of a picture

Mask = NDArray[np.bool_]  # (n,), True at the selected entries
MaskMatrix = NDArray[np.bool_]  # (n, m)
Booleans = NDArray[np.bool_]  # any shape

Labels = NDArray[np.str_]  # (n,), words
AnyArray = NDArray[Any]  # any shape, any kind of number, or words
