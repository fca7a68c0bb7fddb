"""The claim about many reports of one person, by the mode of the memory that repeats them (sessions/rest.py)."""

from __future__ import annotations

from typing import Literal

Remember = Literal["cell", "visit", "none"]
STAY = 1.5  # a guess: a fix that jumps over the radius of a visit and back must not begin another


def memory_claim(remember: Remember, visit: float | None, unit: str, *, positions: bool) -> str:
    """The claim about many reports; `positions`: reports have a claim between positions."""
    bound = "P(z|x) <= e^(d_1 + ... + d_k) P(z|x') for all reports z, with d_i the distance of {} by the claim below"
    if remember == "none":
        secrets = "positions" if positions else "cells"
        return (
            f"Every report is drawn anew: for any two traces of k positions, {bound.format(f'their i-th {secrets}')}. "
            "The mean of many reports finds a place where somebody stays."
        )
    if remember == "cell":
        cells = f"{'centres of ' if positions else ''}their i-th new cells"
        return (
            "A cell has one report, which is repeated until the memory is deleted; after that all cells are new. "
            f"For two traces with the same pattern of cells, k of them new, {bound.format(cells)}. Two positions in "
            "one cell are not distinguished; two on both sides of a border are, as far as their cells. A new report "
            "reveals that a border was crossed, a repeated one that somebody stayed or returned."
        )
    assert visit is not None
    first = f"the {'' if positions else 'cells of the '}first positions of their i-th new places"
    return (
        f"A visit has one report. It is repeated within {visit:.12g} {unit} of the first position, and up to {STAY} "
        "times as far until the visit is left. Once the memory is deleted, all places are new. For two traces with "
        f"the same pattern of visits, k of them to new places, {bound.format(first)}. A new report reveals that a "
        "place was left, a repeated one that somebody stayed or returned."
    )
