"""Designs of `mechdesign area` between any two positions, noise beside each, and a bound over every mechanism.

python scripts/area_positions.py [AREA ...] [--bound] [--sweep] [--files FOLDER]

A row has the cells, the rows, the rows along a cell, and the mean error of the design. Next is the mean error of planar
Laplace noise at the true position, moved to the nearest cell. Then the lower bounds of the form and of every mechanism
with these reports, its gap, and seconds of a processor. The last columns are the method, and the cell that the first
sentence names if noise is better. `--bound` gives the bound some eight minutes, and `--files` keeps the mechanisms.
Within 200 m a report changes odds by at most 2, except where levels vary.

`--sweep` compares designs with noise, without a bound, on square boxes of 4 to 60 nats with cells of 0.3 to 3 nats. A
cell that a sentence names is designed too, in the next row.
"""

import argparse
import json
import math
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import mechdesign as md

PEOPLE = Path(__file__).resolve().parents[1] / "problems" / "data" / "northeast_block_groups_2020.csv.gz"
ROME, PHILADELPHIA = (12.465, 41.875, 12.525, 41.916), (-75.19, 39.94, -75.148, 39.967)
BANKS = (12.465, 41.875, 12.5, 41.9)
WATER = [[12.46, 41.884], [12.51, 41.887], [12.51, 41.892], [12.46, 41.889], [12.46, 41.884]]
LEVEL = {"within": 200.0, "factor": 2.0}
# Name: box in degrees, cell in m, arguments of a design. The river is made up.
AREAS = {
    "Rome, 200 m": (ROME, 200, LEVEL),
    "Rome, 300 m": (ROME, 300, LEVEL),
    "Rome, 400 m": (ROME, 400, LEVEL),
    "Rome, 500 m": (ROME, 500, LEVEL),
    "Rome, 600 m": (ROME, 600, LEVEL),
    "across 180 degrees": ((179.98, -16.82, -179.98, -16.79), 400, LEVEL),
    "69 N": ((18.93, 69.64, 18.99, 69.665), 500, LEVEL),
    "people": (PHILADELPHIA, 600, LEVEL | {"people": PEOPLE}),
    "river": (BANKS, 500, LEVEL | {"forbidden": "river"}),
    "levels that vary": (PHILADELPHIA, 600, {"people": PEOPLE, "levels": md.geo.LevelsFromPeople(2000.0)}),
}
# Sides of square boxes and of cells in nats, from the smallest number of cells to the largest.
SWEEP = (
    *((4, 2), (10, 3), (4, 1), (10, 2), (20, 3), (4, 0.5), (10, 1), (20, 2), (4, 0.3), (40, 3), (20, 1), (10, 0.5)),
    *((60, 3), (40, 2), (60, 2), (40, 1)),
)
PER_NAT, PER_DEGREE = 200 / math.log(2), 111_200.0  # metres


def square(nats: float) -> tuple[float, float, float, float]:
    """A box of so many nats in both directions about the middle of Rome, in degrees; a little less by rounding."""
    west, south = 12.495, 41.8955
    high = 0.99 * nats * PER_NAT / PER_DEGREE / 2
    wide = high / math.cos(math.radians(south))
    return west - wide, south - high, west + wide, south + high


def design(
    name: str, box: tuple[float, ...], cell: float, arguments: dict[str, object], *, bound: bool | None, folder: Path
) -> dict[str, object]:
    """The row of an area; its mechanism is stored in the folder."""
    river = folder / "river.geojson"
    river.write_text(json.dumps({"type": "Polygon", "coordinates": [WATER]}))
    arguments = {key: river if value == "river" else value for key, value in arguments.items()}
    began = time.process_time()
    made = md.geo.design(md.geo.Area.box(*box), cell, bound=bound, **arguments)
    named = re.search(r"With cell=([\d.]+), a design", made.report.sentences())
    seconds, figures = time.process_time() - began, made.report.to_json()
    md.save(made.mechanism, folder / f"{name.replace(' ', '-').replace(',', '')}.nc", overwrite=True)
    return {
        "area": name,
        "cells": made.cells_problem.reports.size,
        "rows": made.mechanism.sizes["secret"],
        "k": figures["parts"],
        "design": figures["position_loss"],
        "noise": figures["alternative_position_loss"],
        "of the form": figures["lower_bound"],
        "of all": figures["any_lower_bound"],
        "gap": figures["any_gap"],
        "seconds": seconds,
        "method": figures["chosen"],
        "named": float(named[1]) if named else "",
    }


def swept(folder: Path) -> Iterator[dict[str, object]]:
    """The rows of `SWEEP`, each with that of its named cell."""
    for nats, cell in SWEEP:
        row = design(f"{nats} nats, {cell}", square(nats), cell * PER_NAT, LEVEL, bound=False, folder=folder)
        yield row
        if row["named"]:
            name = f"{nats} nats, {row['named'] / PER_NAT:.2g}"
            yield design(name, square(nats), row["named"], LEVEL, bound=False, folder=folder)


def main() -> None:
    """Print a row for each area."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--bound", action="store_true", help="some eight minutes for each bound")
    parser.add_argument("--sweep", action="store_true", help="square boxes and cells in nats")
    parser.add_argument("--files", type=Path, help="folder of the mechanisms")
    arguments = parser.parse_args()
    unknown = set(arguments.areas) - set(AREAS)
    if unknown:
        parser.error(f"no such area: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.files or Path(temporary)
        folder.mkdir(exist_ok=True)
        bound = True if arguments.bound else None
        rows = (design(name, *AREAS[name], bound=bound, folder=folder) for name in arguments.areas or AREAS)
        for number, row in enumerate(swept(folder) if arguments.sweep else rows):
            if number == 0:
                print(" | ".join(row), flush=True)
            words = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
            print(" | ".join(words), flush=True)


if __name__ == "__main__":
    main()
