"""The page of a device map, and the folder of files for devices.

The page holds the file and its facts. The folder holds region.map, for devices without zlib and JSON. From it
sample_region.c draws in place. It is a plain container (mechanism/container.py) of the kind "device". The first array
is numbers (u8): n1, n2, margin, stencil, cap, shift, g, k, grain, ratio, five length scales. The last two scales are 0
with 8 neighbours. Then come level (u2), potential (i2) and weight (u1) of R x C places, as in device_map.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import TIMES, number
from mechdesign.base.streams import visible
from mechdesign.base.units import plural_unit
from mechdesign.devicemap.device_map import DeviceMap
from mechdesign.devicemap.files import pack
from mechdesign.devicemap.verify import map_protection
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.container import pack_container
from mechdesign.output.memory_claim import memory_claim
from mechdesign.output.packaged import package_file
from mechdesign.output.sentences import join_sentences, protection_sentence
from mechdesign.solvers.result import Progress
from mechdesign.verification.verify import Verification, require_certified
from mechdesign.web.client import folder_contents
from mechdesign.web.contents import Arrays, protection_contents
from mechdesign.web.identity import exact, identity_of
from mechdesign.web.packed import size_words
from mechdesign.web.page import Page

_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # quantiles of levels, in the table for readers without scripts
_NUMBERS = 15  # length scales that 8 neighbours lack are 0


def map_page(device_map: DeviceMap, _: object, on_progress: Callable[[Progress], None] | None) -> Page:
    """The page of a device map, verified first."""
    checked, content, arrays = require_certified(device_map, on_progress=on_progress), pack(device_map), Arrays()
    place, facts = arrays.place(np.frombuffer(content, np.uint8)), _facts(device_map, checked, content)
    # The page proves the claim from the bytes of the file, so it gets these and not arrays of the map. To the names of
    # web/contents.py it adds `first`, the cell that it proves before the others, and `levels_per`, the length to which
    # printed levels belong.
    contents = {
        "kind": "region",
        "attrs": {},
        "arrays": {"compact": place},
        "beside": {},
        "first": _first(device_map),
        "levels_per": _per(device_map.unit)[0],
        "protection": protection_contents(checked),
        "verification": checked.as_dict(),
        "facts": facts,
    }
    return Page(kind="region", facts=facts, packed=arrays.pack(contents))


def _per(unit: str) -> tuple[float, str]:
    return (1000.0, "km") if unit == "m" else (1.0, plural_unit(unit, 1))


def _levels(device_map: DeviceMap) -> Any:
    return (
        device_map.level[device_map.inside].reshape(device_map.cells) * device_map.level_unit * _per(device_map.unit)[0]
    )


def _first(device_map: DeviceMap) -> int:
    # Of the cells of the highest level, the nearest to the middle.
    level = device_map.level[device_map.inside].reshape(device_map.cells)
    i, j = np.nonzero(level == level.max())
    squared_distance = (i - device_map.cells[0] / 2) ** 2 + (j - device_map.cells[1] / 2) ** 2
    nearest = int(np.argmin(squared_distance))
    return int(i[nearest]) * device_map.cells[1] + int(j[nearest])


def _facts(device_map: DeviceMap, checked: Verification, content: bytes) -> dict[str, Any]:
    assert checked.protection is not None
    unit, levels, (_, per) = plural_unit(device_map.unit), _levels(device_map), _per(device_map.unit)
    high, low = number(float(levels.max()), up=True), number(float(levels.min()), up=False)
    attrs = xr.Dataset(attrs={"problem": device_map.problem, "versions": versions()})
    checksum = hashlib.sha256(content).hexdigest()
    identity = identity_of(attrs, "map", checksum=checksum, program=visible(device_map.program))
    provenance = {name: text for name, text in identity["provenance"].items() if name != "made with"}
    side = f" {TIMES} ".join(dict.fromkeys(number(h) for h in device_map.cell))
    figures = {
        "ratio": (checked.ratio, "of the claim"),
        "violations": (checked.violations, ""),
        "rebuilt": (checked.edge_source, ""),
        "worst": (checked.worst, ""),
    }
    return identity | {
        "claim": visible(checked.claim or ""),
        "provenance": provenance | {"made from": device_map.source_sha256},
        "sentence": join_sentences(
            [protection_sentence(checked.protection), f"Levels range from {low} to {high} nats per {per}."]
        ),
        "subtitle": f"{device_map.cells[0]:,} {TIMES} {device_map.cells[1]:,} cells of {side} {unit} · map",
        "unit": unit,
        "per": per,
        "figures": [
            {"key": key, "name": key.replace("_", " "), "text": exact(value), "unit": words}
            for key, (value, words) in figures.items()
            if value is not None
        ],
        "listed": {
            "head": ["share of the cells", f"level at most, nats per {per}"],
            "rows": [[f"{100 * share:g} %", f"{np.quantile(levels, share):.3g}"] for share in _SHARES],
            "rest": 0,
        },
    }


def plain_file(device_map: DeviceMap) -> bytes:
    """The bytes of region.map: 5 a place, and some 330."""
    header = device_map.header()
    numbers = [*header["cells"], *(header[name] for name in ("margin", "stencil", "cap", "shift"))]
    numbers += [*header["bound"], header["grain"], int(header["ratio"]), *header["length_scales"]]
    numbers += [0] * (_NUMBERS - len(numbers))
    # Places come last and uncompressed, so that a device reads them at fixed offsets where the file lies in memory.
    arrays = {name: getattr(device_map, name) for name in ("level", "potential", "weight")}
    return pack_container("device", {}, {"numbers": np.array(numbers, np.uint64), **arrays}, plain=True)


def arena_bytes(device_map: DeviceMap) -> int:
    """Bytes of working memory that sample_region.c needs for this map."""
    # As `region_room` of sample_region.c counts: kernel and sums of rows, then heap, slots and distances of places.
    rows, columns = device_map.shape
    return 8 * (device_map.cap + 1 + rows) + sum(-(-width * rows * columns // 8) * 8 for width in (4, 4, 2))


def client_files(device_map: DeviceMap, on_progress: Callable[[Progress], None] | None = None) -> dict[str, bytes]:
    """Every file of the folder of a device map, by name, verified first."""
    require_certified(device_map, on_progress=on_progress)
    table, flat = pack(device_map), plain_file(device_map)
    around = device_map.shape[0] * device_map.shape[1] - device_map.secrets
    words = {
        "claim": device_map.claim,
        "memory": memory_claim("cell", None, device_map.unit, positions=False),
        "promise": protection_sentence(map_protection(device_map)),
        "flat": size_words(len(flat)),
        "frame": str(around),
        "room": size_words(arena_bytes(device_map)),
    }
    contents = folder_contents("web/device/REGION.md", words, table, device_map.header()["about"], device_map.secrets)
    contents |= {name: package_file(f"devicemap/{name}") for name in ("sample_region.c", "region_memory.h")}
    if device_map.plane is not None:
        contents["region_location.h"] = _plane_line(device_map) + package_file("devicemap/region_location.h")
    return contents | {"region.map": flat}


def _plane_line(device_map: DeviceMap) -> bytes:
    """The first line of region_location.h: where on Earth the map lies."""
    plane = device_map.header()["plane"]
    pairs = ", ".join(f"{{{x!r}, {y!r}}}" for x, y in (device_map.origin, device_map.cell))
    degrees = ", ".join(repr(float(plane[name])) for name in ("longitude", "latitude", "metres"))
    return f"#define REGION_PLANE {{{degrees}, {pairs}, {plane['decimals']}}}\n".encode()
