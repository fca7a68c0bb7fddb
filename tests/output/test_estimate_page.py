"""Pages of estimates in a browser: what they show, what they prove, and what they refuse."""

from __future__ import annotations

import json

import pytest
from browsers import check_layout, needs_browser
from estimates import HOSTILE, counts_of, estimate_of, forged_estimate, mechanisms_of, shown
from pages import Texts

from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.storage.files import save
from mechdesign.mechanism.table.dataset import seal
from mechdesign.output.page import estimate as carried
from mechdesign.output.page.estimate import outward
from mechdesign.output.page.page import page_text
from mechdesign.output.tables.shares import estimate_document

NAMES = ("two", "few", "cells", "misfit", "hostile", "sealed", "factored")
browsed = needs_browser()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("estimates")
    for name in NAMES:
        (place / f"{name}.html").write_text(shown(name))
    return place


@browsed
@pytest.mark.parametrize("name", NAMES)
def test_every_page_proves_itself_and_asks_for_nothing(folder, opened, name):
    told = opened(folder / f"{name}.html")
    wanted = "badge partly" if name in ("sealed", "misfit") else "badge proved"
    assert told.page.get_attribute("#proof", "class") == wanted, told.page.inner_text("#proof")
    assert told.asked_for() == told.complaints == []
    assert (told.page.inner_text("#verdict") == "Sealed, not proved") is (name == "sealed")


@browsed
@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("hostile", 390, "dark"), ("few", 390, "light"), ("misfit", 1280, "light")]
)
def test_pages_fit_phones_and_are_accessible(folder, opened, name, width, scheme):
    page = opened(folder / f"{name}.html", viewport={"width": width, "height": 844}, color_scheme=scheme).page
    check_layout(page, width, scheme)


@browsed
def test_bars_are_the_figures_of_estimate(folder, opened):
    """Every row of the table against the document of `estimate --json`, largest share first; names choose an area."""
    for name in ("two", "few"):
        page, rows_told = opened(folder / f"{name}.html").page, estimate_document(estimate_of(name))["areas"]
        ordered = sorted(rows_told, key=lambda row: -row["share"])
        for line, row in zip(page.locator("#bars tbody tr").all(), ordered, strict=True):
            assert line.locator("th").inner_text() == row["area"]
            share, ends, error, effective, likely = (
                cell.get_attribute("data-value") for cell in line.locator("td[data-value]").all()[:5]
            )
            assert [float(share), float(error), float(effective), float(likely)] == [
                row[key] for key in ("share", "standard_error", "effective", "likelihood_share")
            ]
            assert (
                ends == "NaN,NaN" if row["reason"] else [float(x) for x in ends.split(",")] == [row["low"], row["high"]]
            )
        last = page.locator("#bars tbody tr").last
        last.locator("button").focus()
        page.keyboard.press("Enter")
        assert page.inner_text("#place-title") == ordered[-1]["area"]
        assert last.get_attribute("class") == "chosen"
        assert page.locator("#reasons li").count() == sum(row["reason"] is not None for row in ordered)
        assert page.is_visible("#missing") is (ordered[-1]["reason"] is not None)


@browsed
def test_the_keys_walk_over_the_areas(folder, opened):
    page = opened(folder / "two.html").page
    page.focus("#map")
    seen = set()
    for key in ["ArrowUp", "ArrowLeft"] * 4 + ["ArrowRight"] * 4 + ["ArrowDown"] * 4:
        page.keyboard.press(key)
        seen.add(page.inner_text("#place-title"))
    assert len(seen) >= 4
    page.click("#tabs button >> text=Shares of areas")
    assert "each area" in page.inner_text("#legend")


@browsed
def test_hostile_areas_stay_texts(folder, opened):
    told = opened(folder / "hostile.html")
    assert told.page.evaluate("window.hacked") is None
    assert HOSTILE in told.page.locator("#bars tbody th").all_inner_texts()
    assert told.complaints == []


@browsed
def test_reports_that_do_not_fit_are_said_first(folder, opened):
    page = opened(folder / "misfit.html").page
    assert page.inner_text("#sentence").startswith("Do not trust these shares")
    assert page.get_attribute("#fit", "class") == "fit refused"
    assert page.inner_text("#verdict") == "Proved in this browser, but the reports do not fit"
    assert opened(folder / "two.html").page.inner_text("#fit").startswith("These reports fit")


@browsed
def test_an_estimate_of_one_altered_figure_turns_red(tmp_path, opened):
    html = shown("two")
    texts, share = Texts.in_page(html), estimate_of("two")["share"].values.copy()
    share[0] += 1e-4
    other = forged_estimate("two", share=share)
    html = (
        html.replace(texts.contents, other.contents).replace(texts.packed, other.packed).replace(texts.seal, other.seal)
    )
    (tmp_path / "p.html").write_text(html)
    page = opened(tmp_path / "p.html").page
    assert page.get_attribute("#proof", "class") == "badge refused"
    assert "share is" in page.inner_text("#saying")


@browsed
def test_an_estimate_without_scripts_and_on_paper(folder, browser):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "few.html").as_uri())
    assert page.locator("table tbody tr").count() == 6
    assert "too few reports" in page.inner_text("noscript")
    page.emulate_media(media="print")
    assert page.is_hidden("#copy")
    context.close()


@pytest.mark.parametrize(
    ("percent", "wide", "ends"),
    [(21.3, 6.0, ("21", "22")), (21.0, 6.0, ("21", "21")), (21.37, 0.7, ("21.3", "21.4")), (0.0, 40, ("0", "0"))],
)
def test_ends_are_rounded_outwards(percent, wide, ends):
    assert (outward(percent, wide, up=False), outward(percent, wide, up=True)) == ends


def test_the_two_sentences():
    html = shown("linear")
    assert "% of people were in " in html
    assert "(95 % interval, 3,000 reports). Every report protects cells of 150 m, not positions: between two" in html
    assert "all areas together" in shown("simultaneous")
    assert "stands in the claim below" in shown("sealed")
    promises = [shown(name).split("<h1")[1].split("</h1>")[0].count("by a factor of") for name in ("two", "same")]
    assert promises == [2, 2]
    assert estimate_of("linear").attrs["sha256"] in html


def test_names_of_areas_cannot_become_markup():
    html = shown("hostile")
    assert "<img" not in html
    assert html.count("<script") == shown("linear").count("<script")


def test_tables_that_are_too_large_are_not_carried(monkeypatch):
    monkeypatch.setattr(carried, "MOST_MASSES", 10)
    contents = json.loads(Texts.in_page(page_text(estimate_of("linear"), mechanisms=mechanisms_of("linear"))).contents)
    assert (contents["mechanisms"], contents["given_mechanisms"]) == ([], 1)
    assert "weights" not in contents["beside"]
    assert "factor" in contents["saying"]["values"]


@pytest.mark.parametrize("words", ["{}", "[]", "not JSON", '[{"sha256": 3}]'])
def test_an_estimate_that_contradicts_itself_is_refused(words):
    evil = seal(estimate_of("linear").assign_attrs(mechanisms=words))
    for mechanisms in ((), mechanisms_of("linear")):
        with pytest.raises((InputError, VerificationError)):
            page_text(evil, mechanisms=mechanisms)


def test_what_is_refused():
    estimate, (mechanism,) = estimate_of("linear"), mechanisms_of("linear")
    other = mechanisms_of("two")[1]
    for given in ([other], [mechanism, other], [mechanism, mechanism]):
        with pytest.raises(InputError, match="are not those"):
            page_text(estimate, mechanisms=given)
    with pytest.raises(InputError, match="page of an estimate"):
        page_text(mechanism, mechanisms=[mechanism])
    with pytest.raises(InputError, match="was altered"):
        page_text(estimate.assign(share=estimate["share"] + 0.1))
    with pytest.raises(VerificationError, match="does not follow"):
        page_text(seal(estimate.assign(share=estimate["share"] + 0.1)), mechanisms=[mechanism])


def test_commands_write_the_same_page(tmp_path, run):
    (mechanism,) = mechanisms_of("linear")
    save(mechanism, tmp_path / "m.nc")
    lines = "".join(f"{cell},{count}\n" for cell, count in enumerate(counts_of(mechanism, 3_000)))
    (tmp_path / "r.csv").write_text("report,count\n" + lines)
    files = ["-o", tmp_path / "e.nc", "--page", tmp_path / "one.html"]
    assert run("estimate", tmp_path / "r.csv", tmp_path / "m.nc", "--areas", "2x3", *files)[0] == 0
    assert run("page", tmp_path / "e.nc", tmp_path / "m.nc", "-o", tmp_path / "two.html")[0] == 0
    assert run("page", tmp_path / "e.nc", "-o", tmp_path / "sealed.html")[0] == 0
    texts = [(tmp_path / f"{name}.html").read_text() for name in ("one", "two", "sealed")]
    assert texts[0] == texts[1] == shown("linear")
    assert texts[2] == shown("sealed")
    assert run("page", tmp_path / "m.nc", tmp_path / "m.nc", "-o", tmp_path / "no.html")[0] == 2
    assert not (tmp_path / "no.html").exists()
