"""Exports for the checker that is extracted from the proofs: every claim and bound of a file is proved again."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fixtures.export_mechanisms import MAKERS, exportable, factored_export
from fixtures.forged_files import rewritten
from fixtures.position_mechanisms import SIDES, position_mechanism
from fixtures.proof_checker import built_proofs, run_checker
from fixtures.rows import few_by_default
from fixtures.tight_limits import limit_optimum

import mechdesign as md
from mechdesign.errors import InputError

pytestmark = pytest.mark.obligation("machine-checked")
BOUND_LOST = 1e-12  # relative loss of a bound by integers of 90 bits and lengths rounded by 2^-80
PROBLEMS = [
    *(("line", {"cells": 8}), ("discrete", {"secrets": 8}), ("flat", {"cells": 6}), ("euclidean", {"cells": 6})),
    *(("euclidean", {"cells": 8}), ("philadelphia", {"cells": 8}), ("northeast", {"cells": 6}), ("income", {})),
    *(("paris", {"cells": 7}), ("neighbourhoods", {}), ("streets", {})),
    *(("flat", {"cells": 20}), ("euclidean", {"cells": 15}), ("discrete", {"secrets": 100}), ("line", {"cells": 300})),
    *(("philadelphia", {"cells": 20}), ("northeast", {"cells": 20}), ("paris", {"cells": 15})),
]
FEW = [*PROBLEMS[:4], ("philadelphia", {"cells": 8})]


def checker_claims(mechanism, folder: Path) -> list[str]:
    """The claims that the checker proves, all of those that it reads."""
    code, lines = run_checker(md.export(mechanism, folder / "table.proof"))
    assert code == 0
    assert all(line.endswith(": proved") for line in lines)
    return [line.removesuffix(": proved") for line in lines]


def is_by_distance(mechanism) -> bool:
    """True for the Euclidean metric on one or two axes."""
    return json.loads(mechanism.attrs["metric"])["kind"] == "euclidean" and "secret_z" not in mechanism.coords


def bound_in(lines: list[str]) -> Fraction:
    found = [re.search(r"has less loss than (-?[0-9.]+)$", line) for line in lines]
    [value] = [Fraction(match[1]) for match in found if match]
    return value


@pytest.mark.parametrize(("name", "options"), few_by_default(PROBLEMS, *FEW))
def test_optimum_and_bound_are_proved(tmp_path, name, options):
    mechanism = md.solve(md.Optimal(problem=md.load_problem(name, **options)))
    lines = checker_claims(mechanism, tmp_path)
    stored = Fraction(mechanism.attrs["lower_bound"])
    assert bound_in(lines) >= stored * (1 - Fraction(BOUND_LOST))
    assert bound_in(lines) <= Fraction(mechanism.attrs["expected_loss"]) * (1 + Fraction(BOUND_LOST))
    assert ("the same for mechanisms that are private by distance" in lines) == is_by_distance(mechanism)


@pytest.mark.parametrize("name", few_by_default(MAKERS, "all pairs", "holes", "levels", "roads", "graph", "remapped"))
def test_claims_of_closed_forms_are_proved(tmp_path, name):
    lines = checker_claims(exportable(name), tmp_path)
    assert lines[0].startswith("private for all pairs of" if is_by_distance(exportable(name)) else "private along")


@pytest.mark.parametrize("name", few_by_default(SIDES, "holes", "land", "levels", "quarters"))
def test_claims_between_positions_are_proved(tmp_path, name):
    mechanism = position_mechanism(name)
    assert checker_claims(mechanism, tmp_path)[1] == f"private between positions of {mechanism.sizes['secret']} cells"


@pytest.mark.parametrize(
    ("centres", "words"), [("anywhere", "88 sets"), ("places", "16 sets"), ("area", "any 4 places")]
)
def test_limits_on_posteriors_are_proved(tmp_path, centres, words):
    mechanism = limit_optimum(centres)
    lines = checker_claims(mechanism, tmp_path)
    assert f"posterior limited in {words}" in lines
    # The bound is of mechanisms within the limits, not of all.
    assert "private along the edges and within the limits has less loss" in lines[-1]
    assert bound_in(lines) >= Fraction(mechanism.attrs["lower_bound"]) * (1 - Fraction(BOUND_LOST))


@pytest.mark.parametrize("kind", ["minimax", "bounded", "report cap"])
def test_bounds_of_coupled_programs_are_proved(tmp_path, kind):
    problem = md.load_problem("flat", cells=3)
    program = {
        "minimax": lambda: md.programs.Minimax(problem),
        "bounded": lambda: md.programs.Bounded(problem, worst_loss=2.0),
        "report cap": lambda: md.programs.Constrained(problem, constraints=[md.programs.ReportCap(cap=0.4)]),
    }[kind]()
    mechanism = md.solve(program)
    lower = Fraction(mechanism.attrs["lower_bound"])
    found = bound_in(checker_claims(mechanism, tmp_path))
    assert (
        lower * (1 - Fraction(BOUND_LOST)) <= found <= Fraction(mechanism.attrs["objective"]) * (1 + Fraction(1, 10**9))
    )


def test_trees_of_the_file_are_read(tmp_path, monkeypatch):
    """Trees that were changed prove less, and trees are computed only where the file has none."""
    mechanism = md.solve(md.Optimal(problem=md.load_problem("flat", cells=3)))
    (tmp_path / "computed").mkdir()
    computed = checker_claims(mechanism.drop_vars("tree"), tmp_path / "computed")
    monkeypatch.setattr("mechdesign.output.proof_bound.pricing_trees", None)
    claims = checker_claims(mechanism, tmp_path)
    assert bound_in(claims) == pytest.approx(bound_in(computed), rel=BOUND_LOST)
    for name, steps in {"roots": 0, "beyond the table": 1 << 15, "circle": 1, "not an edge": 5}.items():
        (tmp_path / name).mkdir()
        wrong = rewritten(mechanism, tree=mechanism["tree"] * 0 + np.uint16(steps))
        assert bound_in(checker_claims(wrong, tmp_path / name)) < bound_in(claims) / 2


def test_factors_are_refused(tmp_path):
    with pytest.raises(InputError, match="rows of a factored mechanism"):
        md.export(factored_export(), tmp_path / "table.proof")


def test_lowered_multipliers_are_those_of_the_checker(tmp_path):
    """One unit more of a multiplier whose residual ends near 0 is refused: the checker sees the same integers."""
    mechanism = md.solve(md.Optimal(problem=md.load_problem("flat", cells=3)))
    path = md.export(mechanism, tmp_path / "table.proof")
    tokens = path.read_text().split()
    n, edges = 9, int(tokens[3 + 81 + 1])
    start = 3 + 81 + 3 + 3 * edges + 4  # after section, bits, count of objectives and its weight
    assert tokens[start - 4] == "6"
    raised = 1 << (int(tokens[start - 3]) - 20)
    for u in range(n):
        tokens[start + u] = str(int(tokens[start + u]) + raised)
    path.write_text("\n".join(tokens))
    code, lines = run_checker(path)
    assert (code, lines[-1].split(": ")[-1]) == (1, "NOT PROVED")


# ---- the command ----


def mechanism_file(folder: Path) -> Path:
    return md.save(md.solve(md.Optimal(problem=md.load_problem("flat", cells=3))), folder / "file.nc")


def test_verify_states_what_the_checker_proves(tmp_path, run, run_json):
    checker, file = built_proofs() / "mechdesign-check", mechanism_file(tmp_path)
    code, out, _ = run("verify", file, "--checker", checker)
    assert code == 0
    words = " ".join(out.split())
    assert "Checked by a program extracted from a machine-checked proof: private along 20 edges, 9 x 9; no" in words
    code, document = run_json("verify", file, "--checker", checker)
    assert (code, len(document["proved_by_checker"])) == (0, 2)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "is not a checker"),
        ("echo hello", "is not a checker"),
        ("echo 'private: NOT PROVED'; exit 1", "does not prove it: private: NOT PROVED"),
        ("echo 'a: proved'; exit 2", "is not a checker"),
        ("echo 'a: proved'; echo 'b: NOT PROVED'", "is not a checker"),
    ],
)
def test_other_programs_are_refused(tmp_path, run, script, said):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    code, out, err = run("verify", mechanism_file(tmp_path), "--checker", program)
    assert code != 0
    assert said in " ".join(err.split())
    assert "extracted" not in out


def test_missing_checker_is_refused_first(tmp_path, run):
    code, _, err = run("verify", mechanism_file(tmp_path), "--checker", tmp_path / "absent")
    assert code != 0
    assert "checker: is not a program" in err
