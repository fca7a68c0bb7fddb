"""Every public name is there when it is the first thing that is asked for: modules load on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mechdesign


@pytest.mark.parametrize(
    "name",
    ["priors.uniform", "losses.LOSSES", "baselines.planar_laplace", "programs.Minimax", "utility.bayes_remap", "audit"],
)
def test_first_access_in_a_fresh_interpreter(name):
    words = [sys.executable, "-c", f"import mechdesign; mechdesign.{name}"]
    assert subprocess.run(words, check=False, capture_output=True, text=True).stderr == ""


def test_every_listed_name_is_there():
    for name in mechdesign.__all__:
        assert getattr(mechdesign, name) is not None
