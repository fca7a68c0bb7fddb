"""Classes with labels through every command: the labels go in and come out, in any order of a table."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from fixtures.export_mechanisms import joined_text, prove_export, split_text

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError, VerificationError
from mechdesign.verification import verify_table

LABELS = ("yes", "no", "don't know, no answer")
PROBLEM = """
import mechdesign as md

LABELS = ["yes", "no", "don't know, no answer"]

def problem(epsilon: float = 1.5):
    domain = md.Domain.classes(LABELS)
    prior = {"no": 0.3, "yes": 0.5, "don't know, no answer": 0.2}
    return md.DesignProblem(domain, md.Discrete(epsilon), prior, md.losses.ZeroOne())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A problem file, its mechanism, and 3,000 reports by their labels."""
    place = tmp_path_factory.mktemp("classes")
    (place / "question.py").write_text(PROBLEM)
    mechanism = md.solve(md.load_problem(place / "question.py"))
    md.save(mechanism, place / "question.nc")
    truth = np.repeat(LABELS, [1500, 900, 600])
    reports = md.sample(mechanism, truth, rng=1).report_label.values.ravel()
    pd.DataFrame({"report": reports}).to_csv(place / "reports.csv", index=False)
    return place


def document(run, *words):
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_labels_pass_through_every_command(run, folder):
    """Solve, verify, sample, export, audit, compare, plan and estimate, each in words of the answers."""
    problem, file, again = folder / "question.py", folder / "question.nc", folder / "again.nc"
    code, out, err = run("solve", problem, "-o", again)
    assert code == 0, err
    assert f"these 3 classes ({', '.join(LABELS)})" in " ".join(out.split())
    code, out, _ = run("verify", again)
    assert code == 0
    assert "secret yes" in out or "secret no" in out
    drawn = document(run, "sample", file, "--secret", "no", "-n", 50, "--seed", 1)
    assert [LABELS[y] for y in drawn["reports"]] == drawn["report_label"]
    assert "report_x" not in drawn
    # P(y|u) by hand: randomized response of 3 classes.
    true = np.exp(1.5) / (np.exp(1.5) + 2)
    table = md.probabilities(md.load(file)).to_pandas()
    assert table.loc["no", "no"] == pytest.approx(true, rel=1e-9)
    shuffled = folder / "shuffled.csv"
    table.loc[[LABELS[2], "yes", "no"], ["no", LABELS[2], "yes"]].to_csv(shuffled)
    audited = document(run, "audit", shuffled, "--metric", problem)
    assert audited["verdict"] != "broken"
    assert audited["effective_epsilon"] == pytest.approx(1.5, rel=1e-9)
    assert {audited["worst"]["secret_label"], audited["worst"]["other_label"]} < set(LABELS)
    compared = {row["mechanism"]: row for row in document(run, "compare", problem, "--with", shuffled)}
    assert compared["shuffled"]["loss"] == pytest.approx(1 - true, rel=1e-9)
    planned = document(run, "plan", problem, "--areas", "classes", "--respondents", 2000, "--levels", "0.5,1.5")
    errors = {(row["design"], row["area"]): row["error"] for row in planned["areas"]}
    # Standard error of randomized response: sqrt(r (1 - r) / N) / (true - wrong), r the share of reports.
    wrong = (1 - true) / 2
    reported = 0.3 * true + 0.7 * wrong
    by_hand = 1.959964 * np.sqrt(reported * (1 - reported) / 2000) / (true - wrong)
    assert errors["randomized_response 1.5", "no"] == pytest.approx(by_hand, rel=1e-5)
    assert {"optimal 1.5", "statistical 0.5"} < {row["design"] for row in planned["areas"]}
    estimated = document(run, "estimate", folder / "reports.csv", file, "--areas", "classes")
    shares = {row["area"]: row for row in estimated["areas"]}
    assert shares["yes"]["low"] < 0.5 < shares["yes"]["high"]
    assert [cell["label"] for cell in estimated["cells"]] == list(LABELS)


def test_exports_of_classes_have_labels(run, folder):
    """CSV, JSON, page and picture; the verifier that is handed over reads the first two."""
    file = folder / "question.nc"
    for suffix in ("csv", "json", "html"):
        code, _, err = run("export", file, "-o", folder / f"q.{suffix}")
        assert code == 0, err
    with (folder / "q.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [(line["secret_label"], line["report_label"]) for line in lines[:4]] == [
        *(("yes", label) for label in LABELS),
        ("no", "yes"),
    ]
    for suffix in ("csv", "json"):
        header = prove_export(folder / f"q.{suffix}")
        assert tuple(header["claim"]["domain"]["labels"]) == tuple(header["report_labels"]) == LABELS
    assert LABELS[2].replace("'", "&#39;") in (folder / "q.html").read_text()


def test_exchanged_labels_of_an_export_are_refused(folder):
    path = md.export(md.load(folder / "question.nc"), folder / "forged.csv")
    text = path.read_text()
    path.write_text(text.replace(",yes,no\n", ",no,yes\n", 1))
    # With right checksums, so that only the labels are wrong.
    split_text(joined_text(path), path)
    with pytest.raises(verify_table.BadInput, match="labels of the lines"):
        prove_export(path)


def test_datasets_are_indexed_by_label(folder):
    mechanism = md.load(folder / "question.nc")
    row = mechanism.mass.sel(secret="no")
    assert int(row.sel(report="no")) == int(mechanism.mass[1, 1])
    assert md.Sampler(mechanism).report("no").report_label.item() in LABELS
    other = mechanism.assign_coords(secret=["no", "yes", LABELS[2]])
    with pytest.raises(VerificationError, match="not the labels"):
        md.verify(other)


def test_reports_may_be_other_classes(tmp_path):
    """Secrets with an answer more than the reports, by label through a file."""
    secrets, reports = md.Domain.classes(LABELS), md.Domain.classes(LABELS[:2])
    problem = md.DesignProblem(secrets, md.Discrete(1.0), [0.4, 0.4, 0.2], md.losses.ZeroOne(), reports=reports)
    path = md.save(md.solve(problem), tmp_path / "two.nc")
    mechanism = md.load(path)
    assert md.verify(mechanism).certified
    assert mechanism.report.values.tolist() == list(LABELS[:2])
    header = prove_export(md.export(mechanism, tmp_path / "two.csv"))
    assert header["report_labels"] == list(LABELS[:2])
    with pytest.raises(InputError, match="position of another class"):
        md.DesignProblem(
            secrets, md.Discrete(1.0), [0.4, 0.4, 0.2], md.losses.ZeroOne(), reports=md.Domain.classes(LABELS[1::-1])
        )


def test_ordered_classes_have_distances(run, tmp_path):
    domain = md.Domain.classes(["low", "mid", "high"], positions=[0.0, 10.0, 100.0], unit="EUR")
    problem = md.DesignProblem(domain, md.Euclidean(0.02, unit="EUR"), [0.5, 0.3, 0.2], md.losses.Distance())
    path = md.save(md.solve(problem), tmp_path / "wages.nc")
    assert md.load(path).attrs["claim"].count("Euclidean") == 1
    assert md.utility.expected_distance(md.load(path)) == pytest.approx(md.load(path).attrs["expected_loss"])
    assert document(run, "sample", path, "--secret", "high")["report_x"][0] in (0.0, 10.0, 100.0)
    code, _, err = run("sample", path, "--secret", "none")
    assert (code, "use one of low, mid, high" in err) == (2, True)


def test_unordered_classes_have_no_distance():
    domain = md.Domain.classes(LABELS)
    for metric, loss in ((md.Euclidean(1.0), md.losses.ZeroOne()), (md.Discrete(1.0), md.losses.Distance())):
        with pytest.raises(UnsuitableError, match="without an order have no distances"):
            md.DesignProblem(domain, metric, [0.4, 0.4, 0.2], loss)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["yes", "yes"], "two classes have one label"),
        (["yes", "YES"], "differ only in case"),
        (["yes", " no"], "without blanks"),
        (["yes", "a\nb"], "printable"),
        (["1", "2", "3"], "number of another class"),
    ],
)
def test_ambiguous_labels_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        md.Domain.classes(labels)


def test_foreign_labels_name_the_word(run, folder):
    reports, table = folder / "foreign.csv", folder / "foreign_table.csv"
    reports.write_text("report\nyes\nmaybe\n")
    code, _, err = run("estimate", reports, folder / "question.nc")
    assert (code, "maybe" in err and "use yes, no" in err) == (2, True)
    table.write_text(",yes,no,maybe\nyes,.6,.2,.2\nno,.2,.6,.2\nmaybe,.2,.2,.6\n")
    code, _, err = run("audit", table, "--metric", folder / "question.py")
    assert (code, "maybe" in err and "not those of the classes" in err) == (2, True)


def test_reports_that_do_not_fit_end_with_1(run, folder):
    """Nobody reports one answer, which randomized response gives with 15 % at least."""
    reports = folder / "misfit.csv"
    reports.write_text("report,count\nno,1500\nyes,1500\n")
    words = ("estimate", reports, folder / "question.nc", "--areas", "classes")
    code, out, _ = run(*words)
    assert (code, "do not fit" in " ".join(out.split())) == (1, True)
    assert run(*words, "--exit-zero")[0] == 0
    assert run("estimate", folder / "reports.csv", folder / "question.nc", "--areas", "classes")[0] == 0


def test_level_of_classes_is_that_of_randomized_response(run):
    level = document(run, "level", "--classes", 3, "--factor", 3)
    assert level["epsilon"] == pytest.approx(np.log(3))
    assert (level["correct"], level["wrong"]) == (pytest.approx(0.6), pytest.approx(0.2))
    # A share of 1/3 is estimated from one of 1/3 of the reports: the variance grows by 1 / (0.6 - 0.2)^2.
    assert level["people"] == pytest.approx(6.25)
