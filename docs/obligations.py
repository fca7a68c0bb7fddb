"""The table of obligations in docs/assurance.md, from the markers on tests: python docs/obligations.py writes it.

A test that would fail if an obligation did not hold carries `@pytest.mark.obligation("name")`, alone or in `pytestmark`.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "assurance.md"
TABLE = re.compile(r"(?<=<!-- table: python docs/obligations.py -->\n).*?(?=<!-- end of table -->)", re.S)


class Obligation(NamedTuple):
    """A statement that must hold for the guarantee, and the files of the package that prove or check it."""

    statement: str
    proofs: tuple[str, ...]


OBLIGATIONS = {
    "file-bounds": Obligation(
        "The file is regular and fits in memory. It has at most 64 arrays of at most two axes, with all their values. It"
        " inflates to at most 1,100 times its size, and has no text of variable length.",
        ("base/files.py", "mechanism/storage.py"),
    ),
    "file-schema": Obligation(
        "Every variable has its type, dimensions, size and unit, every attribute its type. Nothing else is in the file.",
        ("mechanism/schema.py",),
    ),
    "no-wrap": Obligation(
        "No sum or product of the file's integers wraps.",
        ("mechanism/schema.py", "factored/certificate.py", "factored/integer_metric.py"),
    ),
    "claim-rebuilt": Obligation(
        "Places, metric, edges and lengths are rebuilt from the description, never taken from the list in the file.",
        ("mechanism/claim.py",),
    ),
    "lengths-rounded-down": Obligation(
        "No length exceeds the one that the claim names. It is rounded down, or refused where doubles cannot bound it.",
        ("problem/metric.py", "problem/line_integrals.py", "problem/privacy_level.py", "problem/domain.py"),
    ),
    "tree-bound": Obligation(
        "A lower bound that trees prove is one, whatever the trees and multipliers are: in verify, in verify_table.py, and on"
        " a page.",
        ("verification/tree_bound.py", "verification/verify_table.py", "web/browser/proof/trees.js"),
    ),
    "exponential-bound": Obligation("The bound of e^d is a lower bound.", ("mechanism/certificate.py",)),
    "edges-imply-pairs": Obligation(
        "The inequalities of the edges imply those of all pairs: shortest paths add up, and a lattice omits implied pairs only.",
        ("problem/lattice.py", "problem/metric.py"),
    ),
    "table-inequalities": Obligation(
        "Table: rows sum to 2^62, and every inequality of every edge holds, in 128-bit integers.",
        ("mechanism/certificate.py", "mechanism/certificate_kernels.py"),
    ),
    "factor-inequalities": Obligation(
        "Factors: one inequality of integers for each edge implies the claim.", ("factored/certificate.py",)
    ),
    "windows": Obligation(
        "Factors: every place outside a window is at the cap from all its sources, and its part of S(u) is added exactly.",
        ("factored/integer_metric.py", "factored/certificate.py"),
    ),
    "column-generators": Obligation(
        "Factors: generators of columns are places, offsets are at most the cap, and bounds between columns rise.",
        ("factored/certificate.py",),
    ),
    "device-map": Obligation(
        "Device map: sizes, types and digest are checked before arrays are made, everything but its integers is recomputed,"
        " and `verify` adds up every row and checks every edge.",
        ("devicemap/device_map.py", "devicemap/draw.py"),
    ),
    "elastic-level": Obligation(
        "The disc of a level from people contains the people that the file lists. Where they live is taken as given, and the"
        " claim does not rest on it.",
        ("geo/elastic.py",),
    ),
    "printed-claim": Obligation(
        "The printed sentence is the claim that was proved. It is rebuilt at every reading.", ("mechanism/claim.py",)
    ),
    "figures-recomputed": Obligation(
        "Loss, objective, scale and effective epsilon are recomputed. A lower bound follows from its multipliers and does not"
        " exceed the figure that it bounds. A figure that cannot be recomputed is not printed.",
        ("verification/verify.py",),
    ),
    "proved-before-drawing": Obligation(
        "Reports are drawn from a private copy that was proved in the same process.",
        ("mechanism/sampler.py", "factored/dataset.py"),
    ),
    "position-gradients": Obligation(
        "Any position: the gradient of P(y|x) is at most the level times P(y|x) on every cell or quarter of a cell, in 128-bit"
        " integers. This implies the claim along every path.",
        ("positions/patches.py", "positions/cones.py"),
    ),
    "position-levels": Obligation(
        "Any position: rows around cells follow the rule. No interpolant of levels at corners, of cells or of their quarters,"
        " exceeds the level of the metric anywhere.",
        ("positions/patches.py", "mechanism/claim.py"),
    ),
    "position-draws": Obligation(
        "Any position: the row is drawn with exactly the weights of the spline, by bits other than those of the report.",
        ("positions/patches.py",),
    ),
    "position-rows-alone": Obligation(
        "Any position: no report is drawn from a row alone, also not in a session.",
        ("mechanism/sampler.py", "sessions/design.py"),
    ),
    "exact-draws": Obligation(
        "A report has exactly the probability of its integers.",
        ("mechanism/rows.py", "mechanism/draw.py", "mechanism/small_draw.py", "factored/dataset.py"),
    ),
    "factored-bound": Obligation(
        "The lower bound of a factored mechanism follows from its multipliers, in balls of the stored radii.",
        ("factored/hosts.py", "factored/local_bound.py", "factored/verify.py"),
    ),
    "budget-paid-once": Obligation(
        "A budget pays once, before the report is returned, under whatever path it is opened.",
        ("sessions/ledger.py", "base/lock.py"),
    ),
    "session-limit": Obligation(
        "No window of a session costs more than its limit on any transcript. Rules and times depend only on released values.",
        ("sessions/rules.py", "sessions/windows.py", "sessions/advance.py", "sessions/session.py"),
    ),
    "session-paid-first": Obligation(
        "A session pays before it returns a report, and never goes backwards.",
        ("sessions/session.py", "sessions/ledger.py"),
    ),
    "session-design": Obligation(
        "The figures of a session design follow from its tables and its rule.", ("sessions/verify.py",)
    ),
    "killed-writer": Obligation(
        "A writer that is killed leaves no remembered secrets after the next opening.", ("sessions/ledger.py",)
    ),
    "descriptions": Obligation(
        "A description makes no array before its names, types and sizes are checked.",
        ("base/json_fields.py", "problem/domain.py", "problem/metric.py"),
    ),
    "page-proof": Obligation(
        "A page turns green only for the table that it carries. Row sums, inequalities, gradients and repeated figures are"
        " checked in the browser, which composes its sentences itself. It takes as given, and lists, integrals of a level,"
        " that the level is above the levels at corners, coordinates, and lower bounds that its trees do not prove.",
        ("web/browser/proof/prove.js",),
    ),
    "client-draws": Obligation(
        "A client draws with exactly the probability of the file's integers, and stores the payment before it returns.",
        ("web/device/draw.mjs", "web/device/ledger.mjs"),
    ),
    "client-session": Obligation(
        "A client's session draws, pays and refuses as `md.sessions.Session` does, and stores before it returns.",
        ("web/device/session.mjs",),
    ),
    "map-page": Obligation(
        "The page of a device map says which rows and edges this browser proved. It lists all others, the figures of `verify`,"
        " the plane and the unit as taken as given.",
        ("web/browser/proof/region.js", "web/device/ball.mjs"),
    ),
    "same-draws": Obligation(
        "Equal bytes give equal reports from a device map in Python, JavaScript and C.",
        ("devicemap/draw.py", "web/device/ball.mjs", "devicemap/sample_region.c"),
    ),
    "answer-times": Obligation(
        "The client of a map answers at multiples of `answerAfter`, also when its budget refuses. Positions off the map are"
        " refused at once.",
        ("web/device/client.mjs",),
    ),
    "exported-table": Obligation(
        "A table that `verify_table.py` proves satisfies the sentences that it prints. It trusts coordinates, unit and prior,"
        " integrals of a level below its largest, and edge lists that are the claim. It trusts the neighbours around masked cells, and"
        " that a varying level is nowhere below the interpolant of its corners.",
        ("verification/verify_table.py",),
    ),
    "machine-checked": Obligation(
        "The program of `proofs/` proves the claims and the bound of an exported `.proof`: the theorems of its checks are"
        " compiled by Coq without a further axiom. It trusts the integers of the file, and the parts that `proofs/README.md` lists.",
        ("output/proof_file.py", "output/proof_bound.py", "output/proof_checker.py"),
    ),
    "caps": Obligation(
        "A limit on discs is compared in integers, for every report and every disc, with the people that the file names.",
        ("posteriors/rows.py", "posteriors/limits.py"),
    ),
}


def marked_names(node: ast.AST) -> list[str]:
    """Return the names of the obligations that a decorator or a value of `pytestmark` states."""
    return [
        str(argument.value)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.obligation"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def tests_by_obligation() -> dict[str, list[str]]:
    """Map each obligation that a test names to the files of these tests, relative to `tests/`."""
    files = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.obligation" not in source:
            continue
        for node in ast.parse(source).body:
            marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                marks = [node.value]
            for mark in marks:
                for name in marked_names(mark):
                    files[name].add(path.relative_to(ROOT / "tests").as_posix())
    return {name: sorted(paths) for name, paths in files.items()}


def render_table() -> str:
    """Return the table in Markdown: statement, files that prove it, files of tests that would fail."""
    tests = tests_by_obligation()
    lines = ["", "| statement | proved or checked in | tests that would fail |", "|---|---|---|"]
    for name, (statement, proofs) in OBLIGATIONS.items():
        cells = (statement, ", ".join(f"`{p}`" for p in proofs), ", ".join(f"`{t}`" for t in tests.get(name, [])))
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n\n"


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: render_table(), page), encoding="utf-8")


if __name__ == "__main__":
    main()
