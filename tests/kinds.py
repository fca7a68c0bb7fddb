"""The table of kinds: a small honest file of every kind that the package writes, each made once.

Two to nine secrets, so that a reader in plain Python checks every pair of them in milliseconds. A new program, metric,
loss or schema is added as one row; test_mutations.py mutates every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import columns
import limited
import numpy as np
import xarray as xr
from all_programs import PROGRAMS
from cases import SMALL, lattice, line
from factored import constant as constant_level
from placed import kernel

import mechdesign as md
from mechdesign.closed_forms import tuples
from mechdesign.positions import Positions


def _release(problem: md.DesignProblem) -> xr.Dataset:
    values = np.clip((problem.domain.points[:, 0] - 1.0) / 2.0, 0, 1)
    return md.release.release_mechanism(problem, values, np.full(4, 0.5), law=md.release.laws.StudentT(3), gamma=0.05)


def _bounded(problem: md.DesignProblem) -> xr.Dataset:
    worst = float(PROGRAMS["minimax"].solve(problem).attrs["objective"])
    return md.solve(md.programs.Bounded(problem=problem, worst_loss=1.1 * worst))


def _constrained(problem: md.DesignProblem) -> xr.Dataset:
    caps = [
        md.programs.ReportCap(cap=0.6, reports=[0, 2]),
        md.programs.RequiredReport(report=1, least=0.1, secrets=[0]),
    ]
    return md.solve(
        md.programs.Constrained(problem=problem, constraints=[*caps, md.programs.ErrorCap(radius=1.2, share=0.6)])
    )


def _normalised(problem: md.DesignProblem) -> xr.Dataset:
    return md.baselines.geometric(problem, border="normalised")


def _remapped(problem: md.DesignProblem) -> xr.Dataset:
    return md.utility.bayes_remap(_normalised(problem))


def _tuples(problem: md.DesignProblem) -> xr.Dataset:
    return tuples.independent(problem, [md.baselines.geometric(problem), md.baselines.geometric(problem, 0.5)])


def _repaired(problem: md.DesignProblem) -> xr.Dataset:
    return md.baselines.repaired(np.random.default_rng(16).dirichlet(np.ones(4), 4), problem)


def _columns(problem: md.DesignProblem) -> xr.Dataset:
    return columns.sealed(problem, *columns.drawn(problem, 1))


def _placed(problem: md.DesignProblem, quarters: bool = False) -> xr.Dataset:
    return kernel(problem, 0.5 * np.eye(problem.domain.size) + 0.1, quarters)


def _positions(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(Positions(replace(problem, loss=md.losses.SquaredDistance())), gap=1e-3)


_four, _three, _two = SMALL["euclidean line"], lambda: line(3), lambda: line(2)
KINDS: dict[str, tuple[Callable[[], md.DesignProblem], Callable[[md.DesignProblem], xr.Dataset]]] = {
    "eikonal": (SMALL["eikonal"], PROGRAMS["optimal"].solve),
    "eikonal, masked": (SMALL["eikonal, masked"], PROGRAMS["optimal"].solve),
    "eikonal, three axes": (SMALL["eikonal, three axes"], md.baselines.exponential),
    "euclidean": (SMALL["euclidean lattice"], PROGRAMS["optimal"].solve),
    "any position": (SMALL["eikonal, masked"], _placed),
    "any position, quarters": (SMALL["eikonal, masked"], partial(_placed, quarters=True)),
    "positions": (lambda: lattice((2, 2)), _positions),
    "euclidean, generated": (lambda: lattice((3, 3)), PROGRAMS["optimal, columns"].solve),
    "euclidean, points": (SMALL["scattered points"], PROGRAMS["optimal"].solve),
    "reports apart from secrets": (SMALL["reports apart from secrets"], PROGRAMS["optimal"].solve),
    "discrete": (SMALL["discrete"], PROGRAMS["optimal"].solve),
    "randomized response": (SMALL["discrete"], md.baselines.randomized_response),
    "graph, table loss": (SMALL["graph, table loss"], PROGRAMS["optimal"].solve),
    "graph, doubled, minimax": (SMALL["graph, doubled"], PROGRAMS["minimax"].solve),
    "robust": (_four, PROGRAMS["robust"].solve),
    "bounded": (_four, _bounded),
    "constrained": (_four, _constrained),
    **{kind: (limited.problem, lambda _, kind=kind: limited.design(kind)) for kind in limited.LIMITS},
    "statistical": (_three, PROGRAMS["statistical"].solve),
    "query": (SMALL["query"], PROGRAMS["query"].solve),
    "release": (SMALL["release"], _release),
    "streets": (SMALL["streets"], PROGRAMS["optimal"].solve),
    "streets on a plane": (SMALL["streets on a plane"], PROGRAMS["optimal"].solve),
    "area": (SMALL["area"], md.baselines.planar_laplace),
    "multiple above 1": (SMALL["euclidean lattice"], _normalised),
    "multiple below 1": (SMALL["streets"], md.baselines.exponential),
    "constant": (_three, md.baselines.constant),
    "constant on a graph": (SMALL["graph, table loss"], md.baselines.constant),
    "tuples": (_two, _tuples),
    "remapped": (SMALL["euclidean lattice"], _remapped),
    "repaired": (_four, _repaired),
    "factored, framed": (SMALL["eikonal, framed"], PROGRAMS["eikonal, factored"].solve),
    "factored, distance": (SMALL["eikonal, line"], PROGRAMS["eikonal, factored"].solve),
    "factored, graph": (SMALL["graph, path"], PROGRAMS["eikonal, factored"].solve),
    "factored, streets": (SMALL["streets"], PROGRAMS["eikonal, factored"].solve),
    "factored, columns": (lambda: constant_level((3, 2), 0.4), _columns),
    "factored, columns of a graph": (SMALL["graph, path"], _columns),
}
FACTORED = tuple(kind for kind in KINDS if kind.startswith("factored"))


@cache
def made(kind: str, level: float = 1.0) -> xr.Dataset:
    """The file of a kind, in memory, at a multiple of its level; not to be changed in place."""
    problem, make = KINDS[kind]
    asked = problem()
    return make(asked if level == 1 else replace(asked, metric=level * asked.metric))
