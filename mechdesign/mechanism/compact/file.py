"""The file of a compact map.

    8 bytes "mdregion" | version 1, uint32 | bytes of the header, uint32 | header, JSON | body, zlib | SHA-256 of all

Numbers are little-endian; the SHA-256 is that of every byte before it. The body holds three arrays of R x C numbers,
one after the other: level (uint16), potential (int16, two's complement), weight (uint8). Of each array a it holds the
differences along both axes, modulo 2^8 or 2^16,

    a(i, j) - a(i - 1, j) - a(i, j - 1) + a(i - 1, j - 1),      a = 0 outside,

as planes: the low byte of every number, then, of 16-bit ones, the high byte of every number. Sums along both axes,
modulo 2^8 or 2^16, give a back. Unpacked the body has exactly 5 R C bytes.

The header has these keys and no others:

| key | value | meaning |
|---|---|---|
| kind | "compact" | |
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

`ledger` is the SHA-256 of the JSON text of {"cell", "cells", "level_unit", "origin", "plane" (null where there is
none), "stencil", "unit"} of the header, keys sorted, as Python's json.dumps writes it, followed by the levels of the
secrets as uint16, row by row. formulas.py says what the numbers mean, draw.py how a report is drawn.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.descriptions import finite, finites, named, whole, wholes, word
from mechdesign.base.memory import require_bytes, within_memory
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.mechanism.compact.map import MOST_PLACES, CompactMap
from mechdesign.mechanism.schema import refused
from mechdesign.mechanism.storage.files import check_target, write_atomically
from mechdesign.setting.space.plane import Plane

MAGIC, VERSION = b"mdregion", 1
SUFFIX = ".compact"
_BEFORE = len(MAGIC) + 8  # bytes before the header
_DIGEST = 32
_LONGEST_HEADER = 1 << 16
_PARTS = (("level", "<u2"), ("potential", "<i2"), ("weight", "<u1"))
_PLACE_BYTES = 5
_WORKING = 40  # bytes of memory a place takes while it is unpacked
_TEXT = 1 << 14  # characters of a text
_KEYS = (
    "kind", "cells", "frame", "cell", "origin", "unit", "stencil", "level_unit", "advance", "grain", "step", "cap",
    "ratio", "shift", "bound", "claim", "cost", "ledger", "mechanism", "about",
)  # fmt: skip


def packed(compact: CompactMap) -> bytes:
    """The file."""
    told = json.dumps(compact.header(), allow_nan=False, sort_keys=True).encode()
    body = zlib.compress(b"".join(_differences(getattr(compact, name).astype(kind)) for name, kind in _PARTS), 9)
    content = MAGIC + VERSION.to_bytes(4, "little") + len(told).to_bytes(4, "little") + told + body
    return content + hashlib.sha256(content).digest()


def unpacked(content: bytes) -> CompactMap:
    """The map of a file.

    Raises: VerificationError for bytes that are damaged, cut short or not of this format, for numbers that are out of
        range, and for a header that says something else than the numbers give.
    """
    if not content.startswith(MAGIC) or len(content) < _BEFORE + _DIGEST:
        raise refused("is no compact map", "file", f"{len(content)} bytes", "a file that begins with mdregion")
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise refused("the checksum does not match the content", "sha256", "", "the bytes that were written")
    version, size = (int.from_bytes(content[at : at + 4], "little") for at in (len(MAGIC), len(MAGIC) + 4))
    if version != VERSION or size > min(_LONGEST_HEADER, len(content) - _BEFORE - _DIGEST):
        raise refused("is of another version, or cut short", "version", version, f"version {VERSION}")
    try:
        told = _checked(json.loads(content[_BEFORE : _BEFORE + size]))
        compact = _made(told, content[_BEFORE + size : -_DIGEST])
        follows = compact.header()
    except VerificationError:
        raise
    except MechdesignError as error:
        raise refused(error.message, error.field, error.value, "the numbers that were written") from error
    except (ValueError, OverflowError, RecursionError, zlib.error) as error:
        raise refused(f"is damaged ({error})", "file", "", "the bytes that were written") from error
    for name, value in follows.items():
        if told.get(name) != value:
            raise refused("does not follow from the numbers", name, f"{told.get(name)!s:.80}", f"{value!s:.80}")
    return compact


def save_compact(compact: CompactMap, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the file atomically. Raises: as `storage.files.save`."""
    target, content = check_target(path, overwrite=overwrite), packed(compact)

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_atomically(target, write)
    return target


def load_compact(path: str | Path) -> CompactMap:
    """Read a file. Raises: FileFormatError where there is none, or one too large; else as `unpacked`."""
    with (
        open_regular(path, field="file", remedy="give the path of a compact map") as stream,
        within_memory("file", path),
    ):
        most = _LONGEST_HEADER + 2 * _PLACE_BYTES * MOST_PLACES
        return unpacked(read_bytes(stream, Path(path), field="file", most=most, unfolds=2))


def is_compact(path: str | Path) -> bool:
    """Whether there is a file that begins as a compact map does."""
    try:
        with open_regular(path, field="file", remedy="give the path of a compact map") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except (MechdesignError, OSError):
        return False


def _checked(told: object) -> dict[str, Any]:
    """The header, every value of its kind and in a range that arrays may be made of."""
    header = named(told, "header", _KEYS, ("plane",))
    for name, count in (("cells", 2), ("cell", 2), ("origin", 2), ("bound", 2)):
        if not isinstance(header[name], list) or len(header[name]) != count:
            raise refused(f"must be a list of {count}", name, f"{header[name]!s:.80}", "two numbers")
    wholes(header["cells"], "cells", 2, MOST_PLACES)
    wholes(header["bound"], "bound", 0, 1 << 31)
    for name in ("cell", "origin"):
        finites(header[name], name)
    finite(header["level_unit"], "level_unit")
    for name in ("frame", "stencil", "grain", "step", "cap", "shift"):
        whole(header[name], name, 0, 1 << 54)
    about = named(header["about"], "about", ("problem", "program", "promise"))
    texts = {name: header[name] for name in ("unit", "claim", "cost", "ledger", "mechanism", "ratio")}
    for name, value in (texts | about).items():
        if len(word(value, name)) > _TEXT or not value.isprintable():
            raise refused("must be a line of text", name, f"{value!r:.80}", "printable text")
    if len(header["mechanism"]) != 64 or set(header["mechanism"]) - set("0123456789abcdef"):
        raise refused("is no checksum", "mechanism", header["mechanism"][:80], "64 hexadecimal digits")
    return header


def _made(told: dict[str, Any], body: bytes) -> CompactMap:
    rows, columns = (count + 2 * told["frame"] for count in told["cells"])
    places, shape = rows * columns, (rows, columns)
    if places > MOST_PLACES:
        raise refused("has too many places", "cells", places, f"at most {MOST_PLACES}")
    require_bytes(_WORKING * places, what="the map", field="cells", value=places)
    reader = zlib.decompressobj()
    content = reader.decompress(body, _PLACE_BYTES * places + 1)
    if len(content) != _PLACE_BYTES * places or not reader.eof or reader.unused_data:
        raise refused("has another size", "body", len(content), f"{_PLACE_BYTES * places} bytes")
    made: dict[str, Any] = {
        name: told[name] for name in ("frame", "unit", "stencil", "grain", "step", "cap", "mechanism")
    }
    made |= {name: tuple(told[name]) for name in ("cells", "bound")}
    made |= {name: tuple(map(float, told[name])) for name in ("cell", "origin")}
    made |= {name: told["about"][name] for name in ("problem", "program")}
    at = 0
    for name, kind in _PARTS:
        end = at + places * np.dtype(kind).itemsize
        made[name] = _sums(content[at:end], shape, kind)
        at = end
    plane = None
    if "plane" in told:
        given = named(told["plane"], "plane", ("latitude", "longitude", "metres", "decimals"))
        latitude, longitude = (float(finite(given[name], name)) for name in ("latitude", "longitude"))
        plane = Plane(latitude=latitude, longitude=longitude, unit=told["unit"])
    return CompactMap(plane=plane, level_unit=float(told["level_unit"]), **made)


def _differences(values: NDArray[Any]) -> bytes:
    """Planes of the differences along both axes, modulo the width of the numbers."""
    wide = np.diff(np.diff(values.astype(np.int64), axis=0, prepend=0), axis=1, prepend=0)
    narrow = np.remainder(wide, 1 << 8 * values.itemsize).astype(f"<u{values.itemsize}")
    return narrow.reshape(-1).view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


def _sums(content: bytes, shape: tuple[int, int], kind: str) -> NDArray[Any]:
    """The numbers of `_differences`. Sums of fewer than 2^24 differences under 2^16 stay below 2^40."""
    whole = np.dtype(kind)
    planes = np.frombuffer(content, np.uint8).reshape(whole.itemsize, -1)
    steps = np.ascontiguousarray(planes.T).view(f"<u{whole.itemsize}").reshape(shape).astype(np.int64)
    summed = np.cumsum(np.cumsum(steps, axis=0), axis=1)
    narrow = np.remainder(summed, 1 << 8 * whole.itemsize).astype(f"u{whole.itemsize}")
    return narrow.view(whole.newbyteorder("="))
