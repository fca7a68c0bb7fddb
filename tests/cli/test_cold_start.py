"""A cold `sample` and a cold `verify` import no solver, compiler or labelled arrays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten

from mechdesign import Sampler, load, load_problem, save, solve, verify
from mechdesign.mechanism.content import FileContent
from mechdesign.mechanism.storage import load_content
from mechdesign.solvers.solve import SOLVERS
from mechdesign.verification.verify import verify_cold

SCRIPT = """
import sys
from mechdesign.cli.main import main
unwanted = sys.argv[1].split(",")
del sys.argv[1]
try:
    main()
except SystemExit as ended:
    assert not ended.code
print([name for name in sys.modules if name.startswith(tuple(unwanted))])
"""
LIBRARIES = "xarray,numba,scipy,pandas,dask,highspy,cvxpy,mechdesign.solvers"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(solve(load_problem("philadelphia", cells=4)), tmp_path_factory.mktemp("cold") / "optimal.nc")


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        (("sample", "--secret", "0"), f"{LIBRARIES},mechdesign.programs,mechdesign.verification.verify"),
        (("verify",), LIBRARIES),
    ],
)
def test_cold_command_imports_few_modules(command: tuple[str, ...], unwanted: str, path: Path) -> None:
    words = [sys.executable, "-c", SCRIPT, unwanted, command[0], str(path), *command[1:]]
    ended = subprocess.run(words, check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_content_answers_as_the_dataset(path: Path) -> None:
    content, dataset = load_content(path), load(path)
    assert isinstance(content, FileContent)
    assert isinstance(dataset, xr.Dataset)
    assert content.dataset.identical(dataset)
    # A member that only the Dataset has.
    assert content.nbytes == dataset.nbytes
    drawn = Sampler(content).sample([0, 5, 9], size=50, rng=3)
    xr.testing.assert_identical(drawn, Sampler(dataset).sample([0, 5, 9], size=50, rng=3))
    assert verify_cold(path) == verify(path)


def test_content_refuses_axes_of_two_lengths(path: Path) -> None:
    content = load_content(path)
    short = dict(content.variables) | {"prior": content["secret_x"]}
    short["dual"] = type(content["dual"])(dims=("secret",), values=np.zeros(3))
    with pytest.raises(ValueError, match="conflicting sizes"):
        FileContent(variables=short, coords=content.coords, attrs=content.attrs).sizes  # noqa: B018


def test_cold_verification_refuses_altered_files(path: Path, tmp_path: Path) -> None:
    mechanism = load(path)
    raised = rewritten(mechanism, lower_bound=mechanism.attrs["lower_bound"] * (1 + 1e-6))
    assert not verify_cold(save(raised, tmp_path / "raised.nc")).certified


def test_plain_program_has_no_objective_of_its_own() -> None:
    """`verify` skips the table of programs for it."""
    assert SOLVERS["optimal"].rebuild is None
    assert not SOLVERS["optimal"].program.between_positions
