r"""The experiments of Liang and Yi (CCS 2024), section 5 and appendix B: the error of a mean of private answers.

python scripts/liang_yi.py incomes [--data FILE [--value HHINCOME] [--weight HHWT]]   Figures 3 and 8
python scripts/liang_yi.py debts                                                      Figure 4
python scripts/liang_yi.py places [--data FILE [--projection mercator]] [--every 6]   Figures 5, 6 and 9 to 11
python scripts/liang_yi.py answer [--thresholds 10000 100000 500000]                  one answer, with the optimal one

| method | answer of a user at x | the mean of n answers |
|---|---|---|
| smooth | f(x) + (S(x) / eta) T_3, the eta of the paper | variance (Var T_3 / eta^2) mean S^2 / n, no bias |
| smooth_tight | the same with the eta of the joint form | smaller by 5 / 3 |
| lipschitz | f(x) + (K / eps) Lap(1), K the global constant | variance 2 (K / eps)^2 / n, no bias |
| ldp | f(x) + Lap(1) / (eps span) | variance 2 / (eps span)^2 / n, no bias |
| input_perturbation | f(x + (planar) Laplace noise) | mean Var / n + bias^2; the bias does not fall with n |
| noisy_distance | kernels: \|x - t\| + Lap(1) / eps | as input_perturbation |

gamma = eps / 9 in both smooth methods. ldp is eps span nats for all pairs: stricter than the others beyond `span`, and
less strict within. k queries cost k eps, except for input_perturbation: one noisy secret answers all.
The paper simulates; the mean squared errors here are exact expectations over a population. They are relative to the
soft truth f, with --hard to the rule that f softens (the paper does not say which). T_3 has no fourth moment, so
simulated means converge slowly, and from below. For several queries the mean is printed; multiplied by the number of
queries it is the ASE of the paper. -o writes all sizes as CSV, --plot draws them.

Without --data, populations are synthetic. Incomes: ln x ~ N(mu, sigma^2) as in the problem `income`, the fit of the
authors to Californian households of 2022. Debts: ln x ~ N(mu + ln 1.791, sigma^2), correlation 0.4. Places: four normal
clouds over 60 km x 55 km; half of the places are within about 300 m of one of 150 spots. They do not imitate a city.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import input_perturbation
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import roots_legendre
from soft_queries import Kernel, SoftQuery, Threshold, TwoWay

import mechdesign as md
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.closed_forms.planar_laplace import laplace_clamped
from mechdesign.evaluation.remap import remapped_loss
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.release import laws
from mechdesign.release.query_functions import band_width
from mechdesign.release.released import noise_table

Array = NDArray[np.float64]
Moments = tuple[Array, Array]  # of an answer to a noisy secret: E f, E f^2
INCOME = read_problem_file("income").module
SHARE = 1 / 9  # gamma over epsilon
T3 = laws.StudentT(3)
THRESHOLDS = {  # USD: distances 1 / eps, the middle one also the span of local privacy
    10_000: (2_000, 1_200, 800),
    100_000: (20_000, 12_000, 8_000),
    500_000: (40_000, 24_000, 16_000),
    1_000_000: (80_000, 48_000, 32_000),
}
NO_INCOME = (9_999_998, 9_999_999)
CORNERS = range(10_000, 1_000_001, 180_000)  # USD; the paper has steps of 30,000
KERNELS = ((1_000, 1.0), (500, 1.0), (2_000, 1.0), (1_000, 0.8), (1_000, 1.2))  # 1 / eps in m, cells a bandwidth
EARTH = 6_371_000.0  # m, of the sphere
STEPS = 60  # of the grid of kernel centres, per axis
CLOUDS = (  # share of users, centre and standard deviations in m
    (0.40, (0.0, 0.0), (4_000.0, 6_000.0)),
    (0.30, (9_000.0, -9_000.0), (7_000.0, 4_000.0)),
    (0.20, (15_000.0, 8_000.0), (5_000.0, 5_000.0)),
    (0.10, (-15_000.0, -14_000.0), (3_000.0, 3_000.0)),
)


@dataclass(frozen=True, kw_only=True)
class Query:
    """f of secrets x, (n,) or (n, 2), with the constant K; `noisy` and `far` apply it to a noisy secret or distance."""

    soft: SoftQuery
    hard: Callable[[Array], Array]
    constant: float
    noisy: Callable[[Array, float], Moments]
    far: Callable[[Array, float], Moments] | None = None

    def values(self, x: Array) -> Array:
        """The answers f (n,)."""
        return self.soft.values(x)

    def smooth(self, x: Array, gamma: float) -> Array:
        """The smooth sensitivities S (n,)."""
        return self.soft.smooth(x, gamma)


def threshold(position: float, epsilon: float) -> Query:
    """The share of secrets above a threshold."""
    width = band_width(position, epsilon)
    return Query(
        soft=Threshold(width, at=position),
        hard=lambda x: (x > position).astype(float),
        constant=1 / width,
        noisy=lambda x, level: input_perturbation.moments(x, position, level, width=width),
    )


def two_way(corner: tuple[float, float], epsilon: float) -> Query:
    """The share of secrets with both coordinates above their thresholds; noisy secrets get the hard rule."""
    width = band_width(corner, epsilon)
    return Query(
        soft=TwoWay(width, at=corner),
        hard=lambda x: (x > np.asarray(corner)).all(axis=1).astype(float),
        constant=1 / width,
        noisy=lambda x, level: (quadrant(level * (corner - x)),) * 2,
    )


def kernel(centre: Array, width: float) -> Query:
    """The mean of exp(-|x - t|^2 / (2 h^2)); its square is a kernel of bandwidth h / sqrt 2."""
    soft = Kernel(centre, width)

    def moments(law: Callable[[Array, float], Array]) -> Callable[[Array, float], Moments]:
        def noisy_moments(x: Array, level: float) -> Moments:
            radius = np.hypot(*(x - centre).T) / width
            mean, square = (law(radius * scale, level * width / scale) for scale in (1.0, math.sqrt(2)))
            return mean, square

        return noisy_moments

    return Query(
        soft=soft,
        hard=soft.values,
        constant=math.exp(-0.5) / width,
        noisy=moments(kernel_of_noisy_place),
        far=moments(kernel_of_noisy_distance),
    )


def quadrant(a: Array, nodes: int = 32) -> Array:
    """P(Y_1 > a_1 and Y_2 > a_2) for planar Laplace noise Y at one nat per unit, a (n, 2)."""
    # For a >= 0: the mean over directions of P(|Y| > r) = (1 + r) e^-r, where r is the distance at which the ray enters
    # the quadrant. Elsewhere by reflection.

    node, weight = roots_legendre(nodes)

    def sector(side: Array, low: Array | float) -> Array:
        """The share of directions from `low` to pi / 2 off the normal of a line at a distance, times P(|Y| > r)."""
        half = (math.pi / 2 - low) / 2
        r = side[:, None] / np.cos(math.pi / 2 - np.reshape(half, (-1, 1)) * (1 - node))
        return half * (np.exp(np.log1p(r) - r) @ weight) / (2 * math.pi)

    def both(s: Array, t: Array) -> Array:
        corner = np.arctan2(t, s)
        return sector(s, corner) + sector(t, math.pi / 2 - corner)

    s, t = np.abs(a.T)
    zero = np.zeros(len(a))
    # P(Y_1 > s) = 2 P(Y_1 > s, Y_2 > 0)
    inside, first, second = both(s, t), 2 * both(s, zero), 2 * both(zero, t)
    is_left, is_below = a.T < 0
    return np.select(
        [~is_left & ~is_below, is_left & ~is_below, ~is_left & is_below],
        [inside, second - inside, first - inside],
        1 - first - second + inside,
    )


def kernel_of_noisy_place(v: Array, k: float) -> Array:
    """E exp(-|v e + Y|^2 / 2), Y planar Laplace at k nats per unit: k^2 int s e^(-ks - (v^2 + s^2) / 2) I_0(vs) ds."""
    return _noisy_place(k, 2 ** math.ceil(math.log2(v.max() + 1)))(v)


@lru_cache(maxsize=8)
def _noisy_place(k: float, farthest: int) -> Callable[[Array], Array]:
    """A cubic spline over 0 to `farthest`, to 1e-5; kernels more than 10 away are below e^-50."""
    from scipy.interpolate import CubicSpline
    from scipy.special import i0e

    node, weight = roots_legendre(100)
    knots = np.linspace(0, farthest, 16 * farthest + 1)[:, None]
    low = np.maximum(knots - 10, 0)
    half = (knots + 10 - low) / 2
    s = low + half * (node + 1)
    integrand = s * np.exp(-k * s - (knots - s) ** 2 / 2) * i0e(knots * s)
    return CubicSpline(knots[:, 0], k**2 * half[:, 0] * (integrand @ weight))


def kernel_of_noisy_distance(v: Array, k: float) -> Array:
    """E exp(-(v + Lap(1 / k))^2 / 2)."""
    from scipy.special import log_ndtr

    sides = [np.exp(k**2 / 2 - sign * k * v + log_ndtr(sign * v - k)) for sign in (1, -1)]
    return k * math.sqrt(math.pi / 2) * (sides[0] + sides[1])


def user_errors(query: Query, x: Array, epsilon: float, span: float) -> dict[str, Moments]:
    """Variance and bias (n,) of the users' answers relative to f(x), by method; epsilon in nats per unit of x."""
    f, smooth = query.values(x), query.smooth(x, epsilon * SHARE)
    unbiased = np.zeros(len(x))
    etas = {"smooth": T3.eta(epsilon, epsilon * SHARE, False), "smooth_tight": T3.eta(epsilon, epsilon * SHARE, True)}
    scales = {"lipschitz": query.constant / epsilon, "ldp": 1 / (epsilon * span)}
    moments = {name: (T3.variance * (smooth / eta) ** 2, unbiased) for name, eta in etas.items()}
    moments |= {name: (unbiased + 2 * scale**2, unbiased) for name, scale in scales.items()}
    for name, law in (("input_perturbation", query.noisy), ("noisy_distance", query.far)):
        if law is not None:
            mean, square = law(x, epsilon)
            moments[name] = square - mean**2, mean - f
    return moments


def errors(
    family: list[Query], x: Array, epsilon: float, span: float, sizes: list[int], *, hard: bool = False
) -> pd.DataFrame:
    """Mean squared errors of the means of `sizes` users, by size and method, averaged over the queries."""
    total = 0.0
    for query in family:
        shift = float(np.mean(query.values(x) - query.hard(x))) if hard else 0.0
        figures = {name: (v.mean(), b.mean() + shift) for name, (v, b) in user_errors(query, x, epsilon, span).items()}
        total += pd.DataFrame({name: v / np.array(sizes) + b**2 for name, (v, b) in figures.items()}, index=sizes)
    return total / len(family)


def incomes(options: argparse.Namespace) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a title and a table for each threshold and level of the paper."""
    rng = np.random.default_rng(options.seed)
    if options.data is None:
        x = rng.lognormal(INCOME.MU, INCOME.SIGMA, options.users or 400_000)
    else:
        records = pd.read_csv(options.data, usecols=[options.value, options.weight]).dropna()
        records = records[~records[options.value].isin(NO_INCOME)]
        share = records[options.weight] / records[options.weight].sum()
        x = rng.choice(records[options.value].astype(float), options.users or 400_000, p=share)
    for level, inverses in THRESHOLDS.items():
        for inverse in inverses:
            query, sizes = threshold(level, 1 / inverse), [400_000 * 2**k for k in range(5)]
            table = errors([query], x, 1 / inverse, inverses[1], sizes, hard=options.hard)
            yield f"T = {level:,}, 1/eps = {inverse:,} USD", table


def debts(options: argparse.Namespace) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a table per level, over thresholds of income and debt on a coarser grid than that of the paper."""
    first, second = np.random.default_rng(options.seed).standard_normal((2, options.users or 20_000))
    debt = math.log(1.791) + INCOME.SIGMA * (0.4 * first + math.sqrt(1 - 0.4**2) * second)
    x = np.exp(INCOME.MU + np.column_stack([INCOME.SIGMA * first, debt]))
    for inverse in (20_000, 12_000, 8_000):
        family = [two_way(corner, 1 / inverse) for corner in itertools.product(CORNERS, repeat=2)]
        table = errors(family, x, 1 / inverse, 12_000, [400_000, 1_600_000, 6_400_000], hard=options.hard)
        yield f"{len(family)} thresholds, 1/eps = {inverse:,} USD", table


def places(options: argparse.Namespace) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a table per level and bandwidth, over kernels about a grid of centres."""
    x = clouds(options.users or 10_000, options.seed)
    if options.data is not None:
        data = project_positions(options.data, options.projection)
        x = data[np.random.default_rng(options.seed).integers(len(data), size=len(x))]
    centres, diagonal = kernel_grid(x, options.every)
    for inverse, cells in KERNELS:
        width = math.floor(cells * diagonal)
        family = [kernel(centre, width) for centre in centres]
        table = errors(family, x, 1 / inverse, 1_000, [100_000, 200_000, 400_000], hard=options.hard)
        yield f"1/eps = {inverse:,} m, h = {width:,} m", table


def clouds(n: int, seed: int) -> Array:
    """Synthetic places (n, 2), m."""
    from scipy.stats import truncnorm

    rng, spots = np.random.default_rng(seed), 150
    share, middle, spread = (np.array(column) for column in zip(*CLOUDS, strict=True))
    cloud = rng.choice(len(CLOUDS), n + spots, p=share)
    centres = middle[cloud] + spread[cloud] * truncnorm.ppf(rng.uniform(size=(n + spots, 2)), -3.0, 3.0)
    near_spots = centres[rng.integers(spots, size=n)] + 300.0 * rng.standard_normal((n, 2))
    return np.where(rng.uniform(size=(n, 1)) < 0.5, near_spots, centres[spots:])


def project_positions(path: Path, projection: str) -> Array:
    """Positions (n, 2) of a CSV file in m of a plane; missing ones, and those at 0, 0, are dropped.

    A metre of the Mercator plane of the paper is cos(latitude) metres on the ground; the equidistant plane, about the
    middle of the positions, keeps ground metres.
    """
    table = pd.read_csv(path).rename(columns=str.lower).rename(columns={"lat": "latitude", "lng": "longitude"})
    table = table[["latitude", "longitude"]].dropna()
    latitude, longitude = table[(table != 0).all(axis=1)].to_numpy(float).T
    if projection == "mercator":
        return EARTH * np.column_stack([np.radians(longitude), np.arcsinh(np.tan(np.radians(latitude)))])
    middle = [float(low + high) / 2 for low, high in ((x.min(), x.max()) for x in (latitude, longitude))]
    return md.geo.Plane(latitude=middle[0], longitude=middle[1]).forward(longitude, latitude)


def kernel_grid(points: Array, every: int) -> tuple[Array, float]:
    """Every k-th of 61 x 61 kernel centres over the box of the points, and the diagonal of the finest cell."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    # The box is padded so that a cell is an integer number of metres.
    wide = extent + 2 * STEPS - extent % STEPS
    axes = [
        start + np.linspace(0, side, STEPS // every + 1)
        for start, side in zip(low - (wide - extent) / 2, wide, strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2), float(np.hypot(*(wide / STEPS)))


def answer(options: argparse.Namespace) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a table per threshold for one certified answer on a grid of outputs.

    Columns: the error, its lower bound, the error after a remap, and the certified multiple of the claim. Then follow
    the error of the mean of n answers, the same if incomes are 20 % higher, and the error without a grid of outputs.
    """
    # The mean of n answers has the error error / n + (1 - 1/n) bias^2. So the best mechanism for one answer may not be
    # the best for a million. Finite outputs make unbiased noise biased.

    users, raised = (100, 10_000, 1_000_000), 1.2
    for position in options.thresholds:
        problem = md.load_problem("income", threshold=position, epsilon=1 / options.inverse, cells=options.cells)
        epsilon, x = 1 / options.inverse, problem.domain.points[:, 0]
        query = threshold(position, epsilon)
        ends = np.append(np.arange(options.cells) * problem.domain.cell[0], np.inf) / raised
        population = md.priors.proportional(INCOME.income_mass(ends[:-1], ends[1:]))
        values, moments, rows = query.values(x), user_errors(query, x, epsilon, options.inverse), {}
        for name, mechanism in releases(problem, query, options.inverse).items():
            rows[name] = {
                "error": mechanism.attrs["expected_loss"],
                "lower_bound": mechanism.attrs.get("lower_bound"),
                "remapped": remapped_loss(mechanism),
                "ratio": mechanism.attrs["ratio"],
                **{f"mean of {n:,}": md.release.error_of_mean(mechanism, values, n) for n in users},
                "raised": md.release.error_of_mean(mechanism, values, users[-1], population=population),
            }
            if name in moments:
                variance, bias = moments[name]
                average = problem.prior_array @ bias
                spread = problem.prior_array @ (variance + bias**2) - average**2
                rows[name]["continuous"] = spread / users[-1] + average**2
        yield f"T = {position:,.0f}, 1/eps = {options.inverse:,.0f} USD", pd.DataFrame(rows).T


def releases(problem: md.DesignProblem, query: Query, span: float) -> dict[str, xr.Dataset]:
    """The optimal release and its baselines by name, each certified at its true multiple of the metric."""
    epsilon, x, outputs = 1 / span, problem.domain.points[:, 0], problem.reports.points[:, 0]
    values, gamma = query.values(x), epsilon * SHARE
    bound = query.smooth(x, gamma)
    noise = {"lipschitz": query.constant / epsilon, "ldp": 1 / (epsilon * span)}
    tables = {
        name: noise_table(values, np.full(len(x), scale), outputs, law=laws.Laplace()) for name, scale in noise.items()
    }
    nearest = np.abs(values[:, None] - outputs).argmin(axis=1)
    place_problem = md.DesignProblem(
        domain=problem.domain, metric=problem.metric, prior=problem.prior, loss=md.losses.Distance()
    )
    tables["input_perturbation"] = laplace_clamped(place_problem, epsilon) @ np.eye(len(outputs))[nearest]
    return {
        "optimal": md.solve(problem),
        "smooth": md.release.release_mechanism(problem, values, bound, law=T3, gamma=gamma, tight=False),
        "smooth_tight": md.release.release_mechanism(problem, values, bound, law=T3, gamma=gamma),
        **{
            name: closed_form_mechanism(problem, table, name=name, claimed_epsilon=epsilon)
            for name, table in tables.items()
        },
        "constant": md.baselines.constant(problem),
    }


def main() -> None:
    """Print a table per setting; write all to a file and draw them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("incomes", "debts", "places", "answer"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--value", default="HHINCOME")
    parser.add_argument("--weight", default="HHWT")
    parser.add_argument("--projection", default="mercator", choices=("mercator", "equidistant"))
    parser.add_argument("--users", type=int, help="of the population")
    parser.add_argument("--every", type=int, default=6, help="of the kernel centres per axis; the paper has all")
    parser.add_argument("--hard", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[10_000.0, 100_000.0, 500_000.0])
    parser.add_argument("--inverse", type=float, default=12_000.0)
    parser.add_argument("--cells", type=int, default=120)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    tables = {}
    for title, table in globals()[options.experiment](options):
        print(f"\n{title}\n{table.to_string(float_format='{:.4g}'.format, na_rep='-')}", flush=True)
        tables[title] = table
    if options.output is not None:
        pd.concat(tables, names=["setting", "row"]).to_csv(options.output)
    if options.plot is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4 * len(tables), 4), layout="constrained")
        for axes, (title, table) in zip(figure.subplots(1, len(tables), squeeze=False)[0], tables.items(), strict=True):
            table.plot(ax=axes, loglog=True, marker="o", title=title, xlabel="users", ylabel="mean squared error")
        figure.savefig(options.plot)


if __name__ == "__main__":
    main()
