"""`mechdesign sample`: locations become cells by a stated rule, and reports come out as cells."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.factored_mechanisms import factored_mechanism
from fixtures.forged_files import rewritten

import mechdesign as md
from mechdesign import baselines, save
from mechdesign.errors import InputError
from mechdesign.problem.locate import identifying_digits, place_at, round_coordinate

MASK = np.array([[True, True, True], [True, False, True]])
RIVER = md.Domain.grid((2, 3), cell=(0.25, 1.5), unit="km", origin=(-0.25, 10.0), mask=MASK)


def mechanism(domain: md.Domain = RIVER):
    metric = md.Euclidean(epsilon=2.0, unit="km")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    return baselines.exponential(problem)


@pytest.fixture
def run(run, tmp_path):
    """Run `mechdesign sample` on a file: exit code, stdout and stderr."""
    path = save(mechanism(), tmp_path / "m.nc")
    return lambda *words, file=path: run("sample", file, *words)


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ((-0.25, 10.0), 0),
        ((-0.2, 11.4999), 0),
        ((-0.2, 11.5), 1),
        ((-1e-300, 14.5), 2),
        ((0.0, 10.0), 3),
        ((0.25, 14.5), 4),
        ((0.125, 13.75), 4),
    ],
)
def test_a_location_belongs_to_the_cell_around_it(location, place) -> None:
    assert place_at(RIVER, location) == place
    assert (np.abs(np.array(location) - RIVER.points[place]) <= np.array(RIVER.cell) / 2).all()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ((0.2500001, 12.0), "outside"),
        ((-0.26, 12.0), "outside"),
        ((0.1, 9.99), "outside"),
        ((0.1, 12.0), "masked"),
        ((0.1,), "2 finite"),
        ((0.1, 12.0, 0.0), "2 finite"),
        ((float("nan"), 12.0), "2 finite"),
        ((0.1, float("inf")), "2 finite"),
        ((1e308, -1e308), "outside"),
    ],
)
def test_no_location_is_moved_further(location, message) -> None:
    with pytest.raises(md.errors.InputError, match=message) as caught:
        place_at(RIVER, location)
    assert caught.value.field == "at"


def test_numbers_beyond_a_scale_count_for_its_last_cell() -> None:
    sampler = md.Sampler(md.baselines.geometric(md.load_problem("line", cells=4)))
    beyond, last = (sampler.sample(at=[[x]], size=50, rng=1) for x in (1e9, 3.9))
    assert beyond["secret"] == last["secret"] == 3
    assert (beyond.values == last.values).all()
    assert sampler.sample(at=[[-5.0]], rng=1)["secret"] == 0
    with pytest.raises(md.errors.InputError, match="no thousands separator"):
        sampler.sample(at=[[85.0, 0.0]])


def test_places_without_cells_are_named_exactly() -> None:
    domain = md.Domain.points_at([[0.0, 1.0], [0.5, 0.1]], unit="km")
    assert place_at(domain, (0.5, 0.1)) == 1
    with pytest.raises(md.errors.InputError, match="the nearest place, number 1"):
        place_at(domain, (0.5, 0.100001))


@pytest.mark.parametrize(("cell", "origin"), [(12.5, 0.0), (250.0, 485_000.0), (0.003, 1 / 3), (1.0, 0.0), (1e-7, 0.0)])
def test_digits_tell_cells_apart_and_no_more(cell: float, origin: float) -> None:
    points = md.Domain.grid(7, cell=cell, unit="1", origin=origin).points
    (digits,) = identifying_digits(points)
    assert digits is not None
    moved = np.array([round_coordinate(x, digits) for x in points[:, 0]]) - points[:, 0]
    assert np.abs(moved).max() <= cell * (1 / 20 + 1e-9)
    assert 10.0 ** -(digits - 1) > cell / 10


def test_a_coordinate_that_all_places_share_is_left_alone() -> None:
    digits = identifying_digits(np.array([[1.0, 0.123456], [2.0, 0.123456]]))
    assert digits == (1, None)
    assert round_coordinate(0.123456, digits[1]) == 0.123456


def test_the_document(run) -> None:
    code, out, _ = run("--at", "0.1", "14", "-n", 40, "--json")
    document = json.loads(out)
    assert code == 0
    assert list(document) == ["reports", "report_x", "report_y", "accuracy", "unit", "bits", "claim", "cost"]
    assert (document["unit"], document["bits"]) == ("km", "operating system")
    assert document["cost"] == "one report; k reports cost k times the epsilon"
    assert document["claim"] == mechanism().attrs["claim"]
    cells = {
        (x, y): k for k, (x, y) in enumerate([(-0.12, 10.8), (-0.12, 12.2), (-0.12, 13.8), (0.12, 10.8), (0.12, 13.8)])
    }
    assert [cells[at] for at in zip(document["report_x"], document["report_y"], strict=True)] == document["reports"]


def test_seeds_are_named_and_one_report_needs_none(run) -> None:
    first, again = (json.loads(run("--secret", 3, "-n", 20, "--seed", 7, "--json")[1]) for _ in range(2))
    assert first == again
    assert first["bits"] == "simulation, seed 7 (predictable)"
    assert first["reports"] == md.sample(mechanism(), 3, 20, rng=7)[0].values.tolist()
    code, out, err = run("--secret", 3)
    assert code == 0
    assert "random bits: operating system" in err
    assert "report_x [km]" in out
    assert sum(line[:3].strip().isdigit() for line in out.splitlines()) == 1


@pytest.mark.parametrize("words", [["--at", "-0.2", "11"], ["--at", "-0.2,11"], ["--at=-0.2,11"], ["--at", "-.2 11"]])
def test_ways_to_write_a_location(run, words) -> None:
    drawn, known = (json.loads(run(*at, "-n", 40, "--seed", 7, "--json")[1]) for at in (words, ("--secret", 0)))
    assert drawn["reports"] == known["reports"]
    assert drawn["reports"] != json.loads(run("--secret", 1, "-n", 40, "--seed", 7, "--json")[1])["reports"]


def test_output_does_not_reveal_the_secret(run) -> None:
    """Reports of a far secret, that differ from those of another secret by the draw alone."""
    code, out, _ = run("--secret", 4, "-n", 5, "--seed", 3, "--json")
    document = json.loads(out)
    assert code == 0
    assert "secret" not in document
    again = document | {"reports": None, "report_x": None, "report_y": None, "accuracy": None}
    other = json.loads(run("--secret", 1, "-n", 5, "--seed", 3, "--json")[1])
    assert again == other | {"reports": None, "report_x": None, "report_y": None, "accuracy": None}
    code, out, err = run("--secret", 4, "-n", 5, "--seed", 3)
    assert code == 0
    assert not any("secret 4" in line or line.startswith("secret") for line in (out + err).splitlines())


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ([], "at"),
        (["--at", "0", "11", "--secret", "0"], "at"),
        (["--at", "0.1", "12"], "at"),
        (["--at", "0"], "at"),
        (["--at", "x", "y"], "at"),
        (["--at", "0", "11", "--sed", "3"], "--sed"),
        (["3", "4"], "command line"),
        (["--secret", "5"], "secret"),
        (["--secret", "-1"], "secret"),
        (["--secret", "0", "-n", "0"], "size"),
        (["--secret", "0", "--seed", "-3"], "rng"),
        (["--secret", "0", "-n", "99999999999"], "n"),
        (["--secret", "0", "-n", "1_0"], "n"),
        (["--secret", "\u0661"], "secret"),
        (["--at", "\uff11", "11"], "at"),
        (["--at", "1_0", "11"], "at"),
        (["--lon", "1e400", "--lat", "0"], "lon"),
    ],
)
def test_impossible_options_are_refused(run, words, field) -> None:
    code, out, _ = run(*words, "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, field)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_altered_files_are_refused(run, tmp_path) -> None:
    given = mechanism()
    path = save(rewritten(given, claim=given.attrs["claim"] + " "), tmp_path / "altered.nc")
    code, out, _ = run("--secret", 0, "--json", file=path)
    assert (code, json.loads(out)["error"]["kind"]) == (1, "verification")


def test_factored_mechanisms(run, tmp_path) -> None:
    given = factored_mechanism("eikonal, 16 neighbours")
    file = save(given, tmp_path / "factored.nc")
    document = json.loads(run("--secret", 2, "-n", 3, "--seed", 1, "--json", file=file)[1])
    assert document["reports"] == md.sample(given, 2, 3, rng=1)[0].values.tolist()
    assert document["unit"] == given["secret_x"].attrs["units"]


def rome(unit: str = "m", kind: str = "cells"):
    metres = 1.0 if unit == "m" else 0.001
    plane = md.geo.Plane(latitude=41.89, longitude=12.49, unit=unit)
    domain = md.Domain.grid((9, 8), cell=500 * metres, unit=unit, origin=(-2250 * metres, -2000 * metres), plane=plane)
    if kind == "points":
        domain = md.Domain.points_at(domain.points, unit=unit, plane=plane)
    problem = md.DesignProblem(
        domain=domain,
        metric=md.Euclidean(epsilon=0.002, unit="m"),
        prior=md.priors.uniform(domain),
        loss=md.losses.Distance(),
    )
    return baselines.exponential(problem)


@pytest.mark.parametrize(
    ("given", "order"),
    [("12.4922 41.8902", "longitude and latitude"), ("41.8902 12.4922", "latitude and longitude"),
     ("12.9 41.5", "longitude and latitude")],
)  # fmt: skip
def test_degrees_are_not_taken_for_metres(run, tmp_path, given, order) -> None:
    """Positions in Rome and beside it; in Python the same."""
    file = save(rome(), tmp_path / "rome.nc")
    place = [float(word) for word in given.split()]
    east, north = sorted(place)
    code, out, _ = run("--at", *given.split(), "--json", file=file)
    refused = json.loads(out)
    assert (code, refused["error"]["field"]) == (2, "at")
    assert refused["error"]["message"].startswith(f"are {order} in degrees, and the map is in m")
    assert f"; use --lon {east:g} --lat {north:g}" in refused["error"]["message"]
    sampler = md.Sampler(rome())
    for attempt in (sampler.report, lambda at: sampler.sample(at=at), lambda at: sampler.sample(at=[at] * 3)):
        with pytest.raises(InputError, match=order):
            attempt(at=place)
    assert run("--at", "1249", "-418", file=file)[0] == 0
    assert sampler.sample(at=[place, [1249.0, -418.0]]).shape == (2, 1)  # one of many may be meant


def test_numbers_in_km_are_refused_for_one_place(tmp_path, run) -> None:
    """Of a map of 90 km its own degrees are a part, so a position there may be one in km."""
    plane = md.geo.Plane(latitude=5.6, longitude=-0.2, unit="km")
    domain = md.Domain.grid((9, 9), cell=10.0, unit="km", origin=-45.0, plane=plane)
    made = baselines.exponential(
        md.DesignProblem(
            domain=domain,
            metric=md.Euclidean(epsilon=0.1, unit="km"),
            prior=md.priors.uniform(domain),
            loss=md.losses.Distance(),
        )
    )
    assert md.Sampler(made).report(at=[-0.2, 5.6]).size == 1
    code, out, _ = run("--at", -0.2, 5.6, "--json", file=save(made, tmp_path / "km.nc"))
    assert code == 2
    assert "--lon -0.2 --lat 5.6" in json.loads(out)["error"]["message"]


def test_street_places_take_degrees(tmp_path, run) -> None:
    code, out, _ = run("--at", 12.49, 41.89, "--json", file=save(rome(kind="points"), tmp_path / "points.nc"))
    assert code == 2
    assert "--lon 12.49 --lat 41.89" in json.loads(out)["error"]["message"]


def test_zero_has_no_sign() -> None:
    assert [
        str(round_coordinate(value, kept)) for value, kept in ((-0.0, None), (-0.04, 1), (-3.0, -1), (-0.5, 1))
    ] == [
        "0.0",
        "0.0",
        "0.0",
        "-0.5",
    ]


def test_no_report_is_at_minus_zero(run, tmp_path) -> None:
    file = save(rome(), tmp_path / "rome.nc")
    code, out, _ = run("--at", "0", "0", "-n", "200", "--seed", "1", file=file)
    assert code == 0
    assert not [word for word in out.split() if word.startswith("-0") and float(word) == 0]
    assert any(word == "0" for word in out.split())
