"""The C99 sampler of device maps: invalid maps and arguments, memory, and its program."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fixtures.random_device_maps import SAMPLER, check_counts, content, flat, region

from mechdesign.devicemap.web import arena_bytes

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler, as cc: the sampler is C99")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
NAME = "far"
PLACES = 11 * 13  # of NAME, with its margin
PROGRAM = """
#include "sample_region.c"
#include <stdio.h>
#include <stdlib.h>

static int zeros(void *context, unsigned char *bytes, size_t count) {
  if (context != NULL) return 1;
  while (count-- > 0) bytes[count] = 0;
  return 0;
}

int main(int words, char **word) {
  struct region region;
  unsigned char *map = malloc(1 << 20);
  size_t size, room = 0;
  uint64_t *arena;
  uint32_t report = 7;
  int code, k;
  printf("[");
  for (k = 1; k < words; k++) {
    FILE *file = fopen(word[k], "rb");
    size = fread(map, 1, 1 << 20, file);
    fclose(file);
    map = realloc(map, size > 0 ? size : 1);  /* so that a sanitizer sees reads beyond it */
    code = region_room(map, size, &room);
    if (code == REGION_GOOD) {
      arena = malloc(room);
      code = region_open(&region, map, size, arena, room);
      if (code == REGION_GOOD) code = region_draw(&region, 3, zeros, NULL, &report);
      free(arena);
    }
    printf("[%d,\\"%s\\",%lu],", code, region_message(code), (unsigned long)room);
    map = realloc(map, 1 << 20);
  }
  size = fread(map, 1, 1 << 20, stdin);
  arena = malloc(room + 8);
  printf("%d,", region_open(&region, map, size, arena, room - 1));
  printf("%d,", region_open(&region, map, size, (char *)arena + 4, room));
  printf("%d,", region_open(&region, map, size, NULL, room));
  printf("%d,", region_open(&region, map, size, arena, room));
  printf("%d,", region_draw(&region, 63, zeros, NULL, &report));
  printf("%d,", region_draw(&region, 0xffffffffu, zeros, NULL, &report));
  printf("%d,", region_draw(&region, 0, zeros, map, &report));
  printf("%lu,", (unsigned long)report);
  printf("%d,", region_draw(&region, 62, zeros, NULL, &report));
  printf("%lu,\\"%s\\",\\"%s\\"]", (unsigned long)report, region_message(-1), region_message(1000));
  free(arena), free(map);
  return 0;
}
"""


@pytest.fixture(scope="module")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A program of the sampler and some text."""
    place = tmp_path_factory.mktemp("c")
    (place / "sample_region.c").write_bytes(SAMPLER.read_bytes())

    def of(text: str | None, *words: str) -> Path:
        (place / "program.c").write_text(text or "")
        source = "sample_region.c" if text is None else "program.c"
        command = [str(CC), *STRICT, *words, source, "-o", "program"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != 0 and any("sanitize" in word for word in words):
            pytest.skip("needs a C compiler with sanitizers")
        assert done.returncode == 0, done.stderr
        return place / "program"

    return of


def alter_number(offset: int, form: str, value: int) -> bytes:
    """region.map with another number and a correct checksum."""
    content_bytes = bytearray(flat(NAME)[:-32])
    start = 0 if form == "<H" and offset == 10 else 16 + int.from_bytes(content_bytes[12:16], "little")
    struct.pack_into(form, content_bytes, start + offset, value)
    return bytes(content_bytes) + hashlib.sha256(content_bytes).digest()


def invalid_maps() -> dict[str, tuple[bytes, str]]:
    """Invalid files, and a part of the message for each."""
    good = flat(NAME)
    flipped = bytearray(good)
    flipped[300] ^= 1
    return {
        "empty": (b"", "all bytes"),
        "a head alone": (good[:104], "all bytes"),
        "cut short": (good[:-1], "size does not match"),
        "too long": (good + b"\0", "size does not match"),
        "a changed byte": (bytes(flipped), "checksum mismatch"),
        "a report.bin": (content(NAME), "not a region.map"),
        "another version": (alter_number(10, "<H", 2), "not a region.map"),
        "one row": (alter_number(0, "<Q", 1), "n1 and n2"),
        "more rows": (alter_number(0, "<Q", 10), "size does not match"),
        "rows that wrap": (alter_number(0, "<Q", 2**31), "n1 and n2"),
        "places that wrap": (alter_number(16, "<Q", 2**31 + 2), "n1 and n2"),
        "a stencil": (alter_number(24, "<Q", 12), "stencil"),
        "another stencil": (alter_number(24, "<Q", 8), "length scale"),
        "a cap of 0": (alter_number(32, "<Q", 0), "cap"),
        "a large cap": (alter_number(32, "<Q", 65_535), "cap"),
        "a shift": (alter_number(40, "<Q", 62), "shift"),
        "a bound": (alter_number(48, "<Q", 2**31), "g or k"),
        "a shift of the bound": (alter_number(56, "<Q", 65), "g or k"),
        "rows beyond 32 bits": (alter_number(0, "<Q", 2**32 + 9), "n1 and n2"),
        "no grain": (alter_number(64, "<Q", 0), "grain"),
        "a large grain": (alter_number(64, "<Q", 2**54), "grain"),
        "a ratio": (alter_number(72, "<Q", 2**60), "ratio"),
        "no length scale": (alter_number(80, "<Q", 0), "length scale"),
        "a large length scale": (alter_number(88, "<Q", 2**32), "length scale"),
        "a level of 0": (alter_number(120, "<H", 0), "level 0"),
        "the map": (good, "good"),
    }


@pytest.mark.parametrize(
    "sanitized",
    [pytest.param((), marks=pytest.mark.exhaustive), ("-fsanitize=address,undefined", "-fno-sanitize-recover")],
)
def test_invalid_maps_are_refused_by_name(compile_program, tmp_path, sanitized) -> None:
    maps = invalid_maps()
    for number, (content_bytes, _) in enumerate(maps.values()):
        (tmp_path / str(number)).write_bytes(content_bytes)
    program = compile_program(PROGRAM, *sanitized)
    words = [program, *(str(tmp_path / str(number)) for number in range(len(maps)))]
    done = subprocess.run(words, input=flat(NAME), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)
    for (name, (_, word)), (code, message, _) in zip(maps.items(), results, strict=False):
        assert word in message, f"{name}: {message}"
        assert (code == 0) is (word == "good")
    needed = results[len(maps) - 1][2]
    assert needed == arena_bytes(region(NAME)) >= 10 * PLACES
    small, crooked, none, open_page, beyond, far, failed, unwritten, drawn, report, *words = results[len(maps) :]
    assert small == crooked == none != 0 == open_page == drawn
    assert beyond == far != 0 != failed
    assert (unwritten, report) == (3, 62)  # zeros draw the secret itself; a failed draw writes no report
    assert all("unknown error code" in word for word in words)


def test_c_program_draws_with_system_bits(compile_program, tmp_path) -> None:
    program = compile_program(None, "-DREGION_MAIN")
    (tmp_path / "region.map").write_bytes(flat(NAME))
    done = subprocess.run(
        [program, "region.map", "20", "4000"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    counts = np.bincount([int(line) for line in done.stdout.split()], minlength=region(NAME).secrets)
    assert counts.sum() == 4000
    check_counts(NAME, 20, counts.tolist())
    for words, code, message in [
        (["region.map"], 2, "usage"),
        (["region.map", "2x"], 2, "usage"),
        (["none", "2"], 2, "usage"),
        (["region.map", "63"], 1, "not in the map"),
        (["/dev/null", "2"], 1, "all bytes"),
    ]:
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert message in done.stderr
        assert done.stdout == ""
