"""Ledger: the file of a budget, whole or not there; one process at a time changes it, and only its owner reads it.

A JSON document: schema; limit and spent, exact fractions; spends, how many; unit, what is counted (admission.py), null
before the first report; remembered, the report of every mechanism and secret; sha256 over the rest.
The remembered reports name the secrets: permissions are 0600. The lock is a file beside it, which is never removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.errors import FileFormatError, InputError
from mechdesign.mechanism.storage import write_atomically

SCHEMA = "mechdesign/budget/1"
_PRIVATE = 0o600
_FIELDS = {"schema", "limit", "spent", "spends", "unit", "remembered"}


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """limit > 0 and 0 <= spent <= limit, in multiples of the unit; spends >= 0; remembered, report numbers."""

    limit: Fraction
    spent: Fraction = Fraction(0)
    spends: int = 0
    unit: str | None = None
    remembered: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (0 <= self.spent <= self.limit and self.limit > 0 and self.spends >= 0):
            raise ValueError(f"{self.spent} of {self.limit} in {self.spends} reports")

    def write(self, path: Path) -> None:
        """Replace the file at once. Raises: FileFormatError where the disk refuses; the old file then stands."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "limit": str(self.limit),
            "spent": str(self.spent),
            "spends": self.spends,
            "unit": self.unit,
            "remembered": dict(self.remembered),
        }
        text = json.dumps(document | {"sha256": _digest(document)}, indent=1, sort_keys=True)

        def put(temporary: Path) -> None:
            temporary.write_text(text, encoding="utf-8")

        write_atomically(path, put, mode=_PRIVATE)


def read_ledger(path: Path) -> Ledger:
    """The ledger at `path`.

    Raises: InputError where there is none; FileFormatError where it is cut short, altered or contradicts itself.
    """
    if not path.is_file():
        raise InputError(
            "no such ledger", field="budget", value=path, remedy="make one: Budget.create(path, limit=...)"
        )
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        digest = document.pop("sha256")
        if set(document) != _FIELDS or document["schema"] != SCHEMA or digest != _digest(document):
            raise ValueError("altered")
        return Ledger(
            limit=Fraction(document["limit"]),
            spent=Fraction(document["spent"]),
            spends=document["spends"],
            unit=document["unit"],
            remembered=document["remembered"],
        )
    except Exception as error:
        raise FileFormatError(
            f"the ledger is damaged ({type(error).__name__})",
            field="budget",
            value=path,
            remedy="treat the budget as spent: what was reported cannot be told from it",
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other process and thread out of the ledger at `path`, waiting for them first.

    The operating system gives the lock back when a process dies.
    Raises: FileFormatError where the lock file cannot be made.
    """
    lock = path.parent / f".{path.name}.lock"
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, _PRIVATE)
    except OSError as error:
        raise FileFormatError(
            f"cannot be locked ({error.strerror})", field="budget", value=lock, remedy="check folder and permissions"
        ) from error
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
