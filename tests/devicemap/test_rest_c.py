"""The memory of the C99 sampler: the visits and cells of Python, refusals, and a full memory."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fixtures.random_device_maps import NEXT_BYTES, SAMPLER, flat

import mechdesign as md
from mechdesign.sessions.rest import visit_of

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler, as cc: the sampler is C99")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
CELLS = (9, 7)  # of the map "far"
PROGRAM = (
    """
#include "sample_region.c"
#include <stdio.h>
#include <stdlib.h>

"""
    + NEXT_BYTES
    + """
int main(int words, char **word) {
  struct region region;
  struct region_kept kept[64];
  struct region_memory memory = {REGION_REMEMBER_CELL, 0, 64, 0, REGION_NONE_YET, kept};
  unsigned char *map = malloc(1 << 20);
  FILE *file = fopen(word[1], "rb");
  size_t size = fread(map, 1, 1 << 20, file), room;
  uint64_t state = 7, at[2];
  unsigned long x, y;
  int code, remembered = 0, first = 1;
  if (words < 5) return 2;
  memory.remember = (enum region_remember)atoi(word[2]);
  memory.visit = (uint32_t)strtoul(word[3], NULL, 10);
  memory.room = (uint32_t)strtoul(word[4], NULL, 10);
  code = region_room(map, size, &room);
  if (code == REGION_GOOD) code = region_open(&region, map, size, malloc(room), room);
  printf("[");
  while (code == REGION_GOOD && scanf("%lu %lu", &x, &y) == 2) {
    uint32_t report = 0;
    at[0] = x, at[1] = y;
    remembered = 0;
    printf("%s[%d,", first ? "" : ",", region_report(&region, &memory, at, next_bytes, &state, &report, &remembered));
    printf("%lu,%d]", (unsigned long)report, remembered);
    first = 0;
  }
  printf("]");
  return code;
}
"""
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("c")
    (place / "sample_region.c").write_bytes(SAMPLER.read_bytes())
    (place / "program.c").write_text(PROGRAM)
    (place / "region.map").write_bytes(flat("far"))
    done = subprocess.run([str(CC), *STRICT, "program.c", "-o", "program"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "program"


def reports_of(program: Path, mode: int, visit: int, room: int, trace: list[tuple[int, int]]) -> list[list[int]]:
    text = "\n".join(f"{x} {y}" for x, y in trace)
    command = [str(program), "region.map", str(mode), str(visit), str(room)]
    done = subprocess.run(command, input=text, cwd=program.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def walk() -> list[tuple[int, int]]:
    """Steps of a third of a cell, in 2^-16 of a cell."""
    steps = np.random.default_rng(2).normal(scale=20_000, size=(400, 2)).cumsum(axis=0).astype(int)
    limit = np.array(CELLS) * 65536 - 1
    folded = np.abs((steps + limit // 2) % (2 * limit) - limit)
    return [(int(x), int(y)) for x, y in folded]


@pytest.mark.parametrize(("mode", "visit"), [(0, 0), (1, 60_000), (2, 0)])
def test_names_are_those_of_python(program: Path, mode: int, visit: int) -> None:
    trace, domain = walk(), md.Domain.grid(CELLS, cell=1.0, unit="km")
    found = reports_of(program, mode, visit, 64, trace)
    names: dict[str, int] = {}
    last = None
    for (x, y), (code, report, remembered) in zip(trace, found, strict=True):
        assert code == 0
        if mode == 2:
            assert remembered == 0
            continue
        if mode == 1:
            last = visit_of(domain, visit / 65536, names, last, (x / 65536, y / 65536)).name
        else:
            last = f"{x >> 16} {y >> 16}"
        assert last is not None
        assert remembered == (last in names)
        assert names.setdefault(last, report) == report
    assert mode == 2 or 10 < len(names) < 64


def test_full_memory_and_unknown_modes_draw_nothing(program: Path) -> None:
    trace = [(0, 0), (65536, 0), (0, 0), (131072, 0)]
    assert [code for code, _, _ in reports_of(program, 0, 0, 2, trace)] == [0, 0, 0, 15]
    assert reports_of(program, 3, 0, 2, trace[:1]) == reports_of(program, 1, 0, 2, trace[:1]) == [[14, 0, 0]]
    assert reports_of(program, 1, 2**30 + 1, 2, trace[:1]) == [[14, 0, 0]]
    assert reports_of(program, 0, 0, 2, [(CELLS[0] * 65536, 0), (0, CELLS[1] * 65536)]) == [[11, 0, 0], [11, 0, 0]]
