"""Files of points as people have them: each is understood, or refused with one sentence without the position."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from fixtures.absent_capabilities import needs
from test_point_files import mechanism

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.output.point_files.reports import PointOptions, file_words, sample_file
from mechdesign.problem.plane import Plane

EAST, NORTH = 12.5004, 41.9003  # two points of the map: this one, and one 30 m to the west
POINTS = ((EAST, NORTH), (EAST - 0.0004, NORTH))
GEOJSON = {"type": "FeatureCollection", "features": []}
TRACK = (
    '<gpx xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="{1}" lon="{0}"/>'
    '<trk><trkseg><trkpt lat="{3}" lon="{2}"><ele>20</ele></trkpt></trkseg></trk></gpx>'
)


def table(head="lon,lat", rows=POINTS, mark=".", separator=",") -> str:
    lines = [separator.join(f"{value:.6f}".replace(".", mark) for value in row) for row in rows]
    return "\n".join([head.replace(",", separator), *lines]) + "\n"


def feature(*position: float) -> dict:
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": position}, "properties": {}}


UNDERSTOOD = {
    "bom.csv": "\ufeff" + table(),
    "semicolons.csv": table(mark=",", separator=";"),
    "tabs.tsv": table(separator="\t"),
    "order.csv": table("Latitude,Longitude", [point[::-1] for point in POINTS]),
    "lng.csv": table("lat,lng", [point[::-1] for point in POINTS]),
    "quoted.csv": table().replace("lon,lat", '"lon","lat"'),
    "crlf.csv": table().replace("\n", "\r\n"),
    "track.gpx": TRACK.format(*POINTS[0], *POINTS[1]),
    "heights.geojson": json.dumps({**GEOJSON, "features": [feature(*point, 55.0) for point in POINTS]}),
}
REFUSED = {
    "empty.csv": ("", "is empty"),
    "bom.csv": ("\ufeff", "is empty"),
    "head.csv": ("lon,lat\n", "has no points"),
    "nan.csv": (table() + "NaN,NaN\n", "no position (got the point in row 3)"),
    "half.csv": (table() + f"{EAST},\n", "no position (got the point in row 3)"),
    "exchanged.csv": (table("lat,lon"), "exchanged; name them: columns={'longitude': 'lat', 'latitude': 'lon'}"),
    "metres.csv": (table("lon,lat", [(500_000.0, 4_640_000.0)]), "latitude within 90 degrees (got row 1)"),
    "degrees.csv": (
        table("x,y"),
        "are in degrees, and the map is in m (got x, y); name them: columns={'longitude': 'x'",
    ),
    "words.csv": ("lon,lat\n12.5004E,41.9003N\n", "lon must be a number (got row 1)"),
    "twice.csv": ("lon,lat,lat\n1,2,3\n", "two columns of one name"),
    "empty.geojson": (" \n", "is empty"),
    "exchanged.geojson": (json.dumps({**GEOJSON, "features": [feature(NORTH, EAST)]}), "write the longitude first"),
    "single.geojson": (json.dumps(feature(EAST, NORTH)), "must be a FeatureCollection"),
    "words.gpx": ("<gpx><wpt lat='north' lon='1'/></gpx>", "has no number as lat (got point 1)"),
    "half.gpx": ("<gpx><wpt lat='1'/></gpx>", "has no number as lon (got point 1)"),
    "none.gpx": ("<gpx></gpx>", "has no points"),
}


@needs("geo")
@pytest.mark.parametrize("name", UNDERSTOOD)
def test_member_is_understood(tmp_path, name) -> None:
    (tmp_path / name).write_bytes(UNDERSTOOD[name].encode())
    (tmp_path / "plain.csv").write_text(table())
    listed = []
    for source in (name, "plain.csv"):
        sample_file(mechanism(), tmp_path / source, tmp_path / "r.csv", options=PointOptions(rng=1), overwrite=True)
        listed.append(pd.read_csv(tmp_path / "r.csv")[["report", "report_longitude", "report_latitude"]])
    assert len(listed[0]) == 2
    assert listed[0].equals(listed[1])


@needs("geo")
@pytest.mark.parametrize("name", REFUSED)
def test_member_is_refused_with_a_sentence(tmp_path, name) -> None:
    text, message = REFUSED[name]
    (tmp_path / name).write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        sample_file(mechanism(), tmp_path / name, tmp_path / "r.csv")
    sentence = str(caught.value)
    assert message in sentence
    assert "\n" not in sentence
    assert not any(f"{value:.4f}"[:6] in sentence for value in (EAST, NORTH))
    assert not (tmp_path / "r.csv").exists()


@needs("geo")
def test_one_row_has_its_own_sentence(tmp_path) -> None:
    (tmp_path / "one.csv").write_text(table(rows=POINTS[:1]))
    document = sample_file(mechanism(), tmp_path / "one.csv", tmp_path / "r.csv")
    assert next(iter(file_words(document))).startswith("One report satisfies the claim")


@needs("geo")
def test_many_rows_of_one_person_share_a_report(tmp_path) -> None:
    (tmp_path / "same.csv").write_text("lon,lat,user\n" + f"{EAST},{NORTH},7\n" * 5_000)
    document = sample_file(mechanism(), tmp_path / "same.csv", tmp_path / "r.csv", options=PointOptions(person="user"))
    assert (document["drawn"], document["repeated"], document["persons"]) == (1, 4_999, 1)
    assert pd.read_csv(tmp_path / "r.csv")["report"].nunique() == 1


@needs("geo")
def test_a_gpx_file_leaves_empty_reports_out(tmp_path) -> None:
    (tmp_path / "p.csv").write_text(table(rows=[*POINTS, (13.5, 41.9)]))
    options = PointOptions(outside="empty")
    document = sample_file(mechanism(), tmp_path / "p.csv", tmp_path / "r.gpx", options=options)
    assert (tmp_path / "r.gpx").read_text().count("<wpt ") == 2
    assert document["empty"] == 1
    assert any("The file leaves them out" in sentence for sentence in file_words(document))
    document = sample_file(mechanism(), tmp_path / "p.csv", tmp_path / "r.geojson", options=options)
    assert not any("The file leaves them out" in sentence for sentence in file_words(document))


@needs("geo")
def test_points_across_180_degrees_lie_in_their_cells(tmp_path) -> None:
    plane = Plane(latitude=-16.85, longitude=179.999)
    domain = md.Domain.grid((4, 2), cell=200.0, unit="m", origin=(-400.0, -200.0), plane=plane)
    metric = md.Euclidean(epsilon=1.0, unit="m")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=np.full(8, 1 / 8), loss=md.losses.Distance())
    east, north = plane.backward(domain.points)
    assert (east < 0).any()
    # A report is nearly always the cell itself: epsilon times the side of a cell is 200 nats.
    for turn in (0, 360):
        longitude = np.where(east < 0, east + turn, east)
        frame = pd.DataFrame({"lon": longitude, "lat": north})
        frame.to_csv(tmp_path / "p.csv", index=False)
        if turn == 0:
            sample_file(md.baselines.exponential(problem), tmp_path / "p.csv", tmp_path / "r.csv", overwrite=True)
            assert pd.read_csv(tmp_path / "r.csv")["report"].tolist() == list(range(8))
        else:
            with pytest.raises(InputError, match="longitude within 180"):
                sample_file(md.baselines.exponential(problem), tmp_path / "p.csv", tmp_path / "q.csv")
