"""Rasters of people in degrees, and the prior that `area` makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.geo import Area

pyproj = pytest.importorskip("pyproj")
rasterio = pytest.importorskip("rasterio")
ROUNDED = 1e-12  # relative: projected pixels and their parts, added up
ROME = Area.box(12.462, 41.872, 12.518, 41.908)
BOX = ["area", "--box", "12.462,41.872,12.518,41.908", "--cell", "500"]
QUICK = ["--within", "500", "--factor", "4", "--positions", "cells", "--program", "planar-laplace"]


def degrees_tiff(path, values, *, low=(12.44, 41.85), step=0.001, crs="EPSG:4326", **profile):
    """A GeoTIFF of values (kx, ky), x first and y ascending, with its outer corner at `low`."""
    top = low[1] + step * values.shape[1]
    scale, offset, unit = (profile.pop(name, None) for name in ("scale", "offset", "value_unit"))
    grid = profile.pop("transform", rasterio.transform.Affine(step, 0.0, low[0], 0.0, -step, top))
    dtype = profile.pop("dtype", "float64")
    shape = {"width": values.shape[0], "height": values.shape[1], "count": 1}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=grid, dtype=dtype, **shape, **profile) as file:
        file.write(values.T[::-1].astype(dtype), 1)
        if scale is not None:
            file.scales, file.offsets = (scale,), (offset or 0.0,)
        if unit is not None:
            file.units = (unit,)
    return path


HOLES = np.random.default_rng(6).random((100, 80)) < 0.1  # pixels without a value, where tests have some


def sparse_people(shape=(100, 80), seed=5):
    """People in pixels, most of which are empty."""
    generator = np.random.default_rng(seed)
    return np.where(generator.random(shape) < 0.08, generator.integers(1, 400, shape), 0).astype(float)


def prior_of(run_json, folder, *words):
    """The prior of `area` with these options, the figures it prints, and the code of a refusal."""
    target = folder / "made.nc"
    code, figures = run_json(*BOX, *QUICK, *words, "-o", target, "--overwrite")
    return (md.load(target)["prior"].values if code == 0 else None), figures


def total_variation(one, other):
    """Total variation between two priors, in [0, 1]."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)
