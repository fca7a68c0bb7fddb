"""One word for one thing: those that were given up do not come back, in code, files and pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("mechdesign", "problems", "scripts", "benchmarks", "docs")
KINDS = {".py", ".pyi", ".js", ".mjs", ".c", ".html", ".md", ".toml"}
GIVEN_UP = {  # pattern: what is said instead, or why
    r"\b(smallest|true) epsilon|(smallest|least)_epsilon": "effective epsilon, in the unit of the claimed one",
    r"effective_epsilon\b.{0,40}of the claim": "ratio: what a table has over what it claims",
    r"multiplier_range|\bmultipliers=\[": "scale, of a metric",
    r"\b[Pp]aper 00\d|\(00\d, ": "author and year: nobody knows our numbers",
    r"\brivals?\b|RIVALS": "baselines",
    r"\b[Ww]hole numbers?\b": "integers",
    r"@asked\b|\bclass Shown\b": "validated, ReprMixin: what they do",
    r"\bdef (found|asked|told|given|made|said|held)\(": "the noun of the thing",
    r"\b(looked over|unfolds)\b": "validated, expansion",
}


def texts() -> dict[str, str]:
    """What people read and write, by path."""
    files = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in KINDS and path.is_file()]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    names = {path: str(path.relative_to(ROOT)) for path in files}
    return {name: path.read_text(encoding="utf-8") for path, name in names.items() if "tutorials" not in name}


def breaches(name: str, text: str) -> list[str]:
    """Every line with a word that was given up, and what is said instead."""
    return [
        f"{name}:{number}: {match[0]!r}; say: {instead}"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern, instead in GIVEN_UP.items()
        if (match := re.search(pattern, line))
    ]


def test_words_that_were_given_up_stay_away():
    known = texts()
    assert len(known) > 300
    assert [line for name, text in known.items() for line in breaches(name, text)] == []


def test_each_of_them_would_be_noticed():
    said = [
        "the smallest epsilon", "effective_epsilon: 1.5 of the claim", "multiplier_range()", "paper 000", "a rival",
        "whole numbers", "@asked", "def told(self)", "looked over",
    ]  # fmt: skip
    for words, pattern in zip(said, GIVEN_UP, strict=True):
        assert re.search(pattern, words), pattern
