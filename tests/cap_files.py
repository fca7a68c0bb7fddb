"""Edited limits of files and of exported tables, and whether a reader may believe them.

One table for all readers: the rules of posteriors/limits.py. Every edit is one of the limit of `capped.capped()`,
which is 3/5 of the people 1 to 16 in discs of 1.2 cells, and which its table keeps with no room: a limit that says more
than the genuine one is false.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

Limit = dict[str, Any]
Edit = Callable[[Limit], object]


def put(**values: Any) -> Edit:
    """The edit that gives names other values."""
    return lambda limit: limit.update(deepcopy(values))


def removed(name: str) -> Edit:
    return lambda limit: limit.pop(name)


def people(change: Callable[[list[int]], list[Any]]) -> Edit:
    """The edit of the counts of people, whether the limit has one row of them or a list of rows."""

    def edit(limit: Limit) -> None:
        rows = limit["people"]
        limit["people"] = [change(row) for row in rows] if isinstance(rows[0], list) else change(rows)

    return edit


BOTH: dict[str, tuple[Edit, bool]] = {  # of files, whose shares are words, and of exported tables alike
    "as it was made": (lambda limit: None, True),
    "without people": (removed("people"), False),
    "people are null": (put(people=None), False),
    "no row of people": (put(people=[]), False),
    "nobody": (people(lambda row: [0] * len(row)), False),
    "one person missing": (people(lambda row: row[:-1]), False),
    "one place too many": (people(lambda row: [*row, 1]), False),
    "a negative count": (people(lambda row: [-1, *row[1:]]), False),
    "half a person": (people(lambda row: [0.5, *row[1:]]), False),
    "a count that is true": (people(lambda row: [True, *row[1:]]), False),
    "a count in words": (people(lambda row: ["1", *row[1:]]), False),
    "2^32 persons": (people(lambda row: [2**32, *row[1:]]), False),
    "2^32 persons together": (people(lambda row: [2**31, 2**31, *row[2:]]), False),
    "all persons doubled": (people(lambda row: [2 * k for k in row]), True),
    "persons in another order": (people(lambda row: row[::-1]), False),
    "without radius": (removed("radius"), False),
    "radius 0": (put(radius=0.0), False),
    "radius below 0": (put(radius=-1.0), False),
    "radius in words": (put(radius="1.2"), False),
    "radius true": (put(radius=True), False),
    "radius null": (put(radius=None), False),
    "radius 1e200": (put(radius=1e200), False),
    "radius below a cell": (put(radius=0.3), True),
    "without centres": (removed("centres"), False),
    "centres nowhere": (put(centres="nowhere"), False),
    "centres null": (put(centres=None), False),
    "about places": (put(centres="places"), True),
    "another name": (put(note="checked by a lawyer"), False),
    "a factor beside the share": (put(factor=[5, 1]), False),
    "a factor beside the share, in words": (put(factor="5/1"), False),
    "without share": (removed("share"), False),
    "share null": (put(share=None), False),
    "share a number": (put(share=0.6), False),
}

FILES: dict[str, tuple[Edit, bool]] = BOTH | {
    "share lower": (put(share="1/2"), False),
    "share higher": (put(share="2/3"), True),
    "share 0": (put(share="0/1"), False),
    "share 1": (put(share="1/1"), False),
    "share above 1": (put(share="3/2"), False),
    "share of 0": (put(share="1/0"), False),
    "share 65535/65536": (put(share="65535/65536"), False),
    "share in percent": (put(share="60%"), False),
    "share with a sign": (put(share="+3/5"), False),
    "share in other digits": (put(share="٣/5"), False),
    "without wrong_by": (removed("wrong_by"), False),
    "wrong_by 1/2": (put(wrong_by="1/2"), False),
    "wrong_by 0": (put(wrong_by="0/1"), False),
    "wrong_by null": (put(wrong_by=None), False),
    "wrong_by a number": (put(wrong_by=1), False),
    "wrong_by 2, at the same share": (put(wrong_by="2/1"), False),
    "wrong_by 2, at the share that follows": (put(wrong_by="2/1", share="6/7"), True),
    "wrong_by 2, at the share of a ratio of 2": (put(wrong_by="2/1", share="3/4"), False),
    "people in one row": (lambda limit: limit.update(people=limit["people"][0]), False),
    "two rows, the same": (lambda limit: limit.update(people=limit["people"] * 2), True),
    "two rows, one of nobody": (lambda limit: limit["people"].append([0] * 16), False),
    "another kind": (put(constraint="posterior-limit"), False),
    "a lift by its share": (put(constraint="posterior-lift"), False),
}

TABLES: dict[str, tuple[Edit, bool]] = BOTH | {
    "share lower": (put(share=[1, 2]), False),
    "share higher": (put(share=[2, 3]), True),
    "share 0": (put(share=[0, 1]), False),
    "share 1": (put(share=[1, 1]), False),
    "share above 1": (put(share=[3, 2]), False),
    "share of 0": (put(share=[1, 0]), False),
    "both below 0": (put(share=[-3, -5]), False),
    "share 65535/65536": (put(share=[65535, 65536]), False),
    "share of one number": (put(share=[1]), False),
    "share in words": (put(share="3/5"), False),
    "wrong_by, which is of files": (put(wrong_by=[1, 1]), False),
    "a kind, which is of files": (put(constraint="posterior-cap"), False),
    "a low share and a factor": (put(share=[1, 1000], factor=[16, 1]), False),
}
