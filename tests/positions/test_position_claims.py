"""Claims about positions: true of random pairs, in exact fractions; stated, proved and refused; exact draws."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from fixtures.file_parts import plain
from fixtures.forged_files import rewritten
from fixtures.integer_oracles import are_rows
from fixtures.position_mechanisms import HOLES, PLANE, SIDES, domain_of, masses_at, metric_of, position_mechanism
from fixtures.rows import few_by_default
from reference.checking import ROW_SUM
from reference.positions import position_untruths
from reference.reading import File, Unreadable
from scipy.stats import chi2

import mechdesign as md
from mechdesign.base.threads import source
from mechdesign.errors import InputError, MechdesignError, UnsuitableError, VerificationError
from mechdesign.positions.levels import CORNERS, corner_levels, level_faults
from mechdesign.positions.patches import AROUND, HALF, Patches, patches, step_weights
from mechdesign.positions.repair import repair, rounded_rows

NAMES = pytest.mark.parametrize("name", SIDES)
PAIRS, MANY = 100, 200_000  # of every case
GRAIN = 1 << 20  # positions are multiples of 2^-20 of a cell


def random_pairs(rng, domain, count):
    """Positions as (cell, share) in fractions: near, far, across a side, at corners, at the border; of straight paths
    inside the cells.
    """
    lookup, found = domain.lookup, []
    while len(found) < count:
        cell = int(rng.integers(domain.size))
        share = rng.integers(-GRAIN // 2, GRAIN // 2 + 1, 2)
        kind = rng.integers(4)
        if kind == 1:  # beside a side or a corner, or on it
            share = np.where(rng.random(2) < 0.7, np.sign(share) * (GRAIN // 2 - rng.integers(0, 3, 2)), share)
        start = domain.index[cell] * GRAIN + GRAIN // 2 + share
        move = rng.normal(size=2) * GRAIN * (10.0 ** rng.uniform(-5, -1) if kind < 3 else 2.0)
        end = start + np.round(move).astype(np.int64)
        if (end < 0).any() or (end > np.array(domain.shape) * GRAIN).any():
            continue
        if domain.size < lookup.size:
            way = (start + (end - start) * np.linspace(0, 1, 60)[:, None]) // GRAIN
            if lookup[tuple(np.clip(way, 0, np.array(domain.shape) - 1).astype(int).T)].min() < 0:
                continue
        at = np.minimum(end // GRAIN, np.array(domain.shape) - 1)
        if lookup[tuple(at)] >= 0:
            other = end - at * GRAIN - GRAIN // 2
            found.append(((cell, share.tolist()), (int(lookup[tuple(at)]), other.tolist()), (end - start).tolist()))
    return found


def longest(metric, domain, cell, share, move):
    """The integral of eps along the segment, in nats, from above."""
    side = domain.cell[0]
    if isinstance(metric, md.Euclidean):
        return metric.epsilon * math.hypot(*move) / GRAIN * side * (1 + 1e-12)
    start = np.asarray(domain.origin) + (domain.index[cell] + 0.5 + np.array(share) / GRAIN) * side
    step = np.array(move) / GRAIN * side
    return float(metric.level.line_integrals(start[None], (start + step)[None])[0]) * (1 + 1e-12) + 1e-15


def worst_share(name, pairs, rows=None):
    """The largest log-ratio over the claim, and how many pairs exceed it; of the spline, or of `rows` of cells."""
    mechanism, domain, metric = position_mechanism(name), domain_of(name), metric_of(name)
    mass, found = mechanism["mass"].values.tolist(), md.Sampler(mechanism).certificate.positions
    worst, over = 0.0, 0
    for (cell, share), (other, there), move in pairs:
        d = longest(metric, domain, cell, share, move)
        if rows is None:
            first, second = masses_at(mass, found, cell, share, GRAIN), masses_at(mass, found, other, there, GRAIN)
        else:
            first, second = rows[cell], rows[other]
        ratio = max(abs(a - b) / min(a, b) for a, b in zip(first, second, strict=True))
        rise = math.log1p(ratio)  # of integers, divided once
        worst = max(worst, rise / d if d else (math.inf if ratio > 0 else 0.0))
        over += rise > d
    return worst, over


@pytest.mark.parametrize("name", few_by_default(SIDES, "holes", "levels", "quarters"))
@pytest.mark.usefixtures("coarse_any_bound")
@pytest.mark.obligation("position-gradients")
def test_claim_holds_for_pairs_of_positions(name):
    pairs = random_pairs(np.random.default_rng(0), domain_of(name), PAIRS)
    worst, over = worst_share(name, pairs)
    assert over == 0
    assert 0.5 < worst <= 1
    snapped_worst, snapped_over = worst_share(name, pairs, rows=position_mechanism(name)["mass"].values.tolist())
    assert snapped_worst > 5
    assert snapped_over > PAIRS / 20


@pytest.mark.exhaustive
@NAMES
def test_claim_holds_for_a_million_positions(name):
    worst, over = worst_share(name, random_pairs(np.random.default_rng(1), domain_of(name), MANY))
    assert over == 0
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("name", few_by_default(SIDES, "holes", "quarters", "land"))
def test_position_mechanism_round_trips(name, tmp_path):
    mechanism = position_mechanism(name)
    checked = md.verify(mechanism)
    assert checked.certified
    assert checked.position_breaches == 0
    assert checked.position_claim == mechanism.attrs["position_claim"]
    path = md.save(mechanism, tmp_path / "placed.nc")
    assert md.verify(path).position_claim == checked.position_claim
    plain = name in ("square", "plane", "land")
    assert ("the Euclidean distance" in checked.position_claim) == plain
    assert ("along paths inside" in checked.position_claim) == (name in ("levels", "quarters"))
    assert ("the length of the shortest path inside" in checked.position_claim) == (name == "holes")


def test_second_verifier_checks_quarter_levels():
    mechanism = position_mechanism("quarters")

    def faults(alter):
        file = plain(mechanism)
        alter(file["variables"])
        return position_untruths(File(**file), mechanism.attrs["position_claim"])

    assert list(faults(lambda file: None)) == []
    assert "too steep" in next(faults(lambda file: file["mass"]["values"][7].reverse()))
    with pytest.raises(Unreadable, match="exceed eps"):
        list(faults(lambda file: file["quarter_level"]["values"][3].__setitem__(9, 2.0)))


def one_row(file):
    file["around_row"].values[0, 0] = 1 + file["around_row"].values[0, 0]


def levels_of(file):
    return file["quarter_level" if "quarter_level" in file else "corner_level"].values


def one_level(file):
    levels_of(file)[3, 2] *= 1.0001


def lower_level(file):
    levels_of(file)[3, 2] *= 0.9


def no_level(file):
    levels_of(file)[3, 2] = math.nan


def other_unit(file):
    file["quarter_level" if "quarter_level" in file else "corner_level"].attrs["units"] = "nats per m"


def both_levels(file):
    file["corner_level"] = (("secret", "corner"), levels_of(file)[:, :4].copy(), {"units": "nats per km"})
    file["quarter_level"] = (("secret", "quarter_corner"), np.tile(levels_of(file)[:, :4], 4), {"units": "nats per km"})


def one_mass(file):
    row = file["mass"].values[7]
    row[7] += row[6] // np.uint64(2)
    row[6] -= row[6] // np.uint64(2)


def rule(file):
    file.attrs["position_rule"] = file.attrs["position_rule"].replace("3 x 3", "2 x 2")


def sentence(file):
    file.attrs["position_claim"] = file.attrs["position_claim"].replace("2^-16", "2^-15")


def half_of_it(file):
    del file.attrs["position_claim"]


ALTERED = [one_row, one_level, lower_level, no_level, other_unit, both_levels, one_mass, rule, sentence, half_of_it]


@pytest.mark.parametrize("alter", ALTERED)
@pytest.mark.parametrize("name", few_by_default(["levels", "quarters", "holes"], "quarters"))
@pytest.mark.obligation("position-levels")
def test_altered_position_claim_is_refused(name, alter):
    file = position_mechanism(name).copy(deep=True)
    alter(file)
    file = rewritten(file)
    with pytest.raises(VerificationError):
        md.Sampler(file)
    with contextlib.suppress(VerificationError):
        assert not md.verify(file).certified


@pytest.mark.obligation("position-levels")
def test_outside_cells_use_first_neighbour_row():
    domain = domain_of("holes")
    found = patches(domain, metric_of("holes"))
    index = {tuple(cell): u for u, cell in enumerate(domain.index.tolist())}
    for u, (x, y) in enumerate(domain.index.tolist()):
        for row, (i, j) in zip(found.around[u].tolist(), AROUND, strict=True):
            near = [
                (abs(a) + abs(b), index[x + i + a, y + j + b]) for a, b in AROUND if (x + i + a, y + j + b) in index
            ]
            assert row == min(near)[1]
    full = patches(domain_of("square"), metric_of("square"))
    clamped = np.clip(domain_of("square").index[:, None] + np.array(AROUND), 0, 4)
    assert (full.around == clamped[..., 0] * 5 + clamped[..., 1]).all()


@pytest.mark.obligation("position-levels")
def test_corner_levels_are_tight_lower_bounds():
    domain, metric = domain_of("levels"), 0.7 * metric_of("levels")
    levels = corner_levels(domain, metric)
    assert level_faults(domain, metric, levels) == []
    nodes, rng = metric.level.raster, np.random.default_rng(0)
    touched = 0
    for cell, corner_level in zip(domain.index.tolist(), levels, strict=True):
        shares = np.vstack([rng.random((40, 2)), CORNERS, np.round(rng.random((20, 2)))])
        low = np.asarray(domain.origin) + np.array(cell) * domain.cell[0]
        for axis, lines in enumerate(nodes.axes):  # at node lines the raster bends
            crossing = (lines - low[axis]) / domain.cell[0]
            crossing = crossing[(crossing > 0) & (crossing < 1)]
            ends = np.tile([[0.0, 0.0], [1.0, 1.0]], (len(crossing), 1))
            ends[:, axis] = np.repeat(crossing, 2)
            shares = np.vstack([shares, ends])
        s, t = shares.T
        below = (1 - s) * ((1 - t) * corner_level[0] + t * corner_level[1]) + s * (
            (1 - t) * corner_level[2] + t * corner_level[3]
        )
        eps = metric.level.at(low + shares * domain.cell[0]) * metric.scale
        assert (below <= eps).all()
        touched += (below > eps * (1 - 1e-6)).any()
    assert touched > domain.size / 2  # elsewhere where two node lines cross
    assert level_faults(domain, metric, levels * (1 + 1e-7)) != []
    assert level_faults(domain, metric, levels[:-1]) != []
    flat = md.Euclidean(epsilon=0.3, unit="km")
    assert level_faults(domain, flat, np.full((25, 4), 0.3)) == []
    assert level_faults(domain, flat, np.full((25, 4), math.nextafter(0.3, 1))) != []


@pytest.mark.parametrize(
    ("domain", "metric"),
    [
        (md.Domain.grid((3, 3), cell=(1.0, 2.0), unit="km"), md.Euclidean(epsilon=1.0, unit="km")),
        (md.Domain.grid(5, cell=1.0, unit="km"), md.Euclidean(epsilon=1.0, unit="km")),
        (md.Domain.points_at([[0, 0], [1, 1]], unit="km"), md.Euclidean(epsilon=1.0, unit="km")),
        (md.Domain.grid((3, 3), cell=1.0, unit="km"), md.Discrete(epsilon=1.0)),
        (
            md.Domain.grid((3, 3), cell=1e-3, unit="km", origin=1e6),
            md.Eikonal(
                level=md.PrivacyLevel.from_values(md.Domain.grid((2, 2), cell=9e5, unit="km"), [[1, 2], [3, 4]])
            ),
        ),
    ],
)
def test_unsuitable_domains_are_refused(domain, metric):
    with pytest.raises(UnsuitableError):
        patches(domain, metric)


def test_repair_removes_breaches_with_small_change():
    domain, metric = domain_of("square"), metric_of("square")
    found, rng = patches(domain, metric), np.random.default_rng(0)
    good = position_mechanism("square")["mass"].values / float(ROW_SUM)
    assert np.abs(repair(good, found) / float(ROW_SUM) - good).max() < 1e-11
    for rows in (rng.dirichlet(np.ones(25), 25), np.eye(25), good * rng.uniform(0.8, 1.2, good.shape)):
        mass = repair(rows, found)
        assert are_rows(mass)
        assert found.breaches(mass) == 0
        assert found.breaches(rounded_rows(rows / rows.sum(axis=1, keepdims=True))) > 0
    with pytest.raises(InputError, match="table"):
        repair(good[:3], found)


@pytest.mark.obligation("position-draws")
def test_step_weights_follow_spline():
    points = np.array([[-HALF, HALF], [0, 1], [-12345, 29491]])
    weights = step_weights(points)
    assert (weights.sum(axis=-1) == 2**33).all()
    s = points / (2 * HALF)
    expected = np.stack([(0.5 - s) ** 2 / 2, 0.75 - s**2, (0.5 + s) ** 2 / 2], axis=-1)
    assert np.allclose(weights / 2**33, expected, rtol=1e-15)
    ends = np.cumsum(weights, axis=-1)
    # Both ends of the middle step, on both axes: the integer before an end and the end itself.
    borders = ends[1, :, :2].T
    words = np.concatenate([[[0, 2**33 - 1]], borders - 1, borders, [[2**32, 1 << 20]]])
    drawn_at = [1] * 5 + [2]
    bits = (words.astype(np.uint64) << np.uint64(31)).tobytes()
    steps = Patches.draw_steps(points[drawn_at], lambda _: bits)
    by_hand = [
        3 * int((ends[k][0] <= a).sum()) + int((ends[k][1] <= b).sum())
        for k, (a, b) in zip(drawn_at, words.tolist(), strict=True)
    ]
    assert steps.tolist() == by_hand


def test_positions_are_rounded_inside_their_cell():
    domain, rng = domain_of("holes"), np.random.default_rng(0)
    cells = rng.integers(domain.size, size=200)
    at = domain.points[cells] + rng.uniform(-1, 1, (200, 2)) * (1 - 1e-9)
    found, points = Patches.snap(domain, at)
    assert (found == cells).all()
    assert (np.abs(points) <= HALF).all()
    back = domain.points[found] + points * domain.cell[0] / (2 * HALF)
    assert (np.abs(back - at) <= domain.cell[0] * 2.0**-17 * (1 + 1e-6)).all()


def test_rows_private_only_between_cells_are_refused():
    """The optimum of the rows, as steep between two cells as they may be."""
    mechanism = position_mechanism("square")
    domain, rows = domain_of("square"), mechanism.attrs["scale"] * metric_of("square")
    loss = md.losses.LOSSES[mechanism.attrs["loss"]]
    mass = md.solve(md.DesignProblem(domain, rows, mechanism["prior"].values, loss), gap=0.01)["mass"]
    found = md.verify(rewritten(mechanism, mass=mechanism["mass"].copy(data=mass.values)))
    assert not found.certified
    assert found.violations == 0
    assert found.position_breaches > 0
    assert f"mass: {found.position_breaches} (cell, report) pairs break the claim about positions" in found.reasons


@pytest.mark.obligation("position-draws")
def test_steps_and_reports_use_separate_bits(monkeypatch):
    seeds = []
    monkeypatch.setattr("mechdesign.mechanism.sampler.source", lambda rng: seeds.append(rng) or source(rng))
    md.sample(position_mechanism("holes"), at=domain_of("holes").points[[3]], size=2, rng=5)
    assert (seeds[0], len(set(seeds))) == (5, 2)


@pytest.mark.obligation("position-draws")
def test_reports_have_spline_probabilities():
    mechanism, size = position_mechanism("holes"), 8_000
    found, mass = md.Sampler(mechanism).certificate.positions, mechanism["mass"].values
    at = domain_of("holes").points[[3, 9]] + [[0.9, -0.4], [0.0, 0.0]]
    drawn = md.sample(mechanism, at=at, size=size, rng=5)
    assert drawn.secret_x.values.tolist() == at[:, 0].tolist()
    again = md.sample(mechanism, [3, 9], size, rng=5)
    assert (again.values[1] == drawn.values[1]).all()  # a secret is drawn at its centre
    cells, points = Patches.snap(domain_of("holes"), at)
    for k in range(2):
        weights = np.outer(*(step_weights(points[k]) / 2.0**33)).ravel()
        expected = weights @ (mass[found.around[cells[k]]] / float(ROW_SUM))
        counts = np.bincount(drawn.values[k], minlength=len(expected))
        deviation = ((counts - size * expected) ** 2 / (size * expected)).sum()
        assert chi2.sf(deviation, len(expected) - 1) > 1e-4  # the bits are fixed
    assert md.Sampler(mechanism).place(at=at[0]) == (cells[0], tuple(points[0]))
    assert int(md.Sampler(mechanism).report(at=at[0])) in range(mass.shape[1])
    assert md.Sampler(mechanism).report(3).attrs["claim"] == mechanism.attrs["position_claim"]


@pytest.mark.parametrize(
    "at", [[math.nan, 2.0], [99.0, 2.0], [2.0, 4.0], [1.0], [[1.0, 2.0, 3.0]], "here", [[1.0, 2.0], [3.0]], []]
)
def test_invalid_positions_are_refused(at):
    with pytest.raises(InputError, match="at"):
        md.sample(position_mechanism("holes"), at=at)


def test_degrees_match_plane_across_antimeridian(tmp_path, run_json):
    mechanism, domain = position_mechanism("plane"), domain_of("plane")
    file = md.save(mechanism, tmp_path / "plane.nc")
    for point in ([-399.0, 250.0], [399.0, -1.0]):
        (east,), (north,) = PLANE.backward(np.array([point]))
        _, document = run_json("sample", file, "--lon", east, "--lat", north, "-n", 3, "--seed", 1)
        same = md.sample(mechanism, at=PLANE.forward(np.array([east]), np.array([north])), size=3, rng=1)
        assert document["reports"] == same.values[0].tolist()
        assert document["claim"] == mechanism.attrs["position_claim"]
    code, refused = run_json("sample", file, "--lon", 10.0, "--lat", 41.9)
    assert (code, refused["error"]["field"]) == (2, "lon, lat")
    assert domain.size == 16


def test_budget_draws_once_in_a_cell(tmp_path):
    budget = md.sessions.Budget.create(tmp_path / "ledger", limit=2)
    sampler = md.Sampler(position_mechanism("square"))
    here = [-2.9, 1.5]
    first = budget.report(sampler, at=here)
    for position in (here, [-2.9 + 2.0**-15, 1.5]):
        assert int(budget.report(sampler, at=position)) == int(first)
    assert budget.spent == 1
    budget.report(sampler, 24)
    assert budget.spent == 2
    with pytest.raises(MechdesignError):
        budget.report(sampler, at=[-2.0, 2.0])
    assert HOLES.sum() == domain_of("holes").size
