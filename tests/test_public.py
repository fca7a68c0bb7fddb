"""The public names: each can be the first to be accessed, has an example that runs, and objects print in five lines."""

from __future__ import annotations

import doctest
import importlib.metadata
import inspect
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest
from fixtures.absent_capabilities import CAPABILITIES
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.base import registry
from mechdesign.base.display import FOR_FILES
from mechdesign.errors import InputError

ROOMS = [
    "baselines",
    "blurs",
    "devicemap",
    "extend",
    "factored",
    "geo",
    "losses",
    "plot",
    "positions",
    "posteriors",
    "priors",
    "programs",
    "read",
    "release",
    "sessions",
    "surveys",
    "utility",
    "web",
]
NAMES = [
    "priors.uniform",
    "losses.LOSSES",
    "baselines.planar_laplace",
    "programs.Minimax",
    "utility.bayes_remap",
    "audit",
]
MOST_WITHOUT_EXAMPLE = 54  # public methods; lower it when one gets an example
WIDEST = 100  # columns of a line of a repr
SHOWN = {
    "problem": lambda: md.load_problem("philadelphia"),
    "streets": lambda: md.load_problem("streets"),
    "domain": lambda: md.Domain.grid((20, 30), cell=0.5, unit="km"),
    "metric": lambda: md.load_problem("philadelphia").metric,
    "level": lambda: md.PrivacyLevel.constant(0.5, "km"),
    "loss": lambda: md.load_problem("streets").loss,
    "program": lambda: md.programs.Bounded(md.load_problem("line"), worst_loss=3.0),
    "sampler": lambda: md.Sampler(solved_problem()),
    "verification": lambda: md.verify(solved_problem()),
    "audit": lambda: md.audit(np.full((8, 8), 1 / 8), md.load_problem("discrete")),
    "raster": lambda: md.Raster(x=np.arange(3.0), y=np.arange(2.0), values=np.ones((3, 2)), unit="km"),
}


def solved_problem():
    return md.solve(md.load_problem("discrete"))


@pytest.mark.parametrize("name", few_by_default(NAMES, *NAMES[:1]))
def test_first_access_in_a_fresh_interpreter(name):
    words = [sys.executable, "-c", f"import mechdesign; mechdesign.{name}"]
    assert subprocess.run(words, check=False, capture_output=True, text=True).stderr == ""


def test_every_listed_name_is_there():
    assert len(set(md.__all__) - set(ROOMS)) <= 30
    assert set(ROOMS) <= set(md.__all__)
    absent = set(CAPABILITIES) - set(registry.capabilities())
    for name in set(md.__all__) - absent:
        assert getattr(md, name) is not None
    for room in set(ROOMS) - absent:
        for name in importlib.import_module(f"mechdesign.{room}").__all__:
            assert getattr(getattr(md, room), name) is not None


@pytest.mark.parametrize("name", ["nothing", "read_nothing", "_private"])
def test_other_names_are_not_there(name):
    with pytest.raises(AttributeError, match=name):
        getattr(md, name)


@pytest.mark.parametrize("name", SHOWN)
def test_objects_show_what_they_are_in_five_lines(name):
    shown = SHOWN[name]()
    lines = repr(shown).split("\n")
    assert lines[0] == type(shown).__name__
    assert 1 <= len(lines) <= 5
    assert max(map(len, lines)) <= WIDEST
    assert shown._repr_html_().startswith("<table>")


def test_a_page_shows_texts_as_they_are():
    domain = md.Domain.nodes(2)
    given = {"prior": [0.5, 0.5], "loss": md.losses.ZeroOne(), "metric": md.Discrete(epsilon=1.0)}
    page = md.DesignProblem(domain=domain, name="<script>", **given)._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_problem_means_its_optimal_program():
    problem = md.load_problem("discrete")
    assert np.array_equal(md.solve(problem)["mass"], md.solve(md.Optimal(problem))["mass"])
    with pytest.raises(InputError) as caught:
        md.solve("discrete")
    assert caught.value.field == "program"


def test_the_version_is_that_of_the_distribution():
    assert md.__version__ == importlib.metadata.version("mechdesign")


def public():
    """Every public function and class by its name, once: of the top, of the parts, and of their modules."""
    listed = {f"md.{name}": getattr(md, name) for name in md.__all__}
    absent = set() if "pictures" in registry.capabilities() else {"plot"}
    for room in ["errors", *(room for room in ROOMS if room in md.__all__ and room not in absent)]:
        part = importlib.import_module(f"mechdesign.{room}")
        for name in getattr(part, "__all__", vars(part)):
            value = getattr(part, name)
            inside = vars(value) if inspect.ismodule(value) else {}
            own = {key: one for key, one in inside.items() if getattr(one, "__module__", None) == value.__name__}
            listed |= {f"md.{room}.{name}.{key}": one for key, one in own.items() if not key.startswith("_")}
            listed[f"md.{room}.{name}"] = value
    first = {id(value): name for name, value in reversed(listed.items())}
    return {
        name: listed[name]
        for name in first.values()
        if inspect.isclass(listed[name]) or inspect.isroutine(listed[name])
    }


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_examples_of_every_public_name_run(every):
    """In one process: each name has an example, and all examples print the results in their docstrings."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    without, listed, printed = [], [], io.StringIO()
    for name, value in public().items():
        if inspect.isclass(value) and issubclass(value, Exception):
            continue
        tests = [test for test in finder.find(value, name, module=False, globs={"md": md, "np": np}) if test.examples]
        without += [name] * (name not in {test.name for test in tests})
        listed += tests
    for test in listed[::every]:
        runner.run(test, out=printed.write)
    assert without == []
    if set(CAPABILITIES) <= set(registry.capabilities()):
        assert runner.tries > 400 / every / 2
    assert runner.failures == 0, printed.getvalue()


def test_every_public_docstring_has_its_sections():
    """Parameters or attributes where there are any, and of functions the return value, with shapes and units."""
    lacking = []
    for name, value in public().items():
        if inspect.isclass(value) and issubclass(value, Exception):
            continue
        text, taken = inspect.getdoc(value) or "", inspect.signature(value).parameters
        heads = {head for head, line in itertools.pairwise(text.split("\n")) if head and line == "-" * len(head)}
        told = not taken or heads & {"Parameters", "Attributes"}
        if not told or not (inspect.isclass(value) or "Returns" in heads):
            lacking.append(name)
    assert lacking == []


@pytest.mark.parametrize("module", ["mechdesign.extend"])
def test_examples_of_modules_run(module):
    # The classes of the examples are not classes of the package, whose subclasses other tests list.
    example = importlib.import_module(module)
    ended = doctest.testmod(example, globs=vars(example) | {"__name__": "example"})
    assert ended.attempted > 0
    assert ended.failed == 0


def test_functions_that_draw_take_a_seed_or_a_generator():
    """`rng=`, not `seed=`. The program of a file has a seed: its JSON has no generator."""
    taken = {name for name, value in public().items() if "seed" in inspect.signature(value).parameters}
    assert taken - {"md.surveys.StatisticalDesign"} == set()


@pytest.mark.skipif("blurs" not in registry.capabilities(), reason="needs blurs")
def test_generator_is_as_good_as_its_seed():
    def blur(latitude, longitude, rng):
        return latitude + rng.normal() / 100, longitude + rng.normal() / 100

    def audit(rng):
        return md.blurs.audit_blur(blur, draws=50, rng=rng).reports

    seed = int(np.random.default_rng(3).integers(1 << 32))
    seeded = audit(seed)
    assert np.array_equal(audit(np.random.default_rng(3)), seeded)
    assert not np.array_equal(audit(np.random.default_rng(4)), seeded)
    with pytest.raises(InputError) as caught:
        audit(-1)
    assert caught.value.field == "rng"


def test_tab_completion_shows_the_listed_names():
    """`dir` of the package and its parts: the names of `__all__`, and no module that they import."""
    for name in (None, *(name for name in ROOMS if name in md.__all__)):
        part = md if name is None else getattr(md, name)
        assert {one for one in dir(part) if not one.startswith("_")} == set(part.__all__), name
    shown = set(dir(md.load_problem("line").domain))
    assert {"grid", "classes", "points", "size", "labels"} <= shown
    assert shown & FOR_FILES == set()


def methods_without_example():
    """The public methods, by name, whose help has no example. An override without a docstring has that of its base."""
    lacking = []
    for name, value in public().items():
        if not inspect.isclass(value) or issubclass(value, Exception):
            continue
        for key, member in vars(value).items():
            method = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            if key.startswith("_") or key in FOR_FILES or not inspect.isfunction(method):
                continue
            if ">>>" not in (inspect.getdoc(getattr(value, key)) or ""):
                lacking.append(f"{name}.{key}")
    return lacking


def test_no_further_method_lacks_an_example():
    """A ceiling that only falls. Methods of these classes, which most users call, all have one."""
    lacking = methods_without_example()
    assert len(lacking) <= MOST_WITHOUT_EXAMPLE, lacking
    documented = ("md.Sampler.sample", "md.Sampler.report", "md.Domain.grid", "md.Domain.classes", "md.Domain.nodes")
    assert set(documented) & set(lacking) == set()
