"""Porto from a box in degrees to an app and a page: design, export, Node, types, bundle, Chromium on phone and desk.

python scripts/porto.py [-o porto] [--mechanism porto.nc] [--bits 24]

Every step prints its figures, or is skipped with the name of a program that is not installed. It looks for node, tsc
and esbuild on PATH and in ./node_modules/.bin, and for Chromium with the Python package playwright. Pictures of the
page and of the client, 390 and 1280 pixels wide, stay in the folder. The design takes half a minute on an idle
machine. `--mechanism` takes one that was saved. Times in Node are of CPU, those of Chromium elapsed.
"""

import argparse
import contextlib
import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BOX = "-8.691,41.134,-8.577,41.1865"  # west, south, east, north
AREA = ("--box", BOX, "--cell", "200", "--within", "200", "--factor", "2")
NAME = "porto-reports"
TIMES = """
import { readFileSync } from "node:fs";
const { openClient, memoryStorage } = await import("./web/report.mjs");
const cpu = (from) => { const { user, system } = process.cpuUsage(from); return (user + system) / 1000; };
const table = new Uint8Array(readFileSync("./web/report.bin"));
const began = process.cpuUsage();
const client = await openClient({ table, storage: memoryStorage(), perDay: 1e5 });
const open = cpu(began);
const reports = [];
for (let k = 0; k < 2000; k++) {
  if (k % 50 === 0) await client.forget();  // as many cells as somebody has in a few days
  const from = process.cpuUsage();
  await client.reportCell((k * 577) % client.places.count);
  reports.push(cpu(from));
}
const first = reports[0];
const { PositionRows, TableRows, readTable, randomBytes } = await import("./web/report-inside.mjs");
const { header, arrays } = await readTable(table);
const rows = new (header.position_claim ? PositionRows : TableRows)(header, arrays);
const draws = [];
for (let k = 0; k < 2000; k++) {
  const from = process.cpuUsage();
  rows.draw((k * 577) % client.places.count, randomBytes);
  draws.push(cpu(from));
}
const at = (list, share) => list.sort((a, b) => a - b)[Math.floor(share * list.length)];
const times = { first, median: at(reports, 0.5), most: at(reports, 0.99), draws: [at(draws, 0.5), at(draws, 0.99)] };
console.log(JSON.stringify({ open, ...times }));
"""
TYPED = f"""
import {{ geolocationOf, openClient }} from "{NAME}";
const geolocation: Geolocation = geolocationOf(openClient({{ perDay: 10 }}));
geolocation.watchPosition(({{ coords }}: GeolocationPosition) => coords.accuracy.toFixed(0));
"""
APP = f"""
import {{ geolocationOf, memoryStorage, openClient }} from "{NAME}";
import table from "{NAME}/report.bin";
globalThis.geolocation = geolocationOf(openClient({{ table, storage: memoryStorage() }}));
"""


class Skipped(Exception):
    """A step that needs a program which is not installed."""


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Print the name of a step and its time, or the reason why it was skipped."""
    began = time.perf_counter()
    print(f"{name}:", flush=True)
    try:
        yield
    except Skipped as reason:
        print(f"  skipped: needs {reason}")
        return
    print(f"  {time.perf_counter() - began:.1f} s")


def program(name: str) -> str:
    """The path of a program, on PATH or in ./node_modules/.bin."""
    found = shutil.which(name) or shutil.which(name, path=str(Path("node_modules/.bin").resolve()))
    if found is None:
        raise Skipped(name)
    return found


def run(*words: object, folder: Path) -> str:
    """The output of a program; its errors end the script."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    return done.stdout


def mechdesign(*words: object, folder: Path) -> None:
    """Run a command of the package."""
    run(sys.executable, "-m", "mechdesign", *words, folder=folder)


def sizes(*files: Path) -> None:
    """Print the sizes of files, and gzipped."""
    for file in files:
        content = file.read_bytes()
        print(f"  {file.name}: {len(content) / 1e3:.0f} kB, {len(gzip.compress(content, 9)) / 1e3:.0f} kB gzipped")


def in_node(folder: Path) -> None:
    """Print the times of the client in Node."""
    node = program("node")
    (folder / "times.mjs").write_text(TIMES)
    inside = folder / "web" / "report-inside.mjs"
    module = (folder / "web" / "report.mjs").read_text()
    inside.write_text(module + "export { PositionRows, TableRows, readTable, randomBytes };\n")
    times = json.loads(run(node, "times.mjs", folder=folder))
    inside.unlink()
    print(f"  opened in {times['open']:.0f} ms of CPU; the first report took {times['first']:.1f} ms")
    print("  drawing: {:.3f} ms, 99 % within {:.3f} ms of CPU".format(*times["draws"]))
    print(f"  a report with its memory: {times['median']:.2f} ms, 99 % within {times['most']:.2f} ms of CPU")


def as_package(folder: Path) -> Path:
    """An app with the folder among its modules."""
    app = folder / "app"
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(folder / "web", app / "node_modules" / NAME)
    return app


def types(app: Path) -> None:
    """Check the types of an app that uses the client as navigator.geolocation."""
    (app / "typed.mts").write_text(TYPED)
    command = "tsc --noEmit --strict --target es2022 --lib es2022,dom --module nodenext typed.mts"
    name, *words = command.split()
    run(program(name), *words, folder=app)
    print("  the client is a Geolocation")


def bundle(app: Path) -> None:
    """Bundle an app with esbuild, the table in it."""
    (app / "app.mjs").write_text(APP)
    command = "esbuild app.mjs --bundle --minify --loader:.bin=binary --target=es2022 --format=esm --outfile=bundle.js"
    name, *words = command.split()
    run(program(name), *words, folder=app)
    sizes(app / "bundle.js")


def in_chromium(folder: Path) -> None:
    """Print the time to proof of the page, and take pictures of page and client on a phone and a desk."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Skipped("playwright") from None
    browser_path = program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for width, height in ((390, 844), (1280, 900)):
            context = browser.new_context(offline=True, viewport={"width": width, "height": height})
            page = context.new_page()
            began = time.perf_counter()
            page.goto((folder / "porto.html").resolve().as_uri())
            page.wait_for_selector(".badge:not(.waiting)", timeout=120_000)
            proved = time.perf_counter() - began
            verdict = page.locator(".badge").first.inner_text().strip()
            print(f"  page, {width} pixels: “{verdict}” after {proved:.1f} s")
            page.screenshot(path=folder / f"page-{width}.png")
            page.goto((folder / "web" / "index.html").resolve().as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000)
            page.locator("#map").click()
            page.wait_for_function("document.getElementById('sent').textContent !== 'nothing yet'")
            wide = page.evaluate("document.documentElement.scrollWidth")
            print(f"  client, {width} pixels: a click gave a report; the page is {wide} pixels wide")
            page.screenshot(path=folder / f"client-{width}.png", full_page=True)
            context.close()
        browser.close()


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("porto"))
    parser.add_argument("--mechanism", type=Path, help="a saved design, instead of a new one")
    parser.add_argument("--bits", choices=["24", "32"], default="24")
    options = parser.parse_args()
    folder: Path = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with step("design"):
        if options.mechanism is None:
            mechdesign("area", *AREA, "-o", "porto.nc", "--overwrite", folder=folder)
        elif options.mechanism.resolve() != folder / "porto.nc":
            shutil.copyfile(options.mechanism, folder / "porto.nc")
    with step("client"):
        mechdesign("export", "porto.nc", "-o", "web", "--bits", options.bits, "--overwrite", folder=folder)
        sizes(folder / "web" / "report.bin", folder / "web" / "report.mjs")
    with step("page"):
        mechdesign("export", "porto.nc", "-o", "porto.html", "--overwrite", folder=folder)
        sizes(folder / "porto.html")
    with step("Node"):
        in_node(folder)
    app = as_package(folder)
    with step("types"):
        types(app)
    with step("bundle"):
        bundle(app)
    with step("Chromium"):
        in_chromium(folder)


if __name__ == "__main__":
    main()
