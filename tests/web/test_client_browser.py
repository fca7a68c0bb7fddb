"""The client and its page in Chromium: from the disk, over http here and on this machine's own address."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psutil
import pytest
from fixtures.browsers import needs_browser
from fixtures.clients import DRAWN, Stream, drawn_in_python, mechanism, sampler
from fixtures.session_designs import design_with_rule

from mechdesign.web import write_client

pytestmark = needs_browser()
ELSEWHERE = next(
    (
        a.address
        for found in psutil.net_if_addrs().values()
        for a in found
        if "." in a.address and a.address[:4] != "127."
    ),
    None,
)  # an address of this machine that a browser does not trust
TITLE = "Private location reports"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_client(mechanism("town"), tmp_path_factory.mktemp("client") / "web")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def server_url(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server of the folder, on the address that the test names."""
    if request.param is None:
        pytest.skip("this machine has no other address than its own loopback")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((request.param, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{request.param}:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of a context of its own, which no error may reach, and the requests that it made."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    open_page = context.new_page()
    open_page.requested, errors = [], []
    open_page.on("request", lambda request: open_page.requested.append(request.url))
    open_page.on("pageerror", lambda error: errors.append(str(error)))
    yield open_page
    context.close()
    assert errors == []


def draw_reports(page: Any, source: str, stream: Stream, reports: int) -> Any:
    """The reports that a page draws from the bits of a stream; source: JavaScript that returns its client."""
    bits = base64.b64encode(stream.content).decode()
    script = (
        f"async (text) => {{ {DRAWN}; const bits = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));"
        f"return drawn({source}, undefined, bits, {reports}); }}"
    )
    return page.evaluate(script, bits)


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("park", 200),
        ("town", 400),
        ("park", 8_000),
        ("town", 100_000),
        ("factored", 100_000),
    ],
)
@pytest.mark.exhaustive
def test_a_classic_script_from_the_disk_draws_what_python_draws(tmp_path, page, name, reports, monkeypatch) -> None:
    stream = Stream(seed=8, size=40 * reports)
    expected = drawn_in_python(name, stream, reports, monkeypatch)
    folder = write_client(mechanism(name), tmp_path / "web")
    page.goto(f"file://{folder}/index.html")
    assert draw_reports(page, "mechdesignReports", stream, reports) == expected
    assert page.requested == [f"file://{folder}/{name}" for name in ("index.html", "report.js")]


@pytest.mark.parametrize(
    ("server_url", "trusted"),
    [("127.0.0.1", True), pytest.param(ELSEWHERE, False, marks=pytest.mark.exhaustive)],
    indirect=["server_url"],
    ids=["here", "elsewhere"],
)
def test_a_module_over_http_draws_what_python_draws(server_url, trusted, page, monkeypatch) -> None:
    stream = Stream(seed=9, size=8 * 250)
    expected = drawn_in_python("town", stream, 250, monkeypatch)
    page.goto(f"{server_url}/index.html")
    assert page.evaluate("[isSecureContext, typeof crypto.subtle, 'locks' in navigator]") == [
        trusted,
        "object" if trusted else "undefined",
        trusted,
    ]
    assert draw_reports(page, f"await import('{server_url}/report.mjs')", stream, 250) == expected
    assert all(url.startswith(server_url) for url in page.requested)
    page.locator("#map").click()
    page.get_by_text("A new draw").wait_for()


@pytest.mark.obligation("client-draws")
def test_a_page_of_the_disk_draws_and_remembers(folder, page, monkeypatch) -> None:
    """Reports are those of Python; a reload keeps memory and budget."""
    stream = Stream(seed=8, size=8_000)
    expected = drawn_in_python("town", stream, 200, monkeypatch)
    page.goto(f"file://{folder}/index.html")
    page.locator("html[data-ready=yes]").wait_for()
    assert draw_reports(page, "mechdesignReports", stream, 200) == expected
    assert page.requested == [f"file://{folder}/{name}" for name in ("index.html", "report.js")]
    assert page.title() == TITLE
    # The claim of the mode comes before that of one report.
    claims = page.locator("header .claim")
    assert claims.nth(0).inner_text().startswith("Many reports: A cell has one report")
    assert claims.nth(1).inner_text().startswith("One report for a place: Protects cells")
    page.locator("#map").click(position={"x": 300, "y": 200})
    page.locator("#again:not([disabled])").wait_for()
    first = json.loads(page.locator("#sent").inner_text())
    assert first["number"] < sampler("town").rows.reports
    assert page.locator("#remaining").inner_text() == "9 of 10 new reports left in 24 hours"
    page.reload()
    page.locator("html[data-ready=yes]").wait_for()
    assert page.locator("#remaining").inner_text() == "9 of 10 new reports left in 24 hours"
    page.locator("#map").click(position={"x": 300, "y": 200})
    page.locator("#again:not([disabled])").wait_for()
    assert page.locator("#status").inner_text().startswith("Remembered")
    assert json.loads(page.locator("#sent").inner_text()) == first


@pytest.mark.exhaustive
def test_the_keyboard_reports_until_the_day_is_spent(folder, page) -> None:
    page.goto(f"file://{folder}/index.html")
    page.locator("html[data-ready=yes]").wait_for()
    page.locator("#map").focus()
    for key in ["ArrowUp"] * 3 + ["ArrowLeft"] * 4:
        page.keyboard.press(key)
    for left in range(9, -1, -1):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.get_by_text(f"{left} of 10 new reports left").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("are spent: report nothing").wait_for()
    assert page.locator("#sent").inner_text() == "nothing"
    page.locator("#forget").click()
    page.get_by_text("What was paid stays paid").wait_for()
    assert page.locator("#remaining").inner_text().startswith("0 of 10")


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_and_follows_the_colour_scheme(folder, page, width) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"file://{folder}/index.html")
        page.locator("html[data-ready=yes]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.getElementById('map').getBoundingClientRect().height") < 844
        grounds.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert grounds[0] != grounds[1]


@pytest.mark.exhaustive
def test_two_tabs_take_turns(folder, page) -> None:
    page.goto(f"file://{folder}/index.html")
    page.locator("html[data-ready=yes]").wait_for()
    other = page.context.new_page()
    other.goto(f"file://{folder}/index.html")
    script = """async () => {
      const client = await mechdesignReports.openClient({ perDay: 30, key: "both" });
      return Promise.all(Array.from({ length: 20 }, (_, cell) => client.reportCell(cell)));
    }"""
    other.evaluate(f"() => {{ globalThis.later = ({script})(); }}")
    here, there = page.evaluate(script), other.evaluate("() => globalThis.later")
    assert [one["report"]["number"] for one in here] == [one["report"]["number"] for one in there]
    assert sum(not one["remembered"] for one in here + there) == 20


def test_browser_stores_the_session(tmp_path, page) -> None:
    folder = write_client(design_with_rule("risk"), tmp_path / "web")
    (folder.parent / "day.html").write_text('<!doctype html><title>day</title><script src="web/report.js"></script>')
    script = """async (tick) => {
      const session = await mechdesignReports.openSession({ limit: 9 });
      const { drawn } = await session.reportAt([1.5], { tick });
      return [drawn, await session.account()];
    }"""
    page.goto(f"file://{folder.parent}/day.html")
    draw_reports, first = page.evaluate(script, 0)
    page.reload()
    _, second = page.evaluate(script, 1)
    assert draw_reports is True
    assert first["reports"] == 1
    assert first["last"] == 0
    assert second["last"] == 1
    assert Fraction(second["spent"]) >= Fraction(first["spent"]) > 0
    assert page.evaluate(f"({script})(1).catch((error) => error.code)") == "tick"
