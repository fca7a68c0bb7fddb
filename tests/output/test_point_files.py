"""A file of points in, a file of reports out: columns, draws, repeated reports, refusals, and the first sentence."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError
from mechdesign.output.point_files import csv_points
from mechdesign.output.point_files.reports import PointOptions, file_words, sample_file
from mechdesign.problem.plane import Plane

ROME = md.Domain.grid((4, 5), cell=200.0, unit="m", origin=(-400.0, -500.0), plane=Plane(latitude=41.9, longitude=12.5))
FIJI = md.Domain.grid((4, 5), cell=200.0, unit="m", origin=(-400.0, -500.0), plane=Plane(latitude=-17, longitude=180))


def mechanism(domain: md.Domain = ROME, epsilon: float = 0.01):
    metric = md.Euclidean(epsilon=epsilon, unit=domain.unit)
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    return md.baselines.exponential(problem)


COST = float(md.Sampler(mechanism()).certificate.cost)


def save_frame(folder, frame, name="points.csv"):
    frame.to_csv(folder / name, index=False)
    return folder / name


def run_file(folder, frame, *, domain=ROME, output="reports.csv", **options):
    """The document of a run over a frame, and the frame of reports in a CSV file."""
    document = sample_file(
        mechanism(domain), save_frame(folder, frame), folder / output, options=PointOptions(**options), overwrite=True
    )
    return document, pd.read_csv(folder / output) if output.endswith(".csv") else None


def degrees_of(cells, domain=ROME):
    return domain.plane.backward(domain.points[cells])


def points(cells=(0, 7, 19), domain=ROME, **columns):
    east, north = degrees_of(list(cells), domain)
    return pd.DataFrame({**columns, "lon": east, "lat": north})


@needs("geo")
@pytest.mark.parametrize("domain", [ROME, FIJI])
def test_reports_are_those_of_the_sampler(tmp_path, domain) -> None:
    """By two routes: the file, and draws from the same bits; coordinates are those of the reported cells."""
    cells = np.arange(20).repeat(30)
    document, reports = run_file(tmp_path, points(cells, domain, note="007"), domain=domain, rng=5)
    expected = md.Sampler(mechanism(domain)).sample(cells, rng=np.random.default_rng(5)).values.ravel()
    assert (reports["report"] == expected).all()
    east, north = degrees_of(expected, domain)
    assert np.abs(reports["report_longitude"] - east).max() < 1e-3
    assert np.abs(reports["report_latitude"] - north).max() < 1e-3
    assert list(reports) == ["note", "report", "report_longitude", "report_latitude", "accuracy", "cost"]
    assert (tmp_path / "reports.csv").read_text().splitlines()[1].startswith("007,")
    assert document["left_out"] == ["lon", "lat"]


def test_axes_and_secrets_are_places_too(tmp_path) -> None:
    plain = md.Domain.grid((4, 5), cell=200.0, unit="m")
    by_axes = pd.DataFrame({"x": plain.points[:, 0] + 99, "y": plain.points[:, 1] - 99})
    by_number = pd.DataFrame({"secret": range(20)})
    drawn = [run_file(tmp_path, frame, domain=plain, rng=2)[1] for frame in (by_axes, by_number)]
    assert (drawn[0]["report"] == drawn[1]["report"]).all()
    assert list(drawn[0]) == ["report", "report_x", "report_y", "accuracy", "cost"]
    assert np.abs(drawn[0][["report_x", "report_y"]] - plain.points[drawn[0]["report"]]).to_numpy().max() < 20


@needs("geo")
def test_equal_points_of_a_person_share_a_report(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(csv_points, "ROWS", 7)  # persons are remembered from part to part
    cells = np.tile([0, 7, 0, 19, 7], 40)
    people = np.repeat(np.arange(20), 10).astype(str)
    document, reports = run_file(tmp_path, points(cells, who=people), person="who")
    reports["cell"] = cells
    assert (reports.groupby(["who", "cell"])["report"].nunique() == 1).all()
    # Persons are independent: not all have the same report for one cell.
    assert reports[reports["cell"] == 7]["report"].nunique() > 1
    first = ~reports.duplicated(["who", "cell"])
    assert (reports["cost"] == np.where(first, COST, 0)).all()
    assert (document["drawn"], document["repeated"], document["persons"]) == (60, 140, 20)
    assert document["most_reports_of_one"] == 3
    assert document["largest_cost_of_one"] == pytest.approx(3 * COST)
    assert "up to 3 times the distance" in next(iter(file_words(document)))


@needs("geo")
def test_first_sentence_adds_up_reports_without_persons(tmp_path) -> None:
    document, _ = run_file(tmp_path, points())
    first = next(iter(file_words(document)))
    assert first.startswith("3 reports add up: k of them from one person")
    assert document["largest_cost_of_one"] == pytest.approx(3 * COST)


@needs("geo")
def test_outside_points_are_refused_or_left_empty(tmp_path) -> None:
    frame = points()
    frame.loc[1, ["lon", "lat"]] = [13.5, 41.9]
    frame.loc[2, "lat"] = np.nan
    with pytest.raises(InputError, match="row 2, and 1 more") as caught:
        run_file(tmp_path, frame)
    assert "13.5" not in str(caught.value)
    assert not (tmp_path / "reports.csv").exists()
    document, reports = run_file(tmp_path, frame, outside="empty")
    assert document["empty"] == 2
    assert reports.drop(index=0).isna().all(axis=None)
    assert any("2 of 3 points have no report" in sentence for sentence in file_words(document))


@needs("geo")
def test_other_positions_are_left_out_unless_kept(tmp_path) -> None:
    leaks = {"home_lat": 1.0, "street": "Via", "decimalLatitude2": 3, "geometry": "POINT (1 2)", "ele": 4, "speed": 5}
    frame = points(**leaks)
    document, reports = run_file(tmp_path, frame, keep=["street"])
    assert list(reports)[:2] == ["street", "speed"]
    assert document["left_out"] == ["home_lat", "decimalLatitude2", "geometry", "ele", "lon", "lat"]


@needs("geo")
@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (points(x=1.0, y=2.0), {}, "several columns"),
        (points(who=["a", "", "b"]), {"person": "who"}, "names no person"),
        (points(), {"person": "who"}, "not a column"),
        (points(), {"outside": "nearest"}, "unknown choice"),
        (points(report=1), {}, "name of one that is added"),
        (pd.DataFrame({"lon": ["12.5", "east"], "lat": [41.9, 41.9]}), {}, "must be a number"),
        (pd.DataFrame({"lon": [500000.0], "lat": [41.9]}), {}, "within 180"),
        (pd.DataFrame({"name": ["a"]}), {}, "no column for the place"),
        (pd.DataFrame({"x": [12.5], "y": [41.9]}), {}, "in degrees, and the map is in m"),
    ],
)
def test_doubtful_files_are_refused(tmp_path, frame, options, message) -> None:
    with pytest.raises(InputError, match=message):
        run_file(tmp_path, frame, **options)
    assert not (tmp_path / "reports.csv").exists()


@needs("geo")
def test_texts_of_other_countries_are_read(tmp_path) -> None:
    east, north = degrees_of([3])
    line = f'# a comment\nBreite;Länge;Ort\n{north[0]:.6f};{east[0]:.6f};"a;\nb"\n'.replace(".", ",")
    (tmp_path / "points.csv").write_text("\ufeff" + line, "utf-8")
    options = PointOptions(columns={"latitude": "breite", "longitude": "länge"}, rng=1)
    sample_file(mechanism(), tmp_path / "points.csv", tmp_path / "reports.csv", options=options)
    reports = pd.read_csv(tmp_path / "reports.csv")
    assert reports["Ort"].tolist() == ["a;\nb"]
    assert reports["report"][0] == md.Sampler(mechanism()).sample([3], rng=np.random.default_rng(1)).item()


@needs("geo")
def test_geojson_and_gpx_hold_the_reported_places(tmp_path) -> None:
    cells = [0, 7, 7, 19]
    frame = points(cells, name=["a", "b", "b", "c<"])
    expected = md.Sampler(mechanism()).sample(cells, rng=np.random.default_rng(3)).values.ravel()
    east, north = degrees_of(expected)
    run_file(tmp_path, frame, output="a.geojson", rng=3)
    collection = json.loads((tmp_path / "a.geojson").read_text())["features"]
    at = np.array([feature["geometry"]["coordinates"] for feature in collection])
    assert np.abs(at - np.column_stack([east, north])).max() < 1e-3
    assert collection[3]["properties"]["name"] == "c<"
    # The file of reports is itself a file of points: read back, its points are the reported cells.
    sample_file(mechanism(epsilon=1e3), tmp_path / "a.geojson", tmp_path / "b.gpx", options=_rename_added(tmp_path))
    sample_file(mechanism(epsilon=1e3), tmp_path / "b.gpx", tmp_path / "c.csv")
    again = pd.read_csv(tmp_path / "c.csv")
    assert again["report"].tolist() == expected.tolist()
    assert again["name"].tolist() == ["a", "b", "b", "c<"]


def _rename_added(folder):
    """Options for the file of reports, whose added columns are renamed first."""
    text = (folder / "a.geojson").read_text()
    for name in ("report", "accuracy", "cost"):
        text = text.replace(f'"{name}"', f'"first {name}"')
    (folder / "a.geojson").write_text(text)
    return PointOptions()


@needs("geo")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.geojson", '{"type": "FeatureCollection"}', "FeatureCollection"),
        ("a.geojson", "[]", "FeatureCollection"),
        ("a.geojson", '{"features": [{"geometry": {"type": "MultiPoint", "coordinates": []}}]}', "hold points"),
        ("a.geojson", '{"crs": {"properties": {"name": "EPSG:3857"}}, "features": []}', "not in degrees"),
        ("a.geojson", '{"features": [{"geometry": null}', "FeatureCollection"),
        ("a.geojson", '{"features": []}', "no points"),
        ("a.gpx", "<!DOCTYPE gpx><gpx/>", "document type"),
        ("a.gpx", "<gpx><wpt lat='1'", "cannot be read"),
        ("a.doc", "", "not a known kind"),
    ],
)
def test_damaged_layers_are_refused(tmp_path, name, text, message) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        sample_file(mechanism(), tmp_path / name, tmp_path / "r.csv")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@needs("geo")
def test_parquet_keeps_types_and_has_points(tmp_path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra: pip install 'mechdesign[parquet]'")
    frame = points(count=[1, 2, 3], ok=[True, False, True])
    frame.to_parquet(tmp_path / "points.parquet", index=False)
    document = sample_file(mechanism(), tmp_path / "points.parquet", tmp_path / "reports.parquet")
    table = parquet.read_table(tmp_path / "reports.parquet")
    assert [str(table.schema.field(name).type) for name in ("count", "ok", "report")] == ["int64", "bool", "int64"]
    assert document["left_out"] == ["lon", "lat"]
    located = np.array([np.frombuffer(content, "<f8", 2, 5) for content in table["geometry"].to_pylist()])
    east, north = degrees_of(table["report"].to_numpy())
    assert np.abs(located - np.column_stack([east, north])).max() < 1e-3
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    assert geopandas.read_parquet(tmp_path / "reports.parquet").crs.to_epsg() in (4326, None)


@needs("geo")
def test_geopackage_is_read_in_its_system(tmp_path) -> None:
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    frame = points(name=["a", "b", "c"])
    located = geopandas.GeoDataFrame(
        frame[["name"]], geometry=geopandas.points_from_xy(frame["lon"], frame["lat"]), crs=4326
    )
    for name in ("points.gpkg", "points.shp", "points.fgb"):
        located.to_crs(32633).to_file(tmp_path / name)
        output = tmp_path / f"{name}.reports.gpkg"
        sample_file(mechanism(), tmp_path / name, output, options=PointOptions(rng=3))
        reports = geopandas.read_file(output)
        expected = md.Sampler(mechanism()).sample([0, 7, 19], rng=np.random.default_rng(3)).values.ravel()
        order = reports["name"].map({"a": 0, "b": 1, "c": 2}).to_numpy()  # FlatGeobuf sorts by place
        assert sorted(order) == [0, 1, 2]
        assert name.endswith("fgb") or (reports["report"] == expected[order]).all()
        east, north = degrees_of(reports["report"].to_numpy())
        assert np.abs(reports.geometry.x - east).max() < 1e-3
        assert np.abs(reports.geometry.y - north).max() < 1e-3
        assert reports.crs.to_epsg() == 4326


@needs("geo")
def test_a_frame_returns_as_a_frame_in_its_system() -> None:
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    frame = points(name=["a", "b", "c"])
    located = geopandas.GeoDataFrame(
        frame[["name"]], geometry=geopandas.points_from_xy(frame["lon"], frame["lat"]), crs=4326
    ).to_crs(32633)
    reports = md.sample(mechanism(), at=located.rename_geometry("place"), rng=3)
    expected = md.sample(mechanism(), [0, 7, 19], rng=3).values.ravel()
    assert list(reports) == ["name", "place", "report", "accuracy", "cost"]
    assert (reports["report"] == expected).all()
    assert reports.crs == located.crs
    east, north = degrees_of(expected)
    assert np.abs(reports.to_crs(4326).geometry.x - east).max() < 1e-3
    assert np.abs(reports.to_crs(4326).geometry.y - north).max() < 1e-3
    with pytest.raises(InputError, match="no coordinate system"):
        md.sample(mechanism(), at=located.set_crs(None, allow_override=True))
    with pytest.raises(InputError, match="outside"):
        md.sample(mechanism(), at=located.translate(1e4).to_frame("geometry"))


@needs("geo")
def test_degrees_return_degrees() -> None:
    east, north = degrees_of([0, 7])
    reports = md.sample(mechanism(), degrees=np.column_stack([east, north]), size=4, rng=3)
    assert (reports.values == md.sample(mechanism(), [0, 7], 4, rng=3).values).all()
    expected = degrees_of(reports.values.ravel())[0].reshape(2, 4)
    assert np.abs(reports["report_longitude"].values - expected).max() < 1e-3
    with pytest.raises(InputError, match="exchanged"):
        md.sample(mechanism(), degrees=[[41.9, 12.5]])
    with pytest.raises(InputError, match="one of secrets"):
        md.sample(mechanism(), [0], degrees=[[12.5, 41.9]])


def test_command_writes_a_file_and_still_takes_one_place(run, tmp_path) -> None:
    plain = md.Domain.grid((4, 5), cell=200.0, unit="m")
    md.save(mechanism(plain), tmp_path / "m.nc")
    points_file = save_frame(tmp_path, pd.DataFrame({"x": [1.0, 700.0], "y": [1.0, 900.0], "who": ["a", "a"]}))
    words = ("sample", tmp_path / "m.nc", points_file, "-o", tmp_path / "r.csv")
    code, out, _ = run(*words, "--id", "who", "--json")
    assert code == 0
    assert json.loads(out)["most_reports_of_one"] == 2
    assert run(*words)[0] == 2  # exists already
    code, out, err = run("sample", tmp_path / "m.nc", "--at", "1", "2", "--json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["reports"]) == 1
    for wrong in (("--at", "1"), ("-n", "3"), ("--lon", "3")):
        assert run(*words, "--overwrite", *wrong)[0] == 2
    assert run("sample", tmp_path / "m.nc", points_file)[0] == 2
    assert run("sample", tmp_path / "m.nc", "--secret", "1", "--id", "who")[0] == 2
    code, _, err = run(*words, "--overwrite", "--id", "nobody")
    assert code == 2
    assert "id: is not a column" in err


def test_refused_format_is_a_file_error(tmp_path) -> None:
    (tmp_path / "points.csv").write_text("x,x\n1,2\n")
    with pytest.raises(FileFormatError, match="two columns of one name"):
        sample_file(mechanism(), tmp_path / "points.csv", tmp_path / "r.csv")


def test_cells_that_are_not_secrets_are_refused(tmp_path) -> None:
    """Reports are the middles of 2 x 2 secrets: a number of a cell could be either."""
    secrets = md.Domain.grid((4, 4), cell=100.0, unit="m")
    problem = md.DesignProblem(
        domain=secrets, metric=md.Euclidean(epsilon=0.01, unit="m"), prior=md.priors.uniform(secrets),
        loss=md.losses.Distance(), reports=md.Domain.grid((2, 2), cell=200.0, unit="m"),
    )  # fmt: skip
    made = md.solve(problem)
    for name, columns in (("cell", None), ("cell", {"secret": "cell"}), ("secret", None)):
        points_file = save_frame(tmp_path, pd.DataFrame({name: [0, 15]}))
        options = PointOptions(columns=columns)
        if columns is None and name == "cell":
            with pytest.raises(InputError, match="is ambiguous"):
                sample_file(made, points_file, tmp_path / "r.csv", options=options)
        else:
            assert sample_file(made, points_file, tmp_path / "r.csv", options=options, overwrite=True)["drawn"] == 2


def test_labels_of_classes_are_places(tmp_path) -> None:
    classes = md.Domain.classes(["yes", "no", "rather not"])
    problem = md.DesignProblem(
        domain=classes, metric=md.Discrete(epsilon=1.0), prior=md.priors.uniform(classes), loss=md.losses.ZeroOne()
    )
    md.save(md.baselines.randomized_response(problem), tmp_path / "m.nc")
    answers = save_frame(tmp_path, pd.DataFrame({"label": ["no", "yes", "2", "no", "maybe"], "who": range(5)}))
    options = PointOptions(outside="empty", rng=4)
    sample_file(md.load(tmp_path / "m.nc"), answers, tmp_path / "r.csv", options=options)
    reports = pd.read_csv(tmp_path / "r.csv")
    random = np.random.default_rng(4)
    expected = md.Sampler(md.load(tmp_path / "m.nc")).sample([1, 0, 2, 1], rng=random).values.ravel()
    assert reports["report"].tolist()[:4] == expected.tolist()
    assert np.isnan(reports["report"][4])
    assert list(reports) == ["who", "report", "report_label", "cost"]
    assert reports["report_label"][0] == ("yes", "no", "rather not")[expected[0]]
