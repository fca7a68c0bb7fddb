"""A file without one of its attributes or variables is refused, or every figure that is printed of it stays true.

Two routes: the figures of the whole file, and the second verifier in plain Python (tests/reference).
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import xarray as xr
from fixtures.file_parts import plain
from fixtures.files import KINDS, honest_file
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default
from fixtures.tight_limits import limit_optimum
from fixtures.tolerances import REORDERED
from reference import untruths

import mechdesign as md
from mechdesign.errors import MechdesignError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.verification.verify import Verification

FIGURES = ("expected_loss", "ratio", "row_ratio", "effective_epsilon", "claim", "position_claim", "violations")
ATTRIBUTES = ("lower_bound", "objective", "remapped_loss")  # that outputs print as they stand
NOT_PRINTED = ("lower_bound_of", "claimed_epsilon", "epsilon_lower_bound", "stopped", "sha256")
LEADING = ("positions", "graph, doubled, minimax")
LIMITED = {"capped": limit_optimum, "capped by area": lambda: limit_optimum("area")}


def certify_or_none(mechanism: xr.Dataset) -> Verification | None:
    """The verification of a certified mechanism, else None."""
    try:
        found = md.verify(mechanism)
    except MechdesignError:
        return None
    return found if found.certified else None


def figures_printed_of(mechanism: xr.Dataset, found: Verification) -> dict[str, Any]:
    """The figures of a certified file: those recomputed, and the attributes that outputs repeat."""
    figures = {name: getattr(found, name) for name in FIGURES}
    attrs = {name: mechanism.attrs[name] for name in ATTRIBUTES if name in mechanism.attrs}
    if not found.lower_bound_checked:
        attrs.pop("lower_bound", None)
    return {name: value for name, value in (figures | attrs).items() if value is not None}


def differences(whole: dict[str, Any], left: dict[str, Any]) -> list[str]:
    """Figures that are printed of a part and are not those of the whole file."""
    wrong = []
    for name, value in left.items():
        was = whole.get(name)
        same = was == value or (isinstance(was, float) and math.isclose(was, value, rel_tol=REORDERED))
        wrong += [] if same else [f"{name}: {value!r}, of the whole file {was!r}"]
    return wrong


@pytest.mark.parametrize("kind", few_by_default([*KINDS, *LIMITED], *LEADING, "capped"))
def test_file_without_one_of_its_parts_is_refused_or_true(kind: str) -> None:
    mechanism = LIMITED[kind]() if kind in LIMITED else honest_file(kind)
    honest = certify_or_none(mechanism)
    assert honest is not None
    whole, refused = figures_printed_of(mechanism, honest), 0
    for name in [*mechanism.attrs, *mechanism.variables]:
        part = mechanism.drop_vars(name) if name in mechanism.variables else mechanism.copy()
        part.attrs.pop(name, None)
        found = certify_or_none(rewritten(part) if name != "sha256" else part)
        refused += found is None
        if found is None:
            continue
        wrong = differences(whole, figures_printed_of(part, found))
        if name not in NOT_PRINTED and kind not in LIMITED:  # caps are those of sixteen places, too many for rays
            wrong += untruths(plain(part), found.as_dict())
        assert not wrong, f"without {name}: {wrong}"
    assert refused > 10


@pytest.mark.parametrize("gone", ["objective", "objective_of"])
@pytest.mark.parametrize(
    "kind", ["positions", "robust", "bounded", "constrained", "statistical", "graph, doubled, minimax"]
)
def test_objective_is_required_where_the_program_has_one(kind: str, gone: str) -> None:
    part = honest_file(kind).copy()
    del part.attrs[gone]
    reasons = md.verify(rewritten(part)).reasons
    assert any(reason.startswith(f"{gone}: ") for reason in reasons)


def with_bound_between_cells(kind: str, program: str) -> xr.Dataset:
    """A design between positions whose bound is one between cells, at the scale of its rows."""
    mechanism = honest_file(kind)
    stored = MechanismFile.read(mechanism)
    between = md.solve(md.Optimal(stored.problem))
    assert between.attrs["lower_bound"] > 0
    changes = {"dual": (("secret",), between["dual"].values), "lower_bound": between.attrs["lower_bound"]}
    other = rewritten(mechanism, program=program, **changes)
    for name in ("objective", "objective_of", "any_lower_bound", "any_squares"):
        other.attrs.pop(name, None)
    return rewritten(other.drop_vars(["multiplier", "any_multiplier"], errors="ignore"))


@pytest.mark.parametrize(
    ("kind", "program", "reason"),
    [
        ("positions", "positions", "objective: is missing"),
        ("positions", "optimal", "position_claim: limits and bounds of optimal are of rows"),
        ("any position", "kernel", "position_claim: limits and bounds of kernel are of rows"),
    ],
)
def test_bound_between_cells_is_no_bound_between_positions(kind: str, program: str, reason: str) -> None:
    file = with_bound_between_cells(kind, program)
    without = file.copy()
    del without.attrs["lower_bound"]
    reasons = md.verify(file).reasons
    assert any(each.startswith(reason) for each in reasons), reasons
    if program != "positions":  # only the bound is wrong
        assert md.verify(rewritten(without)).certified
