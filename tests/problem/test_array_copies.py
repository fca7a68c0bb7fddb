"""Arrays that a caller passes are copied and read-only in every dataclass that shows itself.

Later writes to an array that was passed, or to a Dataset that a solver returned, change nothing else.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures.absent_capabilities import CAPABILITIES, needs
from fixtures.forged_files import write_anyway

import mechdesign
import mechdesign as md
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import array_fields
from mechdesign.errors import InputError

CELLS = 9
UNIFORM = np.full(CELLS, 1 / CELLS)
ENDS = (np.arange(CELLS - 1), np.arange(1, CELLS))


def _problem() -> md.DesignProblem:
    domain = md.Domain.grid((3, 3), cell=1.0, unit="m")
    return md.DesignProblem(
        domain=domain,
        metric=md.Euclidean(epsilon=0.7, unit="m"),
        prior=np.arange(1.0, CELLS + 1) / 45,
        loss=md.losses.TableLoss(values=np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))),
    )


def _mechanism() -> Any:
    return md.baselines.exponential(_problem())


# Arguments of classes that check their fields. The others get an array for every array field.
RECIPES: dict[str, Callable[[], dict[str, Any]]] = {
    "Partition": lambda: {"names": ("a", "b"), "label": np.arange(CELLS) // 5},
    "Bounded": lambda: {"problem": _problem(), "worst_loss": np.full(CELLS, 3.0)},
    "DeviceMap": lambda: (
        {"cells": (2, 2), "margin": 1, "cell": (1.0, 1.0), "origin": (0.0, 0.0), "unit": "m"}
        | {
            "plane": None,
            "stencil": 8,
            "level_unit": 1e-4,
            "grain": 2**40,
            "step": 2**40,
            "cap": 100,
            "bound": (2**30, 0),
        }
        | {"level": np.ones((4, 4), np.uint16), "potential": np.zeros((4, 4), np.int16)}
        | {"weight": np.zeros((4, 4), np.uint8), "source_sha256": "0" * 64, "problem": "p", "program": "q"}
    ),
    "Domain": lambda: {"kind": "points", "points": np.arange(6.0).reshape(3, 2), "unit": "m"},
    "DesignProblem": lambda: {
        "domain": md.Domain.nodes(CELLS),
        "metric": md.Discrete(1.0),
        "prior": UNIFORM.copy(),
        "loss": md.losses.ZeroOne(),
    },
    "Graph": lambda: {"tail": ENDS[0].copy(), "head": ENDS[1].copy(), "length": np.ones(CELLS - 1)},
    "HomeAway": lambda: (
        {name: UNIFORM.copy() for name in ("home", "away", "popularity")}
        | {name: np.full(4, 0.5) for name in ("leave", "back", "wander", "mix")}
        | {"near": 1.0}
    ),
    "PosteriorCap": lambda: {"radius": 1.0, "share": 0.5, "people": np.arange(CELLS)},
    "PosteriorLift": lambda: {"radius": 1.0, "factor": 2, "people": np.arange(CELLS)},
    "Positions": lambda: {"problem": _problem(), "corner_level": np.full((CELLS, 4), 0.7)},
    "Query": lambda: {"labels": np.arange(CELLS) // 5},
    "Raster": lambda: {"x": np.arange(3.0), "y": np.arange(2.0), "values": np.ones((3, 2))},
    "Robust": lambda: {"problem": _problem(), "priors": np.tile(UNIFORM, (2, 1))},
    "SmoothSensitivity": lambda: {
        "lipschitz": np.ones(2),
        "distances": np.ones((2, 2)),
        "growth": importlib.import_module("mechdesign.release.growth").Growth(name="exponential", gamma=1.0),
    },
    "StatisticalDesign": lambda: {
        "problem": _problem(),
        "error": "areas",
        "areas": np.arange(CELLS) // 5,
    },
    "Streets": lambda: (
        {"epsilon": 1.0, "unit": "m", "tail": ENDS[0].copy(), "head": ENDS[1].copy()} | {"length": np.ones(CELLS - 1)}
    ),
    "Matrix": lambda: {"distance": np.ones((4, 4)) - np.eye(4)},
    "TableLoss": lambda: {"values": np.ones((CELLS, CELLS))},
    "Transitions": lambda: {"matrices": np.eye(CELLS), "initial": UNIFORM.copy(), "place": np.arange(CELLS)},
}


def _classes() -> dict[str, type]:
    """Every dataclass of the package that shows itself and has a field of numbers, by its full name."""
    for module in pkgutil.walk_packages(mechdesign.__path__, "mechdesign."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    by_name, waiting = {}, [FrozenRecord]
    while waiting:
        waiting += (below := waiting.pop().__subclasses__())
        by_name |= {
            f"{kind.__module__}.{kind.__name__}": kind
            for kind in below
            if kind.__module__.startswith("mechdesign.")
            and is_dataclass(kind)
            and not isabstract(kind)
            and array_fields(kind)
        }
    return by_name


def _arrays(value: Any, seen: set[int]) -> Iterator[np.ndarray]:
    """The arrays of an object, of its fields and of its cached properties."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _arrays(part, seen)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()), seen)
    elif type(value).__module__.startswith("mechdesign."):
        yield from _arrays(getattr(value, "__dict__", {}), seen)


def _build_unchecked(kind: type) -> tuple[Any, dict[str, Any]]:
    """An instance of a class that checks nothing, and its fields."""
    instance = object.__new__(kind)
    arguments = {field.name: None for field in fields(kind)} | {name: np.arange(4.0) for name in array_fields(kind)}
    for name, value in arguments.items():
        object.__setattr__(instance, name, value)
    instance.__post_init__()
    return instance, arguments


@needs(*CAPABILITIES)
def test_every_class_copies_its_arrays() -> None:
    classes = _classes()
    assert set(RECIPES) <= {kind.__name__ for kind in classes.values()}
    assert len(classes) > 30
    for full, kind in classes.items():
        checked = any("__post_init__" in base.__dict__ for base in kind.__mro__ if base is not FrozenRecord)
        if kind.__name__ in RECIPES:
            arguments = RECIPES[kind.__name__]()
            instance = kind(**arguments)
        else:
            assert not checked, f"{full} needs a recipe"
            instance, arguments = _build_unchecked(kind)
        for name in array_fields(kind) & set(arguments):
            stored, passed = getattr(instance, name), arguments[name]
            if passed is None:
                continue
            before = np.array(stored)
            assert not np.shares_memory(stored, passed), f"{full}.{name}"
            assert not stored.flags.writeable, f"{full}.{name}"
            passed[...] = 7
            np.testing.assert_array_equal(getattr(instance, name), before, err_msg=f"{full}.{name}")


def test_lists_and_read_only_views_are_copied() -> None:
    rows = [[0.0, 1.0], [1.0, 0.0]]
    loss = md.losses.TableLoss(values=rows)
    rows[0][0] = 9.0
    assert np.asarray(loss.values)[0, 0] == 0.0
    base = np.arange(3.0)
    view = base.view()
    view.flags.writeable = False
    domain = md.Domain.points_at(view, unit="m")
    base[0] = 9.0
    assert domain.points[0, 0] == 0.0
    with pytest.raises(InputError, match="must be an array"):
        md.losses.TableLoss(values=[[0.0, 1.0], [1.0]])


def test_sparse_matrices_are_copied() -> None:
    matrix = sp.csr_array(np.eye(CELLS))
    movement = md.sessions.Transitions(matrix)
    matrix.data[:] = 0.5
    assert movement.matrices[0].data.tolist() == [1.0] * CELLS


@pytest.mark.parametrize("program", ["table", "factored", "positions"])
def test_a_dataset_shares_nothing_with_its_problem(program: str) -> None:
    domain = md.Domain.grid((3, 3), cell=1.0, unit="m")
    level = md.PrivacyLevel.constant(0.3, "m")
    problem = md.DesignProblem(
        domain=domain,
        metric=md.Eikonal(level) if program == "factored" else md.Euclidean(epsilon=0.3, unit="m"),
        prior=np.arange(1.0, CELLS + 1) / 45,
        loss=md.losses.SquaredDistance(),
    )
    if program == "table":
        problem = _problem()
        instance = md.solve(problem, gap=1e-2)
    elif program == "factored":
        instance = md.solve(md.EikonalWeights(problem), method="factored")
    else:
        instance = md.solve(md.positions.Positions(problem), gap=1e-2)
    for stored in _arrays(problem, set()):
        for name, variable in instance.variables.items():
            assert not np.shares_memory(stored, variable.values), (name, stored.shape)


def test_later_change_of_prior_leaves_problem_unchanged() -> None:
    prior = np.full(CELLS, 1 / CELLS)
    problem = md.DesignProblem(
        domain=md.Domain.nodes(CELLS), metric=md.Discrete(1.0), prior=prior, loss=md.losses.ZeroOne()
    )
    instance = md.solve(problem)
    prior[0] = 0.5
    assert problem.prior_array.sum() == pytest.approx(1.0, abs=1e-12)
    assert md.verify(instance).certified
    with pytest.raises(ValueError, match="read-only"):
        problem.edges.length[0] = 0.0


CHANGES = {
    "a further variable": lambda m: m.assign(mine=m["prior"] * 2),
    "less": lambda m: m.drop_vars("edge_tail"),
    "of another": lambda m: m.assign_attrs(schema="mine"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_save_refuses_an_altered_dataset_and_leaves_nothing(change: str, tmp_path: Path) -> None:
    instance = CHANGES[change](_mechanism())
    with pytest.raises(md.errors.MechdesignError, match=r"not a variable|must be there|was not made by this package"):
        md.save(instance, tmp_path / "m.nc")
    assert list(tmp_path.iterdir()) == []
    old = md.save(_mechanism(), tmp_path / "m.nc").read_bytes()
    with pytest.raises(md.errors.MechdesignError):
        md.save(instance, tmp_path / "m.nc", overwrite=True)
    assert (tmp_path / "m.nc").read_bytes() == old
    write_anyway(instance, tmp_path / "forged.nc")
    with pytest.raises(md.errors.VerificationError):
        md.load(tmp_path / "forged.nc")
