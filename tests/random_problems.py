"""Random design problems of every kind that a program takes, and their optima by solvers of other people.

`random_case(seed)` gives a problem and one of seven programs: a graph, or a masked grid; edges of 1e-4 to 30 nats, all
alike or over all orders; priors with up to half zeros, or weights over 12 orders of magnitude; four losses; reports
that are secrets or are not. `optimum` assembles its linear program once more, in plain probabilities and with one unit,
and hands it to HiGHS by scipy, twice; `exact_optimum` solves the dual in fractions. Nothing of the solvers is imported.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import mechdesign as md
from mechdesign import Domain, Eikonal, Graph, PrivacyLevel
from mechdesign.errors import InputError
from mechdesign.losses import Distance, Loss, SquaredDistance, TableLoss, ZeroOne
from mechdesign.priors import proportional, uniform
from mechdesign.programs import Bounded, Constrained, Minimax, Program, Robust

PROGRAMS = (
    "optimal",
    "minimax",
    "optimal",
    "bounded",
    "robust",
    "optimal",
    "constrained",
    "query",
    "optimal",
    "eikonal",
)
TWICE = 1e-5  # relative; two methods of HiGHS that differ more are no oracle: plain probabilities range too widely
RESOLVED = 1e-5  # of the largest loss; under it HiGHS's 1e-10 on plain probabilities is too much
LARGEST = 12  # pairs of secret and report up to which fractions are taken
COUPLED = (Bounded, Constrained, Minimax, Robust)  # rows that several secrets share


def random_problem(seed: int, *, largest: int = 60, own: bool = False) -> md.DesignProblem:
    """A problem with 2 to `largest` secrets; with `own`, their places are the reports."""
    random = np.random.default_rng([seed, 17])
    size = int(np.exp(random.uniform(np.log(2), np.log(largest + 1))))
    domain, metric = _setting(random, size)
    n = domain.size
    weights = [random.random(n), 10.0 ** random.uniform(-12, 0, n), np.where(np.arange(n) < n // 2, 0.0, 1.0)]
    prior = proportional(random.permutation(weights[random.integers(3)] * (0.1 + random.random(n))))
    reports = domain
    if not own and random.random() < 0.3:
        reports = Domain.points_at(random.uniform(0, n**0.5, (int(random.integers(2, n + 3)), 2)), unit=domain.unit)
        if domain.dimension != 2:
            reports = domain
    losses: list[Loss] = [SquaredDistance(), Distance(), TableLoss(values=random.random((n, reports.size)))]
    losses += [ZeroOne()] * (reports is domain)
    made = md.DesignProblem(
        domain=domain, metric=metric, prior=prior, reports=reports, loss=losses[random.integers(len(losses))]
    )
    return made if made.constant_loss > 0 else replace(made, prior=uniform(domain))


def _setting(random: np.random.Generator, size: int) -> tuple[Domain, Graph | Eikonal]:
    low, high = sorted(random.uniform(-4, np.log10(30), 2))
    narrow = random.random() < 0.6
    low = max(low, high - 1) if narrow else low
    if random.random() < 0.4 and size >= 4:
        side = max(2, round(size**0.5))
        shape = (side, max(2, size // side))
        level = PrivacyLevel.constant(10.0**high / 2, "cell")
        for mask in (random.random(shape) < 0.85, np.ones(shape, bool)):
            try:
                domain = Domain.grid(shape, cell=1.0, unit="cell", mask=mask)
                metric = Eikonal(level=level, stencil=int(random.choice([4, 8])))
                metric.edges(domain)
            except InputError:
                continue
            return domain, metric
    points = random.uniform(0, size**0.5, (size, 2))
    parents = [int(random.integers(v)) for v in range(1, size)]
    pairs = {(p, v) for v, p in enumerate(parents, 1)}
    while len(pairs) < min(2 * size, size * (size - 1) // 2):
        a, b = sorted(map(int, random.choice(size, 2, replace=False)))
        pairs.add((a, b))
    tail, head = np.array(sorted(pairs)).T
    length = 10.0 ** random.uniform(low, high, len(tail))
    return Domain.points_at(points, unit="km"), Graph(tail=tail, head=head, length=length)


def random_case(seed: int, *, largest: int = 60) -> Program:
    """A program of a random problem."""
    name = PROGRAMS[seed % len(PROGRAMS)]
    random = np.random.default_rng([seed, 3])
    problem = random_problem(seed, largest=largest, own=name in ("eikonal", "query"))
    n, m = problem.domain.size, problem.reports.size
    worst = problem.loss_matrix[:, problem.best_constant].max()
    if name == "query":
        labels = np.r_[0, 1, random.integers(0, 3, n)][:n]
        asked = md.losses.query_problem(
            domain=problem.domain, metric=problem.metric, prior=problem.prior_array, query=labels
        )
        return md.programs.QueryWeights(problem=asked)
    makers = {
        "optimal": lambda: md.Optimal(problem=problem),
        "minimax": lambda: md.programs.Minimax(problem=problem),
        "bounded": lambda: md.programs.Bounded(problem=problem, worst_loss=1.1 * float(worst)),
        "robust": lambda: md.programs.Robust(
            problem=problem, priors=np.stack([problem.prior_array, proportional(random.random(n))])
        ),
        "constrained": lambda: md.programs.Constrained(
            problem=problem, constraints=[md.programs.ReportCap(cap=max(0.8, 1.5 / m), reports=[0])]
        ),
        "eikonal": lambda: md.EikonalWeights(problem=problem),
    }
    return makers[name]()


def optimum(program: Program) -> float | None:
    """The optimum of a coupled program, else of the optimal program of its problem; None where two methods differ."""
    problem = program.problem
    n, m = problem.weighted_loss.shape
    if n * m <= LARGEST and not isinstance(program, COUPLED):
        return exact_optimum(problem)
    tail, head, length = problem.edges.both_ways()
    line, e = np.arange(len(tail)), len(tail)
    cone = sp.csr_array((np.exp(-length), (line, tail)), shape=(e, n)) - sp.csr_array(
        (np.ones(e), (line, head)), (e, n)
    )
    above = sp.kron(cone, sp.eye_array(m), format="csr")
    cost, limit, column = problem.weighted_loss, np.zeros(0), np.zeros(0)
    if isinstance(program, COUPLED):
        rows, cost = program.side_rows(), program.base_cost()
        column = -rows.share
        above, limit = sp.vstack([above, rows.matrix], format="csr"), rows.limit
    shared = sp.csr_array(np.r_[np.zeros(e * m), column][:, None])
    sums = sp.kron(sp.eye_array(n), np.ones((1, m)), format="csr")
    found = []
    unit = float(problem.loss_matrix.max())
    for method in ("highs-ipm", "highs-ds"):
        for _ in range(2):
            result = linprog(
                np.r_[cost.ravel(), 1.0] / unit,
                sp.hstack([above, shared], format="csr"),
                np.r_[np.zeros(e * m), limit],
                sp.hstack([sums, sp.csr_array((n, 1))], format="csr"),
                np.ones(n),
                method=method,
                options={
                    "primal_feasibility_tolerance": 1e-10,
                    "dual_feasibility_tolerance": 1e-10,
                    "time_limit": 20.0,
                },
            )
            if result.status != 0:
                return None
            value, unit = result.fun * unit, max(result.fun, 1e-9) * unit
        found.append(value)
    told = found[0] >= RESOLVED * problem.loss_matrix.max() and abs(found[0] - found[1]) <= TWICE * found[0]
    return found[0] if told else None


def exact_optimum(problem: md.DesignProblem) -> float:
    """The optimum of the optimal program by the simplex method in fractions, on the dual, with Bland's rule.

    maximise sum lambda  subject to  lambda(u) + sum of z e^{-d} over edges out of u - sum of z over those into u
                                     <= c(u, y) for every secret and report,  z >= 0 per direction of an edge and report

    lambda is free: a row sum binds both ways, and is counted in two columns.
    """
    n, m = problem.weighted_loss.shape
    tail, head, length = problem.edges.both_ways()
    names = 2 * n + len(tail) * m
    table = [[Fraction(0)] * (names + n * m) + [Fraction(c)] for c in problem.weighted_loss.ravel().tolist()]
    for u in range(n):
        for y in range(m):
            row = table[u * m + y]
            row[u], row[n + u], row[names + u * m + y] = Fraction(1), Fraction(-1), Fraction(1)
    for k, (u, v, d) in enumerate(zip(tail.tolist(), head.tolist(), length.tolist(), strict=True)):
        for y in range(m):
            column = 2 * n + k * m + y
            table[u * m + y][column] -= Fraction(math.exp(-d))
            table[v * m + y][column] += Fraction(1)
    gain = [Fraction(1)] * n + [Fraction(-1)] * n + [Fraction(0)] * (len(table[0]) - 2 * n)
    basis = list(range(names, names + n * m))
    while True:
        into = next((j for j, g in enumerate(gain[:-1]) if g > 0), None)
        if into is None:
            return float(-gain[-1])
        ratios = [(row[-1] / row[into], basis[i], i) for i, row in enumerate(table) if row[into] > 0]
        out = min(ratios)[2]
        pivot = table[out][into]
        table[out] = [entry / pivot for entry in table[out]]
        for row in [*table[:out], *table[out + 1 :], gain]:
            factor = row[into]
            if factor:
                row[:] = [
                    entry - factor * other if other else entry for entry, other in zip(row, table[out], strict=True)
                ]
        basis[out] = into
