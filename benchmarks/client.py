"""Clients for phones: bytes, start-up and time of a report in Node and in Chromium, by number of cells.

python benchmarks/client.py [--cells 575 2000] [--file FACTORED.nc] [--repeats 5]

Tables are planar Laplace mechanisms over squares of cells of 200 m; --file adds mechanisms of yours, such as a factored
one (mechdesign solve philadelphia --program eikonal --cells 200 -o FACTORED.nc). Start-up is from the first line of a
fresh process, or of a fresh page, to a client that is ready: the table read, its checksum, row sums and whole numbers
checked. Medians; CPU seconds of Node, and wall seconds, which suffer where others use the machine.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import xarray as xr
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.closed_forms.mechanisms import planar_laplace
from mechdesign.output.client.client import write_client
from mechdesign.output.client.packed import size_words
from mechdesign.setting.problems.area import area_problem

CALLS = 50  # reports of different cells
SCRIPT = f"""
const started = process.cpuUsage();
const {{ openClient, memoryStorage }} = await import("./web/node.mjs");
const client = await openClient({{ storage: memoryStorage(), perDay: 1e6 }});
const cpu = (from) => {{ const used = process.cpuUsage(from); return (used.user + used.system) / 1e6; }};
const ready = [cpu(started), performance.now() / 1e3];
const before = process.cpuUsage();
const step = Math.max(1, Math.floor(client.places.count / {CALLS}));
for (let k = 0; k < {CALLS}; k++) await client.reportCell((k * step) % client.places.count);
console.log(JSON.stringify([...ready, cpu(before) / {CALLS}, process.memoryUsage().rss]));
"""
IN_PAGE = """async () => {
  const started = performance.now();
  await mechdesignReports.openClient({ storage: mechdesignReports.memoryStorage() });
  return (performance.now() - started) / 1e3;
}"""


def main() -> None:
    """Print a line for each number of cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[575, 2000])
    parser.add_argument("--file", type=Path, nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    console = Console(width=140)
    table = Table(
        "cells", "kind", "masses", "report.bin", "report.js", "Node: CPU s", "s", "MB", "report, CPU ms", "page: s"
    )
    for mechanism in [*map(_area, given.cells), *map(md.load, given.file)]:
        with tempfile.TemporaryDirectory() as place:
            folder = write_client(mechanism, Path(place) / "web")
            sizes = [size_words((folder / name).stat().st_size) for name in ("report.bin", "report.js")]
            runs = [_node(folder) for _ in range(given.repeats)]
            cpu, wall, report, memory = (median(one[k] for one in runs) for k in range(4))
            page = median(_pages(folder, given.repeats) or [float("nan")])
        cells = mechanism.sizes["secret"]
        kind = "table" if "mass" in mechanism else "factors"
        table.add_row(
            f"{cells:,}", kind, size_words(8 * cells**2), *sizes,
            f"{cpu:.2f}", f"{wall:.2f}", f"{memory / 1e6:.0f}", f"{1e3 * report:.2f}", f"{page:.2f}",
        )  # fmt: skip
    console.print(table)


def _area(cells: int) -> xr.Dataset:
    """The planar Laplace mechanism of ln 2 within 200 m over about a square of so many cells."""
    across = next(k for k in range(int(cells**0.5), 0, -1) if cells % k == 0)
    plane = md.geo.Plane(latitude=41.9, longitude=12.49)
    sides = (across, cells // across)
    domain = md.Domain.grid(sides, cell=200.0, unit="m", origin=[-100.0 * k for k in sides], plane=plane)
    return planar_laplace.mechanism(area_problem(domain, epsilon=md.geo.epsilon_within(200.0, 0.6931471805599453)))


def _node(folder: Path) -> Any:
    (folder.parent / "script.mjs").write_text(SCRIPT)
    done = subprocess.run(["node", "script.mjs"], cwd=folder.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _pages(folder: Path, repeats: int) -> list[float]:
    """Seconds to open the embedded table in fresh pages; none without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    (folder.parent / "page.html").write_text('<!doctype html><script src="web/report.js"></script>')
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        seconds = []
        for _ in range(repeats):
            page = browser.new_page()
            page.goto(f"file://{folder.parent}/page.html")
            seconds.append(page.evaluate(IN_PAGE))
            page.close()
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
