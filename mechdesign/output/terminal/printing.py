"""How things are said on the terminal: sentences, tables, listings, progress. JSON documents and tables on stdout,
everything else on stderr. Names, paths and texts of files are shown as they are: no markup, no control characters.

Nothing is cut, and no word or figure is broken: text goes on in the next line, and a table that is too wide goes on
below itself, its first column again. The width is that of the terminal, or COLUMNS; without either it is not limited.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from mechdesign.base.compiling import note_compiling as note_compiling
from mechdesign.base.progress import clear
from mechdesign.base.progress import progress as progress
from mechdesign.base.streams import visible

_LARGEST_EXACT = 1 << 53
_UNLIMITED = 1 << 20  # columns
_PROSE = 120  # columns of a text at most: longer lines are hard to read


def width() -> int:
    """The columns there are for standard output."""
    if not (os.environ.get("COLUMNS") or (sys.stdout is not None and sys.stdout.isatty())):
        return _UNLIMITED
    return shutil.get_terminal_size().columns


def say(text: str) -> None:
    """A sentence or several on stdout."""
    clear()
    for line in _wrapped(text, min(width(), _PROSE)):
        print(line)


def listing(lines: Mapping[str, object]) -> None:
    """Names and values on stdout, a line each; empty ones are left out."""
    clear()
    shown = {visible(name): visible(value) for name, value in lines.items() if value not in (None, "", [])}
    indent = max(map(len, shown), default=0) + 2
    for name, value in shown.items():
        for k, line in enumerate(_wrapped(value, min(width(), _PROSE) - indent)):
            print((name if k == 0 else "").ljust(indent) + line)


def print_entry(name: str, summary: str, items: Iterable[str]) -> None:
    """A name with what it is, and items below it that are not broken, on stdout."""
    clear()
    say(f"{name}: {summary}")
    lines = [""]
    for item in map(visible, items):
        if lines[-1] and len(lines[-1]) + len(item) + 6 > min(width(), _PROSE):
            lines.append("")
        lines[-1] += f"  {item}" if lines[-1] else item
    for line in lines:
        print(f"    {line}")


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, groups: Iterable[Sequence[int]] | None = None
) -> None:
    """A table on stdout: the first column is text, the others are figures, on the right. In a wide table heads are
    broken at spaces to the width of their figures; columns that still do not fit go on in a table below, those of one
    of the `groups`, each a list of column numbers, together.
    """
    clear()
    columns = [[visible(cell) for cell in column] for column in zip(*rows, strict=True)]
    heads = [[visible(name)] for name in head]
    if sum(max(map(len, [*top, *cells])) + 2 for top, cells in zip(heads, columns, strict=True)) > min(width(), _PROSE):
        heads = [_head(name, cells) for name, cells in zip(head, columns, strict=True)]
    widths = [max(map(len, [*top, *cells])) for top, cells in zip(heads, columns, strict=True)]
    room = width()
    blocks: list[list[int]] = [[]]
    for group in groups or [[k] for k in range(1, len(columns))]:
        if blocks[-1] and widths[0] + sum(widths[k] + 2 for k in [*blocks[-1], *group]) > room:
            blocks.append([])
        blocks[-1].extend(group)
    for block in blocks:
        _print_block(
            [heads[k] for k in (0, *block)], [columns[k] for k in (0, *block)], [widths[k] for k in (0, *block)]
        )


def _print_block(heads: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    deepest = max(map(len, heads))
    above = zip_longest(*([""] * (deepest - len(top)) + list(top) for top in heads), fillvalue="")
    for cells in above:
        print(_aligned(cells, widths))
    print(_rule(sum(widths) + 2 * (len(widths) - 1)))
    for cells in zip(*columns, strict=True):
        print(_aligned(cells, widths))
    print()


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(wide) if k == 0 else cell.rjust(wide)
        for k, (cell, wide) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def _rule(length: int) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return ("─" if encoding.lower().startswith("utf") else "-") * length


def _head(name: str, cells: Sequence[str]) -> list[str]:
    words = visible(name).split() or [""]
    room = max(map(len, [*words, *cells]))
    return textwrap.wrap(" ".join(words), room, break_long_words=False, break_on_hyphens=False) or [""]


def _wrapped(text: str, room: int) -> list[str]:
    return textwrap.wrap(visible(text), max(room, 20), break_long_words=False, break_on_hyphens=False) or [""]


def figure(value: Any) -> str:
    """A value of a document as people read it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {figure(item)}" for name, item in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def note(text: str) -> None:
    """A line on stderr."""
    clear()
    if sys.stderr is not None:
        print(visible(text), file=sys.stderr)


def print_json(document: Any) -> None:
    """One JSON document on stdout: NaN and infinities are null, integers beyond 2^53 are strings."""
    clear()
    print(json.dumps(_plain(document), allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_EXACT:
        return str(value)
    return value
