"""Programs that blur, and `mechdesign audit` of blurs."""

from __future__ import annotations

import sys

import pytest
from conftest import ROOT

import mechdesign as md
from mechdesign.errors import InputError

CARELESS = ROOT / "scripts" / "careless_blurs.py"
BARE = (sys.executable, "-I", "-S")  # starts without packages
FUNCTION = """
import math, random
def blur(latitude, longitude):
    turn, radius = random.uniform(0, 2 * math.pi), random.gammavariate(2, 250)
    north, east = radius * math.cos(turn) / 111195, radius * math.sin(turn) / 111195
    return latitude + north, longitude + east / math.cos(math.radians(latitude)), 300
"""
PROGRAM = """
import json, sys
for line in sys.stdin:
    given = json.loads(line)
    SEED
    found = blur(given["latitude"], given["longitude"])
    print(json.dumps(dict(zip(("latitude", "longitude", "accuracy"), found))))
"""


def program(tmp_path, text):
    path = tmp_path / "blur.py"
    path.write_text(text)
    return md.blurs.Command(words=[*BARE, str(path)])


def test_command_has_the_audit_of_its_function(tmp_path):
    """The same seeds and the same draws: the reports pass through JSON without a change."""
    command = program(tmp_path, FUNCTION + PROGRAM.replace("SEED", "random.seed(given['seed'])"))
    names = {}
    exec(FUNCTION, names)
    one, same = (md.blurs.audit_blur(blur, draws=100) for blur in (command, names["blur"]))
    assert one.is_coupled
    assert [finding.kind for finding in one.findings] == ["accuracy"]
    assert one.findings == same.findings
    assert one.witness == same.witness


def test_command_that_ignores_the_seed_is_not_coupled(tmp_path):
    audit = md.blurs.audit_blur(program(tmp_path, FUNCTION + PROGRAM.replace("SEED", "")), draws=100)
    assert [finding.kind for finding in audit.findings] == ["accuracy"]
    assert not audit.is_coupled


def test_command_that_starts_alike_has_a_repeated_seed(tmp_path):
    text = FUNCTION.replace(", 300\n", ",\n") + "random.seed(1)" + PROGRAM.replace("SEED", "")
    audit = md.blurs.audit_blur(program(tmp_path, text), draws=100)
    assert [finding.kind for finding in audit.findings] == ["repeated seed"]
    assert "Two runs" in audit.findings[0].sentence


def test_generator_of_a_module_with_a_constant_seed_is_found(run_json, tmp_path):
    """Its state continues from call to call, so only a second start shows it."""
    (tmp_path / "blur.py").write_text(
        "import random\nfixed = random.Random(1)\n" + FUNCTION.replace("random.", "fixed.")
    )
    code, document = run_json("audit", "--function", f"{tmp_path / 'blur.py'}:blur", "--factor", "1000")
    assert code == 1
    assert [finding["kind"] for finding in document["findings"]] == ["repeated seed", "accuracy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('hello')", "one line for each"),
        ("import sys\nfor line in sys.stdin: print('hello')", "not a report"),
        ("import sys\nfor line in sys.stdin: print('[1, 2]')", "not a report"),
        ('import sys\nfor line in sys.stdin: print(\'{"latitude": 100, "longitude": 1}\')', "outside the Earth"),
        ("import sys\nfor line in sys.stdin: print('null')", "reports nothing"),
        ("raise SystemExit('no luck')", "no luck"),
    ],
)
def test_invalid_program_is_refused(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        md.blurs.audit_blur(program(tmp_path, text), draws=10)
    assert message in str(caught.value)


@pytest.mark.parametrize("blur", [lambda latitude, longitude: "somewhere", lambda latitude, longitude: (latitude,)])
def test_invalid_function_is_refused(blur):
    with pytest.raises(InputError, match="latitude and longitude"):
        md.blurs.audit_blur(blur, draws=10)


def test_audit_command_prints_findings(run, run_json):
    code, printed, _ = run("audit", "--function", f"{CARELESS}:circle", "--within", "500")
    words = " ".join(printed.split())
    assert code == 0
    assert words.startswith("1 defect was found. Every report is 1,00")
    for figure in ("500 m apart", "gives an upper bound", "disc of 563.9 m", "certified optimum"):
        assert figure in words


def test_audit_command_fails_above_a_factor(run_json, tmp_path):
    level = ("--within", "200", "--factor", "3")
    code, document = run_json("audit", "--function", f"{CARELESS}:planar_laplace", *level, "--at", "48.1,11.5")
    assert (code, document["fails"], document["latitude"]) == (0, False, 48.1)
    command = program(tmp_path, "import sys\nfor line in sys.stdin: print(line.strip())\n")
    code, document = run_json("audit", "--command", " ".join(command.words), *level)
    assert (code, document["fails"], document["findings"][0]["kind"]) == (1, True, "exact")
    assert document["witness"]["hits"] == [10_000, 0]


def test_audit_command_draws_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "blur.png"
    words = ("audit", "--function", f"{CARELESS}:whole_degrees", "--disc", "1850ft", "-o", picture)
    assert run(*words)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(*words)[0] == 2


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--function", "nothing:f"], "function"),
        (["--function", f"{CARELESS}:nothing"], "function"),
        (["--function", f"{CARELESS}:DEGREE"], "function"),
        (["--function", "math"], "function"),
        (["--command", "'"], "command"),
        (["--command", ""], "command"),
        (["--function", f"{CARELESS}:circle", "--within", "-5"], "within"),
        (["--command", "no-such-program-here"], "command"),
        (["--function", f"{CARELESS}:circle", "--command", "node x"], "command"),
        (["--function", f"{CARELESS}:circle", "--factor", "1"], "factor"),
        (["--function", f"{CARELESS}:circle", "--within", "far"], "within"),
        (["--function", f"{CARELESS}:circle", "--at", "north"], "at"),
        (["--function", f"{CARELESS}:circle", "--at", "95"], "at"),
        (["--function", f"{CARELESS}:circle", "--metric", "discrete"], "metric"),
        (["--function", f"{CARELESS}:circle", "--disc", "100,200"], "disc"),
        (["table.npy", "--function", f"{CARELESS}:circle"], "table"),
        (["table.npy", "--metric", "discrete", "--factor", "2", "--seed", "1"], "--seed"),
    ],
)
def test_invalid_options_are_refused(run_json, tmp_path, monkeypatch, words, field):
    monkeypatch.chdir(tmp_path)
    code, output = run_json("audit", *words)
    assert (code, output["error"]["field"]) == (2, field)
    assert list(tmp_path.iterdir()) == []
