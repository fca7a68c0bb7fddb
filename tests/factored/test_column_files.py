"""Files of columns: every layer reads their integers, and a changed field is refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from fixtures.factored_mechanisms import constant
from fixtures.file_parts import plain
from fixtures.forged_files import rewritten
from fixtures.random_columns import column_mechanism, draw_columns, repair_columns, rows_of, seal_columns
from fixtures.rows import few_by_default
from reference import untruths
from scipy.stats import chisquare

import mechdesign as md
from mechdesign import load, save
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.factored import FactoredMechanism
from mechdesign.factored.mechanism import _draw

CASE = "eikonal, 16 neighbours"
DRAWS = 20_000
UNLIKELY = 1e-4  # of a chi-square test; fixed before the draws, whose seed is fixed too


def refusal_of(mechanism: xr.Dataset) -> str:
    """Why a mechanism is refused; empty where it is certified."""
    try:
        return "; ".join(md.verify(rewritten(mechanism)).reasons)
    except MechdesignError as error:
        return str(error)


RAGGED = {
    "first_generator": "must increase from 0|must name places|differ from the rows",
    "generator_place": "must name places|differ from the rows",
    "generator_offset": "at most the cap|differ from the rows",
}


@pytest.mark.parametrize("every", few_by_default([11, 1], 11))
@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.obligation("column-generators")
def test_altered_column_integer_is_named(name: str, every: int) -> None:
    """Sealed again with the former row sums: refused by name, or certified with every mass unchanged."""
    honest = columns_of_a_line()
    masses = [md.factored.FactoredMechanism(dataset=honest).integers(u) for u in range(3)]
    size, refused = honest.sizes["generator"], 0
    places = range(0, honest[name].size, every)
    for place in places:
        for value in {0, 65_535, size, -1, 2**62, int(honest[name].values[place]) + 1}:
            altered = honest.copy(deep=True)
            before, bounds = int(altered[name].values[place]), np.iinfo(altered[name].dtype)
            if value == before or not bounds.min <= value <= bounds.max:
                continue
            altered[name].values[place] = value
            refusal = refusal_of(altered)
            if refusal:
                refused += 1
                assert re.search(RAGGED[name], refusal)
            else:
                assert [
                    md.factored.FactoredMechanism(dataset=rewritten(altered)).integers(u) for u in range(3)
                ] == masses
    assert refused > len(places)


@cache
def columns_of_a_line() -> xr.Dataset:
    problem = constant(3, 0.7)
    return seal_columns(problem, *draw_columns(problem, 2))


@pytest.mark.parametrize("seed", few_by_default([0, 1], 0))
@pytest.mark.obligation("column-generators")
def test_consistent_altered_columns_are_private(seed: int) -> None:
    """Any generators, with row sums computed for them: a certified mechanism satisfies the claim, in plain integers."""
    problem = constant((3, 2), 0.6)
    factors, target = draw_columns(problem, seed)
    generators = len(factors.columns.place)
    random = np.random.default_rng(seed)
    random_columns = replace(
        factors.columns,
        place=random.integers(0, 6, generators),
        offset=random.integers(0, factors.metric.cap + 1, generators).astype(np.uint16),
    )
    mechanism = seal_columns(problem, replace(factors, columns=random_columns), target)
    found = md.verify(mechanism)
    assert found.certified
    assert untruths(plain(mechanism), found.as_dict()) == []
    assert repair_columns(problem, factors, target)[0].factors.step < factors.step


def test_files_round_trip_and_verify(tmp_path) -> None:
    save(column_mechanism(CASE), tmp_path / "f.nc")
    assert load(tmp_path / "f.nc").identical(column_mechanism(CASE))
    checked = md.verify(tmp_path / "f.nc")
    assert checked.certified
    assert checked.edge_source == "geometry"
    for name in ("first_generator", "generator_place", "generator_offset", "weight", "target"):
        with pytest.raises(VerificationError, match=r"must be there|is missing"):
            md.verify(rewritten(column_mechanism(CASE).drop_vars(name)))
    with pytest.raises(VerificationError, match=r"column \(|weight: must be uint32"):
        md.verify(
            rewritten(column_mechanism(CASE).drop_vars(["first_generator", "generator_place", "generator_offset"]))
        )


def test_worst_edge_has_largest_ratio_of_columns() -> None:
    mechanism, worst = rows_of(CASE), md.verify(column_mechanism(CASE)).worst
    assert worst is not None
    row, other_row = mechanism.probabilities([worst["secret"], worst["other"]])
    edges = mechanism.mechanism_file.edges
    length = {frozenset(pair): d for *pair, d in zip(edges.tail, edges.head, edges.length, strict=True)}
    spent = np.log(row / other_row)[worst["report"]] / length[frozenset((worst["secret"], worst["other"]))]
    assert 0.5 < spent <= column_mechanism(CASE).attrs["ratio"] <= 1


def test_samples_follow_exact_row() -> None:
    mechanism = rows_of(CASE)
    for secret in (0, 6):
        row = mechanism.row(secret).values
        drawn_reports = np.bincount(mechanism.sample(secret, DRAWS, rng=7)[0], minlength=16)
        common = row * DRAWS >= 5
        group = np.where(common, np.arange(16), common.argmax())
        counts, expected = np.bincount(group, drawn_reports, 16), np.bincount(group, row, 16) * DRAWS
        assert chisquare(counts[common], expected[common]).pvalue > UNLIKELY


def test_draws_invert_exact_cumulative_masses() -> None:
    """Second route: Python integers, on the same bits; bounds met exactly on either side, for every secret."""
    mechanism = rows_of(CASE)
    columns, target = mechanism.factors.distances(np.arange(16)), column_mechanism(CASE)["target"].values
    kernel, weight = mechanism.factors.kernel.tolist(), mechanism.factors.weight.tolist()
    for u in range(16):
        masses = [kernel[q] * w for q, w in zip(columns[:, u].tolist(), weight, strict=True)]
        cumulative = np.cumsum(np.array(masses, object))
        high, low = mechanism._cumulative(columns[:, u])
        spare = 64 - int(high[-1]).bit_length()
        asked = [0, *(c + d for c in cumulative[:-1].tolist() for d in (-1, 0)), cumulative[-1] - 1]
        raw = np.array([[(x >> 43) << spare, (x & ((1 << 43) - 1)) << 21] for x in asked], np.uint64)
        found = _draw(high, low, len(asked), lambda count, raw=raw: raw.tobytes())
        assert found.tolist() == [int((cumulative <= x).sum()) for x in asked]
        assert mechanism.integers(u)[0] == [
            sum(m for m, y in zip(masses, target, strict=True) if y == z) for z in range(16)
        ]


def test_sampler_and_table_share_interface() -> None:
    sampler = md.Sampler(mechanism=column_mechanism(CASE))
    assert (sampler.rows.secrets, sampler.rows.reports) == (16, 16)
    assert sampler.sample([3, 5], 4).sizes == {"secret": 2, "draw": 4}
    assert md.sample(column_mechanism(CASE), 0, 5, rng=3).values.tolist() == sampler.sample(0, 5, rng=3).values.tolist()
    assert int(sampler.report(2)) in range(16)
    table = rows_of(CASE).table()
    assert md.verify(table).certified
    assert md.probabilities(table).values == pytest.approx(rows_of(CASE).probabilities(np.arange(16)), abs=1e-9)


def test_budget_charges_columns(tmp_path) -> None:
    budget, sampler = (
        md.sessions.Budget.create(tmp_path / "b.sqlite", limit=2),
        md.Sampler(mechanism=column_mechanism(CASE)),
    )
    assert int(budget.report(sampler, 1)) == int(budget.report(sampler, 1))
    assert budget.spent == 1


@pytest.mark.parametrize("rows", [None, range(3, 7)], ids=["all", "some"])
def test_exported_rows_equal_integers(rows: range | None, tmp_path) -> None:
    target = md.export(column_mechanism(CASE), tmp_path / "t.csv", rows=rows)
    lines = [line.split(",") for line in target.read_text().splitlines() if line[0].isdigit()]
    for u in rows or range(16):
        masses, total = rows_of(CASE).integers(u)
        row = [line for line in lines if int(line[0]) == u]
        assert [int(line[-2]) for line in row] == masses
        assert {int(line[-1]) for line in row} == {total}


@pytest.mark.parametrize("loss", ["distance", "squared"])
def test_adversary_errs_as_on_table(loss: str) -> None:
    """Under the file's prior and one that knows the secret but for two: some reports cannot occur then."""
    table = rows_of(CASE).table()
    for prior in (None, np.repeat([0.5, 0.0], [2, 14])):
        one, other = (md.utility.adversary_error(file, loss, prior=prior) for file in (column_mechanism(CASE), table))
        assert one.value == pytest.approx(other.value, rel=1e-6)
        assert one.lower_bound <= one.value


def test_impossible_report_informs_no_adversary() -> None:
    problem = constant(3, 0.7)
    factors, target = draw_columns(problem, 2)
    found = md.utility.adversary_error(seal_columns(problem, factors, np.minimum(target, 1)), "squared")
    assert found.chance[2] == 0
    assert found.estimates[2] == pytest.approx(problem.prior_array @ problem.domain.points)
    assert 0 < found.value <= problem.domain.points.var()


def test_too_many_columns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.factored.mechanism._MOST_COLUMNS", 20)
    with pytest.raises(MechdesignError, match="must be at most 20"):
        FactoredMechanism(dataset=column_mechanism(CASE))
