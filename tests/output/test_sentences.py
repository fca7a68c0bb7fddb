"""Sentences: figures rounded to the safe side, and bounds next to the losses that they bound."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, replace
from decimal import Decimal

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.pages import texts_of
from fixtures.position_mechanisms import position_mechanism
from fixtures.problems import CASES

import mechdesign as md
from mechdesign import baselines
from mechdesign.base.formatting import (
    TIMES,
    Rounding,
    amount,
    format_cell,
    format_share,
    length,
    number,
    percent,
    sentence,
)
from mechdesign.errors import InputError
from mechdesign.mechanism.figures import relative_gap
from mechdesign.output.compare import ComparisonRow
from mechdesign.output.comparison_files import write_rows
from mechdesign.output.sentences import format_upper_share

FIGURES = [  # value, up, down
    (495.754, "495.8", "495.7"),
    (2.00000906, "2.001", "2"),
    (2613.2, "2,614", "2,613"),
    (99.996, "100", "99.99"),
    (1234567.8, "1,235,000", "1,234,000"),
    (0.0001, "0.0001", "0.0001"),
    (0.1 + 0.2, "0.3", "0.3"),  # 0.30000000000000004: rounding in doubles is not a figure
    (4.1234e-7, f"4.124 {TIMES} 10⁻⁷", f"4.123 {TIMES} 10⁻⁷"),
    (5e-324, f"4.941 {TIMES} 10⁻³²⁴", f"4.94 {TIMES} 10⁻³²⁴"),  # the smallest double, whose power of ten is 0
    (1.5e300, f"1.5 {TIMES} 10³⁰⁰", f"1.5 {TIMES} 10³⁰⁰"),
    (1e12, f"1 {TIMES} 10¹²", f"1 {TIMES} 10¹²"),
    (math.inf, "inf", "inf"),
    (0.0, "0", "0"),
]


@pytest.mark.parametrize(("value", "up", "down"), FIGURES)
def test_figures_are_rounded_to_the_safe_side_in_plain_digits(value, up, down):
    assert (number(value, up=True), number(value, up=False)) == (up, down)


def test_rounding_never_crosses_the_figure():
    for value in np.exp(np.random.default_rng(1).uniform(-9, 20, 2000)).tolist():
        low, high = (Decimal(number(value, up=up).replace(",", "")) for up in (False, True))
        assert low <= Decimal(value) * (1 + Decimal("1e-11"))
        assert high >= Decimal(value) * (1 - Decimal("1e-11"))
        assert high - low <= Decimal("0.0011") * Decimal(value)


def test_lengths_shares_and_cells_of_tables():
    assert [length(x, "m", up=True) for x in (498.151, 4290.0, 42_901.0)] == ["498.2 m", "4,290 m", "42.91 km"]
    assert [length(1.0, unit) for unit in ("km", "cell", "1")] == ["1 km", "1 cell", "1 unit"]
    assert [percent(x, up=True) for x in (0.0008, 0.1199, 5e-10)] == ["0.08 %", "12 %", "under 0.0001 %"]
    assert [*map(format_share, (None, 0.00164, 5e-10)), format_cell(12.75591, rounding=Rounding.UP, digits=6)] == [
        "-", "0.164%", "<0.0001%", "12.756",
    ]  # fmt: skip
    assert (amount(2.0, "m^2"), amount(2.0, "1"), amount(7.5, "USD")) == ("2 m²", "2", "7.5 USD")


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        ("the largest loss over the secrets", "The largest loss over the secrets"),
        ("a report says little", "A report says little"),
        ("N times the mean squared H^-1 error of n reports", "N times the mean squared H^-1 error of n reports"),
        ("n reports", "n reports"),
        ("h^-1 error", "h^-1 error"),
        ("x2 is", "x2 is"),
        ("k-anonymity of Rome", "k-anonymity of Rome"),
        ("two-step designs in NYC", "Two-step designs in NYC"),
        ("", ""),
    ],
)
def test_only_the_first_letter_is_raised_and_no_symbol(text, raised):
    assert sentence(text) == raised


def test_latex_has_powers_as_formulas(tmp_path):
    """Figures beyond 10^9 and below 10^-4 of a comparison, whose signs no font of LaTeX has by default."""
    figures = dict.fromkeys(field.name for field in fields(ComparisonRow)) | {"claim_over": "cells"}
    first = {"mechanism": "tiny", "loss": 4.1234567e-12, "lower_bound": 4e-12, "gap": 5e-10}
    rows = [ComparisonRow(**figures | row) for row in (first, {"mechanism": "huge", "loss": 7.5e21})]
    written = write_rows(rows, tmp_path / "rows.tex", CASES["line, zero-one"]()).read_text("utf-8")
    assert r"$4.12346 \times 10^{-12}$ & $4 \times 10^{-12}$ & $<$0.0001\%" in written
    assert r"$7.5 \times 10^{21}$" in written
    assert written.isascii()


def test_gaps_are_never_negative():
    """Rounding puts a bound above the loss that it bounds; a gap of 1e-9 and more is another matter."""
    assert relative_gap(1.0, 1.0 + 2.0**-52, 1.0) == 0.0
    assert relative_gap(0.0, 1e-15, 1.0) == 0.0
    assert relative_gap(2.0, 1.0, 1.0) == 0.5


def page_contents(mechanism):
    """The contents of the page of a mechanism, with its sentences."""
    return json.loads(texts_of(mechanism).contents)


def sentences(mechanism):
    return page_contents(mechanism)["facts"]["sentence"]


@pytest.mark.parametrize("loss", [md.losses.SquaredDistance(), md.losses.Distance()], ids=lambda loss: loss.name)
def test_bound_sentence_names_its_loss(loss):
    """Squared distances add the variance of a cell to both; distances are stated between centres, with their bound."""
    problem = replace(CASES["euclidean lattice"](), loss=loss)
    mechanism = md.solve(md.Optimal(problem=problem))
    contents, attrs = page_contents(mechanism), mechanism.attrs
    placed_loss, said = contents["position_loss"], contents["facts"]["sentence"]
    if loss.name == "squared":
        least = math.sqrt(attrs["lower_bound"] + placed_loss - attrs["expected_loss"])
        assert (
            f"The root mean square distance to the true position is {length(math.sqrt(placed_loss), 'cell', up=True)}."
            in said
        )
        assert f"does better than {length(least, 'cell', up=False)} (gap " in said
        assert placed_loss - attrs["expected_loss"] == pytest.approx(1 / 6)
    else:
        assert f"The mean distance to the true position is {length(placed_loss, 'cell', up=True)}." in said
        centres = length(attrs["expected_loss"], "cell", up=True)
        assert (
            f"Between centres of cells the mean distance is {centres}, and no mechanism with this claim does " in said
        )
        assert f"does better than {length(attrs['lower_bound'], 'cell', up=False)} (gap " in said


def test_bound_of_a_position_design_is_of_its_loss():
    assert "o mechanism" not in sentences(position_mechanism("square"))  # a kernel has no bound
    problem = replace(CASES["euclidean lattice"](), name="positions")
    solved = md.solve(md.positions.Positions(problem=problem), gap=0.02)
    said = sentences(solved)
    assert said.startswith("Protects any two positions: within ")
    assert "No mechanism at all with this claim and these reports does better than " in said
    assert f"better than {length(math.sqrt(solved.attrs['any_lower_bound']), 'cell', up=False)} (" in said
    assert f"is {length(math.sqrt(solved.attrs['objective']), 'cell', up=True)}. " in said
    assert not re.search(r"spline|cone|multiplier|e[-+]\d", said)


def test_bound_among_limited_mechanisms_says_so(tmp_path, run):
    problem = replace(CASES["euclidean lattice"](), name="limits")
    bounded = md.solve(md.programs.Bounded(problem=problem, worst_loss=1.2 * md.solve(problem).attrs["expected_loss"]))
    _, said, _ = run("verify", md.save(bounded, tmp_path / "b.nc"))
    assert "o mechanism with this claim and its limits does better than " in " ".join(said.split())


def test_bound_sentence_names_other_objective(tmp_path, run):
    minimax = md.solve(md.programs.Minimax(problem=replace(CASES["euclidean lattice"](), name="worst")))
    _, said, _ = run("verify", md.save(minimax, tmp_path / "m.nc"))
    unit, attrs = minimax["loss_table"].attrs["units"] if "loss_table" in minimax else "cell^2", minimax.attrs
    worst, least = amount(attrs["objective"], unit, up=True), amount(attrs["lower_bound"], unit, up=False)
    reached = f"Between centres of cells the largest loss over the secrets is {worst}"
    beside = f"{reached}, and no mechanism with this claim has less than {least} (gap "
    assert beside in " ".join(said.split())


def test_stopped_design_names_the_remedy():
    form, solved = baselines.constant(CASES["line, zero-one"]()), md.solve(CASES["line, zero-one"]())
    half = {"lower_bound": 0.5 * solved.attrs["expected_loss"]}
    assert "Stopped" not in sentences(form) + sentences(rewritten(solved, stopped="gap", **half))
    assert sentences(rewritten(form, stopped="time")).startswith(
        "Stopped at the time limit: it is not known how far the loss is from the minimum. To search longer, pass a "
        "longer --time-limit. Protects"
    )
    by_hand = sentences(rewritten(solved, stopped="interrupt", **half))
    assert by_hand.startswith("Stopped by hand: up to 50 % of the loss may be ")
    assert (format_upper_share(0.5), format_upper_share(1e-9)) == ("up to 50 %", "under 0.0001 %")


def test_errors_show_the_ends_of_long_values():
    """A file may hold a rule of a million widths: an error is a line that fits a screen."""
    error = InputError("m" * 10**6, field="widths", value=list(range(10**5)), remedy="use fewer")
    said, value = str(error), error.as_dict()["value"]
    assert len(said) < 3000
    assert (value[:10], value[-7:]) == ("[0, 1, 2, ", " 99999]")


def test_large_gap_comes_first():
    """0.1 % was asked for. By hand: 1.1 % is more than ten times that, 0.9 % is not."""
    solved = md.solve(CASES["line, zero-one"](), gap=1e-3)
    loss = solved.attrs["expected_loss"]
    for stopped in ("precision", "gap", "rounds"):
        far, near = (rewritten(solved, stopped=stopped, lower_bound=(1 - gap) * loss) for gap in (0.011, 0.009))
        assert sentences(far).startswith("Up to 1.1 % of the loss may be avoidable. Protects")
        assert sentences(near).startswith("Protects")
    nothing = rewritten(solved, stopped="precision", lower_bound=0.0)
    assert sentences(nothing).startswith("It is not known how far the loss is from the minimum. Protects")


def test_a_share_of_right_reports_is_rounded_down():
    mechanism = baselines.exponential(CASES["line, zero-one"]())
    said = sentences(mechanism)
    shown = float(said.split("probability ")[1].split(" %")[0])
    right = 100 * (1 - mechanism.attrs["expected_loss"])
    assert right * (1 - 1e-3) <= shown <= right
