"""Hypothesis strategies of the laws: small problems, tables, certified mechanisms, and changes of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from fixtures.file_parts import Draft
from fixtures.files import honest_file
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from mechdesign import DesignProblem, Domain, Graph, priors
from mechdesign.extend import repair
from mechdesign.losses import TableLoss
from mechdesign.mechanism.build import build_dataset

QUICK = list(HealthCheck)  # a busy machine must not fail a test
LAW = settings(derandomize=True, deadline=None, database=None, max_examples=40, suppress_health_check=QUICK)
SOLVED_LAW = settings(LAW, max_examples=8)  # every example solves two or three programs, or writes a file
NUMBERS = some.integers(0, 2**63 - 1) | some.floats() | some.text(max_size=5)  # values that a file may hold
WEIGHTS = some.floats(1e-6, 1.0)
KINDS = some.sampled_from(["eikonal", "streets", "tuples", "query", "constrained", "remapped", "factored, columns"])


@some.composite
def problems(draw: some.DrawFn, most: int = 5) -> DesignProblem:
    """Two to `most` nodes on a tree with edges of 1e-3 to 10 nats; losses of 1 to 9, and 0 for the truth."""
    n = draw(some.integers(2, most))
    parents = [draw(some.integers(0, v - 1)) for v in range(1, n)]
    lengths = draw(arrays(float, n - 1, elements=some.floats(1e-3, 10.0)))
    losses = draw(arrays(float, (n, n), elements=some.integers(1, 9).map(float)))
    np.fill_diagonal(losses, 0.0)
    return DesignProblem(
        domain=Domain.nodes(n),
        metric=Graph(tail=np.array(parents), head=np.arange(1, n), length=lengths),
        prior=priors.proportional(draw(arrays(float, n, elements=WEIGHTS))),
        loss=TableLoss(values=losses),
    )


@some.composite
def tables(draw: some.DrawFn, problem: DesignProblem) -> np.ndarray:
    """Any finite numbers (n, n), of either sign, with a positive one in column 0."""
    n = problem.domain.size
    table = draw(arrays(float, (n, n), elements=some.floats(-1e3, 1e3)))
    table[:, 0] = draw(arrays(float, n, elements=WEIGHTS))
    return table


@some.composite
def mechanisms(draw: some.DrawFn) -> xr.Dataset:
    """A file of a random problem and a repaired random table."""
    problem = draw(problems())
    mass = repair(draw(tables(problem)), problem.edges, problem.weighted_loss)
    return build_dataset(problem, mass, program="repaired")


@some.composite
def changed_files(draw: some.DrawFn) -> xr.Dataset:
    """An honest file of any kind in which one attribute or one entry of one variable has another value, sealed."""
    kind = draw(KINDS)
    draft = Draft.of(kind, honest_file(kind))
    if draw(some.booleans()):
        draft.attrs[draw(some.sampled_from(sorted(draft.attrs)))] = draw(NUMBERS)
        return draft.dataset()
    name = draw(some.sampled_from(sorted(draft.variables)))
    values = draft.variables[name][1].copy()
    place = draw(some.integers(0, max(values.size - 1, 0)))
    if values.size:
        values.reshape(-1)[place] = changed_number(draw, values.reshape(-1)[place])
    draft.put(name, values)
    return draft.dataset()


def changed_number(draw: some.DrawFn, value: Any) -> Any:
    """Another value of the same type: one unit or one rounding away, or far."""
    if isinstance(value, np.floating):
        return draw(some.sampled_from([np.nextafter(value, np.inf), value * 0.99, -value, value + 1.0]))
    if isinstance(value, np.integer):
        return value ^ value.dtype.type(1 << draw(some.integers(0, 8 * value.dtype.itemsize - 2)))
    return type(value)(not value) if isinstance(value, np.bool_) else f"{value}x"
