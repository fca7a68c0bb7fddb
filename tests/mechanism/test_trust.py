"""Files with false statements: each is refused, whoever wrote it and however well it is sealed.

Every file here is sealed again after its change, so that the checksum never is the reason. test_mutations.py compares
all that is certified after any change with an independent reading.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from functools import cache
from importlib import metadata

import numpy as np
import pytest
import xarray as xr
from fixtures.factored_mechanisms import constant
from fixtures.factored_mechanisms import factored_mechanism as factored
from fixtures.forged_files import rewritten
from fixtures.problems import CASES
from fixtures.random_columns import column_mechanism as columned
from reference.checking import ROW_SUM
from reference.exact import lower_ratio
from reference.factored import KERNEL_BITS, STEP_BITS

import mechdesign as md
from mechdesign import baselines
from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.extend import Edges
from mechdesign.factored.certificate import Factors
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.factored.row_sums import _add_losses, split_words
from mechdesign.factored.schema import FACTORS
from mechdesign.mechanism.build import Extras, build_dataset, versions
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.schema import TABLE_SCHEMA, Schema, VariableSpec, validate
from mechdesign.problem.losses import APART

RING = md.Graph(tail=[0, 1, 2, 3, 0], head=[1, 2, 3, 4, 4], length=[0.3, 0.5, 0.7, 0.9, 1.1])
FACTORED_CASE = "eikonal, 16 neighbours"


def ring(multiplier: float = 1.0) -> md.DesignProblem:
    domain = md.Domain.nodes(5)
    return md.DesignProblem(domain=domain, metric=multiplier * RING, prior=np.full(5, 0.2), loss=md.losses.ZeroOne())


@cache
def table() -> xr.Dataset:
    return md.solve(md.Optimal(problem=CASES["eikonal, 8 neighbours"]()))


@cache
def minimax(multiplier: float) -> xr.Dataset:
    return md.solve(md.programs.Minimax(problem=ring(multiplier)))


@cache
def normalised_mechanism() -> xr.Dataset:
    return baselines.geometric(CASES["euclidean lattice"](), border="normalised")


def reasons_of(mechanism: xr.Dataset) -> str:
    """The reasons why a mechanism is refused; empty if it is certified."""
    try:
        return "; ".join(md.verify(rewritten(mechanism)).reasons)
    except MechdesignError as error:
        return str(error)


def with_description(mechanism: xr.Dataset, name: str, **changes: object) -> xr.Dataset:
    return mechanism.assign_attrs({name: json.dumps(json.loads(mechanism.attrs[name]) | changes, sort_keys=True)})


def overflowing() -> xr.Dataset:
    """Three places, 0.1 nats apart as claimed; 8,192 units of 40 nats each between them, whose product with the step is
    a multiple of 2^64. P(0|0) is 1 to 16 digits.
    """
    mechanism = factored_line().copy(deep=True)
    step = 40 << STEP_BITS
    ratio, shift = lower_ratio(40.0)
    here, there = 1 << KERNEL_BITS, -((-1 << KERNEL_BITS + shift) // ratio)
    total = here + 2 * there
    loss = np.array([there * 5, there * 2, there * 5]) / total
    mechanism["edge_units"].values[:] = 8192
    mechanism["weight"].values[:] = 1
    mechanism["row_sum"].values[:] = split_words([total] * 3)
    mechanism["row_loss"].values[:] = loss
    mechanism["remap"].values[:] = np.arange(3)
    figures = {"expected_loss": loss.mean(), "remapped_loss": loss.mean(), "ratio": 1.0}
    return rewritten(mechanism, step=step, cap=1, **figures)


@cache
def factored_line() -> xr.Dataset:
    return md.solve(md.EikonalWeights(problem=constant(3, 0.1)), method="factored")


@pytest.mark.obligation("no-wrap")
def test_a_product_that_wraps_proves_nothing() -> None:
    """40 2^48 * 8192 = 5 * 2^64: in 64 bits the distance would count as none."""
    mechanism = overflowing()
    assert (40 << STEP_BITS) * 8192 % (1 << 64) == 0
    assert "edge_units: the file contradicts itself: must be at most the cap" in reasons_of(mechanism)
    with pytest.raises(VerificationError, match="at most the cap"):
        md.Sampler(mechanism=mechanism)
    with pytest.raises(MechdesignError, match="at most the cap"):
        md.factored.FactoredMechanism(dataset=mechanism).sample(0, 1)


@pytest.mark.parametrize("cap", [1, 5_535, 32_767])
def test_edge_slack_is_exact_within_bounds(cap: int) -> None:
    """Against Python integers, at the longest steps and edges that a file may have."""
    units = np.array([0, 1, cap], np.uint16)
    points = np.arange(4.0)[:, None]
    metric = IntegerMetric(points=points, tail=np.arange(3), head=np.arange(1, 4), units=units, cap=cap)
    step = (int(KERNEL_BITS * 0.69 * 2**STEP_BITS) - 1) // cap
    factors = Factors(metric=metric, step=step, weight=np.ones(4, np.uint32), inner=np.arange(4))
    length = np.array([1e300, 1e-3, 8192.0])
    result = factors.slack(Edges(tail=np.arange(3), head=np.arange(1, 4), length=length))
    wanted = [
        math.floor(Fraction(min(d, 8192.0)) * 2**STEP_BITS) - step * int(j) for d, j in zip(length, units, strict=True)
    ]
    assert result.tolist() == wanted


@pytest.mark.parametrize("step", [30.0, 60.0, 200.0, 1e4, 1e100])
def test_edges_of_many_nats_are_certified(step: float) -> None:
    """Where e^d exceeds 2^62 and 2^126: against the table of the same places."""
    mechanism = md.solve(md.EikonalWeights(problem=constant(4, step)), method="factored")
    result = md.verify(mechanism)
    assert result.certified
    assert result.violations == 0
    masses, total = md.factored.FactoredMechanism(dataset=mechanism).integers(1)
    assert min(masses) >= 1
    assert sum(masses) == total


def arrays(schema: Schema) -> list[tuple[Schema, str]]:
    return [(schema, name) for name in schema.variables]


def sound(schema: Schema) -> xr.Dataset:
    return table() if schema is TABLE_SCHEMA else columned(FACTORED_CASE)


@pytest.mark.parametrize(("schema", "name"), [*arrays(TABLE_SCHEMA), *arrays(FACTORS)])
@pytest.mark.obligation("file-schema")
def test_every_array_has_its_dtype_and_its_dims(schema: Schema, name: str) -> None:
    """Another dtype, another dimension, one axis more, and as a coordinate; optional ones where the file has none."""
    mechanism, known = sound(schema), schema.variables[name]
    values = np.ones([mechanism.sizes.get(dim, 3) for dim in known.dims], known.dtype)
    wrong = "secret" if known.dims == ("edge",) else "edge"
    forms = [
        (known.dims, values.astype("float32")),
        (tuple(f"other_{dim}" for dim in known.dims), values),
        ((*known.dims, "further"), values[..., None]),
        ((wrong,), np.ones(mechanism.sizes[wrong], known.dtype)),
    ]
    for dims, array in forms:
        altered = mechanism.drop_vars(name, errors="ignore").assign({name: (dims, array)})
        assert reasons_of(altered).startswith(f"{name}: must be there as {known.dtype}")
    if name in mechanism:
        assert reasons_of(mechanism.set_coords(name)).startswith(f"{name}: must be there as")


def test_coordinates_on_wrong_dimension_are_refused() -> None:
    """The lattice of 4 x 4 secrets in a file whose mass has four rows: edges would end beyond the table."""
    mechanism = table()
    few = mechanism["mass"].values[:4]
    altered = mechanism.drop_vars(["mass", "prior", "level", "dual", "tree"]).rename_dims(secret="place")
    altered = altered.assign(mass=(("secret", "report"), few), prior=("secret", np.full(4, 0.25)))
    for use in (lambda m: md.Sampler(mechanism=m), lambda m: md.export(m, "never.csv"), MechanismFile.read):
        with pytest.raises(VerificationError, match="secret_x: must be there as float64 over"):
            use(rewritten(altered))


@pytest.mark.parametrize("schema", [TABLE_SCHEMA, FACTORS], ids=["table", "factors"])
@pytest.mark.obligation("file-schema")
def test_names_outside_the_schema_are_refused(schema: Schema) -> None:
    mechanism = sound(schema)
    for name, kind in schema.attribute_types.items():
        if name == "sha256":
            continue
        wrong = 3 if kind is not int else 3.0
        assert f"{name}: " in reasons_of(mechanism.assign_attrs({name: wrong})), name
    for name in schema.attributes:
        remaining = {key: value for key, value in mechanism.attrs.items() if key != name}
        lost = mechanism.drop_attrs(deep=False).assign_attrs(remaining)
        if name not in ("schema", "sha256"):
            assert reasons_of(lost).startswith(f"{name}: is missing")
    assert "certainty: is not an attribute" in reasons_of(mechanism.assign_attrs(certainty=1.0))
    assert "further: is not a variable" in reasons_of(mechanism.assign(further=("secret", np.zeros(16))))
    assert "problem: has unprintable characters" in reasons_of(mechanism.assign_attrs(problem="red\x1b[31m"))
    assert "prior: has invalid attributes" in reasons_of(
        mechanism.assign(prior=mechanism["prior"].assign_attrs(scale_factor=2.0))
    )


def test_a_dimension_may_not_exceed_compiled_indices() -> None:
    """Integers of 32 bits count edges twice; the check reads sizes, not values."""
    long = xr.Dataset({"edge_tail": ("edge", np.broadcast_to(np.int64(0), 1 << 30))}, attrs={"schema": "s"})
    schema = Schema(
        name="s", own_variables={"edge_tail": VariableSpec(dtype="int64", dims=("edge",))}, attributes={"schema": str}
    )
    with pytest.raises(VerificationError, match="edge: has an invalid size"):
        validate(long, schema)


@pytest.mark.parametrize("make", [factored, columned], ids=["places", "columns"])
@pytest.mark.obligation("proved-before-drawing")
def test_an_unproved_mechanism_draws_nothing(make) -> None:
    altered = make(FACTORED_CASE).copy(deep=True)
    altered["row_sum"].values[2, 0] *= np.uint64(2)
    for mechanism in (altered, rewritten(altered)):
        rows = md.factored.FactoredMechanism(dataset=mechanism)
        with pytest.raises(VerificationError):
            rows.sample(0, 1)
        with pytest.raises(VerificationError, match="does not sum to its certified sum"):
            rows.integers(2)


@pytest.mark.parametrize("make", [factored, columned], ids=["places", "columns"])
@pytest.mark.obligation("proved-before-drawing")
def test_factored_draws_ignore_later_changes(make) -> None:
    mechanism = make(FACTORED_CASE).copy(deep=True)
    rows = md.factored.FactoredMechanism(dataset=mechanism)
    drawn = rows.sample(0, 50, rng=1)
    mechanism["weight"].values[:] = 1
    assert np.array_equal(rows.sample(0, 50, rng=1), drawn)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("program", [md.Optimal, md.programs.Minimax])
def test_graphs_are_verified_at_any_multiple_of_their_lengths(program, multiplier: float) -> None:
    mechanism = md.solve(program(problem=ring(multiplier)))
    result = md.verify(mechanism)
    assert result.certified
    assert result.reasons == []
    assert result.lower_bound_checked


@pytest.mark.obligation("figures-recomputed")
def test_a_bound_above_the_objective_is_refused() -> None:
    """The bound and multipliers of shorter lengths, and the multiplier that would make them follow."""
    honest, shorter = minimax(1.0), minimax(0.5)
    assert shorter.attrs["lower_bound"] > honest.attrs["objective"]
    forged = honest.assign(dual=shorter["dual"], multiplier=shorter["multiplier"])
    forged = forged.assign_attrs(lower_bound=shorter.attrs["lower_bound"])
    for times in (0.25, 0.5, 1.0, 2.0):
        reasons = reasons_of(with_description(forged, "metric", multiplier=times))
        assert "lower_bound: does not follow" in reasons
        assert "which it should bound" in reasons


@pytest.mark.obligation("figures-recomputed")
def test_bound_above_loss_is_refused() -> None:
    mechanism = table()
    reasons = reasons_of(mechanism.assign_attrs(lower_bound=1.001 * mechanism.attrs["expected_loss"]))
    assert "which it should bound" in reasons


SCALES = [0.01, 0.0, -5.0, 3.0, math.nan, math.inf, 1 + 2.0**-52]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("make", [table, normalised_mechanism, lambda: minimax(2.0), lambda: factored(FACTORED_CASE)])
@pytest.mark.obligation("figures-recomputed")
def test_a_scale_is_recomputed(make, scale: float) -> None:
    mechanism = make()
    times = scale / mechanism.attrs["scale"]
    effective = float(mechanism.attrs["ratio"]) * times
    reasons = reasons_of(mechanism.assign_attrs(scale=scale, ratio=effective))
    assert "scale: " in reasons


@pytest.mark.obligation("claim-rebuilt")
def test_the_metric_of_the_problem_is_rebuilt() -> None:
    mechanism = normalised_mechanism()
    assert md.verify(mechanism).ratio == pytest.approx(mechanism.attrs["ratio"], rel=1e-9)
    assert mechanism.attrs["scale"] > 1
    other = with_description(mechanism, "problem_metric", epsilon=2.0)
    assert "problem_metric: is not the metric" in reasons_of(other)
    half = with_description(mechanism, "problem_metric", multiplier=0.5)
    assert "scale: " in reasons_of(half)
    remaining = {name: value for name, value in mechanism.attrs.items() if name != "problem_metric"}
    assert "scale: must be 1" in reasons_of(mechanism.drop_attrs(deep=False).assign_attrs(remaining))


def test_unscaled_graph_lengths_are_rebuilt() -> None:
    mechanism = baselines.exponential(ring(2.0))
    assert mechanism.attrs["scale"] != 1
    assert md.verify(mechanism).ratio == pytest.approx(mechanism.attrs["ratio"], rel=1e-9)
    longer = mechanism.assign(problem_length=mechanism["problem_length"] * 1.5)
    assert "problem_length: does not give the lengths" in reasons_of(longer)
    assert "problem_length: must be there" in reasons_of(mechanism.drop_vars("problem_length"))
    misplaced = table().assign(problem_length=table()["edge_length"])
    assert "problem_length: no metric of the problem lists" in reasons_of(misplaced)


@pytest.mark.parametrize("schema", [TABLE_SCHEMA, FACTORS], ids=["table", "factors"])
@pytest.mark.obligation("printed-claim")
def test_units_are_those_of_the_claim(schema: Schema) -> None:
    mechanism = sound(schema)
    for name in mechanism.coords:
        others = {key: mechanism[key].assign_attrs(units="km") for key in mechanism.coords if key[:-1] == name[:-1]}
        assert re.search("in km, should be in cell|must share unit", reasons_of(mechanism.assign_coords(others)))
        assert f"{name[:-1]}x: must have axes" in reasons_of(mechanism.assign_coords({name: others[name]}))
    for name in ("prior", "level", "dual") if "dual" in mechanism else ("prior", "level"):
        assert f"{name}: in km" in reasons_of(mechanism.assign({name: mechanism[name].assign_attrs(units="km")}))


CORNER = md.Domain.grid((2, 3), cell=1.0, unit="km")
ANSWERS = {  # reports of a table over `CORNER`, and the cells that they are
    "the cells": (CORNER.points, "km", [0, 1, 2, 3, 4, 5]),
    "three cells": (CORNER.points[[4, 0, 5]], "km", [4, 0, 5]),
    "points beside them": (CORNER.points[:2] + 0.25, "km", None),
    "points on one axis": (np.array([[0.5], [1.5]]), "km", None),
    "points in metres": (CORNER.points[:2], "m", None),
}


@cache
def mechanism_answering(name: str) -> xr.Dataset:
    points, unit, _ = ANSWERS[name]
    reports = md.Domain.points_at(points, unit=unit)
    loss = md.losses.TableLoss(values=np.random.default_rng(0).random((6, reports.size)))
    metric = md.Euclidean(1.0, unit="km")
    return baselines.exponential(md.DesignProblem(CORNER, metric, md.priors.uniform(CORNER), loss, reports=reports))


@pytest.mark.parametrize("name", ANSWERS)
def test_reports_at_cells_are_recognised(name: str) -> None:
    """Only such reports have a radius around them, in the unit of the secrets."""
    mechanism, (points, unit, cells) = mechanism_answering(name), ANSWERS[name]
    stored = MechanismFile.read(mechanism)
    result = stored.report_cells
    assert (result if result is None else result.tolist()) == cells
    assert (stored.report_unit, stored.problem.reports.unit) == (unit, unit)
    assert (stored.problem.reports is stored.domain) == (name == "the cells")
    assert np.array_equal(stored.problem.reports.points, points)
    assert md.verify(mechanism).certified
    located = unit == "km" and points.shape[1] == 2
    assert ("accuracy" in md.Sampler(mechanism).report(0).coords) == located


def test_unit_of_reports_must_be_canonical() -> None:
    mechanism = mechanism_answering("points in metres")
    spelled = {f"report_{a}": mechanism[f"report_{a}"].assign_attrs(units="metre") for a in "xy"}
    assert "report_x: in metre, should be in m" in reasons_of(mechanism.assign_coords(spelled))


def test_statements_beside_the_claim_are_compared() -> None:
    """The sentence of cost, invalid coordinates, missing edges of a graph, lengths, units, problem parameters."""
    assert "cost: the stored sentence" in reasons_of(table().assign_attrs(cost="one report; more are free"))
    nowhere = table()["secret_x"].copy(data=np.where(np.arange(16) == 3, np.nan, table()["secret_x"].values))
    assert reasons_of(table().assign_coords(secret_x=nowhere)).startswith("secret_x: must be finite")
    unlisted = factored("ring road").drop_vars(["claim_tail", "claim_head", "claim_length"])
    assert "must list the edges of a graph" in reasons_of(unlisted)
    mechanism = baselines.exponential(ring())
    for wrong in (-0.1, math.inf, math.nan):
        lengths = mechanism["edge_length"].copy(data=[wrong, 0.5, 0.7, 0.9, 1.1])
        assert "edge_length: must be finite and not negative" in reasons_of(mechanism.assign(edge_length=lengths))
    metres = with_description(mechanism_answering("the cells"), "metric", unit="m")
    assert "unit: the file contradicts itself" in reasons_of(metres)
    with pytest.raises(VerificationError, match="is in another unit than the places"):
        _ = MechanismFile.read(rewritten(metres)).problem
    assert "not a complete file (KeyError" in reasons_of(table().assign_attrs(objective=0.0))
    assert "parameters: must hold" in reasons_of(table().assign_attrs(parameters="{}"))


def test_tight_ratio_is_reported_as_one() -> None:
    """Rows as far apart as the integers allow: logarithms of doubles put some of them above the claim."""
    above = 0
    for epsilon in np.random.default_rng(0).uniform(0.01, 0.2, 40).tolist():
        ratio, shift = lower_ratio(epsilon)
        low = int(ROW_SUM / (1 + math.exp(epsilon))) - (1 << 12)
        while low * ratio >> shift < ROW_SUM - low:
            low += 1
        mass = np.array([[ROW_SUM - low, low], [low, ROW_SUM - low]], np.uint64)
        above += math.log((ROW_SUM - low) / low) / epsilon > 1
        pair = md.DesignProblem(md.Domain.nodes(2), md.Discrete(epsilon), [0.5, 0.5], md.losses.ZeroOne())
        built = build_dataset(pair, mass, program="test")
        assert built.attrs["ratio"] <= 1
        assert md.verify(built).certified
    assert above > 0


def test_version_is_source_if_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)
    versions.cache_clear()
    built = baselines.constant(ring())
    assert set(json.loads(built.attrs["versions"]).values()) == {"source"}
    versions.cache_clear()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
@pytest.mark.obligation("figures-recomputed")
def test_nothing_of_a_refused_file_is_exported(suffix: str, tmp_path) -> None:
    altered = rewritten(table(), expected_loss=0.5 * table().attrs["expected_loss"])
    with pytest.raises(VerificationError, match="expected_loss"):
        md.export(altered, tmp_path / f"t.{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.obligation("figures-recomputed")
def test_factored_place_figures_are_recomputed() -> None:
    mechanism = factored(FACTORED_CASE).copy(deep=True)
    for name in ("remap", "excess", "ring"):
        values = mechanism[name].values.copy()
        values[0] = values[0] + 1
        assert f"{name}: differs" in reasons_of(mechanism.assign({name: (mechanism[name].dims, values)}))
    distance = md.solve(md.EikonalWeights(problem=CASES["eikonal, masked"]()), method="factored")
    assert "remapped_loss: " in reasons_of(distance.assign_attrs(remapped_loss=0.1))


@pytest.mark.parametrize("times", [1 + 4.9e-12, 0.7, 1 / 3, 1.0000000000000002, 1e-5])
@pytest.mark.obligation("printed-claim")
def test_a_multiplier_is_printed_in_full(times: float) -> None:
    """The number in the sentence is the multiplier of the claim, in fractions; twelve digits say "1 times"."""
    problem = CASES["euclidean lattice"]()
    mass = baselines.exponential(CASES["euclidean lattice"]())["mass"].values
    claim = build_dataset(problem, mass, program="test", extras=Extras(scale=times)).attrs["claim"]
    printed = claim.split("where d is ")[1].split(" times ")[0]
    assert Fraction(float(printed)) == Fraction(times)


@pytest.mark.obligation("printed-claim")
def test_a_sentence_of_twelve_digits_is_refused() -> None:
    mechanism = normalised_mechanism()
    exact = repr(float(mechanism.attrs["scale"]))
    short = mechanism.attrs["claim"].replace(exact, f"{mechanism.attrs['scale']:.12g}")
    assert short != mechanism.attrs["claim"]
    assert "claim: " in reasons_of(mechanism.assign_attrs(claim=short))


@pytest.mark.parametrize(
    "text",
    ['{"kind": NaN}', '{"kind": 1, "kind": 2}', "[1]", "{", "[" * 100_000],
    ids=["nan", "twice", "list", "cut", "deep"],
)
def test_descriptions_are_read_strictly(text: str) -> None:
    for name in ("metric", "domain", "parameters"):
        assert reasons_of(table().assign_attrs({name: text})).startswith(f"{name}: ")


def test_missing_file_is_refused() -> None:
    with pytest.raises(InputError):
        md.verify("no such file.nc")


@pytest.mark.obligation("figures-recomputed")
def test_an_infinite_figure_agrees_with_nothing() -> None:
    """A loss of 1e299 times 2^62 exceeds the largest double: every stored figure would be within a share of it."""
    loss = md.losses.TableLoss(values=np.array([[0.0, 1e299], [1.0, 0.0]]))
    domain = md.Domain.nodes(2)
    problem = md.DesignProblem(domain=domain, metric=md.Discrete(epsilon=1.0), prior=[0.5, 0.5], loss=loss)
    with np.errstate(over="ignore"):
        mechanism = baselines.exponential(problem)
    assert "expected_loss: " in reasons_of(mechanism.assign_attrs(expected_loss=0.25))


@pytest.mark.parametrize("scale", [1e-160, 1e-200])
def test_distances_of_close_places_are_accurate(scale: float) -> None:
    """Against fractions: squares of these coordinates are below the normal range of doubles."""
    points = scale * np.array([[1.0, 2.0], [3.0, 7.0], [5.0, 1.0]])
    result = md.Domain.points_at(points, unit="km").euclidean_to(md.Domain.points_at(points, unit="km"))
    a, b = ([Fraction(x) for x in point] for point in points[:2].tolist())
    square = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    assert abs(Fraction(result[0, 1]) ** 2 / square - 1) < Fraction(1, 10**14)


def test_zero_one_loss_counts_close_reports_as_wrong() -> None:
    """5e-324 apart, where the square of the distance is 0; a table and sums over rows."""
    points = md.Domain.points_at([[0.0], [5e-324], [1.0]], unit="km")
    assert md.losses.ZeroOne().matrix(points, points).tolist() == (1 - np.eye(3)).tolist()
    total = np.zeros(1)
    distance_units, unit_weight = np.zeros((3, 1), np.uint16), np.ones(3)
    _add_losses(
        distance_units,
        np.arange(3, dtype=np.int32),
        unit_weight,
        unit_weight,
        points.points,
        points.points[:1].T.copy(),
        APART,
        total,
    )
    assert total.tolist() == [2.0]
