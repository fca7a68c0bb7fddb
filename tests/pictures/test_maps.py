"""Pictures of mechanisms and diagnoses: their values and words, and the refusals."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import write_anyway
from fixtures.problems import CASES, grid, varying_level
from fixtures.random_columns import column_mechanism as columned
from matplotlib.axes import Axes

import mechdesign as md
from mechdesign import (
    DesignProblem,
    Discrete,
    Domain,
    Eikonal,
    EikonalWeights,
    Optimal,
    PrivacyLevel,
    diagnosis,
    load_problem,
    priors,
    probabilities,
    save,
    solve,
    sweep,
)
from mechdesign.errors import InputError, UnsuitableError, VerificationError
from mechdesign.evaluation.loss import position_loss
from mechdesign.factored import FactoredMechanism
from mechdesign.losses import SquaredDistance
from mechdesign.pictures.answers import probability
from mechdesign.pictures.panels import FLOOR
from mechdesign.plot import diagnosis as plot_diagnosis
from mechdesign.plot import load as load_drawable
from mechdesign.plot import mechanism as plot_mechanism
from mechdesign.plot import save as save_plot

LINE, MASKED = "line, squared, skewed prior", "eikonal, masked"


@cache
def table(case: str) -> xr.Dataset:
    return solve(Optimal(problem=CASES[case]()))


def island() -> DesignProblem:
    """Oblong cells away from the origin, two of them masked, under half of a kinked level."""
    mask = np.ones((5, 9), bool)
    mask[2, 3:5] = False
    domain = Domain.grid((5, 9), cell=(0.8, 0.5), unit="cell", origin=(0.1, 0.2), mask=mask)
    prior = priors.proportional(np.random.default_rng(2).random(domain.size))
    metric = 0.5 * Eikonal(level=varying_level(seed=3), stencil=8)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=SquaredDistance(), name="island")


@cache
def factored_mechanism() -> xr.Dataset:
    return solve(EikonalWeights(problem=island()), method="factored", options=md.factored.FactoredOptions(rounds=6))


def on_lattice(domain: Domain, values: np.ndarray) -> np.ndarray:
    """Values of an image by cell: rows along y, columns along x, NaN where masked."""
    assert domain.shape is not None
    image = np.full(domain.shape[::-1], np.nan)
    for (x, y), value in zip(domain.index, values, strict=True):
        image[y, x] = value
    return image


def image_values(axes: Axes) -> np.ndarray:
    (image,) = axes.images
    return np.ma.filled(image.get_array().astype(float), np.nan)


def bar_label(axes: Axes) -> str:
    (bar,) = axes.child_axes
    return bar.get_ylabel()


def test_the_picture_of_a_table() -> None:
    problem, mechanism = CASES[MASKED](), table(MASKED)
    figure = plot_mechanism(mechanism)
    level, prior, losses, *rows = figure.axes
    assert len(rows) == 3
    lines = figure.get_suptitle().splitlines()
    assert lines[0] == "problem: 4 x 4 cells, 14 of them secrets"
    claim = " ".join(lines[1:-2])
    assert claim.startswith("Protects cells, not positions: between two people however close, one report changes the")
    off = float(re.search(r"mean distance to the true position is ([\d.]+) cells. Program: optimal.", claim)[1])
    assert 0 <= off / position_loss(mechanism) - 1 <= 1e-3  # four digits, rounded up
    assert lines[-2].startswith("eikonal metric, 16 neighbours, eps = ")
    assert np.array_equal(image_values(level), on_lattice(problem.domain, mechanism["level"].values), equal_nan=True)
    assert np.array_equal(image_values(prior), on_lattice(problem.domain, mechanism["prior"].values), equal_nan=True)
    by_cell = [row @ loss for row, loss in zip(probabilities(mechanism).values, problem.loss_matrix, strict=True)]
    assert np.allclose(image_values(losses), on_lattice(problem.domain, np.array(by_cell)), rtol=1e-12, equal_nan=True)
    labels = ["eps (nats per cell)", "probability per cell", "distance (cell)", *["probability per cell"] * 3]
    assert [bar_label(axes) for axes in figure.axes] == labels
    for axes in figure.axes:
        assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_aspect()) == ("x (cell)", "y (cell)", 1.0)
        assert axes.images[0].get_extent() == [0.0, 4.0, 0.0, 4.0]
        assert axes.images[0].origin == "lower"


def test_rows_of_high_median_and_low_prior() -> None:
    problem, mechanism = CASES[MASKED](), table(MASKED)
    ranked = np.argsort(problem.prior_array)
    asked = [ranked[-1], ranked[7], ranked[0]]
    rows = plot_mechanism(mechanism).axes[3:]
    for axes, u, word in zip(rows, asked, ("high", "median", "low"), strict=True):
        row = probabilities(mechanism).values[u]
        assert np.array_equal(image_values(axes), on_lattice(problem.domain, row), equal_nan=True)
        title = axes.get_title(loc="left").replace("\n", " ")  # wrapped to its column
        x, y = problem.domain.points[u]
        where = f"reports of somebody where the prior is {word}, at {x:g}, {y:g} cell"
        assert title.startswith(f"{where} true place {probability(row[u])}, 95 % within ")
        marks = [line for line in axes.lines if line.get_gid() != "outline"]
        assert {tuple(line.get_xydata()[0]) for line in marks} == {tuple(problem.domain.points[u])}


def test_rows_stay_away_from_the_border_and_share_one_scale() -> None:
    domain = grid((9, 9))
    prior = np.arange(100.0, 181.0) / np.arange(100.0, 181.0).sum()
    metric = Eikonal(level=varying_level(), stencil=8)
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=SquaredDistance())
    mechanism = solve(EikonalWeights(problem=problem))
    rows = plot_mechanism(mechanism).axes[3:]
    marked = [tuple(axes.lines[0].get_xydata()[0]) for axes in rows]
    assert marked == [(6.5, 6.5), (4.5, 4.5), (2.5, 2.5)]
    top = max(image_values(axes).max() for axes in rows)
    for axes in rows:
        assert axes.images[0].norm.vmax == pytest.approx(top)
        assert axes.images[0].norm.vmin == pytest.approx(FLOOR * top)


def test_the_picture_of_a_factored_mechanism() -> None:
    problem, mechanism = island(), factored_mechanism()
    figure = plot_mechanism(mechanism, [3, 20])
    level, _, excess, *rows = figure.axes
    told = figure.get_suptitle()
    assert told.startswith("island: 5 x 9 cells, 43 of them secrets\nProtects cells, not positions: between two people")
    assert "\neikonal metric, 8 neighbours" in told
    assert np.array_equal(
        image_values(level), on_lattice(problem.domain, 0.5 * mechanism["level"].values), equal_nan=True
    )
    found = np.maximum(mechanism["excess"].values, 0)
    assert np.array_equal(image_values(excess), on_lattice(problem.domain, found), equal_nan=True)
    assert excess.get_title(loc="left") == f"curvature excess > 0 in {(found > 0).sum()} of 43 cells"
    assert bar_label(excess) == "Laplacian(log eps) - eps² (per cell²)"
    assert len(rows) == 2
    for axes, u in zip(rows, (3, 20), strict=True):
        row = FactoredMechanism(dataset=mechanism).probabilities([u])[0]
        assert np.array_equal(image_values(axes), on_lattice(problem.domain, row), equal_nan=True)
        assert axes.get_title(loc="left").startswith(f"reports of somebody in cell {u}, at ")
        assert axes.images[0].get_extent() == pytest.approx([0.1, 4.1, 0.2, 4.7])


def test_the_picture_of_a_diagnosis() -> None:
    rise = 1 / (1 + np.exp(2 * (np.hypot(*(grid((15, 15)).points - 7.5).T) - 4)))
    level = np.reshape(0.4 + 1.2 * rise, (15, 15))
    problem = DesignProblem(
        domain=grid((15, 15)),
        metric=Eikonal(level=PrivacyLevel.from_values(grid((15, 15)), level), stencil=16),
        prior=np.full(225, 1 / 225),
        loss=SquaredDistance(),
    )
    found = diagnosis(problem)
    figure = plot_diagnosis(found)
    left, right = figure.axes
    assert figure.get_suptitle().replace("\n", " ").endswith(found.attrs["diagnosis"])
    assert np.array_equal(image_values(left), on_lattice(problem.domain, found["level"].values))
    assert right.get_title(loc="left").splitlines() == [
        f"curvature excess > 0 in {found.attrs['cells_with_excess']} of 225 cells",
        "dashed: 3 rings within a nat of the border",
    ]
    drawn = {str(line.get_label()): line.get_xydata() for line in right.lines}
    for code, name in ((1, "boundary"), (2, "curvature")):
        at = problem.domain.points[found["cause"].values == code]
        assert np.array_equal(drawn.pop(f"{len(at)} negative: {name}"), at)
    assert not drawn
    dashed = np.concatenate([path.vertices for path in right.collections[0].get_paths()])
    assert [*dashed.min(axis=0), *dashed.max(axis=0)] == pytest.approx([3.0, 3.0, 12.0, 12.0])
    unsolved = plot_diagnosis(found.drop_vars(["weight", "negative", "cause"]))
    assert not unsolved.axes[1].lines


def test_a_line_is_drawn_as_lines() -> None:
    problem, mechanism = CASES[LINE](), table(LINE)
    figure = plot_mechanism(mechanism, [1, 6])
    above, below = figure.axes
    assert above.lines[0].get_ydata().tolist() == problem.prior_array.tolist()  # the level is constant
    assert (above.get_ylabel(), below.get_xlabel()) == ("prior", "x (cell)")
    assert below.get_yscale() == "log"
    drawn = [line for line in below.lines if not str(line.get_label()).startswith("_")]
    for line, u in zip(drawn, (1, 6), strict=True):
        at = f"{problem.domain.points[u, 0]:g} cell"
        assert line.get_label().startswith(f"reports of somebody in cell {u}, at {at}; true place ")
    for line, u in zip(drawn, (1, 6), strict=True):
        assert line.get_xdata().tolist() == problem.domain.points[:, 0].tolist()
        assert line.get_ydata().tolist() == probabilities(mechanism).values[u].tolist()


def test_dimensionless_lengths_are_units() -> None:
    (below,) = plot_mechanism(solve(EikonalWeights(problem=load_problem("line", cells=4)))).axes
    assert below.get_xlabel() == "x (km)"
    made = solve(EikonalWeights(problem=load_problem("philadelphia", cells=3)))
    assert plot_mechanism(made).axes[0].get_xlabel() == "x (units)"


def test_constant_fields_have_no_panel() -> None:
    skewed = replace(CASES[LINE](), metric=Discrete(epsilon=1.0))
    assert plot_mechanism(solve(Optimal(problem=skewed))).axes[0].get_ylabel() == "prior"
    lattice = CASES["euclidean lattice"]()
    figure = plot_mechanism(solve(Optimal(problem=replace(lattice, prior=np.full(16, 1 / 16)))))
    titles = [axes.get_title(loc="left").splitlines()[0] for axes in figure.axes]
    assert titles[0] == "expected squared distance by cell"
    where = [title.removeprefix("reports of somebody ").split(", at ")[0] for title in titles[1:]]
    assert where == ["in the middle", "half-way out", "farthest out"]
    assert figure.get_suptitle().splitlines()[0].endswith(", uniform prior")


def test_heading_has_chance_of_truth_and_distance() -> None:
    mechanism = table(MASKED)
    problem, rows = CASES[MASKED](), probabilities(mechanism).values
    own = float(problem.prior_array @ np.diagonal(rows))
    said = plot_mechanism(mechanism).get_suptitle().splitlines()[-1]
    assert said.startswith(f"the true place is reported with probability {probability(own)} (")
    radius = float(re.search(r"95 % within ([\d.]+) cell", said)[1])
    away = problem.domain.euclidean_to(problem.domain)
    joint = problem.prior_array[:, None] * rows
    assert joint[away <= radius * 1.001].sum() >= 0.95 > joint[away < radius * 0.99].sum()


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.986, "98.6 %"), (0.99999, "99.9 %"), (1e-5, "0.001 %"), (0.07, "7 %")],
)
def test_a_share_never_claims_certainty(share: float, words: str) -> None:
    assert probability(share) == words


def test_uncertified_mechanism_is_not_drawn() -> None:
    with pytest.raises(VerificationError, match="expected_loss"):
        plot_mechanism(table(LINE).assign_attrs(expected_loss=0.5))


@pytest.mark.parametrize(
    ("case", "field"),
    [
        ("scattered points", "domain"),
        ("eikonal, two floors", "domain"),
    ],
)
def test_unsupported_domains_are_refused(case: str, field: str) -> None:
    with pytest.raises(UnsuitableError) as caught:
        plot_mechanism(table(case))
    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert "have a map" in caught.value.message


def test_a_diagnosis_without_the_rule_has_no_map() -> None:
    for case in (LINE, "euclidean lattice"):
        with pytest.raises(UnsuitableError, match="curvature rule"):
            plot_diagnosis(diagnosis(CASES[case]()))


@pytest.mark.parametrize("secrets", [[], [14], [-1], list(range(10))])
def test_secrets_that_cannot_be_drawn(secrets: list[int]) -> None:
    with pytest.raises(InputError) as caught:
        plot_mechanism(table(MASKED), secrets)
    assert caught.value.field == "secret"


@pytest.mark.exhaustive
def test_one_function_saves_every_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    drawn = {
        "mechanism": table(MASKED),
        "factored": factored_mechanism(),
        "columns": columned("eikonal, 8 neighbours"),
        "sweep": sweep(CASES["discrete"](), [1.0, 2.0]),
        "diagnosis": diagnosis(CASES["eikonal, 8 neighbours"]()),
    }
    for name, result in drawn.items():
        path = save_plot(result, tmp_path / f"{name}.svg")
        seen.append(path.read_text(encoding="utf-8"))
        assert seen[-1].startswith("<?xml")
    assert len(set(seen)) == 5
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(drawn)
    with pytest.raises(InputError, match="exists already"):
        save_plot(table(MASKED), tmp_path / "mechanism.svg")
    for other in (xr.Dataset(attrs={"schema": "other"}), CASES[MASKED]()):
        with pytest.raises(InputError, match="is not a mechanism") as caught:
            save_plot(other, tmp_path / "other.svg")
        assert caught.value.field == "result"
    assert save_plot(plot_mechanism(table(MASKED)), tmp_path / "figure.svg").exists()
    for name in ("sweep", "diagnosis"):
        with pytest.raises(InputError, match="is for a mechanism"):
            save_plot(drawn[name], tmp_path / "rows.svg", secrets=[0])
    asked = []
    monkeypatch.setattr(
        "mechdesign.pictures.plot.plot_mechanism", lambda made, secrets, over: asked.append(secrets) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        save_plot(table(MASKED), tmp_path / "rows.svg", secrets=[5])
    assert asked == [[5]]
    assert not (tmp_path / "rows.svg").exists()


def test_command_exports_picture(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    file, picture = save(table(LINE), tmp_path / "mechanism.nc"), tmp_path / "picture.png"
    code, out, _ = run("export", file, "-o", picture, "--json")
    assert code == 0
    assert json.loads(out) == {"file": str(picture)}
    first = picture.read_bytes()
    assert first.startswith(b"\x89PNG")
    code, _, err = run("export", file, "-o", picture)
    assert code == 2
    assert "exists already" in err
    code, _, err = run("export", file, "-o", picture, "--overwrite", "--rows", "3,5")
    assert code == 0
    assert "wrote" in err
    assert picture.read_bytes() != first
    code, out, _ = run("export", file, "-o", tmp_path / "x.png", "--rows", 14, "--json")
    assert code == 2
    assert json.loads(out)["error"]["field"] == "secret"
    assert not (tmp_path / "x.png").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.nc"
    write_anyway(table(MASKED).assign_attrs(schema="other/1"), other)
    with pytest.raises(VerificationError, match="not a mechanism, sweep or diagnosis"):
        load_drawable(other)


def test_nothing_global_is_touched() -> None:
    plot_mechanism(table(MASKED))
    assert "matplotlib.pyplot" not in sys.modules
