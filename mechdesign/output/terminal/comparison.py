"""What `mechdesign compare` says: who is best, the table, and what each figure is relative to."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.base.units import unit_word
from mechdesign.output.figures import amount, length, number
from mechdesign.output.tables.compare import POSITIONS, Row, columns, printed, private_between_cells
from mechdesign.output.terminal.printing import note, print_table, say
from mechdesign.output.terminal.words import judged
from mechdesign.setting.problems.problem import DesignProblem

_GROUPS = ((0, 1, 2), (3, 4), (5, 6, 7), (8, 9), (10, 11))  # of columns, that stand side by side
_TIED = 1e-6  # relative: losses that a reader of a few digits cannot tell apart


def print_rows(rows: Sequence[Row], problem: DesignProblem) -> None:
    """The comparison; a column without any figure is left out."""
    if rows:
        say(_sentence(rows, problem))
        print()
        known = columns(rows)
        shown = [k for k, (_, key, _) in enumerate(known) if any(row[key] is not None for row in rows)]  # type: ignore[literal-required]
        lines = [(row["mechanism"], printed(row, known)) for row in rows]
        print_table(
            ["mechanism", *(known[k][0] for k in shown)],
            [[name, *(figures[k] for k in shown)] for name, figures in lines],
            groups=[[1 + shown.index(k) for k in group if k in shown] for group in _GROUPS],
        )
    say(_caption(problem))
    least = next((row["least_epsilon"] for row in rows if row["least_epsilon"] is not None), None)
    if least is not None:
        unit, level = problem.domain.unit, number(least, up=False, digits=6)
        away = length(problem.matched_distance or 0.0, unit)
        note(
            f"least eps: no mechanism that is private below {level} nats per {unit_word(unit)} has an expected "
            f"distance of {away} or less"
        )


def _sentence(rows: Sequence[Row], problem: DesignProblem) -> str:
    unit = problem.loss.unit(problem.domain.unit)
    private = [row for row in rows if private_between_cells(row)]
    anywhere = [row for row in rows if row["claim_over"] == POSITIONS]
    broken = [row["mechanism"] for row in rows if row not in private and row not in anywhere]
    said = []
    levels = [(row["smallest_epsilon"], row["mechanism"]) for row in rows if row["smallest_epsilon"] is not None]
    if problem.matched_distance is not None and levels:
        epsilon, name = min(levels)
        away = length(problem.matched_distance, problem.domain.unit)
        said.append(
            f"At an expected distance of {away}, {name} has the smallest epsilon, {number(epsilon, up=True)} nats per "
            f"{unit_word(problem.domain.unit)}."
        )
    elif private:
        least = min(row["loss"] for row in private)
        best = next(row for row in private if row["loss"] <= least + _TIED * abs(least))
        loss = amount(best["loss"], unit, up=True)
        if best["position_loss"] is not None:
            loss = f"{amount(best['position_loss'], unit, up=True)} at true positions ({loss} between centres of cells)"
        said.append(f"Of those that are private as claimed, {best['mechanism']} has the least loss, {loss}.")
        between = "" if best["position_loss"] is None else " between centres"
        if best["lower_bound"] is not None and best["lower_bound"] > 0:
            said.append(
                f"No mechanism with this claim has less than {amount(best['lower_bound'], unit, up=False)}{between}."
            )
    losses = [(row["position_loss"], row["mechanism"]) for row in anywhere if row["position_loss"] is not None]
    if losses:
        least, name = min(losses)
        off = amount(least, unit, up=True)
        said.append(f"Of those that protect any two positions, {name} has the least loss to the true position, {off}.")
    if broken:
        said.append(f"Not private as claimed: {', '.join(broken)}.")
    return " ".join(said)


def _caption(problem: DesignProblem) -> str:
    unit = problem.domain.unit
    length = "units" if unit == "1" else unit
    within = problem.loss.within_cell(problem.domain)
    snapping = (
        ""
        if within is None
        else f" Moving a user to the centre of the cell costs {number(within, up=True)} on top of every loss."
    )
    smallest = (
        "over the Euclidean distance of any two secrets" if problem.metric.kind == "euclidean" else "at its scale"
    )
    return (
        f"{problem.name}: {problem.domain.size} secrets, {judged(problem)}, distance in {length}.{snapping} "
        "lower bound: no mechanism with this claim does better; gap = (loss - lower bound) / loss. claimed eps: nats "
        f"per {unit_word(unit)} (randomized response: nats). smallest eps: what the mechanism truly has, {smallest}. "
        "ratio: largest log-ratio over the claimed distance; above 1 the claim is broken. rank below the number of "
        "secrets: no number of reports tells their distribution; asymptotic MSE: reports times the mean squared error "
        f"of its estimate, in {'squared units' if unit == '1' else f'{unit}^2'}."
    )
