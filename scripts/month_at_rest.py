"""Distance to a home that a month of reports gives away, by mode of the memory (mechdesign/sessions/rest.py).

python scripts/month_at_rest.py [--people 100] [--days 1 7 30] [--per-day 10] [--visit 100] [--factor 2] [--seed 0]
    [--mechanism FILE]

A mechanism between any two positions on 16 x 16 cells of 200 m; within 200 m a report changes odds by at most
`--factor`. Homes
and works are uniform in the middle half of the map. A fix every 10 minutes has a jitter of 6 m on each axis. From 9 to
18 people are at work, from Monday to Friday. The way takes half an hour each time. In mode "none" the first
`--per-day` fixes of a day are reported. The attacker knows the mechanism, and when people are at home, and estimates
the home from all reports between midnight and 6 in two ways:

* mean: the mean of their coordinates;
* likeliest: the point of a lattice of 50 m at which the distinct draws have the largest probability.

Figures are distances to the home in m over people: the mean with the half-width of its 95 % interval, and quantiles of
people. Draws at night are independent ones. The last column is the share of people at or below the error that an app
measured for one phone after 1, 7 and 30 days (`MEASURED`).
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.problem.locate import places_of
from mechdesign.sessions.rest import visit_of

BOX = (2.320, 48.836, 2.363, 48.8645)
CELL, WITHIN = 200.0, 200.0  # m
FIXES = 144  # of a day
JITTER = 6.0  # m
STEP = 50.0  # m, of the lattice of the likeliest point
MODES = ("none", "visit", "cell")
MEASURED = {1: 84.0, 7: 34.0, 30: 23.0}  # m, mean of reports of one phone in another city
Positions = NDArray[np.float64]


def trace(home: Positions, work: Positions, days: int, rng: np.random.Generator) -> Positions:
    """Fixes (days, FIXES, 2) of one person."""
    way = home + np.linspace(0, 1, 5)[1:-1, None] * (work - home)
    day = np.repeat(home[None], FIXES, axis=0)
    day[51:54], day[54:108], day[108:111] = way, work, way[::-1]
    fixes = np.stack([day if date % 7 < 5 else np.repeat(home[None], FIXES, axis=0) for date in range(days)])
    return np.asarray(fixes + rng.normal(scale=JITTER, size=fixes.shape))


def secrets(mode: str, domain: md.Domain, fixes: Positions, visit: float, per_day: int) -> tuple[Positions, list[int]]:
    """The positions (k, 2) that reports are drawn for, and the number of the draw of each fix, -1 for no report."""
    days = len(fixes)
    if mode == "none":
        numbers = np.full((days, FIXES), -1)
        numbers[:, :per_day] = np.arange(days * per_day).reshape(days, per_day)
        return fixes[:, :per_day].reshape(-1, 2), numbers.ravel().tolist()
    flat = fixes.reshape(-1, 2)
    if mode == "cell":
        cells, numbers = np.unique(places_of(domain, flat), return_inverse=True)
        return domain.points[cells], numbers.tolist()
    names: dict[str, int] = {}
    drawn_for, order, last = [], [], None
    for position in flat.tolist():
        last = visit_of(domain, visit, names, last, position).name
        assert last is not None
        if last not in names:
            names[last] = len(names)
            drawn_for.append(position)
        order.append(names[last])
    return np.array(drawn_for), order


def weights_of(shift: Positions) -> Positions:
    """The weights (..., 3) of the quadratic B-spline at points of a cell, -1/2 to 1/2."""
    low, middle = (0.5 - shift) ** 2 / 2, 0.75 - shift**2
    return np.stack([low, middle, 1 - low - middle], axis=-1)


def rows_of(sampler: md.Sampler) -> Positions:
    """P(y|u) of the 3 x 3 cells around every cell (n, 9, m)."""
    claim = sampler.certificate.positions
    assert claim is not None
    return np.asarray(sampler.mechanism["mass"].values[claim.around] / 2.0**62)


def draws_of(rows: Positions, domain: md.Domain, positions: Positions, rng: np.random.Generator) -> NDArray[np.int64]:
    """Reports (k,) of positions (k, 2), drawn in floating point."""
    cells = places_of(domain, positions)
    across, upward = weights_of((positions - domain.points[cells]) / CELL).transpose(1, 0, 2)
    weights = (across[:, :, None] * upward[:, None, :]).reshape(-1, 9)
    chances = np.einsum("ks,ksy->ky", weights, rows[cells]).cumsum(axis=1)
    return np.asarray((chances < rng.random(len(cells))[:, None] * chances[:, -1:]).sum(axis=1))


def lattice(rows: Positions, domain: md.Domain) -> tuple[Positions, Positions]:
    """Points (k, 2) every STEP, and the logarithms of their probabilities (k, reports)."""
    shift = (np.arange(int(CELL / STEP)) + 0.5) * STEP / CELL - 0.5
    points, chances = [], []
    for a, x in zip(weights_of(shift), shift, strict=True):
        for b, y in zip(weights_of(shift), shift, strict=True):
            points.append(domain.points + np.array([x, y]) * CELL)
            chances.append(np.einsum("s,usy->uy", np.outer(a, b).ravel(), rows))
    return np.concatenate(points), np.log(np.concatenate(chances))


def measure(options: argparse.Namespace) -> Iterator[tuple[str, int, float, float, int]]:
    """Yield for each mode, person and day: the errors of the two estimates in m, and the draws at night."""
    if options.mechanism is None:
        mechanism = md.geo.design(md.geo.Area.box(*BOX), CELL, within=WITHIN, factor=options.factor).mechanism
    else:
        mechanism = md.load(options.mechanism)
    sampler = md.Sampler(mechanism)
    domain = sampler.certificate.domain
    report_points = np.stack([sampler.mechanism[f"report_{axis}"].values for axis in "xy"], axis=1)
    rows = rows_of(sampler)
    points, logs = lattice(rows, domain)
    rng = np.random.default_rng(options.seed)
    centre, half = domain.points.mean(axis=0), np.ptp(domain.points, axis=0) / 4
    for _ in range(options.people):
        home, work = centre + rng.uniform(-1, 1, (2, 2)) * half
        fixes = trace(home, work, max(options.days), rng)
        night = np.tile(np.arange(FIXES) < 36, max(options.days))
        for mode in MODES:
            drawn_for, order = secrets(mode, domain, fixes, options.visit, options.per_day)
            reports = draws_of(rows, domain, drawn_for, rng)
            for days in options.days:
                numbers = np.array(order[: days * FIXES])[night[: days * FIXES]]
                numbers = numbers[numbers >= 0]
                mean = report_points[reports[numbers]].mean(axis=0)
                draws = np.unique(numbers)
                likeliest = points[logs[:, reports[draws]].sum(axis=1).argmax()]
                errors = (float(np.linalg.norm(estimate - home)) for estimate in (mean, likeliest))
                yield mode, days, *errors, len(draws)


def summary(group: pd.DataFrame) -> pd.Series:
    """The figures of one mode and number of days."""
    mean, likeliest = group["mean, m"], group["likeliest, m"]
    days = int(group["days"].iloc[0])
    figures = {"mean, m": mean.mean(), "+-": half_width(mean)}
    figures |= {f"{share} %": mean.quantile(share / 100) for share in (10, 50, 90)}
    figures |= {"likeliest, m": likeliest.mean(), "+-  ": half_width(likeliest)}
    figures["draws at night"] = group["draws at night"].mean()
    if days in MEASURED:
        figures[f"share at most {', '.join(f'{value:g}' for value in MEASURED.values())} m"] = (
            mean <= MEASURED[days]
        ).mean()
    return pd.Series(figures)


def half_width(values: pd.Series) -> float:
    """Half the width of the 95 % interval of a mean."""
    return float(1.96 * values.std() / np.sqrt(len(values)))


def main() -> None:
    """Print the errors by mode and day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--days", type=int, nargs="+", default=[1, 7, 30])
    parser.add_argument("--per-day", type=int, default=10)
    parser.add_argument("--visit", type=float, default=100.0)
    parser.add_argument("--factor", type=float, default=2.0)
    parser.add_argument("--mechanism", help="a saved design between positions on cells of 200 m, instead of a new one")
    parser.add_argument("--seed", type=int, default=0)
    columns = ["remember", "days", "mean, m", "likeliest, m", "draws at night"]
    table = pd.DataFrame(measure(parser.parse_args()), columns=columns)
    rows = {key: summary(group) for key, group in table.groupby(["remember", "days"], sort=False)}
    print(pd.DataFrame(rows).T.to_string(float_format="{:.3g}".format))


if __name__ == "__main__":
    main()
