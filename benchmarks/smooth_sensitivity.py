"""The least smooth bound on a grid: all pairs in compiled code against blocks, level sets and stencils.

python benchmarks/smooth_sensitivity.py [--cells 200] [--gamma 0.02] [--repeats 3]
"""

import argparse
from collections.abc import Callable

import numpy as np
from paired import paired

from mechdesign.closed_forms.sensitivity import query_functions as queries
from mechdesign.setting.metric.max_plus import steepest_chords, transform
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.sensitivity.smooth_sensitivity import least_smooth_bound


def main() -> None:
    """Print one table per field and growth, and one for chords. The answers are means of S, of the steepest chords
    in the last; the upper bounds may be 3 % and, stencils, 10 % above. Compilation is not in the seconds.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--gamma", type=float, default=0.02, help="per cell")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    domain = Domain.grid((given.cells, given.cells), cell=1.0, unit="km")
    rng = np.random.default_rng(0)
    middle, width = [0.35 * given.cells, 0.45 * given.cells], given.cells / 15
    fields = {
        "kernel density": queries.kde_lipschitz(domain.points, middle, width),
        "two-way threshold": queries.two_way_lipschitz(domain.points, middle, width),
        "log-normal noise": np.exp(3 * rng.standard_normal(domain.size)),
    }
    for name, lipschitz in fields.items():
        for growth in ("exponential", "linear"):
            title = f"{name}, {growth} growth, {given.cells} x {given.cells} cells, gamma {given.gamma} per cell"
            paired(title, routes(domain, lipschitz, given.gamma, growth), repeats=given.repeats, agree=0.1)
    values = queries.kde(domain.points, middle, width)
    chords: dict[str, Callable[[], float]] = {
        "all pairs": lambda: float(steepest_chords(domain.points, values, leaf=domain.size).mean()),
        "blocks": lambda: float(steepest_chords(domain.points, values).mean()),
    }
    paired(f"steepest chords of a kernel density, {domain.size} cells", chords, repeats=given.repeats, agree=0.0)


def routes(domain: Domain, lipschitz: np.ndarray, gamma: float, growth: str) -> dict[str, Callable[[], float]]:
    """All pairs as one block; then the methods by name."""
    linear = growth == "linear"
    height = lipschitz if linear else np.log(lipschitz)

    def all_pairs() -> float:
        found = transform(domain.points, domain.points, height, gamma, linear=linear, leaf=domain.size)
        return float((found if linear else np.exp(found)).mean())

    def by(method: str) -> Callable[[], float]:
        return lambda: float(
            least_smooth_bound(domain, lipschitz=lipschitz, gamma=gamma, growth=growth, method=method).S.mean()
        )

    named = ["blocks", "levels"] + ["stencil"] * (not linear)
    return {"all pairs": all_pairs} | {name: by(name) for name in named}


if __name__ == "__main__":
    main()
