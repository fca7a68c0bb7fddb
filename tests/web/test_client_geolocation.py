"""The drop-in for navigator.geolocation: positions, errors and a spent budget, in Node and in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.browsers import needs_browser
from fixtures.clients import NODE, mechanism, run
from fixtures.random_device_maps import region

from mechdesign.base.units import METRES
from mechdesign.mechanism.accuracy import accuracy, round_up
from mechdesign.web import write_client

needs_node = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")

# A source that gives the fixes of a list, one for each call or each step of a watch.
FAKE = """
import { readFileSync } from "node:fs";
import { geolocationOf, memoryStorage, openClient } from "./web/report.mjs";
process.on("unhandledRejection", (error) => { console.error(error); process.exit(9); });
const table = new Uint8Array(readFileSync("./web/report.bin"));
const place = async (client, cell) => client.places.degrees(client.places.point(cell));
class Fake {
  constructor() { [this.watches, this.cleared, this.options] = [new Map(), [], []]; }
  getCurrentPosition(success, failure, options) { this.options.push(options); this.now(success, failure); }
  watchPosition(...calls) { this.watches.set(7 + this.watches.size, calls); return 6 + this.watches.size; }
  clearWatch(number) { this.cleared.push(number); }
  fix(at, timestamp = 5) { this.now = (success) => success({ coords: at, timestamp }); return this; }
  fail(code) { this.now = (_, failure) => failure({ code, message: `source ${code}` }); return this; }
  step(at) { this.fix(at); for (const [success, failure] of this.watches.values()) this.now(success, failure); }
}
const words = ({ coords, timestamp }) => ({ ...coords.toJSON(), timestamp });
const failed = ({ code, message, POSITION_UNAVAILABLE: own }) => ({ code, message, own });
const asked = (geolocation, options) => new Promise((resolve) => {
  const [success, failure] = [(position) => resolve(words(position)), (error) => resolve(failed(error))];
  geolocation.getCurrentPosition(success, failure, options);
});
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
"""
ONE = """
const [fake, storage] = [new Fake(), memoryStorage()];
let day = 1e12;
const opened = (options) => openClient({ table, storage, now: () => day, perDay: 2, ...options });
const client = await opened();
const geolocation = geolocationOf(opened(), { source: fake });
const spots = [0, 7, 110].map((cell) => client.places.degrees(client.places.point(cell)));
const found = {};
found.first = await asked(geolocationOf(client, { source: fake.fix(spots[0]) }), { maximumAge: 3 });
found.sent = (await client.reportCell(0)).report;
day += 600_000;
found.second = await asked(geolocationOf(client, { source: fake.fix(spots[1], 6) }));
found.again = await asked(geolocationOf(client, { source: fake.fix(spots[0], 8) }));
day += 600_000;
fake.fix(spots[2], 9);
found.last = await asked(geolocationOf(client, { source: fake }));
found.restarted = await asked(geolocationOf(opened(), { source: fake }));
found.area = await asked(geolocationOf(client, { source: fake, whenSpent: "area" }));
found.refused = await asked(geolocationOf(client, { source: fake, whenSpent: "refuse" }));
await client.forget();
found.forgotten = await asked(geolocationOf(client, { source: fake }));
found.options = fake.options[0] ?? null;
found.outside = await asked(geolocationOf(client, { source: fake.fix({ longitude: 100, latitude: 1 }) }));
found.source = [];
for (const code of [1, 2, 3]) found.source.push(await asked(geolocationOf(client, { source: fake.fail(code) })));
found.absent = await asked(geolocationOf(client, { source: null }));
const broken = openClient({ table: new Uint8Array(60), storage });
found.table = await asked(geolocationOf(broken, { source: fake.fix(spots[0]) }));
found.late = await asked(geolocationOf(new Promise(() => {}), { source: fake }), { timeout: 5 });
geolocationOf(client, { source: fake.fail(1) }).getCurrentPosition(() => {});
const thrown = (call) => { try { return call(); } catch (error) { return error.code ?? error.name; } };
found.wrong = [() => geolocation.getCurrentPosition(), () => geolocationOf(client, { whenSpent: "never" })].map(thrown);
await settled();
console.log(JSON.stringify(found));
"""
WATCH = """
const fake = new Fake();
const client = await openClient({ table, storage: memoryStorage(), perDay: 9 });
const geolocation = geolocationOf(client, { source: fake });
const spots = [0, 7].map((cell) => client.places.degrees(client.places.point(cell)));
const heard = [];
const hear = (position) => heard.push(words(position).accuracy);
const number = geolocation.watchPosition(hear, (error) => heard.push(-error.code));
for (const spot of [spots[0], spots[0], { longitude: 100, latitude: 1 }, spots[0]]) {
  fake.step(spot);
  await settled();
}
const early = [...heard];
fake.step(spots[1]); fake.step(spots[0]);
await settled();
const { spent } = await client.status();
fake.step(spots[1]);
geolocation.clearWatch(number);
geolocation.clearWatch(99);
await settled();
const [late, after] = [heard.length - early.length, (await client.status()).spent];
console.log(JSON.stringify({ early, spent, late, after, cleared: fake.cleared }));
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_client(mechanism("town"), tmp_path_factory.mktemp("town") / "web")


@pytest.fixture(scope="module")
def answers(town: Path) -> Any:
    return run(town, FAKE + ONE)


@needs_node
def test_position_is_the_report_with_its_radius(answers) -> None:
    first, sent = answers["first"], answers["sent"]
    assert (first["longitude"], first["latitude"]) == (sent["longitude"], sent["latitude"])
    radii = round_up(accuracy(mechanism("town")))  # as the file has them
    # Degrees are rounded to a tenth of a cell of 150 m, and the radius upwards to a metre.
    assert 0 <= first["accuracy"] - radii[sent["number"]] <= 0.1 * 150 + 1
    assert first["timestamp"] == 5
    assert [first[name] for name in ("altitude", "altitudeAccuracy", "heading", "speed")] == [None] * 4
    assert answers["options"] == {"maximumAge": 3}


@needs_node
def test_spent_budget_gives_the_last_report_and_its_time(answers) -> None:
    """The last report is the one that was given last, here a remembered one, also after a restart."""
    place = {name: answers["first"][name] for name in ("longitude", "latitude", "accuracy")}
    assert answers["again"] == answers["first"] | {"timestamp": 8}
    for name in ("last", "restarted"):
        assert answers[name] == answers["first"] | place | {"timestamp": int(1e12) + 600_000}
    for name in ("area", "forgotten"):
        # The farthest corner of 15 x 15 cells of 150 m.
        assert 1125 * np.sqrt(2) <= answers[name]["accuracy"] <= 1125 * np.sqrt(2) + 0.1 * 150 + 1
        assert abs(answers[name]["latitude"] - 41.9) < 1e-3
    assert answers["refused"]["code"] == 2
    assert "report nothing until" in answers["refused"]["message"]


@needs_node
def test_failures_are_errors_of_the_geolocation_api(answers) -> None:
    assert [answers[name]["code"] for name in ("outside", "absent", "table", "late")] == [2, 2, 2, 3]
    assert [error["code"] for error in answers["source"]] == [1, 2, 3]
    assert answers["source"][0] == {"code": 1, "message": "source 1", "own": 2}
    assert answers["wrong"] == ["TypeError", "option"]


@needs_node
def test_watch_calls_back_when_the_report_changes(town) -> None:
    heard = run(town, FAKE + WATCH)
    first, error, again = heard["early"]
    assert (error, again) == (-2, first)
    # A fix that waits behind a newer one costs nothing, nor does one of a watch that has ended.
    assert (heard["spent"], heard["late"], heard["after"], heard["cleared"]) == (1, 0, 1, [7])


@needs_node
def test_map_without_radius_says_all_of_the_map(tmp_path) -> None:
    device_map = region("certified")
    folder = write_client(device_map, tmp_path / "web")
    script = """
      const client = await openClient({ table, storage: memoryStorage(), answerAfter: 1 });
      const { longitude, latitude } = client.places.degrees(client.places.point(5));
      const geolocation = geolocationOf(client, { source: new Fake().fix({ longitude, latitude }) });
      const { report } = await client.reportCell(5);
      console.log(JSON.stringify([await asked(geolocation), report, client.places.box()]));
    """
    position, report, (low, high) = run(folder, FAKE + script)
    away = [max(abs(report[axis] - low[k]), abs(high[k] - report[axis])) for k, axis in enumerate("xy")]
    metres = float(np.hypot(*away)) * METRES[device_map.unit]
    assert metres <= position["accuracy"] <= 1.01 * metres + 1


@needs_browser()
def test_page_reads_reports_by_the_calls_it_had(town, browser) -> None:
    """A page that calls navigator.geolocation, unchanged, once it is replaced."""
    context = browser.new_context(
        offline=True, geolocation={"longitude": 12.49, "latitude": 41.9}, permissions=["geolocation"]
    )
    page = context.new_page()
    (town.parent / "app.html").write_text('<!doctype html><title>app</title><script src="web/report.js"></script>')
    page.goto((town.parent / "app.html").as_uri())
    script = """async () => {
      const { geolocationOf, memoryStorage, openClient } = globalThis.mechdesignReports;
      const client = openClient({ storage: memoryStorage() });
      Object.defineProperty(navigator, "geolocation", { value: geolocationOf(client) });
      const position = await new Promise((done, failed) => navigator.geolocation.getCurrentPosition(done, failed));
      return [position.toJSON(), (await (await client).lastReport()).report];
    }"""
    position, report = page.evaluate(script)
    context.close()
    assert position["coords"]["latitude"] == report["latitude"]
    assert position["coords"]["longitude"] == report["longitude"]
    assert position["coords"]["accuracy"] > 100
