"""What can go wrong, as a tree; every error names the field, the value and the remedy.

MechdesignError
├── InputError            exit code 2: what was asked cannot be taken
│   ├── UnitError         a unit that is unknown, or not the one asked for
│   ├── UnsuitableError   a problem of a kind that this mechanism or program is not for
│   ├── FileFormatError   a file that is missing, cut short or not of its format
│   ├── SizeError         a table or program that would not fit in memory
│   ├── BudgetError       a report that would cost more than is left
│   └── UnknownNameError  a name that this package does not have; an AttributeError too
├── DesignError           exit code 1: the design failed
│   ├── InfeasibleError   the program has no solution
│   └── SolverError       the solver gave nothing that can be used
├── VerificationError     exit code 1: a stored mechanism was refused
├── OutputError           exit code 1: what a command says could not be written
└── InternalError         exit code 1: a defect of this package
"""

from __future__ import annotations

from typing import ClassVar


class MechdesignError(Exception):
    """An error of this package.

    `message` says what is wrong, `field` which input it is about, `value` what was given (as text) and
    `remedy` what to do next. `kind` and `exit_code` belong to the class.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, field: str, value: object = None, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.value = None if value is None else str(value)
        self.remedy = remedy

    def __str__(self) -> str:
        shown = "" if self.value is None else f" (got {self.value})"
        return f"{self.field}: {self.message}{shown}; {self.remedy}"

    def as_dict(self) -> dict[str, str | None]:
        """The JSON form: kind, field, value, remedy, message."""
        return {
            "kind": self.kind,
            "field": self.field,
            "value": self.value,
            "remedy": self.remedy,
            "message": self.message,
        }


class InputError(MechdesignError):
    """An input outside its domain: a sign, a shape, a sum, a name."""

    kind = "input"
    exit_code = 2


class UnitError(InputError):
    """A unit that is unknown, or that differs from the one asked for."""

    kind = "unit"


class UnsuitableError(InputError):
    """A design problem that is sound, but of a kind that this mechanism or program is not for."""


class FileFormatError(InputError):
    """A file that is missing, cut short, or not of the format it should have."""

    kind = "file"


class SizeError(InputError):
    """A table or program that would not fit in memory, refused before it is allocated."""

    kind = "size"


class BudgetError(InputError):
    """A report that would cost more than is left of a declared budget; nothing was drawn or spent."""

    kind = "budget"


class UnknownNameError(InputError, AttributeError):
    """A name that a module of this package does not have."""


class DesignError(MechdesignError):
    """The program could be stated, but no mechanism came of it."""

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
    """Standard output cannot be written; `closed` where its reader went away, as `head` does."""

    kind = "output"

    def __init__(self, message: str, *, field: str, remedy: str, closed: bool) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.closed = closed


class InternalError(MechdesignError):
    """An exception that nothing foresaw: a defect of this package, whatever was asked."""

    kind = "internal"
