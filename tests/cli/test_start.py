"""The cost of starting a command: which modules it loads; the version; completion; the ways to start it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs

HEAVY = ("xarray", "numba", "pandas", "scipy.sparse", "cvxpy")


def start_process(*words, **settings):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        pytest.param(["--version"], ("numpy", "scipy", *HEAVY), marks=pytest.mark.exhaustive),  # `--help` loads more
        pytest.param(["level", "--within", "200", "--factor", "2"], HEAVY, marks=needs("geo")),
    ],
)
def test_light_commands_load_nothing_heavy(words, heavy):
    script = (
        "import sys\nfrom mechdesign.cli import main as cli\n"
        f"sys.argv = ['mechdesign', *{words}]\n"
        f"try: cli.main()\nfinally: print([m for m in {heavy} if m in sys.modules])"
    )
    ended = start_process("-c", script)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("module", ["mechdesign", "mechdesign.cli.main"])
def test_every_way_to_start_it(module):
    ended = start_process("-m", module, "--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"mechdesign {version('mechdesign')}\n", "")


def test_shells_can_complete(run):
    asked = {"_MECHDESIGN_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    ended = start_process("-m", "mechdesign", COMP_WORDS="mechdesign solve ph", **asked)
    assert ended.stdout.split() == ["philadelphia"]
    assert "--show-completion" in run("--help")[1]
