"""Programs that blur, and `mechdesign audit` of blurs."""

from __future__ import annotations

import sys

import careless_blurs
import pytest
from conftest import ROOT

import mechdesign as md
from mechdesign.errors import InputError

CARELESS = ROOT / "scripts" / "careless_blurs.py"
SEEDED = f"""
import json, sys
import numpy as np
sys.path.insert(0, {str(CARELESS.parent)!r})
from careless_blurs import NAME as blur
for line in sys.stdin:
    given = json.loads(line)
    found = blur(given["latitude"], given["longitude"], np.random.default_rng(SEED))
    print(json.dumps(dict(zip(("latitude", "longitude", "accuracy"), found))))
"""
FROM_SEED, FROM_SYSTEM = "given['seed']", ""


def program(tmp_path, name, seed):
    path = tmp_path / "blur.py"
    path.write_text(SEEDED.replace("NAME", name).replace("SEED", seed))
    return md.blurs.Command(words=[sys.executable, str(path)])


def test_command_has_the_audit_of_its_function(tmp_path):
    """The same seeds and the same draws: the reports pass through JSON without a change."""
    command = program(tmp_path, "circle", FROM_SEED)
    one, same = (md.blurs.audit_blur(blur, draws=300) for blur in (command, careless_blurs.circle))
    assert one.is_coupled
    assert one.findings == same.findings
    assert one.witness == same.witness


def test_command_that_ignores_the_seed_is_not_coupled(tmp_path):
    audit = md.blurs.audit_blur(program(tmp_path, "small_accuracy", FROM_SYSTEM), draws=300)
    assert [finding.kind for finding in audit.findings] == ["accuracy"]
    assert not audit.is_coupled


def test_command_that_starts_alike_has_a_repeated_seed(tmp_path):
    path = tmp_path / "blur.py"
    path.write_text(
        SEEDED.replace("NAME", "planar_laplace")
        .replace("for line", "rng = np.random.default_rng(1)\nfor line")
        .replace("np.random.default_rng(SEED)", "rng")
    )
    audit = md.blurs.audit_blur(md.blurs.Command(words=[sys.executable, str(path)]), draws=300)
    assert [finding.kind for finding in audit.findings] == ["repeated seed"]
    assert "Two runs" in audit.findings[0].sentence


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
    (tmp_path / "blur.py").write_text(text)
    with pytest.raises(InputError) as caught:
        md.blurs.audit_blur(md.blurs.Command(words=[sys.executable, str(tmp_path / "blur.py")]), draws=10)
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
    code, document = run_json("audit", "--function", f"{CARELESS}:circle", "--within", "500")
    assert (code, document["fails"]) == (0, None)
    assert document["findings"][0]["kind"] == "fixed radius"
    assert document["witness"]["hits"][0] > 5000


def test_audit_command_fails_above_a_factor(run, run_json, tmp_path):
    level = ("--within", "200", "--factor", "3")
    assert run("audit", "--function", f"{CARELESS}:circle", *level)[0] == 1
    code, document = run_json("audit", "--function", f"{CARELESS}:planar_laplace", *level, "--at", "48.1,11.5")
    assert (code, document["fails"], document["latitude"]) == (0, False, 48.1)
    (tmp_path / "blur.py").write_text("import sys\nfor line in sys.stdin: print(line.strip())\n")
    code, document = run_json("audit", "--command", f"{sys.executable} {tmp_path / 'blur.py'}", *level)
    assert (code, document["findings"][0]["kind"]) == (1, "exact")


def test_audit_command_draws_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "blur.svg"
    words = ("audit", "--function", f"{CARELESS}:whole_degrees", "--disc", "1850ft", "-o", picture)
    assert run(*words)[0] == 0
    assert b"</svg>" in picture.read_bytes()
    assert run(*words)[0] == 2


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--function", "nothing:f"], "function"),
        (["--function", f"{CARELESS}:nothing"], "function"),
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
