"""A file, a page, the exports, the client and the commands say of one mechanism agrees, figure by figure.

A figure has one value under one name everywhere, a bound is at most what it bounds, and the sentences are the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from fixtures.files import honest_file
from fixtures.pages import Texts, page_of
from fixtures.rows import few_by_default
from fixtures.tight_limits import limit_optimum
from fixtures.tolerances import REORDERED, RESOLVED

import mechdesign as md
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.compare import ComparisonRow, columns, row_of
from mechdesign.output.comparison_files import write_rows
from mechdesign.output.reports.solve import SolveReport

NAMES = ("expected_loss", "objective", "lower_bound", "position_loss", "remapped_loss", "ratio", "row_ratio", "gap")
CASES = {
    **{
        kind: lambda kind=kind: honest_file(kind)
        for kind in (
            *("euclidean", "eikonal, masked", "positions", "any position", "robust", "bounded", "constrained"),
            *("graph, doubled, minimax", "statistical", "discrete", "query", "factored, framed", "factored, columns"),
        )
    },
    "capped": limit_optimum,
    "capped by area": lambda: limit_optimum("area"),
}
SIX_DIGITS = 1e-5  # relative, of a figure that is rounded up to six digits
DEFAULT = ("positions", "graph, doubled, minimax", "capped", "factored, framed")


def figures_by_output(mechanism: Any, folder: Path, run_json: Any) -> dict[str, dict[str, Any]]:
    """The figures that each output states, by output and name."""
    file = md.save(mechanism, folder / "m.nc")
    checked = md.verify(file)
    page = json.loads(Texts.in_page(page_of(md.load(file))).contents)
    found = {
        "file": dict(mechanism.attrs),
        "solve --json": {"expected_loss": None, **SolveReport.of(mechanism, checked, seconds=0.0, file=None).to_json()},
        "verify --json": run_json("verify", file)[1],
        "page": page["attrs"] | {"position_loss": page["position_loss"]},
        "page, verified": page["verification"],
        "page, listed": {figure["key"]: number(figure["text"]) for figure in page["facts"]["figures"]},
    }
    found["solve --json"]["expected_loss"] = found["solve --json"]["loss"]
    for suffix in (".csv",) if "mass" not in mechanism else (".csv", ".json", ".parquet"):
        path = md.export(md.load(file), folder / f"t{suffix}")
        found[suffix] = comments(path)
    if "mass" in mechanism:
        stored = MechanismFile.read(mechanism)
        row = row_of("it", mechanism, replace(stored.problem, metric=stored.problem_metric))
        found["compare"] = row.to_json() | {"expected_loss": row.loss}
        found["compare, LaTeX"] = typeset(row, folder / "row.tex", stored.problem)
    if checked.row_ratio is not None:  # the attribute of a file is of rows, and outputs name it so
        for source in ("file", "page"):
            found[source]["row_ratio"] = found[source].pop("ratio")
    return found


def typeset(row: ComparisonRow, path: Path, problem: md.DesignProblem) -> dict[str, Any]:
    """The figures of a row of LaTeX that is rounded to six digits, where these are those of the row."""
    body = write_rows([row], path, problem).read_text("ascii").split("\\midrule")[1].split(" \\\\")[0]
    cells = [cell.strip() for cell in body.split("&")]
    shown = dict(zip([column.figure for column in columns([row])], cells[1:], strict=True))
    losses = {name: getattr(row, name) for name in ("loss", "position_loss", "remapped_loss")}
    for name, value in losses.items():
        if value is not None and name in shown:
            assert float(shown[name].replace(",", "")) == pytest.approx(value, rel=SIX_DIGITS)
    return {"expected_loss": row.loss, "position_loss": row.position_loss}


def comments(path: Path) -> dict[str, Any]:
    """The metadata next to an exported table."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        said = {key.decode(): value.decode() for key, value in parquet.read_schema(path).metadata.items()}
        return {name: number(text) for name, text in said.items()}
    beside = path.with_name(f"{path.name}-metadata.json") if path.suffix == ".csv" else path
    return json.loads(beside.read_text("ascii"))


def number(text: str) -> Any:
    """A text as a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def disagreements(found: dict[str, dict[str, Any]]) -> list[str]:
    """Pairs of figures of one name that differ, and bounds above what they bound."""
    wrong = []
    for name in NAMES:
        said = {source: figures[name] for source, figures in found.items() if figures.get(name) is not None}
        for (first, a), (second, b) in combinations(said.items(), 2):
            if abs(a - b) > REORDERED * abs(a):
                wrong.append(f"{name}: {first} says {a}, {second} says {b}")
    for source, figures in found.items():
        bound, loss = figures.get("lower_bound"), figures.get("expected_loss")
        bounded = loss if figures.get("objective") is None else figures["objective"]
        remapped = figures.get("remapped_loss")
        if bound is not None and not bound <= bounded * (1 + REORDERED):
            wrong.append(f"{source}: lower_bound {bound} is above what it bounds, {bounded}")
        if bound is not None and figures.get("objective") is None and remapped is not None:
            above = bound > remapped * (1 + REORDERED)
            wrong += [f"{source}: lower_bound {bound} is above {remapped} after a remap"] * above
        if remapped is not None and not remapped <= loss * (1 + REORDERED):
            wrong.append(f"{source}: a remap raises the loss from {loss} to {remapped}")
        if figures.get("gap") is not None and figures["gap"] != pytest.approx(
            max(0.0, 1 - bound / bounded), abs=RESOLVED
        ):
            wrong.append(f"{source}: gap {figures['gap']} of {bound} and {bounded}")
    return wrong


@pytest.mark.parametrize("case", few_by_default(CASES, *DEFAULT))
def test_every_output_states_the_same_figures(case: str, tmp_path: Path, run_json) -> None:
    mechanism = CASES[case]()
    found = figures_by_output(mechanism, tmp_path, run_json)
    assert disagreements(found) == []
    if "position_claim" in mechanism.attrs and found["file"].get("objective") is not None:
        assert found["file"]["expected_loss"] == pytest.approx(found["page"]["position_loss"], rel=REORDERED)


@pytest.mark.parametrize("case", few_by_default(CASES, "positions", "capped"))
def test_every_output_states_the_same_sentences(case: str, tmp_path: Path, run) -> None:
    """Those of the page stand in the words of `verify`; of protection, limits and error in the client's too."""
    mechanism = CASES[case]()
    page = json.loads(Texts.in_page(page_of(mechanism)).contents)["facts"]["sentence"]
    _, words, _ = run("verify", md.save(mechanism, tmp_path / "m.nc"))
    terminal = " ".join(words.split())
    assert all(sentence in terminal for sentence in sentences_of(page))
    client = md.web.write_client(mechanism, tmp_path / "client")
    promise = [sentence for sentence in sentences_of(page) if "o mechanism" not in sentence]
    for name in ("README.md", "package.json"):
        text = " ".join((client / name).read_text("utf-8").split())
        said = json.loads(text)["description"] if name == "package.json" else text
        assert all(sentence in said for sentence in promise), name


def sentences_of(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[A-Z])", text)


def test_comparison_of_figures_finds_a_contradiction() -> None:
    figures = {"expected_loss": 779.95, "lower_bound": 847.16, "remapped_loss": 700.0, "gap": 0.0}
    assert disagreements({"file": figures}) != []
    assert disagreements({"file": {"expected_loss": 1.0}, "page": {"expected_loss": 1.1}}) != []
