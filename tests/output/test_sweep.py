"""The privacy-utility curve: its laws, its file, its picture and its command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.absent_capabilities import needs
from fixtures.forged_files import rewritten
from fixtures.problems import CASES, shipped_problem
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, SOLVED

from mechdesign import DesignProblem, Optimal, load, load_problem, save, solve, sweep
from mechdesign.errors import InputError, VerificationError
from mechdesign.output import sweep as sweeps
from mechdesign.plot import load as load_drawable
from mechdesign.plot import save as save_plot
from mechdesign.plot import sweep as plot_sweep

SCALES = (2.0, 0.25, 0.5, 1.0)
CURVES = {  # and what the picture says of the metric
    "line, zero-one": "eikonal metric, 2 neighbours, eps = 0.9 nats per cell",
    "discrete": "discrete metric, eps = 1.5 nats",
    "euclidean lattice": "Euclidean metric, eps = 1 nats per cell",
    "eikonal, masked": "eikonal metric, 16 neighbours",
    "eikonal, two floors": "eikonal metric, 26 neighbours",
    "graph, table loss": "graph metric",
    "scattered points": "Euclidean metric, eps = 1.2 nats per km",
}
USUAL = ("line, zero-one", "discrete", "graph, table loss")
ALL = pytest.mark.parametrize("case", few_by_default(CURVES, *USUAL, "euclidean lattice"))
FEW = pytest.mark.parametrize("case", few_by_default(CURVES, *USUAL))


@cache
def problem_of(case: str) -> DesignProblem:
    return CASES[case]()


@cache
def curve_of(case: str) -> xr.Dataset:
    return sweep(problem_of(case), SCALES, gap=SOLVED)


def optimum_at(problem: DesignProblem, scale: float) -> float:
    there = replace(problem, metric=scale * problem.metric)
    return float(solve(Optimal(problem=there), gap=SOLVED).attrs["lower_bound"])


@FEW
def test_every_point_encloses_the_optimum(case: str) -> None:
    curve = curve_of(case)
    assert curve["scale"].values.tolist() == sorted(SCALES)
    assert (curve["lower_bound"] <= curve["loss"]).all()
    assert (curve["gap"] <= SOLVED).all()
    assert (curve["effective_scale"] <= curve["scale"]).all()
    for k, scale in enumerate(sorted(SCALES)):
        assert optimum_at(problem_of(case), scale) <= curve["loss"].values[k]
    assert json.loads(curve.attrs["stopped"]) == ["gap"] * len(SCALES)


@ALL
def test_the_optimum_falls_as_the_claim_weakens(case: str) -> None:
    curve = curve_of(case)
    for (_, bound), (loss, _) in pairwise(zip(curve["loss"].values, curve["lower_bound"].values, strict=True)):
        assert loss < bound


@FEW
def test_no_baseline_beats_the_optimum_at_the_level_it_truly_has(case: str) -> None:
    found = 0
    for point in sweeps.curve_points(curve_of(case)):
        for name, figures in point.baselines.items():
            assert figures.loss is not None
            assert figures.effective_scale is not None
            broken = point.is_broken(name)
            bound = optimum_at(problem_of(case), figures.effective_scale) if broken else point.lower_bound
            assert figures.loss >= bound * (1 - DESIGN_MARGIN)
            found += 1
    assert found >= 3 * len(SCALES)


def test_a_baseline_that_breaks_its_claim_shows() -> None:
    broken = {
        name
        for point in sweeps.curve_points(curve_of("line, zero-one"))
        for name in point.baselines
        if point.is_broken(name)
    }
    assert broken == {"geometric_normalised"}
    curve = curve_of("line, zero-one")
    assert (curve["geometric_normalised_effective_scale"] > 1.05 * curve["scale"]).all()


@pytest.mark.parametrize(
    "case", few_by_default(["line, zero-one", "euclidean lattice", "graph, table loss"], "graph, table loss")
)
def test_a_vanishing_multiplier_leaves_the_best_constant(case: str) -> None:
    problem = problem_of(case)
    curve = sweep(problem, [1e-5], gap=SOLVED)
    assert curve["loss"].item() == pytest.approx(problem.constant_loss, rel=1e-3)
    assert curve.attrs["constant_loss"] == problem.constant_loss


def test_the_curve_of_a_line_is_the_closed_form() -> None:
    scales = sweeps.scale_range(0.2, 5.0, 5)
    curve = sweep(load_problem("line"), scales, gap=SOLVED)
    published = [shipped_problem("line").published(epsilon=0.9 * s)["optimal"] for s in scales]
    assert curve["loss"].values == pytest.approx(published, rel=SOLVED)
    assert curve["eikonal_loss"].values == pytest.approx(published, rel=SOLVED)
    assert curve["geometric_clamped_loss"].values == pytest.approx(published, rel=SOLVED)


def test_multiples_of_a_multiple() -> None:
    problem = problem_of("eikonal, multiplied")
    there = replace(problem, metric=0.5 * problem.metric)
    one, other = sweep(there, [2.0], gap=SOLVED), sweep(problem, [1.0], gap=SOLVED)
    assert one["loss"].item() == pytest.approx(other["loss"].item(), rel=2 * SOLVED)
    assert one["exponential_effective_scale"].item() == pytest.approx(
        2 * other["exponential_effective_scale"].item(), rel=1e-9
    )


def test_solves_run_downwards_each_started_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, reported = [], []
    solved = sweeps._solve

    def spy(problem: DesignProblem, start: object, **given: float) -> object:
        design = solved(problem, start, **given)
        seen.append((problem.metric.scale, start, design))
        return design

    monkeypatch.setattr(sweeps, "_solve", spy)
    sweep(problem_of("discrete"), [1.0, 4.0, 2.0], on_progress=lambda point: reported.append(point.scale))
    assert [scale for scale, _, _ in seen] == reported == [4.0, 2.0, 1.0]
    assert [start for _, start, _ in seen] == [None, seen[0][2], seen[1][2]]


def test_an_interrupt_keeps_the_points_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = sweeps._solve

    def stop(problem: DesignProblem, start: object, **given: float) -> object:
        design = solved(problem, start, **given)
        return design if start is None else replace(design, stopped="interrupt")

    monkeypatch.setattr(sweeps, "_solve", stop)
    curve = sweep(problem_of("discrete"), [1.0, 2.0, 4.0])
    assert curve["scale"].values.tolist() == [2.0, 4.0]
    assert json.loads(curve.attrs["stopped"]) == ["interrupt", "gap"]


@pytest.mark.parametrize(
    ("scales", "given", "field"),
    [
        ([], {}, "scales"),
        ([0.0, 1.0], {}, "scales"),
        ([1.0, float("nan")], {}, "scales"),
        ([1.0, 1.0], {}, "scales"),
        ([1.0], {"gap": -1.0}, "gap"),
    ],
)
def test_bad_requests(scales: list[float], given: dict[str, float], field: str) -> None:
    with pytest.raises(InputError) as caught:
        sweep(problem_of("discrete"), scales, **given)
    assert caught.value.field == field


def test_sweep_file_round_trip(tmp_path: Path) -> None:
    curve = curve_of("graph, table loss")
    path = save(curve, tmp_path / "curve.nc")
    again = load_drawable(path)
    xr.testing.assert_identical(again, curve)
    assert again.attrs["sha256"] == rewritten(again).attrs["sha256"]
    assert (again.attrs["schema"], again["loss"].attrs["units"], again["gap"].attrs["units"]) == (
        "mechdesign/sweep/2",
        "1",
        "1",
    )
    with pytest.raises(VerificationError, match="not a mechanism"):
        load(path)


def test_baseline_that_never_fits_has_no_variables() -> None:
    names = {name for name in sweeps.baseline_names() if f"{name}_loss" in curve_of("graph, table loss")}
    assert names == {"eikonal", "exponential", "randomized_response"}
    assert curve_of("euclidean lattice")["loss"].attrs["units"] == "cell^2"


@ALL
def test_the_picture_states_problem_metric_and_units(case: str) -> None:
    curve = curve_of(case)
    above, below = plot_sweep(curve).axes
    title = above.get_title(loc="left")
    assert title.startswith("problem: ")
    assert title.splitlines()[1].startswith(CURVES[case])
    unit = {"cell^2": "(cell²)", "cell": "(cell)", "km": "(km)"}.get(curve["loss"].attrs["units"], "")
    assert above.get_ylabel().endswith(unit)
    assert above.get_xscale() == below.get_xscale() == "log"
    drawn = {line.get_label(): line for line in above.lines}
    assert drawn["exponential"].get_xdata().tolist() == curve["exponential_effective_scale"].values.tolist()
    (optimal,) = (line for label, line in drawn.items() if str(label).startswith("optimal"))
    assert optimal.get_ydata().tolist() == curve["loss"].values.tolist()
    losses = np.concatenate([curve[name].values for name in curve if str(name).endswith("loss")])
    assert above.get_yscale() == ("log" if losses.max() > 10 * losses.min() else "linear")
    assert ("breaks its claim" in drawn) == any(
        any(map(point.is_broken, point.baselines)) for point in sweeps.curve_points(curve)
    )


@pytest.mark.parametrize(
    ("gap", "printed"), [(2.4e-6, "0.0003 %"), (0.011, "2 %"), (0.51, "60 %"), (1.1, "200 %"), (0.0, "0.0001 %")]
)
def test_the_legend_rounds_the_certified_gap_up(gap: float, printed: str) -> None:
    curve = curve_of("discrete")
    widened = curve.assign(gap=("scale", np.full(len(SCALES), gap)))
    labels = [line.get_label() for line in plot_sweep(widened).axes[0].lines]
    assert f"optimal, certified within {printed}" in labels


@pytest.mark.parametrize("suffix", few_by_default(["png", "PDF", "svg"], "svg"))
def test_pictures_are_written_whole(tmp_path: Path, suffix: str) -> None:
    head = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}[suffix]
    path = save_plot(curve_of("discrete"), tmp_path / f"curve.{suffix}")
    assert path.read_bytes().startswith(head)
    assert list(tmp_path.iterdir()) == [path]


def test_impossible_pictures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"\.png, \.pdf, \.svg"):
        save_plot(curve_of("discrete"), tmp_path / "curve.gif")
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"mechdesign\[plot\]"):
        save_plot(curve_of("discrete"), tmp_path / "curve.png")
    assert not list(tmp_path.iterdir())


@needs("pictures")
def test_command_writes_curve_and_picture(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    words = ("compare", "line", "--cells", 5, "--scales", "0.5:2:3", "--gap", 1e-6)
    files = tmp_path / "curve.nc", tmp_path / "curve.png"
    code, out, _ = run(*words, "-o", files[0], "--json")
    assert code == 0
    rows = json.loads(out)
    assert run("export", files[0], "-o", files[1])[0] == 0
    assert rows == sweeps.curve_rows(sweeps.curve_points(load_drawable(files[0])))
    assert [row["scale"] for row in rows] == [0.5, 1.0, 2.0]
    assert files[1].stat().st_size > 10_000
    code, out, _ = run(*words)
    assert code == 0
    lines = out.splitlines()
    printed = [line.split()[:2] for line in lines if line.split()[:1] == ["0.5"]]
    assert printed[0] == ["0.5", f"{rows[0]['loss']:.5g}"]
    assert any("*" in line for line in lines)
    assert run(*words, "-o", files[0])[0] == 2


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--scales", "0:2:3"), "scales"),
        (("--scales", "2:1:3"), "scales"),
        (("--scales", "1:inf:3"), "scales"),
        (("--scales", "1:2:1"), "scales"),
        (("--scales", "1:2"), "scales"),
        (("--scales", "1,x"), "scales"),
        (("--scales", "1,1"), "scales"),
        (("--scales", "0,1"), "scales"),
        (("--scales", ""), "scales"),
        (("--scales", "1,2", "--only", "optimal"), "only"),
        (("--scales", "1,2", "-o", "x.gif"), "output"),
        (("--level", 1), "--level"),
    ],
)
def test_command_refuses_scales(
    words: tuple[object, ...], field: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, _ = run("compare", "line", *words, "--json")
    assert code == 2
    assert json.loads(out)["error"]["field"] == field
