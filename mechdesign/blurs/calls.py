"""Blurring code as a function of positions and seeds: a function of Python, or a command that reads lines of JSON.

A call takes positions (n, 2) in degrees and seeds (n,), and returns reports (n, 3): latitude, longitude, and the
accuracy in m, NaN for a report without an accuracy. A position without a report has NaN everywhere.
"""

from __future__ import annotations

import inspect
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mechdesign.base.arrays import Floats, Indices, Points, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.errors import InputError

Call: TypeAlias = Callable[[Points, Indices], Floats]
SEEDS = 1 << 32  # NumPy's older generators take no larger ones
_AXES = 6_378_137.0, 6.69437999014e-3  # WGS 84: semi-major axis in m, and the square of the eccentricity


@dataclass(frozen=True, kw_only=True)
class Command(FrozenRecord):
    """A program that blurs positions: one line of JSON in and one out for each, until its input ends.

    In: {"latitude": 41.9, "longitude": 12.5, "seed": 7}. Out: {"latitude": ..., "longitude": ...}, with "accuracy" in m
    or without, or null for no report. A program that draws from the seed alone can be audited by coupled runs.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments. No shell reads them.
    timeout : float
        Seconds that one run may take.

    Examples
    --------
    >>> md.blurs.Command(words=["node", "blur.mjs"]).words
    ('node', 'blur.mjs')
    """

    words: Sequence[str]
    timeout: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if not self.words:
            raise InputError("must name a program", field="command", value="")

    def __call__(self, positions: Points, seeds: Indices) -> Floats:
        asked = zip(positions.tolist(), seeds.tolist(), strict=True)
        lines = "".join(json.dumps({"latitude": x, "longitude": y, "seed": seed}) + "\n" for (x, y), seed in asked)
        try:
            # The user names the program, as in a shell.
            ended = subprocess.run(  # noqa: S603
                self.words, input=lines, capture_output=True, text=True, timeout=self.timeout, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"cannot be run: {error}", field="command", value=self.words[0]) from error
        answers = ended.stdout.splitlines()
        if ended.returncode or len(answers) != len(positions):
            message = f"must print one line for each of {len(positions)} positions, and end with code 0"
            value = f"{len(answers)} lines, code {ended.returncode} {ended.stderr.strip()[-200:]}".strip()
            raise InputError(message, field="command", value=value)
        return np.array([_report(line, "command") for line in answers])


def call_of(blur: Callable[..., Any] | Command) -> Call:
    """The calls of a function f(latitude, longitude, rng) or f(latitude, longitude), or of a command."""
    if isinstance(blur, Command):
        return blur
    try:
        parameters = inspect.signature(blur).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()  # of a class or of C: two arguments
    required = [each for each in parameters if each.default is each.empty and each.kind <= each.POSITIONAL_OR_KEYWORD]
    by_name = any(each.name == "rng" for each in parameters) and len(required) < 3

    def call(positions: Points, seeds: Indices) -> Floats:
        reports = []
        with _global_generators():
            for (latitude, longitude), seed in zip(positions.tolist(), seeds.tolist(), strict=True):
                if by_name:
                    report = blur(latitude, longitude, rng=np.random.default_rng(seed))
                elif len(required) == 3:
                    report = blur(latitude, longitude, np.random.default_rng(seed))
                else:
                    random.seed(seed)
                    np.random.seed(seed)  # noqa: NPY002 - the generator of functions that do not take one
                    report = blur(latitude, longitude)
                reports.append(_report(report, "function"))
        return np.array(reports)

    return call


@contextmanager
def _global_generators() -> Iterator[None]:
    """Keep the states of the global generators, which calls seed."""
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002


def _report(given: Any, field: str) -> tuple[float, float, float]:
    """The report of a function, or of the line of a command."""
    message = "must return latitude and longitude, with an accuracy in m or without, or None"
    try:
        if field == "command":
            message = "is not a report in JSON"
            answer = json.loads(given)
            given = answer and (answer["latitude"], answer["longitude"], answer.get("accuracy"))
        if given is None:
            return np.nan, np.nan, np.nan
        latitude, longitude, accuracy = (*map(float, given[:2]), *(x for x in given[2:3] if x is not None), np.nan)[:3]
        accuracy = float(accuracy)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InputError(message, field=field, value=str(given)[:80]) from error
    if not (abs(latitude) <= 90 and abs(longitude) <= 540):
        raise InputError("returned a report outside the Earth", field=field, value=given)
    return latitude, longitude, accuracy


def metres_per_degree(latitude: Vector | float) -> tuple[Any, Any]:
    """Metres in a degree of latitude and of longitude on the ellipsoid of WGS 84."""
    axis, square = _AXES
    angle = np.radians(latitude)
    short = 1 - square * np.sin(angle) ** 2
    return (
        np.radians(axis * (1 - square) / short**1.5),
        np.radians(axis * np.cos(angle) / np.sqrt(short)),
    )


def shift(positions: Points, metres: Points) -> Points:
    """Positions (n, 2) in degrees after steps (n, 2) in m to the north and to the east."""
    north, east = metres_per_degree(positions[:, 0])
    return positions + metres / np.column_stack([north, east])


def displacements(positions: Points, reports: Floats) -> Points:
    """Steps (n, 2) in m from positions to their reports, to the north and to the east."""
    north, east = metres_per_degree(positions[:, 0])
    around = (reports[:, 1] - positions[:, 1] + 180) % 360 - 180
    return np.column_stack([(reports[:, 0] - positions[:, 0]) * north, around * east])
