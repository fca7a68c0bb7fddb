"""The folder as a package: npm packs it, Node imports it by name, esbuild bundles it for browsers and for Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from clients import NODE, mechanism
from conftest import ROOT

from mechdesign.mechanism.table.dataset import seal
from mechdesign.output.client.client import write_client

NPM = shutil.which("npm")
ESBUILD = shutil.which("esbuild") or shutil.which("esbuild", path=str(ROOT / "node_modules" / ".bin"))
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
NAME = "city-blocks-reports"
BUNDLE = ("--bundle", "--loader:.bin=binary", "--target=es2022", "--log-level=error")  # as web/README.md says
IN_NODE = f"""
import {{ fileStorage, openClient }} from "{NAME}";
import table from "{NAME}/report.bin";
const client = await openClient({{ table, storage: fileStorage(process.argv[2]) }});
console.log(JSON.stringify([await client.reportCell(7), client.claim]));
"""
IN_BROWSER = f"""
import {{ memoryStorage, openClient }} from "{NAME}";
import table from "{NAME}/report.bin";
globalThis.ready = openClient({{ table, storage: memoryStorage() }}).then((client) => client.reportCell(7));
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an app with the package among its modules."""
    named = seal(mechanism("park").assign_attrs(problem="City blocks"))
    folder = write_client(named, tmp_path_factory.mktemp("app") / "web")
    shutil.copytree(folder, folder.parent / "node_modules" / NAME)
    return folder.parent


def run(*words: object, folder: Path) -> Any:
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_node_imports_it_by_name(app) -> None:
    script = f"""
      import {{ openClient, memoryStorage }} from "{NAME}";
      const client = await openClient({{ storage: memoryStorage() }});
      console.log(JSON.stringify([await client.reportCell(7), client.claim]));
    """
    (app / "app.mjs").write_text(script)
    reported, claim = json.loads(run(NODE, "app.mjs", folder=app))
    assert reported["left"] == 9
    assert claim == mechanism("park").attrs["claim"]


@pytest.mark.skipif(NPM is None, reason="needs npm")
def test_npm_packs_it(app) -> None:
    told = json.loads(run(NPM, "pack", "--json", "--offline", "--no-update-notifier", folder=app / "web"))
    with tarfile.open(app / "web" / told[0]["filename"]) as archive:
        held = {Path(name).name for name in archive.getnames()}
    (app / "web" / told[0]["filename"]).unlink()
    assert told[0]["name"] == NAME
    assert held >= {"package.json", "README.md", "report.bin", "report.mjs", "report.js", "report.d.mts", "node.mjs"}
    assert not held & {"index.html", "demo.js"}


@pytest.mark.skipif(ESBUILD is None, reason="needs esbuild, on PATH or in node_modules: npm install esbuild")
def test_esbuild_bundles_it_for_node(app) -> None:
    (app / "node-app.mjs").write_text(IN_NODE)
    run(ESBUILD, "node-app.mjs", "--platform=node", "--format=esm", *BUNDLE, "--outfile=out/app.mjs", folder=app)
    alone = app / "alone"
    alone.mkdir()
    (app / "out" / "app.mjs").rename(alone / "app.mjs")
    first, again = (json.loads(run(NODE, "app.mjs", "memory.json", folder=alone)) for _ in range(2))
    assert first[0]["report"] == again[0]["report"]
    assert again[0]["remembered"]
    assert first[1] == mechanism("park").attrs["claim"]


@pytest.mark.skipif(ESBUILD is None, reason="needs esbuild, on PATH or in node_modules: npm install esbuild")
def test_esbuild_bundles_it_for_browsers(app) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[test]'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    (app / "browser-app.mjs").write_text(IN_BROWSER)
    run(ESBUILD, "browser-app.mjs", "--platform=browser", "--format=iife", *BUNDLE, "--outfile=alone.js", folder=app)
    (app / "alone.html").write_text('<!doctype html><title>alone</title><script src="alone.js"></script>')
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"file://{app}/alone.html")
        reported = page.evaluate("() => globalThis.ready")
        browser.close()
    assert (reported["remembered"], reported["left"]) == (False, 9)
