"""Bound the excess loss of a factored mechanism on windows of its map, by proved lower bounds.

    python scripts/window_bounds.py map.nc [--side 60] [--at 40.7549,-73.984 ...]

Distances in the map are at most those in the window alone, because paths may leave it. So a mechanism that is private
on the map is private on the window. The nearest report in a rectangle is at least as good as one beyond it. So no
mechanism with the claim has a smaller mean loss over the people of a window than the bound of the window.
--at: the middle of a window as latitude,longitude. Without it, windows tile the map, and those at the quantiles 100, 50
and 5 % of people are taken.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from rich.console import Console

import mechdesign as md
from mechdesign.base.arrays import Matrix
from mechdesign.factored.local_bound import local_bound
from mechdesign.factored.work_folder import threads
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_at
from mechdesign.problem.problem import DesignProblem

QUANTILES = (1.0, 0.5, 0.05)  # of windows by people


def windows(people: Matrix, side: int) -> list[tuple[int, int]]:
    """Low corners of the windows at `QUANTILES` of the people in a window, for people (n1, n2) by cell."""
    count = [n // side for n in people.shape]
    totals = people[: count[0] * side, : count[1] * side].reshape(count[0], side, count[1], side).sum(axis=(1, 3))
    order = np.argsort(totals, axis=None)
    order = order[totals.ravel()[order] > 0]
    chosen = order[[round(share * (len(order) - 1)) for share in QUANTILES]]
    return [tuple(side * int(number) for number in np.unravel_index(k, totals.shape)) for k in chosen]


def window_at(domain: Domain, place: str, side: int) -> tuple[int, int]:
    """The low corner of the window about a latitude and longitude, within the grid."""
    latitude, longitude = map(float, place.split(","))
    assert domain.plane is not None
    assert domain.shape is not None
    position = domain.plane.forward(np.array([longitude]), np.array([latitude]))[0]
    index = np.unravel_index(place_at(domain, position.tolist()), domain.shape)
    return tuple(int(np.clip(middle - side // 2, 0, n - side)) for middle, n in zip(index, domain.shape, strict=True))


def window_problem(stored: MechanismFile, corner: tuple[int, int], side: int) -> tuple[DesignProblem, float, float]:
    """The problem of one window, its share of the prior, and the mean loss of the mechanism over it."""
    domain, mechanism = stored.domain, stored.mechanism
    assert domain.cell is not None
    assert domain.origin is not None
    numbers = np.arange(domain.size).reshape(domain.shape)
    inside = numbers[corner[0] : corner[0] + side, corner[1] : corner[1] + side].ravel()
    origin = tuple(low + cell * first for low, cell, first in zip(domain.origin, domain.cell, corner, strict=True))
    small = Domain.grid((side, side), cell=domain.cell, unit=domain.unit, origin=origin, plane=domain.plane)
    if not np.allclose(small.points, domain.points[inside]):
        sys.exit("the cells of the window are not those of the map")
    prior = mechanism["prior"].values[inside]
    share = float(prior.sum())
    problem = DesignProblem(domain=small, metric=stored.metric, prior=prior / share, loss=stored.loss)
    return problem, share, float(prior @ mechanism["row_loss"].values[inside]) / share


def main() -> None:
    """Print a line per window."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--side", type=int, default=60, help="cells along either side of a window")
    parser.add_argument("--at", nargs="*", default=[], metavar="LAT,LON")
    options = parser.parse_args()
    stored = MechanismFile.read(md.load(options.file))
    domain, side = stored.domain, options.side
    if domain.shape is None or domain.size != np.prod(domain.shape) or min(domain.shape) < side:
        sys.exit("needs a mechanism of a grid without gaps, at least as wide as a window")
    people = stored.mechanism["prior"].values.reshape(domain.shape)
    corners = [window_at(domain, place, side) for place in options.at] or windows(people, side)
    console = Console(width=110)
    with threads() as crew:
        for corner in corners:
            started = time.process_time()
            problem, share, loss = window_problem(stored, corner, side)
            bound = local_bound(problem, crew)
            assert bound is not None
            middle = problem.domain.points.mean(axis=0)
            position = f"({middle[0]:.6g}, {middle[1]:.6g}) {domain.unit}"
            if domain.plane is not None:
                longitude, latitude = domain.plane.backward(middle[None])
                position = f"{latitude[0]:.4f} N {longitude[0]:.4f} E"
            console.print(
                f"{side} x {side} about {position}: {share:.3%} of the prior, loss {loss:.6g}, lower bound "
                f"{bound.value:.6g}: at most {loss / bound.value - 1:.2%} above the optimum, "
                f"{time.process_time() - started:.0f} CPU s"
            )


if __name__ == "__main__":
    main()
