"""Bounds where many secrets have a prior of 0: never above exact pricing, and near the optimum in small balls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fixtures.problems import grid, prior_of, varying_level

from mechdesign import DesignProblem, Eikonal
from mechdesign.base.arrays import Vector
from mechdesign.factored import local_bound as local
from mechdesign.factored.ball import Places
from mechdesign.factored.hosts import Hosts, Multipliers
from mechdesign.factored.pricing import PricingTask, tree_block, value_block
from mechdesign.factored.work_folder import threads
from mechdesign.losses import Distance, Loss, SquaredDistance, ZeroOne
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Targets

ROUNDED = 1e-9  # relative
RADII = [(1.0, 0.0), (4.0, 2.0), (8.0, 3.0), (60.0, 4.0)]  # nats of balls and cores


def sparse_prior(size: int, loss: Loss) -> DesignProblem:
    """A grid on which 40 % of the secrets have no prior, and one hardly any."""
    domain = grid((size, size))
    prior = prior_of(domain.size, 0)
    prior[np.random.default_rng(0).random(domain.size) < 0.4] = 0
    prior[np.argmax(prior)] *= 1e-12
    metric = 1.5 * Eikonal(level=varying_level(seed=0), stencil=8)
    return DesignProblem(domain=domain, metric=metric, prior=prior / prior.sum(), loss=loss)


LOSSES: dict[str, Loss] = {"squared": SquaredDistance(), "distance": Distance(), "zero-one": ZeroOne()}


@cache
def problem_of(name: str) -> DesignProblem:
    return sparse_prior(6, LOSSES[name])


@cache
def exact_prices(name: str, kind: str) -> tuple[Vector, Vector]:
    """Multipliers, and the prices of all reports over the whole graph."""
    problem = problem_of(name)
    dual = multipliers_of(problem, kind)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    return dual, pricer.price(problem.weighted_loss, dual).value


def multipliers_of(problem: DesignProblem, kind: str) -> Vector:
    random, n = np.random.default_rng(1), problem.domain.size
    mean = (problem.weighted_loss * np.exp(-problem.distances)).mean()
    if kind in ("guests", "high guests"):
        scale = 0.3 if kind == "guests" else 100.0
        return np.where(problem.prior_array < 1e-6, scale * mean * random.random(n), 0.0)
    if kind == "random":
        return 3 * mean * random.random(n) ** 4
    return mean * random.normal(size=n)  # some of the other sign


KINDS = ["guests", "high guests", "random", "signed"]


def exceeds(name: str, kind: str, hosts: Callable[[Hosts], Hosts] = lambda hosts: hosts) -> tuple[bool, int]:
    """True if a price in a ball is above the exact one; and how many prices are proved."""
    dual, exact = exact_prices(name, kind)
    places = Places.of(problem_of(name))
    places, n, above, proofs = replace(places, hosts=hosts(places.hosts)), places.size, False, 0
    for reach, core in RADII:
        task = PricingTask.all(places, dual, reach=reach, core=core)
        priced = value_block(task, 0, n)
        trees = np.split(priced["codes"], np.cumsum(priced["coded"])[:-1])
        none = [np.zeros(0, np.uint8)] * n
        for value in (priced["value"], *(tree_block(replace(task, trees=t), 0, n)["value"] for t in (trees, none))):
            above |= bool((value > exact + ROUNDED * (np.abs(exact) + np.abs(dual).sum())).any())
            proofs += int(np.isfinite(value).sum())
    return above, proofs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.obligation("factored-bound")
def test_prices_with_guests_are_below_those_of_whole_graph(name: str, kind: str) -> None:
    above, proofs = exceeds(name, kind)
    assert not above
    assert proofs > 0


def far_host(hosts: Hosts) -> Hosts:
    """Every guest at a host of another one."""
    return hosts._replace(guest=np.roll(hosts.guest, 7), factor=np.roll(hosts.factor, 7))


MUTANTS: dict[str, Callable[[Hosts], Hosts]] = {
    "a wrong host": far_host,
    "a factor that falls with distance": lambda hosts: hosts._replace(factor=1 / hosts.factor),
    "no factor": lambda hosts: hosts._replace(factor=np.ones_like(hosts.factor)),
}


@pytest.mark.parametrize("how", MUTANTS)
@pytest.mark.obligation("factored-bound")
def test_wrong_hosts_are_noticed(how: str) -> None:
    assert any(exceeds(name, kind, MUTANTS[how])[0] for name in LOSSES for kind in KINDS)


@pytest.mark.parametrize("forgotten", ["guests of hosts in the ball", "guests of hosts outside"])
@pytest.mark.obligation("factored-bound")
def test_forgotten_guests_are_noticed(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Hosts.multipliers

    def forget(hosts: Hosts, dual: Vector) -> Multipliers:
        found = honest(hosts, dual)
        if forgotten == "guests of hosts in the ball":
            return found._replace(amount=np.zeros_like(found.amount))
        return found._replace(asked=np.where(found.is_guest, 0.0, dual))

    monkeypatch.setattr(Hosts, "multipliers", forget)
    assert any(exceeds(name, kind)[0] for name in LOSSES for kind in KINDS)


def test_bound_is_near_optimum_where_many_priors_are_zero() -> None:
    problem = sparse_prior(12, SquaredDistance())
    optimal = solve_optimal(problem, Targets(gap=1e-3))
    places, dual = Places.of(problem), np.maximum(optimal.dual, 0.0)
    alone = replace(places, hosts=Hosts.of(places.graph, np.ones(places.size)))
    with threads(1) as executor:
        found = local.certify_bound(executor, places, dual, reach=14.0, core=9.0)
        before = local.certify_bound(executor, alone, dual, reach=14.0, core=9.0)
        again = local.recompute_bound(executor, places, replace(found, trees=None))
    assert before.value < 0.75 * optimal.lower_bound
    assert 0.97 * optimal.lower_bound < found.value <= optimal.loss
    assert found.value < again * (1 + ROUNDED)


@pytest.mark.parametrize("name", LOSSES)
def test_hosts_are_those_of_least_cost(name: str) -> None:
    problem = problem_of(name)
    hosts, distance = Places.of(problem).hosts, problem.distances
    with np.errstate(divide="ignore"):
        start = -np.log(problem.prior_array)
    least = (distance + start).min(axis=1)
    assert np.array_equal(np.sort(hosts.guest), np.flatnonzero(least + 7 < start))
    assert np.allclose((distance + start)[hosts.guest, hosts.host], least[hosts.guest], atol=1e-5)
    assert not np.isin(hosts.host, hosts.guest).any()
    exact = np.exp(distance[hosts.guest, hosts.host])
    assert (exact <= hosts.factor).all()
    assert (hosts.factor <= exact * (1 + ROUNDED)).all()
    assert np.array_equal(np.repeat(np.arange(problem.domain.size), np.diff(hosts.first)), hosts.host)


def test_guests_fall_to_the_room_of_their_host() -> None:
    problem = problem_of("squared")
    hosts, random = Places.of(problem).hosts, np.random.default_rng(3)
    dual = random.random(problem.domain.size)
    limit = np.where(np.arange(len(dual)) % 2, 1.5 * random.random(len(dual)), np.inf)
    limit[hosts.guest] = np.inf
    fitted = hosts.fit(dual, limit)
    assert (hosts.multipliers(fitted).asked <= limit).all()
    alone = np.setdiff1d(np.arange(len(dual)), hosts.guest)
    assert np.array_equal(fitted[alone], np.minimum(dual, limit)[alone])
    unlimited = hosts.guest[np.isinf(limit[hosts.host])]
    assert np.array_equal(fitted[unlimited], dual[unlimited])


def test_priors_of_one_scale_have_no_guests() -> None:
    problem = problem_of("squared")
    hosts = Hosts.of(Places.of(problem).graph, prior_of(problem.domain.size, 0))
    dual = np.random.default_rng(2).random(problem.domain.size)
    assert not len(hosts.guest)
    assert hosts.multipliers(dual).asked.tobytes() == dual.tobytes()
    assert hosts.fit(dual, np.full(len(dual), 0.5)).tobytes() == np.minimum(dual, 0.5).tobytes()
