"""Rows of cases as one test: every row runs, and a failure names its row.

`pytest.mark.parametrize` stays where a row takes long or has marks of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)


def few(table: Iterable[Any], *kept: Any) -> list[Any]:
    """Rows for `pytest.mark.parametrize`: those that are kept in every run, and the others as slow ones."""
    rows = list(table)
    assert all(row in rows for row in kept), "no such row"
    return [
        row if row in kept else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
        for row in rows
    ]


def each_row(
    names: str | Sequence[str], table: Iterable[Any], ids: Sequence[str] = (), by_default: Container[Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once a row of the table; arguments as of `pytest.mark.parametrize`.

    A row has a `tmp_path` and a `monkeypatch` of its own, and so it has paths of fixtures that name no file yet; other
    fixtures are those of the test. Rows that are not `by_default` run with --runslow only. If rows skip, the test is
    shown as skipped after all others have run.
    """
    keys = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    listed = [dict(zip(keys, row if len(keys) > 1 else (row,), strict=True)) for row in table]
    assert listed, "a table without rows tests nothing"
    usual = [
        by_default is None or (tuple(row.values()) if len(keys) > 1 else row[keys[0]]) in by_default for row in listed
    ]
    assert any(usual), "no row runs by default"
    assert len(ids) in (0, len(listed))

    def label(number: int) -> str:
        if ids:
            return ids[number]
        return ", ".join(f"{name}={value!r:.100}" for name, value in listed[number].items())

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def every_row(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            skips: list[str] = []
            slow = by_default is None or fixtures["pytestconfig"].getoption("--runslow")
            given = {name: value for name, value in fixtures.items() if name in signature.parameters}
            for number, row in enumerate(listed):
                if not (slow or usual[number]):
                    continue
                try:
                    call(test, number, given, row)
                except FAILURES as failure:
                    failure.add_note(f"in the row {label(number)}")
                    failures.append(failure)
                except pytest.skip.Exception as skip:
                    skips.append(f"{label(number)}: {skip.msg}")
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(listed)} rows", failures)
            if skips:
                pytest.skip("; ".join(skips))

        fixed = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        assert len(fixed) == len(signature.parameters) - len(keys), f"{test.__name__} does not take {names}"
        if by_default is not None and "pytestconfig" not in signature.parameters:
            fixed.append(inspect.Parameter("pytestconfig", inspect.Parameter.KEYWORD_ONLY))
        every_row.__signature__ = signature.replace(parameters=fixed)  # type: ignore[attr-defined]
        return every_row

    return decorate


def call(test: Callable[..., None], number: int, fixtures: dict[str, Any], row: dict[str, Any]) -> None:
    """One row, with folders and patches of its own."""
    arguments = {name: _own(name, value, number) for name, value in fixtures.items()} | row
    if "monkeypatch" not in arguments:
        return test(**arguments)
    with arguments["monkeypatch"].context() as patches:
        return test(**arguments | {"monkeypatch": patches})


def _own(name: str, value: Any, number: int) -> Any:
    """What a row gets of a fixture: a folder in the folder of the test, a path in a folder of its own."""
    if not isinstance(value, Path) or (value.exists() and name != "tmp_path"):
        return value
    folder = (value if name == "tmp_path" else value.parent) / f"row{number}"
    folder.mkdir(exist_ok=True)
    return folder if name == "tmp_path" else folder / value.name
