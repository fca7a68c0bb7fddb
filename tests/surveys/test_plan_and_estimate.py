"""`mechdesign plan` and `mechdesign estimate`: from a plan over files of reports to shares, and refusals."""

from __future__ import annotations

import csv
import json
import math
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs
from fixtures.tolerances import ON_THE_GROUND

import mechdesign as md
from mechdesign import baselines, load, load_problem, probabilities, save
from mechdesign.surveys import load_estimate
from mechdesign.surveys.plan_command import ODDS

SIDE = 6
PARK = ROOT / "problems" / "data" / "example_park.geojson"


@cache
def make_mechanism(kind):
    problem = load_problem("paris", cells=SIDE, epsilon=0.02)
    return baselines.geometric(problem) if kind == "geometric" else baselines.randomized_response(problem)


def reports_of(mechanism, path, people, seed=0, header="report"):
    law = mechanism["prior"].values @ probabilities(mechanism).values
    drawn = np.random.default_rng(seed).choice(len(law), people, p=law / law.sum())
    path.write_text(f"{header}\n" + "\n".join(map(str, drawn)) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    save(make_mechanism("geometric"), tmp_path / "g.nc")
    return tmp_path / "g.nc", reports_of(make_mechanism("geometric"), tmp_path / "r.csv", 3_000)


def test_a_plan_of_a_problem_names_levels_people_and_the_epsilon(run_json, tmp_path):
    words = ["plan", "paris", "--cells", SIDE, "--epsilon", 0.02, "--areas", "2x2", "--respondents", 2_000]
    levels = ["--levels", "0.01,0.02"]
    code, told = run_json(*words, *levels, "-o", tmp_path / "p.csv")
    assert (code, [design["name"] for design in told["designs"]]) == (
        0,
        ["geometric_clamped 0.01", "geometric_clamped 0.02"],
    )
    assert told["designs"][0]["people"] > told["designs"][1]["people"] > told["people_without"] == 1801
    epsilon = told["epsilon_for_error"]["geometric_clamped"]
    again = run_json(*words, "--levels", epsilon)[1]["designs"][0]
    assert again["worst_error"] == pytest.approx(0.02, rel=1e-3)
    assert again["people"] <= 2_000
    with (tmp_path / "p.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["area"] for row in rows[:4]] == ["1-1", "1-2", "2-1", "2-2"]
    assert float(rows[0]["standard_error"]) == told["areas"][0]["standard_error"]


@needs("geo")
def test_plan_of_an_area_has_odds_and_next_step(run, run_json, tmp_path, monkeypatch):
    """The odds by a second route: those of a file designed at a level of the plan."""
    monkeypatch.chdir(ROOT)  # a path that fits a line of 80 characters, wherever the checkout is
    words = ["plan", PARK.relative_to(ROOT), "--areas", "2x2", "--respondents", 20_000, "--cell", 300]
    code, told = run_json(*words, "--within", 100)
    assert (code, told["within"]) == (0, 100)
    assert [design["odds_within"] for design in told["designs"]] == pytest.approx(ODDS)
    assert (np.diff([design["worst_error"] for design in told["designs"]]) < 0).all()
    box = ["--box", "2.34,48.855,2.355,48.866", "--areas", "1x1", "--respondents", 9, "--cell", 500, "--levels", "0.01"]
    assert run_json("plan", *box)[1]["next"].startswith("mechdesign area --box 2.34,48.855,2.355,48.866 --cell 500 ")
    given = ["--levels", "0.004,0.02"]
    planned = run_json(*words, *given)[1]["designs"]
    assert [design["odds_within"] for design in planned] == pytest.approx([math.exp(0.8), math.exp(4)])
    made = ["area", PARK, "--cell", 300, "--epsilon", 0.02, "--program", "planar-laplace", "--positions", "cells"]
    assert run_json(*made, "-o", tmp_path / "made.nc")[0] == 0
    file = run_json("plan", tmp_path / "made.nc", "--areas", "2x2", "--respondents", 20_000, "--within", 200)[1]
    nats = math.log(file["designs"][0]["odds_within"])
    assert 3.9 < nats <= 4 * (1 + ON_THE_GROUND)  # noise moved to the border has a little less than it claims
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*words[:-2])
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "cells of 74 m" in err
    after = " ".join(out.splitlines()).split("Next: mechdesign ")[1].split(" makes the mechanism")[0]
    assert run(*after.replace("survey.nc", str(tmp_path / "survey.nc")).split())[0] == 0


def test_shares_are_said_as_sentences_and_places_without_areas(run, files):
    out = run("estimate", files[1], files[0], "--areas", "2x2")[1]
    assert re.search(r"^1-1: [0-9.]+ %, between [0-9.]+ and [0-9.]+ %$", out, re.MULTILINE)
    out = run("estimate", files[1], files[0])[1]
    assert "most likely %" in out
    assert "--areas 2x2" in out


def test_a_plan_of_files_is_that_of_their_tables(run_json, run, files, tmp_path, monkeypatch):
    save(make_mechanism("response"), tmp_path / "k.nc")
    words = ["plan", files[0], "--with", tmp_path / "k.nc", "--areas", "2x2", "--respondents", 500, "--error", 0.05]
    code, told = run_json(*words, "-o", tmp_path / "p.nc")
    assert (code, [design["name"] for design in told["designs"]]) == (0, ["g", "k"])
    assert told["designs"][0]["sha256"] == make_mechanism("geometric").attrs["sha256"]
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*words, "--simultaneous")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("With 500 people, g estimates the share of every area to within ")


def test_reports_become_shares_in_every_format(run_json, run, files, tmp_path, monkeypatch):
    outputs = [tmp_path / f"e.{suffix}" for suffix in ("nc", "csv", "json")]
    words = ["estimate", files[1], files[0], "--areas", "2x2"]
    code, told = run_json(*words, *(word for path in outputs for word in ("-o", path)))
    assert (code, told["reports"], len(told["cells"])) == (0, 3_000, SIDE**2)
    for row in told["areas"]:
        assert row["low"] <= 0.25 <= row["high"]
        assert row["reason"] is None
    kept = load_estimate(outputs[0])
    assert kept["share"].values.tolist() == [row["share"] for row in told["areas"]]
    assert json.loads(kept.attrs["mechanisms"])[0]["sha256"] == load(files[0]).attrs["sha256"]
    text = outputs[1].read_text(encoding="utf-8")
    beside = json.loads(outputs[1].with_name(f"{outputs[1].name}-metadata.json").read_text(encoding="utf-8"))
    assert beside["mechanism_seals"] == [make_mechanism("geometric").attrs["sha256"]]
    assert beside["url"] == outputs[1].name
    rows = list(csv.DictReader(text.splitlines()))
    assert list(pd.read_csv(outputs[1]).columns) == list(rows[0])
    assert [float(row["high"]) for row in rows] == [row["high"] for row in told["areas"]]
    assert json.loads(outputs[2].read_text(encoding="utf-8"))["areas"] == told["areas"]
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*words, "--against", files[1])
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "other period" in out
    assert run(*words[:3])[0] == 0


def test_cells_without_areas_and_a_collection_of_two_mechanisms(run_json, files, tmp_path):
    save(make_mechanism("response"), tmp_path / "k.nc")
    names = [str(make_mechanism(kind).attrs["sha256"])[:10] for kind in ("geometric", "response")]
    lines = [f"{cell},{names[cell % 2]},{3 + cell}" for cell in range(SIDE**2)]
    (tmp_path / "mixed.csv").write_text("report,mechanism,count\n" + "\n".join(lines) + "\n")
    words = ["estimate", tmp_path / "mixed.csv", files[0], tmp_path / "k.nc"]
    code, told = run_json(*words, "-o", tmp_path / "cells.csv", "--exit-zero")
    assert (code, told["areas"], sum(each["made"] for each in told["mechanisms"])) == (0, [], told["reports"])
    with (tmp_path / "cells.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1)
    assert list(rows[0]) == ["cell", "x", "y", "probability"]


def test_reports_of_something_else_are_told(run, files, tmp_path):
    honest = tmp_path / "honest.csv"
    honest.write_text("cell,count\n" + "".join(f"{cell},{4_000 * (cell in (7, 22))}\n" for cell in range(SIDE**2)))
    code, out, _ = run("estimate", honest, files[0], "--areas", "2x2")
    assert code == 1
    assert "do not fit this mechanism" in out


def test_on_earth_polygons_cut_and_degrees_come_back(run_json, tmp_path):
    pytest.importorskip("pyproj")
    pytest.importorskip("shapely")
    area = tmp_path / "area.nc"
    level = ["--cell", 400, "--epsilon", 0.01, "--program", "planar-laplace"]
    assert run_json("area", PARK, *level, "-o", area)[0] == 0
    rings = [[[2.3, 48.8], [2.348, 48.8], [2.348, 48.9], [2.3, 48.9], [2.3, 48.8]]]
    polygon = {"type": "Feature", "properties": {"name": "west"}, "geometry": {"type": "Polygon", "coordinates": rings}}
    (tmp_path / "west.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [polygon]}))
    drawn = [
        run_json("sample", area, "--lon", lon, "--lat", 48.86, "-n", 400, "--seed", 1)[1] for lon in (2.344, 2.351)
    ]
    lines = [
        f"{lon},{lat}"
        for each in drawn
        for lon, lat in zip(each["report_longitude"], each["report_latitude"], strict=True)
    ]
    (tmp_path / "r.csv").write_text("longitude,latitude\n" + "\n".join(lines) + "\n")
    words = ["estimate", tmp_path / "r.csv", area, "--areas", tmp_path / "west.geojson"]
    code, printed = run_json(*words, "-o", tmp_path / "e.geojson", "--cells")
    assert code == 0
    assert [row["area"] for row in printed["areas"]] == ["west", "elsewhere"]
    assert all(row["low"] <= 0.5 <= row["high"] for row in printed["areas"])
    features = json.loads((tmp_path / "e.geojson").read_text(encoding="utf-8"))["features"]
    assert len(features) == len(printed["cells"])
    for feature, cell in zip(features, printed["cells"], strict=True):
        ring = np.array(feature["geometry"]["coordinates"][0])
        assert (ring[0] == ring[-1]).all()
        assert _turn(ring) > 0
        assert ring[:, 0].min() < cell["longitude"] < ring[:, 0].max()
        assert ring[:, 1].min() < cell["latitude"] < ring[:, 1].max()
        assert feature["properties"]["area"] == ("west" if cell["longitude"] < 2.348 else "elsewhere")
        assert feature["properties"]["low"] is not None


def _turn(ring):
    one, two = ring[1] - ring[0], ring[2] - ring[1]
    return one[0] * two[1] - one[1] * two[0]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["plan", "G", "--respondents", "100"], "areas"),
        (["plan", "G", "--areas", "2x2"], "respondents"),
        (["plan", "G", "--areas", "2x2", "--respondents", "0"], "people"),
        (["plan", "G", "--areas", "2x2", "--respondents", "1.5"], "respondents"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--error", "0"], "error"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--error", "2"], "error"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--error", "0.5"], "error"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--name-field", "x"], "name-field"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--levels", "0.1"], "levels"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--with", "G"], "with"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--cells", "3"], "--cells"),
        (["plan", "G", "--areas", "7x2", "--respondents", "9"], "areas"),
        (["plan", "G", "--areas", "nowhere.csv", "--respondents", "9"], "areas"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--box", "2,48,3,49"], "box"),
        (["plan", "--box", "2,48,2.1,48.1", "--areas", "2x2", "--respondents", "9", "--cell", "x"], "cell"),
        (["plan", "--box", "2,48,2.1,48.1", "--areas", "2x2", "--respondents", "9", "--cells", "3"], "--cells"),
        (["plan", "--areas", "2x2", "--respondents", "9"], "area"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "--confidence", "95"], "confidence"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "-o", "NEW.geojson"], "output"),
        (["plan", "G", "--areas", "2x2", "--respondents", "9", "-o", "NEW.txt"], "output"),
        (["plan", "line", "--areas", "2x2", "--respondents", "9", "--with", "G"], "with"),
        (["plan", "line", "--areas", "2x2", "--respondents", "9"], "areas"),
        (
            [
                "plan",
                "paris",
                "--areas",
                "2x2",
                "--respondents",
                "9",
                "--epsilon",
                "1",
                "--cells",
                "4",
                "--levels",
                "a",
            ],
            "levels",
        ),
        (
            [
                "plan",
                "paris",
                "--areas",
                "2x2",
                "--respondents",
                "9",
                "--epsilon",
                "1",
                "--cells",
                "4",
                "--levels",
                "0",
            ],
            "levels",
        ),
        (
            [
                "plan",
                "paris",
                "--areas",
                "2x2",
                "--respondents",
                "9",
                "--epsilon",
                "1",
                "--cells",
                "4",
                "--levels",
                "1,1",
            ],
            "levels",
        ),
        (["estimate", "R"], "files"),
        (["estimate", "nowhere.csv", "G"], "reports"),
        (["estimate", "R", "nowhere.nc"], "file"),
        (["estimate", "R", "R"], "file"),
        (["estimate", "R", "G", "G"], "mechanisms"),
        (["estimate", "R", "G", "--against", "R"], "areas"),
        (["estimate", "R", "G", "--areas", "2x2", "--against", "nowhere.csv"], "reports"),
        (["estimate", "R", "G", "--areas", "2x2", "--interval", "wald"], "--interval"),
        (["estimate", "R", "G", "--areas", "2x2", "--confidence", "0"], "confidence"),
        (["estimate", "R", "G", "-o", "NEW.geojson"], "output"),
        (["estimate", "R", "G", "-o", "NEW.csv", "-o", "R"], "output"),
        (["estimate", "FEW", "G", "--areas", "3x3"], "reports"),
        (["estimate", "OTHER", "G"], "reports"),
        (["estimate", "EMPTY", "G"], "reports"),
    ],
)
def test_bad_input_is_named_and_leaves_no_file(run_json, files, tmp_path, words, field):
    texts = {"FEW": "report\n1\n2\n", "OTHER": f"# mechanism: {'0' * 64}\nreport\n1\n", "EMPTY": ""}
    named = {"G": files[0], "R": files[1]}
    for name, text in texts.items():
        named[name] = tmp_path / f"{name}.csv"
        named[name].write_text(text)
    before = sorted(tmp_path.iterdir())
    given = [named.get(word, tmp_path / word if word.startswith("NEW") else word) for word in words]
    code, said = run_json(*given)
    damaged = said["error"]["kind"] == "verification"
    assert (code, said["error"]["field"]) == (1 if damaged else 2, field)
    assert damaged == (words[-1] in ("R", "G") and field in ("file", "schema"))
    assert said["error"]["message"]
    assert sorted(tmp_path.iterdir()) == before


@cache
def on_earth():
    pytest.importorskip("pyproj")
    pytest.importorskip("shapely")
    domain = md.Domain.grid(
        (4, 3), cell=200.0, unit="m", origin=(-400.0, -300.0), plane=md.geo.Plane(latitude=48.85, longitude=2.35)
    )
    return md.baselines.exponential(
        md.DesignProblem(
            domain=domain,
            metric=md.Euclidean(epsilon=0.01, unit="m"),
            prior=np.arange(1.0, 13) / 78,
            loss=md.losses.Distance(),
        )
    )


def polygons(path, field="name", **boxes):
    """A GeoJSON file of boxes (west, south, east, north) in m of the plane, an area each; names before a dash."""
    plane = md.geo.Plane(latitude=48.85, longitude=2.35)
    features = []
    for name, (west, south, east, north) in boxes.items():
        ring = np.array([[west, south], [east, south], [east, north], [west, north], [west, south]], float)
        shape = {"type": "Polygon", "coordinates": [np.column_stack(plane.backward(ring)).tolist()]}
        features.append({"type": "Feature", "properties": {field: name.split("_")[0]}, "geometry": shape})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


PARTS = {"west": (-410, -310, -200, 310), "rim_1": (-200, -310, 0, 310), "mid": (0, -310, 200, 310)}
PARTS |= {"rim_2": (200, -310, 410, 310)}


def test_polygons_of_one_name_are_one_area_with_its_true_figures(run, run_json, tmp_path):
    file = save(on_earth(), tmp_path / "e.nc")
    drawn = polygons(tmp_path / "drawn.geojson", **PARTS)
    names = ["west", "rim", "mid", "rim"]
    cells = "".join(f"{cell},{names[cell // 3]}\n" for cell in range(12))
    (tmp_path / "cells.csv").write_text("cell,area\n" + cells)
    reports = reports_of(on_earth(), tmp_path / "r.csv", 2_000)
    for words in (["plan", file, "--respondents", 2_000], ["estimate", reports, file]):
        told = [run_json(*words, "--areas", areas)[1]["areas"] for areas in (drawn, tmp_path / "cells.csv")]
        assert told[0] == told[1]
        assert len(told[0]) == 3
    assert "2 polygons named rim are one area" in run("plan", file, "--respondents", "9", "--areas", drawn)[2]
    held = {row["area"]: row for row in run_json("plan", file, "--respondents", 2_000, "--areas", drawn)[1]["areas"]}
    assert held["rim"]["share"] == pytest.approx((4 + 5 + 6 + 10 + 11 + 12) / 78, abs=1e-12)  # by hand


def test_polygons_without_names_are_numbered_or_refused(run, run_json, tmp_path):
    file = save(on_earth(), tmp_path / "e.nc")
    same = polygons(tmp_path / "same.geojson", **{f"all_{k}": box for k, box in enumerate(PARTS.values())})
    code, refused = run_json("plan", file, "--respondents", 9, "--areas", same)
    assert (code, refused["error"]["value"]) == (2, "all")
    assert "--name-field" in refused["error"]["message"]
    other = polygons(tmp_path / "other.geojson", "DISTRICT", **PARTS)
    code, out, err = run("plan", file, "--respondents", "9", "--areas", other)
    assert code == 0
    assert "area 1" in out
    assert "--name-field NAME" in err
    assert "DISTRICT" in err
    told = run_json("plan", file, "--respondents", 9, "--areas", other, "--name-field", "DISTRICT")[1]["areas"]
    assert [row["area"] for row in told] == ["west", "rim", "mid"]
    code, refused = run_json("plan", file, "--respondents", 9, "--areas", other, "--name-field", "district")
    assert (code, refused["error"]["field"]) == (2, "name-field")
    assert "DISTRICT" in refused["error"]["message"]


def test_polygons_with_latitude_first_are_told_so(run_json, tmp_path):
    file = save(on_earth(), tmp_path / "e.nc")
    turned = json.loads(polygons(tmp_path / "turned.geojson", **PARTS).read_text())
    for feature in turned["features"]:
        feature["geometry"]["coordinates"] = [[[y, x] for x, y in feature["geometry"]["coordinates"][0]]]
    (tmp_path / "turned.geojson").write_text(json.dumps(turned))
    code, refused = run_json("plan", file, "--respondents", 9, "--areas", tmp_path / "turned.geojson")
    assert code == 2
    assert "exchanged" in refused["error"]["message"]


def test_unknown_number_column_is_refused_words_ignored(run, run_json, files, tmp_path):
    for name in ("n", "freq", "Anzahl"):
        (tmp_path / "r.csv").write_text(f"report,{name}\n3,1500\n7,1500\n")
        code, refused = run_json("estimate", tmp_path / "r.csv", files[0])
        assert (code, refused["error"]["value"]) == (2, name.lower())
        assert "rename it to count" in refused["error"]["message"]
    (tmp_path / "r.csv").write_text("report,count,when\n3,1500,May 3\n7,1500,\n")
    code, out, err = run("estimate", tmp_path / "r.csv", files[0], "--exit-zero")
    assert code == 0
    assert "3,000 reports" in out
    assert "--areas 2x2" in out
    assert "read columns report, count; ignored when." in err


def test_an_error_is_a_share_as_a_confidence_is(run, run_json, files):
    words = ["plan", files[0], "--areas", "2x2", "--respondents", 500]
    assert run_json(*words, "--error", 0.02)[1] == run_json(*words)[1]
    for given, remedy in (("2", "write 0.02 for 2 points"), ("0.5", "write 0.005 for 0.5 points")):
        code, refused = run_json(*words, "--error", given)
        assert code == 2
        assert refused["error"]["message"].endswith(f"; {remedy}")


def test_an_interval_of_everything_is_no_result(run, run_json, files, tmp_path):
    code, out, _ = run(
        "plan",
        files[0],
        "--areas",
        "2x2",
        "--respondents",
        "2",
        "--with",
        save(make_mechanism("response"), tmp_path / "k.nc"),
    )
    assert code == 0
    assert "uninformative: the interval is 0 to 100 %" in out
    figures = [float(word) for word in re.findall(r"(?<=[\s-])\d+\.\d\d(?=\s)", out)]
    assert figures
    assert max(figures) <= 100
    (tmp_path / "few.csv").write_text("report,count\n3,12\n7,12\n")
    code, out, _ = run("estimate", tmp_path / "few.csv", tmp_path / "k.nc", "--areas", "2x2")
    assert code == 0
    for line in out.splitlines():
        if re.match(r"\d-\d ", line):
            assert all(float(word) <= 100 for word in re.findall(r"[\d.]+", line)[2:5])


def test_swapped_arguments_name_each_other(run_json, files):
    mechanism, reports = files
    code, refused = run_json("estimate", mechanism, reports)
    assert (code, refused["error"]["field"]) == (2, "reports")
    assert refused["error"]["message"].endswith(f"; give the reports first: mechdesign estimate {reports} {mechanism}")
