"""verify: every mechanism made here is certified, and every tampered one is refused with a reason."""

from __future__ import annotations

import json
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten, write_anyway
from fixtures.rows import few_by_default
from fixtures.session_designs import design_with_rule

import mechdesign as md
from mechdesign import (
    DesignProblem,
    Discrete,
    Domain,
    Eikonal,
    EikonalWeights,
    Euclidean,
    Graph,
    Optimal,
    PrivacyLevel,
    baselines,
    priors,
    save,
    solve,
    verify,
)
from mechdesign.errors import InputError, VerificationError
from mechdesign.extend import METRICS
from mechdesign.losses import Distance, SquaredDistance, TableLoss, ZeroOne
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound

GRID = Domain.grid((4, 4), cell=0.5, unit="km")
LEVEL = PrivacyLevel.from_values(GRID, np.random.default_rng(0).uniform(0.8, 1.6, (4, 4)))
SKEWED = priors.proportional(np.random.default_rng(1).random(16))
NINE = Domain.grid((3, 3), cell=2.0, unit="m")
NODES = Domain.nodes(5)
RING = Graph(tail=[0, 1, 2, 3, 0], head=[1, 2, 3, 4, 4], length=[0.3, 0.5, 0.7, 0.9, 1.1])
TABLE = TableLoss(values=np.random.default_rng(2).random((5, 3)))
REPORTS = Domain.points_at([0.0, 1.5, 3.0], unit="1")


def on(domain: Domain, metric, loss, prior: np.ndarray | None = None, **given) -> DesignProblem:
    prior = priors.uniform(domain) if prior is None else prior
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss, **given)


PROBLEMS = {
    "eikonal": on(GRID, Eikonal(level=LEVEL), SquaredDistance(), SKEWED),
    "eikonal, multiplied": on(GRID, 0.7 * Eikonal(level=LEVEL, stencil=16), Distance()),
    "euclidean": on(NINE, Euclidean(epsilon=0.4, unit="m"), Distance()),
    "discrete": on(NODES, Discrete(epsilon=1.2), ZeroOne()),
    "graph": on(NODES, RING, ZeroOne()),
    "graph, multiplied": on(NODES, 0.6 * RING, ZeroOne()),
    "table loss": on(NODES, Discrete(epsilon=0.8), TABLE, reports=REPORTS),
}
MAKERS = {
    "optimal": lambda problem: solve(Optimal(problem=problem)),
    "weights": lambda problem: solve(EikonalWeights(problem=problem)),
    "exponential": baselines.exponential,
    "constant": baselines.constant,
    "geometric": lambda problem: baselines.geometric(problem, border="normalised"),
    "response": baselines.randomized_response,
}
ON_ANY = [(problem, maker) for problem in PROBLEMS for maker in ("optimal", "exponential", "constant")]
ELSEWHERE = [("eikonal", "weights"), ("eikonal", "geometric"), ("euclidean", "geometric"), ("discrete", "response")]


@cache
def mechanism_of(problem: str, maker: str = "optimal") -> xr.Dataset:
    return MAKERS[maker](PROBLEMS[problem])


@pytest.mark.parametrize(
    ("problem", "maker"),
    few_by_default(ON_ANY + ELSEWHERE, *(row for row in ON_ANY if "eikonal" in row or "optimal" in row), *ELSEWHERE),
)
def test_every_mechanism_is_certified(problem: str, maker: str) -> None:
    mechanism = mechanism_of(problem, maker)
    result = verify(mechanism)
    assert result.certified, result.reasons
    assert result.violations == 0
    assert result.claim == mechanism.attrs["claim"]
    assert "times the shortest-path distance of the edges listed" not in result.claim  # they are multiplied already
    assert result.edge_source == ("edge list only" if problem.startswith("graph") else "geometry")
    assert result.lower_bound_checked is (True if "lower_bound" in mechanism.attrs else None)
    assert json.loads(json.dumps(result.as_dict()))["certified"] is True


@pytest.mark.parametrize("problem", few_by_default(PROBLEMS, "eikonal", "graph, multiplied", "table loss"))
@pytest.mark.obligation("table-inequalities")
def test_integer_reader_finds_no_violation(problem: str, tmp_path: Path) -> None:
    path = save(mechanism_of(problem), tmp_path / "m.nc")
    assert verify(path).as_dict() == verify(mechanism_of(problem)).as_dict()
    with xr.open_dataset(path, engine="h5netcdf", mask_and_scale=False) as file:
        masses = file["mass"].values.tolist()
        edges = list(zip(*(file[f"edge_{part}"].values.tolist() for part in ("tail", "head", "length")), strict=True))
    assert all(sum(row) == 2**62 and min(row) >= 1 for row in masses)
    with localcontext() as context:
        context.prec = 50
        for tail, head, length in edges:
            power = Decimal(length).exp() * (1 - Decimal(10) ** -45)
            ratio = int((power * 2**100).to_integral_value(ROUND_FLOOR))
            for a, b in zip(masses[tail], masses[head], strict=True):
                assert a << 100 <= ratio * b
                assert b << 100 <= ratio * a


def edit_variable(name: str, change):
    return lambda m: m.assign({name: (m[name].dims, change(m[name].values.copy()), m[name].attrs)})


def first(name: str, change):
    return edit_variable(name, lambda v: np.r_[change(v.flat[0]), v.ravel()[1:]].astype(v.dtype).reshape(v.shape))


def attribute(name: str, change):
    return lambda mechanism: mechanism.assign_attrs({name: change(mechanism.attrs[name])})


def edit_description(name: str, **changes):
    return attribute(name, lambda text: json.dumps(json.loads(text) | changes, sort_keys=True))


def replace_description(name: str, **names):
    return attribute(name, lambda text: json.dumps(names, sort_keys=True))


def moved_within_a_row(mass: np.ndarray) -> np.ndarray:
    """From the smallest ratio of the first row to its largest entry: the row sums stay."""
    tight = int(np.argmin(mass[0]))
    amount = mass[0, tight] // np.uint64(1000) + np.uint64(1)
    mass[0, tight] -= amount
    mass[0, int(np.argmax(mass[0]))] += amount
    return mass


def raised_map(mechanism: xr.Dataset) -> xr.Dataset:
    grid = json.loads(mechanism.attrs["metric"])["level"]
    grid["eps"] = (1.01 * np.array(grid["eps"])).tolist()
    return edit_description("metric", level=grid)(mechanism)


def recompute_figures(mechanism: xr.Dataset) -> xr.Dataset:
    """Edges, level, claim and figures as the metric and the places of the file give them."""
    points = np.column_stack([mechanism["secret_x"], mechanism["secret_y"]])
    domain = Domain.from_description(json.loads(mechanism.attrs["domain"]), points)
    content = json.loads(mechanism.attrs["metric"])
    metric = METRICS[content["kind"]].from_description(content, scale=content["multiplier"], stored_edges=None)
    problem = on(domain, metric, SquaredDistance(), mechanism["prior"].values)
    return build_dataset(problem, mechanism["mass"].values, program="optimal")


def keeping_the_sentence(change):
    return lambda mechanism: recompute_figures(change(mechanism)).assign_attrs(claim=mechanism.attrs["claim"])


def scale_coordinates(mechanism: xr.Dataset, factor: float) -> xr.Dataset:
    names = [name for name in mechanism.coords if name.endswith(("_x", "_y"))]
    return mechanism.assign_coords({name: mechanism[name] * factor for name in names})


def other_geometry(mechanism: xr.Dataset) -> xr.Dataset:
    return edit_description("domain", cell=[1.0, 1.0])(scale_coordinates(mechanism, 2.0))


def without_attribute(name: str):
    return lambda m: m.drop_attrs(deep=False).assign_attrs({k: v for k, v in m.attrs.items() if k != name})


UNIT = np.uint64(1)
VARIABLES = ("mass", "edge_tail", "edge_length", "prior", "level")


@pytest.mark.parametrize("name", ["discrete", "euclidean"])
def test_effective_epsilon_is_the_steepest_log_ratio(name: str) -> None:
    """By the integers times the level, and by logarithms of the table over distances without the level."""
    problem = PROBLEMS[name]
    mechanism = baselines.exponential(problem)
    table = np.log(mechanism["mass"].values.astype(float))
    apart = problem.distances / problem.metric.epsilon + np.diag(np.full(problem.domain.size, np.inf))
    steepest = (np.abs(table[:, None] - table[None]).max(axis=2) / apart).max()
    checked = verify(mechanism)
    assert checked.effective_epsilon == pytest.approx(steepest, rel=1e-9)
    assert checked.ratio < 0.95
    assert verify(baselines.exponential(PROBLEMS["eikonal"])).effective_epsilon is None


ATTRIBUTES = ("metric", "domain", "claim", "loss", "expected_loss", "ratio", "schema")
TAMPERED = {
    "one unit more": ("mass", first("mass", lambda a: a + UNIT)),
    "an entry of zero": ("mass", first("mass", lambda a: np.uint64(0))),
    "a tight edge broken": ("mass", edit_variable("mass", moved_within_a_row)),
    "edge an ulp longer": ("edge_length", first("edge_length", lambda d: np.nextafter(d, 9))),
    "edge longer": ("edge_length", first("edge_length", lambda d: 1.1 * d)),
    "edge of length nan": ("edge_length", first("edge_length", lambda d: np.nan)),
    "edge deleted": ("edge_tail", lambda m: m.isel(edge=slice(1, None))),
    "edges swapped": ("edge_tail", lambda m: m.isel(edge=np.r_[1, 0, 2 : m.sizes["edge"]])),
    "edge out of range": ("edge_head", first("edge_head", lambda v: 16)),
    "level raised": ("level", first("level", lambda x: 1.01 * x)),
    "map raised": ("edge_length", raised_map),
    "map raised, edges too": ("claim", keeping_the_sentence(raised_map)),
    "multiplier raised": ("edge_length", edit_description("metric", multiplier=1.2)),
    "multiplier nan": ("metric", edit_description("metric", multiplier=float("nan"))),
    "another stencil": ("edge_tail", edit_description("metric", stencil=4)),
    "another metric": (
        "edge_tail",
        replace_description("metric", kind="euclidean", multiplier=1.0, epsilon=1.0, unit="km"),
    ),
    "a metric with more names": ("metric", edit_description("metric", kind="euclidean", epsilon=1.0, unit="km")),
    "a metric unknown": ("unknown metric", edit_description("metric", kind="manhattan")),
    "called a graph": ("claim", replace_description("metric", kind="graph", multiplier=1.0)),
    "coordinates scaled": ("coordinates", lambda m: scale_coordinates(m, 1.5)),
    "geometry scaled": ("edge_length", other_geometry),
    "geometry scaled, edges too": ("claim", keeping_the_sentence(other_geometry)),
    "loss": ("expected_loss", attribute("expected_loss", lambda x: x * (1 - 1e-6))),
    "loss of nan": ("expected_loss", attribute("expected_loss", lambda x: np.nan)),
    "another loss": ("expected_loss", attribute("loss", lambda name: "distance")),
    "an unknown loss": ("loss", attribute("loss", lambda name: "cubed")),
    "effective epsilon": ("ratio", attribute("ratio", lambda x: 0.9 * x)),
    "bound raised": ("lower_bound", attribute("lower_bound", lambda x: x * (1 + 1e-6))),
    "bound of nan": ("lower_bound", attribute("lower_bound", lambda x: np.nan)),
    "dual of nan": ("lower_bound", first("dual", lambda x: np.nan)),
    "dual of zero": ("lower_bound", edit_variable("dual", np.zeros_like)),
    "without dual": ("lower_bound", lambda m: m.drop_vars("dual")),
    "dual too short": ("file", lambda m: m.assign(dual=("few", np.zeros(3)))),
    "prior turned": ("expected_loss", edit_variable("prior", np.flip)),
    "prior halved": ("prior", edit_variable("prior", lambda p: p / 2)),
    "prior negative": ("prior", edit_variable("prior", lambda p: np.r_[p[0] - 1, p[1] + 1, p[2:]])),
    "claim": ("claim", attribute("claim", lambda text: text.replace("16 secrets", "17 secrets"))),
    **{f"without {name}": (name, lambda m, name=name: m.drop_vars(name)) for name in VARIABLES},
    **{f"attribute {name} lost": (name, without_attribute(name)) for name in ATTRIBUTES},
    "mass of another type": ("mass", lambda m: m.assign(mass=m["mass"].astype(np.int64))),
    "edges of another type": ("edge_tail", lambda m: m.assign(edge_tail=m["edge_tail"].astype(np.float64))),
    "mass turned": ("mass", lambda m: m.assign(mass=m["mass"].transpose())),
    "schema": ("schema", attribute("schema", lambda text: text.replace("/2", "/3"))),
}


# Rows that a file stores otherwise than memory does: types, axes, sizes, the schema; and two of values.
STORED = (
    *("mass turned", "mass of another type", "edges of another type", "dual too short", "schema"),
    *("attribute schema lost", "attribute ratio lost", "without mass", "a tight edge broken", "loss of nan"),
)


def check_refused(source: xr.Dataset | Path, field: str) -> None:
    try:
        reasons = verify(source).reasons
    except VerificationError as error:
        reasons = [f"{field}: {error}"] if field in str(error) else []
    assert any(reason.startswith(f"{field}:") for reason in reasons)


@pytest.mark.parametrize("change", TAMPERED)
@pytest.mark.obligation("claim-rebuilt")
@pytest.mark.obligation("figures-recomputed")
@pytest.mark.obligation("printed-claim")
def test_tampering_is_refused_with_a_reason_that_names_the_field(change: str) -> None:
    field, tamper = TAMPERED[change]
    check_refused(rewritten(tamper(mechanism_of("eikonal"))), field)


@pytest.mark.parametrize("change", few_by_default(TAMPERED, *STORED))
@pytest.mark.obligation("claim-rebuilt")
def test_tampered_file_is_refused_by_its_field(change: str, tmp_path: Path) -> None:
    """The same through a file, which takes ten times as long."""
    field, tamper = TAMPERED[change]
    check_refused(write_anyway(tamper(mechanism_of("eikonal")), tmp_path / "m.nc"), field)


@pytest.mark.parametrize("change", [raised_map, other_geometry, edit_description("metric", multiplier=1.0 + 2**-40)])
@pytest.mark.obligation("printed-claim")
def test_a_weaker_claim_may_hold_but_reads_differently(change) -> None:
    weaker = recompute_figures(change(mechanism_of("eikonal")))
    assert verify(weaker).certified
    assert weaker.attrs["claim"] != mechanism_of("eikonal").attrs["claim"]


@pytest.mark.obligation("printed-claim")
def test_other_edges_of_a_graph_read_differently() -> None:
    longer = first("edge_length", lambda d: np.nextafter(d, 9))
    check_refused(rewritten(longer(mechanism_of("graph", "constant"))), "claim")


def test_a_length_that_equals_the_metrics_has_its_bits_too(tmp_path: Path) -> None:
    """-0.0 equals 0, and the claim names the bytes of the list."""
    nothing = baselines.constant(PROBLEMS["euclidean"])
    assert nothing["edge_length"].values[0] == 0
    assert verify(nothing).certified
    negative = first("edge_length", lambda d: -d)(nothing)
    check_refused(write_anyway(negative, tmp_path / "m.nc"), "edge_length")


def test_small_losses_are_compared_by_their_digits() -> None:
    small = baselines.exponential(on(NODES, RING, TableLoss(values=1e-9 * (1 - np.eye(5)))))
    assert verify(small).certified
    check_refused(rewritten(attribute("expected_loss", lambda x: 1.001 * x)(small)), "expected_loss")


def test_bound_holds_for_any_normalisation_of_rays() -> None:
    loss = TableLoss(values=np.random.default_rng(3).random((5, 5)))
    problem = on(NODES, Discrete(epsilon=1.0), loss)
    dual, mass = 2 * problem.weighted_loss.min(axis=1), baselines.exponential(problem)["mass"].values
    bounds = set()
    for anchors in (np.arange(5), np.argmin(problem.loss_matrix, axis=0)):
        bound = lower_bound(dual, ConePricer(problem.edges, 5, anchors).price(problem.weighted_loss, dual).value)
        mechanism = build_dataset(problem, mass, program="test", extras=Extras(dual=dual, lower_bound=bound))
        assert verify(mechanism).lower_bound_checked is True
        bounds.add(bound)
    assert len(bounds) == 2


def test_a_limit_that_the_integers_exceed_is_refused() -> None:
    """A table that is private as claimed, of the program whose limit on the worst loss it breaks."""
    problem = PROBLEMS["euclidean"]
    program = md.programs.Bounded(problem=problem, worst_loss=2.7)
    mass = baselines.constant(problem)["mass"].values
    worst = float((problem.loss_matrix * (mass / 2.0**62)).sum(axis=1).max())
    assert worst > 2.7
    given = {"objective": float((problem.weighted_loss * (mass / 2.0**62)).sum()), "objective_of": program.objective_of}
    forged = build_dataset(
        problem, mass, program="bounded", extras=Extras(parameters=program.parameters(), attributes=given)
    )
    result = verify(forged)
    assert not result.certified
    assert "exceeds the limit, and so do" in result.reasons[0]
    assert result.as_dict()["protects"] is None
    assert "reasons" in repr(result)
    kept = build_dataset(
        problem,
        mass,
        program="bounded",
        extras=Extras(
            parameters=md.programs.Bounded(problem=problem, worst_loss=worst * 1.01).parameters(), attributes=given
        ),
    )
    result = verify(kept)
    assert result.certified
    assert result.protection is not None
    assert result.as_dict()["factor_within"] == result.protection.factor


@pytest.mark.obligation("figures-recomputed")
def test_bound_on_own_constraints_is_hidden() -> None:
    own = md.programs.Constrained(problem=PROBLEMS["graph"], constraints=[lambda table: table[0, 1] <= 0.2])
    result = verify(solve(own))
    assert result.certified
    assert result.lower_bound_checked is None
    assert result.lower_bound_reason == "it depends on constraints that a file cannot hold"


def test_non_numeric_multipliers_prove_no_bound() -> None:
    mechanism = solve(md.programs.Minimax(problem=PROBLEMS["graph"]))
    assert verify(mechanism).lower_bound_checked is True
    for name in ("dual", "multiplier"):
        values = mechanism[name].copy(data=np.full(mechanism[name].shape, np.nan))
        assert verify(rewritten(mechanism, **{name: values})).lower_bound_checked is False


def test_verifiable_sources(tmp_path: Path) -> None:
    """A session design as an object and as a file; no export, no other file, no number."""
    design = design_with_rule("clock")
    result = verify(md.sessions.save_design(design, tmp_path / "day.json"))
    assert result.certified
    assert (result.windows, result.as_dict()["windows"]) == (verify(design).windows, result.windows)
    assert "windows" in repr(result)
    for suffix in ("csv", "json"):
        with pytest.raises(InputError, match="an exported table cannot rebuild its claim"):
            verify(md.export(mechanism_of("discrete", "exponential"), tmp_path / f"t.{suffix}"))
    (tmp_path / "m.nc").write_bytes(b"text")
    with pytest.raises(VerificationError, match="damaged"):
        verify(tmp_path / "m.nc")
    with pytest.raises(InputError, match="must be a file or a mechanism"):
        verify(3)  # type: ignore[arg-type]
