"""Wrong command lines and damaged files, hundreds of them: each is refused in one line that names the field.

Allowed are the exit codes 0, 1, 2 and 130. Nothing is written unless a command ends with 0, nothing takes 20 seconds or
2 GB, no exception is shown, and none ends in an error of kind "internal", which is what `main` makes of a defect.
The lines run in a process of their own, command_worker.py, which is stopped where one takes too long.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import resource
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from command_worker import MEMORY, START, outcome
from conftest import ROOT
from fixtures.absent_capabilities import needs
from fixtures.command_lines import CONSUMERS, ENTRIES, combine_options, damage, systematic
from fixtures.session_designs import design_with_rule

import mechdesign as md

pytestmark = needs("geo", "factored", "devicemap", "sessions")  # whose files MADE has

SECONDS = 20  # of the processor, for a line; the first ones compile, and take what they take
PATIENCE = 300  # seconds until a line that does not answer is given up
WORKER = Path(__file__).with_name("command_worker.py")
COMMANDS = {entry.command for entry in ENTRIES}
HEADER = "ncols 3\nnrows 3\nxllcorner -9000\nyllcorner -9000\ncellsize 6000\nNODATA_value -9999\n"
MADE = {  # files that other lines read, and the lines that make them
    "line.nc": "solve line --cells 3 -o line.nc",
    "two.nc": "solve line --cells 2 -o two.nc",
    "factored.nc": "solve line --cells 3 --program eikonal --method factored --rounds 5 -o factored.nc",
    "curve.nc": "compare line --cells 2 --scales 0.25,4 -o curve.nc",
    "area.nc": "area park.geojson --cell 600 --within 600 --factor 8 --program planar-laplace -o area.nc",
    "exported.json": "export line.nc -o exported.json",
    "day.session": "session create day.session day.json --limit 4",
}
TEXTS = {
    "table.csv": "0.5,0.5\n0.25,0.75\n",
    "reports.csv": "report,count\n0,400\n1,500\n",
    "areas.csv": "cell,area\n0,left\n1,right\n",
    "places.csv": "x,y\n0,0\n0,1\n",
    "people.csv": "latitude,longitude,population\n40.5,-74.9,9000\n48.858,2.348,50\n",
    "nodes.csv": "osmid,x,y\n1,0,0\n2,0,100\n3,90,90\n",
    "edges.csv": "u,v,length\n1,2,100.5\n2,3,140\n1,3,130\n",
    "checkins.txt": "0\t2010-10-19T23:55:27Z\t48.858\t2.348\t22847\n1\t2010-10-18T22:17:43Z\t48.8581\t2.3479\t420315\n",
    "map.asc": HEADER + "1 2 3\n4 5 6\n7 8 9\n",
    "taken.nc": "an older file",
    "wide.geojson": '{"type": "Polygon", "coordinates": [[[1, 47], [4, 47], [4, 50], [1, 50], [1, 47]]]}',
    "empty.nc": "",
    "empty.csv": "",
    "empty.py": "",
    "mine.py": (ROOT / "problems" / "line.py").read_text(encoding="utf-8").replace("cells: int = 10", "cells: int = 2"),
}


class Worker:
    """The process that runs the lines; a new one after each that did not answer in time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, None
        self.answers: queue.Queue[str] = queue.Queue()

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.answers = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self.answers), daemon=True).start()

    @staticmethod
    def _listen(process, answers) -> None:
        for line in process.stdout:
            answers.put(line)
        answers.put("")

    def run(self, words: list[str], *, encoding: str = "utf-8", seconds: int = SECONDS) -> dict:
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps({"words": words, "encoding": encoding, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        try:
            answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            answer = ""
        if answer:
            return json.loads(answer)
        self.stop()
        return {"code": "no answer: it crashed, took too long or hangs", "out": "", "err": ""}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            for stream in (self.process.stdin, self.process.stdout):
                stream.close()
            self.process.wait()
        self.process = None


def prepare(folder: Path) -> None:
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "problems" / "data" / "example_park.geojson", folder / "park.geojson")
    table = np.array([[0.5, 0.5], [0.25, 0.75]])
    np.save(folder / "table.npy", table)
    md.sessions.save_design(design_with_rule("clock"), folder / "day.json")
    axes = {"x": ("x", [0.0, 1.0], {"units": "m"}), "y": ("y", [0.0, 1.0], {"units": "m"})}
    xr.Dataset({"density": (("y", "x"), np.ones((2, 2)))}, coords=axes).to_netcdf(folder / "map.nc")
    for name in ("fifo.nc", "fifo.csv", "fifo.py"):
        os.mkfifo(folder / name)
    for name in ("folder.nc", "folder.py", "["):
        (folder / name).mkdir()
    (folder / "dangling.nc").symlink_to("nowhere.nc")
    for name in ("loop.nc", "loop.py", "loop.csv"):
        (folder / name).symlink_to(name)


def optional_files(folder: Path) -> None:
    """Files of kinds that need an extra: no line reads them without."""
    try:
        import pandas as pd

        pd.DataFrame({"a": [0.5, 0.25], "b": [0.5, 0.75]}).to_parquet(folder / "table.parquet")
        import rasterio

        profile = {"driver": "GTiff", "width": 3, "height": 3, "count": 1, "dtype": "float64", "crs": "EPSG:32631"}
        transform = rasterio.Affine(10_000, 0, 440_000, 0, -10_000, 5_420_000)
        with rasterio.open(folder / "map.tif", "w", transform=transform, **profile) as target:
            target.write(np.arange(1.0, 10.0).reshape(3, 3), 1)
    except ImportError:
        pass


@pytest.fixture(scope="module")
def worker(tmp_path_factory, pytestconfig):
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    folder = tmp_path_factory.mktemp("fuzz")
    prepare(folder)
    optional_files(folder)
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [])  # put back afterwards
        for line in MADE.values():  # in this process, which has the modules and kernels
            ended = outcome(line.split(), "utf-8")
            assert ended["code"] == 0, (line, ended)
    started = Worker(folder)
    for entry in ENTRIES if pytestconfig.getoption("--run-all") else ():
        words = entry.words({})
        ended = started.run(words, seconds=0)
        assert ended["code"] in (0, 1, 2), (words, ended)  # 1: the table that is audited breaks its claim
        for name in ("a.nc", "x.csv", "x.png"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "web", ignore_errors=True)
    yield started
    started.stop()


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Every entry of a folder, and what lies in its folders: size and time of change; but for empty lock files, which
    stay beside what they lock (base/lock.py).
    """
    found = {}
    for path in folder.rglob("*"):
        if path.name.endswith(".lock") and path.is_file() and path.stat().st_size == 0:
            continue
        if path.is_symlink() or path.is_file() or path.is_dir():
            known = path.lstat()
            found[str(path.relative_to(folder))] = (
                known.st_size * (not path.is_dir()),
                known.st_mtime_ns * path.is_file(),
            )
    return found


def is_verdict(words: list[str], ended: dict, document: dict | None) -> bool:
    """True if exit code 1 is that of a result: a claim that does not hold, reports that do not fit, or a large gap."""
    if "warning: the gap is " in ended["err"]:
        return True
    if document is None:
        sign = {"audit": "The table breaks the claim", "estimate": "Do not trust", "verify": ""}.get(words[0])
        return sign is not None and sign in ended["out"]
    is_misfit = min(document.get("fit_p", 1.0), document.get("against_fit_p", 1.0)) < 1e-3  # p of `estimate`
    return is_misfit or document.get("certified") is False or document.get("verdict") == "broken"


def faults(words: list[str], ended: dict, changed: bool) -> list[str]:
    """Faults of the way in which a line ended."""
    code, out, err = ended["code"], ended["out"], ended["err"]
    if code not in (0, 1, 2, 130):
        return [f"exit code {code}"]
    found = [f"it shows {text!r}" for text in ("Traceback", "Warning:", "Exception ignored") if text in out + err]
    if code == 0:
        return found
    found += ["files were written"] * (changed and "saved in" not in err)
    if "--json" in words:
        try:
            document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        except ValueError:
            return [*found, "not one JSON document"]
        error = document.get("error")
        if error is None:
            is_allowed = code == 1 and is_verdict(words, ended, document)
            return found if is_allowed else [*found, "no error in the document"]
        if not all(isinstance(error[key], str) and error[key].strip() for key in ("field", "message")):
            found.append("an empty field or message")
        said = f"{error['kind']} {error['message']}"
    else:
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        verdict = code == 1 and not lines and is_verdict(words, ended, None)
        if not verdict and (out or len(lines) != 1 or not err.endswith(lines[0] + "\n") or not lines[0].isprintable()):
            return [*found, "not one line of error"]
        said = "".join(lines)
    own = any(word.endswith(".py") for word in words)
    for text, meaning in (
        ("report this with the command", "a defect"),
        ("does not fit in memory", "memory was asked for that was not there"),
        *(() if own else (("the problem file failed", "a shipped problem failed"),)),
    ):
        if text in said:
            found.append(f"{meaning}: {said}")
    return found


def trial(worker: Worker, words: list[str], encoding: str) -> tuple[str, list[str]]:
    """The outcome of a line, and its faults; what a good line wrote is removed."""
    before = state(worker.folder)
    ended = worker.run(words, encoding=encoding)
    after = state(worker.folder)
    found = faults(words, ended, changed=after != before)
    for name in sorted(set(after) - set(before), reverse=True):
        path = worker.folder / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return str(ended["code"]), found


def run_lines(worker: Worker, lines: list[list[str]], rng: random.Random) -> tuple[Counter, list[str]]:
    counts, wrong = Counter(), []
    for line in lines:
        words = [*line, "--json"] if rng.random() < 0.5 else line
        code, found = trial(worker, words, rng.choice(["utf-8", "ascii"]))
        counts[line[0] if line[:1] and line[0] in COMMANDS else "no command", code] += 1
        shown = " ".join(word if len(word) < 40 else f"{word[:3]}..({len(word)})" for word in words)
        wrong += [f"{shown!a}: {fault[:300]}" for fault in found]
    return counts, wrong


def run_files(worker: Worker, count: int, rng: random.Random) -> tuple[Counter, list[str]]:
    names = [name for name in CONSUMERS if (worker.folder / name).is_file()]
    pairs = [(name, line) for name in names for line in CONSUMERS[name]]
    counts, wrong = Counter(), []
    for number in range(count):
        name, line = pairs[number % len(pairs)]
        path = worker.folder / f"bad{Path(name).suffix}"
        path.write_bytes(damage((worker.folder / name).read_bytes(), rng))
        words = [path.name if word == "@" else word for word in line.split()]
        words += ["--json"] * (rng.random() < 0.5)
        code, found = trial(worker, words, "utf-8")
        counts[words[0], code] += 1
        if found:
            kept = worker.folder.with_name(f"{number}-{path.name}")
            shutil.copy(path, kept)
            wrong += [f"{' '.join(words)} with {kept}: {fault}" for fault in found]
        path.unlink()
    return counts, wrong


def summary_of(counts: Counter) -> str:
    commands = sorted({command for command, _ in counts})
    lines = [f"{c:>12}: {dict(sorted((code, n) for (d, code), n in counts.items() if d == c))}" for c in commands]
    return "\n".join([*lines, f"{sum(counts.values())} lines"])


def test_wrong_lines(worker):
    rng = random.Random(1)
    lines = rng.sample(systematic(), 30) + [combine_options(rng) for _ in range(10)]
    counts, wrong = run_lines(worker, lines, rng)
    print(summary_of(counts))
    assert not wrong, "\n".join(wrong)


LIMITED = [("", 0), ("solve fifo.py", 2)]
LONGER = [
    ("solve line --cells 99999999999", 2), ("verify fifo.nc", 2),
    ("sample line.nc --secret 0 -n 99999999999 --json", 2),
    ("solve line --cells 1_0", 2), ("solve \udcff.py", 2), ("solve loop.py --json", 2),
    ("compare line --scales 1:2:99999999999", 2),
    ("audit table.csv --metric euclidean --epsilon 1 --unit km --cell 1 --grid 100000x100000", 2),
    ("--version", 0), ("solve", 2), ("solve line --gap nan", 2), ("solve folder.py --json", 2), ("solve empty.py", 2),
    ("solve philadelphia --cells 4000 --json", 2), ("solve philadelphia --cells 1000", 2),
    ("solve euclidean --cells 1000", 2), ("solve neighbourhoods --cells 500", 2),
    ("solve neighbourhoods --cells 1000", 2), ("solve paris --cells 1000", 2), ("solve streets --nodes 20000", 2),
    ("solve income --outputs 99999999999", 2), ("compare philadelphia --cells 1000", 2),
    ("compare flat --cells 1000 --scales 1,2", 2), ("sample line.nc --secret 0 --seed -1", 2), ("verify empty.nc", 1),
    ("verify /dev/zero", 2), ("export table.csv -o x.png", 1), ("export line.nc -o x.csv --rows 1:0", 2),
    ("area wide.geojson --cell 200 --within 200 --factor 2 -o a.nc", 2),
    ("area wide.geojson --cell 290 --within 200 --factor 2 -o a.nc", 2), ("level --within 1e400 --factor 2", 2),
]  # fmt: skip


def limit_process() -> None:
    """Limits of a process: addresses and seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_AS, (START + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.parametrize(
    ("line", "code"), LIMITED + [pytest.param(*row, marks=pytest.mark.exhaustive) for row in LONGER]
)
def test_lines_in_processes_of_their_own(worker, line, code):
    folder, words = worker.folder, line.split()
    before = state(folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "mechdesign.cli.main", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        preexec_fn=limit_process,
    )  # fmt: skip
    answer = {"code": ended.returncode, "out": ended.stdout, "err": ended.stderr}
    assert ended.returncode == code, ended.stderr
    assert faults(words, answer, changed=state(folder) != before) == []


def test_damaged_files(worker):
    counts, wrong = run_files(worker, 24, random.Random(2))
    print(summary_of(counts))
    assert not wrong, "\n".join(wrong)


@pytest.mark.exhaustive
def test_many_wrong_lines(worker):
    rng = random.Random(3)
    counts, wrong = run_lines(worker, systematic() + [combine_options(rng) for _ in range(4000)], rng)
    print(summary_of(counts))
    assert not wrong, "\n".join(wrong)


@pytest.mark.exhaustive
def test_many_damaged_files(worker):
    counts, wrong = run_files(worker, 3000, random.Random(4))
    print(summary_of(counts))
    assert not wrong, "\n".join(wrong)
