"""Sealed weighted estimates: stored, computed again from their sums, shown as a page and as layers."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from fixtures.browsers import needs_browser
from fixtures.forged_files import rewritten
from fixtures.pages import page_of
from test_area_layers import survey

import mechdesign as md
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.storage import load_sealed
from mechdesign.surveys.weighted_dataset import check_weighted
from mechdesign.surveys.weighted_schema import WEIGHTED

AREAS = md.geo.Partition(names=("low", "high"), label=np.array([0, 0, 1]))


@pytest.fixture(scope="module")
def collection():
    """A mechanism of three secrets, and an estimate of two domains with a class and a population."""
    mechanism = md.baselines.exponential(md.load_problem("line", cells=3, epsilon=2.0))
    random = np.random.default_rng(4)
    reports = md.sample(mechanism, random.choice(3, 1000, p=[0.5, 0.3, 0.2]), rng=2).values.ravel()
    shares = md.surveys.weighted_shares(
        mechanism,
        np.where(np.arange(1000) < 100, -1, reports),
        AREAS,
        weights=random.uniform(0.5, 3, 1000),
        by=np.where(np.arange(1000) % 3, "old", "young").tolist(),
        missing="class",
        population=5000,
        simultaneous=True,
    )
    return mechanism, shares


@needs_browser()
def test_differences_fit_a_phone_and_a_sheet(collection, tmp_path, open_page) -> None:
    """672 pixels are A4 within its margins. Neither the page nor the table of shares scrolls sideways."""
    mechanism, shares = collection
    (tmp_path / "w.html").write_text(page_of(shares, mechanisms=[mechanism]))
    page = open_page(tmp_path / "w.html", viewport={"width": 390, "height": 844}).page
    for width, media in ((390, "screen"), (672, "print")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(media=media)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator("#bars").locator("xpath=..")
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
        for head in ("95 % interval", "less all others", "persons"):
            assert page.locator(f'#bars td[data-head="{head}"]').first.is_visible()


def test_a_stored_estimate_is_computed_again(collection, tmp_path) -> None:
    mechanism, shares = collection
    loaded = md.surveys.load_estimate(md.save(shares, tmp_path / "w.nc"))
    assert loaded.identical(shares)
    check_weighted(loaded)
    check_weighted(loaded, [mechanism])
    other = md.baselines.exponential(md.load_problem("line", cells=3, epsilon=1.0))
    with pytest.raises(InputError, match="do not match the mechanisms"):
        check_weighted(loaded, [other])
    assert load_sealed(tmp_path / "w.nc", WEIGHTED, noun="an estimate").attrs["population"] == 5000


@pytest.mark.parametrize("name", [name for name in WEIGHTED.variables if name != "area_of"])
def test_a_changed_figure_is_refused(collection, name) -> None:
    mechanism, shares = collection
    values = shares[name].values.copy()
    values.flat[0] += 1 if values.dtype.kind == "i" else 1e-3 * max(1.0, abs(values.flat[0]))
    forged = rewritten(shares, **{name: (shares[name].dims, values, shares[name].attrs)})
    with pytest.raises(VerificationError, match="does not follow from the answers"):
        check_weighted(forged, [mechanism])


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": 0.9},
        {"population": 50_000.0},
        {"population": 1100.0},
        {"simultaneous": 0},
        {"missing_answers": "leave-out"},
        {"fit_p": 0.99},
        {"reports": 901},
        {"z": 1.96},
        {"reports_sha256": "0" * 64},
        {"reasons": json.dumps([["too few reports", None, None], [None] * 3])},
        {"area_of": ("secret", np.array([0, 1, 1]))},
        {"domains": json.dumps(["young"])},
    ],
    ids=lambda change: "-".join(map(str, change)),
)
def test_a_changed_statement_is_refused(collection, change) -> None:
    mechanism, shares = collection
    forged = rewritten(shares, **change)
    with pytest.raises((VerificationError, InputError)):
        check_weighted(forged, [mechanism])
    with pytest.raises(VerificationError):
        page_of(forged, mechanisms=[mechanism])


def test_the_page_has_the_figures_of_every_domain(collection) -> None:
    mechanism, shares = collection
    text = page_of(shares, mechanisms=[mechanism])
    assert "<script" not in text
    table = re.search(r'<table id="bars".*?</table>', text, re.S)[0]
    rows = re.findall(r'<th scope="row".*?>(.*?)</th>', table)
    assert sorted(rows) == sorted(f"{d}: {a}" for d in ("young", "old") for a in ("low", "high", "no answer"))
    for value in 100 * shares["share"].values.ravel():
        assert f"{value:.2f} %" in table
    largest = np.where(np.isfinite(shares["low"].values), shares["share"].values, -1).argmax()
    low, high = (100 * shares[end].values.flat[largest] for end in ("low", "high"))
    ends = [
        float(end) for end in re.search(r"Between ([0-9.]+) and ([0-9.]+) % of the people of domain", text).groups()
    ]
    # Outwards, by at most a third of the interval, or 1 point.
    assert low - max(1, (high - low) / 3) <= ends[0] <= low + 1e-9
    assert high - 1e-9 <= ends[1] <= high + max(1, (high - low) / 3)
    assert "Shares are those of 5,000 people" in text
    assert "less all others" in table
    assert f"{float(shares['design_effect'][0]):.3f}" in text


def test_command_writes_every_format_of_weighted_shares(run_json, tmp_path) -> None:
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    survey(tmp_path)
    words = ["estimate", tmp_path / "w.csv", tmp_path / "m.nc", "--weights", "w", "--by", "age"]
    files = [tmp_path / f"e{suffix}" for suffix in (".nc", ".html", ".csv", ".gpkg", ".parquet", ".geojson")]
    outputs = [word for path in files for word in ("-o", path)]
    code, printed = run_json(*words, "--areas", tmp_path / "districts.geojson", *outputs)
    assert code == 0
    frame = geopandas.read_file(tmp_path / "e.gpkg")
    assert len(frame) == len(printed["areas"]) == 6
    for row, (_, feature) in zip(printed["areas"], frame.iterrows(), strict=True):
        assert (row["domain"], row["area"]) == (feature["domain"], feature["area"])
        assert feature["share"] == pytest.approx(row["share"])
    assert geopandas.read_parquet(tmp_path / "e.parquet")["code"].tolist()[0] == 7
    code, _ = run_json("export", tmp_path / "e.nc", tmp_path / "m.nc", "-o", tmp_path / "again.html")
    assert code == 0
    assert run_json(*words, "--areas", tmp_path / "districts.geojson", "-o", tmp_path / "e.png")[0] == 2
