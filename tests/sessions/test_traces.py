"""Synthetic days, the home-and-away model, simulated sessions against real ones, baselines, proposals."""

from __future__ import annotations

from fractions import Fraction

import day_of_reports as script
import numpy as np
import pytest
from fixtures.rows import few_by_default

from mechdesign import Domain, Euclidean, Sampler
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.geo import Area
from mechdesign.sessions import (
    Clock,
    HomeAway,
    Risk,
    SessionDesign,
    fit_home_away,
    loss_after,
    propose,
    report_table,
    state_table,
    synthetic_days,
)
from mechdesign.sessions.advance import begin, draw_report, plan_tick, seeded_draws
from mechdesign.sessions.design_files import movement_from_description
from mechdesign.sessions.study.propose import homes_found, session_design
from mechdesign.sessions.study.setting import Setting, SimulatedRun
from mechdesign.sessions.study.simulated import (
    FIRST,
    PricedRule,
    clocks,
    mean_error,
    rank_rules,
    risks,
    sessions,
    split,
)
from mechdesign.sessions.study.synthetic import nights
from mechdesign.sessions.windows import Window, ordered_worst

TICKS = 12
ROUNDING = 1e-12  # sums of a few hundred doubles
SINGLE = 1e-4  # sums of products in single precision
TOTAL = 6.0


@pytest.fixture(scope="module")
def domain():
    return Domain.grid((5, 4), cell=400.0, unit="m")


@pytest.fixture(scope="module")
def setting(domain):
    seen = synthetic_days(domain, people=60, days=7, ticks=TICKS, rng=100)
    return Setting(domain=domain, model=fit_home_away(seen), within=400.0)


@pytest.fixture(scope="module")
def people(domain):
    return synthetic_days(domain, people=8, days=3, ticks=TICKS, rng=1)


def test_days_are_those_of_their_seed_at_any_number_of_ticks(domain):
    few, many, other = (
        synthetic_days(domain, people=20, days=7, ticks=ticks, rng=seed) for ticks, seed in ((12, 3), (36, 3), (12, 4))
    )
    np.testing.assert_array_equal(few.homes, many.homes)
    assert not np.array_equal(few.homes, other.homes)
    agree = few.places == many.places[:, :, 1::3]  # tick t of 12 is tick 3 t + 1 of 36, in time
    assert agree.mean() > 0.95  # the errors of positions are others
    night = domain.points[few.places[:, :, 0]]
    assert np.abs(night - few.homes[:, None]).max() <= 200 + 5 * 1600 / 300  # half a cell and the error
    weekday, weekend = few.places[:, :5, 6], few.places[:, 5:, 3]
    home = few.places[:, 0, 0][:, None]
    assert (weekday == home).mean() < 0.2 < 0.8 < (weekend == home).mean()


def test_late_people_are_the_same_people(domain):
    usual, late = (synthetic_days(domain, people=5, days=2, ticks=8, rng=3, late=minutes) for minutes in (0.0, 180.0))
    np.testing.assert_array_equal(usual.homes, late.homes)
    assert not np.array_equal(usual.places, late.places)


@pytest.mark.parametrize(("field", "value"), [("people", 0), ("days", 0), ("ticks", 0), ("rng", -1), ("late", -1.0)])
def test_invalid_days_are_refused(domain, field, value):
    with pytest.raises(InputError) as caught:
        synthetic_days(domain, **{"people": 2, "days": 1, "ticks": 4, "rng": 0} | {field: value})
    assert caught.value.field == field


def test_nobody_walks_on_a_line():
    with pytest.raises(UnsuitableError):
        synthetic_days(Domain.grid(5, cell=1.0, unit="m"), people=1, days=1, ticks=4, rng=0)


def dense(chain, tick):
    """The matrix (s, s) of a step, by its rows."""
    return chain.step(np.eye(len(chain.initial)), tick)


def test_model_step_is_a_stochastic_matrix(setting):
    small = Domain.grid((2, 2), cell=1.0, unit="m")
    rng = np.random.default_rng(0)
    model = HomeAway(
        home=np.full(4, 0.25), away=np.array([0.1, 0.2, 0.3, 0.4]), popularity=np.arange(1.0, 5), near=0.7,
        leave=rng.random(3), back=rng.random(3), wander=rng.random(3), mix=rng.random(3),
    )  # fmt: skip
    chain = model.over(small, None, None)
    assert chain.initial.sum() == pytest.approx(1, abs=ROUNDING)
    for tick in (0, 1, 5):
        matrix = dense(chain, tick)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=ROUNDING)
        values = rng.random(20)
        np.testing.assert_allclose(chain.back(values, tick), matrix @ values, atol=ROUNDING)
        at = tick % 3
        stay = (1 - model.back[at]) * (1 - model.wander[at])
        assert matrix[0, 0] == pytest.approx(1 - model.leave[at], abs=ROUNDING)
        for home in range(4):
            for place in range(4):
                row = matrix[4 + 4 * home + place]
                assert row[home] == pytest.approx(model.back[at], abs=ROUNDING)
                assert row[4 + 4 * home + place] == pytest.approx(stay, abs=ROUNDING)
                assert row.reshape(5, 4)[[k for k in range(1, 5) if k != home + 1]].sum() == 0
    belief = rng.random((3, 20))
    np.testing.assert_allclose(chain.places(belief), belief @ np.eye(4)[chain.place], atol=ROUNDING)
    np.testing.assert_allclose(chain.homes(belief).sum(axis=1), belief.sum(axis=1), atol=ROUNDING)
    told = movement_from_description(model.describe())
    assert told.describe() == model.describe()


@pytest.mark.parametrize(
    ("field", "value"),
    [("home", [0.5, 0.6]), ("popularity", [1.0, 0.0]), ("near", 0.0), ("leave", [2.0]), ("mix", [0.5, 0.5])],
)
def test_models_of_anybody_are_checked(field, value):
    told = {"kind": "home-away", "home": [0.5, 0.5], "away": [0.5, 0.5], "popularity": [1.0, 1.0], "near": 1.0}
    told |= {name: [0.5] for name in ("leave", "back", "wander", "mix")}
    movement_from_description(told)
    with pytest.raises(InputError) as caught:
        movement_from_description(told | {field: value})
    assert caught.value.field in (field, "prior")


def test_a_fit_finds_the_rates_of_its_days(domain):
    seen = synthetic_days(domain, people=150, days=7, ticks=24, rng=5)
    model = fit_home_away(seen)
    home = seen.places[:, 0, 0]
    left = [((seen.places[:, :5, 8] != home[:, None]) & (seen.places[:, :5, 7] == home[:, None])).mean()]
    assert model.leave[8] == pytest.approx(left[0] * 5 / 7, abs=0.08)  # two days of seven are free
    assert model.leave[3] < 0.1 < model.back[19]
    assert nights(24).sum() == 6


@pytest.mark.parametrize("nats", [0.2, 1.0, 4.0])
def test_tables_cost_what_they_are_asked_for_at_most(domain, nats):
    certificate = Sampler(report_table(domain, nats, within=400.0)).certificate
    assert Fraction(0) < certificate.cost <= Fraction(nats)
    assert certificate.cost > 0.9 * nats


def test_a_table_for_a_state_is_no_worse_after_its_belief(domain):
    belief = np.exp(-np.arange(20) / 3.0)
    belief /= belief.sum()
    usual, own = report_table(domain, 0.6, within=400.0), state_table(domain, belief, 0.6, within=400.0)
    certificates = [Sampler(each).certificate for each in (usual, own)]
    assert certificates[0].unit_id == certificates[1].unit_id
    assert certificates[1].cost <= Fraction(0.6)
    constant = (domain.euclidean_to(domain) @ belief).min()
    losses = [loss_after(each, belief, domain) for each in (own, usual)]
    assert losses[0] < 0.99 * losses[1] < constant
    sharp = np.eye(20)[3]
    assert loss_after(state_table(domain, sharp, 0.6, within=400.0), sharp, domain) == pytest.approx(0, abs=ROUNDING)


def test_tables_on_earth_are_private_for_geodesic_distances(domain):
    area = Area.box(west=12.48, south=41.89, east=12.495, north=41.9).grid(cell=400.0, unit="m")
    level = Sampler(report_table(area, 1.0, within=400.0)).certificate.metric
    assert isinstance(level, Euclidean)
    assert area.plane is not None
    assert level.epsilon * 400 * (1 + area.plane.excess(area.max_radius)) <= 1
    assert level.epsilon * 400 == pytest.approx(1, rel=1e-6)


def test_split_never_exceeds_the_total():
    for total, count, first in ((3.0, 7, 1.0), (0.1, 3, 2.0), (30.0, 1, 5.0)):
        costs = split(total, count, first)
        assert sum(map(Fraction, costs)) <= Fraction(total)
        assert sum(costs) > total - count * 2**-24
    assert split(3.0, 2, 2.0) == (2.0, 1.0)


@pytest.mark.parametrize("rule", [PricedRule.clock((0.0, 9.0), (2.0, 4.0)), PricedRule.risk(300.0, (3.0, 1.5, 1.5))])
def test_a_simulated_session_is_a_session(setting, people, rule):
    """The reports that a real session of the same design draws, filtered by the simulation."""
    design = session_design(setting, rule)
    trace = people.places.reshape(8, -1)[0]
    state, steps, estimates = begin(design), [], []
    source = seeded_draws(design, 3)
    for tick, place in enumerate(trace):
        state = draw_report(design, plan_tick(design, state, tick), int(place), source)
        estimates.append(state.belief.estimate)
        steps.append(state.belief.error)
    drawn = {step.tick: (step.table, step.report) for step in state.transcript.steps}
    above, costs = rule.rule.thresholds(setting.ticks), [*rule.costs, 0.0]
    chain, belief = setting.exactly.filter, setting.exactly.beliefs(1)
    for tick in range(len(trace)):
        if tick % setting.ticks == 0:
            used = 0
        if tick:
            belief = chain.step(belief, tick)
        place, error = setting.estimate(chain.places(belief))
        cost = costs[used] if error[0] > above[tick % setting.ticks] else 0.0
        assert (cost > 0) == (tick in drawn)
        if tick in drawn:
            table, report = drawn[tick]
            assert float(design.charges[table]) == pytest.approx(cost, rel=1e-5)
            belief = chain.update(belief, design.likelihoods[table][:, report][None])
            place, error = setting.estimate(chain.places(belief))
            used += 1
        assert error[0] == pytest.approx(steps[tick], rel=SINGLE)
        assert setting.distances[place[0], estimates[tick]] <= SINGLE * 400
    assert design.worst("1d") <= sum(map(Fraction, rule.costs))


def test_exact_filter_of_a_setting_is_cached(domain, setting):
    fresh = Setting(domain=domain, model=setting.model, within=setting.within)
    assert not fresh.exact
    assert fresh.exactly.exact
    assert fresh.exactly is fresh.exactly
    assert fresh.exactly.mechanism(2.0) is fresh.mechanism(2.0)
    assert fresh.table(1.0) is fresh.exactly.table(1.0)
    assert type(fresh.exactly.filter) is not type(fresh.filter)


def test_rules_are_ranked_by_their_error(setting, people):
    """Simulated together they equal each rule alone."""
    traces, rules = (
        people.places.reshape(8, -1),
        [*clocks(setting, TOTAL), *risks(setting, TOTAL, firsts=(FIRST,))][::6],
    )
    order = rank_rules(setting, traces, rules, 5)
    alone = {
        rule: mean_error(setting, traces, sessions(setting, traces, [rule], np.random.default_rng(5))[0])
        for rule in rules
    }
    assert len(set(alone.values())) > 6
    assert [error for error, _ in order] == pytest.approx(sorted(alone.values()), rel=ROUNDING)
    assert [error for error, _ in order] == pytest.approx([alone[rule] for _, rule in order], rel=ROUNDING)


def test_everything_stays_within_its_total(setting, people):
    traces = people.places.reshape(8, -1)
    runs = {
        **script.contenders(setting, traces[:, :TICKS], TOTAL),
        "clock": lambda places, rng: sessions(setting, places, [PricedRule.clock((3.0, 12.0), split(TOTAL, 2))], rng)[
            0
        ],
        "risk": lambda places, rng: sessions(setting, places, [PricedRule.risk(400.0, split(TOTAL, 3))], rng)[0],
    }
    made = {name: run(traces, np.random.default_rng(0)) for name, run in runs.items()}
    errors = {name: mean_error(setting, traces, each) for name, each in made.items()}
    for name, each in made.items():
        spent = each.nats.reshape(8, 3, TICKS).sum(axis=2)
        assert spent.max() <= TOTAL * (1 + ROUNDING), name
        assert spent.max() > (0 if name != "one place" else -1), name
        assert errors[name] < errors["one place"] or name in ("one place", "every tick"), errors
    assert errors["  with the filter"] < errors["every tick"]
    assert max(errors["clock"], errors["risk"], errors["clock rule"], errors["risk rule"]) < errors["  with the filter"]


def test_a_remembered_place_has_one_report_a_day(setting, people):
    traces = people.places.reshape(8, -1)
    made = script.repeat_by_place(setting, TOTAL, TICKS, traces, np.random.default_rng(0))
    for day in range(3):
        here, told = (x[:, day * TICKS : (day + 1) * TICKS] for x in (traces, made.estimates))
        for person in range(8):
            for place in set(here[person]):
                assert len(set(told[person][here[person] == place])) == 1


def test_homes_are_found_if_reports_are_true(setting, people):
    traces = people.places.reshape(8, -1)
    truth = SimulatedRun(estimates=traces, nats=np.zeros(traces.shape))
    assert homes_found(setting, truth, people.homes) == {"mean": 1.0, "mode": 1.0}
    far = SimulatedRun(estimates=np.zeros_like(traces), nats=np.zeros(traces.shape))
    away = np.linalg.norm(people.homes - setting.domain.points[0], axis=1)
    assert homes_found(setting, far, people.homes)["mode"] == (away <= 400).mean()


@pytest.mark.exhaustive  # the command does the same
def test_a_proposal_is_a_design_for_its_limit(domain):
    told = []
    found = propose(domain, ticks=6, limit=TOTAL, within=400.0, people=3, on_progress=told.append)
    assert isinstance(found.design, SessionDesign)
    assert isinstance(found.design.rule, Clock | Risk)
    assert 0.9 * TOTAL < found.design.worst("1d") <= TOTAL
    assert len(told) == len(found.points) == 5
    assert found.point_at_limit.nats == 14 * TOTAL
    assert found.point_at_limit.error < found.constant
    errors = [point.error for point in found.points]
    assert errors[0] > errors[-1]


@pytest.mark.parametrize(
    ("field", "value", "error"), [("limit", 0.0, InputError), ("within", -1.0, InputError), ("ticks", 0, InputError)]
)
def test_proposals_for_nothing_are_refused(domain, field, value, error):
    with pytest.raises(error) as caught:
        propose(domain, **{"ticks": 4, "limit": 1.0, "within": 400.0} | {field: value})
    assert caught.value.field == field


def test_too_many_places_are_refused():
    with pytest.raises(SizeError):
        propose(Domain.grid((21, 20), cell=1.0, unit="m"), ticks=4, limit=1.0, within=1.0)


@pytest.mark.parametrize("ticks", [3])
@pytest.mark.parametrize("window", few_by_default(["1d", "2d", "24h", 2, 7], "2d", "24h"))
def test_the_worst_of_ordered_reports_is_that_of_all_transcripts(ticks, window):
    """Second route: all sets of ticks with at most two a day, over four days, the k-th of a day costing amounts[k]."""
    amounts, asked = [Fraction(3), Fraction(1)], Window.of(window, ticks)
    worst = Fraction(0)
    for days in np.ndindex(*(2**ticks,) * 3):
        paid = np.zeros(3 * ticks, object)
        for day, mask in enumerate(days):
            on = [t for t in range(ticks) if mask >> t & 1][:2]
            for k, t in enumerate(on):
                paid[day * ticks + t] = amounts[k]
        starts = range(0, 3 * ticks, asked.length) if asked.calendar else range(3 * ticks)
        worst = max(worst, *(sum(paid[s : s + asked.length], Fraction(0)) for s in starts))
    bound = ordered_worst(amounts, Window.of("1d", ticks), asked)
    assert worst <= bound
    assert worst == bound or not asked.calendar


def test_numbers_name_a_table_for_each_report():
    for wrong in (
        {"table_numbers": (0,)},
        {"table_numbers": (0, 0), "table_thresholds": (3.0,)},
        {"table_numbers": (0, 0), "window": "24h"},
    ):
        with pytest.raises(InputError) as caught:
            Risk(threshold=1.0, max_reports=2, **wrong)
        assert caught.value.field == "table_numbers"
    rule = Risk(threshold=1.0, max_reports=2, table_numbers=(1, 0))
    assert (rule.tables(), Risk.from_description(rule.describe())) == (2, rule)
