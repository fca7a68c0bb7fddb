"""Fixtures of the tests in a browser."""

from __future__ import annotations

import pytest
from browsers import BROWSER, Opened


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser):
    kept = []

    def call(path, **options):
        kept.append(Opened(browser, path, **options))
        return kept[-1]

    yield call
    for one in kept:
        one.context.close()
