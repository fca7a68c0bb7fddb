"""`area --disc` where few people live in many cells: its sentences, and their truth by the counts of the file."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.geo.people import people_of_places
from mechdesign.posteriors.audit import audit_discs

BOX, RADIUS = (12.40, 41.80, 12.4605, 41.825), 1850 * 0.3048  # m
HOMES = [(8, 0), (8, 2), (8, 4), (6, 0), (6, 2), (6, 4), (4, 0), (4, 2), (4, 4)]


def town(folder: Path) -> Path:
    """A CSV file of a town of 6,000 in the west and nine homes of one person each in the east."""
    domain = md.geo.Area.box(*BOX).grid(560.0)
    longitude, latitude = domain.plane.backward(domain.points)
    lines = ["latitude,longitude,population"]
    for (i, j), east, north in zip(domain.index.tolist(), longitude, latitude, strict=True):
        if i < 3 or (i, j) in HOMES:
            lines.append(f"{north:.9f},{east:.9f},{1 if (i, j) in HOMES else 400}")
    path = folder / "people.csv"
    path.write_text("\n".join(lines))
    return path


@needs("posteriors")
def test_cap_of_fractions_holds_and_is_printed_alike(run, run_json, tmp_path) -> None:
    """In fractions of persons, with discs through any two cells; noise by the audit of its own table."""
    people, file = town(tmp_path), tmp_path / "r.nc"
    options = ("--cell", "560", "--within", "564", "--factor", "16", "--disc", "1850ft", "--share", "60%")
    box = ",".join(map(str, BOX))
    code, outcome = run_json("area", "--box", box, *options, "--people", people, "-o", file)
    assert (code, outcome["stopped"]) == (0, "gap")
    mechanism = md.load(file)
    domain = md.geo.Area.box(*BOX).grid(560.0)
    counts = [Fraction(count).limit_denominator(100) for count in people_of_places(people, domain)]
    assert sum(counts) == 6009
    assert min(counts) < Fraction(1, 2)
    joint = [[k * int(a) for a in row] for k, row in zip(counts, mechanism["mass"].values.tolist(), strict=True)]
    centres = [*domain.points]
    for p, q in combinations(domain.points, 2):
        half = (q - p) / 2
        if math.hypot(*half) <= RADIUS:
            high = math.sqrt(RADIUS**2 - half @ half) / math.hypot(*half)
            centres += [p + half + sign * high * np.array([-half[1], half[0]]) for sign in (-1, 1)]
    discs = {tuple(np.flatnonzero(np.hypot(*(domain.points - at).T) <= RADIUS * (1 + 1e-12))) for at in centres}
    totals = [sum(column) for column in zip(*joint, strict=True)]
    worst = max(Fraction(sum(joint[u][y] for u in disc), totals[y]) for disc in discs for y in range(45))
    assert Fraction(599, 1000) < worst <= Fraction(3, 5)
    noise = md.baselines.planar_laplace(
        md.DesignProblem(
            domain, md.Euclidean(outcome["geodesic_epsilon"], unit="m"), mechanism["prior"].values, md.losses.Distance()
        )
    )
    share = audit_discs(md.probabilities(noise), domain, people_of_places(people, domain), RADIUS).worst
    assert outcome["alternative_share"] == pytest.approx(share, rel=1e-3)  # the level on the plane is 10^-5 higher
    assert outcome["lower_bound"] <= outcome["loss"] < outcome["position_loss"] < outcome["constant_position_loss"]
    _, output, _ = run("verify", file, "--disc", "1850ft", "--people", people)
    words = " ".join(output.split())
    assert "lies in any disc of radius 563.8 m" in words
    assert "one disc of radius 563.8 m holds 60 % of the probability after the worst report" in words
    off = f"Between centres of cells the mean distance is {math.ceil(10 * outcome['loss']) / 10:.1f} m"
    assert off in words


@needs("posteriors")
def test_advice_is_left_out_where_a_limit_binds(run, tmp_path) -> None:
    """Advice of a larger factor is of designs without a limit; noise is beside its own share in a disc."""
    people, box = town(tmp_path), ",".join(map(str, BOX))
    options = ("area", "--box", box, "--cell", "560", "--within", "564", "--factor", "2", "--gap", "0.01")
    limit = ("--people", people, "--disc", "1850ft", "--share", "60%")
    free, capped = (
        " ".join(run(*options, *more, "-o", tmp_path / f"{len(more)}.nc")[1].split())
        for more in (("--positions", "cells"), limit)
    )
    assert "not much better than always reporting the same place" in free
    assert "about half the error of one place" in free
    assert "not much better than always reporting the same place" in capped
    assert "about half the error" not in capped
    assert "It satisfies the limit: after its worst report" in capped
