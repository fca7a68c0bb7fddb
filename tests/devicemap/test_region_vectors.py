"""Reports from device maps: Python, JavaScript and C99 draw the same from the same bytes, also where masses end."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.clients import NODE, modules, run
from fixtures.random_device_maps import (
    MAPS,
    SAMPLER,
    Vector,
    border_vectors,
    content,
    drawing,
    drawn_vectors,
    flat,
    region,
    vector_file,
)
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import VerificationError

pytestmark = pytest.mark.obligation("same-draws")

CC = shutil.which("cc")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
DRAWS = ("javascript", "c99")
IN_NODE = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const given = readFileSync("vectors");
let [at, left, day] = [0, 0, 0];
const bits = (count) => {
  if (count > left) throw new RangeError("more bytes than the vector has");
  left -= count;
  return new Uint8Array(given.buffer, given.byteOffset + (at += count) - count, count);
};
const table = new Uint8Array(readFileSync("web/report.bin"));
const client = await openClient({ table, bits, storage: memoryStorage(), now: () => (day += 1e8), answerAfter: 0 });
const found = [];
while (at < given.length) {
  const [secret, reports, size] = [0, 4, 8].map((more) => given.readUInt32LE(at + more));
  [at, left] = [at + 12, size];
  for (let k = 0; k < reports; k++) {
    found.push((await client.reportCell(secret)).report.number);
    await client.forget();
  }
  if (left > 0) throw new RangeError("fewer bytes than the vector has");
}
console.log(JSON.stringify(found));
"""
IN_C = """
#include "sample_region.c"
#include <stdio.h>
#include <stdlib.h>

static uint32_t left;

static int bits(void *context, unsigned char *bytes, size_t count) {
  if (count > left) return 1;
  left -= (uint32_t)count;
  return fread(bytes, 1, count, (FILE *)context) != count;
}

int main(void) {
  FILE *map = fopen("region.map", "rb"), *vectors = fopen("vectors", "rb");
  static unsigned char bytes[1 << 24];
  size_t size = fread(bytes, 1, sizeof bytes, map), room;
  struct region region;
  uint32_t head[3], report;
  int code = region_room(bytes, size, &room);
  if (code == REGION_GOOD) code = region_open(&region, bytes, size, malloc(room), room);
  printf("[-1");
  while (code == REGION_GOOD && fread(head, 4, 3, vectors) == 3) {
    for (left = head[2]; code == REGION_GOOD && head[1] > 0; head[1]--) {
      code = region_draw(&region, head[0], bits, vectors, &report);
      printf(",%lu", (unsigned long)report);
    }
    if (left > 0) code = REGION_SIZE;
  }
  printf("]");
  fclose(map), fclose(vectors);
  if (code != REGION_GOOD) fprintf(stderr, "%s", region_message(code));
  return code;
}
"""


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C program that follows vectors."""
    assert CC is not None
    place = tmp_path_factory.mktemp("c")
    (place / "sample_region.c").write_bytes(SAMPLER.read_bytes())
    (place / "main.c").write_text(IN_C)
    done = subprocess.run([CC, *STRICT, "main.c", "-o", "main"], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "main"


@pytest.fixture
def reports(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str, str, list[Vector]], list[int]]:
    """What a language draws from a map for vectors, in turn."""

    def drawn(language: str, name: str, vectors: list[Vector]) -> list[int]:
        (tmp_path / "vectors").write_bytes(vector_file(vectors))
        if language == "javascript":
            if NODE is None:
                pytest.skip("needs Node: the client is JavaScript")
            return list(run(modules(tmp_path / "web", content(name)), IN_NODE))
        if CC is None:
            pytest.skip("needs a C compiler, as cc: the sampler is C99")
        (tmp_path / "region.map").write_bytes(flat(region(name)))
        program = request.getfixturevalue("harness")
        done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))[1:]

    return drawn


def expected(vectors: list[Vector]) -> list[int]:
    return [report for vector in vectors for report in vector.reports]


@pytest.mark.parametrize(("name", "language"), few_by_default(itertools.product(MAPS, DRAWS), ("even", "javascript")))
def test_equal_bytes_give_equal_reports(reports, name: str, language: str) -> None:
    vectors = drawn_vectors(name, 6, seed=11)
    assert len(set(expected(vectors))) > 30
    assert reports(language, name, vectors) == expected(vectors)


@pytest.mark.parametrize(
    ("name", "language"), few_by_default(itertools.product(MAPS, DRAWS), ("bare", "javascript"), ("even", "c99"))
)
def test_reports_change_at_ends_of_intervals(reports, name: str, language: str) -> None:
    secrets = (0, region(name).secrets // 2)
    vectors = [vector for secret in secrets for vector in border_vectors(name, secret)]
    drawn_again = [vector for vector in vectors if len(vector.content) == 32]
    assert len(vectors) > 120
    assert len(drawn_again) >= 2 * 3  # at S, at the bound and before it
    assert reports(language, name, vectors) == expected(vectors)


@pytest.mark.parametrize("language", DRAWS)
def test_unreachable_bound_is_refused(reports, monkeypatch, language: str) -> None:
    """Attack: Sbar = 2^31 S, above every sum as it must be, and a device that draws and draws."""
    compact = region("even")
    loose = replace(compact, bound=(compact.bound[0], compact.bound[1] + 31))
    file = content(loose)
    monkeypatch.setitem(globals(), "content", lambda name: file)
    monkeypatch.setitem(globals(), "region", lambda name: loose)
    never = Vector(secret=20, content=b"\x7f" * 16, reports=[0])
    said = "exceeds 4 times the row sum"
    with pytest.raises(AssertionError, match=said):
        reports(language, "even", [never])
    with pytest.raises(VerificationError, match="between 1 and 4 times the row sum"):
        drawing(loose).places(20, 1, lambda count: b"\x7f" * count)
    assert not md.verify(loose).certified


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", DRAWS)
def test_hundred_thousand_reports_are_equal(reports, language: str) -> None:
    found = 0
    for seed in range(8):
        vectors = drawn_vectors("wide", 76, seed=seed)
        assert reports(language, "wide", vectors) == expected(vectors)
        found += len(expected(vectors))
    assert found > 100_000
