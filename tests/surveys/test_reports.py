"""Reports of a CSV file: cells, positions, degrees, counts, several mechanisms; and invalid lines."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from mechdesign import Domain
from mechdesign.errors import FileFormatError, InputError
from mechdesign.geo import Plane
from mechdesign.surveys import read_reports

ONE, TWO = "ab12" * 16, "cd34" * 16
GRID = Domain.grid((3, 2), cell=10.0, unit="m", origin=-5.0, mask=[[True, True], [True, False], [True, True]])
POINTS = Domain.points_at([[0.0, 0.0], [1.0, 0.0], [0.0, 4.0]], unit="km")
LINE = Domain.grid(4, cell=1.0, unit="km")


def count_text(tmp_path, text, places=None, name="r.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8" if text.startswith("\ufeff") else "latin-1", "strict"))
    return {key: made.tolist() for key, made in read_reports(path, places or {ONE: GRID}).items()}


@pytest.mark.parametrize(
    "text",
    [
        "report\n0\n4\n4\n2\n",
        "cell,count\n0,1\n4,2\n2,1\n3,0\n",
        "time,Report \n1:05,0\n2:05,4\n3:05,4\n4:05,2\n",
        "report,secret_x,true_lon\n0,7,7\n4,7,7\n4,7,7\n2,7,7\n",
        "report\r0\r4\r4\r2\r",
        "report,city\n0,M\xfcnchen\n4,\n4,1\n2,Z\xfcrich\n",
        "x,y\n0,0\n19,9\n24.9,14.9\n14.99,-5\n",
        "report_y, report_x, count\n0, 0, 1\n9, 19, 2\n-5, 14.99, 1\n",
        f"# a comment\n# mechanism: {ONE}\nreport\n0\n4\n4\n2\n",
        f"report,mechanism\n0,{ONE}\n4,{ONE[:8]}\n4,{ONE[:12].upper()}\n2,{ONE}\n",
        "\ufeffreport\r\n0\r\n4\r\n4\r\n2\r\n",
    ],
)
def test_a_report_in_every_form(tmp_path, text):
    assert count_text(tmp_path, text) == {ONE: [1, 0, 1, 0, 2]}


def test_the_upper_border_of_the_grid_belongs_to_its_last_cells(tmp_path):
    assert count_text(tmp_path, "x,y\n25,15\n25,-5\n") == {ONE: [0, 0, 0, 1, 1]}


def test_degrees_find_cells_at_printed_digits(tmp_path):
    pytest.importorskip("pyproj")
    plane = Plane(latitude=48.85, longitude=2.35)
    domain = Domain.grid((5, 4), cell=150.0, unit="m", origin=-300.0, plane=plane)
    longitude, latitude = plane.backward(domain.points)
    kept = plane.decimals(150.0)
    lines = [f"{lon:.{kept}f},{lat:.{kept}f},{k}" for k, (lon, lat) in enumerate(zip(longitude, latitude, strict=True))]
    found = count_text(tmp_path, "lon,lat,count\n" + "\n".join(lines), {ONE: domain})
    assert found == {ONE: list(range(20))}
    for text, field in (("lon,lat\n2.5,48.85\n", "lies outside all cells"), ("lon,lat\n400,1\n", "longitude")):
        with pytest.raises(InputError, match=field):
            count_text(tmp_path, text, {ONE: domain})
    with pytest.raises(InputError, match="on Earth"):
        count_text(tmp_path, "lon,lat\n2.35,48.85\n")


def test_points_take_what_is_near_and_refuse_what_is_not(tmp_path):
    assert count_text(tmp_path, "x,y\n0.4,0\n1,0.3\n0,3.6\n", {ONE: POINTS}) == {ONE: [1, 1, 1]}
    with pytest.raises(InputError, match="outside all places") as caught:
        count_text(tmp_path, "x,y\n0,0\n0,2\n", {ONE: POINTS})
    assert caught.value.value == "0 2 in line 3"


def test_several_mechanisms_are_counted_apart(tmp_path):
    places = {ONE: LINE, TWO: POINTS}
    text = f"report,mechanism,count\n0,{ONE[:8]},5\n2,{TWO[:8]},7\n3,{ONE[:8]},1\n"
    assert count_text(tmp_path, text, places) == {ONE: [5, 0, 0, 1], TWO: [0, 0, 7]}
    assert count_text(tmp_path, f"# mechanism: {TWO}\nreport\n1\n", places) == {ONE: [0] * 4, TWO: [0, 1, 0]}
    with pytest.raises(FileFormatError, match="which mechanism"):
        count_text(tmp_path, "report\n0\n", places)
    with pytest.raises(InputError, match="no such report") as caught:
        count_text(tmp_path, f"report,mechanism\n3,{ONE}\n0,{TWO}\n3,{TWO}\n", places)
    assert caught.value.value == "3 in line 4"


def test_compressed_files_are_read_as_they_are(tmp_path):
    drawn = np.random.default_rng(0).integers(0, 5, 1_000)
    text = "report\n" + "\n".join(map(str, drawn)) + "\n"
    whole = count_text(tmp_path, text)
    assert whole == {ONE: np.bincount(drawn, minlength=5).tolist()}
    path = tmp_path / "r.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_reports(path, {ONE: GRID})[ONE].tolist() == whole[ONE]
    with pytest.raises(InputError) as caught:
        count_text(tmp_path, text + "9\n")
    assert caught.value.value == "9 in line 1002"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("report\n5\n", "no such report"),
        ("report\n-1\n", "no such report"),
        ("report\n0.5\n", "no such report"),
        ("report\n0\n\n1\n", "must be a finite number"),
        ("report\nnan\n", "must be a finite number"),
        ("report\ninf\n", "must be a finite number"),
        ("report\none\n", "must be a finite number .got one in line 2"),
        ("report\n1e400\n", "must be a finite number"),
        ("x,y\n0,nan\n", "must be a finite number"),
        ("x,y\n0\n", "y must be a finite number"),
        ("x,y\n10,10\n", "outside all cells"),
        ("x,y\n1e300,0\n", "outside all cells"),
        ("x,y\n-5.001,0\n", "outside all cells"),
        ("report,count\n1,-1\n", "integers"),
        ("report,count\n1,0.5\n", "integers"),
        ("report,count\n1,\n", "count must be a finite number"),
        ("report,count\n1,1e300\n", "integers"),
        ("report,count\n1,9e15\n1,9e15\n", "from 1 to 2"),
        ("report,count\n1,0\n", "from 1 to 2"),
        ("report\n", "from 1 to 2"),
        ("", "is empty"),
        ("\n", "is empty"),
        ("report,x,y\n0,7,7\n", "two forms of a report"),
        ("x,y,lon,lat\n0,7,7,7\n", "two forms of a report"),
        ("report,x\n0,7\n", "two forms of a report"),
        ("place\n1\n", "no column"),
        ("x\n1\n", "no column"),
        ("report,cell\n1,1\n", "2 columns that may be the report"),
        (f"report,mechanism\n1,{TWO}\n", "another mechanism"),
        ("report,mechanism\n1,ab12\n", "another mechanism"),
        ("report,mechanism\n1,\n", "another mechanism"),
        (f"# mechanism: {TWO}\nreport\n1\n", "another mechanism"),
    ],
)
def test_invalid_report_lines_are_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        count_text(tmp_path, text)
    assert caught.value.field == "reports"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        read_reports(tmp_path / "nowhere.csv", {ONE: GRID})


@pytest.mark.parametrize("name", ["n", "freq", "Anzahl", "", "id"])
def test_a_column_of_numbers_that_is_not_known_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="unknown numeric column"):
        count_text(tmp_path, f"report,{name}\n0,30\n4,\n2,7\n")


def test_columns_of_words_are_named(tmp_path):
    (tmp_path / "r.csv").write_text("report,when,count,who\n0,noon,3,a\n4,,2,b\n")
    notes = []
    assert read_reports(tmp_path / "r.csv", {ONE: GRID}, on_note=notes.append)[ONE].tolist() == [3, 0, 0, 0, 2]
    assert notes == ["r.csv: read columns report, count; ignored when, who."]


def test_utf_16_is_read_with_its_mark_and_refused_without(tmp_path):
    (tmp_path / "r.csv").write_bytes("report\n0\n".encode("utf-16"))
    assert read_reports(tmp_path / "r.csv", {ONE: GRID})[ONE].tolist() == [1, 0, 0, 0, 0]
    (tmp_path / "r.csv").write_bytes("report\n0\n".encode("utf-16-le"))
    with pytest.raises(FileFormatError, match="save it as UTF-8"):
        read_reports(tmp_path / "r.csv", {ONE: GRID})
