"""
A file of points, and the cells on a map
========================================

A file of visits becomes a file of reports. The cells of the mechanism become pixels that any map program opens.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/16_file_of_points.png"

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import rasterio
from matplotlib.figure import Figure

import mechdesign as md

folder = Path(tempfile.mkdtemp())


def run(*words: str) -> None:
    """Run `mechdesign` in the folder, and print its text."""
    command = [sys.executable, "-m", "mechdesign", *words]
    ended = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603 - our own words
    print(ended.stdout)


plane = md.geo.Plane(latitude=41.9, longitude=12.5)
domain = md.Domain.grid((12, 10), cell=200.0, unit="m", origin=(-1200.0, -1000.0), plane=plane)
metric = md.Euclidean(epsilon=0.005, unit="m")
prior = md.priors.uniform(domain)
problem = md.DesignProblem(domain=domain, metric=metric, prior=prior, loss=md.losses.Distance())
md.save(md.baselines.exponential(problem), folder / "rome.nc")

# %%
# Three people, ten visits each to one of two places. With ``--id`` the equal visits of a person are one secret.

rng = np.random.default_rng(0)
person, place = np.repeat(np.arange(3), 10), rng.integers(0, 2, 30)
longitude, latitude = plane.backward(200.0 * np.column_stack([person - place, person + place]))
visits = pd.DataFrame({"user": person, "day": np.tile(np.arange(10), 3), "lon": longitude, "lat": latitude})
visits.to_csv(folder / "visits.csv", index=False)
run("sample", "rome.nc", "visits.csv", "-o", "reports.csv", "--id", "user")
reports = pd.read_csv(folder / "reports.csv")
reports.head()

# %%
# Every report from one place, as a band of a GeoTIFF.

run("export", "rome.nc", "-o", "cells.tif", "--from", "12.501205,41.9009")
with rasterio.open(folder / "cells.tif") as layer:
    band, bounds = layer.read(layer.descriptions.index("probability") + 1), layer.bounds


def draw() -> Figure:
    """A picture of the band in metres about the centre of the plane."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    shown = axes.imshow(band, extent=(bounds.left, bounds.right, bounds.bottom, bounds.top), cmap="viridis")
    axes.plot(100, 100, "o", color="white", markeredgecolor="black")
    axes.set(xlabel="m east of 12.5 degrees", ylabel="m north of 41.9 degrees", title="Probability of each report")
    figure.colorbar(shown)
    return figure


draw()
