"""Designs of `mechdesign area` between any two positions, noise beside each, and a bound over every mechanism.

python scripts/area_positions.py [AREA ...] [--bound] [--files FOLDER]

A row has the cells, the rows, the rows along a cell, and the mean error of the design. Next is the mean error of planar
Laplace noise at the true position, moved to the nearest cell. Then the lower bounds of the form and of every mechanism
with these reports, its gap, and seconds of a processor. `--bound` gives the bound some eight minutes, and `--files`
keeps the mechanisms. Within 200 m a report changes odds by at most 2, except where levels vary.
"""

import argparse
import json
import tempfile
import time
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


def design(name: str, *, bound: bool, folder: Path) -> dict[str, object]:
    """The row of an area; its mechanism is stored in the folder."""
    box, cell, arguments = AREAS[name]
    river = folder / "river.geojson"
    river.write_text(json.dumps({"type": "Polygon", "coordinates": [WATER]}))
    arguments = {key: river if value == "river" else value for key, value in arguments.items()}
    began = time.process_time()
    made = md.geo.design(md.geo.Area.box(*box), cell, bound=True if bound else None, **arguments)
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
    }


def main() -> None:
    """Print a row for each area."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--bound", action="store_true", help="some eight minutes for each bound")
    parser.add_argument("--files", type=Path, help="folder of the mechanisms")
    arguments = parser.parse_args()
    unknown = set(arguments.areas) - set(AREAS)
    if unknown:
        parser.error(f"no such area: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.files or Path(temporary)
        folder.mkdir(exist_ok=True)
        for number, name in enumerate(arguments.areas or AREAS):
            row = design(name, bound=arguments.bound, folder=folder)
            if number == 0:
                print(" | ".join(row))
            print(" | ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))


if __name__ == "__main__":
    main()
