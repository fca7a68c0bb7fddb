"""The proofs: no axiom but those of Coq's real numbers, short enough to be read, and every check is needed."""

from __future__ import annotations

import re
import shutil

import pytest
from fixtures.proof_checker import PROOFS, SOURCES, built_proofs, copy_sources, make

pytestmark = pytest.mark.obligation("machine-checked")
LINES = 2000  # of Coq, in all
REALS = {"ClassicalDedekindReals.sig_forall_dec", "ClassicalDedekindReals.sig_not_dec"}
REALS |= {"FunctionalExtensionality.functional_extensionality_dep", "Classical_Prop.classic"}
OF_INTEGERS = ("drawn_by_interval", "draws_a_report")  # theorems without real numbers
# A check is weakened by a sign or by one: the file, its text, the text instead of it, and the file that fails then.
WEAKENINGS = {
    "squares rounded up": (
        "Exponential",
        "square k' w (v * v / 2 ^ w)\n",
        "square k' w (v * v / 2 ^ w + 1)\n",
        "Exponential",
    ),
    "argument rounded up": (
        *("Exponential", "(p * 2 ^ w) / (q * 2 ^ Z.of_nat k).", "(p * 2 ^ w) / (q * 2 ^ Z.of_nat k) + 1."),
        "Exponential",
    ),
    "one unit of mass": ("Rows", "(x * s <=? r * y)", "(x * s <=? r * y + 1)", "Rows"),
    "one direction": ("Rows", "entries_below (2 ^ w) r b a.", "entries_below (2 ^ w) r a b.", "Rows"),
    "row sums": ("Rows", "(sum a =? total)", "(sum a <=? total)", "Rows"),
    "masses of -1": ("Rows", "forallb (Z.leb 1) a &&", "forallb (Z.leb (-1)) a &&", "Rows"),
    "negative lengths": ("Edges", "(0 <=? num e) &&", "(-1 <=? num e) &&", "Edges"),
    "ends beyond the table": ("Edges", "Nat.ltb (head e)", "Nat.leb (head e)", "Edges"),
    "lengths above the distance": (
        "Plane",
        "(0 <=? l) &&\n  ((l * eps_den",
        "(0 <=? l) &&\n  (((l - 1) * eps_den",
        "Plane",
    ),
    "place at an end": ("Plane", "(0 <? (px c - px a)", "(0 <=? (px c - px a)", "Plane"),
    "place off the segment": (
        "Plane",
        "=? (py c - py a) * (px b - px c))",
        "<=? (py c - py a) * (px b - px c))",
        "Plane",
    ),
    "steep by one": ("Positions", "<=? (z * v) * (z * v))", "<=? (z * v) * (z * v) + 1)", "Positions"),
    "coefficients without sign": (
        "Positions",
        "(0 <=? v) && ((x * x + y * y) * (one * one) <=? (z",
        "(-1 <=? v) && ((x * x + y * y) * (one * one) <=? (z",
        "Positions",
    ),
    "quarters at the level of the cell": (
        "Positions",
        "is_gentle_3 (2 * one) (corners",
        "is_gentle_3 one (corners",
        "Positions",
    ),
    "level above the smallest": ("Positions", "(smallest zs) p ||", "(smallest zs + 1) p ||", "Positions"),
    "steep by one in degree 3": (
        "Positions",
        "* (one * one) <=? v * v).",
        "* (one * one) <=? v * v + 1).",
        "Positions",
    ),
    "slope of half the step": ("Positions", "| _ => 2 * (h - m) end", "| _ => (h - m) end", "Positions"),
    "share by one": ("Posterior", "set x <=? p * sum x.", "set x <=? p * sum x + 1.", "Posterior"),
    "threshold below 0": ("Posterior", "(0 <=? t) &&", "(-1 <=? t) &&", "Posterior"),
    "largest entries less one": (
        "Posterior",
        "Z.max 0 (v - threshold) + s",
        "Z.max 0 (v - threshold - 1) + s",
        "Posterior",
    ),
    "residual below 0": ("Bound", "(0 <=? x) && none_below_zero a", "(-1 <=? x) && none_below_zero a", "Bound"),
    "negative flow": ("Bound", "(0 <=? amount f) &&", "(-1 <=? amount f) &&", "Bound"),
    "flow that costs less": ("Bound", "(- (amount f * one))", "(- (amount f * one) + 1)", "Bound"),
    "flow the other way": ("Bound", "else Arc b a (num e)", "else Arc a a (num e)", "Bound"),
    "factor above e^-length": ("Bound", "exp_lower w k (- num e) q in", "exp_lower w k (1 - num e) q in", "Bound"),
    "factor without proof": ("Bound", "&& is_usable (on f)", "&& true", "Bound"),
    "two secrets with one key": ("Bound", "true :: k' => false :: next k'", "true :: k' => false :: k'", "Bound"),
    "multipliers with the other sign": ("Bound", "(add_costs (- 2 ^ w) [] (m", "(add_costs (2 ^ w) [] (m", "Bound"),
    "costs times one more": ("Bound", "(add_costs (x * one) []", "(add_costs (x * one + 1) []", "Bound"),
    "weights below 0": ("Bound", "forallb (Z.leb 0) (weights b) &&", "forallb (Z.leb (-1)) (weights b) &&", "Bound"),
    "edges shorter than the distance": (
        *("PlaneBound", "(num e * eps_den t * scale t) * (num e", "((num e + 1) * eps_den t * scale t) * (num e"),
        "PlaneBound",
    ),
    "sums of factors by one": ("Factors", "exp_lower w k r q * sum a)", "exp_lower w k r q * sum a + 1)", "Factors"),
    "sums of factors the other way": ("Factors", "(sum b * 2 ^ w <=?", "(sum a * 2 ^ w <=?", "Factors"),
    "draw of one more": ("Sampler", "if x <? m then", "if x <=? m then", "Sampler"),
}


def test_axioms_are_those_of_the_real_numbers():
    """`Print Assumptions` of every theorem, in the order of Axioms.v."""
    done = make(built_proofs(), "axioms")
    assert done.returncode == 0, done.stderr
    listed = re.findall(r"Print Assumptions (\w+)\.", (PROOFS / "Axioms.v").read_text())
    answers = re.split(r"^(?=Closed under the global context|Axioms:)", done.stdout, flags=re.MULTILINE)[1:]
    assert len(answers) == len(listed)
    for theorem, answer in zip(listed, answers, strict=True):
        axioms = set(re.findall(r"^(\w[\w.]*)(?= :|$)", answer, re.MULTILINE))
        assert axioms <= REALS, theorem
        assert (theorem in OF_INTEGERS) <= (not axioms)


def test_nothing_is_admitted():
    text = "".join(path.read_text() for path in sorted(PROOFS.glob("*.v")))
    assert len(text.splitlines()) <= LINES
    assert not re.findall(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Hypotheses|give_up)\b", text)


def test_every_theorem_is_listed():
    """A theorem or corollary at the end of a file is one of those whose axioms are printed."""
    listed = re.findall(r"Print Assumptions (\w+)\.", (PROOFS / "Axioms.v").read_text())
    stated = {path: re.findall(r"^(?:Theorem|Corollary) (\w+)", path.read_text(), re.M) for path in PROOFS.glob("*.v")}
    lists = [names for names in stated.values() if names]
    assert all(set(names) & set(listed) for names in lists)
    assert set(listed) <= {name for names in lists for name in names} | {"exp_lower_correct"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WEAKENINGS)
def test_weaker_check_proves_nothing(name, tmp_path):
    """The theorem of a weakened check cannot be compiled."""
    file, text, instead, fails = WEAKENINGS[name]
    copy_sources(tmp_path)
    for compiled in built_proofs().glob("*.vo"):
        shutil.copy(compiled, tmp_path)
    source = (tmp_path / f"{file}.v").read_text()
    assert source.count(text) == 1, f"{source.count(text)} places"
    (tmp_path / f"{file}.v").write_text(source.replace(text, instead))
    done = make(tmp_path, f"{fails}.vo")
    assert done.returncode != 0
    assert f"{fails}.v" in done.stderr
    # The proof fails, not the reading of the text or of a compiled file.
    assert not re.search("Syntax error|inconsistent assumptions|bad version", done.stderr)


def test_sources_are_complete():
    """The copy that tests build has every file of the folder that git would hold."""
    copied = {path for pattern in SOURCES for path in PROOFS.glob(pattern)}
    assert {path.name for path in copied} >= {"Axioms.v", "Extraction.v", "Makefile", "integers.ml", "main.ml"}
