"""Where are the places dense? A Gaussian kernel density on 61 x 61 centres (paper 002, Figures 5, 6, 9 to 11).

python scripts/collisions_kde.py [--full] [--data FILE [--projection mercator]] [--repetitions 5]
                                 [-o collisions_kde.csv] [--plot collisions_kde.png]

FILE has columns LATITUDE and LONGITUDE (or lat, lng), such as the motor vehicle collisions of NYC Open Data; its
positions are drawn with replacement. Without FILE, synthetic places. Every sixth centre per axis and up to 10,000
places; --full has all centres, up to 400,000 places and 10 repetitions (a day).
"""

import sys
from pathlib import Path

import numpy as np

from mechdesign.setting.readers.positions import read_coordinates

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for experiments, beside this folder

from experiments.populations import places
from experiments.release_claims import kernel_claims
from experiments.release_experiments import conclude, options, parsed, simulate
from experiments.release_queries import KernelQuery, kernel_grid
from experiments.release_study import METHODS, ReleaseStudy

SETTINGS = ((1_000, 1.0), (500, 1.0), (2_000, 1.0), (1_000, 0.8), (1_000, 1.2))  # 1 / eps in m, cells a bandwidth
SPAN = 1_000  # m


def main() -> None:
    """Simulate every setting, print and save the errors, draw them."""
    parser = options(__doc__, "collisions_kde")
    parser.add_argument("--projection", default="mercator", choices=("mercator", "equidistant"))
    given = parsed(parser)
    paper = [100_000, 200_000, 400_000]
    sizes = paper if given.full else [2_500, 5_000, 10_000]
    if given.data is None:
        points = places(sizes[-1], given.seed)
    else:
        read = read_coordinates(given.data, projection=given.projection)
        print(f"{len(read.points):,} positions, {read.dropped:,} lines without one")
        points = read.points[np.random.default_rng(given.seed).integers(len(read.points), size=sizes[-1])]
    centres, diagonal = kernel_grid(points, every=1 if given.full else 6)
    settings = {}
    for inverse, cells in SETTINGS:
        width = float(np.floor(cells * diagonal))
        study = ReleaseStudy(
            secrets=points,
            queries=[KernelQuery(center=centre, bandwidth=width) for centre in centres],
            epsilon=1 / inverse,
            sizes=sizes,
            span=SPAN,
            methods=METHODS,
            seed=given.seed,
        )
        settings[f"1/eps = {inverse:,} m, h = {width:,.0f} m"] = study, {"epsilon_inverse": inverse, "bandwidth": width}
    panels, expected = simulate("kernel density", settings, given.repetitions or (10 if given.full else 5), paper)
    conclude(panels, expected, kernel_claims(expected), given)


if __name__ == "__main__":
    main()
