"""Sampler: reports drawn from a certified mechanism with exactly its integers, never through a floating-point number.

A report is the number of an output cell and its listed coordinates, never secret plus noise. The claim is for one
report: k reports of one secret cost k times the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import AnyArray, Indices, IntegerMatrix, Integers, Points, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Registry
from mechdesign.base.threads import Rng, source
from mechdesign.base.validation import as_numbers, validate_call
from mechdesign.errors import InputError
from mechdesign.mechanism.accuracy import accuracy
from mechdesign.mechanism.claim import Certificate
from mechdesign.mechanism.content import Drawn, Values
from mechdesign.mechanism.mechanism_file import COST
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.mechanism.rows import Rows, Scan, TableMechanism
from mechdesign.mechanism.schema import TABLE, file_error
from mechdesign.mechanism.small_draw import row_masks
from mechdesign.problem.classes import label_arrays, numbers_of
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.locate import as_positions, place_at, place_on_earth
from mechdesign.problem.located import places_at, positions_on_earth
from mechdesign.problem.vocabulary import words_of

if TYPE_CHECKING:
    import xarray as xr

_OTHER_STREAM = 1 << 64  # added to a seed: steps draw from a stream independent of that of reports
_ROWS: Registry[Callable[..., Rows]] = Registry("rows", {TABLE: TableMechanism})  # by schema


def rows_of(mechanism: xr.Dataset) -> Rows:
    """The rows of a mechanism, a table or factors."""
    schema = str(mechanism.attrs.get("schema"))
    if schema not in _ROWS:
        raise file_error("is not a mechanism", "schema", schema, " or ".join(_ROWS))
    return _ROWS[schema](dataset=mechanism)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler(FrozenRecord):
    """Reports of one mechanism, which is copied and verified once.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism.

    Examples
    --------
    >>> sampler = md.Sampler(md.baselines.exponential(md.load_problem("discrete", secrets=3)))
    >>> sampler.sample([0, 2], size=5, rng=1).shape
    (2, 5)
    """

    mechanism: xr.Dataset = field(kw_only=False)
    rows: Rows = field(init=False)
    certificate: Certificate = field(init=False)

    def __post_init__(self) -> None:
        rows = rows_of(self.mechanism.copy(deep=True))
        for name, value in {"rows": rows, "mechanism": rows.dataset, "certificate": rows.certificate}.items():
            object.__setattr__(self, name, value)

    @property
    def domain(self) -> Domain:
        return self.certificate.domain

    @property
    def claim(self) -> str:
        return self.certificate.claim

    @property
    def cost(self) -> Fraction:
        """The cost of one report in multiples of the metric at scale 1."""
        return self.certificate.cost

    @property
    def positions(self) -> PositionClaim | None:
        return self.certificate.positions

    @property
    def report_points(self) -> Points:
        return self.rows.report_points

    @property
    def report_unit(self) -> str:
        return str(self.mechanism[f"{self.rows.report_dim}_x"].attrs["units"])

    @property
    def report_labels(self) -> AnyArray | None:
        return label_arrays(self.mechanism.attrs).get("report")

    @property
    def radii(self) -> Vector | None:
        """The accuracy (m,) of every report; None for mechanisms without radii."""
        return accuracy(self.mechanism)

    def repr_fields(self) -> Mapping[str, object]:
        return {"secrets": self.rows.secrets, "reports": self.rows.reports, "claim": self.certificate.claim}

    def sample(
        self, secrets: ArrayLike | None = None, size: int = 1, *, at: ArrayLike | None = None, rng: Rng = None
    ) -> xr.DataArray:
        """Independent reports (secret b, draw size) of secrets (b,) or positions `at` (b, k), exactly by the masses.

        Secrets are numbers, or labels of classes.

        With a claim between positions every report draws a row by the spline; otherwise a position stands for its cell.
        `accuracy` is the radius about a report that holds the true position with 95 % under the prior. Time and
        addresses depend on secrets and reports; `report` guards them.

        Examples
        --------
        >>> sampler = md.Sampler(md.baselines.constant(md.load_problem("line", cells=3)))
        >>> sampler.sample([0, 2], 4, rng=1).shape
        (2, 4)
        """
        return self.sample_arrays(secrets, size, at=at, rng=rng).data_array()

    def sample_arrays(
        self, secrets: ArrayLike | None = None, size: int = 1, *, at: ArrayLike | None = None, rng: Rng = None
    ) -> Drawn:
        """The reports of `sample`, without xarray.

        Examples
        --------
        >>> sampler = md.Sampler(md.baselines.constant(md.load_problem("line", cells=3)))
        >>> sampler.sample_arrays([0, 2], 4, rng=1).shape
        (2, 4)
        """
        cells, points = self._cells(secrets, at)
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InputError("must be an integer, 1 or more", field="size", value=size)
        require_memory(int(size), len(cells), tables=4, noun="the draws", field="size", remedy="draw fewer at a time")
        _, name = source(rng)
        drawn = self.draw(cells, points, int(size), rng=rng)
        places = {f"secret_{a}": values[cells] for a, values in self._places("secret").items()}
        if at is not None:
            places = dict(zip(places, as_positions(self.certificate.domain, at).T, strict=True))
        labels = self.certificate.domain.labels
        names = cells if labels is None else np.array(labels)[cells]
        labelled = self._label(drawn, ("secret", "draw"), bits=name, cost=COST)
        labelled.coords.update({k: Values(dims=("secret",), values=v) for k, v in {"secret": names, **places}.items()})
        return labelled

    def draw(self, cells: Indices, points: IntegerMatrix | None, size: int = 1, *, rng: Rng = None) -> Integers:
        """Numbers of reports (b, size) of cells (b,) and, with a claim between positions, of points (b, 2) in them.

        Examples
        --------
        >>> sampler = md.Sampler(md.baselines.constant(md.load_problem("line", cells=3)))
        >>> sampler.draw([0, 2], None, 4, rng=1).shape
        (2, 4)
        """
        if points is None:
            return self.rows.sample(cells, size, rng=rng)
        # A seed would otherwise give the steps and the reports the same bits.
        bits, _ = source(rng + _OTHER_STREAM if isinstance(rng, (int, np.integer)) else rng)
        steps = self._position_claim.draw_steps(np.repeat(points, size, axis=0), bits)
        rows = self._position_claim.around[np.repeat(cells, size), steps]
        return self.rows.sample(rows, 1, rng=rng).reshape(len(cells), size)

    def report(
        self, secret: int | str | None = None, *, at: ArrayLike | None = None, scan: Scan = "table"
    ) -> xr.DataArray:
        """One live report of a secret or a position `at` (2,): its number and coordinates, without the secret.

        scan "table" reads the whole table, "row" only the row of the secret, whose address depends on the secret, as do
        the addresses of a factored mechanism. The attribute `addresses` names the way.

        Examples
        --------
        >>> sampler = md.Sampler(md.solve(md.load_problem("line", cells=3)))
        >>> 0 <= int(sampler.report(0)) < 3
        True
        """
        return self.report_arrays(secret, at=at, scan=scan).data_array()

    def report_arrays(
        self, secret: int | str | None = None, *, at: ArrayLike | None = None, scan: Scan = "table"
    ) -> Drawn:
        """The report of `report`, without xarray."""
        if scan not in ("table", "row"):
            raise InputError("unknown scan", field="scan", value=scan, remedy="use table or row")
        return self._live(*self.place(secret, at), scan)

    def place(self, secret: int | str | None = None, at: ArrayLike | None = None) -> tuple[int, tuple[int, ...]]:
        """The cell and, with a claim between positions, the point in it that `report` draws for; else ()."""
        (cell,), points = self._cells(None if secret is None else [secret], at, one=True)
        return int(cell), () if points is None else (int(points[0, 0]), int(points[0, 1]))

    def draw_for(self, place: tuple[int, tuple[int, ...]]) -> xr.DataArray:
        return self._live(*place, "table").data_array()

    def _live(self, cell: int, point: tuple[int, ...], scan: Scan) -> Drawn:
        row, (bits, name) = cell, source(None)
        if point:
            step = int(self._position_claim.draw_steps(np.array([point]), bits)[0])
            # Select by masks over the whole table, so that no address depends on cell or step.
            mask = row_masks(len(self._position_claim.around), cell)[:, None] & row_masks(9, step)
            row = int((self._position_claim.around.astype(np.uint64) & mask).sum())
        place, addresses = self.rows.draw_live(row, scan)
        return self._label(np.asarray(place, np.int64), (), bits=name, cost=COST, addresses=addresses)

    @property
    def _position_claim(self) -> PositionClaim:
        assert self.certificate.positions is not None
        return self.certificate.positions

    def _cells(
        self, secrets: ArrayLike | None, at: ArrayLike | None, *, one: bool = False
    ) -> tuple[Indices, IntegerMatrix | None]:
        """Cells (b,) and, with a claim about positions, the points in them (b, 2)."""
        if (secrets is None) == (at is None):
            raise InputError("pass either secrets or at", field="at", value=at)
        domain, drawn = self.certificate.domain, self.certificate.positions is not None
        if at is None:
            cells = self.rows.check(numbers_of(domain, secrets, "secrets"))  # type: ignore[arg-type]
            return cells, np.zeros((len(cells), 2), np.int64) if drawn else None
        positions = as_positions(domain, at)
        if one and len(positions) != 1:
            words = words_of(domain)
            value = f"{len(positions)} {words.truths}"
            raise InputError(f"must be one {words.truth}", field="at", value=value, remedy="use sample")
        if drawn:
            return self._position_claim.snap(domain, positions)
        if domain.kind == "grid" and domain.dimension == 1 and np.isfinite(positions).all():
            assert domain.origin is not None and domain.cell is not None and domain.shape is not None
            # Clipping to the scale is 1-Lipschitz: no two values get further apart, so the claim holds for them.
            low = domain.origin[0]
            positions = np.clip(positions, low, low + domain.cell[0] * domain.shape[0])
        cells = places_at(domain, positions)
        for outside in np.flatnonzero(cells < 0)[:1].tolist():
            place_at(domain, positions[outside].tolist())
        return cells, None

    def label_report(self, place: int, *, from_centres: bool = False, **attributes: str) -> xr.DataArray:
        """The report `place` with further attributes; from_centres: it was drawn for the centre of a cell."""
        return self._label(np.asarray(place, np.int64), (), from_centres, **attributes).data_array()

    def _label(self, drawn: Integers, dims: tuple[str, ...], from_centres: bool = False, **attributes: str) -> Drawn:
        unit = {"units": self.report_unit}
        coords = {
            f"report_{a}": Values(dims=dims, values=points.take(drawn), attrs=unit)
            for a, points in self._places("report").items()
        }
        if "report" in self.mechanism.indexes:
            coords["report_label"] = Values(dims=dims, values=np.asarray(self.mechanism["report"].values[drawn]))
        reports, back = np.unique(drawn, return_inverse=True)
        radii = accuracy(self.mechanism, reports, from_centres=from_centres)
        if radii is not None:
            domain = self.certificate.domain
            name = f"radius that holds the true {words_of(domain).truth} with 95 %"
            spread = {"units": domain.unit, "long_name": name}
            coords["accuracy"] = Values(dims=dims, values=radii[back].reshape(np.shape(drawn)), attrs=spread)
        attrs = {"claim": self.certificate.claim, "mechanism": self.mechanism.attrs["sha256"], **attributes}
        return Drawn(dims=dims, values=drawn, attrs=attrs, coords=coords)

    def _places(self, dim: str) -> dict[str, Vector]:
        dim = self.rows.report_dim if dim == "report" else dim
        return {a: self.mechanism[f"{dim}_{a}"].values for a in AXES if f"{dim}_{a}" in self.mechanism.coords}


@validate_call
def sample(
    mechanism: xr.Dataset,
    secrets: ArrayLike | None = None,
    size: int = 1,
    *,
    at: Any = None,
    degrees: ArrayLike | None = None,
    rng: Rng = None,
) -> Any:
    """Verify a mechanism and draw reports of secrets; a `Sampler` verifies it once for many calls.

    Reports of one person add up: k of them cost k times the epsilon.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism.
    secrets, size : (b,) array of int or str, int
        Numbers of secrets, or labels of classes, and reports for each.
    at : (k,) or (b, k) array, or GeoDataFrame
        Positions instead of secrets, in the unit of the domain; or a frame of points, in any coordinate system.
    degrees : (2,) or (b, 2) array
        Longitudes and latitudes instead, of a mechanism on Earth.
    rng : int or numpy.random.Generator
        For simulations only: whoever knows it knows the reports.

    Returns
    -------
    xarray.DataArray of numbers of reports, with their coordinates, of classes with `report_label`
        For a frame, a copy of it whose points are reports, with columns report, accuracy and cost.

    Examples
    --------
    >>> mechanism = md.baselines.constant(md.load_problem("line", cells=4))
    >>> md.sample(mechanism, [0, 3], rng=1).shape
    (2, 1)
    """
    from mechdesign.mechanism.frames import is_frame, sample_frame

    sampler = Sampler(mechanism=mechanism)
    if degrees is not None:
        if at is not None or secrets is not None:
            raise InputError("pass one of secrets, at and degrees", field="degrees", value=degrees)
        return _sample_degrees(sampler, degrees, size, rng)
    if is_frame(at):
        if secrets is not None or size != 1:
            raise InputError("a frame has one report for each point", field="size", value=size)
        return sample_frame(sampler, at, rng=rng)
    return sampler.sample(secrets, size, at=at, rng=rng)


def _sample_degrees(sampler: Sampler, degrees: ArrayLike, size: int, rng: Rng) -> xr.DataArray:
    """`Sampler.sample` of longitudes and latitudes, with those of reports as coordinates."""
    from mechdesign.mechanism.collection import Collection

    collection, array = Collection(source=sampler, rng=rng), np.atleast_2d(as_numbers(degrees, "degrees"))
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise InputError("must be longitudes and latitudes (b, 2)", field="degrees", value=f"{degrees!s:.60}")
    # One by one, for an error that names the nearest place.
    outside = np.flatnonzero(~collection.locate_degrees(array).is_inside)
    for longitude, latitude in array[outside[:1]].tolist():
        place_on_earth(sampler.domain, longitude, latitude)
    drawn = sampler.sample(size=size, at=positions_on_earth(sampler.domain, array), rng=rng)
    if collection.report_degrees is None:
        return drawn
    east, north = np.moveaxis(collection.report_degrees[drawn.values], -1, 0)
    dims = drawn.dims
    return drawn.assign_coords(report_longitude=(dims, east), report_latitude=(dims, north))
