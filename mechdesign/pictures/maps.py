"""Maps of mechanisms over grids and along streets, through matplotlib's objects: no global state, no display."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.formatting import percent
from mechdesign.base.optional import import_optional
from mechdesign.base.units import unit_word
from mechdesign.base.validation import validate_call
from mechdesign.errors import UnsuitableError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.lines import lines_over
from mechdesign.pictures.answers import answers_figure, draws_answers, probability
from mechdesign.pictures.canvas import (
    ROWS,
    Ground,
    axis_label,
    claim_caption,
    ground_of,
    new_figure,
    place_words,
)
from mechdesign.pictures.classes import classes_figure, draws_classes
from mechdesign.pictures.panels import (
    FLOOR,
    Array,
    Panel,
    draw_excess,
    draw_map,
    draw_rows,
    drawn_secrets,
    entitle,
    laid_out,
    levels_of,
    loss_map,
    setting_maps,
    tidy,
    varies,
)
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import words_of
from mechdesign.solvers.eikonal.negative_weights import rings
from mechdesign.verification.verify import require_certified

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARE = 0.95  # of the reports that a radius holds


# Maps of the level and of the prior come first, each if it varies. Then come the expected loss, or the excess of a
# diagnosis, and rows P(.|u) of a few secrets on one logarithmic colour scale. One axis has lines, streets have dots at
# their nodes, and masked cells are grey. After Koufogiannis & Pappas 2016, Figures 2 and 3.
@validate_call
def plot_mechanism(
    mechanism: xr.Dataset, secrets: Sequence[int] | None = None, *, over: str | Path | None = None
) -> Figure:
    """Draw a mechanism over a grid of one or two axes, along streets, of classes, or of answers or released numbers.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism.
    secrets : sequence of int
        Up to 9 places whose rows are drawn. By default three: those of the highest, median and lowest prior, among
        nodes, or among cells at least a third as deep in the domain as the deepest. Under a uniform prior they are
        the nearest to the middle, the farthest from it and one half-way.
    over : str or Path
        A GeoJSON file in degrees whose lines are drawn on a domain on Earth.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnsuitableError, FileFormatError, VerificationError
        For other domains; a file without lines; a mechanism that `md.verify` does not certify.

    Examples
    --------
    >>> len(md.plot.mechanism(md.baselines.exponential(md.load_problem("line", cells=4))).axes) > 0
    True
    """
    checked = require_certified(mechanism)
    stored = MechanismFile.read(mechanism)
    above = lines_over(over, stored.domain)
    claim = claim_caption(mechanism, checked)
    if draws_answers(mechanism, stored.domain):
        figure = answers_figure(mechanism, stored.domain, secrets, above)
        entitle(figure, mechanism, claim, f"{mechanism.sizes['report']} possible answers")
        return figure
    if draws_classes(mechanism, stored):
        figure = classes_figure(mechanism, stored, secrets)
        entitle(figure, mechanism, claim)
        return figure
    streets = stored.edges if stored.metric.network else None
    ground = ground_of(stored.domain, streets, above, inside_region(stored))
    places, words = _places(mechanism, ground, secrets)
    rows = _rows(mechanism, places)
    shown = over_cells(stored, rows)
    names = [
        f"reports of somebody {word}, at {place_words(ground.domain, u)}\n{row_words(ground.domain, u, row, full[u])}"
        for u, word, row, full in zip(places, words, rows, shown, strict=True)
    ]
    if ground.domain.dimension == 1:
        figure = _line_figure(mechanism, ground.domain, places, rows, names)
    else:
        figure = laid_out(ground, _panels(mechanism, ground, places, shown, names))
    entitle(figure, mechanism, claim, table_sentence(mechanism, ground.domain))
    return figure


def _panels(mechanism: xr.Dataset, ground: Ground, places: list[int], rows: Array, names: list[str]) -> list[Panel]:
    colours = import_optional("matplotlib.colors", "plot")
    points, top = ground.domain.points, float(rows.max())
    panels = setting_maps(mechanism, ground)
    diagnosed = ground.streets is None and "ring" in mechanism and "excess" in mechanism
    if not diagnosed and "mass" in mechanism:
        panels.append(loss_map(mechanism, ground, drawn_rows(mechanism)))
    panels = [partial(draw, marks=points[places]) for draw in panels]
    if diagnosed and (mechanism["excess"].values > 0).any():
        step = json.loads(mechanism.attrs["parameters"]).get("shortest_border_step")
        outer = math.ceil(1 / step) if step else None
        panels.append(partial(draw_excess, result=mechanism, ground=ground, outer=outer))
    style: dict[str, Any] = {
        "cmap": ROWS,
        "norm": colours.LogNorm(vmin=FLOOR * top, vmax=top),
        "bar": {"extend": "min"},
    }
    row_map = partial(draw_map, ground=ground, label=f"probability per {ground.per}", **style)
    for u, row, title in zip(places, rows, names, strict=True):
        panels.append(partial(row_map, values=row, title=title, marks=points[[u]]))
    return panels


def _places(mechanism: xr.Dataset, ground: Ground, secrets: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """The secrets whose rows are drawn, and words for each, such as "in the middle"."""
    domain, prior = ground.domain, np.asarray(mechanism["prior"].values, float)
    if secrets is not None:
        places = drawn_secrets(secrets, domain.size)
        where = f"{'in' if domain.shape else 'at'} {words_of(domain).one}"
        return places, [f"{where} {u}" for u in places]
    likely = np.flatnonzero(ground.inside & (prior > 0))
    differs = varies(prior[likely])
    if differs:
        deep = likely if ground.streets is not None else _deep_cells(ground, likely)
        ranked, words = deep[np.argsort(prior[deep], kind="stable")][::-1], ("high", "median", "low")
    else:
        away = ((domain.points - domain.points[likely].mean(axis=0)) ** 2).sum(axis=1)
        ranked = likely[np.argsort(away[likely], kind="stable")]
        words = ("in the middle", "half-way out", "farthest out")
    usual = {int(ranked[k]): word for k, word in zip((0, (len(ranked) - 1) // 2, -1), words, strict=True)}
    return list(usual), [f"where the prior is {word}" if differs else word for word in usual.values()]


def _deep_cells(ground: Ground, likely: NDArray[np.int64]) -> NDArray[np.int64]:
    """The likely cells at least a third as deep in the region as the deepest of them; off grids all of them."""
    domain = ground.domain
    if domain.shape is None:
        return likely
    # Rows near the border are cut off by it, and would not be typical.
    assert domain.index is not None
    region = replace(domain, points=domain.points[ground.inside], index=domain.index[ground.inside])
    ring = np.zeros(domain.size, np.int64)
    ring[ground.inside] = rings(region)
    return likely[ring[likely] >= ring[likely].max() / 3]


def inside_region(stored: MechanismFile) -> NDArray[np.bool_]:
    """False (n,) for secrets outside the region of a mechanism: those without prior that are never reported."""
    inside = np.asarray(stored.mechanism["prior"].values) > 0
    if stored.report_cells is None or stored.domain.kind != "grid":
        return np.ones(stored.domain.size, bool)
    inside[stored.report_cells] = True
    return inside if stored.report_at is None else inside | (stored.report_at >= 0)


def _rows(mechanism: xr.Dataset, places: list[int]) -> Array:
    if MechanismFile.read(mechanism).report_cells is None:
        raise UnsuitableError("only reports that are secrets, or answers, have a map", field="reports")
    return over_places(mechanism, drawn_rows(mechanism, places))


def _line_figure(mechanism: xr.Dataset, domain: Domain, places: list[int], rows: Array, names: list[str]) -> Figure:
    """Over one axis: the level, or else the prior, where it varies, above the rows."""
    figure = new_figure(figsize=(8.0, 6.4), layout="constrained")
    at, prior = domain.points[:, 0], np.asarray(mechanism["prior"].values, float)
    levelled = "level" in mechanism and varies(mechanism["level"].values)
    if levelled or varies(prior):
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 2])
        shown, label = levels_of(mechanism, domain) if levelled else (prior, "prior")
        above.plot(at, shown, color="0.2", marker=".", linewidth=1)
        above.set_ylabel(label)
        above.set_ylim(0.0, 1.1 * float(shown.max()))
        tidy(above)
    else:
        below = figure.subplots()
    draw_rows(below, at, rows, [title.replace("\n", "; ") for title in names], places)
    below.set_ylim(max(FLOOR * rows.max(), float(rows.min()) / 2), 2 * rows.max())
    below.set_ylabel(f"probability per {words_of(domain).one}")
    below.set_xlabel(axis_label("x", domain.unit))
    return figure


def row_words(domain: Domain, u: int, row: Array, true: float) -> str:
    """The probability `true` of the report of u, and the radius of 95 % of its row (n,) of reports, in words."""
    away = np.sqrt(((domain.points - domain.points[u]) ** 2).sum(axis=1))
    return f"true {words_of(domain).report_noun} {probability(true)}, {_radius_words(away, row, domain.unit)}"


def over_places(mechanism: xr.Dataset, rows: Array) -> Array:
    """Rows (b, m) over the reports of a mechanism, which are secrets, as (b, n) over the secrets; 0 elsewhere."""
    stored = MechanismFile.read(mechanism)
    probabilities = np.zeros((len(rows), stored.domain.size))
    probabilities[:, stored.report_cells] = rows
    return probabilities


def over_cells(stored: MechanismFile, rows: Array) -> Array:
    """Rows (b, n) over the secrets, each with the probability of the report whose cell holds it if rows are finer."""
    at, cells = stored.report_at, stored.report_cells
    if at is None or cells is None:
        return rows
    return np.where(at >= 0, rows[:, cells[at]], 0.0)


def table_sentence(mechanism: xr.Dataset, domain: Domain) -> str:
    """The mean of `row_words` under the prior, with the range over the places; "" for factors."""
    if "mass" not in mechanism:
        return ""
    table = over_places(mechanism, drawn_rows(mechanism))
    prior = np.asarray(mechanism["prior"].values, float)
    true = np.diagonal(over_cells(MechanismFile.read(mechanism), table))
    # A place without probability has no reports to speak of: its row would distort the range.
    likely = prior > 0
    low, high = probability(true[likely].min()), probability(true[likely].max())
    ranged = "" if low == high else f" ({low} to {high})"
    radius = _radius_words(domain.euclidean_to(domain), table * prior[:, None], domain.unit)
    true_one = f"the true {words_of(domain).report_noun}"
    return f"{true_one} is reported with probability {probability(float(prior @ true))}{ranged}; {radius} of it"


def _radius_words(distance: Array, chance: Array, unit: str) -> str:
    """The smallest distance within which 95 % of the probability lies, in words. Arrays of one shape, any sum."""
    order = np.argsort(distance, axis=None, kind="stable")
    far, mass = distance.ravel()[order], np.cumsum(chance.ravel()[order])
    # 1e-12: rounding of the cumulated sum must not move a radius that holds exactly 95 % outwards.
    radius = float(far[np.searchsorted(mass, SHARE * mass[-1] * (1 - 1e-12))])
    shown, word = (radius / 1000, "km") if unit == "m" and radius >= 1000 else (radius, unit_word(unit))
    return f"{percent(SHARE)} within {shown:.3g} {'units' if unit == '1' else word}"
