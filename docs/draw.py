"""The pictures of these pages that no command draws: python docs/draw.py; the rest are those of the tutorials.

python docs/draw.py --region MAP.nc MAP.compact draws that of a region alone, from a design and its device map.
"""

import argparse
import json
import re
import runpy
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray
from PIL import Image

import mechdesign as md
from mechdesign.base.threads import source
from mechdesign.devicemap.draw import Drawing
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.problem.locate import place_at, place_on_earth
from mechdesign.sessions.advance import begin, draw_report, plan_tick, seeded_draws
from mechdesign.sessions.study.propose import session_design
from mechdesign.sessions.study.setting import Setting
from mechdesign.sessions.study.simulated import PricedRule

HERE = Path(__file__).parent
TUTORIALS = {
    "start": "15_geo_indistinguishability",
    "people": "12_reports_of_many_people",
    "answers": "13_smooth_sensitivity",
}
SOMEBODY = {  # name, degrees east, degrees north
    "city": ("Manhattan", -73.985, 40.752),
    "suburb": ("King of Prussia, Pa.", -75.396, 40.089),
    "country": ("Sullivan Co., Pa.", -76.51, 41.45),
}
CITIES = {
    "New York": (-74.006, 40.713),
    "Philadelphia": (-75.165, 39.953),
    "Baltimore": (-76.612, 39.290),
    "Scranton": (-75.662, 41.409),
}
COLOURS = ("tab:red", "tab:green", "tab:blue")  # of each of them
CLOUD = 2000  # reports of each of them
WINDOW = 24.0  # km around each of them
TICKS = np.array([-10, -5, 0, 5, 10])


def day():
    """A synthetic day: the true path, the reports of a session and its estimates, on a map and over the hours."""
    domain, ticks = md.Domain.grid((12, 12), cell=200.0, unit="m"), 50
    public = md.sessions.synthetic_days(domain, people=200, days=14, ticks=ticks, rng=1000)
    setting = Setting(domain=domain, model=md.sessions.fit_home_away(public), within=200.0)
    design = session_design(setting, PricedRule.risk(373.0, (4.0, 2.0, 2.0, 2.0)))
    trace = md.sessions.synthetic_days(domain, people=12, days=1, ticks=ticks, rng=1).places[9, 0]
    state, source, estimates, errors = begin(design), seeded_draws(design, 7), [], []
    for tick, place in enumerate(trace):
        state = draw_report(design, plan_tick(design, state, tick), int(place), source)
        estimates.append(state.belief.estimate)
        errors.append(state.belief.error)
    steps = state.transcript.steps
    true, told = (domain.points[places] / 1000 for places in (trace, estimates))
    drawn = domain.points[[step.report for step in steps]] / 1000
    hours = (np.arange(ticks) + 0.5) / ticks * 24
    figure, (map_, line) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1, 1.35), layout="constrained")
    map_.plot(*true.T, color="0.35", lw=1.2, marker="o", ms=3, label="true path")
    map_.plot(*told.T, color="tab:blue", lw=1.2, marker="s", ms=4, alpha=0.7, label="estimates")
    map_.plot(*drawn.T, "x", color="tab:red", ms=9, mew=2, label="reports")
    for number, (x, y) in enumerate(drawn, 1):
        map_.annotate(str(number), (x, y), xytext=(6, 4), textcoords="offset points", color="tab:red")
    map_.set(xlim=(0, 2.4), ylim=(0, 2.4), aspect="equal", xlabel="x, km", ylabel="y, km")
    map_.set_xticks(np.arange(0, 2.41, 0.4))
    map_.set_yticks(np.arange(0, 2.41, 0.4))
    map_.grid(alpha=0.3)
    map_.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, frameon=False, fontsize=9)
    line.step(hours, 1000 * np.linalg.norm(true - told, axis=1), where="mid", color="tab:blue", label="true error")
    line.step(hours, errors, where="mid", color="0.5", lw=1, label="expected error of the filter")
    line.axhline(373, color="0.5", ls=":", lw=1)
    line.annotate("reports above this", (0.6, 373), xytext=(0, 4), textcoords="offset points", color="0.35", fontsize=8)
    for number, step in enumerate(steps, 1):
        at, cost = hours[step.tick], float(design.charges[step.table])
        line.axvline(at, color="tab:red", lw=1)
        line.annotate(f"{number}: {cost:.3g} nats", (at, 0.97 - 0.06 * (number - 1)), xytext=(3, 0),
                      xycoords=("data", "axes fraction"), textcoords="offset points", va="top", color="tab:red",
                      fontsize=8, bbox={"pad": 0.5, "fc": "white", "ec": "none"})  # fmt: skip
    line.set(xlabel="hour", ylabel="distance, m", xlim=(0, 24), ylim=(0, None), xticks=range(0, 25, 3))
    line.grid(alpha=0.3)
    line.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Draw and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region", nargs=2, metavar=("MAP.nc", "MAP.compact"))
    given = parser.parse_args()
    if given.region:
        drawn = BytesIO()
        region(*given.region).savefig(drawn, dpi=110)
        few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)  # a quarter of the bytes
        few.save(HERE / "pictures" / "region.png", optimize=True)
        return
    figures = {name: runpy.run_path(str(HERE / "gallery" / f"{file}.py"))["figure"] for name, file in TUTORIALS.items()}
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    radii = np.geomspace(20, 2000, 50)
    for factor in (1.5, 2, 4, 10):
        ax.loglog(radii, [mean_radius(np.log(factor) / radius) for radius in radii])
        ax.annotate(f"odds of {factor:g}", (radii[-1], mean_radius(np.log(factor) / radii[-1])), xytext=(4, -3),
                    textcoords="offset points")  # fmt: skip
    ax.set(xlabel="radius within which odds change by at most the factor, m", ylabel="mean distance of a report, m")
    ax.set_xlim(right=4500)
    ax.grid(alpha=0.3)
    drawn_too = {"epsilon": figure, "day": day(), "positions": positions(), "distance": distance()}
    for name, drawn in {**figures, **drawn_too}.items():
        drawn.savefig(HERE / "pictures" / f"{name}.png", dpi=90)


def distance() -> Figure:
    """Gap of each mechanism to the proved bound over the number of cells, from the table in results/large-maps.md."""
    page = (HERE / "results" / "large-maps.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (\d+) x \1 \|((?: [\d.]* ?\|){4})$", page, re.M)
    rows = [(int(cells), *(float(figure.strip() or "nan") for figure in rest.split("|")[:-1])) for cells, rest in found]
    cells, loss, remapped, optimal, bound = np.array(sorted(rows)).T
    figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    shown = {"eikonal": loss, "eikonal, remapped": remapped, "optimal, as designed": optimal}
    for (name, losses), mark in zip(shown.items(), "os^", strict=True):
        known = np.isfinite(losses)
        ax.plot(cells[known], 100 * (1 - bound / losses)[known], marker=mark, label=name)
    ax.set(xlabel="cells along an axis", ylabel="(loss - bound) / loss, percent", xlim=(0, None), ylim=(0, None))
    ax.set_xticks(cells)
    ax.grid(alpha=0.3)
    ax.legend()
    return figure


def positions() -> Figure:
    """The probability of one report along a street, for a design between centres of cells and one between positions."""
    domain = md.Domain.grid((9, 9), cell=100.0, unit="m")
    level = md.Euclidean(epsilon=0.005, unit="m")
    problem = md.DesignProblem(
        domain=domain, metric=level, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )
    centres, anywhere = md.solve(problem, gap=1e-3), md.solve(md.positions.Positions(problem), gap=1e-3)
    report = 9 * 4 + 5
    along = np.linspace(0.05, 899.95, 1800)
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for mechanism, name in ((centres, "moved to the centre of its cell"), (anywhere, "drawn by the spline")):
        rows = md.probabilities(mechanism).values[:, report].reshape(9, 9)[:, 4]
        cell = (along // 100).astype(int)
        if "around_row" in mechanism:
            s = along / 100 - cell - 0.5
            weights = ((0.5 - s) ** 2 / 2, 0.75 - s**2, (0.5 + s) ** 2 / 2)
            shown = sum(w * rows[np.clip(cell + k - 1, 0, 8)] for k, w in enumerate(weights))
        else:
            shown = rows[cell]
        ax.semilogy(along, shown, label=name)
    ax.set(xlabel="position along a street, m", ylabel="probability of one report")
    ax.legend()
    ax.grid(alpha=0.3)
    return figure


@dataclass(frozen=True, kw_only=True)
class Region:
    """A region in km: extent on the plane, radius of the level and expected error (n1, n2), and its device map."""

    domain: md.Domain
    nats: float
    radius: NDArray[np.float64]
    error: NDArray[np.float64]
    extent: tuple[float, ...]
    drawing: Drawing

    @classmethod
    def read(cls, design: str, compact: str) -> "Region":
        """From a design and its device map."""
        mechanism, drawing = md.load(design), Drawing(device_map=md.devicemap.load_device_map(compact))
        domain = drawing.compact.domain
        nats = json.loads(mechanism.attrs["parameters"])["problem_parameters"]["nats"]
        radius, error = (
            values.reshape(domain.shape) / 1000
            for values in (nats / mechanism["level"].values, mechanism["row_loss"].values)
        )
        low, high = domain.points[[0, -1]] / 1000
        half = domain.cell[0] / 2000
        extent = (low[0] - half, high[0] + half, low[1] - half, high[1] + half)
        return cls(domain=domain, nats=nats, radius=radius, error=error, extent=extent, drawing=drawing)

    def at(self, east: float, north: float) -> NDArray[np.float64]:
        """Kilometres on the plane of degrees."""
        return self.domain.plane.forward(np.array([east]), np.array([north]))[0] / 1000

    def image(self, ax: Axes, values: NDArray[np.float64], colours: str, **options: float) -> ScalarMappable:
        """Values over the region, in logarithmic colours."""
        scale = LogNorm(vmin=np.quantile(values, 1e-3), vmax=values.max())
        return ax.imshow(values.T, origin="lower", extent=self.extent, cmap=colours, norm=scale, **options)


def region(design: str, compact: str) -> Figure:
    """The map of a region: radii of the privacy level, expected error, and where reports of three people fall."""
    shown = Region.read(design, compact)
    figure = plt.figure(figsize=(7.2, 7.5), layout="constrained")
    maps, near = figure.subfigures(2, 1, height_ratios=(1.5, 1))
    panels = (
        (shown.radius, "cividis", f"radius of the level (odds of {np.exp(shown.nats):.1f}), km"),
        (shown.error, "magma", "expected error of a report, km"),
    )
    for ax, (values, colours, words) in zip(maps.subplots(1, 2, sharey=True), panels, strict=True):
        image = shown.image(ax, values, colours)
        bar = maps.colorbar(image, ax=ax, location="top", label=words, shrink=0.95)
        ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if image.norm.vmin <= tick <= image.norm.vmax]
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
        for name, place in CITIES.items():
            options = {"ha": "center", "va": "top", "color": "white", "annotation_clip": True}
            said = ax.annotate(name, shown.at(*place), xytext=(0, -9), textcoords="offset points", **options)
            said.set_path_effects([withStroke(linewidth=2.5, foreground="black")])
            ax.plot(*shown.at(*place), ".", color="white", mec="black", ms=7)
        for (_, *place), colour in zip(SOMEBODY.values(), COLOURS, strict=True):
            _draw_ring(ax, shown.at(*place), colour)
        ax.set(xlabel="km east", xlim=shown.extent[:2], ylim=shown.extent[2:])
    maps.axes[0].set(ylabel="km north")
    bits, spread = source(1)[0], np.random.default_rng(1)
    for ax, (kind, (name, *place)), colour in zip(near.subplots(1, 3), SOMEBODY.items(), COLOURS, strict=True):
        secret = place_at(shown.domain, place_on_earth(shown.domain, *place))
        points = shown.domain.points / 1000
        drawn = shown.drawing.compact.target[shown.drawing.places(secret, CLOUD, bits)].tolist()
        within = spread.uniform(-0.5, 0.5, (CLOUD, 2)) * np.array(shown.domain.cell) / 1000
        shown.image(ax, shown.radius, "cividis", alpha=0.3)
        away = points[drawn] - points[secret]
        ax.plot(*(points[drawn] + within).T, ".", color="black", ms=1.5, mew=0)
        for edge, width in (("white", 3.5), (colour, 2)):
            options = {"fill": False, "edgecolor": edge, "linewidth": width, "zorder": 3}
            ax.add_patch(Circle(points[secret], shown.radius.flat[secret], **options))
        far = np.quantile(np.linalg.norm(away, axis=1), 0.95)
        ax.set_title(f"{kind}: {name}\n{shown.error.flat[secret]:.2f} km off,\n95 % within {far:.1f} km", fontsize=10)
        for axis, middle in zip((ax.xaxis, ax.yaxis), points[secret], strict=True):
            axis.set_ticks(middle + TICKS, labels=[f"{tick:+g}" if tick else "0" for tick in TICKS])
        around = np.array([-WINDOW, WINDOW]) / 2
        ax.set(xlabel="km east", xlim=points[secret, 0] + around, ylim=points[secret, 1] + around)
    near.axes[0].set(ylabel="km north of the person")
    return figure


def _draw_ring(ax: Axes, place: NDArray[np.float64], colour: str) -> None:
    ax.plot(*place, "o", mfc="none", mec="white", ms=11, mew=4)
    ax.plot(*place, "o", mfc="none", mec=colour, ms=11, mew=2)


if __name__ == "__main__":
    main()
