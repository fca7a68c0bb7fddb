"""People, reports and tables in the dialects of other programs: one answer, or a refusal; never another number."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from functools import cache

import pytest
from border_data import border_file
from dialects import DIALECTS, Dialect
from fixtures.absent_capabilities import needs
from hypothesis import HealthCheck, given, settings

import mechdesign as md
from mechdesign.errors import InputError

QUICK, MANY = 20, 200  # dialects
SHA = "ab12" * 16
GRID = md.Domain.grid((3, 2), cell=10.0, unit="m", origin=-5.0)
ROME = ("--box=12.462,41.872,12.498,41.908", "--cell", 1000, "--epsilon", 0.005)
TO_9_DIGITS = 1e-6  # of a probability from a likelihood to 1e-9 nats a report

REPORTS = (["x", "y", "count"], [["0.25", "7.5", "500"], ["10.125", "-2.5", "1250"], ["22.75", "14.5", "3"]])
COUNTS = [0, 500, 1250, 0, 0, 3]  # cells 1, 2 and 5 of the grid, x first: by hand
PEOPLE = (["latitude", "longitude", "population"], [["41.89", "12.49", "1000"], ["41.8805", "12.48", "2000"]])
RASTER = (["x", "y", "people"], [[f"{x}.5", f"{y}.25", f"{100 * x + y}"] for x in (10, 20) for y in (10, 20)])
TABLE = (["a", "b", "c"], [["0.5", "0.25", "0.25"], ["0.125", "0.75", "0.125"], ["0.25", "0.25", "0.5"]])
DRAWN = (["a", "b", "c"], [["60", "20", "20"], ["21", "59", "20"], ["18", "22", "60"]])


def counts_of(path, **options):
    return md.surveys.read_reports(path, {SHA: GRID}, **options)[SHA].tolist()


def read_as(kind, path):
    """The numbers of a file: counts, people by cell, values of a raster, or a table."""
    if kind == "reports":
        return counts_of(path)
    if kind == "people":
        domain = md.geo.Area.box(12.46, 41.87, 12.50, 41.90).grid(1000.0)
        return md.geo.read_people(path, domain).density.values.tolist()
    if kind == "raster":
        return md.read.raster(path, unit="m").values.tolist()
    return md.read.table(path).tolist()


FILES = {"reports": REPORTS, "raster": RASTER, "people": PEOPLE, "table": TABLE, "drawn": DRAWN}


@cache
def plain_numbers(kind, folder):
    """The numbers of a file in the plain dialect."""
    path = folder / f"plain {kind}.csv"
    path.write_bytes(Dialect().content(*FILES[kind]))
    return read_as(kind, path)


def check_dialect(dialect, folder):
    for kind, (head, rows) in FILES.items():
        path = folder / f"{kind}.csv"
        right = plain_numbers(kind, folder)
        path.write_bytes(dialect.content(head, rows))
        try:
            result = read_as(kind, path)
        except InputError:
            continue
        assert result == right, kind


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("pyproj")
    return tmp_path_factory.mktemp("dialects")


@given(dialect=DIALECTS)
@settings(max_examples=QUICK, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_dialect_changes_no_number(dialect, folder):
    check_dialect(dialect, folder)


@pytest.mark.exhaustive
@given(dialect=DIALECTS)
@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_dialects_change_no_number(dialect, folder):
    check_dialect(dialect, folder)


@pytest.mark.parametrize(
    "dialect",
    [
        Dialect(separator=";", decimal=",", encoding="utf-8-sig", end="\r\n"),
        Dialect(separator="\t", decimal=",", encoding="utf-16", end="\r\n"),
        Dialect(decimal=",", quotes="all"),
        Dialect(index="unnamed", blank=3, quotes="words"),
        Dialect(index="short", separator=" ", quotes="words", first=1),
        Dialect(separator=";", decimal=",", index="unnamed", first=1, quotes="words"),
        Dialect(capitals="upper", trailing=True, end="\r"),
    ],
)
def test_usual_dialects_are_understood(dialect, folder):
    for kind, (head, rows) in FILES.items():
        path = folder / f"usual {kind}.csv"
        path.write_bytes(dialect.content(head, rows))
        assert read_as(kind, path) == plain_numbers(kind, folder)
    assert read_as("reports", folder / "usual reports.csv") == COUNTS


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
def test_compressed_reports_are_read(tmp_path, suffix):
    content, path = Dialect(separator=";", decimal=",").content(*REPORTS), tmp_path / f"r.csv{suffix}"
    if suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__MACOSX/._r.csv", b"\x00")
            archive.writestr("r.csv", content)
    assert counts_of(path) == COUNTS
    if suffix == ".zip":
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("a.csv", content)
            archive.writestr("b.csv", content)
        path.write_bytes(other.getvalue())
        with pytest.raises(InputError, match="must hold one file"):
            counts_of(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("c03_reports_blank_last.csv", [500, 200, 200, 100]), ("c05_reports_tab.csv", [500, 200, 200, 100])],
)
def test_reports_of_an_office_are_counted(name, expected):
    counts = md.surveys.read_reports(border_file(name), {SHA: md.Domain.nodes(5)})
    assert counts[SHA].tolist() == [*expected, 0]


def test_people_with_semicolons_are_all_there():
    pytest.importorskip("pyproj")
    domain = md.geo.Area.box(12.46, 41.87, 12.50, 41.90).grid(1000.0)
    assert md.geo.read_people(border_file("c01_people_semicolon.csv"), domain).inside == 3000


@needs("geo", "surveys")
def test_degrees_in_x_and_y_are_refused(run, run_json, tmp_path):
    """60 % of reports in the south-west corner, cell 0, 40 % in the north-east one, cell 11, of 3 x 4 cells."""
    pytest.importorskip("pyproj")
    mechanism = tmp_path / "rome.nc"
    words = ("--positions", "cells", "--program", "planar-laplace", "-o", mechanism)
    assert run("area", *ROME, *words)[0] == 0
    code, right = run_json("estimate", border_file("s01_lonlat.csv"), mechanism, "--exit-zero")
    shares = {cell["cell"]: cell["probability"] for cell in right["cells"] if cell["probability"] > 0.01}
    assert (code, shares) == (0, {0: pytest.approx(0.6, abs=TO_9_DIGITS), 11: pytest.approx(0.4, abs=TO_9_DIGITS)})
    assert right["columns"] == {"read": ["longitude", "latitude", "count"], "ignored": []}
    code, document = run_json("estimate", border_file("s01_xy_degrees.csv"), mechanism)
    assert (code, document["error"]["field"]) == (2, "reports")
    assert "--columns longitude=x,latitude=y" in document["error"]["message"]
    code, out, err = run(
        "estimate",
        border_file("s01_xy_degrees.csv"),
        mechanism,
        "--columns",
        "longitude=x,latitude=y",
        "--exit-zero",
        "--json",
    )
    assert (code, json.loads(out)["cells"]) == (0, right["cells"])
    assert err.startswith("s01_xy_degrees.csv: read columns x, y, count.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("report,count\n0,<5\n1,7\n", "<5 in line 2.*missing and suppressed"),
        ("report,count\n0,5\n1,-\n", "- in line 3.*missing and suppressed"),
        ("report,count\n0,5\n1,NA\n", "NA in line 3.*missing and suppressed"),
        ("report,count\n0,5\n1,\n", "nothing in line 3.*missing and suppressed"),
        ("report,count\n0,5\n1,*\n", "missing and suppressed"),
        ("report,count\n0,5\n1,c\n", "missing and suppressed"),
        ("report\n0\n\n1\n", "nothing in line 3.*missing and suppressed"),
        ("report,count\n0,50%\n1,50%\n", "without %"),
        ('report,count\n0,"1,500"\n1,"2,500"\n', "decimals or thousands"),
        ("report;count\n0;1.500\n1;2.500\n", "decimals or thousands"),
        ("report;count\n0;1.000\n1;2.000\n", "decimals or thousands"),
        ("x;y;count\n0.5;1.25;1.000\n0.5;1.25;7\n", "decimals or thousands"),
        ('x,y,count\n"0,5","1,25","1,000"\n', "decimals or thousands"),
        ("report\tcount\n0\t1,000\n1\t2,000\n", "decimals or thousands"),
        ('report,count\n0,"1,000"\n1,7\n', "decimals or thousands"),
        ("report;count\n0;1,500\n1;2.5\n", "a comma beside decimal points"),
        ("report,count\n0,1 500\n1,2 500\n", "thousands separator"),
        ("report,count\n0,1'500\n1,2'500\n", "thousands separator"),
        ("x,y,count\n0,5,0,500\n1,5,0,400\n", "fields without a name|one name less"),
        ("report,count,n\n0,5,7\n", "either of which may be the count .*count, n"),
        ("report,lat,lon\n0,41.9,12.4\n", "two forms of a report"),
        ("x,y,report_x,report_y\n1,2,3,4\n", "2 columns that may be the x"),
        ("true_x,true_y\n1,2\n", "no column of reports"),
    ],
)
def test_ambiguous_numbers_are_refused(tmp_path, text, message):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        counts_of(tmp_path / "r.csv")


def test_ambiguous_columns_are_named(tmp_path):
    pytest.importorskip("pyproj")
    domain = md.geo.Area.box(12.46, 41.87, 12.50, 41.90).grid(1000.0)
    path = tmp_path / "p.csv"
    path.write_text("id,LAT,INTPTLAT,lon,pop_2010,pop_2020\n1,0,41.89,12.49,5,1000\n2,0,41.88,12.48,6,2000\n")
    with pytest.raises(InputError, match=r"latitude .*lat, intptlat.*columns=\{'latitude': 'lat'\}"):
        md.geo.read_people(path, domain)
    with pytest.raises(InputError, match=r"population .*pop_2010, pop_2020"):
        md.geo.read_people(path, domain, columns={"latitude": "intptlat"})
    result = md.geo.read_people(path, domain, columns={"latitude": "INTPTLAT", "population": "pop_2020"})
    assert result.inside == 3000


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("41.893;12.491;1000", 1000),
        ("41,893;12,491;1000", 1000),
        ("41.893;12.491;1.000", None),
        ("41,893;12,491;1,000", None),
        ("41,89;12,491;1.000", None),
        ("41,89;12,491;1 000", None),
        ("41,89;12,491;1000,0", 1000),
        ("41.89;12.4912;1.000", None),
        ("41,89;12,4912;1,000", None),
        ("41.89;12.4912;1000.5", 1000.5),
        ("41.89;12.4912;999.25", 999.25),
    ],
)
def test_thousands_of_people_are_not_read_as_one(tmp_path, line, expected):
    """Degrees of three decimals are read: as thousands they would not be degrees. People are not."""
    pytest.importorskip("pyproj")
    domain = md.geo.Area.box(12.46, 41.87, 12.50, 41.90).grid(1000.0)
    (tmp_path / "p.csv").write_text(f"latitude;longitude;population\n{line}\n")
    if expected is not None:
        assert md.geo.read_people(tmp_path / "p.csv", domain).inside == expected
    else:
        with pytest.raises(InputError, match=r"thousands|decimal points and decimal commas"):
            md.geo.read_people(tmp_path / "p.csv", domain)


@pytest.mark.parametrize(
    "head",
    [
        "INTPTLAT,INTPTLON,POP100", "decimalLatitude,decimalLongitude,people", "lat,lng,pop_2020",
        "Lat,Long,Population", "INTPTLAT20,INTPTLONG20,POP20", "latitude,longitude,Population 2021",
    ],
)  # fmt: skip
def test_usual_names_of_people_are_known(tmp_path, head):
    pytest.importorskip("pyproj")
    domain = md.geo.Area.box(12.46, 41.87, 12.50, 41.90).grid(1000.0)
    (tmp_path / "p.csv").write_text(f"{head}\n41.89,12.49,1000\n+41.88,012.48,2000\n")
    assert md.geo.read_people(tmp_path / "p.csv", domain).inside == 3000


def test_true_positions_and_index_are_ignored(tmp_path):
    (tmp_path / "r.csv").write_text(",secret,true_lon,home_lat,report,count\n0,9,12.5,41.9,1,3\n1,9,12.5,41.9,4,2\n")
    notes = []
    assert counts_of(tmp_path / "r.csv", on_note=notes.append) == [0, 3, 0, 0, 2, 0]
    assert notes == ["r.csv: read columns report, count; ignored the index, secret, true_lon, home_lat."]


@needs("surveys")
def test_columns_of_reports_may_have_other_names(run, run_json, tmp_path):
    mechanism, text = tmp_path / "m.nc", "antwort;anzahl;alter\n0;500;30\n1;200;40\n"
    md.save(md.baselines.randomized_response(md.load_problem("discrete", secrets=3)), mechanism)
    (tmp_path / "r.csv").write_text(text)
    (tmp_path / "plain.csv").write_text("report,count\n0,500\n1,200\n")
    code, result = run_json(
        "estimate", tmp_path / "r.csv", mechanism, "--columns", "report=antwort,count=anzahl", "--exit-zero"
    )
    assert (code, result["cells"]) == (0, run_json("estimate", tmp_path / "plain.csv", mechanism)[1]["cells"])
    assert result["columns"] == {"read": ["antwort", "anzahl"], "ignored": ["alter"]}
    for words in ("report", "report=a,report=b", "who=antwort", "report=", "report=antwort,count=antwort"):
        code, document = run_json("estimate", tmp_path / "r.csv", mechanism, "--columns", words)
        assert (code, document["error"]["field"]) == (2, "columns")
