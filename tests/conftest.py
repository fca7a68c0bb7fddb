"""Options and fixtures shared by all tests."""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fixtures import absent_capabilities
from fixtures.browsers import BROWSER, Opened

ROOT = Path(__file__).resolve().parent.parent
# Workers share the cores: a second thread of linear algebra waits for one, and spins. NumPy is not loaded yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
absent_capabilities.install()
# A shell starts background processes with Ctrl-C ignored, and Python keeps that: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def disk() -> Iterator[None]:
    """Nothing that a test writes has to outlive the machine: no file waits for the disk."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def skfmm() -> ModuleType:
    return pytest.importorskip("skfmm", reason="needs the extra: pip install 'mechdesign[fmm]'")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-all", action="store_true", help="run studies and exhaustive cases too")


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a fresh checkout all test files have to be compiled: each worker starts with files of its own.

    It finds those of the others compiled when it reaches them. The first worker begins as pytest does, with its checks.
    """
    gc.disable()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    files = [path for name in session.config.args for path in sorted(Path(name).rglob("test_*.py"))]
    start = worker * len(files) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    for path in files[start:] + files[:start] if start else ():
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(path.stem)


def pytest_collection_finish() -> None:
    """Collected tests stay until the end: the garbage collector need not look at them again and again.

    It took a sixteenth of the time of the tests, mostly for modules and caches that stay too.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = config.getoption("markexpr")
    left_out = () if config.getoption("--run-all") else [name for name in ("study", "exhaustive") if name not in chosen]
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    seldom = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if seldom:  # thousands: skipping each takes as long as a test
        config.hook.pytest_deselected(items=seldom)
        unwanted = set(seldom)
        items[:] = [item for item in items if item not in unwanted]


def pytest_report_header() -> str:
    return "studies and exhaustive cases run with --run-all, -m study or -m exhaustive"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, stdout and stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mechdesign", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("mechdesign", run_name="__main__")
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def run_json(run: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, Any]]:
    """The same with --json: exit code and the one document on stdout."""

    def call(*words: object) -> tuple[int, Any]:
        code, out, _ = run(*words, "--json")
        return code, json.loads(out)

    return call


@pytest.fixture
def coarse_any_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few squares for the bound over every mechanism, which takes longer than a small design."""
    from mechdesign.positions import solve

    monkeypatch.setattr(solve, "_ANY_OPERATIONS", solve.AnyOperations(least=1e6, most=1e6))


@pytest.fixture
def near_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Follow certified noise to 16 nats instead of 30: the areas of these tests are narrower."""
    from mechdesign.positions import columns

    monkeypatch.setattr(columns, "CONSTANTS", replace(columns.CONSTANTS, far_nats=16.0))


@pytest.fixture(scope="session")
def browser():
    """One Chromium, for all tests of a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser):
    """Open pages without a network; they are closed after the test."""
    kept = []

    def call(path, **options):
        kept.append(Opened(browser, path, **options))
        return kept[-1]

    yield call
    for one in kept:
        one.context.close()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a row by its value where that is short, else by the name of its argument and its number."""
    if isinstance(val, str | bytes) and len(val) > 40:
        return f"{argname}-{len(val)}"
    if isinstance(val, tuple | list) and all(isinstance(item, int | float | str) for item in val):
        words = " ".join(map(str, val))
        return words if len(words) <= 40 else None
    return None
