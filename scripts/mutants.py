"""A sample of mutants of a module against its tests: python scripts/mutants.py MODULE [MODULE ...].

A mutant differs from the code in one place: a comparison, an operator, a number, a condition, or a statement that is
left out. A test kills it by failing, or by taking four times as long. A survivor is a line that no test looks at, or
one that changes nothing, which `EQUAL` explains. `TESTS` lists the tests of every module. Mutants are drawn with a
seed, so that two suites can be compared on the same ones. The checkout is copied and left alone. POSIX only.
"""

import argparse
import ast
import copy
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = {  # paths below tests/, the quick ones first
    "verification/verify_table.py": "output/test_verify_table.py positions/test_verify_positions.py "
    "output/test_forged_tables.py output/test_verifier_fuzz.py",
    "verification/verify.py": "verification/test_verification.py mechanism/test_trust.py "
    "verification/test_reference.py output/test_capped_files.py",
    "verification/audit.py": "verification/test_audit.py",
    "mechanism/certificate.py": "mechanism/test_certificate.py verification/test_audit.py mechanism/test_repair.py",
    "mechanism/storage.py": "mechanism/test_netcdf.py mechanism/test_storage.py",
    "mechanism/sampler.py": "mechanism/test_sampler.py positions/test_positions.py",
    "mechanism/rows.py": "mechanism/test_sampler.py mechanism/test_scan.py",
    "mechanism/draw.py": "mechanism/test_sampler.py mechanism/test_scan.py",
    "mechanism/stored.py": "mechanism/test_trust.py verification/test_verification.py",
    "mechanism/dataset.py": "mechanism/test_trust.py verification/test_verification.py mechanism/test_storage.py",
    "sessions/ledger.py": "sessions/test_ledger.py sessions/test_budget.py",
    "sessions/budget.py": "sessions/test_budget.py sessions/test_ledger.py",
    "sessions/session.py": "sessions/test_session.py",
    "sessions/advance.py": "sessions/test_session.py sessions/test_session_privacy.py",
    "sessions/windows.py": "sessions/test_session_windows.py",
}
EQUAL = {  # by line and change: why nothing that is promised changes
    (
        "_SAMPLED = 8  # blocks of edges, a thread, that an estimate of the time takes",
        "8 -> (9)",
    ): "an estimate of time",
    (
        "while cumulative[u, y] <= np.uint64(leading) << shift:",
        "np.uint64(leading) << shift -> (np.uint64(leading) >> shift)",
    ): "a search that begins earlier ends at the same report",
    (
        "_OTHER_STREAM = 1 << 64  # added to a seed for the bits of steps, which are independent of those of reports",
        "1 -> (2)",
    ): "another stream, as independent",
}
LOADED = ("cvxpy", "h5netcdf", "numba", "numpy", "pandas", "pytest", "scipy.optimize", "xarray")
PAIRS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
LEFT_ALONE = (ast.Raise, ast.JoinedStr)  # what errors say


class Mutant(NamedTuple):
    """One change: `new` stands for `old`, the bytes from `first` to `last` of the file."""

    line: int
    first: int
    last: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.old} -> {self.new}"


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may stand for this one."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                new = copy.deepcopy(node)
                new.ops[place] = PAIRS[type(operator)]()
                yield new
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in PAIRS:
            new = copy.deepcopy(node)
            new.op = PAIRS[type(operator)]()
            yield new
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield ast.UnaryOp(ast.Not(), test)
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
            yield ast.Pass()


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    content = source.encode()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    listed: list[Mutant] = []

    def visit(node: ast.AST) -> None:
        for new in changed(node):
            place = node.test if isinstance(new, ast.UnaryOp) and isinstance(node, ast.If | ast.IfExp) else node
            first = starts[place.lineno - 1] + place.col_offset
            last = starts[place.end_lineno - 1] + place.end_col_offset
            text = ast.unparse(new) if isinstance(new, ast.Pass) else f"({ast.unparse(new)})"
            listed.append(Mutant(place.lineno, first, last, ast.unparse(place).split("\n")[0], text))
        if isinstance(node, LEFT_ALONE):
            return
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for below in child if isinstance(child, list) else [child]:
                if isinstance(below, ast.AST):
                    visit(below)

    visit(ast.parse(source))
    return listed


def run(folder: Path, tests: list[str], report: Path) -> None:
    """Run tests in a copy of the checkout, in a process of their own; its exit code is that of pytest."""
    import pytest

    out = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path[:0] = [str(folder)]
    sys.exit(
        pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *(f"tests/{name}" for name in tests)])
    )


def ended(folder: Path, tests: list[str], limit: float | None = None) -> int | None:
    """The exit code of pytest, None where it took longer than `limit` seconds."""
    process = multiprocessing.get_context("fork").Process(target=run, args=(folder, tests, folder / "report"))
    process.start()
    process.join(limit)
    late = process.is_alive()
    process.kill()
    process.join()
    return None if late else process.exitcode


def examine(module: str, folder: Path, number: int, seed: int) -> tuple[int, list[Mutant]]:
    """How many mutants of a module were tried, and those that no test notices."""
    file, tests = folder / "mechdesign" / module, TESTS[module].split()
    source = file.read_text()
    lines = source.splitlines()
    every = mutants(source)
    sample = sorted(random.Random(seed).sample(every, min(number, len(every))))  # noqa: S311 - the same ones again
    start = time.monotonic()
    if ended(folder, tests) != 0:
        sys.exit(f"{module}: its tests fail without a mutant\n{(folder / 'report').read_text()[-2000:]}")
    limit = 30 + 4 * (time.monotonic() - start)
    survivors = []
    for mutant in sample:
        content = source.encode()
        file.write_bytes(content[: mutant.first] + mutant.new.encode() + content[mutant.last :])
        code = ended(folder, tests, limit)
        reason = EQUAL.get((lines[mutant.line - 1].strip(), f"{mutant.old} -> {mutant.new}"))
        end = {0: f"equal: {reason}" if reason else "SURVIVED", None: "too long"}.get(code, "killed")
        print(f"{module} {mutant}: {end}", flush=True)
        if end == "SURVIVED":
            survivors.append(mutant)
    file.write_text(source)
    print(f"{module}: {len(sample)} of {len(every)} mutants, {len(survivors)} survived", flush=True)
    return len(sample), survivors


def main() -> int:
    """Sample, run and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", choices=TESTS, metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--number", type=int, default=30, help="mutants of a module")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name in LOADED:
        __import__(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "checkout"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "build", "dist"))
        counts = [examine(module, folder, asked.number, asked.seed) for module in asked.modules]
    tried, survived = sum(number for number, _ in counts), sum(len(left) for _, left in counts)
    print(f"{tried} mutants, {tried - survived} killed or equal, {survived} survived")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
