"""The published package: one version everywhere, equal dependencies in recipe and package, workflows that run the gate,
and complete built files.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib

import pytest
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("conda/recipe.yaml", r"^  version: ([\d.]+)$"),
        ("docs/reference/papers.md", r"version = \{(.+)\}"),
    ],
)
def test_the_version_is_one(name, pattern):
    assert re.findall(pattern, text(name), re.M) == [PROJECT["version"]]


def test_the_recipe_asks_for_what_the_package_asks_for():
    asked = dict(re.findall(r"^    - ([\w-]+) (\S+)$", text("conda/recipe.yaml").split("  run:")[1], re.M))
    assert asked.pop("python") == PROJECT["requires-python"]
    asked["cvxpy"] = asked.pop("cvxpy-base")  # without solvers that we do not use
    for requirement in PROJECT["dependencies"]:
        name, versions = re.fullmatch(r"([\w-]+)([<>=].+)", requirement).groups()
        assert asked.pop(name) == versions
    assert not asked, "the recipe has dependencies that the package has not"


def test_the_workflows_run_the_gate_and_the_checks():
    tests = text(".github/workflows/tests.yml")
    assert "run: .ci/run" in tests
    assert "run: scripts/check_package.sh" in tests
    assert text(".ci/run").rstrip().endswith("python -m sphinx -q -W -n docs build/site")
    assert "python -m sphinx -q -W -n docs build/site" in text(".github/workflows/site.yml")


@pytest.fixture
def contents():
    spec = importlib.util.spec_from_file_location("package_contents", ROOT / "scripts" / "package_contents.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def good(contents):
    metadata = "\n".join(f"{key}: {value}" for key, value in contents.RECORDS.items()) + "\n\ntext"
    wheel = dict.fromkeys(contents.REQUIRED_FILES, b"") | {
        "mechdesign-1.dist-info/METADATA": metadata.encode(),
        "mechdesign-1.dist-info/entry_points.txt": b"mechdesign = mechdesign.cli.main:main",
    }
    packed = {name.replace("mechdesign/_problems/", "problems/") for name in contents.REQUIRED_FILES}
    return wheel, {"README.md", "LICENSE", "mechdesign/x.py", *packed}, set(contents.REQUIRED_FILES)


def test_contents_are_told_apart(contents):
    wheel, sdist, checkout = good(contents)
    assert contents.problems_of(wheel, sdist, checkout) == []
    less = {name: held for name, held in wheel.items() if "verify_table" not in name}
    assert contents.problems_of(less, sdist, checkout) == [
        "mechdesign/verification/verify_table.py is missing in the wheel"
    ]
    more = wheel | {"tests/test_x.py": b"", "mechdesign/x.pyc": b"", "mechdesign/y": bytes(contents.MAX_BYTES)}
    assert contents.problems_of(more, sdist, checkout) == [
        *(
            f"{name} is in the wheel, not in the checkout"
            for name in ("mechdesign/x.pyc", "mechdesign/y", "tests/test_x.py")
        ),
        "mechdesign/x.pyc is compiled",
        f"the wheel holds more than {contents.MAX_BYTES} bytes",
    ]
    unpacked = sdist - {"mechdesign/py.typed", "problems/philadelphia.py"}
    assert contents.problems_of(wheel, unpacked, checkout) == [
        f"{name} is missing in the sdist" for name in ("mechdesign/py.typed", "problems/philadelphia.py")
    ]
    renamed = {**wheel, "mechdesign-1.dist-info/METADATA": b"Name: other\n\n"}
    assert len(contents.problems_of(renamed, sdist, checkout)) == len(contents.RECORDS)


@pytest.mark.exhaustive
def test_wheel_and_sdist_are_good():
    bash = shutil.which("bash")
    assert bash is not None
    ended = subprocess.run([bash, "scripts/check_package.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.rstrip().endswith("wheel and sdist are good")
