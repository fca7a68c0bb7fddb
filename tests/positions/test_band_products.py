"""Products with the inverse of a banded matrix, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import lapack

from mechdesign.positions.band_products import SchurPart


@pytest.mark.parametrize(("size", "width"), [(1, 0), (6, 0), (9, 8), (70, 3), (150, 33), (200, 40)])
@pytest.mark.parametrize("pairs", [False, True])
def test_products_equal_those_of_the_dense_inverse(size: int, width: int, pairs: bool) -> None:
    """Row sums of single rows, and means of the pairs that a reflection exchanges."""
    rng = np.random.default_rng(size)
    lower = np.tril(np.triu(rng.uniform(-1, 1, (size, size)), -width)) + 2 * width**0.5 * np.eye(size) + np.eye(size)
    matrix, band = lower @ lower.T, np.zeros((width + 1, size))
    for k in range(width + 1):
        band[k, : size - k] = np.diagonal(matrix, -k)
    factor, _ = lapack.dpbtrf(band, lower=1)
    sums = np.eye(size) if not pairs else (np.eye(size) + np.eye(size)[::-1])[: (size + 1) // 2] / 2
    total = np.zeros((len(sums), len(sums)))
    part = SchurPart(sp.csr_array(sums), width)
    for _ in range(2):  # added, not overwritten
        part.add(np.ascontiguousarray(factor.T), total)
    expected = 2 * sums @ np.linalg.inv(matrix) @ sums.T
    assert np.abs(total - expected).max() <= 1e-12 * np.abs(expected).max()
