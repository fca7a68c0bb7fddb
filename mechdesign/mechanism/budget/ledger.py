"""Ledger: the file of a budget, whole or not there; one process at a time changes it, and only its owner reads it.

A JSON document: schema; limit and spent, exact fractions; spends, how many; unit, what is counted (admission.py), null
before the first report; remembered, the report of every mechanism and secret; sha256 over the rest. At most 16 MB,
some 170,000 remembered reports.

The remembered reports name the secrets: permissions are 0600. A ledger has one name: symbolic links are followed when
it is opened, and a file with a second one (a hard link) is refused, because writing would part the two. The lock is a
file beside it, which stays with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.errors import FileFormatError, InputError
from mechdesign.mechanism.budget.lock import locked
from mechdesign.mechanism.storage.files import write_atomically

SCHEMA = "mechdesign/budget/1"
MOST_BYTES = 1 << 24
_PRIVATE = 0o600
_FIELDS = {"schema", "limit", "spent", "spends", "unit", "remembered"}
_DIGITS = 1000  # of a numerator or denominator; sums of doubles up to a double have 633 at most
_FRACTION = re.compile(rf"[0-9]{{1,{_DIGITS}}}(/[0-9]{{1,{_DIGITS}}})?")
_UNIT = re.compile(r"[0-9a-f]{64}")
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """limit > 0, at most the largest double, and 0 <= spent <= limit, in multiples of the unit, paid in `spends`
    reports; remembered, the numbers of reports, of no more than were paid.
    """

    limit: Fraction
    spent: Fraction = Fraction(0)
    spends: int = 0
    unit: str | None = None
    remembered: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = 0 <= self.spent <= self.limit and 0 < self.limit <= sys.float_info.max
        if not kept or (self.spent > 0) != (self.spends > 0) or len(self.remembered) > self.spends:
            raise ValueError(f"{self.spent} of {self.limit} in {self.spends} reports")

    def write(self, path: Path) -> None:
        """Replace the file at once.

        Raises: InputError where it would outgrow what `read_ledger` takes; FileFormatError where the disk refuses; the
            old file then stands.
        """
        parts = (part for each in (self.limit, self.spent) for part in each.as_integer_ratio())
        if max(parts) >= 10**_DIGITS:
            raise InputError(
                "sum of too many digits", field="budget", value=path, remedy="pay in whole numbers or doubles"
            )
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "limit": str(self.limit),
            "spent": str(self.spent),
            "spends": self.spends,
            "unit": self.unit,
            "remembered": dict(self.remembered),
        }
        text = json.dumps(document | {"sha256": _digest(document)}, indent=1, sort_keys=True).encode()
        if len(text) > MOST_BYTES:
            raise InputError("the ledger is full", field="budget", value=path, remedy="report no more places with it")

        def put(temporary: Path) -> None:
            temporary.write_bytes(text)

        write_atomically(path, put, mode=_PRIVATE)


def resolved(path: str | Path, *, new: bool = False) -> Path:
    """The one absolute path of a ledger, symbolic links followed, whichever way it was named; `new`: of one to be made.

    Raises: InputError where nothing is there, or no regular file; with `new`, where its folder is missing or its name
        is taken, if only by a link.
    """
    given = Path(path)
    try:
        target = Path(os.path.realpath(given.parent if new else given, strict=True))
        if new:
            target /= given.name
            require_unused(target)
        elif not target.is_file():
            raise InputError("is no regular file", field="budget", value=path, remedy="name the file of a ledger")
    except FileNotFoundError as error:
        raise (_no_folder(given.parent) if new else _no_ledger(given)) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be opened ({getattr(error, 'strerror', error)})",
            field="budget",
            value=ascii(str(path)),
            remedy="name the file of a ledger",
        ) from error
    return target


def require_unused(path: Path) -> None:
    """Raises: InputError where something stands at `path`."""
    try:
        path.lstat()
    except FileNotFoundError:
        return
    raise InputError("exists already", field="budget", value=path, remedy="name another file: a limit stays")


def read_ledger(path: Path) -> Ledger:
    """The ledger at a resolved `path`, read under its lock.

    Raises: InputError where there is none, or one with another name beside this; FileFormatError where it is cut
        short, altered, too large or contradicts itself.
    """
    content = _content(path)
    try:
        document = json.loads(content, object_pairs_hook=_distinct)
        digest = document.pop("sha256")
        if set(document) != _FIELDS or document["schema"] != SCHEMA or digest != _digest(document):
            raise ValueError("altered")
        unit, remembered = document["unit"], document["remembered"]
        if unit is not None and not _UNIT.fullmatch(unit):
            raise ValueError("unit")
        return Ledger(
            limit=_fraction(document["limit"]),
            spent=_fraction(document["spent"]),
            spends=_whole(document["spends"]),
            unit=unit,
            remembered={key: _whole(place) for key, place in remembered.items()},
        )
    except Exception as error:
        raise damaged(path, type(error).__name__) from error


def damaged(path: Path, why: str) -> FileFormatError:
    """The error for a ledger whose content cannot be."""
    return FileFormatError(
        f"the ledger is damaged ({why})",
        field="budget",
        value=path,
        remedy="treat the budget as spent: what was reported cannot be told from it",
    )


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep every other process and thread out of the ledger at a resolved `path`, waiting for them first.

    The lock file goes where there is no ledger in the end. Raises: InputError where it cannot be made.
    """
    lock = path.parent / f".{path.name}.lock"
    with locked(lock, field="budget", wait=True):
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file
                if not os.path.lexists(path) and lock.stat().st_size == 0:
                    lock.unlink()


def remove_left_over(path: Path) -> None:
    """Remove what writers of the ledger at `path` left when they were killed; to be called under its lock.

    Raises: FileFormatError where the operating system refuses. Cost: a look at every name in the folder.
    """
    part = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.part")  # as write_atomically names them
    try:
        for entry in os.scandir(path.parent):
            if part.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry).unlink()
    except OSError as error:
        raise FileFormatError(
            f"remembered reports that were left over cannot be removed ({error.strerror})",
            field="budget",
            value=path,
            remedy=f"delete the files .{path.name}.*.part in its folder",
        ) from error


def _content(path: Path) -> bytes:
    """The bytes of the file, if it is a regular one of one name and no more than MOST_BYTES."""
    try:
        with os.fdopen(os.open(path, _OPENING), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError("is no regular file", field="budget", value=path, remedy="treat the budget as spent")
            if found.st_nlink != 1:
                raise InputError(
                    f"has {found.st_nlink} names (hard links), each of which could be spent",
                    field="budget",
                    value=path,
                    remedy="delete the others: a ledger has one",
                )
            content = file.read(MOST_BYTES + 1) if found.st_size <= MOST_BYTES else b""
    except FileNotFoundError as error:
        raise _no_ledger(path) from error
    except OSError as error:
        raise FileFormatError(
            f"cannot be read ({error.strerror})", field="budget", value=path, remedy="check what it is, and permissions"
        ) from error
    if found.st_size > MOST_BYTES or len(content) > MOST_BYTES:
        raise damaged(path, f"more than {MOST_BYTES} bytes")
    return content


def _no_ledger(path: Path) -> InputError:
    return InputError("no such ledger", field="budget", value=path, remedy="make one: Budget.create(path, limit=...)")


def _no_folder(path: Path) -> InputError:
    return InputError("no such folder", field="budget", value=path, remedy="create it first")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a name twice")
    return found


def _fraction(text: str) -> Fraction:
    if not _FRACTION.fullmatch(text) or str(value := Fraction(text)) != text:
        raise ValueError("no exact fraction")
    return value


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no whole number")
    return value


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
