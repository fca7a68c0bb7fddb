"""Any printable name is a unit; only lengths convert; other values are not called places."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.device_maps import small_map
from fixtures.forged_files import rewritten, write_anyway
from fixtures.pages import NODE, SENTENCES, in_node, texts_of
from scipy.integrate import quad

import mechdesign as md
from mechdesign.base.units import LENGTHS, canonical_unit, unit_ratio
from mechdesign.errors import InfeasibleError, InputError, UnitError, VerificationError
from mechdesign.output.captions import mechanism_words
from mechdesign.posteriors.audit import audit_mechanism_discs
from mechdesign.posteriors.words import disc_words
from mechdesign.problem.vocabulary import words_for
from mechdesign.verification import verify_table
from mechdesign.web.page import proof_script

QUADRATURE = 1e-6  # relative: figures of `level` are rounded up to six digits
PLACES = re.compile(r"\b(positions?|planes?|planar|cells?|towns?|coasts?)\b", re.IGNORECASE)
NAMES = ["EUR", "GBP", "years", "points", "class", "degC", "kWh/day", "%", "€", "µg/m³", "thousand euros", "m^2", "h"]
HOSTILE = "<b>$x_&\\'</b>"


@pytest.mark.parametrize("name", NAMES)
def test_printable_name_is_a_unit(name):
    domain = md.Domain.grid(4, 2.0, unit=f" {name} ")
    assert domain.unit == name
    assert md.Euclidean(1.0, unit=name).in_unit_of(domain).unit == name
    with pytest.raises(UnitError, match="no conversion is known"):
        md.Euclidean(1.0, unit="km").in_unit_of(domain)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        *(("Meter", "m"), ("metres", "m"), ("M.", "m"), ("mètres", "m"), ("metros", "m"), ("kms", "km"), ("KM", "km")),
        *(("feet", "ft"), ("nautical_miles", "nmi"), ("Nautical Mile", "nmi"), ("inches", "in"), ("miles.", "mi")),
        *(("kilo meters", "km"), ("usd", "USD"), ("degrees_north", "degree"), ("units", "1"), ("unit", "1")),
    ],
)
def test_spelling_of_a_length_is_understood(name, canonical):
    assert md.Domain.nodes(3, unit=name).unit == canonical


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        *(("meterss", "write m"), ("kilomteres", "write km"), ("feets", "write ft"), ("yrds", "write yd")),
        *(("centimeterz", "write cm"), ("parsec", "lengths are in m, km"), ("micrometers", "lengths are in")),
        *(
            (word, "write for example")
            for word in ("", " ", "x\ny", "a\x1b[31m", "\u202eEUR", "5 m", "=1+1", "-", "x" * 41)
        ),
    ],
)
def test_invalid_unit_is_refused(name, remedy):
    with pytest.raises(UnitError) as caught:
        md.Domain.nodes(3, unit=name)
    assert caught.value.field == "unit"
    assert caught.value.remedy.startswith(remedy)
    with pytest.raises(UnitError):
        md.losses.TableLoss([[0.0, 1.0], [1.0, 0.0]], units=name)
    with pytest.raises(UnitError):
        md.Euclidean(1.0, unit=name)


@pytest.mark.parametrize(
    ("unit", "metres"), [("nmi", Fraction(1852)), ("in", Fraction(127, 5000)), ("mm", Fraction(1, 1000))]
)
def test_length_converts_exactly(unit, metres):
    """By the definitions of 1929 (nautical mile) and 1959 (inch)."""
    assert unit_ratio(unit, "m") == metres
    epsilon = md.Euclidean(1.0, unit="m").in_unit_of(md.Domain.grid(3, 1.0, unit=unit)).epsilon
    assert 0 <= metres - Fraction(epsilon) <= metres / 2**52  # rounded down


def test_classes_and_answers_are_not_lengths():
    """Years are near to yards, and a class to nothing."""
    for name in ("years", "year", "litres", "minutes", "files", "metric", "degree C", "km/h", "m2", "square meters"):
        assert canonical_unit(name) == name
        assert name not in LENGTHS


LAPLACE = {1: lambda r: math.exp(-r), 2: lambda r: r * math.exp(-r)}  # densities of the radius at epsilon 1


@pytest.mark.parametrize(("unit", "axes"), [("USD", 1), ("years", 1), ("1", 1), ("km", 2), ("nmi", 2), ("cell", 2)])
def test_level_has_the_noise_of_its_axes(run_json, unit, axes):
    """Mean and quantiles of the radius against integrals of its density: on one axis half the mean of the plane."""
    code, figures = run_json("level", "--within", 5000, "--factor", 2, "--unit", unit)
    epsilon = math.log(2) / 5000
    density = LAPLACE[axes]
    mean = quad(lambda r: r * density(r), 0, np.inf)[0] / epsilon
    assert code == 0
    assert figures["expected_distance"] == pytest.approx(mean, rel=QUADRATURE)
    assert quad(density, 0, figures["quantiles"]["0.9"] * epsilon)[0] == pytest.approx(0.9, rel=QUADRATURE)
    share = figures["disc_share" if axes == 2 else "interval_share"]
    inside, outside = quad(density, 0, math.log(2))[0], quad(density, math.log(2), np.inf)[0]
    assert share == pytest.approx(inside / (inside + outside), rel=QUADRATURE)


def test_level_of_values_speaks_of_values(run):
    code, out, _ = run("level", "--within", 5000, "--factor", 2, "--unit", "USD", "--reports", 3)
    assert code == 0
    assert "mean distance 7,213.48 USD" in out
    assert PLACES.search(out) is None
    assert "planar Laplace noise" in run("level", "--within", 200, "--factor", 2)[1]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--disc", "564", "--share", "20%"), marks=needs("posteriors")),
        ("--within", 5, "--epsilon", 1, "--interest", 9),
    ],
)
def test_level_on_a_plane_needs_a_length(run, words):
    code, _, error = run("level", *words, "--unit", "USD")
    assert code == 2
    assert "unit of length" in error


def design(domain, metric, loss=None):
    return md.DesignProblem(domain, metric, md.priors.uniform(domain), loss or md.losses.Distance(), name="border")


DESIGNS = {
    "incomes": lambda: design(md.Domain.grid(8, 2500.0, unit="USD"), md.Euclidean(2e-4, unit="USD")),
    "two axes": lambda: design(md.Domain.grid((3, 2), 5.0, unit="years"), md.Euclidean(0.1, unit="years")),
    "points": lambda: design(md.Domain.points_at([1.0, 2.0, 5.0], unit="points"), md.Euclidean(0.2, unit="points")),
    "bare": lambda: design(
        md.Domain.grid(4, 1.0), md.Eikonal(md.PrivacyLevel.constant(0.5)), md.losses.SquaredDistance()
    ),
    "one unit": lambda: design(md.Domain.grid(4, 1.0), md.Euclidean(1.0)),
    "classes": lambda: design(md.Domain.nodes(3), md.Discrete(1.0), md.losses.ZeroOne()),
    "ordered": lambda: design(
        md.Domain.nodes(3),
        md.Graph(tail=[0, 1], head=[1, 2], length=[1.0, 2.0]),
        md.losses.TableLoss(1 - np.eye(3), units="EUR"),
    ),
    "hostile": lambda: design(md.Domain.grid(4, 1.0, unit=HOSTILE), md.Euclidean(1.0, unit=HOSTILE)),
}


@pytest.fixture(scope="module")
def mechanisms():
    return {name: md.solve(make()) for name, make in DESIGNS.items()}


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "hostile"])
def test_readers_do_not_call_values_places(name, mechanisms, tmp_path, run):
    """Terminal, page and stand-alone script; "geometry" and the like are not words of places."""
    mechanism, path = mechanisms[name], tmp_path / "made.nc"
    md.save(mechanism, path)
    code, out, _ = run("verify", path, "--verbose")
    assert code == 0
    script = subprocess.run(
        [sys.executable, verify_table.__file__, md.export(mechanism, tmp_path / "made.csv")],
        capture_output=True,
        text=True,
        check=True,
    )
    facts = json.loads(texts_of(mechanism).contents)["facts"]
    sentence = [
        out,
        script.stdout,
        facts["sentence"],
        facts["claim"],
        facts["subtitle"],
        " ".join(facts["listed"]["head"]),
    ]
    assert [PLACES.findall(text) for text in sentence] == [[]] * len(sentence)


@needs("surveys")
@pytest.mark.parametrize("name", ["incomes", "points", "classes"])
def test_estimate_speaks_of_values(name, tmp_path, run):
    """With a mechanism whose reports identify every share, as optimal ones need not, and its expected reports."""
    mechanism = md.baselines.exponential(DESIGNS[name]())
    md.save(mechanism, tmp_path / "made.nc")
    counts = np.rint(50_000 * mechanism["prior"].values @ md.probabilities(mechanism).values).astype(int)
    (tmp_path / "reports.csv").write_text("report,count\n" + "".join(f"{y},{n}\n" for y, n in enumerate(counts)))
    lines = "".join(f"{u},{'low' if u < 2 else 'high'}\n" for u in range(mechanism.sizes["secret"]))
    (tmp_path / "areas.csv").write_text(f"cell,area\n{lines}")
    command = ("estimate", tmp_path / "reports.csv", tmp_path / "made.nc")
    for options in ((), ("--areas", tmp_path / "areas.csv", "-o", tmp_path / "page.html")):
        code, out, _ = run(*command, *options)
        assert (code, PLACES.findall(out)) == (0, [])
    page = (tmp_path / "page.html").read_text()
    assert ("of people were in the class" if name == "classes" else "of people had a value in") in page
    assert "each place" not in page


EITHER_WAY = "interval of 20 years either way"


@pytest.fixture(scope="module")
def capped_ages():
    """Persons from 1 to 8 in intervals of ten years: five of them lie within 20 years of a centre."""
    problem = design(md.Domain.grid(8, 10.0, unit="years"), md.Euclidean(0.02, unit="years"))
    people = list(range(1, 9))
    cap = md.posteriors.PosteriorCap(radius=20.0, share="9/10", people=people, centres="places")
    return md.solve(md.programs.Constrained(problem, constraints=[cap]))


def test_disc_of_values_is_an_interval(capped_ages, run_json, run, tmp_path):
    """Its radius reaches either way: the share after the worst report, from the table, is that of five centres."""
    md.save(capped_ages, tmp_path / "ages.nc")
    words = run("verify", tmp_path / "ages.nc", "--disc", 20, "-o", tmp_path / "shares.svg")[1]
    sentence = " ".join(words.split())
    assert f"lies in any {EITHER_WAY} about the centre of an interval" in sentence
    assert f"one {EITHER_WAY} holds" in sentence
    assert PLACES.findall(sentence) == []
    assert "disc" not in sentence
    (figures,) = run_json("verify", tmp_path / "ages.nc", "--disc", 20)[1]["discs"]
    assert (figures["shape"], figures["many"]) == ("interval", "intervals")
    joint = capped_ages["prior"].values[:, None] * md.probabilities(capped_ages).values
    share = max((joint[first : first + 5].sum(axis=0) / joint.sum(axis=0)).max() for first in range(4))
    assert figures["worst"] == pytest.approx(share)
    table = md.export(capped_ages, tmp_path / "ages.csv")
    script = [sys.executable, verify_table.__file__, table]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert "any interval of 20.0 years either way about the centre of an interval" in printed
    np.savetxt(tmp_path / "table.csv", md.probabilities(capped_ages).values, delimiter=",")
    command = ("audit", tmp_path / "table.csv", "--metric", tmp_path / "ages.nc", "--disc", 20)
    code, out, _ = run(*command, "-o", tmp_path / "a.svg")
    assert f"one {EITHER_WAY} holds" in " ".join(out.split())
    assert code == 0
    assert "disc" not in out


def test_infeasible_limit_names_the_interval():
    problem = design(md.Domain.grid(8, 10.0, unit="years"), md.Euclidean(0.02, unit="years"))
    cap = md.posteriors.PosteriorCap(radius=20.0, share="1/10", people=list(range(1, 9)))
    with pytest.raises(InfeasibleError, match=f"the {EITHER_WAY} about"):
        md.solve(md.programs.Constrained(problem, constraints=[cap]))


def test_likeliest_of_two_axes_of_values_are_intervals(mechanisms):
    (figures,) = audit_mechanism_discs(mechanisms["two axes"], [4.0], centres="area")
    assert "the likeliest intervals, together no larger than a disc of radius 4 years, hold" in "".join(
        disc_words([figures.as_dict()])
    )


@needs("devicemap")
def test_device_map_needs_a_length(tmp_path):
    """Values have no device map, and a file that states one is refused."""
    level = md.PrivacyLevel.constant(0.5, "years")
    problem = design(md.Domain.grid((3, 2), 1.0, unit="years"), md.Eikonal(level, stencil=8))
    mechanism = md.solve(md.EikonalWeights(problem=problem), method="factored")
    with pytest.raises(InputError, match=r"unit: must be a unit of length.*\(got years\); export a table"):
        md.export(mechanism, tmp_path / "made.compact")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(VerificationError, match="unit: is not a unit of length"):
        replace(small_map(), unit="years")


@pytest.mark.parametrize(("unit", "legend"), [("GBP", "Laplace"), ("km", "planar Laplace")])
def test_noise_on_an_axis_of_values_is_not_planar(unit, legend):
    mechanism = md.solve(design(md.Domain.grid(4, 1.0, unit=unit), md.Euclidean(0.5, unit=unit)))
    assert mechanism_words("planar_laplace", mechanism) == legend


PROBLEM = """import mechdesign as md


def problem():
    domain = md.Domain.grid(3, 1000.0, unit="GBP")
    return md.DesignProblem(domain, md.Euclidean(1e-3, unit="GBP"), md.priors.uniform(domain), md.losses.Distance())
"""


@pytest.mark.parametrize("name", ["incomes", "classes"])
def test_client_speaks_of_values(name, mechanisms, tmp_path):
    """Names of functions and codes of errors are unchanged."""
    readme = (md.web.write_client(mechanisms[name], tmp_path / "client") / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`]*`|\"[a-z]+\"", "", readme, flags=re.DOTALL)
    assert PLACES.findall(prose) == []
    assert f"The claim is about {'classes' if name == 'classes' else 'intervals'}" in prose
    assert "client.reportCell(number)" in readme


def test_one_unit_is_singular(mechanisms):
    """Two of its values are at least 1 apart, and a factor of 2 is nearer."""
    assert "within 1 unit, one report" in json.loads(texts_of(mechanisms["one unit"]).contents)["facts"]["sentence"]


def test_comparison_and_sweep_speak_of_values(run, tmp_path):
    (tmp_path / "wages.py").write_text(PROBLEM)
    for options in ((), ("--scales", "1")):
        code, out, _ = run("compare", tmp_path / "wages.py", *options)
        assert code == 0
        assert "GBP" in out
        assert PLACES.findall(out.replace("planar", "")) == []  # in the name of a baseline


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_page_and_python_have_the_same_words(mechanisms, capped_ages, tmp_path):
    made_mechanisms = [*mechanisms.values(), capped_ages]
    (tmp_path / "texts.json").write_text(
        json.dumps([vars(texts_of(mechanism_of_page)) for mechanism_of_page in made_mechanisms])
    )
    for mechanism, printed in zip(made_mechanisms, in_node(tmp_path, proof_script() + SENTENCES), strict=True):
        facts = json.loads(texts_of(mechanism).contents)["facts"]
        assert printed["headline"] == facts["sentence"]
        assert PLACES.search(printed["claim"]) is None


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_nouns_of_pages_are_those_of_python(tmp_path):
    cases = list(
        product(("grid", "points", "nodes"), (*LENGTHS, "cell", "1", "EUR", "degree", "constructor"), (1, 2, 3))
    )
    (tmp_path / "given.json").write_text(json.dumps(cases))
    program = 'const given = JSON.parse(require("node:fs").readFileSync("given.json", "utf8"));\n'
    program += "console.log(JSON.stringify(given.map(([kind, unit, axes]) => nounsOf({ kind, unit }, axes))));"
    for words, nouns in zip(cases, in_node(tmp_path, proof_script() + program), strict=True):
        assert nouns == vars(words_for(*words)), words


def test_hostile_unit_is_only_text(mechanisms, tmp_path, run):
    """Markup in a page, mathematics in a picture, LaTeX in a comparison, a formula in a spreadsheet."""
    mechanism = mechanisms["hostile"]
    html = md.web.save_page(mechanism, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>$x" not in html
    assert md.plot.save(mechanism, tmp_path / "made.png").stat().st_size > 0
    md.export(mechanism, tmp_path / "made.csv")
    assert verify_table.main([str(tmp_path / "made.csv")]) == 0
    md.save(mechanism, tmp_path / "made.nc")
    assert HOSTILE in run("verify", tmp_path / "made.nc")[1]


@pytest.mark.parametrize("unit", ["EUR\nx", "\x1b[2J", "x" * 41, "USD. All is well", "meterss"])
def test_unit_in_a_file_is_untrusted(mechanisms, tmp_path, unit):
    """A unit that no constructor takes is refused in a file too."""
    mechanism = mechanisms["incomes"]
    domain, metric = (json.loads(mechanism.attrs[name]) | {"unit": unit} for name in ("domain", "metric"))
    forged = rewritten(mechanism, domain=json.dumps(domain), metric=json.dumps(metric))
    with pytest.raises((VerificationError, InputError)):
        md.verify(write_anyway(forged, tmp_path / "forged.nc"))


def test_a_tabled_loss_takes_unit_and_units():
    table = [[0.0, 1.0], [1.0, 0.0]]
    loss = md.losses.TableLoss(table, unit="EUR")
    assert loss == md.losses.TableLoss(table, units="EUR")
    assert (loss.unit("km"), loss.units) == ("EUR", "EUR")
    assert replace(loss, values=[[0.0, 2.0], [2.0, 0.0]]).units == "EUR"
    assert pickle.loads(pickle.dumps(loss)) == loss
    with pytest.raises(InputError, match="given twice"):
        md.losses.TableLoss(table, unit="EUR", units="USD")
    with pytest.raises(InputError, match="type str"):
        md.losses.TableLoss(table, unit=5)
