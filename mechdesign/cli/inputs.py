"""Options about input files that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mechdesign.base.registry import Role
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from mechdesign.problem.domain import Domain

PEOPLE = ("latitude", "longitude", "x", "y", "population")  # columns of a file of people


class PeopleReader(Protocol):
    """Reads the number of people at places."""

    def __call__(
        self,
        path: Path,
        domain: Domain,
        *,
        columns: dict[str, str] | None,
        crs: str | None,
        on_note: Callable[[str], None],
    ) -> NDArray[np.float64]:
        """The number of people (n,) of a CSV file at the places of a domain."""
        ...


PEOPLE_READER: Role[PeopleReader] = Role("people")


@dataclass(frozen=True)
class InputOptions:
    """--columns OURS=THEIRS,..., --crs SYSTEM and --people FILE of a command."""

    columns: str | None = None
    crs: str | None = None
    people: Path | None = None

    def columns_of(self, *roles: str) -> dict[str, str] | None:
        """The columns of --columns by our names; allowed names: `roles`."""
        if self.columns is None:
            return None
        columns: dict[str, str] = {}
        for word in self.columns.split(","):
            ours, equals, theirs = (part.strip() for part in word.partition("="))
            if not equals or not theirs or ours.lower() not in roles or ours.lower() in columns:
                message = "must be OURS=THEIRS, each name once, among: " + ", ".join(dict.fromkeys(roles))
                raise InputError(message, field="columns", value=word)
            columns[ours.lower()] = theirs
        return columns

    def refuse_unused_system(self, *files: Path | str | None) -> None:
        """Raise InputError for --crs without an input file that it applies to."""
        if self.crs is not None and all(file is None for file in files):
            message = "no input file has coordinates"
            raise InputError(message, field="crs", value=self.crs, remedy="leave it out")

    def people_of(self, domain: Domain) -> NDArray[np.float64] | None:
        """The number of people (n,) of --people at the places of a domain; None without the option."""
        from mechdesign.output.text_tables import note

        if self.people is None:
            return None
        columns, reader = self.columns_of(*PEOPLE), PEOPLE_READER.get()
        return reader(self.people, domain, columns=columns, crs=self.crs, on_note=note)
