"""A compact map read a second time, in plain Python: rows and edges of patches of 7 x 7 cells, in fractions.

    python scripts/read_compact.py map.compact [patches, 4]

The reader of tests/reference knows nothing of the package. Every row sum of a patch is compared with the package's and
with its bound; every edge within a patch is checked both ways in fractions. With 16 neighbours 4 patches have 196 rows
and 1,104 edges; a row of 40,000 places takes a second.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from reference.compact_map import HALF, Reader

from mechdesign.mechanism.compact.draw import Drawing
from mechdesign.mechanism.compact.file import load_compact

SIDE = 7


def patches(cells: list[int], count: int) -> list[list[int]]:
    """Secrets of patches: one at the low corner, the others anywhere."""
    drawn = random.Random(1)
    corners = [(0, 0)] + [tuple(drawn.randrange(n - SIDE + 1) for n in cells) for _ in range(count - 1)]
    return [[(i + a) * cells[1] + j + b for a in range(SIDE) for b in range(SIDE)] for i, j in corners]


def main(path: str, count: int = 4) -> int:
    """Print how many rows and edges agree; 1 where one does not."""
    started = time.process_time()
    reader, drawing = Reader(Path(path).read_bytes()), Drawing(compact=load_compact(path))
    rows = edges = wrong = 0
    for patch in patches(reader.cells, count):
        sums = {secret: reader.total(secret) for secret in patch}
        wrong += sum(drawing.ball(u).total != total or total > reader.bound(u) for u, total in sums.items())
        rows += len(patch)
        for u in patch:
            for step in HALF[: reader.header["stencil"] // 2]:
                ends = reader.ends(u, step)
                if ends is not None and ends[1] in sums:
                    wrong += not reader.covered(u, step, sums)
                    edges += 1
        print(f"{rows} rows, {edges} edges, {wrong} wrong, {time.process_time() - started:.0f} CPU s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
