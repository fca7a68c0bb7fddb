"""The file of a compact map: a frame (mechanism/container.py) of the kind "compact".

It holds three arrays of R x C numbers: level (u2), potential (i2) and weight (u1), all of them as differences. The
header has these keys besides and no others:

| key | value | meaning |
|---|---|---|
| cells | [n1, n2], whole | secrets along either axis, from 2 on |
| frame | whole | cells around them, from 0 on; (n1 + 2 frame) (n2 + 2 frame) <= 2^24 |
| cell, origin | two doubles | sides of a cell; the low corner of the rectangle of secrets |
| unit | text | of both |
| plane | {"latitude", "longitude", "metres", "decimals"} | only where the map lies on Earth: degrees of (0, 0), |
| | | azimuthal equidistant, WGS 84; metres of the unit; decimals of degrees that name a cell |
| stencil | 8 or 16 | neighbours |
| level_unit | double | nats per `unit` of one level |
| advance | 3 or 5 whole | A_k, from 1 to 2^32 - 1 |
| grain, step | whole | from 1 to 2^54 - 1; step cap < 58 * 0.69 * 2^48 |
| cap | whole | from 1 to 65,534 |
| ratio, shift | decimal text, whole | e^(step 2^-48) rounded down |
| bound | [g, k], whole | of S |
| claim, cost | text | what one report guarantees, and what more cost |
| ledger | 64 hexadecimal digits | names the claim: costs add up where they agree |
| mechanism | 64 hexadecimal digits | the checksum of the design that the map was made from |
| about | {"problem", "program", "promise"} | texts for people |

`ledger` is the SHA-256 of the JSON text of {"cell", "cells", "level_unit", "origin", "plane" (or null), "stencil",
"unit"} of the header, keys sorted, as Python's json.dumps writes it, followed by the levels of the secrets as uint16,
row by row. The numbers are those of device_map.py.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.files import open_regular, read_bytes
from mechdesign.base.json_fields import whole, wholes, word
from mechdesign.base.memory import require_bytes, within_memory
from mechdesign.devicemap.device_map import MOST_PLACES, DeviceMap
from mechdesign.mechanism.container import MOST_HEADER, Layout, pack_container, unpack_container
from mechdesign.mechanism.mechanism_file import verification_errors
from mechdesign.mechanism.schema import refused
from mechdesign.problem.plane import Plane

KIND = "compact"
_ON_EARTH = {"projection": "azimuthal equidistant", "ellipsoid": "WGS84"}  # of the plane of a map
_TYPES = {"level": "u2", "potential": "i2", "weight": "u1"}
_PLACE_BYTES = 5
_WORKING = 40  # bytes of memory a place takes while it is unpacked
_TEXT = 1 << 14  # characters of a text
_CHECKSUM = re.compile("[0-9a-f]{64}")


def pack(device_map: DeviceMap) -> bytes:
    """The file."""
    arrays = {name: getattr(device_map, name) for name in _TYPES}
    return pack_container(KIND, device_map.header(), arrays, differences=_TYPES)


def unpack(content: bytes) -> DeviceMap:
    """The map of a file, from untrusted bytes: its header must be what the numbers give."""
    header, arrays = unpack_container(content, KIND, _layout)
    with verification_errors():
        device_map = _map_of(header, arrays)
        follows = device_map.header()
    if header.keys() != follows.keys():
        raise refused("has other keys", "header", f"{[*header]!s:.80}", f"{[*follows]!s}")
    for name in follows:
        stated, right = (json.dumps(each[name], sort_keys=True) for each in (header, follows))
        if stated != right:
            raise refused("does not follow from the numbers", name, f"{stated:.80}", f"{right:.80}")
    return device_map


def save_compact(device_map: DeviceMap, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the file atomically."""
    target, content = check_target(path, overwrite=overwrite), pack(device_map)
    write_atomically(target, lambda temporary: temporary.write_bytes(content))
    return target


def load_compact(path: str | Path) -> DeviceMap:
    """Read the file of a compact map.

    Parameters
    ----------
    path : str or Path
        A .compact file.

    Returns
    -------
    DeviceMap
        The map; `md.verify` proves its claim.

    Examples
    --------
    >>> import tempfile
    >>> problem = md.load_problem("philadelphia", cells=20)
    >>> factored = md.solve(md.EikonalWeights(problem), method="factored")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     device_map = md.devicemap.load_compact(md.export(factored, folder + "/map.compact"))
    >>> md.verify(device_map).certified
    True
    """
    with (
        open_regular(path, field="file", remedy="give the path of a compact map") as stream,
        within_memory("file", path),
    ):
        most = MOST_HEADER + 2 * _PLACE_BYTES * MOST_PLACES
        return unpack(read_bytes(stream, Path(path), field="file", most=most, expansion=2))


def _layout(header: dict[str, Any]) -> Layout:
    cells, frame = header.get("cells"), whole(header.get("frame"), "frame", 0, MOST_PLACES)
    shape = [int(count) + 2 * frame for count in wholes(cells, "cells", 2, MOST_PLACES)]
    places = math.prod(shape)
    if len(shape) != 2 or places > MOST_PLACES:
        raise refused("is no map, or has too many places", "cells", f"{cells!s:.80}", f"two, at most {MOST_PLACES}")
    require_bytes(_WORKING * places, what="the map", field="cells", value=places)
    return [[name, kind, shape, 1] for name, kind in _TYPES.items()]


def _map_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DeviceMap:
    """The map of numbers and texts that may be of any kind: what it says of itself shows whether they were others."""
    fields: dict[str, Any] = {**arrays}
    fields |= {name: int(header[name]) for name in ("stencil", "grain", "step", "cap")}
    fields["margin"] = int(header["frame"])
    fields |= {name: tuple(map(int, header[name])) for name in ("cells", "bound")}
    fields |= {name: tuple(map(float, header[name])) for name in ("cell", "origin")}
    texts = {name: header[name] for name in ("unit", "mechanism")}
    texts |= {name: header["about"][name] for name in ("problem", "program")}
    for name, value in texts.items():
        if len(word(value, name)) > _TEXT or not value.isprintable():
            raise refused("must be a line of text", name, f"{value!r:.80}", "printable text")
    if not _CHECKSUM.fullmatch(texts["mechanism"]):
        raise refused("is no checksum", "mechanism", texts["mechanism"][:80], "64 hexadecimal digits")
    plane = None
    if "plane" in header:
        described = {name: header["plane"][name] for name in ("latitude", "longitude")} | _ON_EARTH
        plane = Plane.from_description(described, header["unit"])
    fields["source_sha256"] = texts.pop("mechanism")
    return DeviceMap(plane=plane, level_unit=float(header["level_unit"]), **fields, **texts)
