"""The folder as a package: npm packs it, Node imports it by name, esbuild bundles it for browsers and for Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from fixtures.browsers import needs_browser
from fixtures.clients import NODE, mechanism
from fixtures.forged_files import rewritten

from mechdesign.web import write_client

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
    named = rewritten(mechanism("park"), problem="City blocks")
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
    assert reported["remaining"] == 9
    assert claim == mechanism("park").attrs["claim"]


@pytest.mark.skipif(NPM is None, reason="needs npm")
def test_npm_packs_it(app) -> None:
    told = json.loads(run(NPM, "pack", "--json", "--offline", "--no-update-notifier", folder=app / "web"))
    with tarfile.open(app / "web" / told[0]["filename"]) as archive:
        held = {Path(name).name for name in archive.getnames()}
    (app / "web" / told[0]["filename"]).unlink()
    assert told[0]["name"] == NAME
    assert held >= {"package.json", "README.md", "report.bin", "report.mjs", "report.js", "report.d.mts"}
    assert "index.html" not in held


TYPED = f"""
import {{ memoryStorage, openClient, openSession, ReportError }} from "{NAME}";
import table from "{NAME}/report.bin";
export const bytes: Uint8Array = table;
export const ready = openClient({{ table, perDay: 3 }}).then((client) => client.report(12.49, 41.9));
export const beside = openClient();
export const session = openSession({{ limit: "7/2", storage: memoryStorage() }});
export const until = (error: unknown): number | undefined => (error instanceof ReportError ? error.until : undefined);
"""
DROP_IN = f"""
import {{ geolocationOf, openClient }} from "{NAME}";
const drop_in = geolocationOf(openClient(), {{ source: navigator.geolocation, whenSpent: "area" }});
export const taken: Geolocation = drop_in;
const shown = (position: GeolocationPosition): number => position.coords.accuracy;
const failed = (error: GeolocationPositionError): string => error.message;
export const watch: number = drop_in.watchPosition(shown, failed, {{ enableHighAccuracy: true }});
drop_in.getCurrentPosition(({{ coords }}) => coords.latitude.toFixed(3), ({{ code }}) => code satisfies 1 | 2 | 3);
"""
WRONG = f"""
import {{ openClient }} from "{NAME}";
export const ready = openClient({{ perday: 3 }});
"""
FOR_NODE = f"""
import {{ fileStorage, openClient }} from "{NAME}";
export const ready = openClient({{ storage: fileStorage("memory.json") }});
"""


def test_every_import_has_types_in_the_package(app) -> None:
    """Two ways: the condition "types" of package.json, and the names that TypeScript looks for beside a file."""
    package = json.loads((app / "web" / "package.json").read_text())
    listed = set(package["files"])
    beside = {"./report.mjs": "./report.d.mts", "./report.bin": "./report.d.bin.ts"}
    for entry in (package["exports"][name] for name in (".", "./report.mjs", "./report.bin")):
        assert entry["types"] == beside[entry["default"]]
        assert {entry["types"].removeprefix("./"), entry["default"].removeprefix("./")} <= listed
        assert (app / "web" / entry["types"]).is_file()


MEMBERS = f"""
import * as module from "{NAME}";
const own = (of) => Object.getOwnPropertyNames(of.prototype).filter((name) => name !== "constructor");
const members = (of) => (typeof of === "function" && /^class/.test(String(of)) ? own(of) : []);
console.log(JSON.stringify(Object.fromEntries(Object.entries(module).map(([name, of]) => [name, members(of)]))));
"""


def test_types_name_what_the_module_has(app) -> None:
    """Types are written by hand: their exports, and the methods of their classes, are those of the module."""
    (app / "members.mjs").write_text(MEMBERS)
    found = json.loads(run(NODE, "members.mjs", folder=app))
    types = (app / "web" / "report.d.mts").read_text()
    classes = dict(re.findall(r"^export class (\w+)(.*?)^}", types, re.DOTALL | re.MULTILINE))
    functions = re.findall(r"^export function (\w+)", types, re.MULTILINE)
    assert {*classes, *functions} == {*found}
    for name, body in classes.items():
        methods = set(re.findall(r"^  (\w+)\(", body, re.MULTILINE)) - {"constructor"}
        assert methods == {member for member in found[name] if not member.isupper()} - {"begin"}, name


@pytest.fixture(scope="module")
def tsc(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The TypeScript compiler: on PATH, in node_modules, or installed by npm into a folder of its own."""
    found = shutil.which("tsc") or shutil.which("tsc", path=str(ROOT / "node_modules" / ".bin"))
    if found:
        return [found]
    if NPM is None:
        pytest.skip("needs tsc, or npm to install it")
    folder = tmp_path_factory.mktemp("tsc")
    words = [NPM, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--prefer-offline", "typescript@5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        pytest.skip("npm cannot install TypeScript here")
    return [str(folder / "node_modules" / ".bin" / "tsc")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("module", "resolution", "also"),
    [("nodenext", "nodenext", FOR_NODE), ("node16", "node16", FOR_NODE), ("esnext", "bundler", "")],
)
def test_typescript_takes_it_for_browsers_and_node(app, tsc, module, resolution, also) -> None:
    """Code of browsers without a storage, in every way to resolve modules; a misspelt option is an error."""
    strict = ("--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom")
    words = [*tsc, *strict, "--module", module, "--moduleResolution", resolution]
    (app / "typed.mts").write_text(TYPED)
    (app / "also.mts").write_text(also or "export {};")
    (app / "wrong.mts").write_text(WRONG)
    (app / "drop-in.mts").write_text(DROP_IN)
    run(*words, "typed.mts", "also.mts", "drop-in.mts", folder=app)
    done = subprocess.run([*words, "wrong.mts"], cwd=app, capture_output=True, text=True, check=False)
    assert "TS2561" in done.stdout
    assert "perDay" in done.stdout


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
@needs_browser()
def test_esbuild_bundles_it_for_browsers(app, browser) -> None:
    (app / "browser-app.mjs").write_text(IN_BROWSER)
    run(ESBUILD, "browser-app.mjs", "--platform=browser", "--format=iife", *BUNDLE, "--outfile=alone.js", folder=app)
    (app / "alone.html").write_text('<!doctype html><title>alone</title><script src="alone.js"></script>')
    page = browser.new_page()
    page.goto(f"file://{app}/alone.html")
    reported = page.evaluate("() => globalThis.ready")
    page.close()
    assert reported["remembered"] is False
    assert reported["remaining"] == 9
