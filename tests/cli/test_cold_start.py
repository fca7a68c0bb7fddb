"""A cold `sample` imports the modules that draw, and no solver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mechdesign import baselines, load_problem, save

SCRIPT = """
import sys
from mechdesign.cli.main import main
sys.argv[1:] = ["sample", sys.argv[1], "--secret", "0"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
folders = ("mechdesign.solvers", "mechdesign.programs", "mechdesign.closed_forms", "highspy", "cvxpy")
print([name for name in sys.modules if name.startswith(folders)], "mechdesign.verification.verify" in sys.modules)
"""


def test_sample_imports_neither_solvers_nor_proofs(tmp_path: Path) -> None:
    path = save(baselines.constant(load_problem("discrete", secrets=3)), tmp_path / "constant.nc")
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[] False"
