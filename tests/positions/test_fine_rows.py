"""Rows on a lattice finer than the cells of reports: the claim, the loss at true positions, symmetry and pages."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.position_mechanisms import spline_weights
from fixtures.rows import few_by_default
from reference.exact import lower_ratio

import mechdesign as md
from mechdesign.base.formatting import TIMES
from mechdesign.evaluation.loss import position_loss
from mechdesign.evaluation.position_noise import snapped_noise_loss
from mechdesign.positions import Positions, symmetry
from mechdesign.positions.solve import operations

EPSILON, CELL = math.log(2) / 200, 600.0


def problem_of(parts, loss=None):
    """4 x 3 cells of 600 m, odds of 2 within 200 m, and rows `parts` times finer."""
    rows = md.Domain.grid((4 * parts, 3 * parts), cell=CELL / parts, unit="m")
    reports = md.Domain.grid((4, 3), cell=CELL, unit="m")
    metric, known = md.Euclidean(EPSILON, unit="m"), {} if parts == 1 else {"parts": parts}
    return md.DesignProblem(
        rows, metric, md.priors.uniform(rows), loss or md.losses.Distance(), reports=reports, parameters=known
    )


@cache
def design_of(parts):
    return md.solve(Positions(problem_of(parts)), bound=False)


def rows_at(mechanism, places):
    """P(y|x) (b, m) at positions (b, 2), by the weights that reports are drawn with."""
    claim = md.Sampler(mechanism).certificate
    cells, points = claim.positions.snap(claim.domain, places)
    across, upward = (spline_weights(points[:, axis]) for axis in (0, 1))
    weights = (across[:, :, None] * upward[:, None, :]).reshape(-1, 9)
    return np.einsum("bk,bky->by", weights, mechanism["mass"].values[mechanism["around_row"].values[cells]] / 2.0**62)


def test_finer_rows_have_a_smaller_loss():
    losses = [float(design_of(parts).attrs["objective"]) for parts in (1, 2, 3)]
    assert losses[1] < 0.93 * losses[0]
    assert losses[2] < 0.985 * losses[1]
    assert all(md.verify(design_of(parts)).lower_bound_checked for parts in (1, 2, 3))


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_position_loss_is_its_own_quadrature(parts):
    """Against the mean over a grid of 30 x 30 positions a cell, by the rows that positions draw from."""
    mechanism, share = design_of(parts), (np.arange(30) + 0.5) / 30
    x, y = np.meshgrid(np.arange(4)[:, None] + share, np.arange(3)[:, None] + share, indexing="ij")
    places = CELL * np.column_stack([x.ravel(), y.ravel()])
    reports = np.column_stack([mechanism["report_x"].values, mechanism["report_y"].values])
    away = np.linalg.norm(places[:, None, :] - reports[None], axis=2)
    mean = float((rows_at(mechanism, places) * away).sum(axis=1).mean())
    assert position_loss(mechanism) == pytest.approx(mean, rel=2e-4)
    assert float(mechanism.attrs["objective"]) == pytest.approx(mean, rel=2e-4)


@pytest.mark.parametrize("parts", [2, 3])
def test_claim_holds_for_random_pairs_of_positions(parts):
    """30,000 pairs in doubles, near and far; the worst of them in fractions of the integers."""
    mechanism, rng = design_of(parts), np.random.default_rng(parts)
    sides = CELL * np.array([4, 3])
    here = rng.random((30_000, 2)) * sides
    there = np.clip(here + rng.normal(size=here.shape) * 10 ** rng.uniform(0, 3, (len(here), 1)), 0, sides * (1 - 1e-9))
    worst = np.zeros(len(here))
    for start in range(0, len(here), 10_000):
        part = slice(start, start + 10_000)
        worst[part] = np.abs(np.log(rows_at(mechanism, here[part]) / rows_at(mechanism, there[part]))).max(axis=1)
    allowed = EPSILON * (np.linalg.norm(here - there, axis=1) + 1.01 * math.sqrt(2) * CELL / parts / 2**16)
    assert (worst <= allowed + 1e-12).all()
    assert (worst[allowed > 0.1] > 0.9 * allowed[allowed > 0.1]).any()  # the claim is nearly reached
    claim, mass = md.Sampler(mechanism).certificate, mechanism["mass"].values
    around = mechanism["around_row"].values
    for k in np.argsort(worst / allowed)[-20:].tolist():
        cells, points = claim.positions.snap(claim.domain, np.stack([here[k], there[k]]))
        rows = []
        for cell, (a, b) in zip(cells.tolist(), points.tolist(), strict=True):
            first, second = (((2**15 - p) ** 2, 6 * 2**30 - 2 * p * p, (2**15 + p) ** 2) for p in (a, b))
            weights = [i * j for i in first for j in second]
            near = [[int(m) for m in mass[row]] for row in around[cell]]
            rows.append([sum(w * row[y] for w, row in zip(weights, near, strict=True)) for y in range(mass.shape[1])])
        ratio, bits = lower_ratio(float(allowed[k]) * (1 + 1e-12))
        assert all(
            max(Fraction(p, q), Fraction(q, p)) <= Fraction(ratio, 1 << bits) for p, q in zip(*rows, strict=True)
        )


@pytest.mark.parametrize("parts", few_by_default([2, 3], 2))
def test_symmetry_with_own_reports_leaves_the_optimum(parts, monkeypatch):
    whole, program = float(design_of(parts).attrs["objective"]), Positions(problem_of(parts))
    cost = operations(program, "cones")
    monkeypatch.setattr(symmetry, "lattice_symmetries", lambda shape, size: [lambda values: values])
    plain = Positions(problem_of(parts))
    assert operations(plain, "cones") > 3 * cost
    assert float(md.solve(plain, bound=False).attrs["objective"]) == pytest.approx(whole, rel=1e-3)


@pytest.mark.parametrize("masked", few_by_default([False, True], True))
@pytest.mark.usefixtures("near_noise")
def test_certified_noise_is_near_noise_at_the_position(masked):
    """At 0.35 nats along a row; without a report in a cell, its draws go to the nearest one."""
    mask = np.ones((3, 2), bool)
    mask[2, 1] = not masked
    rows = md.Domain.grid((18, 12), cell=100.0, unit="m")
    reports = md.Domain.grid((3, 2), cell=600.0, unit="m", mask=mask)
    metric, prior = md.Euclidean(EPSILON, unit="m"), md.priors.uniform(rows)
    problem = md.DesignProblem(rows, metric, prior, md.losses.Distance(), reports=reports, parameters={"parts": 6})
    made = md.solve(Positions(problem), method="noise", bound=False)
    assert md.verify(made).certified
    noise = snapped_noise_loss(rows, reports, prior, EPSILON, problem.loss)
    assert noise < made.attrs["objective"] < (1.025 if masked else 1.008) * noise
    holed = md.Domain.grid((3, 2), cell=600.0, unit="m", mask=np.arange(6).reshape(3, 2) > 0)
    inside = md.DesignProblem(holed, metric, md.priors.uniform(holed), md.losses.Distance())
    with pytest.raises(md.errors.UnsuitableError, match="full rectangle"):
        md.solve(Positions(inside), method="noise", bound=False)


def test_squared_distances_take_finer_rows_too():
    program = Positions(problem_of(2, md.losses.SquaredDistance()))
    mechanism = md.solve(program, bound=False, gap=0.01)
    assert md.verify(mechanism).certified
    assert float(mechanism.attrs["objective"]) < 1.0e6


@needs("web")
@pytest.mark.parametrize("parts", few_by_default([2, 3], 2))
def test_a_page_proves_finer_rows(tmp_path, parts):
    """Reports at corners of rows, and in their middles: no fault, and the sentences of Python, word by word."""
    pages = pytest.importorskip("fixtures.pages")
    if pages.NODE is None:
        pytest.skip("needs Node: the proof is JavaScript")
    texts = [pages.texts_of(design_of(parts))]
    assert [outcome["faults"] for outcome in pages.proved_in_node(tmp_path, texts)] == [[]]
    subtitle = json.loads(texts[0].contents)["facts"]["subtitle"]
    assert subtitle.startswith(f"4 {TIMES} 3 cells of 600 m, {parts} {TIMES} {parts} rows a cell")
    (tmp_path / "texts.json").write_text(json.dumps([vars(text) for text in texts]))
    for sentences, text in zip(pages.in_node(tmp_path, pages.proof_script() + pages.SENTENCES), texts, strict=True):
        assert sentences["headline"] == json.loads(text.contents)["facts"]["sentence"]


@needs("web")
def test_a_client_counts_cells_of_reports(tmp_path):
    """A dozen cells, of which each has four rows: in the file of instructions, and for the page to try it."""
    folder = md.web.write_client(design_of(2), tmp_path / "client")
    assert "12 cells, 2 x 2 rows a cell, report.bin has" in (folder / "README.md").read_text()
    assert b'"parts":2' in (folder / "report.bin").read_bytes().replace(b" ", b"")
    single = md.web.write_client(design_of(1), tmp_path / "single")
    assert "12 cells, report.bin has" in (single / "README.md").read_text()
