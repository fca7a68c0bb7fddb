from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs
from fixtures.integer_oracles import reference_violations

from mechdesign import DesignProblem, Domain, Euclidean, baselines, priors, probabilities, verify
from mechdesign.closed_forms import tuples
from mechdesign.errors import InputError, SizeError
from mechdesign.losses import Distance

SCRIPT = ROOT / "scripts" / "tuples.py"

RATIO = 1e-9  # relative; edges are rounded down by 2^-43 and tables to integers
FLOAT = 1e-13  # products and maxima of few doubles
SIMULATED = 0.03  # relative; means of 20,000 draws whose spread is below their mean

CASES = [((4,), 2), ((3,), 3), ((2, 2), 2), ((3, 2), 2)]


def on_grid(shape, *, epsilon=0.8, seed=0):
    domain = Domain.grid(shape, cell=1.5, unit="km", origin=-2.0)
    prior = priors.proportional(np.random.default_rng(seed).random(domain.size))
    return DesignProblem(domain=domain, metric=Euclidean(epsilon=epsilon, unit="km"), prior=prior, loss=Distance())


def all_tuples(problem, count):
    return list(itertools.product(range(problem.domain.size), repeat=count))


@pytest.mark.parametrize(("shape", "count"), CASES)
def test_distances_between_tuples_by_definition(shape, count):
    problem = on_grid(shape)
    listed = all_tuples(problem, count)
    d = problem.distances
    expected = [[max(d[a, b] for a, b in zip(x, z, strict=True)) for z in listed] for x in listed]
    assert tuples.tuple_distances(problem, count) == pytest.approx(np.array(expected), rel=FLOAT)
    assert tuples.tuple_problem(problem, count).distances == pytest.approx(np.array(expected), rel=FLOAT)


@pytest.mark.parametrize(("shape", "count"), CASES)
def test_independent_reports_cost_n_epsilon_and_no_less(shape, count):
    problem = on_grid(shape)
    single = baselines.geometric(problem)
    together = tuples.independent(problem, [single] * count)
    assert verify(together).certified
    assert together.attrs["scale"] == pytest.approx(count * single.attrs["scale"], rel=RATIO)
    built = tuples.tuple_problem(problem, count)
    most = count * single.attrs["scale"] * built.metric
    assert reference_violations(together["mass"].values, ((1 + RATIO) * most).edges(built.domain)) == 0
    assert reference_violations(together["mass"].values, (0.999 * most).edges(built.domain)) > 0
    exact = single["mass"].values.tolist()
    found = together["mass"].values
    listed = all_tuples(problem, count)
    for x, z in np.random.default_rng(1).integers(len(listed), size=(40, 2)):
        product = math.prod(Fraction(exact[a][b], 2**62) for a, b in zip(listed[int(x)], listed[int(z)], strict=True))
        assert found[x, z] / 2**62 == pytest.approx(float(product), rel=FLOAT, abs=1e-16)
    assert together.attrs["expected_loss"] == pytest.approx(single.attrs["expected_loss"], rel=FLOAT)


def test_different_mechanisms_add_their_levels():
    problem = on_grid((4,))
    single, half = baselines.geometric(problem), baselines.geometric(problem, 0.4)
    together = tuples.independent(problem, [single, half])
    assert together.attrs["scale"] == pytest.approx(1.5, rel=RATIO)
    p, q = probabilities(single).values, probabilities(half).values
    assert probabilities(together).values == pytest.approx(np.kron(p, q), abs=1e-16, rel=FLOAT)


@pytest.mark.study
@needs("sessions")
def test_the_script_measures_what_it_says():
    words = [sys.executable, str(SCRIPT), "--points", "4", "--epsilon", "0.02"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.returncode == 0
    pairs = re.findall(r"simulated\s+([\d.]+), closed form ([\d.]+)", ended.stdout)
    assert [float(closed) for _, closed in pairs] == [100, 400]  # 2 / eps, 2 n / eps in m
    for simulated, closed in pairs:
        assert float(simulated) == pytest.approx(float(closed), rel=SIMULATED)
    assert ended.stdout.count("remaining\n") == 4
    assert "0: the report of this secret was remembered" in ended.stdout
    assert "refused: budget: costs more than remains of a limit of 4" in ended.stdout


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda p: tuples.independent(p, []), "count"),
        (lambda p: tuples.independent(p, [baselines.geometric(on_grid((5,)))]), "mechanisms"),
        (lambda p: tuples.tuple_problem(p, 0), "count"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make(on_grid((4,)))
    assert caught.value.field == field


def test_tuples_that_do_not_fit_are_refused_before_they_are_made():
    with pytest.raises(SizeError, match="the pairs of all tuples of 9 points"):
        tuples.tuple_problem(on_grid((4, 4)), 9)


def test_mechanisms_with_other_worst_pairs_are_tight_too():
    problem = on_grid((3,))
    pair = [baselines.randomized_response(problem), baselines.planar_laplace(problem)]
    logs = [np.log(probabilities(m).values) for m in pair]
    d = problem.distances + np.diag(np.full(3, np.inf))
    together = np.log(np.kron(*(probabilities(m).values for m in pair)))
    apart = tuples.tuple_distances(problem, 2) + np.diag(np.full(9, np.inf))
    expected = (abs(together[:, None] - together[None]).max(axis=2) / apart).max()
    shown = tuples.independent(problem, pair).attrs["scale"]
    assert shown == pytest.approx(expected, rel=RATIO)
    assert shown <= sum((abs(l[:, None] - l[None]).max(axis=2) / d).max() for l in logs) * (1 + RATIO)
