"""The answers of a survey, a line each: report, weight and domain, in a file as `surveys/reports.py` reads it.

A line without a report is a missing answer. `count` repeats a line: so many persons with this report and weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Indices, Mask, Vector
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.columns import (
    Columns,
    is_missing,
    matching_columns,
    named_column,
    number_column,
    refuse_line,
)
from mechdesign.problem.domain import Domain
from mechdesign.problem.text import read_frame
from mechdesign.surveys.reports import COUNT, NUMBER, ROLES, ignored_columns, report_fields, report_form, report_numbers

_LARGEST = 10**8  # persons: their arrays take 3 GB


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Reports (n,), -1 for a missing answer; weights (n,) and domains (n,), or None; columns read and ignored."""

    reports: Indices
    weights: Vector | None
    by: list[str] | None
    read: list[str]
    ignored: list[str]


def read_answers(
    path: str | Path,
    places: Domain,
    *,
    columns: Columns = None,
    weights: str | None = None,
    by: str | None = None,
    allow_missing: bool = False,
) -> Answers:
    """Read the answers of a file, for the reports `places` of one mechanism; weights, by: names of its columns."""
    are_classes = places.labels is not None
    texts = ["mechanism", *([by] if by else []), *(NUMBER if are_classes else ())]
    given = {**(columns or {}), **({} if weights is None else {"weights": weights})}
    frame = read_frame(
        path, "reports", texts=texts, columns=given, roles=(*ROLES, "weights"), whole=COUNT, encoding_errors="replace"
    )
    form = report_form(frame, places)
    positions = [named_column(frame, names, "reports") for names in form]
    count = named_column(frame, COUNT, "reports") if matching_columns(frame, COUNT) else None
    weight_column = None if weights is None else frame.attrs["columns"]["weights"]
    by_column = None if by is None else by.strip().lower()
    if by_column is not None and by_column not in frame:
        raise FileFormatError(f"has no column named {by}", field="by", value=", ".join(frame.columns))
    read = [*positions, *(name for name in (count, weight_column, by_column) if name is not None)]
    ignored = ignored_columns(frame, read, count)
    absent = _missing_lines(frame, positions)
    if absent.any() and not allow_missing:
        first = frame.index[int(np.argmax(absent))]
        remedy = "pass --missing leave-out or --missing class"
        raise InputError("have a missing answer", field="reports", value=f"line {first}", remedy=remedy)
    present = frame[~absent]
    present.attrs.update(frame.attrs)
    fields = report_fields(present, form, positions, are_classes=are_classes)
    numbers = np.full(len(frame), -1, np.int64)
    numbers[~absent] = report_numbers(fields, present, positions, form, places)
    times = np.ones(len(frame), np.int64)
    if count is not None:
        values = number_column(frame, COUNT, "reports", whole=True)
        invalid = ~((values >= 0) & (values == np.floor(values)) & (values <= _LARGEST))
        refuse_line(invalid, frame, [count], "reports", "counts must be non-negative integers")
        times = values.astype(np.int64)
    if not 0 < times.sum() <= _LARGEST:
        raise InputError(f"must be from 1 to {_LARGEST:,} persons", field="reports", value=int(times.sum()))
    weight = None
    if weight_column is not None:
        weight = number_column(frame, ("weights",), "weights")
        refuse_line(~(weight > 0), frame, [weight_column], "weights", "must be positive")
        weight = np.repeat(weight, times)
    groups = None if by_column is None else np.repeat(_groups(frame, by_column), times).tolist()
    return Answers(reports=np.repeat(numbers, times), weights=weight, by=groups, read=read, ignored=ignored)


def _missing_lines(frame: Any, positions: list[str]) -> Mask:
    """True (n,) for a line without a report: one of its columns stands for a missing value."""
    absent = np.zeros(len(frame), bool)
    for name in positions:
        words = frame[name]
        if words.dtype.kind in "iu":
            continue
        absent |= words.isna().to_numpy() if words.dtype.kind == "f" else words.astype(str).map(is_missing).to_numpy()
    return absent


def _groups(frame: Any, column: str) -> Any:
    groups = frame[column].fillna("").astype(str).str.strip()
    refuse_line(groups.eq("").to_numpy(), frame, [column], "by", "must name the domain of every line")
    return groups.to_numpy(object)
