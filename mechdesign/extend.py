"""Extend: the registries and base classes for a metric, loss, closed form, program or export format of your own.

* metric: a `Metric` with `unscaled_edges`, which returns `Edges`, and `claim`; `METRICS[kind] = MyMetric`. `finite`
  reads numbers of files: `described = (("epsilon", finite),)`
* loss: a `Loss` with `matrix` and `unit`; `LOSSES[name] = MyLoss()`
* closed form: a function from a problem to `closed_form_mechanism(...)`; `BASELINES[name] = function`
* program: a `Program` with `statement`; `SOLVERS[name] = ProgramSpec(program, solve)`; solve takes the
  program and `Targets`, reports `Progress`, and returns a `SolveResult`
* export format: `FORMATS[suffix] = Format(write=...)`

Once registered, an entry works in every command and file format; reading such a file needs it again. `repair` makes a
solver's table private as claimed. `verify_table.py` knows only the metrics of this package.

>>> import mechdesign as md
>>> "distance" in md.extend.LOSSES
True
"""

from mechdesign.base.json_fields import finite
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
    "lipschitz",
    "repair",
    "simplex",
]
