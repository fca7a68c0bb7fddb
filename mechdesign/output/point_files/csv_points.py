"""Points in text files with a header, read and written in parts. Kept columns stay as they are, letter by letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from mechdesign.base.files import readable
from mechdesign.base.log import log_note
from mechdesign.errors import FileFormatError
from mechdesign.output.point_files.parts import COMPRESSED, ROWS, Part, PointFormat, ReportedPart
from mechdesign.problem.text import dialect_of

_FIELD = "points"
_BEYOND = "\0beyond the header"


def read_csv(path: Path, *, crs: str | None = None, on_note: Callable[[str], None] = log_note) -> Iterator[Part]:
    """Yield the lines below the header in parts. `problem/text.py` names the separators and marks that are read."""
    import pandas as pd

    dialect = dialect_of(path, _FIELD)
    names = dialect.names
    if len(set(names)) < len(names):
        repeated = ", ".join(sorted({name for name in names if names.count(name) > 1}))
        raise FileFormatError("has two columns of one name", field=_FIELD, value=repeated)
    first = 1
    with readable(path, _FIELD):
        parts = pd.read_csv(
            path,
            sep=r"\s+" if dialect.separator == " " else dialect.separator or ",",
            header=None,
            names=[*names, _BEYOND],
            skiprows=dialect.lines_before + 1,
            dtype=str,
            keep_default_na=False,
            index_col=False,
            encoding=dialect.encoding,
            compression=COMPRESSED.get(path.suffix.lower()),
            chunksize=ROWS,
            skip_blank_lines=True,
        )
        with parts:
            for frame in parts:
                frame = frame.fillna("")
                if (frame.pop(_BEYOND) != "").any():
                    shown = ", ".join(names)
                    raise FileFormatError("has lines with more fields than the header", field=_FIELD, value=shown)
                yield Part(frame=frame, first=first, decimal=dialect.decimal, doubtful=dialect.doubtful)
                first += len(frame)


def write_csv(path: Path, parts: Iterable[ReportedPart], *, separator: str = ",") -> None:
    """Write text in UTF-8, with decimal points in the columns that are added."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        for number, part in enumerate(parts):
            part.frame.to_csv(stream, sep=separator, index=False, header=number == 0, lineterminator="\n")


CSV = PointFormat(read=read_csv, write=write_csv)
TSV = PointFormat(read=read_csv, write=partial(write_csv, separator="\t"))
