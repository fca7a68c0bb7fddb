"""The C headers beside the sampler of device maps: reports in the shape of a phone's location, and memory in a file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from fixtures.clients import NODE, run
from fixtures.random_device_maps import NEXT_BYTES, region

from mechdesign.web import write_client

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler, as cc: the headers are C99")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function", "-O2")
PAGE = ROOT / "docs" / "how-to" / "geolocation.md"
PROGRAM = (
    """
#include "region_location.h"
#include "region_memory.h"
#include <stdio.h>
#include <stdlib.h>

"""
    + NEXT_BYTES
    + """
/* Locations of fixes from stdin, after each of which the memory is written and read again; then altered memories. */
int main(int words, char **word) {
  struct region region;
  struct region_kept kept[8], others[8];
  struct region_memory memory = {REGION_REMEMBER_CELL, 0, 8, 0, REGION_NONE_YET, kept}, other;
  struct region_location last = {0, 0, 0, 0, 0};
  unsigned char *map = malloc(1 << 20), bytes[1000];
  FILE *file = fopen("web/region.map", "rb");
  size_t size = fread(map, 1, 1 << 20, file), room, k;
  uint64_t state = 7;
  uint32_t draws = words > 1 ? (uint32_t)atoi(word[1]) : 0;
  double x, y;
  long time;
  int code = region_room(map, size, &room);
  if (code == REGION_GOOD) code = region_open(&region, map, size, malloc(room), room);
  printf("{\\"code\\": %d, \\"fixes\\": [", code);
  for (k = 0; scanf("%lf %lf %ld", &x, &y, &time) == 3; k++) {
    code = region_locate(&region, &memory, x, y, time, &draws, next_bytes, &state, &last);
    printf("%s[%d, %.17g, %.17g, ", k ? ", " : "", code, last.longitude, last.latitude);
    printf("%.17g, %ld, %d, %lu]", last.accuracy, (long)last.time, last.remembered, (unsigned long)draws);
    region_memory_pack(&region, &memory, bytes);
    other = memory, other.kept = others, other.count = 0, other.last = 9;
    if (region_memory_unpack(&region, &other, bytes, region_memory_size(&memory)) != REGION_GOOD) return 3;
    if (other.count != memory.count || other.last != memory.last) return 4;
    memory = other, memory.kept = kept;
    while (other.count-- > 0) kept[other.count] = others[other.count];
  }
  printf("], \\"altered\\": [");
  size = region_memory_size(&memory);
  for (k = 0; k < size; k++) {
    bytes[k] ^= 4;
    other = memory, other.kept = others;
    printf("%s%d", k ? ", " : "", region_memory_unpack(&region, &other, bytes, size));
    bytes[k] ^= 4;
  }
  other = memory, other.kept = others, other.remember = REGION_REMEMBER_VISIT, other.visit = 5;
  printf("], \\"mode\\": %d, ", region_memory_unpack(&region, &other, bytes, size));
  printf("\\"short\\": %d, ", region_memory_unpack(&region, &memory, bytes, size - 1));
  memory.room = 1;
  printf("\\"room\\": %d}", region_memory_unpack(&region, &memory, bytes, size));
  return 0;
}
"""
)
PLACES = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const { places } = await openClient({ storage: memoryStorage(), answerAfter: 0 });
const cells = places.count;
const centre = places.box()[0].map((low, axis) => (low + places.box()[1][axis]) / 2);
const degrees = Array.from({ length: cells }, (_, cell) => places.degrees(places.point(cell)));
const farthest = Array.from({ length: cells }, (_, cell) => places.farthest(places.point(cell)) * places.plane.metres);
console.log(JSON.stringify({ degrees, farthest, centre: places.degrees(centre) }));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("c")
    write_client(region("certified"), place / "web")
    (place / "program.c").write_text(PROGRAM)
    command = [str(CC), *STRICT, "-Iweb", "program.c", "-o", "program", "-lm"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
def test_locations_in_c_are_those_of_the_client(folder: Path) -> None:
    """Degrees of fixes lead to cells, and reports to degrees and radii, as in JavaScript; draws are counted."""
    places = run(folder / "web", PLACES)
    degrees = [(place["longitude"], place["latitude"]) for place in places["degrees"]]
    cells = [0, 5, 0, len(degrees) - 1, 7, 5, -1]
    fixes = [(*(degrees[cell] if cell >= 0 else (100.0, 1.0)), 1000 + k) for k, cell in enumerate(cells)]
    text = "\n".join(f"{x!r} {y!r} {time}" for x, y, time in fixes)
    done = subprocess.run([folder / "program", "3"], input=text, cwd=folder, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["code"] == 0
    assert [fix[0] for fix in found["fixes"]] == [0] * 6 + [11]
    assert [fix[6] for fix in found["fixes"]] == [2, 1, 1, 0, 0, 0, 0]
    # Remembered, and with no draw left the last report with its time.
    assert [fix[4:6] for fix in found["fixes"]] == [
        [1000, 0], [1001, 0], [1002, 1], [1003, 0], [1003, 0], [1005, 1], [1005, 1]
    ]  # fmt: skip
    assert found["fixes"][2][1:4] == found["fixes"][0][1:4]
    assert found["fixes"][4][1:4] == found["fixes"][3][1:4]
    for _, x, y, accuracy, *_ in found["fixes"]:
        report = degrees.index((x, y))
        assert -1 <= accuracy - places["farthest"][report] <= 0.1 * 1000 * max(region("certified").cell)
    assert 0 not in found["altered"]
    assert (found["mode"], found["short"], found["room"]) == (16, 16, 15)


def test_spent_app_without_reports_says_all_of_the_map(folder: Path) -> None:
    device_map = region("certified")
    assert device_map.plane is not None
    middle = np.array(device_map.origin) + np.array(device_map.cells) * device_map.cell / 2
    longitude, latitude = (float(angle[0]) for angle in device_map.plane.backward(middle[None]))
    text = f"{longitude!r} {latitude!r} 9"
    done = subprocess.run([folder / "program"], input=text, cwd=folder, capture_output=True, text=True, check=True)
    code, _, _, accuracy, time, remembered, draws = json.loads(done.stdout)["fixes"][0]
    half = np.hypot(*(np.array(device_map.cells) * device_map.cell)) * 1000 / 2
    assert (code, time, remembered, draws) == (0, 9, 0, 0)
    assert half <= accuracy <= half + 0.1 * 1000 * max(device_map.cell)


def block(language: str) -> str:
    """The one block of the page in a language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return text


def compile_errors(words: list[str], folder: Path) -> str | None:
    """Compile in a folder, and return the messages of a compiler that failed."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return None if done.returncode == 0 else done.stderr


@pytest.mark.exhaustive
def test_page_compiles_for_java(folder: Path) -> None:
    found = sorted(Path("/usr/lib/jvm").glob("*/include/jni.h"))
    if not found:
        pytest.skip("needs jni.h, of a JDK")
    (folder / "reports.c").write_text(block("c"))
    include = found[0].parent
    words = [str(CC), *STRICT, f"-I{include}", f"-I{include}/linux", "-Iweb", "-c", "reports.c"]
    assert compile_errors(words, folder) is None


STUB = """
package android.location
class Location(val provider: String) {
    var longitude = 0.0
    var latitude = 0.0
    var accuracy = 0f
    var time = 0L
}
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("kotlinc") is None, reason="needs kotlinc")
def test_page_compiles_as_kotlin(folder: Path) -> None:
    """Against a stand-in for Android's Location."""
    (folder / "Reports.kt").write_text(block("kotlin"))
    (folder / "Location.kt").write_text(STUB)
    assert compile_errors(["kotlinc", "Reports.kt", "Location.kt", "-d", "classes"], folder) is None


@pytest.mark.skipif(shutil.which("swiftc") is None or shutil.which("xcrun") is None, reason="needs swiftc of Apple")
def test_page_compiles_as_swift(folder: Path) -> None:
    (folder / "Reports.swift").write_text(block("swift"))
    (folder / "bridge.h").write_text('#include "web/region_location.h"\n')
    words = ["swiftc", "-typecheck", "-import-objc-header", "bridge.h", "Reports.swift"]
    assert compile_errors(words, folder) is None
