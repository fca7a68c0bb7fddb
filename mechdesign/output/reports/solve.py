"""Summaries that `mechdesign solve` and `compare` print.

solve: `summarise` gives the figures of one mechanism, as JSON has them; `summary_words`, what people read of them.
compare: who is best, the table, and what each figure is relative to.
sweep: the losses along the scales, and the scales that the baselines truly have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import amount, cell, length, number, percent
from mechdesign.base.units import unit_word
from mechdesign.errors import DesignError, VerificationError
from mechdesign.evaluation.loss import constant_loss, position_loss
from mechdesign.evaluation.remap import remapped_loss
from mechdesign.mechanism.claim import MechanismFile, stored_domain
from mechdesign.mechanism.figures import relative_gap
from mechdesign.output.compare import POSITIONS, Row, columns, printed, private_between_cells
from mechdesign.output.sentences import (
    QUOTED_GAP,
    asked_gap,
    bound_sentence,
    error_sentence,
    is_far_above,
    joined,
    limit_sentences,
    protects,
    stopped_sentence,
)
from mechdesign.output.sweep import CurveRow, baselines_of, headings, printed_losses
from mechdesign.output.text_tables import Block, Note, Table, note, where_possible
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import LOSSES
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import CELLS, INTERVALS, Words, words_of
from mechdesign.programs.minimax import Minimax
from mechdesign.verification.verify import Verification, protected, verify

_WORDS = {
    "claimed_epsilon": "claimed eps",
    "effective_epsilon": "effective eps",
    "row_ratio": "ratio of rows",
}
_LAST = ("seconds", "peak_mb", "file", "fallback", "diagnosis", "published", "remark")  # of the figures
_ROWS = 5  # that are printed unless all are asked for
_FIRST = ("fallback", "published", "remark", "effective_epsilon", "gap", "position_loss", "loss", "file", "program")
_DOWN = ("lower_bound", "cell_lower_bound")  # figures that are rounded down
_UP = (
    *("loss", "objective", "remapped_loss", "within_cell_error", "position_loss"),
    *("effective_epsilon", "ratio", "row_ratio"),
)
_FORMS = {"seconds": ".1f", "peak_mb": ".0f"}
_SEEN, _LEAST = 5e-3, 1e-3  # probability from which a place is named, and from which it counts
_GROUPS = ((0, 1, 2), (3, 4), (5, 6, 7), (8, 9), (10, 11))  # of columns, that stand side by side
_UNPROVED = "what was made does not verify, and is not saved: report this problem"
_TIED = 1e-6  # relative: losses that a reader of a few digits cannot distinguish


def proved(mechanism: xr.Dataset) -> Verification:
    """The verification of a mechanism that was made here, before it is saved."""
    try:
        checked = verify(mechanism)
    except VerificationError as error:
        raise DesignError(_UNPROVED, field="mechanism", value=error) from error
    if not checked.certified:
        raise DesignError(_UNPROVED, field="mechanism", value="; ".join(checked.reasons))
    return checked


def summarise(mechanism: xr.Dataset, checked: Verification, *, seconds: float, file: Path | None) -> dict[str, Any]:
    """Losses in loss units; objective, where the program names one in objective_of; gap relative to it, else to the
    loss; remapped_gap, of a factored mechanism, relative to the remapped loss, which the lower bound bounds as well;
    within_cell_error, the mean loss of snapping to cell centres; position_loss, to the true position;
    cell_lower_bound, of that loss for mechanisms that are private between centres of cells alone; price, how far the
    objective is above it, relative; method, "columns" where weights of columns stand for the optimal program; peak_mb,
    the largest resident memory of this process in 10^6 bytes; fallback and diagnosis where the program had no solution;
    claimed_epsilon and effective_epsilon in nats per unit, where there is one level: the first
    as `compare` has it, the second what the mechanism truly has.
    """
    attrs = mechanism.attrs
    effective, claimed = checked.effective_epsilon, attrs.get("claimed_epsilon")
    if effective is None and claimed is not None and checked.ratio is not None:
        effective = float(claimed) * checked.ratio
    loss, bound = float(attrs["expected_loss"]), attrs.get("lower_bound")
    objective = attrs.get("objective")
    value = loss if objective is None else float(objective)
    parameters = json.loads(attrs["parameters"])
    factored = "mass" not in mechanism
    remapped = attrs.get("remapped_loss")
    if not factored:
        remapped = where_possible("the remapped loss", lambda: remapped_loss(mechanism), None)
    at_position = where_possible("the loss at true positions", lambda: position_loss(mechanism), None)
    return {
        "problem": attrs["problem"],
        "program": attrs["program"],
        "secrets": mechanism.sizes["secret"],
        "reports": mechanism.sizes["secret" if factored else "report"],
        **protected(checked.protection),
        "claim": checked.claim,
        "loss": loss,
        "objective": None if objective is None else value,
        "objective_of": attrs.get("objective_of"),
        "lower_bound": None if bound is None else float(bound),
        "gap": None
        if bound is None
        else relative_gap(value, float(bound), 0.0 if factored else constant_loss(mechanism)),
        "remapped_loss": remapped,
        "remapped_gap": relative_gap(float(remapped), float(bound), 0.0)
        if factored and remapped is not None and bound is not None
        else None,
        "within_cell_error": where_possible("the error within cells", lambda: within_cell_error(mechanism), None),
        "position_loss": at_position,
        "position_claim": checked.position_claim,
        "cell_lower_bound": parameters.get("cell_lower_bound"),
        "price": parameters.get("price"),
        "method": parameters.get("method"),
        "claimed_epsilon": None if claimed is None else float(claimed),
        "effective_epsilon": effective,
        "ratio": checked.ratio,
        "row_ratio": checked.row_ratio,
        "certified": checked.certified,
        "stopped": attrs.get("stopped"),
        "seconds": seconds,
        "peak_mb": peak_memory_mb(),
        "file": None if file is None else str(file),
        "fallback": parameters.get("remedy"),
        "diagnosis": parameters.get("diagnosis"),
    }


def summary_words(
    summary: Mapping[str, Any],
    mechanism: xr.Dataset,
    checked: Verification,
    *,
    verbose: bool = False,
    because: str | None = None,
    limit: float | None = None,
    more: str = "",
) -> Iterator[Block]:
    """The document of `summarise` in words: what is protected, how far off reports are, what the best would be, and
    `more` after it; then five figures, a line each; if `verbose` all, the claim, the rows of the table, what was used.

    because, why no more is protected, for the first line; limit, the seconds that the search had.
    """
    stored, at_position = MechanismFile.read(mechanism), summary["position_loss"]
    assert checked.protection is not None
    parts = [
        stopped_sentence(stored, summary["stopped"], summary["gap"], limit=limit),
        protects(checked.protection, because=because),
        limit_sentences(stored),
        error_sentence(stored, at_position=at_position),
        bound_sentence(stored, at_position=at_position, gap=summary["gap"]),
    ]
    if summary.get("method") == "columns":
        parts.append("Made of weights of certified columns: how much better the best is was not found.")
    parts.append("Proved in integers.")
    if summary.get("price") is not None:
        parts.append(_price(summary["price"], stored))
    if mechanism.attrs["program"] == Minimax.name and mechanism["multiplier"].values.any():
        parts.append(f"{worst_prior(mechanism)}.")
    yield joined([*parts, more])
    hidden = {"certified", "chosen", "protects", "within", "factor_within"}
    if not verbose:
        hidden |= {"claim", "position_claim", "row_ratio", "peak_mb", "objective_of"}
        hidden |= {"objective", "loss"} if stored.positions is not None else set()
    names = [name for name in summary if name not in _LAST] + [name for name in _LAST if name in summary]
    if not verbose:
        names = [name for name in _FIRST if summary.get(name) is not None][:_ROWS]
    between_centres = at_position is not None and stored.positions is None
    words = _WORDS | {"position_loss": f"loss at {words_of(stored.domain).truths}"}
    if between_centres:
        words |= {"loss": "loss between centres"}
    yield {
        words.get(name, name.replace("_", " ")): _figure(name, summary[name])
        for name in names
        if name not in hidden and summary[name] is not None
    }


def design_exit_code(summary: Mapping[str, Any], mechanism: xr.Dataset, *, remedy: str) -> int:
    """The exit code of a design, 1 where it ended far above the gap that was asked for or proved no bound, and neither
    its time limit nor Ctrl-C ended it. A line on stderr says so wherever a method ended short of the gap.
    """
    stored, gap, stopped = MechanismFile.read(mechanism), summary["gap"], summary["stopped"]
    asked = asked_gap(stored)
    if asked is None or stopped in ("time", "interrupt"):
        return 0
    far, short = is_far_above(stored, gap), stopped == "precision"
    unproved = not summary["lower_bound"] and summary["loss"] > 0 and (far or short)
    if far or short:
        reached = "no lower bound above 0 was proved" if unproved else f"the gap is {percent(gap or 0.0, up=True)}"
        kept = "" if summary["file"] is None else f" and kept in {summary['file']}"
        note(f"warning: {reached}, {percent(asked)} was asked for. The table is certified{kept}; {remedy}")
    return int(far or unproved)


def _figure(name: str, value: Any) -> str:
    """A figure of the list: losses and levels rounded up to six digits, bounds down, gaps and prices in percent."""
    if name in _FORMS:
        return format(value, _FORMS[name])
    if name in ("gap", "remapped_gap", "price"):
        return percent(value, up=True)
    if isinstance(value, float) and name.removeprefix("alternative_") in (*_UP, *_DOWN):
        return number(value, up=name not in _DOWN, digits=6)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_figure('', item)}" for key, item in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _price(price: float, stored: MechanismFile) -> str:
    """What privacy between positions costs beside privacy between centres, and a cell at which it costs 1 %."""
    if price <= 0:
        return f"Between any two positions instead of {words_of(stored.domain).centres}, that costs nothing."
    between = f"Between any two positions instead of {words_of(stored.domain).centres}"
    most = f"{between}, that costs at most {percent(price, up=True)}"
    cell = None if stored.positions is None else stored.positions.advised_cell(stored.problem_metric, price)
    unit = stored.domain.unit
    return f"{most}." if cell is None else f"{most}, and about 1 % with cells of {length(cell, unit, digits=3)}."


def worst_prior(mechanism: xr.Dataset) -> str:
    """A sentence on the prior under which no mechanism does better than the worst case of a minimax mechanism: its
    three likeliest places. It is made of the multipliers of the secrets' losses.
    """
    weight, domain = mechanism["multiplier"].values, stored_domain(mechanism)
    share = weight / weight.sum()
    places = [
        f"{share[u]:.0%} on {_place(domain, u)}" for u in np.argsort(-share, kind="stable")[:3] if share[u] >= _SEEN
    ]
    others = int((share >= _LEAST).sum()) - len(places)
    rest = f", and the rest on {others} more" if others > 0 else ""
    return f"The worst prior for it puts {', '.join(places)}{rest}"


def _place(domain: Domain, secret: int) -> str:
    if domain.kind == "nodes":
        return f"secret {secret}"
    words = ", ".join(f"{x:.4g}" for x in domain.points[secret])
    return (f"({words})" if domain.dimension > 1 else words) + ("" if domain.unit == "1" else f" {domain.unit}")


def within_cell_error(mechanism: xr.Dataset) -> float | None:
    """Mean loss of moving a uniform position in a cell to its centre: h^2 / 6 for squared loss on square cells."""
    loss = LOSSES.get(mechanism.attrs["loss"])
    domain = stored_domain(mechanism)
    return None if loss is None else loss.within_cell(domain)


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far, in 10^6 bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def comparison_words(rows: Sequence[Row], problem: DesignProblem) -> Iterator[Block]:
    """The comparison; a column without any figure is left out."""
    if rows:
        yield _sentence(rows, problem)
        known = columns(rows)
        shown = [k for k, (_, key, _) in enumerate(known) if any(row[key] is not None for row in rows)]
        lines = [(row["mechanism"], printed(row, known)) for row in rows]
        yield Table(
            ["mechanism", *(known[k][0] for k in shown)],
            [[name, *(figures[k] for k in shown)] for name, figures in lines],
            groups=[[1 + shown.index(k) for k in group if k in shown] for group in _GROUPS],
        )
    yield _caption(problem)
    least = next((row["epsilon_lower_bound"] for row in rows if row["epsilon_lower_bound"] is not None), None)
    if least is not None:
        unit, level = problem.domain.unit, number(least, up=False, digits=6)
        away = length(problem.matched_distance or 0.0, unit)
        yield Note(
            f"no mechanism that is private below {level} nats per {unit_word(unit)} has an expected "
            f"distance of {away} or less"
        )


def _sentence(rows: Sequence[Row], problem: DesignProblem) -> str:
    """Who is best, the bound, and whose claim is broken."""
    unit = problem.loss.unit(problem.domain.unit)
    private = [row for row in rows if private_between_cells(row)]
    anywhere = [row for row in rows if row["claim_over"] == POSITIONS]
    broken = [row["mechanism"] for row in rows if row not in private and row not in anywhere]
    sentences = []
    levels = [(row["effective_epsilon"], row["mechanism"]) for row in rows if row["effective_epsilon"] is not None]
    if problem.matched_distance is not None and levels:
        epsilon, name = min(levels)
        away = length(problem.matched_distance, problem.domain.unit)
        sentences.append(
            f"At an expected distance of {away}, {name} has the smallest effective epsilon, "
            f"{number(epsilon, up=True)} nats per {unit_word(problem.domain.unit)}."
        )
    elif private:
        least = min(row["loss"] for row in private)
        best = next(row for row in private if row["loss"] <= least + _TIED * abs(least))
        loss = amount(best["loss"], unit, up=True)
        if best["position_loss"] is not None:
            words, at_true = _lattice_words(problem), amount(best["position_loss"], unit, up=True)
            loss = f"{at_true} at true {words.truths} ({loss} between {words.centres})"
        sentences.append(f"Of those that are private as claimed, {best['mechanism']} has the least loss, {loss}.")
        between = "" if best["position_loss"] is None else " between centres"
        if best["lower_bound"] is not None and best["lower_bound"] > 0 and best["gap"] <= QUOTED_GAP:
            bound = amount(best["lower_bound"], unit, up=False)
            sentences.append(f"No mechanism with this claim has less than {bound}{between}.")
    losses = [(row["position_loss"], row["mechanism"]) for row in anywhere if row["position_loss"] is not None]
    if losses:
        least, name = min(losses)
        off = amount(least, unit, up=True)
        sentences.append(
            f"Of those that protect any two positions, {name} has the least loss to the true position, {off}."
        )
    if broken:
        sentences.append(f"Not private as claimed: {', '.join(broken)}.")
    return joined(sentences)


def _lattice_words(problem: DesignProblem) -> Words:
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
        f"{problem.name}: {problem.domain.size} secrets, {_loss_words(problem)}, distance in "
        f"{'units' if unit == '1' else unit}.{snapping} "
        "lower bound: no mechanism with this claim does better; gap = (loss - lower bound) / loss. claimed eps: nats "
        f"per {unit_word(unit)} (randomized response: nats). effective eps: what the mechanism truly has, {over}. "
        "ratio: largest log-ratio over the claimed distance; above 1 the claim is broken. rank below the number of "
        "secrets: no number of reports tells their distribution; asymptotic MSE: reports times the mean squared error "
        f"of its estimate, in {'squared units' if unit == '1' else f'{unit}^2'}."
    )


def _loss_words(problem: DesignProblem) -> str:
    """The loss of a problem with its unit."""
    unit = problem.loss.unit(problem.domain.unit)
    return f"{problem.loss.name} loss" + ("" if unit == "1" else f" in {unit}")


def curve_words(rows: Sequence[CurveRow], problem: DesignProblem) -> Iterator[Block]:
    """The losses along a sweep, a star where a baseline breaks its claim, then the scales that they truly have."""
    names = list(baselines_of(rows[0]))
    baselines = [name.replace("_", " ") for name in names]
    first, last, unit = rows[0], rows[-1], problem.loss.unit(problem.domain.unit)
    gap = max(1e-6, *(row["gap"] for row in rows))
    known = f"; no mechanism does better by more than {percent(gap, up=True)}" if gap <= QUOTED_GAP else ""
    yield (
        f"From scale {number(first['scale'])} to {number(last['scale'])} of the metric the best loss falls from "
        f"{amount(first['loss'], unit, up=True)} to {amount(last['loss'], unit, up=True)}{known}."
    )
    losses = [printed_losses(row) for row in rows]
    starred = [any(text[-1] == "*" for text in column) for column in zip(*losses, strict=True)]
    padded = [
        [text + " " if star and text[-1] != "*" else text for text, star in zip(line, starred, strict=True)]
        for line in losses
    ]
    words = _lattice_words(problem)
    yield Table([head.replace("position", words.truth) for head in headings(rows[0])], padded)
    yield "The scale of the metric that each baseline truly has:"
    yield Table(
        ["scale", *baselines],
        [
            [cell(row["scale"], "near 4"), *(cell(row[f"{name}_effective_scale"], "up 5") for name in names)]
            for row in rows
        ],
    )
    placed = ""
    if "position loss" in headings(rows[0]):
        true = words.truth
        placed = f" {true} loss: of the same mechanism, to the true {true}, uniform in its {words.one}."
    yield (
        f"{problem.name}: {problem.domain.size} secrets, {_loss_words(problem)}. loss and lower bound enclose the "
        f"optimum at a scale of the problem's metric.{placed} A star: the mechanism is not private at that scale, its "
        "loss belongs to the scale that it truly has."
    )
