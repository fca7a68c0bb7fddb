"""A day of reports at one certified total: how far off sessions and their rivals are, and whether homes are found.

python scripts/day_of_reports.py [--full] [--ticks 50] [--totals 3 10 30] [--seeds 3] [--kept] [--late 0] [--states]

Synthetic people on 12 x 12 cells of 200 m (utility/traces/walks.py). The model is fitted, and parameters are chosen, on
other people than those measured; all tables are certified. Totals are nats per 200 m and day. Days are those of
strangers; with --kept sessions last 14 days, with the rules chosen for one, and homes are attacked. --states: what a
table designed for each belief gains. The default is a short run of one seed; --full has three seeds of 30 people for 14
days, and 10, 50 and 200 ticks a day.
"""

import argparse
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import mechdesign as md
from mechdesign.output.terminal.printing import print_table
from mechdesign.utility.traces import choose, rivals
from mechdesign.utility.traces.attack import homes_found
from mechdesign.utility.traces.fit import fit_home_away
from mechdesign.utility.traces.sessions import moved_sessions, sessions
from mechdesign.utility.traces.setting import Setting, draw
from mechdesign.utility.traces.tables import loss_after, state_table
from mechdesign.utility.traces.walks import walks

PUBLIC, OTHERS = 1_000, 1_001  # seeds of the people that the model and the parameters come from
WITHIN = 200.0  # m


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many people, and of them days, the model, the choice and the measurement take."""

    public: int = 200
    others: int = 12
    people: int = 10
    days: int = 7
    seeds: int = 1


def contenders(setting, other, total, at):  # type: ignore[no-untyped-def]
    """Name -> (places, rng) -> Released in the setting `at`, with the parameters that are best for other people."""
    predicting = choose.choose_predictive(setting, other, total, 1).rule
    count = choose.choose_remembered(setting, other, total, 1).rule
    run = {
        "constant": lambda places, rng: rivals.constant(at, places),
        "independent": lambda places, rng: rivals.independent(at, places, total, rng),
        "  with static remap": lambda places, rng: rivals.independent(at, places, total, rng, remap=True),
        "  with the filter": lambda places, rng: rivals.filtered(at, places, total, rng),
        "predictive (2014)": lambda places, rng: rivals.predictive(at, places, total, predicting, rng),
        "remembered (other claim)": lambda places, rng: rivals.remembered(at, places, total, count, rng),
    }
    for name, chosen, simulate in (
        ("moved-test", choose.choose_moved, moved_sessions),
        ("clock rule", choose.choose_clock, sessions),
        ("risk rule", choose.choose_risk, sessions),
    ):
        rule = chosen(setting, other, total, 1).rule
        print(f"  {total:g} nats, {name}: {rule}")
        run[name] = partial(lambda simulate, rule, places, rng: simulate(at, places, rule, rng), simulate, rule)
    return run


def measured(ticks, totals, sizes, *, kept, late):  # type: ignore[no-untyped-def]
    """The errors of every seed and the shares of homes found, by name and total."""
    domain = md.Domain.grid((12, 12), cell=200.0, unit="m")
    model = fit_home_away(walks(domain, people=sizes.public, days=14, ticks=ticks, seed=PUBLIC))
    setting = Setting(domain=domain, model=model, within=WITHIN)
    other = walks(domain, people=sizes.others, days=7, ticks=ticks, seed=OTHERS).places.reshape(-1, ticks)
    rows, homes = {}, {}
    for total in totals:
        for name, run in contenders(setting, other, total, replace(setting, exact=kept)).items():
            errors, found = [], []
            for seed in range(1, sizes.seeds + 1):
                seen = walks(domain, people=sizes.people, days=sizes.days, ticks=ticks, seed=seed, late=late)
                traces = seen.places.reshape(sizes.people if kept else -1, sizes.days * ticks if kept else ticks)
                made = run(traces, np.random.default_rng([seed, int(total)]))
                assert made.spent.max() <= total * (1 + 1e-9), name
                errors.append(choose.mean_error(setting, traces, made))
                found.append(max(homes_found(setting, made, seen.homes).values()) if kept else 0.0)
            rows.setdefault(name, []).append(errors)
            homes.setdefault(name, []).append(found)
    return rows, homes


def states(beliefs=6):  # type: ignore[no-untyped-def]
    """Rows of a table: nats, then for some beliefs of sessions what a table for each gains over one for all, in %."""
    domain = md.Domain.grid((6, 6), cell=200.0, unit="m")
    model = fit_home_away(walks(domain, people=200, days=14, ticks=50, seed=PUBLIC))
    setting = Setting(domain=domain, model=model, within=WITHIN)
    traces = walks(domain, people=beliefs, days=1, ticks=50, seed=OTHERS).places[:, 0]
    rng, belief = np.random.default_rng(0), setting.beliefs(beliefs)
    for tick in range(20):
        if tick:
            belief.step(tick)
        if tick in (0, 10):
            belief.see(setting.table(0.5)[:, draw(setting.table(0.5), traces[:, tick], rng)].T, np.arange(beliefs))
    rows = []
    for nats in (0.3, 0.5, 1.0, 1.5):
        usual = setting.mechanism(nats)
        losses = [
            (loss_after(usual, each, domain), loss_after(state_table(domain, each, nats, within=WITHIN), each, domain))
            for each in belief.places()
        ]
        gains = [100 * (1 - own / other) for other, own in losses]
        rows.append([f"{nats:g}", *(f"{x:.0f}" for x in np.mean(losses, axis=0)), f"{np.mean(gains):.1f} %"])
    return rows


def main() -> None:
    """Choose, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="three seeds, 30 people, 14 days; 10, 50 and 200 ticks")
    parser.add_argument("--ticks", type=int, nargs="+")
    parser.add_argument("--totals", type=float, nargs="+", default=[3.0, 10.0, 30.0])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--kept", action="store_true", help="one filter for all days, and attacks on homes")
    parser.add_argument("--late", type=float, default=0.0, help="minutes that departures are off from the model's")
    parser.add_argument("--states", action="store_true", help="what a table designed for each belief gains instead")
    given = parser.parse_args()
    if given.states:
        print_table(["nats within 200 m", "one table, m", "one for each belief, m", "gain"], states())
        return
    sizes = (
        Sizes(others=60, people=30, days=14, seeds=given.seeds or 3) if given.full else Sizes(seeds=given.seeds or 1)
    )
    for ticks in given.ticks or ([10, 50, 200] if given.full else [50]):
        started = time.process_time()
        print(f"{ticks} ticks a day, {sizes.seeds} x {sizes.people} people, {sizes.days} days")
        rows, homes = measured(ticks, given.totals, sizes, kept=given.kept, late=given.late)
        head = ["mean error, m", *(f"{total:g} nats" for total in given.totals)]
        print_table(head, [[name, *map(_said, errors)] for name, errors in rows.items()])
        if given.kept:
            head = [f"homes within {WITHIN:g} m", *head[1:]]
            print_table(head, [[name, *(f"{np.mean(each):.0%}" for each in found)] for name, found in homes.items()])
        print(f"{time.process_time() - started:.0f} CPU seconds")


def _said(errors: list[float]) -> str:
    each = " ".join(f"{error:.0f}" for error in errors)
    return f"{np.mean(errors):.0f}" if len(errors) == 1 else f"{np.mean(errors):.0f} ({each})"


if __name__ == "__main__":
    main()
