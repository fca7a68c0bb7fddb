"""The words that tables and sentences share: what a loss is the mean of, and in which unit."""

from __future__ import annotations

from mechdesign.setting.problems.problem import DesignProblem


def judged(problem: DesignProblem) -> str:
    """The loss of a problem with its unit."""
    unit = problem.loss.unit(problem.domain.unit)
    return f"{problem.loss.name} loss" + ("" if unit == "1" else f" in {unit}")


def amount(loss: float, unit: str) -> str:
    """A loss, three digits, with its unit where it has one."""
    return f"{loss:.3g}" if unit == "1" else f"{loss:.3g} {unit}"


def loss_sentence(loss: float, name: str, unit: str) -> str:
    """What an expected loss says of a report: of a loss of this name, and unit as the table has it."""
    if name == "zero-one":
        return f"A report is wrong with probability {loss:.3g}"
    if name == "squared":
        return f"A report is off by {loss:.3g} {'squared units' if unit == '1' else unit} on average"
    if name == "distance":
        return f"A report is off by {loss:.3g} {'units' if unit == '1' else unit} on average"
    return f"A report has a loss of {loss:.3g}{'' if unit == '1' else f' {unit}'} on average"
