"""The file of a device map: a container (mechanism/container.py) of the kind "devicemap".

It holds three arrays of R x C numbers, as differences: level (u2), potential (i2) and weight (u1). Its header also has
the keys above `_layout`, and no others. `claim_digest` is the SHA-256 of a JSON text followed by the levels of the
secrets as uint16, row by row. The text is {"cell", "cells", "level_unit", "origin", "plane" or null, "stencil", "unit"}
of the header, keys sorted, as Python's json.dumps writes it. The numbers are those of device_map.py.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from mechdesign.base.arrays import AnyArray
from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.files import open_regular, read_bytes
from mechdesign.base.json_fields import whole, wholes, word
from mechdesign.base.memory import require_bytes, within_memory
from mechdesign.devicemap.device_map import MOST_PLACES, DeviceMap
from mechdesign.mechanism.container import MOST_HEADER, Layout, pack_container, unpack_container
from mechdesign.mechanism.mechanism_file import verification_errors
from mechdesign.mechanism.schema import file_error
from mechdesign.problem.plane import Plane

KIND = "devicemap"
_FORMER = b'{"kind": "compact"'  # a header before its keys were renamed
_ON_EARTH = {"projection": "azimuthal equidistant", "ellipsoid": "WGS84"}  # of the plane of a map
_TYPES = {"level": "u2", "potential": "i2", "weight": "u1"}
_PLACE_BYTES = 5
_WORKING = 40  # bytes of memory a place takes while it is unpacked
_TEXT = 1 << 14  # characters of a text
_CHECKSUM = re.compile("[0-9a-f]{64}")


def pack(device_map: DeviceMap) -> bytes:
    """The bytes of the file."""
    arrays = {name: getattr(device_map, name) for name in _TYPES}
    return pack_container(KIND, device_map.header(), arrays, differences=_TYPES)


def unpack(content: bytes) -> DeviceMap:
    """The map of a file, from untrusted bytes; its header must match the one computed from the numbers."""
    if content[16:].startswith(_FORMER):
        remedy = "a map exported by this version: export its design again"
        raise file_error("is of an earlier format", "kind", "compact", remedy)
    header, arrays = unpack_container(content, KIND, _layout)
    # All that the numbers determine is computed again and compared, so that no text of a file is taken on trust.
    with verification_errors():
        device_map = _map_of(header, arrays)
        follows = device_map.header()
    if header.keys() != follows.keys():
        raise file_error("has missing or unexpected keys", "header", f"{[*header]!s:.80}", f"{[*follows]!s}")
    for name in follows:
        # As text: 1, 1.0 and true are equal in Python, but not in a file.
        stated, expected = (json.dumps(fields[name], sort_keys=True) for fields in (header, follows))
        if stated != expected:
            raise file_error("does not match the numbers of the map", name, f"{stated:.80}", f"{expected:.80}")
    return device_map


def save_device_map(device_map: DeviceMap, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the file of a device map, atomically."""
    target, content = check_target(path, overwrite=overwrite), pack(device_map)
    write_atomically(target, lambda temporary: temporary.write_bytes(content))
    return target


def load_device_map(path: str | Path) -> DeviceMap:
    """Read the file of a device map.

    Parameters
    ----------
    path : str or Path
        A .compact file.

    Returns
    -------
    DeviceMap, whose claim `md.verify` proves

    Examples
    --------
    >>> import tempfile
    >>> problem = md.load_problem("philadelphia", cells=20)
    >>> factored = md.solve(md.EikonalWeights(problem), method="factored")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     device_map = md.devicemap.load_device_map(md.export(factored, folder + "/map.compact"))
    >>> md.verify(device_map).certified
    True
    """
    with (
        open_regular(path, field="file", remedy="give the path of a device map") as stream,
        within_memory("file", path),
    ):
        # Incompressible arrays grow a little by zlib: twice their size is more than any file has.
        limit = MOST_HEADER + 2 * _PLACE_BYTES * MOST_PLACES
        return unpack(read_bytes(stream, Path(path), field="file", limit=limit, expansion=2))


# | key | value | meaning |
# |---|---|---|
# | cells | [n1, n2], whole | secrets along either axis, from 2 on |
# | margin | whole | cells around them, from 0 on; (n1 + 2 margin) (n2 + 2 margin) <= 2^24 |
# | cell, origin | two doubles | sides of a cell; the low corner of the rectangle of secrets |
# | unit | text | of both |
# | plane | {"latitude", "longitude", "metres", "decimals"} | only where the map lies on Earth: degrees of (0, 0), |
# | | | azimuthal equidistant, WGS 84; metres of the unit; decimals of degrees that name a cell |
# | stencil | 8 or 16 | neighbours |
# | level_unit | double | nats per `unit` of one level |
# | length_scales | 3 or 5 whole | A_k, from 1 to 2^32 - 1 |
# | grain, step | whole | from 1 to 2^54 - 1; step cap < 58 * 0.69 * 2^48 |
# | cap | whole | from 1 to 65,534 |
# | ratio, shift | decimal text, whole | e^(step 2^-48) rounded down |
# | bound | [g, k], whole | of S |
# | claim, cost | text | the guarantee of one report, and the cost of more |
# | claim_digest | 64 hexadecimal digits | names the claim: costs of maps with one digest add up |
# | source_sha256 | 64 hexadecimal digits | the checksum of the design that the map was made from |
# | about | {"problem", "program", "promise"} | texts for people |
def _layout(header: dict[str, Any]) -> Layout:
    cells, margin = header.get("cells"), whole(header.get("margin"), "margin", 0, MOST_PLACES)
    shape = [int(count) + 2 * margin for count in wholes(cells, "cells", 2, MOST_PLACES)]
    places = math.prod(shape)
    if len(shape) != 2 or places > MOST_PLACES:
        raise file_error(
            "must be two numbers with few enough places", "cells", f"{cells!s:.80}", f"at most {MOST_PLACES}"
        )
    require_bytes(_WORKING * places, noun="the map", field="cells", value=places)
    return [[name, kind, shape, 1] for name, kind in _TYPES.items()]


def _map_of(header: dict[str, Any], arrays: dict[str, AnyArray]) -> DeviceMap:
    # Numbers and texts may be of any type: `unpack` compares the header of this map with the one of the file.
    fields: dict[str, Any] = {**arrays}
    fields |= {name: int(header[name]) for name in ("stencil", "grain", "step", "cap")}
    fields["margin"] = int(header["margin"])
    fields |= {name: tuple(map(int, header[name])) for name in ("cells", "bound")}
    fields |= {name: tuple(map(float, header[name])) for name in ("cell", "origin")}
    texts = {name: header[name] for name in ("unit", "source_sha256")}
    texts |= {name: header["about"][name] for name in ("problem", "program")}
    for name, value in texts.items():
        if len(word(value, name)) > _TEXT or not value.isprintable():
            raise file_error("must be a line of text", name, f"{value!r:.80}", "printable text")
    if not _CHECKSUM.fullmatch(texts["source_sha256"]):
        raise file_error("is not a SHA-256", "source_sha256", texts["source_sha256"][:80], "64 hexadecimal digits")
    plane = None
    if "plane" in header:
        described = {name: header["plane"][name] for name in ("latitude", "longitude")} | _ON_EARTH
        plane = Plane.from_description(described, header["unit"])
    return DeviceMap(plane=plane, level_unit=float(header["level_unit"]), **fields, **texts)
