"""Seeded bump maps: rasters on which edges are short where hardly anybody lives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mechdesign import DesignProblem, load_problem

EXTENT = 100.0
NODES = 24
DENSEST = 16_000.0


def write_bumps(file: Path, seed: int, count: int = 9) -> None:
    """An ESRI ASCII raster of `count` Gaussian bumps on 24 x 24 nodes over [0, 100]^2, densities 0 to 16,000."""
    rng = np.random.default_rng(seed)
    place = np.linspace(0, EXTENT, NODES)
    x, y = np.meshgrid(place, place)
    total = np.zeros((NODES, NODES))
    for _ in range(count):
        a, b = rng.uniform(0, EXTENT, 2)
        width = rng.uniform(4, 12)
        total += rng.uniform(0.2, 1) * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
    head = f"ncols {NODES}\nnrows {NODES}\nxllcenter 0\nyllcenter 0\ncellsize {EXTENT / (NODES - 1):.17g}\n"
    rows = (" ".join(f"{value:.6g}" for value in row) for row in (total * DENSEST / total.max())[::-1])
    file.write_text(head + "\n".join(rows) + "\n")


def bump_map(folder: Path, seed: int, cells: int, *, slope: float = 1e-5, floor: float = 0.04) -> DesignProblem:
    """The map as the Philadelphia problem reads it: 20 cells have edges of 0.2 to 1.4 nats."""
    file = folder / f"bumps{seed}.asc"
    write_bumps(file, seed)
    return load_problem("philadelphia", cells=cells, raster=str(file), slope=slope, floor=floor)
