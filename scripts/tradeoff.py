"""The privacy-utility curve of a map: how much loss a stricter or a looser claim buys, and what is left to gain.

python scripts/tradeoff.py [--cells 12] [--from 0.354] [--to 2] [--points 6] [--plot tradeoff.png]

At every scale of the metric of Greater Philadelphia: the certified optimum with its lower bound, the eikonal
mechanism, and the closed forms at the levels they truly have. The picture needs matplotlib: pip install
'mechdesign[plot]'.
"""

import argparse
from pathlib import Path

import mechdesign as md
from mechdesign.output.tables.sweep import multiplier_range, sweep_rows
from mechdesign.output.terminal.curve import print_sweep
from mechdesign.output.terminal.printing import progress


def main() -> None:
    """Trace the curve, print its tables and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=12)
    parser.add_argument("--from", dest="first", type=float, default=2**-1.5)
    parser.add_argument("--to", dest="last", type=float, default=2.0)
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()

    problem = md.load_problem("philadelphia", cells=given.cells)
    scales = multiplier_range(given.first, given.last, given.points)
    with progress(problem.name) as advance:
        curve = md.sweep(problem, scales, on_progress=lambda row: advance(f"scale {row['scale']:.4g}"))
    rows = sweep_rows(curve)
    print_sweep(rows, problem)
    gains = [(row["scale"], row["eikonal_loss"] / row["lower_bound"] - 1) for row in rows]
    at, most = max(gains, key=lambda gain: gain[1])
    print(f"\nThe optimum gains most on the eikonal mechanism at scale {at:.3g}: {100 * most:.2g} %.")
    if given.plot is not None:
        print(f"wrote {md.plot.save(curve, given.plot, overwrite=True)}")


if __name__ == "__main__":
    main()
