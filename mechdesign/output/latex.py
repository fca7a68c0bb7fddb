r"""Tables in LaTeX: a plain tabular for a file FILE.tex, a whole table for FILE.table.tex.

A whole table has a caption, the label tab:FILE, units in its headings, and columns that siunitx aligns at the decimal
point. It needs the packages booktabs and siunitx, a plain one booktabs. Figures are rounded for readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mechdesign.base.formatting import latex_powers
from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.output.table_formats import Content

WHOLE = ".table"  # in front of the suffix .tex
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}
_POWER = re.compile(r"\$(-?[\d.]+) \\times 10\^\{(-?\d+)\}\$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_NO_FIGURE = ("-", "")
_MOST_REPORTS = 20  # columns that fit a page


def latex_table(path: Path, head: Sequence[str], lines: Sequence[Sequence[str]], *, caption: str) -> str:
    """The rounded figures of `lines`, below `head`, as the table that the name of the file asks for."""
    whole = Path(path.stem).suffix == WHOLE
    columns = [_siunitx(column) if whole else _plain(column) for column in zip(*lines, strict=True)]
    forms = [form for form, _ in columns]
    forms[0] = "l"
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    titles = [_title(name) for name in head]
    heads = [f"{{{title}}}" if form == "S" else title for title, form in zip(titles, forms, strict=True)]
    body = [rf"\begin{{tabular}}{{{''.join(forms)}}}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
    body += [" & ".join(row) + r" \\" for row in rows] + [r"\bottomrule", r"\end{tabular}"]
    if whole:
        name = re.sub(r"[^\w-]", "-", Path(path.stem).stem)
        body = [r"\begin{table}", r"\centering", rf"\caption{{{_title(caption)}}}", rf"\label{{tab:{name}}}", *body]
        body.append(r"\end{table}")
    return "\n".join(body) + "\n"


def write_latex(content: Content, path: Path) -> None:
    """Write P(y|u) in percent, rounded for readers, a row for each secret, with the claim as caption."""
    secrets, reports = content.labels or ([str(u) for u in range(len(content.secrets))], None)
    reports = reports or [str(y) for y in range(len(content.reports))]
    if len(reports) > _MOST_REPORTS:
        message = f"has room for {_MOST_REPORTS} reports, and the mechanism has {len(reports)}"
        raise InputError(message, field="output", value=content.name, remedy="write .csv, or a picture .png")
    lines = [[secrets[u], *(f"{100 * mass / ROW_SUM:.3g}" for mass in masses)] for u, masses, _ in content.masses()]
    caption = f"P(report|secret) in percent. {content.stored.mechanism.attrs['claim']}"
    text = latex_table(Path(content.name), ["secret", *reports], lines, caption=caption)
    path.write_text(text, encoding="utf-8")


def _plain(cells: Sequence[str]) -> tuple[str, list[str]]:
    return "r", [_in_words(cell) for cell in cells]


def _siunitx(cells: Sequence[str]) -> tuple[str, list[str]]:
    """Cells for a column that siunitx aligns, if they are numbers; texts between them in braces."""
    numbers = [_POWER.sub(r"\1e\2", latex_powers(cell)).replace(",", "") for cell in cells]
    if not any(_NUMBER.fullmatch(number) for number in numbers):
        return _plain(cells)
    return "S", [
        number if _NUMBER.fullmatch(number) else f"{{{'--' if cell in _NO_FIGURE else _in_words(cell)}}}"
        for number, cell in zip(numbers, cells, strict=True)
    ]


def _in_words(cell: str) -> str:
    """A cell as text; < as a formula, since the default encoding of text sets it as another sign."""
    return re.sub(r"[<>]", lambda sign: f"${sign[0]}$", latex_powers(_escape(cell)))


def _title(text: str) -> str:
    """A heading or a caption, whose units may be squared."""
    return _escape(text).replace("²", "$^2$").replace("³", "$^3$")


def _escape(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)
