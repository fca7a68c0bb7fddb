"""The command line as its help shows it: panels, how many options there are, and every example as it stands."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex

import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs

from mechdesign.cli.app import PANELS, command

# 115, then 13 of limits on discs (--disc, --share, --people, pictures of shares), then 19 that say how a file is read:
# --columns and --crs of seven commands, --prior-is, --nodata-is, --nats-per-cell and --variable, and --no-bound; then
# --people-per-disc, so that --people has one meaning.
# --classes of level, --kind, --overwrite and --json of new, --exit-zero of audit and estimate.
# 7 of sample for files of points, 5 of estimate for weights, groups, missing answers, a population and the system of
# layers, --function and --command of audit, --designer, --bits, --from, --crs and --cells of export, --checker and the
# picture of verify: each is one subject of its own. The seed and the place of a blur are parameters, as its level is.
MOST_OPTIONS = 115 + 13 + 19 + 1 + 4 + 2 + 7 + 5 + 2 + 5 + 2
SEVERAL = {"--output", "--people"}  # files by their suffix
ORDER = ("level", "area", "verify", "audit", "sample", "export", "plan", "estimate", "solve", "compare", "new")


def leaves(group, *before):
    """Every command that runs, with its names."""
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from leaves(one, *before, name)
        else:
            yield (*before, name), one


def options(one):
    return [p for p in one.params if p.param_type_name == "option" and "--help" not in p.opts]


@needs("geo", "sessions", "surveys")
def test_fifteen_commands_have_few_options():
    commands = dict(leaves(command()))
    assert len(commands) == 15
    assert {names[0] for names in commands} == {name for names in PANELS.values() for name in names}
    assert sum(len(options(one)) for one in commands.values()) <= MOST_OPTIONS


@needs("geo", "sessions", "surveys")
def test_one_option_has_one_kind_of_value_everywhere():
    """An option of one name takes one kind of value in all commands: its metavariable names it."""
    kinds = {}
    for _, one in leaves(command()):
        for option in options(one):
            if option.opts[-1] not in SEVERAL:
                kinds.setdefault(option.opts[-1], set()).add(option.metavar)
    assert {name for name, seen in kinds.items() if len(seen) > 1} == set()


@needs("geo", "sessions", "surveys")
def test_no_parameter_of_a_shipped_problem_is_an_option():
    """Commands that take a problem pass on what they do not know: a name of both would be ambiguous."""
    files = {path.stem: runpy.run_path(str(path)) for path in (ROOT / "problems").glob("*.py")}
    parameters = {name: set(inspect.signature(file["problem"]).parameters) for name, file in files.items()}
    for names, one in leaves(command()):
        if names in {("solve",), ("compare",), ("audit",), ("plan",)}:
            taken = {option.opts[-1].lstrip("-").replace("-", "_") for option in options(one)}
            assert {name: own & taken for name, own in parameters.items() if own & taken} == {}, names


@needs("geo", "positions", "sessions", "surveys", "web")
@pytest.mark.usefixtures("coarse_any_bound")
def test_every_help_begins_with_an_example_that_runs(run, tmp_path, monkeypatch):
    """As they stand; the curve of a session has one point, at its limit."""
    pytest.importorskip("pyproj")
    from mechdesign.sessions.study import propose

    monkeypatch.setattr(propose, "TIMES", (1.0,))
    monkeypatch.chdir(tmp_path)
    examples = {}
    for names, one in leaves(command()):
        first = one.help.splitlines()[0]
        examples[names] = re.fullmatch(r"Example: `mechdesign (.*)`\.", first)[1]
        assert shlex.split(examples[names])[: len(names)] == list(names)
    assert run("solve", "flat", "--cells", 4, "-o", "flat.nc")[0] == 0
    (tmp_path / "reports.csv").write_text("report\n" + "\n".join(["5", "6", "9", "10"] * 3) + "\n")
    sessions = [("session", name) for name in ("design", "create", "report", "account")]
    for names in [*((name,) for name in ORDER), *sessions]:
        code, _, err = run(*shlex.split(examples.pop(names)))
        assert code == 0, (names, err)
    assert examples == {}
