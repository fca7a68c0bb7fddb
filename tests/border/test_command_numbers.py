"""Words and numbers as people type them have one meaning, or are refused before anything is computed."""

from __future__ import annotations

import json
import math
import re

import pytest
from fixtures.absent_capabilities import needs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechdesign.cli.app import command

pytestmark = needs("geo", "posteriors", "surveys", "sessions")
FEET = 0.3048  # m, of the international foot
SHARE = 0.8243883090329846  # x with 1 - (1 + x) e^-x = 0.2, by bisection
TABLE = "0.5,0.5\n0.25,0.75\n"


def commands(group=None, before=()):
    """Every command with the words that call it."""
    for name, subcommand in (group or command()).commands.items():
        if hasattr(subcommand, "commands"):
            yield from commands(subcommand, (*before, name))
        else:
            yield (*before, name), subcommand


def refusal_of(run, *words):
    """The error of a refused command line."""
    code, out, _ = run(*words, "--json")
    assert code == 2, (words, out)
    return json.loads(out)["error"]


def test_the_disc_of_the_law_is_in_feet(run_json):
    code, level = run_json("level", "--disc", "1850ft", "--share", "20%")
    assert code == 0
    assert level["epsilon"] == pytest.approx(SHARE / (1850 * FEET), rel=1e-9)
    assert run_json("level", "--disc", "1850 ft", "--share", "0.2")[1] == level
    assert run_json("level", "--disc", "1850FT", "--share", "1/5")[1] == level


SEPARATED = [  # thousands with separators, and decimals after a comma
    "1,850ft", "1,850", "12,000", "1,850.5", "1.850,5", "1'850", "1_850", "1 850ft", "1 850", "1,850,000", "250,564",
    "1,850ft,2,000ft", "1,850ft,2000ft", "1,850.1234", "1.850.000,25", "1\u00a0850", "0,5", "1,5km", "-1,850",
]  # fmt: skip
NO_RADIUS = ["500,1000ft", "1850ft,", ",1850", "1,,850", "", "ft", "nan", "1e400", "564:volume"]
SEVERAL = ["564,1000", "250,564,1000", "250, 564", "1ft,850ft", "564:area"]


@pytest.mark.parametrize("disc", [*SEPARATED, *NO_RADIUS, *SEVERAL])
def test_a_level_takes_one_radius(run, disc):
    """Separators of thousands, decimal commas, and lists, of which a level would use the first radius alone."""
    assert refusal_of(run, "level", "--disc=" + disc, "--share", "20%")["field"] == "disc"


@pytest.mark.parametrize(
    ("disc", "way"),
    [
        ("1,850ft", "write 1850, or '1, 850'"), ("1,850.5", "write 1850.5"), ("1.850,5", "write 1850.5"),
        ("1,850,000", "1850000"), ("500,1000ft", "250m,1850ft"), ("1'850", "thousands without a separator"),
        ("564,1000", "one radius"), ("564:area", "without :area"),
    ],
)  # fmt: skip
def test_refusal_shows_the_right_spelling(run, disc, way):
    assert way in refusal_of(run, "level", "--disc", disc, "--share", "20%")["message"]


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory):
    import mechdesign as md

    domain = md.Domain.grid((3, 3), cell=500.0, unit="m")
    problem = md.DesignProblem(domain, md.Euclidean(0.001, unit="m"), md.priors.uniform(domain), md.losses.Distance())
    return md.save(md.baselines.planar_laplace(problem), tmp_path_factory.mktemp("numbers") / "m.nc")


@pytest.mark.parametrize(
    ("disc", "radii"),
    [
        ("250,564,1000", [250, 564, 1000]), ("250, 564", [250, 564]), ("250 ,564 , 700", [250, 564, 700]),
        ("564", [564]),
        ("0.5,564.25", [0.5, 564.25]), ("820ft,1850ft", [820 * FEET, 1850 * FEET]), ("250m,564m", [250, 564]),
        ("1km,1850ft", [1000, 1850 * FEET]), ("1000,250", [1000, 250]), ("25,30", [25, 30]),
    ],
)  # fmt: skip
def test_lists_of_radii_are_read(run_json, mechanism, disc, radii):
    code, document = run_json("verify", mechanism, "--disc", disc)
    assert code == 0
    assert [row["radius"] for row in document["discs"]] == pytest.approx(radii, rel=1e-12)


@given(
    number=st.integers(1000, 10**9), separator=st.sampled_from([",", "'", "_", " ", "\u202f"]),
    end=st.sampled_from(["", "ft", "m", ".5", " km"]),
)  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_thousands_with_separators_are_never_radii(run, mechanism, number, separator, end):
    word = f"{number:,}".replace(",", separator) + end
    assert refusal_of(run, "verify", mechanism, "--disc", word)["field"] == "disc"
    assert refusal_of(run, "level", "--disc", word, "--share", "20%")["field"] == "disc"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("compare line --scales 1,850", "scales"),
        ("compare line --scales 1.850,5", "scales"),
        ("compare line --scales 1,850:2:3", "scales"),
        ("plan --box 12.47,41.87,12.52,41.91 --areas 2x2 --respondents 2000 --levels 1,250", "levels"),
        ("plan --box 12.47,41.87,12.52,41.91 --areas 2x2 --respondents 2,000", "respondents"),
        ("export MECHANISM -o x.csv --rows 1,850", "rows"),
        ("sample MECHANISM --at 1,850", "at"),
        ("sample MECHANISM --at 1,850 2,000", "at"),
        ("area --box 12,47,41,87,12,52,41,91 --cell 500 --within 200 --factor 2 -o x.nc", "box"),
        ("area --box 12.47,41.87,12.52,41.91 --cell 1,000 --within 200 --factor 2 -o x.nc", "cell"),
        (
            "area --box 12.4,41.8,12.5,41.9 --cell 9 --people p.csv --people-per-disc 9 --radii 1,850,5,000 -o a.nc",
            "radii",
        ),
        (
            "area --box 12.47,41.87,12.52,41.91 --cell 500 --people p.csv --people-per-disc 2,000 -o x.nc",
            "people-per-disc",
        ),
        ("audit TABLE --metric discrete --factor 1,5", "factor"),
        ("audit TABLE --metric euclidean --within 1,000 --factor 2 --grid 2 --cell 100", "within"),
        ("audit TABLE --metric euclidean --within 1000 --factor 2 --grid 2 --cell 1,000", "cell"),
        ("solve line --cells 1,000", "cells"),
        ("solve line --epsilon 0,5", "epsilon"),
    ],
)
def test_commas_in_numbers_are_refused(run, tmp_path, monkeypatch, mechanism, words, field):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text(TABLE)
    (tmp_path / "p.csv").write_text("latitude,longitude,population\n41.9,12.5,1000\n")
    error = refusal_of(
        run, *(str(mechanism) if w == "MECHANISM" else "q.csv" if w == "TABLE" else w for w in words.split())
    )
    assert error["field"] == field
    assert not (tmp_path / "x.nc").exists()


def test_boxes_of_whole_degrees_are_read(run):
    """Longitudes of three digits after latitudes of one or two: four numbers are needed, so none is a part of one."""
    words = ["--cell", 1, "--unit", "km", "--within", 1, "--factor", 2, "--program", "nothing", "-o", "x.nc"]
    assert refusal_of(run, "area", "--box", "100,10,101,11", *words)["field"] == "program"


def test_every_numeric_option_is_read_by_one_parser(run):
    """No option is of a number type of the library, which reads 1_0 and digits of other scripts."""
    numeric = 0
    for words, subcommand in commands():
        # The library shows its own number types as INTEGER and FLOAT; ours have INTEGER as their metavar.
        shown = re.findall("INTEGER|FLOAT", run(*words, "--help")[1])
        assert len(shown) == sum(option.metavar == "INTEGER" for option in subcommand.params), words
        for option in subcommand.params:
            if option.metavar in ("NUMBER", "INTEGER", "METRES", "ODDS"):
                numeric += 1
                for text in ("1,850", "1_850"):
                    error = refusal_of(run, *words, f"{option.opts[0]}", text)
                    assert "digits 0-9, " in error["message"], (words, option.opts, error)
    assert numeric > 30


def test_epsilon_alone_is_a_radius(run_json, run):
    """ln 2 / 0.00346574 = 199.9997 m; planar Laplace noise is 2 / epsilon = 577.08 m off."""
    _, level = run_json("level", "--epsilon", 0.00346574)
    assert level["radius"] == 200
    assert level["factor"] == pytest.approx(math.exp(200 * 0.00346574), rel=1e-12)
    assert level["expected_distance"] == pytest.approx(2 / 0.00346574, rel=1e-12)
    _, out, _ = run("level", "--epsilon", "0.00346574")
    assert "Within 200 m" in out
    assert "577.078 m" in out
    assert run_json("level", "--epsilon", "0.5", "--unit", "km")[1]["radius"] == pytest.approx(
        2 * math.log(2), rel=1e-5
    )


@pytest.mark.parametrize(
    "words",
    ["--epsilon 0", "--epsilon -1", "--epsilon inf", "--within 200", "--factor 2", "--epsilon 1 --factor 2", ""],
)
def test_levels_without_one_meaning_are_refused(run, words):
    assert refusal_of(run, "level", *words.split())["field"] in ("epsilon", "within", "factor")


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_unknown_options_are_refused_before_all_else(run, words):
    """Whatever else is missing or wrong, and also after every argument was given."""
    option = "--no-such-option"
    for rest in ([], ["q.csv"], ["line"], ["a.nc", "b.nc"]):
        assert refusal_of(run, *words, *rest, option, "x")["field"] == option
    assert refusal_of(run, *words, option)["field"] == option
    assert refusal_of(run, *words, option + "=x", "line")["field"] == option


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        ("audit q.csv --metrik discrete", "--metric"), ("area --fator 2", "--factor"), ("solve line --gapp 1", "--gap"),
        ("solve line --cels 8", "--cells"), ("session report a --tik 4", "--tick"), ("verify a.nc --dics 5", "--disc"),
        ("estimate r.csv a.nc --aras x", "--areas"), ("audit q.csv --metric discrete --fctor 2", "--factor"),
    ],
)  # fmt: skip
def test_the_nearest_option_is_suggested(run, words, suggestion):
    assert f"did you mean {suggestion}" in refusal_of(run, *words.split())["message"]


def test_parameters_of_problems_are_known(run):
    """An error that is not about an option stays."""
    assert refusal_of(run, "plan", "line", "--cells", "8")["field"] == "areas"
    assert refusal_of(run, "audit", "q.csv", "--cell", "8")["field"] == "metric"
