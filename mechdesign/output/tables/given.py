"""Mechanisms of the user's own beside ours: checked, and judged by our integers at the smallest scale that holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism
from mechdesign.errors import InputError
from mechdesign.mechanism.storage.files import load
from mechdesign.mechanism.stored import Stored, read
from mechdesign.mechanism.table.certificate import row_sums_exact
from mechdesign.mechanism.table.dataset import certified_scale, make_mechanism
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.readers.table_files import read_table
from mechdesign.setting.space.domain import Domain
from mechdesign.verification.audit import audit

Given = Mapping[str, ArrayLike | xr.Dataset]


def read_mechanisms(paths: Iterable[Path]) -> dict[str, ArrayLike | xr.Dataset]:
    """Mechanisms from files, each under the name of its file: .nc, or a table as `read_table` takes it.

    Raises: InputError where two have one name; what reading them raises.
    """
    found: dict[str, ArrayLike | xr.Dataset] = {}
    for path in paths:
        if path.stem in found:
            raise InputError("two have this name", field="with", value=path, remedy="rename one of the files")
        found[path.stem] = load(path) if path.suffix.lower() == ".nc" else read_table(path)
    return found


def given_mechanisms(
    problem: DesignProblem, mechanisms: Given | None, *, known: Collection[str] = ()
) -> dict[str, xr.Dataset]:
    """Mechanisms over the secrets of `problem`, judged by its prior and loss, at the smallest scale of its metric.

    mechanisms: by name, tables (n, m) of probabilities or of counts, or mechanism Datasets, of which the integers
    alone are taken. Nothing is repaired; entries of a table below 2^-62 are rounded up to that. known: names taken.
    Raises: InputError for a name that is taken or cannot be one, a table that is none or has no smallest epsilon (a
    zero meets a positive probability), a Dataset over other secrets or kept as factors; what `read` raises.
    Cost: O(e m) for each.
    """
    made = {}
    for name, value in (mechanisms or {}).items():
        if not (isinstance(name, str) and name.isprintable() and name.strip() == name != "") or "/" in name:
            raise _refused("is no name for a row", name, "use letters, digits and _")
        if name in known:
            raise _refused("is the name of a mechanism of ours", name, "use another name")
        made[name] = (
            _of_dataset(problem, name, value) if isinstance(value, xr.Dataset) else _of_table(problem, name, value)
        )
    return made


def _of_table(problem: DesignProblem, name: str, value: ArrayLike) -> xr.Dataset:
    found = audit(value, problem)
    table = np.asarray(value, float)
    if table.shape[1] != problem.reports.size:
        raise _refused(
            f"has {table.shape[1]} reports, and the problem {problem.reports.size}", name, "give a column a report"
        )
    if found.infinite:
        at = found.worst
        raise _refused(
            f"has no smallest epsilon: report {at['report']} is impossible from secret {at['other']} alone",
            name,
            "repair it first: md.baselines.repaired, or mechdesign audit -o",
        )
    rows = table / table.sum(axis=1, keepdims=True)
    return closed_form_mechanism(problem, rows, name=name, claimed_epsilon=None)


def _of_dataset(problem: DesignProblem, name: str, mechanism: xr.Dataset) -> xr.Dataset:
    stored = read(mechanism)
    if stored.factored:
        raise _refused("is kept as factors", name, "solve it as a table: --method table")
    if not _same(stored.domain, problem.domain):
        raise _refused(
            "is over other secrets than the problem",
            name,
            f"give a mechanism over the {problem.domain.size} secrets of {problem.name}, in their order",
        )
    mass = np.ascontiguousarray(mechanism["mass"].values)
    if not row_sums_exact(mass):
        raise _refused("has a row that does not sum to 2^62", name, "use an unaltered file")
    claimed: Any = mechanism.attrs.get("claimed_epsilon") if isinstance(problem.metric, Euclidean) else None
    return make_mechanism(
        problem,
        mass,
        program=name,
        scale=certified_scale(problem, mass),
        claimed_epsilon=claimed,
        reports=_reports(stored, problem, name, mass.shape[1]),
    )


def _reports(stored: Stored, problem: DesignProblem, name: str, count: int) -> Domain | None:
    """The reports of a mechanism where they differ from those of the problem. Raises: InputError where it must not."""
    own = stored.problem.reports
    if count == problem.reports.size and _same(own, problem.reports):
        return None
    if problem.loss.name == "table" or problem.query is not None:
        raise _refused("has other reports than the problem", name, "its loss knows the reports of the problem alone")
    return own


def _same(one: Domain, other: Domain) -> bool:
    """Whether two domains have the same places in the same order."""
    return (one.unit, one.size, one.dimension) == (other.unit, other.size, other.dimension) and bool(
        np.array_equal(one.points, other.points)
    )


def _refused(message: str, name: object, remedy: str) -> InputError:
    return InputError(message, field="mechanisms", value=name, remedy=remedy)
