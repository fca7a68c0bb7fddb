"""Extend: the tables and base classes that a metric, loss, closed form, program or export format from outside needs.

* metric: a `Metric` with `unscaled_edges`, which returns `Edges`, and `claim`; `METRICS[kind] = MyMetric`. Numbers that
  a file keeps of it are read by `finite`: `described = (("epsilon", finite),)`
* loss: a `Loss` with `matrix` and `unit`; `LOSSES[name] = MyLoss()`
* closed form: a function from a problem to `closed_form_mechanism(...)`; `BASELINES[name] = function`
* program: a `Program` with `statement`; `SOLVERS[name] = Entry(program, solve)`; solve takes the
  program and `Targets`, tells where it stands by a `Progress`, and returns a `Design`
* export format: `FORMATS[suffix] = Format(write=...)`

An entry is known to solve, verify, files, comparisons, pictures, exports and the command line from then on; a file that
was made with it needs it where it is read again. A table that a solver of yours gives goes through `repair` first,
which is what makes it private as claimed. `verify_table.py`, which is handed over with exported tables, knows the
metrics of this package alone.

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
from mechdesign.problem.metric import METRICS, Metric
from mechdesign.programs.program import Program
from mechdesign.programs.statements import expected_loss, lipschitz, simplex
from mechdesign.solvers.result import Design, Progress, Targets
from mechdesign.solvers.solve import SOLVERS, Entry

__all__ = [
    "BASELINES",
    "FORMATS",
    "LOSSES",
    "METRICS",
    "SOLVERS",
    "Design",
    "Edges",
    "Entry",
    "Format",
    "Loss",
    "Metric",
    "Program",
    "Progress",
    "Targets",
    "closed_form_mechanism",
    "expected_loss",
    "finite",
    "lipschitz",
    "repair",
    "simplex",
]
