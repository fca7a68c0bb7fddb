"""Factored mechanisms of the cases, solved once: what test_factored and test_factored_files share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import xarray as xr
from cases import CASES, grid
from rows import few_by_default

import mechdesign as md
from mechdesign.factored import FactoredMechanism

SUITABLE = [name for name, make in CASES.items() if (p := make()).metric.kind == "eikonal" and p.reports is p.domain]
EVERY = pytest.mark.parametrize(
    "case", few_by_default(SUITABLE, "line, squared, skewed prior", "eikonal, 16 neighbours", "eikonal, masked")
)


def ring_road() -> md.DesignProblem:
    domain, tail = md.Domain.nodes(7), np.arange(7)
    metric = md.Graph(tail=tail, head=(tail + 1) % 7, length=np.linspace(0.4, 1.4, 7))
    return md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.ZeroOne())


def constant(shape: int | tuple[int, ...], step: float, stencil: int = 8) -> md.DesignProblem:
    """A constant level of `step` nats a cell."""
    domain = grid(shape)
    metric = md.Eikonal(level=md.PrivacyLevel.constant(step, "cell"), stencil=stencil)
    return md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )


@cache
def made(case: str) -> xr.Dataset:
    problem = ring_road() if case == "ring road" else CASES[case]()
    return md.solve(md.EikonalWeights(problem=problem), method="factored")


@cache
def rows_of(case: str) -> FactoredMechanism:
    return FactoredMechanism(dataset=made(case))
