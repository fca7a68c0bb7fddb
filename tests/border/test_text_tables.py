"""Tables and places as people write them: labels are not data, and ambiguous numbers are refused.

Values are those of the folder's README, which computes them by loops over log-ratios; rows 600, 200, 200 give ln 3.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from border_data import border_file

import mechdesign as md
from mechdesign.errors import InputError

LN3 = float(np.log(3.0))
ROUNDED = 1e-9  # of a level that is rounded up by 2^-46 and more
COUNTS = np.array([[600.0, 200, 200], [200, 600, 200], [200, 200, 600]])
UNEQUAL = np.array([[612.0, 190, 190], [205, 601, 194], [188, 210, 650]])
UNEVEN = np.array([[10.0, 300, 90], [20, 70, 410], [30, 80, 300]])  # counts whose first column ascends
SHARES = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]])


def table(folder, text, name="t.csv", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return md.read.table(path, **options)


def lines(rows, separator=",", first=None, labels=None):
    """Text of rows of numbers, with a first line and labels before the rows."""
    body = [separator.join(f"{x:g}" for x in row) for row in rows]
    if labels is not None:
        body = [f"{label}{separator}{line}" for label, line in zip(labels, body, strict=True)]
    return "\n".join(([first] if first is not None else []) + body) + "\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("t01_table.csv", "euclidean", "--epsilon", 0.001, "--unit", "m", "--places", "t01_places_id.csv"), 0.0025),
        (("t03_ages_index.csv", "discrete", "--epsilon", 1.09), LN3),
        (("t05_header_ages.csv", "discrete", "--epsilon", 1.0), LN3),
    ],
)
def test_audit_leaves_labels_out(run, words, expected):
    name, metric, *rest = words
    rest = [border_file(word) if str(word).endswith(".csv") else word for word in rest]
    code, out, _ = run("audit", border_file(name), "--metric", metric, *rest, "--json")
    document = json.loads(out)
    assert code == 1
    assert document["verdict"] == "broken"
    assert document["effective_epsilon"] == pytest.approx(expected, rel=ROUNDED)


def test_long_form_has_one_order_of_words(run, tmp_path):
    """The loss of randomized response with 0/1 loss is 2 / (2 + e), that of the permuted table 0.788."""
    words = ("audit", border_file("t06_long_labels.csv"), "--metric", "discrete", "--epsilon", 1)
    code, out, err = run(*words, "-o", tmp_path / "fixed.nc", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["loss"] == pytest.approx(2 / (2 + np.e), rel=ROUNDED)
    assert np.diag(md.probabilities(md.load(tmp_path / "fixed.nc"))) == pytest.approx(np.e / (2 + np.e), rel=1e-6)
    assert "low, mid, high" in err


INDEXED = {
    "pandas, from 0": lines(COUNTS, first=",0,1,2", labels="012"),
    "R's write.csv": '"","V1","V2","V3"\n' + lines(COUNTS, labels=['"1"', '"2"', '"3"']),
    "R's write.table": '"V1" "V2" "V3"\n' + lines(COUNTS, " ", labels=['"1"', '"2"', '"3"']),
    "R's write.csv2": '"";"V1";"V2";"V3"\n' + lines(COUNTS, ";", labels=['"1"', '"2"', '"3"']),
    "a short line of numbers": "0 1 2\n" + lines(COUNTS, " ", labels="012"),
    "header of ages, named": lines(COUNTS, first="age,10,20,30", labels=[10, 20, 30]),
    "years before rows": lines(COUNTS, labels=[2019, 2020, 2021]),
    "ids in no order": lines(COUNTS, first="10,20,30"),
    "header of years": lines(COUNTS, first="2019,2020,2021"),
    "header from 1": lines(COUNTS, first="1,2,3"),
    "permuted numbers": lines(COUNTS[[2, 0, 1]], first=",0,1,2", labels="201"),
    "permuted columns": lines(COUNTS[:, [1, 2, 0]], first=",1,2,0", labels="012"),
    "two reports": lines(COUNTS[:, :2], first=",0,1", labels="012"),
    "words": lines(COUNTS, first=",low,mid,high", labels=["low", "mid", "high"]),
    "age bands": lines(COUNTS, first=",<18,18-64,65+", labels=["<18", "18-64", "65+"]),
    "running, unequal": lines(UNEQUAL, first="0,1,2"),
    "running column, unequal": lines(UNEQUAL, labels="012"),
    "a number in the corner": lines(UNEQUAL, first="0,0,1,2", labels="012"),
    "age, unequal": lines(UNEQUAL, first="age,a,b,c", labels=[18, 30, 50]),
    "Excel's tab": lines(COUNTS, "\t", first="\t10\t20\t30", labels=[10, 20, 30]),
}


@pytest.mark.parametrize("name", INDEXED)
def test_labels_of_counts_are_not_data(tmp_path, name):
    expected = UNEQUAL if "unequal" in name or "corner" in name else COUNTS
    assert np.array_equal(table(tmp_path, INDEXED[name]), expected[:, :2] if name == "two reports" else expected)


@pytest.mark.parametrize(
    ("first", "labels"),
    [
        (None, None),
        ("0,1,2", None),
        ("10,20,30", None),
        (None, "012"),
        (None, "123"),
        (None, [2019, 2020, 2021]),
        (",0.5,1.5,2.5", [0.5, 1.5, 2.5]),
        ("a,b,c", [17, 18, 19]),
        ("age,a,b,c", [17, 18, 19]),
    ],
)
def test_labels_of_probabilities_are_not_data(tmp_path, first, labels):
    if first == "a,b,c" and labels:
        first = "x," + first
    assert np.array_equal(table(tmp_path, lines(SHARES, first=first, labels=labels)), SHARES)


HONEST = {
    "equal sums, rising column": [[100.0, 800, 100], [200, 600, 200], [300, 400, 300]],
    "equal sums, rising line": [[100.0, 300, 600], [600, 300, 100], [300, 300, 400]],
    "identity": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
    "two deterministic rows": [[0.0, 1], [1, 0]],
    "no order": [[612.0, 190, 198], [205, 601, 194], [188, 210, 602]],
    "unequal, no order": [[612.0, 190, 190], [205, 601, 194], [188, 210, 650]],
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_counts_keep_all_their_numbers(tmp_path, name):
    assert table(tmp_path, lines(HONEST[name])).tolist() == HONEST[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines(UNEVEN), "first column may be labels or data"),
        (lines(UNEVEN.T), "first line may be labels or data"),
        ("40,200,790\n50,600,410\n", "first column may be labels or data"),
        ("1,5,3\n2,4,4\n3,3,5\n", "first column may be labels or data"),
        ("O.2,0.3,0.5\n0.5,0.25,0.25\n", "first line may be labels or data .*O.2"),
        ("0.2,O.3,0.5\n0.5,0.25,0.25\n", "row 0, column 1 is not a number .*O.3"),
        ("0.2,0.3,0.5\nO.5,0.25,0.25\n", "row 1, column 0 is not a number .*O.5"),
        ("0.5,0.5\n\u22120.25,1.25\n", "row 1, column 0 is not a number"),
        ("20,30\n5OO,250\n", "row 1, column 0 is not a number .*5OO"),
        ("0.5,0.5\n0.25,0.7_5\n", "row 1, column 1 is not a number .*0.7_5"),
        ("0.5,0.5\n0.25,0.7\uff15\n", "row 1, column 1 is not a number"),
        ("secret,report,probability\n0,0,1\n1,0,\uff11\n", "probability must be a finite number"),
        ("NA,0.5\n0.5,0.5\n", "missing and suppressed"),
        (",a,b,All\na,3,1,4\nb,2,2,4\n", "last column is the sum of the others"),
        (",a,b\na,3,1\nb,2,2\nTotal,5,3\n", "last row is the sum of the others"),
        (lines(UNEVEN, first="a,b,c"), "first column may be labels or data"),
        (lines(UNEVEN, labels=[31, 17, 23]), "first column may be labels or data"),
        ("50,60,20,21,3\n40,20,60,20,3\n70,21,19,60,9\n", "may be labels or data"),
        ("0,1\n0.5,0.5\n0.25,0.75\n", "first line may be labels or data"),
        ("low,10,20,30\nmid,20,50,30\nhigh,5,5,90\n", "first line may be labels or data"),
        ("9,20,69\n30,30,40\n50,25,25\n", "first line may be labels or data"),
        ("0,5,0,5\n0,25,0,75\n", "first line may be labels or data"),
        (",low,mid,high\nhigh,1,0,0\nlow,0,1,0\nmid,0,0,1\n", "same labels in two orders"),
        (",10,20,30\n30,1,0,0\n10,0,1,0\n20,0,0,1\n", "numbers that do not ascend"),
        (",a,b\na,1,0\na,0,1\n", "two secrets have one label"),
        ("0.5,0.5\n0.5,NA\n", "missing and suppressed"),
        ("5,<5\n7,8\n", "missing and suppressed"),
        ("a,b\n5,*\n7,8\n", "missing and suppressed"),
        ('1,"1,500"\n2,"2,500"\n', "decimals or thousands|first column"),
        ("secret,report,count\na,a,1\nb,z,4\n", "share some labels"),
        ("secret,report,probability,count\n0,0,1,4\n", "long form has"),
        ("secret,report,count\n0,0,50%\n0,1,50%\n", "count must be a finite number .*without %"),
    ],
)
def test_ambiguous_labels_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, text)
    assert caught.value.remedy or caught.value.value


def test_names_alike_make_an_ascending_column_data(tmp_path):
    assert np.array_equal(table(tmp_path, lines(UNEVEN, first="r0,r1,r2")), UNEVEN)
    assert np.array_equal(table(tmp_path, lines(UNEVEN[:, 1:], first=",r0,r1", labels=[10, 20, 30])), UNEVEN[:, 1:])


def test_labels_are_reported(tmp_path):
    notes = []
    table(tmp_path, lines(COUNTS, labels=[2019, 2020, 2021]), on_note=notes.append)
    assert notes == ["The first column of the table is taken as labels, not as data: 2019, 2020, 2021."]
    notes.clear()
    table(tmp_path, lines(HONEST["unequal, no order"]), on_note=notes.append)
    assert notes == ["All 3 x 3 numbers of the table are taken as data, none as labels."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secret,report,count\n10,10,3\n10,20,1\n20,20,4\n20,10,0\n", [[3, 1], [0, 4]]),
        ("secret;report;count\n2;1;5\n1;1;3\n1;2;1\n", [[3, 1], [5, 0]]),
        ("report,secret,probability\nb,a,25%\na,a,75 %\nb,b,1e2%\n", None),
        ("report,secret,probability\nb,a,25%\na,a,75 %\nb,b,100%\n", [[0.75, 0.25], [0, 1]]),
        ("secret,report,count\n2,b,1\n2,a,2\n0,a,3\n1,b,4\n", [[0, 3], [4, 0], [1, 2]]),
        ("Secret,Report,Count\nyes,no,1\nyes,yes,3\nno,yes,4\n", [[3, 1], [4, 0]]),
        ("secret,report,count\na,b,1\na,a,2\na,none,3\nb,b,4\n", [[2, 1, 3], [0, 4, 0]]),
    ],
)
def test_long_form_takes_labels_of_every_kind(tmp_path, text, expected):
    if expected is None:
        with pytest.raises(InputError, match="must be a finite number"):
            table(tmp_path, text)
    else:
        assert table(tmp_path, text).tolist() == expected


def test_columns_of_long_form_may_have_other_names(tmp_path):
    text = "wahr,antwort,anzahl\na,b,1\na,a,3\nb,b,4\n"
    columns = {"secret": "wahr", "report": "Antwort", "count": "anzahl"}
    assert table(tmp_path, text, columns=columns).tolist() == [[3, 1], [0, 4]]
    with pytest.raises(InputError, match="no column named n, which was given for count"):
        table(tmp_path, text, columns={**columns, "count": "n"})


PLACES = {
    "names": ("id,x,y\n7,0,5\n8,100,6\n", [[0, 5], [100, 6]]),
    "another order": ("y,id,x\n5,7,0\n6,8,100\n", [[0, 5], [100, 6]]),
    "an index": (",x,y\n0,0,5\n1,100,6\n", [[0, 5], [100, 6]]),
    "R, one name short": ('"x" "y"\n"1" 0 5\n"2" 100 6\n', [[0, 5], [100, 6]]),
    "decimal commas": ("x;y\n0,5;5\n1,5;6\n", [[0.5, 5], [1.5, 6]]),
    "one column": ("income\n10.5\n20\n", [[10.5], [20]]),
    "spelled": ("secret_x,secret_y\n0,5\n100,6\n", [[0, 5], [100, 6]]),
    "no header": ("0,5\n100,6\n", [[0, 5], [100, 6]]),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_go_by_their_names(tmp_path, name):
    text, expected = PLACES[name]
    (tmp_path / "p.csv").write_text(text)
    assert md.read.places(tmp_path / "p.csv").tolist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,income\n1,20\n2,30\n", "has no column named x"),
        ("id,y\n1,20\n2,30\n", "has no column named x"),
        ("lat,lon\n41.9,12.5\n41.8,12.4\n", "longitudes and latitudes, which are not lengths"),
        ("1000,0,0\n2000,100,0\n3000,0,100\n", "first column may be labels"),
        ("7,0,0\n3,100,0\n5,0,100\n", "first column may be labels"),
        ("1,10\n2,20\n3,40\n", "first column may be labels"),
        ("0,1\n5.5,6\n", "first line may be labels"),
        ("x\n0,5\n1,5\n", "commas may separate"),
    ],
)
def test_ambiguous_places_are_refused(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        md.read.places(tmp_path / "p.csv")


def test_commands_take_columns_of_other_names(run, run_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head, body = "secret;report;count\n", "a;a;3\na;b;1\nb;b;4\nb;a;2\n"
    (tmp_path / "plain.csv").write_text(head + body)
    (tmp_path / "own.csv").write_text("wahr;antwort;anzahl\n" + body)
    (tmp_path / "places.csv").write_text("id;ost;nord\n7;0,5;0\n8;100,5;0\n")
    (tmp_path / "xy.csv").write_text("x,y\n0.5,0\n100.5,0\n")
    names = ("--columns", "secret=wahr,report=antwort,count=anzahl,x=ost,y=nord")
    metric = ("--metric", "euclidean", "--epsilon", 0.01, "--unit", "m", "--places")
    code, document = run_json("audit", "own.csv", *metric, "places.csv", *names)
    assert (code, document) == (0, run_json("audit", "plain.csv", *metric, "xy.csv")[1])
    assert document["notes"] == ["Secrets and reports are taken in one order, that of the secrets in the file: a, b."]
    code, rows = run_json(
        "compare", "discrete", "--secrets", 2, "--with", "own.csv", *names[:1], names[1].split(",x=")[0]
    )
    assert [row["loss"] for row in rows if row["mechanism"] == "own"] == [pytest.approx(1 / 8 + 2 / 12)]
    code, error_document = run_json("audit", "places.csv", *metric, "places.csv", *names)
    assert (code, error_document["error"]["kind"]) == (2, "file")
    (tmp_path / "matrix.csv").write_text("0.5,0.5\n0.25,0.75\n")
    code, error_document = run_json("audit", "matrix.csv", *metric, "xy.csv", "--columns", "secret=wahr")
    assert (code, error_document["error"]["field"]) == (2, "columns")
