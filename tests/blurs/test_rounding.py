"""The audit of rules that devices round by: figures by other routes, vectors, and the output of the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from conftest import ROOT
from scipy.special import ive, log_ndtr, ndtr

from mechdesign.blurs.rounding import AWAY, DISTANCES, PROBABILITIES, ROUNDINGS, audit_rounding, vectors
from mechdesign.errors import InputError

VECTORS = ROOT / "docs" / "approximate_location.json"
DOUBLES = 1e-11  # of nats up to 100, from logarithms of scipy
LATTICE = 1.5e-4  # how much a lattice of 1 m may miss of nats that change by 0.02 and less a metre
QUADRATURE = 1e-9  # both rules converge faster than any power
ANDROID = ROUNDINGS["android-coarse"]


def log_mass(x, cell, grid=2000.0, deviation=500.0):
    """ln p(cell | x) in doubles, from the tail on its side."""
    low, high = (cell - 0.5) * grid - x, (cell + 0.5) * grid - x
    low, high = np.where(low + high > 0, -high, low) / deviation, np.where(low + high > 0, -low, high) / deviation
    return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))


def search_lattice(distance):
    """Largest |ln p(k|x) - ln p(k|x+d)| over a lattice of positions of a cell: by cells, by probability, variation."""
    x = np.arange(-1000.0, 1000.5)
    cells = np.arange(-8, 9)
    here = np.array([log_mass(x, k) for k in cells])
    there = np.array([log_mass(x + distance, k) for k in cells])
    gap = np.abs(here - there)
    away = {str(k): gap[abs(cells) <= k].max() for k in AWAY}
    likely = {p: np.where(np.maximum(here, there) >= math.log(float(p)), gap, 0).max() for p in PROBABILITIES}
    return away, likely, 0.5 * np.abs(np.exp(here) - np.exp(there)).sum(axis=0).max()


@pytest.mark.parametrize("distance", [50, 2000])
def test_nats_by_search_over_positions_and_reports(distance):
    """Second route: all positions of a lattice, all reports, in doubles."""
    row = next(row for row in audit_rounding("android-coarse")["distances"] if row["distance"] == distance)
    away, likely, variation = search_lattice(distance)
    for name, figures in row["cells"].items():
        assert figures["nats"] == pytest.approx(away[name], rel=DOUBLES)
    for name, figures in row["probabilities"].items():
        assert 0 <= figures["nats"] - likely[name] <= LATTICE * distance
    assert row["total_variation"] == pytest.approx(variation, rel=1e-4)
    assert row["total_variation"] >= variation - DOUBLES
    for figures in (*row["cells"].values(), *row["probabilities"].values()):
        assert figures["nats_per_km"] == pytest.approx(1000 * figures["nats"] / distance)


def test_the_figures_that_are_cited():
    row = next(row for row in audit_rounding("android-coarse")["distances"] if row["distance"] == 500)
    content = [round(figures["nats_per_km"], 1) for figures in row["cells"].values()]
    assert content == [2.3, 9.4, 17.2, 25.2, 41.1]
    assert [round(figures["nats_per_km"], 2) for figures in row["probabilities"].values()] == [6.25, 8.87, 10.86]
    assert round(row["total_variation"], 2) == 0.38


@pytest.mark.parametrize("x", [1000, 3000, 12000])
def test_nats_grow_without_end(x):
    """The lower bound that leaves no finite epsilon: d (x - G/2) / s^2."""
    for distance in (10, 500):
        assert ANDROID.nats(x, distance) >= distance * (x - 1000) / 250_000


def test_the_position_of_a_probability():
    assert ANDROID.mass(ANDROID.position(1e-4)) == pytest.approx(1e-4, rel=DOUBLES)


def test_errors_by_other_integrals():
    """Second route: given where in its cell a position lies, the distance has Rice's law, whose mean is a Bessel
    function; squares by their own sum; without an offset a rule over the cell.
    """
    result = audit_rounding("android-coarse")
    nodes, weights = np.polynomial.legendre.leggauss(120)
    offset = 500.0 * (nodes + 1)
    half = (offset[:, None] ** 2 + offset**2) / (4 * 500.0**2)
    rice = 500.0 * math.sqrt(math.pi / 2) * ((1 + 2 * half) * ive(0, half) + 2 * half * ive(1, half))
    assert result["mean_distance"] == pytest.approx(float(weights @ rice @ weights) / 4, rel=QUADRATURE)
    assert result["mean_squared_error"] == pytest.approx(2 * (2000.0**2 / 12 + 500.0**2))
    assert result["laplace"]["mean_distance"] == pytest.approx(2000 / result["mean_distance"])
    assert result["laplace"]["mean_squared_error"] == pytest.approx(1000 * math.sqrt(6 / result["mean_squared_error"]))
    assert round(result["mean_distance"]) == 973

    grid = audit_rounding("webkit-grid")
    fine = 2500.0 * (np.arange(2000) + 0.5) / 2000
    assert grid["mean_distance"] == pytest.approx(np.hypot(fine[:, None], fine).mean(), rel=1e-6)
    assert grid["mean_squared_error"] == pytest.approx(2 * 5000.0**2 / 12)
    assert round(grid["mean_distance"]) == 1913


def test_draws_of_the_rule_have_the_error_and_the_masses():
    """By drawing: positions spread evenly, a fresh offset, the nearest centre."""
    rng = np.random.default_rng(8)
    at = rng.uniform(-1000, 1000, (200_000, 2))
    report = np.floor((at + 500 * rng.normal(size=at.shape)) / 2000 + 0.5)
    error = np.hypot(*(at - 2000 * report).T)
    result = audit_rounding("android-coarse")
    assert abs(error.mean() - result["mean_distance"]) < 5 * error.std() / math.sqrt(len(error))
    assert abs((error**2).mean() - result["mean_squared_error"]) < 5 * (error**2).std() / math.sqrt(len(error))


@pytest.mark.parametrize("name", ROUNDINGS)
def test_no_epsilon_is_finite(name):
    result = audit_rounding(name)
    assert result["effective_epsilon"] is None
    assert [row["distance"] for row in result["distances"]] == list(DISTANCES)
    json.dumps(result, allow_nan=False)
    if name == "webkit-grid":
        assert [row["separated"] for row in result["distances"]] == [d / 5000 for d in DISTANCES]
        assert {row["total_variation"] for row in result["distances"]} == {1.0}


@pytest.mark.parametrize("name", ROUNDINGS)
def test_the_vectors_are_those_of_the_docs_and_right(name):
    """Second route: erfc of the C library, to the digits that doubles hold."""
    content = vectors(name)
    assert json.loads(VECTORS.read_text(encoding="utf-8"))[name] == content
    grid, deviation = content["grid"], content["deviation"]
    for vector in content["masses"]:
        x, k, p = vector["position"], vector["cell"], float(vector["probability"])
        if deviation == 0:
            assert p == float((k - 0.5) * grid <= x < (k + 0.5) * grid)
        else:
            assert p == pytest.approx(math.exp(log_mass(float(x), k)), rel=1e-10)
    for vector in content["reports"]:
        moved = vector["position"] + vector["offset"]
        assert -grid / 2 <= moved - vector["cell"] * grid < grid / 2


def test_the_program_of_the_page_accepts_the_vectors(monkeypatch, capsys):
    """The program that another implementer is given, as it stands on the page."""
    page = (ROOT / "docs" / "results" / "devices.md").read_text(encoding="utf-8")
    text = next(part.split("```")[0] for part in page.split("```python\n")[1:] if "approximate_location.json" in part)
    monkeypatch.chdir(ROOT)
    exec(compile(text, "devices.md", "exec"), {"__name__": "__page__"})
    assert capsys.readouterr().out.split() == ["android-coarse", "89", "webkit-grid", "61"]


def test_probabilities_of_a_vector_add_up():
    figures = [v for v in vectors("android-coarse")["masses"] if v["position"] == 250 and abs(v["cell"]) <= 1]
    assert sum(float(v["probability"]) for v in figures) == pytest.approx(float(ndtr(5.5) - ndtr(-6.5)), rel=1e-12)


def test_command_prints_the_audit(run, run_json):
    code, output = run_json("audit", "android-coarse")
    assert (code, output["effective_epsilon"]) == (0, None)
    assert output["vectors"] == vectors("android-coarse")
    code, printed, _ = run("audit", "android-coarse")
    words = " ".join(printed.split())
    assert code == 0
    assert words.startswith(
        "No epsilon bounds android-coarse: the further away a report is, the more it reveals: 4 nats"
    )
    for figure in ("41.1", "972.773 m", "2.06 nats per km", "0.383"):
        assert figure in words
    assert "infinite across a border" in " ".join(run("audit", "webkit-grid")[1].split())


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["magic"], "rule"),
        ([], "table"),
        (["webkit-grid", "--metric", "discrete"], "metric"),
        (["webkit-grid", "-o", "x.nc"], "output"),
    ],
)
def test_invalid_rules_are_refused(run_json, tmp_path, monkeypatch, words, field):
    monkeypatch.chdir(tmp_path)
    code, output = run_json("audit", *words)
    assert (code, output["error"]["field"]) == (2, field)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_rule_names_the_others():
    with pytest.raises(InputError, match="unknown rule") as caught:
        audit_rounding("android")
    assert "android-coarse" in caught.value.remedy
