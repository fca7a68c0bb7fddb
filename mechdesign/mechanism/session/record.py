"""Record: the file of a session: what was released and paid, and nothing that was not.

A JSON document: schema; design, the SHA-256 of the design, and the path of its file where it has one; limit, an exact
fraction, and window; ticks of a day; last, the last tick; steps, of each [tick, table, report, moved, against, begun,
charge]; calls, how many ticks were asked for; hidden, the offset of a test that runs, else null; sha256 over the rest.
At most 16 MB, some 200,000 steps.

No secret is in it but that offset: a reader of the file learns what an observer of the reports knows, and, while a
test runs, how far the test is shifted, which may tell whether somebody is near its place.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from mechdesign.errors import MechdesignError
from mechdesign.mechanism.budget.private_file import PrivateFiles, fraction, whole_number
from mechdesign.mechanism.session.transcript import Step, Transcript
from mechdesign.mechanism.session.windows import MOST_TICKS, Window

SCHEMA = "mechdesign/session/1"
MOST_TICK = 1 << 53  # ticks stay below this
SESSIONS = PrivateFiles(
    field="session",
    noun="session",
    make="Session.create(path, design=..., limit=..., window=...)",
    full="begin another session with what is left",
    left="steps",
)
_FIELDS = {"schema", "design", "path", "limit", "window", "ticks", "last", "steps", "calls", "hidden"}
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Record:
    """limit > 0 in multiples of the metric for every window; design, its SHA-256; path, of its file, or None."""

    design: str
    path: str | None
    limit: Fraction
    window: str | int
    transcript: Transcript
    calls: int = 0
    hidden: int | None = None

    def write(self, path: Path) -> None:
        """Replace the file at once. Raises: as `PrivateFiles.write`."""
        steps = [
            [step.tick, step.table, step.report, step.moved, step.against, step.begun, str(step.charge)]
            for step in self.transcript.steps
        ]
        SESSIONS.write(
            path,
            {
                "schema": SCHEMA,
                "design": self.design,
                "path": self.path,
                "limit": str(self.limit),
                "window": self.window,
                "ticks": self.transcript.ticks,
                "last": self.transcript.last,
                "steps": steps,
                "calls": self.calls,
                "hidden": self.hidden,
            },
        )


def read_record(path: Path) -> Record:
    """The session at a resolved `path`, read under its lock.

    Raises: InputError where there is none, or one with another name beside this; FileFormatError where it is cut
        short, altered, too large or contradicts itself.
    """
    try:
        document = SESSIONS.read(path)
        if set(document) != _FIELDS or document["schema"] != SCHEMA or not _DIGEST.fullmatch(document["design"]):
            raise ValueError("altered")
        limit, ticks, last = fraction(document["limit"]), whole_number(document["ticks"]), document["last"]
        if not 0 < limit <= sys.float_info.max or not 1 <= ticks <= MOST_TICKS:
            raise ValueError("limit or ticks")
        Window.of(document["window"], ticks)
        steps = tuple(_step(each) for each in document["steps"])
        order = [-1, *(step.tick for step in steps)]
        rising = all(left < right for left, right in pairwise(order))
        if type(last) is not int or not rising or not order[-1] <= last < MOST_TICK or len(steps) > document["calls"]:
            raise ValueError("ticks that do not rise")
        named = document["path"]
        if not (named is None or isinstance(named, str)):
            raise ValueError("path")
        return Record(
            design=document["design"],
            path=named,
            limit=limit,
            window=document["window"],
            transcript=Transcript(ticks=ticks, steps=steps, last=last),
            calls=whole_number(document["calls"]),
            hidden=None if document["hidden"] is None else whole_number(document["hidden"]),
        )
    except MechdesignError as error:
        if error.field == SESSIONS.field:
            raise
        raise SESSIONS.damaged(path, error.message) from error
    except Exception as error:
        raise SESSIONS.damaged(path, type(error).__name__) from error


def _step(told: Any) -> Step:
    """A step of a document, each part of its type, without a contradiction in itself."""
    tick, table, report, moved, against, begun, charge = told
    for part in (table, report, against):
        if part is not None:
            whole_number(part)
    tested = isinstance(moved, bool)
    consistent = (table is None) == (report is None) and (tested or moved is None) and tested == (against is not None)
    if (
        not consistent
        or type(begun) is not bool
        or (begun and not tested)
        or (moved is not False) != (table is not None)
    ):
        raise ValueError("a step that cannot be")
    return Step(
        tick=whole_number(tick),
        table=table,
        report=report,
        moved=moved,
        against=against,
        begun=begun,
        charge=fraction(charge),
    )
