"""Discs after one report: audits of mechanisms, of tables, of rules of devices and of noise."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from fixtures.files import KINDS
from fixtures.problems import shipped_problem
from fixtures.tight_limits import limit_optimum, limit_program

import mechdesign as md
from mechdesign import save
from mechdesign.blurs.disc_audit import FINE, audit_rule_discs, grid_shares, laplace_shares
from mechdesign.errors import InputError
from mechdesign.posteriors.audit import DiscAudit, audit_discs, audit_mechanism_discs
from mechdesign.posteriors.disc_sums import DiscKind
from mechdesign.posteriors.picture import plot_discs
from mechdesign.posteriors.words import disc_words

PEOPLE = Path(shipped_problem("northeast").__file__).parent / "data" / "northeast_block_groups_2020.csv.gz"
POINT = 0.01  # of a share: figures of research code, printed in whole percent
LATTICE = 0.03  # of a share on an even plane, added by cells of 125 m
PRINTED = {
    "android-coarse": ((0.27, 0.45, 0.75, 0.006), (0.58, 0.75, 0.88, 0.91)),
    "webkit-grid": ((0.10, 0.22, 0.30, 0.0), (0.21, 0.46, 0.47, 0.0)),
}  # at 564 m and 1,000 m: the median report, one in a hundred, the worst, and reports above a half


def window() -> md.Domain:
    """40 km about the city hall of Philadelphia."""
    plane = md.geo.Plane(latitude=39.9526, longitude=-75.1652)
    return md.Domain.grid((320, 320), cell=FINE, unit="m", origin=-20_000.0, plane=plane)


@pytest.mark.parametrize("rule", PRINTED)
def test_disc_shares_of_rules_match_research_code(rule: str) -> None:
    document = audit_rule_discs(rule, PEOPLE, window(), [564.0, 1000.0])
    assert all("about the centre of a cell of 125 m" in words for words in disc_words(document["discs"]))
    for result, printed in zip(document["discs"], PRINTED[rule], strict=True):
        figures = [result[key] for key in ("median", "one_in_hundred", "worst", "above_half")]
        assert figures == pytest.approx(printed, abs=POINT)


def test_noise_over_even_people_is_that_of_the_plane() -> None:
    _, share = laplace_shares(np.ones((100, 100)), 1 / 250, 250.0)
    assert float(np.median(share)) == pytest.approx(1 - 2 / math.e, abs=LATTICE)


def test_a_grid_is_the_table_of_its_cells() -> None:
    """The windows of a rule against the audit of the table that they stand for."""
    persons = np.random.default_rng(1).integers(0, 50, (16, 16)).astype(float)
    chance, share = grid_shares(persons, (16, 16), 500.0, 0.0, 250.0)
    domain = md.Domain.grid((16, 16), cell=FINE, unit="m")
    table = np.zeros((256, 16))
    table[np.arange(256), (domain.index // 4) @ [4, 1]] = 1
    audit = audit_discs(table, domain, persons.ravel(), 250.0, centres="places")
    discs = DiscKind(radius=250.0, unit="m", centres="places", about="about the centre of a cell")
    result = DiscAudit.of(discs, before=audit.before, chance=chance, share=share)
    assert result.as_dict() == pytest.approx(audit.as_dict())


def brute_force(table: np.ndarray, points: np.ndarray, people: np.ndarray, radius: float) -> np.ndarray:
    """The largest share after each report of discs through any two points and about each, point by point."""
    centres = list(points)
    for p, q in combinations(points, 2):
        half = (q - p) / 2
        if 0 < math.hypot(*half) <= radius:
            high = math.sqrt(radius**2 - half @ half) / math.hypot(*half)
            centres += [p + half + sign * high * np.array([-half[1], half[0]]) for sign in (-1, 1)]
    joint, result = people[:, None] * table, np.zeros(table.shape[1])
    for centre in centres:
        inside = np.hypot(*(points - centre).T) <= radius * (1 + 1e-9)
        result = np.maximum(result, joint[inside].sum(axis=0) / joint.sum(axis=0))
    return result


@pytest.mark.parametrize(("radius", "exact"), [(0.875, True), (1.41, True), (4.7, False)])
def test_discs_anywhere_are_the_default(radius: float, exact: bool) -> None:
    """Against discs through any two points; where radii are wide, bounds, no larger than for a radius 0.12 cells wider.

    A masked grid, people of whom some cells have none.
    """
    random = np.random.default_rng(3)
    mask = random.random((9, 8)) < 0.85
    domain = md.Domain.grid((9, 8), cell=1.0, unit="km", mask=mask)
    people = random.integers(0, 9, domain.size).astype(float)
    table = random.random((domain.size, 20)) ** 6
    result = audit_discs(table, domain, people, radius)
    assert (result.centres, result.exact, result.about) == ("anywhere", exact, "")
    share = brute_force(table, domain.points, people, radius)
    wider = share if exact else brute_force(table, domain.points, people, radius + 0.12)
    assert share.max() * (1 - 1e-9) <= result.worst <= wider.max() * (1 + 1e-9)
    chance = people @ table / (people @ table).sum()
    assert chance[share > 0.5].sum() - 1e-9 <= result.above_half <= chance[wider > 0.5].sum() + 1e-9
    words = "".join(disc_words([result.as_dict()]))
    assert ("holds at most" in words) == (not exact)


def test_disc_audit_names_centres_of_discs() -> None:
    places = md.Domain.points_at([[0.0, 0.0], [3.0, 4.0]], unit="km")
    assert "disc of radius 1 km about one of the places holds" in "".join(
        disc_words([audit_discs(np.eye(2), places, [1, 1], 1.0).as_dict()])
    )
    line = md.Domain.grid((60_000,), cell=1.0, unit="km")
    (words,) = disc_words([audit_discs(np.ones((60_000, 1)), line, np.ones(60_000), 2.0).as_dict()])
    assert (
        "one disc of radius 2 km about the centre of a cell holds 0.00834 % of the probability after the worst report"
        in words
    )
    assert "No report puts more than half into one disc about the centre of a cell." in words


def test_mismatched_people_and_tables_are_refused() -> None:
    domain = md.Domain.grid((2, 2), cell=1.0, unit="km")
    table, people = np.full((4, 3), 1 / 3), np.ones(4)
    for given, field in (((table[:3], people), "table"), ((table, people[:3]), "people"), ((table, -people), "people")):
        with pytest.raises(InputError) as caught:
            audit_discs(given[0], domain, given[1], 1.0)
        assert caught.value.field == field


def test_factors_have_the_discs_of_their_table() -> None:
    problem = md.load_problem("flat", cells=5)
    radius = 1.2 * problem.domain.spacing
    factors = md.solve(md.EikonalWeights(problem=problem), method="factored")
    (result,) = audit_mechanism_discs(factors, [radius])
    with pytest.raises(InputError, match="has no table"):
        md.probabilities(factors)
    rows = md.factored.FactoredMechanism(factors).probabilities(np.arange(problem.domain.size))
    table = audit_discs(rows, problem.domain, problem.prior_array, radius)
    assert result.as_dict() == pytest.approx(table.as_dict())


def test_a_limit_shows_in_its_audit_and_fewer_people_move_it() -> None:
    mechanism = limit_optimum()
    people = list(range(1, 17))
    audit = audit_discs(mechanism["mass"].values, limit_program().problem.domain, people, 1.2)
    assert audit.centres == "anywhere"
    assert audit.worst == pytest.approx(0.6, abs=1e-6)
    assert audit.worst <= 0.6
    assert audit.above_half > 0
    (about_places,) = audit_mechanism_discs(mechanism, [1.2], people, centres="places")
    assert "one disc of radius 1.2 cells about the centre of a cell holds" in "".join(
        disc_words([about_places.as_dict()])
    )
    assert about_places.worst < audit.worst
    (by_area,) = audit_mechanism_discs(mechanism, [1.2], people, centres="area")
    joint = np.array(people)[:, None] * mechanism["mass"].values.astype(float)
    four = np.max([joint[list(inside)].sum(axis=0) for inside in combinations(range(16), 4)], axis=0)
    assert by_area.worst == pytest.approx((four / joint.sum(axis=0)).max())
    assert by_area.before == pytest.approx((13 + 14 + 15 + 16) / sum(people))
    assert "the likeliest cells, together no larger than a disc of radius 1.2" in "".join(
        disc_words([by_area.as_dict()])
    )
    (even,) = audit_mechanism_discs(mechanism, [1.2])
    assert even.before == pytest.approx(6 / 16)
    with pytest.raises(InputError, match="people"):
        audit_mechanism_discs(mechanism, [1.2], [1, 2])


def test_people_of_position_claims_are_at_cell_centres() -> None:
    """Rows drawn there, means of nine by hand; evenly over a cell weights would be 1/6, 2/3, 1/6, and shares lower."""
    make_problem, make = KINDS["any position"]
    mechanism = make(make_problem())
    domain = make_problem().domain
    rows = mechanism["mass"].values[mechanism["around_row"].values] / 2.0**62
    at_centre, evenly = (
        np.einsum("k,ukm->um", np.outer(side, side).ravel(), rows)
        for side in (np.array([1, 6, 1]) / 8, np.array([1, 4, 1]) / 6)
    )
    (result,) = audit_mechanism_discs(mechanism, [0.6 * domain.spacing])
    prior = mechanism["prior"].values
    right, wrong = (audit_discs(table, domain, prior, 0.6 * domain.spacing) for table in (at_centre, evenly))
    assert result.as_dict() == pytest.approx(right.as_dict())
    assert wrong.worst < 0.99 * result.worst
    assert "at the centres of cells, one disc" in "".join(disc_words([result.as_dict()]))


def test_a_picture_has_the_shares_by_radius() -> None:
    audits = [audit.as_dict() for audit in audit_mechanism_discs(limit_optimum(), [2.0, 1.2])]
    worst, seldom, median, before = plot_discs(audits).axes[0].lines
    assert worst.get_xdata().tolist() == [1.2, 2.0]
    for line, name in ((worst, "worst"), (seldom, "one_in_hundred"), (median, "median"), (before, "before")):
        assert line.get_ydata().tolist() == [100 * audits[1][name], 100 * audits[0][name]]


def test_the_commands_say_it(run, run_json, tmp_path) -> None:
    mechanism = limit_optimum()
    save(mechanism, tmp_path / "c.nc")
    _, document = run_json("verify", tmp_path / "c.nc", "--disc", "1.2,2")
    assert [result["radius"] for result in document["discs"]] == [1.2, 2.0]
    np.save(tmp_path / "t.npy", mechanism["mass"].values / 2.0**62)
    _, words, _ = run("audit", tmp_path / "t.npy", "--metric", tmp_path / "c.nc", "--disc", "1.2")
    assert "after the worst report" in " ".join(words.split())
    assert run("verify", tmp_path / "c.nc", "--disc", "1.2,2", "-o", tmp_path / "v.svg")[0] == 0
    picture = ("--metric", tmp_path / "c.nc", "--disc", "1.2", "-o", tmp_path / "a.svg")
    assert run("audit", tmp_path / "t.npy", *picture)[0] == 0
    assert all(b"</svg>" in (tmp_path / name).read_bytes() for name in ("a.svg", "v.svg"))
    assert run("audit", tmp_path / "t.npy", *picture)[0] == 2
    assert run("verify", tmp_path / "c.nc", "-o", tmp_path / "no.svg")[0] == 2
    assert not (tmp_path / "no.svg").exists()
    assert run("verify", tmp_path / "c.nc", "--people", PEOPLE)[0] == 2
    assert run("audit", "android-coarse", "--disc", "564")[0] == 0
    assert run("audit", "android-coarse", "--disc", "564", "--people", PEOPLE)[0] == 2
    rule = ("--people", PEOPLE, "--box", "-75.2,39.9,-75.1,40")
    assert "leave out :area" in run("audit", "android-coarse", "--disc", "564:area", *rule)[2]
    by_area = (
        "solve",
        "flat",
        "--cells",
        "3",
        "--epsilon",
        "2",
        "--disc",
        "1:area",
        "--share",
        "3/5",
        "-o",
        tmp_path / "area.nc",
    )
    code, words, _ = run(*by_area)
    assert code == 0
    assert "lies in any cells that are together no larger than a disc of radius 1 cell" in " ".join(words.split())
    _, document = run_json("verify", tmp_path / "area.nc", "--disc", "1:area")
    assert 0.599 < document["discs"][0]["worst"] <= 0.6
    code, words, _ = run("solve", "flat", "--cells", "3", "--disc", "1", "--share", "7/10", "-o", tmp_path / "s.nc")
    assert code == 0
    assert "at most 70 % of the probability lies in any disc of radius 1 cell" in " ".join(words.split())
    assert run("solve", "flat", "--cells", "3", "--disc", "1", "--share", "10%", "-o", tmp_path / "no.nc")[0] == 1
    assert not (tmp_path / "no.nc").exists()
