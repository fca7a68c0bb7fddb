"""What `mechdesign compare --scales` prints of a sweep: losses along scales, and those that baselines truly have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechdesign.base.formatting import Rounding, amount, format_cell, number, percent
from mechdesign.output.captions import loss_with_unit
from mechdesign.output.reports.comparison import lattice_words
from mechdesign.output.sentences import QUOTED_GAP
from mechdesign.output.sweep import CurvePoint, headings, printed_losses
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.problem.problem import DesignProblem


def curve_words(points: Sequence[CurvePoint], problem: DesignProblem) -> Iterator[Block]:
    """The losses along a sweep, a star where a baseline breaks its claim, then the scales that they truly have."""
    names = list(points[0].baselines)
    baselines = [name.replace("_", " ") for name in names]
    first, last, unit = points[0], points[-1], problem.loss.unit(problem.domain.unit)
    gap = max(1e-6, *(point.gap for point in points))
    known = f"; no mechanism does better by more than {percent(gap, up=True)}" if gap <= QUOTED_GAP else ""
    yield (
        f"From scale {number(first.scale)} to {number(last.scale)} of the metric the best loss falls from "
        f"{amount(first.loss, unit, up=True)} to {amount(last.loss, unit, up=True)}{known}."
    )
    losses = [printed_losses(point) for point in points]
    starred = [any(text[-1] == "*" for text in column) for column in zip(*losses, strict=True)]
    padded = [
        [text + " " if star and text[-1] != "*" else text for text, star in zip(line, starred, strict=True)]
        for line in losses
    ]
    words = lattice_words(problem)
    yield TextTable([head.replace("position", words.truth) for head in headings(points[0])], padded)
    yield "The scale of the metric that each baseline truly has:"
    lines = []
    for point in points:
        scales = [point.baselines[name].effective_scale for name in names]
        upwards = [format_cell(scale, rounding=Rounding.UP, digits=5) for scale in scales]
        lines.append([format_cell(point.scale, digits=4), *upwards])
    yield TextTable(["scale", *baselines], lines)
    placed = ""
    if "position loss" in headings(points[0]):
        true = words.truth
        placed = f" {true} loss: of the same mechanism, to the true {true}, uniform in its {words.one}."
    yield (
        f"{problem.name}: {problem.domain.size} secrets, {loss_with_unit(problem)}. loss and lower bound enclose the "
        f"optimum at a scale of the problem's metric.{placed} A star: the mechanism is not private at that scale, its "
        "loss belongs to the scale that it truly has."
    )
