"""compare as a data frame, with baselines and mechanisms of the user's own, and its tables as files."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.problems import CASES
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign import compare, sweep
from mechdesign.baselines import BASELINES
from mechdesign.output import compare as of_comparisons
from mechdesign.output.compare import ComparisonRow
from mechdesign.output.reports.comparison import comparison_words
from mechdesign.output.text_tables import show
from mechdesign.plot import sweep as plot_sweep

EXACT = 1e-9  # relative; tables are rounded to 2^-62 and lengths to 2^-43


@pytest.fixture(scope="module")
def problem() -> md.DesignProblem:
    return md.load_problem("line", cells=4)


def lazy(size: int, share: float = 0.5) -> np.ndarray:
    """Tells the truth with probability `share`, else any place: log-ratio ln(1 + size share / (1 - share))."""
    return share * np.eye(size) + (1 - share) / size


def lazy_epsilon(size: int, share: float = 0.5) -> float:
    return float(np.log(1 + size * share / (1 - share)))


@pytest.fixture(scope="module")
def comparison(problem):
    return compare(problem, mechanisms={"mine": lazy(4), "theirs": md.baselines.exponential(problem)})


@pytest.mark.parametrize("figure", ["remapped_loss", "expected_distance", "position_loss"])
def test_a_figure_that_fails_costs_no_comparison(figure, monkeypatch, capsys, problem):
    def failing(mechanism):
        raise MemoryError("Unable to allocate 57.6 PB")

    monkeypatch.setattr(of_comparisons, figure, failing)
    table = compare(problem)
    assert table["mechanism"].tolist() == ["optimal", "eikonal", *BASELINES]
    assert table[figure].isna().all()
    assert table["loss"].notna().all()
    assert "is left out: Unable to allocate 57.6 PB" in capsys.readouterr().err


def test_a_data_frame_with_a_row_for_every_mechanism(comparison, problem):
    assert {"mechanism", "loss", "lower_bound", "gap", "claim_over", "row_ratio"} < set(comparison.columns)
    assert comparison["mechanism"].tolist() == ["optimal", "eikonal", *BASELINES, "mine", "theirs"]
    assert comparison["rank"].dtype == "Int64"
    own = comparison.set_index("mechanism")
    holds = own[own["lower_bound"].notna()]
    assert (holds["lower_bound"] <= holds["loss"] * (1 + EXACT)).all()
    assert own["lower_bound"].notna().sum() == 8


def test_a_table_of_ones_own_has_the_smallest_scale_that_holds(comparison, problem):
    mine = comparison.set_index("mechanism").loc["mine"]
    assert mine["loss"] == pytest.approx(0.5 * 3 / 4, rel=EXACT)
    assert mine["ratio"] == pytest.approx(lazy_epsilon(4) / 0.9, rel=EXACT)
    assert np.isnan(comparison["gap"].iloc[-2])


@needs("surveys")
def test_dataset_and_closed_form_rows_agree(comparison):
    rows = comparison.set_index("mechanism")
    for name in ("loss", "remapped_loss", "ratio", "gap", "rank", "asymptotic_mse"):
        assert rows.loc["theirs", name] == pytest.approx(rows.loc["exponential", name], rel=EXACT)


def test_dataset_is_evaluated_by_the_problem(problem):
    other = replace(problem, metric=0.5 * problem.metric, loss=md.losses.Distance())
    made = md.baselines.exponential(other).assign_attrs(expected_loss=0.0, ratio=0.1)
    [given] = compare(problem, mechanisms={"theirs": made}).query("mechanism == 'theirs'").to_dict("records")
    again = md.baselines.from_table(problem, md.probabilities(made).values, name="again", claimed_epsilon=None)
    assert given["loss"] == pytest.approx(again.attrs["expected_loss"], rel=EXACT)
    assert given["ratio"] == pytest.approx(again.attrs["ratio"], rel=EXACT)


def test_counts_are_tables_too(problem):
    counts = np.array(8 * lazy(4), int)
    table = compare(problem, mechanisms={"counts": counts, "mine": counts / 8}).set_index("mechanism")
    assert table.loc["counts", "loss"] == pytest.approx(table.loc["mine", "loss"], rel=EXACT)


BAD = {
    "another shape": (lambda p: {"mine": lazy(5)}, "table"),
    "too few reports": (lambda p: {"mine": lazy(4)[:, :3] / lazy(4)[:, :3].sum(axis=1, keepdims=True)}, "mechanisms"),
    "no probabilities": (lambda p: {"mine": 2 * lazy(4)}, "table"),
    "words": (lambda p: {"mine": [["a"] * 4] * 4}, "table"),
    "a name of ours": (lambda p: {"eikonal": lazy(4)}, "mechanisms"),
    "no name": (lambda p: {"": lazy(4)}, "mechanisms"),
    "a path": (lambda p: {"a/b": lazy(4)}, "mechanisms"),
    "other secrets": (lambda p: {"mine": md.baselines.constant(md.load_problem("line", cells=5))}, "mechanisms"),
    "moved secrets": (
        lambda p: {"mine": md.baselines.constant(md.load_problem("line", cells=4, cell=2.0))},
        "mechanisms",
    ),
    "factors": (
        lambda p: {"mine": md.solve(md.EikonalWeights(problem=p), method="factored")},
        "mechanisms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", [compare, sweep])
@pytest.mark.parametrize("case", BAD)
def test_non_mechanism_is_refused_before_work(case, command, problem, monkeypatch):
    monkeypatch.setattr("mechdesign.output.sweep._solve", None)
    made, field = BAD[case]
    given = made(problem)
    monkeypatch.setattr("mechdesign.output.compare.solve", None)
    with pytest.raises(md.errors.InputError) as caught:
        command(problem, mechanisms=given)
    assert caught.value.field == field


ZEROS = {"identity": np.eye(4), "one zero": [[0.5, 0.25, 0.25, 0.0], *[[0.25] * 4] * 3]}


def test_table_with_zeros_is_a_row_of_infinite_ratio(problem):
    """Its loss is that of the table, and no scale of the metric holds; the other rows are as without it."""
    made = compare(problem, mechanisms=ZEROS).set_index("mechanism")
    for name, table in ZEROS.items():
        loss = (problem.prior_array[:, None] * np.array(table) * problem.loss_matrix).sum()
        assert made.loc[name, "loss"] == pytest.approx(loss, rel=EXACT)
        assert (made.loc[name, ["ratio", "effective_epsilon"]] == math.inf).all()
        assert made.loc[name, ["lower_bound", "gap"]].isna().all()
    alone = compare(problem).set_index("mechanism")
    assert made.drop(list(ZEROS))["ratio"].tolist() == alone["ratio"].tolist()
    curve = sweep(problem, [0.5, 1.0], mechanisms=ZEROS)
    assert curve["identity_loss"].values.tolist() == [0.0, 0.0]
    assert np.isinf(curve["one zero_effective_scale"].values).all()


@needs("pictures")
def test_table_with_zeros_in_every_output(run, tmp_path):
    """null in JSON, which has no infinity, and inf where people read."""
    np.save(tmp_path / "same.npy", np.eye(4))
    command = ("compare", "discrete", "--secrets", 4, "--with", tmp_path / "same.npy")
    code, out, _ = run(*command, "--json")
    [row] = [row for row in json.loads(out) if row["mechanism"] == "same"]
    assert (code, row["ratio"], row["effective_epsilon"], row["loss"]) == (0, None, None, 0.0)
    assert "Not private as claimed: same." in " ".join(run(*command)[1].split())
    for suffix in ("csv", "tex", "json", "html"):
        assert run(*command, "-o", tmp_path / f"rows.{suffix}")[0] == 0
    for suffix in ("csv", "nc", "png", "html"):
        assert run(*command, "--scales", "0.5,1", "-o", tmp_path / f"curve.{suffix}")[0] == 0
    assert "inf" in (tmp_path / "rows.tex").read_text()
    audit = run("audit", tmp_path / "same.npy", "--metric", "discrete", "--epsilon", 1)
    assert audit[0] == 1
    assert "not private at any scale" in " ".join(audit[1].split())


def test_effective_epsilon_in_every_kind_of_metric():
    euclidean = compare(CASES["euclidean lattice"]()).set_index("mechanism")
    assert (euclidean["effective_epsilon"] > 0).drop("constant").all()
    eikonal = compare(md.load_problem("line", cells=4)).set_index("mechanism")
    claimed = eikonal["claimed_epsilon"].notna()
    assert claimed.any()
    assert not claimed.all()
    expected = (eikonal["claimed_epsilon"] * eikonal["ratio"])[claimed]
    assert eikonal["effective_epsilon"][claimed].to_numpy() == pytest.approx(expected.to_numpy(), rel=EXACT)
    assert eikonal["effective_epsilon"][~claimed].isna().all()


def test_a_baseline_from_outside_the_package(problem, monkeypatch, tmp_path):
    def mine(asked: md.DesignProblem):
        return md.baselines.from_table(asked, lazy(asked.domain.size), name="mine", claimed_epsilon=None)

    monkeypatch.setitem(md.baselines.BASELINES, "mine", mine)
    assert compare(problem)["mechanism"].tolist()[-1] == "mine"
    curve = sweep(problem, [0.5, 1.0])
    assert "mine" in [line.get_label() for line in plot_sweep(curve).axes[0].lines]
    again = md.plot.load(md.save(curve, tmp_path / "curve.nc"))
    monkeypatch.delitem(md.baselines.BASELINES, "mine")
    assert "mine" in [line.get_label() for line in plot_sweep(again).axes[0].lines]


def test_a_table_of_ones_own_has_one_level_all_along_a_sweep(problem):
    curve = sweep(problem, [0.5, 1.0, 4.0], mechanisms={"mine": lazy(4)})
    assert curve["mine_loss"].values.tolist() == [curve["mine_loss"].values[0]] * 3
    assert curve["mine_effective_scale"].values == pytest.approx([lazy_epsilon(4) / 0.9] * 3, rel=EXACT)
    frame = curve.to_dataframe()
    assert frame.index.name == "scale"
    assert frame["mine_loss"].tolist() == curve["mine_loss"].values.tolist()


def test_scales_that_nobody_names():
    curve = sweep(CASES["discrete"]())
    assert curve["scale"].values == pytest.approx([2 ** (k / 2) for k in range(-4, 5)])


LINE = ("compare", "line", "--cells", 4)


def test_tables_as_files(tmp_path, run_json):
    _, table = run_json(*LINE, "-o", tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == table
    run_json(*LINE, "-o", tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as stream:
        assert [row["loss"] for row in csv.DictReader(stream)] == [repr(row["loss"]) for row in table]
    run_json(*LINE, "-o", tmp_path / "t.tex")
    lines = (tmp_path / "t.tex").read_text().splitlines()
    assert lines[0] == r"\begin{tabular}{l" + "r" * 10 + "}"
    assert lines[-1] == r"\end{tabular}"
    assert any(line.startswith(r"geometric\_normalised & 0.") and line.endswith(r" \\") for line in lines)
    code, refused = run_json(*LINE, "-o", tmp_path / "t.ods")
    assert (code, refused["error"]["field"]) == (2, "output")
    assert all(suffix in str(refused["error"]) for suffix in (".csv", ".json", ".xlsx", ".tex"))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json", ".tex"]


def test_curves_as_files(tmp_path, run_json):
    _, curve = run_json(*LINE, "--scales", "0.5,1", "-o", tmp_path / "c.csv")
    with (tmp_path / "c.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["scale"]) for row in written] == [0.5, 1.0]
    assert [float(row["eikonal_loss"]) for row in written] == [row["eikonal_loss"] for row in curve]
    run_json(*LINE, "--scales", "0.5,1", "-o", tmp_path / "c.tex")
    assert "geometric normalised" in (tmp_path / "c.tex").read_text().splitlines()[2]


def test_latex_escapes_what_it_must(tmp_path, run_json):
    np.save(tmp_path / "x&50%_.npy", lazy(4))
    words = ("--with", tmp_path / "x&50%_.npy", "--only", "x&50%_", "-o", tmp_path / "t.tex")
    assert run_json(*LINE, *words)[0] == 0
    assert r"x\&50\%\_ & " in (tmp_path / "t.tex").read_text()


@needs("positions")
def test_both_kinds_of_claim_stand_in_one_table(capsys):
    """Centres draw their own row, so their loss to the true position is h^2 / 6 above that between centres."""
    domain = md.Domain.grid((4, 4), cell=0.5, unit="km")
    plane = md.DesignProblem(
        domain=domain,
        metric=md.Euclidean(epsilon=0.8, unit="km"),
        prior=md.priors.uniform(domain),
        loss=md.losses.SquaredDistance(),
    )
    table = compare(plane, positions=True)
    found = table.set_index("mechanism")
    centres = found[found["claim_over"] == "cells"]
    assert (centres["position_loss"] - centres["loss"]).to_numpy() == pytest.approx(0.25 / 6, rel=1e-9)
    assert set(found.index[found["claim_over"] == "positions"]) == {"positions", "spline_laplace"}
    assert found.loc["positions", "position_loss"] < found.loc["spline_laplace", "position_loss"]
    bounded = found[found["lower_bound"].notna()]  # that of the loss between centres, not of another objective
    assert (bounded["lower_bound"] <= found.loc["optimal", "loss"]).all()
    assert (bounded["gap"] >= 0).all()
    show(
        [],
        comparison_words([ComparisonRow(**row) for row in table.replace(np.nan, None).to_dict("records")], plane),
        as_json=False,
    )
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Of the mechanisms that protect any two positions, positions has the smallest loss to the true position: "
        in said
    )
    broken = said.partition("Not private as claimed: ")[2].partition(".")[0]
    assert not {"positions", "spline_laplace"} & set(broken.split(", "))
    anywhere = found[found["claim_over"] == "positions"]
    assert (anywhere["ratio"] == 1).all()  # of the claim about positions; that of the rows is next to it
    assert (anywhere["effective_epsilon"] == 0.8).all()
    assert anywhere.loc["positions", "row_ratio"] > 1
    assert centres["row_ratio"].isna().all()
    assert {"position", "over"} <= set(said.split())


@needs("positions")
def test_user_position_mechanism_keeps_its_claim():
    """Its rows are never drawn alone: their loss is not its loss, and under another metric it is refused."""
    domain, metric = md.Domain.grid((2, 2), cell=1.0, unit="cell"), md.Euclidean(1.0, unit="cell")
    problem = md.DesignProblem(domain, metric, md.priors.uniform(domain), md.losses.SquaredDistance())
    between = md.solve(md.positions.Positions(problem), gap=1e-2)
    row = compare(problem, mechanisms={"mine": between}).set_index("mechanism").loc["mine"]
    assert (row["claim_over"], row["ratio"]) == ("positions", 1.0)
    assert row["loss"] == row["position_loss"] == pytest.approx(between.attrs["expected_loss"], rel=REORDERED)
    with pytest.raises(md.errors.InputError, match="under another metric"):
        compare(replace(problem, metric=2 * problem.metric), mechanisms={"mine": between})
