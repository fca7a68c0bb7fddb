"""The JavaScript sampler against Python integers, in Node."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from bisect import bisect_right
from itertools import accumulate

import pytest
from exported import flipped, made, resealed, with_mass, written

import mechdesign as md
from mechdesign.mechanism.table.certificate import ROW_SUM

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the sampler is JavaScript")

VECTORS = """
import { readFileSync } from "node:fs";
import { readTable } from "./sample_table.mjs";
const table = await readTable(readFileSync("t.json", "utf8"));
const vectors = JSON.parse(readFileSync("vectors.json", "utf8"));
console.log(JSON.stringify({
  claim: table.claim, budget: table.budget, unit: table.unit,
  secrets: table.secretPoints, reports: table.reportPoints,
  found: vectors.map(([secret, high, low]) => table.report(secret, high, low)),
}));
"""
REFUSED = """
import { readFileSync } from "node:fs";
import { readTable, Table } from "./sample_table.mjs";
const outcome = async (action) => { try { await action(); return "taken"; } catch (error) { return error.message; } };
const texts = JSON.parse(readFileSync("texts.json", "utf8"));
const found = [];
for (const text of texts) found.push(await outcome(() => readTable(text)));
console.log(JSON.stringify(found));
"""
ARGUMENTS = """
import { readFileSync } from "node:fs";
import { readTable } from "./sample_table.mjs";
const table = await readTable(readFileSync("t.json", "utf8"));
const said = (...given) => { try { return table.report(...given); } catch (error) { return error.message; } };
const wrong = [[-1, 0, 0], [5, 0, 0], ["length", 0, 0], ["0", 0, 0], [0, 2 ** 30, 0], [0, 0, 2 ** 32], [0, -1, 0],
  [0, 0.5, 0], [0, 0, NaN], [0, 0], [0]];
console.log(JSON.stringify(wrong.map((given) => said(...given))));
"""


def run(folder, script):
    (folder / "script.mjs").write_text(script)
    done = subprocess.run([NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["line", "plane", "remapped"])
def test_reports_are_those_of_python_integers(tmp_path, name):
    mechanism = made(name)
    md.export(mechanism, tmp_path / "t.json", with_sampler=True)
    sums = [list(accumulate(row)) for row in mechanism["mass"].values.tolist()]
    rng = random.Random(3)
    vectors = [(u, x) for u, row in enumerate(sums) for end in [0, *row] for x in (end - 1, end) if 0 <= x < ROW_SUM]
    vectors += [(rng.randrange(len(sums)), rng.getrandbits(62)) for _ in range(5000)]
    expected = [bisect_right(sums[u], x) for u, x in vectors]
    assert len(set(expected)) == mechanism.sizes["report"]
    (tmp_path / "vectors.json").write_text(json.dumps([[u, x >> 32, x & 0xFFFFFFFF] for u, x in vectors]))
    told = run(tmp_path, VECTORS)
    assert told["found"] == expected
    assert (told["claim"], told["unit"]) == (mechanism.attrs["claim"], mechanism["secret_x"].attrs["units"])
    assert told["budget"] == "one report; k reports cost k times the epsilon"
    assert [point[0] for point in told["secrets"]] == mechanism["secret_x"].values.tolist()
    assert [point[0] for point in told["reports"]] == mechanism["report_x"].values.tolist()


def test_altered_tables_and_wrong_sums_are_refused(tmp_path):
    path = md.export(made("line"), tmp_path / "t.json", with_sampler=True)
    texts = [path.read_text()]
    for change in (-1, 1, None):
        mass = made("line")["mass"].values.copy()
        if change is None:
            mass[:, 0] += mass[:, 1]
            mass[:, 1] = 0
        else:
            mass[2, 2] = int(mass[2, 2]) + change
        texts.append(written(with_mass(made("line"), mass), path).read_text())
    md.export(made("line"), path, overwrite=True)
    texts += [flipped(path, seed).decode("utf-8", "replace") for seed in range(100)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    good, short, long, zero, *flips = run(tmp_path, REFUSED)
    assert good == "taken"
    assert short == f"secret 2: the masses sum to {ROW_SUM - 1}, not 2^62"
    assert long == f"secret 2: the masses sum to {ROW_SUM + 1}, not 2^62"
    assert zero == "secret 0: a mass is below 1"
    assert set(flips) == {"the table was altered, or cut short"}


def test_arguments_out_of_range_are_refused(tmp_path):
    md.export(made("line"), tmp_path / "t.json", with_sampler=True)
    said = run(tmp_path, ARGUMENTS)
    assert [text.split(":")[0] for text in said] == ["no such secret"] * 4 + ["not 30 and 32 bits"] * 7


def test_the_command_draws_reports_at_their_places(tmp_path):
    mechanism = made("line")
    md.export(mechanism, tmp_path / "t.json", with_sampler=True)
    words = [NODE, "sample_table.mjs", "t.json", "2", "200"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    drawn = [line.split(",") for line in done.stdout.splitlines()]
    assert len(drawn) == 200
    assert len({report for report, _ in drawn}) > 1  # the likeliest report has mass under 0.6: 200 alike never happen
    assert all(float(x) == mechanism["report_x"].values[int(report)] for report, x in drawn)


DIGITS = "secret 0: a mass is no plain whole number"
TWICE = "a name is said twice"
PLACES = "not as many places as secrets and reports, or not as many finite coordinates"
LOOSE = [
    *[
        ('"mass": ["', f'"mass": ["{text}', DIGITS)
        for text in ("0", "+", "-", "0x", "0b", "0o", "\\u00a0", "\\n", "\\t", "\uff11", "1_", "1e", "1" * 19)
    ],
    ('"mass": ["', '"mass": [" ', DIGITS),
    (
        '"mass": ["3278675881062586924 791048659385137153 321616384284781121 130759463925790897 89585629769091809"',
        '"mass": [["4611686018427387904"]',
        DIGITS,
    ),
    ('"mass": ["', '"mass": ["1 ', "secret 0: the masses sum to 4611686018427387905, not 2^62"),
    ('"mass": ["', '"mass": [7, "', "not as many rows as secrets"),
    ('"mass": [', '"mass": "12345", "more": [', "not as many rows as secrets"),
    ('"budget"', '"claim"', TWICE),
    ('"budget"', '"cl\\u0061im"', TWICE),
    ('"mass": [', '"mass": ["1"], "mass": [', TWICE),
    ('"mass": [', '"mass" \n : ["1"], "mass": [', TWICE),
    ('"budget": "', '"more": {"a": {}, "a": 1}, "budget": "', TWICE),
    ('"secrets": 5', '"secrets": "5"', PLACES),
    ('"secrets": 5', '"secrets": 4', PLACES),
    ('"reports": 5', '"reports": [5]', PLACES),
    ('"reports": 5', '"reports": 6', PLACES),
    ("[[0.5]", '[["0.5"]', PLACES),
    ("[[0.5]", "[[true]", PLACES),
    ("[[0.5]", "[[1e999]", PLACES),
    ("[[0.5]", "[[]", PLACES),
    ("[[0.5]", '["5"', PLACES),
    ("[[0.5]", "[[0.5, 0]", PLACES),
    ('"secret_points": [', '"secret_points": "12345", "more": [', PLACES),
    ('"unit": "km"', '"unit": 7', "unit is not said"),
    ('"claim": ', '"claims": ', "claim is not said"),
    ('"problem": ', '"claim\\" : ": ', "taken"),
    ('"problem": "line"', '"problem": "\\"secrets\\": 7, \\\\"', "taken"),
    ('"problem": "line"', '"problem": "' + "\\u0061x" * 10**6 + '"', "taken"),
]


def test_what_another_reader_could_take_otherwise_is_refused(tmp_path):
    text = md.export(made("line"), tmp_path / "t.json", with_sampler=True).read_text()
    assert all(old in text for old, _, _ in LOOSE)
    texts = [resealed(text.replace(old, new, 1).encode()).decode() for old, new, _ in LOOSE]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    assert run(tmp_path, REFUSED) == [said for _, _, said in LOOSE]


@pytest.mark.parametrize(
    "words", [[""], ["0x1"], [" 1"], ["1e0"], ["0", "-1"], ["0", "1.5"], ["0", ""], ["\uff11"], []]
)
def test_numbers_of_the_command_are_plain(tmp_path, words):
    md.export(made("line"), tmp_path / "t.json", with_sampler=True)
    done = subprocess.run([NODE, "sample_table.mjs", "t.json", *words], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"plain numbers" in done.stderr
