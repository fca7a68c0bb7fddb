"""The figures that are printed beside a claim, found again: losses as exact sums, log-ratios, objectives, bounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import exp, hypot, inf, isfinite
from typing import Any

from reference.exact import log_ratio, square_root
from reference.geometry import Lengths, Place
from reference.reading import File, Unreadable

AGREE = 1e-8  # relative; figures are computed in floating point and compared with 1e-9 by the package
BOUND_AGREE = 1e-7  # relative; rays and sums of the independent bound are floating point here
LARGEST_CONE = 5  # secrets up to which all trees of a complete graph are looked at
SUBNORMAL = Fraction(1, 1 << 1022)  # doubles under this have fewer digits
_LOSS_BITS = 80
_LIMIT = 1 << 62

Table = Sequence[Sequence[Fraction]]


def close(said: object, true: Fraction | float) -> bool:
    """True if a printed figure is a number that agrees."""
    if not isinstance(said, (int, float)) or isinstance(said, bool) or not isfinite(said):
        return False
    return abs(Fraction(said) - Fraction(true)) <= Fraction(AGREE) * abs(Fraction(true)) + SUBNORMAL


def between(least: float, said: object, most: float) -> bool:
    """True if a printed figure is a number that lies between two figures, or agrees with one of them."""
    return close(said, least) or close(said, most) or (isinstance(said, float) and least < said < most)


def losses(file: File, secrets: Sequence[Place], reports: Sequence[Place]) -> Table:
    """l(u, y) of a named loss, in squared units or units of length, to 80 bits."""
    name = file.attribute("loss", str)
    if name == "table":
        table = file.values("loss_table", ("secret", "report"), "float64")
        found = [[Fraction(x) for x in row] for row in table]
    elif name in ("squared", "distance", "zero-one"):
        found = [[_loss(name, p, q) for q in reports] for p in secrets]
    else:
        raise Unreadable(f"loss {name!r}")
    if min(map(min, found)) < 0:
        raise Unreadable("a loss is negative")
    return found


@lru_cache(maxsize=4096)
def _loss(name: str, p: Place, q: Place) -> Fraction:
    square = sum(((a - b) ** 2 for a, b in zip(p, q, strict=True)), Fraction(0))
    if name == "zero-one":
        return Fraction(square > 0)
    return square if name == "squared" else square_root(square, _LOSS_BITS)[0]


def read_prior(file: File) -> list[Fraction]:
    """The prior, which sums to 1 within 1e-9, up to the rounding of a sum of doubles."""
    prior = [Fraction(p) for p in file.values("prior", ("secret",), "float64")]
    if min(prior) < 0 or abs(sum(prior) - 1) > Fraction(1, 10**9) + Fraction(1, 10**14):
        raise Unreadable("no prior")
    return prior


def mean_loss(prior: Sequence[Fraction], rows: Sequence[Fraction]) -> Fraction:
    """The mean of the expected losses of the rows."""
    return sum((p * row for p, row in zip(prior, rows, strict=True)), Fraction(0))


def row_losses(mass: Sequence[Sequence[int]], sums: Sequence[int], loss: Table) -> list[Fraction]:
    """The expected loss from every secret, for masses that are divided by the sums of their rows."""
    return [
        sum((m * l for m, l in zip(row, costs, strict=True)), Fraction(0)) / total
        for row, total, costs in zip(mass, sums, loss, strict=True)
    ]


def steepest(mass: Sequence[Sequence[int]], sums: Sequence[int], lengths: Lengths) -> float:
    """The largest |ln(P(y|u) / P(y|v))| / d(u, v) over the pairs; infinite where d = 0 and the rows differ."""
    best = 0.0
    for (u, v), length in lengths.items():
        rise = max(abs(log_ratio(a * sums[v], b * sums[u])) for a, b in zip(mass[u], mass[v], strict=True))
        distance = float(length)
        best = max(best, rise / distance if distance else inf * (rise > 0) if rise else 0.0)
    return best


def true_objective(file: File, rows: Sequence[Fraction], loss: Fraction) -> Fraction | None:
    """The objective of the program of a file, at its table; None for the criterion of a statistical design."""
    program, kept = file.attribute("program", str), file.json_attribute("parameters")
    if program == "minimax":
        return max(rows)
    if program == "robust":
        return max(mean_loss([Fraction(p) for p in prior], rows) for prior in kept["priors"])
    if program in ("bounded", "constrained"):
        return loss
    if program == "statistical":
        return None
    if program == "positions":
        return total(file, position_costs(file))
    raise Unreadable(f"an objective of program {program!r}")


def total(file: File, cost: Table) -> Fraction:
    """The sum of C P over the table of a file."""
    mass = file.values("mass", ("secret", "report"), "uint64")
    parts = (m * c for row, costs in zip(mass, cost, strict=True) for m, c in zip(row, costs, strict=True))
    return sum(parts, Fraction(0)) / _LIMIT


def claimed_loss(file: File, prior: Sequence[Fraction], loss: Table) -> Fraction:
    """The expected loss of a claim about positions.

    It is to the true position for squared distances, and for distances to centres of square cells; else from centres.
    """
    name, grid = file.attribute("loss", str), file.json_attribute("domain")
    reports, secrets = file.points("report"), file.points("secret")
    if name == "squared" and len(reports) > 1:
        return total(file, position_costs(file))
    side, low = Fraction(grid["cell"][0]), [Fraction(x) for x in grid["origin"]]
    steps = [tuple((x - a) / side - Fraction(1, 2) for x, a in zip(place, low, strict=True)) for place in reports]
    on_lattice = all(abs(k - round(k)) <= 1e-9 for step in steps for k in step)
    around = file.values("around_row", ("secret", "around"), "int64")
    found = [[Fraction(0)] * len(reports) for _ in secrets]
    for u, place in enumerate(secrets):
        for row, step in zip(around[u], product((-1, 0, 1), repeat=2), strict=True):
            for y, report in enumerate(reports):
                if name == "distance" and on_lattice and len(reports) > 1:
                    gap = tuple(round((b - a) / side) for a, b in zip(place, report, strict=True))
                    own = side * Fraction(_mean_distance(gap, step))
                else:
                    own = loss[u][y] * Fraction(6 ** step.count(0), 64)
                found[row][y] += prior[u] * own
    return total(file, found)


@lru_cache(maxsize=4096)
def _mean_distance(gap: tuple[int, int], step: tuple[int, int]) -> float:
    """The mean over a cell of side 1 of the weight of a step times the distance to a report `gap` cells away.

    By Gauss-Legendre rules of four nodes on squares, which are halved towards the report.
    """
    nodes = (0.3399810435848563, 0.6521451548625461), (0.8611363115940526, 0.3478548451374538)
    rule = [(sign * x, w) for x, w in nodes for sign in (-1, 1)]
    mean, squares = 0.0, [(-0.5, 0.0), (0.0, 0.0), (-0.5, -0.5), (0.0, -0.5)]
    waiting = [(x, y, 0.5) for x, y in squares]
    while waiting:
        x, y, side = waiting.pop()
        away = hypot(max(x - gap[0], gap[0] - x - side, 0.0), max(y - gap[1], gap[1] - y - side, 0.0))
        if side > 2 * away and side > 2.0**-16:
            half = side / 2
            waiting += [(x + i * half, y + j * half, half) for i, j in product((0, 1), repeat=2)]
            continue
        for (s, v), (t, w) in product(rule, rule):
            here = x + side * (1 + s) / 2, y + side * (1 + t) / 2
            value = v * w * side**2 / 4 * hypot(here[0] - gap[0], here[1] - gap[1])
            mean += value * _weight(step[0], here[0]) * _weight(step[1], here[1])
    return mean


def _weight(step: int, s: float) -> float:
    return 0.75 - s * s if step == 0 else (0.5 + step * s) ** 2 / 2


def position_costs(file: File) -> Table:
    """C (n, m) by which the mean squared loss to a true position is the sum of C P, from the moments of the weights of
    the quadratic B-spline on a cell.
    """
    if file.attribute("loss", str) != "squared":
        raise Unreadable("a mean over positions of another loss")
    moments = {
        -1: (Fraction(1, 6), Fraction(-1, 24), Fraction(1, 60)),
        0: (Fraction(2, 3), Fraction(0), Fraction(1, 20)),
    }
    moments[1] = (moments[-1][0], -moments[-1][1], moments[-1][2])
    around = file.values("around_row", ("secret", "around"), "int64")
    secrets, reports, prior = file.points("secret"), file.points("report"), read_prior(file)
    sides = [Fraction(h) for h in file.json_attribute("domain")["cell"]]
    found = [[Fraction(0)] * len(reports) for _ in secrets]
    for u, place in enumerate(secrets):
        for row, step in zip(around[u], product((-1, 0, 1), repeat=2), strict=True):
            own = [moments[one] for one in step]
            for y, report in enumerate(reports):
                for axis in (0, 1):
                    gap, h, (whole, first, second) = place[axis] - report[axis], sides[axis], own[axis]
                    square = whole * gap**2 + 2 * h * first * gap + h * h * second
                    found[row][y] += prior[u] * square * own[1 - axis][0]
    return found


def bound_weights(file: File, prior: Sequence[Fraction]) -> Sequence[Fraction] | None:
    """Weights (sum 1) of the secrets under which the optimal program bounds the objective, or None.

    They are the prior, changed by the multipliers of the side rows. None for programs whose rows have limits or
    another criterion.
    """
    if "objective" not in file.attrs:
        return prior
    program, kept = file.attribute("program", str), file.json_attribute("parameters")
    if program not in ("minimax", "robust"):
        return None
    rows = [max(Fraction(x), Fraction(0)) for x in file.values("multiplier", ("side_row",), "float64")]
    total = sum(rows) or Fraction(1)
    if program == "minimax":
        return [x / total for x in rows]
    return [
        sum(x * Fraction(p) for x, p in zip(rows, ps, strict=True)) / total for ps in zip(*kept["priors"], strict=True)
    ]


def independent_bound(file: File, prior: Sequence[Fraction], loss: Table, lengths: Lengths) -> float | None:
    """The bound that the multipliers of a file give, from all extreme rays of the cone, in floating point:

        sum lambda + sum over reports y of max over anchors a of min(0, min over rays g of <r_y, g> / g(a))

    for r_y = prior l_y - lambda. None where the rays are too many to look at. The bound holds for any anchor,
    P(y|a) <= 1, so that the best one is an upper end of the possible bounds.
    """
    size = len(prior)
    rays = _rays(size, tuple((u, v, float(length)) for (u, v), length in lengths.items()))
    if rays is None:
        return None
    dual = [float(x) for x in file.values("dual", ("secret",), "float64")]
    total = sum(dual)
    for column in zip(*loss, strict=True):
        reduced = [float(p * l) - x for p, l, x in zip(prior, column, dual, strict=True)]
        values = [(sum(r * g for r, g in zip(reduced, ray, strict=True)), ray) for ray in rays]
        total += max(min(0.0, min(value / ray[a] for value, ray in values)) for a in range(size))
    return total


@lru_cache(maxsize=256)
def _rays(size: int, edges: tuple[tuple[int, int, float], ...]) -> list[tuple[float, ...]] | None:
    """The extreme rays of g >= 0, g(u) <= e^{d} g(v) both ways.

    The tight edges of a ray join all places, so a spanning tree with a direction for each edge gives the ray.
    """
    if size > LARGEST_CONE and len(edges) > size:
        return None
    found = set()
    for tree in combinations(edges, size - 1):
        order = _from_the_first(size, tree)
        for signs in product((1, -1), repeat=size - 1) if order else ():
            height = [0.0] * size
            for (u, v, forwards), edge in order:
                height[v] = height[u] + forwards * signs[edge] * tree[edge][2]
            rounding = 1e-14 * (1 + max(map(abs, height)))  # of sums: more than 1e-12 of an edge that is short
            if all(abs(height[u] - height[v]) <= d * (1 + 1e-12) + rounding for u, v, d in edges):
                found.add(tuple(round(h, 12) for h in height))
    return [tuple(exp(h) for h in height) for height in found]


def _from_the_first(size: int, tree: Sequence[tuple[int, int, float]]) -> list[tuple[tuple[int, int, int], int]]:
    """The edges in an order in which each starts at a place that is known, from place 0; [] if they are not a tree."""
    known, order, left = {0}, [], set(range(len(tree)))
    while left:
        ready = [e for e in left if (tree[e][0] in known) != (tree[e][1] in known)]
        if not ready:
            return []
        e = ready[0]
        u, v, _ = tree[e]
        order.append(((u, v, 1) if u in known else (v, u, -1), e))
        known |= {u, v}
        left.remove(e)
    return order if len(known) == size else []


def problem_metric(file: File) -> dict[str, Any] | None:
    """The description of the problem's own metric, where the file has one beside that of its claim."""
    return json.loads(file.attribute("problem_metric", str)) if "problem_metric" in file.attrs else None
