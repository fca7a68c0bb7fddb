"""Objects are equal if their fields are; arguments with an obvious order may be positional."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import ROOT

import mechdesign as md

CHANGED = {"discrete": {"secrets": 3}, "streets": {"nodes": 20}, "paris": {"cells": 9}}
SMALL = {"northeast": {"cells": 5}, "streets": {"nodes": 30}, "paris": {"cells": 8}}
PEOPLE = "latitude,longitude,population\n40.5,-74.9,15000\n40.51,-74.88,9000\n"  # for 50,000 lines of the shipped file


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "problems").glob("*.py")))
def test_a_problem_equals_its_copy_and_no_other(name, tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    places = {"points": str(tmp_path / "people.csv")} if name == "northeast" else {}
    problem = md.load_problem(name, **SMALL.get(name, {}) | places)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert hash(copy) == hash(problem)
    assert repr(copy) == repr(problem)
    assert problem != md.load_problem(name, **CHANGED.get(name, {"cells": 4}) | places)
    assert problem != problem.metric


def test_one_entry_of_an_array_makes_a_difference():
    prior = np.array([0.25, 0.25, 0.5])
    domain = md.Domain.grid(3, 1.0)
    problems = [md.DesignProblem(domain, md.Euclidean(1.5), p, md.losses.Distance()) for p in (prior, prior[::-1])]
    assert problems[0] != problems[1]


def test_positional_arguments_equal_named_ones():
    domain = md.Domain.grid((8, 6), 0.5)
    assert domain == md.Domain.grid(shape=(8, 6), cell=0.5, unit="1")
    metric, prior, loss = md.Euclidean(1.5), md.priors.uniform(domain), md.losses.SquaredDistance()
    assert metric == md.Euclidean(epsilon=1.5, unit="1")
    named = md.DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss)
    assert md.DesignProblem(domain, metric, prior, loss) == named


def test_notebooks_show_figures():
    pytest.importorskip("matplotlib")
    mechanism = md.baselines.exponential(md.load_problem("line", cells=4))
    assert md.plot.mechanism(mechanism)._repr_png_().startswith(b"\x89PNG")
