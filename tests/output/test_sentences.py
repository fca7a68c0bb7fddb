"""Sentences: figures rounded to the safe side, and bounds that stand beside the losses that they bound."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from cases import CASES
from placed import placed
from rows import each_row

import mechdesign as md
from mechdesign import baselines
from mechdesign.base.figures import TIMES, amount, cell, length, number, percent
from mechdesign.closed_forms.loss import position_loss
from mechdesign.mechanism.stored import read
from mechdesign.output.sentences import bound_sentence, error_sentence, stopped_sentence
from mechdesign.web.contents import headline

FIGURES = [  # value, up, down
    (495.754, "495.8", "495.7"),
    (2.00000906, "2.001", "2"),
    (2613.2, "2,614", "2,613"),
    (99.996, "100", "99.99"),
    (1234567.8, "1,235,000", "1,234,000"),
    (0.0001, "0.0001", "0.0001"),
    (0.1 + 0.2, "0.3", "0.3"),  # 0.30000000000000004: rounding in doubles is no figure
    (4.1234e-7, f"4.124 {TIMES} 10⁻⁷", f"4.123 {TIMES} 10⁻⁷"),
    (1e12, f"1 {TIMES} 10¹²", f"1 {TIMES} 10¹²"),
    (math.inf, "inf", "inf"),
    (0.0, "0", "0"),
]


@each_row(("value", "up", "down"), FIGURES)
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
    assert [cell(x, f) for x, f in ((None, "%"), (0.00164, "%"), (5e-10, "%"), (12.75591, "up 6"))] == [
        "-", "0.164%", "<0.0001%", "12.756",
    ]  # fmt: skip
    assert (amount(2.0, "m^2"), amount(2.0, "1"), amount(7.5, "USD")) == ("2 m²", "2", "7.5 USD")


@pytest.mark.parametrize("loss", [md.losses.SquaredDistance(), md.losses.Distance()], ids=lambda loss: loss.name)
def test_a_bound_stands_beside_the_loss_that_it_bounds(loss):
    """Squared distances add the variance of a cell to both; distances are told between centres, with their bound."""
    problem = replace(CASES["euclidean lattice"](), loss=loss)
    mechanism = md.solve(md.Optimal(problem=problem))
    stored, placed_loss = read(mechanism), position_loss(mechanism)
    error, bound = error_sentence(stored), bound_sentence(stored)
    attrs = mechanism.attrs
    if loss.name == "squared":
        least = math.sqrt(attrs["lower_bound"] + placed_loss - attrs["expected_loss"])
        assert f"are {length(math.sqrt(placed_loss), 'cell', up=True)} off the true position" in error
        assert f"does better than {length(least, 'cell', up=False)} (gap " in bound
        assert placed_loss - attrs["expected_loss"] == pytest.approx(1 / 6)
    else:
        assert f"are {length(placed_loss, 'cell', up=True)} off the true position" in error
        centres = length(attrs["expected_loss"], "cell", up=True)
        assert bound.startswith(f"Between centres of cells that is {centres}, and no mechanism with this claim does ")
        assert f"does better than {length(attrs['lower_bound'], 'cell', up=False)} (gap " in bound


def test_a_bound_of_a_design_between_positions_is_of_its_own_loss():
    mechanism = placed("square")
    assert bound_sentence(read(mechanism)) is None  # a kernel has none
    problem = replace(CASES["euclidean lattice"](), name="positions")
    solved = md.solve(md.positions.Positions(problem=problem), gap=0.02)
    said = headline(read(solved), md.verify(solved))
    assert said.startswith("Protects any two positions: within ")
    assert "No mechanism of this form does better than " in said
    assert f"better than {length(math.sqrt(solved.attrs['lower_bound']), 'cell', up=False)} (" in said
    assert f"Reports are {length(math.sqrt(solved.attrs['objective']), 'cell', up=True)} off" in said
    assert not re.search(r"spline|cone|multiplier|e[-+]\d", said)


def test_a_bound_among_mechanisms_with_limits_of_their_own_says_so():
    problem = replace(CASES["euclidean lattice"](), name="limits")
    bounded = md.solve(md.programs.Bounded(problem=problem, worst_loss=1.2 * md.solve(problem).attrs["expected_loss"]))
    assert bound_sentence(read(bounded)).startswith("No mechanism with this claim and its limits has less than ")


def test_what_was_stopped_says_so_and_what_goes_on():
    assert stopped_sentence("gap", 0.1) is None
    assert stopped_sentence(None, None) is None
    early = stopped_sentence("time", 0.1199, limit=150)
    assert early == ("Stopped at its time limit: up to 12 % of the loss may be avoidable; --time-limit 600 goes on.")
    unknown = stopped_sentence("time", None, limit=math.inf)
    assert (
        unknown
        == "Stopped at its time limit: how much better the best is was not found; a longer --time-limit goes on."
    )
    assert stopped_sentence("interrupt", 0.5).startswith("Stopped by hand: up to 50 % of the loss may be ")


def test_a_share_of_right_reports_is_rounded_down():
    stored = read(baselines.exponential(CASES["line, zero-one"]()))
    said = error_sentence(stored)
    shown = float(said.split("probability ")[1].split(" %")[0])
    right = 100 * (1 - stored.mechanism.attrs["expected_loss"])
    assert right * (1 - 1e-3) <= shown <= right
