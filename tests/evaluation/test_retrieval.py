from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from fixtures.rows import few_by_default
from scipy.optimize import minimize

from mechdesign import DesignProblem, Discrete, Domain, Euclidean, baselines, priors, probabilities, utility
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.errors import InputError
from mechdesign.evaluation import radial_laplace
from mechdesign.losses import Distance, SquaredDistance, ZeroOne

DRAWS = 50_000
SIGMAS = 4  # standard deviations of a share of `DRAWS` draws
FLOAT = 1e-12  # sums of some hundred positive terms
SEARCHED = 1e-6  # relative; tolerance of Nelder-Mead
ENCLOSED = 1e-4  # relative; largest width of [lower_bound, value] after Weiszfeld's steps

SHAPES = [(5,), (4, 4), (3, 5)]


def on_grid(shape, *, epsilon=0.8, cell=1.0, loss=None, seed=0):
    domain = Domain.grid(shape, cell=cell, unit="km")
    prior = priors.proportional(np.random.default_rng(seed).random(domain.size) ** 3)
    metric = Euclidean(epsilon=epsilon, unit="km")
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss or Distance())


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize(("interest", "confidence", "epsilon"), [(0.3, 0.95, 4.0), (2.0, 0.5, 1.0), (0.0, 0.99, 0.1)])
def test_the_retrieved_disc_holds_the_area_as_often_as_asked(interest, confidence, epsilon, dimension):
    radius = float(utility.retrieval_radius(interest, confidence, epsilon, dimension))
    place, rng = np.arange(1.0, dimension + 1), np.random.default_rng(2)
    reports = radial_laplace.sample(place, epsilon, rng, DRAWS)
    away = reports - place
    edge = place - interest * away / np.linalg.norm(away, axis=1)[:, None]  # the point of the area farthest from it
    share_within = (np.linalg.norm(edge - reports, axis=1) <= radius).mean()
    assert share_within == pytest.approx(confidence, abs=SIGMAS * math.sqrt(confidence * (1 - confidence) / DRAWS))


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_by_their_integers_place_by_place(shape):
    problem = on_grid(shape, cell=0.7)
    mechanism = planar_laplace_mechanism(problem)
    away, mass = problem.domain.euclidean_to(problem.domain), mechanism["mass"].values.tolist()

    def share_within(u, radius):
        return sum(Fraction(m, 2**62) for m, d in zip(mass[u], away[u], strict=True) if d <= radius)

    for share in (0.0, 0.3, 0.9, 0.999, 1.0):
        found = utility.table_retrieval_radius(mechanism, 0.25, share) - 0.25
        for u in range(problem.domain.size):
            radii = [radius for radius in sorted(set(away[u].tolist())) if share_within(u, radius) >= Fraction(share)]
            assert found[u] == pytest.approx(radii[0], abs=FLOAT)


def test_an_answer_is_exact_at_the_share_that_a_row_holds():
    domain = Domain.grid(3, cell=1.0, unit="km")
    metric = Discrete(epsilon=math.log(2))
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=ZeroOne())
    mechanism = baselines.randomized_response(problem)
    assert 2**61 - 100 < int(mechanism["mass"].values[1, 1]) < 2**61  # in doubles it is one half
    assert utility.table_retrieval_radius(mechanism, 0.0, math.nextafter(0.5, 0))[1] == 0
    assert utility.table_retrieval_radius(mechanism, 0.0, 0.5)[1] == 1
    rare = np.array([[1, 2**62 - 2, 1]] * 3, np.uint64)
    least = mechanism.assign(mass=(("secret", "report"), rare))
    assert utility.table_retrieval_radius(least, 0.0, 2.0**-62)[0] == 0
    assert utility.table_retrieval_radius(least, 0.0, 1.5 * 2.0**-62)[0] == 1


def test_inside_a_fine_grid_the_table_has_the_radius_of_the_law():
    cell = 0.35
    mechanism = planar_laplace_mechanism(on_grid((15, 15), epsilon=2.0, cell=cell))
    center = 7 * 15 + 7
    for confidence in (0.3, 0.5, 0.7, 0.9):
        found = utility.table_retrieval_radius(mechanism, 1.0, confidence)[center]
        assert found == pytest.approx(float(utility.retrieval_radius(1.0, confidence, 2.0)), abs=cell / 2)


def naive_errors(mechanism, prior, power):
    """The sum over reports of the least posterior error, each by Nelder-Mead from the best place."""
    table = probabilities(mechanism).values
    axes = [mechanism[f"secret_{a}"].values for a in "xy" if f"secret_{a}" in mechanism.coords]
    places = np.column_stack(axes)
    total = 0.0
    for y in range(table.shape[1]):
        joint = prior * table[:, y]

        def error(x, joint=joint):
            return float(joint @ np.linalg.norm(places - x, axis=1) ** power)

        start = min(places, key=error)
        options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 4000}
        total += min(error(start), minimize(error, start, method="Nelder-Mead", options=options).fun)
    return total


@pytest.mark.parametrize("shape", few_by_default([(shape,) for shape in SHAPES], ((5,),), ((3, 5),)))
@pytest.mark.parametrize("loss", [Distance(), SquaredDistance()])
def test_the_error_of_the_best_estimate_against_a_search(shape, loss):
    mechanism = planar_laplace_mechanism(on_grid(shape, loss=loss))
    other = priors.uniform(on_grid(shape).domain)
    power = 1 if loss.name == "distance" else 2
    for prior in (None, other):
        found = utility.adversary_error(mechanism, loss.name, prior=prior)
        used = mechanism["prior"].values if prior is None else prior
        searched = naive_errors(mechanism, used, power)
        assert found.value == pytest.approx(searched, rel=SEARCHED)
        assert found.lower_bound <= searched * (1 + FLOAT)
        assert found.lower_bound >= found.value * (1 - ENCLOSED)
        assert found.chance == pytest.approx(used @ probabilities(mechanism).values, rel=FLOAT)
        at = np.linalg.norm(np.column_stack([mechanism[f"secret_{a}"].values for a in "xy"[: len(shape)]])[:, None]
                            - found.estimates[None], axis=2)  # fmt: skip
        attained = (used[:, None] * probabilities(mechanism).values * at**power).sum()
        assert found.value == pytest.approx(attained, rel=FLOAT)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", [Distance(), SquaredDistance()])
def test_retrieval_errors_never_fall_by_post_processing(shape, loss):
    mechanism = planar_laplace_mechanism(on_grid(shape, loss=loss))
    error = utility.adversary_error(mechanism, loss.name)
    assert error.lower_bound <= error.value
    assert error.value <= utility.remapped_loss(mechanism) * (1 + FLOAT)
    assert utility.remapped_loss(mechanism) <= mechanism.attrs["expected_loss"]
    remapped = utility.adversary_error(utility.bayes_remap(mechanism), loss.name)
    assert remapped.value >= error.lower_bound
    if len(shape) == 1 and loss.name == "distance":  # the median on a line is a place, and every place a report
        assert error.value == pytest.approx(utility.remapped_loss(mechanism), rel=FLOAT)
        assert error.lower_bound == pytest.approx(error.value, rel=FLOAT)


def test_constant_report_leaves_spread_of_prior():
    problem = on_grid((3, 4), loss=SquaredDistance())
    mechanism = baselines.constant(problem)
    points, prior = problem.domain.points, problem.prior_array
    variance = float(prior @ ((points - prior @ points) ** 2).sum(axis=1))
    assert utility.adversary_error(mechanism, "squared").value == pytest.approx(
        variance, rel=1e-9
    )  # rows differ by 2^-62
    known = np.zeros(12)
    known[5] = 1
    for loss in ("squared", "distance"):
        assert utility.adversary_error(mechanism, loss, prior=known).value == pytest.approx(0, abs=FLOAT)


def on_nodes():
    domain = Domain.nodes(3)
    metric = Discrete(epsilon=1.0)
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=ZeroOne())
    return baselines.randomized_response(problem)


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda m: utility.retrieval_radius(-1.0, 0.5, 1.0), "interest_radius"),
        (lambda m: utility.retrieval_radius(1.0, 1.5, 1.0), "confidence"),
        (lambda m: utility.table_retrieval_radius(m, math.inf, 0.5), "interest_radius"),
        (lambda m: utility.table_retrieval_radius(m, 1.0, 1.01), "confidence"),
        (lambda m: utility.table_retrieval_radius(m, 1.0, math.nan), "confidence"),
        (lambda m: utility.table_retrieval_radius(on_nodes(), 1.0, 0.5), "mechanism"),
        (lambda m: utility.adversary_error(m, "cubic"), "loss"),
        (lambda m: utility.adversary_error(m, prior=[1.0]), "prior"),
        (lambda m: utility.adversary_error(on_nodes()), "mechanism"),
    ],
)
def test_refusals_name_the_field(ask, field):
    with pytest.raises(InputError) as caught:
        ask(planar_laplace_mechanism(on_grid((3,))))
    assert caught.value.field == field
