"""The renderer of commands: a document as JSON or as blocks of text, on stdout; notes and progress on stderr."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mechdesign.base.log import clear, show_note
from mechdesign.base.progress import note_compiling as note_compiling
from mechdesign.base.progress import progress as progress
from mechdesign.base.streams import visible
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import SizeError, SolverError, UnsuitableError

_LARGEST_EXACT = 1 << 53
_UNLIMITED = 1 << 20  # columns
_BEYOND_REACH = (SizeError, SolverError, UnsuitableError, OutOfTime, MemoryError, ArithmeticError)
_PROSE = 120  # columns of a text at most: longer lines are hard to read


Figure = TypeVar("Figure")


class Note(str):
    """A line for stderr."""


# Names, paths and texts of files have no markup and no control characters. Nothing is cut: text wraps, and a table that
# is too wide continues below itself, with its first column again. The width is that of the terminal, or COLUMNS.
@dataclass(frozen=True)
class TextTable:
    """The first column is text, the others figures; columns of one of the `groups` stay together in wide tables."""

    head: Sequence[str]
    rows: Iterable[Sequence[str]]
    groups: Sequence[Sequence[int]] | None = None


Block = str | Mapping[str, object] | TextTable


def show(document: Any, blocks: Iterable[Block], *, as_json: bool) -> None:
    """Print the document as JSON, or its blocks: sentences, listings of names and values, tables and notes."""
    if as_json:
        print_json(document)
        return
    before: Block | None = None
    for block in blocks:
        if isinstance(block, Note):
            note(block)
        elif isinstance(block, str):
            say(block)
        elif isinstance(block, Mapping):
            listing(block)
        else:
            if isinstance(before, (str, Mapping)):
                print()
            print_table(block.head, block.rows, groups=block.groups)
        before = block


def show_file(written: Path, *, as_json: bool) -> None:
    """Print the name of a written file."""
    show({"file": str(written)}, [Note(f"wrote {written}")], as_json=as_json)


def width() -> int:
    """The number of columns of standard output."""
    # A pipe or a file gets every table in one piece.
    if not (os.environ.get("COLUMNS") or (sys.stdout is not None and sys.stdout.isatty())):
        return _UNLIMITED
    return shutil.get_terminal_size().columns


def say(text: str) -> None:
    """Print wrapped text on stdout."""
    clear()
    for line in _wrap(text, _room()):
        print(line)


def listing(lines: Mapping[str, object]) -> None:
    """Print names and values on stdout, a line each, without empty values."""
    clear()
    shown = {visible(name): visible(value) for name, value in lines.items() if value not in (None, "", [])}
    indent = max(map(len, shown), default=0) + 2
    for name, value in shown.items():
        for k, line in enumerate(_wrap(value, _room(indent))):
            print((name if k == 0 else "").ljust(indent) + line)


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, groups: Iterable[Sequence[int]] | None = None
) -> None:
    """Print a `TextTable` on stdout. A wide table breaks its heads at spaces to the width of their figures."""
    clear()
    columns = [[visible(cell) for cell in column] for column in zip(*rows, strict=True)]
    heads = [[visible(name)] for name in head]
    if sum(max(map(len, [*top, *cells])) + 2 for top, cells in zip(heads, columns, strict=True)) > min(width(), _PROSE):
        heads = [
            _wrap(name, max(map(len, [*visible(name).split(), *cells])))
            for name, cells in zip(head, columns, strict=True)
        ]
    widths = [max(map(len, [*top, *cells])) for top, cells in zip(heads, columns, strict=True)]
    # Every block of a wide table begins with the first column; a group of columns stays together.
    blocks = [[0]]
    for group in groups or [[k] for k in range(1, len(columns))]:
        if len(blocks[-1]) > 1 and sum(widths[k] + 2 for k in [*blocks[-1], *group]) - 2 > width():
            blocks.append([0])
        blocks[-1].extend(group)
    # A terminal that cannot print the rule would end the command with an error.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    rule = "─" if encoding.lower().startswith("utf") else "-"
    for block in blocks:
        deepest = max(len(heads[k]) for k in block)
        above = zip(*([""] * (deepest - len(heads[k])) + heads[k] for k in block), strict=True)
        for cells in above:
            print(_format_line(cells, [widths[k] for k in block]))
        print(rule * (sum(widths[k] + 2 for k in block) - 2))
        for cells in zip(*(columns[k] for k in block), strict=True):
            print(_format_line(cells, [widths[k] for k in block]))
        print()


def _format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    others = (cell.rjust(wide) for cell, wide in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([cells[0].ljust(widths[0]), *others]).rstrip()


def _room(indent: int = 0) -> int:
    return max(min(width(), _PROSE) - indent, 20)


def _wrap(text: str, room: int) -> list[str]:
    # Options and paths are never broken: people copy them.
    return textwrap.wrap(visible(text), max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]


def note(text: str) -> None:
    """Print a line on stderr."""
    show_note(text)


def where_possible(noun: str, compute: Callable[[], Figure], otherwise: Figure) -> Figure:
    """Return compute(), or `otherwise` with a note where memory, time or the range of doubles does not suffice."""
    try:
        return compute()
    except _BEYOND_REACH as error:
        note(f"{noun} is left out: {getattr(error, 'message', error)}")
        return otherwise


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    clear()
    print(json_text(document))


def json_text(document: Any) -> str:
    """A document as JSON: NaN and infinities are null, integers beyond 2^53 are strings."""
    return json.dumps(plain(document), allow_nan=False, indent=2)


def plain(value: Any) -> Any:
    """Convert a value to types of JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # Readers in JavaScript take numbers as doubles: digits beyond 2^53 would be lost.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_EXACT:
        return str(value)
    return value
