"""The text of `mechdesign compare`: a sentence on the best mechanism, the table, and a legend of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechdesign.base.formatting import Column, amount, length, number
from mechdesign.base.units import unit_word
from mechdesign.output.captions import readable_unit
from mechdesign.output.compare import POSITIONS, PROGRAM, ComparisonRow, columns, figure_texts
from mechdesign.output.sentences import QUOTED_GAP, join_sentences
from mechdesign.output.text_tables import Block, Note, TextTable
from mechdesign.problem.metrics import Discrete
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import CELLS, INTERVALS, Words, words_of

_GROUPS = ((0, 1, 2), (3, 4), (5, 6, 7), (8, 9), (10, 11))  # columns that stay side by side in a narrow terminal
_TIED = 1e-6  # relative difference of losses below which the first mechanism counts as the best
_LEGEND = {
    "lower_bound": "no mechanism with this claim has a smaller loss",
    "gap": "(loss - lower bound) / loss",
    "remapped_loss": "the loss after every report is replaced by the best guess under the prior",
    "claimed_epsilon": "the parameter of the mechanism (randomized response: in nats)",
    "ratio": "the largest log-ratio over the claimed distance; above 1 the claim is broken",
    "rank": "below the number of secrets, no number of reports identifies their distribution",
    "asymptotic_mse": "the number of reports times the mean squared error of the estimated distribution",
}


def comparison_words(rows: Sequence[ComparisonRow], problem: DesignProblem) -> Iterator[Block]:
    """The blocks of a comparison, without columns that have no figure."""
    known = columns(rows)
    shown = [k for k, column in enumerate(known) if any(column.value(row) is not None for row in rows)]
    if rows:
        yield _sentence(rows, problem)
        lines = [(row.mechanism, figure_texts(row, known)) for row in rows]
        yield TextTable(
            ["mechanism", *(heading_with_unit(known[k], problem) for k in shown)],
            [[name, *(figures[k] for k in shown)] for name, figures in lines],
            groups=[[1 + shown.index(k) for k in group if k in shown] for group in _GROUPS],
        )
    yield caption(problem)
    legend = _legend(problem, [known[k] for k in shown])
    if any(row.lower_bound_of == PROGRAM for row in rows):
        legend["lower bound"] = f"{legend['lower bound']}; of a program with constraints: no mechanism that meets them"
    yield legend
    bound = next((row.epsilon_lower_bound for row in rows if row.epsilon_lower_bound is not None), None)
    if bound is not None:
        unit, level = problem.domain.unit, number(bound, up=False, digits=6)
        distance = length(problem.matched_distance or 0.0, unit)
        yield Note(
            f"no mechanism that is private below {level} nats per {unit_word(unit)} has an expected "
            f"distance of {distance} or less"
        )


def heading_with_unit(column: Column, problem: DesignProblem) -> str:
    """The heading of a column with the unit of its figures."""
    unit, loss = problem.domain.unit, readable_unit(problem.loss_unit)
    distance = "units" if unit == "1" else unit
    units = dict.fromkeys(("loss", "lower_bound", "remapped_loss", "position_loss"), loss)
    # Without distances, and for the discrete metric, an epsilon is that of any two secrets.
    nats = "nats" if problem.metric.kind == Discrete.kind or not problem.domain.has_distances else None
    units |= dict.fromkeys(("claimed_epsilon", "effective_epsilon"), nats or f"nats per {unit_word(unit)}")
    units |= {"expected_distance": distance, "asymptotic_mse": readable_unit(f"{distance}^2")}
    known = units.get(column.figure)
    return f"{column.heading} ({known})" if known else column.heading


def _sentence(rows: Sequence[ComparisonRow], problem: DesignProblem) -> str:
    """The best mechanism, the lower bound, and the mechanisms that break their claim."""
    unit = problem.loss_unit
    private = [row for row in rows if row.is_private_between_cells]
    anywhere = [row for row in rows if row.claim_over == POSITIONS]
    broken = [row.mechanism for row in rows if row not in private and row not in anywhere]
    sentences = []
    levels = [(row.effective_epsilon, row.mechanism) for row in rows if row.effective_epsilon is not None]
    if problem.matched_distance is not None and levels:
        epsilon, name = min(levels)
        distance = length(problem.matched_distance, problem.domain.unit)
        sentences.append(
            f"At an expected distance of {distance}, {name} has the smallest effective epsilon, "
            f"{number(epsilon, up=True)} nats per {unit_word(problem.domain.unit)}."
        )
    elif private:
        smallest = min(row.loss for row in private)
        best = next(row for row in private if row.loss <= smallest + _TIED * abs(smallest))
        loss = amount(best.loss, unit, up=True)
        if best.position_loss is not None:
            words, position_loss = lattice_words(problem), amount(best.position_loss, unit, up=True)
            loss = f"{position_loss} to true {words.truths} ({loss} between {words.centres})"
        sentences.append(
            f"Of the mechanisms that are private as claimed, {best.mechanism} has the smallest loss: {loss}."
        )
        between = "" if best.position_loss is None else " between centres"
        is_bounded = best.lower_bound_of != PROGRAM and best.gap is not None and best.gap <= QUOTED_GAP
        if is_bounded and best.lower_bound and best.lower_bound > 0:
            bound = amount(best.lower_bound, unit, up=False)
            sentences.append(f"No mechanism with this claim has a loss below {bound}{between}.")
    losses = [(row.position_loss, row.mechanism) for row in anywhere if row.position_loss is not None]
    if losses:
        smallest, name = min(losses)
        loss = amount(smallest, unit, up=True)
        subject = "Of the mechanisms that protect any two positions"
        sentences.append(f"{subject}, {name} has the smallest loss to the true position: {loss}.")
    if broken:
        sentences.append(f"Not private as claimed: {', '.join(broken)}.")
    return join_sentences(sentences)


def lattice_words(problem: DesignProblem) -> Words:
    """The nouns of a position loss: only cells and intervals have one."""
    return INTERVALS if words_of(problem.domain) is INTERVALS else CELLS


def caption(problem: DesignProblem) -> str:
    """The problem of a comparison, in a sentence or two."""
    words = f"{problem.name}: {problem.domain.size} secrets, {problem.loss.name} loss."
    within = problem.loss.within_cell(problem.domain)
    if within is None:
        return words
    centre = f"the centre of the {words_of(problem.domain).one}"
    added = amount(within, problem.loss_unit, up=True)
    return f"{words} Moving a user to {centre} adds {added} to every loss."


def _legend(problem: DesignProblem, shown: Sequence[Column]) -> dict[str, str | None]:
    # Over a Euclidean metric log-ratios per distance are compared over all pairs; elsewhere no single level exists.
    effective = "claimed eps times ratio"
    if problem.metric.kind == "euclidean":
        effective = "the largest log-ratio per unit of distance between any two secrets"
    legend = _LEGEND | {"effective_epsilon": effective}
    return {column.heading: legend.get(column.figure) for column in shown}
