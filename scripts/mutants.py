"""Test a sample of mutants of a module: python scripts/mutants.py MODULE [MODULE ...].

A mutant differs from the code in one place: a comparison, an operator, a number, a condition or a removed statement.
Tests kill it by failing, or by taking four times as long. A survivor is a change that no test notices, unless
`EQUIVALENT` explains why it changes no promise. `TESTS` lists the tests of each module. A seed draws the mutants, so
two test suites can be compared on the same ones. The checkout is copied, not changed. POSIX only.
"""

import argparse
import ast
import copy
import inspect
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = {  # paths below tests/, fast ones first
    "verification/verify_table.py": "output/test_verify_table.py positions/test_verify_positions.py "
    "output/test_table_terminal.py posteriors/test_capped_files.py output/test_forged_tables.py "
    "output/test_verifier_fuzz.py",
    "verification/verify.py": "verification/test_verification.py mechanism/test_trust.py "
    "verification/test_reference.py posteriors/test_capped_files.py",
    "verification/audit.py": "verification/test_audit.py",
    "posteriors/rows.py": "posteriors/test_capped_files.py posteriors/test_posterior.py",
    "mechanism/certificate.py": "mechanism/test_certificate.py verification/test_audit.py mechanism/test_repair.py",
    **dict.fromkeys(
        ("mechanism/storage.py", "mechanism/hdf5.py"), "mechanism/test_netcdf.py mechanism/test_storage.py"
    ),
    "base/atomic_write.py": "mechanism/test_storage.py",
    "mechanism/mechanism_file.py": "mechanism/test_trust.py verification/test_verification.py "
    "verification/test_missing_parts.py",
    "mechanism/sampler.py": "mechanism/test_sampler.py positions/test_position_claims.py",
    "mechanism/rows.py": "mechanism/test_sampler.py mechanism/test_scan.py sessions/test_ledger.py",
    "mechanism/draw.py": "mechanism/test_sampler.py mechanism/test_scan.py",
    "mechanism/claim.py": "mechanism/test_trust.py verification/test_verification.py sessions/test_budget.py "
    "positions/test_position_claims.py",
    **dict.fromkeys(
        ("mechanism/schema.py", "mechanism/build.py", "mechanism/figures.py", "mechanism/hashing.py"),
        "mechanism/test_dataset.py mechanism/test_trust.py verification/test_verification.py mechanism/test_storage.py",
    ),
    "sessions/ledger.py": "sessions/test_ledger.py sessions/test_budget.py",
    "sessions/budget.py": "sessions/test_budget.py sessions/test_ledger.py",
    "sessions/session.py": "sessions/test_session.py",
    "sessions/advance.py": "sessions/test_session_filter.py sessions/test_session.py sessions/test_session_privacy.py",
    "sessions/windows.py": "sessions/test_session_windows.py",
}
EQUIVALENT = {  # (code of the line without its comment, change): why no promise changes
    ("_SAMPLED = 8", "8 -> (9)"): "an estimate of time",
    (
        "while cumulative[u, y] <= np.uint64(leading) << shift:",
        "np.uint64(leading) << shift -> (np.uint64(leading) >> shift)",
    ): "a search that begins earlier ends at the same report",
    (
        "_OTHER_STREAM = 1 << 64",
        "1 -> (2)",
    ): "another independent stream",
    (
        "SINGLE_MARGIN = 1 - 2.0**-20",
        "20 -> (21)",
    ): "this also exceeds four roundings",
    (
        "times = math.gcd(*step) or 1",
        "1 -> (2)",
    ): "it divides zeros only",
    ("rise, report_of_edge, is_descent = np.inf, y, q > p", "q > p -> (q >= p)"): "equal masses are skipped before",
    ("rise, report_of_edge, is_descent = log, y, q > p", "q > p -> (q >= p)"): "equal masses are skipped before",
    (
        "_OTHER_STREAM = 1 << 64",
        "64 -> (65)",
    ): "another independent stream",
    (
        "return math.fsum(float(row.astype(float) @ c) for row, c in zip(mass, cost, strict=True)) / ROW_SUM",
        "True -> (False)",
    ): "mass and cost both have one row per secret",
    (
        '"metric": json.dumps(metric.describe(), sort_keys=True),',
        "True -> (False)",
    ): "the order of names does not matter to readers",
    ("step *= 2", "2 -> (3)"): "later steps of a search, which promises its first step only",
    ("_STEP_OF_DOUBLES = 2.0**-46", "46 -> (47)"): "smaller steps also end at a scale that holds",
    ("_STEP_OF_MASSES = 2.0**-40", "40 -> (41)"): "smaller steps also end at a scale that holds",
    (
        '_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)',
        "0 -> (1)",
    ): "POSIX has both flags",
    (
        "self.kind, self.path, self._count = kind, Path(path), -1",
        "1 -> (2)",
    ): "also below every count",
    (
        "numbers = all(type(value) in (int, float) and 0 <= value <= HIGHEST for value in [*levels, self.scale])",
        "0 <= value <= HIGHEST -> (0 <= value < HIGHEST)",
    ): "it refuses one more level, of 1e150 nats",
    ("if apart > 2 * radius:", "2 -> (3)"): "more discs, each about a position",
    ("_TABLE_BYTES = 1 << 26", "1 -> (2)"): "memory of a block",
    ('description |= {"multiplier": 1.0}', "1.0 -> (2.0)"): "another constant in a digest",
    (
        "while cumulative[u, y] <= np.uint64(leading) << shift:",
        "cumulative[u, y] <= np.uint64(leading) << shift -> (cumulative[u, y] < np.uint64(leading) << shift)",
    ): "a search that begins earlier ends at the same report",
    ("rows = max(1, _TABLE_BYTES // (8 * self.reports))", "8 -> (9)"): "memory of a block",
    (
        "rows = max(1, _TABLE_BYTES // (8 * self.reports))",
        "8 * self.reports -> (8 + self.reports)",
    ): "memory of a block",
    (
        "shift = np.uint64(ROW_BITS - (self.reports - 1).bit_length())",
        "self.reports - 1 -> (self.reports + 1)",
    ): "a guide of twice the length leads to the same report",
    ("_WORDS = 1 << 17", "1 -> (2)"): "memory of a block",
    ("_WORDS = 1 << 17", "17 -> (18)"): "memory of a block",
    (
        'words = np.frombuffer(bits(8 * min(_WORDS, block.size - start)), "<u8").astype(np.uint64, copy=False)',
        "False -> (True)",
    ): "a copy of the same bits",
    (
        "if plan.table is None or report is None:",
        "plan.table is None or report is None -> (plan.table is None and report is None)",
    ): "a tick with a table has a report",
    (
        'require_memory(count, len(chain.place), tables=3, noun="the probabilities at every tick", field="ticks")',
        "3 -> (4)",
    ): "an estimate of memory",
    ('content = file.read(MOST_BYTES + 1) if status.st_size <= MOST_BYTES else b""', "1 -> (2)"): "also refused",
    ("_WORKING_BITS = 160", "160 -> (161)"): "also more bits than the result has",
    (
        "SINGLE_MARGIN = 1 - 2.0**-20",
        "-20 -> (20)",
    ): "a ratio below 0: every edge is checked exactly",
    ("stride = max(1, len(starts) // (WORKERS * _SAMPLED))", "1 -> (2)"): "an estimate of time",
    ("work(0, min(_EDGES, len(sample)))", "0 -> (1)"): "an estimate of time",
    ("best, edge, report, is_descent_at_best = -1.0, 0, 0, False", "0 -> (1)"): "any edge may start the search",
    (
        "is_off = deviation > ROW_SUM_TOLERANCE and not (are_counts or normalise)",
        "deviation > ROW_SUM_TOLERANCE -> (deviation >= ROW_SUM_TOLERANCE)",
    ): "no sum of doubles deviates by exactly 1e-6",
    ("_COPIES = 3", "3 -> (4)"): "an estimate of memory",
    ("return True if len(pieces) > count else None", "True -> (False)"): "any value but None ends the caller",
    (
        "if body < 0 or stream.read() != mark:",
        "body < 0 -> (body <= 0)",
    ): "an empty mark is not one of an HDF5 file",
    ("if tick > 0:", "tick > 0 -> (tick >= 0)"): "values before the first tick are never read",
}
FORK = multiprocessing.get_context("fork")
LOADED = ("cvxpy", "h5netcdf", "numba", "numpy", "pandas", "pytest", "scipy.optimize", "xarray")
PAIRS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
UNCHANGED = (ast.Raise, ast.JoinedStr)  # error messages


class Mutant(NamedTuple):
    """One change: `new` replaces `old`, the bytes from `first` to `last` of the file."""

    line: int
    first: int
    last: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.old} -> {self.new}"


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may replace this one."""
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
    found: list[Mutant] = []

    def visit(node: ast.AST) -> None:
        for new in replacements(node):
            place = node.test if isinstance(new, ast.UnaryOp) and isinstance(node, ast.If | ast.IfExp) else node
            first = starts[place.lineno - 1] + place.col_offset
            last = starts[place.end_lineno - 1] + place.end_col_offset
            text = ast.unparse(new) if isinstance(new, ast.Pass) else f"({ast.unparse(new)})"
            found.append(Mutant(place.lineno, first, last, ast.unparse(place).split("\n")[0], text))
        if isinstance(node, UNCHANGED):
            return
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for inner in child if isinstance(child, list) else [child]:
                if isinstance(inner, ast.AST):
                    visit(inner)

    visit(ast.parse(source))
    return found


def run(folder: Path, tests: list[str], *options: str) -> int:
    """The exit code of pytest in a copy of the checkout."""
    import pytest

    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path[:0] = [str(folder)]
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
    return int(pytest.main([*words, *(f"tests/{name}" for name in tests)]))


def exit_silently(folder: Path, work: Callable[[], int]) -> None:
    """End this process with the exit code of `work`; its output goes to a file."""
    out = os.open(folder / "report", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.exit(work())


def exit_code(folder: Path, work: Callable[[], int], limit: float | None = None) -> int | None:
    """The exit code of `work` in a separate process, None if it took longer than `limit` seconds."""
    process = FORK.Process(target=exit_silently, args=(folder, work))
    process.start()
    process.join(limit)
    is_late = process.is_alive()
    process.kill()
    process.join()
    return None if is_late else process.exitcode


def functions(owner: object) -> Iterator[tuple[str, FunctionType]]:
    """The functions of a module or class and of its classes, without decorators."""
    for name, value in list(vars(owner).items()):
        plain = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", None)) or value)
        if isinstance(plain, FunctionType):
            yield name, plain
        elif isinstance(value, type) and value.__module__ == vars(owner).get("__name__"):
            yield from ((f"{name}.{inner}", one) for inner, one in functions(value))


def swap_code(name: str, source: str) -> None:
    """Give the functions of a loaded module the code of this source."""
    module = sys.modules[name]
    other = ModuleType(name)
    exec(compile(source, str(module.__file__), "exec"), vars(other))  # noqa: S102 - the module itself, changed
    old = dict(functions(module))
    for path, new in functions(other):
        if path in old and len(old[path].__code__.co_freevars) == len(new.__code__.co_freevars):
            old[path].__code__ = new.__code__
            old[path].__defaults__, old[path].__kwdefaults__ = new.__defaults__, new.__kwdefaults__


def send_exit_codes(module: str, folder: Path, tests: list[str], sources: list[str], results: Connection) -> None:
    """Send the exit code of the tests for each source; the first one must be the unchanged module.

    Modules are loaded once, and only the code of functions changes. So tests may miss a mutant of compiled code or of
    an imported value: `examine` runs a mutant that ends with 0 again in a fresh process.
    """
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    run(folder, tests, "--collect-only")
    os.dup2(output, 1)
    name = f"mechdesign.{module.removesuffix('.py').replace('/', '.')}"

    def run_changed(source: str) -> int:
        swap_code(name, source)
        return run(folder, tests)

    start = time.monotonic()
    if exit_code(folder, partial(run_changed, sources[0])) != 0:
        sys.exit(f"{module}: its tests fail without a mutant\n{(folder / 'report').read_text()[-2000:]}")
    limit = 30 + 4 * (time.monotonic() - start)
    for source in sources[1:]:
        results.send((exit_code(folder, partial(run_changed, source), limit), limit))


def examine(module: str, folder: Path, number: int, seed: int) -> tuple[int, list[Mutant]]:
    """The number of mutants of a module that were tried, and those that no test notices."""
    file, tests = folder / "mechdesign" / module, TESTS[module].split()
    source = file.read_text()
    lines, content = source.splitlines(), source.encode()
    candidates = mutants(source)
    sample = sorted(random.Random(seed).sample(candidates, min(number, len(candidates))))  # noqa: S311 - repeatable
    sources = [(content[: mutant.first] + mutant.new.encode() + content[mutant.last :]).decode() for mutant in sample]
    answers, results = FORK.Pipe(duplex=False)
    process = FORK.Process(target=send_exit_codes, args=(module, folder, tests, [source, *sources], results))
    process.start()
    results.close()
    survivors = []
    for mutant, text in zip(sample, sources, strict=True):
        try:
            code, limit = answers.recv()
        except EOFError:
            sys.exit(process.join())
        if code == 0:
            file.write_text(text)
            code = exit_code(folder, lambda: run(folder, tests), 3 * limit)
            file.write_text(source)
        line = lines[mutant.line - 1].partition("  # ")[0].strip()
        reason = EQUIVALENT.get((line, f"{mutant.old} -> {mutant.new}"))
        outcome = {0: f"equivalent: {reason}" if reason else "SURVIVED", None: "killed: too slow"}.get(code, "killed")
        print(f"{module} {mutant}: {outcome}", flush=True)
        if outcome == "SURVIVED":
            survivors.append(mutant)
    process.join()
    print(f"{module}: {len(sample)} of {len(candidates)} mutants, {len(survivors)} survived", flush=True)
    return len(sample), survivors


def main() -> int:
    """Examine the modules; 1 if a mutant survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", choices=TESTS, metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--number", type=int, default=30, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in LOADED:
        __import__(name)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "checkout"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "build", "dist"))
        counts = [examine(module, folder, options.number, options.seed) for module in options.modules]
    tried, survived = sum(number for number, _ in counts), sum(len(survivors) for _, survivors in counts)
    print(f"{tried} mutants, {tried - survived} killed or equivalent, {survived} survived")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
