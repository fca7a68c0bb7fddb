"""Readers of a mechanism for any position: rows drawn at centres, never a row alone, or a refusal."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from fixtures.position_mechanisms import position_mechanism, spline_weights
from fixtures.tolerances import LINEAR_ALGEBRA
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.geo import Partition
from mechdesign.sessions import Clock
from mechdesign.utility import mechanism_loss, remapped_loss, table_retrieval_radius


def rows_at_centres(mechanism) -> np.ndarray:
    """P(y|centre of u), from the weights (1, 6, 1) / 8 of the spline there, cell by cell."""
    mass, found = mechanism["mass"].values.astype(float) / ROW_SUM, []
    for around in mechanism["around_row"].values.reshape(-1, 3, 3):
        across = [(mass[row[0]] + 6 * mass[row[1]] + mass[row[2]]) / 8 for row in around]
        found.append((across[0] + 6 * across[1] + across[2]) / 8)
    return np.array(found)


@pytest.mark.obligation("position-rows-alone")
def test_sampler_draws_rows_around_cell(monkeypatch):
    """Which rows are drawn from, not which reports: those of neighbours are too alike to be distinguished by counts."""
    sampler, rows, live = md.Sampler(position_mechanism("square")), [], []
    kind = type(sampler.rows)
    sample, draw_live = kind.sample, kind.draw_live
    monkeypatch.setattr(kind, "sample", lambda self, u, *args, **more: rows.extend(u) or sample(self, u, *args, **more))
    monkeypatch.setattr(kind, "draw_live", lambda self, u, scan: live.append(u) or draw_live(self, u, scan))
    sampler.sample([12], 4_000, rng=1)
    around = {6, 7, 8, 11, 12, 13, 16, 17, 18}  # of the middle of 5 x 5 cells
    assert set(rows) == around
    # (3 / 4)^2 of the centre's reports are drawn from its own row; six standard deviations.
    assert abs(rows.count(12) - 4_000 * 0.5625) < 190
    for _ in range(100):
        sampler.report(12)
    assert 1 < len(set(live)) <= 9
    assert set(live) <= around


def test_drawn_rows_match_sampler():
    """20,000 reports within six standard deviations."""
    mechanism = position_mechanism("holes")
    drawn = rows_at_centres(mechanism)
    counts = np.bincount(md.sample(mechanism, 7, 20_000, rng=1).values.ravel(), minlength=drawn.shape[1])
    off = 6 * np.sqrt(20_000 * drawn[7]) + 1
    assert (np.abs(counts - 20_000 * drawn[7]) <= off).all()
    assert np.abs(drawn - md.probabilities(mechanism).values).max() > 1e-3


def test_remapped_loss_is_to_true_position():
    """Squared distances at three Gauss-Legendre nodes along either axis, exact for polynomials of degree 5."""
    mechanism = position_mechanism("holes")
    table, around = md.probabilities(mechanism).values, mechanism["around_row"].values
    x, y = (mechanism[f"secret_{axis}"].values for axis in "xy")
    side = float(json.loads(mechanism.attrs["domain"])["cell"][0])
    nodes = list(zip(np.array([-0.5, 0.0, 0.5]) * math.sqrt(0.6), (5 / 18, 8 / 18, 5 / 18), strict=True))
    posterior_loss = np.zeros((table.shape[1], table.shape[1]))
    for (s, v), (t, w) in product(nodes, nodes):
        weights = np.outer(spline_weights(s * 2**16), spline_weights(t * 2**16)).ravel()
        joint = v * w * mechanism["prior"].values[:, None] * np.einsum("k,ukm->um", weights, table[around])
        square = (x[:, None] + s * side - x) ** 2 + (y[:, None] + t * side - y) ** 2
        posterior_loss += joint.T @ square
    assert mechanism_loss(mechanism) == pytest.approx(np.trace(posterior_loss), rel=LINEAR_ALGEBRA)
    assert remapped_loss(mechanism) == pytest.approx(posterior_loss.min(axis=1).sum(), rel=LINEAR_ALGEBRA)


def test_adversary_and_study_use_drawn_rows():
    mechanism = position_mechanism("holes")
    points, prior, table = (
        (mechanism[f"secret_{a}"].values for a in "xy"),
        mechanism["prior"].values,
        rows_at_centres(mechanism),
    )
    x, y = points
    joint = prior[:, None] * table
    chance = joint.sum(axis=0)
    mean = [(joint * axis[:, None]).sum(axis=0) / chance for axis in (x, y)]
    square = (x[:, None] - mean[0]) ** 2 + (y[:, None] - mean[1]) ** 2
    found = md.utility.adversary_error(mechanism, "squared")
    assert found.value == pytest.approx((joint * square).sum(), rel=LINEAR_ALGEBRA)
    assert drawn_rows(mechanism) == pytest.approx(table, rel=LINEAR_ALGEBRA)


def test_remap_keeps_position_claim():
    """Sums of columns within the cones are within the cones."""
    checked = md.verify(md.utility.bayes_remap(position_mechanism("holes")))
    assert checked.certified
    assert checked.position_breaches == 0


@pytest.mark.obligation("position-rows-alone")
def test_cell_row_users_refuse_positions():
    mechanism = position_mechanism("square")
    with pytest.raises(UnsuitableError, match="cannot be attributed to cells"):
        md.surveys.estimate_shares([mechanism], [np.ones(25, int)], Partition.of_labels(np.zeros(25, int)))
    with pytest.raises(UnsuitableError, match="rows of several cells"):
        table_retrieval_radius(mechanism, 0.0, 0.9)
    with pytest.raises(InputError, match="its rows alone do not satisfy its claim"):
        md.sessions.SessionDesign(tables=[mechanism], rule=Clock(hours=(8.0,)))
