"""SessionDesign: tables, a rule, a public model; everything of a session that is fixed before it begins.

All of it is public. A design says what any window can cost, for every transcript, before anything is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.descriptions import json_sha256
from mechdesign.base.display import Shown
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.mechanism.admission import Admission
from mechdesign.mechanism.sampling.sampler import Sampler
from mechdesign.mechanism.session.belief import Belief
from mechdesign.mechanism.session.moved import MovedTest, Test
from mechdesign.mechanism.session.offsets import Offsets
from mechdesign.mechanism.session.rules import Rule
from mechdesign.mechanism.session.transcript import Transcript
from mechdesign.mechanism.session.windows import MOST_TICKS, Charge, Window
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.movement.movement import Chain, Movement
from mechdesign.setting.movement.walk import Walk
from mechdesign.setting.objective.losses import Distance, Loss, check_loss
from mechdesign.setting.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionDesign(Shown):
    """Certified tables over one domain, for multiples of one metric, and the rule that chooses among them.

    Fields: tables, mechanisms, proved here; rule, `Clock`, `Risk` or `traces.MovedTest`; ticks, how many a day has;
    movement, the public model of the filter; loss, of naming a place when another is true: its unit is that of the
    expected error, and of what rules compare with it; offsets, the integers of a test where a file gives them.
    Claim. On every transcript, P(reports|x) <= e^{C d_inf(x, x')} P(reports|x') for traces x, x' that differ in one
    window alone, d_inf = max over ticks of d(x_t, x'_t), d the metric at scale 1, C = `worst(window)`.
    Raises: VerificationError for a table that is not private as claimed; InputError for tables over other places or for
        another metric than the first, or fewer than the rule names.
    """

    tables: Sequence[xr.Dataset]
    rule: Rule
    ticks: int = 48
    movement: Movement = field(default_factory=Walk)
    loss: Loss = field(default_factory=Distance)
    offsets: Offsets | None = None
    samplers: tuple[Sampler, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if type(self.ticks) is not int or not 1 <= self.ticks <= MOST_TICKS:
            raise InputError(
                "must be a whole number, 1 or more", field="ticks", value=self.ticks, remedy="use ticks=48"
            )
        given = [self.tables] if isinstance(self.tables, xr.Dataset) else list(self.tables)
        samplers = tuple(Sampler(mechanism=each) for each in given)
        if len(samplers) < self.rule.tables():
            raise InputError(
                f"the rule names {self.rule.tables()} of them",
                field="tables",
                value=len(samplers),
                remedy="give one for every width, or number",
            )
        for number, sampler in enumerate(samplers):
            if sampler.admission.unit != samplers[0].admission.unit:
                raise InputError(
                    "is over other places, or for another metric, than the first",
                    field="tables",
                    value=f"number {number}, {sampler.mechanism.attrs.get('problem')}",
                    remedy="make all of one domain, for multiples of one metric: 1.5 * metric",
                )
            if sampler.admission.positions is not None:
                raise InputError(
                    "draws for positions, and no row of it alone keeps its claim",
                    field="tables",
                    value=f"number {number}, {sampler.mechanism.attrs.get('problem')}",
                    remedy="design tables that are private between cells: mechdesign area --positions cells",
                )
            if sampler.admission.charge <= 0:
                raise InputError(
                    "costs nothing, and so tells nothing", field="tables", value=number, remedy="leave it out"
                )
        object.__setattr__(self, "samplers", samplers)
        object.__setattr__(self, "tables", tuple(sampler.mechanism for sampler in samplers))
        self.worst("1d")
        _ = self.chain, self.test and self.test.offsets

    def facts(self) -> Mapping[str, object]:
        told: dict[str, object] = {"rule": self.rule, "tables": f"{len(self.tables)}, costing {_said(self.charges)}"}
        told |= {"ticks": f"{self.ticks} a day, movement {type(self.movement).__name__}"}
        return told | {
            "worst": f"{float(self.worst('1d')):.9g} a calendar day, {float(self.worst('24h')):.9g} any 24 h"
        }

    @property
    def admission(self) -> Admission:
        """What is proved of the first table; the others are for multiples of its metric."""
        return self.samplers[0].admission

    @property
    def domain(self) -> Domain:
        """The places."""
        return self.admission.domain

    @cached_property
    def metric(self) -> Metric:
        """The metric that charges are multiples of."""
        found = self.admission.metric
        return found if found.listed else replace(found, scale=1.0)

    @cached_property
    def charges(self) -> tuple[Fraction, ...]:
        """What a report of every table costs, exact multiples of the metric."""
        return tuple(sampler.admission.charge for sampler in self.samplers)

    def worst(self, window: str | int) -> Fraction:
        """The largest sum of charges that any transcript reaches in a window. Raises: InputError for another window."""
        return self.rule.worst(self.charges, self.ticks, Window.of(window, self.ticks))

    @cached_property
    def chain(self) -> Chain:
        """The model of movement on the places, begun from the prior of the first table."""
        return self.movement.over(self.domain, self.metric, np.asarray(self.tables[0]["prior"].values, float))

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """The loss (n, n) of naming a place (across) when another (down) is true."""
        require_memory(self.domain.size, self.domain.size, tables=2, what="the losses between all places")
        return check_loss(self.loss.matrix(self.domain, self.domain))

    @cached_property
    def likelihoods(self) -> tuple[NDArray[np.float64], ...]:
        """P(y|u) of every table, (n, m), for filters."""
        return tuple(sampler.rows.probabilities(np.arange(self.domain.size)) for sampler in self.samplers)

    @cached_property
    def test(self) -> Test | None:
        """The integers of the rule's test, where it has one."""
        if not isinstance(self.rule, MovedTest):
            return None
        edges = self.metric.edges(self.domain)
        return Test(rule=self.rule, admission=self.admission, edges=edges, given=self.offsets)

    def belief(self) -> Belief:
        """What the filter believes before anything is released."""
        return Belief.first(self.chain, self.losses)

    def account(self, transcript: Transcript) -> list[Charge]:
        """What a transcript paid, and in which ticks: a report in its own, a test in all from its first to that of its
        answer "far", or to the end of its window of days while there is none.
        """
        found, begun = [], 0
        for step in transcript.steps:
            if step.table is not None:
                found.append(Charge(first=step.tick, last=step.tick, amount=self.charges[step.table]))
            if step.begun and isinstance(self.rule, MovedTest):
                per = Window.of(self.rule.per, self.ticks)
                last = per.starting(step.tick) + per.length - 1
                begun = len(found)
                found.append(Charge(first=step.tick, last=last, amount=self.rule.cost))
            if step.moved:
                found[begun] = replace(found[begun], last=step.tick)
        return found

    def due(self, transcript: Transcript, tick: int, window: Window) -> Fraction:
        """What a transcript that ends at `tick` has paid in the window that ends there, or, of days, that it is in.

        No window that reaches beyond has more: nothing is paid later, and less of what was paid before is in it.
        """
        start = window.starting(tick)
        cut = start if self.test is None else Window.of(self.test.rule.per, self.ticks).starting(start)
        recent = replace(transcript, steps=tuple(transcript.since(cut))[::-1])
        return sum((each.amount for each in self.account(recent) if each.last >= start), Fraction(0))

    def check(self, transcript: Transcript, hidden: int | None) -> None:
        """Refuse steps that this design cannot have made. Raises: InputError that names the step."""
        per = None if self.test is None else Window.of(self.test.rule.per, self.ticks)
        before = replace(transcript, steps=())
        for step in transcript.steps:
            going_on = None if per is None else before.running(per, step.tick)
            due = Fraction(0)
            if step.table is not None and step.report is not None:
                if step.table >= self.rule.tables() or not 0 <= step.report < self.samplers[step.table].rows.reports:
                    raise _impossible("no such table or report", step.tick)
                due += self.charges[step.table]
            if step.moved is not None:
                if (
                    self.test is None
                    or step.begun != (going_on is None)
                    or step.against
                    not in (
                        going_on,
                        *range(self.domain.size if going_on is None else 0),
                    )
                ):
                    raise _impossible("no such test", step.tick)
                due += self.test.rule.cost if step.begun else 0
            if step.charge != due:
                raise _impossible("another charge", step.tick)
            before = replace(transcript, steps=(step,))
        running = None if per is None else before.running(per, max(transcript.last, 0))
        if (hidden is None) != (running is None) or (hidden or 0) > (0 if self.test is None else self.test.offsets.top):
            raise _impossible("no such offset", transcript.last)

    def describe(self) -> dict[str, Any]:
        """What a file keeps beside the tables, which it names by their SHA-256."""
        return {
            "tables": [str(each.attrs["sha256"]) for each in self.tables],
            "rule": self.rule.describe(),
            "ticks": self.ticks,
            "movement": self.movement.describe(),
            "loss": self.loss.name,
            **({} if self.test is None else {"offsets": self.test.offsets.describe()}),
        }

    @cached_property
    def sha256(self) -> str:
        """64 hexadecimal digits that name the design with its tables."""
        return json_sha256(self.describe())

    @property
    def claim(self) -> str:
        """What is promised, in one sentence."""
        day, any_day = (Window.of(words, self.ticks) for words in ("1d", "24h"))
        kept = "" if self.test is None else ", as long as hidden offsets are"
        return (
            f"Whatever is reported, P(reports|x) <= exp(C max d(x_t, x'_t)) P(reports|x') for all traces x, x' over "
            f"{self.domain.size} places that differ only in {day.name()} of {self.ticks} ticks, C = "
            f"{self.worst('1d')}, or only in {any_day.name()}, C = {self.worst('24h')}, where d is "
            f"{self.metric.claim(self.domain)}{kept}."
        )


def _impossible(problem: str, tick: int) -> InputError:
    return InputError(
        f"a step that the design does not make: {problem}", field="session", value=tick, remedy="use an unaltered file"
    )


def _said(charges: Sequence[Fraction], show: Callable[[float], str] = "{:.9g}".format) -> str:
    return ", ".join(show(float(each)) for each in charges)
