"""Pages as texts: sentences, what they carry, what they refuse, the command line."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from exported import MAKERS, made
from pages import Texts, honest, mechanism_of

import mechdesign as md
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.stored import read
from mechdesign.mechanism.table.dataset import seal
from mechdesign.output.page import contents as carried
from mechdesign.output.page.page import page_text, save_page
from mechdesign.output.page.sentence import TIMES, saying_of, short
from mechdesign.output.tables.sweep import SWEEP

SENTENCES = {
    "line": "Between neighbouring values, 1 km apart, a report changes an attacker's odds by no more than a factor of "
    "2.46; a report is the true one with probability 53.8 %; no mechanism could do better than 53.8 %.",
    "discrete": "Between any two secrets, a report changes an attacker's odds by no more than a factor of",
    "nothing": "A report tells an attacker nothing at all",
    "roads": "Within ",
    "park": "Within ",
    "graph": "Between places that an edge joins, ",
}
NUMBERS = [
    (498.3, "498", "499", "498"),
    (0.034567, "0.0346", "0.0346", "0.0345"),
    (1234.5, "1,230", "1,240", "1,230"),
    (99.96, "100", "100", "99.9"),
    (2.0, "2", "2", "2"),
    (12345678.0, f"1.23 {TIMES} 10⁷", f"1.24 {TIMES} 10⁷", f"1.23 {TIMES} 10⁷"),
    (2.5e-5, *[f"2.50 {TIMES} 10⁻⁵"] * 3),
    (0.0, "0", "0", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "near", "up", "down"), NUMBERS)
def test_numbers_have_three_digits(value, near, up, down):
    assert (short(value), short(value, upwards=True), short(value, upwards=False)) == (near, up, down)


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences(name):
    assert saying_of(read(made(name))).sentence.startswith(SENTENCES[name])


def test_what_was_asked_for_is_what_is_said(tmp_path, run):
    """200 m and a factor of 2, as the command line was given them; a place is promised what its distance gives it."""
    box = ["area", "--box", "12.47,41.89,12.485,41.90", "--cell", "200", "--within", "200", "--factor", "2"]
    code, _, _ = run(*box, "--program", "planar-laplace", "-o", tmp_path / "a.nc", "--page", tmp_path / "a.html")
    assert code == 0
    saying = json.loads(Texts.in_page((tmp_path / "a.html").read_text()).contents)["saying"]
    texts = saying["texts"]
    stored = read(md.load(tmp_path / "a.nc"))
    points, nats = stored.domain.points, stored.problem.distances
    apart = np.sqrt(((points[:, None] - points[None, :]) ** 2).sum(axis=2))
    assert nats[apart <= saying["values"]["radius"]].max() <= np.log(saying["values"]["factor"])
    assert texts["radius"] == "200" or stored.metric.scale != 1
    assert "m off on average" in saying["template"]


def test_the_radius_of_a_level_map_holds_for_every_pair():
    level = md.PrivacyLevel.constant(0.3, "cell")
    domain = md.Domain.grid((7, 7), cell=1.0, unit="cell")
    problem = md.DesignProblem(
        domain=domain,
        metric=md.Eikonal(level),
        prior=md.priors.uniform(domain),
        loss=md.losses.Distance(),
    )
    mechanism = md.baselines.planar_laplace(problem)
    values = saying_of(read(mechanism)).values
    stored = read(mechanism)
    apart = domain.euclidean_to(domain)
    inside = stored.problem.distances[apart <= values["radius"]]
    assert 0 < inside.max() <= np.log(values["factor"])


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_are_those_of_the_file(name):
    texts, mechanism = honest(name), mechanism_of(name)
    contents, data = json.loads(texts.contents), texts.arrays
    assert contents["complete"] is True
    assert set(contents["arrays"]) == set(map(str, mechanism.variables))
    for key, told in contents["arrays"].items():
        values = np.frombuffer(data, f"<{told['dtype']}", int(np.prod(told["shape"])), told["start"])
        assert np.array_equal(values.reshape(told["shape"]), mechanism[key].values)
    assert texts.seal == hashlib.sha256(f"{texts.contents}\n{texts.packed}".encode()).hexdigest()


def test_the_same_file_gives_the_same_page():
    assert page_text(made("line")) == page_text(made("line"))


def test_a_page_names_every_script_and_style_and_nothing_else():
    html = page_text(made("plane"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    inline = re.findall(r"<script(?: id=\"program\")?>(.*?)</script>", html, re.S)
    inline += re.findall(r"<style>(.*?)</style>", html, re.S)
    assert len(inline) == 3
    for text in inline:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "unsafe" not in policy
    assert set(re.findall(r"https?://[\w./]+", html)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r'\s(?:src|href)="([^"]*)"', html) == ["data:,"]


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<!--<script>", "{{ 7 * 7 }}", 'a" onload="b'])
def test_names_cannot_become_markup(name):
    mechanism = made("line").assign_attrs(problem=name)
    html = page_text(seal(mechanism))
    outside = re.sub(r'<script id="(?:data|arrays|program)".*?</script>', "", html, flags=re.S)
    assert html.count("<script") == page_text(made("line")).count("<script")
    assert name not in Texts.in_page(html).contents or "<" not in name
    assert 'onload="b' not in outside
    assert "49" not in re.search(r"<title>(.*?)</title>", html)[1]


def test_what_is_refused(tmp_path):
    mechanism = made("line")
    with pytest.raises(InputError, match="unknown kind of page"):
        save_page(mechanism, tmp_path / "p.pdf")
    (tmp_path / "there.html").write_text("")
    with pytest.raises(InputError, match="exists already"):
        save_page(mechanism, tmp_path / "there.html")
    mass = mechanism["mass"].values.copy()
    mass[0, 0] += np.uint64(1)
    with pytest.raises(VerificationError):
        save_page(seal(mechanism.assign(mass=(("secret", "report"), mass))), tmp_path / "p.html")
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


def test_rows_of_a_large_table_are_near_ones(monkeypatch):
    monkeypatch.setattr(carried, "MOST_MASSES", 4 * 9)
    contents = json.loads(Texts.in_page(page_text(made("plane"))).contents)
    assert (contents["kind"], contents["complete"]) == ("rows", False)
    assert contents["beside"]["mass"]["shape"] == [4, 9]
    assert "mass" not in contents["arrays"]
    near = carried.near_rows(read(made("plane")), 4)
    assert len(near) == 4
    assert int(np.argmax(made("plane")["prior"].values)) in near


def test_every_command_writes_its_page(tmp_path, run):
    assert run("solve", "line", "--cells", "4", "-o", tmp_path / "m.nc", "--page", tmp_path / "solve.html")[0] == 0
    assert run("page", tmp_path / "m.nc", "-o", tmp_path / "page.html")[0] == 0
    assert run("verify", tmp_path / "m.nc", "--page", tmp_path / "verify.html")[0] == 0
    compared = ["compare", "line", "--cells", "4", "--only", "optimal", "--only", "exponential"]
    assert run(*compared, "--page", tmp_path / "compare.html")[0] == 0
    swept = ["sweep", "line", "--cells", "4", "--points", "2", "-o", tmp_path / "s.nc"]
    assert run(*swept, "--page", tmp_path / "sweep.html")[0] == 0
    assert run("page", tmp_path / "s.nc", "-o", tmp_path / "curve.html")[0] == 0
    texts = {path.stem: path.read_text() for path in tmp_path.glob("*.html")}
    assert texts["solve"] == texts["page"] == texts["verify"]
    assert texts["sweep"] == texts["curve"]
    assert json.loads(Texts.in_page(texts["curve"]).contents)["attrs"]["schema"] == ["str", SWEEP.name]
    rows = json.loads(Texts.in_page(texts["compare"]).contents)["comparison"]
    assert [(row["mechanism"], row["broken"]) for row in rows] == [("optimal", False), ("exponential", False)]


def test_bad_targets_are_refused_before_any_work(tmp_path, run):
    code, _, said = run("solve", "philadelphia", "--cells", "60", "--page", tmp_path / "p.txt")
    assert code == 2
    assert "page" in said
    assert list(tmp_path.iterdir()) == []


def test_seals_of_the_tests_are_those_of_pages():
    texts = honest("line")
    assert texts.resealed() == texts
    assert replace(texts, packed="AAAA").resealed().seal != texts.seal
