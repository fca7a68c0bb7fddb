"""Clients for phones: bytes, start-up and time of a report in Node, in Chromium and in C, by number of cells.

python benchmarks/client.py [--cells 575 2000] [--file FACTORED.nc] [--region MAP.compact] [--repeats 5]
    [--draws C JAVASCRIPT] [--at LONGITUDE LATITUDE]

Tables are planar Laplace mechanisms over squares of cells of 200 m; --file adds mechanisms of yours, such as a factored
one (mechdesign solve philadelphia --program eikonal --cells 200 -o FACTORED.nc). Start-up is from the first line of a
fresh process, or of a fresh page, to a client that is ready: the table read, its checksum, row sums and whole numbers
checked. Medians; CPU seconds of Node, and wall seconds, which suffer where others use the machine. A compact map
(mechdesign export FACTORED.nc -o MAP.compact) is taken as it is, certified or not; its reports are of random cells, and
answered when they are drawn, while an app gets them at a fixed time. In C: CPU seconds to open region.map, ms a report.

--draws also draws so many reports of each of five places of a map, in C and in JavaScript, with the operating system's
bits, and prints the chi-square statistic of their counts against the exact masses, which come from Python: cells of
which at least five reports are expected are counted alone, all others together. The places are the examples below, or
those of --at, those that are on the map, and the corner of the map.
"""

import argparse
import gzip
import json
import lzma
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import chi2

import mechdesign as md
from mechdesign.closed_forms.mechanisms import planar_laplace
from mechdesign.errors import InputError
from mechdesign.geo import CompactMap
from mechdesign.mechanism.compact.draw import Drawing
from mechdesign.mechanism.compact.formulas import WEIGHTS
from mechdesign.output.client.client import region_contents, write_client
from mechdesign.output.client.packed import size_words
from mechdesign.setting.problems.area import area_problem
from mechdesign.setting.space.locate import place_of_degrees

CALLS = 50  # reports of different cells
REGION_CALLS = 2000
FEW = 5  # reports expected of a cell that is counted alone
EXAMPLES = {
    "city, Manhattan": (-73.985, 40.752),
    "suburb, Levittown": (-74.829, 40.155),
    "country, Sullivan County": (-76.51, 41.45),
    "coast, Barnegat Light": (-74.106, 39.757),
}
SCRIPT = """
const started = process.cpuUsage();
const { openClient, memoryStorage } = await import("./web/node.mjs");
const client = await openClient({ storage: memoryStorage(), perDay: 1e6, answerAfter: 0 });
const cpu = (from) => { const used = process.cpuUsage(from); return (used.user + used.system) / 1e6; };
const ready = [cpu(started), performance.now() / 1e3];
const calls = Number(process.argv[2]);
const times = [];
for (let k = 0; k < calls; k++) {
  const before = process.cpuUsage();
  await client.reportCell(Math.floor((k + Math.random()) * client.places.count / calls));
  times.push(cpu(before));
  if (k % 50 === 49) await client.forget();
}
times.sort((a, b) => a - b);
const at = (share) => times[Math.min(calls - 1, Math.floor(share * calls))];
console.log(JSON.stringify([...ready, at(0.5), at(0.99), at(1), process.memoryUsage().rss]));
"""
COUNTED = """
const { openClient, memoryStorage } = await import("./web/node.mjs");
let day = 0;
const client = await openClient({ storage: memoryStorage(), now: () => (day += 1e8), answerAfter: 0 });
const found = [];
for (let k = 0; k < Number(process.argv[3]); k++) {
  found.push((await client.reportCell(Number(process.argv[2]))).report.number);
  await client.forget();
}
console.log(found.join(" "));
"""
IN_PAGE = """async (calls) => {
  const started = performance.now();
  const { memoryStorage, openClient } = mechdesignReports;
  const client = await openClient({ storage: memoryStorage(), perDay: 1e6, answerAfter: 0 });
  const ready = performance.now();
  const times = [];
  for (let k = 0; k < calls; k++) {
    const before = performance.now();
    await client.reportCell(Math.floor((k + Math.random()) * client.places.count / calls));
    times.push(performance.now() - before);
    if (k % 50 === 49) await client.forget();
  }
  times.sort((a, b) => a - b);
  return [(ready - started) / 1e3, times[Math.floor(calls / 2)]];
}"""
IN_C = """
#include "web/sample_region.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int urandom(void *file, unsigned char *bytes, size_t count) { return fread(bytes, 1, count, file) != count; }

static double since(clock_t start) { return (double)(clock() - start) / CLOCKS_PER_SEC; }

static int order(const void *a, const void *b) { return *(const double *)a > *(const double *)b ? 1 : -1; }

int main(void) {
  enum { CALLS = 2000 };
  static double times[CALLS];
  FILE *file = fopen("web/region.map", "rb"), *bits = fopen("/dev/urandom", "rb");
  unsigned char *map = malloc(1 << 27);
  size_t size = fread(map, 1, 1 << 27, file), room;
  struct region region;
  uint32_t report, k;
  double ready;
  clock_t start = clock();
  if (region_room(map, size, &room) || region_open(&region, map, size, malloc(room), room)) return 1;
  ready = since(start);
  for (k = 0; k < CALLS; k++) {
    uint32_t cell = (uint32_t)((double)k / CALLS * region.cells[0] * region.cells[1]);
    start = clock();
    if (region_draw(&region, cell, urandom, bits, &report)) return 1;
    times[k] = since(start);
  }
  qsort(times, CALLS, sizeof *times, order);
  printf("[%g, %g, %g, %g]", ready, times[CALLS / 2], times[CALLS * 99 / 100], times[CALLS - 1]);
  return 0;
}
"""


def main() -> None:
    """Print a line for each number of cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[575, 2000])
    parser.add_argument("--file", type=Path, nargs="*", default=[])
    parser.add_argument("--region", type=Path, nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--draws", type=int, nargs=2, metavar=("C", "JAVASCRIPT"))
    parser.add_argument("--at", type=float, nargs=2, action="append", metavar=("LONGITUDE", "LATITUDE"))
    given = parser.parse_args()
    console = Console(width=160)
    table = Table(
        *("cells", "kind", "masses", "report.bin", "report.js", "Node: CPU s", "s", "MB", "report, CPU ms", "99 %"),
        *("most", "page: s", "report, ms", "C: CPU s", "report, CPU ms", "99 %", "most"),
    )
    for mechanism in [*map(_area, given.cells), *map(md.load, given.file), *map(md.geo.load_compact, given.region)]:
        with tempfile.TemporaryDirectory() as place:
            folder = _written(mechanism, Path(place) / "web")
            region = isinstance(mechanism, CompactMap)
            calls = REGION_CALLS if region else CALLS
            sizes = [size_words((folder / name).stat().st_size) for name in ("report.bin", "report.js")]
            cpu, wall, *reports, memory = _medians([_node(folder, calls) for _ in range(given.repeats)])
            page, in_page = _medians(_pages(folder, given.repeats, calls))
            in_c = _in_c(folder) if region else []
            if region:
                _told_sizes(folder, console)
        cells = mechanism.secrets if isinstance(mechanism, CompactMap) else mechanism.sizes["secret"]
        kind = "map" if region else "table" if "mass" in mechanism else "factors"
        table.add_row(
            f"{cells:,}", kind, size_words(8 * cells**2), *sizes,
            f"{cpu:.2f}", f"{wall:.2f}", f"{memory / 1e6:.0f}", *(f"{1e3 * each:.2f}" for each in reports),
            f"{page:.2f}", f"{in_page:.2f}", *(f"{each:.3f}" for each in in_c[:1]),
            *(f"{1e3 * each:.2f}" for each in in_c[1:]),
        )  # fmt: skip
    console.print(table)
    named = {f"{east}, {north}": (east, north) for east, north in given.at or []} or EXAMPLES
    for path in given.region if given.draws else []:
        with tempfile.TemporaryDirectory() as place:
            compact = md.geo.load_compact(path)
            _chi_squares(compact, _written(compact, Path(place) / "web"), named, given.draws, console)


def _medians(runs: list[Any]) -> list[float]:
    return [median(each) for each in zip(*runs, strict=True)]


def _written(mechanism: xr.Dataset | CompactMap, folder: Path) -> Path:
    if not isinstance(mechanism, CompactMap):
        return write_client(mechanism, folder)
    folder.mkdir()
    for name, content in region_contents(mechanism).items():
        (folder / name).write_bytes(content)
    return folder


def _area(cells: int) -> xr.Dataset:
    """The planar Laplace mechanism of ln 2 within 200 m over about a square of so many cells."""
    across = next(k for k in range(int(cells**0.5), 0, -1) if cells % k == 0)
    plane = md.geo.Plane(latitude=41.9, longitude=12.49)
    sides = (across, cells // across)
    domain = md.Domain.grid(sides, cell=200.0, unit="m", origin=[-100.0 * k for k in sides], plane=plane)
    return planar_laplace.mechanism(area_problem(domain, epsilon=md.geo.epsilon_within(200.0, 0.6931471805599453)))


def _node(folder: Path, calls: int) -> Any:
    (folder.parent / "script.mjs").write_text(SCRIPT)
    words = ["node", "script.mjs", str(calls)]
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _in_c(folder: Path) -> list[float]:
    """CPU seconds to open, and of a report: median, 99 %, most; nothing without a C compiler."""
    if shutil.which("cc") is None:
        return []
    (folder.parent / "main.c").write_text(IN_C)
    subprocess.run(["cc", "-std=c99", "-O2", "main.c", "-o", "main"], cwd=folder.parent, check=True)
    done = subprocess.run(["./main"], cwd=folder.parent, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def _told_sizes(folder: Path, console: Console) -> None:
    """Print the bytes of a map, and how many of them a general compressor leaves."""
    for name in ("report.bin", "region.map"):
        content = (folder / name).read_bytes()
        packed = {"gzip -9": len(gzip.compress(content, 9)), "xz": len(lzma.compress(content, preset=9))}
        console.print(f"{name}: {len(content):,} bytes, {', '.join(f'{k} {v:,}' for k, v in packed.items())}")


def _chi_squares(
    compact: CompactMap,
    folder: Path,
    places: dict[str, tuple[float, float]],
    draws: tuple[int, int],
    console: Console,
) -> None:
    """Print how reports of places in C and in JavaScript agree with the exact masses, a line each as they come."""
    secrets = {}
    for name, degrees in places.items():
        with suppress(InputError):
            secrets[name] = place_of_degrees(compact.domain, *degrees)
    secrets["corner"], drawing = 0, Drawing(compact=compact)
    for language, count in zip(("C", "JavaScript"), draws, strict=True):
        for name, secret in secrets.items():
            counts = np.bincount(_drawn(folder, language, secret, count), minlength=compact.secrets)
            statistic, cells = _statistic(counts, count * _chances(drawing, secret))
            told = f"{counts.sum():,} reports of cell {secret:,} ({name}) in {language}: chi-square {statistic:,.1f}"
            console.print(f"{told} with {cells:,} degrees of freedom, p {chi2.sf(statistic, cells):.3f}")


def _statistic(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> tuple[float, int]:
    """The chi-square statistic, and its degrees of freedom."""
    alone = expected >= FEW
    found, likely = (np.append(each[alone], each[~alone].sum()) for each in (counts, expected))
    return float(((found - likely) ** 2 / likely).sum()), int(alone.sum())


def _chances(drawing: Drawing, secret: int) -> NDArray[np.float64]:
    """P(y|u) (n,) of a secret, from whole numbers."""
    compact, ball = drawing.compact, drawing.ball(secret)
    mass = float(compact.factors.kernel[compact.cap]) * WEIGHTS[compact.weight.ravel()].astype(float)
    mass[ball.places] += np.diff(np.array([0, *ball.sums], object)).astype(float)
    cells = [np.clip(at - compact.frame, 0, count - 1) for at, count in
             zip(np.divmod(np.arange(mass.size), compact.shape[1]), compact.cells, strict=True)]  # fmt: skip
    return np.bincount(cells[0] * compact.cells[1] + cells[1], mass / ball.total, compact.secrets)


def _drawn(folder: Path, language: str, secret: int, count: int) -> NDArray[np.int64]:
    """Reports (count,) of a secret, from a program of its own."""
    words = ["node", "counted.mjs", str(secret), str(count)]
    (folder.parent / "counted.mjs").write_text(COUNTED)
    if language == "C":
        words = ["./sampler", "web/region.map", str(secret), str(count)]
        make = ["cc", "-std=c99", "-O2", "-DREGION_MAIN", "web/sample_region.c", "-o", "sampler"]
        subprocess.run(make, cwd=folder.parent, check=True)
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), np.int64)


def _pages(folder: Path, repeats: int, calls: int) -> list[Any]:
    """Seconds to open the embedded table in fresh pages, and milliseconds of a report; NaN without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return [[float("nan"), float("nan")]]
    from playwright.sync_api import sync_playwright

    (folder.parent / "page.html").write_text('<!doctype html><script src="web/report.js"></script>')
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = []
        for _ in range(repeats):
            page = browser.new_page()
            page.goto(f"file://{folder.parent}/page.html")
            found.append(page.evaluate(IN_PAGE, calls))
            page.close()
        browser.close()
    return found


if __name__ == "__main__":
    main()
