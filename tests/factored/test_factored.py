"""Factored mechanisms: laws over the cases, limits, agreement with tables, verification of altered files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from fixtures.factored_mechanisms import EVERY, constant, factored_mechanism, ring_road, rows_of
from fixtures.integer_oracles import mean_cost, reference_violations
from fixtures.problems import CASES, grid
from fixtures.random_columns import mechanism_of
from fixtures.tolerances import DESIGN_MARGIN, REORDERED
from reference.factored import KERNEL_BITS
from scipy.stats import chisquare

import mechdesign as md
from mechdesign.errors import DesignError, InputError, UnsuitableError
from mechdesign.factored import FactoredMechanism
from mechdesign.factored.mechanism import _draw
from mechdesign.solvers import choose
from mechdesign.utility import remapped_loss

AGREE = 1e-12  # absolute, between the probabilities of factors and of the table made of them
QUANTUM = 5e-3  # lengths of at least 0.3 nats are rounded down to units of at most 9e-4
SIGNED = 1.15  # times the loss of the signed solution of K w = 1, which is not a mechanism
DRAWS = 50_000
UNLIKELY = 1e-4  # p of a chi-square test with fixed seeds


def masses(mechanism: FactoredMechanism) -> tuple[list[list[int]], list[int]]:
    return [list(row) for row in zip(*(mechanism.integers(u) for u in range(mechanism.secrets)), strict=True)]  # type: ignore[return-value]


@EVERY
def test_every_triple_satisfies_claim_in_integers(case: str) -> None:
    """Second route to the certificate: rows over a common denominator, every edge and report."""
    rows, sums = masses(rows_of(case))
    common = math.lcm(*sums)
    table = np.array([[a * (common // s) for a in row] for row, s in zip(rows, sums, strict=True)], object)
    edges = CASES[case]().edges
    assert all(sum(row) == s for row, s in zip(rows, sums, strict=True))
    assert reference_violations(table, edges) == 0
    checked = md.verify(factored_mechanism(case))
    assert checked.certified
    assert checked.violations == 0
    assert checked.edge_source == "geometry"


@EVERY
def test_losses_equal_those_of_rows(case: str) -> None:
    problem, attrs = CASES[case](), factored_mechanism(case).attrs
    table = rows_of(case).probabilities(np.arange(problem.domain.size))
    assert attrs["expected_loss"] == pytest.approx(float((problem.weighted_loss * table).sum()), rel=REORDERED)
    per_row = (problem.loss_matrix * table).sum(axis=1)
    assert factored_mechanism(case)["row_loss"].values == pytest.approx(per_row, rel=REORDERED)
    optimum = md.solve(md.Optimal(problem=problem), gap=1e-5).attrs["lower_bound"]
    assert optimum <= attrs["expected_loss"] * (1 + DESIGN_MARGIN)
    if problem.loss.name == "squared":
        assert attrs["remapped_loss"] <= problem.constant_loss * (1 + DESIGN_MARGIN)


@EVERY
def test_table_of_factors_agrees_and_certifies(case: str) -> None:
    table = rows_of(case).table()
    exact = rows_of(case).probabilities(np.arange(rows_of(case).secrets))
    assert np.abs(md.probabilities(table).values - exact).max() <= AGREE
    assert md.verify(table).certified
    if CASES[case]().loss.name == "squared":
        # Places of a frame are remapped before they are merged, which can only help.
        assert factored_mechanism(case).attrs["remapped_loss"] <= remapped_loss(table) * (1 + DESIGN_MARGIN)
    else:
        assert "remapped_loss" not in factored_mechanism(case).attrs


@EVERY
def test_effective_epsilon_is_largest_ratio(case: str) -> None:
    mechanism = rows_of(case)
    factors, edges = mechanism.factors, CASES[case]().edges
    kernel = np.log(factors.kernel * 2.0**-KERNEL_BITS)[factors.metric.from_sources(factors.inner)]
    logarithm = kernel - np.log([s * 2.0**-KERNEL_BITS for s in mechanism.row_sums])
    largest = (np.abs(logarithm[:, edges.tail] - logarithm[:, edges.head]).max(axis=0) / edges.length).max()
    stored_ratio = factored_mechanism(case).attrs["ratio"]
    assert largest <= stored_ratio + 1e-6
    assert stored_ratio <= 1
    if (
        factors.metric.from_sources(factors.inner)[factors.inner][edges.tail, edges.head] == factors.units_of(edges)
    ).all():
        assert stored_ratio == pytest.approx(largest, abs=1e-6)  # the kernel is rounded up far away


@EVERY
def test_worst_edge_has_largest_ratio(case: str) -> None:
    mechanism, worst = rows_of(case), md.verify(factored_mechanism(case)).worst
    assert worst is not None
    factors, edges = mechanism.factors, CASES[case]().edges
    rows = factors.metric.from_sources(factors.inner)
    u, v, y = worst["secret"], worst["other"], factors.inner[worst["report"]]
    ratio = float(factors.kernel[rows[y, u]]) / float(factors.kernel[rows[y, v]])
    found = math.log(ratio * mechanism.row_sums[v] / mechanism.row_sums[u])
    length = {frozenset(pair): d for *pair, d in zip(edges.tail, edges.head, edges.length, strict=True)}
    direct = rows[y, v] == factors.units_of(edges)[list(length).index(frozenset((u, v)))]
    assert not direct or found / length[frozenset((u, v))] == pytest.approx(
        factored_mechanism(case).attrs["ratio"], abs=1e-6
    )
    assert found > 0


def test_factors_that_break_claim_are_refused() -> None:
    problem = CASES["eikonal, 8 neighbours"]()
    factors = rows_of("eikonal, 8 neighbours").factors
    longer = replace(factors, step=int(factors.step * 1.01))
    target = factored_mechanism("eikonal, 8 neighbours")["target"].values
    with pytest.raises(DesignError, match="break the claim"):
        mechanism_of(problem, longer, target)


@pytest.mark.parametrize(("step", "width"), [(0.3, 6), (0.75, 0)])
def test_short_steps_add_frame(step: float, width: int) -> None:
    mechanism = md.solve(md.EikonalWeights(problem=constant((9, 9), step)), method="factored")
    assert mechanism.sizes["place"] == (9 + 2 * width) ** 2
    assert ("frame" in json.loads(mechanism.attrs["parameters"])["remedy"]) == (width > 0)


def test_remap_picks_best_cell_of_each_place() -> None:
    problem = constant((6, 7), 0.3)
    mechanism = md.solve(md.EikonalWeights(problem=problem), method="factored")
    factors = FactoredMechanism(dataset=mechanism).factors
    mass = (factors.kernel * 2.0**-KERNEL_BITS)[factors.metric.from_sources(factors.inner)] * factors.weight[:, None]
    joint = mass / mass.sum(axis=0) * problem.prior_array
    losses = joint @ problem.loss_matrix
    assert mechanism.attrs["remapped_loss"] == pytest.approx(float(losses.min(axis=1).sum()), rel=1e-10)
    chosen = losses[np.arange(len(losses)), mechanism["remap"].values]
    assert chosen == pytest.approx(losses.min(axis=1), rel=1e-10)


@pytest.mark.parametrize("step", [0.3, 1.0, 3.0])
def test_line_tends_to_laplace_without_rounds(step: float) -> None:
    """Exact weights: MSE in the middle is 2 e^{-a} / (1 - e^{-a})^2 cells."""
    mechanism = md.solve(md.EikonalWeights(problem=constant(161, step)), method="factored")
    exact = 2 * math.exp(-step) / math.expm1(-step) ** 2
    middle = float(mechanism["row_loss"][80])
    assert exact <= middle <= exact * (1 + 2 * QUANTUM)
    assert json.loads(mechanism.attrs["parameters"])["rounds"] == 1
    assert mechanism.attrs["stopped"] == "kappa"


def polygon_norm(reach: int, stencil: int) -> np.ndarray:
    """Graph distances in cells on the infinite lattice out to `reach`, by Dijkstra on a grid twice as wide."""
    size = 2 * reach + 1
    problem = constant((size, size), 1.0, stencil)
    tail, head, length = problem.edges.both_ways()
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    graph = csr_array((length, (tail, head)), shape=(size * size,) * 2)
    return dijkstra(graph, indices=size * size // 2).reshape(size, size)


@pytest.mark.parametrize(
    ("step", "side", "stencil", "limit"),
    [
        (1.0, 21, 16, 5.62),
        pytest.param(0.5, 47, 16, 5.82, marks=pytest.mark.exhaustive),
        pytest.param(0.25, 121, 32, 5.95, marks=pytest.mark.exhaustive),
        pytest.param(0.25, 121, 64, 5.98, marks=pytest.mark.exhaustive),
    ],
)
def test_constant_level_tends_to_planar_laplace(step: float, side: int, stencil: int, limit: float) -> None:
    """MSE eps^2 in the middle: 6 in the continuous limit; second route: the sum over the lattice in the graph norm."""
    mechanism = md.solve(
        md.EikonalWeights(problem=constant((side, side), step, stencil)), method="factored", bound=False
    )
    found = float(mechanism["row_loss"].values[side * side // 2]) * step**2
    reach = math.ceil(30 / step)
    away = np.arange(-reach, reach + 1)
    mass = np.exp(-step * polygon_norm(reach, stencil))
    exact = float((mass * (away[:, None] ** 2 + away**2)).sum() / mass.sum()) * step**2
    assert found == pytest.approx(exact, rel=QUANTUM)
    assert found == pytest.approx(limit, rel=QUANTUM)
    if stencil >= 32:
        assert found == pytest.approx(6, rel=0.01)


def hill(steepness: float, side: int = 21) -> md.DesignProblem:
    """A level that rises from 0.4 to 1.6: steep hills break the condition Laplacian(log eps) <= eps^2 at their foot."""
    domain = grid((side, side))
    away = np.hypot(*(domain.points.T - side / 2))
    values = 0.4 + 1.2 / (1 + np.exp(steepness * (away - side / 4)))
    level = md.PrivacyLevel.from_values(domain, values.reshape(side, side))
    metric = md.Eikonal(level=level, stencil=16)
    return md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: constant((14, 14), 0.5),
        *(
            pytest.param(make, marks=pytest.mark.exhaustive)
            for make in (
                lambda: constant((20, 20), 0.3),
                lambda: hill(0.5),
                lambda: hill(2.0),
                lambda: md.load_problem("philadelphia", cells=24, extent=24.0, stencil=16),
            )
        ),
    ],
)
def test_price_where_weight_system_is_unsolvable(make: Callable[[], md.DesignProblem]) -> None:
    problem = make()
    kernel = np.exp(-problem.distances)
    signed = scipy.linalg.solve(kernel, np.ones(len(kernel)))
    assert signed.min() < 0
    mechanism = md.solve(md.EikonalWeights(problem=problem), method="factored")
    assert md.verify(mechanism).certified
    assert mechanism.attrs["expected_loss"] <= SIGNED * float((problem.weighted_loss * kernel).sum(axis=0) @ signed)


def test_three_axes_rivers_and_roads_certify() -> None:
    mask = np.ones((7, 7), bool)
    mask[3, :5] = False
    river = grid((7, 7), mask=mask)
    level = md.PrivacyLevel.constant(0.6, "cell")
    space = constant((3, 3, 3), 0.8, 26)
    water = md.DesignProblem(
        domain=river,
        metric=md.Eikonal(level=level, stencil=16),
        prior=md.priors.uniform(river),
        loss=md.losses.Distance(),
    )
    for problem in (space, water, ring_road()):
        mechanism = md.solve(md.EikonalWeights(problem=problem), method="factored")
        checked = md.verify(mechanism)
        assert checked.certified
        assert checked.edge_source == ("edge list only" if problem.metric.kind == "graph" else "geometry")
        optimum = md.solve(md.Optimal(problem=problem), gap=1e-2).attrs["lower_bound"]
        assert optimum <= mechanism.attrs["expected_loss"] < 2 * optimum


def test_river_separates_opposite_banks() -> None:
    """A geodesic around the river is longer, so a report may distinguish the banks."""
    mask = np.ones((7, 7), bool)
    mask[3, :6] = False
    losses = []
    for given in (np.ones((7, 7), bool), mask):
        domain = grid((7, 7), mask=given)
        metric = md.Eikonal(level=md.PrivacyLevel.constant(0.8, "cell"), stencil=16)
        problem = md.DesignProblem(
            domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.ZeroOne()
        )
        mechanism = FactoredMechanism(dataset=md.solve(md.EikonalWeights(problem=problem), method="factored"))
        bank, other = int(domain.lookup[2, 0]), int(domain.lookup[4, 0])
        losses.append(float(mechanism.row(bank)[other]))
    assert losses[1] < 0.1 * losses[0]


def test_samples_follow_exact_row() -> None:
    mechanism = FactoredMechanism(dataset=md.solve(md.EikonalWeights(problem=constant((9, 9), 0.6)), method="factored"))
    for secret in (0, 40):
        row = mechanism.row(secret).values
        drawn = np.bincount(mechanism.sample(secret, DRAWS, rng=7)[0], minlength=81)
        rare = row * DRAWS < 5
        group = np.where(rare, rare.argmin(), np.arange(81))  # rare reports are counted with the first common one
        group = np.unique(group, return_inverse=True)[1]
        assert chisquare(np.bincount(group, drawn), np.bincount(group, row) * DRAWS).pvalue > UNLIKELY
    assert mechanism.row(40).sum() == pytest.approx(1, abs=AGREE)


@EVERY
def test_column_blocks_equal_rows(case: str) -> None:
    mechanism = rows_of(case)
    table, seen = np.zeros((mechanism.secrets, mechanism.secrets)), []
    for reports, secrets, columns in mechanism.column_blocks():
        table[np.ix_(secrets, reports)] = columns
        seen += reports.tolist()
    assert sorted(seen) == list(range(mechanism.secrets))
    assert table == pytest.approx(mechanism.probabilities(np.arange(mechanism.secrets)), rel=REORDERED, abs=REORDERED)


def test_draws_invert_exact_cumulative_masses() -> None:
    """Second route: Python integers, on the same bits; bounds met exactly on either side."""
    mechanism = rows_of("eikonal, 16 neighbours")
    distances = mechanism.factors.metric.from_sources(mechanism.factors.inner[:1])[:, 0]
    kernel, weight = mechanism.factors.kernel.tolist(), mechanism.factors.weight.tolist()
    cumulative = np.cumsum(np.array([kernel[q] * w for q, w in zip(distances.tolist(), weight, strict=True)], object))
    high, low = mechanism._cumulative(distances)
    assert [(int(a) << 43) + int(b) for a, b in zip(high, low, strict=True)] == cumulative.tolist()
    spare = 64 - int(high[-1]).bit_length()
    asked = [0, *(c + d for c in cumulative[:-1].tolist() for d in (-1, 0)), cumulative[-1] - 1]
    raw = np.array([[(x >> 43) << spare, (x & ((1 << 43) - 1)) << 21] for x in asked], np.uint64)
    found = _draw(high, low, len(asked), lambda count: raw.tobytes())
    assert found.tolist() == [int((cumulative <= x).sum()) for x in asked]


def test_draws_beyond_last_mass_are_repeated() -> None:
    high, low = np.array([1, 2], np.uint64), np.array([5, 0], np.uint64)
    spare = 64 - 2
    words = [[(2 << spare, 0), (0, 0)], [(1 << spare, 5 << 21)]]
    given = iter(np.array(pairs, np.uint64).tobytes() for pairs in words)
    assert _draw(high, low, 2, lambda count: next(given)).tolist() == [0, 1]


def test_seeded_samples_repeat_unseeded_differ() -> None:
    mechanism = rows_of("eikonal, 8 neighbours")
    assert np.array_equal(mechanism.sample([0, 5], 50, rng=1), mechanism.sample([0, 5], 50, rng=1))
    assert not np.array_equal(mechanism.sample(0, 500), mechanism.sample(0, 500))


@pytest.mark.parametrize("secret", [-1, 16, 0.5, [], [[0]]], ids=str)
def test_unknown_secrets_are_refused(secret: object) -> None:
    with pytest.raises(InputError) as caught:
        rows_of("eikonal, 8 neighbours").sample(secret, 3)  # type: ignore[arg-type]
    assert caught.value.field == "secret"


@pytest.mark.parametrize("case", ["discrete", "graph, table loss", "scattered points"])
def test_program_without_factored_form_is_refused(case: str) -> None:
    with pytest.raises(UnsuitableError) as caught:
        md.solve(md.EikonalWeights(problem=CASES[case]()), method="factored")
    assert caught.value.field == "method"


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        md.factored.FactoredOptions(rounds=4)
    assert caught.value.field == "rounds"


def test_fast_marching_has_no_factored_form() -> None:
    program = md.EikonalWeights(problem=md.load_problem("philadelphia", cells=6), distances="fast-marching")
    with pytest.raises(UnsuitableError, match="not symmetric"):
        md.solve(program, method="factored")


def test_factored_options_are_refused_elsewhere(tmp_path) -> None:
    problem = CASES["eikonal, 8 neighbours"]()
    for program in (md.Optimal(problem=problem), md.EikonalWeights(problem=problem)):
        for given in ({"rounds": 9}, {"work": tmp_path}, {"scheduler": "tcp://nowhere:1"}):
            with pytest.raises(InputError) as caught:
                md.solve(program, options=md.factored.FactoredOptions(**given))
            assert caught.value.field in given


def test_options_of_other_class_are_refused() -> None:
    with pytest.raises(InputError, match="FactoredOptions") as caught:
        md.solve(md.EikonalWeights(CASES["eikonal, 8 neighbours"]()), method="factored", options={"rounds": 9})
    assert caught.value.field == "options"


def test_large_grid_is_factored_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "LARGEST_TABLE", 80)
    schemas = [md.solve(md.EikonalWeights(problem=constant((n, n), 1.0))).attrs["schema"] for n in (8, 9)]
    assert schemas == ["mechdesign/mechanism/2", "mechdesign/factored/2"]


@pytest.mark.study
def test_large_grid_factors_are_near_table() -> None:
    program = md.EikonalWeights(problem=md.load_problem("philadelphia", cells=41))
    mechanism, table = (
        md.solve(program, options=md.factored.FactoredOptions(rounds=16), bound=False),
        md.solve(program, method="table"),
    )
    assert mechanism.attrs["schema"] == "mechdesign/factored/2"
    kernel_loss = mean_cost(table["mass"].values, program.problem.weighted_loss)
    assert kernel_loss <= mechanism.attrs["expected_loss"] <= 1.02 * kernel_loss


@pytest.mark.study
def test_more_rounds_help_with_short_edges() -> None:
    problem = md.load_problem("philadelphia", cells=14, extent=7.0, stencil=16)
    few, many = (
        md.solve(
            md.EikonalWeights(problem=problem), method="factored", options=md.factored.FactoredOptions(rounds=rounds)
        ).attrs["expected_loss"]
        for rounds in (6, 40)
    )
    assert many < 0.98 * few
