"""Mechanisms to export, made once: what the tests of exports, of the verifier and of the sampler share."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from capped import solved
from cases import CASES, varying_level
from rewritten import rewritten

import mechdesign as md
from mechdesign import baselines
from mechdesign.mechanism.claim import MechanismFile
from mechdesign.output.export import write_content
from mechdesign.output.table_formats import Content
from mechdesign.utility import bayes_remap
from mechdesign.verification import verify_table

HOLES = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 1]], bool)  # and a row of holes
PARK = md.Domain.grid((3, 3), cell=200.0, unit="m", origin=-300.0, plane=md.geo.Plane(latitude=48.85, longitude=2.35))
ROADS = md.geo.Streets(epsilon=0.01, unit="m", tail=[0, 1, 2, 3], head=[1, 2, 3, 0], length=[120.0, 80.0, 110.0, 95.0])


def exponentially(domain: md.Domain, metric: object) -> xr.Dataset:
    """The exponential mechanism of a metric: it claims a multiple of it."""
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.ZeroOne())
    return baselines.exponential(problem)


MAKERS = {
    "line": lambda: md.solve(md.Optimal(problem=md.load_problem("line", cells=5))),
    "plane": lambda: md.solve(md.Optimal(problem=md.load_problem("flat", cells=3))),
    "all pairs": lambda: baselines.exponential(md.load_problem("euclidean", cells=4)),
    "remapped": lambda: bayes_remap(baselines.exponential(md.load_problem("flat", cells=4))),
    "discrete": lambda: baselines.exponential(md.load_problem("discrete", secrets=4)),
    "holes": lambda: exponentially(
        md.Domain.grid((4, 5), cell=0.1, unit="km", origin=7.3, mask=HOLES), md.Euclidean(epsilon=1.1, unit="km")
    ),
    "levels": lambda: exponentially(
        md.Domain.grid((4, 3), cell=1.0, unit="cell"), md.Eikonal(level=varying_level(), stencil=16)
    ),
    "park": lambda: exponentially(PARK, md.Euclidean(epsilon=0.004, unit="m")),
    "roads": lambda: exponentially(md.Domain.points_at([[0, 0], [100, 0], [100, 80], [0, 90]], unit="m"), ROADS),
    "graph": lambda: baselines.exponential(CASES["graph, table loss"]()),
    "capped": solved,
    "nothing": lambda: baselines.constant(md.load_problem("line", cells=3)),
}


@cache
def made(name: str) -> xr.Dataset:
    return MAKERS[name]()


@cache
def factored() -> xr.Dataset:
    problem = md.load_problem("flat", cells=4, epsilon=0.5)
    return md.solve(md.EikonalWeights(problem=problem), method="factored")


def proved(path: Path) -> dict[str, Any]:
    """The header of an exported table, which the verifier that is handed over with it proves."""
    table = verify_table.read(str(path))
    assert verify_table.faults_of(table) == []
    return table.header


def with_mass(mechanism: xr.Dataset, mass: np.ndarray) -> xr.Dataset:
    """The same Dataset with other masses, sealed again."""
    return rewritten(mechanism, mass=(("secret", "report"), mass.astype(np.uint64)))


def flipped(path: Path, seed: int) -> bytes:
    """The bytes of a file with one bit changed."""
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def resealed(data: bytes) -> bytes:
    """The bytes of JSON, with the checksum in its last line made that of the lines before."""
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    return data[:start] + b'"content_sha256": "%s"}\n' % hashlib.sha256(data[:start]).hexdigest().encode()


def joined(path: Path) -> str:
    """An export as one text: its own, and of a CSV table what is said beside it, on lines "# name: value" of JSON."""
    text = path.read_text("utf-8", "surrogatepass")
    if path.suffix == ".json":
        return text
    said = json.loads(path.with_name(f"{path.name}-metadata.json").read_text("utf-8"))
    for name in ("format", "table", "table_sha256", "content_sha256"):
        del said[name]
    lists = [(name, each) for name in ("edge", "patch") for each in said.pop(name, [])]
    return "".join(f"# {name}: {json.dumps(value)}\n" for name, value in [*said.items(), *lists]) + text


def parted(text: str | bytes, path: Path) -> Path:
    """Write what `joined` reads, changed, with the checksums made those of what is there."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if path.suffix == ".json":
        path.write_bytes(resealed(data))
        return path
    lines = data.split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if not line.startswith(b"# ")))
    notes = [line[2:].split(b": ", 1) for line in lines if line.startswith(b"# ")]
    digest = hashlib.sha256(path.read_bytes()).hexdigest().encode()
    said = [(b"format", b'"mechdesign/table/1"'), (b"table", json.dumps(path.name).encode())]
    said += [(b"table_sha256", b'"%s"' % digest), *((n[0], n[-1]) for n in notes if n[0] not in (b"edge", b"patch"))]
    said += [
        (kind, b"[" + b",\n".join(n[-1] for n in notes if n[0] == kind) + b"]")
        for kind in (b"edge", b"patch")
        if kind == b"edge" or any(n[0] == kind for n in notes)
    ]
    path.with_name(f"{path.name}-metadata.json").write_bytes(
        resealed(b"{" + b"".join(b'"%s": %s,\n' % pair for pair in said) + b'"')
    )
    return path


@dataclass
class Forgery:
    """An export taken apart into the texts that it is made of, to be changed and put together again.

    said, comments by name, in JSON; secrets (n, k) and reports (m, k), coordinates; edges, in JSON;
    masses (n, m); sums (n,) of a factored mechanism, or None.
    """

    said: dict[str, str]
    secrets: list[list[str]]
    reports: list[list[str]]
    edges: list[str]
    masses: list[list[str]]
    sums: list[str] | None = None

    @classmethod
    def of(cls, table: Path) -> Forgery:
        """The parts of a CSV export."""
        lines = joined(table).split("\n")[:-1]
        notes = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
        header, *body = [line.split(",") for line in lines if not line.startswith("# ")]
        r, m = header.index("report"), header.index("mass")
        width = sum(line[0] == "0" for line in body)
        return cls(
            said={name: value for name, value in notes if name != "edge"},
            secrets=[line[1:r] for line in body[::width]],
            reports=[line[r + 1 : m - 1] for line in body[:width]],
            edges=[value for name, value in notes if name == "edge"],
            masses=[[line[m] for line in body[k : k + width]] for k in range(0, len(body), width)],
            sums=[line[m + 1] for line in body[::width]] if len(header) > m + 1 else None,
        )

    @property
    def claim(self) -> dict:
        """The claim, to be given back changed."""
        return json.loads(self.said["claim"])

    @claim.setter
    def claim(self, data: dict) -> None:
        self.said["claim"] = json.dumps(data)

    def listed(self) -> list[list]:
        """The edges [tail, head, hexadecimal length]."""
        return [json.loads(edge) for edge in self.edges]

    def agree(self) -> Forgery:
        """With the counts made those of the lists."""
        counts = {"secrets": self.secrets, "reports": self.reports, "edges": self.edges}
        self.said |= {name: str(len(parts)) for name, parts in counts.items()}
        return self

    def written(self, path: Path) -> Path:
        """Write the file of these parts, with the checksum of what it says."""
        return parted(self._csv() if path.suffix == ".csv" else self._json(), path)

    def _csv(self) -> str:
        degrees = ["x", "y", "longitude", "latitude"]
        named = degrees if "coordinates" in self.said else ["x", "y", "z"]
        columns = ["secret", *(f"secret_{a}" for a in named[: len(self.secrets[0])])]
        columns += ["report", *(f"report_{a}" for a in named[: len(self.reports[0])]), "probability", "mass"]
        ends = [[]] * len(self.masses) if self.sums is None else [[total] for total in self.sums]
        lines = [f"# {name}: {value}" for name, value in self.said.items()]
        lines += [",".join(columns + ["row_sum"] * (self.sums is not None))]
        for u, (place, row, end) in enumerate(zip(self.secrets, self.masses, ends, strict=True)):
            lines += [
                ",".join([str(u), *place, str(y), *at, _share(mass, *end), mass, *end])
                for y, (at, mass) in enumerate(zip(self.reports, row, strict=True))
            ]
        return "\n".join([*lines, *(f"# edge: {edge}" for edge in self.edges), ""])

    def _json(self) -> str:
        said = self.said
        lists = {
            "edge": self.edges,
            "secret_points": [f"[{', '.join(place)}]" for place in self.secrets],
            "report_points": [f"[{', '.join(place)}]" for place in self.reports],
            "mass": [json.dumps(" ".join(row)) for row in self.masses],
        }
        parts = [f'"{name}": {value},\n' for name, value in said.items()]
        parts += ['"{}": [{}],\n'.format(name, ",\n".join(lines)) for name, lines in lists.items()]
        return "".join(['{"format": "mechdesign/table/1",\n', *parts, '"'])


def _share(mass: str, total: str = str(1 << 62)) -> str:
    """The probability of a mass, as an export writes it; "0" of what are no numbers."""
    try:
        return repr(int(mass) / int(total))
    except (ValueError, ArithmeticError):
        return "0"


def written(mechanism: xr.Dataset, path: Path) -> Path:
    """A table as `md.export` writes it, of a mechanism that it refuses: nothing is verified."""
    write_content(_content(mechanism), path)
    return path


def _content(mechanism: xr.Dataset) -> Content:
    stored = MechanismFile.read(mechanism)
    return Content(stored=stored, rows=range(stored.domain.size))
