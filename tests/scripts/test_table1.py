"""scripts/table1.py: Table I on several sizes, and the edge average, which is not private."""

from __future__ import annotations

import sys

import cvxpy as cp
import numpy as np
import pytest
import table1
from fixtures.absent_capabilities import needs
from fixtures.integer_oracles import reference_violations
from fixtures.problems import shipped_problem
from fixtures.tolerances import ORACLE, SOLVED

import mechdesign as md
from mechdesign.evaluation.remap import remapped_loss

SHOWN = 1e-5  # the table has six digits


@needs("factored")
def test_table_one_on_several_sizes_ends_without_a_time_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/results/large-maps.md has it, at tiny sizes: a row for each stencil, the bound below both losses."""
    monkeypatch.setattr(sys, "argv", ["table1.py", "--sizes", "5", "--gap", "1e-3"])
    table1.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("5 x 5")]
    assert [row[3] for row in rows] == ["8", "16"]
    for row in rows:
        laplace, eikonal, optimal, bound = map(float, row[4:8])
        assert bound <= optimal <= eikonal * (1 + SHOWN) < laplace


def test_sizes_take_the_better_weights_where_a_table_fits(monkeypatch, capsys) -> None:
    """On 10 x 10 cells exact weights are within 0.4 % of the bound, and factored ones 3.7 % above it."""
    monkeypatch.setattr(sys, "argv", ["table1.py", "--sizes", "10", "--stencils", "8", "--gap", "1e-3"])
    table1.main()
    *_, row = capsys.readouterr().out.splitlines()
    problem = md.load_problem("philadelphia", cells=10)
    exact = remapped_loss(md.solve(md.EikonalWeights(problem=problem), method="table", bound=False))
    assert float(row.split()[5]) == pytest.approx(exact, rel=SHOWN)
    assert float(row.split()[-1]) < 1.004


def test_the_first_table_names_the_ratio_by_its_name(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["table1.py", "--cells", "4", "--refine", "--average"])
    table1.main()
    head = capsys.readouterr().out.split("\n")[1]
    assert head.split()[-1] == "ratio"
    assert "eps" not in head


@pytest.mark.parametrize("extent", [8.0, 40.0])  # edges of 0.5 to 1.2 nats, and of 2.6 nats and more among others
def test_edge_average_breaks_the_claim(extent: float) -> None:
    problem = md.load_problem("philadelphia", cells=4, extent=extent)
    edges = problem.edges
    made = md.solve(table1.edge_average(problem), gap=SOLVED)
    table = cp.Variable((16, 16), nonneg=True)
    tail, head = table[edges.tail], table[edges.head]
    constraints = [
        cp.sum(table, axis=1) == 1,
        cp.abs(tail - head) <= cp.multiply(edges.length[:, None] / 2, tail + head),
    ]
    statement = cp.Problem(cp.Minimize(cp.sum(cp.multiply(problem.weighted_loss, table))), constraints)
    assert statement.solve("HIGHS") == pytest.approx(made.attrs["expected_loss"], rel=ORACLE, abs=ORACLE)
    assert made.attrs["expected_loss"] < md.solve(problem, gap=SOLVED).attrs["lower_bound"]
    assert reference_violations(made["mass"].values, edges) > 0


@pytest.mark.parametrize(("cells", "epsilon"), [(6, 0.3), (9, 1.9)])
def test_on_a_line_it_is_the_geometric_mechanism(cells: int, epsilon: float) -> None:
    longer = 2 * np.arctanh(epsilon / 2)
    published = shipped_problem("line").published(cells=cells, epsilon=longer)["optimal"]
    made = md.solve(table1.edge_average(md.load_problem("line", cells=cells, epsilon=epsilon)), gap=SOLVED)
    assert made.attrs["expected_loss"] == pytest.approx(published, rel=2 * SOLVED)
