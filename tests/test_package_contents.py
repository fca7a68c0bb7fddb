"""The root of the repository and the source distribution hold only the files that are named here."""

from __future__ import annotations

import shutil
import subprocess
import tarfile

import pytest
from conftest import ROOT

IN_BOTH = {
    ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md",
    "LICENSE", "README.md", "RELEASING.md", "SECURITY.md", "benchmarks", "docs", "mechdesign", "paper.md", "problems",
    "proofs", "pyproject.toml", "scripts", "tests",
}  # fmt: skip
DATA = {"problems/data/northeast_block_groups_2020.csv.gz"}  # read as it is
IN_ROOT = IN_BOTH | {".ci", ".github", "conda"}
KINDS = {
    "", ".asc", ".bib", ".c", ".cff", ".css", ".csv", ".dat", ".geojson", ".h", ".html", ".ipynb", ".js",
    ".json", ".md", ".mjs", ".ml", ".mts", ".nc", ".npy", ".png", ".py", ".pyi", ".rst", ".sh", ".svg", ".tif",
    ".toml", ".ts", ".txt", ".typed", ".v", ".webp", ".yaml", ".yml",
}  # fmt: skip


@pytest.fixture(scope="module")
def tracked_files() -> list[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and its checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("git does not list this checkout")
    return [path for path in listed.stdout.split("\0") if path]


def of_kind(path: str) -> str:
    name = path.rpartition("/")[2]
    return "" if "." not in name.lstrip(".") else "." + name.rpartition(".")[2]


def test_the_root_has_what_is_named(tracked_files: list[str]) -> None:
    assert {path.partition("/")[0] for path in tracked_files} <= IN_ROOT
    assert {"README.md", "LICENSE", "mechdesign", "tests"} <= {path.partition("/")[0] for path in tracked_files}


def test_no_archive_or_build_is_tracked(tracked_files: list[str]) -> None:
    assert {of_kind(path) for path in tracked_files if path not in DATA} <= KINDS


def test_the_source_distribution_has_what_is_named(tracked_files: list[str], tmp_path) -> None:
    """Built by hatchling itself, without a network: all that is tracked and is not left out, and no other file."""
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="needs hatchling")
    (built,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(built) as archive:
        inside = {path.partition("/")[2] for path in archive.getnames()}
    inside -= {"PKG-INFO"}
    assert {path.partition("/")[0] for path in inside} <= IN_BOTH
    there = {path for path in tracked_files if (ROOT / path).exists()}
    assert inside <= there | untracked_files(ROOT), sorted(inside - there)[:5]
    assert {path for path in there if path.partition("/")[0] in IN_BOTH} <= inside


def untracked_files(root) -> set[str]:
    """Files under work, which a build takes too: tracked soon, or ignored."""
    words = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    return {path for path in listed.stdout.split("\0") if path}
