"""region.map: a compact map for a device without zlib and JSON. `handover/sample_region.c` draws from it in place.

    0    8 bytes "mdregmap"
    8    uint32: version 1, n1, n2, frame, stencil, cap, shift, g, k, 0
    48   uint64: grain, ratio, five advances (the last two 0 with 8 neighbours)
    104  level (R C), uint16; potential (R C), int16; weight (R C), uint8
    end  SHA-256 of all bytes before it

Numbers are little-endian; mechanism/compact/formulas.py says what they mean.
"""

from __future__ import annotations

import hashlib
import struct

from mechdesign.mechanism.compact.map import CompactMap

MAGIC, VERSION = b"mdregmap", 1
_ADVANCES = 5


def region_map(compact: CompactMap) -> bytes:
    """The file. Size: 5 bytes a place and 136."""
    told = compact.header()
    advance = [*told["advance"], *[0] * (_ADVANCES - len(told["advance"]))]
    whole = (VERSION, *told["cells"], told["frame"], told["stencil"], told["cap"], told["shift"], *told["bound"], 0)
    head = MAGIC + struct.pack("<10I", *whole) + struct.pack("<7Q", told["grain"], int(told["ratio"]), *advance)
    arrays = (compact.level.astype("<u2"), compact.potential.astype("<i2"), compact.weight)
    content = head + b"".join(array.tobytes() for array in arrays)
    return content + hashlib.sha256(content).digest()


def room(compact: CompactMap) -> int:
    """Bytes of working memory that draws of sample_region.c need."""
    rows, columns = compact.shape
    return 8 * (compact.cap + 1 + rows) + sum(-(-width * rows * columns // 8) * 8 for width in (4, 4, 2))
