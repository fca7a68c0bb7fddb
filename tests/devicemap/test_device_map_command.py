"""`export` to a device map, and `verify` and `sample` from one."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fixtures.absent_capabilities import needs
from fixtures.device_maps import design, small_map
from fixtures.pages import page_of
from fixtures.random_device_maps import content

import mechdesign as md
from mechdesign.output.point_files.reports import PointOptions, file_words, sample_file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return md.export(design(), tmp_path_factory.mktemp("map") / "slope.compact")


def test_map_is_exported_verified_and_sampled(tmp_path: Path, run, run_json) -> None:
    design_file, target = md.save(design(), tmp_path / "slope.nc"), tmp_path / "slope.compact"
    assert run_json("export", design_file, "-o", target) == (0, {"file": str(target)})
    assert target.read_bytes() == content(small_map())
    code, out, _ = run("verify", target, "-v")
    assert code == 0
    words = " ".join(out.split())
    assert words.startswith("Certified. Protects cells, not positions: between two people however close, one report ")
    assert "every inequality of the claim holds, and no row sum exceeds its bound" in words
    assert "levels of the map" in words
    code, document = run_json("sample", target, "--at", "0.2", "5", "-n", "7", "--seed", "2")
    assert code == 0
    assert len(document["reports"]) == 7
    assert document["unit"] == "cell"
    assert document["claim"] == small_map().claim
    drawn = md.devicemap.MapSampler(small_map()).sample(at=(0.2, 5.0), size=7, rng=2)
    assert document["reports"] == drawn.values[0].tolist()
    assert document["report_x"] == drawn["report_x"].values[0].tolist()


def test_points_of_a_file_draw_from_their_cells(tmp_path) -> None:
    """Shares of the reports of each secret are the integers of its row over their sum, as a single draw has them."""
    made = small_map()
    cells = np.tile([3, 17, 3, 9], 4000)
    frame = pd.DataFrame(made.domain.points[cells], columns=["x", "y"]).assign(who=np.arange(16_000) % 5)
    frame.to_csv(tmp_path / "points.csv", index=False)
    document = sample_file(made, tmp_path / "points.csv", tmp_path / "r.csv", options=PointOptions(rng=3))
    reports = pd.read_csv(tmp_path / "r.csv")
    assert list(reports) == ["who", "report", "report_x", "report_y", "cost"]
    assert (reports["cost"] == 1).all()
    assert document["claim"] == made.claim
    assert any("no accuracy" in sentence for sentence in file_words(document))
    sampler = md.devicemap.MapSampler(made)
    for secret in (3, 9, 17):
        drawn = reports["report"][cells == secret]
        seen = np.bincount(drawn, minlength=24) / len(drawn)
        expected = np.bincount(sampler.sample([secret], 8000, rng=7).values[0], minlength=24) / 8000
        assert np.abs(seen - expected).max() < 5 * np.sqrt(0.25 / 8000 + 0.25 / len(drawn))
    places = np.abs(reports[["report_x", "report_y"]] - made.domain.points[reports["report"]])
    assert places.to_numpy().max() < 0.2
    equal = sample_file(made, tmp_path / "points.csv", tmp_path / "e.csv", options=PointOptions(person="who", rng=3))
    assert (equal["drawn"], equal["persons"]) == (15, 5)


@needs("web")
def test_map_page_states_claim(tmp_path: Path, file, run_json) -> None:
    target = tmp_path / "slope.html"
    assert run_json("export", file, "-o", target) == (0, {"file": str(target)})
    text = target.read_text()
    assert html.escape(small_map().claim, quote=False).replace("'", "&#39;") in text
    assert "Without scripts" in text
    assert text == page_of(small_map())


BAD = [
    (("export", "slope.nc", "-o", "new.compact", "--rows", "0:2"), "rows", 2),
    (("export", "slope.nc", "-o", "new.compact", "--degrees"), "degrees", 2),
    (("export", "slope.nc", "-o", "new.compact", "--with-verifier"), "with-verifier", 2),
    (("export", "line.nc", "-o", "line.compact"), "schema", 2),
    (("export", "slope.nc", "-o", "kept.compact"), "output", 2),
    (("verify", "damaged.compact"), "sha256", 1),
    (("sample", "damaged.compact", "--secret", "0"), "sha256", 1),
    (("sample", "slope.compact", "--secret", "24"), "secret", 2),
    (("sample", "slope.compact", "--at", "0", "0"), "at", 2),
    (("sample", "slope.compact", "--lon", "7", "--lat", "50"), "lon, lat", 2),
    (("export", "damaged.compact", "-o", "out"), "sha256", 1),
    (("export", "damaged.compact", "-o", "out.html"), "sha256", 1),
    (("export", "slope.compact", "-o", "out.txt"), "output", 2),
]


@pytest.fixture(scope="module")
def folder(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that BAD names; no command of it writes one."""
    folder = tmp_path_factory.mktemp("bad")
    content = file.read_bytes()
    (folder / "slope.compact").write_bytes(content)
    (folder / "kept.compact").write_bytes(content)
    (folder / "damaged.compact").write_bytes(content[:-40] + bytes(1) + content[-39:])
    md.save(design(), folder / "slope.nc")
    md.save(md.baselines.exponential(md.load_problem("line", cells=4)), folder / "line.nc")
    return folder


@needs("web")
@pytest.mark.parametrize(
    ("words", "field", "code"), BAD, ids=lambda word: " ".join(word) if type(word) is tuple else ""
)
def test_bad_map_input_is_named(words, field, code, folder, run_json, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    exit_code, document = run_json(*words)
    assert exit_code == code
    assert document["error"]["field"] == field
    assert sorted(folder.iterdir()) == before
