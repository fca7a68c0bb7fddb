"""Samplers draw exactly the integers of a certified mechanism, and from no other."""

from __future__ import annotations

import json
from bisect import bisect_right
from functools import cache
from itertools import accumulate

import numpy as np
import pytest
import xarray as xr
from fixtures.factored_mechanisms import factored_mechanism as factored_of
from fixtures.factored_mechanisms import rows_of
from fixtures.forged_files import rewritten
from reference.checking import ROW_SUM
from scipy.stats import chisquare

import mechdesign as md
from mechdesign import baselines
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism import rows as table_rows
from mechdesign.mechanism.draw import guides, search_rows

UNLIKELY = 1e-4  # of a two-sided chi-square test; fixed before the draws, whose seeds are fixed too
FEWEST = 5  # expected draws of a report that is counted by itself, and not with the most frequent one


@cache
def plane(cells: int = 30) -> md.Sampler:
    return md.Sampler(mechanism=baselines.exponential(md.load_problem("flat", cells=cells)))


def check_chi_square(seen: np.ndarray, row: np.ndarray) -> None:
    expected = row.astype(float) / ROW_SUM * seen.sum()
    group = np.where(expected >= FEWEST, np.arange(len(row)), expected.argmax())
    group = np.unique(group, return_inverse=True)[1]
    observed, expected = np.bincount(group, seen), np.bincount(group, expected)
    assert UNLIKELY <= chisquare(observed, expected / expected.sum() * seen.sum()).pvalue <= 1 - UNLIKELY


@pytest.mark.parametrize("reports", [1, 2, 3, 4, 5, 8, 9, 63, 64, 65])
@pytest.mark.parametrize("kind", ["even", "one", "geometric", "random"])
@pytest.mark.obligation("exact-draws")
def test_draws_follow_python_integers_on_the_same_bits(reports: int, kind: str) -> None:
    """Both sides of every border, with every value of the two unused bits."""
    masses = {
        "even": [ROW_SUM // reports] * reports,
        "one": [1] * reports,
        "geometric": [max(1, ROW_SUM - 64 >> (y + 1)) for y in range(reports)],
        "random": [int(x) for x in np.random.default_rng(reports).integers(1, ROW_SUM // reports, reports)],
    }[kind]
    masses[-1] += ROW_SUM - sum(masses)
    ends = list(accumulate(masses))
    values = sorted({0, *(end - back for end in ends for back in (1, 0))} - {ROW_SUM})
    words = np.array([[4 * x + rest for x in values for rest in range(4)]], np.uint64)
    cumulative, shift = np.array([[ROW_SUM] * reports, ends], np.uint64), np.uint64(62 - (reports - 1).bit_length())
    reports_found = np.empty(words.shape, np.int64)
    guide = guides(cumulative, shift)
    assert guide.shape == (len(cumulative), 2**62 >> int(shift))  # an entry more would be sought beyond the row
    search_rows(cumulative, guide, shift, np.array([1]), words[0], 0, reports_found)
    assert reports_found[0].tolist() == [bisect_right(ends, x) for x in values for _ in range(4)]


def test_draws_follow_the_order_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks of one row too: bits are then taken by the order of secrets."""
    secrets, bits = [5, 2, 5, 8], np.random.default_rng(3).bytes
    whole = plane(3).sample(secrets, 7, rng=3)
    words = [int.from_bytes(bits(8), "little") >> 2 for _ in range(28)]
    for i, secret in enumerate(secrets):
        ends = list(accumulate(plane(3).rows.mass[secret].tolist()))
        assert whole[i].values.tolist() == [bisect_right(ends, word) for word in words[7 * i : 7 * i + 7]]
    monkeypatch.setattr(table_rows, "_TABLE_BYTES", 1)
    blocks = plane(3).sample(secrets, 7, rng=3)
    assert blocks[1].values.tolist() != whole[1].values.tolist()
    many = plane(3).sample(np.arange(9), 20_000, rng=1)
    for secret in range(9):
        check_chi_square(np.bincount(many[secret].values, minlength=9), plane(3).rows.mass[secret])


@pytest.mark.parametrize("secret", [0, 465])
@pytest.mark.obligation("exact-draws")
def test_many_draws_follow_the_row(secret: int) -> None:
    drawn = plane().sample(secret, 300_000, rng=11)
    check_chi_square(np.bincount(drawn[0].values, minlength=900), plane().rows.mass[secret])


@pytest.mark.study
@pytest.mark.obligation("exact-draws")
def test_a_hundred_million_draws_follow_the_row() -> None:
    seen = np.zeros(900, np.int64)
    for seed in range(20):
        seen += np.bincount(plane().sample(465, 5_000_000, rng=seed)[0].values, minlength=900)
    assert seen.sum() == 100_000_000
    check_chi_square(seen, plane().rows.mass[465])


def test_live_reports_follow_the_row_on_given_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in (0, 4, 8):
        cumulative = np.cumsum(plane(3).rows.mass[secret].astype(object))
        for x in [0, *(c + d for c in cumulative[:-1] for d in (-1, 0)), ROW_SUM - 1]:
            word = (int(x) * 4 + 3).to_bytes(8, "little")
            monkeypatch.setattr(table_rows, "source", lambda seed, word=word: (lambda count: word, "given"))
            for scan in ("table", "row"):
                drawn_report = plane(3).report(secret, scan=scan)  # type: ignore[arg-type]
                assert int(drawn_report) == sum(int(c) <= x for c in cumulative)


def test_reports_are_cells_with_coordinates_and_claim() -> None:
    mechanism = plane(3).mechanism
    batch = md.sample(mechanism, [2, 7], 5, rng=7)
    assert (batch.dims, batch.shape, batch.name) == (("secret", "draw"), (2, 5), "report")
    assert batch.attrs["bits"] == "simulation, seed 7 (predictable)"
    assert (batch["secret"].values.tolist(), batch["secret_y"].values.tolist()) == ([2, 7], [2.5, 1.5])
    assert batch["report_x"].attrs == {"units": "cell"}
    for axis in ("report_x", "report_y"):
        assert np.array_equal(batch[axis], mechanism[axis].values[batch.values])
    one = md.Sampler(mechanism=mechanism).report(7)
    assert (one.dims, set(one.coords)) == ((), {"report_x", "report_y", "accuracy"})
    assert one.attrs["bits"] == md.sample(mechanism, 0, 1).attrs["bits"] == "operating system"
    assert one.attrs["claim"] == mechanism.attrs["claim"]
    assert one.attrs["addresses"] == "depend on neither secret nor report"
    assert md.Sampler(mechanism=mechanism).report(7, scan="row").attrs["addresses"] == "depend on the secret's row"


def test_positions_move_to_their_cells() -> None:
    """On one axis, values beyond the grid count for its last cell; values that are not finite are refused."""
    shown = repr(plane(3))
    assert "program  exponential" in repr(plane(3).rows)
    assert "secrets  9" in shown
    assert "claim    One report satisfies" in shown
    positions = np.array([[0.2, 2.9], [1.0, 1.0], [3.0, 3.0]])
    cells = [int(np.floor(min(x, 2)) * 3 + np.floor(min(y, 2))) for x, y in positions]
    assert np.array_equal(plane(3).sample(at=positions, size=9, rng=4), plane(3).sample(cells, 9, rng=4))
    assert plane(3).sample(at=positions).shape == (3, 1)
    scale = md.Sampler(baselines.exponential(md.load_problem("line", cells=4)))
    drawn = scale.sample(at=[[-7.0], [0.0], [2.5], [4.0], [1e9]], size=9, rng=4)
    assert np.array_equal(drawn, scale.sample([0, 0, 2, 3, 3], 9, rng=4))
    for beyond in (np.nan, np.inf):
        with pytest.raises(InputError, match="finite"):
            scale.sample(at=[[beyond]])


def test_unseeded_draws_differ_and_seeded_ones_repeat() -> None:
    assert plane().sample([0, 5], 50, rng=1).identical(plane().sample([0, 5], 50, rng=1))
    generator = np.random.default_rng(1)
    first, second = (plane().sample([0, 5], 50, rng=generator) for _ in range(2))
    assert np.array_equal(first, plane().sample([0, 5], 50, rng=1))
    assert not np.array_equal(first, second)
    assert "predictable" in first.attrs["bits"]
    assert not np.array_equal(plane().sample(0, 500), plane().sample(0, 500))
    assert len({int(plane().report(465)) for _ in range(50)}) > 10


def test_factored_mechanisms_have_the_same_face() -> None:
    sampler = md.Sampler(mechanism=factored_of("eikonal, 16 neighbours"))
    drawn = sampler.sample([3, 0], 4, rng=2)
    assert np.array_equal(drawn, rows_of("eikonal, 16 neighbours").sample([3, 0], 4, rng=2))
    assert np.array_equal(drawn["report_x"], sampler.mechanism["secret_x"].values[drawn.values])
    one = sampler.report(3)
    assert (one.dims, set(one.coords), one.attrs["addresses"]) == ((), {"report_x", "report_y"}, "depend on the secret")
    assert set(one.attrs) == set(plane(3).report(3).attrs)


@pytest.mark.parametrize(
    ("field", "draw"),
    [
        ("secret", lambda s: s.sample(9, 1)),
        ("secret", lambda s: s.sample([0, -1], 1)),
        ("secret", lambda s: s.sample([0.0], 1)),
        ("secret", lambda s: s.sample([], 1)),
        ("secret", lambda s: s.sample([[0]], 1)),
        ("secret", lambda s: s.report(9)),
        ("secret", lambda s: s.report(True)),
        ("size", lambda s: s.sample(0, 0)),
        ("size", lambda s: s.sample(0, 1.0)),
        ("size", lambda s: s.sample(0, True)),
        ("size", lambda s: s.sample(0, 10**13)),
        ("rng", lambda s: s.sample(0, 1, rng=-1)),
        ("rng", lambda s: s.sample(0, 1, rng=0.5)),
        ("rng", lambda s: s.sample(0, 1, rng=True)),
        ("scan", lambda s: s.report(0, scan="fast")),
        ("at", lambda s: s.report()),
        ("at", lambda s: s.report(0, at=[0.5, 0.5])),
        ("at", lambda s: s.report(at=[[0.5, 0.5], [1.5, 0.5]])),
        ("at", lambda s: s.report(at=[0.5, 3.5])),
    ],
)
def test_invalid_requests_name_the_argument(field: str, draw) -> None:
    with pytest.raises(InputError) as caught:
        draw(plane(3))
    assert caught.value.field == field


def move_mass(mechanism: xr.Dataset) -> xr.Dataset:
    mass = mechanism["mass"].values
    mass[0, 8] -= mass[0, 8] // np.uint64(1000) + np.uint64(1)
    mass[0, 0] += np.uint64(ROW_SUM - sum(mass[0].tolist()))
    return rewritten(mechanism)


def with_mass(change):
    def make(mechanism: xr.Dataset) -> xr.Dataset:
        return rewritten(mechanism, mass=(("secret", "report"), change(mechanism["mass"].values.copy())))

    return make


def with_metric(mechanism: xr.Dataset, **changes: float) -> xr.Dataset:
    described = json.loads(mechanism.attrs["metric"]) | changes
    return mechanism.assign_attrs(metric=json.dumps(described, sort_keys=True))


ALTERED = {
    "an entry": (with_mass(lambda a: np.where(a == a[0, 0], a + np.uint64(1), a)), "mass"),
    "a zero": (with_mass(lambda a: np.where(np.arange(9) == 3, np.uint64(0), a)), "mass"),
    "floats": (with_mass(lambda a: a / ROW_SUM), "mass"),
    "within a row": (move_mass, "mass"),
    "the metric": (lambda m: rewritten(with_metric(m, multiplier=0.3)), "claim"),
    "the metric, more": (lambda m: rewritten(with_metric(m, multiplier=1.5)), "claim"),
    "the claim": (lambda m: rewritten(m, claim=m.attrs["claim"].replace("One", "Any")), "claim"),
    "the cell": (lambda m: rewritten(m.assign_coords(secret_x=m["secret_x"] + 0.5)), "coordinates"),
    "no mass": (lambda m: rewritten(m.drop_vars("mass")), "mass"),
    "no metric": (lambda m: rewritten(m, metric="{}"), "metric"),
    "another schema": (lambda m: m.assign_attrs(schema="other"), "schema"),
}


@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.obligation("proved-before-drawing")
def test_altered_tables_are_refused(name: str) -> None:
    alter, field = ALTERED[name]
    mechanism = alter(baselines.exponential(md.load_problem("flat", cells=3)).copy(deep=True))
    with pytest.raises(VerificationError) as caught:
        md.sample(mechanism, 0, 1)
    assert caught.value.field == field


def test_altered_factors_are_refused() -> None:
    factored = factored_of("eikonal, 16 neighbours").copy(deep=True)
    factored["row_sum"].values[2, 0] *= np.uint64(2)
    with pytest.raises(VerificationError, match="break the claim"):
        md.Sampler(mechanism=factored)
    factored = factored_of("eikonal, 16 neighbours").copy(deep=True)
    factored["weight"].values[3] += np.uint32(1)
    with pytest.raises(VerificationError, match="does not sum to its certified sum"):
        md.sample(rewritten(factored), 0, 1)


def test_graphs_are_sampled_by_their_listed_edges() -> None:
    metric = md.Graph(tail=[0, 1], head=[1, 2], length=[0.3, 0.7])
    problem = md.DesignProblem(
        domain=md.Domain.nodes(3), metric=metric, prior=np.full(3, 1 / 3), loss=md.losses.ZeroOne()
    )
    mechanism = baselines.exponential(problem)
    assert md.sample(mechanism, [0, 1, 2], 2).shape == (3, 2)
    cut_off = mechanism.isel(edge=[0])
    with pytest.raises(VerificationError, match="falls into parts"):
        md.sample(rewritten(cut_off), 0, 1)


def test_probabilities_of_a_table_are_its_masses() -> None:
    rows = plane(3).rows
    shown = rows.probabilities([4, 0])
    for secret, row in zip((4, 0), shown, strict=True):
        masses, whole = rows.integers(secret)
        assert row.tolist() == [mass / whole for mass in masses]  # Python divides integers correctly rounded


@pytest.mark.obligation("proved-before-drawing")
def test_later_changes_do_not_reach_the_draws() -> None:
    mechanism = with_mass(np.ascontiguousarray)(baselines.exponential(md.load_problem("flat", cells=3)))
    sampler = md.Sampler(mechanism=mechanism)
    before = sampler.sample(0, 100, rng=1)
    mechanism["mass"].values[0] = mechanism["mass"].values[8]
    assert sampler.sample(0, 100, rng=1).identical(before)
