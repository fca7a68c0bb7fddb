"""Pages opened in a browser, without a network, and how they are laid out."""

from __future__ import annotations

import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def needs_browser():
    """The mark of tests that need a Chromium."""
    return pytest.mark.skipif(BROWSER is None, reason="needs a Chromium")


class Opened:
    """A page that was opened, what it asked for and what it complained of."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".badge:not(.waiting)")

    def asked_for(self):
        """What was asked for beside the file, the program of the worker and an empty icon."""
        return [url for url in self.requests if not url.startswith(("file:", "blob:", "data:"))]


def check_layout(page, width, scheme):
    """A page fits its window, shows its verdict at once, is accessible, and has the colours of the scheme."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    top = page.locator("#proof").bounding_box()
    assert top["y"] + top["height"] < 844
    if page.locator("#draw").count():
        page.click("#draw")
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 15
    assert [one["id"] for one in found["violations"] if one["impact"] in ("serious", "critical")] == []
    dark = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()")
    assert (dark == "#10151c") is (scheme == "dark")
