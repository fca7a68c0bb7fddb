"""Labels of places: their reports and losses, label rasters, the shipped neighbourhoods."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.problems import CASES, grid

import mechdesign as md
from mechdesign import Domain, Raster
from mechdesign.errors import InputError, UnitError
from mechdesign.losses import Query, query_problem
from mechdesign.read import raster as read_raster


def test_labels_become_reports_and_losses() -> None:
    """Report y stands at a place of its label; losses by brute force over the places of the label."""
    rng = np.random.default_rng(2)
    domain = grid((5, 4))
    labels = rng.choice([7, -3, 12], domain.size)
    query = Query(labels=labels)
    assert query.values.tolist() == [-3, 7, 12]
    assert (query.values[query.answer] == labels).all()
    reports = query.reports(domain)
    wrong, away = query.loss("zero-one", domain), query.loss("distance", domain)
    for y, label in enumerate(query.values):
        assert (query.places[y] == np.flatnonzero(labels == label)).all()
        members = domain.points[labels == label]
        centre = members.mean(axis=0)
        gap = np.hypot(*(members - centre).T).min()
        assert (members == reports.points[y]).all(axis=1).any()
        assert np.hypot(*(reports.points[y] - centre)) == pytest.approx(gap)
        brute = np.hypot(*(domain.points[:, None] - members[None]).transpose(2, 0, 1)).min(axis=1)
        assert np.asarray(away.values)[:, y] == pytest.approx(brute)
        assert (np.asarray(wrong.values)[:, y] == (labels != label)).all()


def write_map(folder: Path, suffix: str, values: np.ndarray, x: np.ndarray, y: np.ndarray) -> Path:
    path = folder / f"map{suffix}"
    if suffix == ".nc":
        axes = {"x": ("x", x, {"units": "m"}), "y": ("y", y, {"units": "m"})}
        xr.Dataset({"label": (("x", "y"), values)}, coords=axes).to_netcdf(path, engine="h5netcdf")
    else:
        head = (
            f"ncols {len(x)}\nnrows {len(y)}\nxllcenter {x[0]}\nyllcenter {y[0]}\ndx {x[1] - x[0]}\ndy {y[1] - y[0]}\n"
        )
        path.write_text(head + "NODATA_value -1\n" + "\n".join(" ".join(map(str, row)) for row in values.T[::-1]))
    return path


@pytest.mark.parametrize("suffix", [".asc", ".nc"])
def test_label_rasters_are_read_at_the_nearest_node(suffix: str, tmp_path: Path) -> None:
    x, y = 2.0 + 1.5 * np.arange(6), -1.0 + 2.5 * np.arange(4)
    values = np.random.default_rng(3).integers(1, 40, (6, 4))
    domain = Domain.grid((13, 11), cell=(0.69, 0.9), unit="m", origin=(1.3, -2.2))
    sampled = Query.from_raster(read_raster(write_map(tmp_path, suffix, values, x, y), unit="m"), domain)
    nearest = [values[np.abs(x - at[0]).argmin(), np.abs(y - at[1]).argmin()] for at in domain.points]
    assert np.asarray(sampled.labels).tolist() == nearest
    assert set(nearest) <= set(values.ravel())


def test_rasters_without_labels_are_refused(tmp_path: Path) -> None:
    x, y = np.array([0.5, 1.5, 2.5]), np.array([0.5, 1.5, 2.5])
    domain = Domain.grid((3, 3), cell=1.0, unit="m")
    values = np.arange(9).reshape(3, 3)
    assert len(Query.from_raster(Raster(x=x, y=y, values=values, unit="m"), domain).values) == 9
    with pytest.raises(InputError, match="NODATA") as caught:
        read_raster(write_map(tmp_path, ".asc", values - 1, x, y), unit="m")
    with pytest.raises(InputError, match="integers") as caught:
        Query.from_raster(Raster(x=x, y=y, values=values + 0.5, unit="m"), domain)
    assert (caught.value.field, caught.value.value) == ("labels", "0.5 (9 such)")
    with pytest.raises(UnitError):
        Query.from_raster(Raster(x=x, y=y, values=values, unit="USD"), domain)
    in_km = Raster(x=x / 1000, y=y / 1000, values=values, unit="km")
    assert Query.from_raster(in_km, domain).labels.tolist() == list(range(9))
    for wide in (x[:2], x[1:]):
        with pytest.raises(InputError, match="3 of 9 places lie outside the raster"):
            Query.from_raster(Raster(x=wide, y=y, values=values[:2], unit="m"), domain)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2], "must have shape"),
        ([4] * 8, "at least two answers"),
        ([0, 1, 0, 1, 0, 1, 0, 0.5], "integers"),
        ([0, 1, 0, 1, 0, 1, 0, float("nan")], "integers"),
        ([0, 1, 0, 1, 0, 1, 0, 1e300], "integers"),
        ([[0, 1, 0, 1, 0, 1, 0, 1]], "integers"),
        ([], "integers|at least two"),
    ],
)
def test_bad_labels(labels: list[object], message: str) -> None:
    case = CASES["line, zero-one"]()
    with pytest.raises(InputError, match=message) as caught:
        query_problem(domain=case.domain, metric=case.metric, prior=case.prior, query=labels)  # type: ignore[arg-type]
    assert caught.value.field == "labels"
    assert caught.value.value is not None


def test_text_labels_are_refused() -> None:
    case = CASES["line, zero-one"]()
    with pytest.raises(InputError, match="must be of type") as caught:
        query_problem(domain=case.domain, metric=case.metric, prior=case.prior, query=["a", "b"] * 4)  # type: ignore[arg-type]
    assert caught.value.field == "query"


@pytest.mark.parametrize(
    ("parameters", "field"), [({"labels": 1}, "labels"), ({"cells": 1}, "cells"), ({"extent": 0.0}, "extent")]
)
def test_bad_neighbourhoods(parameters: dict[str, float], field: str) -> None:
    with pytest.raises(InputError) as caught:
        md.load_problem("neighbourhoods", **parameters)
    assert caught.value.field == field


def test_neighbourhoods_are_the_cells_of_stated_centres() -> None:
    """Every place against every centre, by the formula of the docstring in its own digits."""
    problem = md.load_problem("neighbourhoods", cells=11, labels=5, extent=30.0)
    centres = [(30 * ((0.5 + 0.754878 * k) % 1), 30 * ((0.5 + 0.569840 * k) % 1)) for k in range(1, 6)]
    nearest = [int(np.argmin([math.dist(centre, at) for centre in centres])) for at in problem.domain.points]
    assert problem.query is not None
    assert np.asarray(problem.query.labels).tolist() == nearest


def test_neighbourhoods_by_a_map_of_labels(tmp_path: Path) -> None:
    """A map of 2 x 2 labels over the square is the four quarters."""
    path = write_map(tmp_path, ".asc", np.array([[1, 2], [3, 4]]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    problem = md.load_problem("neighbourhoods", cells=4, label_map=str(path))
    quarters = 1 + 2 * (problem.domain.points[:, 0] > 10) + (problem.domain.points[:, 1] > 10)
    assert problem.query is not None
    assert (np.asarray(problem.query.labels) == quarters).all()
