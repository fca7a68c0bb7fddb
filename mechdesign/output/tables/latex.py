"""A table of texts as a LaTeX tabular, with rules of the package booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def latex_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The tabular of a head and rows: the first column is text, the others are figures, on the right."""
    lines = [_line(head), r"\midrule", *(_line(row) for row in rows)]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", ""])


def _line(cells: Sequence[str]) -> str:
    return " & ".join("".join(_ESCAPED.get(c, c) for c in cell) for cell in cells) + r" \\"
