"""LaTeX with captions and aligned columns, and workbooks of Excel: their cells are the figures of the same rows."""

from __future__ import annotations

import re

import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.base.spreadsheets import write_workbook
from mechdesign.errors import InputError

LINE = ("compare", "line", "--cells", 4, "--only", "optimal,exponential,geometric_normalised")
ANSWERS = md.DesignProblem(
    md.Domain.classes(["yes & no", "no"]), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne(), name="answers"
)


def body(text):
    """The cells of a LaTeX table, row by row, the heading first."""
    rows = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r" \\")]
    return [re.split(r"(?<!\\)& ?", row) for row in rows]


def test_whole_table_has_caption_label_units_and_aligned_columns(tmp_path, run_json):
    code, rows = run_json(*LINE, "-o", tmp_path / "my line.table.tex")
    text = (tmp_path / "my line.table.tex").read_text()
    assert code == 0
    assert text.startswith("\\begin{table}\n\\centering\n\\caption{Mechanisms for line: 4 secrets, ")
    assert r"\label{tab:my-line}" in text
    assert text.count("{") == text.count("}")
    head, *cells = body(text)
    form = re.search(r"\\begin\{tabular\}\{(l[rS]+)\}", text)[1]
    assert len(form) == len(head) == len(cells[0])
    assert (head[1].strip(), head[5].strip()) == ("{loss}", "{distance (km)}")
    assert head[-1].strip() == "{asymptotic MSE (km$^2$)}"
    assert form[1] == "S"
    for row, line in zip(rows, cells, strict=True):
        assert float(line[1]) == pytest.approx(row["loss"], rel=1e-5)
    # The row that breaks its claim has no bound.
    assert cells[-1][2].strip() == "{--}"
    run_json(*LINE, "-o", tmp_path / "plain.tex")
    assert (tmp_path / "plain.tex").read_text().startswith(r"\begin{tabular}{lr")


def test_curve_and_mechanism_as_whole_tables(tmp_path, run_json):
    run_json("compare", "line", "--cells", 3, "--scales", "0.5,1", "-o", tmp_path / "c.table.tex")
    text = (tmp_path / "c.table.tex").read_text()
    assert r"\caption{Losses (" in text
    assert r"\label{tab:c}" in text
    mechanism = md.solve(ANSWERS)
    text = md.export(mechanism, tmp_path / "m.table.tex").read_text()
    assert r"\caption{P(report$|$secret)" in text or r"\caption{P(report|secret) in percent. " in text
    (_, *head), first, _ = body(text)
    assert [cell.strip() for cell in head] == [r"{yes \& no}", "{no}"]
    shares = 100 * md.probabilities(mechanism).to_numpy()[0]
    assert [float(cell) for cell in first[1:]] == pytest.approx(shares, rel=5e-3)
    with pytest.raises(InputError, match="room for 20 reports"):
        md.export(md.baselines.constant(md.load_problem("line", cells=21)), tmp_path / "wide.tex")
    assert not (tmp_path / "wide.tex").exists()


@needs("surveys")
def test_workbooks_have_the_figures(tmp_path, run_json, run):
    openpyxl = pytest.importorskip("openpyxl")
    _, rows = run_json(*LINE, "-o", tmp_path / "t.xlsx")
    (head, *lines) = openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows(values_only=True)
    assert [line[0] for line in lines] == [row["mechanism"] for row in rows]
    for line, row in zip(lines, rows, strict=True):
        for name, value in zip(head, line, strict=True):
            # openpyxl writes 16 digits.
            assert value == (pytest.approx(row[name], rel=1e-15) if isinstance(value, float) else row[name])
    path = md.save(md.solve(ANSWERS), tmp_path / "answers.nc")
    _, plan = run_json("plan", path, "--areas", "classes", "--respondents", 500, "-o", tmp_path / "plan.xlsx")
    (tmp_path / "reports.csv").write_text("report,count\nyes & no,60\nno,40\n")
    words = ("estimate", tmp_path / "reports.csv", path, "--areas", "classes", "-o", tmp_path / "shares.xlsx")
    _, shares = run_json(*words)
    for name, document in (("plan", plan), ("shares", shares)):
        (head, *lines) = openpyxl.load_workbook(tmp_path / f"{name}.xlsx").active.iter_rows(values_only=True)
        assert [line[head.index("area")] for line in lines] == [row["area"] for row in document["areas"]]
    estimates = [line[head.index("estimate")] for line in lines]
    assert estimates == [pytest.approx(row["estimate"], rel=1e-15) for row in shares["areas"]]


def test_texts_of_a_workbook_are_never_formulas(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_workbook([{"=a": "=1+1", "b": float("inf"), "c": float("nan")}], tmp_path / "t.xlsx", sheet="s")
    cells = list(openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows())
    assert [cell.value for cell in cells[1]] == ["=1+1", "inf", None]
    assert {cell.data_type for cell in (cells[0][0], cells[1][0])} == {"s"}
