"""The proof of a page, in Node: every kind of mechanism ends without a fault, and every forgery with one."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
from fixtures.export_mechanisms import MAKERS, exportable
from fixtures.files import KINDS
from fixtures.pages import (
    CLAIMS,
    NODE,
    RUN,
    SENTENCES,
    Texts,
    forge_page,
    forged_metric,
    forged_words,
    honest,
    in_node,
    mechanism_of,
    proof_script,
    proved_in_node,
    texts_of,
)
from fixtures.position_mechanisms import position_mechanism
from fixtures.rows import few_by_default
from fixtures.tight_limits import at_the_limit, one_more, seal_masses
from fixtures.tolerances import LINEAR_ALGEBRA
from reference.exact import lower_ratio

import mechdesign as md
from mechdesign.base.formatting import number, percent
from mechdesign.factored import FactoredMechanism
from mechdesign.positions import Positions
from mechdesign.verification import verify_table
from mechdesign.web import page_table

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
COLUMNS = "factored, columns"
NAMES = [*MAKERS, "factored", *(kind for kind in KINDS if kind not in MAKERS)]
BY_DEFAULT = (
    *("plane", "holes", "roads", "discrete", "factored", "factored, columns", "eikonal, masked", "query", "area"),
    *("any position", "any position, quarters", "positions"),
)
PARTS = """
const given = JSON.parse(require("node:fs").readFileSync("given.json", "utf8"));
console.log(JSON.stringify({
  bounds: given.lengths.map((length) => expLower(length).map(String)),
  exact: given.floats.map((value) => exactly(value).map(String)),
  doubles: given.floats.filter((value) => value > 1e-280).map((value) => nearestDouble(exactly(value))),
  figures: given.shown.map((value) => [figure(value, true), figure(value, false), percent(Math.abs(value), true)]),
}));
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, pytestconfig):
    names = NAMES if pytestconfig.getoption("--run-all") else BY_DEFAULT
    return dict(zip(names, proved_in_node(tmp_path_factory.mktemp("node"), list(map(honest, names))), strict=True))


@pytest.mark.parametrize("name", few_by_default(NAMES, *BY_DEFAULT))
def test_every_kind_is_proved(outcomes, name):
    outcome = outcomes[name]
    assert outcome["faults"] == []
    contents = json.loads(honest(name).contents)
    assert outcome["figures"]["rows"] == contents["arrays"]["prior"]["shape"][0]
    assert outcome["figures"]["inequalities"] == outcome["figures"]["compared"] > 0


@pytest.mark.parametrize("name", few_by_default(NAMES, *BY_DEFAULT))
def test_figures_are_those_of_verify(outcomes, name):
    verified = json.loads(honest(name).contents)["verification"]
    found = outcomes[name]["figures"]
    assert found["violations"] == verified["violations"] == 0
    verified["ratio"] = verified["row_ratio"] or verified["ratio"]  # a page proves rows
    for key in ("expected_loss", "ratio"):
        if verified[key] is not None:
            assert found[key] == pytest.approx(verified[key], rel=LINEAR_ALGEBRA)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_sentences_of_a_page_are_those_of_python(tmp_path, every):
    """Put together in JavaScript from the numbers of the page: the first ones word by word."""
    (tmp_path / "texts.json").write_text(json.dumps([vars(honest(name)) for name in NAMES[::every]]))
    for name, told in zip(NAMES[::every], in_node(tmp_path, proof_script() + SENTENCES), strict=True):
        mechanism = mechanism_of(name)
        verified, domain = md.verify(mechanism), json.loads(mechanism.attrs["domain"])
        assert told["headline"] == json.loads(honest(name).contents)["facts"]["sentence"]
        assert f"all {mechanism.sizes['secret']} secrets" in told["claim"]
        assert ("grid" in told["claim"]) is (domain["kind"] == "grid")
        assert (told["position_claim"] is None) is (verified.position_claim is None)


@pytest.mark.parametrize("name", ["answers", "grades"])
def test_sentences_of_classes_are_those_of_python(tmp_path, name):
    (tmp_path / "texts.json").write_text(json.dumps([vars(honest(name))]))
    (told,) = in_node(tmp_path, proof_script() + SENTENCES)
    assert told["headline"] == json.loads(honest(name).contents)["facts"]["sentence"]
    assert "(classes)" in told["claim"]
    assert told["headline"].startswith(f"Protects these {mechanism_of(name).sizes['secret']} classes (")


def test_parts_are_those_of_python(tmp_path):
    rng = random.Random(5)
    lengths = [0.0, 1e-12, 0.5, math.log(2), 1.0, 43.0, 79.9, 81.0, *(rng.uniform(0, 90) for _ in range(300))]
    floats = [0.0, 1.0, -1.5, 5e-324, 1e308, 0.1, 2.0**-1030, *(rng.gauss(0, 1) for _ in range(100))]
    plain = [0.0, 1.0, 2000.0, 99.996, 1234567.8, 0.0001, 0.1 + 0.2, *np.exp(np.linspace(-30, 30, 500)).tolist()]
    (tmp_path / "given.json").write_text(json.dumps({"lengths": lengths, "floats": floats, "shown": plain}))
    found = in_node(tmp_path, proof_script() + PARTS)
    assert [tuple(map(int, pair)) for pair in found["bounds"]] == [lower_ratio(length) for length in lengths]
    assert found["doubles"] == [value for value in floats if value > 1e-280]
    for value, shown in zip(plain, found["figures"], strict=True):
        assert shown == [number(value, up=True), number(value, up=False), percent(abs(value), up=True)]
    for value, (p, q) in zip(floats, found["exact"], strict=True):
        a, b = value.as_integer_ratio()
        assert int(p) * b == a * int(q)


def move_mass(name: str, secret: int, report: int, amount: int) -> np.ndarray:
    """Masses with `amount` moved to `report` from the next one: the row sums as before."""
    mass = exportable(name)["mass"].values.copy()
    mass[secret, report] += np.uint64(amount)
    mass[secret, report - 1] -= np.uint64(amount)
    return mass


def one_off(name: str, secret: int) -> np.ndarray:
    mass = exportable(name)["mass"].values.copy()
    mass[secret, 0] += np.uint64(1)
    return mass


def lengths(name: str, edge: int, factor: float) -> np.ndarray:
    length = exportable(name)["edge_length"].values.copy()
    length[edge] *= factor
    return length


def claims(name: str) -> list[tuple[str, dict]]:
    """Metric and domain with one value of each made another."""
    held = mechanism_of(name)
    metric, domain = (json.loads(held.attrs[key]) for key in ("metric", "domain"))
    others: list[tuple[str, dict]] = [("metric", {"kind": "another"}), ("domain", {"unit": "yd"})]
    others += [
        ("metric", {key: metric[key] * share})
        for key in ("epsilon", "multiplier")
        if key in metric
        for share in (0.9, 1.1)
    ]
    if "level" in metric:
        less = np.asarray(metric["level"]["eps"]) * 0.5
        others += [("metric", {"level": metric["level"] | {"eps": less.tolist()}}), ("metric", {"stencil": 64})]
    if domain["kind"] == "grid":
        others += [
            ("domain", {"shape": [1] * len(domain["shape"])}),
            ("domain", {"origin": [7.0] * len(domain["shape"])}),
        ]
    return others


def sentence_as_unit(name: str) -> Texts:
    """The page with a unit that is a sentence."""
    unit, arrays = "km. Nobody is found", json.loads(honest(name).contents)["arrays"]
    told = forged_metric(name, "domain", unit=unit)
    return told.changed(said={f"arrays/{key}/units": unit for key in arrays if key.startswith("secret_")})


LIMITED = json.dumps(
    {
        "problem_parameters": {},
        "constraints": [md.posteriors.PosteriorCap(radius=0.4, share="9/10", people=[1] * 4).describe()],
    }
)  # on a page of four cells
FORGED = {
    "a mass is one off": (lambda: forge_page("line", mass=one_off("line", 2)), "secret 2: the masses sum to"),
    "a mass is one off, all pairs": (
        lambda: forge_page("all pairs", mass=one_off("all pairs", 7)),
        "secret 7: the masses",
    ),
    "mass moved": (lambda: forge_page("line", mass=move_mass("line", 1, 1, 2**50)), "P("),
    "mass moved, plane": (lambda: forge_page("plane", mass=move_mass("plane", 4, 4, 2**55)), "P("),
    "mass moved, discrete": (lambda: forge_page("discrete", mass=move_mass("discrete", 1, 1, 2**52)), "P("),
    "an edge is shorter": (lambda: forge_page("line", edge_length=lengths("line", 0, 0.5)), "P("),
    "an edge is longer": (lambda: forge_page("all pairs", edge_length=lengths("all pairs", 3, 1.5)), "the edge from"),
    "edges elsewhere": (
        lambda: forge_page("levels", edge_head=exportable("levels")["edge_head"].values[::-1]),
        "the edge",
    ),
    "another prior": (
        lambda: forge_page("plane", prior=exportable("plane")["prior"].values[::-1] * 1.1),
        "the prior sums to",
    ),
    "coordinates": (
        lambda: forge_page("holes", secret_x=exportable("holes")["secret_x"].values / 3),
        "the coordinates are not",
    ),
    "a loss": (lambda: forged_words("line", expected_loss=0.1), "expected_loss"),
    "an epsilon": (lambda: forged_words("all pairs", ratio=0.5), "ratio"),
    "a bound": (lambda: forged_words("line", lower_bound=0.9), "lower_bound"),
    "a loss between positions": (lambda: forged_words("positions", expected_loss=1.0), "expected_loss"),
    "a loss from centres": (lambda: forged_words("any position", expected_loss=1.0), "expected_loss"),
    "the objective of limits": (lambda: forged_words("capped", objective=9.0), "objective"),
    "the largest loss": (lambda: forged_words("graph, doubled, minimax", objective=9.0), "objective"),
    "the loss over priors": (lambda: forged_words("robust", objective=9.0), "objective"),
    "the name of an objective": (lambda: forged_words("robust", objective_of="the expected loss"), "objective_of"),
    "limits between positions": (
        lambda: forged_words("positions", program="constrained", parameters=LIMITED), "between positions"
    ),
    "a loss of verify": (lambda: honest("line").changed(said={"verification/expected_loss": 0.1}), "expected_loss"),
    "a verdict": (lambda: honest("line").changed(said={"verification/certified": False}), "not certified"),
    "violations": (lambda: honest("line").changed(said={"verification/violations": 1}), "violations"),
    "the worst": (lambda: honest("line").changed(said={"verification/worst/secret": 9}), "worst"),
    "a loss at positions": (lambda: honest("plane").changed(said={"position_loss": 0.01}), "position_loss"),
    "words for a unit": (lambda: sentence_as_unit("holes"), "not a plain name"),
    "no loss at positions": (lambda: honest("plane").changed(said={"position_loss": None}), "position_loss"),
    "weight": (lambda: factors("weight", 5, 1), "the row sums to"),
    "units": (lambda: factors("edge_units", 9, 1), "the row sums to"),
    "row sums": (lambda: factors("row_sum", 3, 1), "the row sums to"),
    "row loss": (lambda: factors("row_loss", 3, 0.5), "the loss differs from"),
    "a place": (lambda: factors("generator_place", 1, 1, COLUMNS), "the row sums to"),
    "no place": (lambda: factors("generator_place", 1, 2**20, COLUMNS), "a generator that is not a place"),
    "an offset": (lambda: factors("generator_offset", 0, 9, COLUMNS), "the row sums to"),
    "a large offset": (lambda: factors("generator_offset", 0, 60_000, COLUMNS), "an offset above the cap"),
    "a column": (lambda: factors("first_generator", 1, 1, COLUMNS), "the row sums to"),
    "the first column": (lambda: factors("first_generator", 0, 1, COLUMNS), "a column without generators"),
    "the last column": (lambda: factors("first_generator", -1, 99, COLUMNS), "a column without generators"),
    "the weight of a column": (lambda: factors("weight", -1, 1, COLUMNS), "the row sums to"),
}  # fmt: skip


def scaled_protection(name: str, figure: str, share: float) -> Texts:
    """The page whose sentence of protection has a figure times `share`."""
    value = share * json.loads(honest(name).contents)["protection"][figure]
    return honest(name).changed(said={f"protection/{figure}": value})


SIDES = "euclidean, points"
SAID = {
    "a lower factor of cells": (lambda: scaled_protection("park", "factor", 0.999), "states factor"),
    "a factor that none has": (lambda: scaled_protection("park", "factor", 1.01), "but the largest is"),
    "a lower factor of points": (lambda: scaled_protection(SIDES, "factor", 0.999), "states factor"),
    "a larger radius of points": (lambda: scaled_protection(SIDES, "within", 3), "states factor"),
    "a lower factor of streets": (lambda: scaled_protection("roads", "factor", 0.999), "states factor"),
    "a larger radius of streets": (lambda: scaled_protection("roads", "within", 1.1), "states factor"),
    "a lower factor of neighbours": (lambda: scaled_protection("graph", "factor", 0.999), "states factor"),
    "a lower factor of factors": (lambda: scaled_protection("factored", "factor", 0.999), "states factor"),
    "a lower factor of columns": (lambda: scaled_protection(COLUMNS, "factor", 0.999), "states factor"),
    "a lower factor of positions": (lambda: scaled_protection("any position", "factor", 0.9999), "states factor"),
    "a larger radius of positions": (lambda: scaled_protection("any position", "within", 1.001), "states factor"),
    "a lower factor along paths": (lambda: scaled_protection("any position", "path", 0.9999), "states path"),
    "no word of paths": (
        lambda: honest("any position").changed(said={"protection/path": None}), "along paths"
    ),
    "nothing is told": (lambda: honest("park").changed(said={"protection/factor": 1}), "states factor 1"),
    "a lower loss at positions": (
        lambda: honest("any position").changed(said={"position_loss": 0.01}), "position_loss"
    ),
    "another ratio": (lambda: honest("line").changed(said={"verification/ratio": 0.5}), "ratio"),
}  # fmt: skip


@pytest.fixture(scope="module")
def refused_sentences(tmp_path_factory):
    found = proved_in_node(tmp_path_factory.mktemp("said"), [maker() for maker, _ in SAID.values()])
    return dict(zip(SAID, found, strict=True))


@pytest.mark.parametrize("name", SAID)
@pytest.mark.obligation("page-proof")
def test_sentences_that_say_more_than_the_file_are_refused(refused_sentences, name):
    said = [fault["text"] for fault in refused_sentences[name]["faults"]]
    assert any(SAID[name][1] in text for text in said), said


def test_lengths_are_compared_with_the_multiple_of_the_claim(tmp_path):
    """The claim of the rows of a design between positions is a multiple of that of the design."""
    placed, cells = proved_in_node(tmp_path, [honest("positions"), honest("euclidean")])
    times = number(float(mechanism_of("positions").attrs["scale"]), up=True)
    assert any(f"No edge is longer than {times} times epsilon times" in text for text in placed["proved"])
    assert any("No edge is longer than epsilon times" in text for text in cells["proved"])


def test_bounds_on_own_constraints_are_unchecked(tmp_path):
    """Neither the sentence nor a figure has the bound; a page that claims it was checked is refused."""
    problem = md.load_problem("line", cells=4)
    given = md.programs.Constrained(problem=problem, constraints=[lambda table: [table[0, 0] >= 0.2]])
    texts = texts_of(md.solve(given))
    contents = json.loads(texts.contents)
    assert "lower_bound" in contents["attrs"]
    assert "does better" not in contents["facts"]["sentence"]
    assert "lower_bound" not in [figure["key"] for figure in contents["facts"]["figures"]]
    claimed = texts.changed(said={"verification/lower_bound_checked": True})
    good, bad = proved_in_node(tmp_path, [texts, claimed])
    assert good["faults"] == []
    assert any("was not checked" in text for text in good["assumed"])
    assert any("lacks its proof" in fault["text"] for fault in bad["faults"])


@pytest.mark.exhaustive
def test_both_banks_of_a_river_have_the_factor_of_python(tmp_path):
    """Two banks, a bridge at one end: the radius reaches across, the way inside is far longer. Python's maker finds the
    factor from the same squares with NumPy; the sentence is refused a thousandth below it.
    """
    river = np.ones((5, 4), bool)
    river[2, :3] = False
    domain = md.Domain.grid((5, 4), cell=1.0, unit="cell", mask=river)
    prior, level = md.priors.uniform(domain), md.Euclidean(epsilon=0.6, unit="cell")
    problem = md.DesignProblem(domain=domain, metric=level, prior=prior, loss=md.losses.Distance())
    made = md.solve(Positions(problem=problem), gap=0.05)
    texts = texts_of(made)
    values = json.loads(texts.contents)["protection"]
    assert values["factor"] > 1.2 * values["path"] > 2
    forged_ = texts.changed(said={"protection/factor": 0.999 * values["factor"]})
    good, bad = proved_in_node(tmp_path, [texts, forged_])
    assert good["faults"] == []
    assert any("Around the holes" in text for text in good["proved"])
    (fault,) = bad["faults"]
    assert float(fault["text"].split("recomputed ")[1]) == pytest.approx(values["factor"], rel=LINEAR_ALGEBRA)


ANYWHERE, QUARTERS = "any position", "any position, quarters"
LEVELS = {ANYWHERE: "corner_level", QUARTERS: "quarter_level"}


def placed_forged(*, level: float = 1.0, at: int | tuple[int, int] | None = None, kind: str = ANYWHERE) -> Texts:
    """The page of a mechanism for any position with the levels of all corners, or of one, times `level`."""
    levels = mechanism_of(kind)[LEVELS[kind]].values.copy()
    levels[slice(None) if at is None else at] *= level
    return forge_page(kind, **{LEVELS[kind]: levels})


def another_row() -> Texts:
    rows = mechanism_of(ANYWHERE)["around_row"].values.copy()
    rows[0, 8] = rows[0, 4]
    return forge_page(ANYWHERE, around_row=rows)


def steeper(kind: str = ANYWHERE) -> Texts:
    mass = mechanism_of(kind)["mass"].values.copy()
    share = mass[3, 3] - mass[3, 3] // np.uint64(10)
    mass[3, 3] -= share
    mass[3, 2] += share
    return forge_page(kind, mass=mass)


PLACED = {
    "around_row": (another_row, "do not follow the rule of the claim"),
    "masses": (steeper, "gradients are too steep between positions"),
    "lower levels": (lambda: placed_forged(level=0.5), "gradients are too steep between positions"),
    "one lower level": (lambda: placed_forged(level=0.2, at=5), "first of P("),
    "higher levels": (lambda: placed_forged(level=3.0), "another number of levels, or a level above"),
    "masses, quarters": (lambda: steeper(QUARTERS), "gradients are too steep between positions"),
    "lower levels of quarters": (
        lambda: placed_forged(level=0.5, kind=QUARTERS),
        "gradients are too steep between positions",
    ),
    "one lower level of a quarter": (
        lambda: placed_forged(level=0.01, at=(5, 10), kind=QUARTERS),
        "2 gradients are too steep between positions, first of P(2|x) in cell 5",
    ),
    "higher levels of quarters": (
        lambda: placed_forged(level=3.0, kind=QUARTERS),
        "another number of levels, or a level above",
    ),
    "wider cells": (lambda: forged_metric(ANYWHERE, "domain", cell=[5.0, 5.0]), "the coordinates are not centres"),
    "a lower level asked for": (
        lambda: forged_metric(ANYWHERE, "problem_metric", multiplier=0.01),
        "another number of levels, or a level above",
    ),
    "another metric asked for": (
        lambda: forged_metric(ANYWHERE, "problem_metric", kind="discrete", epsilon=5.0),
        "needs its rows, and levels",
    ),
}


@pytest.fixture(scope="module")
def refused_positions(tmp_path_factory):
    found = proved_in_node(tmp_path_factory.mktemp("placed"), [maker() for maker, _ in PLACED.values()])
    return dict(zip(PLACED, found, strict=True))


@pytest.mark.parametrize("name", PLACED)
def test_forged_positions_are_found(refused_positions, name):
    said = [fault["text"] for fault in refused_positions[name]["faults"]]
    assert any(PLACED[name][1] in text for text in said), said


@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.obligation("page-proof")
def test_positions_are_proved_and_assumptions_listed(outcomes, kind):
    outcome = outcomes[kind]
    cells = mechanism_of(kind).sizes["secret"]
    assert outcome["figures"]["gradients"] == cells * cells
    assert any(text.startswith("Between any two positions the claim holds") for text in outcome["proved"])
    assert any("nowhere below the interpolant" in text for text in outcome["assumed"])
    lost = json.loads(honest(kind).contents)["position_loss"]
    assert outcome["figures"]["position_loss"] == pytest.approx(lost, rel=LINEAR_ALGEBRA)
    assert "gradients" not in outcomes["eikonal, masked"]["figures"]
    assert "any two positions" in json.loads(honest(kind).contents)["facts"]["sentence"]


FAST = {"MOST_COMPARED = 2e7": "MOST_COMPARED = 0", "MOST_EXACT_GRADIENTS = 100_000": "MOST_EXACT_GRADIENTS = 0"}


@pytest.fixture(scope="module")
def fast_outcomes(tmp_path_factory):
    """Of honest and of forged pages, proved as large ones are: in doubles where the margin allows it."""
    forged = {name: PLACED[name][0]() for name in FOUND_FAST}
    texts = {ANYWHERE: honest(ANYWHERE), QUARTERS: honest(QUARTERS), "plane": honest("plane"), **forged}
    mass = mechanism_of("plane")["mass"].values.copy()
    # One unit on the tightest inequality: doubles cannot tell it from equality.
    texts["a unit"] = forge_page("plane", mass=moved_by_a_unit(mass))
    found = proved_in_node(tmp_path_factory.mktemp("fast"), list(texts.values()), constants=FAST)
    return dict(zip(texts, found, strict=True))


FOUND_FAST = ("masses", "one lower level", "masses, quarters", "one lower level of a quarter")


def moved_by_a_unit(mass: np.ndarray) -> np.ndarray:
    worst = json.loads(honest("plane").contents)["verification"]["worst"]
    u, v, y = worst["secret"], worst["other"], worst["report"]
    other = (y + 1) % mass.shape[1]
    step = np.uint64(2**20)
    mass[u, y], mass[u, other] = mass[u, y] + step, mass[u, other] - step
    assert v != u
    return mass


@pytest.mark.parametrize("name", [ANYWHERE, QUARTERS, "plane"])
def test_large_pages_have_the_figures_of_exact_proofs(fast_outcomes, outcomes, name):
    fast, exact = fast_outcomes[name], outcomes[name]
    assert fast["faults"] == []
    assert fast["figures"]["inequalities"] == exact["figures"]["inequalities"]
    assert fast["figures"]["compared"] < exact["figures"]["compared"]
    assert fast["figures"]["value"] == pytest.approx(exact["figures"]["value"], rel=1e-9)
    assert fast["figures"]["expected_loss"] == pytest.approx(exact["figures"]["expected_loss"], rel=LINEAR_ALGEBRA)
    if name != "plane":
        assert fast["figures"]["gradients"] == exact["figures"]["gradients"]
        assert any("these gradients" in text and "margin" in text for text in fast["proved"])


@pytest.mark.parametrize("name", FOUND_FAST)
@pytest.mark.obligation("page-proof")
def test_large_pages_refuse_the_same_gradients(fast_outcomes, refused_positions, name):
    def steep(outcome):
        return [fault["text"] for fault in outcome["faults"] if "too steep" in fault["text"]]

    assert steep(fast_outcomes[name]) == steep(refused_positions[name]) != []


def test_large_pages_refuse_masses_above_a_tight_inequality(fast_outcomes):
    assert any("exceeds e^d" in fault["text"] for fault in fast_outcomes["a unit"]["faults"])


@pytest.mark.parametrize("name", few_by_default(["plane", ANYWHERE], ANYWHERE))
@pytest.mark.obligation("page-proof")
def test_rounded_pages_are_proved_whole(tmp_path, monkeypatch, name):
    monkeypatch.setattr(page_table, "MOST_EXACT", 1)
    texts = texts_of(mechanism_of(name))
    packed = json.loads(texts.contents)["beside"]["packed"]
    place = packed["start"] + packed["shape"][0] - 60
    bad = Texts.of(texts.contents, texts.arrays[:place] + bytes([texts.arrays[place] ^ 1]) + texts.arrays[place + 1 :])
    good, broken = proved_in_node(tmp_path, [texts, bad])
    assert good["faults"] == []
    assert good["figures"]["partial"] is False
    assert good["figures"]["rows"] == mechanism_of(name).sizes["secret"]
    assert any("near that of the file" in text for text in good["assumed"])
    assert "altered" in broken["faults"][0]["text"]


def test_reports_on_land_alone_are_proved_for_positions_anywhere(tmp_path):
    texts = texts_of(position_mechanism("land"))
    (outcome,) = proved_in_node(tmp_path, [texts])
    assert outcome["faults"] == []
    contents = json.loads(texts.contents)
    assert outcome["figures"]["position_loss"] == pytest.approx(contents["position_loss"], rel=LINEAR_ALGEBRA)
    assert contents["facts"]["sentence"].startswith("Protects any two positions: within ")
    assert contents["protection"]["path"] is None


def test_a_page_has_levels_of_cells_or_of_quarters(tmp_path):
    arrays = json.loads(honest(QUARTERS).contents)["arrays"]
    both = honest(QUARTERS).changed(said={"arrays": arrays | {"corner_level": arrays["secret_x"]}})
    (outcome,) = proved_in_node(tmp_path, [both])
    assert any("levels at corners of either cells or quarters" in fault["text"] for fault in outcome["faults"])


def test_positions_of_partial_tables_are_assumed(tmp_path, monkeypatch):
    monkeypatch.setattr(page_table, "MOST_EXACT", 30)
    monkeypatch.setattr(page_table, "MOST_ROUNDED", 0)
    (outcome,) = proved_in_node(tmp_path, [texts_of(mechanism_of(ANYWHERE))])
    assert outcome["faults"] == []
    assert "gradients" not in outcome["figures"]
    assert any("any two positions was checked" in text for text in outcome["assumed"])


def factors(name: str, place: int, amount: float, kind: str = "factored") -> Texts:
    """The page of a factored mechanism with one number changed."""
    values = mechanism_of(kind)[name].values.copy()
    values.flat[place] += np.array(amount).astype(values.dtype)
    return forge_page(kind, **{name: values})


@pytest.fixture(scope="module")
def outcomes_of_forgeries(tmp_path_factory):
    made_up = {name: maker() for name, (maker, _) in FORGED.items()}
    found = proved_in_node(tmp_path_factory.mktemp("forged"), list(made_up.values()))
    return dict(zip(made_up, found, strict=True))


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.obligation("page-proof")
def test_forgeries_are_found(outcomes_of_forgeries, name):
    said = [fault["text"] for fault in outcomes_of_forgeries[name]["faults"]]
    assert any(text.startswith(FORGED[name][1]) or FORGED[name][1] in text for text in said), said


@pytest.mark.parametrize(
    "name", few_by_default(["line", "all pairs", "discrete", "holes", "levels", "park", "roads"], "holes", "roads")
)
def test_claims_are_refused_as_the_other_verifier_refuses_them(tmp_path, name):
    """Both are given every claim; they differ nowhere."""
    table = verify_table.read(md.export(exportable(name), tmp_path / "t.json"))
    given = claims(name)
    wanted = []
    for part, changes in given:
        claim = table.header["claim"] | {part: table.header["claim"][part] | changes}
        try:
            wanted.append(bool(verify_table.check_metric(table, claim)))
        except verify_table.BadInput:
            wanted.append(True)
    texts = [honest(name), *(forged_metric(name, part, **changes) for part, changes in given)]
    first, *found = proved_in_node(tmp_path, texts, run=CLAIMS)
    assert not first["faults"]
    assert not verify_table.check_metric(table, table.header["claim"])
    assert any(wanted)
    assert [bool(outcome["faults"]) for outcome in found] == wanted


def test_a_place_is_named(outcomes_of_forgeries):
    (fault,) = [
        f for f in outcomes_of_forgeries["a mass is one off"]["faults"] if "sum" in f["text"] and "masses" in f["text"]
    ]
    assert fault["secret"] == 2
    broken = next(f for f in outcomes_of_forgeries["mass moved"]["faults"] if f["text"].startswith("P("))
    assert {broken["secret"], broken["other"]} <= {0, 1, 2}


def test_a_boundary_is_exact(tmp_path):
    """The largest mass that the bound allows is taken, one more is not, as by fractions."""
    factor, shift = lower_ratio(float(exportable("line")["edge_length"].values[0]))
    low = 10**17 + 7
    most = factor * low >> shift
    length = float(exportable("line")["edge_length"].values[0])
    text = (
        proof_script()
        + f"""const bound = expLower({length!r});
    console.log(JSON.stringify([exceeds({most}n, bound, {low}n), exceeds({most + 1}n, bound, {low}n)]));"""
    )
    assert in_node(tmp_path, text) == [False, True]


@pytest.mark.obligation("page-proof")
def test_large_tables_are_proved_in_part_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(page_table, "MOST_EXACT", 6 * 9)
    monkeypatch.setattr(page_table, "MOST_ROUNDED", 0)
    texts = texts_of(exportable("plane"))
    (outcome,) = proved_in_node(tmp_path, [texts])
    assert json.loads(texts.contents)["kind"] == "rows"
    assert outcome["faults"] == []
    assert outcome["figures"]["rows"] == 6
    assert outcome["figures"]["partial"] is True
    assert outcome["proved"][0].startswith("The 6 rows of 9 that this page carries")
    assert any("other rows" in text for text in outcome["assumed"])


def test_ratios_of_similar_rows_equal_verify(tmp_path):
    """Edges of 1e-9 nats: a quotient of two masses in doubles keeps seven digits of its logarithm."""
    domain = md.Domain.grid((3, 3), cell=1.0, unit="km")
    metric = md.Euclidean(epsilon=1e-9, unit="km")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    mechanism = md.baselines.exponential(problem)
    (outcome,) = proved_in_node(tmp_path, [texts_of(mechanism)])
    assert outcome["faults"] == []
    assert outcome["figures"]["ratio"] == pytest.approx(mechanism.attrs["ratio"], rel=LINEAR_ALGEBRA)


def test_margins_of_doubles_find_what_whole_numbers_find(tmp_path):
    """With the threshold at 0 every edge goes through the test in doubles first; the verdicts are the same."""
    text = proof_script().replace("const MOST_COMPARED = 2e7;", "const MOST_COMPARED = 0;")
    assert "const MOST_COMPARED = 0;" in text
    mass = move_mass("line", 2, 1, 2**20)  # twice what the margin of a repair leaves
    given = [honest("all pairs"), honest("nothing"), forge_page("line", mass=mass)]
    (tmp_path / "texts.json").write_text(json.dumps([vars(texts) for texts in given]))
    pairs, nothing, broken = in_node(tmp_path, text + RUN)
    assert pairs["faults"] == nothing["faults"] == []
    assert pairs["figures"]["compared"] < pairs["figures"]["inequalities"]
    assert nothing["figures"]["compared"] == nothing["figures"]["inequalities"]
    assert broken["faults"]


@pytest.mark.parametrize("kind", ["factored", "factored, columns", "factored, columns of a graph"])
def test_kernel_columns_and_rows_are_those_of_python(tmp_path, kind):
    """All columns from a secret and one column from all places, rows in doubles, and what a report says of secrets."""
    mechanism = FactoredMechanism(dataset=mechanism_of(kind))
    factors_ = mechanism.factors
    (tmp_path / "texts.json").write_text(json.dumps(vars(honest(kind))))
    text = (
        proof_script()
        + """
    const texts = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
    openPage(texts.packed).then((page) => {
      const factors = new Factors(page);
      const all = (count, make) => Array.from({ length: count }, (_, k) => Array.from(make(k)));
      const columns = all(factors.inner.length, (u) => factors.columns(u));
      const [alone, kernel] = [all(factors.weight.length, (k) => factors.column(k)), factors.kernel.map(String)];
      const rows = all(factors.inner.length, (u) => factors.probabilities(u));
      console.log(JSON.stringify({ kernel, columns, alone, rows }));
    });"""
    )
    found = in_node(tmp_path, text)
    assert list(map(int, found["kernel"])) == factors_.kernel.tolist()
    asked = np.arange(mechanism.secrets)
    assert found["columns"] == factors_.distances(asked).T.tolist()
    assert np.array(found["alone"])[:, factors_.inner].tolist() == factors_.distances(asked).tolist()
    assert np.array(found["rows"]) == pytest.approx(mechanism.probabilities(asked), rel=1e-12)


@pytest.mark.parametrize(("centres", "where"), [("anywhere", "one disc has"), ("area", "the likeliest cells have")])
def test_one_unit_too_many_in_a_disc_is_found(tmp_path, centres, where):
    mass, place, report, other = at_the_limit(centres)
    page, broken = texts_of(seal_masses(mass, centres)), one_more(mass, place, report, other)
    before, after = (part.astype("<u8").tobytes() for part in (mass, broken))
    assert page.arrays.count(before) == 1
    kept, outcomes_of_forgeries = proved_in_node(
        tmp_path, [page, Texts.of(page.contents, page.arrays.replace(before, after))]
    )
    assert kept["faults"] == []
    assert [fault["report"] for fault in outcomes_of_forgeries["faults"]] == [report]
    worst = kept["figures"]["disc"]
    assert worst["share"] == pytest.approx(3 / 5, rel=LINEAR_ALGEBRA)  # the table keeps the limit by less than a unit
    assert sum(worst["posterior"][u] for u in worst["disc"]) == pytest.approx(worst["share"], rel=LINEAR_ALGEBRA)
    assert f"after report {worst['report']}, the worst, {where} 60 %" in " ".join(kept["proved"])
