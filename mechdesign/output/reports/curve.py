"""The text of `mechdesign compare --scales`: losses along scales, and the scales that baselines satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechdesign.base.formatting import Rounding, amount, format_cell, number, percent
from mechdesign.output.captions import readable_unit
from mechdesign.output.reports.comparison import heading_with_unit, lattice_words
from mechdesign.output.sentences import QUOTED_GAP, join_sentences
from mechdesign.output.sweep import COLUMNS, CurvePoint, columns, headings, printed_losses
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.problem.problem import DesignProblem


def curve_words(points: Sequence[CurvePoint], problem: DesignProblem) -> Iterator[Block]:
    """The losses of a sweep, with a star where a baseline breaks its claim, then the scales that baselines satisfy."""
    names = list(points[0].baselines)
    baselines = [name.replace("_", " ") for name in names]
    first, last, unit = points[0], points[-1], problem.loss_unit
    # 1e-6: a gap of 0 in doubles is within their rounding, so no smaller one is stated.
    gap = max(1e-6, *(point.gap for point in points))
    best = f"does better by more than {percent(gap, up=True)} of this loss"
    bound = f"At each scale, no mechanism that is private at that scale {best}." if gap <= QUOTED_GAP else None
    scales = f"From scale {number(first.scale)} to {number(last.scale)} of the metric"
    losses = f"{amount(first.loss, unit, up=True)} to {amount(last.loss, unit, up=True)}"
    yield join_sentences([f"{scales}, the smallest loss falls from {losses}.", bound])
    printed = [printed_losses(point) for point in points]
    # Figures are right-aligned: a blank stands where another row of the column has a star.
    starred = [any(text[-1] == "*" for text in column) for column in zip(*printed, strict=True)]
    padded = [
        [text + " " if star and text[-1] != "*" else text for text, star in zip(line, starred, strict=True)]
        for line in printed
    ]
    words = lattice_words(problem)
    known = columns(points[0])
    heads = [heading_with_unit(column, problem).replace("position", words.truth) for column in known]
    yield TextTable([*heads, *headings(points[0])[len(known) :]], padded)
    yield "The smallest scale of the metric at which each mechanism is private:"
    lines = []
    for point in points:
        effective = [point.baselines[name].effective_scale for name in names]
        upwards = [format_cell(scale, rounding=Rounding.UP, digits=5) for scale in effective]
        lines.append([format_cell(point.scale, digits=4), *upwards])
    yield TextTable(["scale", *baselines], lines)
    yield f"{problem.name}: {problem.domain.size} secrets, {problem.loss.name} loss."
    legend = {
        "scale": "factor of the metric: a larger scale is less private",
        "lower bound": "no mechanism that is private at that scale has a smaller loss",
        "gap": "(loss - lower bound) / loss",
    }
    if len(known) == len(COLUMNS):
        legend[f"{words.truth} loss"] = f"to the true {words.truth}, uniform in its {words.one}"
    if baselines:
        unit = readable_unit(unit)
        legend["mechanisms"] = f"their losses{f' ({unit})' if unit else ''}"
    if any(starred):
        legend["*"] = "not private at that scale: the loss belongs to the scale in the second table"
    yield legend
