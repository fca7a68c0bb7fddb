"""Local bounds: never above a known optimum, near it, the same bits anywhere, and refused where they were altered."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from maps import random_map
from random_problems import optimum
from rewritten import rewritten

import mechdesign as md
from mechdesign import load_problem
from mechdesign.losses import TableLoss
from mechdesign.maps import local_bound as certificate
from mechdesign.maps import local_bound as local
from mechdesign.maps.cluster import workers
from mechdesign.maps.local_pricing import Places, PricingTask
from mechdesign.maps.work_folder import threads
from mechdesign.solvers.pricing import ConePricer, lower_bound

NEAR = 1e-3  # relative; what the bound is asked to be within of the optimum
SMOOTH = 4e-2  # relative; what passes alone are within on a map whose border is felt everywhere
ABOVE = 1e-9  # relative; rounding of the other solver


@pytest.fixture
def passes(monkeypatch):
    """No multipliers of the whole program, whatever the size."""
    monkeypatch.setattr(local, "WHOLE", 0)


@pytest.fixture(scope="module")
def philadelphia():
    return load_problem("philadelphia", cells=10, extent=20)


def bound_of(problem, count=1):
    with threads(count) as executor:
        return local.local_bound(problem, executor)


@pytest.mark.parametrize("seed", [2, 5, 9])
def test_the_bound_is_never_above_the_optimum_and_near_it(seed):
    problem = random_map(seed, 3, 4)
    truth = optimum(md.Optimal(problem))
    found = bound_of(problem)
    assert found.value <= truth * (1 + ABOVE)
    assert found.value >= truth * (1 - NEAR)


@pytest.mark.parametrize("seed", [2, 5, 9, 31])
def test_a_bound_of_passes_alone_is_never_above_the_optimum(seed, passes):
    problem = random_map(seed, 3, 4)
    found = bound_of(problem)
    assert 0 < found.value <= optimum(md.Optimal(problem)) * (1 + ABOVE)


@pytest.mark.slow
def test_a_hundred_bounds_are_never_above_the_optimum_and_most_are_near(passes):
    near, alone = 0, []
    for seed in range(100):
        problem = random_map(seed, 4, 25 if seed % 10 == 0 else 12)
        table = md.solve(problem, gap=1e-4)
        value = table.attrs["expected_loss"]
        by_passes = bound_of(problem)
        assert by_passes.value <= value
        alone.append(1 - by_passes.value / value)
        local.WHOLE = 700
        found = bound_of(problem)
        local.WHOLE = 0
        assert found.value <= value
        assert (found.reach, found.core) == (64.0, 64.0)
        near += found.value >= table.attrs["lower_bound"] * (1 - NEAR)
    print(f"{near} of 100 within {NEAR}; passes alone, quantiles of the gap: {np.quantile(alone, [0.1, 0.5, 0.9])}")
    assert near >= 90


def test_a_smooth_map_is_settled_by_passes(philadelphia, passes):
    table = md.solve(philadelphia, gap=1e-4)
    found = bound_of(philadelphia)
    assert table.attrs["lower_bound"] * (1 - SMOOTH) <= found.value <= table.attrs["expected_loss"]
    pricer = ConePricer(philadelphia.edges, philadelphia.domain.size, philadelphia.anchors)
    whole = lower_bound(found.dual, pricer.price(philadelphia.weighted_loss, found.dual).value)
    assert found.value <= whole
    with threads(1) as executor:
        again = local.proved(executor, Places.of(philadelphia), found)
    assert found.value < again <= found.value * (1 + 2e-8)


def test_a_table_of_losses_that_grow_away_from_the_report(philadelphia, passes):
    """The same losses as a formula and as a table: the same bits."""
    small = load_problem("philadelphia", cells=8)
    tabled = replace(small, loss=TableLoss(values=small.loss_matrix))
    a, b = bound_of(small), bound_of(tabled)
    assert abs(a.value - b.value) <= 1e-6 * a.value


def test_streets_have_a_bound(passes):
    problem = load_problem("streets", nodes=60, epsilon=0.01)
    table = md.solve(problem, gap=1e-4)
    found = bound_of(problem)
    assert 0.9 * table.attrs["lower_bound"] <= found.value <= table.attrs["expected_loss"]


def test_a_report_that_is_worse_for_smaller_multipliers_counts(philadelphia, passes, monkeypatch):
    """Pivots that end early may find less of a report where less is asked: what is proved follows all the same."""
    honest, places = certificate.value_block, Places.of(philadelphia)
    high = bound_of(philadelphia).dual * (1 + 0.02 * (np.arange(places.size) % 7 == 0))
    holds = int(np.argmax(honest(PricingTask.all(places, high, reach=15.0, core=6.0), 0, places.size)["value"]))

    def worse(task, start, stop):
        found = honest(task, start, stop)
        found["value"][(task.reports[start:stop] == holds) & (task.dual.sum() < high.sum())] = -1e-3
        return found

    monkeypatch.setattr(certificate, "value_block", worse)
    with threads(1) as executor:
        found = local.certify(executor, places, high)
        again = local.proved(executor, places, found)
    assert 0.9 * again < found.value <= again


def test_the_same_bits_for_any_number_of_threads(philadelphia, passes):
    one, two = bound_of(philadelphia, 1), bound_of(philadelphia, 2)
    assert one.value == two.value
    assert one.dual.tobytes() == two.dual.tobytes()


@pytest.mark.slow
def test_the_same_bits_on_a_cluster_that_loses_a_worker(philadelphia, passes):
    distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'mechdesign[distributed]'")
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=60
        ) as started,
        distributed.Client(started.scheduler_address, set_as_default=False) as client,
    ):

        def report(stage, **state):
            if stage.startswith("bound, pass 2") and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        with workers(started.scheduler_address) as executor:
            found = local.local_bound(philadelphia, executor, report=report)
    assert killed
    assert found.dual.tobytes() == bound_of(philadelphia).dual.tobytes()


def test_without_time_there_is_no_bound(philadelphia, passes):
    with threads(1) as executor:
        assert local.local_bound(philadelphia, executor, deadline=time.monotonic() - 1) is None
    solved = md.solve(md.EikonalWeights(problem=load_problem("philadelphia", cells=6)), method="factored", bound=False)
    assert "lower_bound" not in solved.attrs
    assert "dual" not in solved
    assert md.verify(solved).lower_bound_checked is None


@pytest.fixture(scope="module")
def factored():
    return md.solve(
        md.EikonalWeights(problem=load_problem("philadelphia", cells=7)), method="factored", rounds=6, bound=True
    )


def test_a_factored_mechanism_carries_a_bound_that_is_checked(factored):
    checked = md.verify(factored)
    assert checked.certified
    assert checked.lower_bound_checked is True
    assert 0 < factored.attrs["lower_bound"] <= factored.attrs["remapped_loss"] <= factored.attrs["expected_loss"]
    assert factored["dual"].attrs["units"] == "1"
    told = []
    assert md.verify(factored, bound=False).lower_bound_checked is None
    assert md.verify(factored, on_progress=told.append).certified
    assert told[-1].done == told[-1].total == 49


ALTERED = {
    "a raised bound": lambda m: m.assign_attrs(lower_bound=m.attrs["lower_bound"] * (1 + 1e-6)),
    "a bound above the loss": lambda m: m.assign_attrs(lower_bound=m.attrs["expected_loss"] * 1.01),
    "a multiplier raised": lambda m: raised(m, lambda dual: dual * 1.05),
    "a multiplier lowered": lambda m: raised(m, lambda dual: dual * 0.9),
    "a multiplier of the other sign": lambda m: raised(m, lambda dual: -dual),
    "a multiplier that is no number": lambda m: raised(m, lambda dual: np.nan),
    "a radius cut": lambda m: m.assign_attrs(bound_reach=1.5, bound_core=1.0),
    "a radius that is no number": lambda m: m.assign_attrs(bound_reach=float("nan")),
    "a radius too wide": lambda m: m.assign_attrs(bound_reach=1e9),
    "no radius": lambda m: without(m, "bound_reach"),
    "no multipliers": lambda m: m.drop_vars("dual"),
}


def raised(mechanism, change):
    dual = mechanism["dual"].values.copy()
    k = int(np.argmax(dual))
    dual[k] = change(dual[k])
    return mechanism.assign(dual=("secret", dual, mechanism["dual"].attrs))


def without(mechanism, name):
    found = mechanism.copy()
    del found.attrs[name]
    return found


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_bound_is_refused(how, factored):
    checked = md.verify(rewritten(ALTERED[how](factored)))
    assert not checked.certified
    assert checked.reasons[0].startswith("lower_bound:")
    assert checked.lower_bound_checked is False


def test_files_without_a_bound_go_on_verifying(factored):
    old = factored.drop_vars("dual")
    for name in ("lower_bound", "bound_reach", "bound_core"):
        del old.attrs[name]
    checked = md.verify(rewritten(old))
    assert checked.certified
    assert checked.lower_bound_checked is None
