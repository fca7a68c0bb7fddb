"""Time clients for phones in Node, in Chromium and in C: milliseconds per report, and seconds until ready.

A client is ready when its table is read and checked; time runs from the first line of a fresh process or page.
Reports are of random cells, answered when they are drawn; an app gets them at a fixed time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

NODE = """
const started = process.cpuUsage();
const { openClient, memoryStorage } = await import("./web/report.mjs");
const client = await openClient({ storage: memoryStorage(), perDay: 1e6, answerAfter: 0 });
const cpu = (from) => { const used = process.cpuUsage(from); return (used.user + used.system) / 1e6; };
const ready = cpu(started);
const calls = Number(process.argv[2]);
const times = [];
for (let k = 0; k < calls; k++) {
  const before = process.cpuUsage();
  await client.reportCell(Math.floor((k + Math.random()) * client.places.count / calls));
  times.push(1e3 * cpu(before));
  if (k % 50 === 49) await client.forget();
}
console.log(JSON.stringify([ready, times]));
"""
PAGE = """async (calls) => {
  const started = performance.now();
  const { memoryStorage, openClient } = mechdesignReports;
  const client = await openClient({ storage: memoryStorage(), perDay: 1e6, answerAfter: 0 });
  const ready = (performance.now() - started) / 1e3;
  const times = [];
  for (let k = 0; k < calls; k++) {
    const before = performance.now();
    await client.reportCell(Math.floor((k + Math.random()) * client.places.count / calls));
    times.push(performance.now() - before);
    if (k % 50 === 49) await client.forget();
  }
  return [ready, times];
}"""
C = """
#include "web/sample_region.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int urandom(void *file, unsigned char *bytes, size_t count) { return fread(bytes, 1, count, file) != count; }

static double since(clock_t start) { return (double)(clock() - start) / CLOCKS_PER_SEC; }

int main(int count, char **words) {
  int k, calls = atoi(words[1]);
  FILE *file = fopen("web/region.map", "rb"), *bits = fopen("/dev/urandom", "rb");
  unsigned char *map = malloc(1 << 27);
  size_t size = fread(map, 1, 1 << 27, file), room;
  struct region region;
  uint32_t report;
  clock_t start = clock();
  if (region_room(map, size, &room) || region_open(&region, map, size, malloc(room), room)) return 1;
  printf("[%g, [", since(start));
  for (k = 0; k < calls; k++) {
    uint32_t cell = (uint32_t)((double)k / calls * region.cells[0] * region.cells[1]);
    start = clock();
    if (region_draw(&region, cell, urandom, bits, &report)) return 1;
    printf("%s%g", k ? ", " : "", 1e3 * since(start));
  }
  printf("]]");
  return 0;
}
"""


def summary(folder: Path, ready: float, times: list[float]) -> tuple[float, str]:
    """The median in ms, and a note with the 99 % quantile, the start-up time and file sizes."""
    times.sort()
    files = [folder / name for name in ("report.bin", "report.js", "region.map") if (folder / name).exists()]
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.2f} MB" for path in files)
    return times[len(times) // 2], f"ms; 99 % {times[len(times) * 99 // 100]:.2f}, ready in {ready:.2f} s; {sizes}"


def in_node(folder: Path, calls: int) -> tuple[float, str]:
    """CPU time of the client in Node."""
    (folder.parent / "script.mjs").write_text(NODE)
    words = ["node", "script.mjs", str(calls)]
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, check=True)
    return summary(folder, *json.loads(done.stdout))


def in_c(folder: Path, calls: int) -> tuple[float, str]:
    """CPU time of the sampler of a device map."""
    if not (folder / "sample_region.c").exists():
        return float("nan"), "device maps only"
    (folder.parent / "main.c").write_text(C)
    subprocess.run(["cc", "-std=c99", "-O2", "main.c", "-o", "main"], cwd=folder.parent, check=True)
    done = subprocess.run(["./main", str(calls)], cwd=folder.parent, capture_output=True, text=True, check=True)
    return summary(folder, *json.loads(done.stdout))


def in_page(folder: Path, calls: int) -> tuple[float, str]:
    """Wall time in a fresh page of Chromium."""
    from playwright.sync_api import sync_playwright

    (folder.parent / "page.html").write_text('<!doctype html><script src="web/report.js"></script>')
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"file://{folder.parent}/page.html")
        figures = page.evaluate(PAGE, calls)
        browser.close()
    return summary(folder, *figures)
