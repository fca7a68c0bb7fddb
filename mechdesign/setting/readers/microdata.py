"""Microdata: one number a record, with survey weights, from a CSV file with a header.

The format is that of survey extracts such as IPUMS: a value column (HHINCOME), a weight column (HHWT, how many
households a record stands for) and codes for "not applicable" among the values (9999998, 9999999).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_lines
from mechdesign.errors import FileFormatError, InputError

_UNFOLDS = 8  # bytes of memory for a byte of text: two columns of doubles, twice


@dataclass(frozen=True, kw_only=True, eq=False)
class Microdata(Shown):
    """values (k,), finite, in the unit of the file; weights (k,), not negative, sum positive; dropped, how many records
    had an empty field or a code for missing.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    dropped: int

    def sample(self, n: int, seed: int) -> NDArray[np.float64]:
        """Values (n,) drawn with replacement, each with probability proportional to its weight."""
        chosen = np.random.default_rng(seed).choice(len(self.values), n, p=self.weights / self.weights.sum())
        return self.values[chosen]


@asked
def read_microdata(
    path: str | Path, *, value: str, weight: str | None = None, missing: Collection[float] = ()
) -> Microdata:
    """Read a column of values and, where named, one of weights (else all are 1); names in any case.

    missing: values that stand for no answer; they and records with an empty field are dropped and counted.
    Raises: FileFormatError for a file that is missing, empty, without such a column, or with a field that is no number;
        InputError for values or weights that are not finite, for negative weights, and where nothing is left.
    Cost: memory of two columns.
    """
    frame = read_columns(path, {"value": (value,), **({} if weight is None else {"weight": (weight,)})}, "microdata")
    values = frame["value"]
    weights = frame.get("weight", np.ones(len(values)))
    kept = ~(np.isnan(values) | np.isnan(weights) | np.isin(values, np.asarray(list(missing), float)))
    values, weights = values[kept], weights[kept]
    if len(values) == 0:
        raise InputError("has no record with a value", field="microdata", value=path, remedy="check the missing codes")
    for name, column in ((value, values), (weight, weights)):
        if not np.isfinite(column).all():
            raise InputError("must be finite", field=str(name), value="inf", remedy="remove or correct such records")
    if (weights < 0).any() or not weights.any():
        raise InputError(
            "must not be negative, nor all zero",
            field=str(weight),
            value=f"{weights.min():.6g} to {weights.max():.6g}",
            remedy="name the column of survey weights",
        )
    return Microdata(values=values, weights=weights, dropped=int((~kept).sum()))


def read_columns(path: str | Path, wanted: dict[str, tuple[str, ...]], field: str) -> dict[str, NDArray[np.float64]]:
    """Columns of a CSV file as doubles by our names, nan where a field is empty; each is found by any of its names.

    Other columns are left aside: words in them may be of any encoding.
    Raises: FileFormatError for a file that is missing, empty, has no such column, two of them, or a field that is no
    number.
    """
    import pandas as pd

    source, remedy = Path(path), "give the path of a CSV file"
    try:
        with open_lines(source, field=field, remedy=remedy, unfolds=_UNFOLDS) as stream:
            header = pd.read_csv(stream, nrows=0, encoding_errors="replace").columns
        found = {name: _column(header, spellings, field) for name, spellings in wanted.items()}
        with within_memory(field, source), open_lines(source, field=field, remedy=remedy, unfolds=_UNFOLDS) as stream:
            frame: Any = pd.read_csv(stream, usecols=list(found.values()), dtype=float, encoding_errors="replace")
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(
            f"cannot be read ({error})", field=field, value=source, remedy="give a CSV file with a header and numbers"
        ) from error
    return {name: frame[column].to_numpy(float) for name, column in found.items()}


def _column(header: Any, spellings: tuple[str, ...], field: str) -> Any:
    """The column of a header whose name is one of the spellings, in any case."""
    found = [column for column in header if str(column).strip().lower() in {name.lower() for name in spellings}]
    if len(found) != 1:
        raise FileFormatError(
            f"has {len(found)} columns named " + " or ".join(spellings),
            field=field,
            value=", ".join(map(str, header)),
            remedy="name a column of the file",
        )
    return found[0]
