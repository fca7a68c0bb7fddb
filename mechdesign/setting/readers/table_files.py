"""Readers of tables P(y|u) that other programs wrote: one row a secret, one column a report.

| suffix | what is read |
|---|---|
| .csv .tsv .txt .dat .asc | text: a matrix, long form or Armadillo's ascii format (`text_tables`) |
| .npy | a NumPy array of two axes, of numbers |
| .mat | MATLAB level 5 (`save -v7`), a full or sparse matrix |
| .bin .arma | Armadillo binary (`arma_binary`), double or single precision |
| .parquet | a matrix or long form, where pyarrow is installed |

libqif returns NumPy arrays in Python and Armadillo matrices in C++: what `numpy.save`, `numpy.savetxt`, `arma_ascii`,
`csv_ascii`, `raw_ascii` and `arma_binary` write of them is read. PrivKit writes obfuscated traces, which are samples
and no table: they are refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_regular
from mechdesign.errors import FileFormatError, InputError, MechdesignError
from mechdesign.setting.readers.binary_tables import READERS, read_matlab
from mechdesign.setting.readers.text_tables import matrix, read_fields, text_table

_TEXT = {".csv", ".tsv", ".txt", ".dat", ".asc"}


@asked
def read_table(path: str | Path, *, variable: str | None = None) -> NDArray[np.float64]:
    """The table (n, m) of a file as doubles, neither checked nor normalised.

    variable: which one of a .mat file that holds several.
    Raises: FileFormatError for a missing, cut-short or malformed file, InputError for a field that is no number, naming
        row and column; SizeError where the table would not fit.
    """
    source = Path(path)
    suffix = source.suffix.lower()
    with open_regular(source, field="table", remedy="give the path of a table") as stream:
        if variable is not None and suffix != ".mat":
            raise InputError(
                "only .mat files name their tables", field="variable", value=variable, remedy="leave it out"
            )
        try:
            with within_memory("table", source):
                if suffix in _TEXT:
                    return text_table(stream, source)
                if suffix in READERS:
                    return READERS[suffix](stream, source)
                if suffix == ".mat":
                    return read_matlab(stream, source, variable)
        except MechdesignError:
            raise
        except Exception as error:
            raise FileFormatError(
                f"cannot be read ({type(error).__name__}: {error})",
                field="table",
                value=source,
                remedy="check that the file is complete",
            ) from error
    if suffix == ".nc":
        raise FileFormatError(
            "is not a table of another program",
            field="table",
            value=source.name,
            remedy="use mechdesign verify, or mechdesign export",
        )
    raise FileFormatError(
        "unknown kind of table",
        field="table",
        value=source.name,
        remedy="use .csv, .npy, .mat (-v7), .parquet or Armadillo's .bin",
    )


@asked
def read_places(path: str | Path) -> NDArray[np.float64]:
    """Coordinates (n, k), k = 1 to 3, of a text file with one place a line; a header line is skipped.

    Raises: as `read_table`, and InputError for another number of columns.
    """
    source = Path(path)
    with open_regular(source, field="places", remedy="give the path of a CSV file") as stream:
        places = matrix(read_fields(stream, source), index_column=False)
    if not 1 <= places.shape[1] <= 3:
        raise InputError(
            "coordinates have 1 to 3 columns",
            field="places",
            value=f"{places.shape[1]} columns",
            remedy="write one place a line: x, y",
        )
    return places
