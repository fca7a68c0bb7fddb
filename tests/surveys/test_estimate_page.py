"""Pages of estimates: their content, and their refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs
from fixtures.browsers import check_layout, needs_browser
from fixtures.estimates import counts_of, estimate_of, estimate_page, mechanisms_of
from fixtures.forged_files import rewritten
from fixtures.pages import page_of

from mechdesign import save
from mechdesign.errors import InputError, VerificationError
from mechdesign.surveys.document import EstimateDocument
from mechdesign.surveys.page import STOPS, outward
from mechdesign.surveys.page import _interval as interval_words


@needs_browser()
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("hostile", 390, "dark"),
        pytest.param("few", 390, "light", marks=pytest.mark.exhaustive),
        pytest.param("misfit", 1280, "light", marks=pytest.mark.exhaustive),
        pytest.param("cells", 390, "light", marks=pytest.mark.exhaustive),
    ],
)
def test_pages_fit_phones_are_accessible_and_ask_for_nothing(tmp_path, open_page, name, width, scheme):
    (tmp_path / "estimate.html").write_text(estimate_page(name))
    told = open_page(tmp_path / "estimate.html", viewport={"width": width, "height": 844}, color_scheme=scheme)
    check_layout(told.page, width, scheme)
    assert told.asked_for() == told.complaints == []


@pytest.mark.parametrize("name", ["two", "few", "simultaneous"])
def test_bars_are_the_figures_of_estimate(name):
    """Every row of the table against the document of `estimate --json`, largest share first."""
    table = re.search(r'<table id="bars".*?</table>', estimate_page(name), re.S)[0]
    lines = re.findall(r'<tr role="row">(.*?)</tr>', table.split("<tbody>")[1], re.S)
    ordered = sorted(EstimateDocument(estimate=estimate_of(name)).areas, key=lambda row: -row["share"])
    for line, row in zip(lines, ordered, strict=True):
        assert re.search(r'<th scope="row".*?>(.*?)</th>', line)[1] == row["area"]
        raw, share, interval, error, effective, likely = re.findall(
            r'<td role="cell" class="number".*?>(.*?)</td>', line
        )[:6]
        for text, key in ((raw, "estimate"), (share, "share"), (error, "standard_error"), (likely, "likelihood_share")):
            assert text == f"{100 * row[key]:.2f} %"
        assert float(effective.replace(",", "")) == pytest.approx(row["effective"], rel=1e-2)
        ends = "none"
        if row["reason"] is None:
            low, high = (f"{100 * row[end]:.2f} %" for end in ("low", "high"))
            ends = f"{low} to {high}" if row["low"] > 0 else f"at most {high}"
        assert interval == ends
        assert ("<line" in line) is (row["reason"] is None)
    reasons = [row["reason"] for row in ordered if row["reason"]]
    assert all(f"{reason}." in estimate_page(name) for reason in reasons)


def test_maps_have_a_square_for_every_place():
    html, estimate = estimate_page("two"), estimate_of("two")
    maps = re.findall(r"<figure>(.*?)</figure>", html, re.S)
    assert [found.count("<rect") for found in maps] == [estimate.sizes["secret"]] * 2
    most = int(np.argmax(estimate["distribution"].values))
    shades = re.findall(r'fill="(#\w+)"', maps[0])
    assert shades[most] == "#ffea46"
    assert len(set(shades)) > 2
    assert len(set(re.findall(r'fill="(#\w+)"', maps[1]))) <= estimate.sizes["area"]
    assert estimate_page("cells").count("<figure>") == 1


def test_reports_that_do_not_fit_are_said_first():
    assert re.search(r'<h1 id="sentence">(.*?)</h1>', estimate_page("misfit"))[1].startswith(
        "Do not trust these shares"
    )
    assert '<p class="fit refused"' in estimate_page("misfit")
    assert '<p class="fit" role="note">These reports are consistent with' in estimate_page("linear")


def test_estimate_page_has_no_scripts():
    for name in ("linear", "sealed"):
        html = estimate_page(name)
        assert "<script" not in html
        assert "script-src" not in html
    assert "no mechanism was given" in estimate_page("sealed")
    assert "From the counts and the mechanisms." in estimate_page("linear")


@pytest.mark.parametrize(
    ("percent", "wide", "ends"),
    [(21.3, 6.0, ("21", "22")), (21.0, 6.0, ("21", "21")), (21.37, 0.7, ("21.3", "21.4")), (0.0, 40, ("0", "0"))],
)
def test_ends_are_rounded_outwards(percent, wide, ends):
    assert (outward(percent, wide, up=False), outward(percent, wide, up=True)) == ends


def test_the_two_sentences():
    html = estimate_page("linear")
    assert "% of people were in " in html
    assert "(95 % interval, 3,000 reports). Every report protects cells of 150 m, not positions: between two" in html
    assert "all areas together" in estimate_page("simultaneous")
    assert "The claim below bounds how much" in estimate_page("sealed")
    promises = [
        estimate_page(name).split("<h1")[1].split("</h1>")[0].count("by a factor of") for name in ("two", "same")
    ]
    assert promises == [2, 2]


def test_names_of_areas_cannot_become_markup():
    assert "<img" not in estimate_page("hostile")
    assert "&lt;/script&gt;&lt;img" in estimate_page("hostile")


@pytest.mark.parametrize("words", ["{}", "[]", "not JSON", '[{"sha256": 3}]'])
def test_an_estimate_that_contradicts_itself_is_refused(words):
    evil = rewritten(estimate_of("linear"), mechanisms=words)
    for mechanisms in ((), mechanisms_of("linear")):
        with pytest.raises((InputError, VerificationError)):
            page_of(evil, mechanisms=mechanisms)


def test_what_is_refused():
    estimate, (mechanism,) = estimate_of("linear"), mechanisms_of("linear")
    other = mechanisms_of("two")[1]
    for given in ([other], [mechanism, other], [mechanism, mechanism]):
        with pytest.raises(InputError, match="do not match"):
            page_of(estimate, mechanisms=given)
    with pytest.raises(InputError, match="page of an estimate"):
        page_of(mechanism, mechanisms=[mechanism])
    with pytest.raises(VerificationError, match="does not follow"):
        page_of(rewritten(estimate, share=estimate["share"] + 0.1), mechanisms=[mechanism])


def test_commands_write_the_same_page(tmp_path, run):
    (mechanism,) = mechanisms_of("linear")
    save(mechanism, tmp_path / "m.nc")
    lines = "".join(f"{cell},{count}\n" for cell, count in enumerate(counts_of(mechanism, 3_000)))
    (tmp_path / "r.csv").write_text("report,count\n" + lines)
    files = ["-o", tmp_path / "e.nc", "-o", tmp_path / "one.html"]
    assert run("estimate", tmp_path / "r.csv", tmp_path / "m.nc", "--areas", "2x3", *files)[0] == 0
    assert run("export", tmp_path / "e.nc", tmp_path / "m.nc", "-o", tmp_path / "two.html")[0] == 0
    assert run("export", tmp_path / "e.nc", "-o", tmp_path / "sealed.html")[0] == 0
    texts = [(tmp_path / f"{name}.html").read_text() for name in ("one", "two", "sealed")]
    assert texts[0] == texts[1] != texts[2]
    for text, name in zip(texts, ("linear", "linear", "sealed"), strict=True):
        assert text.split("Figures and provenance<")[0] == estimate_page(name).split("Figures and provenance<")[0]
    assert run("export", tmp_path / "m.nc", tmp_path / "m.nc", "-o", tmp_path / "no.html")[0] == 2
    assert not (tmp_path / "no.html").exists()


@needs("web", "pictures")
def test_shades_are_those_of_the_maps():
    """The page runs no script, so it has its own table of colours."""
    script = (ROOT / "mechdesign/web/browser/view/colours.js").read_text()
    maps = {tuple(map(int, stop)) for stop in re.findall(r"\[(\d+), (\d+), (\d+)\]", script)}
    assert set(STOPS) < maps


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.12, 1.4, "0.00 % to 100.00 %"),
        (0.2, 1.4, "at least 20.00 %"),
        (-0.1, 0.3, "at most 30.00 %"),
        (0.1, 0.3, "10.00 % to 30.00 %"),
    ],
)
def test_intervals_of_shares_stay_within_100_percent(low, high, words):
    assert interval_words(low, high) == words
