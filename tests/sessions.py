"""Small designs of sessions that several tests share."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

import mechdesign as md

METRIC = md.Euclidean(epsilon=1.0, unit="cell")


@cache
def line(places: int = 5) -> md.Domain:
    """Unit cells in a row."""
    return md.Domain.grid(places, cell=1.0, unit="cell")


@cache
def table(multiple: float, domain: md.Domain | None = None) -> xr.Dataset:
    """A certified table for a multiple of one metric, with a prior that is not flat."""
    domain = line() if domain is None else domain
    prior = md.priors.proportional(np.arange(1.0, domain.size + 1))
    problem = md.DesignProblem(domain=domain, metric=multiple * METRIC, prior=prior, loss=md.losses.Distance())
    return md.baselines.exponential(problem)


def design(rule: object, *multiples: float, **given: object) -> md.sessions.SessionDesign:
    """A design over five places of a line; tables for these multiples, 1 and 2 by default."""
    tables = [table(multiple) for multiple in multiples or (1.0, 2.0)]
    return md.sessions.SessionDesign(tables=tables, rule=rule, **{"ticks": 3, **given})  # type: ignore[arg-type]


RULES = {
    "clock": lambda: md.sessions.Clock(hours=[0, 16], number=[1, 0]),
    "risk": lambda: md.sessions.Risk(above=0.6, most=2, widths=[0.9]),
    "risk, any day": lambda: md.sessions.Risk(above=0.6, most=2, per="24h", widths=[0.9]),
}


def resealed(told: dict[str, Any]) -> str:
    """What a file of a session or a design says, with a checksum that is right again."""
    told = {name: value for name, value in told.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return json.dumps({**told, "sha256": digest})


@cache
def ruled(name: str) -> md.sessions.SessionDesign:
    """The design with a rule of `RULES`, made once: designs are frozen."""
    return design(RULES[name]())
