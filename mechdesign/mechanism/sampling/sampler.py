"""Sampler: reports drawn from a certified mechanism with exactly its integers, never through a floating-point number.

A report is the number of an output cell; what comes with it are the coordinates that the mechanism lists for the cell,
never secret plus noise. The claim is for one report: k reports of one secret cost k times the metric (budget.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.entropy import source
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.mechanism.admission import Admission
from mechdesign.mechanism.factored.rows import FactoredMechanism
from mechdesign.mechanism.rows import Rows, Scan
from mechdesign.mechanism.sampling.table_rows import TableMechanism
from mechdesign.mechanism.schema import COLUMNED, FACTORED, TABLE, refused
from mechdesign.mechanism.table.dataset import COST
from mechdesign.setting.space.domain import AXES

_ROWS: dict[str, Callable[..., Rows]] = {
    TABLE: TableMechanism,
    FACTORED: FactoredMechanism,
    COLUMNED: FactoredMechanism,
}


def rows_of(mechanism: xr.Dataset) -> Rows:
    """The rows of a mechanism, a table or factors. Raises: VerificationError for another Dataset."""
    schema = mechanism.attrs.get("schema")
    if schema not in _ROWS:
        raise refused("is no mechanism", "schema", schema, " or ".join(_ROWS))
    return _ROWS[schema](dataset=mechanism)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler(Shown):
    """Draws from one mechanism, a table or a factored one, which is proved once, here, and copied, so that later
    changes to the Dataset do not reach the draws.

    Raises: VerificationError for a mechanism that is altered or not private as claimed (admission.py).
    Cost: that of the proof; 8 n m bytes for a table.
    """

    mechanism: xr.Dataset = field(kw_only=False)
    rows: Rows = field(init=False)
    admission: Admission = field(init=False)

    def __post_init__(self) -> None:
        rows = rows_of(self.mechanism.copy(deep=True))
        for name, value in {"rows": rows, "mechanism": rows.dataset, "admission": rows.admission}.items():
            object.__setattr__(self, name, value)

    def facts(self) -> Mapping[str, object]:
        return {"secrets": self.rows.secrets, "reports": self.rows.reports, "claim": self.admission.claim}

    def sample(self, secrets: ArrayLike, size: int, *, seed: int | None = None) -> xr.DataArray:
        """Reports (secret b, draw size) drawn independently for secrets (b,), or for one, each with exactly
        P(y|u) = mass / 2^62 (factored: mass / S(u)).

        Returns: report numbers with the coordinates of secrets and reports; attributes bits, claim, cost. With `seed`,
            for simulations only, bits is "simulation, seed 7 (predictable)".
        Raises: InputError for secrets that are not there, or a size or seed that is not a whole number; SizeError where
            the draws would not fit in memory.
        Cost: 10 microseconds for every distinct secret of 900 reports, then 30 to 60 ns a draw (150 where every draw
            names its own secret), of which 18 for the bits of the operating system. Memory: 12 bytes of tables per
            column, of which a row has 2^k >= m, in blocks of 64 MB; on two axes 24 bytes a draw.
            Time and addresses depend on secrets and reports: `report` is the guarded one.
        """
        asked = self.rows.checked(secrets)
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InputError("must be a whole number, 1 or more", field="size", value=size, remedy="use size=1")
        require_memory(int(size), len(asked), tables=4, what="the draws", field="size", remedy="draw fewer at a time")
        drawn, (_, name) = self.rows.sample(asked, int(size), seed=seed), source(seed)
        placed = {f"secret_{a}": ("secret", points[asked]) for a, points in self._places("secret").items()}
        labelled = self._labelled(drawn, ("secret", "draw"), bits=name, cost=COST)
        return labelled.assign_coords({"secret": asked} | placed)

    def report(self, secret: int, *, scan: Scan = "table") -> xr.DataArray:
        """One live report: its number, without dimensions, and its coordinates; nothing in it tells the secret.

        scan "table" reads the whole table, "row" the row of the secret, in an order and number that depends on neither
        secret nor report (scan.py says what is constant and what is not); with "row" the address of the row tells the
        secret. A factored mechanism relaxes distances from the secret: its addresses depend on it. The attribute
        addresses says which it was.
        Raises: InputError for a secret that is not there, or another scan.
        Cost: 0.4 ms for 900 x 900 ("row": 1 microsecond), 0.1 ms of labels on top.
        """
        if scan not in ("table", "row"):
            raise InputError("unknown scan", field="scan", value=scan, remedy="use table or row")
        (asked,) = self.rows.checked([secret]).tolist()
        (place, addresses), (_, name) = self.rows.live(asked, scan), source(None)
        return self.released(place, bits=name, cost=COST, addresses=addresses)

    def released(self, place: int, **said: str) -> xr.DataArray:
        """The report `place` as `report` returns it, with these attributes beside the claim."""
        return self._labelled(np.asarray(place, np.int64), (), **said)

    def _labelled(self, drawn: NDArray[np.int64], dims: tuple[str, ...], **said: str) -> xr.DataArray:
        unit = {"units": self.mechanism[f"{self.rows.placed}_x"].attrs["units"]}
        placed = {
            f"report_{a}": xr.Variable(dims, points.take(drawn), unit) for a, points in self._places("report").items()
        }
        attrs = {"claim": self.admission.claim, "mechanism": self.mechanism.attrs["sha256"], **said}
        return xr.DataArray(drawn, dims=dims, coords=placed, name="report", attrs=attrs)

    def _places(self, dim: str) -> dict[str, NDArray[np.float64]]:
        dim = self.rows.placed if dim == "report" else dim
        return {a: self.mechanism[f"{dim}_{a}"].values for a in AXES if f"{dim}_{a}" in self.mechanism.coords}


@asked
def sample(mechanism: xr.Dataset, secrets: ArrayLike, size: int, *, seed: int | None = None) -> xr.DataArray:
    """`Sampler.sample`, the mechanism proved first: keep a `Sampler` to prove it once."""
    return Sampler(mechanism=mechanism).sample(secrets, size, seed=seed)
