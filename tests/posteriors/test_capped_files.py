"""Limits on discs in files: `verify` and the script find one unit too many, and believe no false mutation.

The truth about a mutant is computed in Python integers, with discs about the places and about a lattice of points.
"""

from __future__ import annotations

import json
import math
from copy import deepcopy
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import reseal_json
from fixtures.forged_files import rewritten
from fixtures.limit_edits import FILES
from fixtures.tight_limits import at_the_limit, caps_of, limit_optimum, limit_program, one_more, seal_masses

import mechdesign as md
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.extend import SOLVERS
from mechdesign.programs import Constrained
from mechdesign.verification import verify_table

ENDS = pytest.mark.parametrize("many", [20, pytest.param(1000, marks=pytest.mark.exhaustive)])
_WHOLE = (-1, 0, 1, 2, 3, 17, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 10**30, True, None, "1")
_SHARES = (
    "1/2",
    "3/5",
    "2/3",
    "3/4",
    "4/5",
    "9/10",
    "65535/65536",
    "1/65535",
    "0/1",
    "3/2",
    "-1/2",
    "1/0",
    "nan",
    "٣/5",
    "",
    0.6,
    None,
)
_RADII = (0.5, 0.99, 1.0, 1.2, 1.3, 1.5, 2.0, 1e9, 1e200, 0.0, -1.0, math.inf, math.nan, "1.2", None, [1.2])


@pytest.mark.parametrize(("centres", "counted"), [("anywhere", "(report, disc) pairs"), ("area", "reports")])
@pytest.mark.obligation("caps")
def test_one_unit_too_many_is_found_by_verify_and_the_script(tmp_path, centres: str, counted: str) -> None:
    mass, place, report, other = at_the_limit(centres)
    broken = one_more(mass, place, report, other)
    kept = seal_masses(mass, centres)
    assert md.verify(kept).certified
    reasons = md.verify(seal_masses(broken, centres)).reasons
    assert reasons == [f"posterior-cap: 1 {counted} exceed the limit"]
    text = md.export(kept, tmp_path / "kept.json").read_text("ascii")
    assert verify_table.faults_of(verify_table.read(tmp_path / "kept.json")) == []
    short = verify_table.read(tmp_path / "kept.json")
    short = short._replace(sums=[verify_table.ROW_SUM - 1] * 16)
    assert any(fault.startswith("limits on discs need rows") for fault in verify_table.faults_of(short))
    if centres == "area":  # cells are those of a grid, whose sides are compared with the coordinates
        header = deepcopy(short.header)
        header["claim"]["domain"]["kind"] = "points"
        table = short._replace(header=header, sums=[verify_table.ROW_SUM] * 16)
        with pytest.raises(verify_table.BadInput, match="no discs of this kind"):
            verify_table.check_posterior_limits(table, header["claim"])
    rows = [" ".join(map(str, row)) for row in mass.tolist()], [" ".join(map(str, row)) for row in broken.tolist()]
    forged = tmp_path / "broken.json"
    forged.write_bytes(reseal_json(text.replace(rows[0][place], rows[1][place]).encode()))
    (fault,) = verify_table.faults_of(verify_table.read(forged))
    assert f"broken after report {report}" in fault
    with pytest.raises(VerificationError):
        md.export(seal_masses(broken, centres), tmp_path / "never.json")


@pytest.mark.parametrize("edit", FILES)
@pytest.mark.obligation("caps")
def test_every_edited_limit_of_a_file_is_judged_by_the_rules(edit: str) -> None:
    file, (change, believed) = seal_masses(at_the_limit()[0]), FILES[edit]
    parameters = json.loads(file.attrs["parameters"])
    change(parameters["constraints"][0])
    mutant = rewritten(file, parameters=json.dumps(parameters))
    try:
        certified = md.verify(mutant).certified
    except MechdesignError:
        certified = False
    assert certified == believed


@pytest.mark.obligation("caps")
def test_limit_with_position_claim_is_refused() -> None:
    """A limit of nearly everything, which the rows keep: between positions means of rows are drawn, never a row."""
    grid = dict(metric=md.Euclidean(0.5, unit="km"), loss=md.losses.SquaredDistance())
    domain = md.Domain.grid((2, 2), cell=1.5, unit="km")
    problem = md.DesignProblem(domain, prior=md.priors.uniform(domain), **grid)
    between = md.solve(md.positions.Positions(problem), gap=1e-2)
    assert md.verify(between).certified
    limit = md.posteriors.PosteriorCap(radius=0.1, share="999/1000", people=[1] * 4)
    program = md.programs.Constrained(problem, constraints=[limit])
    parameters = json.dumps(program.parameters() | {"problem_parameters": {}})
    beside = rewritten(between, program="constrained", parameters=parameters, objective=between.attrs["expected_loss"])
    del beside.attrs["lower_bound"]
    reasons = md.verify(rewritten(beside)).reasons
    assert any(reason.startswith("position_claim: limits and bounds of constrained are of rows") for reason in reasons)


@pytest.mark.obligation("figures-recomputed")
def test_multipliers_name_existing_discs() -> None:
    """A bound of 0, of multipliers that are 0."""
    mass, discs = at_the_limit()[0], len(caps_of(limit_program())[0].limits)
    for disc in (-1, 0, discs - 1, discs):
        rows = {"cap_report": np.array([3]), "cap_disc": np.array([disc])}
        file = seal_masses(mass, dual=np.zeros(16), lower_bound=0.0, multipliers=np.zeros(1), row_variables=rows)
        if 0 <= disc < discs:
            assert md.verify(file).lower_bound_checked is True
        else:
            with pytest.raises(VerificationError, match="must name discs"):
                md.verify(file)


@pytest.mark.obligation("figures-recomputed")
def test_multipliers_of_cells_sum_to_those_of_the_disc() -> None:
    """Of one report: any shares of four cells give a bound, here one below 0; others would give too large a one."""
    mass = at_the_limit("area")[0]
    even = np.full((1, 16), 0.25)
    for cells, known in ((even, True), (1.01 * even, False), (4 * np.eye(1, 16), False), (even * np.nan, False)):
        rows = {"cap_report": np.array([3]), "cap_disc": np.array([0]), "cap_cells": cells}
        given = {"dual": np.full(16, -1.0), "multipliers": np.array([1e-3]), "row_variables": rows}
        file = seal_masses(mass, "area", lower_bound=-16.0, **given)
        if known:
            assert md.verify(file).lower_bound_checked is True
        else:
            with pytest.raises(VerificationError, match="must be shares of cells"):
                md.verify(file)


def true_of(cap: dict[str, Any], points: np.ndarray, rows: list[list[int]]) -> bool:
    """True if the limit of a table holds, in Python integers, for discs about places and points of a lattice.

    By area, for all sets of squares that are together no larger.
    """
    people, radius = cap["people"], float(cap["radius"])
    over, under = cap.get("share") or cap["factor"]
    low, high = points.min(axis=0), points.max(axis=0)
    lattice = np.stack(np.meshgrid(*(np.linspace(a, b, 13) for a, b in zip(low, high, strict=True))), -1).reshape(-1, 2)
    centres = points if cap["centres"] == "places" else np.concatenate([points, lattice])
    discs = {tuple(np.flatnonzero(np.linalg.norm(points - at, axis=1) <= radius)) for at in centres}
    if cap["centres"] == "area":
        discs = set(combinations(range(16), min(16, int(math.pi * (radius / math.dist(*points[:2])) ** 2))))
    for y in range(len(rows[0])):
        joint = [count * row[y] for count, row in zip(people, rows, strict=True)]
        for disc in discs:
            inside, living = sum(joint[u] for u in disc), sum(people[u] for u in disc)
            most = (over * living, under * sum(people)) if "factor" in cap else (over, under)
            if inside * most[1] > sum(joint) * most[0]:
                return False
    return True


def change_limit(limit: dict[str, Any], random: Random, *, words: bool) -> None:
    """One field of a limit changed at random; words, whether shares are texts."""
    field = random.choice(["people", "people", "share", "share", "radius", "centres", "size", "gone"])
    if "people" not in limit:
        return
    people = limit["people"][0] if words else limit["people"]
    if not people:
        return
    if field == "people":
        people[random.randrange(len(people))] = random.choice([*_WHOLE, random.randrange(40)])
    elif field == "share":
        limit["share"] = random.choice(_SHARES) if words else [random.choice(_WHOLE), random.choice(_WHOLE)]
        if random.random() < 0.5:
            share = [random.randrange(1, 12), random.randrange(1, 12)]
            limit["share"] = f"{share[0]}/{share[1]}" if words else share
    elif field == "radius":
        limit["radius"] = random.choice(_RADII)
    elif field == "centres":
        limit["centres"] = random.choice(["places", "anywhere", "area", "nowhere", 0, None])
    elif field == "size":
        people[:] = random.choice([people[:-1], [*people, 1], [], people[::-1]])
    else:
        del limit[random.choice(list(limit))]


@ENDS
@pytest.mark.parametrize("centres", ["anywhere", "area"])
@pytest.mark.obligation("caps")
def test_no_mutation_of_a_table_is_believed_by_the_script(tmp_path, many: int, centres: str) -> None:
    mechanism = limit_optimum(centres)
    genuine = json.loads(md.export(mechanism, tmp_path / "t.json").read_text("ascii"))
    points, believed = np.array(genuine["secret_points"]), 0
    for number in range(many):
        random, table = Random(number), deepcopy(genuine)
        for _ in range(random.choice((1, 1, 2))):
            limits = table["claim"]["caps"]
            if limits:
                change_limit(limits[0], random, words=False)
        if random.random() < 0.2:
            u, v = random.sample(range(16), 2)
            table["mass"][u], table["mass"][v] = table["mass"][v], table["mass"][u]
        del table["content_sha256"]
        path = tmp_path / "m.json"
        body = json.dumps(table)[:-1] + ",\n"
        path.write_bytes(reseal_json((body + '"content_sha256": "0"}\n').encode()))
        try:
            faults = verify_table.faults_of(verify_table.read(path))
        except (verify_table.BadInput, verify_table.Refused, *verify_table.BROKEN):
            continue
        if not faults:
            believed += 1
            rows = [list(map(int, row.split(" "))) for row in table["mass"]]
            assert all(true_of(cap, points, rows) for cap in table["claim"]["caps"]), number
    assert believed > many / 50


@ENDS
@pytest.mark.parametrize("centres", ["anywhere", "area"])
@pytest.mark.obligation("caps")
def test_no_mutation_of_a_file_is_believed_by_verify(many: int, centres: str) -> None:
    mechanism, believed = limit_optimum(centres), 0
    for number in range(many):
        random, mutant = Random(number), mechanism.copy(deep=True)
        parameters = json.loads(mutant.attrs["parameters"])
        for _ in range(random.choice((1, 1, 2))):
            change_limit(parameters["constraints"][0], random, words=True)
        mutant.attrs["parameters"] = json.dumps(parameters)
        if random.random() < 0.2:
            mutant["cap_disc"].values[random.randrange(len(mutant["cap_disc"]))] = random.choice((-1, 0, 5, 2**40))
        if "cap_cells" in mutant and random.random() < 0.3:
            at = random.randrange(mutant["cap_cells"].size)
            mutant["cap_cells"].values.flat[at] = random.choice((-1.0, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan))
        if random.random() < 0.1:
            del mutant.attrs["objective"]
        if random.random() < 0.8:  # a limit that says less has another bound
            del mutant.attrs["lower_bound"]
        try:
            checked = md.verify(rewritten(mutant))
        except MechdesignError:
            continue
        if checked.certified:
            believed += 1
            program = rebuilt(mutant)
            rows = mutant["mass"].values.tolist()
            points = program.problem.domain.points
            claims = [claim for limit in program.constraints for claim in limit.claims()]  # type: ignore[union-attr]
            assert all(true_of(claim, points, rows) for claim in claims), number
            bound = md.solve(program).attrs["objective"] if number % 20 == 0 else math.inf
            assert mutant.attrs.get("lower_bound", 0.0) <= bound
    # Twenty may all be refused: that true limits are believed, the edits above show.
    assert many < 1000 or believed > many / 50


def rebuilt(mechanism: xr.Dataset) -> Constrained:
    """The program of a file."""
    certificate, attrs = md.Sampler(mechanism).certificate, mechanism.attrs
    problem = md.DesignProblem(
        certificate.domain, certificate.metric, mechanism["prior"].values, md.losses.LOSSES[attrs["loss"]]
    )
    program = SOLVERS["constrained"].rebuild(problem, json.loads(attrs["parameters"]))
    assert isinstance(program, Constrained)
    return program
