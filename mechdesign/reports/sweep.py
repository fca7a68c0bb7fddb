"""sweep: the privacy-utility curve, the optimal loss against a multiple of the metric, with its rivals beside it.

At multiplier s the claim is s d. A Dataset with one dimension, `multiplier`, and float variables:

| variable | meaning |
|---|---|
| loss, lower_bound, gap | what encloses the optimum at s, in loss units; gap = (loss - lower_bound) / loss |
| effective_epsilon | of the optimal mechanism, as a multiple of d: at most s |
| NAME_loss, NAME_effective_epsilon | the same of the eikonal mechanism and of each closed form made for s d |

A closed form whose NAME_effective_epsilon exceeds s is not private as claimed: its loss belongs to that level, not to
s. NaN stands where a mechanism does not fit; one that fits nowhere has no variables. The figures were certified when
they were made, the tables behind them are not kept.
Known: the optimum never increases with s, tends to the loss of the best constant report as s -> 0 and vanishes as
s -> infinity where reporting the truth costs nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import steepest
from mechdesign.mechanism.storage import load_sealed
from mechdesign.mechanism.table import relative_gap, seal, versions
from mechdesign.reports.compare import makers, mechanisms
from mechdesign.setting.problem import DesignProblem
from mechdesign.solvers.aggregation import Design, Progress, aggregate
from mechdesign.solvers.solve import check_targets

SCHEMA = "mechdesign/sweep/1"
RIVALS = tuple(name for name in makers.names if name not in ("optimal", "constant"))

Row = dict[str, float | str | None]
