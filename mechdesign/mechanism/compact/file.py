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
| plane | {"latitude", "longitude", "metres", "decimals"} | where on Earth (0, 0) is, degrees; metres of the unit; only where |
| | | the map lies on one: azimuthal equidistant, WGS 84; decimals of degrees that name a cell |
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
