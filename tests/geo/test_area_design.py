"""`md.geo.design`: an area in one call, beside the command and the page that shows it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo import people as reader

pytest.importorskip("pyproj")
pytest.importorskip("shapely")

BOX = (2.34, 48.855, 2.355, 48.865)
WORDS = ["area", "--box", ",".join(map(str, BOX)), "--cell", "300"]
OF_A_RUN = {"seconds", "peak_mb", "file"}


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(4)
    places = rng.normal((48.858, 2.343), (0.02, 0.02), (400, 2))
    lines = ["latitude,longitude,population", *(f"{lat:.6f},{lon:.6f},{rng.integers(0, 60)}" for lat, lon in places)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.study
@needs("positions")
def test_the_call_on_the_page_makes_its_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how-to" / "area.md").read_text(encoding="utf-8")
    block = next(text for text in re.findall(r"```python\n(.*?)```", page, re.S) if "geo.design" in text)
    names: dict[str, object] = {}
    exec(compile(block, "area.md", "exec"), names)
    output = " ".join(capsys.readouterr().out.split())
    content = page.partition(block)[2].partition("`people=FILE`")[0]
    figures = re.findall(r"(\d+\.\d) m", content)
    assert figures == ["532.8", "514.5", "549.7"]
    assert [figure for figure in figures if f"{figure} m" not in output] == []
    assert names["loss"] == pytest.approx(532.73, abs=0.02)
    assert md.verify("rome.nc").certified


@needs("positions")
def test_the_call_is_the_command(run_json, tmp_path, people):
    """The command and the call write one file and one document."""
    area, file = md.geo.Area.box(*BOX), tmp_path / "a.nc"
    options = ["--factor", "4", "--program", "eikonal", "--radii", "300,2000", "-o", file]
    code, printed = run_json(*WORDS, "--people", people, "--people-per-disc", "600", *options)
    assert code == 0
    written, printed = file.read_bytes(), {name: printed[name] for name in printed if name not in OF_A_RUN}
    levels = md.geo.LevelsFromPeople(600, least=300.0, most=2000.0)
    outcome = md.geo.design(area, 300, factor=4, people=people, levels=levels, program="eikonal", name="a")
    md.save(outcome.mechanism, file, overwrite=True)
    document = outcome.report.to_json()
    assert file.read_bytes() == written
    chosen = printed.pop("chosen"), printed.pop("positions_reason")
    assert chosen == ("eikonal, as requested by --program", "--program eikonal protects only cells")
    assert (document["chosen"], document["positions_reason"]) == (
        "eikonal, as requested by `program`",
        "program='eikonal' protects only cells",
    )
    assert {name: document[name] for name in printed} == printed


def test_people_alone_are_the_prior(people):
    area = md.geo.Area.box(*BOX)
    outcome = md.geo.design(area, 300, epsilon=0.01, people=people, program="planar-laplace")
    domain = area.grid(300)
    expected = md.priors.from_density(md.geo.read_people(people, domain).density, domain)
    assert outcome.problem.prior_array == pytest.approx(expected)


@needs("posteriors")
def test_a_file_of_people_is_read_once(people, monkeypatch):
    read, count = reader.read_frame, []

    def count_reads(*given, **options):
        count.append(given)
        return read(*given, **options)

    monkeypatch.setattr(reader, "read_frame", count_reads)
    limit = md.posteriors.PosteriorCap(radius=300.0, share="60%")
    levels = md.geo.LevelsFromPeople(600, least=300.0, most=2000.0)
    outcome = md.geo.design(md.geo.Area.box(*BOX), 400, people=people, levels=levels, limit=limit, gap=0.1)
    assert len(count) == 1
    assert np.sum(outcome.limit.people) > 0
    assert outcome.verification.certified


@pytest.mark.parametrize(
    ("given", "words", "field", "named"),
    [
        ({}, [], "factor", ("within=200 factor=2, or epsilon=E", "--within 200 --factor 2, or --epsilon E")),
        ({"within": 200.0}, ["--within", "200"], "factor", ("within=200", "--within 200")),
        (
            {"epsilon": 0.01, "program": "optimal", "bound": False},
            ["--epsilon", "0.01", "--program", "optimal", "--no-bound"],
            "bound",
            ("a larger `gap` or a `time_limit`", "a larger --gap or a --time-limit"),
        ),
        (
            {"within": 100.0, "factor": 2.0, "positions": "cells"},
            ["--within", "100", "--factor", "2", "--positions", "cells"],
            "cell",
            ("use cell=100 or less, or positions='any'", "use --cell 100 or less, or --positions any"),
        ),
        (
            {"epsilon": 0.01, "prior": md.geo.RasterPrior("p.tif", kind="some")},
            ["--epsilon", "0.01", "--prior", "p.tif", "--prior-is", "some"],
            "prior_is",
            ("use counts or density", "use counts or density"),
        ),
    ],
)
def test_errors_name_arguments_or_options(run_json, tmp_path, given, words, field, named):
    with pytest.raises(InputError) as caught:
        md.geo.design(md.geo.Area.box(*BOX), 300, **given)
    assert caught.value.field == field
    assert named[0] in str(caught.value)
    code, output = run_json(*WORDS, *words, "-o", tmp_path / "a.nc")
    assert (code, output["error"]["field"]) == (2, field.replace("_", "-"))
    assert named[1] in output["error"]["message"]


@needs("posteriors")
@pytest.mark.parametrize("levels", [None, md.geo.LevelsFromPeople(600, least=300.0, most=2000.0)])
def test_limit_counts_the_people_of_the_prior(people, levels):
    """Next to water the people of a point live in its dry cells, and a margin adds points beyond the area."""
    west, south, east, north = BOX
    water = md.geo.Area.box((west + east) / 2, south, east + 0.01, north)
    limit = md.posteriors.PosteriorCap(radius=300.0, share="90%")
    level = {"epsilon": 0.01} if levels is None else {"levels": levels}
    outcome = md.geo.design(md.geo.Area.box(*BOX), 300, forbidden=water, people=people, limit=limit, gap=0.1, **level)
    counts = np.asarray(outcome.limit.people)
    assert counts / counts.sum() == pytest.approx(outcome.problem.prior_array)


def test_levels_from_people_need_people():
    with pytest.raises(InputError, match="need a CSV file"):
        md.geo.design(md.geo.Area.box(*BOX), 300, levels=md.geo.LevelsFromPeople(600))
