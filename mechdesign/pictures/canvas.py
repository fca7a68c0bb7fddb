"""Canvas: colours and grounds of every picture."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.formatting import number
from mechdesign.base.optional import import_optional
from mechdesign.base.streams import visible
from mechdesign.base.units import METRES
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.sentences import error_sentence, protection_sentence
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.verification.verify import Verification

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

OKABE_ITO = BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, YELLOW, BLACK = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#D55E00", "#F0E442", "#000000"),
)
_NOTEBOOK = 100  # pixels an inch
LINES = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (PINK, ":"))
LEVELS, ROWS, EXCESS = "cividis", "magma_r", "YlOrBr"  # brightness is monotone: for any colour vision, and in grey
STYLES = {
    "optimal": (BLACK, "o"),
    "eikonal": (VERMILION, "s"),
    "exponential": (GREEN, "^"),
    "geometric_clamped": (BLUE, "D"),
    "geometric_normalised": (PINK, "v"),
    "planar_laplace": (SKY, "P"),
    "laplacian_clamped": (SKY, "P"),
    "laplacian_normalised": (GREEN, "^"),
    "randomized_response": (ORANGE, "X"),
}
_GREYS = ("0.25", "0.45", "0.65")
_OTHERS = ("*", "h", "d", "p", "<", ">")
_STREET = "0.8"  # grey
_BORDER = "0.35"  # grey, of the outline of a region
_FORMULA = "$\\mathdefault"  # how Matplotlib writes powers of ten
_TITLE_PER_INCH = 14.5  # characters of a title of 9 points
_LABELS = 0.85  # inches left of a map, for the labels of its axis
_MARGIN = 0.05  # of a network, on each side


# Colours are those of Okabe and Ito, safe for any colour vision, one colour and one marker a mechanism; other names get
# a grey. Grounds are the cells of a grid or the nodes of streets, with lines of a GeoJSON file on Earth.
def new_figure(**settings: Any) -> Figure:
    """A matplotlib figure without a window, which notebooks display."""
    figure: Figure = import_optional("matplotlib.figure", "plot").Figure(**settings)

    def png() -> bytes:
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=_NOTEBOOK)
        return written.getvalue()

    drawn = figure.draw

    def draw(renderer: Any) -> None:
        """Draw dollar signs of names and units as they are: only the numbers of a logarithmic axis are formulas."""
        for text in figure.findobj(lambda artist: hasattr(artist, "set_parse_math")):
            # Labels of ticks are still empty here: read as plain text, a formula would be measured three times as wide.
            words = text.get_text()  # type: ignore[attr-defined]
            text.set_parse_math(not words or words.startswith(_FORMULA))  # type: ignore[attr-defined]
        drawn(renderer)

    # Notebooks call _repr_png_: no pyplot, whose figures are global state.
    figure.draw = draw  # type: ignore[method-assign]
    figure._repr_png_ = png  # type: ignore[attr-defined]
    return figure


def mechanism_style(name: str) -> dict[str, str]:
    """The colour and marker of a mechanism, as matplotlib takes them."""
    # By a checksum of the name: a mechanism looks the same in every picture.
    checksum = crc32(name.encode())
    other = _GREYS[checksum % len(_GREYS)], _OTHERS[checksum % len(_OTHERS)]
    return dict(zip(("color", "marker"), STYLES.get(name, other), strict=True))


def claim_caption(mechanism: xr.Dataset, checked: Verification) -> str:
    """The sentence on protection, then a line with the mean error and the program."""
    assert checked.protection is not None
    error = error_sentence(MechanismFile.read(mechanism))
    return f"{protection_sentence(checked.protection)}\n{error} Program: {visible(mechanism.attrs['program'])}."


def axis_label(axis: str, unit: str) -> str:
    """A coordinate with its unit."""
    return f"{axis} ({'units' if unit == '1' else unit})"


def place_words(domain: Domain, place: int) -> str:
    """The degrees of a place on Earth, else its coordinates with their unit."""
    if domain.plane is not None:
        digits = domain.plane.decimals(domain.spacing)
        east, north = (float(degrees[0]) for degrees in domain.plane.backward(domain.points[[place]]))
        return f"{abs(north):.{digits}f} {'NS'[north < 0]}, {abs(east):.{digits}f} {'EW'[east < 0]}"
    unit = "" if domain.unit == "1" else f" {domain.unit}"
    numbers = (number(float(x)).replace(",", "") for x in domain.points[place])  # the comma parts coordinates
    return ", ".join(numbers) + unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Ground:
    """The cells of a grid, or the nodes of streets, on which values are drawn.

    inside (n,) is False for secrets outside the region, which are not drawn; `over` has lines (k, 2) above the map.
    """

    domain: Domain
    inside: NDArray[np.bool_]
    streets: Edges | None = None
    over: Sequence[NDArray[np.float64]] = ()

    @property
    def per(self) -> str:
        """The noun of one value: cell or node."""
        return "cell" if self.streets is None else "node"

    def image(self, values: NDArray[Any]) -> np.ma.MaskedArray[Any, Any]:
        """Values (n,) on the lattice, (rows along y, columns along x), masked outside the region."""
        inside = self.lattice
        # The lattice has x first; an image has a row for every y.
        lattice = np.full(inside.shape, np.nan)
        lattice[inside] = np.asarray(values)[self.inside]
        return np.ma.masked_array(lattice, mask=~inside).T

    @property
    def lattice(self) -> NDArray[np.bool_]:
        """The cells of the lattice that lie in the region."""
        lookup = self.domain.lookup
        return np.asarray((lookup >= 0) & self.inside[lookup])

    def size(self, panel: float) -> tuple[float, float]:
        """Width and height in inches of a map: a network is a third wider than a grid of `panel` inches."""
        left, right, bottom, top = self.frame
        if self.streets is not None:
            return 1.35 * panel, 1.35 * panel
        return panel, min(max(panel * (top - bottom) / (right - left), 1.0), 2 * panel)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top in the unit of the domain: of the lattice, or of the network with a margin."""
        domain = self.domain
        if self.streets is None:
            assert domain.origin is not None and domain.cell is not None and domain.shape is not None
            (x, y), (wide, high) = domain.origin, np.multiply(domain.cell, domain.shape).tolist()
            return x, x + wide, y, y + high
        low, high = domain.points.min(axis=0), domain.points.max(axis=0)
        wide, tall = np.maximum(high - low, (high - low).max() / 4) * _MARGIN
        return float(low[0] - wide), float(high[0] + wide), float(low[1] - tall), float(high[1] + tall)

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the drawn part: on a grid the cells of the region, half a cell around."""
        if self.streets is not None or self.lattice.all():
            return self.extent
        assert self.domain.cell is not None
        points, cell = self.domain.points[self.inside], np.array(self.domain.cell)
        low, high = points.min(axis=0) - cell, points.max(axis=0) + cell
        return float(low[0]), float(high[0]), float(low[1]), float(high[1])

    def outline(self) -> NDArray[np.float64]:
        """The border of the region on a lattice as segments (k, 2, 2): sides of cells whose neighbour is outside."""
        assert self.domain.origin is not None
        inside, segments = np.pad(self.lattice, 1), []
        for axis in (0, 1):
            i, j = np.nonzero(np.diff(inside.astype(np.int8), axis=axis))
            # Padding moved the lattice by one: difference i lies between its cells i - 1 and i.
            ends = [(i, j - 1), (i, j)] if axis == 0 else [(i - 1, j), (i, j)]
            segments.append(np.stack([np.column_stack(end) for end in ends], axis=1))
        corner, side = np.array(self.domain.origin), np.array(self.domain.cell)
        return np.asarray(corner + side * np.concatenate(segments))

    def draw(self, axes: Axes, values: NDArray[Any], **style: Any) -> AxesImage | PathCollection:
        """An image of values (n,), or dots at the nodes over the streets; axes in the unit of the domain."""
        if self.streets is None:
            if not self.lattice.all():
                # NaN ends a line after every side, so that one artist draws the border.
                sides = np.concatenate([self.outline(), np.full((len(self.outline()), 1, 2), np.nan)], axis=1)
                axes.plot(*sides.reshape(-1, 2).T, color=_BORDER, linewidth=0.8, gid="outline")
            placed: dict[str, Any] = {"origin": "lower", "extent": self.extent, "aspect": "equal"}
            return axes.imshow(self.image(values), interpolation="nearest", **placed, **style)
        points = self.domain.points
        # NaN ends a line after every edge, so that one artist draws all streets.
        ends = points[np.column_stack([self.streets.tail, self.streets.head])]
        lines = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        axes.plot(*lines.T, color=_STREET, linewidth=1.0, zorder=1)
        axes.set_aspect("equal")
        return axes.scatter(
            points[:, 0], points[:, 1], c=values, s=16.0, zorder=2, edgecolors="0.55", linewidths=0.4, **style
        )


def ground_of(
    domain: Domain,
    streets: Edges | None = None,
    over: Sequence[NDArray[np.float64]] = (),
    inside: NDArray[np.bool_] | None = None,
) -> Ground:
    """The ground of a grid, or of streets over the plane, in the unit of the domain; `inside` of all by default."""
    if streets is not None and domain.dimension != 2:
        raise UnsuitableError("only networks of nodes with x and y have a map", field="domain")
    if streets is None and (domain.kind != "grid" or domain.dimension > 2):
        kind = f"{domain.kind} with {domain.dimension} axes"
        raise UnsuitableError("only grids of one or two axes have a map", field="domain", value=kind)
    drawn = np.ones(domain.size, bool) if inside is None else inside
    return Ground(domain=domain, inside=drawn, streets=streets, over=over)


def furnish(axes: Axes, ground: Ground, title: str) -> None:
    """Draw title, labels, degrees if the domain lies on Earth, the lines over it and a scale bar."""
    domain = ground.domain
    place = axes.get_subplotspec()
    columns = 1 if place is None else place.get_gridspec().ncols
    # A title that is wider than its column would lie on the next one.
    longest = int(_TITLE_PER_INCH * (axes.figure.get_figwidth() / columns - _LABELS))  # type: ignore[union-attr]
    lines = [line for sentence in title.split("\n") for line in textwrap.wrap(sentence, longest)]
    axes.set_title("\n".join(lines), loc="left", fontsize=9)
    axes.set_xlabel(axis_label("x", domain.unit))
    axes.set_ylabel(axis_label("y", domain.unit))
    for line in ground.over:
        for colour, width in (("white", 2.0), ("#1b4f72", 1.0)):
            axes.plot(*line.T, color=colour, linewidth=width, zorder=1.5, scalex=False, scaley=False)
    left, right, bottom, top = ground.frame
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    if domain.plane is not None:
        _in_degrees(axes, ground)
    if domain.unit in METRES:
        _scale_bar(axes, ground)


def _in_degrees(axes: Axes, ground: Ground) -> None:
    """Ticks at round degrees: longitudes along the middle of the map, latitudes up the middle."""
    plane, (left, right, bottom, top) = ground.domain.plane, ground.frame
    assert plane is not None
    middle = np.array([[left, (bottom + top) / 2], [right, (bottom + top) / 2]])
    longitude, latitude = plane.backward(middle)
    # Longitudes begin again at -180 east of 180 degrees.
    east = _round_degrees(longitude[0], longitude[1] + 360 * (longitude[1] < longitude[0]))
    at = plane.forward(east, np.full(len(east), latitude.mean()))[:, 0]
    axes.set_xticks(at, labels=_degree_labels((east + 180) % 360 - 180))
    longitude, latitude = plane.backward(np.array([[(left + right) / 2, bottom], [(left + right) / 2, top]]))
    north = _round_degrees(*latitude)
    axes.set_yticks(plane.forward(np.full(len(north), longitude[0]), north)[:, 1], labels=_degree_labels(north))
    axes.set_xlabel("longitude (degrees east)")
    axes.set_ylabel("latitude (degrees north)")


def _round_degrees(low: float, high: float) -> NDArray[np.float64]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers of degrees, at least two."""
    step = bar_length(high - low)
    return np.asarray(np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step, np.float64)


def _degree_labels(degrees: NDArray[np.float64]) -> list[str]:
    # 1e-9: a step of 0.1 that rounding made smaller still has one decimal.
    digits = max(-math.floor(math.log10(float(np.diff(degrees).max(initial=1e-9)) * (1 + 1e-9))), 0)
    return [f"{value:.{digits}f}" for value in degrees]


def bar_length(width: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most a third of `width`."""
    # 1e-12: a third in doubles may miss a round length that fits exactly.
    power = 10.0 ** math.floor(math.log10(width / 3))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= width / 3 * (1 + 1e-12))


def _scale_bar(axes: Axes, ground: Ground) -> None:
    """A bar of a round length in the lower left corner, with its length in m, km or the unit of the domain."""
    left, right, bottom, top = ground.frame
    unit = ground.domain.unit
    length = bar_length(right - left)
    x, y = left + 0.05 * (right - left), bottom + 0.05 * (top - bottom)
    shown = f"{length / 1000:g} km" if unit == "m" and length >= 1000 else f"{length:g} {unit}"
    for colour, width in (("white", 5.0), ("black", 2.5)):
        line = axes.plot([x, x + length], [y, y], color=colour, linewidth=width, solid_capstyle="butt", zorder=4)
    line[0].set_gid("scale bar")
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    axes.text(x, y + 0.025 * (top - bottom), shown, fontsize=7, va="bottom", zorder=4, bbox=box)
