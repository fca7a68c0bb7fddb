"""Compare the time of routes to one answer, and of this version with another.

python benchmarks/run.py [CASE ...] [--sizes N ...] [--file FILE ...] [--repeats 3] [--limit 600] [--before CHECKOUT]

CASE is a case or the beginning of its name ("solve" for all sizes of programs). Without a case they are listed. Every
route runs in a separate process, alternating with the others. A small run loads compiled code, then --repeats runs are
timed. A run longer than --limit seconds ends its route. --before adds the last route of another checkout. --file is for
`client`: your mechanisms and device maps.

Columns:
* CPU s, s: CPU and wall seconds, medians
* first / route: CPU seconds of the first route over those of this one
* peak MB: peak memory of the process
* answer: must equal that of the last route within the tolerance of the case. If not, the note says so, and the exit
  code is 1.

POT solves only the transport of the excess, without a certificate; libqif, cvxpy and numpy certify nothing. "naive" is
Algorithm 1 as users write it: a fast-marching field per report, the dense kernel K, numpy's solve of K w = 1, negative
weights set to 0 and rows divided by their sums. The ratio of a table is its largest log-ratio over the length of an
edge. Above 1 the claim is broken; it is infinite if a zero faces a positive entry.

Sizes are cells along either side, but reports of 900 secrets in `likelihood` and cells in `client`. `reports` draw a
million of one secret. `solve` cases include start-up.
* short edges: at least 0.2 nats
* bumps: seeded maps of nine Gaussian bumps, with edges of 0.2 to 1.4 nats
* points: scattered places in a square of 2 km, all pairs at 0.01 nats per m
* roads and crossings: synthetic networks at 0.003 and at 0.01 nats per m
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import xarray as xr
from clients import in_c, in_node, in_page
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import mechdesign as md

Answer = tuple[float, str | Callable[[], str]]  # a note that takes time is computed after the clock has stopped
Run = Callable[[], Answer]
Array = NDArray[np.float64]
DIFFERS = "differs"
HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """Routes to one answer."""

    routes: dict[str, Callable[[Any], Run]]  # by name; each makes a run of a size
    sizes: tuple[Any, ...] = (0,)
    small: Any = None  # the size that loads compiled code
    agree: float = math.inf  # relative tolerance between answers


philadelphia = partial(md.load_problem, "philadelphia")
finer = partial(philadelphia, stencil=16)
lattice = partial(md.load_problem, "euclidean", loss="distance")


def optimal(load: Callable[..., md.DesignProblem], method: str, gap: float, cells: int) -> Run:
    problem = load(cells=cells)
    return lambda: loss_and_gap(md.solve(problem, method=method, gap=gap))


def loss_and_gap(mechanism: xr.Dataset) -> Answer:
    loss, bound = mechanism.attrs["expected_loss"], mechanism.attrs.get("lower_bound")
    return loss, "certified" if bound is None else f"certified, gap {1 - bound / loss:.1e}"


def optimal_statement(load: Callable[..., md.DesignProblem], solver: str, cells: int) -> Run:
    """The statement as cvxpy passes it to a solver. Entries below its tolerance escape constraints."""
    program = md.Optimal(problem=load(cells=cells))

    def run() -> Answer:
        statement = program.statement()
        loss = float(statement.solve(solver=solver))
        return loss, lambda: not_certified(program.problem, statement.variables()[0].value)

    return run


def not_certified(problem: md.DesignProblem, table: Array) -> str:
    return f"not certified, ratio {largest_ratio(problem, table):.6g}"


def largest_ratio(problem: md.DesignProblem, table: Array) -> float:
    """The largest log-ratio of a table (n, m) over the length of an edge, infinite where a zero faces an entry."""
    edges = problem.edges
    with np.errstate(divide="ignore"):
        log = np.log(np.maximum(table, 0.0))
    return max(
        float(np.abs(log[tail, used] - log[head, used]).max() / length)
        for tail, head, length in zip(edges.tail, edges.head, edges.length, strict=True)
        if (used := (table[tail] > 0) | (table[head] > 0)).any()
    )


def optimal_libqif(cells: int) -> Run:
    import qif

    problem = lattice(cells=cells)
    distance = problem.loss_matrix
    uniform, metric = np.full(len(distance), 1 / len(distance)), qif.metric.from_distance_matrix(distance)

    def run() -> Answer:
        table = qif.mechanism.d_privacy.min_loss_given_d(uniform, len(distance), metric, metric)
        return float(uniform @ (table * distance).sum(axis=1)), lambda: not_certified(problem, np.asarray(table))

    return run


def distributions(kind: str, side: int) -> tuple[Array, Array, md.Domain]:
    """Two distributions over cells of 150 m, by kind.

    smooth: mixtures of six Gaussians. dirichlet: draws from the Dirichlet distribution. sparse: 750 check-ins from a
    mixture, and n / 9 spikes.
    """
    random, n = np.random.default_rng(0), side**2
    domain = md.Domain.grid((side, side), cell=150.0, unit="m")

    def mixture() -> Array:
        weights = np.zeros(n)
        for _ in range(6):
            centre, width = random.uniform(0, 150 * side, 2), random.uniform(0.05, 0.25) * 150 * side
            weights += random.random() * np.exp(-((domain.points - centre) ** 2).sum(axis=1) / (2 * width**2))
        return weights / weights.sum()

    if kind == "smooth":
        return mixture(), mixture(), domain
    if kind == "dirichlet":
        return random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n)), domain
    visits, spikes = np.bincount(random.choice(n, 750, p=mixture()), minlength=n) / 750, np.zeros(n)
    spikes[random.choice(n, n // 9, replace=False)] = random.dirichlet(np.ones(n // 9))
    return visits, spikes, domain


def transport(kind: str, side: int) -> Run:
    p, q, domain = distributions(kind, side)

    def run() -> Answer:
        distance = md.utility.kantorovich(p, q, domain)
        return distance.value, f"gap {distance.gap:.1e}"

    return run


def transport_pot(kind: str, side: int) -> Run:
    import ot

    p, q, domain = distributions(kind, side)

    def run() -> Answer:
        more, less = np.flatnonzero(p > q), np.flatnonzero(p < q)
        supply, demand = (p - q)[more], (q - p)[less]
        cost = np.hypot(*(domain.points[more][:, None] - domain.points[less]).transpose(2, 0, 1))
        moved = ot.emd2(supply / supply.sum(), demand / demand.sum(), cost, numItermax=10**9, numThreads=1)
        return float(moved * supply.sum()), ""

    return run


def likelihood(kind: str, route: str, reports: int) -> Run:
    """A mechanism at a mean distance of 450 m in 30 x 30 cells of 150 m, reports from a mixture of 14 hot spots."""
    from mechdesign.surveys.likelihood import Likelihood

    problem, random = md.load_problem("paris", epsilon=0.004), np.random.default_rng(0)
    sender = {
        "geometric": lambda: md.baselines.geometric(problem, 0.0040154449, border="normalised"),
        "Laplacian": lambda: md.baselines.planar_laplace(problem, 0.004136012),
        "response": lambda: md.baselines.randomized_response(problem, 8.24041),
    }[kind]()
    points, table = problem.domain.points, md.probabilities(sender).values
    centre, width = random.uniform(points.min(), points.max(), (14, 2)), random.uniform(150, 600, 14)
    square = ((points[:, None] - centre) ** 2).sum(axis=-1)
    sent = (random.dirichlet(np.ones(14)) * np.exp(-square / (2 * width**2)) / width**2).sum(axis=1) @ table
    counts = random.multinomial(reports, sent / sent.sum())

    def run() -> Answer:
        if route == "statement":
            program = Likelihood(table=table, counts=counts)
            statement = program.statement()
            statement.solve(solver="CLARABEL")
            point: Any = program.judge(np.maximum(statement.variables()[0].value, 0))
        elif route == "300 EM steps":
            point = md.surveys.expectation_maximization(counts, sender, stop=300)
        else:
            point = md.surveys.maximum_likelihood(counts, sender)
        return point.log_likelihood, f"gap {point.gap:.1e}"

    return run


def smooth_bound(kind: str, method: str, cells: int) -> Run:
    """The smooth bound of the slope of a kernel density on cells of 1 km, or of log-normal noise."""
    from scipy.spatial.distance import cdist

    domain = md.Domain.grid((cells, cells), cell=1.0, unit="km")
    away = np.hypot(*(domain.points - [0.35 * cells, 0.45 * cells]).T) / (cells / 15)
    slope = np.maximum(away * np.exp(-(away**2) / 2), 1e-300)
    if kind == "noise":
        slope = np.exp(3 * np.random.default_rng(0).standard_normal(domain.size))

    def run() -> Answer:
        if method != "all pairs":
            return float(md.release.least_smooth_bound(domain, lipschitz=slope, gamma=0.02).S.mean()), ""
        blocks = np.array_split(domain.points, max(1, domain.size // 256))
        logs = [(np.log(slope) - 0.02 * cdist(block, domain.points)).max(axis=1) for block in blocks]
        return float(np.exp(np.concatenate(logs)).mean()), ""

    return run


def eikonal(cells: int, **options: Any) -> Run:
    program = md.EikonalWeights(problem=finer(cells=cells))
    return lambda: loss_and_gap(md.solve(program, method="factored", **options))


def eikonal_naive(cells: int) -> Run:
    import skfmm

    problem = finer(cells=cells)
    domain = problem.domain
    speed = 1 / problem.metric.level_at(domain).reshape(domain.shape)

    def run() -> Answer:
        kernel = np.empty((domain.size, domain.size))
        for report in range(domain.size):
            front = np.ones(domain.shape)
            front.flat[report] = -1.0
            field = np.asarray(skfmm.travel_time(front, speed, dx=list(domain.cell), order=2)).ravel()
            np.exp(-field, out=kernel[:, report])
        weight = np.linalg.solve(kernel, np.ones(domain.size))
        table = kernel * np.maximum(weight, 0.0)
        table /= table.sum(axis=1, keepdims=True)

        def note() -> str:
            ratio = largest_ratio(problem, table[:, weight > 0])
            return f"{(weight < 0).sum()} negative weights, ratio {ratio:.3f}"

        return float((problem.weighted_loss * table).sum()), note

    return run


def mechanism(factored: bool, cells: int, **options: Any) -> xr.Dataset:
    """A factored mechanism of Philadelphia, or the exponential table over all pairs of a lattice."""
    if factored:
        return md.solve(md.EikonalWeights(problem=finer(cells=cells)), method="factored", **options)
    return md.baselines.exponential(lattice(cells=cells))


def reports(factored: bool, route: str, cells: int) -> Run:
    """Draws of reports; the answer is their mean number."""
    dataset, draws = mechanism(factored, cells, **({"rounds": 5} if factored else {})), 1_000_000
    sampler, middle = md.Sampler(mechanism=dataset), dataset.sizes["secret"] // 2
    row = (
        md.factored.FactoredMechanism(dataset=dataset).row(middle) if factored else md.probabilities(dataset)[middle]
    ).values
    some = np.random.default_rng(0).choice(len(row), min(1000, len(row)), replace=False)
    draw: dict[str, Callable[[], Any]] = {
        "numpy.choice": lambda: np.random.default_rng().choice(len(row), draws, p=row / row.sum()),
        "100 of 1000 secrets": lambda: sampler.sample(some, 100),
        "300 live": lambda: [sampler.report(middle) for _ in range(300)],
        "ours": lambda: sampler.sample(middle, draws),
    }
    return lambda: (float(np.mean(draw[route]())), "")


def verify(factored: bool, cells: int) -> Run:
    dataset = mechanism(factored, cells)
    return lambda: (float(md.verify(dataset).violations or 0), "violations")


def verify_bound(load: Callable[..., md.DesignProblem], route: str, cells: int) -> Run:
    """The proof of a file's lower bound, by its trees or by pricing."""
    dataset = md.solve(load(cells=cells))
    if route == "pricing":
        dataset = dataset.drop_vars("tree")
    return lambda: (float(bool(md.verify(dataset).lower_bound_checked)), "bound proved")


def verify_map(route: str, cells: int) -> Run:
    """The proof of a map's lower bound, by its trees or by pricing its reports."""
    dataset = md.solve(md.EikonalWeights(philadelphia(cells=cells)), method="factored", bound=True)
    if route == "pricing":
        dataset = dataset.drop_vars(["tree", "tree_size"], errors="ignore")
    return lambda: (float(bool(md.verify(dataset).lower_bound_checked)), "bound proved")


def cold(command: Sequence[str], cells: int) -> Run:
    """A command on a table, by a new process."""
    path = md.save(md.solve(md.load_problem("philadelphia", cells=cells)), Path(tempfile.mkdtemp()) / "table.nc")
    words = [sys.executable, "-m", "mechdesign", command[0], str(path), *command[1:], "--json"]

    def run() -> Answer:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1.0, "done"

    return run


def first_solve(cells: int) -> Run:
    """A first solve, which compiles its kernels."""
    words = [sys.executable, "-m", "mechdesign", "solve", "philadelphia", "--cells", str(cells), "--json"]

    def run() -> Answer:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1.0, "compiled and solved"

    return run


def client(where: Callable[[Path, int], tuple[float, str]], source: int | str) -> Run:
    """Milliseconds per report of a client: of a file, or of planar Laplace noise on `source` cells of 200 m."""
    folder, file = Path(tempfile.mkdtemp()), source
    if isinstance(source, int):
        rows = next(k for k in range(int(source**0.5), 0, -1) if source % k == 0)
        sides, plane = (rows, source // rows), md.geo.Plane(latitude=41.9, longitude=12.49)
        domain = md.Domain.grid(sides, cell=200.0, unit="m", origin=[-100.0 * k for k in sides], plane=plane)
        metric, loss = md.Euclidean(epsilon=math.log(2) / 200, unit="m"), md.losses.Distance()
        problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=loss)
        file = md.save(md.baselines.planar_laplace(problem), folder / "table.nc")
    words = [sys.executable, "-m", "mechdesign", "export", str(file), "-o", str(folder / "web")]
    subprocess.run(words, check=True, stdout=sys.stderr)
    return lambda: where(folder / "web", 2000 if (folder / "web" / "region.map").exists() else 50)


def command(words: str, _: int) -> Run:
    """One run of `mechdesign solve`, in a folder with rasters of bumps and a file of scattered points."""
    folder, at = Path(tempfile.mkdtemp()), np.linspace(0, 100, 24)
    for seed in range(3):
        random, total = np.random.default_rng(seed), np.zeros((24, 24))
        x, y = np.meshgrid(at, at)
        for _ in range(9):
            a, b, width, height = random.uniform((0, 0, 4, 0.2), (100, 100, 12, 1))
            total += height * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
        head = f"ncols 24\nnrows 24\nxllcenter 0\nyllcenter 0\ncellsize {100 / 23:.17g}"
        np.savetxt(folder / f"{seed}.asc", (total * 16_000 / total.max())[::-1], "%.6g", header=head, comments="")
    (folder / "points.py").write_text(POINTS)

    def run() -> Answer:
        solve = [sys.executable, "-m", "mechdesign", "solve", *words.split(), "--json"]
        done = json.loads(subprocess.run(solve, check=True, stdout=subprocess.PIPE, cwd=folder).stdout)
        return done["loss"], f"bound {done['lower_bound']:.7g}, gap {done['gap']:.1e}, {done['stopped']}"

    return run


POINTS = """import numpy as np
from mechdesign import DesignProblem, Domain, Euclidean
from mechdesign.losses import Distance


def problem(count: int = 60) -> DesignProblem:
    places = np.random.default_rng(0).uniform(0, 2000, (count, 2))
    return DesignProblem(domain=Domain.points_at(places, unit="m"), metric=Euclidean(epsilon=0.01, unit="m"),
                         prior=np.full(count, 1 / count), loss=Distance())
"""
EIKONAL = "--program eikonal --method factored"
BUMPS = "philadelphia --cells 20 --slope 1e-5 --floor 0.04 --gap 1e-3 --raster"
COMMANDS = {
    "35 x 35": "philadelphia --cells 35 --gap 1e-4",
    "50 x 50": "philadelphia --cells 50 --gap 1e-3",
    "70 x 70": "philadelphia --cells 70 --gap 1e-3",
    "100 x 100": "philadelphia --cells 100 --gap 5e-3",
    "200 x 200": "philadelphia --cells 200 --gap 1e-2",
    "short edges, 20 x 20 of 0.5": "philadelphia --cells 20 --extent 10 --gap 1e-3",
    "short edges, 35 x 35 of 1": "philadelphia --cells 35 --extent 35 --gap 1e-2",
    "euclidean 10 x 10": "euclidean --cells 10 --loss distance --gap 1e-6",
    "euclidean 20 x 20 to 1e-8": "euclidean --cells 20 --gap 1e-8",
    "paris 30 x 30 to 1e-8": "paris --cells 30 --gap 1e-8",
    "35 x 35 to 1e-6": "philadelphia --cells 35 --gap 1e-6",
    "euclidean 12 x 12": "euclidean --cells 12 --loss distance --gap 1e-4",
    "euclidean 15 x 15": "euclidean --cells 15 --loss distance --gap 1e-4",
    **{f"bumps {seed}": f"{BUMPS} {seed}.asc" for seed in range(3)},
    **{f"roads {count}": f"streets --nodes {count} --epsilon 0.003 --gap 1e-3" for count in (300, 500)},
    **{f"points {count}": f"points.py --count {count} --gap 1e-3" for count in (60, 100, 150, 200, 300)},
    "minimax 15 x 15": "philadelphia --cells 15 --program minimax --gap 1e-3",
    **{f"eikonal {cells}": f"philadelphia --cells {cells} {EIKONAL}" for cells in (50, 70, 100, 150, 200)},
    "eikonal 200, 16 neighbours": f"philadelphia --cells 200 --stencil 16 {EIKONAL}",
    "eikonal 10,000 crossings": f"streets --nodes 10000 --loss straight {EIKONAL}",
}


def routes(function: Callable[..., Run], *words: Any, names: tuple[str, ...]) -> dict[str, Callable[[Any], Run]]:
    """One function for several routes: its last argument is their name."""
    return {name: partial(function, *words, name) for name in names}


def peers(load: Callable[..., md.DesignProblem]) -> dict[str, Callable[[Any], Run]]:
    """The statement by two solvers of cvxpy."""
    return {f"{name} by cvxpy": partial(optimal_statement, load, name.upper()) for name in ("HiGHS", "Clarabel")}


LIKELIHOOD = ("statement", "300 EM steps", "ours")
CASES = {
    "optimal": Case(
        routes={
            **peers(philadelphia),
            **{name: partial(optimal, philadelphia, name, 1e-5) for name in ("highs", "blocks", "columns")},
        },
        sizes=(9,),  # the largest that highs accepts
        small=5,
        agree=1e-4,
    ),
    "libqif": Case(
        routes={**peers(lattice), "libqif": optimal_libqif, "ours": partial(optimal, lattice, "auto", 1e-6)},
        sizes=(6, 8),
        small=3,
        agree=2e-6,
    ),
    **{
        f"transport, {kind}": Case(
            routes={"POT": partial(transport_pot, kind), "ours": partial(transport, kind)},
            sizes=(30, 50, 70, 100),
            small=15,
            agree=1e-6,
        )
        for kind in ("sparse", "smooth", "dirichlet")
    },
    **{
        f"likelihood, {kind}": Case(
            routes=routes(likelihood, kind, names=LIKELIHOOD), sizes=(750, 5_000, 20_000), small=100, agree=0.01
        )
        for kind in ("geometric", "Laplacian", "response")
    },
    **{
        f"smooth sensitivity, {kind}": Case(
            routes=routes(smooth_bound, kind, names=("all pairs", "blocks")),
            sizes=(200,),
            small=20,
            agree=1e-9,
        )
        for kind in ("kernel", "noise")
    },
    "eikonal": Case(routes={"naive": eikonal_naive, "factored": eikonal}, sizes=(60, 100), small=6),
    "reports of a table": Case(
        routes=routes(reports, False, names=("numpy.choice", "300 live", "ours")), sizes=(30,), small=5
    ),
    "reports of factors": Case(
        routes=routes(reports, True, names=("numpy.choice", "100 of 1000 secrets", "ours")), sizes=(200,), small=12
    ),
    "verify all pairs": Case(routes={"ours": partial(verify, False)}, sizes=(35,), small=5),
    "verify the bound, all pairs": Case(
        routes=routes(verify_bound, partial(md.load_problem, "paris"), names=("pricing", "trees")), sizes=(30,), small=8
    ),
    "verify the bound, 8 neighbours": Case(
        routes=routes(verify_bound, philadelphia, names=("pricing", "trees")), sizes=(35,), small=8
    ),
    "verify the bound, map": Case(routes=routes(verify_map, names=("pricing", "trees")), sizes=(60, 100), small=12),
    "cold sample": Case(routes={"ours": partial(cold, ("sample", "--secret", "0"))}, sizes=(15, 35), small=5),
    "cold verify": Case(routes={"ours": partial(cold, ("verify",))}, sizes=(15, 35), small=5),
    "first solve": Case(routes={"ours": first_solve}, sizes=(15,)),
    "verify factors": Case(routes={"ours": partial(verify, True)}, sizes=(60,), small=12),
    "client": Case(
        routes={"page": partial(client, in_page), "C": partial(client, in_c), "node": partial(client, in_node)},
        sizes=(575, 2000),
    ),
    **{f"solve {name}": Case(routes={"ours": partial(command, words)}) for name, words in COMMANDS.items()},
}


def serve(case: Case, route: str, size: str) -> None:
    """Run once per line of standard input, and answer with a line of JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr
    try:
        if case.small is not None:
            case.routes[route](case.small)()
        run = case.routes[route](int(size) if size.isdigit() else size)
        for _ in sys.stdin:
            (before, _), start = resources_used(), time.perf_counter()
            answer, note = run()
            wall, (cpu, peak) = time.perf_counter() - start, resources_used()
            figures = {"cpu": cpu - before, "wall": wall, "peak": peak / 1024, "answer": answer}
            print(json.dumps(figures | {"note": note if isinstance(note, str) else note()}), file=answers, flush=True)
    except (ImportError, md.errors.UnsuitableError) as error:  # a peer is not installed, or a route refuses the problem
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)


def resources_used() -> tuple[float, float]:
    """CPU seconds and peak kB of this process and of its finished children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both), max(each.ru_maxrss for each in both)


def start_process(name: str, route: str, size: Any, checkout: Path) -> subprocess.Popen[str]:
    # Entry points name modules of the version that is installed: a checkout's own environment is used if it has one.
    own = checkout / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    words = [python, str(Path(__file__).resolve()), "--serve", name, route, str(size)]
    environment, pipe = {**os.environ, "PYTHONPATH": str(checkout)}, subprocess.PIPE
    # Processes that `python -m mechdesign` starts look for the package in their folder first.
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, env=environment, cwd=checkout, text=True)


def one_run(process: subprocess.Popen[str], limit: float) -> dict[str, Any]:
    """The figures of another run, or the reason if the limit ended the process or it failed."""
    timer = threading.Timer(limit, process.kill)
    timer.start()
    with suppress(BrokenPipeError):
        print("again", file=process.stdin, flush=True)
    line = process.stdout.readline() if process.stdout is not None else ""
    timer.cancel()
    return json.loads(line) if line else {"missing": "stopped"}


def measure(name: str, size: Any, options: argparse.Namespace) -> list[list[str]]:
    """A row per route of a case at a size; the note says if the answer differs from that of the last route."""
    case = CASES[name]
    processes = {route: start_process(name, route, size, HERE) for route in case.routes}
    if options.before is not None:
        processes["before"] = start_process(name, list(case.routes)[-1], size, options.before.resolve())
    runs = [[one_run(process, options.limit) for process in processes.values()] for _ in range(options.repeats)]
    for process in processes.values():
        with suppress(BrokenPipeError):
            process.communicate()
    rows, answers, peer = [], [], math.nan
    for route, figures in zip(processes, zip(*runs, strict=True), strict=True):
        first, missing = figures[0], [each["missing"] for each in figures if "missing" in each]
        if missing:
            rows.append([name, str(size), route, *5 * ["-"], missing[0]])
            continue
        cpu, wall = (median(each[key] for each in figures) for key in ("cpu", "wall"))
        peer = peer if rows else cpu
        answers.append(first["answer"])
        figures = (
            f"{cpu:.3f}",
            f"{wall:.3f}",
            f"{peer / cpu:.2f}" if peer == peer else "-",
            f"{first['peak']:.0f}",
            f"{first['answer']:.8g}",
        )
        rows.append([name, str(size), route, *figures, first["note"]])
    answered = (row for row in rows if row[3] != "-")
    for row, answer in zip(answered, answers, strict=True):
        if abs(answer - answers[-1]) > case.agree * max(map(abs, answers)):
            row[-1] = f"{row[-1]}, {DIFFERS} by {answer / answers[-1] - 1:.1e}".removeprefix(", ")
    return rows


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--file", nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, route, size = options.serve
        serve(CASES[name], route, size)
        return
    names = [name for name in CASES if any(name.startswith(case) for case in options.cases)]
    disagree = False
    table = Table("case", "size", "route", "CPU s", "s", "first / route", "peak MB", "answer", "note")
    for name in names:
        for size in [Path(file).resolve() for file in options.file] or options.sizes or CASES[name].sizes:
            for row in measure(name, size, options):
                table.add_row(*row)
                disagree |= DIFFERS in row[-1]
                print(*row, file=sys.stderr, flush=True)
    Console(width=150).print(table if names else "\n".join(CASES))
    sys.exit(disagree)


if __name__ == "__main__":
    main()
