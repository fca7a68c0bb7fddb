"""SessionDesign: tables, a rule, a public model; everything of a session that is fixed before it begins.

All of it is public. A design bounds the cost of any window, for every transcript, before anything is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.json_fields import json_sha256
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.errors import InputError
from mechdesign.mechanism.claim import Certificate
from mechdesign.mechanism.sampler import Sampler
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance, Loss, check_loss
from mechdesign.problem.metric import Metric
from mechdesign.sessions.belief import Belief
from mechdesign.sessions.movement import Chain, Movement, RandomWalk
from mechdesign.sessions.record import Transcript
from mechdesign.sessions.rules import Rule
from mechdesign.sessions.windows import MOST_TICKS, Window


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionDesign(FrozenRecord):
    """Certified tables over one domain, for multiples of one metric, and the rule that chooses among them.

    Claim: on every transcript, for traces x, x' that differ in one window alone,

        P(reports|x) <= e^{C d_inf(x, x')} P(reports|x').

    d_inf = max over ticks of d(x_t, x'_t), d is the metric at scale 1, and C = `worst(window)`.

    Parameters
    ----------
    tables, rule, ticks : sequence of Dataset, Rule, int
        Mechanisms, verified here; `Clock` or `Risk`; how many a day has.
    movement : Movement
        The public model of the filter.
    loss : Loss
        Of naming a place when another is true. Expected errors and the thresholds of rules have its unit.

    Examples
    --------
    >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
    >>> round(float(design.worst("1d")), 3)
    1.238
    """

    tables: Sequence[xr.Dataset]
    rule: Rule
    ticks: int = 48
    movement: Movement = field(default_factory=RandomWalk)
    loss: Loss = field(default_factory=Distance)
    samplers: tuple[Sampler, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if type(self.ticks) is not int or not 1 <= self.ticks <= MOST_TICKS:
            raise InputError("must be an integer, 1 or more", field="ticks", value=self.ticks)
        tables = [self.tables] if isinstance(self.tables, xr.Dataset) else list(self.tables)
        # A sampler verifies its table; all of them must be for one metric at scale 1, or their charges do not add up.
        samplers = tuple(Sampler(mechanism=table) for table in tables)
        if len(samplers) < self.rule.tables():
            problem = f"must be at least {self.rule.tables()}, because the rule names so many"
            raise InputError(problem, field="tables", value=len(samplers))
        for number, sampler in enumerate(samplers):
            name = f"number {number}, {sampler.mechanism.attrs.get('problem')}"
            if sampler.certificate.unit_id != samplers[0].certificate.unit_id:
                raise InputError("has other places or another metric than the first", field="tables", value=name)
            if sampler.certificate.positions is not None:
                raise InputError(
                    "draws for positions: its rows alone do not satisfy its claim",
                    field="tables",
                    value=name,
                    remedy="design tables that are private between cells: mechdesign area --positions cells",
                )
            if sampler.certificate.cost <= 0:
                raise InputError("is constant: it carries no information", field="tables", value=name)
        object.__setattr__(self, "samplers", samplers)
        object.__setattr__(self, "tables", tuple(sampler.mechanism for sampler in samplers))
        # Both fail here, not at the first report, if the rule or the model does not fit the places or ticks.
        self.worst("1d")
        _ = self.chain

    def repr_fields(self) -> Mapping[str, object]:
        charges = ", ".join(f"{float(charge):.9g}" for charge in self.charges)
        return {
            "rule": self.rule,
            "tables": f"{len(self.tables)}, costing {charges}",
            "ticks": f"{self.ticks} a day, movement {type(self.movement).__name__}",
            "worst": f"{float(self.worst('1d')):.9g} a calendar day, {float(self.worst('24h')):.9g} any 24 h",
        }

    @property
    def certificate(self) -> Certificate:
        """The certificate of the first table; the others have multiples of its metric."""
        return self.samplers[0].certificate

    @property
    def domain(self) -> Domain:
        return self.certificate.domain

    @cached_property
    def metric(self) -> Metric:
        """The metric that charges are multiples of."""
        # Stored edges have the scale in their lengths, so they cannot be scaled back.
        metric = self.certificate.metric
        return metric if metric.uses_stored_edges else replace(metric, scale=1.0)

    @cached_property
    def charges(self) -> tuple[Fraction, ...]:
        """The cost of a report of each table, in exact multiples of the metric."""
        return tuple(sampler.certificate.cost for sampler in self.samplers)

    def worst(self, window: str | int) -> Fraction:
        """The largest sum of charges that any transcript reaches in a window.

        Examples
        --------
        >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
        >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
        >>> round(float(design.worst("1d")), 3)
        1.238
        """
        return self.rule.worst(self.charges, self.ticks, Window.of(window, self.ticks))

    @cached_property
    def chain(self) -> Chain:
        """The model of movement on the places, begun from the prior of the first table."""
        return self.movement.over(self.domain, self.metric, np.asarray(self.tables[0]["prior"].values, float))

    @cached_property
    def losses(self) -> Matrix:
        """The loss (n, n) of naming a place (across) when another (down) is true."""
        require_memory(self.domain.size, self.domain.size, tables=2, noun="the losses between all places")
        return check_loss(self.loss.matrix(self.domain, self.domain))

    @cached_property
    def likelihoods(self) -> tuple[Matrix, ...]:
        """P(y|u) of every table, (n, m), for filters."""
        return tuple(sampler.rows.probabilities(np.arange(self.domain.size)) for sampler in self.samplers)

    def belief(self) -> Belief:
        """The belief of the filter before anything is released.

        Examples
        --------
        >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
        >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
        >>> design.belief().tick
        0
        """
        return Belief(chain=self.chain, loss=self.losses, weights=self.chain.initial, tick=0)

    def check(self, transcript: Transcript) -> None:
        """Refuse steps that this design cannot have made."""
        for step in transcript.steps:
            if step.table >= self.rule.tables() or not 0 <= step.report < self.samplers[step.table].rows.reports:
                raise InputError("the design has no such table or report", field="session", value=step.tick)
            if step.charge != self.charges[step.table]:
                raise InputError("the design has another charge", field="session", value=step.tick)

    def describe(self) -> dict[str, Any]:
        """The fields of a file, which names the tables by their SHA-256."""
        return {
            "tables": [str(table.attrs["sha256"]) for table in self.tables],
            "rule": self.rule.describe(),
            "ticks": self.ticks,
            "movement": self.movement.describe(),
            "loss": self.loss.name,
        }

    @cached_property
    def sha256(self) -> str:
        """64 hexadecimal digits that name the design with its tables."""
        return json_sha256(self.describe())

    @property
    def claim(self) -> str:
        """The guarantee, in one sentence."""
        day, any_day = (Window.of(words, self.ticks) for words in ("1d", "24h"))
        return (
            f"Whatever is reported, P(reports|x) <= exp(C max d(x_t, x'_t)) P(reports|x') for all traces x, x' over "
            f"{self.domain.size} places that differ only in {day.name()} of {self.ticks} ticks, C = "
            f"{self.worst('1d')}, or only in {any_day.name()}, C = {self.worst('24h')}, where d is "
            f"{self.metric.claim(self.domain)}."
        )
