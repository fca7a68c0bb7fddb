"""PrivateLedger: costs and releases in a JSON document that one process at a time changes, permissions 0600."""

from __future__ import annotations

import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from mechdesign.base.atomic_write import write_atomically
from mechdesign.base.json_fields import json_sha256, read_json
from mechdesign.base.lock import hold_lock
from mechdesign.errors import FileFormatError, InputError

MOST_BYTES = 1 << 24  # of a file, so that an untrusted one does not fill the memory
DIGITS = 1000  # of a numerator or denominator; sums of doubles up to a double have 633 at most
_PRIVATE = 0o600  # readable by the owner alone: a budget contains secrets
_FRACTION = re.compile(rf"[0-9]{{1,{DIGITS}}}(/[0-9]{{1,{DIGITS}}})?")
# Without following a link that was put in place since, and without waiting for the writer of a pipe.
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_SPENT = "treat the budget as spent"


class Content(ABC):
    """The content of a ledger: schema of its files, argument and noun in errors, `make`, the call that creates one."""

    schema: ClassVar[str]
    argument: ClassVar[str]
    noun: ClassVar[str]
    make: ClassVar[str]

    @property
    @abstractmethod
    def count(self) -> int:
        """An integer that increases with every payment or release."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The content in JSON types."""

    @classmethod
    @abstractmethod
    def of(cls, *names: Any, **document: Any) -> Self:
        """The content of an untrusted document. Raises any error for an invalid one."""


C = TypeVar("C", bound=Content)


# The sha256 detects damage, not tampering. Counts never fall: a process refuses a file older than one it has seen.
class PrivateLedger(Generic[C]):
    """The ledger at `path`, made absolute, symbolic links followed once; with `new`, a new file is made."""

    # Temporary files of a writer that was killed are removed.

    def __init__(self, path: str | Path, kind: type[C], new: C | None = None) -> None:
        self.kind, self.path, self._count = kind, Path(path), -1
        try:
            if new is None:
                # Followed once, here: a name that is pointed elsewhere later must not change which budget is spent.
                self.path = Path(os.path.realpath(self.path, strict=True))
                regular, taken = self.path.is_file(), False
            else:
                self.path = Path(os.path.realpath(self.path.parent, strict=True)) / self.path.name
                regular, taken = True, _exists(self.path)
        except FileNotFoundError as error:
            raise (self._missing_error() if new is None else self._input_error("has no parent folder")) from error
        except (OSError, ValueError) as error:
            problem = f"cannot be opened ({getattr(error, 'strerror', error)})"
            raise InputError(problem, field=kind.argument, value=ascii(str(path))) from error
        if not regular:
            raise self._input_error("is not a regular file")
        if taken:
            raise self._exists_error()
        with self.hold_lock():
            if new is None:
                self._remove_left_over()
                self.read()
            # Again under the lock: another process may have made the file since.
            elif _exists(self.path):
                raise self._exists_error()
            else:
                self.write(new)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Lock the file against every other process and thread; the lock file is next to the target of all links."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with hold_lock(lock, field=self.kind.argument, wait=True):
            try:
                yield
            finally:
                with suppress(OSError):  # Windows removes no open file
                    # A ledger that was not created leaves no lock file.
                    if not os.path.lexists(self.path) and lock.stat().st_size == 0:
                        lock.unlink()

    def current(self) -> C:
        with self.hold_lock():
            return self.read()

    def read(self) -> C:
        """The content, while the file is locked; refuses a file that counts less than this process has seen."""
        text = self._bytes()
        try:
            document = read_json(text)
            sha256 = document.pop("sha256")
            # The document is untrusted: any failure to read it, of whatever type, is damage.
            if sha256 != json_sha256(document) or document.pop("schema") != self.kind.schema:
                raise ValueError("altered")
            content = self.kind.of(**document)
        except Exception as error:
            raise self.damage_error(getattr(error, "message", type(error).__name__)) from error
        # A restored copy would give back spent budget. Only a process that has seen more can notice.
        if content.count < self._count:
            raise self.older_error()
        self._count = content.count
        return content

    def write(self, content: C) -> None:
        """Replace the file atomically, while it is locked; the old file stays if the disk refuses."""
        document = {"schema": self.kind.schema, **content.document()}
        text = json.dumps({**document, "sha256": json_sha256(document)}, indent=1, sort_keys=True).encode()
        if len(text) > MOST_BYTES:
            raise self._input_error(f"the {self.kind.noun} is full", "create another with the remaining amount")

        def put(temporary: Path) -> None:
            temporary.write_bytes(text)

        write_atomically(self.path, put, mode=_PRIVATE)
        self._count = content.count

    def damage_error(self, why: str) -> FileFormatError:
        return self._format_error(f"the {self.kind.noun} is damaged ({why})", f"the record is lost: {_SPENT}")

    def _bytes(self) -> bytes:
        """The bytes of the file. Refuses links, special files and more than MOST_BYTES."""
        # All checks are on the open descriptor: the path may point elsewhere by the next call.
        try:
            with os.fdopen(os.open(self.path, _OPENING), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise self._input_error("is not a regular file", _SPENT)
                # Replacing the file parts its names: each would then be a budget of its own.
                if status.st_nlink != 1:
                    problem = f"has {status.st_nlink} names (hard links), each of which could be spent"
                    raise self._input_error(problem, f"delete the others: a {self.kind.noun} has one")
                # One byte more than allowed, in case that the file grows while it is read.
                content = file.read(MOST_BYTES + 1) if status.st_size <= MOST_BYTES else b""
        except FileNotFoundError as error:
            raise (self._missing_error() if self._count < 0 else self.older_error()) from error
        except OSError as error:
            raise self._format_error(f"cannot be read ({error.strerror})") from error
        if max(status.st_size, len(content)) > MOST_BYTES:
            raise self.damage_error(f"more than {MOST_BYTES} bytes")
        return content

    def _remove_left_over(self) -> None:
        """Remove temporary files of killed writers. Cost: one look at every name in the folder."""
        part = re.compile(rf"\.{re.escape(self.path.name)}\.[a-z0-9_]{{8}}\.part")  # as write_atomically names them
        try:
            for entry in os.scandir(self.path.parent):
                if part.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    Path(entry).unlink()
        except OSError as error:
            problem = f"temporary files of a killed writer cannot be removed ({error.strerror})"
            raise self._format_error(problem, f"delete the files .{self.path.name}.*.part in its folder") from error

    def _input_error(self, problem: str, remedy: str | None = None) -> InputError:
        return InputError(problem, field=self.kind.argument, value=self.path, remedy=remedy)

    def _format_error(self, problem: str, remedy: str | None = None) -> FileFormatError:
        return FileFormatError(problem, field=self.kind.argument, value=self.path, remedy=remedy)

    def _exists_error(self) -> InputError:
        return self._input_error("exists already", "name another file: a limit is permanent")

    def _missing_error(self) -> InputError:
        return self._input_error(f"no such {self.kind.noun}", f"make one: {self.kind.make}")

    def older_error(self) -> FileFormatError:
        return self._format_error(f"the {self.kind.noun} was deleted, or put back in an older state", _SPENT)


def _exists(path: Path) -> bool:
    """True if the name is taken, even by a dangling link."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def fraction(text: object) -> Fraction:
    """Parse an exact fraction >= 0. Raises ValueError for any other text."""
    # Only the canonical text passes, so that equal contents have equal checksums.
    if not isinstance(text, str) or not _FRACTION.fullmatch(text) or str(value := Fraction(text)) != text:
        raise ValueError("not an exact fraction")
    return value


def whole_number(value: object) -> int:
    """Check an integer >= 0, or raise ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError("not an integer")
    return value
