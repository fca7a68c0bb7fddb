"""First guesses of users: a wrong call raises an error that names the argument and the remedy."""

from __future__ import annotations

import pickle
import sys
from copy import copy
from functools import cache

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base.validation import validate_call
from mechdesign.cli.remedies import as_options
from mechdesign.errors import InputError, UnknownNameError


@cache
def problem():
    return md.load_problem("philadelphia", cells=4)


@cache
def exponential_mechanism():
    return md.baselines.exponential(problem())


@cache
def box():
    pytest.importorskip("pyproj")
    return md.geo.Area.box(12.465, 41.875, 12.525, 41.916)


def lattice():
    return md.Domain.grid((3, 3), cell=1.0, unit="m")


def area_design(**changed):
    given = {"domain": lattice(), "metric": md.Euclidean(epsilon=1.0, unit="m"), "loss": md.losses.Distance()}
    return md.DesignProblem(**{**given, "prior": np.full(9, 1 / 9)} | changed)


GUESSES = [
    (lambda: md.load_problem("nope"), "problem"),
    (lambda: md.load_problem(5), "name"),
    (lambda: md.load_problem("philadelphia", cells="many"), "cells"),
    (lambda: md.load_problem("philadelphia", size=5), "size"),
    (lambda: md.solve("philadelphia"), "program"),
    (lambda: md.solve(problem(), gap="small"), "gap"),
    (lambda: md.solve(problem(), time_limit="a minute"), "time_limit"),
    (lambda: md.Optimal(problem="philadelphia"), "problem"),
    (lambda: md.EikonalWeights("philadelphia"), "problem"),
    (lambda: md.verify("nope.nc"), "file"),
    (lambda: md.verify(problem()), "source"),
    (lambda: md.verify(None), "source"),
    (lambda: md.load(exponential_mechanism()), "path"),
    (lambda: md.save("x.nc", exponential_mechanism()), "mechanism"),
    (lambda: md.save(exponential_mechanism(), None), "path"),
    (lambda: md.export(problem(), "x.csv"), "mechanism"),
    (lambda: md.plot(exponential_mechanism()), "plot"),
    (lambda: md.plot.mechanism(problem()), "mechanism"),
    (lambda: md.plot.mechanism(exponential_mechanism(), "3"), "secrets"),
    (lambda: md.plot.mechanism(exponential_mechanism(), [3.5]), "secret"),
    (lambda: md.plot.sweep(exponential_mechanism()), "schema"),
    (lambda: md.plot.save(problem(), "x.png"), "result"),
    (lambda: md.area(12, 41, 13, 42), "area"),
    (lambda: md.geo.Area.box(12.525, 41.875, 12.465, 41.916), "box"),
    (lambda: md.geo.Area.box("12.465", 41.875, 12.525, 41.916), "west"),
    (lambda: box().grid(cell=0), "cell"),
    (lambda: box().grid(cell="200"), "cell"),
    (lambda: box().grid(cell=200, unit="degrees"), "unit"),
    (lambda: box().grid(cell=200, forbidden="water.geojson"), "forbidden"),
    (lambda: md.geo.area_problem("rome", epsilon=1), "domain"),
    (lambda: md.geo.area_problem(box(), epsilon=1), "domain"),
    (lambda: md.geo.area_problem(lattice(), epsilon=1), "domain"),
    (lambda: md.utility.epsilon_within(-5, 2), "radius"),
    (lambda: md.geo.Plane(latitude="x", longitude=3), "latitude"),
    (lambda: md.geo.read_area(None), "path"),
    (lambda: md.Domain.grid((5, 5), cell="1", unit="m"), "cell"),
    (lambda: md.Euclidean(epsilon="1", unit="m"), "epsilon"),
    (lambda: md.Eikonal(level=1), "level"),
    (lambda: md.PrivacyLevel.affine(3, slope=1, floor=1), "density"),
    (lambda: md.priors.uniform(5), "domain"),
    (lambda: md.priors.proportional([1, "a"]), "weights"),
    (lambda: area_design(metric="euclidean"), "metric"),
    (lambda: area_design(prior="uniform"), "prior"),
    (lambda: area_design(loss="distance"), "loss"),
    (lambda: area_design(loss=md.losses.Distance), "loss"),
    (lambda: md.compare("philadelphia"), "problem"),
    (lambda: md.compare(problem(), mechanisms=[exponential_mechanism()]), "mechanisms"),
    (lambda: md.sweep(problem(), ["a"]), "scales"),
    (lambda: md.audit(np.eye(16), "philadelphia"), "problem"),
    (lambda: md.diagnosis(exponential_mechanism()), "problem"),
    (lambda: md.Sampler(mechanism="x.nc"), "mechanism"),
    (lambda: md.probabilities("x.nc"), "mechanism"),
    (lambda: md.sessions.Budget.create(None, limit=1), "path"),
    (lambda: md.utility.kantorovich("a", "b", lattice()), "p"),
    (lambda: md.baselines.exponential("philadelphia"), "problem"),
]


@pytest.mark.parametrize("number", range(len(GUESSES)))
def test_a_first_guess_is_answered(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guess, field = GUESSES[number]
    with pytest.raises(InputError) as caught:
        guess()
    assert caught.value.field == field
    assert len(caught.value.message) > 5
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "meant"), [("Problem", "md.DesignProblem"), ("metrics", "md.Euclidean")])
def test_names_that_others_use_lead_to_ours(name, meant):
    with pytest.raises(UnknownNameError, match=rf"is it {meant}\b"):
        getattr(md, name)


def test_arguments_in_python_are_options_on_the_command_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    md.save(exponential_mechanism(), "made.nc")
    with pytest.raises(InputError, match=r"pass overwrite=True, or another name"):
        md.save(exponential_mechanism(), "made.nc")
    assert "pass --overwrite, or another name" in run("solve", "flat", "--cells", 2, "-o", "made.nc")[2]
    with pytest.raises(InputError, match="normalise=True"):
        md.audit(np.ones((16, 16)) / 3, problem())
    assert as_options("solve it with method='table' in work=FOLDER") == "solve it with --method table in --work FOLDER"


def test_missing_name_or_matplotlib_is_reported(monkeypatch):
    class Nameless(md.losses.Loss):
        def matrix(self, secrets, reports):
            return np.ones((secrets.size, reports.size))

    with pytest.raises(InputError, match="Nameless needs a class attribute name"):
        area_design(loss=Nameless())
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.colors"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'mechdesign\[plot\]'"):
        md.plot.mechanism(exponential_mechanism())


def test_a_grid_has_its_axes_back():
    """By the domain's own index of cells."""
    holes = np.ones((4, 3), bool)
    holes[1, 2] = False
    domain = md.Domain.grid((4, 3), 0.5, unit="km", origin=7.3, mask=holes)
    mechanism = md.baselines.exponential(
        area_design(domain=domain, metric=md.Euclidean(1.0, unit="km"), prior=np.arange(1, 12) / 66)
    )
    prior = md.on_grid(mechanism["prior"])
    assert prior.dims == ("secret_y", "secret_x")
    assert prior["secret_x"].attrs["units"] == "km"
    expected = np.full((4, 3), np.nan)
    expected[tuple(domain.index.T)] = mechanism["prior"].values
    assert np.array_equal(prior.values, expected.T, equal_nan=True)
    table = md.on_grid(md.probabilities(mechanism))
    assert table.dims == ("secret_y", "secret_x", "report_y", "report_x")
    assert np.nansum(table.values) == pytest.approx(11)
    assert len(md.probabilities(mechanism).to_dataframe()) == 11 * 11
    for name in ("edge_length", "level"):
        with pytest.raises(InputError, match="two axes"):
            md.on_grid(md.baselines.exponential(md.load_problem("line", cells=3))[name])


def test_names_that_are_close_are_said():
    with pytest.raises(UnknownNameError, match=r"md\.losses\.Distance") as caught:
        md.distance  # noqa: B018
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(md, "nothing_like_it")


def test_objects_are_copied_and_pickled_as_before():
    for thing in (lattice(), md.Euclidean(epsilon=1.0, unit="m"), problem()):
        assert type(copy(thing)) is type(thing)
    assert pickle.loads(pickle.dumps(md.Euclidean(epsilon=1.0, unit="m"))).epsilon == 1.0


def test_validated_function_keeps_name_and_errors():
    @validate_call
    def quotient(a: float, b: float = 1.0, *, words: list[str] | None = None) -> float:
        """Docstring."""
        return a / b

    assert (quotient(np.float64(3)), quotient(3, 2), quotient.__name__, quotient.__doc__) == (
        3,
        1.5,
        "quotient",
        "Docstring.",
    )
    with pytest.raises(ZeroDivisionError):
        quotient(1.0, 0.0)
    for call, field in (
        (lambda: quotient("1"), "a"),
        (lambda: quotient(1.0, None), "b"),
    ):
        with pytest.raises(InputError, match="must be of type float") as caught:
            call()
        assert caught.value.field == field
    with pytest.raises(TypeError, match="'a'"):
        quotient()
    with pytest.raises(TypeError, match="'c'"):
        quotient(1.0, c=2)
    with pytest.raises(TypeError, match=r"too many positional arguments: Euclidean\(epsilon, \*, scale=1.0, unit="):
        md.Euclidean(1.0, "m")
