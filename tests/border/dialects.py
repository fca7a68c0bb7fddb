"""One table written as the programs of many people write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import hypothesis.strategies as st


@dataclass(frozen=True)
class Dialect:
    """A way to write a table.

    quotes: around no field, words or all; blank: number of empty lines at the end; index: none, unnamed, or short (the
    header is one name short); first: the first number of the index.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    end: str = "\n"
    quotes: str = "none"
    blank: int = 0
    capitals: str = "lower"
    index: str = "none"
    first: int = 0
    trailing: bool = False

    def content(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
        """The bytes of a file. Numbers of `rows` have decimal points."""
        names = [getattr(name, self.capitals)() for name in head]
        lines = [self._line(names if self.index in ("none", "short") else ["", *names])]
        for number, row in enumerate(rows):
            fields = [word.replace(".", self.decimal) for word in row]
            lines.append(self._line(fields if self.index == "none" else [str(number + self.first), *fields]))
        lines += [self.separator * (len(head) - 1) if k % 2 else "" for k in range(self.blank)]
        return (self.end.join(lines) + self.end).encode(self.encoding)

    def _line(self, fields: Sequence[str]) -> str:
        quoted = [f'"{field}"' if self._is_quoted(field) else field for field in fields]
        return self.separator.join(quoted) + self.separator * self.trailing

    def _is_quoted(self, field: str) -> bool:
        words = not field.replace(".", "").replace(",", "").replace("-", "").isdigit()
        return self.quotes == "all" or (self.quotes == "words" and words) or self.separator in field


DIALECTS = st.builds(
    Dialect,
    separator=st.sampled_from(",;\t"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quotes=st.sampled_from(["none", "words", "all"]),
    blank=st.integers(0, 3),
    capitals=st.sampled_from(["lower", "upper", "title"]),
    index=st.sampled_from(["none", "unnamed", "short"]),
    first=st.integers(0, 1),
    trailing=st.booleans(),
)
