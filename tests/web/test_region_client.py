"""The client of a device map: probabilities, positions, answers at fixed times, maps that are not what was written."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.clients import NODE, modules, put_together, run, taken_apart
from fixtures.random_device_maps import chances, check_counts, content, region

from mechdesign.sessions.rest import visit_of

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")

OPEN = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient, ReportError } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
const said = async (action) => {
  try { return await action(); } catch (error) { return error instanceof ReportError ? error.code : `${error}`; }
};
"""
COUNTED = """
let day = 0;
const client = await openClient({ table, storage: memoryStorage(), now: () => (day += 1e8), answerAfter: 0 });
const found = {};
for (const secret of JSON.parse(process.argv[2])) {
  const counts = new Array(client.places.count).fill(0);
  for (let k = 0; k < Number(process.argv[3]); k++) {
    counts[(await client.reportCell(secret)).report.number]++;
    await client.forget();
  }
  found[secret] = [counts, Array.from(client.probabilities(secret))];
}
console.log(JSON.stringify(found));
"""
LOCATED = """
const client = await openClient({ table, storage: memoryStorage(), perDay: 1e6, answerAfter: 0 });
const { places } = client;
const asked = JSON.parse(readFileSync("asked.json", "utf8"));
console.log(JSON.stringify({
  at: await Promise.all(asked.map((position) => said(() => places.cellAt(position)))),
  nearest: asked.map((position) => places.nearest(position)),
  points: Array.from({ length: places.count }, (_, cell) => places.point(cell)),
  degrees: places.degrees(places.point(0)),
  there: places.cellAt(places.onEarth(...Object.values(places.degrees(places.point(3)))), true),
  refused: await Promise.all([[NaN, 1], [1], [1e9, 1], [1, Infinity]].map((at) => said(() => client.reportAt(...at)))),
  degreesRefused: await Promise.all([[NaN, 1], [0, 91], [0, 0]].map((at) => said(() => client.report(...at)))),
  cells: await Promise.all([-1, 0.5, places.count, "0"].map((cell) => said(() => client.reportCell(cell)))),
  told: [client.claim, client.unit, client.about],
}));
"""
VISITS = """
const { fixes, visit } = JSON.parse(readFileSync("walk.json", "utf8"));
const options = { perDay: 1e6, answerAfter: 0, remember: "visit", visit };
const client = await openClient({ table, storage: memoryStorage(), ...options });
const given = [];
for (const at of fixes) {
  const { report, remembered } = await client.reportAt(...at);
  given.push([report.number, remembered]);
}
console.log(JSON.stringify({ given, claim: client.memoryClaim, status: await client.status() }));
"""
TIMED = """
let time = 0;
let taken = 0;
Object.defineProperty(globalThis, "performance", { value: { now: () => (time += 0.01) } });
const waits = [];
globalThis.setTimeout = (call, rest) => { waits.push(rest); time += rest; queueMicrotask(call); };
const bits = (count) => { time += taken; return new Uint8Array(count); };
const answer = async (options, draws, cell = 0) => {
  const client = await openClient({ table, bits, storage: memoryStorage(), perDay: 1, ...options });
  const times = [];
  for (taken of draws) {
    const asked = time;
    const code = await said(async () => { await client.reportCell(cell); return null; });
    times.push(code ?? Math.floor(10 * (time - asked)) / 10);
    if (code) times.push(Math.floor(10 * (time - asked)) / 10);
    if (taken < 0) cell += 1;
  }
  return times;
};
const found = {
  first: await answer({}, [3]), remembered: await answer({}, [3, 3]), late: await answer({}, [99.999]),
  later: await answer({}, [130]), slow: await answer({}, [420]), own: await answer({ answerAfter: 7.5 }, [0.1]),
  spent: await answer({}, [-1, 0]), none: await answer({ answerAfter: 0 }, [3]), waits: waits.length,
  options: await Promise.all([-1, NaN, "1", 60001, null].map((answerAfter) => said(() => answer({ answerAfter }, [])))),
};
console.log(JSON.stringify(found));
"""


@pytest.fixture
def ask_client(tmp_path: Path) -> Callable[..., Any]:
    """The output of a script that uses the client of a map."""

    def of(name: str, script: str, *words: str) -> Any:
        return run(modules(tmp_path / "web", content(name)), OPEN + script, *words)

    return of


@pytest.mark.parametrize(
    ("name", "secrets", "draws"),
    [
        ("far", [20], 200),
        pytest.param("knights", [0, 31], 800, marks=pytest.mark.exhaustive),
        pytest.param("knights", [0, 31], 4_000, marks=pytest.mark.exhaustive),
        pytest.param("wide", [0, 5, 84, 90, 167], 10_000, marks=pytest.mark.exhaustive),
    ],
)
def test_true_random_bits_give_the_probabilities(ask_client, name, secrets, draws) -> None:
    told = ask_client(name, COUNTED, json.dumps(secrets), str(draws))
    for secret in secrets:
        counts, found = told[str(secret)]
        check_counts(name, secret, counts)
        np.testing.assert_allclose(found, chances(name, secret), rtol=1e-12)  # sums of doubles in another order


def test_positions_are_those_of_python(ask_client, tmp_path) -> None:
    domain = region("wide").domain
    low, high = domain.points.min(axis=0), domain.points.max(axis=0)
    asked = np.random.default_rng(1).uniform(2 * low - high, 2 * high - low, (200, 2))
    asked = np.vstack([asked, domain.points[::7], domain.points[::11] + 0.25])  # centres, and borders of the first axis
    (tmp_path / "asked.json").write_text(json.dumps(asked.tolist()))
    told = ask_client("wide", LOCATED)
    inside = [at for at, position in enumerate(asked) if told["at"][at] >= 0]
    assert 50 < len(inside) < len(asked) - 50
    index = np.floor((asked[inside] - domain.origin) / domain.cell).astype(int)  # the higher cell on a border
    index = np.minimum(index, np.array(domain.shape) - 1)
    assert [told["at"][at] for at in inside] == domain.lookup[tuple(index.T)].tolist()
    apart = ((asked[:, None, :] - domain.points) ** 2).sum(axis=-1)
    np.testing.assert_allclose(apart[np.arange(len(asked)), told["nearest"]], apart.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(told["points"], domain.points, rtol=1e-15)
    assert told["there"] == 3
    assert told["refused"] == ["position", "position", "outside", "position"]
    assert told["degreesRefused"] == ["position", "position", "outside"]
    assert told["cells"] == ["position"] * 4
    assert told["told"][0] == region("wide").claim
    assert told["told"][1:] == ["km", {**region("wide").header()["about"], "mechanism": region("wide").source_sha256}]


def test_visits_repeat_their_report_by_the_rule_of_python(ask_client, tmp_path) -> None:
    """A walk over a third of the map that leaves places and returns."""
    domain = region("wide").domain
    low, high = domain.points.min(axis=0), domain.points.max(axis=0)
    turns = np.random.default_rng(4).normal(scale=0.12, size=(80, 2)).cumsum(axis=0)
    walk = domain.points[len(domain.points) // 2] + np.sin(turns) * (high - low) / 6
    fixes = [at for at in walk.tolist() if (abs(domain.points - at) <= np.array(domain.cell) / 2.01).all(axis=1).any()]
    visit = float((high - low).min() / 25)
    (tmp_path / "walk.json").write_text(json.dumps({"fixes": fixes, "visit": visit}))
    found = ask_client("wide", VISITS)
    names: dict[str, int] = {}
    last, drawn = None, {}
    for position, (number, remembered) in zip(fixes, found["given"], strict=True):
        last = visit_of(domain, visit, names, last, position).name
        assert last is not None
        assert remembered is (last in names)
        names.setdefault(last, 0)
        assert drawn.setdefault(last, number) == number
    assert 4 <= len(names) < len(fixes) / 2
    assert found["status"]["spent"] == len(names)
    assert "A visit has one report" in found["claim"]


@pytest.mark.obligation("answer-times")
def test_answers_come_at_fixed_times(ask_client) -> None:
    found = ask_client("even", TIMED)
    assert found["first"] == [100]
    assert found["remembered"] == [100, 100]
    assert found["late"] == [200]  # what the clock says in between counts too
    assert found["later"] == [200]
    assert found["slow"] == [500]
    assert found["own"] == [7.5]
    assert found["spent"] == [100, "budget", 100]
    assert found["none"][0] < 4
    assert found["waits"] == 9
    assert found["options"] == ["option"] * 5


def with_header(content_of: bytes, **header: object) -> bytes:
    told, body = taken_apart(content_of)
    return put_together({**told, **header}, body)


def with_body(content_of: bytes, at: int, value: int) -> bytes:
    told, body = taken_apart(content_of)
    return put_together(told, body[:at] + bytes([value]) + body[at + 1 :])


def hostile() -> dict[str, tuple[bytes, str]]:
    """Maps that are not what was written, and what is said of them."""
    good = content("knights")
    told, body = taken_apart(good)
    size = len(body) // 5
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    less = {key: value for key, value in told.items() if key != "grain"}
    field = {
        "cells": [1, 63], "margin": -1, "cell": [0.5, 0], "origin": [0, None], "stencil": 12,
        "length_scales": [1, 2, 3], "grain": 0, "step": 0.5, "cap": 65_535, "ratio": "1", "shift": 62, "bound": [1, 2],
        "claim": None, "cost": 3,
        "claim_digest": "a", "source_sha256": 7, "about": "", "unit": 1, "level_unit": 0,
    }  # fmt: skip
    nan = json.dumps({**told, "cell": [float("nan"), 1.0]}).encode()
    return {
        **{
            f"{name} {value}": (with_header(good, **{name: value}), f"the map's {name} must be")
            for name, value in field.items()
        },
        "cut short": (good[:-1], "cut short"),
        "cut to its head": (good[:40], "not a table"),
        "half": (good[: len(good) // 2], "header"),
        "a changed byte": (bytes(flipped), "altered"),
        "another version": (put_together(told, body, version=2), "version"),
        "more cells": (with_header(good, cells=[10, 7]), "another size"),
        "fewer cells": (with_header(good, cells=[9, 6]), "another size"),
        "too many places": (with_header(good, cells=[5000, 5000]), "2^24"),
        "a short body": (put_together(told, body[:-1]), "another size"),
        "a long body": (put_together(told, body + b"\0"), "another size"),
        "a body that is not zlib": (put_together(told, body, packed=b"12345678"), "another size"),
        "a level of 0": (put_together(told, bytes(2 * size) + body[2 * size :]), "level"),
        "a potential in the margin": (with_body(good, 2 * size, 1), "margin"),
        "not a number": (put_together(nan, body), "JSON"),
        "no object": (put_together([told], body), "no header"),
        "a key more": (with_header(good, more=1), "more"),
        "a key less": (put_together(less, body), "grain"),
        "no map": (with_header(good, kind="factors"), "no header"),
        "a plane without decimals": (with_header(good, plane={**told["plane"], "decimals": -1}), "decimals"),
        "a plane nowhere": (with_header(good, plane={**told["plane"], "latitude": 86}), "nowhere"),
    }


def test_hostile_maps_are_refused_by_name(ask_client, tmp_path) -> None:
    maps = hostile()
    texts = [base64.b64encode(given).decode() for given, _ in maps.values()]
    (tmp_path / "maps.json").write_text(json.dumps(texts))
    script = """
      const found = [];
      for (const text of [...JSON.parse(readFileSync("maps.json", "utf8")), Buffer.from(table).toString("base64")]) {
        const table = new Uint8Array(Buffer.from(text, "base64"));
        try {
          await openClient({ table, storage: memoryStorage() });
          found.push(["taken", ""]);
        } catch (error) { found.push([error.code, error.message]); }
      }
      console.log(JSON.stringify(found));
    """
    *found, good = ask_client("knights", script)
    assert good[0] == "taken"
    for (name, (_, word)), (code, message) in zip(maps.items(), found, strict=True):
        assert code == "table", f"{name}: {message}"
        assert word in message, f"{name}: {message}"
        assert "use an unaltered map" in message or "the table" in message
