"""The family of designs over one cone: minimax, robust, bounded, dictionary, and the user's own constraints."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import xarray as xr
from cases import CASES, grid
from tolerances import DESIGN_MARGIN, ORACLE, SOLVED, UNRESOLVED

import mechdesign as md
from mechdesign.errors import DesignError, InfeasibleError, InputError, SizeError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.table import seal
from mechdesign.problem_files import load_problem
from mechdesign.programs.coupled import Coupled, SideRows, objective, stack_rows
from mechdesign.programs.program import Program
from mechdesign.programs.whole import MOST_ROWS, assemble_whole
from mechdesign.setting import priors
from mechdesign.setting.problem import DesignProblem
from mechdesign.solvers import coupled
from mechdesign.solvers.aggregation import Progress
from mechdesign.solvers.coupled import admit, coupled_bound, solve_coupled, task_of
from mechdesign.solvers.highs import solve_linear_program

ALL = pytest.mark.parametrize("case", CASES)
OWN_REPORTS = [name for name in CASES if name != "reports apart from secrets"]
SLACK = 1.05  # times the minimax value: bounds that bind, with room


@cache
def problem_of(case: str) -> DesignProblem:
    return CASES[case]()


def several_priors(problem: DesignProblem) -> np.ndarray:
    rng = np.random.default_rng(11)
    drawn = [priors.proportional(rng.random(problem.domain.size) ** power) for power in (1, 4)]
    return np.stack([problem.prior_array, *drawn])


def half_of_the_reports(problem: DesignProblem) -> md.ReportCap:
    return md.ReportCap(cap=0.7, reports=range(0, problem.reports.size, 2))


PROGRAMS = {
    "minimax": lambda problem: md.Minimax(problem=problem),
    "robust": lambda problem: md.Robust(problem=problem, priors=several_priors(problem)),
    "bounded": lambda problem: md.Bounded(
        problem=problem, worst_loss=SLACK * solved(problem.knobs["case"], "minimax").attrs["objective"]
    ),
    "constrained": lambda problem: md.Constrained(
        problem=problem,
        constraints=[half_of_the_reports(problem), md.RequiredReport(report=1, least=0.03, secrets=[0])],
    ),
}
COUPLED = pytest.mark.parametrize("program", PROGRAMS)


def program_of(case: str, program: str) -> Coupled:
    made = problem_of(case)
    object.__setattr__(made, "knobs", {"case": case})
    return PROGRAMS[program](made)


@cache
def solved(case: str, program: str) -> xr.Dataset:
    return md.solve(program_of(case, program), gap=SOLVED)


@cache
def optimum(case: str) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem_of(case)), gap=SOLVED)


@cache
def dictionary(case: str) -> xr.Dataset:
    return md.solve(md.Dictionary(problem=problem_of(case)))


def table_of(mechanism: xr.Dataset) -> np.ndarray:
    return md.probabilities(mechanism).values


def loss_at_secrets(mechanism: xr.Dataset, problem: DesignProblem) -> np.ndarray:
    return (problem.loss_matrix * table_of(mechanism)).sum(axis=1)


@ALL
@COUPLED
def test_the_bounds_meet_at_the_value_of_the_statement(case: str, program: str) -> None:
    attrs = solved(case, program).attrs
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound"] <= attrs["objective"] <= attrs["lower_bound"] * (1 + 2 * SOLVED)
    statement = program_of(case, program).statement()
    assert statement.is_dcp()
    assert statement.solve(solver="HIGHS") == pytest.approx(attrs["objective"], rel=ORACLE)


@ALL
@COUPLED
def test_certified_with_the_bound_proved_from_the_file(case: str, program: str) -> None:
    result = md.verify(solved(case, program))
    assert result.certified
    assert result.lower_bound_checked is True


@ALL
def test_the_dictionary_has_the_value_of_its_statement_and_is_certified(case: str) -> None:
    mechanism = dictionary(case)
    assert mechanism.attrs["lower_bound"] <= mechanism.attrs["expected_loss"]
    statement = md.Dictionary(problem=problem_of(case)).statement()
    assert statement.solve(solver="HIGHS") == pytest.approx(mechanism.attrs["expected_loss"], rel=ORACLE)
    result = md.verify(mechanism)
    assert result.certified
    assert result.lower_bound_checked is True


@pytest.mark.parametrize("case", OWN_REPORTS)
def test_optimal_dictionary_eikonal_in_this_order(case: str) -> None:
    eikonal = md.solve(md.EikonalWeights(problem=problem_of(case))).attrs
    found = dictionary(case).attrs["expected_loss"]
    assert optimum(case).attrs["lower_bound"] <= found
    if json.loads(eikonal["parameters"])["remedy"] == "none":
        assert found <= eikonal["expected_loss"] * (1 + DESIGN_MARGIN)
    assert dictionary(case).attrs["lower_bound"] <= optimum(case).attrs["expected_loss"]


def test_source_sets_answer_for_the_border_where_single_places_cannot() -> None:
    problem = load_problem("flat", cells=8, epsilon=0.5)
    single = [[u] for u in range(64)]
    with pytest.raises(InfeasibleError, match="no weights"):
        md.solve(md.Dictionary(problem=problem, sources=single))
    everywhere = [list(range(64))]
    held = md.solve(md.Dictionary(problem=problem, sources=single + everywhere)).attrs["expected_loss"]
    grown = md.solve(md.Dictionary(problem=problem)).attrs["expected_loss"]
    eikonal = md.solve(md.EikonalWeights(problem=problem)).attrs["expected_loss"]
    best = md.solve(md.Optimal(problem=problem)).attrs["lower_bound"]
    assert best <= grown < 1.02 * best
    assert grown < 0.9 * eikonal
    assert grown < held


def test_a_dictionary_of_the_whole_domain_is_the_best_constant() -> None:
    problem = problem_of("eikonal, masked")
    everywhere = md.Dictionary(problem=problem, sources=[range(problem.domain.size)])
    assert md.solve(everywhere).attrs["expected_loss"] == pytest.approx(problem.constant_loss, rel=DESIGN_MARGIN)


def test_kernels_of_source_sets_are_private_and_reported_by_bayes() -> None:
    program = md.Dictionary(problem=problem_of("eikonal, 16 neighbours"))
    log = np.log(program.kernel)
    rise = log[:, None, :] - log[None, :, :]
    assert (rise.max(axis=2) <= program.problem.distances + DESIGN_MARGIN).all()
    every = np.einsum("uk,uy->ky", program.kernel, program.problem.cost)
    assert program.kernel_cost == pytest.approx(every.min(axis=1))
    assert {len(source) for source in program.sets} == {1, 2, 4, 8, 16}


@ALL
def test_minimax_is_at_least_the_optimum_under_every_prior(case: str) -> None:
    problem, worst = problem_of(case), solved(case, "minimax")
    rng = np.random.default_rng(3)
    for power in (0, 1, 6):
        prior = priors.proportional(rng.random(problem.domain.size) ** power)
        judged = DesignProblem(
            domain=problem.domain, metric=problem.metric, prior=prior, loss=problem.loss, reports=problem.reports
        )
        assert md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["lower_bound"] <= worst.attrs["objective"]
    assert worst.attrs["objective"] <= loss_at_secrets(optimum(case), problem).max() * (1 + SOLVED)
    assert worst.attrs["objective"] == pytest.approx(loss_at_secrets(worst, problem).max(), rel=DESIGN_MARGIN)


@ALL
def test_the_optimum_under_the_least_favourable_prior_is_the_minimax_value(case: str) -> None:
    problem, worst = problem_of(case), solved(case, "minimax")
    prior = worst["multiplier"].values
    assert prior.min() >= 0
    assert math.fsum(prior) <= 1
    judged = DesignProblem(
        domain=problem.domain,
        metric=problem.metric,
        prior=priors.proportional(prior),
        loss=problem.loss,
        reports=problem.reports,
    )
    found = md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["expected_loss"]
    assert found == pytest.approx(worst.attrs["objective"], rel=3 * SOLVED)


@ALL
def test_robust_lies_between_every_prior_and_minimax(case: str) -> None:
    problem, attrs = problem_of(case), solved(case, "robust").attrs
    for prior in several_priors(problem):
        judged = DesignProblem(
            domain=problem.domain, metric=problem.metric, prior=prior, loss=problem.loss, reports=problem.reports
        )
        assert md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["lower_bound"] <= attrs["objective"]
    assert attrs["lower_bound"] <= solved(case, "minimax").attrs["objective"]
    each = several_priors(problem) @ loss_at_secrets(solved(case, "robust"), problem)
    assert attrs["objective"] == pytest.approx(each.max(), rel=DESIGN_MARGIN)


@pytest.mark.parametrize("case", ["eikonal, masked", "graph, table loss", "reports apart from secrets"])
def test_robust_over_point_priors_is_minimax_and_over_one_prior_optimal(case: str) -> None:
    problem = problem_of(case)
    points = md.solve(md.Robust(problem=problem, priors=np.eye(problem.domain.size)), gap=SOLVED).attrs
    assert points["objective"] == pytest.approx(solved(case, "minimax").attrs["objective"], rel=2 * SOLVED)
    one = md.solve(md.Robust(problem=problem, priors=problem.prior_array[None]), gap=SOLVED).attrs
    assert one["objective"] == pytest.approx(optimum(case).attrs["expected_loss"], rel=2 * SOLVED)


@ALL
def test_bounds_on_the_loss_hold_and_cost_something(case: str) -> None:
    problem, mechanism = problem_of(case), solved(case, "bounded")
    bound = SLACK * solved(case, "minimax").attrs["objective"]
    assert (loss_at_secrets(mechanism, problem) <= bound).all()
    assert optimum(case).attrs["lower_bound"] <= mechanism.attrs["objective"]
    assert mechanism.attrs["objective"] == mechanism.attrs["expected_loss"]
    if loss_at_secrets(optimum(case), problem).max() > bound * (1 + SOLVED):
        assert mechanism.attrs["lower_bound"] > optimum(case).attrs["expected_loss"]


def test_a_bound_per_secret_binds_where_it_is_given() -> None:
    problem = problem_of("eikonal, 8 neighbours")
    free = loss_at_secrets(optimum("eikonal, 8 neighbours"), problem)
    bounds = np.full(16, np.inf)
    bounds[5] = 0.9 * free[5]
    mechanism = md.solve(md.Bounded(problem=problem, worst_loss=bounds), gap=SOLVED)
    assert loss_at_secrets(mechanism, problem)[5] <= bounds[5]
    assert mechanism["multiplier"].shape == (1,)
    assert mechanism["multiplier"].values[0] > 0
    oracle = md.Bounded(problem=problem, worst_loss=bounds).statement().solve(solver="HIGHS")
    assert oracle == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)


@pytest.mark.parametrize("case", ["line, squared, skewed prior", "eikonal, masked", "reports apart from secrets"])
def test_a_bound_below_the_minimax_value_is_proved_impossible(case: str) -> None:
    problem, value = problem_of(case), solved(case, "minimax").attrs["lower_bound"]
    with pytest.raises(InfeasibleError, match=r"proved.*bound on the loss at secret \d+") as caught:
        md.solve(md.Bounded(problem=problem, worst_loss=0.8 * value))
    assert caught.value.field == "worst-loss"
    assert caught.value.exit_code == 1
    assert "25 %" in caught.value.remedy or "25.01 %" in caught.value.remedy
    assert md.solve(md.Bounded(problem=problem, worst_loss=1.001 * value)).attrs["objective"] > 0


@pytest.mark.parametrize(("secrets", "epsilon"), [(2, 0.1), (8, 1.5), (12, 4.0)])
def test_minimax_under_the_discrete_metric_is_randomized_response(secrets: int, epsilon: float) -> None:
    attrs = md.solve(md.Minimax(problem=load_problem("discrete", secrets=secrets, epsilon=epsilon)), gap=SOLVED).attrs
    published = (secrets - 1) / (secrets - 1 + math.exp(epsilon))
    assert attrs["lower_bound"] <= published * (1 + DESIGN_MARGIN)
    assert attrs["objective"] == pytest.approx(published, rel=SOLVED)


def test_minimax_on_a_ring_is_the_optimum_of_the_uniform_prior() -> None:
    places = np.arange(9)
    apart = np.abs(np.subtract.outer(places, places))
    problem = DesignProblem(
        domain=md.Domain.nodes(9),
        metric=md.Graph(tail=places, head=(places + 1) % 9, length=np.full(9, 0.7)),
        prior=priors.proportional(1.0 + places),
        loss=md.TableLoss(values=np.minimum(apart, 9 - apart).astype(float)),
    )
    uniform = DesignProblem(
        domain=problem.domain, metric=problem.metric, prior=priors.uniform(problem.domain), loss=problem.loss
    )
    same = md.solve(md.Optimal(problem=uniform), gap=SOLVED).attrs["expected_loss"]
    assert md.solve(md.Minimax(problem=problem), gap=SOLVED).attrs["objective"] == pytest.approx(same, rel=2 * SOLVED)


def test_minimax_of_two_secrets_in_closed_form() -> None:
    problem = load_problem("line", cells=2, epsilon=1.2)
    attrs = md.solve(md.Minimax(problem=problem), gap=SOLVED).attrs
    assert attrs["objective"] == pytest.approx(1 / (1 + math.exp(1.2)), rel=SOLVED)


def test_minimax_where_far_entries_range_widely() -> None:
    problem = load_problem("philadelphia", cells=7)
    seen: list[Progress] = []
    design = solve_coupled(md.Minimax(problem=problem), gap=1e-3, report=seen.append)
    assert design.stopped == "gap"
    assert design.objective - design.lower_bound <= 1e-3 * design.objective
    assert seen[-1].lower_bound == design.lower_bound
    assert seen[-1].loss == design.objective


def test_any_multipliers_give_a_bound_and_wrong_ones_a_worse_one() -> None:
    case = "eikonal, 8 neighbours"
    rng = np.random.default_rng(2)
    for name in PROGRAMS:
        task, mechanism = task_of(program_of(case, name)), solved(case, name)
        value = mechanism.attrs["objective"]
        for _ in range(20):
            multipliers = mechanism["multiplier"].values * rng.uniform(-1, 3, task.rows.size) + rng.normal(size=1) / 50
            dual = mechanism["dual"].values + rng.normal(size=16) * value * rng.choice([1e-9, 1e-2, 1])
            admissible = admit(multipliers, task.rows.share)
            assert (admissible >= 0).all()
            assert math.fsum(admissible * task.rows.share) <= 1
            folded = task.rows.fold_down(task.cost, admissible)
            found = coupled_bound(task.pricer, folded, task.rows.limit, dual, admissible)
            assert found <= value


def test_the_folded_cost_is_rounded_down() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(5)
    entries = rng.normal(size=(40, 12)) * 10.0 ** rng.integers(-6, 6, (40, 12))
    rows = SideRows(
        matrix=stack_rows([], 12).matrix.__class__(entries), limit=np.zeros(40), share=np.zeros(40), names=[""] * 40
    )
    cost, multipliers = rng.random((3, 4)), rng.random(40)
    folded = rows.fold_down(cost, multipliers).ravel()
    for j in range(12):
        pairs = zip(entries[:, j].tolist(), multipliers.tolist(), strict=True)
        exact = Fraction(float(cost.flat[j])) + sum(Fraction(a) * Fraction(b) for a, b in pairs)
        size = abs(float(cost.flat[j])) + float(np.abs(entries[:, j]) @ multipliers)
        assert Fraction(folded[j]) < exact
        assert float(exact) - folded[j] <= 1e-13 * size


def test_excess_is_rounded_up_and_left_out_where_t_takes_it() -> None:
    thirds = np.full((1, 3), 1 / 3)
    matrix = stack_rows([], 3).matrix.__class__(np.ones((2, 3)))
    rows = SideRows(matrix=matrix, limit=np.array([1.0, 0.0]), share=np.array([0.0, 1.0]), names=["a", "b"])
    assert 0 < rows.excess_up(thirds)[0] < 1e-14
    assert rows.excess_up(thirds)[1] == 0
    assert (rows.tightened(np.array([-1e-9, 0.0])).excess_up(thirds) == 0).all()
    assert objective(np.ones((1, 3)), rows, thirds) == pytest.approx(2.0)


def test_the_scaled_program_has_the_value_of_the_plain_one() -> None:
    program = program_of("eikonal, masked", "robust")
    task = task_of(program)
    values = []
    for cap, unit in ((9.0, 1.0), (2.0, 0.01), (18.0, 30.0)):
        whole = assemble_whole(program.problem, task.cost, task.rows, task.pricer.distance, cap=cap, unit=unit)
        values.append(solve_linear_program(whole.program).objective / whole.scale)
    assert values == pytest.approx([solved("eikonal, masked", "robust").attrs["objective"]] * 3, rel=ORACLE)


@ALL
def test_built_in_constraints_hold_on_the_certified_integers(case: str) -> None:
    problem, mechanism = problem_of(case), solved(case, "constrained")
    probability = mechanism["mass"].values.astype(object)
    cap, least = int(0.7 * ROW_SUM), math.ceil(0.03 * ROW_SUM)
    assert (probability[:, ::2] <= cap).all()
    assert probability[0, 1] >= least
    assert mechanism.attrs["lower_bound_of"] == "the program"
    assert mechanism.attrs["objective"] >= optimum(case).attrs["lower_bound"]
    assert problem.reports.size == mechanism.sizes["report"]


def test_an_error_cap_holds_and_costs_what_the_statement_says() -> None:
    case = "eikonal, 8 neighbours"
    problem = problem_of(case)
    beyond = problem.domain.euclidean_to(problem.reports) > 1.5
    free = (table_of(optimum(case)) * beyond).sum(axis=1)
    program = md.Constrained(problem=problem, constraints=[md.ErrorCap(radius=1.5, share=0.9 * float(free.max()))])
    mechanism = md.solve(program, gap=SOLVED)
    held = (table_of(mechanism) * beyond).sum(axis=1)
    assert held.max() <= 0.9 * free.max()
    assert held.max() == pytest.approx(0.9 * free.max(), rel=ORACLE)
    assert mechanism.attrs["lower_bound"] > optimum(case).attrs["expected_loss"]
    assert program.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)
    assert md.verify(mechanism).certified


def test_constraints_that_contradict_each_other_are_named() -> None:
    problem = problem_of("eikonal, masked")
    both = [md.RequiredReport(report=2, least=0.5, secrets=[4]), md.ReportCap(cap=0.4, reports=[2])]
    with pytest.raises(InfeasibleError, match=r"required-report.*report 2|report-cap.*report 2") as caught:
        md.solve(md.Constrained(problem=problem, constraints=both))
    assert caught.value.field == "constraints"
    far = [md.ErrorCap(radius=0.1, share=1e-4)]
    with pytest.raises(InfeasibleError, match="far report at secret"):
        md.solve(md.Constrained(problem=problem, constraints=far))


def test_limits_with_no_room_are_no_proof_and_no_table() -> None:
    problem = load_problem("discrete", secrets=4, epsilon=1.0)
    exact = 3 / (3 + math.e)
    with pytest.raises(DesignError) as caught:
        md.solve(md.Bounded(problem=problem, worst_loss=exact * (1 - UNRESOLVED)))
    assert caught.value.exit_code == 1


def test_affine_constraints_of_ones_own_have_a_tight_bound() -> None:
    case = "reports apart from secrets"
    problem = problem_of(case)
    cap = 0.8 * float(table_of(optimum(case))[:, 1].max())
    built_in = md.Constrained(problem=problem, constraints=[md.ReportCap(cap=cap, reports=[1])])
    own = md.Constrained(problem=problem, constraints=[lambda table: [table[:, 1] <= cap]])
    expected, found = (md.solve(program, gap=SOLVED).attrs for program in (built_in, own))
    assert expected["lower_bound"] > optimum(case).attrs["expected_loss"]
    assert found["objective"] == pytest.approx(expected["objective"], rel=2 * SOLVED)
    assert found["stopped"] == "gap"
    mixed = md.Constrained(
        problem=problem, constraints=[lambda P: [P[0, 1] - 2 * P[3, 2] >= 0.1, cp.sum(P[:, 0]) <= 2]]
    )
    mechanism = md.solve(mixed, gap=SOLVED)
    table = table_of(mechanism)
    assert table[0, 1] - 2 * table[3, 2] >= 0.1
    assert table[:, 0].sum() <= 2
    assert mixed.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)
    result = md.verify(mechanism)
    assert result.certified
    assert result.lower_bound_checked is None


def test_other_convex_constraints_hold_with_the_bound_of_the_relaxation() -> None:
    case = "eikonal, masked"
    problem = problem_of(case)
    free = table_of(optimum(case))
    most = 0.8 * float(np.abs(free[0] - free[1]).sum())
    program = md.Constrained(problem=problem, constraints=[lambda table: [cp.norm1(table[0] - table[1]) <= most]])
    mechanism = md.solve(program, gap=SOLVED)
    table = table_of(mechanism)
    assert np.abs(table[0] - table[1]).sum() <= most
    assert mechanism.attrs["stopped"] == "relaxation"
    assert "without" in mechanism.attrs["lower_bound_of"]
    assert mechanism.attrs["lower_bound"] == pytest.approx(optimum(case).attrs["expected_loss"], rel=2 * SOLVED)
    assert mechanism.attrs["objective"] > mechanism.attrs["lower_bound"] * (1 + ORACLE)
    assert program.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)
    assert md.verify(mechanism).certified


def test_forbidden_reports_leave_the_problem() -> None:
    for case in ("eikonal, masked", "graph, table loss", "reports apart from secrets", "line, zero-one"):
        problem = problem_of(case)
        fewer = md.without_reports(problem, [1])
        kept = [y for y in range(problem.reports.size) if y != 1]
        assert (fewer.loss_matrix == problem.loss_matrix[:, kept]).all()
        mechanism = md.solve(md.Optimal(problem=fewer), gap=SOLVED)
        assert mechanism.sizes["report"] == len(kept)
        assert md.verify(mechanism).certified
        table = cp.Variable(problem.loss_matrix.shape)
        statement = md.Optimal(problem=problem).statement()
        (whole,) = statement.variables()
        oracle = cp.Problem(statement.objective, [*statement.constraints, whole[:, 1] == 0])
        assert table.shape == whole.shape
        assert oracle.solve(solver="HIGHS") == pytest.approx(mechanism.attrs["expected_loss"], rel=ORACLE)


def test_a_file_that_says_too_much_is_refused(tmp_path: Path) -> None:
    case = "graph, table loss"
    for program in PROGRAMS:
        mechanism = solved(case, program)
        for name, factor in (("objective", 0.99), ("lower_bound", 1.01)):
            told = seal(mechanism.assign_attrs({name: mechanism.attrs[name] * factor}))
            result = md.verify(told)
            assert not result.certified
            assert any(reason.startswith(name) for reason in result.reasons)
    tighter = json.loads(solved(case, "bounded").attrs["parameters"])
    tighter["worst_loss"] *= 0.9
    told = seal(solved(case, "bounded").assign_attrs(parameters=json.dumps(tighter)))
    assert any("bound on the loss at secret" in reason for reason in md.verify(told).reasons)
    path = md.save(solved(case, "robust"), tmp_path / "robust.nc")
    assert md.verify(path).lower_bound_checked is True


def test_a_remapped_minimax_makes_no_claim_about_its_worst_case() -> None:
    remapped = md.bayes_remap(solved("eikonal, masked", "minimax"))
    assert "objective" not in remapped.attrs
    assert md.verify(remapped).certified


def test_what_does_not_fit_is_refused_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(md.Minimax, "side_rows", lambda self: pytest.fail("allocated"))
    with pytest.raises(SizeError, match=str(MOST_ROWS)):
        md.solve(md.Minimax(problem=load_problem("philadelphia", cells=30)))
    with pytest.raises(SizeError, match="GB"):
        md.solve(md.Dictionary(problem=load_problem("philadelphia", cells=250)))


def test_no_time_gives_no_table() -> None:
    with pytest.raises(SolverError, match="before any table"):
        solve_coupled(md.Minimax(problem=problem_of("discrete")), gap=1e-3, time_limit=-1.0)


def test_the_interior_point_route_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coupled, "SIMPLEX_LIMIT", 0)
    case = "eikonal, 8 neighbours"
    for program in ("minimax", "bounded"):
        design = solve_coupled(program_of(case, program), gap=1e-4)
        assert design.stopped == "gap"
        assert design.lower_bound <= solved(case, program).attrs["objective"]
        assert design.objective >= solved(case, program).attrs["lower_bound"]


LINE = load_problem("line", cells=4)
BAD = {
    "priors flat": (lambda: md.Robust(problem=LINE, priors=np.full(4, 0.25)), "priors"),
    "priors none": (lambda: md.Robust(problem=LINE, priors=np.zeros((0, 4))), "priors"),
    "prior unnormalised": (lambda: md.Robust(problem=LINE, priors=np.ones((1, 4))), "prior"),
    "bound zero": (lambda: md.Bounded(problem=LINE, worst_loss=0.0), "worst-loss"),
    "bound nan": (lambda: md.Bounded(problem=LINE, worst_loss=math.nan), "worst-loss"),
    "bound shape": (lambda: md.Bounded(problem=LINE, worst_loss=[1.0, 2.0]), "worst-loss"),
    "cap zero": (lambda: md.ReportCap(cap=0.0), "cap"),
    "cap above one": (lambda: md.ReportCap(cap=1.5), "cap"),
    "least zero": (lambda: md.RequiredReport(report=0, least=0.0), "least"),
    "share zero": (lambda: md.ErrorCap(radius=1.0, share=0.0), "share"),
    "radius negative": (lambda: md.ErrorCap(radius=-1.0, share=0.5), "radius"),
    "sources empty": (lambda: md.Dictionary(problem=LINE, sources=[[]]), "sources"),
    "sources outside": (lambda: md.Dictionary(problem=LINE, sources=[[4]]), "sources"),
    "forbidden outside": (lambda: md.without_reports(LINE, [7]), "forbidden"),
    "forbidden all but one": (lambda: md.without_reports(LINE, [0, 1, 2]), "forbidden"),
    "no constraint": (lambda: md.Constrained(problem=LINE, constraints=[0.5]), "constraints"),  # type: ignore[list-item]
}
BAD_CONSTRAINTS = {
    "report outside": (md.ReportCap(cap=0.5, reports=[4]), "reports"),
    "secret outside": (md.RequiredReport(report=0, least=0.1, secrets=[-1]), "secrets"),
    "equality": (lambda table: [table[0, 0] == 0.5], "constraints"),
    "not convex": (lambda table: [cp.sqrt(table[0, 0]) <= 0.5], "constraints"),
    "another variable": (lambda table: [table[0, 0] <= cp.Variable()], "constraints"),
    "a cone": (lambda table: [cp.norm2(table[0]) <= 0.7], "constraints"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_programs(bad: str) -> None:
    make, field = BAD[bad]
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize("bad", BAD_CONSTRAINTS)
def test_bad_constraints(bad: str) -> None:
    given, field = BAD_CONSTRAINTS[bad]
    with pytest.raises(InputError) as caught:
        md.solve(md.Constrained(problem=LINE, constraints=[given]))
    assert caught.value.field == field


def test_nodes_have_no_radius() -> None:
    with pytest.raises(InputError, match="no place"):
        md.solve(md.Constrained(problem=problem_of("discrete"), constraints=[md.ErrorCap(radius=1.0, share=0.5)]))


def test_a_cap_of_zero_says_how_to_forbid_a_report() -> None:
    with pytest.raises(InputError, match="without_reports"):
        md.ReportCap(cap=0.0, secrets=[3])


def test_every_program_is_a_program() -> None:
    made = [program_of("line, zero-one", name) for name in PROGRAMS] + [md.Dictionary(problem=grid_problem())]
    assert all(isinstance(program, Program) for program in made)
    assert [program.name for program in made] == [*PROGRAMS, "dictionary"]


def grid_problem() -> DesignProblem:
    domain = grid(3)
    metric = md.Euclidean(epsilon=1.0, unit="cell")
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=md.Distance())
