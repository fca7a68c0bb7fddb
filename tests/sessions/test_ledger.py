"""The file of a budget: one ledger under any of its names, read strictly, without remains of killed writers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import xarray as xr
from fixtures.factored_mechanisms import factored_mechanism as made_factored
from fixtures.forged_files import rewritten
from fixtures.interruption_points import SOURCE
from hypothesis import given, settings
from hypothesis import strategies as st
from test_budget import sampler

import mechdesign as md
from mechdesign.errors import BudgetError, FileFormatError, InputError
from mechdesign.sessions import ledger
from mechdesign.sessions.budget import REMEMBERED, Paid


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*"))


def link(at: Path, to: Path | str) -> Path:
    at.parent.mkdir(exist_ok=True)
    at.symlink_to(to)
    return at


ROUTES: dict[str, Callable[[Path], Path]] = {
    "link beside it": lambda path: link(path.parent / "a", path.name),
    "link in another folder": lambda path: link(path.parent / "elsewhere" / "ledger.json", path),
    "link of a link": lambda path: link(path.parent / "b", link(path.parent / "a", path)),
    "link to its folder": lambda path: link(path.parent.parent / f"{path.parent.name}-link", path.parent) / path.name,
    "relative": lambda path: Path(os.path.relpath(path)),
    "detour": lambda path: path.parent / ".." / path.parent.name / path.name,
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.obligation("budget-paid-once")
def test_two_names_are_one_ledger(path: Path, route: str) -> None:
    budget = md.sessions.Budget.create(path, limit=2)
    other = md.sessions.Budget(path=ROUTES[route](path))
    assert other.path == budget.path == path
    first = other.report(sampler(), 5)
    again = budget.report(sampler(), 5)
    assert (int(again), again.attrs["cost"]) == (int(first), REMEMBERED)
    budget.report(sampler(), 6)
    for each in (other, budget, md.sessions.Budget(path=other.path)):
        with pytest.raises(BudgetError):
            each.report(sampler(), 7)
    assert [name for name in names(path.parent) if name.endswith(".lock")] == [".ledger.json.lock"]
    with pytest.raises(InputError, match="exists already"):
        md.sessions.Budget.create(link(path.parent / "one more", path), limit=1)


def test_the_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        md.sessions.Budget.create("ledger.json", limit=1)
    budget = md.sessions.Budget(path="ledger.json")
    monkeypatch.chdir(tmp_path / "one")
    budget.spend(1)
    assert (budget.path, md.sessions.Budget(path="ledger.json").spent) == (tmp_path / "two" / "ledger.json", 0)


def test_hard_links_are_refused_until_one_is_left(path: Path) -> None:
    budget, other = md.sessions.Budget.create(path, limit=2), path.parent / "other"
    other.hardlink_to(path)
    before = path.read_bytes()
    for use in (
        lambda: budget.spend(1),
        lambda: budget.report(sampler(), 5),
        lambda: budget.remaining,
        lambda: md.sessions.Budget(path=path),
        lambda: md.sessions.Budget(path=other),
    ):
        with pytest.raises(InputError, match=rf"2 names \(hard links\).*{path.parent}.*delete the others"):
            use()
    with pytest.raises(InputError, match="exists already"):
        md.sessions.Budget.create(other, limit=2)
    assert path.read_bytes() == other.read_bytes() == before
    other.unlink()
    assert budget.spend(2) == 0


def test_a_ledger_that_another_process_makes_meanwhile_stands(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_lock = ledger.PrivateLedger.hold_lock

    @contextlib.contextmanager
    def late(self: ledger.PrivateLedger[Paid]) -> Iterator[None]:
        self.write(Paid(limit=Fraction(9)))
        with hold_lock(self):
            yield

    with monkeypatch.context() as patched:
        patched.setattr(ledger.PrivateLedger, "hold_lock", late)
        with pytest.raises(InputError, match="exists already"):
            md.sessions.Budget.create(path, limit=1)
    assert md.sessions.Budget(path=path).limit == 9


KINDS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
    "link to a folder": lambda path: path.symlink_to(path.parent),
    "FIFO": os.mkfifo,
    "link to a FIFO": lambda path: (os.mkfifo(path.parent / "fifo"), path.symlink_to("fifo")),
    "link to a device": lambda path: path.symlink_to(os.devnull),
    "socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_what_is_no_file_is_no_ledger(path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # a socket's address is short
    KINDS[kind](Path(path.name))
    before = names(path.parent)
    with pytest.raises(InputError) as caught:
        md.sessions.Budget(path=path)
    assert caught.value.field == "budget"
    if kind != "nothing":
        with pytest.raises(InputError, match="exists already"):
            md.sessions.Budget.create(path, limit=1)
    assert names(path.parent) == before


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "no/such/folder", "file/in/a/file", "n" * 300, "n" * 250, "n" * 245, "\0", os.devnull]
)
def test_names_that_no_ledger_can_have(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for use in (lambda: md.sessions.Budget.create(name, limit=1), lambda: md.sessions.Budget(path=name)):
        with pytest.raises(InputError) as caught:
            use()
        assert caught.value.field in ("budget", "output")
    assert names(tmp_path) == ["file"]
    with pytest.raises(InputError, match="has no parent folder"):
        md.sessions.Budget.create("no/such/folder", limit=1)


@pytest.mark.parametrize("kind", ["link to a device", "link to a FIFO", "FIFO", "folder"])
def test_a_ledger_that_became_something_else_is_refused(path: Path, kind: str) -> None:
    budget = md.sessions.Budget.create(path, limit=2)
    path.unlink()
    KINDS[kind](path)
    with pytest.raises(InputError, match=r"is not a regular file|cannot be read"):
        budget.spend(1)
    path.rmdir() if kind == "folder" else path.unlink()
    path.symlink_to(md.sessions.Budget.create(path.parent / "another", limit=9).path)
    with pytest.raises(InputError, match="cannot be read"):
        budget.spend(1)


KILLED = """
import os, sys, mechdesign as md
budget = md.sessions.Budget(path=sys.argv[1])
os.replace = lambda *given: os._exit(9)
budget.spend(1)
"""


@pytest.mark.obligation("killed-writer")
def test_what_a_killed_writer_left_is_removed_and_nothing_else(path: Path) -> None:
    md.sessions.Budget.create(path, limit=9).report(sampler(), 5)
    (secret,) = json.loads(path.read_text())["remembered"]
    foreign = path.parent / "precious"
    foreign.write_text("precious")
    others = [".ledger.json.x.abcdefgh.part", ".ledger_json.abcdefgh.part", "ledger.json.abcdefgh.part"]
    others += [".ledger.json.abcdefg.part", ".ledger.json.ABCDEFGH.part", ".ledger.json.abcdefgh.part~"]
    for name in others:
        (path.parent / name).write_text(name)
    (path.parent / ".ledger.json.folder00.part").mkdir()
    link(path.parent / ".ledger.json.link0000.part", foreign)
    kept, before = [*names(path.parent), "x"], path.read_bytes()
    ended = subprocess.run([sys.executable, "-c", KILLED, link(path.parent / "x", path)], timeout=60, check=False)
    (left,) = set(names(path.parent)) - set(kept)
    assert (ended.returncode, path.read_bytes()) == (9, before)
    assert secret in (path.parent / left).read_text()
    assert stat.S_IMODE((path.parent / left).stat().st_mode) == 0o600
    assert md.sessions.Budget(path=path).spent == 1
    assert names(path.parent) == sorted(kept)
    assert foreign.read_text() == "precious"


KILLING = f"""
import os, random, signal
{SOURCE}
from pathlib import Path
import mechdesign as md
path, moment = Path(sys.argv[2]), random.Random(0)
md.sessions.Budget(path=path).spend(2.0**-20)  # late imports happen here
events = events_of(lambda: md.sessions.Budget(path=path).spend(2.0**-20))
for _ in range(int(sys.argv[1])):
    share = moment.uniform(0, 5)
    child = os.fork()
    if child == 0:
        budget = md.sessions.Budget(path=path)
        at_event(1 + int(share * events), lambda: os.kill(os.getpid(), signal.SIGKILL))
        while True:
            budget.spend(2.0**-20)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    left = len(list(path.resolve().parent.glob(".*.part")))
    spent = md.sessions.Budget(path=path).spent
    print(left, len(list(path.resolve().parent.glob(".*.part"))), spent * 2**20, flush=True)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("kills", [20, 300])
def test_a_ledger_survives_writers_that_are_killed(path: Path, kills: int) -> None:
    """SIGKILL at a random call: the next opening removes all remains, and every payment counts."""
    budget = md.sessions.Budget.create(path, limit=1000)
    budget.report(sampler(), 5)
    named = link(path.parent / "elsewhere" / "link", path)
    ended = subprocess.run([sys.executable, "-c", KILLING, str(kills), named], stdout=subprocess.PIPE, text=True)
    left, after, spent = zip(*(map(int, line.split()) for line in ended.stdout.splitlines()), strict=True)
    assert (ended.returncode, len(left), max(after)) == (0, kills, 0)
    assert sorted(spent) == list(spent)
    assert spent[-1] == budget.spent * 2**20 > 2**20
    assert int(budget.report(sampler(), 5)) >= 0
    assert kills < 100 or sum(left) > kills / 20
    assert names(path.parent) == [".ledger.json.lock", "elsewhere", "ledger.json", "link"]


def seal_text(document: dict[str, object]) -> str:
    kept = {name: value for name, value in document.items() if name != "sha256"}
    return json.dumps(kept | {"sha256": hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()})


def change(**entries: object) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | entries)


def forge(**entries: object) -> Callable[[str], str]:
    return lambda text: seal_text(json.loads(text) | entries)


NOT_SPENT = [1, "0", "4", "-1", "+1", "01", " 1", "1.0", "1e0", "1_0", "1/1", "1/0", "2/-2", chr(0x661), "1" * 2000]
DAMAGE: dict[str, Callable[[str], str]] = {
    "cut short": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another document": lambda text: "[1, 2]",
    "less spent": change(spent="0"),
    "a higher limit": change(limit="100"),
    "other reports": change(remembered={}),
    "a field more": change(more=1),
    "no checksum": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "sha256"}),
    "a field twice": lambda text: text.replace('"limit":', '"limit": "9", "limit":'),
    "deep": lambda text: "[" * 10**6,
    "many digits": lambda text: text.replace('"spends": 1', '"spends": ' + "1" * 10**4),
    "no text": lambda text: "\udcff" + text,
    "17 MB": lambda text: text + " " * (17 << 20),
    "another schema, sealed": forge(schema="mechdesign/budget/2"),
    "a field more, sealed": forge(more=1),
    **{
        f"{name} {value!r:.40}, sealed": forge(**{name: value})
        for name, values in {
            "spends": [1.0, True, "1", -1, 0, None, float("nan"), float("inf"), [1]],
            "limit": [3, 3.0, None, True, ["3"], "1" + "0" * 400, "9" * 5000, "1e999999999", "nan", "-3", "0"],
            "spent": NOT_SPENT,
            "unit": ["", "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64, 0, ["0"] * 64],
            "remembered": [[], None, 1, {"k": 1.0}, {"k": True}, {"k": -1}, {"k": "1"}, {"k": None}, {"a": 1, "b": 1}],
        }.items()
        for value in values
    },
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_ledgers_are_refused(path: Path, name: str) -> None:
    budget = md.sessions.Budget.create(path, limit=3)
    budget.report(sampler(), 5)
    path.write_text(DAMAGE[name](path.read_text()), errors="surrogateescape")
    before = path.stat()
    for use in (lambda: budget.spend(1), lambda: budget.report(sampler(), 5), lambda: md.sessions.Budget(path=path)):
        with pytest.raises(FileFormatError, match="damaged"):
            use()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_large_file_is_refused_before_it_is_read(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=3)
    os.truncate(path, 200 << 20)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="more than 16777216 bytes"):
        budget.spend(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ledger.MOST_BYTES


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.from_regex(r"-?\d+(/\d+)?", fullmatch=True),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
DOCUMENT = {
    "schema": Paid.schema,
    "limit": "3",
    "spent": "1/2",
    "spends": 2,
    "unit": "0" * 64,
    "remembered": {"k": 1},
}


@settings(deadline=None, max_examples=10)
@given(st.dictionaries(st.sampled_from(sorted(DOCUMENT)), JSON, min_size=1, max_size=3))
def test_whatever_is_sealed_keeps_to_its_limit_or_is_refused(entries: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        path.write_text(seal_text(DOCUMENT | entries))
        try:
            budget = md.sessions.Budget(path=path)
        except FileFormatError:
            return
        assert 0 <= budget.spent <= budget.limit
        with pytest.raises(BudgetError):
            budget.spend(budget.limit * 2)
        written = json.loads(path.read_text())
        assert [str(budget.limit), str(budget.spent)] == [written["limit"], written["spent"]]


def test_too_large_ledger_is_refused_before_payment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = md.sessions.Budget.create(path, limit=30)
    budget.report(sampler(), 5)
    monkeypatch.setattr(ledger, "MOST_BYTES", path.stat().st_size + 9)
    with pytest.raises(InputError, match="the ledger is full"):
        budget.report(sampler(), 6)
    assert (budget.spent, budget.spend(1)) == (1, 28)
    monkeypatch.setattr(ledger, "MOST_BYTES", path.stat().st_size)
    assert md.sessions.Budget(path).spent == 2
    monkeypatch.setattr(ledger, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(FileFormatError, match="more than"):
        md.sessions.Budget(path)


FOREIGN = {
    "table": (lambda: sampler(), 16),
    "table, far": (lambda: sampler(), 10**30),
    "factored": (lambda: md.Sampler(mechanism=made_factored("ring road")), 7),
    "factored, far": (lambda: md.Sampler(mechanism=made_factored("ring road")), 10**30),
    "factored, one report": (lambda: md.Sampler(mechanism=to_one_cell(made_factored("ring road"))), 1),
}


def to_one_cell(factored: xr.Dataset) -> xr.Dataset:
    changed = factored.copy(deep=True)
    changed["target"].values[:] = 0
    return rewritten(changed)


@pytest.mark.parametrize("name", FOREIGN)
def test_impossible_remembered_report_is_refused(path: Path, name: str) -> None:
    make, place = FOREIGN[name]
    budget, drawn_by = md.sessions.Budget.create(path, limit=3), make()
    budget.report(drawn_by, 5)
    document = json.loads(path.read_text())
    path.write_text(seal_text(document | {"remembered": dict.fromkeys(document["remembered"], place)}))
    with pytest.raises(FileFormatError, match=r"damaged.*the mechanism cannot make"):
        budget.report(drawn_by, 5)
    assert budget.spent == 1


WRITTEN = """{
 "limit": "3",
 "remembered": {},
 "schema": "mechdesign/budget/1",
 "sha256": "4efa1b63027699db9d8d20e4b4d48d424d9f168c1a03e9b929053cd6758df681",
 "spends": 1,
 "spent": "3602879701896397/36028797018963968",
 "unit": null
}"""


def test_files_of_this_schema_stay_readable(path: Path) -> None:
    path.write_text(WRITTEN)
    assert md.sessions.Budget(path=path).remaining == 3 - Fraction(0.1)
