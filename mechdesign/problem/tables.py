"""Tables P(y|u) that other programs wrote: one row a secret, one column a report.

| suffix | content |
|---|---|
| .csv .tsv .txt .dat, also .gz .bz2 .xz .zip | text: a matrix, with or without header and index, or long form |
| .npy | a NumPy array of two axes, of numbers |
| .parquet | a matrix or long form, where pyarrow is installed |

Long form has the columns secret, report and one of probability, mass or count; unlisted pairs are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import AnyArray, Indices, Matrix
from mechdesign.base.files import readable
from mechdesign.base.labels import join_labels, place_order, refuse_totals, refuse_two_orders, values_in_place_order
from mechdesign.base.log import log_note
from mechdesign.base.memory import require_memory
from mechdesign.base.optional import import_optional
from mechdesign.base.validation import validate_call
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.classes import label_numbers, label_positions
from mechdesign.problem.columns import Columns, matching_columns, named_column, number_column, numbers_in, plain_name
from mechdesign.problem.matrix_labels import ROW_NAMES, WHOLE, MatrixLabels
from mechdesign.problem.text import TextFile

TABLE_ROLES = ("secret", "report", "probability", "mass", "count")

_TEXT = {".csv", ".tsv", ".txt", ".dat", ".asc", ".gz", ".bz2", ".xz", ".zip"}
_VALUES = ("probability", "mass", "count")
_SAMPLES = {"obf_lat", "obf_lon", "obf_latitude", "obf_longitude"}
Note = Callable[[str], None]  # called with a sentence for the user
Classes = tuple[Sequence[str] | None, Sequence[str] | None]  # labels of secrets and of reports, where they have some


@validate_call
def read_table(
    path: str | Path,
    *,
    columns: Columns = None,
    on_note: Callable[[str], None] | None = None,
    secrets: Sequence[str] | None = None,
    reports: Sequence[str] | None = None,
) -> Matrix:
    r"""The table (n, m) of a file as doubles, neither checked nor normalised.

    Parameters
    ----------
    path, columns : str or Path, mapping of str to str
        A .csv, .npy or .parquet file; its columns by our names if in long form: {"secret": "true", "count": "n"}.
    on_note : callable
        Takes a sentence on labels that were not read as data, and on their order.
    secrets, reports : sequence of str
        The labels of the classes, in the order of the rows and of the columns of the result.

    Returns
    -------
    (n, m) array

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text("0.5,0.5\n0.25,0.75\n")
    ...     md.read.table(path)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    source = Path(path)
    suffix = source.suffix.lower()
    with readable(source, "table"):
        if suffix == ".npy":
            # A memory map allocates nothing, whatever size the header announces.
            return _matrix_of(np.load(source, mmap_mode="r", allow_pickle=False))
        if suffix == ".parquet":
            return _parquet(source, columns, on_note or log_note, (secrets, reports))
        if suffix in _TEXT:
            return _text_table(source, columns, on_note or log_note, (secrets, reports))
    message = "is not a table: use .csv, .npy or .parquet; for mechanism files mechdesign verify"
    raise FileFormatError(message, field="table", value=source.name)


def _text_table(source: Path, columns: Columns, note: Note, classes: Classes) -> Matrix:
    text = TextFile(source, "table")
    names = [name.lower() for name in text.head()]
    if samples := sorted(_SAMPLES & set(names)):
        message = "holds obfuscated positions, which are samples of a mechanism and not its table"
        raise InputError(message, field="table", value=", ".join(samples))
    if {"secret", "report"} <= set(names) | set(columns or ()):
        return _long_form(
            text.frame(texts=("secret", "report"), columns=columns, roles=TABLE_ROLES, whole=("count",)), note, classes
        )
    if set(columns or ()) & set(TABLE_ROLES):
        message = "is a matrix: only long form has columns secret and report"
        raise InputError(message, field="columns", value=", ".join(names)[:200])
    words = text.words().to_numpy(object)
    # A header that is one name short has no name for the index.
    if text.has_short_header:
        words[0] = ["", *words[0][:-1]]
    header, index = MatrixLabels(words, text, note).labels()
    body = words[header:, index:]
    if 0 in body.shape:
        raise FileFormatError("has a header and no rows", field="table", value=", ".join(names)[:200])
    return _in_place_order(numbers_in(body, text.decimal, text.doubtful, "table"), words, header, index, note, classes)


# Six arguments: a table, its words, the places of labels, and the known classes.
def _in_place_order(table: Matrix, words: AnyArray, header: bool, index: bool, note: Note, classes: Classes) -> Matrix:
    rows = list(words[header:, 0]) if index else None
    columns = list(words[0, index:]) if header else None
    is_named = [False, False]
    for axis, (labels, side) in enumerate(((rows, "secret"), (columns, "report"))):
        if labels is not None:
            known = classes[axis]
            order = None if known is None else label_positions(labels, known, "table", side)
            is_named[axis] = order is not None
            order = place_order(labels, "table", side) if order is None else order
            table = np.take(table, order, axis=axis)
            labels[:] = [labels[k] for k in order]
    refuse_two_orders(rows, columns, "table")
    for axis, labels in enumerate((rows, columns)):
        refuse_totals(table, labels, axis, "table")
    if rows is not None and not is_named[0] and any(not WHOLE.fullmatch(word) for word in rows):
        note(f"Secrets are taken in the order of the file: {join_labels(rows)}.")
    return np.ascontiguousarray(table)


def _parquet(source: Path, columns: Columns, note: Note, classes: Classes) -> Matrix:
    import pandas as pd

    import_optional("pyarrow", "parquet")
    frame = pd.read_parquet(source)
    frame.columns = [str(name).lower() for name in frame.columns]
    frame.attrs = {"columns": {role: name.lower() for role, name in (columns or {}).items() if role in TABLE_ROLES}}
    if {"secret", "report"} <= set(frame.columns) | set(columns or ()):
        return _long_form(frame.reset_index(drop=True), note, classes)
    named = [name for name in frame.columns if plain_name(name) in ROW_NAMES]
    frame = frame.set_index(named[0]) if len(named) == 1 else frame
    return _matrix_of(np.asarray(values_in_place_order(frame, "table")))


def _matrix_of(array: AnyArray) -> Matrix:
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise FileFormatError("must be a matrix of real numbers", field="table", value=f"{array.dtype} {array.shape}")
    return np.array(array, float, order="C")


def _long_form(frame: Any, note: Note, classes: Classes) -> Matrix:
    """The table (n, m) of columns secret, report and probability, mass or count; no larger than the number of lines."""
    present = [name for name in _VALUES if matching_columns(frame, (name,))]
    # Tables of this package have both: mass is exact.
    if present == ["probability", "mass"]:
        present.remove("probability")
    if len(present) != 1 or frame.empty:
        message = "long form has the columns secret, report and one of " + ", ".join(_VALUES)
        raise FileFormatError(message, field="table", value=", ".join(frame.columns))
    labels = [frame[named_column(frame, (name,), "table")] for name in ("secret", "report")]
    numbered = [
        None if known is None else label_numbers(column.tolist(), known, "table", side)
        for column, known, side in zip(labels, classes, ("secret", "report"), strict=True)
    ]
    first, second = numbered
    if first is not None and second is not None:
        secret, report = first, second
        n, m = (len(known or ()) for known in classes)
    else:
        secret, report = _place_numbers(labels[0], labels[1], note)
        n, m = int(secret.max()) + 1, int(report.max()) + 1
    require_memory(n, m, tables=3, noun="the table")
    # One number for each pair: n m fits in memory, so it is far below 2^63.
    place, times = np.unique(secret * m + report, return_counts=True)
    if (times > 1).any():
        u, y = divmod(int(place[np.argmax(times > 1)]), m)
        raise InputError("a pair is listed twice", field="table", value=f"secret {u}, report {y}")
    table = np.zeros((n, m))
    table[secret, report] = number_column(
        frame, (present[0],), "table", shares=present == ["probability"], whole=present == ["count"]
    )
    return table


def _place_numbers(secrets: Any, reports: Any, note: Note) -> tuple[Indices, Indices]:
    """Numbers of secrets and reports: integers from 0, or both from 1; other labels in the order of the secrets."""
    import pandas as pd

    numbers = [pd.to_numeric(column, errors="coerce") for column in (secrets, reports)]
    is_numeric = [not column.isna().any() for column in numbers]
    distinct = [np.sort(column.dropna().unique()) for column in numbers]
    if all(is_numeric):
        for first in (0, 1):
            if all(_counts_from(first, labels) for labels in distinct):
                return np.asarray(numbers[0], np.int64) - first, np.asarray(numbers[1], np.int64) - first
        if not np.array_equal(distinct[0], distinct[1]) or distinct[0][0] < 0:
            gapped = next(k for k in (0, 1) if not _counts_from(0, distinct[k]))
            raise InputError(
                "must be numbered from 0 without a gap",
                field="secret" if gapped == 0 else "report",
                value=f"{distinct[gapped][0]:g} to {distinct[gapped][-1]:g}, {len(distinct[gapped])} of them",
                remedy="or give secrets and reports the same labels",
            )
        note(
            "Secrets and reports are taken in the order of their labels: "
            f"{join_labels([f'{x:g}' for x in distinct[0]])}."
        )
        return np.searchsorted(distinct[0], numbers[0]), np.searchsorted(distinct[0], numbers[1])
    orders: list[list[str]] = []
    columns = [column.astype(str).str.strip() for column in (secrets, reports)]
    for k, name in enumerate(("secret", "report")):
        if (columns[k] == "").any():
            line = columns[k].index[int(np.argmax(columns[k] == ""))]
            raise InputError("has no label", field=name, value=f"nothing in line {line}")
        words = columns[k]
        # A column of numbers has their order, also if the other column has words.
        if is_numeric[k]:
            columns[k] = words = numbers[k].map("{:g}".format)
            orders.append([f"{label:g}" for label in distinct[k]])
        else:
            orders.append(list(dict.fromkeys(words)))
    secret_order, report_order = orders
    # Reports that are secrets take their order; a report that only some labels share would be ambiguous.
    shared = set(report_order) & set(secret_order)
    if shared == set(report_order):
        note(
            f"Secrets and reports are taken in one order, that of the secrets in the file: {join_labels(secret_order)}."
        )
        report_order = secret_order
    elif shared == set(secret_order):
        report_order = secret_order + [label for label in report_order if label not in shared]
        note(f"Reports are taken in the order of the secrets, and others after them: {join_labels(report_order)}.")
    elif shared:
        message = "share some labels only with the secrets"
        value = f"{join_labels(report_order)}; secrets {join_labels(secret_order)}"
        raise InputError(message, field="report", value=value, remedy="name all reports as secrets, or none")
    else:
        note(
            f"Secrets are taken in the order of the file: {join_labels(secret_order)}; "
            f"reports: {join_labels(report_order)}."
        )
    return pd.Index(secret_order).get_indexer(columns[0]), pd.Index(report_order).get_indexer(columns[1])


def _counts_from(first: int, labels: Any) -> bool:
    return np.array_equal(labels, np.arange(first, first + len(labels)))
