"""What `mechdesign compare` prints of a comparison: who is best, the table, and what each figure is relative to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechdesign.base.formatting import amount, length, number
from mechdesign.base.units import unit_word
from mechdesign.output.captions import loss_with_unit
from mechdesign.output.compare import POSITIONS, ComparisonRow, columns, printed
from mechdesign.output.sentences import QUOTED_GAP, joined
from mechdesign.output.text_tables import Block, Note, TextTable
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import CELLS, INTERVALS, Words, words_of

_GROUPS = ((0, 1, 2), (3, 4), (5, 6, 7), (8, 9), (10, 11))  # of columns, that stand side by side
_TIED = 1e-6  # relative: losses that a reader of a few digits cannot distinguish


def comparison_words(rows: Sequence[ComparisonRow], problem: DesignProblem) -> Iterator[Block]:
    """The comparison; a column without any figure is left out."""
    if rows:
        yield _sentence(rows, problem)
        known = columns(rows)
        shown = [k for k, column in enumerate(known) if any(column.value(row) is not None for row in rows)]
        lines = [(row.mechanism, printed(row, known)) for row in rows]
        yield TextTable(
            ["mechanism", *(known[k].heading for k in shown)],
            [[name, *(figures[k] for k in shown)] for name, figures in lines],
            groups=[[1 + shown.index(k) for k in group if k in shown] for group in _GROUPS],
        )
    yield _caption(problem)
    least = next((row.epsilon_lower_bound for row in rows if row.epsilon_lower_bound is not None), None)
    if least is not None:
        unit, level = problem.domain.unit, number(least, up=False, digits=6)
        away = length(problem.matched_distance or 0.0, unit)
        yield Note(
            f"no mechanism that is private below {level} nats per {unit_word(unit)} has an expected "
            f"distance of {away} or less"
        )


def _sentence(rows: Sequence[ComparisonRow], problem: DesignProblem) -> str:
    """Who is best, the bound, and whose claim is broken."""
    unit = problem.loss.unit(problem.domain.unit)
    private = [row for row in rows if row.is_private_between_cells]
    anywhere = [row for row in rows if row.claim_over == POSITIONS]
    broken = [row.mechanism for row in rows if row not in private and row not in anywhere]
    sentences = []
    levels = [(row.effective_epsilon, row.mechanism) for row in rows if row.effective_epsilon is not None]
    if problem.matched_distance is not None and levels:
        epsilon, name = min(levels)
        away = length(problem.matched_distance, problem.domain.unit)
        sentences.append(
            f"At an expected distance of {away}, {name} has the smallest effective epsilon, "
            f"{number(epsilon, up=True)} nats per {unit_word(problem.domain.unit)}."
        )
    elif private:
        least = min(row.loss for row in private)
        best = next(row for row in private if row.loss <= least + _TIED * abs(least))
        loss = amount(best.loss, unit, up=True)
        if best.position_loss is not None:
            words, at_true = lattice_words(problem), amount(best.position_loss, unit, up=True)
            loss = f"{at_true} at true {words.truths} ({loss} between {words.centres})"
        sentences.append(f"Of those that are private as claimed, {best.mechanism} has the least loss, {loss}.")
        between = "" if best.position_loss is None else " between centres"
        if best.lower_bound and best.gap is not None and best.lower_bound > 0 and best.gap <= QUOTED_GAP:
            bound = amount(best.lower_bound, unit, up=False)
            sentences.append(f"No mechanism with this claim has less than {bound}{between}.")
    losses = [(row.position_loss, row.mechanism) for row in anywhere if row.position_loss is not None]
    if losses:
        least, name = min(losses)
        off = amount(least, unit, up=True)
        sentences.append(
            f"Of those that protect any two positions, {name} has the least loss to the true position, {off}."
        )
    if broken:
        sentences.append(f"Not private as claimed: {', '.join(broken)}.")
    return joined(sentences)


def lattice_words(problem: DesignProblem) -> Words:
    """The nouns beside a loss at true positions, or values: only cells and intervals have one."""
    return INTERVALS if words_of(problem.domain) is INTERVALS else CELLS


def _caption(problem: DesignProblem) -> str:
    unit, within = problem.domain.unit, problem.loss.within_cell(problem.domain)
    snapping, over = "", "at its scale"
    if within is not None:
        one = words_of(problem.domain).one
        snapping = f" Moving a user to the centre of the {one} costs {number(within, up=True)} on top of every loss."
    if problem.metric.kind == "euclidean":
        over = "over the Euclidean distance of any two secrets"
    return (
        f"{problem.name}: {problem.domain.size} secrets, {loss_with_unit(problem)}, distance in "
        f"{'units' if unit == '1' else unit}.{snapping} "
        "lower bound: no mechanism with this claim does better; gap = (loss - lower bound) / loss. claimed eps: nats "
        f"per {unit_word(unit)} (randomized response: nats). effective eps: what the mechanism truly has, {over}. "
        "ratio: largest log-ratio over the claimed distance; above 1 the claim is broken. rank below the number of "
        "secrets: no number of reports tells their distribution; asymptotic MSE: reports times the mean squared error "
        f"of its estimate, in {'squared units' if unit == '1' else f'{unit}^2'}."
    )
