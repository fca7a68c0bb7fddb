"""What `mechdesign sweep` says: the losses along the scales, and the scales that the baselines truly have."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.output.figures import amount, cell, number, percent
from mechdesign.output.tables.sweep import Row, baselines_of, columns, printed_losses
from mechdesign.output.terminal.printing import print_table, say
from mechdesign.output.terminal.words import judged
from mechdesign.setting.problems.problem import DesignProblem

_POSITION = " position loss: of the same mechanism, to the true position, uniform in its cell."


def print_sweep(rows: Sequence[Row], problem: DesignProblem) -> None:
    """The losses along a sweep, a star where a baseline breaks its claim, then the scales that they truly have."""
    names = list(baselines_of(rows[0]))
    words = [name.replace("_", " ") for name in names]
    first, last, unit = rows[0], rows[-1], problem.loss.unit(problem.domain.unit)
    say(
        f"From scale {number(first['scale'])} to {number(last['scale'])} of the metric the best loss falls from "
        f"{amount(first['loss'], unit, up=True)} to {amount(last['loss'], unit, up=True)}; no mechanism does better by "
        f"more than {percent(max(row['gap'] for row in rows), up=True)}."
    )
    print()
    losses = [printed_losses(row) for row in rows]
    own = [heading for heading, _, _ in columns(rows[0])]
    marked = [any(line[k].endswith("*") for line in losses) for k in range(len(own) + len(names))]
    padded = [
        [cell + " " if marked[k] and not cell.endswith("*") else cell for k, cell in enumerate(line)] for line in losses
    ]
    print_table([*own, *words], padded)
    say("The scale of the metric that each baseline truly has:")
    print()
    print_table(
        ["scale", *words],
        [
            [
                cell(row["scale"], "near 4"),
                *(cell(row[f"{name}_effective_epsilon"], "up 5") for name in names),
            ]
            for row in rows
        ],
    )
    say(
        f"{problem.name}: {problem.domain.size} secrets, {judged(problem)}. loss and lower bound enclose the optimum "
        f"at a scale of the problem's metric.{_POSITION if 'position loss' in own else ''} A star: the mechanism is "
        "not private at that scale, its loss belongs to the scale that it truly has."
    )
