"""Every command and option that pages, messages and help texts name exists.

An option is one of the command that is named before it, else of any command. Parameters of problems and metrics are
options of the commands that take them. Scripts are named by their path and have the options of their parser.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs

from mechdesign.cli.app import command
from mechdesign.cli.metric_problem import SETTINGS
from mechdesign.problem.problem_files import shipped_problems

pytestmark = needs(
    "geo", "posteriors", "surveys", "sessions", "factored", "devicemap", "web"
)  # whose commands pages name

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"(?:python -m )?mechdesign ((?:session )?[a-z]+)(?![\w./=-])")
OTHERS = (
    "pip",
    "pytest",
    "python -m",
    "esbuild",
    "tsc",
    "ogr2ogr",
    "npm",
    "npx",
    "cc",
    "git",
    "ruff",
    "sphinx",
    "docker",
)
OF_OTHERS = {"--run-all", "--bundle", "--loader", "--target", "--nthreads", "--no-sandbox", "--collect-only"}
OF_OTHERS |= {"--count"}  # of a problem file that a benchmark writes
SCRIPTS = ("scripts", "benchmarks", "docs")
PROSE = {"file", "found", "when", "package"}  # words after the name that are not commands


def commands(group=None, before=()) -> Iterator[tuple[str, set[str]]]:
    """Every command with its own options."""
    for name, each in (group or command()).commands.items():
        if hasattr(each, "commands"):
            yield " ".join((*before, name)), {"--help"}
            yield from commands(each, (*before, name))
        else:
            words = {word for option in each.params for word in option.opts + option.secondary_opts}
            yield " ".join((*before, name)), {"--help", *(word for word in words if word.startswith("--"))}


def as_options(names) -> set[str]:
    return {f"--{name.replace('_', '-')}" for name in names}


OWN = dict(commands())
LEVEL = as_options(name for names in SETTINGS.values() for name in names) | {"--within", "--factor"}
PARAMETERS = set().union(*(as_options(file.parameters) for file in shipped_problems()))
TAKEN = {
    "solve": PARAMETERS,
    "compare": PARAMETERS,
    "audit": PARAMETERS | LEVEL | {"--box", "--at", "--seed"},
    "plan": PARAMETERS,
}
OPTIONS = {name: options | TAKEN.get(name, set()) for name, options in OWN.items()}
ANY = set().union(*OPTIONS.values(), {"--version"})


def script_options(path: Path) -> set[str]:
    return {"--help", *re.findall(r"add_argument\(\s*\"(--[a-z-]+)", path.read_text(encoding="utf-8"))}


BY_SCRIPT = {
    f"{folder}/{path.name}": script_options(path) for folder in SCRIPTS for path in (ROOT / folder).glob("*.py")
}
OF_SCRIPTS = set().union(*BY_SCRIPT.values())


def wrong(piece: tuple[str, bool], known: set[str]) -> list[str]:
    """The commands and options of a piece of a text that do not exist; of code, also what its first word names."""
    text, is_code = piece
    unit = " ".join(text.split()).removeprefix("$ ")
    script = re.search(r"(?:scripts|benchmarks|docs)/\w+\.py", unit)
    if is_code and (named := COMMAND.match(unit)):
        name = named[1] if named[1] in OPTIONS else named[1].split()[0]
        if name not in OPTIONS:
            return [unit]
        known = OPTIONS[name]
    elif script:
        if script[0] not in BY_SCRIPT:
            return [unit]
        known = BY_SCRIPT[script[0]]
    elif unit.startswith(OTHERS):
        return []
    elif is_code and re.match(r"(?!mechdesign )[a-z]+ .*--[a-z]", unit):
        if (first := unit.split(" ")[0]) not in OPTIONS:
            return [unit]
        known = OPTIONS[first]
    return [f"{option} in: {unit[:160]}" for option in OPTION.findall(unit) if option not in known | OF_OTHERS]


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of code blocks and the spans of code, each with True, and the sentences around them."""
    text = text.replace("\\\n", " ")
    for k, block in enumerate(re.split(r"^```.*$", text, flags=re.M)):
        if k % 2:
            yield from ((part.strip(), True) for line in block.splitlines() for part in re.split(r"&&|[|;]|# ", line))
        else:
            yield from ((span[1], True) for span in re.finditer(r"`([^`]+)`", block))
            yield from ((part, False) for part in re.split(r"(?<=[.;:])\s", re.sub(r"`[^`]+`", " ", block)))


def pages() -> dict[str, str]:
    """The texts that people read outside the code, by path."""
    files = [path for kind in ("md", "rst") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    files += [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "mechdesign").rglob("*.md")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    for kind in ("c", "js", "mjs", "html"):
        for path in (ROOT / "mechdesign").rglob(f"*.{kind}"):
            texts[str(path.relative_to(ROOT))] = " ".join(re.findall("`mechdesign [^`]+`", path.read_text("utf-8")))
    return texts


@cache
def strings(path: Path) -> list[tuple[int, str]]:
    """Every text constant of a Python file: messages, remedies, help and docstrings."""
    content = path.read_text(encoding="utf-8")
    if "--" not in content and "mechdesign " not in content:
        return []
    texts, parts = [], set()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.JoinedStr):
            parts |= set(map(id, node.values))
            texts.append(
                (node, "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values))
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            texts.append((node, node.value))
    return [(node.lineno, text) for node, text in texts if "--" in text or "mechdesign " in text]


@pytest.mark.parametrize("place", ["mechdesign", "problems", "scripts", "benchmarks", "docs"])
def test_options_named_in_the_code_exist(place):
    known = ANY if place == "mechdesign" else ANY | OF_SCRIPTS
    texts = [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in (ROOT / place).rglob("*.py")
        for line, text in strings(path)
    ]
    assert texts
    assert [(where, each) for where, text in texts for piece in pieces(text) for each in wrong(piece, known)] == []


@needs("pictures", "positions", "release")
def test_options_named_on_pages_exist():
    known, texts = ANY | OF_SCRIPTS, pages()
    assert {"README.md", "SECURITY.md", "docs/how-to/audit.md", "docs/tutorials/app.md"} <= set(texts)
    assert [
        (name, each) for name, text in texts.items() for piece in pieces(text) for each in wrong(piece, known)
    ] == []


def test_commands_named_in_messages_exist():
    """Also where no code is marked: "give the reports first: mechdesign estimate ..."."""
    for path in (ROOT / "mechdesign").rglob("*.py"):
        for line, text in strings(path):
            if len(text) < 400:  # docstrings speak of the package
                for name in re.findall(r"(?<![\w/.])mechdesign ([a-z]+)(?![\w.])", text):
                    assert name in OPTIONS or name in PROSE, f"{path}:{line}: {text}"


def test_help_shows_every_option(run, monkeypatch):
    """The options of a command, as this file finds them, are those that its --help lists, and its parameters too."""
    monkeypatch.setenv("COLUMNS", "250")
    for name, options in OWN.items():
        _, shown, _ = run(*name.split(), "--help")
        listed = set(OPTION.findall(re.sub(r"\x1b\[[0-9;]*m", "", shown)))
        assert options <= listed, name
        assert listed <= OPTIONS[name] | ANY, name
    for name in ("solve", "compare"):
        assert set(OPTION.findall(run(name, "--help")[1])) >= PARAMETERS


@pytest.mark.parametrize(
    "text",
    [
        "`--problem philadelphia`", "`plot --over x`", "`verify --scales 1`", "`mechdesign plot x`", "pass --pson X",
        "```sh\nmechdesign area x \\\n   --scales 2\n```", "`python scripts/table1.py --within 2`", "write --levls 1",
        "`python scripts/gone.py`", "`mechdesign session design --seed 1`",
    ],
)  # fmt: skip
def test_each_kind_of_stale_name_is_noticed(text):
    assert [each for piece in pieces(text) for each in wrong(piece, ANY)]
