"""The lower bound of a page, in Node: its trees prove that of the file, and no others prove more than the truth."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import exportable
from fixtures.pages import (
    NODE,
    Texts,
    forge_page,
    forged_words,
    honest,
    in_node,
    mechanism_of,
    proof_script,
    proved_in_node,
    texts_of,
)
from fixtures.problems import euclidean_grid
from fixtures.tolerances import REORDERED
from fixtures.tree_mutants import mutate
from reference.exact import exponential
from reference.trees import proved_by_trees

import mechdesign as md
from mechdesign.evaluation.loss import loss_matrix
from mechdesign.verification import verify_table

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
PLAIN = ("plane", "eikonal, masked", "graph, table loss", "reports apart from secrets", "streets")
LIMITED = ("bounded", "robust", "graph, doubled, minimax")
SHARP = 1e-11  # relative loss of doubles that are rounded down
BOUNDS = """
const given = JSON.parse(require("node:fs").readFileSync("given.json", "utf8"));
const TYPES = { dual: Float64Array, multiplier: Float64Array, edge_length: Float64Array, tree: Uint16Array };
(async () => {
  const bounds = [];
  for (const { packed, mutants } of given) {
    const page = await openPage(packed);
    for (const mutant of mutants) {
      page.made = {};
      for (const [name, values] of Object.entries(mutant)) page.made[name] = TYPES[name].from(values);
      bounds.push(run(lowerBoundOfTrees(page)).value);
    }
  }
  console.log(JSON.stringify(bounds));
})();
"""
DECAYS = """
const lengths = JSON.parse(require("node:fs").readFileSync("given.json", "utf8"));
console.log(JSON.stringify(lengths.map((length) => decayOf(length).map((value) => exactly(value).map(String)))));
"""
Mutant = dict[str, np.ndarray]


@cache
def design(name: str) -> tuple[xr.Dataset, Texts]:
    """A mechanism, and its page."""
    problems = {"map": md.load_problem("philadelphia", cells=4), "steep": euclidean_grid((4, 5), 6.0, seed=1)}
    if name not in problems:
        return mechanism_of(name), honest(name)
    mechanism = md.solve(problems[name], gap=1e-7)
    return mechanism, texts_of(mechanism)


def bounds_in_node(folder: Path, mutants: dict[str, list[Mutant]]) -> list[Any]:
    """The bounds that pages prove with other arrays."""
    listed = [
        {"packed": design(name)[1].packed, "mutants": [{key: a.ravel().tolist() for key, a in m.items()} for m in own]}
        for name, own in mutants.items()
    ]
    (folder / "given.json").write_text(json.dumps(listed))
    return list(in_node(folder, proof_script() + BOUNDS))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    names = [*PLAIN, *LIMITED, "capped"]
    found = proved_in_node(tmp_path_factory.mktemp("bounds"), [honest(name) for name in names])
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", [*PLAIN, *LIMITED])
@pytest.mark.obligation("page-proof")
def test_page_proves_the_bound_of_the_file(outcomes, name):
    outcome, stated = outcomes[name], mechanism_of(name).attrs["lower_bound"]
    assert outcome["faults"] == []
    assert outcome["figures"]["lower_bound"] == pytest.approx(stated, rel=SHARP)
    assert outcome["figures"]["lower_bound"] <= mechanism_of(name).attrs.get("objective", np.inf)
    assert any(text.startswith("Any table that satisfies these inequalities") for text in outcome["proved"])
    assert not any("lower bound" in text for text in outcome["assumed"])


def test_bound_of_other_limits_is_assumed(outcomes):
    assert outcomes["capped"]["faults"] == []
    assert "lower_bound" not in outcomes["capped"]["figures"]
    assert any("The lower bound was recomputed by mechdesign verify" in text for text in outcomes["capped"]["assumed"])


@pytest.mark.parametrize("name", ["plane", "graph, table loss"])
def test_sentence_is_that_of_the_script(outcomes, name, tmp_path, capsys):
    """The same words; the number has 12 digits here, and both programs round it down."""
    verify_table.main([str(md.export(mechanism_of(name), tmp_path / "table.json"))])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("bound:")]
    words, _, least = line.removeprefix("bound:").strip().rpartition(" ")
    (said,) = [text for text in outcomes[name]["proved"] if text.startswith("Any table")]
    assert said.rpartition(" ")[0] == words[0].upper() + words[1:]
    assert float(said.rpartition(" ")[2].removesuffix(".")) == pytest.approx(float(least), rel=SHARP)


@pytest.mark.parametrize("name", ["map", "steep"])
def test_bound_is_below_that_of_rationals(name, tmp_path):
    mechanism, _ = design(name)
    cost, dual = mechanism["prior"].values[:, None] * loss_matrix(mechanism), mechanism["dual"].values
    listed = zip(*(mechanism[f"edge_{end}"].values.tolist() for end in ("tail", "head", "length")), strict=True)
    parents = (np.arange(len(dual)) + mechanism["tree"].values.astype(int)) % 2**16
    exact = float(proved_by_trees(cost.T.tolist(), dual.tolist(), list(listed), parents.tolist()))
    (bound,) = bounds_in_node(tmp_path, {name: [{}]})
    # Costs of the package are rounded to nearest, those of the page down.
    assert exact * (1 - SHARP) <= bound <= exact * (1 + REORDERED)


@pytest.mark.obligation("tree-bound")
@pytest.mark.parametrize("trials", [60, pytest.param(2_500, marks=pytest.mark.study)])
def test_no_mutant_proves_more_than_the_truth(trials, tmp_path):
    """Other trees and multipliers, of rows and of limits."""
    rng, mutants, most = np.random.default_rng(trials), {}, []
    for name in ("map", "steep", *LIMITED):
        mechanism, own = design(name)[0], [{}]
        for _ in range(trials):
            dual, tree = mutate(rng, mechanism["dual"].values, mechanism["tree"].values)
            own.append({"dual": dual, "tree": tree})
            if name in LIMITED:
                factors = rng.choice([0.0, 1.0, 1.001, 3.0, -1.0, 1e9], mechanism.sizes["side_row"])
                own[-1]["multiplier"] = mechanism["multiplier"].values * factors
        mutants[name] = own
        most.append(mechanism.attrs.get("objective", mechanism.attrs["expected_loss"]))
    # A page proves nothing from numbers that are too large.
    proved = [-np.inf if bound is None else bound for bound in bounds_in_node(tmp_path, mutants)]
    found = np.array(proved).reshape(len(most), -1)
    assert (found[:, 1:] <= np.array(most)[:, None] * (1 + REORDERED)).all()
    assert (found[:, 1:] < found[:, :1]).mean() > 1 / 3


def test_multipliers_of_limits_below_0_count_as_0(tmp_path):
    given = mechanism_of("bounded")["multiplier"].values
    whole, *rest = bounds_in_node(tmp_path, {"bounded": [{}, {"multiplier": -given}, {"multiplier": 0 * given}]})
    assert rest[0] == rest[1] < whole


@pytest.mark.obligation("tree-bound")
def test_forged_bounds_are_refused(tmp_path):
    tree = exportable("plane")["tree"].values
    bound = exportable("plane").attrs["lower_bound"]
    raised = forged_words("plane", lower_bound=bound * (1 + 1e-6))
    for outcome in proved_in_node(tmp_path, [raised, forge_page("plane", tree=tree * 0)]):
        assert any("lower_bound: the page states" in fault["text"] for fault in outcome["faults"])
        assert not any(text.startswith("Any table") for text in outcome["proved"])


def test_bound_of_shorter_edges_is_not_that_of_the_claim(tmp_path):
    """Shorter edges are a narrower claim, whose tables lose more: the page proves nothing from them."""
    short = mechanism_of("euclidean")["edge_length"].values.copy()
    short[0] *= 1 - 1e-9
    assert bounds_in_node(tmp_path, {"euclidean": [{"edge_length": short}]}) == [None]


def test_factors_of_edges_are_rounded_outwards(tmp_path):
    lengths = [0.0, 1e-18, 1e-6, 0.3, 1.0, 5.0, 44.0, 127.9]
    (tmp_path / "given.json").write_text(json.dumps(lengths))
    for length, pair in zip(lengths, in_node(tmp_path, proof_script() + DECAYS), strict=True):
        low, high = (Fraction(*map(int, each)) for each in pair)
        above = Fraction(exponential(Fraction(length), 400)[1], 1 << 400)
        assert low * above <= 1 <= high / above
        assert low * high <= 1 + REORDERED
