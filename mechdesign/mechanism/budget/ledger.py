"""Ledger: the file of a budget, whole or not there; one process at a time changes it, and only its owner reads it.

A JSON document: schema; limit and spent, exact fractions; spends, how many; unit, what is counted (admission.py), null
before the first report; remembered, the report of every mechanism and secret; sha256 over the rest. At most 16 MB,
some 170,000 remembered reports.

The remembered reports name the secrets: permissions are 0600. Names, links and the lock are those of private_file.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from mechdesign.errors import InputError, MechdesignError
from mechdesign.mechanism.budget.private_file import DIGITS, PrivateFiles, fraction, whole_number

SCHEMA = "mechdesign/budget/1"
LEDGERS = PrivateFiles(
    field="budget",
    noun="ledger",
    make="Budget.create(path, limit=...)",
    full="report no more places with it",
    left="remembered reports",
)
resolved, held, require_unused = LEDGERS.resolved, LEDGERS.held, LEDGERS.require_unused
remove_left_over, damaged, older = LEDGERS.remove_left_over, LEDGERS.damaged, LEDGERS.older
_FIELDS = {"schema", "limit", "spent", "spends", "unit", "remembered"}
_UNIT = re.compile(r"[0-9a-f]{64}")


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
        if max(parts) >= 10**DIGITS:
            raise InputError(
                "sum of too many digits", field="budget", value=path, remedy="pay in whole numbers or doubles"
            )
        LEDGERS.write(
            path,
            {
                "schema": SCHEMA,
                "limit": str(self.limit),
                "spent": str(self.spent),
                "spends": self.spends,
                "unit": self.unit,
                "remembered": dict(self.remembered),
            },
        )


def read_ledger(path: Path) -> Ledger:
    """The ledger at a resolved `path`, read under its lock.

    Raises: InputError where there is none, or one with another name beside this; FileFormatError where it is cut
        short, altered, too large or contradicts itself.
    """
    try:
        document = LEDGERS.read(path)
        if set(document) != _FIELDS or document["schema"] != SCHEMA:
            raise ValueError("altered")
        unit, remembered = document["unit"], document["remembered"]
        if unit is not None and not _UNIT.fullmatch(unit):
            raise ValueError("unit")
        return Ledger(
            limit=fraction(document["limit"]),
            spent=fraction(document["spent"]),
            spends=whole_number(document["spends"]),
            unit=unit,
            remembered={key: whole_number(place) for key, place in remembered.items()},
        )
    except MechdesignError:
        raise
    except Exception as error:
        raise damaged(path, type(error).__name__) from error
