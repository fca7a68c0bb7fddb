"""scripts/prose.py finds a sample of each pattern and leaves clear sentences alone."""

from __future__ import annotations

import prose
import pytest

SAMPLES = {  # pattern: a file, and its text
    "docstring begins with What or Whether": ("a.py", '"""Whether it is a table."""'),
    "what as a relative": ("a.md", "The page shows what\nthe table costs."),
    "is no": ("a.py", "raise InputError(f'{name} is no regular file')"),
    "is none": ("a.js", 'refuse("the metric is none that this program knows");'),
    "that is none": ("a.py", "# For a table that is none."),
    "of no": ("a.c", "/* A report of no cell. */"),
    "which is said": ("a.html", "<p>Cells only, which is said.</p>"),
    "is told": ("a.mjs", "// The distance is told to the caller."),
    "stands beside": ("a.md", "The bound stands beside the loss."),
    "goes on": ("a.md", "The run goes on later."),
    "to be had": ("a.md", "A bound is not to be had."),
    "long sentence": ("a.md", "one two three " * 10 + "four."),
    "participle as a function name": ("a.py", "def _kept(): pass"),
    "long test name": ("a.py", f"def test_{'x' * 60}(): pass"),
}
CLEAN = {
    "a.py": '''"""Return the retained columns."""
def read_columns(): pass
# There is no other file. Which columns are retained?
message = f"prior must sum to 1, got {total}: it is no longer a distribution"
def test_columns_are_retained(): pass
''',
    "a.md": "What does it cost?\n\n* " + "One idea. " * 40 + "\n\n```\nwhat the code prints is no prose\n```\n",
    "a.js": "function need() {}\n",
    "program.py": 'PAGE = """const told = [];\nfor (;;) { what is told, is told what is told }"""\n',
}


def patterns_in(file: str, text: str) -> list[str]:
    """Return the names of the patterns that occur in a text."""
    return [place.pattern for place in prose.places_in(file, text)]


@pytest.mark.parametrize("pattern", prose.CEILINGS)
def test_sample_is_found(pattern: str) -> None:
    assert patterns_in(*SAMPLES[pattern]) == [pattern]


@pytest.mark.parametrize("file", CLEAN)
def test_clear_text_is_not_flagged(file: str) -> None:
    assert patterns_in(file, CLEAN[file]) == []


def test_figures_count_comments_and_names() -> None:
    source = "# One line.\n# And another.\ndef test_a(): pass  # not a full line\ndef test_abcd(): pass\n"
    comments, names = prose.figures({"mechdesign/a.py": source, "README.md": "# A page"})
    assert comments.split()[0] == "2"
    assert names.split()[0] == "7.5"
    assert names.endswith("; 9 at most")


def test_places_have_their_line() -> None:
    (place,) = prose.places_in("a.md", "One line.\nThe next shows what\nit costs.")
    assert place.file == "a.md"
    assert place.line == 2


@pytest.mark.parametrize(("ceiling", "code"), [(0, 1), (1, 0)])
def test_exit_code_says_whether_a_ceiling_is_kept(ceiling, code, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "README.md").write_text("The bound stands beside the loss.")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "PLACES", ["README.md"])
    monkeypatch.setattr(prose, "CEILINGS", {"stands beside": ceiling})
    monkeypatch.setattr("sys.argv", ["prose.py"])
    assert prose.main() == code
    assert "1  of    " in capsys.readouterr().out
