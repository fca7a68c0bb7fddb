"""Private files: JSON documents of one name that one process at a time changes, whole or not there, permissions 0600.

A file has one name: symbolic links are followed when it is opened, and a file with a second one (a hard link) is
refused, because writing would part the two. The lock is a file beside it, which stays with it. The sha256 over the
rest tells damage, not intent.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.base.descriptions import json_sha256, read_json
from mechdesign.errors import FileFormatError, InputError
from mechdesign.mechanism.budget.lock import locked
from mechdesign.mechanism.storage.files import write_atomically

MOST_BYTES = 1 << 24
DIGITS = 1000  # of a numerator or denominator; sums of doubles up to a double have 633 at most
_PRIVATE = 0o600
_FRACTION = re.compile(rf"[0-9]{{1,{DIGITS}}}(/[0-9]{{1,{DIGITS}}})?")
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, kw_only=True)
class PrivateFiles:
    """Files of one kind, and how errors speak of them: field, noun ("ledger"), make (how one is made), full (the remedy
    where it outgrows 16 MB), left (what may be left over of it).
    """

    field: str
    noun: str
    make: str
    full: str
    left: str

    def resolved(self, path: str | Path, *, new: bool = False) -> Path:
        """The one absolute path of a file, symbolic links followed, whichever way it was named; `new`: of one to be
        made.

        Raises: InputError where nothing is there, or no regular file; with `new`, where its folder is missing or its
            name is taken, if only by a link.
        """
        given = Path(path)
        try:
            target = Path(os.path.realpath(given.parent if new else given, strict=True))
            if new:
                target /= given.name
                self.require_unused(target)
            elif not target.is_file():
                remedy = f"name the file of a {self.noun}"
                raise InputError("is no regular file", field=self.field, value=path, remedy=remedy)
        except FileNotFoundError as error:
            raise (self._no_folder(given.parent) if new else self._none(given)) from error
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot be opened ({getattr(error, 'strerror', error)})",
                field=self.field,
                value=ascii(str(path)),
                remedy=f"name the file of a {self.noun}",
            ) from error
        return target

    def require_unused(self, path: Path) -> None:
        """Raises: InputError where something stands at `path`."""
        try:
            path.lstat()
        except FileNotFoundError:
            return
        raise InputError("exists already", field=self.field, value=path, remedy="name another file: a limit stays")

    @contextmanager
    def held(self, path: Path) -> Iterator[None]:
        """Keep every other process and thread out of the file at a resolved `path`, waiting for them first.

        The lock file goes where there is no file in the end. Raises: InputError where it cannot be made.
        """
        lock = path.parent / f".{path.name}.lock"
        with locked(lock, field=self.field, wait=True):
            try:
                yield
            finally:
                with suppress(OSError):  # Windows removes no open file
                    if not os.path.lexists(path) and lock.stat().st_size == 0:
                        lock.unlink()

    def remove_left_over(self, path: Path) -> None:
        """Remove what writers of the file at `path` left when they were killed; to be called under its lock.

        Raises: FileFormatError where the operating system refuses. Cost: a look at every name in the folder.
        """
        part = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.part")  # as write_atomically names them
        try:
            for entry in os.scandir(path.parent):
                if part.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    Path(entry).unlink()
        except OSError as error:
            raise FileFormatError(
                f"{self.left} that were left over cannot be removed ({error.strerror})",
                field=self.field,
                value=path,
                remedy=f"delete the files .{path.name}.*.part in its folder",
            ) from error

    def write(self, path: Path, document: Mapping[str, Any]) -> None:
        """Replace the file at once by a document, with its sha256.

        Raises: InputError where it would outgrow what `read` takes; FileFormatError where the disk refuses; the old
            file then stands.
        """
        text = json.dumps({**document, "sha256": json_sha256(document)}, indent=1, sort_keys=True).encode()
        if len(text) > MOST_BYTES:
            raise InputError(f"the {self.noun} is full", field=self.field, value=path, remedy=self.full)

        def put(temporary: Path) -> None:
            temporary.write_bytes(text)

        write_atomically(path, put, mode=_PRIVATE)

    def read(self, path: Path) -> dict[str, Any]:
        """The document of the file at a resolved `path`, read under its lock, without its sha256, which fits.

        Raises: InputError where there is none, or one with another name beside this; ValueError, KeyError and others
            where it is cut short or altered, which `damaged` is to be raised for.
        """
        document: dict[str, Any] = read_json(self._content(path))
        if document.pop("sha256") != json_sha256(document):
            raise ValueError("altered")
        return document

    def damaged(self, path: Path, why: str) -> FileFormatError:
        """The error for a file whose content cannot be."""
        return FileFormatError(
            f"the {self.noun} is damaged ({why})",
            field=self.field,
            value=path,
            remedy="treat the budget as spent: what was reported cannot be told from it",
        )

    def older(self, path: Path) -> FileFormatError:
        """The error for a file that says less than was seen of it."""
        return FileFormatError(
            f"the {self.noun} was deleted, or put back in an older state",
            field=self.field,
            value=path,
            remedy="treat the budget as spent",
        )

    def _content(self, path: Path) -> bytes:
        """The bytes of the file, if it is a regular one of one name and no more than MOST_BYTES."""
        try:
            with os.fdopen(os.open(path, _OPENING), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    remedy = "treat the budget as spent"
                    raise InputError("is no regular file", field=self.field, value=path, remedy=remedy)
                if found.st_nlink != 1:
                    raise InputError(
                        f"has {found.st_nlink} names (hard links), each of which could be spent",
                        field=self.field,
                        value=path,
                        remedy=f"delete the others: a {self.noun} has one",
                    )
                content = file.read(MOST_BYTES + 1) if found.st_size <= MOST_BYTES else b""
        except FileNotFoundError as error:
            raise self._none(path) from error
        except OSError as error:
            raise FileFormatError(
                f"cannot be read ({error.strerror})",
                field=self.field,
                value=path,
                remedy="check what it is, and permissions",
            ) from error
        if found.st_size > MOST_BYTES or len(content) > MOST_BYTES:
            raise self.damaged(path, f"more than {MOST_BYTES} bytes")
        return content

    def _none(self, path: Path) -> InputError:
        return InputError(f"no such {self.noun}", field=self.field, value=path, remedy=f"make one: {self.make}")

    def _no_folder(self, path: Path) -> InputError:
        return InputError("no such folder", field=self.field, value=path, remedy="create it first")


def fraction(text: object) -> Fraction:
    """The exact fraction >= 0 that a document says. Raises: ValueError for any other text."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text) or str(value := Fraction(text)) != text:
        raise ValueError("no exact fraction")
    return value


def whole_number(value: object) -> int:
    """A whole number >= 0. Raises: ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError("no whole number")
    return value
