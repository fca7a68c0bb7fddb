r"""Extend: the registries and base classes for a metric, loss, closed form, program or export format of your own.

A metric is a frozen dataclass after `Metric` with the methods `unscaled_edges`, which returns `Edges`, `claim` and
`words`. `described` lists its other fields with their readers: `finite` for numbers, `finite_array` for arrays.

>>> from dataclasses import dataclass
>>> from pathlib import Path
>>> import cvxpy as cp
>>> import numpy as np
>>> import mechdesign as md
>>> from mechdesign.extend import *
>>> @dataclass(frozen=True, kw_only=True, eq=False)
... class Steps(Metric):
...     step: np.ndarray
...     kind = "steps"
...     described = (("step", finite_array()),)
...
...     def unscaled_edges(self, domain):
...         tail = np.arange(domain.size - 1)
...         return Edges(tail=tail, head=tail + 1, length=np.asarray(self.step))
...
...     def claim(self, domain):
...         return f"steps of {self.step.min()} to {self.step.max()} nats between neighbours"
...
...     def words(self, unit, axes):
...         return "steps"
>>> METRICS["steps"] = Steps

A loss is a frozen dataclass after `Loss` with `matrix`, and `unit` where it is not "1".

>>> @dataclass(frozen=True, kw_only=True, eq=False)
... class Capped(Loss):
...     name = "capped"
...
...     def matrix(self, secrets, reports):
...         return np.minimum(secrets.euclidean_to(reports), 2.0)
>>> LOSSES["capped"] = Capped()

A closed form is a function from a problem to `closed_form_mechanism`.

>>> def halves(problem):
...     n = problem.domain.size
...     return closed_form_mechanism(problem, np.eye(n) / 2 + 0.5 / n, name="halves", claimed_epsilon=None)
>>> BASELINES["halves"] = halves

A program is a frozen dataclass after `Program` with `statement`, built from `simplex`, `lipschitz` and `expected_loss`.
Its solver takes it and `Targets`, may report `Progress`, and returns a `SolveResult` of integers: `repair` makes a
table private as claimed.

>>> @dataclass(frozen=True, kw_only=True, eq=False)
... class Truthful(Program):
...     name = "truthful"
...
...     def statement(self):
...         table = cp.Variable((self.problem.domain.size, self.problem.reports.size))
...         rules = [*simplex(table), *lipschitz(table, self.problem), cp.diag(table) >= 0.3]
...         return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), rules)
>>> def solve_truthful(program, targets):
...     statement = program.statement()
...     statement.solve(solver=cp.HIGHS)
...     (table,) = statement.variables()
...     return SolveResult(mass=repair(table.value, program.problem.edges, program.problem.weighted_loss))
>>> SOLVERS["truthful"] = ProgramSpec(program=Truthful, solve=solve_truthful, closes_gap=False)

An export format is a `Format` of a function that writes a table.

>>> def write_lines(content, path):
...     path.write_text("".join(f"{u} {masses}\n" for u, masses, _ in content.masses()))
>>> FORMATS[".lines"] = Format(write=write_lines)

Once registered, an entry works in every command and file format; reading such a file needs it again. `verify_table.py`
knows only the metrics of this package.

>>> domain = md.Domain.grid(4, 1.0)
>>> problem = md.DesignProblem(domain, Steps(step=np.array([0.5, 1.0, 0.7])), [0.25] * 4, Capped())
>>> md.verify(md.solve(Truthful(problem))).certified
True
>>> for table, name in ((METRICS, "steps"), (LOSSES, "capped"), (BASELINES, "halves"), (FORMATS, ".lines")):
...     del table[name]
>>> del SOLVERS["truthful"]
"""

from mechdesign.base.json_fields import finite, finite_array
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.closed_forms.table import BASELINES
from mechdesign.mechanism.repair import repair
from mechdesign.output.export import FORMATS, Format
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import LOSSES, Loss
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import METRICS
from mechdesign.programs.program import Program
from mechdesign.programs.statements import expected_loss, lipschitz, simplex
from mechdesign.solvers.result import Progress, SolveResult, Targets
from mechdesign.solvers.solve import SOLVERS, ProgramSpec

__all__ = [
    "BASELINES",
    "FORMATS",
    "LOSSES",
    "METRICS",
    "SOLVERS",
    "Edges",
    "Format",
    "Loss",
    "Metric",
    "Program",
    "ProgramSpec",
    "Progress",
    "SolveResult",
    "Targets",
    "closed_form_mechanism",
    "expected_loss",
    "finite",
    "finite_array",
    "lipschitz",
    "repair",
    "simplex",
]
