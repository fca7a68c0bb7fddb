"""Mechanisms of the user, checked and compared in integers at the smallest scale of the metric that they satisfy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arrays import Matrix
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.errors import InputError
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.certificate import ROW_SUM, row_sums_exact
from mechdesign.mechanism.figures import certified_scale
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.storage import load
from mechdesign.problem.classes import in_class_order
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.tables import read_table
from mechdesign.verification.audit import audit, check_table

TableMechanisms = Mapping[str, ArrayLike | xr.Dataset]


def read_mechanisms(
    paths: Iterable[Path],
    problem: DesignProblem | None = None,
    *,
    columns: Columns = None,
    on_note: Callable[[str], None] | None = None,
) -> dict[str, ArrayLike | xr.Dataset]:
    """Mechanisms from files, each under the name of its file: .nc, or a table as `read_table` takes it."""
    # problem: its classes give the order of labelled tables.
    labels = {} if problem is None else {"secrets": problem.domain.labels, "reports": problem.reports.labels}
    mechanisms: dict[str, ArrayLike | xr.Dataset] = {}
    for path in paths:
        if path.stem in mechanisms:
            raise InputError("two have this name", field="with", value=path)
        if path.suffix.lower() == ".nc":
            mechanisms[path.stem] = load(path)
        else:
            mechanisms[path.stem] = read_table(path, columns=columns, on_note=on_note, **labels)
    return mechanisms


def input_mechanisms(
    problem: DesignProblem, mechanisms: TableMechanisms | None, *, known: Collection[str] = ()
) -> dict[str, xr.Dataset]:
    """Check the user's tables (n, m) or Datasets by name, at the smallest scale of the metric that they satisfy."""
    # Nothing is repaired. Entries below 2^-62 are rounded up to that. A zero next to a positive probability of the same
    # report makes the ratio infinite. known: names that are taken.
    datasets = {}
    for name, value in (mechanisms or {}).items():
        check_name(name, known)
        datasets[name] = (
            dataset_for(problem, name, value)
            if isinstance(value, xr.Dataset)
            else mechanism_for(problem, name, table_for(problem, name, value))
        )
    return datasets


def check_name(name: object, known: Collection[str]) -> None:
    """Refuse a name that a row of a comparison cannot have, and one of `known`."""
    is_name = isinstance(name, str) and name.isprintable() and name.strip() == name != "" and "/" not in name
    if not is_name or name in known:
        raise _input_error(
            "is the name of a mechanism of this package" if is_name else "is not a valid name of a row", name
        )


def table_for(problem: DesignProblem, name: str, value: ArrayLike) -> Matrix:
    """A table (n, m) of the user over the secrets and reports of a problem, rows divided by their sums."""
    value = in_class_order(value, "table", problem.domain, problem.reports)
    table = check_table(value, problem, normalise=False).rows
    if table.shape[1] != problem.reports.size:
        raise _input_error(f"has {table.shape[1]} reports, and the problem {problem.reports.size}", name)
    return np.asarray(table / table.sum(axis=1, keepdims=True), float)


def mechanism_for(
    problem: DesignProblem, name: str, rows: Matrix, *, claimed_epsilon: float | None = None
) -> xr.Dataset:
    """The mechanism of a table (n, m) of `table_for`, unrepaired; a zero beside a positive entry has ratio inf."""
    mechanism = closed_form_mechanism(problem, rows, name=name, claimed_epsilon=claimed_epsilon)
    return _not_private(mechanism, rows, problem) if audit(rows, problem).infinite else mechanism


def _not_private(mechanism: xr.Dataset, rows: NDArray[np.float64], problem: DesignProblem) -> xr.Dataset:
    """Restore the zeros of a table, with an infinite ratio, for a row of a comparison; `verify` refuses it."""
    mass = np.where(rows == 0, 0, mechanism["mass"].values).astype(np.uint64)
    # The largest mass of a row takes the rest: its relative change is the smallest.
    missing = ROW_SUM - mass.astype(object).sum(axis=1)
    mass[np.arange(len(mass)), mass.argmax(axis=1)] += missing.astype(np.uint64)
    loss = float((problem.prior_array[:, None] * rows * problem.loss_matrix).sum())
    figures = {"ratio": math.inf, "expected_loss": loss}
    return mechanism.assign(mass=(mechanism["mass"].dims, mass, mechanism["mass"].attrs)).assign_attrs(figures)


def dataset_for(problem: DesignProblem, name: str, mechanism: xr.Dataset) -> xr.Dataset:
    """A mechanism, certified anew at the smallest scale of the metric of a problem."""
    stored = MechanismFile.read(mechanism)
    if stored.is_factored:
        raise _input_error("is stored as factors; solve it with method='table'", name)
    if not _same(stored.domain, problem.domain):
        raise _input_error(f"is not over the {problem.domain.size} secrets of {problem.name}, in their order", name)
    mass, reports = np.ascontiguousarray(mechanism["mass"].values), stored.problem.reports
    if not row_sums_exact(mass):
        raise _input_error("has a row that does not sum to 2^62", name)
    # A tabled loss is of its own reports; a formula extends to any coordinates.
    has_other_reports = mass.shape[1] != problem.reports.size or not _same(reports, problem.reports)
    if has_other_reports and (problem.loss.name == "table" or problem.query is not None):
        raise _input_error("has other reports than the problem, whose loss is of its reports alone", name)
    # A claim about positions holds for its own metric and cannot be scaled to another.
    positions = stored.positions
    same_metric = stored.problem_metric.describe() == problem.metric.describe()
    if positions is not None and not (same_metric and positions.breaches(mass) == 0):
        raise _input_error("protects positions under another metric than that of the problem", name)
    claimed: Any = mechanism.attrs.get("claimed_epsilon") if isinstance(problem.metric, Euclidean) else None
    # Certified anew: at the smallest scale of this problem's metric, whatever the file claims.
    extras = Extras(
        scale=certified_scale(problem, mass),
        claimed_epsilon=claimed,
        reports=reports if has_other_reports else None,
        positions=positions,
    )
    return build_dataset(problem, mass, program=name, extras=extras)


def _same(one: Domain, other: Domain) -> bool:
    if one.labels is not None and other.labels is not None and one.labels != other.labels:
        return False
    return (one.unit, one.size, one.dimension) == (other.unit, other.size, other.dimension) and bool(
        np.array_equal(one.points, other.points)
    )


def _input_error(message: str, name: object) -> InputError:
    return InputError(message, field="mechanisms", value=name)
