"""The one reader of text files: tables, places, people, reports, areas, nodes and edges.

| read | refused, with the line |
|---|---|
| separators `;`, tab, `,` or blanks; Excel's first line `sep=;` | lines with more fields than the header |
| decimal points; decimal commas beside `;` and tab, or in quotes | both marks in one file; 1,500 if in doubt |
| UTF-8 with or without BOM, UTF-16 with BOM; any line ends | UTF-16 without BOM, files that are not text |
| .gz, .bz2, .xz, and .zip of one file | thousands separators: 1 500, 1'500, 1.234.567 |
| comments (#), blank lines, lines of separators alone | missing and suppressed values: NA, -, ., *, c, <5 |

A blank line inside a file of one column is a missing value. Percentages are numbers for probabilities alone.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Indices
from mechdesign.base.files import readable
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.columns import GROUPED, Columns, Names, columns_named, plain_name

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MARKS = {  # longer ones first: the mark of UTF-32 begins with that of UTF-16
    b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}  # fmt: skip
_SAMPLE = 100  # lines from which the separator is detected
_EXCEL_SEPARATOR = re.compile(r'"?sep=(.)"?', re.I)
_EMPTY_LINE = re.compile(r"^(?:#.*|[;,\t \"]*)$", re.M)  # a comment, a blank line, or separators alone
_EMPTY_START = re.compile(r"\n[#;,\t \"\n]")
_EXTRA = "\0beyond the header"


def is_csv(path: str | Path) -> bool:
    """True for the name of a file of columns, compressed or not."""
    name = Path(Path(path).name.lower())
    return (Path(name.stem) if name.suffix in (*_OPENERS, ".zip") else name).suffix in (".csv", ".tsv")


def read_frame(
    path: str | Path,
    field: str,
    *,
    texts: Collection[str] | None = (),
    columns: Columns = None,
    roles: Collection[str] | None = None,
    whole: Names = (),
    encoding_errors: str = "strict",
) -> Any:
    """The data frame of a text file, as `TextFile.frame`; "replace" if unused columns may be garbled."""
    return TextFile(path, field, encoding_errors).frame(texts=texts, columns=columns, roles=roles, whole=whole)


class TextFile:
    """A text file, without comments, blank lines and BOM; doubtful: a number whose mark may separate thousands."""

    def __init__(self, path: str | Path, field: str, encoding_errors: str = "strict") -> None:
        self.source, self.field = Path(path), field
        with readable(path, field):
            text = _decode(_content(self.source, field), self.source, field, encoding_errors)
        self.comments = list(takewhile(lambda line: line.startswith("#"), text.split("\n", _SAMPLE)))
        # One cheap search spares most files the scan line by line.
        empty = _EMPTY_START.search("\n" + text.rstrip("\n")) is not None
        lines, self.numbers = _full_lines(text, inside=False) if empty else _all_lines(text)
        excel = _EXCEL_SEPARATOR.fullmatch(lines.split("\n", 1)[0].strip())
        if excel:
            _, _, lines = lines.partition("\n")
            self.numbers = self.numbers[1:]
        if not lines:
            raise FileFormatError("is empty", field=field, value=self.source)
        self.separator = excel[1] if excel else _separator(lines)
        if empty:
            lines, numbers = _full_lines(lines, inside=True, single=self.separator is None)
            self.numbers = self.numbers[numbers - 1]
        self.lines = lines
        self.decimal, self.doubtful = _decimal_mark(lines, self.separator, field)
        # R writes a header without a name for the index: every line then has one field more.
        first, rest = lines.partition("\n")[::2]
        widths = [_count_fields(line, self.separator) for line in rest.split("\n", _SAMPLE)[:_SAMPLE] if line]
        named = _count_fields(first, self.separator) + (
            self.separator != " " and first.rstrip().endswith(self.separator or "\0")
        )
        self.has_short_header = bool(widths) and min(widths) == max(widths) == named + 1
        # With commas such lines may also be numbers with decimal commas: 0,5 below a header of one name.
        if (
            self.has_short_header
            and self.separator == ","
            and not rest.startswith('"')
            and not re.search(r"[^\d,\n+ -]", rest)
        ):
            raise FileFormatError(
                "has a header of one name less than its lines have fields",
                field=field,
                value=first[:80],
                remedy="the commas may separate fields or decimals: name all columns, and write decimal points",
            )

    def head(self) -> list[str]:
        first = self._parse(self.lines.partition("\n")[0], names=None, dtype=str)
        return [str(word).strip() for word in first.fillna("").iloc[0]]

    def words(self) -> Any:
        head = self.lines.split("\n", _SAMPLE)[:_SAMPLE]
        width = max(_count_fields(line, self.separator) for line in head)
        frame = self._parse(self.lines, names=list(range(width + 1)), dtype=str)
        frame = frame.apply(lambda column: column.fillna("").str.strip())
        if frame[width].eq("").all():  # a separator ends the lines
            frame = frame.drop(columns=width)
        frame.index = self.numbers[: len(frame)]
        return frame

    def frame(
        self,
        *,
        texts: Collection[str] | None = (),
        columns: Columns = None,
        roles: Collection[str] | None = None,
        whole: Names = (),
    ) -> Any:
        """The lines below the header, by line number; `attrs` hold decimal, doubtful, columns and comments."""
        # texts: columns of texts, None for all; columns: names of the file by ours; whole: those of people or counts.
        names = [name.lower() or f"unnamed: {k}" * (k > 0) for k, name in enumerate(self.head())]
        chosen = {
            ours: name.strip().lower() for ours, name in (columns or {}).items() if roles is None or ours in roles
        }
        if repeated := sorted({name for name in names if name and names.count(name) > 1}):
            raise FileFormatError("has two columns of one name", field=self.field, value=", ".join(repeated))
        if len(set(chosen.values())) < len(chosen):
            raise InputError("one column has two meanings", field="columns", value=", ".join(chosen.values()))
        for ours, name in chosen.items():
            if name not in names:
                message = f"has no column named {name}, which was given for {ours}"
                raise FileFormatError(message, field=self.field, value=", ".join(names))
        texts_by_plain_name = set(map(plain_name, texts or ()))
        words = {name for name in names if plain_name(name) in texts_by_plain_name} | {
            chosen[ours] for ours in chosen if ours in texts_by_plain_name
        }
        if whole and self.separator in (";", "\t") and GROUPED.search(self.lines):
            words |= set(columns_named(names, chosen, whole))
        frame = self._body(names, None if texts is None else words)
        frame.attrs.update(decimal=self.decimal, doubtful=self.doubtful, columns=chosen, comments=self.comments)
        return frame

    def _body(self, names: list[str], words: Collection[str] | None) -> Any:
        """The lines below the header. A header that is one name short, as R writes it, has no name for an index."""
        body = self.lines.partition("\n")[2]
        named = ["", *names] if self.has_short_header else names
        if not body:
            import pandas as pd

            return pd.DataFrame({name: np.empty(0) for name in named})
        dtype: Any = str if words is None else dict.fromkeys(words, str)
        # One column more than names: fields beyond the header show there, instead of shifting the names.
        frame = self._parse(body, names=[*named, _EXTRA], dtype=dtype)
        beyond = frame.pop(_EXTRA)
        if not beyond.isna().all() and not beyond.fillna("").astype(str).str.strip().eq("").all():
            raise FileFormatError("has fields without a name", field=self.field, value=", ".join(names))
        frame.index = self.numbers[1 : len(frame) + 1]
        unnamed = [name for name in named if name.startswith("unnamed: ")]
        return frame.drop(columns=[name for name in unnamed if frame[name].fillna("").astype(str).eq("").all()])

    def _parse(self, lines: str, *, names: list[Any] | None, dtype: Any) -> Any:
        import pandas as pd

        # If commas separate both fields and decimals, pandas cannot know: numbers are read from the words.
        decimal = "," if self.decimal == "," and self.separator != "," else "."
        exact: dict[str, Any] = {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}
        with readable(self.source, self.field), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # fields beyond the names would be dropped
            try:
                return pd.read_csv(
                    io.BytesIO(lines.encode()),
                    sep=r"\s+" if self.separator == " " else self.separator or ",",
                    header=None,
                    names=names,
                    dtype=dtype,
                    decimal=decimal,
                    keep_default_na=False,
                    skipinitialspace=True,
                    skip_blank_lines=False,
                    index_col=False,
                    low_memory=False,
                    **exact,
                )
            except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
                message = "has lines with more fields than the first" if names is None else "has fields without a name"
                shown = lines.partition("\n")[0] if names is None else ", ".join(map(str, names[:-1]))
                raise FileFormatError(message, field=self.field, value=shown[:200]) from error


def _content(source: Path, field: str) -> bytes:
    suffix = source.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            members = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and name[-1] != "/"]
            if len(members) != 1:
                raise FileFormatError("must hold one file", field=field, value=f"{len(members)} in {source.name}")
            return archive.read(members[0])
    with _OPENERS.get(suffix, open)(source, "rb") as stream:
        content: bytes = stream.read()
        return content


def _decode(content: bytes, source: Path, field: str, errors: str) -> str:
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding, errors)
    except UnicodeDecodeError as error:
        message, remedy = f"is not text in UTF-8 ({error})", "save it as UTF-8, in Excel as CSV UTF-8"
        raise FileFormatError(message, field=field, value=source, remedy=remedy) from error
    # UTF-16 of ASCII letters has a zero byte in every character, and decodes as UTF-8.
    if "\0" in text:
        message = "is not text, or UTF-16 without a byte order mark"
        raise FileFormatError(message, field=field, value=source, remedy="save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _all_lines(text: str) -> tuple[str, Indices]:
    text = text.rstrip("\n")
    return text, np.arange(1, text.count("\n") + 2) if text else np.empty(0, np.int64)


def _full_lines(text: str, *, inside: bool, single: bool = False) -> tuple[str, Indices]:
    """Lines with content, and their numbers. Blank lines inside are dropped if `inside` and not `single`."""
    lines = text.rstrip("\n").split("\n")
    is_comment = np.array([line.startswith("#") for line in lines])
    has_content = np.array([_EMPTY_LINE.fullmatch(line) is None for line in lines])
    is_kept = has_content.copy()
    if has_content.any() and (single or not inside):
        first, last = np.flatnonzero(has_content)[[0, -1]]
        is_kept[first:last] = True
    is_kept &= ~is_comment
    return "\n".join(line for line, keep in zip(lines, is_kept, strict=True) if keep), np.flatnonzero(is_kept) + 1


def _count_fields(line: str, separator: str | None) -> int:
    # Separators in quotes do not separate.
    bare = re.sub(r'"[^"]*"', "q", line).strip(" \n")
    if separator is None:
        return 1
    if separator == " ":
        return len(bare.split())
    return bare.count(separator) + (not bare.endswith(separator))


def _separator(lines: str) -> str | None:
    sample = [line for line in lines.split("\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    head, body = sample[0], sample[1:] or sample
    widths = {mark: [_count_fields(line, mark) for line in body] for mark in ";\t, "}

    def regular(mark: str) -> bool:
        counts = set(widths[mark])
        return len(counts) == 1 and counts.pop() - _count_fields(head, mark) in (0, 1) and widths[mark][0] > 1

    # First a separator by which all lines have the same number of fields, then one that divides the header.
    for accept in (regular, lambda mark: mark != " " and _count_fields(head, mark) > 1):
        for mark in ";\t, ":
            if accept(mark):
                return mark
    return next((mark for mark in ";\t," if any(mark in line for line in sample)), None)


def _decimal_mark(lines: str, separator: str | None, field: str) -> tuple[str, str | None]:
    """The decimal mark, and the first number whose mark may separate thousands; None if other numbers rule that out."""
    # A number ends at a separator, a quote or the end of a line. Where commas separate, only quoted fields hold one.
    between = {None: "\n", " ": " \n"}.get(separator, f"{separator}\n")
    ends = rf'(?:^|(?<=["{between}]))[ ]*[+-]?', rf'[ ]*%?[ ]*(?=["{between}]|$)'
    if separator == ",":
        ends = r'"[ ]*[+-]?', r'[ ]*%?[ ]*"'

    def first(mark: str, pattern: str) -> str | None:
        if mark not in lines:
            return None
        start, end = (
            ends if mark == "," or separator != "," else (r'(?:^|(?<=[",\n]))[ ]*[+-]?', r'[ ]*%?[ ]*(?=[",\n]|$)')
        )
        match = re.search(start + "(" + pattern.replace("M", re.escape(mark)) + ")" + end, lines, re.M)
        return match[1] if match else None

    # M is the mark. One, two, or more than three digits after it are decimals, as are those of 0M5, M5, 1234M5 and
    # 1M5e3. Three digits after one to three others may be thousands.
    decimals = r"\d*M(?:\d{1,2}|\d{4,})(?:[eE][+-]?\d+)?|0M\d+|\d{4,}M\d+|M\d+|\d+M\d+[eE][+-]?\d+"
    grouped = r"[1-9]\d{0,2}M\d{3}"
    decimal_comma, comma_or_thousands = (
        (None, None) if separator == "," and '"' not in lines else (first(",", decimals), first(",", grouped))
    )
    # No commas in numbers. A point next to commas or blanks between fields is decimal; next to ; or tab it may group.
    if decimal_comma is None and comma_or_thousands is None:
        if (
            separator in (",", " ", None)
            or (point_or_thousands := first(".", grouped)) is None
            or first(".", decimals) is not None
        ):
            return ".", None
        return ".", point_or_thousands
    point = first(".", decimals + "|" + grouped)
    if point is not None:
        message = (
            "has decimal points and decimal commas"
            if decimal_comma
            else "has numbers with a comma beside decimal points"
        )
        remedy = "write decimal points, and thousands without a separator"
        raise InputError(
            message, field=field, value=f"{decimal_comma or comma_or_thousands} and {point}", remedy=remedy
        )
    return ",", None if decimal_comma is not None else comma_or_thousands


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a text file with a header is written, by its first lines; for files that are read in parts."""

    names: list[str]
    separator: str | None
    decimal: str
    doubtful: str | None
    encoding: str
    lines_before: int


def dialect_of(path: str | Path, field: str) -> Dialect:
    """The dialect of a file with a header, from its first `_SAMPLE` lines, without comments before the header."""
    source = Path(path)
    with readable(path, field):
        with _OPENERS.get(source.suffix.lower(), open)(source, "rb") as stream:
            start: bytes = stream.read(4)
        encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8")
        try:
            with _OPENERS.get(source.suffix.lower(), open)(source, "rt", encoding=encoding) as text:
                lines = [line.rstrip("\r\n") for line in islice(text, _SAMPLE)]
        except UnicodeDecodeError as error:
            message, remedy = f"is not text in UTF-8 ({error})", "save it as UTF-8, in Excel as CSV UTF-8"
            raise FileFormatError(message, field=field, value=source, remedy=remedy) from error
    excel = _EXCEL_SEPARATOR.fullmatch(lines[0].strip()) if lines else None
    before = 0 if excel is None else 1
    while before < len(lines) and _EMPTY_LINE.fullmatch(lines[before]):
        before += 1
    content = "\n".join(line for line in lines[before:] if not _EMPTY_LINE.fullmatch(line))
    if not content:
        raise FileFormatError("is empty", field=field, value=source)
    separator = excel[1] if excel else _separator(content)
    decimal, doubtful = _decimal_mark(content, separator, field)
    head = content.partition("\n")[0]
    names = head.split() if separator == " " else next(csv.reader([head], delimiter=separator or ","))
    return Dialect(
        names=[name.strip() for name in names],
        separator=separator,
        decimal=decimal,
        doubtful=doubtful,
        encoding=encoding,
        lines_before=before,
    )
