"""The client of a session in Node: what Python's session says on the same bits, its account, what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.clients import NODE, Stream, run
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.sessions import Session
from mechdesign.web import write_client

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
ROUNDED = 1e-12  # sums of doubles in another order, relative
TICKS = 12  # of a day
PLANE = md.geo.Plane(latitude=41.9, longitude=12.49)
BLOCKS = md.Domain.grid((4, 3), cell=400.0, unit="m", origin=-700.0, plane=PLANE)
LIMIT = 12


@cache
def table(multiple: float) -> Any:
    prior = md.priors.proportional(1.0 + np.arange(BLOCKS.size) % 5)
    metric = multiple * md.Euclidean(epsilon=1 / 400, unit="m")
    return md.baselines.exponential(
        md.DesignProblem(domain=BLOCKS, metric=metric, prior=prior, loss=md.losses.Distance())
    )


def alternating() -> md.sessions.Transitions:
    """Two states at every place, which move by another matrix at every second tick."""
    generator = np.random.default_rng(4)
    matrices = generator.random((2, 24, 24)) * (generator.random((2, 24, 24)) < 0.3) + np.eye(24)
    return md.sessions.Transitions(
        list(matrices / matrices.sum(axis=2, keepdims=True)),
        initial=np.full(24, 1 / 24),
        place=np.arange(24) % BLOCKS.size,
    )


def homes() -> md.sessions.HomeAway:
    weights, day = np.arange(1.0, 13) / 78, np.linspace(0.1, 0.6, TICKS)
    return md.sessions.HomeAway(
        home=weights, away=weights[::-1], popularity=weights, near=500.0, leave=day, back=day[::-1], wander=day, mix=day
    )


DESIGNS: dict[str, Callable[[], dict[str, Any]]] = {
    "clock": lambda: {"rule": md.sessions.Clock(hours=[1.9, 8, 14.1, 23], table_numbers=[1, 0, 0, 1])},
    "clock by width": lambda: {
        "rule": md.sessions.Clock(hours=[0, 5, 10, 20], table_thresholds=[540.0]),
        "movement": alternating(),
    },
    "risk": lambda: {"rule": md.sessions.Risk(threshold=350.0, max_reports=3, table_thresholds=[420.0])},
    "risk, any hours": lambda: {
        "rule": md.sessions.Risk(threshold=250.0, max_reports=3, window="24h"),
        "movement": homes(),
    },
    "risk, in turn": lambda: {"rule": md.sessions.Risk(threshold=200.0, max_reports=3, table_numbers=(1, 0, 0))},
}


@cache
def design(name: str) -> md.sessions.SessionDesign:
    return md.sessions.SessionDesign(tables=[table(1.2), table(2.4)], ticks=TICKS, **DESIGNS[name]())


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a design, written once."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = write_client(design(name), tmp_path_factory.mktemp("session") / "web")
        return made[name]

    return of


OPEN = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient, openSession, ReportError } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
const said = async (action) => {
  try { return await action(); } catch (error) { return error instanceof ReportError ? error.code : `${error}`; }
};
const told = (value) => console.log(JSON.stringify(value));
"""
WALKED = """
const content = new Uint8Array(readFileSync("bits"));
let at = 0;
const bits = (count) => content.subarray(at, (at += count));
const { calls, window, again } = JSON.parse(readFileSync("calls.json", "utf8"));
const storage = memoryStorage();
const opened = () => openSession({ table, storage, bits, limit: 12, window });
let session = await opened();
const estimates = [];
for (const [tick, kind, given] of calls) {
  if (tick === again) session = await opened();
  estimates.push(
    kind === "cell" ? await session.reportCell(given, { tick })
    : kind === "at" ? await session.reportAt(given, { tick })
    : kind === "degrees" ? await session.report(...given, { tick })
    : await session.reportNothing({ tick }),
  );
}
told({ estimates, account: await session.account(), transcript: await session.transcript() });
"""


def calls() -> list[tuple[int, str, Any]]:
    """Two days of ticks, of which some are not called: cells, locations, far ones too, degrees, and no fix; then a day
    without a call, and a year.
    """
    found: list[tuple[int, str, Any]] = []
    for tick in range(2 * TICKS):
        if tick % 7 == 3:
            continue
        kind = ("cell", "at", "degrees", "nothing")[tick % 4]
        given = {"cell": tick % 12, "at": [90.0 * tick - 800, 5e4], "degrees": [12.485 + tick * 3e-4, 41.9]}
        found.append((tick, kind, given.get(kind)))
    return [*found, (40, "cell", 3), (40 + 11_000, "cell", 5), (40 + 11_001, "cell", 5)]


@pytest.mark.parametrize(
    ("name", "window"),
    few_by_default(
        [*zip(DESIGNS, ["1d", "24h", "24h", "1d", "24h"], strict=True)], ("clock", "1d"), ("risk, any hours", "1d")
    ),
)
@pytest.mark.obligation("client-session")
def test_two_days_are_those_of_python_on_the_same_bits(folder, tmp_path, name, window, monkeypatch) -> None:
    stream, made = Stream(seed=8, size=8 * 6 * TICKS), design(name)
    monkeypatch.setattr("mechdesign.mechanism.rows.source", stream)
    session = Session.create(tmp_path / "day.session", design=made, limit=LIMIT, window=window)
    expected = []
    for tick, kind, given in calls():
        if kind == "degrees":
            given = PLANE.forward(*(np.array([each]) for each in given))[0].tolist()
        cell, at = (given if kind == "cell" else None), (given if kind in ("at", "degrees") else None)
        expected.append(session.report(cell, at=at, tick=tick))
    beside = folder(name).parent
    (beside / "bits").write_bytes(stream.content)
    (beside / "calls.json").write_text(json.dumps({"calls": calls(), "window": window, "again": -1}))
    told = run(folder(name), OPEN + WALKED)
    assert [comparable_fields(each) for each in told["estimates"]] == [
        (each.tick, each.place, each.report, each.charge, each.remaining) for each in expected
    ]
    np.testing.assert_allclose(
        [each["error"] for each in told["estimates"]], [each.error for each in expected], rtol=ROUNDED
    )
    assert sum(each.drawn for each in expected) >= 4
    assert len({each.charge for each in expected}) == {"risk, any hours": 2}.get(name, 3)
    account = session.account()
    words = {"limit", "spent", "worst", "remaining", "promised"}
    for field, value in told["account"].items():
        assert (Fraction(value) if field in words else value) == getattr(account, field), field
    assert [tuple(each.values()) for each in told["transcript"]] == [
        (step.tick, step.table, step.report) for step in session.transcript.steps
    ]


def comparable_fields(estimate: dict[str, Any]) -> tuple[Any, ...]:
    charge, remaining = Fraction(estimate["charge"]), Fraction(estimate["remaining"])
    return estimate["tick"], estimate["place"]["number"], estimate["report"], charge, remaining


@pytest.mark.parametrize(("name", "again"), [("risk", 14), ("clock by width", 5)])
def test_session_resumes(folder, name, again) -> None:
    beside, found = folder(name).parent, []
    (beside / "bits").write_bytes(Stream(seed=8, size=8 * 6 * TICKS).content)
    without_nothing = [each for each in calls() if each[1] != "nothing"]  # the last fix is not kept
    for at in (-1, again):
        (beside / "calls.json").write_text(json.dumps({"calls": without_nothing, "window": "1d", "again": at}))
        found.append(run(folder(name), OPEN + WALKED))
    assert found[0] == found[1]


RESEALED = """
const keeping = (text) => {
  let kept = text;
  return { getItem: () => kept, setItem: (_, given) => { kept = given; } };
};
const begun = (options) => said(async () => (await openSession({ table, ...options })) && "begun");
const resealed = (text, limit) => async (change) => {
  const { createHash } = await import("node:crypto");
  const state = JSON.parse(JSON.parse(text).state);
  change(state);
  const inner = JSON.stringify(state);
  const sha256 = createHash("sha256").update(inner).digest("hex");
  return begun({ storage: keeping(JSON.stringify({ state: inner, sha256 })), limit });
};
"""
REFUSED = """
const storage = memoryStorage();
let now = 1e12;
const open = (more) => openSession({ table, storage, key: "k", limit: 7, now: () => now, ...more });
const session = await open();
const found = {};
found.first = (await session.reportCell(3, { tick: 5 })).drawn;
const older = storage.getItem("k");
found.ticks = [];
for (const tick of [5, 4, -1, 1.5, NaN, "6", 2 ** 53]) {
  found.ticks.push(await said(() => session.reportCell(3, { tick })));
}
found.cells = [];
for (const cell of [-1, 12, 0.5, "0", undefined]) {
  found.cells.push(await said(() => session.reportCell(cell, { tick: 6 })));
}
found.places = [
  await said(() => session.reportAt([1], { tick: 6 })),
  await said(() => session.reportAt(1, { tick: 6 })),
  await said(() => session.report(181, 0, { tick: 6 })),
];
found.untouched = storage.getItem("k") === older;
found.nowhere = [];
for (const [tick, ...place] of [[6, NaN, 1], [7, undefined, undefined], [8, 170, -80]]) {
  found.nowhere.push((await session.report(...place, { tick })).drawn);
}
found.far = (await session.reportAt([Infinity, 1e300], { tick: 9 })).tick;
const newer = storage.getItem("k");
storage.setItem("k", older);
found.older = [await said(() => session.reportCell(1, { tick: 10 })), await said(() => session.account())];
storage.setItem("k", newer);
found.noClock = [];
for (const time of [NaN, Infinity, undefined]) {
  now = time;
  found.noClock.push(await said(() => session.reportCell(1)));
}
now = 1e12;
found.other = [
  await begun({ storage, key: "k", limit: 8 }),
  await begun({ storage, key: "k", limit: 7, window: "24h" }),
];
const forge = resealed(newer, 7);
found.same = await forge(() => {});
found.forged = await Promise.all([
  (state) => { state.steps[0][2] = 12; },
  (state) => { state.steps[0][1] = 2; },
  (state) => { state.steps[0][0] = 1e9; },
  (state) => { state.steps[0].push(0); },
  (state) => { state.steps.push(state.steps[0]); },
  (state) => { state.steps[0][2] = null; },
  (state) => { state.last = -2; },
  (state) => { state.design = "0".repeat(64); },
  (state) => { delete state.window; },
  (state) => { state.format = "mechdesign/session-client/2"; },
].map(forge));
const texts = [newer.slice(0, -9), newer.replace("steps", "stepz"), "null", "[]", "7", ""];
found.texts = await Promise.all(texts.map((text) => begun({ storage: keeping(text), limit: 7 })));
found.storages = [
  await begun({ limit: 7, storage: { getItem: () => null, setItem() {} } }),
  await begun({ limit: 7, storage: { getItem: () => null, setItem() { throw new Error("quota"); } } }),
  await begun({ limit: 7 }),
];
let full = false;
const filling = memoryStorage();
const setItem = (key, text) => {
  if (full) throw new Error("quota");
  filling.setItem(key, text);
};
const half = { getItem: filling.getItem, setItem };
const unpaid = await openSession({ table, storage: half, limit: 7 });
full = true;
found.unpaid = await said(() => unpaid.reportCell(0, { tick: 0 }));
const options = [{}, { limit: 0 }, { limit: -1 }, { limit: NaN }, { limit: "1/0" }, { limit: "x" }, { limit: 0.1 },
  { limit: 2 }, { limit: 7, window: "2d" }, { limit: 7, window: "constructor" }, { limit: 7, minutes: 0.5 }];
found.options = await Promise.all(options.map((option) => begun({ storage: memoryStorage(), ...option })));
found.kinds = await said(() => openClient({ table, storage: memoryStorage() }));
const east = await openSession({ table, storage: memoryStorage(), limit: "7", minutes: 60, now: () => 86400000 * 20 });
found.clock = [east.tick(), (await east.reportCell(0)).tick, await said(() => east.reportCell(0))];
const both = await open({ storage: memoryStorage() });
const twice = [both, both, both].map((each) => said(() => each.reportCell(0, { tick: 1 })));
found.twice = (await Promise.all(twice)).map((each) => each.tick ?? each);
storage.setItem("k", null);
found.deleted = await said(() => session.reportCell(1, { tick: 11 }));
found.stored = newer;
told(found);
"""


@pytest.mark.obligation("client-session")
def test_refused_report_costs_nothing(folder) -> None:
    found = run(folder("risk, in turn"), OPEN + RESEALED + REFUSED)
    assert found["first"]
    assert found["ticks"] == ["tick"] * 7
    assert found["cells"] + found["places"] == ["position"] * 8
    assert found["untouched"]
    assert (found["nowhere"], found["far"]) == ([True, True, False], 9)
    assert found["older"] + [found["deleted"]] == ["memory"] * 3
    assert found["other"] == ["option"] * 2
    assert found["noClock"] == ["tick"] * 3
    assert (found["same"], found["forged"]) == ("begun", ["memory"] * 10)
    assert found["texts"] == ["memory"] * 6
    assert found["storages"] + [found["unpaid"]] == ["storage"] * 4
    assert found["options"] == ["option"] * 11
    assert found["kinds"] == "table"
    assert found["clock"] == [20 * TICKS, 20 * TICKS, "tick"]
    assert found["twice"] == [1, "tick", "tick"]
    state = json.loads(json.loads(found["stored"])["state"])
    assert set(state) == {"format", "design", "limit", "window", "last", "steps"}
    assert {len(step) for step in state["steps"]} == {3}


def test_a_limit_holds_where_a_file_promises_too_little(folder) -> None:
    whole = (folder("clock") / "report.bin").read_bytes()
    forged = put_together(whole, lambda header: header["worst"].update({"24h": "1"}))
    (folder("clock").parent / "forged.bin").write_bytes(forged)
    script = """
      const forged = new Uint8Array(readFileSync("forged.bin"));
      const session = await openSession({ table: forged, storage: memoryStorage(), limit: 2.3, window: "24h" });
      const found = [];
      for (let tick = 0; tick < 36; tick++) found.push(await said(() => session.reportCell(0, { tick })));
      told([found.map((each) => each.charge ?? each), await session.account()]);
    """
    found, account = run(folder("clock"), OPEN + script)
    costs = {0: design("clock").charges[1], 4: design("clock").charges[0]}
    assert (found[0], found[4]) == tuple(str(each) for each in costs.values())
    assert (found[7], found[11], found[12], found[16]) == ("budget", "budget", found[0], found[4])
    assert Fraction(account["worst"]) == sum(costs.values()) <= Fraction(2.3)


def put_together(whole: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The file with another header, and the checksum of what it says."""
    start = 16 + int.from_bytes(whole[12:16], "little")
    header = json.loads(whole[16:start])
    change(header)
    told = json.dumps(header).encode()
    content = whole[:12] + len(told).to_bytes(4, "little") + told + whole[start:-32]
    return content + hashlib.sha256(content).digest()


HOSTILE = """
const found = [];
for (const text of JSON.parse(readFileSync("files.json", "utf8"))) {
  const bytes = Uint8Array.from(Buffer.from(text, "base64"));
  try {
    await openSession({ table: bytes, storage: memoryStorage(), limit: 12 });
    found.push("taken");
  } catch (error) { found.push(error.code === "table" ? error.message : `another error: ${error.message}`); }
}
told(found);
"""


def open_designs(folder: Path, files: list[bytes]) -> Any:
    (folder.parent / "files.json").write_text(json.dumps([base64.b64encode(file).decode() for file in files]))
    return run(folder, OPEN + HOSTILE)


def test_damage_is_refused(folder) -> None:
    whole = (folder("clock") / "report.bin").read_bytes()
    generator = random.Random(5)
    files = [whole[:size] for size in (0, 7, 16, 47, 48, len(whole) - 1)] + [whole + b"\0"]
    for _ in range(60):
        flipped = bytearray(whole)
        flipped[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        files.append(bytes(flipped))
    told = open_designs(folder("clock"), [whole, *files])
    assert told[0] == "taken"
    assert all(text.startswith("the table ") for text in told[1:])


CHANGES: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("lacks design", lambda header: header.pop("design")),
    ("no cells", lambda header: header.update(cells=2**12)),
    ("over other places", lambda header: header.update(ledger="0" * 64)),
    ("no ticks", lambda header: header.update(ticks=0.5)),
    ("no tables", lambda header: header.update(tables=[2**40])),
    ("without charges", lambda header: header.update(charges=["1"])),
    ("without charges", lambda header: header.update(charges=["0", "1"])),
    ("without charges", lambda header: header.update(charges=[1, 1])),
    ("no windows", lambda header: header.update(worst={"1d": "-1"})),
    ("no windows", lambda header: header.update(worst={"1w": "1"})),
    ("no rule", lambda header: header.update(rule=None)),
    ("does not know", lambda header: header["rule"].update(kind="constant")),
    ("other tables", lambda header: header["rule"].update(table_numbers=[2, 0, 0, 1])),
    ("without hours", lambda header: header["rule"].update(hours=[24, 1, 2, 3])),
    ("other hours", lambda header: header["rule"].update(hours=[1])),
    ("more tables", lambda header: header["rule"].update(table_numbers=[], table_thresholds=[1, 2])),
    ("other tables", lambda header: header["rule"].update(table_numbers=[], table_thresholds=[2, 1])),
    ("unknown kind", lambda header: header["movement"].update(kind="walk")),
    ("no states", lambda header: header["movement"].update(states=-1)),
    ("another size", lambda header: header["movement"].update(states=13)),
    ("without entries", lambda header: header["movement"].update(entries=[])),
    ("another size", lambda header: header["movement"].update(entries=[5])),
    ("no rates", lambda header: header.update(movement={"kind": "home-away", "rates": [[0, 0, 0, 2]]})),
    ("another size", lambda header: header.update(movement={"kind": "home-away", "rates": [[0, 0, 0, 1]]})),
]


def test_files_that_are_sealed_and_wrong_are_refused(folder) -> None:
    whole = (folder("clock") / "report.bin").read_bytes()
    told = open_designs(folder("clock"), [put_together(whole, change) for _, change in CHANGES])
    assert [(said, text) for (said, _), text in zip(CHANGES, told, strict=True) if said not in text] == []


@pytest.mark.parametrize("name", ["clock by width", "risk, any hours"])
def test_no_header_gets_past_its_reader(folder, name) -> None:
    whole = (folder(name) / "report.bin").read_bytes()
    generator = random.Random(11)
    others = [None, True, 0, -1, 0.5, 2**31, 1e308, "7", "", [], [None, None], {}, [[1], [2]], [3, 3, 3], {"axes": 2}]

    def change(header: dict[str, Any]) -> None:
        holder = generator.choice([header, header["rule"], header["movement"], header["worst"]])
        one = generator.choice(sorted(holder))
        if generator.random() < 0.2:
            del holder[one]
        else:
            holder[one] = generator.choice(others)

    told = open_designs(folder(name), [put_together(whole, change) for _ in range(120)])
    assert {text[:10] for text in told} <= {"the table ", "taken"}, set(told)
    assert sum(text != "taken" for text in told) > 60


def test_rules_without_a_client_are_refused(tmp_path) -> None:
    class Own(md.sessions.Clock):
        kind = "own"

    with pytest.raises(md.errors.UnsuitableError, match="rule"):
        write_client(md.sessions.SessionDesign(tables=[table(1.2)], ticks=TICKS, rule=Own(hours=[1])), tmp_path / "web")
    assert not (tmp_path / "web").exists()
