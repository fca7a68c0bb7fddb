"""The client in Node: the reports of Python's integers on the same bits, memory, budget, hostile files."""

from __future__ import annotations

import base64
import json
import random
import stat
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fixtures.clients import DRAWN, NODE, Stream, drawn_in_python, mechanism, put_together, run, sampler, taken_apart
from fixtures.rows import few_by_default
from scipy.stats import chi2

from mechdesign.web import write_client

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
UNLIKELY = 1e-9  # of a chi-square test of true random bits: it fails once in a billion runs

OPEN = """
import { readFileSync } from "node:fs";
import * as all from "./web/report.mjs";
const { openClient, memoryStorage, ReportError } = all;
const table = new Uint8Array(readFileSync("./web/report.bin"));
const said = async (action) => {
  try { return await action(); } catch (error) { return error instanceof ReportError ? error.code : `${error}`; }
};
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a mechanism, written once."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = write_client(mechanism(name), tmp_path_factory.mktemp("client") / "web")
        return made[name]

    return of


def drawn_in_node(folder: Path, stream: Stream | SimpleNamespace, reports: int) -> Any:
    (folder.parent / "bits").write_bytes(stream.content)
    script = f"const bits = new Uint8Array(readFileSync('bits'));\n{DRAWN}"
    return run(folder, f"{OPEN}{script}console.log(JSON.stringify(await drawn(all, table, bits, {reports})));")


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("park", 100),
        ("factored", 100),
        ("columns", 100),
        ("apart", 100),
        pytest.param("line", 300, marks=pytest.mark.exhaustive),
        pytest.param("holes", 300, marks=pytest.mark.exhaustive),
        pytest.param("town", 100_000, marks=pytest.mark.exhaustive),
        pytest.param("factored", 100_000, marks=pytest.mark.exhaustive),
        pytest.param("columns", 100_000, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.obligation("client-draws")
def test_reports_are_those_of_python_on_the_same_bits(folder, name, reports, monkeypatch) -> None:
    stream = Stream(seed=3, size=40 * reports)
    expected = drawn_in_python(name, stream, reports, monkeypatch)
    assert len(set(expected)) > 2
    assert drawn_in_node(folder(name), stream, reports) == expected


@pytest.mark.obligation("client-draws")
def test_reports_change_at_ends_of_masses(folder) -> None:
    """The last word of a report and the first of the next one, for every report of every cell."""
    ends = [list(accumulate(row)) for row in sampler("park").rows.mass.tolist()]
    asked = [(row, row[y] - back) for y in range(len(ends[0]) - 1) for back in (1, 0) for row in ends]
    words = SimpleNamespace(content=b"".join((4 * x).to_bytes(8, "little") for _, x in asked))
    expected = [bisect_right(row, x) for row, x in asked]
    assert drawn_in_node(folder("park"), words, len(asked)) == expected


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("park", 50),
        *(pytest.param(name, 200, marks=pytest.mark.exhaustive) for name in ("park", "factored", "columns")),
    ],
)
@pytest.mark.obligation("client-draws")
def test_true_random_bits_give_the_probabilities(folder, name, rounds) -> None:
    script = f"""
      let day = 0;
      const client = await openClient({{ table, storage: memoryStorage(), now: () => (day += 1e8) }});
      const counts = Array.from({{ length: client.places.count }}, () => new Array(client.places.count).fill(0));
      for (let round = 0; round < {rounds}; round++) {{
        await client.forget();
        for (let cell = 0; cell < counts.length; cell++) counts[cell][(await client.reportCell(cell)).report.number]++;
      }}
      console.log(JSON.stringify({{ counts, chances: counts.map((_, cell) => [...client.probabilities(cell)]) }}));
    """
    told = run(folder(name), OPEN + script)
    rows = sampler(name).rows
    expected = rows.probabilities(np.arange(rows.secrets))
    np.testing.assert_allclose(told["chances"], expected, rtol=1e-12)  # sums of doubles in another order
    square = ((np.array(told["counts"]) - rounds * expected) ** 2 / (rounds * expected)).sum()
    assert chi2.sf(square, rows.secrets * (rows.reports - 1)) > UNLIKELY


MEMORY = """
const first = memoryStorage();
let now = 1e12;
const opened = (more = {}) => openClient({ table, storage: first, perDay: 2, now: () => now, ...more });
const client = await opened();
const found = {};
const of = async (cell, asked = client) => {
  const { report, remembered, remaining } = await asked.reportCell(cell);
  return [report.number, remembered, remaining];
};
found.first = await of(0);
found.again = await of(0);
const second = await opened();
found.together = await Promise.all([client, second, client].map((asked) => of(1, asked)));
found.spent = await said(() => of(2));
found.status = await client.status();
found.kept = [await of(0, await opened()), await of(1, await opened())];
now += 24 * 3600 * 1000 - 1;
found.still = await said(() => of(2));
now -= 5000;
found.back = await said(() => of(2));
now += 5001;
found.renewed = (await of(2)).slice(1);
await client.forget();
found.forgotten = [await client.status(), (await of(0)).slice(1), await said(() => of(1))];
console.log(JSON.stringify(found));
"""


@pytest.mark.obligation("client-draws")
def test_memory_and_budget(folder) -> None:
    found = run(folder("park"), OPEN + MEMORY)
    report, other = found["first"][0], found["together"][0][0]
    assert found["first"] == [report, False, 1]
    assert found["again"] == [report, True, 1]
    assert found["together"] == [[other, False, 0], [other, True, 0], [other, True, 0]]
    assert found["spent"] == found["still"] == found["back"] == "budget"
    assert found["status"] == {"remaining": 0, "spent": 2, "remembered": 2}
    assert found["kept"] == [[report, True, 0], [other, True, 0]]
    assert found["renewed"] == [False, 1]
    assert found["forgotten"] == [{"remaining": 1, "spent": 3, "remembered": 0}, [False, 0], "budget"]


CLOCK = """
const HOUR = 3600 * 1000;
let now = Date.UTC(2026, 10, 23, 14, 4, 30);
const opened = (storage = memoryStorage()) => openClient({ table, storage, perDay: 2, now: () => now });
const refusal = async (action) => {
  try { return (await action()).remaining; } catch ({ code, message, until }) { return [code, message, until]; }
};
const found = {};
const client = await opened();
const of = (cell, asked = client) => refusal(() => asked.reportCell(cell));
found.spent = [await of(0), await of(1), await of(2)];
now += 25 * HOUR;
await client.forget();
now -= 25 * HOUR - 60_000;
found.back = await of(3);
now += 24 * HOUR - 60_000 - 1;
found.early = (await of(3))[0];
now += 1;
found.later = [await of(3), await of(4), await of(5)];
const storage = memoryStorage();
const other = await opened(storage);
found.first = await of(0, other);
now -= 25 * HOUR;
found.behind = await of(1, other);
now += 25 * HOUR + 60_000;
found.again = await of(2, await opened(storage));
now += 40 * 24 * HOUR;
found.ahead = [await of(2, other), await of(3, other)];
now -= 39 * 24 * HOUR;
found.dated = await of(4, other);
found.times = [];
for (const time of [NaN, Infinity, undefined, null, "12", 9e15, 10n]) {
  now = time;
  const fresh = await opened();
  found.times.push([(await of(0, fresh))[0], (await refusal(() => fresh.forget()))[0]]);
}
console.log(JSON.stringify(found));
"""
DAY = 24 * 3600 * 1000


def test_a_clock_frees_nothing_by_going_forward_and_back(folder) -> None:
    """perDay 2: what was paid counts for 24 hours of the clock, whatever it showed in between."""
    found = run(folder("park"), OPEN + CLOCK)
    paid = datetime(2026, 11, 23, 14, 4, 30, tzinfo=UTC).timestamp() * 1000
    refused = ["budget", "2 report(s) in 24 hours are spent: report nothing until 14:05 UTC", paid + DAY]
    assert found["spent"] == [1, 0, refused]
    assert found["back"] == refused
    assert found["early"] == "budget"
    assert found["later"][:2] == [1, 0]
    assert found["later"][2][2] == paid + 49 * DAY // 24  # dated with the latest time that was read
    assert (found["first"], found["behind"]) == (1, 0)
    assert found["again"][0] == "budget"
    assert found["ahead"] == [1, 0]
    ended = "2 report(s) in 24 hours are spent: report nothing until 2027-01-04 14:06 UTC"
    assert found["dated"] == ["budget", ended, paid + 42 * DAY + 60_000]
    assert found["times"] == [["option", "option"]] * 7


OPTIONS = """
const storage = memoryStorage();
const refusal = async (options) => {
  try { await openClient(options); return "taken"; } catch ({ code, message }) { return `${code}: ${message}`; }
};
const given = [{ perday: 3 }, { per_day: 3 }, { Table: 1 }, { storgae: 1 }, { limit: 3 }, { now: 7 }, { bits: "" }];
console.log(JSON.stringify(await Promise.all([
  ...given.map((option) => refusal({ table, storage, ...option })), ...[null, [], 7].map(refusal),
  refusal({ table, storage, perDay: 1, key: "k", outside: "nearest", answerAfter: 0, bits: undefined, now: undefined }),
])));
"""


def test_unknown_options_are_refused_by_name(folder) -> None:
    told = run(folder("park"), OPEN + OPTIONS)
    for name, text in zip(["perday", "per_day", "Table", "storgae", "limit"], told[:5], strict=True):
        assert text.startswith(f"option: unknown option {name}: options are table, storage, key, perDay, ")
    assert told[5:7] == ["option: now is a function", "option: bits is a function"]
    assert {text[:22] for text in told[7:10]} == {"option: options are an"}
    assert told[10] == "taken"


REFUSED = """
const keeping = (text) => {
  let kept = text;
  return { getItem: () => kept, setItem: (_, given) => { kept = given; } };
};
const report = (options) =>
  said(async () => (await openClient({ table, ...options })).reportCell(0).then(() => "taken"));
const whole = memoryStorage();
const client = await openClient({ table, storage: whole, key: "k" });
const before = (await said(() => client.reportCell(0)), whole.getItem("k"));
await client.reportCell(1);
whole.setItem("k", before);
const older = await said(() => client.reportCell(0));
whole.setItem("k", "damaged");
const damaged = await said(() => client.status());
await client.forget();
const afterwards = [await client.status(), await said(() => client.reportCell(3))];
const changed = [before.slice(0, -9), before.replace("paid", "pald"), before.replace("spends", "spendz")];
const texts = [...changed, "null", "[]", "7", ""];
const wrong = [{ perDay: 0 }, { perDay: 1.5 }, { outside: "clamp" }];
const positions = [[NaN, 0], [181, 0], [0, 91], ["a", 0], []];
const found = {
  older, damaged, afterwards,
  texts: await Promise.all(texts.map((text) => report({ storage: keeping(text) }))),
  silent: await report({ storage: { getItem: () => null, setItem() {} } }),
  full: await report({ storage: { getItem: () => null, setItem() { throw new Error("quota"); } } }),
  slow: await report({ storage: { getItem: async () => before, setItem: async () => {} } }),
  none: await report({}),
  options: await Promise.all(wrong.map((option) => report({ storage: whole, ...option }))),
  positions: await Promise.all(positions.map((position) => said(() => client.report(...position)))),
  cells: await Promise.all([-1, 9, 0.5, "0", undefined].map((cell) => said(() => client.reportCell(cell)))),
  metres: await said(() => client.reportMetres(0, Infinity)),
};
console.log(JSON.stringify(found));
"""


@pytest.mark.obligation("client-draws")
def test_unsaved_payment_prevents_a_report(folder) -> None:
    found = run(folder("park"), OPEN + REFUSED)
    assert (found["older"], found["damaged"]) == ("memory", "memory")
    assert found["afterwards"] == [{"remaining": 0, "spent": 10, "remembered": 0}, "budget"]
    assert found["texts"] == ["memory"] * 7
    assert (found["silent"], found["full"], found["none"]) == ("storage", "storage", "storage")
    assert found["slow"] == "taken"
    assert found["options"] == ["option"] * 3
    assert found["positions"] + found["cells"] + [found["metres"]] == ["position"] * 11


def test_a_file_keeps_memory_between_processes(folder) -> None:
    script = """
      import { fileStorage, openClient } from "./web/report.mjs";
      const client = await openClient({ storage: fileStorage("memory.json") });
      console.log(JSON.stringify(await client.reportCell(4)));
    """
    first, again = (run(folder("park"), script) for _ in range(2))
    assert first["remembered"] is False
    assert again["remembered"] is True
    assert first["report"] == again["report"]
    kept = folder("park").parent / "memory.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not list(kept.parent.glob("*.part"))


HOSTILE = """
const opened = async (bytes) => {
  try {
    await openClient({ table: bytes, storage: memoryStorage() });
    return "taken";
  } catch (error) { return error.code === "table" ? error.message : `another error: ${error.message}`; }
};
const found = [];
for (const text of JSON.parse(readFileSync("files.json", "utf8"))) {
  found.push(await opened(Uint8Array.from(Buffer.from(text, "base64"))));
}
console.log(JSON.stringify(found));
"""


def open_tables(folder: Path, files: list[bytes]) -> Any:
    (folder.parent / "files.json").write_text(json.dumps([base64.b64encode(file).decode() for file in files]))
    return run(folder, OPEN + HOSTILE)


@pytest.mark.parametrize("name", ["holes", "factored"])
def test_damage_is_refused(folder, name) -> None:
    whole = (folder(name) / "report.bin").read_bytes()
    generator = random.Random(5)
    files = [whole[:size] for size in (0, 7, 16, 47, 48, len(whole) - 1)] + [whole + b"\0"]
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        files.append(bytes(flipped))
    told = open_tables(folder(name), [whole, *files])
    assert told[0] == "taken"
    assert all(text.startswith("the table ") for text in told[1:])


def with_values(header: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**header, **values}


def test_tables_that_are_sealed_and_wrong_are_refused(folder) -> None:
    whole = (folder("park") / "report.bin").read_bytes()
    header, body = taken_apart(whole)
    masses = 4 * 9 + 8 * 9  # bytes of index and of radii before the masses
    low, shift = masses, body[masses] + 1
    zero = bytearray(body)
    for plane in range(8):
        zero[masses + plane * 81] = 0
    domain = header["domain"]
    cases = [
        (put_together(header, body), "taken"),
        (put_together(header, body, version=2), "another version"),
        (put_together(b"{", b""), "not JSON"),
        (put_together(None, b""), "no header"),
        (put_together([], b""), "no header"),
        (put_together(header, body[:low] + bytes([shift % 256]) + body[low + 1 :]), "does not sum to 2^62"),
        (put_together(header, bytes(zero)), "mass below 1"),
        (put_together(header, body + b"\0"), "another size"),
        (put_together(header, body[:-1]), "another size"),
        (put_together(header, body, packed=b"no zlib"), "another size"),
        (put_together(with_values(header, cells=2**40), body), "no cells"),
        (put_together(with_values(header, cells=2**20, reports=2**20), body), "too large"),
        (put_together(with_values(header, cells=9.5), body), "no cells"),
        (put_together(with_values(header, reports="9"), body), "no reports"),
        (put_together(with_values(header, kind="tables"), body), "neither"),
        (put_together(with_values(header, mechanism="0"), body), "lacks mechanism"),
        (put_together(with_values(header, claim=7), body), "lacks claim"),
        (put_together(with_values(header, charge="1"), body), "no charge"),
        (put_together(with_values(header, charge=-1), body), "no charge"),
        (put_together(with_values(header, digits=[1]), body), "no digits"),
        (put_together(with_values(header, domain=with_values(domain, shape=[3, 4e9])), body), "too large a lattice"),
        (put_together(with_values(header, domain=with_values(domain, shape=[3, 2])), body), "off its lattice"),
        (put_together(with_values(header, domain=with_values(domain, cell=[0, 1])), body), "without a side"),
        (put_together(with_values(header, domain=with_values(domain, kind="cube")), body), "unknown kind"),
        (put_together(with_values(header, domain=with_values(domain, plane={})), body), "without numbers"),
        (put_together(with_values(header, domain=with_values(domain, plane=None)), body), "for other places"),
    ]
    told = open_tables(folder("park"), [file for file, _ in cases])
    assert [(said, text) for (_, said), text in zip(cases, told, strict=True) if said not in text] == []


def mutant(header: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """The header, or the domain or plane in it, with one value of another kind, or none."""
    changed_one = json.loads(json.dumps(header))
    holders = [changed_one, changed_one["domain"], changed_one["domain"].get("plane", changed_one)]
    holder = generator.choice(holders)
    name = generator.choice(sorted(holder))
    others = [None, True, 0, -1, 0.5, 2**31, 1e308, "7", "", [], [None, None], {}, [[1], [2]], [3, 3, 3], {"axes": 2}]
    if generator.random() < 0.2:
        del holder[name]
    else:
        holder[name] = generator.choice(others)
    return changed_one


@pytest.mark.parametrize(
    "name", few_by_default(["park", "factored", "columns", "network", "apart"], "park", "factored")
)
def test_no_header_gets_past_its_reader(folder, name) -> None:
    header, body = taken_apart((folder(name) / "report.bin").read_bytes())
    generator = random.Random(11)
    files = [put_together(mutant(header, generator), body) for _ in range(150)]
    told = open_tables(folder(name), files)
    assert {text[:10] for text in told} <= {"the table ", "taken"}
    assert sum(text != "taken" for text in told) > 75


def test_factors_that_are_sealed_and_wrong_are_refused(folder) -> None:
    header, body = taken_apart((folder("factored") / "report.bin").read_bytes())
    n, k, e = header["cells"], header["places"], header["edges"]
    starts = np.cumsum([0, 4 * n, 4 * k, 4 * k, 4 * n, 4 * e, 4 * e])

    def with_high_byte(array: int, width: int, count: int) -> bytes:
        """The body with the highest byte of the last number of an array raised."""
        at = int(starts[array]) + width * count - 1
        return body[:at] + bytes([body[at] ^ 0x40]) + body[at + 1 :]

    cases = [
        (put_together(header, body), "taken"),
        (put_together(header, with_high_byte(0, 4, n)), "off its lattice"),
        (put_together(header, with_high_byte(1, 4, k)), "weight out of range"),
        (put_together(header, with_high_byte(2, 4, k)), "reports no cell"),
        (put_together(header, with_high_byte(3, 4, n)), "without a place"),
        (put_together(header, with_high_byte(4, 4, e)), "ends nowhere"),
        (put_together(header, with_high_byte(5, 4, e)), "ends nowhere"),
        (put_together(with_values(header, cap=1), body), "too long"),
        (put_together(with_values(header, cap=70000), body), "no cap"),
        (put_together(with_values(header, ratio="1"), body), "no ratio"),
        (put_together(with_values(header, ratio="9" * 19), body), "no ratio"),
        (put_together(with_values(header, shift=62), body), "no shift"),
        (put_together(with_values(header, places=2**20), body), "no places"),
        (put_together(with_values(header, reports=n - 1), body), "apart from its cells"),
    ]
    told = open_tables(folder("factored"), [file for file, _ in cases])
    assert [(said, text) for (_, said), text in zip(cases, told, strict=True) if said not in text] == []


def test_columns_that_are_sealed_and_wrong_are_refused(folder) -> None:
    header, body = taken_apart((folder("columns") / "report.bin").read_bytes())
    c, g = header["columns"], header["generators"]
    first, place, offset = len(body) - 4 * c - 6 * g, len(body) - 6 * g, len(body) - 2 * g

    def with_byte(at: int, value: int) -> bytes:
        return body[:at] + bytes([value]) + body[at + 1 :]

    cases = [
        (put_together(header, body), "taken"),
        (put_together(header, with_byte(first, 1)), "without generators"),
        (put_together(header, with_byte(first + 1, 0)), "without generators"),
        (put_together(header, with_byte(first + 4 * c - 1, 0x40)), "without generators"),
        (put_together(header, with_byte(place + 4 * g - 1, 0x40)), "not a place"),
        (put_together(header, with_byte(offset + 2 * g - 1, 0xFF)), "above the cap"),
        (put_together(with_values(header, generators=c - 1), body), "no generators"),
        (put_together(with_values(header, generators=g - 1), body), "another size"),
        (put_together(with_values(header, columns=2**19 + 1), body), "no columns"),
        (put_together(with_values(header, columns=0), body), "no columns"),
        (put_together({name: value for name, value in header.items() if name != "columns"}, body), "another size"),
    ]
    told = open_tables(folder("columns"), [file for file, _ in cases])
    assert [(said, text) for (_, said), text in zip(cases, told, strict=True) if said not in text] == []
