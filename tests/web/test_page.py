"""Pages as texts: sentences, contents, refusals, the command line."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from fixtures.export_mechanisms import MAKERS, exportable, joined_text
from fixtures.forged_files import rewritten
from fixtures.pages import Texts, honest, mechanism_of, page_of, texts_of
from fixtures.rows import few_by_default
from fixtures.tolerances import LINEAR_ALGEBRA

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError, VerificationError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.web import contents as carried
from mechdesign.web import page_table, save_page

SENTENCES = {
    "line": "Protects cells of 1 km, not positions: between two people however close, one report changes the odds by a "
    "factor of up to 2.46. A report is correct with probability 53.75 %. No mechanism with this claim does better "
    "than 53.76 % (gap ",
    "discrete": "Protects these 4 classes: between any two of them, one report changes the odds by a factor of up to ",
    "nothing": "Protects cells of 1 km, not positions: a report reveals nothing about anybody. A report",
    "roads": "Protects these 4 places: between two of them within 132.8 m along the streets, one report changes",
    "park": "Protects cells of 200 m, not positions: between two people however close, ",
    "graph": "Protects these 7 classes: between two of them that an edge joins, ",
}


def saying(mechanism):
    """The first sentences of the page of a mechanism."""
    return json.loads(texts_of(mechanism).contents)["facts"]["sentence"]


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences(name):
    assert saying(exportable(name)).startswith(SENTENCES[name])


def test_stopped_page_names_the_shortfall():
    """By hand: (loss - bound) / loss is 20 % of the loss."""
    loss = exportable("line").attrs["expected_loss"]
    assert saying(rewritten(exportable("line"), stopped="time", lower_bound=0.8 * loss)).startswith(
        "Stopped at the time limit: up to 20 % of the loss may be avoidable. To search longer, pass a longer "
        "--time-limit. Protects"
    )
    far = rewritten(exportable("line"), stopped="precision", lower_bound=0.8 * loss)
    assert saying(far).startswith("Up to 20 % of the loss may be avoidable. Protects")


def test_page_states_the_requested_radius(tmp_path, run):
    """200 m, as the command line was given them, and the largest ratio of rows of cells with two positions so near:
    squares of 200 m whose gap is below 200 m and the excess of the plane, found here over all pairs.
    """
    box = ["area", "--box", "12.47,41.89,12.485,41.90", "--cell", "200", "--within", "200", "--factor", "2"]
    code, _, _ = run(*box, "--program", "planar-laplace", "-o", tmp_path / "a.nc")
    assert code == 0
    assert run("export", tmp_path / "a.nc", "-o", tmp_path / "a.html")[0] == 0
    contents = json.loads(Texts.in_page((tmp_path / "a.html").read_text()).contents)
    mechanism = md.load(tmp_path / "a.nc")
    domain, mass = md.Sampler(mechanism).certificate.domain, mechanism["mass"].values.astype(float)
    index = domain.index
    gap = 200 * np.sqrt((np.maximum(np.abs(index[:, None] - index[None]) - 1, 0) ** 2).sum(axis=2))
    near = gap < 200 * (1 + domain.plane.excess(domain.max_position_radius))
    largest = max((mass[u] / mass[v]).max() for u, v in np.argwhere(near))
    assert contents["protection"]["within"] == 200
    assert contents["protection"]["factor"] == pytest.approx(largest, rel=LINEAR_ALGEBRA)
    assert "The mean distance to the true position is" in contents["facts"]["sentence"]


def test_the_checksum_of_a_page_is_that_of_its_file(tmp_path, run, run_json):
    """As `sha256sum` computes it, of pages by the run that saved a file and of the file; none without a file."""
    problem = ["solve", "line", "--cells", "4"]
    assert run(*problem, "-o", tmp_path / "m.nc")[0] == 0
    digest = hashlib.sha256((tmp_path / "m.nc").read_bytes()).hexdigest()
    assert run("export", tmp_path / "m.nc", "-o", tmp_path / "page.html")[0] == 0
    held = md.load(tmp_path / "m.nc")
    never = rewritten(held, problem="another name")
    save_page(never, tmp_path / "never.html")
    texts = {name: (tmp_path / f"{name}.html").read_text() for name in ("page", "never")}
    found = {name: json.loads(Texts.in_page(text).contents)["facts"]["provenance"] for name, text in texts.items()}
    assert found["page"]["sha256sum of the file"] == digest
    assert "not saved" in found["never"]["sha256sum of the file"]
    assert run_json("verify", tmp_path / "m.nc")[1]["sha256"] == digest
    assert digest in run("verify", tmp_path / "m.nc")[1]
    for name in ("t.csv", "t.json"):
        assert digest in joined_text(md.export(held, tmp_path / name))


@pytest.mark.parametrize("name", few_by_default(MAKERS, "plane", "roads", "holes"))
def test_arrays_are_those_of_the_file(name):
    texts, mechanism = honest(name), mechanism_of(name)
    contents, data = json.loads(texts.contents), texts.arrays
    assert set(contents["arrays"]) == set(map(str, mechanism.variables))
    for key, told in contents["arrays"].items():
        values = np.frombuffer(data, f"<{told['dtype']}", int(np.prod(told["shape"])), told["start"])
        assert np.array_equal(values.reshape(told["shape"]), mechanism[key].values)


def test_the_same_file_gives_the_same_page():
    assert page_of(exportable("line")) == page_of(exportable("line"))


def test_a_page_names_every_script_and_style_and_nothing_else():
    html = page_of(exportable("plane"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    inline = re.findall(r"<script(?: id=\"program\")?>(.*?)</script>", html, re.S)
    inline += re.findall(r"<style>(.*?)</style>", html, re.S)
    assert len(inline) == 3
    for text in inline:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "unsafe" not in policy
    assert "http" not in html.replace("http-equiv", "")
    assert re.findall(r'\s(?:src|href)="([^"]*)"', html) == ["data:,"]


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<!--<script>", "{{ 7 * 7 }}", 'a" onload="b'])
def test_names_cannot_become_markup(name):
    mechanism = exportable("line").assign_attrs(problem=name)
    html = page_of(rewritten(mechanism))
    outside = re.sub(r'<script id="(?:data|program)".*?</script>', "", html, flags=re.S)
    assert html.count("<script") == page_of(exportable("line")).count("<script")
    assert name not in html or "<" not in name
    assert 'onload="b' not in outside
    assert "49" not in re.search(r"<title>(.*?)</title>", html)[1]


def test_invalid_input_is_refused(tmp_path):
    mechanism = exportable("line")
    with pytest.raises(InputError, match="unknown kind of page"):
        save_page(mechanism, tmp_path / "p.pdf")
    (tmp_path / "there.html").write_text("")
    with pytest.raises(InputError, match="exists already"):
        save_page(mechanism, tmp_path / "there.html")
    mass = mechanism["mass"].values.copy()
    mass[0, 0] += np.uint64(1)
    with pytest.raises(VerificationError):
        save_page(rewritten(mechanism, mass=(("secret", "report"), mass)), tmp_path / "p.html")
    with pytest.raises(InputError, match="has no page"):
        save_page(mechanism.assign_attrs(schema="another"), tmp_path / "p.html")
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]


@pytest.mark.parametrize(
    ("name", "limit"),
    [("factored", "MOST_PLACES"), ("factored, columns", "MOST_PLACES"), ("factored, columns", "MOST_GENERATORS")],
)
def test_factors_of_too_many_places_or_generators_are_refused(tmp_path, monkeypatch, name, limit):
    monkeypatch.setattr(carried, limit, 3)
    with pytest.raises(InputError, match="too many for a page"):
        save_page(mechanism_of(name), tmp_path / "p.html")


def test_large_table_is_rounded_and_carried_whole(monkeypatch, tmp_path, run):
    """32 bits where they fit, else 24; the note comes before the file, and the checksum is that of the file."""
    monkeypatch.setattr(page_table, "MOST_EXACT", 1)
    md.save(exportable("plane"), tmp_path / "m.nc")
    sizes = {}
    for bits, most in ((32, 10**6), (24, 1)):
        monkeypatch.setattr(page_table, "MOST_PACKED", most)
        code, _, err = run("export", tmp_path / "m.nc", "-o", tmp_path / f"{bits}.html")
        assert code == 0
        text = (tmp_path / f"{bits}.html").read_text()
        contents = json.loads(Texts.in_page(text).contents)
        assert contents["kind"] == "table"
        assert "mass" not in contents["arrays"]
        sizes[bits] = contents["beside"]["packed"]["shape"][0]
        note = contents["facts"]["note"]
        assert f"rounded to {bits} bits and certified again" in note
        assert note in text
        assert " ".join(err.split()).index(note) < " ".join(err.split()).index("wrote")
        digest = hashlib.sha256((tmp_path / "m.nc").read_bytes()).hexdigest()
        assert contents["facts"]["provenance"]["sha256sum of the file before rounding"] == digest
    assert sizes[24] < sizes[32]


@pytest.mark.parametrize("unfit", ["bits", "size"])
def test_table_that_cannot_be_rounded_is_carried_in_part(monkeypatch, unfit):
    monkeypatch.setattr(page_table, "MOST_EXACT", 4 * 9)
    if unfit == "size":
        monkeypatch.setattr(page_table, "MOST_ROUNDED", 9)
    else:

        def refuse(*_):
            raise UnsuitableError("too few bits", field="bits", value=32)

        monkeypatch.setattr(page_table, "round_mechanism", refuse)
    contents = json.loads(texts_of(exportable("plane")).contents)
    assert contents["kind"] == "rows"
    assert contents["facts"]["note"] == "This page has 4 of 9 rows: the browser cannot prove the others."


def test_lines_of_a_file_are_cut_to_the_map(tmp_path, run):
    """A line across the area and one far from it; the corners of the first are found again to a pixel."""
    area = ["area", "--box", "12.47,41.89,12.485,41.90", "--cell", "200", "--within", "200", "--factor", "2"]
    assert run(*area, "--program", "planar-laplace", "-o", tmp_path / "a.nc")[0] == 0
    near, far = [[12.40, 41.895], [12.478, 41.895], [12.478, 41.80]], [[2.0, 48.0], [2.1, 48.1]]
    lines = [{"type": "LineString", "coordinates": line} for line in (near, far)]
    (tmp_path / "l.geojson").write_text(json.dumps({"type": "GeometryCollection", "geometries": lines}))
    code, _, err = run("export", tmp_path / "a.nc", "-o", tmp_path / "a.html", "--over", tmp_path / "l.geojson")
    assert code == 0, err
    texts = Texts.in_page((tmp_path / "a.html").read_text())
    contents = json.loads(texts.contents)

    def values(name, kind):
        entry = contents["beside"][name]
        return np.frombuffer(texts.arrays, kind, entry["shape"][0], entry["start"])

    left, low, right, high = values("over_box", "<f8")
    domain = MechanismFile.read(md.load(tmp_path / "a.nc")).domain
    half = np.array(domain.cell) / 2
    assert [left, low] == pytest.approx(domain.points.min(axis=0) - half)
    assert [right, high] == pytest.approx(domain.points.max(axis=0) + half)
    assert values("over_first", "<u4").tolist() == [0, 3]
    corner = domain.plane.forward(np.array([12.478]), np.array([41.895]))[0]
    x = left + (right - left) * values("over_x", "<u2") / 65535
    y = low + (high - low) * values("over_y", "<u2") / 65535
    assert [x[1], y[1]] == pytest.approx(corner, abs=(right - left) / 1000)
    assert x[0] == left
    assert y[2] == low
    code, _, err = run("export", tmp_path / "a.nc", "-o", tmp_path / "web", "--over", tmp_path / "l.geojson")
    assert code == 2
    assert "does not apply" in err


def test_pages_open_in_the_middle_of_a_uniform_prior():
    """The middle of 3 x 3 cells is the fifth; of a prior with one highest cell it is that one."""
    stored = MechanismFile.read(exportable("plane"))
    prior = np.full(9, 1 / 9)
    for changed, wanted in ((0, 4), (0.1, 0)):
        prior[0] += changed
        other = exportable("plane").copy()
        other["prior"] = ("secret", prior / prior.sum())
        assert page_table.likeliest_in_the_middle(replace(stored, mechanism=other)) == wanted


def test_rows_of_a_large_table_are_near_ones(monkeypatch):
    monkeypatch.setattr(page_table, "MOST_EXACT", 4 * 9)
    monkeypatch.setattr(page_table, "MOST_ROUNDED", 0)
    texts = texts_of(exportable("plane"))
    contents = json.loads(texts.contents)
    assert contents["kind"] == "rows"
    assert contents["beside"]["mass"]["shape"] == [4, 9]
    assert "mass" not in contents["arrays"]
    near = np.frombuffer(texts.arrays, "<i8", 4, contents["beside"]["carried"]["start"])
    assert len(near) == 4
    assert page_table.likeliest_in_the_middle(MechanismFile.read(exportable("plane"))) in near


@pytest.mark.exhaustive
def test_pages_of_comparisons_and_curves(tmp_path, run):
    compared = ["compare", "line", "--cells", "4", "--only", "optimal,exponential"]
    assert run(*compared, "-o", tmp_path / "compare.html")[0] == 0
    swept = ["compare", "line", "--cells", "4", "--scales", "1,2"]
    assert run(*swept, "-o", tmp_path / "s.nc")[0] == 0
    assert run(*swept, "-o", tmp_path / "sweep.html")[0] == 0
    assert run("export", tmp_path / "s.nc", "-o", tmp_path / "curve.html")[0] == 0
    texts = {path.stem: path.read_text() for path in tmp_path.glob("*.html")}
    pictures = [re.search(r'src="data:image/png;base64,[^"]*', texts[name])[0] for name in ("sweep", "curve")]
    assert pictures[0] == pictures[1]
    assert "<script" not in texts["curve"]
    assert 'src="data:image/png;base64,' in texts["curve"]
    table = re.search(r'<table id="compared">.*?</table>', texts["compare"], re.S)[0]
    assert re.findall(r'<th scope="row">(\w+)</th><td class="(\w+)">', table) == [
        ("optimal", "good"),
        ("exponential", "good"),
    ]


def test_bad_targets_are_refused_before_any_work(tmp_path, run):
    (tmp_path / "p.html").write_text("mine")
    code, _, said = run("compare", "philadelphia", "--cells", "60", "-o", tmp_path / "p.html")
    assert code == 2
    assert "output" in said
    assert (tmp_path / "p.html").read_text() == "mine"
