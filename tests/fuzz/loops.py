"""The client in Node and the C sampler, fuzzed by loops of their own: python tests/fuzz/loops.py PROGRAM [SECONDS].

PROGRAM is `client` or `region`. The first opens tables, factors, device maps and session designs by `openClient` and
`openSession`. The second opens region.map in sample_region.c with the sanitizers of GCC, and keeps mutants that reach
another branch. Checksums are corrected after most changes. A reader refuses by an error of its own; any other end is a
finding, and its input is kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "web")]

from fixtures import random_device_maps
from fixtures.clients import modules
from test_client_session import design

import mechdesign as md
from mechdesign.web import write_client

SANITIZED = ("-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
WATCHED = "-fsanitize-coverage=trace-pc"


def client(folder: Path, seconds: str) -> list[str]:
    """The command that fuzzes the client."""
    table = md.baselines.exponential(md.load_problem("flat", cells=3))
    factors = md.solve(md.EikonalWeights(problem=md.load_problem("flat", cells=3)), method="factored")
    seeds = [random_device_maps.content("eight"), random_device_maps.content("coarse")]
    for number, one in enumerate((table, factors, design("clock"), design("risk, any hours"))):
        seeds.append((write_client(one, folder / str(number)) / "report.bin").read_bytes())
    return [
        "node",
        str(HERE / "client.mjs"),
        str(modules(folder / "web", b"")),
        seconds,
        "1",
        *seed_files(folder, seeds),
    ]


def region(folder: Path, seconds: str) -> list[str]:
    """The command that fuzzes the C sampler, compiled."""
    (folder / "sample_region.c").write_bytes(random_device_maps.SAMPLER.read_bytes())
    shutil.copy(HERE / "region.c", folder)
    subprocess.run(["gcc", *SANITIZED, WATCHED, "region.c", "-o", "region"], cwd=folder, check=True)
    seeds = [random_device_maps.flat(name) for name in ("eight", "bare", "far", "coarse")]
    return [str(folder / "region"), seconds, "1", *seed_files(folder, seeds)]


def seed_files(folder: Path, seeds: list[bytes]) -> list[str]:
    """Write seeds to files and return their names."""
    files = [folder / f"seed{number}" for number in range(len(seeds))]
    for file, seed in zip(files, seeds, strict=True):
        file.write_bytes(seed)
    return [str(file) for file in files]


if __name__ == "__main__":
    program, seconds = sys.argv[1], (sys.argv[2:] or ["600"])[0]
    with tempfile.TemporaryDirectory() as folder:
        command = {"client": client, "region": region}[program](Path(folder), seconds)
        sys.exit(subprocess.run(command, check=False).returncode)
