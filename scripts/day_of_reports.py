"""Mean errors of sessions and of their baselines over a day, all at one certified total.

python scripts/day_of_reports.py [--full] [--ticks 50] [--totals 3 10 30] [--seeds 3] [--late 0] [--states]

Synthetic people on 12 x 12 cells of 200 m (sessions/study/synthetic.py), one session a day. The model and the
parameters are fitted to other people than those measured. All tables are certified. Totals are nats per 200 m and day.
--late: minutes by which departures differ from the model's. --states: the gain of one table per belief. The default is
a short run of one seed; --full has three seeds of 30 people for 14 days.

* one place: the best place under the prior, without any report; costs nothing.
* every tick: one report per tick, each at a T-th of the total (T ticks a day).
* remapped: each report is replaced by the place of smallest expected distance given that report alone.
* with the filter: the estimates of a session.
* predictive: a test with fresh Laplace noise at every tick decides whether the last report is still near. If not, a new
  report is drawn, and remapped as above. When the rest of the total is too small, the last report stays. Source:
  K. Chatzikokolakis, C. Palamidessi, M. Stronati, "A predictive differentially-private mechanism for mobility traces",
  PETS 2014.
* remembered: a place that was reported that day gets the same report again, at no cost. Its total is a claim about
  traces with the same pattern of equal places only.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.sessions.study.setting import Setting, SimulatedRun, draw
from mechdesign.sessions.study.simulated import (
    COUNTS,
    FIRST,
    PricedRule,
    clocks,
    even_hours,
    mean_error,
    rank_rules,
    risks,
    sessions,
    split,
)

PUBLIC, OTHERS = 1_000, 1_001  # seeds of the people to whom the model and the parameters are fitted
WITHIN = 200.0  # m
Run = Callable[[NDArray[np.int64], np.random.Generator], SimulatedRun]


def one_place(setting: Setting, places: NDArray[np.int64], rng: np.random.Generator) -> SimulatedRun:
    """The best place without any report."""
    return SimulatedRun(estimates=np.full(places.shape, setting.constant), nats=np.zeros(places.shape))


def every_tick(
    setting: Setting, total: float, remap: bool, places: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedRun:
    """One report per tick, of total / T nats each."""
    cost = total / setting.ticks
    reports = draw(setting.table(cost)[places.ravel()], rng.random(places.size)).reshape(places.shape)
    return SimulatedRun(
        estimates=targets(setting, cost)[reports] if remap else reports, nats=np.full(places.shape, cost)
    )


def predictive(
    setting: Setting,
    total: float,
    above: float,
    check: float,
    cost: float,
    places: NDArray[np.int64],
    rng: np.random.Generator,
) -> SimulatedRun:
    """Tests of `check` nats (is the last report farther than `above` m?) and reports of `cost` nats."""
    people = len(places)
    last, remaining = np.full(people, setting.constant), np.full(people, total)
    estimates, nats = np.zeros_like(places), np.zeros(places.shape)
    table, best = setting.table(cost), targets(setting, cost)
    for tick, here in enumerate(places.T):
        if tick % setting.ticks == 0:
            remaining[:] = total
        is_tested = remaining >= check + cost
        is_far = setting.distances[here, last] > above + rng.laplace(scale=setting.within / check, size=people)
        fresh = is_tested & is_far
        if fresh.any():
            last[fresh] = best[draw(table[here[fresh]], rng.random(fresh.sum()))]
        nats[:, tick] = is_tested * check + fresh * cost
        remaining -= nats[:, tick]
        estimates[:, tick] = last
    return SimulatedRun(estimates=estimates, nats=nats)


def repeat_by_place(
    setting: Setting, total: float, count: int, places: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedRun:
    """Reports of total / count nats for the first `count` places of every day; then the last report again."""
    everyone, cost = np.arange(len(places)), total / count
    drawn = targets(setting, cost)[draw(setting.table(cost)[places.ravel()], rng.random(places.size))].reshape(
        places.shape
    )
    answer, used = np.full((len(places), setting.domain.size), -1), np.zeros(len(places), np.int64)
    last = np.full(len(places), setting.constant)
    estimates, nats = np.zeros_like(places), np.zeros(places.shape)
    for tick, here in enumerate(places.T):
        if tick % setting.ticks == 0:
            answer[:], used[:] = -1, 0
        fresh = (answer[everyone, here] < 0) & (used < count)
        answer[everyone[fresh], here[fresh]] = drawn[fresh, tick]
        used += fresh
        last = np.where(answer[everyone, here] >= 0, answer[everyone, here], last)
        estimates[:, tick], nats[:, tick] = last, fresh * cost
    return SimulatedRun(estimates=estimates, nats=nats)


def targets(setting: Setting, cost: float) -> NDArray[np.int64]:
    """For every report the place of smallest expected distance, if people are away from home as in the model."""
    joint = np.asarray(setting.model.away)[:, None] * setting.table(cost)
    return (setting.distances @ joint).argmin(axis=0)


def best(setting: Setting, places: NDArray[np.int64], runs: Iterable[Run]) -> Run:
    """The run of smallest error for these traces; all have the same random numbers."""
    return min(runs, key=lambda run: mean_error(setting, places, run(places, np.random.default_rng(1))))


def contenders(setting: Setting, other: NDArray[np.int64], total: float) -> dict[str, Run]:
    """The mechanisms by name, with the parameters that are best for other people."""
    ticks, unit = setting.ticks, setting.constant_error
    tests = [
        partial(predictive, setting, total, far * unit, share * total / tests, (1 - share) * total / count)
        for count in (1, 2, 3, 4, 6)
        for share in (0.1, 0.3, 0.6)
        for tests in sorted({ticks, min(4 * count, ticks)})
        for far in (0.0, 0.35, 0.9)
    ]
    clock = rank_rules(setting, other, clocks(setting, total), 1)[0][1]
    coarse = rank_rules(setting, other, risks(setting, total), 1)[0]
    count, share = len(coarse[1].costs), coarse[1].rule.threshold / unit
    near = {"counts": (count - 1, count, count + 1), "shares": (share - 0.05, share, share + 0.05)}
    finer = rank_rules(setting, other, risks(setting, total, **near, firsts=(1.0, FIRST)), 1)[0]
    risk = min(coarse, finer, key=lambda pair: pair[0])[1]
    print(f"  {total:g} nats: {clock}, {risk}")
    always = PricedRule.clock(even_hours(ticks), split(total, ticks))
    return {
        "one place": partial(one_place, setting),
        "every tick": partial(every_tick, setting, total, False),
        "  remapped": partial(every_tick, setting, total, True),
        "  with the filter": lambda places, rng: sessions(setting, places, [always], rng)[0],
        "predictive (2014)": best(setting, other, tests),
        "clock rule": lambda places, rng: sessions(setting, places, [clock], rng)[0],
        "risk rule": lambda places, rng: sessions(setting, places, [risk], rng)[0],
        "remembered (other claim)": best(setting, other, (partial(repeat_by_place, setting, total, k) for k in COUNTS)),
    }


def measure(options: argparse.Namespace, ticks: int) -> Iterator[tuple[float, str, int, float]]:
    """Yield total in nats, name, seed and mean error in m."""
    others, people, days = (60, 30, 14) if options.full else (12, 10, 7)
    domain = md.Domain.grid((12, 12), cell=200.0, unit="m")
    synthetic_days = partial(md.sessions.synthetic_days, domain, ticks=ticks)
    model = md.sessions.fit_home_away(synthetic_days(people=200, days=14, rng=PUBLIC))
    setting = Setting(domain=domain, model=model, within=WITHIN)
    other = synthetic_days(people=others, days=7, rng=OTHERS).places.reshape(-1, ticks)
    for total in options.totals:
        for name, run in contenders(setting, other, total).items():
            for seed in range(1, (options.seeds or (3 if options.full else 1)) + 1):
                places = synthetic_days(people=people, days=days, rng=seed, late=options.late).places.reshape(-1, ticks)
                released = run(places, np.random.default_rng([seed, int(total)]))
                assert released.nats.sum(axis=1).max() <= total * (1 + 1e-9), name
                yield total, name, seed, mean_error(setting, places, released)


def states(beliefs: int = 6) -> Iterator[tuple[float, float, float, float]]:
    """Yield for each nats and belief: the error in m of one table for all beliefs, of one per belief, the gain in %."""
    domain = md.Domain.grid((6, 6), cell=200.0, unit="m")
    model = md.sessions.fit_home_away(md.sessions.synthetic_days(domain, people=200, days=14, ticks=50, rng=PUBLIC))
    setting = Setting(domain=domain, model=model, within=WITHIN)
    traces = md.sessions.synthetic_days(domain, people=beliefs, days=1, ticks=50, rng=OTHERS).places[:, 0]
    rng, chain, belief = np.random.default_rng(0), setting.filter, setting.beliefs(beliefs)
    for tick in range(20):
        if tick:
            belief = chain.step(belief, tick)
        if tick in (0, 10):
            table = setting.table(0.5)
            belief = chain.update(belief, table[:, draw(table[traces[:, tick]], rng.random(beliefs))].T)
    for nats, places in product((0.3, 0.5, 1.0, 1.5), chain.places(belief)):
        tables = setting.mechanism(nats), md.sessions.state_table(domain, places, nats, within=WITHIN)
        common, specific = (md.sessions.loss_after(table, places, domain) for table in tables)
        yield nats, common, specific, 100 * (1 - specific / common)


def main() -> None:
    """Choose parameters, measure and print the mean errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--ticks", type=int, nargs="+", default=[50])
    parser.add_argument("--totals", type=float, nargs="+", default=[3.0, 10.0, 30.0])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--late", type=float, default=0.0)
    parser.add_argument("--states", action="store_true")
    options = parser.parse_args()
    if options.states:
        table = pd.DataFrame(states(), columns=["nats", "one table, m", "one per belief, m", "gain, %"])
        print(table.groupby("nats").mean().to_string(float_format="{:.1f}".format))
        return
    for ticks in options.ticks:
        started = time.process_time()
        table = pd.DataFrame(measure(options, ticks), columns=["nats", "mechanism", "seed", "error"])
        means = table.pivot_table(index="mechanism", columns=["nats", "seed"], values="error", sort=False)
        print(f"mean error, m, {ticks} ticks a day\n{means.to_string(float_format='{:.0f}'.format)}")
        print(means.T.groupby(level="nats").mean().T.to_string(float_format="{:.0f}".format))
        print(f"{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
