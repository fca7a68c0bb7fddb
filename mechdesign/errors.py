"""The errors of the package; the message of each is one sentence.

MechdesignError
├── InputError            exit code 2: an invalid argument, option or file; a ValueError too
│   ├── UnitError         a unit that is unknown, or not the expected one
│   ├── UnsuitableError   the mechanism or program does not support this problem
│   ├── FileFormatError   a file that is missing, truncated or in another format
│   ├── SizeError         a table or program that would not fit in memory
│   ├── BudgetError       a report that would cost more than the remaining budget
│   └── UnknownNameError  a name that this package does not have; an AttributeError too
├── DesignError           exit code 1: the design failed
│   ├── InfeasibleError   the program has no solution
│   └── SolverError       the solver returned no usable solution
├── VerificationError     exit code 1: a stored mechanism was refused
├── OutputError           exit code 1: standard output could not be written
└── InternalError         exit code 1: a defect of this package
"""

from __future__ import annotations

from typing import ClassVar

_LONGEST_MESSAGE, _LONGEST_VALUE = 2_000, 300  # characters: untrusted files may hold values of megabytes
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended


class MechdesignError(Exception):
    """An error in one sentence: `field` is the input, `value` its text, `remedy` the next step; each may be missing."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str, *, field: str | None = None, value: object = None, remedy: str | None = None
    ) -> None:
        message = self._shorten(message, _LONGEST_MESSAGE)
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = None if value is None else self._shorten(str(value), _LONGEST_VALUE)
        self.remedy = remedy

    def __str__(self) -> str:
        about = "" if self.field is None else f"{self.field}: "
        suffix = "" if self.value is None else f" (got {self.value})"
        advice = "" if self.remedy is None else f"; {self.remedy}"
        return f"{about}{self.message}{suffix}{advice}"

    @staticmethod
    def _shorten(text: str, limit: int) -> str:
        """The text, or the start and the end of a longer one, in `limit` characters."""
        if len(text) <= limit:
            return text
        end = limit // 4
        return f"{text[: limit - end - 3]}...{text[-end:]}"

    def as_dict(self) -> dict[str, str | None]:
        """The JSON form: kind, field, value, message; the remedy ends the message."""
        message = self.message if self.remedy is None else f"{self.message}; {self.remedy}"
        return {"kind": self.kind, "field": self.field, "value": self.value, "message": message}


class InputError(MechdesignError, ValueError):
    """An input outside its domain: a sign, a shape, a sum, a name."""

    kind = "input"
    exit_code = 2


class UnitError(InputError):
    """A unit that is unknown, or that differs from the expected one."""

    kind = "unit"


class UnsuitableError(InputError):
    """A valid design problem that this mechanism or program does not support."""


class FileFormatError(InputError):
    """A file that is missing, truncated or in another format."""

    kind = "file"


class SizeError(InputError):
    """A table or program that would not fit in memory, refused before it is allocated."""

    kind = "size"


class BudgetError(InputError):
    """A report that would cost more than the remaining budget; nothing was drawn or spent."""

    kind = "budget"


class UnknownNameError(InputError, AttributeError):
    """A name that a module of this package does not have."""


class DesignError(MechdesignError):
    """The program is valid, but no mechanism was found."""

    kind = "design"


class InfeasibleError(DesignError):
    """The program has no solution; the message says where and why."""

    kind = "infeasible"


class SolverError(DesignError):
    """The solver ended without a usable point."""

    kind = "solver"


class VerificationError(MechdesignError):
    """A stored mechanism is damaged, or does not satisfy its claim."""

    kind = "verification"


class OutputError(MechdesignError):
    """Standard output cannot be written; `closed` if its reader has ended, as `head` does."""

    kind = "output"

    def __init__(self, message: str, *, field: str, remedy: str | None = None, closed: bool) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.closed = closed


class InternalError(MechdesignError):
    """An unexpected exception: a defect of this package."""

    kind = "internal"
