"""Client folders written once, and scripts run on them in Node: what the tests of the client share."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from cases import CASES
from columns import drawn, sealed
from exported import MAKERS, exponentially, factored

import mechdesign as md
from mechdesign import Sampler, baselines
from mechdesign.web.client import PUBLIC, joined

NODE = shutil.which("node")
DEVICE = Path(md.__file__).parent / "web" / "device"
TOWN = md.Domain.grid(
    (15, 15), cell=150.0, unit="m", origin=-1125.0, plane=md.geo.Plane(latitude=41.9, longitude=12.49)
)
NETWORK = md.Domain.points_at(
    np.random.default_rng(2).uniform(-800, 800, (40, 2)),
    unit="m",
    plane=md.geo.Plane(latitude=-33.9, longitude=179.999),
)
SLANTED = md.Domain.grid(
    (6, 5), cell=(0.1, 0.3), unit="km", origin=(-1 / 3, 0.7), mask=np.arange(30).reshape(6, 5) % 7 != 3,
    plane=md.geo.Plane(latitude=59.123457, longitude=-150.654321, unit="km"),
)  # fmt: skip


def columned() -> xr.Dataset:
    """Random columns over the places of the factored one."""
    problem = md.load_problem("flat", cells=4, epsilon=0.5)
    return sealed(problem, *drawn(problem, 4))


OWN: dict[str, Callable[[], xr.Dataset]] = {
    "factored": factored,
    "columns": columned,
    "town": lambda: exponentially(TOWN, md.Euclidean(epsilon=0.004, unit="m")),
    "network": lambda: exponentially(NETWORK, md.Euclidean(epsilon=0.004, unit="m")),
    "slanted": lambda: exponentially(SLANTED, md.Euclidean(epsilon=3.0, unit="km")),
    "apart": lambda: baselines.exponential(CASES["reports apart from secrets"]()),
}


@cache
def mechanism(name: str) -> xr.Dataset:
    return (OWN | MAKERS)[name]()


@cache
def sampler(name: str) -> Sampler:
    return Sampler(mechanism=mechanism(name))


class Stream:
    """Random bytes that Python and JavaScript read in turn, from a seed."""

    def __init__(self, seed: int, size: int) -> None:
        self.content = np.random.default_rng(seed).bytes(size)
        self._read = io.BytesIO(self.content)

    def __call__(self, seed: None) -> tuple[Callable[[int], bytes], str]:
        return self._read.read, "stream"


def drawn_in_python(name: str, stream: Stream, reports: int, monkeypatch: Any) -> list[int]:
    """Reports of cells 0, 1, ..., n - 1, 0, 1, ... from the bits of a stream."""
    for module in ("mechanism.rows", "factored.mechanism"):
        monkeypatch.setattr(f"mechdesign.{module}.source", stream)
    rows = sampler(name).rows
    return [rows.live(k % rows.secrets, "row")[0] for k in range(reports)]


# Reports of cells in turn through the whole client: what is remembered is forgotten after each round.
DRAWN = """
async function drawn({ openClient, memoryStorage }, table, stream, reports) {
  let [at, day] = [0, 0];
  const bits = (count) => stream.subarray(at, (at += count));
  const client = await openClient({ table, bits, storage: memoryStorage(), now: () => (day += 1e8) });
  const found = [];
  for (let k = 0; k < reports; k++) {
    const cell = k % client.places.count;
    if (cell === 0) await client.forget();
    found.push((await client.reportCell(cell)).report.number);
  }
  return found;
}
"""


def run(folder: Path, script: str, *words: str) -> Any:
    """What a module beside the folder's files prints, as JSON."""
    assert NODE is not None
    (folder.parent / "script.mjs").write_text(script.replace("./web/", f"./{folder.name}/"))
    done = subprocess.run(
        [NODE, "script.mjs", *words], cwd=folder.parent, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def modules(folder: Path, table: bytes) -> Path:
    """A folder of the client's module and a table of any kind, proved by nobody."""
    folder.mkdir(exist_ok=True)
    (folder / "report.bin").write_bytes(table)
    (folder / "report.mjs").write_text(f"{joined('home.mjs')}export {{ {PUBLIC} }};\n")
    return folder


def taken_apart(table: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and body of report.bin."""
    start = 16 + int.from_bytes(table[12:16], "little")
    return json.loads(table[16:start]), zlib.decompress(table[start:-32])


def put_together(header: object, body: bytes, *, version: int = 1, packed: bytes | None = None) -> bytes:
    """A file of these parts, with the checksum of what it says."""
    told = header if isinstance(header, bytes) else json.dumps(header).encode()
    before = b"mechdesign" + version.to_bytes(2, "little") + len(told).to_bytes(4, "little") + told
    content = before + (zlib.compress(body) if packed is None else packed)
    return content + hashlib.sha256(content).digest()
